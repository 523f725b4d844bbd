"""Random chains of calls of pandas keep the certificate; after them, no altered number passes."""

import json
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.cells import rounding
from dpframe.errors import CertificateError, DPFrameError

KEYS = {"ward": ["A", "B", "C"], "sex": ["f", "m"], "year": [2023, 2024, 2025]}
OF_KEYS = [*KEYS, "variable", "value"]  # columns that are no released ones
SHOWN = 4  # fewer cells of a column may all be multiples of 5 by chance, and read as rounded
STEPS = 6
KEPT = 0.97  # of chains: some round twice, or to 0
UNITS = [step * 10.0**power for power in range(-4, 5) for step in (1, 5)]


@pytest.fixture(scope="module")
def released():
    at = np.arange(30_000)
    frame = pd.DataFrame({"ward": np.array(KEYS["ward"])[at * at % 97 % 3]})
    frame["sex"] = np.array(KEYS["sex"])[at * 7 % 11 % 5 // 3]
    frame["year"] = 2023 + at * 13 % 17 % 3
    frame["cost"] = at * 31 % 971 / 10
    frame.dp.declare(keys=KEYS, bounds={"cost": (0, 100)}, privacy_unit=dpf.EACH_ROW)
    return frame.dp.aggregate(
        list(KEYS), n=("cost", "size"), s=("cost", "sum"), m=("cost", "mean"), epsilon=1
    )


def is_long(table):
    return table.columns.nlevels == 1 and set(KEYS) <= set(table.index.names)


def some(rng, values):
    """Take some of them, in order, at least half."""
    kept = rng.permutation(len(values))[: rng.integers((len(values) + 1) // 2, len(values) + 1)]
    return [values[at] for at in np.sort(kept)]


def sort_values(table, rng):
    return table.sort_values(table.columns[rng.integers(table.shape[1])])


def loc(table, rng):
    kept = some(rng, list(table.index))  # of labels that come twice, each row would
    return table.loc[kept] if table.index.is_unique else table.iloc[: len(kept)]


def columns(table, rng):
    chosen = some(rng, list(table.columns))
    return table[[one for one in table.columns if one in chosen or one in OF_KEYS]]


def unstack(table, rng):
    levels = [name for name in table.index.names if name in KEYS]
    return table.unstack(rng.choice(levels)) if len(levels) > 1 else table


def stack(table, rng):
    levels = [name for name in table.columns.names if name in KEYS]
    return table.stack(rng.choice(levels), future_stack=True) if levels else table


def melt(table, rng):
    return table.reset_index().melt(id_vars=list(KEYS)) if is_long(table) else table


def pivot(table, rng):
    if not is_long(table) or not table.index.is_unique or table.shape[1] < 1:
        return table
    inner = rng.choice(list(KEYS))
    outer = [level for level in KEYS if level != inner]
    values = list(table.columns)
    return table.reset_index().pivot(index=outer, columns=inner, values=values)


def reset_index(table, rng):
    named = table.columns.nlevels == 1 and all(name in KEYS for name in table.index.names)
    return table.reset_index(rng.choice(table.index.names)) if named else table


def rename(table, rng):
    labels = [label for label in ("n", "s", "m") if label in table.columns.get_level_values(0)]
    if not labels or "dpframe" not in table.attrs:
        return table
    label = rng.choice(labels)
    return table.dp.rename({label: f"new {label}"})


def concat(table, rng):
    at = rng.integers(len(table) + 1)
    attrs, pieces = table.attrs, [table.iloc[at:], table.iloc[:at]]
    made = pd.concat(pieces)
    made.attrs = attrs
    return made


def round_numbers(table, rng):
    decimals = int(rng.choice([-1, 0, 2]))
    return table.round({table.columns[at]: decimals for at in numbers_of(table)})


CALLS = [
    *[sort_values, loc, columns, unstack, stack, melt, pivot, reset_index, rename, concat],
    *[lambda table, rng: table.head(rng.integers(SHOWN, len(table) + SHOWN)), round_numbers],
]


def in_memory(table, folder):
    return table


def in_csv(table, folder):
    table.dp.write_csv(folder / "table.csv")
    return dpf.read_csv(folder / "table.csv")


def in_parquet(table, folder):
    table.dp.write_parquet(folder / "table.parquet")
    return pd.read_parquet(folder / "table.parquet")


def chain(released, rng, folder):
    """Return a table after some calls, read back from where it was written."""
    table, rounded = released, False
    for at in rng.integers(len(CALLS), size=rng.integers(1, STEPS)):
        call = CALLS[at]
        if call is round_numbers:
            if rounded:  # twice is refused
                continue
            rounded = True
        before = table
        try:
            table = call(table, rng)
        except (KeyError, ValueError):  # pandas has no such layout
            continue
        if "dpframe" not in table.attrs:  # pandas lost it
            table = dpf.certify(table, of=before)
    return rng.choice([in_memory, in_csv, in_parquet])(table, folder)


def numbers_of(table):
    """The columns that hold no keys, by position."""
    return [
        at
        for at, label in enumerate(table.columns)
        if label not in KEYS and table.dtypes.iloc[at].kind in "iuf"
    ]


def label_at(table, row, at):
    """Which released column a cell is of, as names say."""
    labels = {"n", "s", "m", "new n", "new s", "new m"}
    parts = [table.columns[at], table.index[row]]
    flat = [part for one in parts for part in (one if isinstance(one, tuple) else (one,))]
    if "variable" in table.columns:
        flat.append(table["variable"].iloc[row])
    found = [part for part in flat if isinstance(part, str) and part in labels]
    return found[0] if found else None


def may_be_rounded(values, change):
    """Whether cells are multiples of a unit by which a change may be what rounding does."""
    for unit in UNITS:
        multiples = np.abs(np.rint(values / unit) * unit - values) <= 1e-9 * np.abs(values)
        if abs(change) <= unit and multiples.all():
            return True
    return False


def altered(table, rng):
    """Return a table with one other number, or nothing where it could be a rounding."""
    places = numbers_of(table)
    if not places:
        return None
    at, row = rng.choice(places), rng.integers(len(table))
    label = label_at(table, row, at)
    alike = [
        (other, place)
        for other in range(len(table))
        for place in places
        if label_at(table, other, place) == label and pd.notna(table.iat[other, place])
    ]
    if len(alike) < SHOWN or (row, at) not in alike:
        return None
    before = float(table.iat[row, at])
    other = float(table.iat[alike[rng.integers(len(alike))]])
    after = rng.choice([before + 1, before - 1, before * 1.01, -before, other, before + 10])
    if np.isclose(after, before, 1e-9, 0):
        return None
    made = table.copy()
    if made.dtypes.iloc[at].kind in "iu":
        after = round(after)
        if after == before:
            return None
    made.isetitem(at, made.iloc[:, at].where(np.arange(len(made)) != row, after))
    values = np.array([float(made.iat[place]) for place in alike])
    return None if may_be_rounded(values, after - before) else made


def run(released, chains, folder):
    """Run chains: how many are kept, and how many altered tables are refused or accepted."""
    counts = Counter()
    for number in chains:
        rng = np.random.default_rng(number)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of concatenated empty pieces
                table = chain(released, rng, folder)
                dpf.verify(table, against=released)
        except DPFrameError as error:
            counts["refused chains"] += 1
            counts[str(error)] += 1
            continue
        counts["kept"] += 1
        wrong = altered(table, rng)
        if wrong is None:
            continue
        try:
            dpf.verify(wrong)
        except CertificateError:
            counts["refused"] += 1
        else:
            counts["accepted"] += 1
    return counts


SAMPLE = range(30)
AUDITED = [range(at, at + 500) for at in range(0, 4_000, 500)]


@pytest.mark.parametrize(
    "chains", [SAMPLE, *(pytest.param(some, marks=pytest.mark.audit) for some in AUDITED)], ids=str
)
def test_no_altered_number_is_accepted_after_a_chain_of_calls(released, tmp_path, chains):
    counts = run(released, chains, tmp_path)
    assert counts["accepted"] == 0, json.dumps(counts)
    assert counts["kept"] >= KEPT * len(chains), json.dumps(counts)
    assert counts["refused"] >= len(chains) / 2


def test_it_catches_a_comparison_that_leaves_out_digits(released, tmp_path, monkeypatch):
    monkeypatch.setattr(rounding, "_ULPS", 1e15)
    assert run(released, SAMPLE, tmp_path)["accepted"] > 0


def test_new_labels_leave_keys_that_read_like_them_alone(released):
    wide = released.unstack("sex")
    made = wide.dp.rename({"m": "mean"})
    assert made.columns.unique(0).tolist() == ["n", "s", "mean"]
    assert made.columns.unique("sex").tolist() == ["f", "m"]
    assert dpf.verify(made, against=released) == made.dp.certificate
    of_one = dpf.certify(released["n"].unstack("sex"), of=released).dp.rename({"m": "f"})
    assert of_one.columns.tolist() == ["f", "m"]
    long = released.stack(future_stack=True).to_frame("value")
    long = dpf.certify(long, of=released).dp.rename({"m": "mean"})
    assert set(long.index.get_level_values("sex")) == {"f", "m"}
    assert set(long.index.get_level_values(-1)) == {"n", "s", "mean"}
