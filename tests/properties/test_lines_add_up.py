"""In every part of a diagnosis, each row is at one line: those that drop it, and those counted."""

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.neighbors import ALL_CAPS

import dpframe as dpf
from dpframe import Ledger
from dpframe.privacy.neighbors import Caps

KEYS = {"zone": ["A", "B"], "hour": [0, 1]}
QUERIES = {
    "everything": None,
    "count": dpf.count("zone", where="fare > 1"),
    "not": dpf.count("zone", where="not fare > 1 or hour != 1"),
    "units": dpf.units(["zone", "hour"]),
    "weighted": dpf.mean("fare", "zone", weights="w"),
    "rate": dpf.rate("fare > 2", "zone"),
    "blanks": dpf.rate("fare > 2 or zone == 'A'", missing=False, where="hour < 2"),
    "outputs": dpf.aggregate(
        "zone",
        n=dpf.count(where="late"),
        r=dpf.rate("zone == 'A' and fare > 2", where="hour == 1"),
        s=dpf.sum("fare", where="zone != 'B'"),
        v=dpf.var("fare"),
        c=dpf.corr("fare", "day"),
    ),
    "dropped": dpf.aggregate("zone", n=dpf.count(), m=dpf.mean("day")),
    "true": dpf.sum(["late", "long"], max_true=1),
    "slope": dpf.slope("fare", "day", "zone"),
    "regression": dpf.regression("fare", "day", "zone"),
    "histogram": dpf.histogram("fare", [0, 2, 4], "zone"),
    "ranges": dpf.ranges("fare", 5, "zone"),
    "quantile": dpf.quantile("fare", [0.1, 0.5], "zone"),
    "combinations": dpf.count(["zone", "hour"], keys=pd.DataFrame({"zone": ["A"], "hour": [1]})),
    "bounds": dpf.suggest_bounds("fare", "zone", where="late"),
    "caps": dpf.suggest_caps(["zone", "hour"], cap="max_rows", largest=8),
    "labels": dpf.discover(["zone", "hour"], dtype={"zone": "string", "hour": "int64"}),
    "sets": dpf.discover("fare", dtype="int64", where="late", counts=False),
}
MARGINS = {
    "margins": dpf.margins(["zone", "hour"], where="fare > 0"),
    "other": dpf.margins(["zone", "hour", dpf.cut("fare", [0, 2, 4])], other={"zone": "rest"}),
}
CAPS = [*ALL_CAPS, Caps(rows=4, rows_per_group=9), Caps(None, None, 2)]


def rows_of(size, seed=6):
    rng = np.random.default_rng(seed)
    fares = rng.integers(-3, 9, size).astype(object)
    fares[::7], fares[3::11] = None, "free"
    riders = rng.geometric(0.2, size).astype(object)
    riders[::5] = [str(one) for one in riders[::5]]
    riders[::13] = None
    return pd.DataFrame(
        {
            "zone": rng.choice(["A", "B", "Z", None], size),
            "hour": rng.choice([0, 1, 2, np.nan], size),
            "rider": riders,
            "fare": fares,
            "day": rng.choice([0.5, 2.5, np.nan], size),
            "w": rng.choice([0.5, 9.0, np.nan], size),
            "late": rng.random(size) < 0.6,
            "long": rng.random(size) < 0.6,
            "week": rng.choice(["1", "2"], size),
        }
    )


def declare(frame, caps=None, **options):
    unit = {"privacy_unit": dpf.EACH_ROW}
    if caps is not None:
        names = ("rows", "groups", "rows_per_group")
        unit = {"privacy_unit": "rider", **{f"max_{name}": getattr(caps, name) for name in names}}
    bounds = {"fare": (0, 5), "day": (0, 2), "w": (0, 2)}
    schema = pa.DataFrameSchema({"late": pa.Column(bool), "long": pa.Column(bool)})
    dpf.declare(frame, schema, keys=KEYS, bounds=bounds, missing={"day": "drop"}, **unit, **options)
    return frame


def assert_adds_up(found, rows):
    for part, own in found["rows"].groupby(level="part"):
        lines = own.droplevel("part")
        whole = lines["in all"] if part == "true values" else rows
        steps = lines[~lines.index.str.startswith("of these") & (lines.index != "in all")]
        assert steps.sum() == whole, found
        assert steps.min() >= 0 and "counted" in steps
        beside = lines[lines.index.str.startswith("of these")]
        assert (beside <= lines["counted"]).all()


SIZES = [*((caps, 230) for caps in (None, *CAPS)), (None, 0), (CAPS[0], 0), (CAPS[-1], 1)]


@pytest.mark.parametrize(("caps", "size"), SIZES, ids=str)
def test_lines_of_every_kind_of_query_add_up(caps, size):
    frame = declare(rows_of(size), caps)
    together = caps is None or (caps.groups, caps.rows_per_group) == (None, None)
    asked = QUERIES | (MARGINS if together else {})
    for name, query in asked.items():
        if caps is None and name == "caps":
            continue  # there is nothing to cap
        if caps is not None and caps.groups is None and isinstance(query, type(QUERIES["labels"])):
            continue  # without a cap, all labels of one unit could be published
        assert_adds_up(frame.dp.diagnose(query), size)


def test_lines_add_up_where_a_part_is_looked_at():
    ledger = Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6), part="week")
    frame = declare(rows_of(230), ledger=ledger)
    others = int((frame["week"] != "2").sum())
    for name, query in QUERIES.items():
        if name == "caps":
            continue  # there is nothing to cap
        found = frame.dp.diagnose(query, part="2")
        assert_adds_up(found, 230)
        first = found["rows"].xs("not in the part week == 2", level="step")
        assert first.tolist() == [others] * len(first)


def test_lines_add_up_at_every_door(tmp_path):
    rows = rows_of(230).drop(columns=["fare", "rider"]).assign(fare=2.5, rider=np.arange(230) // 3)
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("dpframe.dask")
    caps = Caps(2, 1, None)
    doors = [dpf.scan_parquet(tmp_path, batch_rows=50), dd.from_pandas(rows, npartitions=3)]
    plain = declare(rows.copy(), caps)
    for door in doors:
        declare(door, caps)
        for name in ("everything", "not", "weighted", "outputs", "ranges", "caps", "labels"):
            query = QUERIES[name]
            found, expected = door.dp.diagnose(query), plain.dp.diagnose(query)
            assert_adds_up(found, 230)
            assert found.index.tolist() == expected.index.tolist()


def test_a_blank_is_told_from_a_no():
    opted = pd.DataFrame({"opt": ["x"] * 30 + ["y"] * 10 + [None] * 60})
    opted.dp.declare(privacy_unit=dpf.EACH_ROW)
    found = opted.dp.diagnose(dpf.rate("opt == 'x'")).loc["rate of opt == 'x'"]
    blank = found.loc["a value of the condition is missing"]
    assert (blank["rows"], blank["hint"]) == (60, "the rate is 0.75; with missing=False, 0.3")
    lines = opted.dp.diagnose(dpf.count(where="opt == 'x'")).loc["rows", "rows"]
    assert lines["where opt == 'x': a value is missing"] == 60
    assert lines["where opt == 'x': not met"] == 10
    answered = opted.dp.diagnose(dpf.rate("opt == 'x'", missing=False))
    assert answered.loc[("rate of opt == 'x'", "counted"), "rows"] == 100


def test_ids_of_several_kinds_are_shown():
    frame = pd.DataFrame({"who": pd.Series([7, 7, "7", None], dtype=object)})
    frame.dp.declare(privacy_unit="who", max_rows=1)
    hint = frame.dp.diagnose(dpf.count()).loc[("rows", "no unit (who)"), "hint"]
    said = "7 and '7' are one unit, '07' is another. Read ids as texts"
    assert hint == f"who is a number in 2 rows and a text in 1: {said}"
