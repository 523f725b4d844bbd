"""The public rules by which a release leaves rows out, in words, for certificates and reports."""

from collections.abc import Hashable, Iterable, Iterator

from dpframe.plan.columns import OutputColumn
from dpframe.plan.tables import Table
from dpframe.queries.query import list_labels
from dpframe.queries.tasks import Axis, BinAxis, KeyAxis, LabelAxis


def rules_of(table: Table) -> tuple[str, ...]:
    """Say where rows are left out of a table, beside its condition and its caps."""
    rules = list(rules_of_groups(table.unit, table.groups.axes))
    if table.groups.chosen is not None:
        rules.append("their combination of groups is not wanted")
    for out in table.outputs:
        rules += _rules_of_output(out)
    return tuple(dict.fromkeys(rules))


def rules_of_groups(
    unit: tuple[Hashable, ...], axes: Iterable[Axis | LabelAxis]
) -> tuple[str, ...]:
    """Say where rows have no unit or no group."""
    rules = [f"{label} is missing" for label in unit]
    for axis in axes:
        match axis:
            case KeyAxis(rest=True):
                continue
            case KeyAxis():
                otherwise = "none of the groups"
            case BinAxis(clipped=True):
                otherwise = "of another kind than the bins"
            case BinAxis():
                otherwise = "in no bin"
            case LabelAxis(kind=kind):
                otherwise = f"no label of kind {kind}"
        rules.append(f"{axis.column} is missing or {otherwise}")
    return tuple(rules)


def _rules_of_output(out: OutputColumn) -> Iterator[str]:
    """Say where rows do not count in an output, and may in others."""
    if out.where is not None:
        yield f"{out.where.text} is not met, of {out.name}"
    if out.condition is not None and out.condition.columns and not out.blanks_fail:
        yield f"{list_labels(out.condition.columns)} is missing, of {out.name}"
    for column, grid in ((out.column, out.grid), (out.other, out.other_grid)):
        if grid is not None and grid.fill is None:
            yield f"{column} is missing or of another kind, of {out.name}"
