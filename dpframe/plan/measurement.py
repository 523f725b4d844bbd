"""What is measured for a release, and which of its outputs belong to which table."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpframe.checker.noise import BlockNoise
from dpframe.declaration.facts import Declaration
from dpframe.forks import cached_property
from dpframe.plan.calibrated import Calibrated
from dpframe.plan.columns import OutputColumn
from dpframe.plan.tables import Table, dimension_of, table_of
from dpframe.privacy.law import Law
from dpframe.privacy.unit_reach import Reach
from dpframe.queries.aggregate import Joint
from dpframe.queries.tasks import Axis, Cells, Task
from dpframe.strategies.base import Design, Need, Prediction
from dpframe.strategies.characters import worth_joining
from dpframe.strategies.domain import Domain, largest_sets
from dpframe.strategies.noise import members_of


def join(
    tables: Mapping[Hashable, Table], declaration: Declaration
) -> dict[tuple[Hashable, ...], Table]:
    """Join tables that can be measured as one.

    Parameters
    ----------
    tables
        Resolved queries by name.
    declaration
        What is public about the frame.

    Returns
    -------
    dict
        Tables by the names of those they stand for; their outputs are in that order.
    """
    groups: list[list[Hashable]] = []
    for name, table in tables.items():
        like = (group for group in groups if _can_join(tables[group[0]], table))
        group = next(like, [])
        if not group:
            groups.append(group)
        group.append(name)
    return {
        tuple(group): _resolve_joint([tables[name] for name in group], declaration)
        for group in groups
    }


def join_across(
    joint: Mapping[tuple[Hashable, ...], Table],
) -> dict[tuple[Hashable, ...], Table] | None:
    """Join counts of the same rows by different columns, to be measured by sums of signs.

    Parameters
    ----------
    joint
        Tables as `join` returns them.

    Returns
    -------
    dict or None
        Tables by the names of those they stand for, first those that are joined: the smallest
        ones, as far as that is likely to gain something. `None` where it is not.
    """
    if len(joint) < 2:  # noqa: PLR2004
        return None
    groups: dict[Hashable, list[tuple[Hashable, Table]]] = {}
    for names, table in joint.items():
        if len(names) == 1 and _is_count_of_rows(table):
            about = None if table.where is None else table.where.text
            groups.setdefault(about, []).append((names[0], table))
    largest = max(groups.values(), key=len, default=[])
    chosen = [largest[k] for k in worth_joining([table.workload.domain for _, table in largest])]
    if len(chosen) < 2:  # noqa: PLR2004
        return None
    names = tuple(name for name, _ in chosen)
    others = {own: table for own, table in joint.items() if own[0] not in names}
    return {names: _across([table for _, table in chosen]), **others}


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


def _resolve_joint(tables: Sequence[Table], declaration: Declaration) -> Table:
    """Resolve the query that asks for several tables at once."""
    first = tables[0]
    if first.of is not None:
        return table_of(first.of, declaration)
    if len(tables) == 1:
        return first
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


@dataclass(frozen=True, eq=False)
class Measurement(Calibrated):
    """Integers that are measured together, with their noise.

    Parameters
    ----------
    table
        The resolved query, or all queries that are measured as one.
    """

    table: Table

    @cached_property
    def needs(self) -> list[Need]:
        """What engines are asked for, in order."""
        return sorted(self.design.needs)

    @cached_property
    def task(self) -> Task:
        """The pass over a frame that totals it: what is checked is totaled."""
        return self.table.task(self.needs)

    def encode(self, totals: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Turn totals into the integers that noise is added to."""
        return self.design.encode(dict(zip(self.needs, totals, strict=True)))

    @property
    def is_over_cells(self) -> bool:
        """Whether all that is measured is so over many cells, which then err together."""
        design = self.design
        return design.layers is not None or len(design.common) == len(self.scales)

    @cached_property
    def shared(self) -> list[tuple[int, ...]]:
        """Blocks whose noise is drawn together: of several, or over all cells."""
        return [
            group
            for position, group in enumerate(self.design.groups)
            if len(group) > 1 or (position == 0 and self.design.joined)
        ]

    def members(self, cells: int) -> dict[int, int]:
        """Return with how many coordinates one of each block is drawn, in so many cells."""
        if cells not in self._members:
            self._members[cells] = members_of(self.design, cells)
        return self._members[cells]

    @cached_property
    def _members(self) -> dict[int, dict[int, int]]:
        return {}


def noise_of(law: Law, design: Design, scales: tuple[float, ...]) -> BlockNoise:
    """Return the noise of the blocks of a design."""
    profile = None if design.layers is None else design.layers.profile
    return BlockNoise(law, scales, design.groups, design.joined, profile)


@dataclass(frozen=True, eq=False)
class TablePlan:
    """One table of a release.

    Parameters
    ----------
    table
        The resolved query.
    measurement
        What is measured for it, and perhaps for other tables.
    first
        Position of its first output among those of the measurement; `None` where all are its own.
    """

    table: Table
    measurement: Measurement
    first: int | None = None

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        """The columns released: those asked for, and the number of rows where it comes for free."""
        if self.first is not None:
            return self.table.outputs
        extra = (self.table.rows_column,) if self.measurement.design.extra else ()
        return self.table.outputs + extra

    @property
    def place(self) -> int:
        """Which of the tables of the measurement it is."""
        return (self.first or 0) // len(self.table.outputs)

    @property
    def own(self) -> slice:
        """Its outputs among those of the measurement."""
        first = self.first or 0
        return slice(first, first + len(self.outputs))

    def predictions(self) -> tuple[Prediction, ...]:
        """Return the error of every output column."""
        return self.measurement.predictions[self.own]
