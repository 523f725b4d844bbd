"""Certificates of some of the rows or columns of a table, and what can be done with such tables."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Certificate, Certified, JoinedPart
from dpframe.certificates.noise_parts import ColumnPart, MomentsPart, Packed, RatioPart, unpack
from dpframe.errors import QueryError

_ADDED = frozenset({"denoise", "suggest", "interval", "percent"})
"""Steps that put columns beside those released."""

ADDED_OR_RENAMED = _ADDED | {"rename"}
"""Steps after which all cells are where they were."""

FEWER_ROWS = frozenset({"head", "tail", "select"})
"""Steps after which rows may be missing."""

CELLS_AS_RELEASED = frozenset({"sort_values", "rename"}) | _ADDED | FEWER_ROWS
"""Steps after which every cell there is holds what was released."""

ROW_BY_ROW = CELLS_AS_RELEASED | {"round", "suppress"}
"""Steps after which the columns are those that were released, or some of them."""

_ALL = slice(None)
_Rows: TypeAlias = np.ndarray | slice
_Change: TypeAlias = Callable[[Packed], Packed]


def check_before(
    certificate: Certified, what: str, *, allowed: Collection[str], instead: str = ""
) -> Certificate:
    """Return the certificate of a release, and refuse what has no meaning after some steps.

    Parameters
    ----------
    certificate
        That of the table.
    what
        The call.
    allowed
        Steps after which it has a meaning.
    instead
        What to do where rows were chosen.

    Raises
    ------
    QueryError
        If such a step was taken, or the table is one of several releases.
    """
    taken = [step.step for step in certificate.steps if step.step not in allowed]
    if isinstance(certificate, Certificate) and not taken:
        return certificate
    hint = instead if taken[0] in FEWER_ROWS else ""
    raise QueryError(
        f"{what} takes the table as it was before {taken[0]}: call it on that one.{hint}"
    )


def with_rows(certificate: Certified, places: np.ndarray) -> Certified:
    """Return the certificate of some rows, in the order of their places."""
    if isinstance(certificate, Certificate):
        return _own_rows(certificate, places)
    parts = tuple(_joined_rows(part, places) for part in certificate.parts)
    return replace(certificate, parts=parts)


def _own_rows(certificate: Certificate, places: np.ndarray) -> Certificate:
    """Return what is left of a release."""

    def taken(packed: Packed) -> Packed:
        return Packed.of(np.asarray(unpack(packed))[places])

    columns = tuple(_change_rows(column, taken) for column in certificate.columns)
    return replace(certificate, columns=columns)


def _joined_rows(part: JoinedPart, places: np.ndarray) -> JoinedPart:
    """Return what is left of a release of several."""
    own = part.places
    size = 1 + max(own.max(initial=-1), places.max(initial=-1))
    known = np.full(size, -1, np.intp)
    known[own] = np.arange(len(own))
    rows = np.flatnonzero(known[places] >= 0)
    return JoinedPart(_own_rows(part.certificate, known[places[rows]]), Packed.of(rows))


def with_columns(certificate: Certified, places: Sequence[int]) -> Certified:
    """Return the certificate of some released columns."""

    def kept(part: Certificate, _: object) -> Certificate:
        return replace(part, columns=tuple(part.columns[place] for place in places))

    return _with_parts(certificate, kept)


def with_each(
    certificate: Certified, change: Callable[[int, ColumnPart, _Rows], ColumnPart]
) -> Certified:
    """Return a certificate with each column changed, by its position and those of its rows."""

    def changed(part: Certificate, rows: _Rows) -> Certificate:
        columns = (change(at, column, rows) for at, column in enumerate(part.columns))
        return replace(part, columns=tuple(columns))

    return _with_parts(certificate, changed)


def _with_parts(
    certificate: Certified, change: Callable[[Certificate, _Rows], Certificate]
) -> Certified:
    """Change the certificate of each release of a table."""
    if isinstance(certificate, Certificate):
        return change(certificate, _ALL)
    parts = tuple(
        JoinedPart(change(part.certificate, part.places), part.rows) for part in certificate.parts
    )
    return replace(certificate, parts=parts)


def by_release(
    table: pd.DataFrame,
    certificate: Certified,
    compute: Callable[[pd.DataFrame, Certificate], pd.DataFrame],
) -> pd.DataFrame:
    """Compute a table of the rows of each release, and put them together again."""
    if isinstance(certificate, Certificate):
        return compute(table, certificate)
    made = [compute(table.iloc[part.places], part.certificate) for part in certificate.parts]
    order = np.argsort(np.concatenate([part.places for part in certificate.parts]))
    return pd.concat(made).iloc[order].set_axis(table.index, axis=0)


def without_cells(column: ColumnPart, hidden: np.ndarray) -> ColumnPart:
    """Leave out what is said about some cells of a column."""
    return _change_rows(column, lambda part: Packed.of(np.where(hidden, np.nan, unpack(part))))


def _change_rows(column: ColumnPart, change: _Change) -> ColumnPart:
    """Change all that is said about a column row by row."""
    return replace(
        column,
        loadings=None if column.loadings is None else _each(column.loadings, change),
        ratio=None if column.ratio is None else _ratio(column.ratio, change),
        moments=None if column.moments is None else _moments(column.moments, change),
    )


def _ratio(ratio: RatioPart, change: _Change) -> RatioPart:
    centered, rows = (_one(part, change) for part in (ratio.centered, ratio.rows))
    of_centered, of_rows = (_each(parts, change) for parts in (ratio.of_centered, ratio.of_rows))
    return RatioPart(centered, rows, of_centered, of_rows)


def _moments(moments: MomentsPart, change: _Change) -> MomentsPart:
    rows, first, rest = map(change, (moments.rows, moments.first, moments.rest))
    return replace(moments, rows=rows, first=first, rest=rest)


def _one(part: float | Packed, change: _Change) -> float | Packed:
    return change(part) if isinstance(part, Packed) else part


def _each(parts: Mapping[str, float | Packed], change: _Change) -> dict[str, float | Packed]:
    return {block: _one(part, change) for block, part in parts.items()}
