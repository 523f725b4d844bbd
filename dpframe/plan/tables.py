"""One query on one declaration: cells, integers to total, workload, columns to release."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias, TypedDict

import numpy as np
import pandas as pd

from dpframe.declaration.checks import Bounds
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import DeclarationError, QueryError
from dpframe.plan.cells import cells_of
from dpframe.plan.known_rows import known_rows
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Reach, reach_of
from dpframe.queries.grid import Grid, Ticks
from dpframe.queries.kinds import Aggregate, Count, Histogram, Mean, Query, Sum
from dpframe.queries.tasks import Cells, Task, Term
from dpframe.queries.timescale import Moment, microseconds, ticks_of
from dpframe.queries.where import Condition
from dpframe.strategies.base import Need, Output, Source, Workload

__all__ = ["OutputColumn", "Table", "table_of"]

_KINDS: Mapping[str, Literal["rows", "value", "mean"]] = {
    "count": "rows",
    "sum": "value",
    "mean": "mean",
}

SourceKey: TypeAlias = tuple[Hashable, Grid | None, Condition | None]
"""A column on its grid, under a condition of its own; no column for rows."""

_EVERYONE: SourceKey = (None, None, None)


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a released frame.

    Parameters
    ----------
    name
        Its label.
    kind
        "count", "sum" or "mean".
    column
        The private column it is about; `None` for counts.
    grid
        The grid of that column.
    bounds
        The declared bounds of that column.
    where
        A condition of its own, beside the table's.
    """

    name: Hashable
    kind: Literal["count", "sum", "mean"]
    column: Hashable = None
    grid: Grid | None = None
    bounds: Bounds | None = None
    where: Condition | None = None

    @property
    def ticks(self) -> Ticks | None:
        """How times became numbers, and how these become times again."""
        return None if self.grid is None or self.kind == "count" else self.grid.ticks

    @property
    def step(self) -> float:
        """Size of a grid unit, in the units of the column; in seconds, if it is one of times."""
        return 1.0 if self.grid is None else self.grid.step

    @property
    def source(self) -> "SourceKey":
        """The rows and values that the output is about."""
        return self.column, self.grid, self.where

    @property
    def integer(self) -> bool:
        """Whether the column is released as whole numbers."""
        return self.step == 1 and self.kind != "mean" and self.ticks is None


@dataclass(frozen=True, eq=False)
class Table:
    """A query, resolved against public facts.

    Parameters
    ----------
    query
        The query.
    cells
        The public groups.
    where
        The condition on all rows.
    terms
        What the engine can add up for the workload.
    workload
        What the strategy is asked for.
    outputs
        The columns to release, in the order of the workload's outputs.
    unit, caps
        Whose rows are capped, and how.
    """

    query: Query
    cells: Cells
    where: Condition | None
    terms: Mapping[Need, Term]
    workload: Workload
    outputs: tuple[OutputColumn, ...]
    unit: Hashable | None
    caps: Caps

    @property
    def rows_column(self) -> OutputColumn:
        """The column of the number of rows, where a design gives it for free."""
        names = {out.name for out in self.outputs}
        free = next(name for name in ("n", "n_rows", "dpframe_n") if name not in names)
        return OutputColumn(free, "count")

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The private columns that are read."""
        terms = self.terms.values()
        conditions = [self.where, *(term.where for term in terms)]
        labels: list[Hashable] = [axis.column for axis in self.cells.axes]
        labels += [term.column for term in terms if term.grid is not None]
        labels += [name for condition in conditions if condition for name in condition.columns]
        labels += [] if self.unit is None else [self.unit]
        return tuple(dict.fromkeys(labels))

    def task(self, needs: Iterable[Need]) -> Task:
        """Ask an engine for some of the terms, in the order given."""
        wanted = tuple(self.terms[need] for need in needs)
        most = self.workload.most
        return Task(self.cells, wanted, self.where, self.unit, self.caps, most)


def table_of(query: Query, declaration: Declaration) -> Table:
    """Resolve a query against what is declared.

    Raises
    ------
    DeclarationError
        If keys, bounds or caps are missing or not usable.
    QueryError
        If the query does not fit them.
    """
    cells = cells_of(query, declaration)
    where, outputs = _outputs(query, declaration)
    unit = declaration.privacy_unit
    # the first source is all rows of a cell, whether they are wanted or not
    wanted = list(dict.fromkeys([_EVERYONE, *(out.source for out in outputs)]))
    workload = Workload(
        sources=tuple(_source(grid, own) for _, grid, own in wanted),
        outputs=tuple(Output(_KINDS[out.kind], wanted.index(out.source)) for out in outputs),
        cells=cells.size,
        reach=_reach(declaration, cells, where),
        neighboring=declaration.neighboring,
        has_units=unit is not None,
        **_options(query, cells, outputs),
    )
    caps = ROW_CAPS if unit is None else declaration.caps
    return Table(query, cells, where, _terms(wanted), workload, outputs, unit, caps)


class _Options(TypedDict, total=False):
    most: int | None
    rows_weight: float
    worst: bool
    known_rows: tuple[np.ndarray, float] | None


def _options(query: Query, cells: Cells, outputs: Sequence[OutputColumn]) -> _Options:
    """Read the options of a query that only strategies care for."""
    if not isinstance(query, Sum | Aggregate):
        return {}
    options: _Options = {"rows_weight": query.n_weight, "worst": query.objective == "worst"}
    if isinstance(query, Sum):
        options["known_rows"] = known_rows(query.n, cells)
        options["most"] = _most(query, outputs)
    return options


def _most(query: Sum, outputs: Sequence[OutputColumn]) -> int | None:
    """Check that a limit on true columns is one on columns of zeros and ones."""
    if query.max_true is None:
        return None
    for out in outputs:
        if out.grid is None or replace(out.grid, fill=None) != Grid(0, 0, 1):
            raise QueryError(
                f"max_true={query.max_true} needs boolean columns, and {out.column!r} is not "
                "declared as one, with bounds (0, 1). Declare its dtype as bool in the schema, "
                "and give no other bounds."
            )
    return query.max_true if query.max_true < len(outputs) else None


def _terms(sources: Sequence[SourceKey]) -> dict[Need, Term]:
    """Terms that total the values, the rows and the units of each source."""
    terms: dict[Need, Term] = {(0, "units"): Term("units")}
    for at, (column, grid, own) in enumerate(sources):
        if grid is None:
            terms[at, "rows"] = Term("rows", where=own)
        else:
            terms[at, "value"] = Term("sum", column, grid, own)
            terms[at, "rows"] = Term("valid", column, grid, own)
    return terms


def _source(grid: Grid | None, own: Condition | None) -> Source:
    if grid is None:
        return Source(0, 0, optional=own is not None)
    return Source(grid.lower, grid.upper, optional=own is not None or grid.fill is None)


def _reach(declaration: Declaration, cells: Cells, where: Condition | None) -> Reach:
    if declaration.privacy_unit is None:
        # a row that nothing can leave out is always in the only cell there is
        always = where is None and not cells.axes
        reach = reach_of(ROW_CAPS, cells.size, always=always)
    else:
        reach = reach_of(declaration.caps, cells.size)
    if reach is None:
        raise DeclarationError(
            f"privacy_unit={declaration.privacy_unit!r} needs a cap that bounds its rows: declare "
            "max_rows, or max_rows_per_group."
        )
    return reach


def _outputs(
    query: Query, declaration: Declaration
) -> tuple[Condition | None, tuple[OutputColumn, ...]]:
    """Return the condition on all rows, and the columns to release."""
    if isinstance(query, Aggregate):
        return _aggregated(query, declaration)
    if isinstance(query, Count | Histogram):
        return query.where, (OutputColumn("count", "count"),)
    kind: Literal["sum", "mean"] = "sum" if isinstance(query, Sum) else "mean"
    return query.where, tuple(
        _numeric(label, kind, label, query, declaration) for label in query.columns
    )


def _aggregated(
    query: Aggregate, declaration: Declaration
) -> tuple[Condition | None, tuple[OutputColumn, ...]]:
    # a condition that all parts share leaves rows out of the table as a whole
    conditions = {part.where for part in query.queries.values()}
    common = conditions.pop() if len(conditions) == 1 else None
    outputs = []
    for name, part in query.queries.items():
        own = None if common is not None else part.where
        if isinstance(part, Count):
            outputs.append(OutputColumn(name, "count", where=own))
        else:
            kind: Literal["sum", "mean"] = "sum" if isinstance(part, Sum) else "mean"
            outputs.append(_numeric(name, kind, part.columns[0], part, declaration, where=own))
    return Condition.all_of(query.where, common), tuple(outputs)


def _numeric(
    name: Hashable,
    kind: Literal["sum", "mean"],
    label: Hashable,
    query: Sum | Mean,
    declaration: Declaration,
    *,
    where: Condition | None = None,
) -> OutputColumn:
    """Describe the sum or the mean of one bounded column."""
    if query.bounds is not None:
        given = (
            query.bounds
            if isinstance(query.bounds, Mapping)
            else dict.fromkeys(query.columns, query.bounds)
        )
        unknown = [other for other in given if other not in query.columns]
        if unknown:
            raise QueryError(
                f"bounds names {unknown!r}, which is not among columns={list(query.columns)!r}."
            )
        declaration = declaration.with_facts(bounds=given, source="call")
    facts = declaration.column(label)
    if facts.bounds is None:
        raise DeclarationError(
            f"no public bounds for {label!r}: bounds taken from the data would leak. "
            "Declare them (ge=... and le=... in the schema, or "
            f"bounds={{{label!r}: (lower, upper)}})."
        )
    return OutputColumn(name, kind, label, _grid(label, facts, facts.bounds), facts.bounds, where)


def _grid(label: Hashable, facts: Column, bounds: Bounds) -> Grid:
    """Choose the grid of a bounded column, of numbers or of times."""
    lower, upper = bounds
    fill = facts.missing
    if isinstance(lower, pd.Timestamp | pd.Timedelta):
        return _grid_of_times(label, fill, lower, upper)
    if isinstance(fill, pd.Timestamp | pd.Timedelta):
        raise _unfit(label, fill, lower)
    return Grid.for_bounds(lower, upper, integer=facts.integer, missing=fill)


def _grid_of_times(label: Hashable, fill: object, lower: Moment, upper: Moment) -> Grid:
    """Count times in whole ticks: from the lower bound if they are points in time."""
    ticks = ticks_of(lower, upper)

    def counted(moment: Moment) -> Fraction:
        return Fraction(microseconds(moment) - ticks.origin, ticks.tick)

    missing = None
    if fill is not None:
        if not isinstance(fill, type(lower)) or _naive(fill) != _naive(lower):
            raise _unfit(label, fill, lower)
        missing = counted(fill)
    return Grid.for_bounds(
        counted(lower), counted(upper), integer=True, missing=missing, ticks=ticks
    )


def _naive(moment: Moment) -> bool:
    return getattr(moment, "tzinfo", None) is None


def _unfit(label: Hashable, fill: object, lower: object) -> DeclarationError:
    return DeclarationError(
        f"missing[{label!r}]={fill!r} must be of the kind of its bounds, such as {lower!r}."
    )
