"""Pots: what fits in a budget when amounts and mechanisms are chosen after seeing answers.

A pot has a limit and a price for every loss. Its sum runs over all that was charged, in order.
A release fits if, with all before it, at least one pot is within its limit; a pot that a charge
carries over its limit is dead from then on. So a pot is a privacy filter (Rogers, Roth, Ullman and
Vadhan 2016) with a part of delta of its own, and the parts add up to at most the delta:

- pure, no delta: sums epsilon, and no Gaussian loss fits. Limit: the budget's epsilon;
- Gaussian, 4/5 of delta: sums mu^2, of a pure loss the one it implies. Limit: mu^2 of the mu that
  keeps (epsilon, its delta) (Smith and Thakurta 2022);
- Renyi, six orders a, 1/30 of delta each: sums ``a mu^2 / 2`` and the divergence of order a of
  randomized response. Limit: ``epsilon - log(1 - 1/a) + log(a d) / (a - 1)``, d its delta (Canonne,
  Kamath and Steinke 2020, Proposition 12; Feldman and Zrnic 2021).

The very first charge may be beyond all pots if it keeps the budget by itself: it takes all of it.
It also settles which of two sets of pots there are: those above, or, if it is pure and at most 1/14
of epsilon, those of many small releases. These give up 1.5 % of every limit for a Renyi order with
more of delta, 0.38 of it at (1, 1e-6), which then admits more small pure losses.
Prices are rounded up and limits down; sums are exact, and so is what fits. Less than a billionth of
a pot, where amounts were rounded, is not shown as left, and no share is a part of it.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import ClassVar, NamedTuple, assert_never

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy import renyi
from dpframe.privacy.amounts import Budget, PrivacyLoss, exact, float_below, is_above, root_below
from dpframe.privacy.gaussian import gaussian_delta, gaussian_mu, pure_of_mu
from dpframe.privacy.together import gaussian_price, hides_as_well

GAUSSIAN_PART = Fraction(4, 5)
"""Part of delta of the Gaussian pot, where there are Renyi pots; these share the rest."""

# pots of many small releases
# of epsilon: the largest first pure loss after which there are these
_SMALL = Fraction(1, 14)
# of the mu of the Gaussian pot, and of the limits of Renyi ones
_KEPT = Fraction(197, 200)
# the order with the rest of delta is best where this of epsilon is left
_MANY = Fraction(9, 10)
# parts of delta are multiples of 1 / this
_PARTS = 10_000

# of Renyi, which a budget keeps beside GDP
_ORDERS = 6
# above all orders
_FIRST = Fraction(10**9)
# Renyi pot k has the order that is best where 0.6**k of epsilon is left
_RATIO = Fraction(3, 5)
# conversions from pure to mu and back keep margins of 2**-40 each
_MARGIN = Fraction(1, 2**38)
# of a pot
_NOTHING = Fraction(1, 10**9)
# of what is left
_LARGEST_LOOK = Fraction(1, 8)
# by pure, Gaussian looks
_MU_SQUARED_SPARED, _EPSILON_SPARED = Fraction(7, 8), Fraction(11, 14)
# amounts with longer denominators are rounded to this one
_LONG, _GRID = 1024, 1 << 512


class Spare(NamedTuple):
    """What a pot has left: for a further Gaussian loss, or for a further pure one."""

    mu_squared: Fraction
    epsilon: Fraction


NOTHING = Spare(Fraction(0), Fraction(0))


@frozen(slots=True)
class PurePot:
    """Sums epsilon. No Gaussian loss fits.

    Parameters
    ----------
    limit
        The epsilon of the budget.
    """

    limit: Fraction
    kind: ClassVar[str] = "pure"

    def price(self, loss: PrivacyLoss) -> Fraction | None:
        """Return what a loss takes; `None` if it never fits."""
        return None if loss.mu_squared else loss.epsilon

    def spare(self, left: Fraction) -> Spare:
        """Return the losses of either kind that fill what is left."""
        return Spare(Fraction(0), left)


@frozen(slots=True)
class GaussianPot:
    """Sums mu^2 of Gaussian differential privacy.

    Parameters
    ----------
    part
        Part of delta that is its own.
    limit
        Largest sum of mu^2.
    """

    part: Fraction
    limit: Fraction
    kind: ClassVar[str] = "gaussian"

    def price(self, loss: PrivacyLoss) -> Fraction:
        """Return what a loss takes."""
        return gaussian_price(loss)

    def spare(self, left: Fraction) -> Spare:
        """Return the losses of either kind that fill what is left."""
        return Spare(left, _pure_of_mu_squared(left))


@frozen(slots=True)
class RenyiPot:
    """Sums Renyi divergences of one order.

    Parameters
    ----------
    part
        Part of delta that is its own.
    order
        The order, above 1.
    limit
        Largest sum of divergences.
    """

    part: Fraction
    order: Fraction
    limit: Fraction
    kind: ClassVar[str] = "renyi"

    def price(self, loss: PrivacyLoss) -> Fraction:
        """Return what a loss takes."""
        if not loss.mu_squared:
            return renyi.divergence_of_pure(loss.epsilon, self.order)
        price = renyi.divergence_of_gaussian(loss.mu_squared, self.order)
        return price + renyi.divergence_of_pure(loss.epsilon, self.order) if loss.epsilon else price

    def spare(self, left: Fraction, least: Fraction = Fraction(0)) -> Spare:
        """Return the losses of either kind that fill what is left; a pure one from `least` on."""
        # the price of it is rounded up to 64 binary digits
        mu_squared = left * 2 / self.order * (1 - Fraction(1, 2**62))
        if renyi.divergence_of_pure(least, self.order) > left:
            return Spare(mu_squared, Fraction(0))
        return Spare(mu_squared, renyi.pure_of_divergence(left, self.order))


Pot = PurePot | GaussianPot | RenyiPot
KINDS: dict[str, type[Pot]] = {pot.kind: pot for pot in (PurePot, GaussianPot, RenyiPot)}
"""Pots by the name under which a ledger keeps them."""


class Priced(NamedTuple):
    """A loss, and what it takes of every pot."""

    loss: PrivacyLoss
    prices: tuple[Fraction | None, ...]


@frozen
class Pots:
    """The pots of a ledger, settled when it is made and by its first charge, and what is in them.

    Parameters
    ----------
    pots
        The pots.
    largest_mu_squared
        Largest mu^2 that keeps the budget by itself: what the very first charge may take.
    discovery
        Largest sum of extra deltas.
    sums
        What is in the pots; `None` for a dead one. Empty pots if not given.
    spent
        All losses added up.
    many
        The pots to have instead if the first charge is small and pure; none once it was made.
    small
        Largest epsilon of such a first charge.

    Examples
    --------
    >>> pots = settle_pots(Budget(epsilon=1, delta=1e-6))
    >>> half = PrivacyLoss(epsilon=Fraction(1, 2))
    >>> pots.plus(half).fits(half), pots.plus(half).plus(half).fits(half)
    (True, False)
    """

    pots: tuple[Pot, ...]
    largest_mu_squared: Fraction
    discovery: Fraction
    sums: tuple[Fraction | None, ...] = ()
    spent: PrivacyLoss = field(default_factory=PrivacyLoss)
    many: tuple[Pot, ...] = ()
    small: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not self.sums:
            object.__setattr__(self, "sums", (Fraction(0),) * len(self.pots))

    def begun_with(self, first: PrivacyLoss) -> "Pots":
        """Settle which pots there are by the first charge, whether it fits or not."""
        if not self.many:
            return self
        is_small = not first.mu_squared and 0 < first.epsilon <= self.small
        return Pots(self.many if is_small else self.pots, self.largest_mu_squared, self.discovery)

    def price(self, loss: PrivacyLoss) -> "Priced":
        """Say what a loss takes of every pot."""
        return Priced(loss, tuple(pot.price(loss) for pot in self.pots))

    def plus(self, *losses: PrivacyLoss) -> "Pots":
        """Charge losses, whether they fit or not."""
        pots = self.begun_with(losses[0]) if losses else self
        return pots.filled([(pots.price(loss), 1) for loss in losses])

    def filled(self, charged: Sequence[tuple["Priced", int]]) -> "Pots":
        """Charge losses, each some number of times, to pots that the first one settled."""
        sums = tuple(
            None
            if had is None
            else _fill_pot(pot, had, [(priced.prices[place], times) for priced, times in charged])
            for place, (pot, had) in enumerate(zip(self.pots, self.sums, strict=True))
        )
        spent = PrivacyLoss(
            *(
                _total(had, [(priced.loss.parts[place], times) for priced, times in charged])
                for place, had in enumerate(self.spent.parts)
            )
        )
        return self._with(sums, spent)

    def shifted(self, before: "Pots", now: "Pots") -> "Pots":
        """Charge what made other pots of the same budget grow, from what they were before."""
        prices = tuple(
            None if less is None or more is None else more - less
            for less, more in zip(before.sums, now.sums, strict=True)
        )
        loss = PrivacyLoss(*map(operator.sub, now.spent.parts, before.spent.parts))
        return self.filled([(Priced(loss, prices), 1)])

    def _with(self, sums: tuple[Fraction | None, ...], spent: PrivacyLoss) -> "Pots":
        return Pots(self.pots, self.largest_mu_squared, self.discovery, sums, spent)

    def is_fuller(self, other: "Pots") -> bool:
        """Whether no pot of the same budget has less in it, nor has less delta been spent."""
        return not is_above(other.spent.delta, self.spent.delta) and all(
            had is None or (less is not None and not is_above(less, had))
            for had, less in zip(self.sums, other.sums, strict=True)
        )

    def fullest(self, other: "Pots") -> "Pots":
        """Return the larger of what is in each pot; a dead one is fullest."""
        sums = tuple(
            None if had is None or more is None else max(had, more)
            for had, more in zip(self.sums, other.sums, strict=True)
        )
        parts = zip(self.spent.parts, other.spent.parts, strict=True)
        return self._with(sums, PrivacyLoss(*map(max, parts)))

    def fits(self, loss: PrivacyLoss) -> bool:
        """Whether a further loss keeps the promise, decided exactly and from amounts alone."""
        if loss == PrivacyLoss():
            return True
        if not self.fits_delta(loss):
            return False
        live = self.begun_with(loss).live
        if any(_fill_pot(pot, had, [(pot.price(loss), 1)]) is not None for pot, had in live):
            return True
        return self.is_untouched and self._is_whole(loss)

    def _is_whole(self, loss: PrivacyLoss) -> bool:
        """Whether a loss by itself keeps the budget."""
        if loss.is_of_two_laws:
            return hides_as_well(loss, self.pots[0].limit, self.largest_mu_squared)
        return gaussian_price(loss) <= self.largest_mu_squared

    def allows_part(self, loss: PrivacyLoss, part: Fraction) -> bool:
        """Whether a loss takes at most some part of what is left in a pot."""
        for pot, had in self.begun_with(loss).live:
            price = pot.price(loss)
            if price is not None and price <= part * _left(had, pot.limit):
                return True
        return False

    def fits_delta(self, loss: PrivacyLoss) -> bool:
        """Whether the extra delta of a further loss fits, exactly."""
        return loss.delta <= self.discovery - self.spent.delta

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was spent."""
        return self.spent == PrivacyLoss()

    @property
    def live(self) -> Iterator[tuple[Pot, Fraction]]:
        """Pots that are not dead, and what is in them."""
        filled = zip(self.pots, self.sums, strict=True)
        return ((pot, had) for pot, had in filled if had is not None)

    @cached_property
    def spare(self) -> Spare:
        """Largest loss of either kind that fits in a pot of which something is left."""
        most = NOTHING
        # pots first that say at once what is spare, then high orders, where most is
        for pot, had in sorted(self.live, key=lambda kept: -getattr(kept[0], "order", _FIRST)):
            left = _left(had, pot.limit)
            if not left:
                continue
            match pot:
                case RenyiPot():
                    fitting = pot.spare(left, most.epsilon)
                case PurePot() | GaussianPot():
                    fitting = pot.spare(left)
                case _:
                    assert_never(pot)
            most = Spare(*map(max, most, fitting))
        return most

    @cached_property
    def largest(self) -> Spare:
        """Largest loss of either kind that fits, the whole budget at once included."""
        most = self.spare
        if not self.is_untouched:
            return most
        alone = _pure_of_mu_squared(self.largest_mu_squared)
        return Spare(max(most.mu_squared, self.largest_mu_squared), max(most.epsilon, alone))

    @property
    def spare_delta(self) -> Fraction:
        """What is left for extra deltas, if it is something."""
        return _left(self.spent.delta, self.discovery)

    @property
    def for_shares(self) -> Spare:
        """What shares are parts of: pure losses take the pure pot as long as it has room."""
        most, left = self.spare, self._pure_left
        return Spare(most.mu_squared, left) if left else most

    @property
    def _pure_left(self) -> Fraction:
        """What is left in the pot of pure losses."""
        for pot, had in self.live:
            match pot:
                case PurePot():
                    return _left(had, pot.limit)
                case GaussianPot() | RenyiPot():
                    pass  # other losses are in these, too
                case _:
                    assert_never(pot)
        return Fraction(0)

    def for_look(self, part: Fraction) -> Spare | None:
        """Return the losses of a look, which others are to follow, at a part of what is left.

        Noise of one kind leaves less to the other than its part says, Gaussian noise most of all.
        So a look loses its part, or less: pure noise so that 7/8 of the mu^2 which the rest would
        be fits beside it, Gaussian noise so that 11/14 of the epsilon do. `None` if the part is
        above an eighth, or after Gaussian noise, where nothing would be spared.
        """
        spares = self._pure_left and part <= _LARGEST_LOOK
        return _losses_of_look(self, part) if spares else None

    @property
    def emptiest(self) -> tuple[Pot, Fraction] | None:
        """The live pot of which the largest part is left, and what is in it."""
        pots = [(pot, had) for pot, had in self.live if pot.limit]
        return min(pots, key=lambda kept: kept[1] / kept[0].limit, default=None)

    @property
    def used(self) -> Fraction:
        """Part of the emptiest pot that is used: 0 at first, 1 if nothing more fits."""
        emptiest = self.emptiest
        return Fraction(1) if emptiest is None else emptiest[1] / emptiest[0].limit


@frozen
class PotsOfParts(Pots):
    """The pots of several parts of the data, for what is charged to each of them.

    The sums are the larger ones in each pot. What fits is what fits in the pots of every part.

    Parameters
    ----------
    parts
        The pots of each part, in an order that does not depend on that of charges.
    """

    parts: tuple[Pots, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[Pots]) -> Pots:
        """Put the pots of one part or more together."""
        joined = reduce(Pots.fullest, parts)
        if len(parts) == 1:
            return joined
        facts = joined.pots, joined.largest_mu_squared, joined.discovery, joined.sums, joined.spent
        return cls(*facts, parts=tuple(sorted(parts, key=_in_order)))

    def filled(self, charged: Sequence[tuple[Priced, int]]) -> Pots:
        """Charge losses to every part."""
        return PotsOfParts.of([pots.filled(charged) for pots in self.parts])

    def fits(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits in the pots of every part."""
        return all(pots.fits(loss) for pots in self.parts)

    def allows_part(self, loss: PrivacyLoss, part: Fraction) -> bool:
        """Whether a loss takes at most some part of what is left for every part of the data."""
        return all(pots.allows_part(loss, part) for pots in self.parts)

    @cached_property
    def spare(self) -> Spare:
        """Largest loss of either kind that fits in a pot of every part."""
        return _least(pots.spare for pots in self.parts)

    @cached_property
    def largest(self) -> Spare:
        """Largest loss of either kind that fits."""
        return _least(pots.largest for pots in self.parts)

    @property
    def for_shares(self) -> Spare:
        """What shares are parts of."""
        return _least(pots.for_shares for pots in self.parts)

    def for_look(self, part: Fraction) -> Spare | None:
        """Return the losses of a look that leaves enough to every part."""
        looks = [pots.for_look(part) for pots in self.parts]
        spared = [look for look in looks if look is not None]
        return _least(spared) if len(spared) == len(looks) else None

    @property
    def emptiest(self) -> tuple[Pot, Fraction] | None:
        """The emptiest pot of the part that has least left."""
        return max(self.parts, key=lambda pots: pots.used).emptiest


def _least(spares: Iterable[Spare]) -> Spare:
    """Return the losses that fit in each."""
    mu_squared, epsilon = zip(*spares, strict=True)
    return Spare(min(mu_squared), min(epsilon))


def _in_order(pots: Pots) -> tuple[tuple[bool, Fraction], ...]:
    sums = (*pots.sums, *pots.spent.parts)
    return tuple((had is None, had or Fraction(0)) for had in sums)


# a preview and its release ask for the same
@lru_cache(maxsize=64)
def _losses_of_look(pots: Pots, part: Fraction) -> Spare:
    mu_squared, epsilon = pots.for_shares
    gaussian = PrivacyLoss(mu_squared=_MU_SQUARED_SPARED * (1 - part) * mu_squared)
    pure = PrivacyLoss(epsilon=_EPSILON_SPARED * (1 - part) * epsilon)
    look = min(part * epsilon, pots.plus(gaussian).spare.epsilon)
    # it may settle what there is for the rest
    begun = pots.begun_with(PrivacyLoss(epsilon=look))
    look = min(look, begun.plus(gaussian).spare.epsilon)
    losses = min(part * mu_squared, pots.plus(pure).spare.mu_squared), look
    return Spare(*(shorten(loss, math.floor) for loss in losses))


def _left(had: Fraction, limit: Fraction) -> Fraction:
    """Return what is left of a limit; less than a billionth of it is nothing."""
    left = limit - had
    return left if left >= limit * _NOTHING else Fraction(0)


def _fill_pot(
    pot: Pot, had: Fraction, prices: Sequence[tuple[Fraction | None, int]]
) -> Fraction | None:
    """Add what losses take of a pot, unless one of them kills it; prices are never below 0."""
    total = _Sum(had)
    for price, times in prices:
        if price is None:
            return None
        total.add(price, times)
    filled = total.value
    return None if is_above(filled, pot.limit) else filled


class _Sum:
    """A sum of fractions that is reduced at the end: to do so each time would take most of it."""

    def __init__(self, value: Fraction) -> None:
        self._above, self._below = value.numerator, value.denominator

    def add(self, amount: Fraction, times: int) -> None:
        """Add a fraction, and round the sum up where its exact digits became very many."""
        unit = amount.denominator
        if self._below % unit:
            factor = unit // math.gcd(self._below, unit)
            self._above, self._below = self._above * factor, self._below * factor
        self._above += times * amount.numerator * (self._below // unit)
        if self._below.bit_length() > _LONG:
            short = shorten(self.value, math.ceil)
            self._above, self._below = short.numerator, short.denominator

    @property
    def value(self) -> Fraction:
        """The sum, reduced."""
        return Fraction(self._above, self._below)


def _total(total: Fraction, amounts: Iterable[tuple[Fraction, int]]) -> Fraction:
    """Add what was spent; most parts of losses are 0."""
    more = [(amount, times) for amount, times in amounts if amount]
    if not more:
        return total
    summed = _Sum(total)
    for amount, times in more:
        summed.add(amount, times)
    return summed.value


def settle_pots(budget: Budget) -> Pots:
    """Settle the pots of a budget; without delta for noise there is the pure one alone."""
    delta, discovery = budget.noise_delta, exact(budget.discovery)
    pure = PurePot(exact(budget.epsilon))
    if not delta:
        return Pots((pure,), Fraction(0), discovery)
    most = _largest_mu_squared(budget.epsilon, delta)
    part = (1 - GAUSSIAN_PART) / _ORDERS
    renyi_pots = [_best_pot(budget, part, _RATIO**k) for k in range(_ORDERS)]
    others = [pot for pot in renyi_pots if pot]
    gaussian = _gaussian_pot(budget, GAUSSIAN_PART if others else Fraction(1))
    pots = Pots((pure, gaussian, *others), most, discovery)
    many = _pots_of_many(budget, gaussian, tuple(others[1:])) if others else ()
    return replace(pots, many=(pure, *many), small=_SMALL * pure.limit) if many else pots


@lru_cache(maxsize=64)
def _pots_of_many(
    budget: Budget, gaussian: GaussianPot, others: tuple[RenyiPot, ...]
) -> tuple[Pot, ...]:
    """Take from pots the delta that 1.5 % of their limits is worth, for many small pure losses."""
    own_delta = gaussian_delta(budget.epsilon, root_below(gaussian.limit) * float(_KEPT))
    kept = _gaussian_pot(budget, _part(Fraction(own_delta) / budget.noise_delta))
    left = 1 - kept.part
    smaller: list[RenyiPot] = []
    for pot in others:
        given_up = (pot.order - 1) * (1 - _KEPT) * pot.limit
        part = _part(pot.part * Fraction(math.exp(-given_up)))
        less = _renyi_pot(budget, part, pot.order)
        if less:
            smaller.append(less)
            left -= part
    most = _best_pot(budget, left, _MANY) if left > 0 else None
    return (kept, most, *smaller) if most else ()


def _part(of_delta: Fraction) -> Fraction:
    return Fraction(math.ceil(of_delta * _PARTS), _PARTS)


def _largest_mu_squared(epsilon: float, delta: Fraction) -> Fraction:
    return Fraction(gaussian_mu(epsilon, float_below(delta))) ** 2


def _gaussian_pot(budget: Budget, part: Fraction) -> GaussianPot:
    return GaussianPot(part, _largest_mu_squared(budget.epsilon, budget.noise_delta * part))


def _best_pot(budget: Budget, part: Fraction, left: Fraction) -> RenyiPot | None:
    """Give the Renyi pot that is best where a part of epsilon is left."""
    own_delta = float_below(budget.noise_delta * part)
    if not budget.epsilon or not own_delta:
        return None
    order = renyi.best_order(float(exact(budget.epsilon) * left), own_delta)
    return _renyi_pot(budget, part, order)


def _renyi_pot(budget: Budget, part: Fraction, order: Fraction) -> RenyiPot | None:
    """Give a Renyi pot if it has room at all."""
    own_delta = float_below(budget.noise_delta * part)
    limit = renyi.renyi_limit(budget.epsilon, own_delta, order) if own_delta else Fraction(0)
    return RenyiPot(part, order, limit) if limit > 0 else None


def _pure_of_mu_squared(mu_squared: Fraction) -> Fraction:
    return exact(pure_of_mu(root_below(mu_squared * (1 - _MARGIN))))


def shorten(amount: Fraction, to_whole: Callable[[Fraction], int]) -> Fraction:
    """Round an amount, up or down, where its exact digits became very many."""
    if amount.denominator.bit_length() <= _LONG:
        return amount
    return Fraction(to_whole(amount * _GRID), _GRID)
