"""Caps and bounds that are suggested: a histogram to release, and the noise of a later query.

Plans of the later query are made first, without data; then the histogram is a release as any other,
and errors are computed from what came out.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any, Self, assert_never, get_args

import numpy as np
import pandas as pd

from dpframe.certificates.parts import LedgerPart
from dpframe.checker.witness import Witness
from dpframe.context import Context
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame, engine_for
from dpframe.engines.capping import binding
from dpframe.engines.declared import SINGLE
from dpframe.errors import CalibrationError, DeclarationError, QueryError, quote
from dpframe.frozen import frozen
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Certifier, Operation
from dpframe.operations.tables import PlannedTables, plan_tables
from dpframe.plan.cells import cells_of
from dpframe.plan.columns import OutputColumn
from dpframe.plan.plan import Plan, plan_release
from dpframe.plan.tables import Table, table_of
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.edges import check_bins
from dpframe.queries.query import Bins, OutputSpec, Query
from dpframe.queries.searches import (
    LARGEST,
    MOST_LARGEST,
    BoundSearch,
    CapSearch,
    UnitSizes,
    candidate_caps,
    dropped_rows,
    sizes_of,
)
from dpframe.queries.tasks import SizeKind
from dpframe.steps.suggest_caps import BoundErrors, CapErrors, mean_error

_LATER = 9  # times what is spent on asking, by default
_DROPPED = "dropped"  # the table of rows that other caps drop
_KINDS: tuple[SizeKind, ...] = get_args(SizeKind)
_SAME_GROUPS = "Ask for the count of the same groups, query=dpf.count(by=...), and use its cap."


@frozen(eq=False, kw_only=True)
class Suggestion(PlannedTables):
    """A histogram from which caps or bounds are suggested."""

    facts: CapErrors | BoundErrors

    def denoised(self, method: str | None, graph: object) -> Self:
        """Refuse to denoise what errors are predicted from."""
        return Operation.denoised(self, method, graph)

    def outlook_table(self) -> pd.DataFrame:
        """One row per bin: its error, and the noise of the later query."""
        table = self.plan.tables[SINGLE]
        (prediction,) = self.plan.predictions(table)
        columns: dict[str, Any] = {
            "std_error": prediction.std_error,
            **self.facts.columns_of_noise,
            **self.left_after(),
        }
        return pd.DataFrame(columns, table.cells.index)

    def certifier(self, entry: Entry, witness: Witness, context: Context) -> Certifier:
        """Write the certificate of the histogram, to which errors are added."""
        certify = super().certifier(entry, witness, context)

        def suggest(noisy: Any, ledger: LedgerPart | None) -> pd.DataFrame:
            released = certify(noisy, ledger)
            if isinstance(self.facts, BoundErrors):
                return self.facts.add_to(released)
            return self.facts.add_to(released[SINGLE], released.get(_DROPPED))

        return suggest


def plan_suggestion(
    frame: Frame,
    declaration: Declaration,
    search: CapSearch | BoundSearch,
    spend: Spend,
    mechanism: str,
) -> Suggestion:
    """Check everything public about a suggestion, and plan its histogram and the later query."""
    engine = engine_for(frame)
    engine.check(frame, search.labels)
    groups = cells_of(search.query, declaration).axes
    queries: Query | dict[Any, Query]
    facts: CapErrors | BoundErrors
    match search:
        case CapSearch():
            queries, facts = plan_caps(declaration, search, spend)
        case BoundSearch():
            queries, facts = plan_bounds(declaration, search, spend)
        case _:
            assert_never(search)
    tables = plan_tables(frame, declaration, queries, spend, mechanism, look=True)
    more = {"facts": facts, "axes": {SINGLE: groups}}  # those of the later query
    return Suggestion.of(tables.plan, declaration, engine, several=tables.several, **more)


def query_of_search(declaration: Declaration, search: CapSearch | BoundSearch) -> Query:
    """Say which histogram is released, whatever is spent."""
    match search:
        case CapSearch():
            return _sizes_of(declaration, search)[0]
        case BoundSearch():
            return _bins_of(declaration, search)[0]
    assert_never(search)


def plan_caps(
    declaration: Declaration, search: CapSearch, spend: Spend
) -> tuple[dict[Any, Query], CapErrors]:
    """Say what to ask of units, and what is public about the error that each cap leaves.

    Raises
    ------
    CalibrationError, DeclarationError, QueryError
        If there is nothing to cap, or the later query cannot be released.
    """
    later = search.query
    query, table, kind = _sizes_of(declaration, search)
    most = query.most
    amounts = _amounts(search.planned, spend, declaration)

    def noise(cap: int) -> float:
        """Return the mean absolute error that the noise for a cap makes in a group."""
        query = replace(later, limits=replace(later.limits, **{kind: cap}))
        words = f"max_{kind}={cap} and ", ", or look at smaller caps with largest="
        return _mean_error(_plan_later(query, declaration, amounts, *words))

    queries: dict[Any, Query] = {SINGLE: query}
    if query.others != NO_CAPS:
        queries[_DROPPED] = sizes_of(later, "dropped", dropped_rows(), query.others)
    errors = np.array(list(map(noise, most.tolist())))
    lost = _lost(kind, table), _lost("rows", table)
    return queries, CapErrors(later.words, amounts, most.to_numpy(), errors, *lost)


def _sizes_of(declaration: Declaration, search: CapSearch) -> tuple[UnitSizes, Table, SizeKind]:
    """Say what to ask of units, of which table and for which cap."""
    _check_unit(declaration)
    later = search.query
    table = table_of(later, declaration)
    _check_outputs(table)
    kind = search.kind or _usual_kind(later, declaration)
    most = candidate_caps(kind, _largest(kind, search.largest, table, declaration.caps))
    return sizes_of(later, kind, most, _others(kind, table)), table, kind


def _others(kind: SizeKind, table: Table) -> Caps:
    """Return the caps beside one, but for those that the others imply; units have but one."""
    if table.query.counts_units:
        return NO_CAPS
    return binding(replace(table.caps, **{kind: None}), table.cells.size)


def _check_unit(declaration: Declaration) -> None:
    if not declaration.unit_columns:
        raise DeclarationError(
            "there is nothing to cap: no privacy unit is declared, so that every row is one of its "
            "own. Name the column that says whose row it is: .dp.declare(privacy_unit=..., "
            "max_rows=...).",
            parameter="privacy_unit",
        )


def _check_outputs(table: Table) -> None:
    """Check that caps leave out a part of what is asked, rather than change what it is of."""
    if table.query.margins or table.query.ranges:
        rule = "query must be of one table, whose groups are those that caps count,"
        raise QueryError(f"{rule} got {table.query.words}. {_SAME_GROUPS}", parameter="query")
    other = [out.statistic for out in table.outputs if not out.form.is_total]
    if other:
        reason = f"query must be of counts, sums or units, got one of kind {other[0]!r}:"
        remedy = f"no histogram of rows says by how much a cap moves it. {_SAME_GROUPS}"
        raise QueryError(f"{reason} {remedy}", parameter="query", value=other[0])


def _usual_kind(query: Query, declaration: Declaration) -> SizeKind:
    """Return the one cap there is, or rows."""
    if query.counts_units:
        return "groups"
    for caps in (query.limits, declaration.caps):
        kinds = [kind for kind in _KINDS if getattr(caps, kind) is not None]
        if kinds:
            return kinds[0] if len(kinds) == 1 else "rows"
    return "rows"


def _largest(kind: SizeKind, largest: int | None, table: Table, declared: Caps) -> int:
    """Return the largest candidate: no more than other caps and the number of groups leave."""
    caps, size = table.caps, table.cells.size
    most = table.query.limits.rows or declared.rows  # that of units is no cap of the table
    match kind:
        case "groups":
            most = min(size, most or size)
        case "rows":
            in_group = caps.rows_per_group
            most = None if in_group is None else in_group * min(caps.groups or size, size)
        case "rows_per_group":
            pass
        case _:
            assert_never(kind)
    return min(largest or LARGEST, most or MOST_LARGEST)


def _amounts(planned: Spend | None, spend: Spend, declaration: Declaration) -> dict[str, float]:
    """Say how much the later query is to spend."""
    if planned is None:
        return _nine_times(spend, declaration)
    delta = {} if planned.delta is None else {"delta": planned.delta}
    return {planned.kind: float(planned.amount), **delta}


def _nine_times(spend: Spend, declaration: Declaration) -> dict[str, float]:
    """Plan a query that spends nine times what is spent on asking."""
    amount = float(_LATER * spend.amount)
    if spend.kind == "share" and declaration.ledger is not None:
        left = declaration.ledger.status().largest_share - float(spend.amount)
        amount = min(amount, left)
        if amount <= 0:
            share = float(spend.amount)
            wrong = f"share={share:g} leaves no share for the query that is to be released later."
            remedy = "Spend less on asking, or say what it will spend: planned={'epsilon': 0.9}."
            raise CalibrationError(f"{wrong} {remedy}", parameter="share", value=share)
    delta = {} if spend.delta is None else {"delta": spend.delta}
    return {spend.kind: amount, **delta}


def _plan_later(
    query: Query, declaration: Declaration, amounts: dict[str, float], cap: str = "", hint: str = ""
) -> Plan:
    """Plan the later query; an error says with which cap, and what else would help."""
    try:
        return plan_release(declaration, {SINGLE: query}, Spend.of(**amounts))
    except CalibrationError as error:
        reason = f"with {cap}planned={quote(amounts)}, the query cannot be released:"
        remedy = f"{error} Say what it may spend with planned={hint}."
        raise CalibrationError(f"{reason} {remedy}", parameter="planned", value=amounts) from None


def _mean_error(plan: Plan) -> float:
    """Return the mean absolute error of a group; of several outputs, in rows."""
    table = plan.tables[SINGLE]
    outputs = table.outputs[: len(table.workload.outputs)]  # the number of rows may come beside
    rows = [1.0] if len(outputs) == 1 else map(_mean_size, outputs)
    triples = zip(outputs, plan.predictions(table), rows, strict=False)
    errors = [mean_error(error.std_error) * out.step / row for out, error, row in triples]
    return float(np.mean(errors))


def _lost(kind: SizeKind, table: Table) -> float:
    """Return by how much one row beyond the cap, or one group, changes the mean group."""
    most = table.caps.rows_per_group or table.caps.rows or 1  # rows of a unit in a group
    rows = math.sqrt(most) if kind == "groups" else 1.0
    alone = _mean_size(table.outputs[0]) if len(table.outputs) == 1 else 1.0
    return rows * alone / table.cells.size


def _mean_size(out: OutputColumn) -> float:
    """Return the mean of `|x|` for x anywhere in the bounds; 1 for counts."""
    if out.grid is None:
        return 1.0
    low, high = out.grid.lower, out.grid.upper
    if low >= 0 or high <= 0:
        return abs(low + high) / 2 * out.step or 1.0
    return (low * low + high * high) / (2 * (high - low)) * out.step


_UNIT = 2.0**32  # bounds of this size have whole numbers as their grid, of integers or not


def plan_bounds(
    declaration: Declaration, search: BoundSearch, spend: Spend
) -> tuple[Query, BoundErrors]:
    """Say which histogram to release, and what is public about the errors that bounds leave.

    Raises
    ------
    CalibrationError, DeclarationError, QueryError
        If the column holds no numbers, or the later query cannot be released.
    """
    query, ends = _bins_of(declaration, search)
    later = search.query
    (output,) = later.outputs
    amounts = _amounts(search.planned, spend, declaration)
    powers = search.within is None

    @cache  # with a ratio of powers of two, many pairs have one plan
    def error_within(low: float, high: float) -> float:
        bounded = replace(output, bounds={search.column: (low, high)})
        plan = _plan_later(replace(later, outputs=(bounded,)), declaration, amounts)
        table = plan.tables[SINGLE]
        return mean_error(plan.predictions(table)[0].std_error) * table.outputs[0].step

    def error(low: float, high: float) -> float:
        """Return the mean absolute error that the noise for some bounds makes in a group."""
        if low >= high:
            return np.inf
        # noise is proportional to bounds; powers of two are multiplied without rounding
        factor = max(abs(low), abs(high)) / _UNIT if powers else 1.0
        return error_within(float(low / factor), float(high / factor)) * factor

    noise = np.array([[error(low, high) for high in ends] for low in ends])
    groups, is_mean = cells_of(later, declaration).size, output.form.is_mean
    errors = BoundErrors(later.words, amounts, ends, noise, groups, is_mean=is_mean, powers=powers)
    return query, errors


def _bins_of(declaration: Declaration, search: BoundSearch) -> tuple[Query, np.ndarray]:
    """Say in which bins values are counted, and the candidates for bounds."""
    facts = declaration.column(search.column)
    if facts.bounds is not None and isinstance(facts.bounds[0], pd.Timestamp | pd.Timedelta):
        rule = "must be of numbers, and is declared with bounds that are times"
        remedy = "Make it a column of numbers, such as hours."
        raise QueryError.about("column", rule, search.column, remedy)
    ends = search.ends(integer=facts.integer)
    edges = check_bins(search.column, [-np.inf, *ends, np.inf])
    histogram = Query(
        where=search.query.where,
        outputs=(OutputSpec("count", "count"),),
        subject=f"histogram of {search.column}",
        bins=Bins(search.column, edges),
    )
    return histogram, ends
