"""Diagnoses of margins and ranges: what becomes of a row holds for all tables together."""

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.raising import raises
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.engines import engine_for
from dpframe.operations import diagnose
from dpframe.plan.tables import table_of
from dpframe.privacy import noise
from dpframe.queries.tasks import KeyAxis
from dpframe.queries.where import Condition

KEYS = {"zone": ["A", "B"], "hour": [0, 1, 2], "kind": ["x", "y", "z", "w"]}
TABLES = ((), ("zone",), ("hour",), ("zone", "hour"), ("zone", "kind"))
WHERE = "fare > 1"


@pytest.fixture
def trips():
    rng = np.random.default_rng(8)
    rows = 400
    frame = pd.DataFrame(
        {
            "zone": rng.choice(["A", "B", "Z", None], rows, p=[0.5, 0.3, 0.1, 0.1]),
            "hour": rng.integers(0, 4, rows),
            "kind": rng.choice(["x", "y", "z", "?"], rows),
            "rider": np.where(rng.random(rows) < 0.1, np.nan, rng.geometric(0.1, rows)),
            "fare": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(5, 4, rows)),
        }
    )
    frame.dp.declare(keys=KEYS, bounds={"fare": (0, 10)}, privacy_unit="rider", max_rows=3)
    return frame


def margins(where=WHERE):
    condition = None if where is None else Condition.parse(where)
    query = dpf.margins(list(TABLES), count=dpf.count(), fare=dpf.sum("fare"))
    return replace(query, by=tuple(KEYS), where=condition)


def inside(trips, where=WHERE):
    """The rows with a place in every table, and what leaves out the others."""
    left = trips if where is None else trips.query(where)
    steps = {}
    if where is not None:
        blank = int(trips["fare"].isna().sum())
        steps[f"where {where}: a value is missing"] = blank
        steps[f"where {where}: not met"] = len(trips) - len(left) - blank
    conditions = {"no unit (rider)": left["rider"].notna()}
    for label, keys in KEYS.items():
        conditions[f"{label} is missing"] = left[label].notna()
        conditions[f"{label} is not a declared key"] = left[label].isin(keys)
    for step, passed in conditions.items():
        before, left = left, left[passed[left.index]]
        steps[step] = len(before) - len(left)
    return left, steps


@pytest.mark.parametrize("where", [None, WHERE])
def test_rows_are_lost_to_all_tables_or_to_none(trips, where):
    rows, steps = inside(trips, where)
    found = trips.dp.diagnose(margins(where))
    kept = int(rows["rider"].value_counts().clip(upper=3).sum())
    expected = {"in all": len(trips), **steps, "beyond max_rows=3": len(rows) - kept}
    assert found.loc["rows", "rows"].to_dict() == expected | {"counted": kept}
    assert found.loc[("rows", "counted"), "left"] == kept
    assert found.loc[("rows", "counted"), "units_left"] == rows["rider"].nunique()
    assert found.loc[("rows", "counted"), "hint"] == ""  # all rows are one group
    assert "values of fare" in found.index.get_level_values("part")
    assert dpf.diagnose(trips, {"m": margins(where)})["m"].shape == found.shape


def again(ask):
    """Ask with random words that come again: the same choice of rows."""
    rng = np.random.default_rng(5)
    words = mock.patch.object(
        noise, "random_words", lambda n, _: rng.integers(0, 2**64, n, np.uint64)
    )
    with words:
        return ask()


def test_groups_are_those_of_every_table_and_agree(trips):
    rows, _ = inside(trips)
    found = again(lambda: trips.dp.diagnose(margins(), groups=True))
    assert list(found) == list(TABLES)
    table = table_of(margins(), trips.dp.declaration)
    task = table.task([(0, "rows")])
    (totals,) = again(lambda: engine_for(trips).totals(trips, [task], SYSTEM))
    largest = np.concatenate([found[one]["counted"] for one in TABLES if one in sets(table)])
    assert totals[0].tolist() == largest.tolist()
    for columns, groups in found.items():
        by = list(columns)
        there = rows.groupby(by).size() if by else pd.Series([len(rows)])
        assert groups["rows"].tolist() == there.reindex(groups.index, fill_value=0).tolist()
        assert groups["counted"].sum() == totals[0].sum() // 2  # two tables are the largest
        assert (groups["lost"] == groups["rows"] - groups["counted"]).all()
        with raises(dpf.errors.CertificateError, "not for publication"):
            dpf.verify(groups)
    units = rows.groupby(["zone", "kind"])["rider"].nunique()
    own = found["zone", "kind"]["units"]
    assert own.tolist() == units.reindex(own.index, fill_value=0).tolist()


def sets(table):
    """The columns of the tables that rows are counted in."""
    axes = table.cells.axes
    return [tuple(axes[at].column for at in margin) for margin in table.cells.margins]


def test_caps_for_margins_are_looked_for_with_other_queries(trips):
    with raises(dpf.errors.QueryError, "one table", parameter="query"):
        trips.dp.suggest_caps(query=margins(), epsilon=1)


def ranges(by, edges=(0, 2, 4, 10)):
    return dpf.ranges("fare", pd.IntervalIndex.from_breaks(edges), list(by))


@pytest.mark.parametrize("by", [(), ("zone",), ("zone", "hour")], ids=str)
def test_bins_are_no_groups_of_caps(trips, by):
    frame = pd.DataFrame(trips.to_dict("series"))
    frame.dp.declare(keys=KEYS, privacy_unit="rider", max_groups=1, max_rows_per_group=2)
    rows = frame[frame["rider"].notna() & frame["fare"].notna()]
    for label in by:
        rows = rows[rows[label].isin(KEYS[label])]
    found = frame.dp.diagnose(ranges(by))
    said = found.loc["rows", "rows"]
    assert said["fare is missing"] > 0 == said["fare is of another kind than the bins"]
    outside = int(((rows["fare"] <= 0) | (rows["fare"] > 10)).sum())
    moved = "of these, fare is below or above all bins"
    assert 0 < said[moved] <= outside
    assert found.loc[("rows", moved), "left"] == said["counted"]
    hint = found.loc[("rows", moved), "hint"]
    assert hint.startswith("counted in the first bin or the last; most often ")
    sizes = rows.groupby(["rider", *by]).size().clip(upper=2)
    least, most = sizes.groupby("rider").min().sum(), sizes.groupby("rider").max().sum()
    assert least <= said["counted"] <= most
    groups = frame.dp.diagnose(ranges(by), groups=True)
    assert groups["rows"].sum() == len(rows)
    last = found.loc[("rows", "counted"), "hint"]
    named = {0: "", 1: r".* of group '[AB]', .*", 2: r".* of group \('[AB]', [0-2]\), .*"}[len(by)]
    assert re.fullmatch(named, last)


def test_keys_of_another_kind_are_told_although_no_row_is_lost():
    frame = pd.DataFrame({"k": [1, 2]})
    frame.dp.declare(keys={"k": ["1", "other"]}, privacy_unit=dpf.EACH_ROW)
    table = table_of(dpf.count("k"), frame.dp.declaration)
    (axis,) = table.cells.axes
    cells = replace(table.cells, axes=(KeyAxis("k", axis.keys, rest=True),))
    with mock.patch.object(diagnose, "table_of", lambda *_: replace(table, cells=cells)):
        found = frame.dp.diagnose(dpf.count("k"))
    hint = found.loc[("rows", "of these, k is missing, or not a declared key"), "hint"]
    assert hint == (
        "counted as 'other'; keys are texts, the column holds numbers: no row can match"
    )


def test_a_query_of_margins_moves_what_is_other_and_loses_what_is_in_no_bin(trips, tmp_path):
    pytest.importorskip("pyarrow")
    query = dpf.margins(["zone", "hour", dpf.cut("fare", [0, 5, 10])], other={"zone": "rest"})
    found = trips.dp.diagnose(query)
    usable = trips["rider"].notna() & trips["hour"].isin(KEYS["hour"])
    inside = trips["fare"].gt(0) & trips["fare"].le(10)
    said = found.loc["rows", "left"]
    assert said["no unit (rider)"] == trips["rider"].notna().sum()
    assert said["fare is in no bin"] == (usable & inside).sum()
    tables = trips.dp.diagnose(query, groups=True)
    assert len(tables) == 7 and tables["zone",].index.tolist() == ["A", "B", "rest"]
    rows = trips[usable & inside]
    others = rows["zone"].isna() | (rows["zone"] == "Z")
    assert tables["zone",].loc["rest", "rows"] == others.sum() > 0
    assert {table["counted"].sum() for table in tables.values()} == {said["counted"]}
    known = pd.DataFrame(trips[trips["zone"].isin(["A", "B"])].to_dict("series"))
    known.dp.declare(keys=KEYS, privacy_unit="rider", max_rows=3)
    hints = known.dp.diagnose(query)["hint"]
    assert hints["rows", "of these, zone is missing, or not a declared key"] == "counted as 'rest'"
    trips.to_parquet(tmp_path / "trips.parquet", index=False)
    files = dpf.scan_parquet(tmp_path)
    with pytest.raises(dpf.errors.DeclarationError, match="derived"):
        files.dp.diagnose(query)
    pd.DataFrame(trips.to_dict("series")).to_parquet(tmp_path / "trips.parquet", index=False)
    files = dpf.scan_parquet(tmp_path)
    files.dp.declare(keys=KEYS, privacy_unit="rider", max_rows=3)
    assert files.dp.diagnose(query)["left"].tolist() == found["left"].tolist()
