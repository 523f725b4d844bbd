"""The parts of a pair of columns: they add up to one, and say what the values say."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.designing import EVERYONE, deviations, workload

from dpframe.engines.blocks import bernstein_parts
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import PART_OF_ONE
from dpframe.statistics.moments import parts_of_pair, powers_off, weigh
from dpframe.strategies import MECHANISMS, independent
from dpframe.strategies.base import WHOLE, Output, Source

COUNT = Output("count", 0)
KINDS = ("cov", "corr", "slope")


def of_pair(*, optional=False, degree=2, **options):
    sources = (EVERYONE, Source(0, 10, optional, ((0, 40),), degree))
    pairs = (Output(kind, 1, sampled=degree == 4) for kind in KINDS)
    return workload(sources, (COUNT, *pairs), **options)


@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize("bounds", [(0, 1), (-7, 5), (3, 3), (0, 100), (-(2**32), 2**32)])
def test_the_parts_are_not_negative_and_add_up_to_one(bounds, degree):
    lower, upper = bounds
    grid = Grid(0, lower, upper)
    values = np.unique(np.linspace(lower, upper, 20_001).astype(np.int64))
    parts = bernstein_parts(values, grid, degree)
    assert len(parts) == degree + 1
    assert all((part >= 0).all() for part in parts)
    assert (sum(parts) == PART_OF_ONE).all()
    assert PART_OF_ONE**2 == WHOLE
    if lower < upper:
        place = (values - lower) / (upper - lower)
        for at, part in enumerate(parts):
            off = part / PART_OF_ONE - stats.binom.pmf(at, degree, place)
            assert np.abs(off).max() <= 5 / PART_OF_ONE


def nine_or_more(x, y, degree=2):
    """The parts of values in [0, 10] and [0, 40]."""
    of_x = bernstein_parts(np.asarray(x), Grid(0, 0, 10), degree)
    of_y = bernstein_parts(np.asarray(y), Grid(0, 0, 40), degree)
    return [of_x[i] * of_y[j] for i, j in parts_of_pair(degree).values()]


@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (3, 40), (10, 17)])
def test_one_row_moves_the_parts_by_one_in_all(x, y, degree):
    assert sum(int(part) for part in nine_or_more(x, y, degree)) == WHOLE


@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize("optional", [False, True])
def test_all_of_it_costs_what_one_count_costs(optional, degree):
    for law, replaced in ((LAPLACE, 2), (GAUSSIAN, 2)):
        how = {"optional": optional, "degree": degree}
        made = independent.plan_parts(of_pair(**how), law)
        own = [Fraction(round(WHOLE * scale / made.scales[0])) for scale in made.scales]
        assert made.movement(own, law) == 1
        made = independent.plan_parts(of_pair(**how, neighboring="replace"), law)
        assert made.movement(own, law) == replaced
        made = independent.plan_parts(of_pair(degree=degree, caps=Caps(3, 2, 2), cells=2), law)
        parts = (degree + 1) ** 2
        assert made.movement(own[:parts], law) == (3 if law is LAPLACE else 5)


@pytest.mark.parametrize("name", MECHANISMS)
def test_pairs_are_measured_by_every_mechanism_whose_law_adds_up(name):
    planners = MECHANISMS[name].planners(of_pair())
    assert planners[:1] == (() if name == "staircase" else (independent.plan_parts,))
    assert not MECHANISMS[name].plain_planners(of_pair())


def read_off(x, y, noise=None, law=LAPLACE, degree=2):
    """Return what a design reads off values in [0, 10] and [0, 40]."""
    made = independent.plan_parts(of_pair(degree=degree), law)
    measured = [np.array([part.sum()]) for part in nine_or_more(x, y, degree)]
    if noise is not None:
        measured = [part + of for part, of in zip(measured, noise, strict=True)]
    none = [1e-9] * len(measured)
    return made.decode(measured, none if noise is None else deviations(made, law=law))


def test_fourth_moments_are_those_of_the_values():
    rng = np.random.default_rng(7)
    x = rng.integers(0, 11, 500)
    y = np.clip(3 * x + rng.integers(0, 12, 500), 0, 40)
    totals = read_off(x, y, degree=4)[1].totals
    means = x.mean() / 5 - 1, y.mean() / 20 - 1
    u, v = (x - x.mean()) / 5, (y - y.mean()) / 20
    for a in range(5):
        found = totals.weigh(weigh(powers_off(means, (a, 4 - a))))
        assert found[0] == pytest.approx((u**a * v ** (4 - a)).sum(), rel=1e-3)


def test_odd_numbers_have_answers():
    for x in (np.array([], np.int64), np.array([3]), np.full(9, 10)):
        noise = np.full((9, 3), -5.0 * WHOLE)
        for one in read_off(x, np.full(len(x), 7), noise)[1:]:
            assert np.isfinite(one.values).all()
            assert all(np.isfinite(part).all() for part in one.loadings.values())


ALL = (
    COUNT,
    Output("corr", 1),
    Output("mean", 2, among=(1, 0)),
    Output("mean", 3, among=(1, 1)),
    Output("var", 2, among=(1, 0)),
    Output("std", 3, among=(1, 1)),
)


def of_all(degree=2, *, optional=False):
    pair_of_columns = Source(0, 10, optional, ((0, 40),), degree)
    single = Source(0, 10, optional), Source(0, 40, optional)
    outputs = (COUNT, *(replace(out, sampled=degree == 4) for out in ALL[1:]))
    return workload((EVERYONE, pair_of_columns, *single), outputs)


@pytest.mark.parametrize("degree", [2, 4])
def test_means_and_spreads_of_either_column_are_read_off_the_parts(degree):
    rng = np.random.default_rng(9)
    x = rng.integers(0, 8, 500)
    y = np.clip(3 * x + rng.integers(0, 12, 500), 0, 40)
    made = independent.plan_parts(of_all(degree), LAPLACE)
    assert len(made.blocks) == (degree + 1) ** 2
    measured = [np.array([part.sum()]) for part in nine_or_more(x, y, degree)]
    found = made.decode(measured, [1e-9] * len(measured))
    expected = len(x), np.corrcoef(x, y)[0, 1], x.mean(), y.mean(), x.var(), y.std()
    for one, wanted in zip(found, expected, strict=True):
        assert one.values[0] == pytest.approx(wanted, rel=2e-4)


def test_a_statistic_of_another_column_is_not_read_off_the_parts():
    work = of_all()
    apart = tuple(replace(out, among=None) for out in work.outputs)
    made = independent.plan_parts(replace(work, outputs=apart), LAPLACE)
    assert len(made.blocks) > len(independent.plan_parts(work, LAPLACE).blocks)
