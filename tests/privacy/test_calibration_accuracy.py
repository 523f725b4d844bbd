"""Every calibrated number against mpmath at 60 digits or more: accurate to 1e-12, never unsafe."""

import math
import random
from fractions import Fraction

import mpmath as mp
import pytest

from dpframe.privacy.amounts import exact, float_below
from dpframe.privacy.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    mu_of_pure,
    pure_of_mu,
)

DIGITS = 60
TOLERANCE = 1e-12
SEEDS = range(8)
POINTS_PER_SEED = 500  # 4,000 points in all


def digits_for(mu: float) -> int:
    """Decimal digits at which the textbook difference keeps `DIGITS`: it loses those of x / mu."""
    return DIGITS + 10 + max(0, math.ceil(-math.log10(mu)))


def curve(epsilon: mp.mpf | float, mu: mp.mpf | float) -> mp.mpf:
    """The textbook delta(epsilon, mu), by complementary error functions."""
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    if epsilon == 0:
        return mp.erf(mu / mp.sqrt(8))
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return (mp.erfc(near / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(far / mp.sqrt(2))) / 2


def curve_by_ncdf(epsilon: float, mu: float) -> mp.mpf:
    """The textbook delta(epsilon, mu), for any sign of epsilon."""
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def budgets(seed: int) -> list[tuple[float, float]]:
    """Random (epsilon, delta): epsilon 0 or log-uniform, delta log-uniform below 1/2 or above."""
    rng = random.Random(seed)
    return [
        (
            0.0 if rng.random() < 0.1 else 10 ** rng.uniform(-10, 4),
            10 ** rng.uniform(-300, math.log10(0.5))
            if rng.random() < 0.75
            else rng.uniform(0.5, 0.999),
        )
        for _ in range(POINTS_PER_SEED)
    ]


@pytest.mark.sampled(every=9)
@pytest.mark.parametrize("seed", SEEDS)
def test_mu_is_safe_and_within_1e_12_of_the_root(seed: int) -> None:
    for epsilon, delta in budgets(seed):
        mu = gaussian_mu(epsilon, delta)
        with mp.workdps(digits_for(mu)):
            assert curve(epsilon, mu) <= delta, (epsilon, delta)
            assert curve(epsilon, mp.mpf(mu) * (1 + mp.mpf(TOLERANCE))) > delta, (epsilon, delta)


@pytest.mark.parametrize("seed", SEEDS)
def test_epsilon_is_safe_and_uses_delta_up(seed: int) -> None:
    for epsilon, delta in budgets(seed + 100)[:150]:
        mu = gaussian_mu(epsilon, delta) * 1.37
        found = gaussian_epsilon(delta, mu)
        if found == 0:
            assert curve(0, mu) <= delta
            continue
        with mp.workdps(digits_for(mu)):
            reached = curve(found, mu)
            slack = (delta - reached) / min(delta, 1 - delta)
            # near epsilon = 1e4 one unit in the last place of epsilon moves delta by about 1e-12
            assert 0 <= slack < 1e-11, (delta, mu)


def random_curve_points(seed: int, count: int) -> list[tuple[float, float]]:
    """Random (epsilon, mu) of either sign of epsilon, most where delta is neither 0 nor 1."""
    rng = random.Random(seed)
    points = []
    for _ in range(count):
        epsilon = 10 ** rng.uniform(-8, 4)
        x = rng.uniform(-7, 36)
        mu = math.hypot(x, math.sqrt(2 * epsilon)) - x
        points.append((epsilon, mu if rng.random() < 0.8 else 10 ** rng.uniform(-6, 2)))
        if rng.random() < 0.25:
            points.append((-points[-1][0], points[-1][1]))
    return [(epsilon, mu) for epsilon, mu in points if mu > 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_delta_is_a_tight_upper_bound(seed: int) -> None:
    for epsilon, mu in random_curve_points(seed, 150):
        computed = gaussian_delta(epsilon, mu)
        with mp.workdps(digits_for(mu) + 20):
            exact = curve_by_ncdf(epsilon, mu)
            smaller = min(exact, 1 - exact)
            unit = math.ulp(computed)
            # nearly all of the allowance of 2**-44 is left: the computation itself errs by 1e-14
            allowance = mp.mpf(2) ** -44
            assert (allowance - 1e-14) * smaller - unit <= computed - exact, (epsilon, mu)
            assert 0 <= computed - exact <= (allowance + 1e-14) * smaller + unit, (epsilon, mu)


def test_delta_is_the_integral_of_the_density_over_mu() -> None:
    # d delta / d mu = phi(epsilon / mu - mu / 2): a route that shares nothing with the code
    for epsilon, mu in [(0.31, 0.17), (1.0, 0.2367), (2.5, 3.1), (9.0, 1.9), (40.0, 11.0)]:
        with mp.workdps(30):
            exact = mp.quad(
                lambda m, e=epsilon: mp.npdf(e / m - m / 2) if m > 0 else mp.mpf(0),
                mp.linspace(0, mu, 9),
            )
            assert abs(gaussian_delta(epsilon, mu) / exact - 1) < 2e-13


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-300, 1e-20, 1e-10, 0.7, 37.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("delta", [5e-324, 3e-310, 1e-300, 1e-9, 0.5, 0.93, 1 - 1e-12, 1 - 2**-53])
def test_mu_is_safe_at_the_ends_of_the_floats(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert mu > 0
    with mp.workdps(digits_for(mu) + 30):
        assert curve(epsilon, mu) <= delta
        # at mu of a few units of 5e-324, the next float may already be too much
        more = max(mp.mpf(mu) * (1 + mp.mpf(TOLERANCE)), mp.mpf(mu) + 2 * mp.mpf(math.ulp(mu)))
        assert curve(epsilon, more) > float_below(exact(delta))


def pure_excess(epsilon: mp.mpf | float, mu: mp.mpf | float) -> mp.mpf:
    """log(Phi(mu/2) / Phi(-mu/2)) - epsilon: >= 0 where epsilon-DP implies mu-GDP."""
    root = mp.mpf(mu) / mp.sqrt(8)
    return mp.log1p(2 * mp.erf(root) / mp.erfc(root)) - epsilon


PURE = [10**power * 1.37 for power in range(-12, 11)] + [0.9999, 1.0001, 2.9, 36.5, 709.0, 746.0]


@pytest.mark.parametrize("epsilon", PURE)
def test_mu_of_pure_is_safe_and_tight(epsilon: float) -> None:
    mu = mu_of_pure(epsilon)
    with mp.workdps(DIGITS):
        assert pure_excess(epsilon, mu) >= 0
        assert pure_excess(epsilon, mp.mpf(mu) * (1 - mp.mpf(TOLERANCE))) < 0


@pytest.mark.parametrize("mu", [value for value in PURE if value < 1e4])
def test_pure_of_mu_is_safe_and_tight(mu: float) -> None:
    epsilon = pure_of_mu(mu)
    with mp.workdps(DIGITS):
        assert pure_excess(epsilon, mu) >= 0
        assert pure_excess(mp.mpf(epsilon) * (1 + mp.mpf(TOLERANCE)), mu) < 0


def test_conversions_stay_safe_among_subnormal_numbers() -> None:
    ratio = mp.sqrt(mp.pi / 2)  # mu / epsilon as both tend to 0
    for units in [*range(1, 200), 12345, 2**40 + 1]:
        value = units * 5e-324
        assert mu_of_pure(value) >= ratio * mp.mpf(value)
        # a fraction that rounds down to that float
        fraction = Fraction(value) + Fraction(49, 100) * Fraction(5e-324)
        assert mu_of_pure(fraction) >= ratio * (mp.mpf(value) + 0.49 * mp.mpf(5e-324))
        assert pure_of_mu(value) <= mp.mpf(value) / ratio


NEAR_1 = [1 - units * 2.0**-53 for units in (5, 6, 7)]
SUBNORMAL = [units * 5e-324 for units in (1, 9, 11)]


# all of these floats but one are above the fractions that they stand for
@pytest.mark.parametrize("delta", [*NEAR_1, *SUBNORMAL, 0.1, Fraction(2, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 9 * 5e-324, 0.1, Fraction(1, 3)])
def test_mu_and_epsilon_are_safe_for_the_fractions_that_are_charged(epsilon, delta) -> None:
    level, mass = exact(epsilon), exact(delta)
    mu = gaussian_mu(epsilon, delta)
    with mp.workdps(digits_for(mu) + 20):
        most = mp.mpf(mass.numerator) / mass.denominator
        assert curve(mp.mpf(level.numerator) / level.denominator, mu) <= most
    if isinstance(delta, float) and mu > 1e-300:
        found = exact(gaussian_epsilon(delta, 1.37 * mu))
        with mp.workdps(digits_for(mu) + 20):
            assert curve(mp.mpf(found.numerator) / found.denominator, 1.37 * mu) <= most
