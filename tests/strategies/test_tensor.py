"""The nine parts of a pair of columns: they add up to one, and say what the values say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, deviations, workload

from dpframe.engines.blocks import three_parts
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import Caps
from dpframe.queries.grid import Grid
from dpframe.queries.tasks import PART_OF_ONE
from dpframe.strategies import MECHANISMS, pair
from dpframe.strategies.association import center
from dpframe.strategies.base import PARTS, WHOLE, Output, Source

COUNT = Output("rows", 0)
KINDS = tuple(Output(kind, 1) for kind in ("covariance", "correlation", "slope"))


def of_pair(*, optional=False, **options):
    sources = (EVERYONE, Source(0, 10, optional, (0, 40)))
    return workload(sources, (COUNT, *KINDS), **options)


@pytest.mark.parametrize("bounds", [(0, 1), (-7, 5), (3, 3), (0, 100), (-(2**32), 2**32)])
def test_the_three_parts_are_not_negative_and_add_up_to_one(bounds):
    lower, upper = bounds
    grid = Grid(0, lower, upper)
    values = np.unique(np.linspace(lower, upper, 20_001).astype(np.int64))
    parts = three_parts(values, grid)
    assert all((part >= 0).all() for part in parts)
    assert (sum(parts) == PART_OF_ONE).all()
    assert PART_OF_ONE**2 == WHOLE
    if lower < upper:
        place = (values - lower) / (upper - lower)
        assert np.abs((parts[1] / 2 + parts[2]) / PART_OF_ONE - place).max() <= 0.51 / PART_OF_ONE
        assert np.abs(parts[2] / PART_OF_ONE - place**2).max() <= 1.51 / PART_OF_ONE


@pytest.mark.parametrize(("x", "y"), [(0, 0), (3, 40), (10, 17)])
def test_one_row_moves_the_nine_parts_by_one_in_all(x, y):
    of_x = three_parts(np.array([x]), Grid(0, 0, 10))
    of_y = three_parts(np.array([y]), Grid(0, 0, 40))
    assert sum(int((of_x[i] * of_y[j])[0]) for i, j in PARTS.values()) == WHOLE


@pytest.mark.parametrize("optional", [False, True])
def test_all_of_it_costs_what_one_count_costs(optional):
    for law, replaced in ((LAPLACE, 2), (GAUSSIAN, 2)):
        made = pair.plan_tensor(of_pair(optional=optional), law)
        own = [Fraction(scale) for scale in made.scales]
        assert made.movement(own, law) == 1
        made = pair.plan_tensor(of_pair(optional=optional, neighboring="replace"), law)
        assert made.movement(own, law) == replaced
        made = pair.plan_tensor(of_pair(caps=Caps(3, 2, 2), cells=2), law)
        assert made.movement(own[:9], law) == (3 if law is LAPLACE else 5)


def test_a_planted_fault_is_found(monkeypatch):
    # as if a row could add half as much to a part
    made = pair.plan_tensor(of_pair(), LAPLACE)
    monkeypatch.setattr("dpframe.strategies.linear.WHOLE", WHOLE // 2)
    claimed = made.movement([Fraction(scale) for scale in made.scales], LAPLACE)
    corner = sum(Fraction(WHOLE * (k == 0)) / Fraction(made.scales[k]) for k in range(9))
    assert corner > claimed


@pytest.mark.parametrize("name", MECHANISMS)
def test_pairs_are_measured_by_every_mechanism(name):
    planners = MECHANISMS[name].planners(of_pair())
    assert planners[0] is pair.plan_tensor
    assert not MECHANISMS[name].plain_planners(of_pair())


def read_off(x, y, noise=None, law=LAPLACE):
    """Return what a design reads off values in [0, 10] and [0, 40]."""
    made = pair.plan_tensor(of_pair(), law)
    of_x, of_y = three_parts(x, Grid(0, 0, 10)), three_parts(y, Grid(0, 0, 40))
    measured = [np.array([(of_x[i] * of_y[j]).sum()]) for i, j in PARTS.values()]
    if noise is not None:
        measured = [part + of for part, of in zip(measured, noise, strict=True)]
    return made.decode(measured, [1e-9] * 9 if noise is None else deviations(made, law=law))


def test_without_noise_the_answers_are_those_of_the_values():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 11, 500)
    y = np.clip(3 * x + rng.integers(0, 12, 500), 0, 40)
    rows, *found = read_off(x, y)
    expected = np.cov(x, y, ddof=0)[0, 1], np.corrcoef(x, y)[0, 1], np.polyfit(x, y, 1)[0]
    assert rows.values.tolist() == [500]
    for one, wanted in zip(found, expected, strict=True):
        assert one.values[0] == pytest.approx(wanted, rel=2e-4)


def test_standard_errors_are_those_of_many_draws():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 11, 20_000)
    y = np.clip(2 * x + rng.integers(0, 20, 20_000), 0, 40)
    draws = np.rint(rng.laplace(0, WHOLE, (9, 4_000)))
    _, *found = read_off(x, y, draws)
    for one in found:
        claimed = math.sqrt(2) * np.sqrt(sum(np.square(part) for part in one.loadings.values()))
        # the deviation of 4,000 draws is within 10 %, false alarm below 1e-9
        assert one.values.std() == pytest.approx(np.median(claimed), rel=0.1)
        assert one.values.std() != pytest.approx(np.median(claimed) * 1.25, rel=0.1)


def test_odd_numbers_have_answers():
    for x in (np.array([], np.int64), np.array([3]), np.full(9, 10)):
        noise = np.full((9, 3), -5.0 * WHOLE)
        for one in read_off(x, np.full(len(x), 7), noise)[1:]:
            assert np.isfinite(one.values).all()
            assert all(np.isfinite(part).all() for part in one.loadings.values())
    joint = read_off(np.array([1]), np.array([2]))[1].joint
    assert (np.abs(center(joint).covariance) <= 1).all()
