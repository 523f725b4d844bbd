"""What laws of noise state of themselves, against their densities."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate
from support.raising import raises
from support.randomness import SYSTEM

from dpframe.errors import CalibrationError
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.law import Allowance
from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE, LAWS, STAIRCASE, law_named
from dpframe.strategies import MECHANISMS

every_law = pytest.mark.parametrize("law", LAWS.values(), ids=str)
FAR = 40  # standard deviations: a Laplace density there is below 1e-24


def integral(law, f):
    """Integral of f times a multiple of the density, on both sides of its peak."""

    def integrand(z):
        return f(z) * np.exp(law.log_density(z))

    return sum(integrate.quad(integrand, *side)[0] for side in ((-FAR, 0), (0, FAR)))


def mean(law, f):
    """E[f(W)] of the continuous law."""
    return integral(law, f) / integral(law, lambda _: 1.0)


@every_law
def test_densities_have_variance_1(law):
    assert mean(law, lambda z: z * z) == pytest.approx(1, rel=1e-9)


@every_law
@pytest.mark.parametrize("exponent", [0.1, 1.7, 32])
def test_distances_are_where_the_density_has_fallen(law, exponent):
    z = np.array([0.0, law.distance(exponent)])
    assert np.diff(law.log_density(z)) == pytest.approx(-exponent, rel=1e-12)


def hidden(law, *moves):
    """The loss of moving independent coordinates, which adds up over groups.

    It is the variance of the log-likelihood ratio of Gaussian noise, mu^2, and its largest value of
    pure noise, epsilon; in deviations and 1 / (standard deviation of a scale) of each.
    """
    grid = np.linspace(-12, 12, 20_001)
    ratios = [law.log_density(grid - move) - law.log_density(grid) for move in moves]
    if law.needs_delta:
        weights = np.exp(law.log_density(grid))
        means = [np.average(ratio, weights=weights) for ratio in ratios]
        squares = zip(ratios, means, strict=True)
        return sum(np.average((ratio - m) ** 2, weights=weights) for ratio, m in squares)
    return sum(np.max(ratio) for ratio in ratios)


@every_law
def test_groups_add_up_in_the_norm_that_the_law_states(law):
    unit, moves = hidden(law, 1.0), np.array([0.3, -1.2, 2.1])
    lengths = np.abs(moves) ** law.norm
    assert hidden(law, *moves) / unit == pytest.approx(np.sum(lengths), rel=1e-6)
    assert hidden(law, *moves) / unit != pytest.approx(np.max(lengths), rel=0.1)


def test_coordinates_count_in_a_group_as_the_law_states():
    grid = np.linspace(-12, 12, 61)
    z = np.stack(np.meshgrid(grid, grid, grid))
    moves = np.array([0.3, -1.2, 2.1])
    moved = z - moves[:, None, None, None]
    sizes = {
        LAPLACE: lambda x: np.abs(x).sum(axis=0),
        BOX: lambda x: np.abs(x).max(axis=0),  # the joint density, but for the scales
    }
    for law, size in sizes.items():
        total = {"sum": np.sum, "max": np.max}[law.inside]
        assert np.max(size(moved) - size(z)) == pytest.approx(total(np.abs(moves)), rel=1e-9)
    assert GAUSSIAN.inside == "sum"


@every_law
def test_charges_are_what_was_allowed(law):
    allowance = Allowance(mu_squared=Fraction(1, 3), epsilon=Fraction(2, 7))
    loss = law.charge(law.movement_allowed(allowance))
    assert loss in (PrivacyLoss(mu_squared=Fraction(1, 3)), PrivacyLoss(epsilon=Fraction(2, 7)))
    assert bool(loss.mu_squared) == law.needs_delta
    assert (law.movement_allowed(Allowance(Fraction(0), Fraction(1))) == 0) == law.needs_delta
    assert law.charge(Fraction(0)) == PrivacyLoss()


@every_law
def test_a_group_is_drawn_with_one_scale_for_each_coordinate(law):
    scales = [law.settle(0.7, 1.0), law.settle(900.0, 20.0), 0]
    narrow, wide, none = law.draw(scales, 4000, SYSTEM)
    assert narrow.shape == wide.shape == none.shape == (4000,)
    deviations = [law.deviation_among(scale, 2) for scale in scales]
    # the deviation of 4,000 draws is known to 2.5 % at most; 13 % is more than 5 of that
    assert narrow.std() == pytest.approx(deviations[0], rel=0.13)
    assert wide.std() == pytest.approx(deviations[1], rel=0.13)
    assert not none.any()
    assert deviations[2] == 0


def test_names_are_those_of_the_table():
    assert [law.name for law in LAWS.values()] == list(LAWS)
    assert all(law_named(name) is law for name, law in LAWS.items())
    assert {how.law for how in MECHANISMS.values()} <= set(LAWS.values())
    with pytest.raises(TypeError):
        LAWS["cauchy"] = law_named("laplace")


@pytest.mark.parametrize("name", ["cauchy", "Gaussian", "", None, 1, ["laplace"]])
def test_other_names_are_refused(name):
    with raises(CalibrationError, "gaussian", parameter="law"):
        law_named(name)


@every_law
def test_a_sum_of_several_noises_has_a_law(law):
    assert law.of_sum(1) is (LAPLACE if law in (BOX, STAIRCASE) else law)
    assert law.of_sum(2) is GAUSSIAN
    alone = law in (LAPLACE, STAIRCASE)  # drawn with no other
    assert (law.of_sum(1, members=3) is GAUSSIAN) != alone
