"""Releases rounded, suppressed in part and unstacked, for those who read them.

As in `choosing`, each call writes down a step. `replay` does all of them again.
"""

import math
from collections.abc import Hashable, Mapping

import pandas as pd

from dpframe.arguments import is_one_of, shown
from dpframe.calls import with_keywords
from dpframe.certificates.certificate import Certified, first_of
from dpframe.certificates.companion_columns import (
    DENOISED,
    check_no_intervals_beside,
    ends_of,
    followers,
)
from dpframe.certificates.noise_parts import MOST_DECIMALS
from dpframe.certificates.steps import (
    ConcatStep,
    DenoiseStep,
    RoundStep,
    StepPart,
    SuppressStep,
    UnstackStep,
)
from dpframe.certificates.unstacked import is_wide, stacked
from dpframe.certificates.verify import verify
from dpframe.declaration.warnings import warn
from dpframe.errors import CertificateError, QueryError
from dpframe.privacy.amounts import as_number
from dpframe.steps.apply import after, place_of

__all__ = ["replay", "round", "suppress", "unstack"]


@with_keywords
def round(released: pd.DataFrame, decimals: int | Mapping[Hashable, int] = 0) -> pd.DataFrame:
    """Round the numbers of a release, halves to even, and keep its certificate.

    Intervals are those of the rounded numbers: as much wider as rounding may have moved these, and
    rounded to the outside. Those of rates and variances stay where they were, and are rounded, and
    so are the columns of `with_intervals` and `with_percent`.

    Parameters
    ----------
    released
        A released frame.
    decimals
        Number of decimals, -2 for hundreds; or a dict by column. Whole numbers stay whole, and
        times are not rounded. Ends of intervals are rounded with what they are about.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If decimals are not whole numbers from -15 to 15, or name no column of numbers.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 147})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A"]), epsilon=1e6)
    >>> tens = round(released, -1)
    >>> tens.join(tens.dp.interval()).loc["A"].tolist()
    [150, 140, 160]
    """
    certificate = verify(released)
    cells = stacked(released, certificate)
    kinds = [getattr(dtype, "kind", "O") for dtype in cells.dtypes]
    numbers = [at for at, kind in enumerate(kinds) if kind in "iuf"]
    ends = {end: at for at in numbers for end in ends_of(cells, certificate, at)}
    if isinstance(decimals, Mapping):
        given = {place_of(cells, label, "decimals"): count for label, count in decimals.items()}
    else:
        given = {at: decimals for at in numbers if at not in ends}
    for at, count in given.items():
        if type(count) is not int or abs(count) > MOST_DECIMALS:
            raise QueryError(
                f"decimals must be whole numbers from -{MOST_DECIMALS} to {MOST_DECIMALS}, got "
                f"{shown(count)}."
            )
        if at in ends:
            raise QueryError(
                f"decimals name {cells.columns[at]!r}, which is rounded to the outside with "
                f"{cells.columns[ends[at]]!r}. Leave it out."
            )
        if at not in numbers:
            raise QueryError(
                f"decimals name {cells.columns[at]!r}, which is no column of numbers. Leave it out."
            )
    if not given:
        raise QueryError("there are no numbers to round in this release, or decimals name none.")
    by_name = {str(cells.columns[at]): count for at, count in given.items()}
    return after(released, certificate, RoundStep("round", by_name, certificate.digest))


@with_keywords
def suppress(
    released: pd.DataFrame,
    *,
    below: float | None = None,
    relative_error: float | None = None,
    by: Hashable | None = None,
) -> pd.DataFrame:
    """Make cells of a release missing that say too little, and keep its certificate.

    This is for readers, who take a number for what it says: nobody's privacy needs it. Columns of
    whole numbers become `Int64`, which has missing values. What was computed, such as denoised
    values and percentages, goes with what it was computed from. Intervals and errors of suppressed
    cells are missing, too.

    Parameters
    ----------
    released
        A released frame.
    below
        Suppress what is smaller.
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
    least = None if below is None else _limit("below", below)
    most = None if relative_error is None else _limit("relative_error", relative_error)
    if least is None and most is None:
        raise QueryError("suppress needs below= or relative_error=, and got none of them.")
    if most is not None:
        check_no_intervals_beside(certificate, "relative_error=")
    if most is not None and most < 0:
        raise QueryError(f"relative_error must be 0 or more, got {shown(relative_error)}.")
    if most is not None and most > 1:
        warn(
            f"suppress: relative_error={most:g} is {100 * most:,.6g} % of the value, and keeps "
            f"what may be noise alone; {most / 100:g} is {most:g} %."
        )
    cells = stacked(released, certificate)
    _check_judges(cells, certificate, by, least, most)
    name = None if by is None else str(by)
    step = SuppressStep("suppress", least, most, name, certificate.digest)
    return after(released, certificate, step)


@with_keywords
def unstack(
    released: pd.DataFrame, level: Hashable = -1, *, column: Hashable | None = None
) -> pd.DataFrame:
    """Make columns of the keys of a level of a release, and keep its certificate.

    Cells keep their errors and intervals, `<key>_low` and `<key>_high`. Keys that are neither texts
    nor numbers, such as bins, become texts, so that files keep them.

    Parameters
    ----------
    released
        A released frame with two levels of keys or more.
    level
        The level, by name or position.
    column
        The released column whose cells are shown; `None`: the only one there is.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is one level alone, no such level or column, or keys that read alike; or if
        intervals or percentages were put beside the column.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"], "day": [0, 1, 1]})
    >>> query = dpf.count(by=["zone", "day"], keys={"zone": ["A", "B"], "day": [0, 1]})
    >>> unstack(dpf.release(trips, query, epsilon=1e6))
    day   0  1
    zone
    A     1  0
    B     0  2
    """
    certificate = verify(released)
    if is_wide(certificate):
        raise QueryError("unstack takes the table as it was before unstack: call it on that one.")
    names = list(released.index.names)
    if len(names) == 1:
        raise QueryError(f"unstack needs two levels of keys or more, and there is {names!r}.")
    position = names.index(level) if is_one_of(level, names) else level
    if type(position) is not int or not -len(names) <= position < len(names):
        raise QueryError(f"level must be among {names!r}, or a position, got {shown(level)}.")
    if list(map(str, names)).count(str(names[position])) > 1:
        raise QueryError(
            f"two levels read alike: {names!r}. Rename one with .dp.rename(levels=...)."
        )
    own = list(released.columns[: len(first_of(certificate).columns)])
    if column is None and len(own) == 1:
        column = own[0]
    if not is_one_of(column, own):
        raise QueryError(
            f"column must be one of the columns released, {own!r}, got {shown(column)}."
        )
    _check_alone(released, certificate, own.index(column))
    step = UnstackStep("unstack", str(names[position]), str(column), certificate.digest)
    return after(released, certificate, step)


@with_keywords
def replay(published: pd.DataFrame, released: pd.DataFrame) -> pd.DataFrame:
    """Do again, from a release, what the certificate of a published table lists, and compare.

    Parameters
    ----------
    published
        A table that was made from the release by steps of this library.
    released
        The release, or a table between the two. Of margins made whole, it is the one that
        `dpframe.consistent` makes of all released tables: a single one does not say how.

    Returns
    -------
    DataFrame
        The published table, made anew.

    Raises
    ------
    CertificateError
        If one of them is not what its certificate was given for, or the steps make another table of
        the release.
    QueryError
        If the table was made from several released ones together.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> published = released.dp.round(-1).dp.head(1)
    >>> replay(published, released).equals(published)
    True
    """
    wanted, frame = verify(published), released
    certificate = verify(frame)
    for step in wanted.steps[len(certificate.steps) :]:
        _check_of_one(step, certificate)
        if isinstance(step, DenoiseStep | ConcatStep) or step.of != certificate.digest:
            break
        frame = after(frame, certificate, step)
        certificate = verify(frame)
    if certificate != wanted:
        raise CertificateError(
            "the steps in the certificate do not lead from this release to this table. Give the "
            "release that it was made from, with its denoised columns if there are any."
        )
    return frame


def _check_of_one(step: StepPart, certificate: Certified) -> None:
    """Refuse to do again what was done with several tables."""
    structure = first_of(certificate).mechanism.structure
    together = structure is not None and structure.kind == "margins"
    if together and isinstance(step, DenoiseStep) and step.of == certificate.digest:
        raise QueryError(
            "replay does the steps of one table, and the whole numbers in this one were made from "
            "several tables together: dpframe.consistent(tables) of all of them does it again. "
            "Give the table that it returns as the release, and later steps are done again."
        )


def _check_alone(released: pd.DataFrame, certificate: Certified, place: int) -> None:
    """Check that no intervals or percentages stand beside a column that is to be unstacked."""
    beside = [
        released.columns[at]
        for at, suffix in followers(released, certificate, place).items()
        if suffix != DENOISED
    ]
    if beside:
        label = released.columns[place]
        raise QueryError(
            f"unstack takes {label!r} without {', '.join(map(repr, beside))} beside it: use "
            f".dp.select(columns={label!r}) before, and .dp.interval() of what unstack returns."
        )


def _check_judges(
    cells: pd.DataFrame,
    certificate: Certified,
    by: Hashable | None,
    least: float | None,
    most: float | None,
) -> None:
    """Check that the columns that decide which cells are suppressed can."""
    known = first_of(certificate).columns
    places = range(len(known)) if by is None else [place_of(cells, by, "by")]
    if most is not None and max(places) >= len(known):
        raise QueryError(
            f"by={shown(by)} was computed, and has no standard error. Take the released column."
        )
    for place in (place for place in places if place < len(known)):
        own = least is not None and by is None and not known[place].is_total
        if own or known[place].times is not None:
            raise QueryError(
                f"column {cells.columns[place]!r} cannot say by its size which cells are to be "
                "suppressed. Give the column that can, a count: by=..."
            )


def _limit(name: str, given: object) -> float:
    """Read a limit."""
    try:
        limit = float(as_number(given))
    except (TypeError, ValueError, OverflowError):
        limit = math.nan
    if not math.isfinite(limit):
        raise QueryError(f"{name} must be a finite number, got {shown(given)}.")
    return limit
