"""What fits in a budget, and what is left of it, checked against mpmath."""

import random
from fractions import Fraction

import mpmath
import pytest
from support.charging import ONE, PURE, affords, gaussian, pure, status

from dpframe.privacy.amounts import Budget, PrivacyLoss, below, exact, root_below
from dpframe.privacy.gaussian import gaussian_mu
from dpframe.privacy.pots import settle_pots

mp = mpmath.mp.clone()
mp.dps = 50


def real(value: float | Fraction) -> mpmath.mpf:
    return mp.mpf(Fraction(value).numerator) / Fraction(value).denominator


def delta_of(epsilon, mu):
    """Balle and Wang 2018, Theorem 8, as it is written."""
    if mu == 0:
        return mp.mpf(0)
    above, below = mp.ncdf(mu / 2 - epsilon / mu), mp.ncdf(-mu / 2 - epsilon / mu)
    return above - mp.exp(epsilon) * below


def mu_of(epsilon):
    """The mu with Phi(mu / 2) - Phi(-mu / 2) = (exp(epsilon) - 1) / (exp(epsilon) + 1)."""
    return 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(epsilon / 2))


def divergence_of(epsilon, order):
    """Renyi divergence of randomized response, as it is defined."""
    likely = 1 / (1 + mp.exp(-epsilon))
    other = 1 - likely
    return mp.log(likely**order * other ** (1 - order) + other**order * likely ** (1 - order)) / (
        order - 1
    )


def log_delta_of(epsilon, divergence, order):
    """Canonne, Kamath and Steinke 2020, Proposition 12, as it is written."""
    return (order - 1) * (divergence - epsilon) - mp.log(order - 1) + order * mp.log(1 - 1 / order)


def kept_by_a_pot(budget: Budget, losses: list[PrivacyLoss], inflate: float = 1) -> bool:
    """Whether one pot alone promises its part of delta, by the formulas of the proof."""
    epsilon, delta = real(exact(budget.epsilon)), real(exact(budget.delta))
    pures = [real(loss.epsilon) for loss in losses if loss.epsilon]
    square = mp.fsum(real(loss.mu_squared) for loss in losses) * inflate
    if not square and mp.fsum(pures) <= epsilon:
        return True
    moved = square + mp.fsum(mu_of(e) ** 2 for e in pures) * inflate
    small = not losses[0].mu_squared and real(losses[0].epsilon) <= epsilon / 14
    settled = settle_pots(budget)
    _, gaussian_pot, *others = settled.many if small else settled.pots
    if delta_of(epsilon, mp.sqrt(moved)) <= delta * real(gaussian_pot.part):
        return True
    for pot in others:
        order = real(pot.order)
        divergence = order * square / 2 + mp.fsum(divergence_of(e, order) for e in pures) * inflate
        if log_delta_of(epsilon, divergence, order) <= mp.log(delta * real(pot.part)):
            return True
    return False


def random_ledgers(seed: int, count: int):
    """Mixtures of Laplace and Gaussian losses near the edge of random budgets."""
    source = random.Random(seed)
    for _ in range(count):
        budget = Budget(source.choice([0.1, 1, 3, 10]), source.choice([1e-9, 1e-6, 1e-3, 0.05]))
        first = pure(budget.epsilon * source.choice([0.01, 0.05, 0.08]))
        losses = [first] if source.random() < 0.5 else []
        pots = settle_pots(budget).plus(*losses)
        for _ in range(source.randrange(2, 6)):
            part = source.choice([0.2, 0.5, 0.9, 0.999])
            most = pots.spare
            if source.random() < 0.5:
                loss = pure(below(most.epsilon) * part)
            else:
                loss = gaussian(root_below(most.mu_squared) * part)
            pots = pots.plus(loss)
            losses.append(loss)
        most = pots.spare
        edge = source.choice([0.99, 1.01])
        last = gaussian(root_below(most.mu_squared) * edge), pure(below(most.epsilon) * edge)
        yield budget, [*losses, source.choice(last)]


def test_mixtures_fit_if_and_only_if_an_independent_computation_says_so():
    decisions = []
    for budget, losses in random_ledgers(seed=1, count=120):
        fits = affords(budget, losses)
        decisions.append(fits)
        if fits:
            assert kept_by_a_pot(budget, losses)
        else:
            assert not kept_by_a_pot(budget, losses, 1 + 1e-9)
    assert 20 < sum(decisions) < 100


def test_losses_of_one_kind_fit_wherever_their_epsilons_add_up():
    source = random.Random(2)
    for _ in range(60):
        budget = Budget(source.choice([0.5, 1, 7]), source.choice([0, 1e-9, 1e-6]))
        weights = [source.randrange(1, 9) for _ in range(source.randrange(1, 9))]
        epsilons = [exact(budget.epsilon) * weight / sum(weights) for weight in weights]
        assert affords(budget, [PrivacyLoss(epsilon=epsilon) for epsilon in epsilons])
    for budget in (Budget(0.5, 1e-9), ONE, Budget(7, 1e-6)):
        for number in range(1, 9):
            part = gaussian(gaussian_mu(budget.epsilon / number, budget.delta))
            assert affords(budget, [part] * number)


def test_an_overspent_pure_budget_is_refused_to_the_last_bit():
    assert affords(PURE, [pure(0.1)] * 10)
    assert not affords(PURE, [*[pure(0.1)] * 10, pure(Fraction(1, 10**400))])
    assert not affords(PURE, [pure(1 + 2**-52)])
    assert not affords(PURE, [gaussian(1e-9)])
    assert not affords(PURE, [PrivacyLoss(delta=Fraction(1, 10**400))])


ADDED = [  # percent
    (ONE, 1.08),
    (Budget(3, 1e-6), 0.92),
    (Budget(1, 1e-9), 0.67),
    (Budget(0.5, 1e-5), 1.48),
    (Budget(8, 1e-6), 0.75),
]


def test_what_remains_after_laplace_alone_is_exact():
    left = status(PURE, *[pure(0.1)] * 9)
    assert (left.remaining_epsilon, left.remaining_mu) == (0.1, 0)
    assert left.used == 0.9
    assert status(PURE, pure(1)).remaining_epsilon == 0
    assert status(PURE, pure(Fraction(1, 3))).spent.epsilon == Fraction(1, 3)


def test_a_full_budget_remains_whole():
    left = status(ONE)
    assert left.remaining_mu == gaussian_mu(1, 1e-6)
    assert (left.remaining_epsilon, left.remaining_share, left.used) == (1, 1, 0)
    most = settle_pots(ONE).pots[1].limit
    tiny = status(ONE, PrivacyLoss(mu_squared=most - Fraction(1, 10**700)))
    assert 0 <= tiny.remaining_mu < 1e-70


def test_with_delta_alone_nothing_is_lost_to_division_by_zero():
    left = status(Budget(0, 1e-3))
    assert (left.remaining_share, left.used) == (1, 0)
    assert affords(left.budget, [pure(left.remaining_epsilon)])
    assert left.remaining_epsilon > 1e-3
    assert status(Budget(0, 1e-3), pure(left.remaining_epsilon)).remaining_epsilon < 1e-8


def test_the_status_says_what_is_left_in_every_currency():
    budget = Budget(1, 1e-6, discovery=3e-7)
    left = status(budget, pure(0.25), gaussian(0.05), PrivacyLoss(delta=Fraction(1, 10**7)))
    assert left.spent == PrivacyLoss(Fraction(1, 4), Fraction(0.05) ** 2, Fraction(1, 10**7))
    assert left.remaining_delta == 2e-7
    assert left.remaining_rho == pytest.approx(left.remaining_mu**2 / 2, rel=1e-12)
    assert left.remaining_rho <= Fraction(left.remaining_mu) ** 2 / 2 * (1 + Fraction(1, 2**50))
    assert status(ONE).remaining_delta == 0
    assert status(PURE).remaining_rho == 0
