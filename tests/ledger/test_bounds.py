"""What fits in a budget, and what is left of it, checked against mpmath."""

import itertools
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.charging import ONE, PURE, affords, gaussian, pure, status

from dpframe.privacy.amounts import Budget, PrivacyLoss, exact
from dpframe.privacy.calibration import gaussian_mu

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


def log_delta_of(epsilon: float, rho: float) -> float:
    """Canonne, Kamath and Steinke 2020, Proposition 12, over a fine grid of orders."""
    beyond = np.exp(np.linspace(-20, 40, 60_001))
    logs = beyond * ((1 + beyond) * rho - epsilon) - np.log(beyond)
    return float((logs - (1 + beyond) * np.log1p(1 / beyond)).min())


def mu_of(epsilon):
    """The mu with Phi(mu / 2) - Phi(-mu / 2) = (exp(epsilon) - 1) / (exp(epsilon) + 1)."""
    return 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(epsilon / 2))


def honors(budget: Budget, losses: list[PrivacyLoss], moved: list[int], inflate: float = 1) -> bool:
    """Whether the total is within the budget with some pure losses moved into mu."""
    kept = sum((loss.epsilon for at, loss in enumerate(losses) if at not in moved), Fraction(0))
    epsilon = exact(budget.epsilon) - kept
    delta = exact(budget.delta) - sum((loss.delta for loss in losses), Fraction(0))
    if epsilon < 0 or delta < 0:
        return False
    squares = sum(real(loss.mu_squared) for loss in losses)
    as_mu = squares + sum(mu_of(real(losses[at].epsilon)) ** 2 for at in moved)
    if delta_of(real(epsilon), mp.sqrt(as_mu) * inflate) <= real(delta):
        return True
    rho = squares / 2 + sum(real(losses[at].epsilon) ** 2 / 2 for at in moved)
    tolerance = 1e-6 if inflate == 1 else -1e-6
    return log_delta_of(float(epsilon), float(rho)) <= math.log(delta or 1e-400) + tolerance


def subsets(losses: list[PrivacyLoss]) -> list[list[int]]:
    pures = [at for at, loss in enumerate(losses) if loss.epsilon]
    return [list(some) for n in range(len(pures) + 1) for some in itertools.combinations(pures, n)]


def random_ledgers(seed: int, count: int):
    """Mixtures of Laplace and Gaussian losses near the edge of random budgets."""
    source = random.Random(seed)
    for _ in range(count):
        budget = Budget(source.choice([0.1, 1, 3, 10]), source.choice([1e-9, 1e-6, 1e-3, 0.05]))
        losses = []
        for _ in range(source.randrange(1, 5)):
            before = status(budget, *losses)
            part = source.choice([0.2, 0.5, 0.9, 1, 1.1])
            if source.random() < 0.5:
                loss = pure(before.remaining_epsilon * part)
            else:
                loss = gaussian(before.remaining_mu * part)
            extra = Fraction(budget.delta) / 10 if source.random() < 0.2 else Fraction(0)
            losses.append(PrivacyLoss(loss.epsilon, loss.mu_squared, extra))
        yield budget, losses


def test_mixtures_fit_if_and_only_if_an_independent_computation_says_so():
    decisions = []
    for budget, losses in random_ledgers(seed=1, count=150):
        fits = affords(budget, losses)
        decisions.append(fits)
        if fits:
            assert any(honors(budget, losses, moved) for moved in subsets(losses))
        else:
            by_size = sorted(subsets(losses)[-1], key=lambda at, losses=losses: losses[at].epsilon)
            smallest_first = [by_size[:n] for n in range(len(by_size) + 1)]
            assert not any(honors(budget, losses, some, 1 + 1e-9) for some in smallest_first)
    assert 20 < sum(decisions) < 130


def test_a_pure_loss_is_hidden_by_the_gaussian_it_is_moved_into():
    for epsilon in (mp.mpf("0.01"), mp.mpf(1), mp.mpf(8)):
        mu = mu_of(epsilon)
        touched = 0
        for alpha in [mp.mpf(n) / 400 for n in range(1, 400)] + [1 / (1 + mp.exp(epsilon))]:
            quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * alpha)
            of_gaussian = mp.ncdf(quantile - mu)
            of_pure = max(1 - mp.exp(epsilon) * alpha, mp.exp(-epsilon) * (1 - alpha))
            assert of_gaussian <= of_pure + mp.mpf(10) ** -40
            touched += abs(of_gaussian - of_pure) < mp.mpf(10) ** -40
        assert touched >= 1


def test_the_ledger_is_never_looser_than_basic_composition():
    source = random.Random(2)
    for _ in range(100):
        budget = Budget(source.choice([0.5, 1, 7]), source.choice([0, 1e-9, 1e-6]))
        weights = [source.randrange(1, 9) for _ in range(source.randrange(1, 9))]
        epsilons = [exact(budget.epsilon) * weight / sum(weights) for weight in weights]
        laplace = [PrivacyLoss(epsilon=epsilon) for epsilon in epsilons]
        assert affords(budget, laplace)
        if budget.delta:
            mixed = [
                loss if source.random() < 0.5 else gaussian(gaussian_mu(epsilon, budget.delta))
                for loss, epsilon in zip(laplace, map(float, epsilons), strict=True)
            ]
            assert affords(budget, mixed)
        assert status(budget, *laplace).spent_epsilon <= budget.epsilon


def test_an_overspent_pure_budget_is_refused_to_the_last_bit():
    assert affords(PURE, [pure(0.1)] * 10)
    assert not affords(PURE, [*[pure(0.1)] * 10, pure(Fraction(1, 10**400))])
    assert not affords(PURE, [pure(1 + 2**-52)])
    assert not affords(PURE, [gaussian(1e-9)])
    assert not affords(PURE, [PrivacyLoss(delta=Fraction(1, 10**400))])


def test_extra_deltas_are_taken_off_the_budget():
    half = PrivacyLoss(delta=Fraction(1, 2 * 10**6))
    assert affords(ONE, [half, half, pure(1)])
    assert not affords(ONE, [half, half, PrivacyLoss(delta=Fraction(1, 10**400))])
    assert not affords(ONE, [half, half, gaussian(1e-9)])
    assert affords(ONE, [half, gaussian(gaussian_mu(1, 5e-7))])
    assert not affords(ONE, [half, gaussian(gaussian_mu(1, 6e-7))])


def test_gaussian_losses_add_up_like_squares():
    whole = gaussian_mu(1, 1e-6)
    assert affords(ONE, [gaussian(whole)])
    assert affords(ONE, [gaussian(whole / 4)] * 16)
    assert not affords(ONE, [gaussian(whole / 4)] * 17)
    assert not affords(ONE, [gaussian(math.nextafter(whole, 1))])
    assert not affords(ONE, [gaussian(whole), gaussian(1e-100)])


def test_what_remains_can_be_spent_and_not_more():
    for budget, losses in random_ledgers(seed=3, count=150):
        if not affords(budget, losses):
            losses.pop()
        if not affords(budget, losses):
            continue
        left = status(budget, *losses)
        assert affords(budget, [*losses, gaussian(left.remaining_mu)])
        assert not affords(budget, [*losses, gaussian(left.remaining_mu * (1 + 1e-12) + 1e-12)])
        assert affords(budget, [*losses, pure(left.remaining_epsilon)])
        more = pure(left.remaining_epsilon + 1e-8 * budget.epsilon)
        assert not affords(budget, [*losses, more])


def test_what_remains_after_laplace_alone_is_exact():
    left = status(PURE, *[pure(0.1)] * 9)
    assert (left.remaining_epsilon, left.remaining_mu) == (0.1, 0)
    assert left.remaining_share == 0.1
    assert left.spent_epsilon == 0.9
    assert status(PURE, pure(1)).remaining_epsilon == 0
    assert status(PURE, pure(Fraction(1, 3))).spent_epsilon == 1 / 3


def test_a_full_budget_remains_whole():
    left = status(ONE)
    assert left.remaining_mu == gaussian_mu(1, 1e-6)
    assert (left.remaining_epsilon, left.remaining_share, left.spent_epsilon) == (1, 1, 0)
    tiny = status(
        ONE, PrivacyLoss(mu_squared=Fraction(gaussian_mu(1, 1e-6)) ** 2 - Fraction(1, 10**700))
    )
    assert 0 <= tiny.remaining_mu < 1e-300


def test_spent_epsilon_covers_everything_spent():
    for budget, losses in random_ledgers(seed=4, count=60):
        if affords(budget, losses):
            spent = status(budget, *losses).spent_epsilon
            assert spent <= budget.epsilon * (1 + 1e-9)
            claim = Budget(spent, budget.delta) if spent or budget.delta else budget
            assert any(honors(claim, losses, moved) for moved in subsets(losses))


def test_with_delta_alone_nothing_is_lost_to_division_by_zero():
    left = status(Budget(0, 1e-3))
    assert left.remaining_share == 1
    assert affords(left.budget, [pure(left.remaining_epsilon)])
    assert left.remaining_epsilon > 1e-3
    assert status(Budget(0, 1e-3), pure(left.remaining_epsilon)).remaining_share == 0


def test_many_small_pure_losses_cost_less_than_their_sum():
    many = [pure(0.1)] * 200
    assert affords(Budget(10, 1e-6), many)
    assert status(Budget(10, 1e-6), *many).spent_epsilon < 10


def test_the_status_is_told_in_every_currency():
    left = status(ONE, pure(0.25), gaussian(0.1), PrivacyLoss(delta=Fraction(1, 10**7)))
    mu = mp.sqrt(mp.mpf("0.1") ** 2 + mu_of(mp.mpf("0.25")) ** 2)
    assert 0 <= left.spent_mu / mu - 1 < 1e-11
    rho = (mp.mpf("0.1") ** 2 + mp.mpf("0.25") ** 2) / 2
    assert 0 <= left.spent_rho / rho - 1 + mp.mpf(10) ** -15 < 1e-14
    assert left.spent_delta == 1e-7
    assert left.remaining_delta == 9e-7
    assert left.remaining_rho == pytest.approx(left.remaining_mu**2 / 2, rel=1e-12)
    assert left.remaining_rho <= Fraction(left.remaining_mu) ** 2 / 2 * (1 + Fraction(1, 2**50))
    nothing = status(ONE)
    assert (nothing.spent_mu, nothing.spent_rho, nothing.spent_delta) == (0, 0, 0)
    assert nothing.remaining_delta == 1e-6
    assert status(PURE).remaining_rho == 0
