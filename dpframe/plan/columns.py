"""The columns of a release: what each says about its rows, and what it is read from."""

from collections.abc import Hashable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, TypeAlias, cast

import pandas as pd

from dpframe.declaration.facts import Column, Declaration
from dpframe.declaration.kinds import Bounds
from dpframe.errors import DeclarationError, QueryError, quote
from dpframe.frozen import frozen
from dpframe.queries.conditions import met, present, surely
from dpframe.queries.edges import BITS, Grid, Moment, Ticks, microseconds, ticks_of
from dpframe.queries.query import OutputSpec
from dpframe.queries.tasks import RowWeights, Term
from dpframe.queries.where import Condition, Node, Not
from dpframe.statistics.moments import FOURTH, SECOND
from dpframe.statistics.table import statistic_of

_WEIGHED = "what weights= takes"

BoundedColumn: TypeAlias = tuple[Hashable, Grid, Bounds]
"""A private column on its grid, with its bounds."""


SourceTerms: TypeAlias = tuple[Term, ...]
"""What a source of a workload is read from: its rows, then its values or those that meet a rate."""


@frozen(slots=True, eq=False)
class OutputColumn(OutputSpec):
    """An output of a query, resolved against what is declared.

    Parameters
    ----------
    values
        The private columns it is about, on their grids, with their bounds.
    row_weights
        What each row counts for; `None`: 1.
    rest_of
        The condition whose rate and this one add up to 1, where that rate is measured.
    layered
        Whether it is measured over many cells at once, so that rounding would spoil what adds up.
    """

    values: tuple[BoundedColumn, ...] = ()
    row_weights: RowWeights | None = None
    rest_of: Condition | None = None
    layered: bool = False

    @property
    def grid(self) -> Grid | None:
        """The grid of its column, or of the first one."""
        return self.values[0][1] if self.values else None

    @property
    def ticks(self) -> Ticks | None:
        """How times became numbers, and how these become times again."""
        return None if self.grid is None else self.grid.ticks

    @property
    def step(self) -> float:
        """Size of a grid unit, in the units of the column; in seconds, if it is one of times.

        With weights, means are in parts of their span, and totals in those of it by step of the
        weights.
        """
        of_value = 1.0 if self.grid is None else self.grid.step
        if self.row_weights is None:
            return of_value
        of_span = of_value if self.grid is None else of_value * self._range[1]
        return of_span if self.is_mean else of_span * self.row_weights.grid.step

    @property
    def shift(self) -> float:
        """What is added to values in units of the column: where weighted means are counted from."""
        if self.row_weights is None or self.grid is None or not self.is_mean:
            return 0.0
        return self._range[0] * self.grid.step

    @property
    def row_step(self) -> float:
        """What a row that is measured as 1 counts for."""
        return 1.0 if self.row_weights is None else self.row_weights.grid.step

    @property
    def of_rows(self) -> float:
        """How many times the rows are added to a sum of parts of the range."""
        origin, span = self._range
        return origin / span if span and self.form.is_total else 0.0

    @property
    def _range(self) -> tuple[int, int]:
        """Where values are counted from with weights, and how far they are from it at most.

        For means, and totals beside them, it is the whole range, so that what rows add to both of
        its ends adds up to the weight; for other totals the largest value, since a row without
        weight adds 0.
        """
        if self.row_weights is None or self.grid is None:
            return 0, 0
        lower, upper = self.grid.lower, self.grid.upper
        if self.is_mean or (self.averaged and upper > lower):
            return lower, upper - lower
        return 0, max(-lower, upper, 1)

    @property
    def unit(self) -> float:
        """Size of what is released as 1 in grid units: the squared step for variances."""
        if self.form.is_total or self.form.is_mean:
            return self.step
        steps = [(-grid.step, grid.step) for _, grid, _ in self.values]
        return statistic_of(self.statistic, steps).unit

    @property
    def source(self) -> SourceTerms:
        """The rows and values that the output is about."""
        weights = self.row_weights
        if self.values:
            (column, grid, _), *more = self.values
            others = tuple((label, other) for label, other, _ in more)
            degree = FOURTH if self.sampled and others else SECOND
            kind: Any = "all valid" if others else "valid"
            rows = Term(kind, column, grid, self.where, others, degree=degree, weights=weights)
            if others:
                return (rows,)
            origin, span = self._range
            total = Term("sum", column, grid, self.where, weights=weights, origin=origin, span=span)
            return rows, total
        if self.condition is None:
            return (Term("rows", where=self.where, weights=weights),)
        if self.blanks_fail:
            base, true = self.where, surely(self.condition)
        else:
            measured = self.rest_of or self.condition
            base, true = Condition.all_of(self.where, present(measured)), met(measured)
        both = Condition.all_of(self.where, true)
        return Term("rows", where=base, weights=weights), Term("rows", where=both, weights=weights)

    @property
    def of_several(self) -> bool:
        """Whether it is about several columns together."""
        return len(self.values) > 1

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of something, a rate included."""
        return self.form.is_mean

    @property
    def is_rest(self) -> bool:
        """Whether it and the rate that is measured add up to 1."""
        return self.rest_of is not None

    @property
    def integer(self) -> bool:
        """Whether the column is released as whole numbers."""
        summed = self.form.is_total and not self.layered
        return summed and self.step == 1 and self.ticks is None and not self.of_rows


def output_of(request: OutputSpec, declaration: Declaration, bits: int = BITS) -> OutputColumn:
    """Resolve a column that is asked for, on a grid so fine."""
    weights = None if request.weights is None else _weights_of(request.weights, declaration, bits)
    settings = {field.name: getattr(request, field.name) for field in fields(request)}
    if not request.of_column:
        return OutputColumn(**settings, row_weights=weights)
    if request.bounds:
        declaration = declaration.with_facts(bounds=request.bounds, source="call")
    subject: str = request.form.name if request.form.of_numbers else ""
    subject = "sampling=True" if request.sampled else subject
    subject = _WEIGHED if weights else subject
    # squares are rounded up to a part of the width: whole numbers are too coarse for them
    fine = request.fine or request.form.is_fine
    values = tuple(
        (label, *_grid_and_bounds(label, subject, declaration, bits, fine=fine))
        for label in request.columns
    )
    output = OutputColumn(**settings, values=values, row_weights=weights)
    if output.form.is_total and not output.step:
        raise _too_small(request)
    return output


def orient_pairs(outputs: Sequence[OutputColumn]) -> list[OutputColumn]:
    """Read what is symmetric off the pair that is measured for an earlier output, if one is."""
    oriented: list[OutputColumn] = []
    sources: set[SourceTerms] = set()
    for out in outputs:
        if out.form.is_symmetric:
            mirror = replace(out, values=out.values[::-1])
            if mirror.source in sources:
                oriented.append(mirror)
                continue
        oriented.append(out)
        sources.add(oriented[-1].source)
    return oriented


def mirror_rates(outputs: Sequence[OutputColumn]) -> list[OutputColumn]:
    """Read the rate of `not y` off that of y, if both are wanted: they add up to 1."""
    opposites: dict[Node, Condition] = {
        Not(out.condition.root): out.condition for out in outputs if out.condition
    }
    if not opposites:
        return [*outputs]
    sources = {out.source for out in outputs}
    mirrored: list[OutputColumn] = []
    for out in outputs:
        opposite = out.condition and opposites.get(out.condition.root)
        mirror = replace(out, rest_of=opposite)
        # where missing values fail both conditions, their rates do not add up to 1
        turned = opposite and not out.blanks_fail and mirror.source in sources
        mirrored.append(mirror if turned else out)
    return mirrored


def sample_together(outputs: Sequence[OutputColumn]) -> list[OutputColumn]:
    """Let all that is about a pair be read off the same parts: the finer ones, if any are."""
    finer = {(out.values, out.where) for out in outputs if out.of_several and out.sampled}
    return [
        replace(out, sampled=True) if (out.values, out.where) in finer else out for out in outputs
    ]


def _grid_and_bounds(
    label: Hashable, subject: str, declaration: Declaration, bits: int, *, fine: bool = False
) -> tuple[Grid, Bounds]:
    """Find the grid and the bounds of a column, of numbers where the subject needs numbers."""
    facts = declaration.column(label)
    if facts.bounds is None:
        raise _no_number(label) if _has_text_keys(facts) else no_bounds(label)
    grid = _grid(label, replace(facts, integer=facts.integer and not fine), facts.bounds, bits)
    if subject and grid.ticks is not None:
        raise no_numbers(subject, "columns", label)
    return grid, facts.bounds


_WEIGHT_BITS = 30  # products with a column on its grid stay below 2**64


def _weights_of(label: Hashable, declaration: Declaration, bits: int) -> RowWeights:
    """Resolve the column of weights, which are no less than 0."""
    facts = declaration.column(label)
    if facts.bounds is None:
        raise no_bounds(label)
    grid = _grid(label, facts, facts.bounds, min(bits, _WEIGHT_BITS))
    if grid.ticks is not None:
        raise no_numbers("a weight", "weights", label)
    lower, upper = cast(tuple[float, float], facts.bounds)
    if lower < 0 or grid.upper <= 0:
        rule = f"needs weights of 0 or more, and the bounds of {label!r} are ({lower}, {upper})."
        remedy = f"Declare bounds={{{label!r}: (0, largest weight)}}."
        text = f"weights={quote(label)} {rule} {remedy}"
        raise DeclarationError(text, parameter="bounds", label=label, value=facts.bounds)
    return RowWeights(label, grid, (lower, upper))


def _too_small(request: OutputSpec) -> DeclarationError:
    """Make the error about a total of which one unit of noise would be 0."""
    pair = f"{request.column!r} and of the weights {request.weights!r}"
    rule = f"bounds of {pair} must not be so small that their product is 0 in floating point."
    text = f"{rule} Measure one of them in a smaller unit."
    return DeclarationError(text, parameter="bounds", label=request.column)


def no_bounds(label: Hashable, otherwise: str = "") -> DeclarationError:
    """Make the error about a column without bounds, which are needed."""
    reason = f"no public bounds for {label!r}: bounds taken from the data would leak."
    bounds = f"bounds={{{label!r}: (lower, upper)}}"
    remedy = f"Declare them (ge=... and le=... in the schema, or {bounds}){otherwise}."
    return DeclarationError(f"{reason} {remedy}", parameter="bounds", label=label)


def _has_text_keys(facts: Column) -> bool:
    return facts.keys is not None and all(isinstance(key, str) for key in facts.keys)


def _no_number(label: Hashable) -> DeclarationError:
    """Make the error about a number asked of a column whose keys are texts."""
    reason = f"{label!r} has texts as keys, and no public bounds: it is no number."
    remedy = f"Group by it, by={quote(label)}, or release a share, .dp.rate(\"column == 'text'\")."
    return DeclarationError(f"{reason} {remedy}", parameter="bounds", label=label)


def no_numbers(statistic: str, parameter: str, label: Hashable) -> QueryError:
    """Make the error about a statistic of numbers that is asked of times."""
    reason = f"{statistic} is of numbers, and {label!r} has bounds that are times."
    remedy = "Make it a column of numbers, such as hours, with bounds that are numbers."
    return QueryError(f"{reason} {remedy}", parameter=parameter, label=label)


def _grid(label: Hashable, facts: Column, bounds: Bounds, bits: int) -> Grid:
    """Choose the grid of a bounded column, of numbers or of times."""
    if facts.missing == "drop":
        grid = _grid(label, replace(facts, missing=None), bounds, bits)
        return replace(grid, drop=True)
    lower, upper = bounds
    fill = facts.missing
    if isinstance(lower, pd.Timestamp | pd.Timedelta):
        return _grid_of_times(label, fill, cast(tuple[Moment, Moment], bounds), bits)
    if isinstance(fill, pd.Timestamp | pd.Timedelta):
        raise _wrong_kind(label, fill, lower)
    high = cast(float, upper)  # of one kind with the lower one
    return Grid.for_bounds(lower, high, integer=facts.integer, missing=fill, bits=bits)


def _grid_of_times(label: Hashable, fill: object, bounds: tuple[Moment, Moment], bits: int) -> Grid:
    """Count times in whole ticks: from the lower bound if they are points in time."""
    lower, upper = bounds
    ticks = ticks_of(lower, upper)

    def counted(moment: Moment) -> Fraction:
        return Fraction(microseconds(moment) - ticks.origin, ticks.tick)

    missing = None
    if fill is not None:
        if not isinstance(fill, type(lower)) or _naive(fill) != _naive(lower):
            raise _wrong_kind(label, fill, lower)
        missing = counted(fill)
    return Grid.for_bounds(
        counted(lower), counted(upper), integer=True, missing=missing, ticks=ticks, bits=bits
    )


def _naive(moment: Moment) -> bool:
    return getattr(moment, "tzinfo", None) is None


def _wrong_kind(label: Hashable, fill: object, lower: object) -> DeclarationError:
    rule = f"must be of the kind of its bounds, such as {quote(lower)}."
    text = f"missing[{label!r}]={quote(fill)} {rule}"
    return DeclarationError(text, parameter="missing", label=label, value=fill)
