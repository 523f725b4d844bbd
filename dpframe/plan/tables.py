"""One query on one declaration: cells, integers to total, workload, columns to release."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TypedDict

from dpframe.declaration.facts import Declaration, given_unit
from dpframe.errors import DeclarationError, QueryError, quote
from dpframe.frozen import frozen
from dpframe.plan.cells import cells_of, known_rows
from dpframe.plan.columns import (
    OutputColumn,
    SourceTerms,
    mirror_rates,
    orient_pairs,
    output_of,
    sample_together,
)
from dpframe.plan.designs import NoisyDesign
from dpframe.privacy.neighbors import NO_CAPS, ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Reach, reach_of
from dpframe.queries.conditions import equals_itself, exclusive_sets
from dpframe.queries.edges import BITS, Grid
from dpframe.queries.query import Query, QueryOptions
from dpframe.queries.tasks import Axis, Cells, Sizes, Task, Term
from dpframe.queries.where import Condition
from dpframe.statistics.moments import PAIR, SECOND, moments, parts_of_pair
from dpframe.statistics.table import StatisticName
from dpframe.strategies.base import Need, Output, PublicRows, Source, Workload
from dpframe.strategies.domain import Dimension, Domain

_LEAST_BITS = 16  # of a value, so that sums of many stay in 64


@frozen(eq=False)
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
    sizes
        By how much of which groups units fall in the cells, if they do.
    of
        The query that asks for this table together with others, if one does.
    joint, first
        The table that is measured for this one and others, and the position of its first output
        there; `None`: it is measured on its own.
    """

    query: Query
    cells: Cells
    where: Condition | None
    terms: Mapping[Need, Term]
    workload: Workload
    outputs: tuple[OutputColumn, ...]
    unit: tuple[Hashable, ...]
    caps: Caps
    sizes: Sizes | None = None
    of: Query | None = None
    joint: "Table | None" = None
    first: int = 0

    @property
    def measured(self) -> "Table":
        """The table that is measured for it."""
        return self.joint or self

    @property
    def own(self) -> slice:
        """Its outputs among those that are measured."""
        return slice(self.first, self.first + len(self.outputs))

    @property
    def place(self) -> int:
        """Which of the tables that are measured it is."""
        return self.first // len(self.outputs)

    def released(self, noisy: NoisyDesign) -> "Table":
        """Add the number of rows, where that was asked for by a weight, and its design gives it."""
        if self.joint is not None or not (noisy.design.extra and self.workload.rows_weight):
            return self
        return replace(self, outputs=(*self.outputs, self.rows_column))

    @property
    def rows_column(self) -> OutputColumn:
        """The column of the number of rows, where a design gives it for free."""
        taken = {out.name for out in self.outputs} | {axis.column for axis in self.cells.axes}
        weights = self.outputs[0].row_weights
        first = ("n", "n_rows") if weights is None else ("weighted_total",)
        names = chain(first, (f"{first[-1]}_{k}" for k in count(2)))
        name = next(name for name in names if name not in taken)
        return OutputColumn(name, "count", row_weights=weights)

    @property
    def asked(self) -> Query:
        """What was asked: the query, or the one that asks for several tables."""
        return self.query if self.of is None else self.of

    @property
    def groups(self) -> Cells:
        """Where rows are looked for."""
        return self.cells if self.sizes is None else self.sizes.groups

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The private columns that are read."""
        return tuple(dict.fromkeys(self.task(self.terms).columns))

    def task(self, needs: Iterable[Need]) -> Task:
        """Ask an engine for some of the terms, in the order given."""
        terms = tuple(self.terms[need] for need in needs)
        most, inner = self.workload.most, _inner(self.query, self.cells)
        caps = self.unit, self.caps, most, self.sizes, inner
        return Task(self.cells, terms, self.where, *caps, self.valued)

    @property
    def valued(self) -> tuple[tuple[Hashable, Grid], ...]:
        """Columns without whose values rows are left out, with their grids."""
        return _valued(self.outputs)

    @property
    def rows_counted(self) -> Condition | None:
        """The condition that rows must meet, on values that must not be missing, too."""
        present = [equals_itself(str(label)) for label, _ in self.valued]
        return Condition.all_of(self.where, *present) if present else self.where


def table_of(
    query: Query,
    declaration: Declaration,
    cells: Cells | None = None,
    of: Query | None = None,
    bits: int | None = None,
) -> Table:
    """Resolve a query against what is declared.

    Parameters
    ----------
    query
        The query.
    declaration
        What is public about the frame.
    cells
        The public groups, if they are known already.
    of
        The query that asks for this one and others together.
    bits
        How fine grids are, if that is known already.

    Raises
    ------
    DeclarationError
        If keys, bounds or caps are missing or not usable.
    QueryError
        If the query does not fit them.
    """
    cells = cells_of(query, declaration) if cells is None else cells
    sizes = query.sizes(cells)
    cells = cells if sizes is None else Cells((sizes.axis,))
    where, options = query.condition, query.options
    layered = query.ranges or bool(query.margins) or of is not None
    bits = _bits(cells) if bits is None else bits
    columns = [output_of(request, declaration, bits) for request in query.outputs]
    if layered:
        columns = [replace(column, layered=True) for column in columns]
    outputs = tuple(sample_together(orient_pairs(mirror_rates(columns))))
    unit = declaration.unit_columns
    caps = caps_of(query, declaration)
    always = _always_counts(where, outputs)
    # the first source is all rows of a cell, whether they are wanted or not
    read, weights = _read(outputs), outputs[0].row_weights
    everyone: SourceTerms = (Term("rows", weights=weights),)
    sources = list(dict.fromkeys([everyone, *(source for source, _ in read)]))
    places = {source: at for at, source in enumerate(sources)}
    joint = [out for out in outputs if out.of_several]
    workload = Workload(
        sources=tuple(map(_source, sources)),
        outputs=tuple(
            Output(
                statistic,
                places[source],
                out.sampled,
                out.of_rows,
                out.weight,
                out.is_rest,
                _place_among(out, joint, places),
            )
            for (source, statistic), out in zip(read, outputs, strict=True)
        ),
        neighboring=declaration.neighboring,
        has_units=bool(unit) and weights is None,
        ranges=query.ranges,
        window=query.window,
        most=_most(options, outputs),
        rows_weight=options.n_weight,
        worst=options.objective == "worst",
        exclusive=() if not read[1:] else exclusive_sets([rows.where for rows, *_ in sources]),
        weight=1 if weights is None else weights.grid.upper,
        **_of_cells(declaration, query, cells, caps, always=always),
    )
    return Table(query, cells, where, _terms(sources), workload, outputs, unit, caps, sizes, of)


@frozen(slots=True)
class TableName:
    """The name of one of the tables that a query asks for: that of the query, and columns."""

    query: Hashable
    columns: tuple[Hashable, ...]


def name_of(key: Hashable) -> Hashable:
    """Return the name of the query that a table answers."""
    return key.query if isinstance(key, TableName) else key


def tables_of(name: Hashable, query: Query, declaration: Declaration) -> dict[Hashable, Table]:
    """Resolve a query; one for several tables gives each under a name of its own."""
    if not query.margins:
        return {name: table_of(query, declaration)}
    cells = cells_of(query, declaration)
    bits = _bits(cells)
    tables: dict[Hashable, Table] = {}
    for columns, part in query.margins.items():
        margin = cells.by_columns(columns)
        first = next(iter(tables.values()), None)
        if first is None:
            table = table_of(part, declaration, margin, query, bits)
        else:  # its columns are the same: only what depends on the cells is new
            table = _in_other_cells(first, part, margin, declaration)
        tables[TableName(name, columns)] = table
    return tables


def _always_counts(where: Condition | None, outputs: Sequence[OutputColumn]) -> bool:
    """Whether no row of a group can be left out, nor count for nothing."""
    return where is None and not _valued(outputs) and not any(out.row_weights for out in outputs)


def _in_other_cells(table: Table, query: Query, cells: Cells, declaration: Declaration) -> Table:
    """Resolve a query that asks for the same as that of a table, of other groups."""
    always = _always_counts(table.where, table.outputs)
    facts = _of_cells(declaration, query, cells, table.caps, always=always)
    return replace(table, query=query, cells=cells, workload=replace(table.workload, **facts))


class _OfCells(TypedDict):
    """The facts of a workload that depend on which cells there are."""

    domain: Domain
    reach: Reach
    known_rows: PublicRows | None


def _of_cells(
    declaration: Declaration, query: Query, cells: Cells, caps: Caps, *, always: bool
) -> _OfCells:
    """Say what depends on the cells, the same for the first table of a query and for all others."""
    return {
        "domain": _domain(query, cells),
        "reach": reach_in(declaration, query, cells, caps, always=always),
        "known_rows": None if query.options.n is None else known_rows(query.options.n, cells),
    }


def _bits(cells: Cells) -> int:
    """Say how fine grids are: contrasts of margins are larger than totals, and fit in 64 bits."""
    sizes = [
        math.prod(max(len(axis) - 1, 1) for axis in cells.of_margin(margin).axes)
        for margin in cells.margins
    ]
    return max(_LEAST_BITS, BITS - (max(sizes, default=1) - 1).bit_length())


def _inner(query: Query, cells: Cells) -> int:
    """How many cells are one group for the caps."""
    if query.margins and cells.chosen is not None:
        return cells.size
    return len(cells.axes[-1]) if query.ranges else 1


def caps_of(query: Query, declaration: Declaration) -> Caps:
    """Return what is kept of a unit; without one, there is nothing to cap."""
    if declaration.unit_columns:
        return query.caps(declaration.caps)
    if query.limits != NO_CAPS:
        wrong = "caps in a query are of a privacy unit, and none is declared;"
        reason = f"got {query.limits.words[2:]}."
        remedy = "Name its column: .dp.declare(privacy_unit=..., max_rows=...)."
        raise DeclarationError(f"{wrong} {reason} {remedy}", parameter="privacy_unit")
    return ROW_CAPS


def _read(outputs: Sequence[OutputColumn]) -> list[tuple[SourceTerms, StatisticName]]:
    """Say what is read off which source; a count of what a rate counts is read off the rate's."""
    for out in outputs:
        if not out.form.family:
            reason = "quantiles are selected, not read off totals: release one query for them on"
            remedy = "its own, .dp.quantile(...) or dpf.release(frame, dpf.quantile(...))."
            raise QueryError(f"{reason} {remedy}", parameter="queries")
    rates = {out.source[1].where: out.source for out in outputs if out.condition is not None}
    return [
        (rates[out.where], "sum")
        if out.form.is_whole and out.where in rates
        else (out.source, out.statistic)
        for out in outputs
    ]


def _place_among(
    out: OutputColumn, joint: Sequence[OutputColumn], places: Mapping[SourceTerms, int]
) -> tuple[int, int] | None:
    """Find several columns off whose moments a statistic of one of them can be read.

    The rows must be the same: none of them without a value of either column.
    """
    if len(out.values) != 1 or out.form.is_total or out.row_weights is not None:
        return None
    ((column, _, column_bounds),) = out.values
    for several in joint:
        if several.where != out.where:
            continue
        if any(grid.fill is None and not grid.drop for _, grid, _ in several.values):
            continue
        for axis, (label, _, bounds) in enumerate(several.values):
            if (label, bounds) == (column, column_bounds):
                return places[several.source], axis
    return None


def _most(options: QueryOptions, outputs: Sequence[OutputColumn]) -> int | None:
    """Check that a limit on true columns is one on columns of zeros and ones."""
    most = options.max_true
    if most is None:
        return None
    for out in outputs:
        if out.grid is None or replace(out.grid, fill=None, drop=False) != Grid(0, 0, 1):
            rule = f"max_true={most} needs boolean columns, and {out.column!r} is not"
            remedy = "Declare its dtype as bool in the schema, and give no other bounds."
            text = f"{rule} declared as one, with bounds (0, 1). {remedy}"
            raise QueryError(text, parameter="max_true", label=out.column, value=most)
    # a limit of all columns limits nothing
    return most if most < len(outputs) else None


def _valued(outputs: Sequence[OutputColumn]) -> tuple[tuple[Hashable, Grid], ...]:
    read = [(label, grid) for out in outputs for label, grid, _ in out.values]
    weights = [out.row_weights for out in outputs if out.row_weights]
    read += [(weight.column, weight.grid) for weight in weights]
    return tuple(dict.fromkeys((label, grid) for label, grid in read if grid.drop))


def _terms(sources: Sequence[SourceTerms]) -> dict[Need, Term]:
    """Return the terms that total the values, the rows and the units of the sources."""
    terms: dict[Need, Term] = {(0, "units"): Term("units")}
    for at, (rows, *value) in enumerate(sources):
        terms[at, "rows"] = rows
        for total in value:
            terms[at, "value"] = total
            if rows.grid is not None and rows.weights is None:
                terms[at, "square"] = replace(rows, kind="square")
        if rows.others:
            columns = 1 + len(rows.others)
            powers = moments(columns, SECOND).items()
            parts = parts_of_pair(rows.degree).items() if columns == PAIR else ()
            terms |= {(at, name): replace(rows, kind="moment", part=part) for name, part in powers}
            terms |= {(at, name): replace(rows, kind="part", part=part) for name, part in parts}
    return terms


def _domain(query: Query, cells: Cells) -> Domain:
    """Say in numbers where the cells lie."""
    places = {axis.column: at for at, axis in enumerate(cells.axes)}
    return Domain(
        tuple(map(dimension_of, cells.axes)),
        None if cells.chosen is None else len(cells.chosen),
        tuple(tuple(places[column] for column in columns) for columns in query.margins),
        query.margin_weights,
        cells.chosen.tobytes() if query.margins and cells.chosen is not None else None,
    )


def dimension_of(axis: Axis) -> Dimension:
    """Say in numbers what a grouping column is."""
    return Dimension(len(axis), axis.ordered, axis.hidden)


def _source(terms: SourceTerms) -> Source:
    rows, *value = terms
    has_condition, grid = rows.where is not None, rows.grid
    if grid is None:
        return Source(0, len(value), optional=has_condition)
    if rows.weights is not None:
        optional = has_condition or (grid.fill is None and not grid.drop)
        origin = value[0].origin
        return Source(-int(grid.lower < origin), int(grid.upper > origin), optional)
    others = [other for _, other in rows.others]
    has_gaps = any(other.fill is None and not other.drop for other in (grid, *others))
    bounds = tuple((other.lower, other.upper) for other in others)
    return Source(grid.lower, grid.upper, has_condition or has_gaps, bounds, rows.degree)


def reach_in(
    declaration: Declaration, query: Query, cells: Cells, caps: Caps, *, always: bool
) -> Reach:
    """Return how much of the groups of a query one unit can fill.

    Raises
    ------
    DeclarationError
        If no cap bounds its rows.
    """
    # a row that nothing can leave out is always in the only cell there is
    always = always and not declaration.unit_columns and not cells.axes
    groups = 1 if query.margins else cells.size // _inner(query, cells)
    reach = reach_of(caps, groups, always=always)
    if reach is None:
        unit = quote(given_unit(declaration.unit_columns))
        raise DeclarationError(
            f"privacy_unit={unit} needs a cap that bounds its rows: declare "
            "max_rows, or max_rows_per_group, so that they leave 2**60 rows of one unit at most; "
            "no noise hides more.",
            parameter="max_rows",
            label=declaration.unit_columns[0],
        )
    return reach
