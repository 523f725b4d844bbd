"""Tables with the keys of a level as columns: where their cells are in the long table, and back."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype, take

from dpframe.certificates.certificate import Certificate
from dpframe.certificates.json_records import places_of
from dpframe.certificates.steps import UnstackedPart
from dpframe.errors import QueryError, UnreadableCertificateError


def labels_of(keys: pd.Index) -> pd.Index:
    """Return keys as labels of columns that files keep: texts and numbers, and texts of others.

    Raises
    ------
    QueryError
        If two of them read alike.
    """
    plain = all(type(key) in (str, int, float) for key in keys.tolist())
    labels = keys.tolist() if plain else [str(key) for key in keys]
    if len({str(label) for label in labels}) < len(labels):
        rule = f"the keys of {keys.name!r} cannot be labels of columns: two of them read alike."
        raise QueryError(rule, parameter="level", label=keys.name)
    return pd.Index(labels, name=keys.name, tupleize_cols=False)


def widen_table(frame: pd.DataFrame, level: int, place: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with the keys of a level as columns, in order of appearance.

    Parameters
    ----------
    frame
        The long table.
    level
        Position of the level.
    place
        Position of the column whose values are shown.

    Returns
    -------
    wide : DataFrame
        The table; a combination of keys that is not there is missing.
    order : numpy.ndarray
        Positions of the rows of the long table, in the order of the cells of the wide one, with -1
        for those that are missing.
    """
    keys = cast(pd.MultiIndex, frame.index)
    rows, found = keys.droplevel(level).factorize(use_na_sentinel=False)
    columns, inner = keys.get_level_values(level).factorize(use_na_sentinel=False)
    names = [name for at, name in enumerate(keys.names) if at != level]
    outer = cast(pd.Index, found).set_names(names)
    order = np.full((len(outer), len(inner)), -1, np.intp)
    order[rows, columns] = np.arange(len(frame))
    labels = labels_of(cast(pd.Index, inner).rename(keys.names[level]))
    return _table(frame.iloc[:, place], order, outer, labels), order.ravel()


def _table(values: pd.Series, order: np.ndarray, index: pd.Index, labels: pd.Index) -> pd.DataFrame:
    """Lay out values in rows and columns."""
    if values.dtype.kind == "i" and (order < 0).any():
        values = values.astype("Int64")
    extended = isinstance(values.dtype, ExtensionDtype)
    cells: Any = values.array if extended else values.to_numpy()
    parts = {at: take(cells, column, allow_fill=True) for at, column in enumerate(order.T)}
    return pd.DataFrame(parts, index=index).set_axis(labels, axis=1)


def places_in(frame: pd.DataFrame, part: UnstackedPart) -> np.ndarray:
    """Return where the cells of the long table are in a wide one, row by row."""
    if part.places is None:
        return np.arange(frame.size)
    places = places_of(part.places)
    if places.max(initial=0) >= frame.size:
        why = "it names cells that the table does not have. Go back to what was released"
        raise UnreadableCertificateError(f"this certificate cannot be read: {why}.")
    return places


def stack_table(frame: pd.DataFrame, certificate: Certificate) -> pd.DataFrame:
    """Return the long table of a wide one, or one that is long already, without certificate."""
    frame = pd.DataFrame(frame)  # pandas copies all attrs for each column that is looked at
    part = certificate.unstacked
    if part is None:
        return frame
    rows, columns = np.divmod(places_in(frame, part), frame.shape[1])
    joined = pd.concat([frame.iloc[:, at] for at in range(frame.shape[1])], ignore_index=True)
    values = joined.iloc[columns * len(frame) + rows]
    keys = frame.columns[columns]
    outer = frame.index[rows]
    levels = [outer.get_level_values(at) for at in range(outer.nlevels)]
    index = pd.MultiIndex.from_arrays([*levels, keys], names=[*outer.names, part.level])
    labels = pd.Index([part.column], tupleize_cols=False)
    return pd.DataFrame({0: values.array}, index=index).set_axis(labels, axis=1)


def in_rows(released: pd.DataFrame, certificate: Certificate) -> tuple[pd.DataFrame, Certificate]:
    """Return the long table of a wide one that was verified, and what is said about it."""
    return stack_table(released, certificate), replace(certificate, unstacked=None)


def spread(
    long: pd.DataFrame,
    frame: pd.DataFrame,
    certificate: Certificate,
    suffixes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Lay out columns that belong to the cells of a wide table as it is; others stay as they are.

    Parameters
    ----------
    long
        One row per cell.
    frame, certificate
        The wide table.
    suffixes
        What is put after a label, for each column of the long table; by default nothing.
    """
    part = certificate.unstacked
    if part is None:
        return long
    order = np.full(frame.size, -1, np.intp)
    order[places_in(frame, part)] = np.arange(len(long))
    order = order.reshape(frame.shape)
    values = (long.iloc[:, at] for at in range(long.shape[1]))
    tables = [_table(column, order, frame.index, frame.columns) for column in values]
    if suffixes is None:
        return tables[0]
    columns: dict[Hashable, Any] = {
        f"{label}{suffix}": table.iloc[:, at]
        for at, label in enumerate(frame.columns)
        for suffix, table in zip(suffixes, tables, strict=True)
    }
    return pd.DataFrame(columns, index=frame.index)
