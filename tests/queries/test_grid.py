"""The public grid against exact rational arithmetic."""

import math
import sys
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from dpframe.queries.edges import Grid

TINY = 5e-324
HUGE = sys.float_info.max

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
near_zero = st.integers(-(2**40), 2**40).map(lambda n: math.ldexp(n, -1074))
integers = st.integers(-(2**70), 2**70)
bounds = st.one_of(
    st.tuples(finite, finite), st.tuples(near_zero, near_zero), st.tuples(integers, integers)
).map(lambda pair: tuple(sorted(pair)))


def step_of(grid: Grid) -> Fraction:
    return Fraction(2) ** grid.exponent


@given(bounds, st.booleans())
@example((0.0, TINY), False)
@example((-HUGE, HUGE), False)
@example((1e308, 1e308), False)
@example((0.1, 0.1), False)
@example((0.3, 0.7), True)
@example((1e-300, 1e-300), False)
def test_bounds_move_inwards_by_less_than_a_step(pair, integer):
    lower, upper = map(Fraction, pair)
    grid = Grid.for_bounds(*pair, integer=integer)
    step = step_of(grid)
    low, high = grid.lower * step, grid.upper * step
    if math.ceil(lower / step) <= math.floor(upper / step):
        assert lower <= low < lower + step
        assert upper - step < high <= upper
    else:
        assert grid.lower == grid.upper
        assert abs(low - (lower + upper) / 2) <= step / 2


@given(bounds)
@example((0.0, TINY))
@example((-HUGE, 1.0))
def test_integers_fit_in_33_bits_and_use_them(pair):
    grid = Grid.for_bounds(*pair)
    largest = max(abs(Fraction(bound)) for bound in pair)
    assert max(abs(grid.lower), abs(grid.upper)) <= 2**32
    # all floats are multiples of the smallest one: no finer grid is needed
    assert largest == 0 or 2**31 < largest / step_of(grid) <= 2**32 or grid.exponent == -1074


@given(bounds, finite)
def test_a_missing_value_is_filled_within_the_bounds(pair, missing):
    grid = Grid.for_bounds(*pair, missing=missing)
    assert grid.lower <= grid.fill <= grid.upper
    inside = min(max(Fraction(missing), Fraction(pair[0])), Fraction(pair[1]))
    assert abs(grid.fill * step_of(grid) - inside) <= step_of(grid)


@given(st.integers(-(2**32), 2**32), st.integers(-(2**32), 2**32))
def test_declared_integers_are_used_as_they_are(a, b):
    lower, upper = sorted((a, b))
    assert Grid.for_bounds(lower, upper, integer=True) == Grid(0, lower, upper)
    assert Grid.for_bounds(lower, upper, integer=True).step == 1


def test_large_declared_integers_get_a_coarser_grid():
    assert Grid.for_bounds(0, 2**32 + 1, integer=True) == Grid(1, 0, 2**31)
    assert Grid.for_bounds(-(2**40), 0, integer=True) == Grid(8, -(2**32), 0)


def test_declared_integers_round_fractional_bounds_inwards():
    assert Grid.for_bounds(0.5, 9.5, integer=True) == Grid(0, 1, 9)
    assert Grid.for_bounds(-0.5, 0.5, integer=True) == Grid(0, 0, 0)


def test_equal_bounds_off_the_grid_become_the_nearest_point():
    grid = Grid.for_bounds(0.1, 0.1)
    assert grid.lower == grid.upper == round(Fraction(0.1) * 2**35)
    assert Grid.for_bounds(0.3, 0.7, integer=True) == Grid(0, 0, 0)
    assert Grid.for_bounds(0.6, 0.7, integer=True) == Grid(0, 1, 1)


def test_the_fill_is_rounded_and_clipped():
    assert Grid.for_bounds(0, 10, integer=True).fill is None
    fills = {
        missing: Grid.for_bounds(0, 10, integer=True, missing=missing).fill
        for missing in (-5, 0, 2.6, 10, 1e300)
    }
    assert fills == {-5: 0, 0: 0, 2.6: 3, 10: 10, 1e300: 10}
    assert Grid.for_bounds(0.0, 1.0, missing=0.5).fill == 2**31
