"""Which queries of a release can be measured as one."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpframe.context import cached_property
from dpframe.declaration.facts import Declaration
from dpframe.errors import of_query
from dpframe.frozen import frozen
from dpframe.plan.tables import Table, dimension_of, table_of, tables_of
from dpframe.privacy.sensitivity import Reach
from dpframe.queries.aggregate import join_queries
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, Cells
from dpframe.strategies.characters import worth_joining
from dpframe.strategies.domain import Domain, largest_sets

NamedTables: TypeAlias = Mapping[Hashable, Table]
"""Tables by name, each with what is measured for it."""


class Pool(NamedTuple):
    """Queries that can be measured as one.

    Parameters
    ----------
    names
        Their names.
    across
        Whether they are counts by different columns, which share noise in sums of signs.
    """

    names: tuple[Hashable, ...]
    across: bool = False


@frozen(eq=False)
class Joining:
    """The queries of a release, resolved on their own, and which can be measured as one.

    Parameters
    ----------
    declaration
        What is public about the frame.
    queries
        Queries by name.
    tables
        The tables of each query.
    apart
        Whether errors of cells are to be independent, so that tables do not share noise.
    """

    declaration: Declaration
    queries: Mapping[Hashable, Query]
    tables: Mapping[Hashable, NamedTables]
    apart: bool
    # what was joined: every law of noise, and a part of the queries, ask for the same tables
    _joined: dict[Pool, NamedTables] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, declaration: Declaration, queries: Mapping[Hashable, Query], *, apart: bool
    ) -> "Joining":
        """Resolve queries.

        Raises
        ------
        DeclarationError, QueryError
            If the queries do not fit what is declared.
        """
        tables: dict[Hashable, NamedTables] = {}
        for name, query in queries.items():
            with of_query(name):
                tables[name] = _link_margins(tables_of(name, query, declaration), declaration)
        return cls(declaration, queries, tables, apart)

    def only(self, names: Sequence[Hashable]) -> "Joining":
        """Return some of the queries."""
        queries = {name: self.queries[name] for name in names}
        tables = {name: self.tables[name] for name in names}
        return replace(self, queries=queries, tables=tables)

    @property
    def all_tables(self) -> NamedTables:
        """The tables of all queries."""
        return {key: table for tables in self.tables.values() for key, table in tables.items()}

    @cached_property
    def pools(self) -> list[Pool]:
        """All queries: those of the same groups of the same rows are in one pool."""
        pools: list[list[Hashable]] = []
        of_rows: dict[Hashable, list[list[Hashable]]] = {}
        for name in self.tables:
            table = self._only(name)
            likely = of_rows.setdefault(_rows_of(table), []) if _may_join(table) else []
            cells = table.cells
            like = (pool for pool in likely if _same_cells(self._only(pool[0]).cells, cells))
            pool = next(like, [])
            if not pool:
                pools.append(pool)
                likely.append(pool)
            pool.append(name)
        alike = [Pool(tuple(pool)) for pool in pools]
        signs = self._sharing_signs([pool.names[0] for pool in alike if len(pool.names) == 1])
        return [
            *signs,
            *(pool for pool in alike if not any({*pool.names} & {*sign.names} for sign in signs)),
        ]

    def joined(self, pool: Pool) -> NamedTables:
        """Return the tables of some queries of a pool, to be measured as one."""
        if pool not in self._joined:
            self._joined[pool] = self._join(pool)
        return self._joined[pool]

    def _join(self, pool: Pool) -> NamedTables:
        if len(pool.names) == 1:
            return self.tables[pool.names[0]]
        tables = {name: self._only(name) for name in pool.names}
        if pool.across:
            joint, places = _across([*tables.values()]), range(len(tables))
            pairs = zip(tables.items(), places, strict=True)
            return {name: replace(table, joint=joint, first=at) for (name, table), at in pairs}
        joint = _joint_of([*tables.values()], self.declaration)
        linked, first = {}, 0
        for name, table in tables.items():
            linked[name] = replace(table, joint=joint, first=first)
            first += len(table.outputs)
        return linked

    def _only(self, name: Hashable) -> Table:
        """Return the first table of a query: that of a pool is its only one."""
        return next(iter(self.tables[name].values()))

    def _sharing_signs(self, names: Sequence[Hashable]) -> list[Pool]:
        """Pool counts of the same rows by different columns, if that is likely to gain something.

        They are the smallest ones.
        """
        if self.apart:
            return []
        groups: dict[Hashable, list[Hashable]] = {}
        for name in names:
            table = self._only(name)
            if table.joint is None and _is_count_of_rows(table):
                text = None if table.where is None else table.where.text
                groups.setdefault(text, []).append(name)
        largest = max(groups.values(), key=len, default=[])
        gain = worth_joining([self._only(name).workload.domain for name in largest])
        return [Pool(tuple(largest[k] for k in gain), across=True)] if len(gain) > 1 else []


def _link_margins(tables: NamedTables, declaration: Declaration) -> NamedTables:
    """Link the tables of a query that asks for several to the one that is measured."""
    first = next(iter(tables.values()))
    if first.of is None:
        return tables
    joint = table_of(first.of, declaration)
    return {
        name: replace(table, joint=joint, first=at * len(table.outputs))
        for at, (name, table) in enumerate(tables.items())
    }


def _is_count_of_rows(table: Table) -> bool:
    """Whether a table counts rows that are units of their own, by columns or in all."""
    plain = table.of is None and table.sizes is None and not table.workload.is_layered
    return (
        plain
        and not table.unit
        and table.outputs[0].row_weights is None
        and table.cells.chosen is None
        and len(table.outputs) == 1
        and table.workload.counts_everyone
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
    for at, other in enumerate(axes):
        if _same_axis(other, axis):
            return at
    axes.append(axis)
    return len(axes) - 1


def _joint_of(tables: Sequence[Table], declaration: Declaration) -> Table:
    """Resolve the query that asks for several tables of the same groups at once."""
    query = join_queries([table.query for table in tables], declaration.part_condition)
    return table_of(query, declaration, tables[0].cells)


def _may_join(table: Table) -> bool:
    """Whether a query can be measured with others."""
    return table.of is None and not table.query.ranges and not table.query.options.names_given


def _rows_of(table: Table) -> Hashable:
    """Return what is the same of queries that count the same rows by the same columns."""
    # caps choose among rows that meet it; without a unit, outputs may differ in their rows
    where = table.where if table.unit != () else None
    columns = tuple((axis.column, len(axis.keys)) for axis in table.cells.axes)
    return where, table.caps, frozenset(table.valued), table.outputs[0].row_weights, columns


def _same_cells(cells: Cells, other: Cells) -> bool:
    """Whether groups are the same, in the same order."""
    if len(cells.axes) != len(other.axes) or not all(map(_same_axis, cells.axes, other.axes)):
        return False
    if cells.chosen is None or other.chosen is None:
        return cells.chosen is other.chosen
    return np.array_equal(cells.chosen, other.chosen)


def _same_axis(axis: Axis, other: Axis) -> bool:
    """Whether two columns are grouped alike."""
    if type(axis) is not type(other) or axis.column != other.column:
        return False
    if axis.counts_all != other.counts_all:
        return False
    return _same_keys(axis.keys, other.keys) and _same_keys(axis.shown, other.shown)


def _same_keys(keys: pd.Index, other: pd.Index) -> bool:
    return bool(keys is other or (keys.dtype == other.dtype and keys.equals(other)))
