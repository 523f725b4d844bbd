"""Rows, mean and variance of one column together: errors, the polygon around it, exactness."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, deviations, square_of, workload

from dpframe.engines.blocks import square_integers
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.queries.edges import Grid
from dpframe.statistics.form import Totals
from dpframe.strategies import independent, pair
from dpframe.strategies.base import Output, Source
from dpframe.strategies.linear import Block, QuotientReading, corners

COUNT = Output("count", 0)
PRESENT, SUM, MEAN, VARIANCE, DEVIATION = (
    Output(kind, 1) for kind in ("count", "sum", "mean", "var", "std")
)
ALL = (COUNT, PRESENT, SUM, MEAN, VARIANCE, DEVIATION)


def column(lower, upper, *, optional=False):
    return (EVERYONE, Source(lower, upper, optional=optional))


def error_at(design, mean, variance, law=LAPLACE):
    """Standard deviation of n V in squared widths, for mean and variance in half widths."""
    (reading,) = (part for part in design.readings if isinstance(part, QuotientReading))
    own = dict(
        enumerate(math.sqrt(2 if law.norm == 1 else 1) * s for s in deviations(design, law=law))
    )
    weights = {"rows": mean**2 + 0.5 - variance, "y": -2 * mean, "squares": 1.0}
    noise = Totals({}, reading.loadings(own)).noise(weights)
    return math.hypot(*noise.values()) / 4


@pytest.mark.parametrize(
    ("at", "best", "thirds"),
    [
        ((0, 0.02), 0.61, 0.74),
        ((0, 0.25), 0.58, 0.59),
        ((0.5, 0.05), 0.83, 1.40),
        ((0.8, 0.05), 1.14, 2.12),
    ],
)
def test_the_errors_are_those_of_the_closed_forms(at, best, thirds):
    work = workload(column(0, 1000), (VARIANCE,))
    assert error_at(pair.plan_bernstein(work, LAPLACE), *at) == pytest.approx(best, abs=0.005)
    # n, sum and sum of squares less n / 2, on their own
    assert error_at(independent.design(work, LAPLACE), *at) == pytest.approx(thirds, abs=0.02)


def test_variance_and_mean_cost_what_the_rows_alone_cost():
    made = pair.plan_bernstein(workload(column(-3, 5, optional=True), ALL), LAPLACE)
    assert made.scales == (32, 32, 32, 1)
    assert made.movement([Fraction(32)] * 3 + [Fraction(1)], LAPLACE) == 1
    replaced = workload(column(-3, 5), (MEAN, VARIANCE), neighboring="replace")
    made = pair.plan_bernstein(replaced, LAPLACE)
    assert made.movement([Fraction(32)] * 3, LAPLACE) == 2


@pytest.mark.parametrize(("a0", "a1", "a2"), [(1, 1, 4), (1, 0.1, 1), (0.2, 2, 1), (1, 0.01, 3)])
def test_replaced_rows_move_hardly_less_than_is_claimed(a0, a1, a2):
    # precisions of N, S1 and S2 - N / 2; the exact maximum is over all pairs of values
    width = 2000
    made = independent.design(
        workload(column(0, width, optional=True), (VARIANCE,), neighboring="replace", cells=2),
        GAUSSIAN,
    )
    by_block = {(0, 1): 1 / math.sqrt(a0), (2, -width): width / math.sqrt(a1)}
    scales = [
        2 * width / math.sqrt(a2) if block.square else by_block[block.value, block.row]
        for block in made.blocks
    ]
    y = np.linspace(-1, 1, 401)
    one, other = np.meshgrid(y, y)
    moved = a1 * (one - other) ** 2 + a2 * (one**2 - other**2) ** 2
    apart = 2 * (a0 + max(a2 / 4, a1 + a2 / 4))
    exact = max(moved.max(), apart)
    claimed = made.movement(scales, GAUSSIAN)
    assert exact <= claimed * (1 + 1e-9)
    assert claimed <= exact * 1.05


@pytest.mark.parametrize(
    ("sources", "outputs", "law"),
    [
        (column(0, 1), (VARIANCE,), GAUSSIAN),
        (column(3, 3), (VARIANCE,), LAPLACE),
        (column(0, 1), (COUNT, MEAN), LAPLACE),
        (columns((0, 1), (0, 1)), (VARIANCE, Output("var", 2)), LAPLACE),
    ],
    ids=["Gaussian", "no width", "no variance", "two columns"],
)
def test_it_is_for_one_column_with_a_variance(sources, outputs, law):
    assert pair.plan_bernstein(workload(sources, outputs), law) is None


@pytest.mark.parametrize(("lower", "upper"), [(0, 1), (-3, 4), (10, 74), (-100, 28)])
def test_the_polygon_holds_every_value_with_its_square(lower, upper):
    source, width = Source(lower, upper, optional=False), upper - lower
    # along the tangents from end to end; the last side is the chord
    ordered = sorted(corners(source, [Block(1, 1, 0), Block(1, 0, 0, square=1)]))
    assert len(ordered) == 10
    touched = set()
    for x in range(lower, upper + 1):
        left_of = [
            (b[0] - a[0]) * (16 * square_of(x, source) - a[1]) - (b[1] - a[1]) * (16 * x - a[0])
            for a, b in itertools.pairwise((*ordered, ordered[0]))
        ]
        assert min(left_of) >= 0
        touched |= {side for side, turn in enumerate(left_of) if turn == 0}
    if width % 16 == 0:  # where no square is rounded, all sides but the chord are tangents
        assert touched == set(range(10))


@pytest.mark.parametrize("ends", [(0, 1), (0, 7), (-5, 9), (0, 2**32), (-(2**32), 2**32)])
def test_squares_are_exact_integers(ends):
    lower, upper = ends
    some = np.random.default_rng(1).integers(lower, upper + 1, 300)
    values = np.unique([lower, upper, (lower + upper) // 2, *some, *(upper - np.arange(2))])
    source, width = Source(lower, upper, optional=False), upper - lower
    squares = square_integers(values, Grid(0, lower, upper)).tolist()
    assert squares == [square_of(int(value), source) for value in values]
    # so that the three parts are at least 0
    t = 2 * values - lower - upper
    assert (np.maximum(2 * np.abs(t) - width, 0) <= squares).all()
    assert max(squares) <= width
