"""Tables with keys as columns: their cells keep intervals, and take further steps."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.publishing import STEPS, made, released
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError

LONG = {"suppress", "interval"}  # done otherwise, or not at all
WIDE = {name: step for name, step in STEPS.items() if name not in LONG} | {
    "suppress": lambda frame: frame.dp.suppress(relative_error=0.004),
    "columns": lambda frame: frame.dp.select(columns=list(frame.columns)[::-1][:2]),
}


def with_holes():
    frame = released("two keys")
    some = frame.dp.select("not (zone == 'B' and day == 2)")
    return some, some.dp.unstack("day")


def cells(wide, part, suffix=""):
    """Return what is said about the cells of a wide table, by row and column."""
    return {
        (row, column): part.loc[row, f"{column}{suffix}" if suffix else column]
        for row in wide.index
        for column in wide.columns
        if not pd.isna(wide.loc[row, column])
    }


@pytest.mark.parametrize("level", ["zone", "day", 0, -1])
def test_cells_keep_values_errors_and_intervals(level):
    frame = released("two keys")
    wide = frame.dp.unstack(level)
    pd.testing.assert_frame_equal(
        wide, frame["count"].unstack(level), check_column_type=False, check_index_type=False
    )
    assert dpf.verify(wide).state == "post-processed" and dpf.replay(wide, frame).equals(wide)
    order = ["zone", "day"] if wide.index.name == "zone" else ["day", "zone"]
    values = frame.dp.interval(0.9, simultaneous=True).reorder_levels(order)
    bars = wide.dp.interval(0.9, simultaneous=True)
    for suffix in ("_low", "_high"):
        assert cells(wide, bars, suffix) == values[f"count{suffix}"].to_dict()
    errors = frame.dp.std_error.reorder_levels(order)["count"]
    assert cells(wide, wide.dp.std_error) == errors.to_dict()


def test_of_several_columns_one_is_shown():
    query = dpf.aggregate(
        ["zone", "day"],
        keys={"zone": ["A", "B"], "day": [0, 1]},
        n=dpf.count(),
        fare=dpf.mean("fare", bounds=(0, 25)),
    )
    frame = made(query)()
    wide = frame.dp.unstack(column="fare")
    assert wide.equals(frame["fare"].unstack().rename_axis(columns="day"))
    assert cells(wide, wide.dp.interval(), "_low") == frame.dp.interval()["fare_low"].to_dict()
    with pytest.raises(QueryError, match="column must be one of the columns released"):
        frame.dp.unstack()


def test_cells_that_are_not_there_are_missing_with_their_intervals():
    some, wide = with_holes()
    assert wide.isna().sum().sum() == 1 and pd.isna(wide.loc["B", 2])
    assert wide.dp.interval().loc["B", ["2_low", "2_high"]].isna().all()
    assert cells(wide, wide.dp.interval(), "_low") == some.dp.interval()["count_low"].to_dict()


@pytest.mark.parametrize("steps", list(product(WIDE, WIDE)), ids="-".join)
@pytest.mark.sampled(every=4, full=3)
def test_wide_tables_take_steps(steps):
    some, wide = with_holes()
    between = WIDE[steps[0]](wide)
    made = WIDE[steps[1]](between)
    assert dpf.verify(made).state == "post-processed"
    assert dpf.replay(made, some).equals(made)
    bars = made.dp.interval()
    ends = bars.to_numpy(float, na_value=np.nan)
    here = made.notna().to_numpy().repeat(2, axis=1)
    assert (np.isnan(ends) == ~here).all()
    widest = some.dp.interval().to_numpy(float)
    assert (ends[here] >= widest.min() - 30).all() and (ends[here] <= widest.max() + 30).all()
    dpf.schema(made).validate(made)


def test_steps_of_wide_tables_are_those_of_their_cells():
    some, wide = with_holes()
    before, after = some.dp.round(-1).dp.unstack(), wide.dp.round(-1)
    assert before.equals(after) and before.dp.interval().equals(after.dp.interval())
    limit = float((some.dp.std_error / some).median().iloc[0])
    before = some.dp.suppress(relative_error=limit).dp.unstack()
    after = wide.dp.suppress(relative_error=limit)
    assert before.equals(after) and before.dp.interval().equals(after.dp.interval())
    assert wide.dp.head(2).dp.interval().equals(wide.dp.interval().head(2))
    few = wide.dp.select(columns=[2, 0]).dp.interval()
    assert few.equals(wide.dp.interval()[["2_low", "2_high", "0_low", "0_high"]])


def test_bins_become_texts_and_draw_as_they_did(tmp_path):
    frame = released("histogram by key")
    wide = frame.dp.unstack()
    assert list(wide.columns) == ["(-0.001, 5.0]", "(5.0, 25.0]"]
    axes = wide.dp.plot(ax=Figure().add_subplot())
    assert sorted(bar.get_height() for bar in axes.patches) == sorted(frame["count"])
    wide.dp.write_csv(tmp_path / "wide.csv")
    back = dpf.read_csv(tmp_path / "wide.csv")
    assert back.equals(wide) and back.columns.name == "fare"
    wide.to_parquet(tmp_path / "wide.parquet")
    assert pd.read_parquet(tmp_path / "wide.parquet").dp.interval().equals(wide.dp.interval())


def test_missing_cells_are_empty_in_csv_files(tmp_path):
    _, wide = with_holes()
    wide.dp.write_csv(tmp_path / "wide.csv")
    assert ",\n" in (tmp_path / "wide.csv").read_text()
    back = dpf.read_csv(tmp_path / "wide.csv")
    pd.testing.assert_frame_equal(back, wide, check_column_type=False)
    (tmp_path / "wide.csv").write_text((tmp_path / "wide.csv").read_text().replace(",\n", ",1\n"))
    with pytest.raises(CertificateError, match="is not what was written"):
        dpf.read_csv(tmp_path / "wide.csv")


def test_a_change_of_a_wide_table_is_found():
    wide = released("two keys").dp.unstack()
    changed = wide.copy()
    changed.iloc[0, 0] += 1
    with pytest.raises(CertificateError, match="the values of column '0' were changed"):
        dpf.verify(changed)


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        ("one key", lambda f: f.dp.unstack(), "needs two levels"),
        ("two keys", lambda f: f.dp.unstack("hour"), "level must be among"),
        ("two keys", lambda f: f.dp.unstack(2), "level must be among"),
        ("two keys", lambda f: f.dp.unstack(True), "level must be among"),
        ("two keys", lambda f: f.dp.unstack(column="n"), "column must be one of"),
        ("two keys", lambda f: f.dp.unstack().dp.unstack(), "before unstack"),
        ("two keys", lambda f: f.dp.unstack().dp.percent(), "before unstack"),
        ("two keys", lambda f: f.dp.unstack().dp.combine({"A": 1}), "before unstack"),
        ("two keys", lambda f: f.dp.unstack().dp.covariance, "before unstack"),
        ("two keys", lambda f: f.dp.unstack().dp.denoise(), "before unstack"),
        ("two keys", lambda f: f.dp.unstack().dp.plot_map({}), "before unstack"),
    ],
)
def test_what_has_no_meaning_is_refused(kind, call, message):
    frame = released(kind)
    with pytest.raises(QueryError, match=message):
        call(frame)


def test_keys_that_read_alike_are_no_labels():
    keys = {"zone": ["A"], "day": pd.Index([1, "1"], dtype=object)}
    frame = made(dpf.count(["zone", "day"], keys=keys))()
    with raises(QueryError, "read alike", parameter="level", label="day"):
        frame.dp.unstack("day")
    assert frame.dp.unstack("zone").shape == (2, 1)
