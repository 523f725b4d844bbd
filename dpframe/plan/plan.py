"""The frozen, data-free plan of a release: measurements, noise, cost and error.

Every query gets its part of what is allowed, by its weight. Queries that fit one measurement pool
their parts where none errs more than alone. Noise of one law, pure or Gaussian, is taken for all:
that for which `sum of weight times log of error` is least. It costs

    sum over measurements of max over neighbors of sum_k (|Delta w_k| / sigma_k)^p <= allowance ,

which holds in exact rational arithmetic, with p = 2 and mu^2 for Gaussian noise, p = 1 and epsilon
for pure noise.
"""

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol, TypeAlias, TypeVar

from dpframe.context import cached_property
from dpframe.declaration.facts import Declaration
from dpframe.errors import CalibrationError, DPFrameError
from dpframe.frozen import frozen
from dpframe.plan.designs import (
    NoisyDesign,
    allowance_of,
    allowance_of_look,
    calibrate,
    candidates,
    fitting,
    movement_allowed,
    narrowest,
    nothing_allowed,
    sketch,
    used_up,
)
from dpframe.plan.joining import Joining, NamedTables, Pool
from dpframe.plan.tables import Table, name_of
from dpframe.privacy.amounts import PrivacyLoss, Spend, rho_of_laplace
from dpframe.privacy.gaussian import gaussian_epsilon, mu_of_pure
from dpframe.privacy.laplace import laplace_of_rho
from dpframe.privacy.law import Allowance, Law
from dpframe.queries.query import Query
from dpframe.strategies import MECHANISMS, Planner
from dpframe.strategies.base import Prediction

_LOOK_ERROR = 2  # times that of other noise, at most, for pure noise of a look
_NO_VARIANCE = 2.0**-1074  # the least float: noise that is always 0 errs less than any other
_SAME = 1.002  # times the error alone, at most, that a query has where parts are pooled


@frozen(eq=False)
class Plan:
    """A release that is ready to be charged and made.

    Parameters
    ----------
    tables
        The tables by the name of the query; a single query has the name `None`.
    designs
        What is measured, with its noise: perhaps for several tables at once.
    parts
        Which part of the whole each query has; those that nothing moves have none.
    spend
        How the amount was given.
    loss
        What the release costs.
    """

    tables: NamedTables
    designs: Mapping[Table, NoisyDesign]
    parts: Mapping[Hashable, Fraction]
    spend: Spend
    loss: PrivacyLoss

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return "; ".join(dict.fromkeys(table.asked.words for table in self.tables.values()))

    @property
    def mechanism(self) -> str:
        """The names of the mechanisms, each once."""
        return ", ".join(dict.fromkeys(noisy.mechanism for noisy in self.designs.values()))

    def of(self, table: Table) -> NoisyDesign:
        """Return what is measured for a table."""
        return self.designs[table.measured]

    def part_of(self, key: Hashable) -> float:
        """Return the part of the query of a table; 0 where nothing is spent on it."""
        return float(self.parts.get(name_of(key), 0))

    def predictions(self, table: Table) -> tuple[Prediction, ...]:
        """Return the error of every column of a table."""
        return self.of(table).predictions[table.own]

    @property
    def errors(self) -> dict[tuple[Hashable, Hashable], float]:
        """The errors by table and column."""
        return {
            (key, column.name): cell.std_error * column.unit
            for key, table in self.tables.items()
            for column, cell in zip(table.outputs, self.predictions(table), strict=True)
        }


def log_ratios(plan: Plan, other: Plan) -> dict[Hashable, float]:
    """Return the mean logarithm of errors over those of another plan, by query with noise.

    It is that of columns which both plans measure.
    """
    logs: dict[Hashable, list[float]] = {}
    others = other.errors
    for (key, column), error in plan.errors.items():
        beside = others.get((key, column))
        if error and beside:
            logs.setdefault(name_of(key), []).append(math.log(error / beside))
    return {name: math.fsum(values) / len(values) for name, values in logs.items()}


Excess: TypeAlias = Callable[[NamedTables, NoisyDesign], float | None]
"""How large errors of tables measured as one are, in units of those wanted; `None`: none are."""


def plan_release(
    declaration: Declaration,
    queries: Mapping[Hashable, Query],
    spend: Spend,
    mechanism: str = "auto",
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
        A name in `MECHANISMS`, or "auto": those with the smallest predicted error at that spend,
        among those that the budget allows.
    look
        Whether others are to follow. "auto" then makes a small share cost what `Pots.for_look`
        says, and takes pure noise unless that more than doubles the error.
    apart
        Whether errors of cells are to be independent, so that no noise is shared by tables.

    Raises
    ------
    CalibrationError
        If no mechanism can honor the spend.
    DeclarationError, QueryError
        If the queries do not fit what is declared.
    """
    joining = Joining.of(declaration, queries, apart=apart)
    return plan_joined(joining, spend, mechanism, look=look)


def plan_joined(
    joining: Joining,
    spend: Spend,
    mechanism: str = "auto",
    *,
    excess: Excess | None = None,
    look: bool = False,
) -> Plan:
    """Plan the joint release of queries that were resolved; see `plan_release`.

    Queries with errors that are wanted get the least part that reaches them.
    """
    names, declaration = candidates(mechanism), joining.declaration
    allowance = allowance_of(spend, declaration)
    sparing = allowance_of_look(spend, declaration) if look and mechanism == "auto" else None
    is_free = mechanism == "auto"
    planning = Planning(joining, spend, sparing or allowance, excess, is_free=is_free)
    shared: list[Sharing] = []
    refusals: list[DPFrameError] = []
    for names_of_law in names_by_law(names, spend):
        try:
            sharing = planning.share(names_of_law)
        except CalibrationError as error:  # another law may still do
            refusals.append(error)
        else:
            shared += [] if sharing is None else [sharing]
    if not shared:
        reasons = refusals or [
            used_up(spend, declaration) or nothing_allowed(names[0], planning.allowance)
        ]
        raise reasons[0]
    if sparing is None:
        return _best_law(that_fit(shared, declaration)).plan()
    return _best_look(shared).plan()


def names_by_law(names: Sequence[str], spend: Spend) -> list[list[str]]:
    """Group the names of mechanisms whose noise adds up in one way."""
    by_norm: dict[int, list[str]] = {}
    for name in names:
        by_norm.setdefault(MECHANISMS[name].law.norm, []).append(name)
    groups = list(by_norm.values())
    # for a rho, Laplace noise alone is allowed more than other pure noise
    if spend.kind == "rho" and "laplace" in names:
        groups.insert(0, ["laplace"])
    return groups


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


def _best_law(shared: Sequence["Sharing"]) -> "Sharing":
    """Return the best of those in which no query errs more than alone, with one law for all."""
    if shared[0].planning.excess is not None:
        return min(shared, key=lambda sharing: sharing.score(sharing.chosen))
    reference = min(shared, key=lambda sharing: sharing.score(sharing.alone.values())).alone
    losses = [max(sharing.loss_beside(reference).values(), default=0) for sharing in shared]
    # never empty: pools of the law of the reference were taken only within the same limit
    safe = [sharing for sharing, loss in zip(shared, losses, strict=True) if loss <= _SAME]
    return min(safe, key=lambda sharing: sharing.score(sharing.chosen))


def _best_look(shared: Sequence["Sharing"]) -> "Sharing":
    """Return the best one with pure noise, unless another one has less than half its error."""
    best, *others = sorted(shared, key=lambda sharing: sharing.score(sharing.chosen))
    if not best.law.needs_delta or not others:
        return best
    ratio = math.exp(others[0].score(others[0].chosen) - best.score(best.chosen))
    return others[0] if ratio <= _LOOK_ERROR else best


@frozen(eq=False)
class _Measured:
    """Tables that are measured as one, with noise for a part of what is allowed."""

    tables: NamedTables
    noisy: NoisyDesign
    part: Fraction

    @property
    def measured(self) -> Table:
        """The table that is measured."""
        return next(iter(self.tables.values())).measured

    @property
    def is_noisy(self) -> bool:
        """Whether it has noise: what nothing moves has none."""
        return any(self.noisy.scales)

    @cached_property
    def errors(self) -> Mapping[Hashable, list[float]]:
        """The errors of each query, relative to the ranges of what a row adds."""
        errors: dict[Hashable, list[float]] = {}
        for key, table in self.tables.items():
            errors.setdefault(name_of(key), []).extend(self.noisy.relative_errors[table.own])
        return errors

    @cached_property
    def variances(self) -> Mapping[Hashable, float]:
        """The relative variance of each query; its tables and outputs may have weights."""
        if len(self.errors) == 1:
            return dict.fromkeys(self.errors, self.noisy.variance)
        items = self.errors.items()
        return {name: sum(error * error for error in errors) for name, errors in items}

    def loss_beside(self, alone: Mapping[Hashable, "_Measured"]) -> dict[Hashable, float]:
        """Return by which factor some error of each query is larger than alone."""
        return {
            name: max(map(_ratio, errors, alone[name].errors[name]))
            for name, errors in self.errors.items()
            if name in alone
        }


def _ratio(error: float, alone: float) -> float:
    if error == alone:
        return 1.0
    return error / alone if alone else math.inf


@frozen(eq=False)
class Planning:
    """What is planned for one law of noise after the other."""

    joining: Joining
    spend: Spend
    allowance: Allowance
    excess: Excess | None
    is_free: bool

    def share(self, names: Sequence[str]) -> "Sharing | None":
        """Plan with noise of one law; `None` where it has no allowance.

        Raises
        ------
        CalibrationError
            If it cannot.
        """
        allowed = movement_allowed(MECHANISMS[names[0]], self.spend, self.allowance)
        if not allowed:
            return None
        sharing = Sharing(self, names, allowed)
        if self.spend.kind == "rho" and [*names] == ["laplace"]:
            sharing = self._by_its_law(sharing)
        _ = sharing.chosen  # planned now: an error is to be raised here
        return sharing

    def _by_its_law(self, sharing: "Sharing") -> "Sharing":
        """Allow Laplace noise the epsilon at which its own law costs a rho, which is larger."""
        steps = float(sharing.allowed) * sharing.narrowest
        if not 1 < steps < math.inf:
            return sharing
        larger = replace(sharing, allowed=Fraction(laplace_of_rho(self.spend.amount, steps)))
        step = math.nextafter(1 / larger.narrowest, math.inf)
        return larger if rho_of_laplace(larger.allowed, step) <= self.spend.amount else sharing


@frozen(eq=False)
class Sharing:
    """Queries that share what is allowed for noise of one law."""

    planning: Planning
    names: Sequence[str]
    allowed: Fraction

    @property
    def law(self) -> Law:
        """The law of noise, or one like it."""
        return MECHANISMS[self.names[0]].law

    @property
    def loss(self) -> PrivacyLoss:
        """What it costs."""
        used = sum((group.part for group in self.chosen if group.is_noisy), start=Fraction(0))
        return self.law.charge(self.allowed * used)

    def plan(self) -> Plan:
        """Calibrate the noise in fractions."""
        released: dict[Hashable, tuple[Table, NoisyDesign]] = {}
        for group in self.chosen:
            noisy = calibrate(group.noisy, self.allowed * group.part)
            released |= {key: (table.released(noisy), noisy) for key, table in group.tables.items()}
        keys = list(self.planning.joining.all_tables)  # in the order of the queries, not of pools
        tables = {key: released[key][0] for key in keys}
        designs = {released[key][0].measured: released[key][1] for key in keys}
        parts = {name: part for group in self.chosen for name, part in self.split(group).items()}
        return Plan(tables, designs, parts, self.planning.spend, self.loss)

    def split(self, measured: _Measured) -> dict[Hashable, Fraction]:
        """Split what queries have together, by their weights."""
        parts = {name: self.parts[name] for name in measured.errors if name in self.parts}
        total = sum(parts.values(), start=Fraction(0))
        return {name: measured.part * part / total for name, part in parts.items()}

    def loss_beside(self, alone: Mapping[Hashable, _Measured]) -> dict[Hashable, float]:
        """Return by which factor some error of each query is larger than alone."""
        losses: dict[Hashable, float] = {}
        for group in self.chosen:
            losses |= group.loss_beside(alone)
        return losses

    @cached_property
    def _with_all(self) -> Mapping[Hashable, _Measured]:
        """Each query, measured on its own with all that is allowed."""
        queries = self.planning.joining.tables.items()
        return {name: self._best(tables, Fraction(1)) for name, tables in queries}

    @cached_property
    def free(self) -> dict[Hashable, _Measured]:
        """Queries that nothing moves, which need no noise."""
        return {name: group for name, group in self._with_all.items() if not group.is_noisy}

    @cached_property
    def parts(self) -> Mapping[Hashable, Fraction]:
        """The part of each query that is not free, by its weight."""
        queries = self.planning.joining.queries
        weights = {
            name: Fraction(query.weight) for name, query in queries.items() if name not in self.free
        }
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    @cached_property
    def alone(self) -> dict[Hashable, _Measured]:
        """Each of these queries, measured on its own."""
        if len(self.parts) == 1:
            return {name: self._with_all[name] for name in self.parts}
        tables = self.planning.joining.tables
        return {name: self._best(tables[name], part) for name, part in self.parts.items()}

    @cached_property
    def chosen(self) -> Sequence[_Measured]:
        """All that is measured."""
        chosen = list(self.free.values())
        for pool in self.planning.joining.pools:
            names = tuple(name for name in pool.names if name in self.parts)
            chosen += self._pool(pool._replace(names=names))
        if not self.planning.is_free:
            self._require_use()
        excess = self.planning.excess
        return chosen if excess is None else self._reach(chosen, excess)

    def _reach(self, chosen: Sequence[_Measured], excess: Excess) -> list[_Measured]:
        """Give to what is to err no more than wanted the least part, and to others the rest."""
        targets = [group for group in chosen if excess(group.tables, group.noisy) is not None]
        least = {group: self.least(group, excess) for group in targets}
        used = sum((group.part for group in least.values()), start=Fraction(0))
        others = [group for group in chosen if group not in least and group.is_noisy]
        if used > 1 or (used == 1 and others):
            raise self._too_much(used, others)
        weights = sum((group.part for group in others), start=Fraction(0))
        parts = {group: (1 - used) * group.part / weights for group in others}
        changes = least | {group: self._best(group.tables, part) for group, part in parts.items()}
        return [changes.get(group, group) for group in chosen]

    def least(self, measured: _Measured, excess: Excess) -> _Measured:
        """Measure tables with the least part that makes no error larger than wanted."""

        def made_with(part: float) -> _Measured | None:
            try:
                group = self._best(measured.tables, Fraction(part))
            except CalibrationError:  # too little for any noise
                return None
            return group if (excess(group.tables, group.noisy) or 0) <= 1 else None

        part = smallest(lambda part: made_with(part) is not None)
        least = None if part is None else made_with(part)
        if least is None:
            wrong = "no amount makes the errors as small as wanted: part of them does not come"
            reason = "from noise that is added, such as the error of n=."
            raise CalibrationError(f"{wrong} {reason} Allow a larger error.", parameter="within")
        return least

    def _too_much(self, used: Fraction, others: Sequence[_Measured]) -> CalibrationError:
        """Say how much the errors that are wanted need."""
        amount = self._needed(float(used))
        return too_much_wanted(self.planning.spend, amount, others=bool(others))

    def _needed(self, times: float) -> float:
        """Return how much to spend for so many times what is allowed."""
        spend, delta = self.planning.spend, self.planning.allowance.delta
        match spend.kind, self.law.norm:
            case "epsilon", 2 if delta:
                return gaussian_epsilon(delta, math.sqrt(float(self.allowed) * times))
            case "mu", 2:  # what is allowed is mu squared
                return float(spend.amount) * math.sqrt(times)
            case "mu", 1:
                return mu_of_pure(self.allowed * Fraction(times))
            case _:
                return float(spend.amount) * times

    def score(self, measured: Iterable[_Measured]) -> float:
        """Return the sum of the logarithms of the errors of queries, by their weights."""
        queries = self.planning.joining.queries
        variances = {name: v for group in measured for name, v in group.variances.items()}
        logs = {name: math.log(v or _NO_VARIANCE) / 2 for name, v in variances.items()}
        return sum(queries[name].weight * log for name, log in logs.items())

    @property
    def narrowest(self) -> float:
        """The smallest scale of noise."""
        return min(narrowest(group.noisy.design, group.noisy.scales) for group in self.chosen)

    def _pool(self, pool: Pool) -> list[_Measured]:
        """Measure as one the queries of a pool that lose nothing by it; the others try again."""
        measured, names, left = [], [*pool.names], list[Hashable]()
        while names:
            joined = self._joined(pool._replace(names=tuple(names)))
            loss = {} if joined is None else joined.loss_beside(self.alone)
            loser = max(names, key=lambda name: loss.get(name, math.inf))
            if joined is not None and (len(names) == 1 or loss[loser] <= _SAME):
                measured.append(joined)
                names, left = left, []
            else:
                left.append(loser)  # perhaps it loses nothing with others that are left
                names.remove(loser)
        return measured

    def _joined(self, pool: Pool) -> _Measured | None:
        """Measure queries as one, with what they have together; `None` where nothing does."""
        if len(pool.names) == 1:
            return self.alone[pool.names[0]]
        part = sum((self.parts[name] for name in pool.names), start=Fraction(0))
        try:
            return self._best(self.planning.joining.joined(pool), part)
        except CalibrationError:
            return None

    def _best(self, tables: NamedTables, part: Fraction) -> _Measured:
        """Measure tables as one, in the way for which the mean logarithm of errors is least."""
        workload = next(iter(tables.values())).measured.workload
        is_free, allowed = self.planning.is_free, self.allowed * part
        beside = not is_free and len(self.planning.joining.tables) > 1
        groups, refusals = [], []
        tried: dict[object, frozenset[Planner]] = {}  # by law, but for what is drawn together
        for name in self.names:
            mechanism = MECHANISMS[name]
            if is_free and self.planning.allowance.epsilon * part < mechanism.least_epsilon:
                continue
            law = mechanism.law.norm, mechanism.law.shape
            without = tried.get(law, frozenset())
            if is_free:
                tried[law] = without | {*mechanism.planners(workload)}
            try:
                noisy = sketch(name, workload, allowed, beside=beside, without=without)
            except CalibrationError as error:  # another mechanism may still do
                refusals.append(error)
            else:
                groups += [] if noisy is None else [_Measured(tables, noisy, part)]
        if not groups:
            raise refusals[0] if refusals else self._unfit()
        return groups[0] if len(groups) == 1 else min(groups, key=lambda group: self.score([group]))

    def _require_use(self) -> None:
        """Refuse a mechanism that was asked for where none of its own designs applies."""
        joining, name = self.planning.joining, self.names[0]
        requests = [*joining.tables.values(), *map(joining.joined, joining.pools)]
        works = [next(iter(tables.values())).measured.workload for tables in requests]
        if not any(fitting(name, work, beside=False) for work in works):
            raise self._unfit()

    def _unfit(self) -> CalibrationError:
        reason = (
            f'mechanism="{self.names[0]}" does not apply to these queries; use mechanism="auto".'
        )
        return CalibrationError(reason, parameter="mechanism", value=self.names[0])


def too_much_wanted(spend: Spend, amount: float, *, others: bool) -> CalibrationError:
    """Say how much the errors that are wanted need, beside other queries or alone."""
    amounts = f"{spend.kind}={amount:.4g}, and {float(spend.amount):.4g} is given"
    remedy = "Spend as much, or a little more for the others, or allow"
    if not others:
        remedy = "Spend as much, or allow"
    if amount > (1 if spend.kind == "share" else sys.float_info.max):
        amounts, remedy = f"more than any {spend.kind} gives", "Allow"
    text = f"the errors that are wanted need {amounts}. {remedy} larger errors."
    return CalibrationError(text, parameter="within", value=amount)


_LEAST, _MOST = 2.0**-60, 2.0**60  # numbers between which a search stays
NEAR = 1e-6  # how much more than the least part is taken


def smallest(reaches: Callable[[float], bool]) -> float | None:
    """Find the smallest number that is enough, or a little more; `None` if none is."""
    high = 1.0
    while not reaches(high):
        high *= 4
        if high > _MOST:
            return None
    low = high / 4
    while reaches(low):
        low, high = low / 4, low
        if low < _LEAST:
            return high
    while high > low * (1 + NEAR):
        middle = math.sqrt(low * high)  # parts of a budget differ by powers of ten
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
