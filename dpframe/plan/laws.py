"""Noise of two laws in one charge, where a release names a mechanism for each query.

A query has its part, by weight, of what its law would allow the whole release, times the largest
factor for which all losses together keep the promise.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add, itemgetter, mul
from typing import Any, TypeAlias, assert_never

from dpframe.declaration.facts import Declaration
from dpframe.errors import DPFrameError
from dpframe.frozen import frozen
from dpframe.plan.designs import allowance_of, candidates, nothing_allowed, used_up
from dpframe.plan.joining import Joining
from dpframe.plan.plan import (
    NEAR,
    Excess,
    Plan,
    Planning,
    Sharing,
    log_ratios,
    names_by_law,
    smallest,
    too_much_wanted,
)
from dpframe.privacy.amounts import PrivacyLoss, Spend, rho_of_pure
from dpframe.privacy.law import Allowance
from dpframe.privacy.pots import Pots
from dpframe.privacy.together import gaussian_price, hides_as_well

_STEPS = 44  # so often the interval of a factor is halved, to 1e-13
_MOST = Fraction(2)  # no factor is as large: one of the laws has half of what is allowed, or more
_LEAST = Fraction(1, 2**30)  # of what a law allows: less is nothing

MechanismOf: TypeAlias = Mapping[Any, str]
"""The name of a mechanism for each query."""


@frozen
class _Promise:
    """What a release may lose: what noise of one law may, and which part of pots a share is."""

    spend: Spend
    allowance: Allowance
    pots: Pots | None = None
    part: Fraction = Fraction(0)

    @classmethod
    def of(cls, spend: Spend, declaration: Declaration) -> "_Promise":
        """Read how much may be lost."""
        allowance = allowance_of(spend, declaration)
        if spend.kind != "share" or declaration.ledger is None:
            return cls(spend, allowance)
        status = declaration.ledger.glance()
        return cls(spend, allowance, status.pots, status.part_of_rest(spend.amount))

    def allows(self, loss: PrivacyLoss) -> bool:
        """Whether a loss keeps the promise."""
        most = self.allowance
        if not loss.is_of_two_laws:  # as in any other plan
            return loss.epsilon <= most.epsilon and loss.mu_squared <= most.mu_squared
        match self.spend.kind:
            case "epsilon":
                return hides_as_well(loss, most.epsilon, most.mu_squared)
            case "mu":
                return gaussian_price(loss) <= most.mu_squared
            case "rho":
                return loss.mu_squared / 2 + rho_of_pure(loss.epsilon) <= most.mu_squared / 2
            case "share":
                return self.pots is not None and self.pots.allows_part(loss, self.part)
            case kind:
                assert_never(kind)


@lru_cache(maxsize=256)  # a plan and its release ask for the same
def _largest_factor(promise: _Promise, fixed: PrivacyLoss, surplus: PrivacyLoss) -> Fraction | None:
    """Return the largest factor of the surplus that is allowed beside what is fixed."""

    def allows(factor: Fraction) -> bool:
        parts = zip(fixed.parts, surplus.parts, strict=True)
        return promise.allows(PrivacyLoss(*(base + factor * more for base, more in parts)))

    if not allows(_LEAST):
        return None
    low, high = Fraction(0), _MOST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if allows(middle) else (low, middle)
    return low  # the end that is allowed


@frozen(eq=False)
class _Group:
    """Queries of one mechanism: which part errors need that are wanted, and weights of others."""

    sharing: Sharing
    fixed: Fraction
    weight: Fraction

    @classmethod
    def of(cls, sharing: Sharing, excess: Excess | None) -> "_Group":
        """Look at what is wanted; what needs no noise has no weight."""
        fixed, names = Fraction(0), {*sharing.parts}
        for group in sharing.chosen:
            if excess is not None and excess(group.tables, group.noisy) is not None:
                # it is looked for again, and may then be as much more
                fixed += sharing.least(group, excess).part * (1 + Fraction(NEAR))
                names -= {*group.errors}
        queries = sharing.planning.joining.queries
        weight = sum((Fraction(queries[name].weight) for name in names), start=Fraction(0))
        planning = replace(sharing.planning, excess=excess)
        return cls(replace(sharing, planning=planning), fixed, weight)

    def loss(self, part: Fraction) -> PrivacyLoss:
        """Return what a part of what is allowed costs."""
        return self.sharing.law.charge(self.sharing.allowed * part)

    def plan(self, part: Fraction) -> Plan:
        """Calibrate noise for a part of what is allowed."""
        plan = replace(self.sharing, allowed=self.sharing.allowed * part).plan()
        return replace(plan, parts={name: part * share for name, share in plan.parts.items()})


def plan_by_mechanism(
    joining: Joining, spend: Spend, mechanisms: MechanismOf, excess: Excess | None = None
) -> Plan:
    """Plan the joint release of queries with the mechanism that is named for each.

    Raises
    ------
    CalibrationError
        If one of them cannot honor the spend, or errors that are wanted need more.
    """
    promise, declaration = _Promise.of(spend, joining.declaration), joining.declaration
    groups = []
    for mechanism in dict.fromkeys(mechanisms.values()):
        names = [name for name in joining.queries if mechanisms[name] == mechanism]
        planning = Planning(joining.only(names), spend, promise.allowance, None, is_free=False)
        sharing = planning.share(candidates(mechanism))
        if sharing is None:
            reason = used_up(spend, declaration)
            raise reason or nothing_allowed(mechanism, promise.allowance)
        groups.append(_Group.of(sharing, excess))
    total = sum(group.weight for group in groups) or Fraction(1)
    fixed = reduce(add, (group.loss(group.fixed) for group in groups))
    surplus = reduce(add, (group.loss(group.weight / total) for group in groups))
    factor = _largest_factor(promise, fixed, surplus)
    if factor is None:
        amount = _needed(spend, declaration, fixed)
        raise too_much_wanted(spend, amount, others=any(group.weight for group in groups))
    plans = [group.plan(group.fixed + factor * group.weight / total) for group in groups]
    tables = {key: table for plan in plans for key, table in plan.tables.items()}
    return Plan(
        {key: tables[key] for key in joining.all_tables},
        {table: noisy for plan in plans for table, noisy in plan.designs.items()},
        {name: part for plan in plans for name, part in plan.parts.items()},
        spend,
        reduce(add, (plan.loss for plan in plans)),
    )


def _needed(spend: Spend, declaration: Declaration, fixed: PrivacyLoss) -> float:
    """Return how much to spend for a loss; infinite where no amount is enough."""

    def is_enough(times: float) -> bool:
        more = replace(spend, amount=spend.amount * Fraction(times))
        try:
            return _Promise.of(more, declaration).allows(fixed)
        except DPFrameError:  # more than a budget, or than any amount
            return False

    return float(spend.amount) * (smallest(is_enough) or math.inf)


def best_mixture(joining: Joining, spend: Spend, plan: Plan) -> tuple[float, float, MechanismOf]:
    """Find the mechanisms of two laws with the least errors.

    Returns
    -------
    float, float, Mapping
        The geometric mean of the errors of queries, by weight, over those of a plan; that of the
        query that loses the most; and the mechanisms. Infinite ones where there are none.
    """
    best: tuple[float, float, MechanismOf] = (math.inf, math.inf, {})
    for mechanisms in _mixtures(joining, spend):
        ratios = log_ratios(plan_by_mechanism(joining, spend, mechanisms), plan)
        weights = [joining.queries[name].weight for name in ratios]
        mean = math.fsum(map(mul, weights, ratios.values())) / math.fsum(weights)
        mixture = math.exp(mean), math.exp(max(ratios.values())), mechanisms
        best = min(best, mixture, key=itemgetter(0))
    return best


def _mixtures(joining: Joining, spend: Spend) -> Iterator[MechanismOf]:
    """Yield mechanisms by query, of two laws: more and more queries have Gaussian noise.

    First are those that gain the most by it, at their parts of what a law alone allows.
    """
    allowance = allowance_of(spend, joining.declaration)
    planning = Planning(joining, spend, allowance, None, is_free=True)
    by_norm: dict[int, dict[Hashable, tuple[float, str]]] = {1: {}, 2: {}}
    for names in names_by_law(candidates("auto"), spend):
        try:
            sharing = planning.share(names)
        except DPFrameError:
            continue
        alone = {} if sharing is None else sharing.free | sharing.alone
        for name, group in alone.items():
            choice = group.noisy.variance, group.noisy.mechanism
            choices = by_norm[group.noisy.law.norm]
            choices[name] = min(choices.get(name, choice), choice)
    pure, gaussian = by_norm.values()
    both = [name for name, (variance, _) in pure.items() if variance and name in gaussian]
    both.sort(key=lambda name: gaussian[name][0] / pure[name][0])
    for number in range(1, len(both)):
        chosen = {*both[:number]}
        yield {name: (gaussian if name in chosen else pure)[name][1] for name in joining.queries}
