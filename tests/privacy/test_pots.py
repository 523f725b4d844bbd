"""Pots: what fits, in which order, and never again."""

import random
from fractions import Fraction

import pytest
from support.charging import ONE, PURE, affords, gaussian, pure

from dpframe.privacy.amounts import Budget, PrivacyLoss, exact, float_below
from dpframe.privacy.gaussian import gaussian_mu, mu_of_pure
from dpframe.privacy.pots import GaussianPot, PurePot, RenyiPot, settle_pots
from dpframe.privacy.renyi import pure_of_divergence, renyi_limit

BUDGETS = [
    ONE,
    Budget(3, 1e-6),
    Budget(1, 1e-9),
    Budget(0.5, 1e-5),
    Budget(8, 1e-6),
    Budget(0.01, 1e-6),
    Budget(100, 1e-9),
    Budget(0.1, 0.1),
    Budget(1, 0.5),
    Budget(0, 1e-3),
    PURE,
    Budget(1, 1e-6, discovery=5e-7),
]
A_LITTLE = Fraction(1, 2**30)
ALL = pytest.mark.parametrize("budget", BUDGETS, ids=str)


def whole(budget: Budget) -> PrivacyLoss:
    return PrivacyLoss(mu_squared=settle_pots(budget).largest_mu_squared)


def random_losses(seed: int, number: int) -> list[PrivacyLoss]:
    source = random.Random(seed)
    kinds = [lambda: pure(source.randrange(1, 60) / 1000), lambda: gaussian(source.random() / 30)]
    return [source.choice(kinds)() for _ in range(number)]


@ALL
def test_a_loss_fits_where_one_pot_is_within_its_limit_afterwards(budget):
    first, *others = random_losses(5, 300)
    pots, refused = settle_pots(budget).plus(first), 0
    for loss in (*others, pure(1000)):
        after = pots.plus(loss)
        fits = any(had is not None for had in after.sums)
        assert pots.fits(loss) == fits
        refused += not fits
        pots = after
    assert refused


def test_the_pots_of_a_budget():
    first, second, *others = settle_pots(ONE).pots
    assert first == PurePot(Fraction(1))
    assert second == GaussianPot(Fraction(4, 5), Fraction(gaussian_mu(1, 8e-7)) ** 2)
    assert all(isinstance(pot, RenyiPot) for pot in others)
    assert [float(pot.order) for pot in others] == [28.4, 44.4, 70.4, 112, 179, 285]
    assert sum(pot.part for pot in (second, *others)) == 1


@ALL
def test_parts_of_delta_add_up_to_no_more_than_what_is_not_kept_for_discovery(budget):
    pots = settle_pots(budget)
    assert sum(getattr(pot, "part", 0) for pot in pots.pots) in (0, 1)
    assert sum(getattr(pot, "part", 0) for pot in pots.many) in (0, 1)
    assert budget.noise_delta + pots.discovery == exact(budget.delta)
    for pot in (*pots.pots, *pots.many):
        if isinstance(pot, GaussianPot):
            alone = gaussian_mu(budget.epsilon, float(budget.noise_delta * pot.part))
            assert float(pot.limit) == pytest.approx(alone**2, rel=1e-12)
        elif isinstance(pot, RenyiPot):
            own = float(budget.noise_delta * pot.part)
            alone = renyi_limit(budget.epsilon, own, pot.order)
            assert float(pot.limit) == pytest.approx(float(alone), rel=1e-9)


def test_the_pots_of_many_small_releases():
    pots = settle_pots(ONE)
    first, second, most, *others = pots.many
    assert (first, pots.small) == (pots.pots[0], Fraction(1, 14))
    assert second == GaussianPot(Fraction(2901, 5000), Fraction(gaussian_mu(1, 5.802e-7)) ** 2)
    assert (float(most.order), float(most.part)) == (26, 0.3738)
    assert [pot.order for pot in others] == [pot.order for pot in pots.pots[3:]]
    assert sum(pot.part for pot in (second, most, *others)) == 1


@ALL
def test_pots_of_many_small_releases_give_up_little_and_one_order_gains(budget):
    pots = settle_pots(budget)
    if not pots.many:
        assert not budget.noise_delta or len(pots.pots) == 2
        return
    before = {getattr(pot, "order", None): pot for pot in pots.pots[1:]}
    _, gaussian_pot, most, *others = pots.many
    for pot in (gaussian_pot, *others):
        had = before[getattr(pot, "order", None)]
        kept = pot.limit / had.limit
        assert Fraction(197, 200) ** (2 if pot is gaussian_pot else 1) * (1 - 1e-9) <= kept <= 1
        assert pot.part <= had.part + Fraction(1, 10**4)
    assert most.part > 1 / 30


@ALL
def test_the_first_charge_settles_which_pots_there_are(budget):
    pots = settle_pots(budget)
    small, sets = pots.small, (pots.pots, pots.many or pots.pots)
    firsts = [
        (pure(small), bool(small)),
        (PrivacyLoss(small * (1 + A_LITTLE) + Fraction(1, 10**300)), False),
        (gaussian(1e-9), False),
        (pure(small / 2) + gaussian(1e-9), False),
        (PrivacyLoss(), False),
    ]
    for first, is_small in firsts:
        after = pots.plus(first)
        assert (after.pots, after.many) == (sets[is_small], ())
        for later in (pure(small / 3), gaussian(1e-9), pure(1000)):
            assert after.plus(later).pots == after.pots
        if pots.fits(first) and first.epsilon:
            assert any(True for _ in after.live)


def test_what_does_not_fit_after_a_small_first_charge():
    """One set of pots cannot be changed for the other one."""
    pots = settle_pots(ONE)
    after = pots.plus(pure(1e-9))
    limit = after.pots[1].limit
    assert limit < pots.pots[1].limit
    assert after.fits(PrivacyLoss(mu_squared=limit * (1 - A_LITTLE)))
    for mu_squared in (limit, pots.pots[1].limit, pots.largest_mu_squared):
        assert not after.fits(PrivacyLoss(mu_squared=mu_squared))


# (epsilon, delta): of the best filter for equal pure losses, at n = 20, 50, 200, 1000
KNOWN = {
    Budget(1, 1e-6): (0.955, 0.961, 0.957, 0.955),
    Budget(3, 1e-6): (0.953, 0.969, 0.965, 0.963),
    Budget(1, 1e-9): (1, 0.981, 0.978, 0.976),
}


@pytest.mark.parametrize("budget", KNOWN, ids=str)
def test_many_small_releases_nearly_fill_the_best_filter_for_their_number(budget):
    """Where each order has all of delta, the best one for n is the best filter that is known."""
    orders = [1 + Fraction(k * k, 400) for k in range(9, 400, 2)]
    delta = float_below(budget.noise_delta)
    limits = [(order, renyi_limit(budget.epsilon, delta, order)) for order in orders]
    for n, least in zip((20, 50, 200, 1000), KNOWN[budget], strict=True):
        each = (pure_of_divergence(limit / n, order) for order, limit in limits if limit > 0)
        best = max(exact(budget.epsilon) / n, *each)
        loss = PrivacyLoss(epsilon=best * exact(least))
        pots = settle_pots(budget).begun_with(loss)
        assert any(True for _ in pots.filled([(pots.price(loss), n)]).live)


def test_without_delta_or_epsilon_there_are_fewer_pots():
    assert settle_pots(PURE).pots == (PurePot(Fraction(1)),)
    assert settle_pots(Budget(1, 1e-6, discovery=1e-6)).pots == (PurePot(Fraction(1)),)
    assert [pot.kind for pot in settle_pots(Budget(0, 1e-3)).pots] == ["pure", "gaussian"]
    assert settle_pots(Budget(0, 1e-3)).pots[1].part == 1
    assert [pot.kind for pot in settle_pots(Budget(5e-324, 5e-324)).pots] == ["pure", "gaussian"]


@ALL
def test_what_is_spare_fits_and_a_little_more_does_not(budget):
    for losses in ([], random_losses(1, 3), random_losses(2, 8), [pure(budget.epsilon / 3)]):
        pots = settle_pots(budget)
        for loss in losses:
            pots = pots.plus(loss) if pots.fits(loss) else pots
        most = pots.largest
        for loss in (PrivacyLoss(most.epsilon), PrivacyLoss(mu_squared=most.mu_squared)):
            assert pots.fits(loss)
        for loss in (
            PrivacyLoss(most.epsilon * (1 + A_LITTLE) + Fraction(1, 10**300)),
            PrivacyLoss(mu_squared=most.mu_squared * (1 + A_LITTLE) + Fraction(1, 10**300)),
        ):
            assert not pots.fits(loss)


@ALL
def test_the_whole_budget_at_once_and_nothing_after_it(budget):
    if not budget.noise_delta:
        pytest.skip("no delta, no Gaussian noise")
    pots = settle_pots(budget)
    assert pots.fits(whole(budget))
    assert not pots.fits(PrivacyLoss(mu_squared=pots.largest_mu_squared + Fraction(1, 10**300)))
    full = pots.plus(whole(budget))
    assert full.used == 1 or not full.largest.mu_squared
    for more in (pure(1e-9), gaussian(1e-9), pure(Fraction(1, 10**300))):
        assert not full.fits(more) or budget.epsilon == 0
    if len(pots.pots) > 2:
        assert set(full.sums) == {None}
        assert not pots.plus(pure(1e-9)).fits(whole(budget))


def test_a_spend_of_the_whole_epsilon_is_the_whole_budget():
    for budget in BUDGETS[:7]:
        mu = gaussian_mu(budget.epsilon, budget.delta)
        assert affords(budget, [gaussian(mu)])
        assert affords(budget, [pure(budget.epsilon)])
        assert not affords(budget, [pure(budget.epsilon), pure(Fraction(1, 10**300))])


def test_a_pot_over_its_limit_stays_dead():
    pots = settle_pots(ONE)
    over = pots.plus(PrivacyLoss(mu_squared=pots.pots[1].limit * Fraction(99, 100)))
    dead = over.plus(pure(Fraction(1, 2)))  # beyond the Gaussian pot, and not recorded by a ledger
    assert not over.fits(pure(Fraction(1, 2)))
    assert dead.sums == (None,) * 8
    for small in (pure(1e-12), gaussian(1e-12)):
        assert over.fits(small)
        assert not dead.fits(small)
        assert dead.plus(small).sums == dead.sums


def test_a_gaussian_loss_kills_the_pure_pot_however_small():
    pots = settle_pots(ONE).plus(gaussian(1e-100))
    assert pots.sums[0] is None
    assert not pots.fits(pure(1))
    assert not settle_pots(PURE).fits(gaussian(1e-100))


def test_the_order_of_losses_does_not_matter():
    losses = random_losses(4, 12)
    expected = None
    for seed in range(20):
        mixed = losses[:]
        random.Random(seed).shuffle(mixed)
        mixed.insert(0, gaussian(0.001))
        pots = settle_pots(Budget(8, 1e-6))
        for loss in mixed:
            pots = pots.plus(loss)
        assert pots == settle_pots(Budget(8, 1e-6)).plus(mixed[0], *losses)
        expected = expected or pots
        assert pots == expected
    assert None not in expected.sums[1:]


@ALL
@pytest.mark.parametrize("spent", [[], [pure(0.002), pure(0.003)]], ids=len)
@pytest.mark.parametrize("part", [Fraction(1, 20), Fraction(1, 8)], ids=str)
def test_what_a_look_spares_still_fits_exactly(budget, spent, part):
    pots = settle_pots(budget).plus(*spent)
    if not budget.epsilon:  # nothing pure to spare
        assert pots.for_look(part) is None
        return
    share, look = pots.for_shares, pots.for_look(part)
    assert 0 < look.epsilon <= part * share.epsilon
    after = pots.plus(PrivacyLoss(epsilon=look.epsilon))
    assert after.fits(PrivacyLoss(epsilon=(1 - part) * share.epsilon))
    spared = PrivacyLoss(mu_squared=Fraction(7, 8) * (1 - part) * share.mu_squared)
    assert after.fits(spared)
    if look.epsilon < part * share.epsilon:  # not more was possible
        more = PrivacyLoss(epsilon=look.epsilon * (1 + A_LITTLE))
        assert not pots.plus(more).fits(spared)
    if share.mu_squared:
        assert 0 < look.mu_squared <= part * share.mu_squared
        after = pots.plus(PrivacyLoss(mu_squared=look.mu_squared))
        kept = PrivacyLoss(epsilon=Fraction(11, 14) * (1 - part) * share.epsilon)
        assert after.fits(kept)
        if look.mu_squared < part * share.mu_squared:
            more = PrivacyLoss(mu_squared=look.mu_squared * (1 + A_LITTLE))
            assert not pots.plus(more).fits(kept)


def test_nothing_is_spared_by_large_parts_or_once_noise_was_gaussian():
    pots = settle_pots(ONE)
    assert pots.for_look(Fraction(1, 8) + A_LITTLE) is None
    assert pots.plus(gaussian(0.01)).for_look(Fraction(1, 20)) is None
    assert pots.plus(pure(1)).for_look(Fraction(1, 20)) is None


def test_extra_deltas_come_out_of_what_is_kept_for_them():
    tenth = PrivacyLoss(delta=Fraction(1, 10**7))
    assert not affords(ONE, [tenth])
    assert not affords(ONE, [PrivacyLoss(delta=Fraction(1, 10**400))])
    kept = Budget(1, 1e-6, discovery=2e-7)
    assert affords(kept, [tenth, tenth])
    assert not affords(kept, [tenth] * 3)
    assert affords(kept, [tenth, tenth, gaussian(gaussian_mu(1, 8e-7 * 0.8) * (1 - 1e-9))])
    assert not affords(kept, [gaussian(gaussian_mu(1, 1e-6))])
    # never taken on the fly from what noise leaves
    assert not affords(kept, [gaussian(1e-6), PrivacyLoss(delta=Fraction(3, 10**7))])


def test_what_costs_nothing_always_fits():
    full = settle_pots(ONE).plus(whole(ONE))
    assert full.fits(PrivacyLoss())
    assert settle_pots(ONE).plus(PrivacyLoss()).fits(whole(ONE))


def test_sums_of_odd_fractions_stay_short_and_are_rounded_up():
    pots = settle_pots(ONE)
    exactly = Fraction(0)
    for prime in (p for p in range(1_000_003, 1_003_000, 2) if pow(2, p - 1, p) == 1):
        loss = pure(Fraction(1, 100 * prime))
        pots, exactly = pots.plus(loss), exactly + loss.epsilon
    assert pots.sums[0].denominator.bit_length() < 1100 < exactly.denominator.bit_length()
    assert 0 <= pots.sums[0] - exactly < Fraction(1, 2**480)
    assert pots.spent.epsilon >= exactly


def test_pure_losses_cost_a_gaussian_pot_the_mu_that_they_imply():
    pot = settle_pots(ONE).pots[1]
    assert pot.price(pure(0.25)) == Fraction(mu_of_pure(Fraction(1, 4))) ** 2
    assert pot.price(pure(0.25) + gaussian(0.5)) == Fraction(mu_of_pure(0.25)) ** 2 + Fraction(1, 4)


def test_two_pots_are_not_one():
    """Losses that fit in one pot each, but together in none, do not fit."""
    assert affords(ONE, [pure(Fraction(9, 10))])
    assert affords(ONE, [gaussian(0.23)])
    assert not affords(ONE, [pure(Fraction(9, 10)), gaussian(0.23)])
    assert not affords(ONE, [gaussian(0.23), pure(Fraction(9, 10))])


def test_the_pot_with_most_left_says_what_is_used():
    pots = settle_pots(ONE)
    assert (pots.used, pots.is_untouched) == (0, True)
    half = pots.plus(PrivacyLoss(mu_squared=pots.pots[1].limit / 2))
    assert half.used == Fraction(1, 2)
    small = pure(0.01)
    assert pots.plus(small).used == min(pot.price(small) / pot.limit for pot in pots.many)
    assert pots.plus(small).used < Fraction(1, 300)
