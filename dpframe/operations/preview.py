"""What a release would cost and how accurate it would be, before anything is spent."""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag
from dpframe.certificates.diagnosis import ShownFrame
from dpframe.checker.check import check_charge
from dpframe.context import at_the_door
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame
from dpframe.engines.declared import check_matches, check_queries, declaration_of
from dpframe.errors import CalibrationError, QueryError, quote
from dpframe.operations.release import has_noise, in_part, plan_operation
from dpframe.operations.tables import PER_ROWS, PlannedTables, expected_outputs, in_tables
from dpframe.plan.allowances import candidates
from dpframe.plan.plan import NamedTables, Plan, plan_release, resolve
from dpframe.privacy.amounts import Amount, Spend, check_delta
from dpframe.privacy.neighbors import EachRow
from dpframe.public import public_call
from dpframe.queries.query import Query, Request
from dpframe.strategies import MECHANISMS, Mechanism, MechanismName

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
    names = candidates(mechanism)
    ways = resolve(declaration, queries)
    found = [_least(name, declaration, ways, excess, delta) for name in names]
    plans = [one for one in found if isinstance(one, Plan)]
    if not plans:
        raise next(one for one in found if isinstance(one, CalibrationError))
    return plans


def _least(
    name: str,
    declaration: Declaration,
    ways: Sequence[NamedTables],
    excess: Callable[[Plan], float],
    delta: float | None,
) -> Plan | CalibrationError:
    """Find the least spend with one mechanism, or say why none will do."""
    why = "part of them does not come from noise that is added, such as the error of n="
    if MECHANISMS[name].classical:
        why = "its epsilon is below 1"
    wrong = f'no spend with mechanism="{name}" makes the errors as small as wanted: {why}.'
    refusal = CalibrationError(f"{wrong} Allow a larger error.", parameter="mechanism", value=name)

    def planned(amount: float) -> Plan | CalibrationError:
        spend = _amount(amount, MECHANISMS[name], declaration, delta)
        try:
            return plan_release(declaration, {}, spend, name, ways)
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


def _amount(amount: float, how: Mechanism, declaration: Declaration, delta: float | None) -> Spend:
    """Spend an epsilon, or a mu where Gaussian noise has no delta."""
    ledger = declaration.ledger
    borrowed = ledger is not None and ledger.budget.noise_delta > 0
    if not how.law.needs_delta or how.classical or delta or borrowed:
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


Wanted: TypeAlias = float | Mapping[Hashable, float]
"""How large an error may be: of all outputs, or by output."""

_Show: TypeAlias = Callable[[Plan], dict[Hashable, dict[str, Any]]]
"""What to expect of every output of a plan."""


@public_call
def preview(
    frame: Frame, queries: Request, *,
    epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
    rho: Amount | None = None, share: Amount | None = None, part: object = None,
    mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
    compare: bool = False, std_error: Wanted | None = None, half_width: Wanted | None = None,
    rows: float | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Show cost and error of a release without making it; reads no data and spends nothing.

    Give an amount to see the errors, or the errors that you want to see what they cost.

    Parameters
    ----------
    frame
        A declared frame. Only its declaration and its column labels are read.
    queries
        As in `release`.
    epsilon, delta, mu, rho, share, part, mechanism, privacy_unit
        See `dpframe.options.Spending`.
    compare
        Whether to show one row per mechanism that "auto" would compare.
    std_error, half_width
        Instead of an amount: the largest standard error, or half-width of a 95 % interval. One
        number for all outputs, or a dict by column (by query and column, in a tuple, for a dict of
        queries; for margins also by table and column). `delta` may be given beside it.
    rows
        Number of rows of a cell for which to show the errors of means. Needed to limit the error of
        a mean, and to see means in tables with one row per mechanism.

    Returns
    -------
    DataFrame
        With an amount, one row per output column (for margins per table and column):

        - `mechanism`, and `sigma`, the scale of the noise in the units of the column;
        - `std_error` and `half_width_95` of one cell. If `per` says "1 / rows" (means, at their
          worst), divide them by the number of rows in the cell;
        - `mu`, `epsilon`, `delta`: the cost of the whole release; `fits`: whether the budget allows
          it; `remaining_epsilon`, `remaining_mu`: the largest pure and Gaussian release that fits
          afterwards.

        With `compare`, one row per mechanism, the chosen one first: `relative_error`, the root mean
        square of all errors relative to the chosen one's, and the standard errors of the outputs.
        With `std_error` or `half_width`, one row per mechanism, the cheapest first: the least
        `epsilon`, `delta` and `mu` that reach it, `fits`, what remains, and the errors of the
        outputs. The name of the columns says which errors these are. Selected quantiles have one
        row each, with `rank_error_95`: at most so many rows lie between the quantile and the
        selected bin, with a probability of 95 % or more. Searches by `discover`, `suggest_caps` and
        `suggest_bounds` have tables of their own, described there.

    Notes
    -----
    The least spend is sought among epsilons from 2**-60 to 2**60, at the delta given or that of the
    budget; among mus if there is no delta. Gaussian noise spends its delta however small epsilon
    is, so its error has a largest value: if that is below the one wanted, the row shows it.

    Raises
    ------
    CalibrationError, DeclarationError, QueryError, UnknownColumnError
        As `release`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> query = dpf.count(by="zone", keys=["A", "B", "C"])
    >>> preview(trips, query, epsilon=0.5)[["mechanism", "epsilon", "fits"]].to_dict("list")
    {'mechanism': ['laplace'], 'epsilon': [0.5], 'fits': [True]}

    How much must be spent for a standard error of 5:

    >>> preview(trips, query, std_error=5, delta=1e-6)["epsilon"].round(4).to_dict()
    {'laplace': 0.2819, 'gaussian': 0.8356}
    """
    amounts = {"epsilon": epsilon, "mu": mu, "rho": rho, "share": share}
    errors = {"std_error": std_error, "half_width": half_width}
    _check_amounts(amounts, errors, compare=compare)
    cell = None if rows is None else _positive("rows", rows, least=1)
    declaration = declaration_of(frame, at_the_door(looking=True))
    declaration = declaration.with_unit(privacy_unit).in_part(part)
    queries = in_part(declaration, queries)
    limits = std_error if half_width is None else half_width
    about_noise = compare or limits is not None or rows is not None
    if about_noise and not has_noise(queries, mechanism):
        raise CalibrationError(
            "std_error=, half_width=, compare= and rows= are for errors of noise in tables of "
            "queries, not for what is selected or looked for: preview an amount, epsilon=..., and "
            "see what it returns, rank_error_95 of a quantile for instance.",
            parameter="compare" if compare else None,
        )
    show = partial(expected_outputs, cell=cell, several=isinstance(queries, Mapping))
    if limits is None:
        spend = Spend.of(delta=delta, **amounts)
        operation = plan_operation(frame, declaration, queries, spend, mechanism)
        check_charge(operation, operation.loss)
        if not isinstance(operation, PlannedTables):
            return ShownFrame(operation.preview())
        if compare:
            return ShownFrame(_compare_mechanisms(operation.plan, show))
        return ShownFrame(operation.preview(cell))
    measure = "std_error" if half_width is None else "half_width_95"
    engine, asked = check_queries(frame, queries)
    excess = _excess(limits, measure, show)
    mass = None if delta is None else check_delta(delta)
    plans = least_plans(declaration, asked, excess, mechanism, mass)
    several = isinstance(queries, Mapping)
    tables = [PlannedTables.of(plan, declaration, engine, several=several) for plan in plans]
    for one in tables:
        check_charge(one, one.loss)
    engine.check(frame, tables[0].columns)
    check_matches(engine.manifest(frame), declaration, asked, tables[0].axes)
    return ShownFrame(_table_of_needed(tables, measure, show))


def _compare_mechanisms(plan: Plan, show: _Show) -> pd.DataFrame:
    """One row per mechanism."""
    others = sorted(plan.others, key=lambda other: other.error_relative_to(plan))
    facts = {one: {"relative_error": one.error_relative_to(plan)} for one in (plan, *others)}
    return _by_mechanism(facts, "std_error", show)


def _table_of_needed(tables: Sequence[PlannedTables], measure: str, show: _Show) -> pd.DataFrame:
    """One row per mechanism, the least epsilon first, the least mu where there is none."""
    facts = {one.plan: one.outlook() for one in tables}
    table = _by_mechanism(facts, measure, show)
    table[["epsilon", "delta"]] = table[["epsilon", "delta"]].astype(float)
    return table.sort_values(["epsilon", "mu"], kind="stable")


def _by_mechanism(facts: Mapping[Plan, dict[Any, Any]], measure: str, show: _Show) -> pd.DataFrame:
    """Put one kind of error beside facts about plans; means have none in cells of unknown size."""
    rows = [
        own | {name: one[measure] for name, one in show(plan).items() if one["per"] not in PER_ROWS}
        for plan, own in facts.items()
    ]
    index = pd.Index([plan.mechanism for plan in facts], name="mechanism")
    return pd.DataFrame(rows, index=index).rename_axis(columns=measure)


def _excess(limits: Wanted, measure: str, show: _Show) -> Callable[[Plan], float]:
    """Return the function that says by how much the errors of a plan are too large."""

    def excess(plan: Plan) -> float:
        outputs = show(plan)
        called = measure.removesuffix("_95")
        largest = _limits(limits, called, outputs, tables=in_tables(plan))
        if any(outputs[label]["per"] in PER_ROWS for label in largest):
            why = "the error of a mean depends on the number of rows of its cell:"
            way = "give rows=, for instance rows=100."
            raise QueryError(f"{why} {way}", parameter="rows")
        return max(float(outputs[label][measure]) / limit for label, limit in largest.items())

    return excess


def _limits(
    limits: Wanted, called: str, outputs: Collection[Hashable], *, tables: bool
) -> Mapping[Hashable, float]:
    """Read how large the errors of outputs may be; a name without a table is for all tables."""
    named = limits if isinstance(limits, Mapping) else dict.fromkeys(outputs, limits)
    known: dict[Hashable, list[Hashable]] = {one: [one] for one in outputs}
    for one in outputs if tables else ():
        known.setdefault(_of_all(one), []).append(one)
    if not named or any(label not in known for label in named):
        names = quote(list(outputs))
        raise QueryError.about(
            called, f"must be a number, or a dict by output; the outputs are {names}", limits
        )
    return {one: _positive(called, named[label]) for label in named for one in known[label]}


def _of_all(label: Hashable) -> Hashable:
    """Return the name of an output that has a table, without it."""
    if not isinstance(label, tuple):
        return label
    return (*label[:-2], label[-1]) if label[:-2] else label[-1]


def _check_amounts(
    amounts: Mapping[str, object], errors: Mapping[str, object], *, compare: object
) -> None:
    """Check that it is asked either for errors or for a spend."""
    check_flag("compare", compare)
    limits = [name for name, limit in errors.items() if limit is not None]
    spends = any(amount is not None for amount in amounts.values())
    if limits and (spends or compare or len(limits) > 1):
        raise CalibrationError(
            "std_error= and half_width= ask for the spend that an error needs, for every "
            "mechanism: give one of them, without epsilon=, mu=, rho=, share= and compare=.",
            parameter=limits[0],
        )


def _positive(called: str, given: object, least: float = 0.0) -> float:
    """Check a number above 0 and no smaller than the least."""
    if isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool):
        number = float(given)
        if 0 < number < math.inf and number >= least:
            return number
    rule = f"at least {least:g}" if least else "above 0"
    raise QueryError.about(called, f"must be a finite number {rule}", given)
