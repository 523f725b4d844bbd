"""The public rules by which a release leaves rows out, in words, for certificates and reports."""

from collections.abc import Hashable, Iterable, Iterator
from typing import assert_never

from dpframe.plan.columns import OutputColumn
from dpframe.plan.tables import Table
from dpframe.queries.grid import Grid
from dpframe.queries.query import list_labels
from dpframe.queries.tasks import Axis, BinAxis, KeyAxis, LabelAxis

UNWANTED = "combination of keys is not wanted"


def rules_of(table: Table) -> tuple[str, ...]:
    """Say where rows are left out of a table, beside its condition and its caps."""
    rules = list(rules_of_groups(table.unit, table.groups.axes))
    if table.groups.chosen is not None:
        rules.append(UNWANTED)
    for out in table.outputs:
        rules += _rules_of_output(out)
    return tuple(dict.fromkeys(rules))


def rules_of_groups(
    unit: tuple[Hashable, ...], axes: Iterable[Axis | LabelAxis]
) -> tuple[str, ...]:
    """Say where rows have no unit or no group."""
    rules = [f"{label} is missing" for label in unit]
    for axis in axes:
        if not (isinstance(axis, KeyAxis) and axis.rest):
            rules.append(f"{axis.column} is missing or {outside_of(axis)}")
    return tuple(rules)


def outside_of(axis: Axis | LabelAxis) -> str:
    """Say what values of a column are that are present, and in none of its groups."""
    match axis:
        case KeyAxis():
            return "not a declared key"
        case BinAxis(clipped=True):
            return "of another kind than the bins"
        case BinAxis():
            return "in no bin"
        case LabelAxis(kind=kind):
            return f"no label of kind {kind}"
        case _:
            assert_never(axis)


def unlike(grid: Grid) -> str:
    """Say what values of a bounded column are that are of another kind."""
    if grid.ticks is None:
        return "not a number"
    if not grid.ticks.points:
        return "not a duration"
    return f"not a point in time with{'out' if grid.ticks.zone is None else ''} a time zone"


def _rules_of_output(out: OutputColumn) -> Iterator[str]:
    """Say where rows do not count in an output, and may in others."""
    if out.where is not None:
        yield f"{out.where.text} is not met, of {out.name}"
    if out.condition is not None and out.condition.columns and not out.blanks_fail:
        yield f"{list_labels(out.condition.columns)} is missing, of {out.name}"
    for column, grid in ((out.column, out.grid), (out.other, out.other_grid)):
        if grid is not None and grid.fill is None:
            yield f"{column} is missing or {unlike(grid)}, of {out.name}"
