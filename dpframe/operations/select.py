"""Quantiles that are selected among public bins, in place of being read off noisy numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import cast

import numpy as np
import pandas as pd

from dpframe.arguments import MOST_GROUPS
from dpframe.cells.record import attach
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import quantile_part
from dpframe.certificates.mechanism_parts import SelectionPart
from dpframe.certificates.parts import QueryPart
from dpframe.checker.rounds import Selected, worst_selection
from dpframe.checker.witness import Witness
from dpframe.context import Context
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame
from dpframe.engines.base import totals_by
from dpframe.engines.declared import SINGLE, check_queries
from dpframe.errors import BudgetExceededError, CalibrationError, QueryError, quote
from dpframe.frozen import frozen
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Certifier, Operation
from dpframe.operations.probing import check_rows
from dpframe.operations.record import NO_OPTIONS, grouping_of, rules_of_groups, text_of, values_of
from dpframe.plan.cells import cells_of, with_inner
from dpframe.plan.columns import OutputColumn, no_numbers, output_of
from dpframe.plan.designs import allowance_of
from dpframe.plan.tables import caps_of, reach_in
from dpframe.privacy.amounts import PrivacyLoss, Spend
from dpframe.privacy.laws import LAPLACE
from dpframe.privacy.selection import (
    GEOMETRIC,
    SELECT,
    Selection,
    bins_of,
    select_parts,
    selection_of,
)
from dpframe.queries.binned import LEVEL, MOST_BINS, Quantile, check_selectable, intervals_between
from dpframe.queries.binned import bins_of as bins_asked
from dpframe.queries.edges import Grid, edges_of
from dpframe.queries.query import Bins
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis, Task, Term

_SELECTED = (
    "No noise was added: values were selected, independently in different groups, and one after "
    "the other in a group."
)
_PARTS = 2**16
"""Into how many parts all bins are cut, where several quantiles are selected."""

_BITS_OF_INTEGERS = 51
"""How large bounds of integers may be for bins of whole numbers: floats lie between these."""

_PARTS_OF_ENDS = 1024  # values outside of the bounds are in the first and last bin


@frozen(eq=False)
class SelectableBins:
    """What is selected among.

    Parameters
    ----------
    axis
        The bins.
    values
        What each stands for.
    parts
        Into how many parts each is cut, so that rows of one value are told apart.
    """

    axis: BinAxis
    values: np.ndarray
    parts: np.ndarray


@frozen(eq=False, kw_only=True)
class SelectedQuantiles(Operation):
    """Quantiles to be selected.

    Parameters
    ----------
    query
        What is asked.
    groups
        The public groups.
    column
        The column that is released.
    bins
        What is selected among.
    selection
        The selections, with their noise.
    """

    query: Quantile
    groups: Cells
    column: OutputColumn
    bins: SelectableBins
    selection: Selection

    @property
    def task(self) -> Task:
        """What the engine is asked: the rows by group and bin, where caps see the groups alone."""
        cells, where = with_inner(self.groups, self.bins.axis), self.query.condition
        unit, inner = self.declaration.unit_columns, len(self.bins.axis)
        return Task(cells, (Term("rows"),), where, unit, self.caps[0], inner=inner)

    @property
    def tasks(self) -> Sequence[Task]:
        """What the engine is asked."""
        return [self.task]

    @property
    def cells(self) -> Cells:
        """The rows of what is released: a quantile in a group."""
        if self.query.scalar:
            return self.groups
        quantiles = pd.Index([float(q) for q in self.query.quantiles], name=LEVEL)
        return with_inner(self.groups, KeyAxis(LEVEL, quantiles))

    def rank_errors(self, level: float = 0.95) -> list[float]:
        """Return, by quantile, how many rows may lie between it and the bin selected.

        With c the rows below a bin and d those in it, the ranks of the bin are c to c + d, so that
        rows that share its values do not lie between. The distance from the rank q N to them is
        at most `s log(n / (1 - level)) / b`, with n parts of bins and noise of scale s (McKenna and
        Sheldon 2020, whose error is never above that of the exponential mechanism).

        That holds for the quantile that is selected first, whatever the rows are. The others are
        selected among the rows on one side of it, and a cut misses its place by as many rows as
        share a part of a bin. That number is private, so their distance is not known: NaN.

        Parameters
        ----------
        level
            Probability with which that holds for a quantile.
        """
        first, items = self.selection.steps[0], int(self.bins.parts.sum())
        rows = self.selection.scales[0] / first.b * math.log(items / (1 - level))
        return [rows if first.at == at else math.nan for at in range(len(self.query.quantiles))]

    def outlook_table(self) -> pd.DataFrame:
        """One row per quantile: how far off it may be."""
        table = {"mechanism": self.mechanism, "rank_error_95": self.rank_errors(), **self.outlook()}
        quantiles = pd.Index([float(q) for q in self.query.quantiles], name=LEVEL)
        return pd.DataFrame(table, index=quantiles)

    def witness(self) -> Witness:
        """Find the worst unit of all selections."""
        check_rows(self.declaration, self.tasks)
        has_unit, filtered = self.declaration.unit_columns, self.query.condition is not None
        pairs = zip(self.selection.steps, self.selection.scales, strict=True)
        worst = worst_selection(
            GEOMETRIC,
            [Selected(step.a, step.b, step.level, scale) for step, scale in pairs],
            self.caps[0],
            self.groups.size,
            self.declaration.neighboring,
            always=not has_unit and not self.groups.axes and not filtered,
        )
        return Witness((worst,))

    def measure(self, frame: Frame, context: Context) -> np.ndarray:
        """Count the rows of all groups by bin."""
        (totals,) = totals_by(self.engine, frame, self.tasks, context)
        rows: np.ndarray = totals[0].reshape(self.groups.size, len(self.bins.axis))
        return rows

    def draw(self, exact: np.ndarray, context: Context) -> np.ndarray:
        """Select parts of bins."""
        return select_parts(exact, self.selection, self.bins.parts, context)

    def certifier(self, entry: Entry, witness: Witness, context: Context) -> Certifier:
        """Write the certificate but for values and ledger."""
        query, column, cells = self.query, self.column, self.cells
        (values,) = values_of(column)
        groupings = (
            grouping_of(axis, query, self.declaration, called=axis.column == LEVEL)
            for axis in cells.axes
        )
        record = Release(
            **self.promise(entry, witness, context),
            privacy_unit=self.unit_part(self.caps[0]),
            query=QueryPart(
                name=None,
                words=query.words,
                by=tuple(groupings),
                cells=cells.size,
                outputs=1,
                where=text_of(query.where),
                left_out=rules_of_groups(self.declaration.unit_columns, self.task.cells.axes),
                options=NO_OPTIONS,
            ),
            columns=(quantile_part(str(column.name), values),),
            mechanism=self._mechanism_part(),
            covariance=_SELECTED,
        )
        index = cells.index
        return lambda chosen, ledger: self._certify(
            chosen, index, replace(record, ledger=ledger), context.new_id()
        )

    def _mechanism_part(self) -> SelectionPart:
        """Say how quantiles are selected."""
        pairs = zip(self.selection.steps, self.selection.scales, strict=True)
        rows = {step.at: scale / step.b for step, scale in pairs}
        return SelectionPart(
            kind="selection",
            name=SELECT,
            title="permute-and-flip selection",
            law=GEOMETRIC,
            quantiles=tuple(map(float, self.query.quantiles)),
            bins=len(self.bins.axis),
            rounds=self.selection.levels,
            scales=tuple(rows[at] for at in sorted(rows)),
        )

    def _certify(
        self, chosen: np.ndarray, index: pd.Index, record: Release, salt: str
    ) -> pd.DataFrame:
        """Certify the values of the bins whose parts were selected."""
        values = self.bins.values[bins_of(chosen, self.bins.parts)].ravel()
        released = pd.DataFrame({0: values}, index=index)
        released.columns = pd.Index([self.column.name], tupleize_cols=False)
        attach(released, [record], salt=salt)
        return released


def plan_quantiles(
    frame: Frame, declaration: Declaration, query: Quantile, spend: Spend
) -> SelectedQuantiles:
    """Check everything public about quantiles to be selected, and plan it, without reading data.

    Raises
    ------
    BudgetExceededError
        If nothing is left of the epsilon of a budget.
    CalibrationError
        If the spend is not usable.
    DeclarationError, QueryError
        If the query does not fit what is declared.
    """
    engine, _ = check_queries(frame, query)
    check_selectable(query)
    column = output_of(query.outputs[0], declaration)
    groups = cells_of(query, declaration)
    caps = caps_of(query, declaration)
    always = query.condition is None
    reach = reach_in(declaration, query, groups, caps, always=always)
    epsilon = _allowed_epsilon(spend, declaration)
    chosen = selection_of(query.quantiles, epsilon, reach, declaration.neighboring)
    bins = _bins(column, query, integer=declaration.column(query.column).integer)
    number = len(bins.axis)
    if groups.size * number > MOST_GROUPS:
        most = f"more than {MOST_GROUPS:,} numbers of rows"
        fewer = max(MOST_GROUPS // groups.size, 2)
        remedy = f"Ask for fewer bins, bins={fewer}, or for fewer groups."
        text = f"{groups.size:,} groups with {number:,} bins are {most}. {remedy}"
        raise QueryError(text, parameter="bins", value=number)
    plan = SelectedQuantiles(
        declaration=declaration,
        engine=engine,
        mechanism=SELECT,
        spend=spend,
        loss=PrivacyLoss(epsilon=epsilon),
        words=query.words,
        caps=(caps,),
        axes={SINGLE: (*groups.axes, bins.axis)},
        query=query,
        groups=groups,
        column=column,
        bins=bins,
        selection=chosen,
    )
    engine.check(frame, plan.columns)
    return plan


def _allowed_epsilon(spend: Spend, declaration: Declaration) -> Fraction:
    """Return the pure epsilon that a spend stands for, as for Laplace noise."""
    allowed = LAPLACE.movement_allowed(allowance_of(spend, declaration))
    if allowed:
        return allowed
    if spend.kind == "share" and declaration.ledger is not None:
        left = f"nothing is left for pure epsilon of {declaration.ledger.budget}"
        remedy = (
            "which selecting quantiles needs. Read them off numbers of rows: leave mechanism= out."
        )
        raise BudgetExceededError(f"{left}, {remedy}", parameter="share", value=float(spend.amount))
    rule = "must be > 0 to select quantiles, which cost no delta"
    raise CalibrationError.about("epsilon", rule, float(spend.amount), "Give epsilon > 0.")


def _bins(column: OutputColumn, query: Quantile, *, integer: bool) -> SelectableBins:
    """Cut what is between the bounds into bins, and say which value each stands for."""
    if column.ticks is not None:
        raise no_numbers("quantile", "column", column.column)
    bounds = cast(tuple[float, float], column.values[0][2])  # times have ticks
    grid = Grid.for_bounds(*bounds, integer=integer, bits=_BITS_OF_INTEGERS)
    integers = integer and grid.exponent == 0
    edges_asked = MOST_BINS if query.edges is None else query.edges
    if query.candidates is not None:
        intervals, values = _around(query.candidates, bounds, integers=integers)
    elif not isinstance(edges_asked, int):
        adjacent = Bins(query.column, edges_asked, clipped=True)
        intervals = cast(BinAxis, bins_asked(adjacent, bounds, integer=integer)).keys
        values = _middles_within(intervals, bounds, grid if integers else None)
    elif integers:
        intervals, values = _of_integers(grid, edges_asked)
    else:
        intervals = intervals_between(column.column, bounds, edges_asked, integer=False)
        edges = np.asarray(edges_of(intervals))
        values = _middles(edges[:-1], edges[1:])
    axis = BinAxis(column.column, intervals.rename(column.column), clipped=True)
    several = len(query.quantiles) > 1
    number = len(values)
    parts = np.full(number, max(_PARTS // number, 1) if several else 1, np.int64)
    if several:
        parts[[0, -1]] = np.maximum(parts[[0, -1]], _PARTS_OF_ENDS)
    return SelectableBins(axis, values, parts)


def _around(
    candidates: Sequence[float], bounds: tuple[float, float], *, integers: bool
) -> tuple[pd.IntervalIndex, np.ndarray]:
    """Return bins of what is nearest to each candidate, the lower of two, and the candidates."""
    if not bounds[0] <= candidates[0] <= candidates[-1] <= bounds[1]:
        rule = f"must lie between the bounds, {quote(bounds)}"
        remedy = "Give bounds= in the call, or leave those outside out."
        raise QueryError.about("candidates", rule, list(candidates), remedy)
    if integers and not all(map(float.is_integer, candidates)):
        rule = "must be whole numbers, as those of the column are"
        raise QueryError.about("candidates", rule, list(candidates))
    values = np.array(candidates)
    # of neighboring floats the middle is one of the two, and the upper one belongs to its own bin
    middles = _middles(values[:-1], values[1:])
    inner = np.where(middles < values[1:], middles, values[:-1])
    intervals = pd.IntervalIndex.from_breaks([-np.inf, *inner, np.inf])
    return intervals, values.astype(np.int64) if integers else values


def _middles_within(
    bins: pd.IntervalIndex, bounds: tuple[float, float], integers: Grid | None
) -> np.ndarray:
    """Return the middle of each bin, or the bound beside it; of integers, that in the middle."""
    left, right = np.asarray(bins.left), np.asarray(bins.right)
    if integers is None:
        edges = np.asarray(edges_of(bins), np.float64)
        middles = _middles(edges[:-1], edges[1:])
        return np.asarray(np.clip(middles, *bounds))
    first, last = (
        (np.ceil(left), np.ceil(right) - 1)
        if bins.closed == "left"
        else (np.floor(left) + 1, np.floor(right))
    )
    if (first > last).any():
        rule = "must each hold a whole number, as the values of the column are"
        raise QueryError.about("bins", rule, bins, "Merge those without one.")
    middles_whole = np.clip(np.floor((first + last) / 2), integers.lower, integers.upper)
    return np.asarray(middles_whole.astype(np.int64))


def _of_integers(grid: Grid, bins: int) -> tuple[pd.IntervalIndex, np.ndarray]:
    """Return bins with edges between integers, and the integer in the middle of each."""
    size = grid.upper - grid.lower + 1
    number = min(bins, size)
    firsts = [grid.lower + size * k // number for k in range(number + 1)]
    edges = [math.ldexp(2 * k - 1, -1) for k in firsts]
    middles = [(low + high - 1) // 2 for low, high in pairwise(firsts)]
    return pd.IntervalIndex.from_breaks(edges), np.array(middles, np.int64)


def _middles(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the floats nearest to the middles, which are never outside of the two."""
    half_left, half_right = left / 2, right / 2
    if np.array_equal(half_left * 2, left) and np.array_equal(half_right * 2, right):
        return np.asarray(half_left + half_right)  # halves are exact: one rounding
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.array([float((Fraction(low) + Fraction(high)) / 2) for low, high in pairs])
