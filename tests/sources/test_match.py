"""What no value of a column can match is refused before anything is spent, at every door."""

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
from dpframe.declaration.kinds import check_keys
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
    "durations": [pd.Timedelta("1h")],
}
CELLS = {
    "numbers": [1, 2, None],
    "texts": ["A", "B", None],
    "dates": [DAY, None, None],
    "times": [NOON, pd.NaT, NOON],
    "times with an offset": [ZONED, pd.NaT, ZONED],
    "durations": [pd.Timedelta("1h"), pd.NaT, pd.Timedelta("1h")],
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
    ("durations", "timedelta64[us]"),
    ("durations", pd.ArrowDtype(pa.duration("us"))),
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
]


def column(holds, dtype):
    cells = [True, False, None] if "bool" in str(dtype) else CELLS[holds]
    if isinstance(dtype, pd.ArrowDtype):
        cells = pa.array([None if cell is pd.NaT else cell for cell in cells], dtype.pyarrow_dtype)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([cells])))
    return (
        pd.Series(cells).astype(dtype)
        if holds.startswith(("time", "duration"))
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
        if "bool" in str(dtype):
            with raises(QueryError, "numbers that it cannot hold", parameter="keys"):
                frame.dp.release(query, epsilon=1)
            query = dpf.count("zone", keys=[0, 1])
        assert len(frame.dp.release(query, epsilon=1)) == len(query.keys)
        return
    for ask in (frame.dp.plan, frame.dp.release):
        with pytest.raises(
            QueryError, match=f"'zone' holds {holds} .* its keys are {keys}: no row can match"
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
        "preview of select": lambda dp: (
            dp.plan(
                dpf.quantile("fare", 0.5, "zone", keys=keys), epsilon=1, mechanism="select"
            ).table
        ),
        "aggregate": lambda dp: dp.aggregate("zone", keys=keys, n=dpf.count(), epsilon=1),
        "margins": lambda dp: dp.margins(["zone"], keys=given, n=dpf.count(), epsilon=1),
        "margins with others": lambda dp: dp.margins(
            ["zone"], keys=given, other={"zone": "others"}, n=dpf.count(), epsilon=1
        ),
        "release of a dict": lambda dp: dp.release(
            {"all": dpf.count(), "by": dpf.count("zone", keys=keys)}, epsilon=1
        ),
        "preview": lambda dp: dp.plan(dpf.count("zone", keys=keys), epsilon=1).table,
        "preview of errors": lambda dp: dp.plan(dpf.count("zone", keys=keys), epsilon=9, within=5),
        "suggest_caps": lambda dp: dp.suggest_caps(
            query=dpf.count("zone", keys=keys), largest=4, epsilon=1
        ),
        "preview of caps": lambda dp: (
            dp.plan(
                dpf.suggest_caps(query=dpf.count("zone", keys=keys), largest=4), epsilon=1
            ).table
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
            for ask in (scan.dp.plan, scan.dp.release):
                with raises(QueryError, "no row can match", parameter="keys", label=label):
                    ask(dpf.count(label, keys=keys), epsilon=1)
    assert not scan.dp.ledger.entries
    for label, keys in {"zone": ["A"], "day": [1], "on": [DAY]}.items():
        scan.dp.count(label, keys=keys, epsilon=1)


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
            frame.dp.plan(dpf.count("zone", keys=axis.keys), epsilon=1)
        except QueryError:
            refused = True
        with np.errstate(all="ignore"):
            matched = (finder(axis, cells)(cells) == 0).any()
        assert not (refused and matched), key


ODD = [Decimal("1.5"), ("A", 1), 1j, pd.Interval(0, 1), datetime.time(1), frozenset("A")]


@pytest.mark.parametrize("key", [*ODD, pd.Period("2020-01")], ids=repr)
def test_keys_of_other_kinds_are_refused_where_the_type_is_public(key):
    frame = a_frame(pd.array(["A", "B"], dtype="string"))
    with raises(QueryError, "no row can match", parameter="keys", label="zone"):
        frame.dp.count("zone", keys=[key], epsilon=1, privacy_unit=dpf.EACH_ROW)
    frame = a_frame(objects(["A", "B"]))
    assert len(frame.dp.count("zone", keys=[key], epsilon=1, privacy_unit=dpf.EACH_ROW)) == 1


def test_what_folders_say_is_read_value_by_value(tmp_path):
    for zone in ("1", "A"):
        (tmp_path / f"zone={zone}").mkdir()
        pd.DataFrame({"u": [1]}).to_parquet(tmp_path / f"zone={zone}" / "x.parquet")
    scan = dpf.scan_parquet(tmp_path)
    spend = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    for keys in (range(3), ["A", "B"], [1, "A"]):
        scan.dp.count("zone", keys=keys, **spend)
    scan.dp.count(where="zone == 'A' or zone == 1", **spend)
    for keys in (["A", "01"], [DAY], [NOON], ["1"]):
        with raises(QueryError, "names of folders", parameter="keys"):
            scan.dp.count("zone", keys=keys, **spend)
    with raises(QueryError, "the text '01'", parameter="where"):
        scan.dp.count(where="zone == '01'", **spend)


# Every public argument, at every door ------------------------------------------------------------

START, END = pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")
FOUND = {"max_groups": 1, "epsilon": 1, "delta": 1e-6}
ROWS = pa.table(
    {
        "text": ["a", "b"] * 4,
        "amount": ["1,234.50", "85"] * 4,
        "answer": ["Yes", "No"] * 4,
        "x": pa.array([0.5, 9.5] * 4),
        "i": pa.array([1, 2] * 4),
        "truth": pa.array([True, False] * 4),
        "time": pa.array([START, END] * 4, pa.timestamp("us")),
        "day": pa.array([DAY, DAY] * 4, pa.date32()),
        "small": pa.array([1, 2] * 4, pa.int8()),
        "clock": pa.array([datetime.time(10), None] * 4, pa.time64("us")),
        "list": pa.array([[1], [2, 3]] * 4),
    }
)
BAD = {
    "mean of texts": (lambda dp: dp.mean("text", epsilon=1), "columns"),
    "sum of texts": (lambda dp: dp.sum("amount", epsilon=1), "columns"),
    "std of texts": (lambda dp: dp.std("text", epsilon=1), "columns"),
    "quantile of texts": (lambda dp: dp.quantile("amount", epsilon=1), "column"),
    "corr with texts": (lambda dp: dp.corr("x", "text", epsilon=1), "columns"),
    "weights": (lambda dp: dp.sum("x", weights="text", epsilon=1), "weights"),
    "histogram of texts": (lambda dp: dp.histogram("text", [0, 5, 10], epsilon=1), "bins"),
    "one dead key": (lambda dp: dp.count("text", keys=["a", 1, 2], epsilon=1), "keys"),
    "discover integers": (lambda dp: dp.discover("i", **FOUND), "dtype"),
    "discover floats": (lambda dp: dp.discover("x", **FOUND), "dtype"),
    "discover times": (lambda dp: dp.discover("time", **FOUND), "dtype"),
    "discover truths": (lambda dp: dp.discover("truth", **FOUND), "dtype"),
    "part of a time": (lambda dp: dp.count(where="time >= '2020-06'", epsilon=1), "where"),
    "rate of answers": (lambda dp: dp.rate("answer", epsilon=1), "condition"),
    "number and text": (lambda dp: dp.count(where="i == 'a'", epsilon=1), "where"),
    "text and number": (lambda dp: dp.count(where="text > 3", epsilon=1), "where"),
    "beyond int8": (lambda dp: dp.count("small", keys=[1, 300], epsilon=1), "keys"),
    "one dead item": (lambda dp: dp.count(where="x in [1, 'a']", epsilon=1), "where"),
    "bounds of times": (lambda dp: dp.mean("time", bounds=(0, 10), epsilon=1), "bounds"),
    "bounds of numbers": (lambda dp: dp.mean("x", bounds=(START, END), epsilon=1), "bounds"),
    "arithmetic with times": (lambda dp: dp.count(where="time + 1 > 3", epsilon=1), "where"),
    "two columns": (lambda dp: dp.count(where="text == x", epsilon=1), "where"),
    "half an integer": (lambda dp: dp.count("i", keys=[1, 1.5], epsilon=1), "keys"),
    "beyond int64": (lambda dp: dp.count("i", keys=[10**30], epsilon=1), "keys"),
    "equal to half": (lambda dp: dp.count(where="i == 1.5", epsilon=1), "where"),
    "equal to too much": (lambda dp: dp.count(where="small == 300", epsilon=1), "where"),
    "among too much": (lambda dp: dp.rate("small in [1, 300]", epsilon=1), "condition"),
    "unlike a number": (lambda dp: dp.count(where="x > 0 or text != 1", epsilon=1), "where"),
    "keys of a time of day": (lambda dp: dp.count("clock", keys=["10:00"], epsilon=1), "keys"),
    "a time of day": (lambda dp: dp.count(where="clock == '10:00'", epsilon=1), "where"),
    "sum of lists": (lambda dp: dp.sum("list", epsilon=1), "columns"),
    "weighted by lists": (lambda dp: dp.sum("x", weights="list", epsilon=1), "weights"),
}
GOOD = {
    "mean": lambda dp: dp.mean("x", epsilon=1),
    "count by": lambda dp: dp.count("text", epsilon=1),
    "time and text": lambda dp: dp.count(where="time >= '2020-06-01'", epsilon=1),
    "day and text": lambda dp: dp.count(where="day >= '2020-06-01'", epsilon=1),
    "rate of truths": lambda dp: dp.rate("truth", epsilon=1),
    "rate of texts": lambda dp: dp.rate("answer == 'Yes'", epsilon=1),
    "mean of times": lambda dp: dp.mean("time", bounds=(START, END), epsilon=1),
    "discover texts": lambda dp: dp.discover("text", **FOUND),
    "discover integers": lambda dp: dp.discover("i", dtype="int64", **FOUND),
    "truths": lambda dp: dp.count("truth", keys=[False, True], epsilon=1),
    "0 and 1 of truths": lambda dp: dp.count("truth", keys=[0, 1], epsilon=1),
    "integers": lambda dp: dp.count("i", keys=range(9), epsilon=1),
    "an order with halves": lambda dp: dp.count(where="i > 1.5 and small < 300", epsilon=1),
    "decimals of integers": lambda dp: dp.count("i", keys=[Decimal(1)], epsilon=1),
    "times of day": lambda dp: dp.count("clock", keys=[datetime.time(10)], epsilon=1),
    "floats of integers": lambda dp: dp.count("i", keys=[0.0, 1.0], epsilon=1),
    "histogram": lambda dp: dp.histogram("x", [0, 5, 10], epsilon=1),
    "quantile": lambda dp: dp.quantile("x", epsilon=1),
    "select": lambda dp: dp.quantile("x", mechanism="select", epsilon=1),
    "cov": lambda dp: dp.cov("x", "i", epsilon=1),
    "where truth": lambda dp: dp.count(where="truth", epsilon=1),
    "arithmetic": lambda dp: dp.count(where="x * 2 > i", epsilon=1),
    "other": lambda dp: dp.margins(["i"], keys={"i": [1]}, other="else", n=dpf.count(), epsilon=1),
}


def typed_frame(_):
    return ROWS.to_pandas(types_mapper=pd.ArrowDtype)


def parquet_files(folder):
    pytest.importorskip("pyarrow.parquet").write_table(ROWS, folder / "rows.parquet")
    return dpf.scan_parquet(folder / "rows.parquet")


DOORS = {
    "frame": typed_frame,
    "dask": lambda folder: dd.from_pandas(typed_frame(folder), npartitions=2),
    "table": lambda _: dpf.scan(ROWS),
    "files": parquet_files,
    "polars": lambda _: dpf.scan(pytest.importorskip("polars").from_arrow(ROWS).lazy()),
    "duckdb": lambda _: dpf.scan(pytest.importorskip("duckdb").from_arrow(ROWS)),
}


@pytest.fixture(params=DOORS)
def typed(request, tmp_path):
    frame = DOORS[request.param](tmp_path)
    bounds = {label: (0, 10) for label in ("text", "amount", "answer", "x", "i", "small", "list")}
    budget = dpf.Budget(epsilon=100, delta=1e-3, discovery=1e-4)
    keys = {"text": ["a", "b"]}
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, keys=keys, bounds=bounds, budget=budget)
    return frame


def test_every_argument_is_looked_at_before_the_charge(typed):
    for name, (call, parameter) in BAD.items():
        of_rows = parameter in ("where", "condition")
        words = "the same for every value" if of_rows else "no row can match"
        with raises(QueryError, words, parameter=parameter) as said:
            call(typed.dp)
        assert len(str(said.value).split()) <= 50, name
    assert not typed.dp.ledger.entries


def test_what_can_match_is_released(typed):
    for call in GOOD.values():
        call(typed.dp)
    assert len(typed.dp.ledger.entries) == len(GOOD)


def test_previews_and_diagnoses_refuse_the_same(typed):
    query = dpf.mean("text", where="i > 0")
    for ask in (
        lambda: typed.dp.plan(query, epsilon=1).table,
        lambda: typed.dp.plan(query, epsilon=9, within=1, rows=10),
        lambda: typed.dp.diagnose(query),
    ):
        with raises(QueryError, "its mean is asked for", parameter="columns", label="text"):
            ask()


def test_what_is_declared_speaks_where_no_type_is_public():
    frame = pd.DataFrame({"i": [1, 2], "zone": objects(["A", 7]), "free": objects(["A", 7])})
    facts = {"bounds": {"i": (0, 10)}, "keys": {"zone": ["A", "B"]}}
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(epsilon=10), **facts)
    for where in ("i == 'a'", "zone == 7", "zone", "zone < i"):
        with raises(QueryError, "the same for every value", parameter="where"):
            frame.dp.count(where=where, epsilon=1)
    assert not frame.dp.ledger.entries
    for where in ("i == 1", "zone == 'C'", "free == 7 or free == 'A'", "free", "free == i"):
        frame.dp.count(where=where, epsilon=1)
