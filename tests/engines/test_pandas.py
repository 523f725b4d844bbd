"""The embedded engine adds up what a slow row-by-row oracle adds up, and never more than that."""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.raising import raises
from support.randomness import SYSTEM

from dpframe.engines import engine_for
from dpframe.engines import pandas as engine_module
from dpframe.engines.pandas import totals_of
from dpframe.engines.sums import Flags
from dpframe.errors import QueryError, UnknownColumnError
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition

HOSTILE = [None, np.nan, pd.NA, pd.NaT, "1", [1], {}, 10**400, -math.inf, math.inf, 1j, b"", ()]


def totals(frame, task):
    return engine_for(frame).totals(frame, [task], SYSTEM)[0]


def number_in(value):
    """The value as a float, NaN if it is no number."""
    if not isinstance(value, (bool, np.bool_, int, float, np.integer, np.floating)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def position_on(axis, value):
    """Place of a value among keys or bins, None if there is none."""
    if isinstance(axis, BinAxis):
        number = number_in(value)
        held = [i for i, bin_ in enumerate(axis.keys) if not math.isnan(number) and number in bin_]
    else:
        try:
            held = [i for i, key in enumerate(axis.keys.tolist()) if hash(key) == hash(value)]
            held = [i for i in held if axis.keys.tolist()[i] == value]
        except TypeError:
            held = []
    return held[0] if held else None


def cell_of(cells, row):
    code = 0
    for axis in cells.axes:
        place = position_on(axis, row[axis.column])
        if place is None:
            return None
        code = code * len(axis) + place
    chosen = list(range(cells.product) if cells.chosen is None else cells.chosen)
    return chosen.index(code) if code in chosen else None


def amount_of(term, row):
    if term.kind == "rows":
        return 1
    number, grid = number_in(row[term.column]), term.grid
    if term.kind == "valid":
        return int(grid.fill is not None or not math.isnan(number))
    if math.isnan(number):
        return grid.fill or 0
    if math.isinf(number):
        return grid.upper if number > 0 else grid.lower
    return min(max(round(Fraction(number) / Fraction(2) ** grid.exponent), grid.lower), grid.upper)


def holds(condition, row):
    """The conditions of these tests, all of the form `n > number`."""
    if condition is None:
        return True
    column, _, bound = condition.text.split()
    return number_in(row[column]) > float(bound)


def oracle(frame, task):
    """Add up row by row with Python integers."""
    sums = [[0] * task.cells.size for _ in task.terms]
    for i in range(len(frame)):
        row = {label: frame[label].astype(object).iloc[i] for label in frame.columns}
        cell = cell_of(task.cells, row)
        left_out = any(pd.isna(row[label]) for label in task.unit)
        if cell is None or left_out or not holds(task.where, row):
            continue
        for sum_, term in zip(sums, task.terms, strict=True):
            sum_[cell] += amount_of(term, row) if holds(term.where, row) else 0
    wrapped = [[(x + 2**63) % 2**64 - 2**63 for x in sum_] for sum_ in sums]
    return np.array(wrapped, np.int64).reshape(len(task.terms), task.cells.size)


small = st.integers(-3, 3)
floats = st.floats(-4, 4) | st.sampled_from([math.nan, math.inf, -math.inf, 0.5, 1e300, 5e-324])
COLUMNS = {
    "int64": small | st.sampled_from([2**63 - 1, -(2**63)]),
    "int8": st.integers(-128, 127),
    "uint64": st.integers(0, 3) | st.just(2**64 - 1),
    "bool": st.booleans(),
    "float64": floats,
    "float32": st.floats(-4, 4, width=32) | st.just(math.nan),
    "Int64": small | st.none(),
    "Float64": st.floats(-4, 4) | st.none(),
    "boolean": st.booleans() | st.none(),
    "double[pyarrow]": st.floats(-4, 4) | st.none(),
    "str": st.sampled_from(["a", "b", "1", None]),
    "string[pyarrow]": st.sampled_from(["a", "b", "1", None]),
    "category": st.sampled_from(["a", "b", "1", None]) | small,
    "object": small | floats | st.booleans() | st.sampled_from(["a", "b", *HOSTILE]),
}
KEYS = ["a", 2, 0.5, "1", -1, True]
BINS = pd.IntervalIndex.from_tuples([(-math.inf, -1), (-1, 0), (0.5, 2), (2, math.inf)])


def column(dtype, n):
    values = st.lists(COLUMNS[dtype], min_size=n, max_size=n)
    return values.map(lambda drawn: series(drawn, dtype))


def series(values, dtype):
    if dtype not in ("object", "category"):
        return pd.Series(values, dtype=dtype)
    objects = np.empty(len(values), object)
    objects[:] = values
    return pd.Series(objects, dtype=object).astype(dtype)


@st.composite
def frames(draw):
    n = draw(st.integers(0, 12))
    dtypes = st.sampled_from(list(COLUMNS))
    made = {label: draw(column(draw(dtypes), n)) for label in "kxnu"}
    index = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))  # duplicates
    return pd.DataFrame(made).set_axis(pd.Index(index, dtype=np.int64), axis=0)


@st.composite
def tasks(draw):
    key, bins = KeyAxis("k", pd.Index(KEYS, dtype=object)), BinAxis("x", BINS)
    axes = draw(st.sampled_from([(), (key,), (bins,), (key, bins), (bins, key)]))
    cells = Cells(axes)
    if draw(st.booleans()):
        places = st.integers(0, cells.product - 1)
        chosen = draw(st.lists(places, unique=True, min_size=1))
        cells = Cells(axes, np.array(chosen))
    conditions = st.none() | st.sampled_from(["n > 0", "n > 1.5"]).map(Condition.parse)
    grids = st.sampled_from(
        [
            Grid.for_bounds(-1, 2, integer=True),
            Grid.for_bounds(-1.5, 2.5),
            Grid.for_bounds(0, 3, missing=1),
            Grid.for_bounds(-1e-300, 1e-300),
            Grid.for_bounds(0, 5e-324),
            Grid.for_bounds(0, 1e300),
            Grid(0, 0, 2**62),
        ]
    )
    kinds, labels = st.sampled_from(["valid", "sum"]), st.sampled_from("xn")
    some = st.builds(Term, kinds, labels, grids, conditions)
    rows = st.builds(Term, st.just("rows"), where=conditions)
    terms = draw(st.lists(some | rows, min_size=1, max_size=4))
    return Task(cells, tuple(terms), draw(conditions))


@given(frames(), tasks())
def test_totals_are_those_of_the_oracle(frame, task):
    with mock.patch.object(engine_module, "_BLOCK", 5):
        found = totals(frame, task)
    assert found.dtype == np.int64
    assert found.shape == (len(task.terms), task.cells.size)
    np.testing.assert_array_equal(found, oracle(frame, task))


@pytest.mark.full
@given(frames(), frames(), st.lists(tasks(), min_size=1, max_size=3), st.sampled_from([1, 3]))
def test_tasks_parts_and_threads_share_a_pass_and_add_up(frame, added, several, threads):
    with mock.patch.object(engine_module, "_BLOCK", 5):
        found = totals_of([frame, added, frame[:0]], several, SYSTEM, threads)
    for total, task in zip(found, several, strict=True):
        np.testing.assert_array_equal(total, oracle(frame, task) + oracle(added, task))
    for total, task in zip(totals_of([], several, SYSTEM), several, strict=True):
        np.testing.assert_array_equal(total, np.zeros((len(task.terms), task.cells.size)))


@pytest.mark.full
@given(frames(), frames(), tasks())
def test_added_rows_add_their_own_totals_whatever_they_do_to_dtypes(frame, added, task):
    both = pd.DataFrame(
        {
            label: series([*frame[label].astype(object), *added[label].astype(object)], "object")
            for label in frame.columns
        }
    )
    expected = totals(frame, task) + totals(added, task)
    np.testing.assert_array_equal(totals(both, task), expected)


@pytest.mark.full
@given(frames(), tasks())
def test_caps_that_do_not_bind_only_drop_rows_without_a_unit(frame, task):
    frame["u"] = pd.Series([None, 1, 2.5, 1] * 3)[: len(frame)].to_numpy()
    caps = Caps(rows=20, groups=9, rows_per_group=19)
    with mock.patch.object(engine_module, "_BLOCK", 5):
        capped = Task(task.cells, task.terms, task.where, ("u",), caps)
        np.testing.assert_array_equal(totals(frame, capped), oracle(frame, capped))


def by_key(terms, **more):
    return Task(Cells((KeyAxis("k", pd.Index(["a", "b", "c"])),)), terms, **more)


def test_a_unit_moves_totals_by_no_more_than_its_caps():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"k": rng.choice(list("abc"), 500), "u": 0, "x": rng.normal(0, 9, 500)})
    grid = Grid.for_bounds(-2, 1, integer=True)
    terms = (Term("rows"), Term("sum", "x", grid))
    for _ in range(20):
        rows, sums = totals(frame, by_key(terms, unit=("u",), caps=Caps(5, 2, 3)))
        assert rows.sum() == 5
        assert rows.max() <= 3
        assert np.count_nonzero(rows) <= 2
        assert (-2 * rows <= sums).all()
        assert (sums <= rows).all()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series([127] * 200, dtype="int8"), 127 * 200),
        (pd.Series([2**63 - 1, -(2**63)]), 2**20 - 5),
        (pd.Series([2**64 - 1], dtype="uint64"), 2**20),
        (pd.Series([1.5, 2.5, -0.5, np.nan]), 2 + 2),
        (pd.Series([1e308, -1e308, np.inf, -np.inf, np.nan]), 2 * (2**20 - 5)),
        (pd.Series([1, None, pd.NA, "1", [1], True, 10**400, 2j], dtype=object), 2 + 2**20),
        (pd.Series([3.0, 4.0]).astype("category"), 7),
        (pd.Series(["3", "4"]), 0),
        (pd.to_datetime(pd.Series(["2024-01-01"])), 0),
    ],
)
def test_values_are_clipped_and_what_is_no_number_adds_nothing(values, expected):
    terms = (Term("sum", "x", Grid(0, -5, 2**20)),)
    assert totals(pd.DataFrame({"x": values}), Task(Cells(), terms)).tolist() == [[expected]]


def test_a_declared_replacement_stands_for_what_is_missing():
    frame = pd.DataFrame({"x": [np.nan, 1.25, np.inf, np.nan]})
    for missing, expected in [(None, [2, 3.25]), (1.5, [4, 6.25]), (9.0, [4, 7.25])]:
        grid = Grid.for_bounds(0.0, 2.0, missing=missing)
        found = totals(frame, Task(Cells(), (Term("valid", "x", grid), Term("sum", "x", grid))))
        assert [found[0, 0], found[1, 0] * grid.step] == expected


def test_totals_wrap_modulo_two_to_the_64():
    frame = pd.DataFrame({"x": [2.0**62] * 3})
    assert totals(frame, Task(Cells(), (Term("sum", "x", Grid(0, 0, 2**62)),))) == [[-(2**62)]]


def test_totals_of_flags_wrap_without_a_word():
    flags = Flags(pd.DataFrame({"b": [True, False]}), [0])
    flags.add(slice(0, 2), np.ones(2, bool))
    assert flags.total(0, np.int64(-5), np.int64(2**62)) == 2**62 - 5
    flags._rows, flags._true[0] = 2**40, 2**39 - 1
    wide = -(2**32) * (2**39 + 1) + 2**33 * (2**39 - 1)
    expected = (wide + 2**63) % 2**64 - 2**63
    assert flags.total(0, np.int64(-(2**32)), np.int64(2**33)) == expected


def test_columns_are_named_exactly_once():
    frame = pd.DataFrame([[1, 2, 3]], columns=["fare", "tip", "tip"])
    engine = engine_for(frame)
    engine.check(frame, ["fare"])
    assert engine.columns(frame) == ["fare", "tip", "tip"]
    with raises(UnknownColumnError, "column", label="fair"):
        engine.check(frame, ["fare", "fair"])
    with raises(UnknownColumnError, "column", label=7):
        engine.check(frame, [7])
    with raises(QueryError, "duplicate", label="tip"):
        engine.check(frame, ["tip"])
    tasks_naming = {
        "where": Task(Cells(), (Term("rows"),), where=Condition.parse("fair > 1")),
        "term": Task(Cells(), (Term("sum", "fair", Grid(0, 0, 1)),)),
        "term where": Task(Cells(), (Term("rows", where=Condition.parse("fair > 1")),)),
        "axis": Task(Cells((KeyAxis("fair", pd.Index([1])),)), (Term("rows"),)),
        "unit": Task(Cells(), (Term("rows"),), unit=("fair",), caps=Caps(rows=1)),
    }
    for task in tasks_naming.values():
        with raises(UnknownColumnError, "fair", label="fair"):
            totals(frame, task)


def test_booleans_on_any_grid_are_the_numbers_0_and_1():
    flags = pd.DataFrame({"x": [True, False, True], "n": [False, True, True]})
    grids = [Grid(0, -5, 9), Grid(0, 2, 9), Grid(0, -9, 0), Grid.for_bounds(-0.5, 0.75)]
    grids += [Grid(0, 0, 1, fill=1), Grid(-62, 2**61, 2**62), Grid.for_bounds(0, 1e-300)]
    terms = [Term(kind, c, grid) for kind in ("sum", "valid") for c in "xn" for grid in grids]
    some = Condition.parse("n > 0.5")
    for cells in (Cells(), Cells((KeyAxis("n", pd.Index([True, False])),))):
        for own in (None, some):
            task = Task(cells, (*terms, Term("sum", "x", grids[0], own)))
            expected = totals(flags.astype("float64"), task)
            np.testing.assert_array_equal(totals(flags, task), expected)
            np.testing.assert_array_equal(totals(flags.astype(object), task), expected)
