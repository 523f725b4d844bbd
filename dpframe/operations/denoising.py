"""How the tables of a release are to be denoised: checked before anything is charged."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from dpframe.errors import QueryError, shown
from dpframe.plan.measurement import TablePlan
from dpframe.plan.plan import Plan
from dpframe.plan.tables import TableName
from dpframe.steps.consistent import check_margins, made_consistent
from dpframe.steps.denoise_checks import Denoising, Described, check_denoising

_CONSISTENT = "consistent"


@dataclass(frozen=True, eq=False)
class Denoisings:
    """How the tables of a release are to be denoised.

    Parameters
    ----------
    tables
        How each is, by its name, where it is on its own.
    margins
        Queries whose tables are made whole numbers that add up.
    """

    tables: Mapping[Hashable, Denoising] = field(default_factory=dict)
    margins: frozenset[Hashable] = frozenset()

    def together(
        self, name: Hashable, found: Mapping[tuple[Hashable, ...], pd.DataFrame]
    ) -> object:
        """Denoise the tables of a query that asks for several, if that is wanted."""
        return made_consistent(found) if name in self.margins else found


def denoisings_of(
    plan: Plan, indexes: Mapping[Hashable, pd.Index], method: str | None, graph: object
) -> Denoisings:
    """Check how the tables of a release are to be denoised.

    Parameters
    ----------
    plan
        The release.
    indexes
        The indexes of its tables.
    method, graph
        As for `release`.

    Raises
    ------
    QueryError
        If they cannot be denoised so.
    """
    if method is None:
        if graph is not None:
            raise QueryError('graph is for denoising: give denoise="auto" as well.')
        return Denoisings()
    together = {name: one for name, one in plan.tables.items() if one.measurement.design.layers}
    margins = _margins(together) if method == _CONSISTENT else frozenset()
    alone = {name: _described(one) for name, one in plan.tables.items() if name not in together}
    if together and not alone and not margins:
        raise QueryError(
            f"denoise={shown(method)} takes the errors of cells for independent, and these are "
            'measured together. Margins of at most two columns take denoise="consistent"; leave it '
            "out elsewhere."
        )
    if margins:
        _check_margins_alone(list(margins), list(alone), graph)
        return Denoisings(margins=margins)
    tables = {
        name: check_denoising(method, indexes[name], columns, graph=graph)
        for name, columns in alone.items()
        # a table of means that the method is not for stays as it is beside others
        if len(alone) == 1 or method == "auto" or any(col.is_total for col in columns)
    }
    return Denoisings(tables)


def _check_margins_alone(
    margins: Sequence[Hashable], others: Sequence[Hashable], graph: object
) -> None:
    """Refuse what has no meaning where margins are made whole."""
    if others:
        raise QueryError(
            f'denoise="consistent" is for margins, and {others[0]!r} is released beside them. '
            "Release margins on their own, or leave denoise= out and call "
            f"dpf.consistent(tables[{margins[0]!r}]) afterwards."
        )
    if graph is not None:
        raise QueryError(
            'graph= has no meaning for denoise="consistent" of margins: no groups are neighbors '
            "there. Leave it out."
        )


def _margins(tables: Mapping[Hashable, TablePlan]) -> frozenset[Hashable]:
    """Check the tables of every query for margins, and name these queries."""
    sets: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    columns: dict[Hashable, list[Described]] = {}
    for name, planned in tables.items():
        if isinstance(name, TableName):
            sets.setdefault(name.query, []).append(name.columns)
            columns[name.query] = _described(planned)
    for query, own in sets.items():
        check_margins(own, columns[query])
    return frozenset(sets)


def _described(planned: TablePlan) -> list[Described]:
    return [
        Described(
            column.name,
            column.kind,
            None if prediction.per_row else prediction.std_error * column.step,
        )
        for column, prediction in zip(planned.outputs, planned.predictions(), strict=True)
    ]
