"""Every engine totals the same integers: every query, every option, columns of every dtype.

The reference is one thread over one pandas frame in memory. Where caps must choose, each unit draws
the same random words in every engine, so that the choices are the same, too. The gate takes a few
options for each dtype, other ones for the next; all of them are tested with `-m audit`.
"""

import itertools
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.hostile import KINDS, MIDNIGHT, NEW_YORK, NOON, ZONED
from support.plans import parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Declaration
from dpframe.engines import engine_for, scans, units
from dpframe.engines import pandas as engine
from dpframe.engines.batches import plain_array, plain_type
from dpframe.engines.pandas import totals_of
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.edges import check_bins
from dpframe.queries.searches import candidate_caps, sizes_of
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis
from dpframe.queries.where import Condition

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
feather = pytest.importorskip("pyarrow.feather")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

COLUMNS = ["k", "h", "x", "y", "b", "c", "d", "u"]
ROWS = 23
BY_NAME = {kind.name: kind for kind in KINDS}
HOUR = pd.Timedelta("1h")
NUMBERS = {"x": (-2, 3), "y": (0.1, 2.3), "b": (0, 1), "c": (0, 1), "d": (0, 1), "k": (0, 2)}
BOUNDS = {
    "numbers": NUMBERS,
    "naive": {**NUMBERS, "x": (MIDNIGHT, NOON + HOUR), "y": (pd.Timestamp(0), NOON)},
    "zoned": {**NUMBERS, "x": (ZONED - HOUR, ZONED), "y": (ZONED, ZONED.tz_convert(NEW_YORK))},
    "durations": {**NUMBERS, "x": (0 * HOUR, HOUR / 2), "y": (-HOUR, 9 * HOUR)},
}
EDGES = {
    "numbers": [-np.inf, 0.5, 1, 2.5],
    "naive": [MIDNIGHT, NOON, NOON + HOUR],
    "zoned": [ZONED - HOUR, ZONED, ZONED + HOUR],
    "durations": [-HOUR, 0 * HOUR, HOUR],
}
WHERES = [None, "x > 0 or k in [1, 'A'] or b or k >= '2020-02-01'"]
CAPS = [NO_CAPS, Caps(2), Caps(4, 1), Caps(None, 2, 1), Caps(99, 99, 99)]
OTHERS = [  # relation, replacements
    ("add_remove", {}),
    ("replace", {"x": 1, "b": 0}),
    ("add_remove", {"x": "drop", "b": "drop"}),
]


def frame_of(kind):
    """A frame of one kind of columns, in which every value meets others."""
    places = np.random.default_rng(5).integers(0, 256, (ROWS, len(COLUMNS)))
    places[:, -2:] %= [2, 5]  # few units, of several rows each
    return pd.DataFrame(
        {
            name: kind.column(kind.chosen(row[at] for row in places.tolist()))
            for at, name in enumerate(COLUMNS)
        }
    )


def queries(scale, where):
    """Every kind of query, to be answered in one release."""
    pairs = pd.DataFrame({"k": [1, "A", 2, 1], "h": [1, 1, "A", 2]}, dtype=object)
    found = {
        "all": dpf.count(where=where),
        "by": dpf.count("k", where=where),
        "by two": dpf.count(["k", "h"], where=where),
        "pairs": dpf.count(["k", "h"], where=where, keys=pairs),
        "sum": dpf.sum("x", where=where),
        "sums by": dpf.sum(["x", "y"], ["h"], where=where),
        "mean": dpf.mean(["x", "b"], "k", where=where),
        "bins": dpf.histogram("x", EDGES[scale], "k", where=where),
        "units": dpf.units("k", where=where),
        "units of all": dpf.units(where=where),
        "rate": dpf.rate("not (x > 0.5 and d == d)", "k", where=where),
        "several": dpf.aggregate(
            "k",
            where=where,
            r=dpf.rate("y > 0.5", where="b == b"),
            n=dpf.count(where="y == y"),
            s=dpf.sum("x", where="y > 0.5"),
            m=dpf.mean("y"),
            t=dpf.sum("b"),
        ),
    }
    for text, number in (("1", 1.0), ("A", None)):
        query, part = dpf.sum("x", "k", where=where), Condition.of_part("h", text, number)
        found[f"part {text}"] = replace(query, where=Condition.all_of(part, query.where))
    if scale == "numbers":
        found["variance"] = dpf.var(["x", "y"], "k", where=where)
        found["deviation"] = dpf.aggregate(s=dpf.std("x", where="y > 0.5"), n=dpf.count())
        found["pair"] = dpf.aggregate(
            "k", n=dpf.count(), c=dpf.cov("x", "y"), r=dpf.corr("y", "b", where="x > 0")
        )
        found["sampled pair"] = dpf.slope("x", "y", "k", where=where, sampling=True)
        found["regression"] = dpf.regression("x", ["y", "b"], "k", where=where)
        found["wide"] = dpf.sum(list("xybcd"), where=where)
        found["few"] = dpf.sum(list("bcd"), "k", where=where, max_true=1)
        found["weighted"] = dpf.aggregate(
            "k",
            where=where,
            n=dpf.count(weights="y"),
            m=dpf.mean("x", weights="y"),
            s=dpf.sum("x", weights="y", where="b == b"),
            r=dpf.rate("x > 0.5", weights="y"),
        )
    return found


def sizes(scale, where):
    """How much units fill of groups, to be answered in the same releases."""
    bins = dpf.histogram("x", EDGES[scale], "k", where=where)
    asked = {"rows": dpf.count("k", where=where), "groups": bins, "rows_per_group": bins}
    return {kind: sizes_of(query, kind, candidate_caps(kind, 6)) for kind, query in asked.items()}


def facts_of(kind, scale, caps, others):
    """What is declared of a frame."""
    relation, missing = others
    keys = list(dict.fromkeys([*kind.keys, 1, "A", NOON, ZONED, 2.5]))
    unit = ("u",) if relation == "add_remove" else ("u", "d")
    facts = Declaration(
        privacy_unit=None if caps is NO_CAPS else unit, caps=caps, neighboring=relation
    ).with_facts(bounds=BOUNDS[scale], keys={"k": keys, "h": [1, "A", 2]}, missing=missing)
    columns = {**facts.columns}
    for name in "bcd":
        columns[name] = replace(columns[name], integer=True)
    return replace(facts, columns=columns)


@cache  # the same for all engines: plans take longer than totals of few rows
def tasks_of(name, scale, where, caps, place):
    """What releases of all queries ask of an engine, by name; one of `OTHERS` is at a place."""
    asked = queries(scale, where) | ({} if caps is NO_CAPS else sizes(scale, where))
    facts = facts_of(BY_NAME[name], scale, caps, OTHERS[place])
    spend = Spend.of(epsilon=1, delta=1e-6)
    plans = [plan_release(facts, {None: query}, spend) for query in asked.values()]
    measured = [part for plan in plans for part in parts_of(plan)]
    tasks = [part.table.task(sorted(part.design.needs)) for part in measured]
    return with_spread(dict(zip(asked, tasks, strict=True)), scale)


def spread(task, scale):
    """The same of margins, of ranges, and of axes that hold what others leave out."""
    (keys,) = task.cells.axes
    rest = KeyAxis("h", pd.Index([1, "A", 2], dtype=object), rest=True)
    bins = BinAxis("x", check_bins("x", EDGES[scale]))
    clipped = replace(bins, clipped=True)
    return {
        "margins": Cells((keys, rest, bins), margins=((0, 1), (0, 2), (1, 2))),
        "more margins": Cells((clipped, rest), margins=((0,), (1,))),
        "ranges": Cells((keys, clipped)),
        "one range": Cells((clipped,)),
        "margin": Cells(margins=((),)),
        "rest": Cells((rest, bins)),
        "hidden": Cells((replace(keys, hidden=True), replace(bins, hidden=True))),
        "hidden margins": Cells(
            tuple(replace(axis, hidden=True) for axis in (keys, bins, keys)),
            margins=((0,), (1,), (2,)),
        ),
    }


def with_spread(tasks, scale):
    """Add tasks that no query asks for by itself."""
    base = tasks["several"]
    inner = {"ranges": len(EDGES[scale]) - 1, "one range": len(EDGES[scale]) - 1}
    more = {
        name: replace(base, cells=cells, inner=inner.get(name, 1))
        for name, cells in spread(base, scale).items()
    }
    return tasks | more


def some_options(kind, everything):
    """Combine bounds, conditions, caps, relations and replacements: all of them, or a few."""
    cases = [*itertools.product(["numbers"], WHERES, CAPS, OTHERS)]
    cases += itertools.product(list(BOUNDS)[1:], WHERES[:1], CAPS[::2], OTHERS[::2])
    start = list(BY_NAME).index(kind.name)
    return cases if everything else [cases[(start + 17 * n) % len(cases)] for n in range(2)]


def same_choices(few):
    """Let each unit draw the same words whoever else is there, in blocks of few rows."""
    stack = ExitStack()
    word = (0x9E3779B97F4A7C15).to_bytes(8, "little")
    stack.enter_context(mock.patch("dpframe.context._system_bytes", lambda n: (word * n)[:n]))
    stack.enter_context(mock.patch.object(engine, "_BLOCK", few))
    stack.enter_context(mock.patch.object(units, "_GROUP", few))
    stack.enter_context(mock.patch.object(scans, "_BUCKET_ROWS", few))
    return stack


def compare(frame, other, everything, threads=None):
    """Compare the totals of two forms of the same frame."""
    kind = BY_NAME[frame.attrs["kind"]]
    for scale, where, caps, others in some_options(kind, everything):
        named = tasks_of(kind.name, scale, where, caps, OTHERS.index(others))
        tasks = [*named.values()]
        with same_choices(1 << 16):
            expected = totals_of([frame], tasks, SYSTEM, 1)
        with same_choices(3):
            if threads is None:
                found = engine_for(other).totals(other, tasks, SYSTEM)
            else:
                found = totals_of([other], tasks, SYSTEM, threads)
        check_margins(frame, named["margins"])
        for name, one, two in zip(named, expected, found, strict=True):
            note = f"{name}: {scale}, {where}, {caps}, {others}"
            np.testing.assert_array_equal(two, one, err_msg=note)


def check_margins(frame, task):
    """Compare margins with sums over the cells of all axes."""
    axes = task.cells.axes
    with same_choices(1 << 16):
        margins, whole = (
            totals_of([frame], [replace(task, cells=cells, unit=())], SYSTEM, 1)[0]
            for cells in (task.cells, Cells(axes))
        )
    sizes = tuple(map(len, axes))
    cells = whole.reshape(len(task.terms), *sizes)
    summed = [cells.sum(axis=3 - at).reshape(len(task.terms), -1) for at in range(3)]
    np.testing.assert_array_equal(margins, np.concatenate(summed, axis=1))


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.audit)], ids=["few", "all"])
def everything(request):
    return request.param


@pytest.fixture(params=list(BY_NAME))
def frame(request):
    found = frame_of(BY_NAME[request.param])
    found.attrs["kind"] = request.param
    return found


@pytest.mark.sampled(every=22, full=18)
def test_threads_and_small_blocks(frame, everything):
    compare(frame, frame, everything, threads=3)


NOT_IN_DASK = ("category: hostile", "string_view")  # it cannot name such metadata
PARTS = {}  # by place, where Dask does not look at them


def part(place):
    return PARTS[place]


@pytest.mark.sampled(every=22, full=18, offset=1)  # kinds that threads leave out
def test_dask(frame, everything):
    if frame.attrs["kind"].startswith(NOT_IN_DASK):
        pytest.skip("Dask cannot hold such columns")
    ends = [0, 5, 5, 16, len(frame)]
    PARTS.update(enumerate(frame.iloc[slice(*pair)] for pair in itertools.pairwise(ends)))
    with dask.config.set({"dataframe.convert-string": False, "scheduler": "synchronous"}):
        other = dd.from_map(part, range(4), meta=frame.iloc[:0])
        compare(frame, other, everything)


NO_FILE = (pa.ArrowException, TypeError, ValueError, OverflowError)
CHANGED = (
    *("period", "interval", "category: periods", "category: intervals", "category: durations"),
    "objects: odd texts",  # texts of other types become plain ones
)


def check_times(frame, table):
    """Raise where older versions of Arrow silently write other times than those of the frame."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        held = pa.types.is_dictionary(column.type)
        plain = column.cast(column.type.value_type) if held else column
        if (
            getattr(getattr(frame[name].dtype, "categories", None), "tz", None)
            and not plain.type.tz
        ):
            raise ValueError("the time zone of the categories is lost")
        if pa.types.is_timestamp(plain.type) and plain.type.unit == "s":
            plain.cast(pa.timestamp("ms", plain.type.tz))  # as Parquet keeps them


@pytest.mark.sampled(every=22, full=18, offset=2)
def test_parquet(frame, everything, tmp_path):
    path = tmp_path / "part.parquet"
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        check_times(frame, table)
        pq.write_table(table.replace_schema_metadata(None), path, row_group_size=5)
    except NO_FILE:
        pytest.skip("Parquet cannot hold such values")
    if frame.attrs["kind"].startswith(CHANGED):
        pytest.skip("Parquet keeps these as other values")
    compare(frame, dpf.scan_parquet(path, batch_rows=4), everything)


def in_a_feather_file(table, folder):
    feather.write_feather(table, folder / "rows.feather")
    return ds.dataset(folder / "rows.feather", format="feather")


def in_polars(table):
    return pl.from_arrow(table.combine_chunks())


DUCKDB = duckdb.connect()
SOURCES = {
    "table": lambda table, _: table,
    "function": lambda table, _: lambda: table.to_reader(max_chunksize=5),
    "feather": in_a_feather_file,
    "polars": lambda table, _: in_polars(table),
    "lazy": lambda table, _: in_polars(table).lazy(),
    "duckdb": lambda table, _: DUCKDB.from_arrow(table),
}


def of_stream(source, labels):
    """View what a library holds as pandas; it may hold other values than it was given."""
    table = pa.table(source.collect() if isinstance(source, pl.LazyFrame) else source)
    plain = [plain_type(kind) for kind in table.schema.types]
    columns = [
        pa.chunked_array([plain_array(part, kind) for part in column.chunks], kind)
        for column, kind in zip(table.columns, plain, strict=True)
    ]
    return pd.DataFrame(dict(zip(labels, map(pd.arrays.ArrowExtensionArray, columns), strict=True)))


@pytest.mark.parametrize("form", SOURCES)
@pytest.mark.sampled(every=170, full=82)
def test_scans(form, frame, everything, tmp_path):
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        check_times(frame, table)
        source = SOURCES[form](table, tmp_path)
        foreign = form in ("polars", "lazy", "duckdb")
        held = of_stream(source, COLUMNS) if foreign else frame
    except (*NO_FILE, pl.exceptions.PolarsError, pl.exceptions.PanicException, duckdb.Error):
        pytest.skip("the source cannot hold such values")
    if not foreign and frame.attrs["kind"].startswith(CHANGED):
        pytest.skip("Arrow keeps these as other values")
    held.attrs["kind"] = frame.attrs["kind"]
    compare(held, dpf.scan(source, batch_rows=4), everything)
