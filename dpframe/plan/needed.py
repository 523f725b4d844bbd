"""The least that a release must spend for its errors to be small enough: a plan, read backward."""

import math
from collections.abc import Callable, Hashable, Mapping

from dpframe.declaration.facts import Declaration
from dpframe.errors import CalibrationError
from dpframe.plan.plan import Plan, Resolved, candidates, plan_release, resolve
from dpframe.privacy.amounts import Spend
from dpframe.queries.kinds import Query
from dpframe.strategies import MECHANISMS, Mechanism

_FIRST = 1 - 2.0**-30  # classical noise has no larger amount
_LEAST, _MOST = 2.0**-60, 2.0**60
_DIGITS = 6  # of the amount found, rounded up to them


def least_plans(
    declaration: Declaration,
    queries: Mapping[Hashable, Query],
    excess: Callable[[Plan], float],
    mechanism: str,
    delta: float | None,
) -> list[Plan]:
    """Find the least spend with which a mechanism makes no error too large, for every mechanism.

    The amount is an epsilon, at `delta` or at that of the budget; it is a mu for Gaussian noise
    where there is no delta. It is the least of 6 digits, where errors fall as more is spent.

    Parameters
    ----------
    declaration, queries
        As in `plan_release`.
    excess
        The largest ratio of an error to what it may be.
    mechanism
        A name in `MECHANISMS`, or "auto" for all that it compares.
    delta
        The delta of the release; `None`: that of the budget, or none.

    Returns
    -------
    list of Plan
        One plan per mechanism that can reach the errors.

    Raises
    ------
    CalibrationError
        If no mechanism can reach them.
    """
    names = candidates(mechanism, _amount(_FIRST, None, declaration, delta), declaration)
    resolved = resolve(declaration, queries)
    found = [_least(name, declaration, resolved, excess, delta) for name in names]
    plans = [one for one in found if isinstance(one, Plan)]
    if not plans:
        raise next(one for one in found if isinstance(one, CalibrationError))
    return plans


def _least(
    name: str,
    declaration: Declaration,
    resolved: Resolved,
    excess: Callable[[Plan], float],
    delta: float | None,
) -> Plan | CalibrationError:
    """Find the least spend with one mechanism, or say why none will do."""
    why = (
        "its epsilon is below 1"
        if MECHANISMS[name].classical
        else "part of them does not come from noise that is added, such as the error of n="
    )
    refusal = CalibrationError(
        f'no spend with mechanism="{name}" makes the errors as small as wanted: {why}. Allow a '
        "larger error."
    )

    def planned(amount: float) -> Plan | CalibrationError:
        spend = _amount(amount, MECHANISMS[name], declaration, delta)
        try:
            return plan_release(declaration, {}, spend, name, resolved)
        except CalibrationError as error:  # another amount may do
            return error

    def reaches(amount: float) -> bool:
        plan = planned(amount)
        return isinstance(plan, Plan) and excess(plan) <= 1

    amount = _smallest(reaches)
    if amount is not None:
        return planned(amount)
    usual = planned(_FIRST)
    return refusal if isinstance(usual, Plan) else usual


def _amount(
    amount: float, how: Mechanism | None, declaration: Declaration, delta: float | None
) -> Spend:
    """Spend an epsilon, or a mu where Gaussian noise has no delta."""
    ledger = declaration.ledger
    borrowed = ledger is not None and ledger.budget.noise_delta > 0
    if how is None or not how.law.needs_delta or how.classical or delta or borrowed:
        return Spend.of(epsilon=amount, delta=delta)
    return Spend.of(mu=amount)


def _smallest(reaches: Callable[[float], bool]) -> float | None:
    """Find the smallest number of a few digits that is enough; `None` if none is."""
    high = _FIRST
    while not reaches(high):
        high *= 4
        if high > _MOST:
            return None
    low = high / 4
    while reaches(low):
        low, high = low / 4, low
        if low < _LEAST:
            return high
    while high > low * (1 + 10.0**-_DIGITS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    step = 10.0 ** (math.floor(math.log10(high)) + 1 - _DIGITS)
    rounded = float(f"{math.ceil(high / step) * step:.{_DIGITS}g}")
    return rounded if reaches(rounded) else high
