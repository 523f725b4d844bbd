"""Queries of one release that are measured as one: nothing is measured twice for two of them.

Queries of the same groups are one workload, whatever form they were written in. Where a unit is
declared, its rows are capped after the condition of the query, so that only queries with the same
condition and caps count the same rows.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from dpframe.declaration.facts import Declaration
from dpframe.plan.tables import Table, table_of
from dpframe.queries.kinds import Joint
from dpframe.queries.tasks import Axis, Cells


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
        group = next(like, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return {
        tuple(group): _joined([tables[name] for name in group], declaration) for group in groups
    }


def _joined(tables: Sequence[Table], declaration: Declaration) -> Table:
    """Resolve the query that asks for several tables at once."""
    first = tables[0]
    if first.of is not None:
        return table_of(first.of, declaration)
    if len(tables) == 1:
        return first
    parts = tuple(table.query for table in tables)
    query = Joint(first.query.by, None, first.query.keys, parts=parts)
    return table_of(query, declaration, first.cells)


def _can_join(one: Table, other: Table) -> bool:
    """Whether two queries count the same rows in the same groups, or are asked for together."""
    if one.of is not None or other.of is not None or one.query.ranges or other.query.ranges:
        return one.of is not None and one.of is other.of
    if one.query.options.given or other.query.options.given:
        return False
    apart = one.unit is not None and one.where != other.where
    return not apart and one.caps == other.caps and _same_cells(one.cells, other.cells)


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
    same = one.keys is other.keys or (
        one.keys.dtype == other.keys.dtype and one.keys.equals(other.keys)
    )
    return bool(same)
