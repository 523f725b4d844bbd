"""Leave out released cells that say little."""

import math
from collections.abc import Hashable

import numpy as np
import pandas as pd

from dpframe.accuracy.intervals import error_of
from dpframe.certificates.certificate import Certificate, without_cells
from dpframe.certificates.companion_columns import check_no_intervals_beside, followers
from dpframe.certificates.steps import SuppressStep
from dpframe.certificates.unstacked import stack_table
from dpframe.certificates.verify import verify
from dpframe.declaration.warnings import warn
from dpframe.errors import QueryError
from dpframe.privacy.amounts import as_number
from dpframe.public import public_call
from dpframe.queries.timescale import in_seconds
from dpframe.steps import apply


@public_call
def suppress(
    released: pd.DataFrame,
    *,
    below: float | None = None,
    relative_error: float | None = None,
    by: Hashable | None = None,
) -> pd.DataFrame:
    """Make uninformative cells of a release missing, and keep its certificate.

    This is for readers; nobody's privacy needs it. Columns of whole numbers become `Int64`, which
    has missing values. Computed values, such as denoised ones and percentages, intervals and errors
    go with the cell.

    Parameters
    ----------
    released
        A released frame.
    below
        Suppress smaller values.
    relative_error
        Suppress where the standard error is a larger part of the value than this: 0.3 for 30 %.
    by
        The column that decides for all cells of a row; by default, each cell decides for itself.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If neither limit is given, or one is not a number; or if means, rates or times would be
        judged by their own size, in place of a count's.

    Warns
    -----
    DPFrameWarning
        If relative_error is above 1, that is 100 %.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 147 + ["B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> suppress(released, below=10)["count"].tolist()
    [147, <NA>]
    """
    certificate = verify(released)
    certificate.require_numbers()
    least = None if below is None else _limit("below", below)
    most = None if relative_error is None else _limit("relative_error", relative_error)
    if least is None and most is None:
        rule = "suppress needs below= or relative_error=, and got none of them."
        raise QueryError(rule, parameter="below")
    if most is not None:
        check_no_intervals_beside(certificate, "relative_error=")
    if most is not None and most <= 0:
        raise QueryError.about("relative_error", "must be above 0", relative_error)
    if most is not None and most > 1:
        warn(
            f"suppress: relative_error={most:g} is {100 * most:,.6g} % of the value, and keeps "
            f"what may be noise alone; {most / 100:g} is {most:g} %."
        )
    cells = stack_table(released, certificate)
    _check_judges(cells, certificate, by, least, most)
    name = None if by is None else str(by)
    step = SuppressStep("suppress", least, most, name, certificate.digest)
    return apply.after(released, certificate, step, apply_suppress)


def _check_judges(
    cells: pd.DataFrame,
    certificate: Certificate,
    by: Hashable,
    low: float | None,
    most: float | None,
) -> None:
    """Check that the columns that decide which cells are suppressed can."""
    known = certificate.releases[0].columns
    places = range(len(known)) if by is None else [apply.place_of(cells, by, "by")]
    if most is not None and max(places) >= len(known):
        way_out = "Take the released column."
        raise QueryError.about("by", "was computed, and has no standard error", by, way_out)
    for place in (place for place in places if place < len(known)):
        own = low is not None and by is None and not known[place].form.is_total
        if own or known[place].times is not None:
            label = cells.columns[place]
            rule = f"column {label!r} cannot say by its size which cells are to be suppressed"
            way_out = "Give the column that can, a count: by=..."
            raise QueryError(f"{rule}. {way_out}", parameter="by", label=label)


def _limit(name: str, given: object) -> float:
    """Read a limit."""
    try:
        limit = float(as_number(given))
    except (TypeError, ValueError, OverflowError):
        limit = math.nan
    if not math.isfinite(limit):
        raise QueryError.about(name, "must be a finite number", given)
    return limit


@apply.cell_by_cell
def apply_suppress(
    frame: pd.DataFrame, certificate: Certificate, step: SuppressStep
) -> apply.Outcome:
    """Leave out cells."""
    own = range(certificate.width)
    judges = own if step.by is None else [apply.label_place(frame, step.by)] * len(own)
    says_little = {at: _says_little(frame, certificate, at, step) for at in {*judges}}
    hidden = [says_little[at] for at in judges]
    columns = {}
    for at, cells in enumerate(hidden):
        columns[at] = _without_cells(frame.iloc[:, at], cells)
        for place in followers(frame, certificate, at):
            columns[place] = _without_cells(frame.iloc[:, place], cells)
    return apply.put_columns(frame, columns), certificate.with_each(
        lambda at, column, rows: without_cells(column, hidden[at][rows])
    )


def _says_little(
    frame: pd.DataFrame, certificate: Certificate, place: int, step: SuppressStep
) -> np.ndarray:
    """Tell which cells of a column are too small, or too far off."""
    values = in_seconds(frame.iloc[:, place], None)
    hidden: np.ndarray = np.isnan(values)
    if step.below is not None:
        hidden |= values < step.below
    if step.relative_error is not None:
        error = np.full(len(values), np.nan)

        for release in certificate.releases:
            error[release.places] = error_of(release.columns[place])
        hidden |= ~(error <= step.relative_error * np.abs(values))
    return hidden


def _without_cells(column: pd.Series, cells: np.ndarray) -> pd.Series:
    """Make cells missing; whole numbers stay whole."""
    if column.dtype.kind == "i":
        column = column.astype("Int64")
    return column.mask(cells)
