"""Do a step of a certificate to a table, and to what is said about it.

Actions see the table alone, so each can be done again from what it was done to.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.json_records import Packed
from dpframe.certificates.steps import StepPart, UnstackedPart
from dpframe.certificates.unstacked import places_in, spread, stack_table
from dpframe.certificates.verify import attach
from dpframe.errors import QueryError, quote

MOST_SHOWN = 200  # characters of names, which may come from a file


Outcome: TypeAlias = tuple[pd.DataFrame, Certificate]


Action: TypeAlias = Callable[[pd.DataFrame, Certificate, Any], Outcome]
"""What a step does: it takes a table, what is said about it and the record of the step."""


def after(
    frame: pd.DataFrame, certificate: Certificate, step: StepPart, action: Action
) -> pd.DataFrame:
    """Return the table that a step makes of another, with its certificate.

    Raises
    ------
    QueryError
        If the step cannot be done with this table.
    """
    return certified_after(frame, certificate, step, action)[0]


def certified_after(
    frame: pd.DataFrame, certificate: Certificate, step: StepPart, action: Action
) -> Outcome:
    """Return the table that a step makes of another, and its sealed certificate."""
    made, described = action(frame, certificate, step)
    made.attrs = {}
    return made, attach(made, replace(described, steps=(*certificate.steps, step)))


def in_rows(frame: pd.DataFrame, certificate: Certificate) -> pd.DataFrame:
    """Return a table with its cells in rows, as they were released, without certificate."""
    # pandas copies all attrs for each column that is looked at
    return pd.DataFrame(frame) if certificate.unstacked is None else stack_table(frame, certificate)


def cell_by_cell(action: Action) -> Action:
    """Let an action that knows columns of a release do so where keys are columns, too."""

    @wraps(action)
    def on_cells(frame: pd.DataFrame, certificate: Certificate, step: StepPart) -> Outcome:
        long, described = action(in_rows(frame, certificate), certificate, step)
        wide = certificate.unstacked is not None
        return spread(long, frame, certificate) if wide else long, described

    return on_cells


def label_place(frame: pd.DataFrame, name: str) -> int:
    """Return the position of the column that a step names."""
    places = [place for place, label in enumerate(frame.columns) if str(label) == name]
    if len(places) != 1:
        rule = f"{name[:MOST_SHOWN]!r} names {len(places)} columns of this table"
        raise QueryError(f"{rule}. Release them under other names.", label=name)
    return places[0]


def place_of(released: pd.DataFrame, label: Hashable, called: str) -> int:
    """Find a column by its label."""
    if not is_one_of(label, released.columns):
        known = quote(list(released.columns))
        raise QueryError.about(called, f"must name columns of this table, {known}", label)
    return label_place(released, str(label))


def keep_rows(frame: pd.DataFrame, certificate: Certificate, places: np.ndarray) -> Outcome:
    """Keep rows at some places, in their order."""
    if certificate.unstacked is not None:
        return keep_cells(frame, certificate, places, np.arange(frame.shape[1]))
    return frame.iloc[places], certificate.with_rows(places)


def keep_cells(
    frame: pd.DataFrame, certificate: Certificate, rows: np.ndarray, columns: np.ndarray
) -> Outcome:
    """Keep some rows and columns of a wide table."""
    known = np.full(frame.size, -1, np.intp)
    part = cast(UnstackedPart, certificate.unstacked)
    places = places_in(frame, part)
    known[places] = np.arange(len(places))
    order = known.reshape(frame.shape)[np.ix_(rows, columns)].ravel()
    kept = unstack_certificate(certificate, order, part.level, part.column)
    return frame.iloc[rows, columns], kept


def unstack_certificate(
    certificate: Certificate, order: np.ndarray, level: str, column: str
) -> Certificate:
    """Return the certificate of cells in some order, with -1 for those that are missing."""
    there = np.flatnonzero(order >= 0)
    places = None if len(there) == len(order) else Packed.of(there)
    part = UnstackedPart(level, column, places)
    return replace(certificate.with_rows(order[there]), unstacked=part)


def put_columns(frame: pd.DataFrame, columns: Mapping[int, pd.Series]) -> pd.DataFrame:
    """Return a frame with some columns exchanged, by position."""
    parts = {at: columns.get(at, frame.iloc[:, at]) for at in range(frame.shape[1])}
    return pd.DataFrame(parts, index=frame.index).set_axis(frame.columns, axis=1)
