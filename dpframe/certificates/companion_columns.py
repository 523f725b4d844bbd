"""Columns computed from a release that stand beside the released ones: which belongs to which."""

from collections.abc import Hashable

import pandas as pd

from dpframe.certificates.certificate import Certificate, Release
from dpframe.certificates.column_parts import QuantilePart
from dpframe.certificates.parts import TreePart
from dpframe.certificates.steps import QuantilesStep
from dpframe.errors import QueryError

DENOISED = "_denoised"
ENDS = ("_low", "_high")
PERCENT = "_percent"
SUFFIXES = (DENOISED, *ENDS, PERCENT, *(f"{PERCENT}{end}" for end in ENDS))


def followers(frame: pd.DataFrame, certificate: Certificate, place: int) -> dict[int, str]:
    """Return the columns that were computed from a released one: what follows its label, by place.

    Of two released columns, one belongs to that with the longer label: `a_percent_low` to
    `a_percent`, if there is one, and to `a` otherwise.
    """
    if certificate.unstacked is not None:
        return {}
    labels = list(frame.columns)
    size = len(certificate.releases[0].columns)
    mine = {f"{labels[place]}{suffix}": suffix for suffix in SUFFIXES}
    longer = {
        f"{other}{suffix}"
        for other in labels[:size]
        if len(str(other)) > len(str(labels[place]))
        for suffix in SUFFIXES
    }
    return {
        at: mine[label]
        for at, label in enumerate(labels[size:], size)
        if isinstance(label, str) and label in mine and label not in longer
    }


def ends_of(frame: pd.DataFrame, certificate: Certificate, place: int) -> dict[int, str]:
    """Return the ends of the intervals of a column, released or computed, that stand beside it."""
    if certificate.unstacked is not None:
        return {}
    labels = list(frame.columns)
    size = len(certificate.releases[0].columns)
    mine = {f"{labels[place]}{end}": end for end in ENDS}
    return {
        at: mine[label]
        for at, label in enumerate(labels[size:], size)
        if isinstance(label, str) and label in mine
    }


def quantile_intervals(
    frame: pd.DataFrame,
    certificate: Certificate,
    release: Release,
    level: float,
    *,
    simultaneous: bool,
) -> pd.DataFrame:
    """Return the ends of the intervals of quantiles, which stand beside them since they were read.

    Raises
    ------
    QueryError
        If they are of another level, or were left out.
    """
    taken = (*release.steps, *certificate.steps)
    (step,) = (one for one in taken if isinstance(one, QuantilesStep))
    if level != step.level or (simultaneous and not step.simultaneous):
        at_once = ", simultaneous=True" if simultaneous else ""
        raise QueryError(
            f"these quantiles have intervals at level={step.level:g}: give that level, or read "
            f"them off the release again, .dp.quantile(q, level={level:g}{at_once}).",
            parameter="level",
            value=level,
        )
    places = list(ends_of(frame, certificate, 0))
    if len(places) < len(ENDS):
        raise QueryError(
            "the intervals of these quantiles were left out by unstack or select: call it on the "
            "table before."
        )
    ends = frame.iloc[:, places]
    return pd.DataFrame(ends.set_axis([f"{frame.columns[0]}{end}" for end in ENDS], axis=1))


def check_no_intervals_beside(certificate: Certificate, what: str) -> None:
    """Refuse what asks for errors of quantiles that were read off: they have intervals alone.

    Raises
    ------
    QueryError
        If they were.
    """
    for release in certificate.releases:
        if isinstance(release.columns[0], QuantilePart) and isinstance(release.mechanism, TreePart):
            low, high = (f"{release.columns[0].name}{end}" for end in ENDS)
            raise QueryError(
                f"{what} is not for quantiles that were read off a distribution: they have no "
                f"standard error, and their intervals are beside them, {low!r} to {high!r}.",
                label=release.columns[0].name,
            )


def put_beside(frame: pd.DataFrame, added: pd.DataFrame, what: str) -> pd.DataFrame:
    """Return a table with more columns, after those that it has.

    Raises
    ------
    QueryError
        If one of their labels is that of another column or level.
    """
    labels: list[Hashable] = [*frame.columns, *added.columns]
    names = [*map(str, labels), *map(str, frame.index.names)]
    taken = [label for label in added.columns if names.count(label) > 1]
    if taken:
        raise QueryError(
            f"{what} would add {taken[0]!r}, which is the name of a column or level already. Call "
            "it on the table without that, or use .dp.rename before.",
            label=taken[0],
        )
    bare = [pd.DataFrame(part) for part in (frame, added)]
    for part in bare:
        part.attrs = {}
    made = pd.concat(bare, axis=1)
    made.columns = pd.Index(labels, tupleize_cols=False, name=frame.columns.name)
    return made
