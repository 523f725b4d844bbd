"""One row stands for every unit, and few ones stay in a row, chosen at random."""

import itertools
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.randomness import SYSTEM

from dpframe.engines import engine_for
from dpframe.engines import pandas as engine_module
from dpframe.engines.sums import keep_few
from dpframe.engines.units import Units
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition

FALSE_ALARM = 1e-9  # of each chi-square test
BIT = Grid(0, 0, 1)
BITS = [Term("sum", label, BIT) for label in "abcd"]
BY = Cells((KeyAxis("k", pd.Index(["p", "q"])),))


def totals(frame, task):
    return engine_for(frame).totals(frame, [task], SYSTEM)[0]


def pick(ones, most):
    """Keep few ones in each row of a matrix."""
    columns = list(np.array(ones, np.int64).T.copy())
    keep_few(columns, most, SYSTEM)
    return np.stack(columns, axis=1)


def p_value(kept, choices):
    """Chi-square against the uniform law over choices of columns, one choice in each row."""
    found = [tuple(np.flatnonzero(row)) for row in kept]
    counts = [found.count(choice) for choice in choices]
    assert sum(counts) == len(found)
    return stats.chisquare(counts).pvalue


@pytest.mark.parametrize(
    ("present", "most"), [((0, 1, 2, 3, 4, 5), 2), ((1, 4, 5), 1), ((0, 3), 1)]
)
def test_every_choice_of_ones_is_as_likely(present, most):
    ones = np.zeros((6000, 6), np.int64)
    ones[:, present] = 1
    choices = list(itertools.combinations(present, most))
    assert p_value(pick(ones, most), choices) > FALSE_ALARM
    first = np.where(np.cumsum(ones, axis=1) <= most, ones, 0)
    assert p_value(first, choices) < FALSE_ALARM
    favored = pick(ones, most)
    favored[::4] = first[::4]  # a quarter of the rows keep the first
    assert p_value(favored, choices) < FALSE_ALARM


@given(st.lists(st.lists(st.integers(0, 1), min_size=5, max_size=5), min_size=1), st.integers(1, 6))
def test_a_row_keeps_as_many_ones_as_it_may_and_gains_none(rows, most):
    ones = np.array(rows)
    kept = pick(ones, most)
    assert (kept <= ones).all()
    assert (kept >= 0).all()
    np.testing.assert_array_equal(kept.sum(axis=1), np.minimum(ones.sum(axis=1), most))
    free = ones.sum(axis=1) <= most
    np.testing.assert_array_equal(kept[free], ones[free])


def test_rows_with_few_ones_use_no_randomness():
    with mock.patch("dpframe.privacy.noise.random_words", side_effect=AssertionError):
        assert pick([[1, 0, 1], [0, 0, 0]], 2).tolist() == [[1, 0, 1], [0, 0, 0]]
        with pytest.raises(AssertionError):
            pick([[1, 1, 1]], 2)


@given(st.lists(st.tuples(st.sampled_from([None, 1, 2.5, "a"]), st.booleans()), max_size=9))
def test_the_row_that_counts_of_a_unit_is_its_first_kept_one(rows):
    units = pd.Series([unit for unit, _ in rows], dtype=object)
    kept = np.array([keep and unit is not None for unit, keep in rows], bool)
    expected = kept & ~units.where(kept, other=None).duplicated().to_numpy()
    np.testing.assert_array_equal(Units([units]).first(kept), expected)


@st.composite
def of_units(draw):
    n = draw(st.integers(0, 15))

    def some(values):
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    data = {"k": some(["p", "q", "z", None]), "u": some([None, np.nan, 1, "1", 2.5, True])}
    return pd.DataFrame({**data, "x": some([0, 1, 2])}, dtype=object)


@given(
    of_units(),
    st.sampled_from([Cells(), BY, Cells(BY.axes, np.array([1]))]),
    st.sampled_from([None, Condition.parse("x > 0")]),
    st.sampled_from([Caps(rows=1), Caps(rows=2, groups=1), Caps(rows_per_group=1), Caps(99, 9, 9)]),
)
@settings(max_examples=80)
def test_units_are_counted_once_whatever_the_caps(frame, cells, where, caps):
    """Caps leave something of every unit that has a row that counts."""
    keys = {0: None, 1: ["q"], 2: ["p", "q"]}[0 if not cells.axes else cells.size]
    counts = frame["u"].notna() & (True if keys is None else frame["k"].isin(keys))
    counts &= True if where is None else frame["x"].astype(float) > 0
    expected = len({1 if unit == "1" else unit for unit in frame["u"][counts]})
    task = Task(cells, (Term("rows"), Term("units")), where, ("u",), caps)
    with mock.patch.object(engine_module, "_BLOCK", 4):
        rows, units = totals(frame, task)
    assert units.sum() == expected
    assert (units <= rows).all()  # the row that stands for a unit is one of those kept


def test_values_are_clipped_to_ones_before_they_are_picked():
    frame = pd.DataFrame(
        {
            "a": [0.6, np.nan, -3.0, np.inf],
            "b": pd.Series([7, None, 1, -1], dtype="Int64"),
            "c": pd.Series([True, "x", False, 10**400], dtype=object),
            "d": [False, False, True, True],
        }
    )
    for most, expected in [(1, [1, 0, 1, 1]), (2, [2, 0, 2, 2]), (3, [3, 0, 2, 3])]:
        task = Task(Cells(), tuple(BITS), most=most)
        for row, ones in enumerate(expected):
            assert totals(frame.iloc[[row]], task).sum() == ones
        with mock.patch.object(engine_module, "_FEW_AMOUNTS", 4):
            assert totals(frame, task).sum() == sum(expected)
    filled = [Term("sum", label, Grid(0, 0, 1, fill=1)) for label in "abcd"]
    assert totals(frame.iloc[[1]], Task(Cells(), tuple(filled), most=2)).sum() == 2


def test_other_terms_are_left_as_they_are():
    frame = pd.DataFrame({label: [True, None, True] for label in "abcd"}, dtype="boolean")
    terms = (Term("rows"), *BITS, Term("valid", "a", BIT))
    found = totals(frame, Task(Cells(), terms, most=3))[:, 0]
    assert (found[0], found[1:5].sum(), found[5]) == (3, 6, 2)


def test_a_unit_moves_sums_by_no_more_than_its_rows_times_its_ones():
    frame = pd.DataFrame({label: np.ones(60, bool) for label in "abcd"})
    frame = frame.assign(k=["p", "q", "z"] * 20, u=np.arange(60) % 2)
    caps = Caps(rows=5, groups=2, rows_per_group=3)
    for _ in range(20):
        task = Task(BY, (Term("rows"), Term("units"), *BITS), None, ("u",), caps, most=3)
        rows, units, *sums = totals(frame, task)
        assert rows.sum() == 10
        assert units.sum() == 2
        np.testing.assert_array_equal(np.sum(sums, axis=0), 3 * rows)
        assert (np.array(sums) <= rows).all()
