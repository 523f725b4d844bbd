"""The columns of a release: what each says about its rows, and what it is read from."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, cast

import pandas as pd

from dpframe.declaration.checks import Bounds
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import DeclarationError, QueryError, quote
from dpframe.queries import where as conditions
from dpframe.queries.grid import BITS, Grid, Ticks
from dpframe.queries.query import OutputSpec, Statistic
from dpframe.queries.syntax import as_name
from dpframe.queries.timescale import Moment, microseconds, ticks_of
from dpframe.queries.where import Condition


def present(condition: Condition) -> Condition | None:
    """Return the condition that no column of another one is missing in a row.

    Examples
    --------
    >>> present(Condition.parse("delay > 15 or `late at` == 'A'")).text
    'delay == delay and `late at` == `late at`'
    """
    return Condition.all_of(*map(equals_itself, condition.columns))


def equals_itself(label: str) -> Condition:
    """Return the condition that a column is not missing in a row."""
    name, value = as_name(label), conditions.Name(label)
    return Condition(f"{name} == {name}", (label,), conditions.Compare("==", value, value))


def met(condition: Condition) -> Condition:
    """Return the condition that a condition holds, and no column of it is missing.

    It is the condition itself where it never holds with something missing.

    Examples
    --------
    >>> [met(Condition.parse(text)).text for text in ("delay > 15", "not delay > 15")]
    ['delay > 15', 'delay == delay and (not delay > 15)']
    """
    if _needed_columns(condition.root) >= {*condition.columns}:
        return condition
    bracketed = Condition(f"({condition.text})", condition.columns, condition.root)
    both = Condition.all_of(present(condition), bracketed)
    return condition if both is None else both


def _needed_columns(node: conditions.Node) -> frozenset[str]:
    """Columns without which a condition does not hold."""
    match node:
        case conditions.Name(label=label) | conditions.InPart(label=label):
            return frozenset({label})
        case conditions.All(parts=parts):
            return frozenset().union(*map(_needed_columns, parts))
        case conditions.Any(parts=(first, *others)):
            return _needed_columns(first).intersection(*map(_needed_columns, others))
        case conditions.Compare(left=left, right=right):
            return _behind(left) | _behind(right)
        case conditions.Membership(operand=operand):
            return _behind(operand)
        case conditions.Not() | conditions.Any():
            return frozenset()


def _behind(value: conditions.Value) -> frozenset[str]:
    """Columns without which a value is not a number; a power can be one without."""
    match value:
        case conditions.Name(label=label):
            return frozenset({label})
        case conditions.Negative(operand=operand):
            return _behind(operand)
        case conditions.Arithmetic(operator=sign, left=left, right=right) if sign != "**":
            return _behind(left) | _behind(right)
    return frozenset()


class SourceKey(NamedTuple):
    """What a source of a workload is read from.

    Parameters
    ----------
    column, grid
        A column on its grid; none for rows.
    where
        A condition of its own.
    met
        For rows: those that satisfy this count as 1, all others as 0.
    """

    column: Hashable = None
    grid: Grid | None = None
    where: Condition | None = None
    met: Condition | None = None


EVERYONE = SourceKey()
"""All rows of a cell."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a released frame.

    Parameters
    ----------
    name
        Its label.
    kind
        What it says about its rows.
    column
        The private column it is about; `None` for counts and rates.
    grid
        The grid of that column.
    bounds
        The declared bounds of that column.
    where
        A condition of its own, beside the table's.
    condition
        The condition whose share of the rows a rate is.
    layered
        Whether it is measured over many cells at once, so that rounding would spoil what adds up.
    sampled
        Whether squares of its values are measured for its sampling error.
    """

    name: Hashable
    kind: Statistic
    column: Hashable = None
    grid: Grid | None = None
    bounds: Bounds | None = None
    where: Condition | None = None
    condition: Condition | None = None
    layered: bool = False
    sampled: bool = False

    @property
    def ticks(self) -> Ticks | None:
        """How times became numbers, and how these become times again."""
        return None if self.grid is None or self.kind == "count" else self.grid.ticks

    @property
    def step(self) -> float:
        """Size of a grid unit, in the units of the column; in seconds, if it is one of times."""
        return 1.0 if self.grid is None else self.grid.step

    @property
    def unit(self) -> float:
        """Size of what is released as 1 in grid units: the squared step for variances."""
        return self.step**2 if self.kind == "var" else self.step

    @property
    def source(self) -> SourceKey:
        """The rows and values that the output is about."""
        if self.condition is None:
            return SourceKey(self.column, self.grid, self.where)
        there = Condition.all_of(self.where, present(self.condition))
        return SourceKey(where=there, met=Condition.all_of(self.where, met(self.condition)))

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of something, a rate included."""
        return self.kind in ("mean", "rate")

    @property
    def integer(self) -> bool:
        """Whether the column is released as whole numbers."""
        summed = self.kind in ("count", "sum") and not self.layered
        return summed and self.step == 1 and self.ticks is None


def output_of(asked: OutputSpec, declaration: Declaration, bits: int = BITS) -> OutputColumn:
    """Resolve a column that is asked for, on a grid so fine."""
    if not asked.of_column:
        return OutputColumn(
            asked.name, asked.statistic, where=asked.where, condition=asked.condition
        )
    if asked.bounds:
        declaration = declaration.with_facts(bounds=asked.bounds, source="call")
    label = asked.column
    facts = declaration.column(label)
    if facts.bounds is None:
        raise no_bounds(label)
    # squares are rounded up to a part of the width: whole numbers are too coarse for them
    whole = facts.integer and not asked.fine and asked.statistic not in ("var", "std")
    grid = _grid(label, replace(facts, integer=whole), facts.bounds, bits)
    if (asked.statistic in ("var", "std") or asked.sampled) and grid.ticks is not None:
        what = "sampling=True" if asked.sampled else asked.statistic
        raise no_numbers(what, "columns", label)
    described = asked.name, asked.statistic, label, grid, facts.bounds, asked.where
    return OutputColumn(*described, sampled=asked.sampled)


def no_bounds(label: Hashable, otherwise: str = "") -> DeclarationError:
    """Make the error about a column without bounds, which are needed."""
    why = f"no public bounds for {label!r}: bounds taken from the data would leak."
    way = f"Declare them (ge=... and le=... in the schema, or bounds={{{label!r}: (lower, upper)}})"
    return DeclarationError(f"{why} {way}{otherwise}.", parameter="bounds", label=label)


def no_numbers(statistic: str, parameter: str, label: Hashable) -> QueryError:
    """Make the error about a statistic of numbers that is asked of times."""
    why = f"{statistic} is of numbers, and {label!r} has bounds that are times."
    way = "Make it a column of numbers, such as hours, with bounds that are numbers."
    return QueryError(f"{why} {way}", parameter=parameter, label=label)


def _grid(label: Hashable, facts: Column, bounds: Bounds, bits: int) -> Grid:
    """Choose the grid of a bounded column, of numbers or of times."""
    if facts.missing == "drop":
        whole = _grid(label, replace(facts, missing=None), bounds, bits)
        return replace(whole, drop=True)
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
