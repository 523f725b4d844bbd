"""Tables computed from released ones hold as often as they say, law by law and cell by cell.

Cells of which nothing is known are missing: their interval is all that is possible.
"""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf

pytestmark = pytest.mark.audit

RELEASES = 600
KEYS = {"ward": ["A", "B", "C", "D"], "age": ["young", "old"], "year": [2023, 2024, 2025]}
BY = list(KEYS)
SPENDS = {
    "laplace": {"mechanism": "laplace", "epsilon": 1},
    "gaussian": {"mechanism": "gaussian", "rho": 0.1},
}
RESIDENTS = pd.Series(
    {(ward, age): 1_000 + 300 * at for at, (ward, age) in enumerate(np.ndindex(4, 2))}
)
RESIDENTS.index = pd.MultiIndex.from_product([KEYS["ward"], KEYS["age"]], names=["ward", "age"])
STANDARD = {"young": 3, "old": 1}
LEVEL = 0.95
LEAST_MEAN, LEAST_CELL = 0.945, 0.93
# standard errors of a coverage: below what is promised by so much, some 600 cells and 80 means are
# found by chance less than once in 1,000,000 audits
BELOW_OF_CELLS, BELOW_OF_MEANS = 6.5, 6.0


def groups():
    """24 groups of 8 to 175 rows, each as often as there are releases."""
    index = pd.MultiIndex.from_product(KEYS.values(), names=BY)
    sizes = np.linspace(8, 175, len(index)).astype(int)[np.arange(len(index)) * 7 % len(index)]
    one = index.repeat(sizes).to_frame(index=False)
    at = np.arange(len(one))
    one["cost"] = at * 31 % 97 / 10
    frame = one.loc[np.tile(at, RELEASES)].reset_index(drop=True)
    frame["run"] = np.repeat(np.arange(RELEASES), len(one))
    return one, frame


TABLES = {
    "total": lambda r, run: r.dp.total([*run, "ward", "year"]),
    "total of all": lambda r, run: r.dp.total([*run, "age"]),
    "percent": lambda r, run: r[["n", "s"]].dp.percent(by=[*run, "year"]),
    "change": lambda r, _: r.dp.change("year"),
    "change in percent": lambda r, _: r[["n", "s"]].dp.change("year", percent=True),
    "per": lambda r, _: r[["n"]].dp.per(RESIDENTS),
    "standardize": lambda r, _: r[["n"]].dp.standardize(STANDARD, over="age", population=RESIDENTS),
    "relative": lambda r, _: r[["n"]].dp.relative("year", to=2024),
    "ratio": lambda r, _: r.dp.ratio("s", "n"),
    "change of totals": lambda r, run: r.dp.total([*run, "ward", "year"])[LINEAR].dp.change(
        "year", percent=True
    ),
    "difference of totals": lambda r, run: r.dp.total([*run, "ward", "year"]).dp.change("year"),
    "totals of joined keys": lambda r, _: r.dp.total({"ward": {"B": "other", "C": "other"}}),
    "totals of totals": lambda r, run: r.dp.total([*run, "ward", "year"]).dp.total([*run, "year"]),
    "per of totals": lambda r, run: (
        r[["n"]].dp.total([*run, "ward", "year"]).dp.per(RESIDENTS.groupby("ward").sum())
    ),
    "relative of totals": lambda r, run: (
        r[["n"]].dp.total([*run, "ward", "year"]).dp.relative("ward", to="D")
    ),
    "percent of totals by ward": lambda r, run: (
        r[["n", "s"]].dp.total([*run, "ward", "year"]).dp.percent(by=[*run, "ward"])
    ),
    "change of standardized rates": lambda r, _: (
        r[["n"]]
        .dp.standardize(STANDARD, over="age", population=RESIDENTS)
        .dp.change("year", percent=True)
    ),
    "relative of standardized rates": lambda r, _: (
        r[["n"]]
        .dp.standardize(STANDARD, over="age", population=RESIDENTS)
        .dp.relative("ward", to="D")
    ),
    "percent of totals": lambda r, run: (
        r[["n"]].dp.total([*run, "ward", "year"]).dp.percent(by=[*run, "year"])
    ),
}
LINEAR = ["n", "n_low", "n_high", "s", "s_low", "s_high"]
OF_QUOTIENTS = {
    "total": lambda r, run: r.dp.total([*run, "ward", "year"]),
    "change": lambda r, _: r.dp.change("year"),
    "change of totals": lambda r, run: r.dp.total([*run, "ward", "year"]).dp.change("year"),
}
STANDARDIZED = {
    "standardize rates": lambda r, _: r.dp.standardize(STANDARD, over="age"),
    "change of them": lambda r, _: r.dp.standardize(STANDARD, over="age").dp.change("year"),
}
QUERIES = {
    "sums": (TABLES, {"n": dpf.count(), "s": dpf.sum("cost"), "m": dpf.mean("cost")}),
    "quotients": (OF_QUOTIENTS, {"r": dpf.rate("cost > 3"), "v": dpf.var("cost")}),
    "rates": (STANDARDIZED, {"r": dpf.rate("cost > 3")}),
}


def release(frame, keys, outputs, **spend):
    frame.dp.declare(keys=keys, bounds={"cost": (0, 10)}, privacy_unit=dpf.EACH_ROW)
    return frame.dp.release(dpf.aggregate(list(keys), **outputs), **spend)


def coverage(found, right, label, narrower=1.0):
    """Return how often the intervals of a column hold, by cell."""
    levels = [level for level in right.index.names if level is not None]
    wanted = right[label].reindex(found.index.droplevel("run")).to_numpy(float)
    slack = 0.02 + 1e-3 * np.abs(wanted)  # of the truth, which has a little noise
    if label in ("r", "v"):
        slack = 1e-4 + 1e-4 * np.abs(wanted)
    value = found[label].to_numpy(float)
    ends = (found[f"{label}{end}"].to_numpy(float) for end in ("_low", "_high"))
    low, high = (value + narrower * (end - value) for end in ends)
    held = (low <= wanted + slack) & (wanted - slack <= high) | np.isnan(value)
    return pd.Series(held, found.index).groupby(level=levels).mean()


def holds(by_cell):
    """Tell whether the coverage of cells, and their mean, are not below what is promised."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / RELEASES)
    mean = by_cell.mean() >= LEVEL - BELOW_OF_MEANS * error / np.sqrt(len(by_cell))
    return mean and by_cell.min() >= LEVEL - BELOW_OF_CELLS * error


@pytest.mark.filterwarnings("ignore::dpframe.errors.DPFrameWarning")
@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("query", QUERIES)
def test_derived_tables_hold_as_often_as_they_say(spend, query):
    tables, outputs = QUERIES[query]
    one, frame = groups()
    made = release(frame, {"run": range(RELEASES), **KEYS}, outputs, **SPENDS[spend])
    truth = release(one, KEYS, outputs, mechanism="gaussian", mu=1e5)
    failed = []
    for name, make in tables.items():
        found, right = make(made, ["run"]), make(truth, [])
        for label in [label for label in found if f"{label}_low" in found]:
            by_cell = coverage(found, right, label)
            below = by_cell.mean() < LEAST_MEAN or by_cell.min() < LEAST_CELL
            mean, worst = 100 * by_cell.mean(), 100 * by_cell.min()
            said = " below" if below else ""
            print(f"| {spend} | {name} | {label} | {mean:.1f} | {worst:.1f} |{said}")
            if not holds(by_cell):
                failed.append((name, label, by_cell.to_dict()))
            if name in ("total", "change") and label == "s":  # planted: a fifth too narrow
                assert not holds(coverage(found, right, label, 0.8))
    assert failed == []
