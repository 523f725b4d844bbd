"""Schemas of released tables: they take what was released, and nothing of another shape."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import dpframe as dpf
from dpframe.errors import CertificateError

ZONES = ["A", "B", "C"]
DAYS = pd.date_range("2020-01-31", periods=3)


def trips():
    rows = np.arange(30)
    return pd.DataFrame(
        {
            "zone": pd.Series(np.array(ZONES)[rows % 3], dtype=object),
            "fare": rows * 0.5,
            "paid": rows % 4 == 0,
        }
    )


def outputs():
    query = dpf.aggregate(
        "zone",
        keys=ZONES,
        n=dpf.count(),
        total=dpf.sum("fare", bounds=(0, 9)),
        fare=dpf.mean("fare", bounds=(2, 9)),
    )
    return dpf.release(trips(), query, epsilon=5)


def by_key(keys, label="zone"):
    private = pd.DataFrame({label: [0]})
    return dpf.release(private, dpf.count(label, keys={label: keys}), epsilon=1)


def pairs():
    keys = pd.DataFrame({"zone": ["A", "B"], "paid": [True, False]})
    return dpf.release(trips(), dpf.count(["zone", "paid"], keys=keys), epsilon=1)


def assert_taken(schema, frame):
    assert schema.validate(frame) is not None
    assert schema.validate(frame, lazy=True).equals(frame)


def assert_rejected(schema, frame, because=None):
    with pytest.raises((pa.errors.SchemaError, pa.errors.SchemaErrors), match=because):
        schema.validate(frame)


@pytest.mark.parametrize(
    "make",
    [outputs, pairs, lambda: dpf.denoise(outputs(), "nonnegative")],
    ids=["outputs", "pairs", "alone"],
)
def test_schemas_take_another_release_of_the_query(make):
    schema = dpf.schema(make())
    assert_taken(schema, make())
    assert_taken(schema, make().iloc[::-1])
    assert schema.strict is True
    assert schema.ordered is True
    assert schema.coerce is False


SPOILED = {
    "a row dropped": (lambda f: f.iloc[:2], "unique_values_eq"),
    "no rows": (lambda f: f.iloc[:0], "unique_values_eq"),
    "a row repeated": (lambda f: f.iloc[[0, 1, 2, 2]], "duplicate"),
    "a row in the place of another": (lambda f: f.iloc[[0, 1, 1]], "duplicate"),
    "an unknown key": (lambda f: f.rename({"A": "Z"}), "isin"),
    "the index renamed": (lambda f: f.rename_axis("city"), "zone"),
    "the index reset": (lambda f: f.reset_index(), None),
    "a column added": (lambda f: f.assign(raw=1), "raw"),
    "a column dropped": (lambda f: f[["n", "fare"]], "total"),
    "columns reordered": (lambda f: f[["total", "n", "fare"]], "out-of-order"),
    "a column renamed": (lambda f: f.rename(columns={"n": "rows"}), "rows"),
    "a column twice": (lambda f: f[["n", "n", "total", "fare"]], None),
    "another dtype": (lambda f: f.astype({"n": float}), "int64"),
    "a smaller dtype": (lambda f: f.astype({"total": "float32"}), "float64"),
    "a missing value": (lambda f: f.assign(total=[1.0, np.nan, 2.0]), "non-nullable"),
    "a mean above its bounds": (lambda f: f.assign(fare=[2.5, 3.0, 9.5]), "in_range"),
    "a mean below its bounds": (lambda f: f.assign(fare=[1.5, 3.0, 9.0]), "in_range"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_other_tables_are_rejected(name):
    change, because = SPOILED[name]
    assert_rejected(dpf.schema(outputs()), change(outputs()), because)


def rows_of_pairs(frame):
    return {
        "a row dropped": frame.iloc[:1],
        "a row repeated": frame.iloc[[0, 1, 1]],
        "a row in the place of another": frame.iloc[[0, 0]],
    }


@pytest.mark.parametrize("name", rows_of_pairs(pd.DataFrame(index=[0, 1])))
def test_rows_of_several_levels_are_counted(name):
    released = pairs()
    assert_rejected(dpf.schema(released), rows_of_pairs(released)[name], "not the 2 released rows")


@pytest.mark.parametrize("make", [outputs, lambda: by_key([3, 1, 2]), lambda: by_key([2.5, 0.5])])
def test_schemas_of_one_key_are_kept_whole_in_files(make):
    pytest.importorskip("pandera.io", exc_type=ImportError)
    released = make()
    read = pa.DataFrameSchema.from_yaml(dpf.schema(released).to_yaml())  # warnings are errors
    assert_taken(read, released)
    assert_taken(read, released.iloc[::-1])
    for change, _ in SPOILED.values() if make is outputs else ():
        assert_rejected(read, change(released))
    assert_rejected(read, released.iloc[1:])
    assert_rejected(read, released.iloc[[0, 1, 1]])
    assert_rejected(read, released.rename_axis("other"))


def test_values_within_the_shape_are_taken():
    assert_taken(dpf.schema(outputs()), outputs().assign(n=[1, 2, -3], fare=[2.0, 9.0, 4.0]))


@pytest.mark.parametrize(
    ("keys", "dtype"),
    [
        ([3, 1], "float64"),
        ([0.5, 1.0], "float32"),
        ([True, False], "int64"),
        (pd.Categorical([1.0, 2.0]), "int64"),
        (pd.Categorical(["a", "b"]), pd.CategoricalDtype(["a", "b", "c"])),
        (pd.Categorical(["a", "b"], ordered=True), pd.CategoricalDtype(["a", "b"])),
        (DAYS.tz_localize("UTC"), "datetime64[ns, Asia/Tokyo]"),
    ],
)
def test_keys_of_other_dtypes_are_rejected(keys, dtype):
    released = by_key(keys)
    changed = released.set_axis(released.index.astype(dtype))
    assert_rejected(dpf.schema(released), changed)
    assert_taken(dpf.schema(released), released)


def test_pairs_that_were_not_released_are_rejected():
    released = pairs()
    other = pd.MultiIndex.from_tuples([("A", False), ("B", True)], names=["zone", "paid"])
    assert_rejected(dpf.schema(released), released.set_axis(other), "not released together")
    assert_rejected(dpf.schema(released), released.swaplevel())


def test_changed_frames_have_no_schema():
    for frame in (outputs() + 1, trips()):
        with pytest.raises(CertificateError):
            dpf.schema(frame)


@pytest.mark.full
def test_pandera_is_imported_when_asked_for():
    code = "import sys, dpframe.files.pandera; sys.exit('pandera' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_levels_of_other_dtypes_are_rejected():
    for label in ("day", 1):
        private = pd.DataFrame({label: [1], "paid": [True]})
        query = dpf.count([label, "paid"], keys={label: [1, 2], "paid": [True]})
        released = dpf.release(private, query, epsilon=1)
        other = released.index.set_levels(released.index.levels[0].astype(float), level=0)
        assert_taken(dpf.schema(released), released)
        assert_rejected(dpf.schema(released), released.set_axis(other))
