"""Consistent tables: what they keep, what they derive, and the errors that they realize."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from dpframe.denoising.consistent import consistent_tables, nearest_table, whole_tables
from dpframe.denoising.projection import onto_simplex
from dpframe.errors import QueryError

SIZES = (4, 2, 7, 1)
SETS = [axes for k in range(3) for axes in itertools.combinations(range(len(SIZES)), k)]
EXTREMES = [0.0, -0.0, 1e-300, -1e-300, 0.5, -1.0, 2.0**53, 1e17, 1e300, -1e300, 1.7e308, -1.7e308]


def skewed_truth():
    """Count 900 rows of four attributes, most cells of which are small or empty."""
    rng = np.random.default_rng(3)
    full = rng.exponential(size=SIZES) ** 4
    return np.floor(900 * full / full.sum())


def marginal(full, axes):
    return full.sum(axis=tuple(k for k in range(full.ndim) if k not in axes))


def agreeing(full, sets=SETS):
    """Return all tables of a table of all attributes, so that they agree."""
    return {axes: marginal(full, axes) for axes in sets}


def noisy(seed, deviation=20.0):
    rng = np.random.default_rng(seed)
    return skewed_truth() + deviation * rng.standard_normal(SIZES)


def disagreement(tables):
    """Return the largest gap between a table and the sum of a larger one, over the total."""
    gaps = [
        np.abs(tables[two].sum(axis=1 - two.index(axis)) - tables[axis,]).max(initial=0)
        for two in tables
        if len(two) == 2
        for axis in two
    ]
    gaps += [np.abs(table.sum() - tables[()]).max() for table in tables.values()]
    return max(gaps) / max(float(tables[()]), 1e-300)


@pytest.mark.parametrize("deviation", [0.1, 3.0, 20.0, 500.0])
@pytest.mark.parametrize("seed", range(5))
def test_tables_are_not_negative_agree_and_keep_the_total(seed, deviation):
    estimates = agreeing(noisy(seed, deviation))
    made = consistent_tables(estimates, SETS)
    assert list(made) == SETS
    assert all(table.shape == estimates[axes].shape for axes, table in made.items())
    assert min(table.min() for table in made.values()) >= 0
    assert disagreement(made) < 1e-12
    assert made[()] == max(estimates[()], 0)


def test_each_table_is_the_nearest_below_those_above_it():
    estimates = agreeing(noisy(1))
    made = consistent_tables(estimates, SETS)
    for axis in range(4):
        assert np.allclose(made[axis,], onto_simplex(estimates[axis,], float(made[()])))
    for first, second in itertools.combinations(range(4), 2):
        expected = nearest_table(estimates[first, second], made[first,], made[second,])
        assert np.allclose(made[first, second], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "sets",
    [
        [(0, 2)],
        [(0, 2), (0, 1)],
        [(0, 2), (1, 2), (0, 1)],
        [(0,), (1, 2)],
        [(2,), (0,)],
        [(3,)],
        [()],
        [(0, 3), (2,)],
    ],
)
def test_missing_tables_are_sums_of_larger_ones(sets):
    full = noisy(2)
    alone = consistent_tables(agreeing(full, sets), sets)
    among = consistent_tables(agreeing(full), sets)
    assert list(alone) == sets
    for axes in sets:
        assert np.allclose(alone[axes], among[axes], rtol=0, atol=1e-9)
    below = consistent_tables(agreeing(full, sets), [*sets, ()])
    assert below[()] == pytest.approx(alone[sets[0]].sum())
    assert whole_tables(alone).keys() == alone.keys()


def test_estimates_that_were_rounded_agree_again():
    estimates = {axes: np.rint(table) for axes, table in agreeing(noisy(3)).items()}
    assert disagreement(estimates) > 1e-3
    made = consistent_tables(estimates, SETS)
    assert disagreement(made) < 1e-12
    assert made[()] == estimates[()]
    assert np.array_equal(whole_tables(made)[()], made[()])
    assert disagreement(whole_tables(made)) == 0


@pytest.mark.parametrize("deviation", [3.0, 20.0, 500.0])
@pytest.mark.parametrize("seed", range(5))
def test_whole_tables_agree_to_the_last_bit(seed, deviation):
    made = consistent_tables(agreeing(noisy(seed, deviation)), SETS)
    rounded = whole_tables(made)
    assert disagreement(rounded) == 0
    assert rounded[()] == np.rint(made[()])
    for axes, table in rounded.items():
        assert np.array_equal(table, np.rint(table))
        assert table.min() >= 0
        assert not np.signbit(table).any()
        assert np.abs(table - made[axes]).max() < (2 if len(axes) == 2 else 1)


@pytest.mark.full
@pytest.mark.parametrize(("deviation", "kept"), [(3.0, 0.9), (20.0, 0.8)])
def test_errors_of_sparse_tables_are_smaller(deviation, kept):
    truth = agreeing(skewed_truth())
    raw, better, rounded = np.zeros((3, 3))
    for seed in range(60):
        noise = layers(seed, deviation)
        estimates = {axes: truth[axes] + noise[axes] for axes in SETS}
        made = consistent_tables(estimates, SETS)
        for errors, tables in ((raw, estimates), (better, made), (rounded, whole_tables(made))):
            for axes in SETS:
                errors[len(axes)] += np.square(tables[axes] - truth[axes]).mean()
    assert better[0] == raw[0]
    assert (better[1:] < raw[1:]).all()
    assert better[2] < kept * raw[2]
    assert (rounded < raw * (1 + 0.2 / deviation**2)).all()


def layers(seed, deviation):
    """Draw noise that agrees, of one variance in every cell of every table, and a whole total."""
    rng = np.random.default_rng(seed)
    drawn = {}
    for axes in SETS:
        noise = deviation * rng.standard_normal([SIZES[axis] for axis in axes])
        for place in range(len(axes)):
            n = noise.shape[place]
            noise = (noise - noise.mean(axis=place, keepdims=True)) * math.sqrt(1 + 1 / n)
        drawn[axes] = noise
    drawn[()] = np.rint(drawn[()])
    return {axes: _summed(axes, drawn) for axes in SETS}


def _summed(axes, drawn):
    total = np.zeros([SIZES[axis] for axis in axes])
    for subset in SETS:
        if set(subset) <= set(axes):
            others = [place for place, axis in enumerate(axes) if axis not in subset]
            share = math.prod(SIZES[axes[place]] for place in others)
            total += np.expand_dims(drawn[subset], others) / share
    return total


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_values_make_it_fail(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    cells = math.prod(sizes)
    small = st.one_of(st.floats(-50, 50), st.integers(-3, 3).map(float))
    value = data.draw(st.sampled_from([small, st.sampled_from(EXTREMES)]))
    flat = data.draw(st.lists(value, min_size=cells, max_size=cells))
    full = np.array(flat).reshape(sizes) / cells
    sets = [axes for k in range(3) for axes in itertools.combinations(range(len(sizes)), k)]
    made = consistent_tables(agreeing(full, sets), sets)
    rounded = whole_tables(made)
    assert disagreement(made) < 1e-9
    assert disagreement(rounded) == 0
    for axes in sets:
        assert made[axes].min() >= 0
        assert np.isfinite(made[axes]).all()
        assert rounded[axes].min() >= 0
        assert (rounded[axes] % 1 == 0).all()


@pytest.mark.parametrize(
    "estimates",
    [
        {(): -5.0, (0,): [-5.0, 0.0], (0, 1): [[-5.0], [0.0]]},
        {(): 0.0, (0,): [0.0, 0.0], (0, 1): [[0.0], [0.0]]},
        {(): 0.0, (0,): [7.0, -7.0], (0, 1): [[7.0], [-7.0]]},
        {(): 3.0, (0,): np.empty(0), (0, 1): np.empty((0, 2))},
        {(0, 1): np.full((2, 3), 1.7e308)},
        {(0, 1): np.full((2, 3), -1.7e308)},
        {(0, 1): np.full((2, 3), 5e-324)},
        {(0, 1): [[1e-3]]},
        {(): 2.5, (0,): [2.5], (0, 1): [[2.5]]},
    ],
)
def test_odd_tables_are_made_consistent(estimates):
    sets = [(), (0,), (1,), (0, 1)]
    made = consistent_tables(estimates, sets)
    rounded = whole_tables(made)
    assert disagreement(made) < 1e-12
    assert disagreement(rounded) == 0
    assert all(np.isfinite(table).all() and table.min(initial=0) >= 0 for table in made.values())


def test_huge_totals_are_rounded_to_multiples_of_a_power_of_two():
    made = {(0, 1): np.array([[2.0**60 + 4096, 3.0 * 2**20], [2.0**59, 12345.0]])}
    rounded = whole_tables({**made, (): made[0, 1].sum()})
    assert rounded[()] == rounded[0, 1].sum()
    assert (rounded[0, 1] % 2**21 == 0).all()
    assert np.abs(rounded[0, 1] - made[0, 1]).max() < 2**21


def test_tables_of_three_attributes_are_refused():
    with raises(QueryError, "at most two attributes"):
        consistent_tables({(0, 1, 2): np.ones((2, 2, 2))}, [(0,)])


@pytest.mark.parametrize("table", [[1.0, math.nan], [math.inf, 1.0], 3.0, [[1.0]]])
def test_estimates_that_are_no_finite_table_are_refused(table):
    with raises(QueryError, "and an array of shape"):
        consistent_tables({(0,): table}, [(0,)])


def test_tables_that_do_not_follow_are_refused():
    with raises(QueryError, "no estimate"):
        consistent_tables({(0,): [1.0, 2.0], (1,): [3.0]}, [(0, 1)])
