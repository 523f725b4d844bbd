"""Releases in Parquet files: written only if they read back, with the extra named if it misses."""

import warnings

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe import columns
from dpframe.errors import CertificateError, DPFrameError, QueryError


@pytest.fixture
def released():
    trips = pd.DataFrame({"zone": ["A", "B"]})
    return dpf.release(trips, dpf.count("zone", keys=["A", "B", "C"]), epsilon=1)


def test_what_was_changed_is_not_written(released, tmp_path):
    released["count"] += 1000
    with pytest.raises(CertificateError):
        released.dp.write_parquet(tmp_path / "one.parquet")
    assert not list(tmp_path.iterdir())


def test_keys_that_do_not_read_back_are_not_written(tmp_path):
    trips = pd.DataFrame({"zone": ["A", "B"]}, dtype=object)
    released = dpf.release(trips, dpf.count("zone", keys=[(1, 2), (3, 4)]), epsilon=1)
    with pytest.raises(CertificateError, match=r"key of \['zone'\], does not read back"):
        released.dp.write_parquet(tmp_path / "one.parquet")
    assert not list(tmp_path.iterdir())


MIXED = {
    "periods": dpf.period("day", "Y", "2023", "2025"),
    "whole": "k",
    "truths": "met",
    "times": "at",
}
LAYOUTS = {
    "long": lambda table, level: table,
    "wide": lambda table, level: table.unstack(level),
    "of one": lambda table, level: dpf.certify(table["n"].unstack(level), of=table),
    "melted": lambda table, level: dpf.certify(table.reset_index(), of=table),
    "sorted": lambda table, level: table.sort_values("n").head(5),
}


@pytest.mark.parametrize("kind", MIXED)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_keys_beside_the_name_of_totals_are_texts_in_the_file(tmp_path, kind, layout):
    days = pd.date_range("2023-01-01", periods=900)
    frame = pd.DataFrame({"zone": list("ABC") * 300, "day": days, "k": [1, 2, 3] * 300})
    frame["at"] = days[0]
    frame["met"] = frame["k"] > 1
    frame.dp.declare(
        keys={"zone": list("ABC"), "k": [1, 2, 3], "met": [False, True], "at": days[:2]},
        privacy_unit=dpf.EACH_ROW,
    )
    released = frame.dp.aggregate(["zone", MIXED[kind]], n=("zone", "size"), epsilon=1)
    level = released.index.names[1]
    table = released.dp.total(["zone", level], margins=True)
    made = LAYOUTS[layout](table, level)
    path = tmp_path / "one.parquet"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.dp.write_parquet(path)
    back = pd.read_parquet(path)
    assert dpf.verify(back, against=released).state == "post-processed"
    altered = back.copy()
    altered.iloc[0, -1] += 1 + abs(altered.iloc[0, -1])
    with pytest.raises(CertificateError, match="neither the released one nor a rounding"):
        dpf.verify(altered)


def test_texts_of_two_keys_are_neither(tmp_path):
    frame = pd.DataFrame({"k": [1, "1", "All"], "k2": "a"}, dtype=object)
    released = dpf.release(frame, dpf.count("k", keys=[1, "1", "All"]), epsilon=1)
    both = dpf.release(frame, dpf.count(["k", "k2"], keys={"k": [1, "1"], "k2": ["a"]}), epsilon=1)
    for table in (released, both):
        with pytest.raises(CertificateError, match="does not read back"):
            table.dp.write_parquet(tmp_path / "one.parquet")
    swapped = released.set_axis(pd.Index(["1", "2", "All"], name="k"))
    with pytest.raises(CertificateError, match="was not released"):
        dpf.verify(swapped)


def test_a_missing_package_is_named(released, tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "pa", None)
    with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[parquet\]'"):
        released.dp.write_parquet(tmp_path / "one.parquet")


@pytest.mark.parametrize("path", ["", None, 3])
def test_paths_are_paths(released, path):
    with raises(QueryError, parameter="path"):
        dpf.write_parquet(released, path)
