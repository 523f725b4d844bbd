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
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from dpframe.declaration.facts import Declaration
from dpframe.errors import CalibrationError, DPFrameError, of_query
from dpframe.plan.allowances import (
    allowance_of,
    allowance_of_look,
    candidates,
    movement_allowed,
    nothing_allowed,
    used_up,
)
from dpframe.plan.designs import Designs, NoisyDesign, calibrate, narrowest
from dpframe.plan.tables import Table, dimension_of, table_of, tables_of
from dpframe.privacy.amounts import PrivacyLoss, Spend, rho_of_laplace
from dpframe.privacy.laplace import laplace_of_rho
from dpframe.privacy.law import Allowance
from dpframe.privacy.laws import LAPLACE
from dpframe.privacy.sensitivity import Reach
from dpframe.queries.aggregate import Joint
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, Cells
from dpframe.strategies import MECHANISMS, Mechanism
from dpframe.strategies.base import Prediction, Workload
from dpframe.strategies.characters import worth_joining
from dpframe.strategies.domain import Domain, largest_sets

_LOOK_ERROR = 2  # times that of other noise, at most, for pure noise of a look

NamedTables: TypeAlias = Mapping[Hashable, Table]
"""Tables by name, each with what is measured for it."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A release that is ready to be charged and made.

    Parameters
    ----------
    tables
        The tables by the name of the query; a single query has the name `None`.
    designs
        What is measured, with its noise: perhaps for several tables at once.
    mechanism
        Name of the mechanism chosen.
    spend
        How the amount was given.
    loss
        What the release costs.
    others
        Plans of the same release with the other mechanisms that were compared.
    """

    tables: NamedTables
    designs: Mapping[Table, NoisyDesign]
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    others: tuple["Plan", ...] = ()

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return "; ".join(dict.fromkeys(table.asked.words for table in self.tables.values()))

    def of(self, table: Table) -> NoisyDesign:
        """Return what is measured for a table."""
        return self.designs[table.measured]

    def predictions(self, table: Table) -> tuple[Prediction, ...]:
        """Return the error of every column of a table."""
        return self.of(table).predictions[table.own]

    @property
    def variance(self) -> float:
        """The predicted variance of all outputs, relative to the ranges of what a row adds."""
        return sum(noisy.variance for noisy in self.designs.values())

    def error_relative_to(self, other: "Plan") -> float:
        """Return the root mean square of all relative errors, as a multiple of another plan's."""
        mine, theirs = self.variance, other.variance
        return math.sqrt(mine / theirs) if theirs else (1.0 if mine == 0 else math.inf)


def plan_release(
    declaration: Declaration,
    queries: Mapping[Hashable, Query],
    spend: Spend,
    mechanism: str = "auto",
    ways: Sequence[NamedTables] = (),
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
    ways
        What `resolve` makes of the queries, if that is known already.
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
    ways = ways or resolve(declaration, queries, apart=apart)
    allowance = allowance_of(spend, declaration)
    sparing = allowance_of_look(spend, declaration) if look and mechanism == "auto" else None
    allowance = sparing or allowance
    if mechanism == "auto":
        names = [name for name in names if allowance.epsilon >= MECHANISMS[name].least_epsilon]
    found: dict[str, Plan] = {}
    refusals: list[DPFrameError] = []
    for name in names:
        for tables in ways if MECHANISMS[name].across else ways[:1]:
            try:
                plan = _plan_with(name, tables, spend, allowance)
            except CalibrationError as error:  # another mechanism may still do
                refusals.append(error)
                continue
            if plan is not None and (name not in found or plan.variance < found[name].variance):
                found[name] = plan
    if not found:
        reasons = refusals or [used_up(spend, declaration) or nothing_allowed(names[0], allowance)]
        raise reasons[0]
    plans = list(found.values())
    if sparing is None:
        best = min(that_fit(plans, declaration), key=lambda plan: plan.variance)
    else:
        best = _best_look(plans)
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
    best = min(plans, key=lambda plan: plan.variance)
    pure = min(
        (plan for plan in plans if not MECHANISMS[plan.mechanism].law.needs_delta),
        key=lambda plan: plan.variance,
        default=best,
    )
    return pure if pure.error_relative_to(best) <= _LOOK_ERROR else best


def _plan_with(name: str, tables: NamedTables, spend: Spend, allowance: Allowance) -> Plan | None:
    """Plan with one mechanism what is measured as one; `None` where it has no allowance.

    Raises
    ------
    CalibrationError
        If it cannot.
    """
    mechanism = MECHANISMS[name]
    allowed = movement_allowed(mechanism, spend, allowance)
    if not allowed:
        return None
    measured = dict.fromkeys(table.measured for table in tables.values())
    works = [table.workload for table in measured]
    designs = calibrate(mechanism, works, allowed)
    if not designs:
        reason = f'mechanism="{name}" does not apply to these queries; use mechanism="auto".'
        raise CalibrationError(reason, parameter="mechanism", value=name)
    if spend.kind == "rho" and mechanism.law is LAPLACE:
        allowed, designs = _by_its_law(mechanism, works, spend.amount, allowed, designs)
    noisy = any(scale for made in designs.values() for scale in made.scales)
    loss = mechanism.law.charge(allowed if noisy else Fraction(0))
    released = {key: table.released(designs) for key, table in tables.items()}
    made = {table.measured: designs[table.measured.workload] for table in released.values()}
    return Plan(released, made, name, spend, loss)


def _by_its_law(
    mechanism: Mechanism,
    works: Sequence[Workload],
    rho: Fraction,
    allowed: Fraction,
    designs: Designs,
) -> tuple[Fraction, Designs]:
    """Allow Laplace noise the epsilon at which its own law costs a rho, which is a larger one."""
    steps = float(allowed) * _least_scale(designs)
    if not 1 < steps < math.inf:
        return allowed, designs
    larger = Fraction(laplace_of_rho(rho, steps))
    again = calibrate(mechanism, works, larger)
    if not again:
        return allowed, designs
    step = math.nextafter(1 / _least_scale(again), math.inf)
    return (larger, again) if rho_of_laplace(larger, step) <= rho else (allowed, designs)


def _least_scale(designs: Designs) -> float:
    return min(narrowest(noisy.design, noisy.scales) for noisy in designs.values())


def resolve(
    declaration: Declaration, queries: Mapping[Hashable, Query], *, apart: bool = False
) -> list[NamedTables]:
    """Resolve queries, and find those that are measured as one.

    Parameters
    ----------
    declaration
        What is public about the frame.
    queries
        Queries by name.
    apart
        Whether errors of cells are to be independent, so that no noise is shared by tables.

    Returns
    -------
    list
        Tables by name, each with what is measured for it. A second dict is for noise that counts by
        different columns share, if that may be better.

    Raises
    ------
    DeclarationError, QueryError
        If the queries do not fit what is declared.
    """
    tables: dict[Hashable, Table] = {}
    for name, query in queries.items():
        with of_query(name):
            tables |= tables_of(name, query, declaration)
    ways: list[NamedTables] = [_join(tables, declaration)]
    across = {} if apart else _join_across(ways[0])
    return [*ways, across] if across else ways


def _join(tables: NamedTables, declaration: Declaration) -> dict[Hashable, Table]:
    """Join tables that can be measured as one: those of the same groups of the same rows."""
    groups: list[list[Hashable]] = []
    for name, table in tables.items():
        like = (group for group in groups if _can_join(tables[group[0]], table))
        group = next(like, [])
        if not group:
            groups.append(group)
        group.append(name)
    linked: dict[Hashable, Table] = {}
    for group in groups:
        joint = _joint_of([tables[name] for name in group], declaration)
        first = 0
        for name in group:
            linked[name] = replace(tables[name], joint=joint, first=first)
            first += len(tables[name].outputs)
    return {name: linked[name] for name in tables}


def _join_across(tables: NamedTables) -> dict[Hashable, Table]:
    """Join counts of the same rows by different columns, to be measured by sums of signs.

    These are the smallest ones, as far as that is likely to gain something; none where it is not.
    """
    if len({table.measured for table in tables.values()}) < 2:  # noqa: PLR2004
        return {}
    groups: dict[Hashable, list[Hashable]] = {}
    for name, table in tables.items():
        if table.joint is None and _is_count_of_rows(table):
            about = None if table.where is None else table.where.text
            groups.setdefault(about, []).append(name)
    largest = max(groups.values(), key=len, default=[])
    gain = worth_joining([tables[name].workload.domain for name in largest])
    names = [largest[k] for k in gain]
    if len(names) < 2:  # noqa: PLR2004
        return {}
    joint = _across([tables[name] for name in names])
    places = {name: at for at, name in enumerate(names)}
    return {
        name: replace(table, joint=joint, first=places[name]) if name in places else table
        for name, table in tables.items()
    }


def _is_count_of_rows(table: Table) -> bool:
    """Whether a table counts rows that are units of their own, by columns or in all."""
    plain = table.of is None and table.sizes is None and not table.workload.is_layered
    return (
        plain
        and not table.unit
        and table.outputs[0].weights is None
        and table.cells.chosen is None
        and table.workload.outputs == (table.workload.everyone,)
        and not table.query.options.names_given
    )


def _across(tables: Sequence[Table]) -> Table:
    """Resolve counts by several columns as tables of one measurement."""
    first = tables[0]
    axes: list[Axis] = []
    margins = []
    for table in tables:
        places = [_place_axis(axes, axis) for axis in table.cells.axes]
        margins.append(tuple(places))
    hidden = tuple(replace(axis, hidden=True) for axis in axes)
    dimensions = tuple(map(dimension_of, hidden))
    workload = replace(
        first.workload,
        domain=Domain(dimensions, None, tuple(margins)),
        # every row is in a cell of every table, released or not
        reach=Reach(1, 1, 0, 1, always=first.where is None),
    )
    cells = Cells(hidden, margins=largest_sets(tuple(margins)))
    return replace(first, cells=cells, workload=workload)


def _place_axis(axes: list[Axis], axis: Axis) -> int:
    """Return the position of a grouping column, added if it is new."""
    for at, known in enumerate(axes):
        if _same_axis(known, axis):
            return at
    axes.append(axis)
    return len(axes) - 1


def _joint_of(tables: Sequence[Table], declaration: Declaration) -> Table | None:
    """Resolve the query that asks for several tables at once; `None` for one on its own."""
    first = tables[0]
    if first.of is not None:
        return table_of(first.of, declaration)
    if len(tables) == 1:
        return None
    parts = tuple(table.query for table in tables)
    query = Joint(first.query.by, declaration.part_condition, first.query.keys, parts=parts)
    return table_of(query, declaration, first.cells)


def _can_join(one: Table, other: Table) -> bool:
    """Whether two queries count the same rows in the same groups, or are asked for together."""
    if one.of is not None or other.of is not None or one.query.ranges or other.query.ranges:
        return one.of is not None and one.of is other.of
    if one.query.options.names_given or other.query.options.names_given:
        return False
    apart = one.unit != () and one.where != other.where
    alike = one.caps == other.caps and one.valued == other.valued
    alike = alike and one.outputs[0].weights == other.outputs[0].weights
    return not apart and alike and _same_cells(one.cells, other.cells)


def _same_cells(one: Cells, other: Cells) -> bool:
    """Whether groups are the same, in the same order."""
    if len(one.axes) != len(other.axes) or not all(map(_same_axis, one.axes, other.axes)):
        return False
    if one.chosen is None or other.chosen is None:
        return one.chosen is other.chosen
    return np.array_equal(one.chosen, other.chosen)


def _same_axis(one: Axis, other: Axis) -> bool:
    """Whether two columns are grouped alike."""
    if type(one) is not type(other) or one.column != other.column:
        return False
    mine, theirs = one.keys, other.keys
    return bool(mine is theirs or (mine.dtype == theirs.dtype and mine.equals(theirs)))
