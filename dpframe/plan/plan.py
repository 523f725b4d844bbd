"""The frozen, data-free plan of a release: measurements, noise, cost and error.

All tables of a release share one allowance. Noise scales are the designs' relative scales times one
common factor, at most a few ulps above the smallest for which

    sum over tables of max over neighbors of sum_k (|Delta w_k| / sigma_k)^p <= allowance

holds in exact rational arithmetic, with p = 2 and mu^2 for Gaussian noise, p = 1 and epsilon for
Laplace noise.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeVar, assert_never

from dpframe.arguments import is_one_of
from dpframe.checker.noise import BlockNoise
from dpframe.declaration.facts import Declaration
from dpframe.errors import BudgetExceededError, CalibrationError, of_query
from dpframe.forks import cached_property
from dpframe.ledger.ledger import Ledger
from dpframe.plan.calibrated import Calibrated, calibrate_designs
from dpframe.plan.measurement import Measurement, TablePlan, join, join_across, noise_of
from dpframe.plan.tables import Table, tables_of
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, below, exact, rho_of_laplace
from dpframe.privacy.calibration import (
    classical_mu,
    gaussian_mu,
    laplace_of_rho,
    pure_of_mu,
    pure_of_rho,
)
from dpframe.privacy.law import Allowance
from dpframe.privacy.laws import LAPLACE
from dpframe.privacy.selection import SELECT
from dpframe.public import did_you_mean
from dpframe.queries.query import Query
from dpframe.strategies import MECHANISMS, Mechanism
from dpframe.strategies.base import Workload
from dpframe.strategies.noise import narrowest

_LOOK_ERROR = 2  # times that of other noise, at most, for pure noise of a look
_LARGEST_SPEND = 2**100  # beyond, squares and their inverses would leave the range of floats


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a mechanism cannot make a release.

    Parameters
    ----------
    reason
        The error.
    allowed
        Whether the spend allows some noise of this mechanism.
    """

    reason: CalibrationError
    allowed: bool = True


@dataclass(frozen=True, eq=False)
class Plan:
    """A release that is ready to be charged and made.

    Parameters
    ----------
    tables
        Plans by the name of the query; a single query has the name `None`.
    mechanism
        Name of the mechanism chosen.
    spend
        How the amount was given.
    loss
        What the release costs.
    others
        Plans of the same release with the other mechanisms that were compared.
    """

    tables: Mapping[Hashable, TablePlan]
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    others: tuple["Plan", ...] = ()

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return "; ".join(dict.fromkeys(one.table.asked.words for one in self.tables.values()))

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What is measured, perhaps for several tables at once."""
        return tuple(dict.fromkeys(planned.measurement for planned in self.tables.values()))

    def error_relative_to(self, other: "Plan") -> float:
        """Return the root mean square of all relative errors, as a multiple of another plan's."""
        mine, theirs = _score(self), _score(other)
        return math.sqrt(mine / theirs) if theirs else (1.0 if mine == 0 else math.inf)

    @property
    def how(self) -> Mechanism:
        """The mechanism chosen."""
        return MECHANISMS[self.mechanism]

    @cached_property
    def noises(self) -> tuple[BlockNoise, ...]:
        """The noise of every measurement: what is checked is drawn."""
        return tuple(noise_of(self.how.law, one.design, one.scales) for one in self.measurements)


class Resolved(NamedTuple):
    """Queries that are resolved against what is declared.

    Parameters
    ----------
    tables
        The tables, by name.
    joint
        Those that are measured as one, by the names of all of them.
    across
        The same, where counts by different columns are measured as one, too, if that may be better
        with noise that they share.
    """

    tables: Mapping[Hashable, Table]
    joint: Mapping[tuple[Hashable, ...], Table]
    across: Mapping[tuple[Hashable, ...], Table] | None = None

    def ways(self, how: Mechanism) -> list[Mapping[tuple[Hashable, ...], Table]]:
        """Return what a mechanism may measure as one."""
        return [self.joint, *([self.across] if self.across and how.across else [])]


def resolve(
    declaration: Declaration, queries: Mapping[Hashable, Query], *, apart: bool = False
) -> Resolved:
    """Resolve queries, and find those that are measured as one.

    Parameters
    ----------
    declaration
        What is public about the frame.
    queries
        Queries by name.
    apart
        Whether errors of cells are to be independent, so that no noise is shared by tables.

    Raises
    ------
    DeclarationError, QueryError
        If the queries do not fit what is declared.
    """
    tables: dict[Hashable, Table] = {}
    for name, query in queries.items():
        with of_query(name):
            tables |= tables_of(name, query, declaration)
    joint = join(tables, declaration)
    return Resolved(tables, joint, None if apart else join_across(joint))


def plan_release(
    declaration: Declaration,
    queries: Mapping[Hashable, Query],
    spend: Spend,
    mechanism: str = "auto",
    resolved: Resolved | None = None,
    *,
    look: bool = False,
    apart: bool = False,
) -> Plan:
    """Plan the joint release of some queries; reads no data and spends nothing.

    Parameters
    ----------
    declaration
        What is public about the frame.
    queries
        Queries by name.
    spend
        How much the release may use.
    mechanism
        A name in `MECHANISMS`, or "auto": the one with the smallest predicted error at that spend,
        among those that the budget allows.
    resolved
        The queries, if they are resolved already.
    look
        Whether others are to follow. "auto" then makes a small share cost what `Pots.for_look`
        says, and takes pure noise unless that more than doubles the error.
    apart
        As in `resolve`, where they are not.

    Raises
    ------
    CalibrationError
        If no mechanism can honor the spend.
    DeclarationError, QueryError
        If the queries do not fit what is declared.
    """
    names = candidates(mechanism)
    resolved = resolved or resolve(declaration, queries, apart=apart)
    allowance = allowance_of(spend, declaration)
    sparing = allowance_of_look(spend, declaration) if look and mechanism == "auto" else None
    allowance = sparing or allowance
    if mechanism == "auto":
        names = [name for name in names if allowance.epsilon >= MECHANISMS[name].least_epsilon]
    found = [_plan_with(name, resolved, spend, allowance) for name in names]
    plans, refusals = _divide(found)
    if not plans:
        raise _used_up(refusals, spend, declaration.ledger) or _reason(refusals)
    fitting = that_fit(plans, declaration)
    best = min(fitting, key=_score) if sparing is None else _best_look(plans)
    return replace(best, others=tuple(plan for plan in plans if plan is not best))


class _Charged(Protocol):
    """What has a cost."""

    @property
    def loss(self) -> PrivacyLoss:
        """What it costs."""


_Costly = TypeVar("_Costly", bound=_Charged)


def that_fit(plans: Sequence[_Costly], declaration: Declaration) -> Sequence[_Costly]:
    """Return the plans that the budget allows; all of them where it allows none."""
    if declaration.ledger is None:
        return plans
    pots = declaration.ledger.glance().pots  # one for all of them
    fits = {loss: pots.fits(loss) for loss in {plan.loss for plan in plans}}
    return [plan for plan in plans if fits[plan.loss]] or plans


def _best_look(plans: list[Plan]) -> Plan:
    """Return the best plan with pure noise, unless another one has less than half its error."""
    best = min(plans, key=_score)
    pure = min((plan for plan in plans if not plan.how.law.needs_delta), key=_score, default=best)
    return pure if pure.error_relative_to(best) <= _LOOK_ERROR else best


def _reason(refusals: list[Refusal]) -> CalibrationError:
    """Say why nothing can be released: the first refusal of a mechanism that had an allowance."""
    telling = [refusal for refusal in refusals if refusal.allowed] or refusals
    return telling[0].reason


def _used_up(
    refusals: list[Refusal], spend: Spend, ledger: Ledger | None
) -> BudgetExceededError | None:
    """Say so where a share is nothing because other noise has used what the mechanism needs."""
    if spend.kind != "share" or any(refusal.allowed for refusal in refusals):
        return None
    if ledger is None or not ledger.budget.noise_delta or ledger.status().pots.is_untouched:
        return None
    wrong = f"no Gaussian noise fits any more in what is left of {ledger.budget}:"
    why = f"epsilon={ledger.status().remaining_epsilon:.6g} is left for Laplace noise."
    way = 'Use mechanism="laplace".'
    return BudgetExceededError(f"{wrong} {why} {way}", parameter="share", value=float(spend.amount))


def candidates(mechanism: str) -> list[str]:
    """Return the names of the mechanisms to compare.

    Raises
    ------
    CalibrationError
        If the mechanism is not known.
    """
    if is_one_of(mechanism, (SELECT,)):
        raise CalibrationError(
            f'mechanism="{SELECT}" is for quantiles that are released on their own, in a call of '
            ".dp.quantile(...), not in a dict or a plan; other numbers have noise added to them. "
            'Use mechanism="auto", with which quantiles are read off numbers of rows.',
            parameter="mechanism",
            value=mechanism,
        )
    if not is_one_of(mechanism, ("auto", *MECHANISMS)):
        known = ", ".join(f'"{name}"' for name in ("auto", *MECHANISMS, SELECT))
        way = did_you_mean(mechanism, (*MECHANISMS, SELECT)).strip()
        rule = f"must be one of {known} (of quantiles alone)"
        raise CalibrationError.about("mechanism", rule, mechanism, way)
    if mechanism != "auto":
        return [mechanism]
    return [name for name, how in MECHANISMS.items() if how.automatic]


def allowance_of(spend: Spend, declaration: Declaration) -> Allowance:
    """Translate a spend into exact allowances, never above what it says."""
    ledger = declaration.ledger
    budget = None if ledger is None else ledger.budget
    amount = spend.amount
    if max(amount, exact(budget.epsilon) if budget else 0) > _LARGEST_SPEND:
        raise CalibrationError(
            "epsilon, mu and rho must be at most 2**100, also in the budget: so much allows no "
            f"noise at all; got {spend.kind}={float(amount):.3g}"
            + (f" of {budget}." if budget else "."),
            parameter=spend.kind,
            value=float(amount),
        )
    if spend.kind == "share":
        if ledger is None:
            why = "share= is a part of a budget and none is declared."
            way = "Declare budget=dpf.Budget(...), or spend epsilon=, mu= or rho=."
            raise CalibrationError(f"{why} {way}", parameter="share", value=float(amount))
        now = ledger.glance().share(amount)
        return Allowance(now.mu_squared, now.epsilon)
    least = min(amount, Fraction(float(amount)))
    if spend.kind == "epsilon":
        delta = _delta(spend, budget)
        return Allowance(Fraction(gaussian_mu(amount, delta)) ** 2, least, delta)
    if spend.kind == "rho":
        return Allowance(2 * least, Fraction(pure_of_rho(least)))
    return Allowance(least**2, Fraction(pure_of_mu(float(least) * (1 - 2.0**-52))))


def allowance_of_look(spend: Spend, declaration: Declaration) -> Allowance | None:
    """Say what a share allows that spares others; `None` where `allowance_of` does."""
    if spend.kind != "share" or declaration.ledger is None:
        return None
    status = declaration.ledger.glance()
    if status.shares == 1:  # spent by others meanwhile: the charge refuses it
        return None
    losses = status.pots.for_look(spend.amount / (1 - status.shares))
    return None if losses is None else Allowance(losses.mu_squared, losses.epsilon)


def _delta(spend: Spend, budget: Budget | None) -> float:
    """Return the delta to spend; refuse one alone that was not given for this release."""
    if spend.delta is not None:
        return spend.delta
    delta = 0.0 if budget is None else below(budget.noise_delta)
    if spend.amount == 0 and delta:
        rule = f"must be > 0 where delta is that of the budget, delta={delta:g}"
        way = "Give epsilon > 0, or give delta= in the call to spend a delta alone."
        raise CalibrationError.about("epsilon", rule, 0, way)
    return delta


def _plan_with(name: str, resolved: Resolved, spend: Spend, allowance: Allowance) -> Plan | Refusal:
    """Plan with one mechanism, or say why it cannot."""
    ways = resolved.ways(MECHANISMS[name])
    found = [_plan_joint(name, resolved.tables, joint, spend, allowance) for joint in ways]
    plans, refusals = _divide(found)
    return min(plans, key=_score) if plans else refusals[0]


def _divide(found: Sequence[Plan | Refusal]) -> tuple[list[Plan], list[Refusal]]:
    """Divide plans and refusals."""
    plans: list[Plan] = []
    refusals: list[Refusal] = []
    for one in found:
        match one:
            case Plan():
                plans.append(one)
            case Refusal():
                refusals.append(one)
            case _:
                assert_never(one)
    return plans, refusals


def _plan_joint(
    name: str,
    tables: Mapping[Hashable, Table],
    joint: Mapping[tuple[Hashable, ...], Table],
    spend: Spend,
    allowance: Allowance,
) -> Plan | Refusal:
    """Plan with one mechanism what is measured as one, or say why it cannot."""
    how = MECHANISMS[name]
    try:
        allowed = _allowed_movement(how, spend, allowance)
        if allowed == 0:
            return _nothing_allowed(name, allowance)
        works = [table.workload for table in joint.values()]
        made = calibrate_designs(how, works, allowed)
        if spend.kind == "rho" and how.law is LAPLACE and made is not None:
            allowed, made = _by_its_law(how, works, spend.amount, allowed, made)
    except CalibrationError as error:  # another mechanism may still do
        return Refusal(error)
    if made is None:
        reason = f'mechanism="{name}" does not apply to these queries; use mechanism="auto".'
        return Refusal(CalibrationError(reason, parameter="mechanism", value=name))
    measured = {
        names: Measurement(**vars(found), table=table)
        for (names, table), found in zip(joint.items(), made, strict=True)
    }
    noisy = any(scale for one in measured.values() for scale in one.scales)
    loss = how.law.charge(allowed if noisy else Fraction(0))
    return Plan(_apart(tables, measured), name, spend, loss)


def _by_its_law(
    how: Mechanism,
    works: Sequence[Workload],
    rho: Fraction,
    allowed: Fraction,
    made: tuple[Calibrated, ...],
) -> tuple[Fraction, tuple[Calibrated, ...]]:
    """Allow Laplace noise the epsilon at which its own law costs a rho, which is a larger one."""

    def least_scale(made: tuple[Calibrated, ...]) -> float:
        return min(narrowest(one.design, one.scales) for one in made)

    steps = float(allowed) * least_scale(made)
    if not 1 < steps < math.inf:
        return allowed, made
    larger = Fraction(laplace_of_rho(rho, steps))
    again = calibrate_designs(how, works, larger)
    if again is None:
        return allowed, made
    step = math.nextafter(1 / least_scale(again), math.inf)
    return (larger, again) if rho_of_laplace(larger, step) <= rho else (allowed, made)


def _apart(
    tables: Mapping[Hashable, Table], measured: Mapping[tuple[Hashable, ...], Measurement]
) -> dict[Hashable, TablePlan]:
    """Say which outputs of the measurements belong to which table."""
    plans = {}
    for names, measurement in measured.items():
        first = 0
        for name in names:
            alone = len(names) == 1 and tables[name].of is None
            plans[name] = TablePlan(tables[name], measurement, None if alone else first)
            first += len(tables[name].outputs)
    return {name: plans[name] for name in tables}


def _allowed_movement(how: Mechanism, spend: Spend, allowance: Allowance) -> Fraction:
    """Return the most that movement may add up to."""
    if not how.classical:
        return how.law.movement_allowed(allowance)
    if spend.kind != "epsilon" or allowance.delta is None:
        why = f'mechanism="classical" is calibrated by epsilon= and delta=, got {spend.kind}=.'
        raise CalibrationError(why, parameter="mechanism", value="classical")
    return Fraction(classical_mu(float(spend.amount), allowance.delta)) ** 2


def _nothing_allowed(name: str, allowance: Allowance) -> Refusal:
    """Say why a spend allows no noise of a mechanism."""
    law = MECHANISMS[name].law
    if law.needs_delta and allowance.epsilon:
        why = f'mechanism="{name}" needs delta > 0, and none is given or declared.'
        way_out = 'Give delta= (1e-6 for instance), or use mechanism="laplace".'
        reason = CalibrationError(f"{why} {way_out}", parameter="delta")
    else:
        when = "where delta is 0" if law.needs_delta else f"for {law.title} noise"
        way_out = "Give epsilon > 0, or delta > 0 with Gaussian noise."
        reason = CalibrationError.about("epsilon", f"must be > 0 {when}", 0, way_out)
    return Refusal(reason, allowed=False)


def _score(plan: Plan) -> float:
    """Return the predicted variance of all outputs, relative to the ranges of what a row adds."""
    return sum(measured.variance for measured in plan.measurements)
