"""Keys that no row can match are refused before anything is spent, wherever the type is public."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from support.hostile import KINDS, objects
from support.raising import raises

import dpframe as dpf
from dpframe.columns.lookup import finder
from dpframe.columns.values import public_type
from dpframe.declaration.checks import check_keys
from dpframe.engines import engine_for
from dpframe.errors import QueryError
from dpframe.queries.tasks import KeyAxis

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
ds = pytest.importorskip("pyarrow.dataset")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")

DAY = datetime.date(2020, 2, 1)
NOON = pd.Timestamp("2020-02-01 12:00")
ZONED = NOON.tz_localize("UTC")
KEYS = {
    "numbers": range(3),
    "texts": ["A", "B"],
    "dates": [DAY],
    "times": [NOON],
    "times with an offset": [ZONED],
}
CELLS = {
    "numbers": [1, 2, None],
    "texts": ["A", "B", None],
    "dates": [DAY, None, None],
    "times": [NOON, pd.NaT, NOON],
    "times with an offset": [ZONED, pd.NaT, ZONED],
}
TYPED = [  # what the column holds, and its dtype
    ("texts", "string[python]"),
    ("texts", "string[pyarrow]"),
    ("texts", pd.StringDtype("python", na_value=np.nan)),
    ("texts", pd.ArrowDtype(pa.large_string())),
    ("texts", pd.CategoricalDtype(pd.array(["A", "B"], dtype="string"))),
    ("texts", pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    ("numbers", "Int64"),
    ("numbers", "UInt8"),
    ("numbers", "Float32"),
    ("numbers", "boolean"),
    ("numbers", pd.ArrowDtype(pa.bool_())),
    ("numbers", pd.ArrowDtype(pa.float64())),
    ("numbers", pd.CategoricalDtype(pd.array([1, 2], dtype="Int64"))),
    ("dates", pd.ArrowDtype(pa.date32())),
    ("times", "datetime64[us]"),
    ("times", pd.ArrowDtype(pa.timestamp("ns"))),
    ("times with an offset", "datetime64[us, UTC]"),
    ("times with an offset", pd.ArrowDtype(pa.timestamp("s", "Europe/Berlin"))),
]
UNTOLD = [  # one missing or odd cell may have decided on the dtype
    objects(["A", "B"]),
    objects([1, 2]),
    pd.Series([1, 2]),
    pd.Series([0.5, np.nan]),
    pd.Series([True, False]),
    pd.Series([1j, 2]),
    pd.Series([np.nan, np.nan]),
    pd.Series(pd.Categorical([1, 2])),
    pd.Series(pd.Categorical([None, None], categories=[])),
    pd.Series([None, None]),
    pd.Series(pd.arrays.SparseArray([0, 1])),
    pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.nulls(2)]))),
    pd.Series(pd.interval_range(0, 2)),
    pd.Series(pd.period_range("2020", periods=2, freq="M")),
    pd.Series(pd.to_timedelta([1, 2], unit="h")),
    pd.Series(pd.array([b"A", b"B"], dtype=pd.ArrowDtype(pa.binary()))),
]


def column(holds, dtype):
    cells = [True, False, None] if "bool" in str(dtype) else CELLS[holds]
    if isinstance(dtype, pd.ArrowDtype):
        cells = pa.array([None if cell is pd.NaT else cell for cell in cells], dtype.pyarrow_dtype)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([cells])))
    return (
        pd.Series(cells).astype(dtype)
        if holds.startswith("time")
        else pd.Series(cells, dtype=dtype)
    )


@pytest.fixture(params=["pandas", "parquet", "dask"])
def opened(request, tmp_path):
    """Opens a frame of pandas with each engine."""

    def open_with(frame):
        if request.param == "pandas":
            return frame
        if request.param == "dask":
            return dd.from_pandas(frame, npartitions=1)
        frame.to_parquet(tmp_path / "rows.parquet")
        return dpf.scan_parquet(tmp_path / "rows.parquet")

    return open_with


def declared(frame, **facts):
    frame.dp.declare(bounds={"fare": (0, 9)}, budget=dpf.Budget(9, 1e-6), **facts)
    return frame


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(("holds", "dtype"), TYPED, ids=str)
def test_keys_of_another_kind_are_refused_where_the_type_is_public(holds, dtype, keys):
    frame = declared(pd.DataFrame({"zone": column(holds, dtype), "fare": 1.0}))
    query = dpf.count("zone", keys=KEYS[keys])
    if keys == holds:
        assert len(frame.dp.release(query, epsilon=1)) == len(KEYS[keys])
        return
    for ask in (frame.dp.preview, frame.dp.release):
        with pytest.raises(
            QueryError, match=f"keys of 'zone' are {keys}, .* holds {holds} "
        ) as said:
            ask(query, epsilon=1)
        assert len(str(said.value).split()) < 50
    assert not frame.dp.ledger.entries


def asked(keys):
    """Every call that takes keys, with its arguments."""
    both = pd.DataFrame({"zone": list(keys), "day": [1] * len(keys)})
    given = {"zone": keys}
    return {
        "count": lambda dp: dp.count("zone", keys=keys, epsilon=1),
        "count of pairs": lambda dp: dp.count(["zone", "day"], keys=both, epsilon=1),
        "count by two": lambda dp: dp.count(["day", "zone"], keys={**given, "day": [1]}, epsilon=1),
        "units": lambda dp: dp.units("zone", keys=keys, epsilon=1),
        "sum": lambda dp: dp.sum("fare", "zone", keys=keys, epsilon=1),
        "mean": lambda dp: dp.mean("fare", "zone", keys=keys, epsilon=1),
        "var": lambda dp: dp.var("fare", "zone", keys=keys, epsilon=1),
        "histogram": lambda dp: dp.histogram("fare", [0, 1, 2], "zone", keys=keys, epsilon=1),
        "rate": lambda dp: dp.rate("fare > 1", "zone", keys=keys, epsilon=1),
        "ranges": lambda dp: dp.ranges("fare", 4, by="zone", keys=keys, epsilon=1),
        "quantile": lambda dp: dp.quantile("fare", 0.5, "zone", keys=keys, epsilon=1),
        "select": lambda dp: dp.quantile(
            "fare", 0.5, "zone", keys=keys, epsilon=1, mechanism="select"
        ),
        "preview of select": lambda dp: dp.preview(
            dpf.quantile("fare", 0.5, "zone", keys=keys), epsilon=1, mechanism="select"
        ),
        "aggregate": lambda dp: dp.aggregate("zone", keys=keys, n=dpf.count(), epsilon=1),
        "margins": lambda dp: dp.margins(["zone"], keys=given, n=dpf.count(), epsilon=1),
        "margins with others": lambda dp: dp.margins(
            ["zone"], keys=given, other={"zone": "others"}, n=dpf.count(), epsilon=1
        ),
        "release of a dict": lambda dp: dp.release(
            {"all": dpf.count(), "by": dpf.count("zone", keys=keys)}, epsilon=1
        ),
        "preview": lambda dp: dp.preview(dpf.count("zone", keys=keys), epsilon=1),
        "preview of errors": lambda dp: dp.preview(dpf.count("zone", keys=keys), std_error=5),
        "suggest_caps": lambda dp: dp.suggest_caps(
            query=dpf.count("zone", keys=keys), largest=4, epsilon=1
        ),
        "preview of caps": lambda dp: dp.preview(
            dpf.suggest_caps(query=dpf.count("zone", keys=keys), largest=4), epsilon=1
        ),
        "suggest_bounds": lambda dp: dp.suggest_bounds(
            "fare", "zone", keys=keys, smallest=1, largest=8, epsilon=1
        ),
    }


def a_frame(zones):
    rows = {"zone": zones, "day": [1, 1], "fare": [1.0, 2.0], "who": [1, 2]}
    return pd.DataFrame(rows)


@pytest.mark.parametrize("name", asked([0]))
def test_every_call_refuses_them_with_every_engine(name, opened):
    frame = opened(a_frame(pd.array(["A", "B"], dtype="string")))
    declared(frame, privacy_unit="who", max_rows=2)
    with raises(QueryError, "numbers", parameter="keys", label="zone"):
        asked(range(3))[name](frame.dp)
    assert not frame.dp.ledger.entries
    asked(["A", "B"])[name](frame.dp)


def test_declared_keys_are_refused_where_they_are_used(opened):
    frame = opened(a_frame(pd.array(["A", "B"], dtype="string")))
    declared(frame, keys={"zone": range(3)})
    frame.dp.sum("fare", epsilon=1)
    with raises(QueryError, "texts", parameter="keys", label="zone"):
        frame.dp.count("zone", epsilon=1)
    assert len(frame.dp.ledger.entries) == 1


@pytest.mark.skipif(pd.__version__ < "3", reason="texts are objects, which may hold anything")
def test_texts_of_pandas_itself_are_typed():
    frame = declared(pd.DataFrame({"zone": ["A", "B"], "fare": 1.0}))
    with raises(QueryError, "match", parameter="keys", label="zone"):
        frame.dp.count("zone", keys=range(3), epsilon=1)


def csv_dataset(table, folder):
    csv.write_csv(table, folder / "rows.csv")
    kinds = csv.ConvertOptions(column_types=table.schema)
    form = ds.CsvFileFormat(default_fragment_scan_options=ds.CsvFragmentScanOptions(kinds))
    return ds.dataset(folder / "rows.csv", table.schema, form)


SOURCES = {
    "table": lambda table, _: table,
    "function": lambda table, _: table.to_reader,
    "csv": csv_dataset,
    "polars": lambda table, _: pytest.importorskip("polars").from_arrow(table),
    "lazy": lambda table, _: pytest.importorskip("polars").from_arrow(table).lazy(),
    "duckdb": lambda table, _: pytest.importorskip("duckdb").from_arrow(table),
}
OTHER_KINDS = {"zone": [range(3), [DAY]], "day": [["1", "2"], [NOON]], "on": [["2020-02-01"], [1]]}


@pytest.mark.parametrize("form", SOURCES)
def test_every_source_of_a_scan_refuses_them(form, tmp_path):
    days = pa.array([DAY, None], pa.date32())
    table = pa.table({"zone": ["A", "B"], "day": [1, 2], "on": days, "fare": [1.0, 2.0]})
    scan = declared(dpf.scan(SOURCES[form](table, tmp_path)), privacy_unit=dpf.EACH_ROW)
    for label, others in OTHER_KINDS.items():
        for keys in others:
            for ask in (scan.dp.preview, scan.dp.release):
                with raises(QueryError, "no row can match", parameter="keys", label=label):
                    ask(dpf.count(label, keys=keys), epsilon=1)
    assert not scan.dp.ledger.entries
    for label, keys in {"zone": ["A"], "day": [1], "on": [DAY]}.items():
        scan.dp.count(label, keys=keys, epsilon=1)


@pytest.mark.parametrize("converted", [False, True])
@pytest.mark.parametrize("made", ["from_pandas", "from_map", "read_parquet"])
def test_texts_that_dask_makes_of_objects_are_typed(made, converted, tmp_path):
    rows = a_frame(objects(["A", "B"]))
    rows.to_parquet(tmp_path / "rows.parquet")
    with dask.config.set({"dataframe.convert-string": converted}):
        frame = {
            "from_pandas": lambda: dd.from_pandas(rows, npartitions=1),
            "from_map": lambda: dd.from_map(lambda _: rows, range(2), meta=rows.iloc[:0]),
            "read_parquet": lambda: dd.read_parquet(tmp_path / "rows.parquet"),
        }[made]()
        declared(frame, privacy_unit=dpf.EACH_ROW)
        if converted or not pd.api.types.is_object_dtype(frame.dtypes["zone"]):
            with raises(QueryError, "holds texts", parameter="keys", label="zone"):
                frame.dp.count("zone", keys=range(3), epsilon=1)
            assert not frame.dp.ledger.entries
        else:  # one cell may have decided on the dtype
            assert len(frame.dp.count("zone", keys=range(3), epsilon=1)) == len(range(3))
        assert len(frame.dp.count("zone", keys=["A", "B"], epsilon=1)) == len(rows)


def test_categories_that_dask_does_not_know_are_of_no_type():
    frame = dd.from_pandas(a_frame([1, 2]), npartitions=1)
    frame["zone"] = frame["zone"].astype("category")
    frame.dp.count("zone", keys=range(3), epsilon=1, privacy_unit=dpf.EACH_ROW)
    known = frame.categorize(["zone"])
    known.dp.count("zone", keys=range(3), epsilon=1, privacy_unit=dpf.EACH_ROW)


@pytest.mark.parametrize("cells", UNTOLD, ids=lambda cells: f"{cells.dtype}")
@pytest.mark.parametrize("keys", KEYS)
def test_nothing_is_refused_where_a_cell_may_decide_on_the_dtype(cells, keys):
    """Neighbors with one missing or odd cell more have another dtype, and the same outcome."""
    spend = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    for rows in (cells, cells.iloc[:0], objects([*cells, object()])):
        released = pd.DataFrame({"zone": rows}).dp.count("zone", keys=KEYS[keys], **spend)
        assert len(released) == len(KEYS[keys])


ANY_KEYS = list(dict.fromkeys(key for kind in KINDS for key in kind.keys))


@pytest.mark.sampled(every=10, full=6)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_no_cell_changes_a_public_type_or_matches_what_is_refused(kind):
    cells = kind.column(kind.pool)
    some = (kind.column(kind.pool[:n]) for n in range(len(kind.pool)))
    assert {public_type(column.dtype) for column in some} <= {public_type(cells.dtype)}
    frame = pd.DataFrame({"zone": cells})
    for key in ANY_KEYS:
        axis = KeyAxis("zone", check_keys("zone", [key]))
        refused = False
        try:
            frame.dp.preview(dpf.count("zone", keys=axis.keys), epsilon=1)
        except QueryError:
            refused = True
        with np.errstate(all="ignore"):
            matched = (finder(axis, cells)(cells) == 0).any()
        assert not (refused and matched), key


@pytest.mark.parametrize(
    "keys",
    [
        ["A", 0],
        [NOON, 0],
        [Decimal(1)],
        [b"A"],
        [("A", 1)],
        [1j],
        [pd.Timedelta("1h")],
        [pd.Interval(0, 1)],
    ],
    ids=repr,
)
def test_keys_of_which_some_may_match_are_not_refused(keys):
    frame = a_frame(pd.array(["A", "B"], dtype="string"))
    assert len(frame.dp.count("zone", keys=keys, epsilon=1, privacy_unit=dpf.EACH_ROW)) == len(keys)


def test_what_folders_say_is_read_value_by_value(tmp_path):
    for zone in ("1", "A"):
        (tmp_path / f"zone={zone}").mkdir()
        pd.DataFrame({"u": [1]}).to_parquet(tmp_path / f"zone={zone}" / "x.parquet")
    scan = dpf.scan_parquet(tmp_path)
    for keys in KEYS.values():
        scan.dp.count("zone", keys=keys, epsilon=1, privacy_unit=dpf.EACH_ROW)


@pytest.mark.parametrize("label", [0, ("a", 1), "zone"])
def test_columns_are_found_by_any_label(label):
    frame = pd.DataFrame({label: pd.array(["A"], dtype="string"), "x": [1]})
    frame.columns = pd.Index([label, "x"], tupleize_cols=False)
    assert engine_for(frame).type_of(frame, label) == "string"
    assert engine_for(frame).type_of(frame, "x") is None
    with raises(QueryError, "match", parameter="keys"):
        frame.dp.count([label], keys=[1], epsilon=1, privacy_unit=dpf.EACH_ROW)
