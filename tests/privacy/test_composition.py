"""Composition, checked against mpmath, against itself in one piece, and against dp_accounting."""

import importlib
import itertools
import logging
import math
import random
import sys
from fractions import Fraction

import mpmath
import pytest
from support.charging import gaussian, pure

from dpframe.errors import DPFrameError
from dpframe.ledger.events import dp_event
from dpframe.privacy.amounts import Budget, PrivacyLoss
from dpframe.privacy.calibration import gaussian_epsilon, gaussian_mu, mu_of_pure
from dpframe.privacy.composition import Composition, concentrated_epsilon, concentrated_rho
from dpframe.privacy.rounding import above, below, root_above, root_below

mp = mpmath.mp.clone()
mp.dps = 40

STEP = 1e-3  # of the discretization of dp_accounting; each loss is off by at most one step


def composed(*losses: PrivacyLoss) -> Composition:
    return Composition().plus(*losses)


def delta_of_order(order, epsilon, rho):
    """Canonne, Kamath and Steinke 2020, Proposition 12, as it is written."""
    epsilon, rho = mp.mpf(epsilon), mp.mpf(rho)
    exponent = (order - 1) * (order * rho - epsilon)
    return mp.exp(exponent) / (order - 1) * (1 - 1 / order) ** order


def least_delta(epsilon, rho):
    """The best order, found anew."""
    log_delta = lambda t: mp.log(delta_of_order(1 + mp.exp(t), epsilon, rho))  # noqa: E731
    start = min((mp.mpf(n) / 4 for n in range(-200, 400)), key=log_delta)
    low, high = start - mp.mpf(1) / 4, start + mp.mpf(1) / 4
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return mp.exp(log_delta((low + high) / 2))


CURVES = [
    (1.0, 1e-6),
    (0.1, 1e-9),
    (8.0, 1e-3),
    (0.003, 1e-12),
    (0.0, 0.3),
    (3.0, 0.9),
    (1e3, 1e-6),
]


@pytest.mark.parametrize(("epsilon", "delta"), CURVES)
def test_concentrated_privacy_is_converted_tightly_and_on_the_safe_side(epsilon, delta):
    rho = concentrated_rho(epsilon, delta)
    assert least_delta(epsilon, rho) <= delta
    assert least_delta(epsilon, rho * (1 + 1e-7)) > delta
    back = concentrated_epsilon(delta, rho)
    assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-11)
    assert least_delta(back, rho) <= delta


def test_concentrated_privacy_needs_a_delta():
    assert (concentrated_rho(1, 0), concentrated_epsilon(0, 1)) == (0, math.inf)
    assert concentrated_epsilon(1e-6, 0) == concentrated_epsilon(0, 0) == 0


def test_a_pure_loss_is_concentrated_as_bun_and_steinke_say():
    for epsilon in (mp.mpf("0.01"), mp.mpf(1), mp.mpf(6)):
        p = 1 / (1 + mp.exp(-epsilon))
        for order in (mp.mpf("1.001"), mp.mpf(2), mp.mpf(30), mp.mpf(1000)):
            moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            assert mp.log(moment) / (order - 1) <= order * epsilon**2 / 2
    nearly = mp.mpf("1e-4")
    p = 1 / (1 + mp.exp(-nearly))
    divergence = mp.log(p**2 / (1 - p) + (1 - p) ** 2 / p)
    assert divergence > 0.999 * nearly**2


def random_losses(seed: int, count: int) -> list[PrivacyLoss]:
    source = random.Random(seed)
    losses = []
    for _ in range(count):
        epsilon = Fraction(source.choice([0, 1, 1, 2, source.randrange(1, 50)]), 700)
        square = Fraction(source.randrange(3), 10**4)
        losses.append(PrivacyLoss(epsilon, square, Fraction(source.randrange(2), 10**9)))
    return losses


def test_losses_added_one_by_one_are_what_they_are_all_at_once():
    losses = random_losses(seed=5, count=300)
    grown = Composition()
    for number, loss in enumerate(losses, start=1):
        grown = grown.plus(loss)
        if number in (1, 31, 32, 33, 34, 65, 66, 150, 300):
            assert grown == composed(*losses[:number])
            assert grown == Composition().plus(*losses[: number // 2]).plus(
                *losses[number // 2 : number]
            )


def test_splits_move_the_smallest_losses():
    losses = random_losses(seed=6, count=120)
    epsilons = sorted(loss.epsilon for loss in losses if loss.epsilon)
    squares = sum(loss.mu_squared for loss in losses)
    splits = list(composed(*losses).splits())
    assert len(splits) == 33
    assert [split.number for split in splits] == [n * len(epsilons) // 32 for n in range(33)]
    for split in splits:
        smallest = epsilons[: split.number]
        assert split.kept == sum(epsilons[split.number :])
        assert split.rho_doubled == squares + sum(epsilon**2 for epsilon in smallest)
        assert split.mu_squared == squares + sum(
            Fraction(mu_of_pure(epsilon)) ** 2 for epsilon in smallest
        )


def test_few_losses_are_moved_in_all_numbers():
    for count in range(33):
        assert len(list(composed(*[pure(0.1)] * count).splits())) == count + 1


def test_many_small_pure_losses_are_counted_as_concentrated():
    many = composed(*[pure(0.01)] * 100)
    assert many.epsilon_at(1e-6) == pytest.approx(
        concentrated_epsilon(1e-6, 100 * 0.01**2 / 2), rel=1e-9
    )
    as_gaussian = gaussian_epsilon(1e-6, root_above(list(many.splits())[-1].mu_squared))
    assert many.epsilon_at(1e-6) < 0.9 * as_gaussian
    assert many.fits(Budget(0.43, 1e-6))
    assert not many.fits(Budget(0.429, 1e-6))


def test_what_is_spare_fits_and_not_more_among_many_losses():
    source = random.Random(7)
    for _ in range(12):
        budget = Budget(1, source.choice([1e-9, 1e-6, 1e-3]))
        losses = [pure(source.choice([0.001, 0.004])) for _ in range(source.randrange(1, 60))]
        losses += [gaussian(0.02)] * source.randrange(4)
        spent = composed(*losses)
        assert spent.fits(budget)
        mu_squared = spent.spare_mu_squared(budget)
        assert spent.plus(PrivacyLoss(mu_squared=mu_squared)).fits(budget)
        assert not spent.plus(PrivacyLoss(mu_squared=mu_squared + Fraction(1, 10**20))).fits(budget)
        epsilon = spent.spare_epsilon(budget)
        assert spent.plus(pure(epsilon)).fits(budget)
        assert not spent.plus(pure(epsilon + 1e-8)).fits(budget)


def test_rounding_goes_both_ways():
    third = Fraction(1, 3)
    assert (below(third), above(third)) == (1 / 3, 1 / 3)  # the float stands for the fraction
    odd = third + Fraction(1, 10**30)
    assert Fraction(below(odd)) < odd < Fraction(above(odd))
    assert math.nextafter(below(odd), 1) == above(odd)
    assert root_below(Fraction(2)) ** 2 < 2 < Fraction(root_above(Fraction(2))) ** 2
    assert root_below(Fraction(9)) == root_above(Fraction(9)) == 3


# Mixtures: epsilons with how often each, mus with how often each.
MIXTURES = {
    "one Laplace": ([(0.7, 1)], []),
    "many Laplace": ([(0.1, 100)], []),
    "many small Laplace": ([(0.01, 100)], []),
    "few Laplace": ([(0.5, 10)], []),
    "unequal Laplace": ([(1.3, 1), (0.2, 7), (0.03, 20)], []),
    "one each": ([(1.0, 1)], [(0.2367, 1)]),
    "few each": ([(0.3, 1), (0.1, 2), (0.03, 5)], [(0.1, 1), (0.05, 2)]),
    "mostly Gaussian": ([(0.02, 5)], [(0.2, 1)]),
    "mostly Laplace": ([(0.01, 100)], [(0.05, 1)]),
    "large": ([(1.0, 3)], [(1.0, 1)]),
}
DELTAS = [1e-3, 1e-6, 1e-9]


def losses_of(name: str) -> list[PrivacyLoss]:
    laplace, gaussians = MIXTURES[name]
    found = [pure(epsilon) for epsilon, count in laplace for _ in range(count)]
    return found + [gaussian(mu) for mu, count in gaussians for _ in range(count)]


@pytest.fixture(scope="module")
def distributions():
    """The module of privacy loss distributions of dp_accounting, which logs what it chooses."""
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    logging.getLogger().addFilter(lambda record: "Connect-the-Dots" not in record.getMessage())
    return module


def distribution(module, name: str, *, pessimistic: bool):
    """Compose by privacy loss distributions, rounded all up or all down."""
    options = {
        "value_discretization_interval": STEP,
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
    }
    laplace, gaussians = MIXTURES[name]
    parts = [
        module.from_laplace_mechanism(1 / epsilon, **options).self_compose(count)
        for epsilon, count in laplace
    ]
    if gaussians:
        mu = math.sqrt(sum(mu**2 * count for mu, count in gaussians))
        parts.append(module.from_gaussian_mechanism(1 / mu, **options))
    total, *others = parts
    for part in others:
        total = total.compose(part)
    return total


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("name", MIXTURES)
def test_no_less_is_counted_than_is_spent_and_no_more_than_by_adding(distributions, name, delta):
    ours = composed(*losses_of(name)).epsilon_at(delta)
    least = distribution(distributions, name, pessimistic=False).get_epsilon_for_delta(delta)
    most = distribution(distributions, name, pessimistic=True).get_epsilon_for_delta(delta)
    assert least <= most
    assert ours >= least
    laplace, gaussians = MIXTURES[name]
    mu = math.sqrt(sum(mu**2 * count for mu, count in gaussians))
    added = sum(epsilon * count for epsilon, count in laplace)
    added += gaussian_epsilon(delta, mu) if mu else 0
    assert ours <= added * (1 + 1e-12)
    slack = 1.25 if delta == 1e-3 else 1.15  # what was measured, and some
    assert ours <= most * slack


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("mus", [[0.3], [0.1, 0.2, 0.05], [0.9, 0.5], [0.02] * 50])
def test_gaussian_losses_alone_are_counted_exactly(distributions, mus, delta):
    ours = composed(*map(gaussian, mus)).epsilon_at(delta)
    mu = math.hypot(*mus)
    bounds = [
        distributions.from_gaussian_mechanism(
            1 / mu,
            value_discretization_interval=STEP / 10,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        ).get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    ]
    assert bounds[0] <= ours <= bounds[1] * (1 + 1e-9)
    assert bounds[1] - bounds[0] < 2e-4 * 1.5


def test_one_pure_loss_is_never_more_than_itself():
    for epsilon, delta in itertools.product((0.1, 1, 5), (0, 1e-9, 1e-3)):
        assert composed(pure(epsilon)).epsilon_at(delta) <= epsilon
        assert composed(pure(epsilon)).fits(Budget(epsilon, delta))


def accountant(event):
    module = importlib.import_module("dp_accounting.pld.pld_privacy_accountant")
    return module.PLDAccountant(value_discretization_interval=STEP).compose(event)


def test_events_say_the_same_to_an_accountant(distributions):

    for name in ("few each", "many Laplace"):
        event = dp_event(losses_of(name))
        theirs = accountant(event).get_epsilon(1e-6)
        direct = distribution(distributions, name, pessimistic=True).get_epsilon_for_delta(1e-6)
        assert theirs == pytest.approx(direct, abs=20 * STEP)
        assert theirs <= composed(*losses_of(name)).epsilon_at(1e-6)


def test_events_name_noise_multipliers_and_group_equal_losses(distributions):

    events = importlib.import_module("dp_accounting.dp_event")
    both = gaussian(0.25) + pure(0.5)
    found = dp_event([gaussian(0.25), pure(0.125), gaussian(0.25), both])
    assert found == events.ComposedDpEvent(
        [
            events.SelfComposedDpEvent(events.GaussianDpEvent(4.0), 2),
            events.LaplaceDpEvent(8.0),
            events.GaussianDpEvent(4.0),
            events.LaplaceDpEvent(2.0),
        ]
    )
    assert dp_event([]) == events.NoOpDpEvent()


def test_an_extra_delta_is_never_forgotten(distributions):

    events = importlib.import_module("dp_accounting.dp_event")
    found = dp_event([PrivacyLoss(delta=Fraction(1, 10**7)) + gaussian(0.5)])
    if hasattr(events, "EpsilonDeltaDpEvent"):
        assert events.EpsilonDeltaDpEvent(0.0, 1e-7) in found.events
    else:
        with pytest.raises(Exception, match="Unsupported"):
            accountant(found)


def test_events_without_dp_accounting_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(DPFrameError, match=r"pip install 'dpframe\[accounting\]'"):
        dp_event([gaussian(1)])


def test_a_mixture_can_spend_what_adding_would_refuse():
    budget = Budget(1, 1e-6)
    mu = gaussian_mu(0.5, 1e-6)
    spent = composed(*[pure(0.01)] * 50, gaussian(mu))
    assert spent.epsilon_at(1e-6) < 0.7
    assert spent.plus(*[pure(0.01)] * 50).fits(budget)
