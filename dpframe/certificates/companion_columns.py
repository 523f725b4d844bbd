"""Columns computed from a release that stand beside the released ones: which belongs to which."""

from collections.abc import Hashable, Sequence

import pandas as pd

from dpframe.certificates.certificate import Certificate, Release
from dpframe.certificates.mechanism_parts import TreePart
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
    own = str(frame.columns[place])
    others = [str(label) for label in frame.columns[: certificate.width]]
    longer = {f"{one}{suffix}" for one in others if len(one) > len(own) for suffix in SUFFIXES}
    beside = _beside(frame, certificate, own, SUFFIXES)
    return {at: suffix for at, suffix in beside.items() if frame.columns[at] not in longer}


def ends_of(frame: pd.DataFrame, certificate: Certificate, place: int) -> dict[int, str]:
    """Return the ends of the intervals of a column, released or computed, that stand beside it."""
    return _beside(frame, certificate, str(frame.columns[place]), ENDS)


def _beside(
    frame: pd.DataFrame, certificate: Certificate, label: str, suffixes: Sequence[str]
) -> dict[int, str]:
    """Return the suffixes behind the label of a column, by the places of their columns."""
    size = certificate.width
    if certificate.unstacked is not None or size == frame.shape[1]:
        return {}
    mine = {f"{label}{suffix}": suffix for suffix in suffixes}
    later = enumerate(frame.columns[size:], size)
    return {at: mine[name] for at, name in later if isinstance(name, str) and name in mine}


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
    (step,) = (one for one in taken if one.step == "quantile")
    if level != step.level or (simultaneous and not step.simultaneous):
        at_once = ", simultaneous=True" if simultaneous else ""
        rule = f"must be that of these intervals, {step.level:g}"
        way_out = f"Or read them off the release, .dp.quantile(q, level={level:g}{at_once})."
        raise QueryError.about("level", rule, level, way_out)
    places = list(ends_of(frame, certificate, 0))
    if len(places) < len(ENDS):
        raise QueryError("the intervals of these quantiles were left out: call it on those before.")
    ends = frame.iloc[:, places]
    return pd.DataFrame(ends.set_axis([f"{frame.columns[0]}{end}" for end in ENDS], axis=1))


def check_no_intervals_beside(certificate: Certificate, what: str) -> None:
    """Refuse what asks for errors of quantiles that were read off: they have intervals alone.

    Raises
    ------
    QueryError
        If they were, or there are no numbers.
    """
    certificate.require_numbers()
    for release in certificate.releases:
        column = release.columns[0]
        if not column.features and isinstance(release.mechanism, TreePart):
            ends = " to ".join(repr(f"{column.name}{end}") for end in ENDS)
            rule = f"{what} is not for quantiles that were read off a distribution"
            why = f"they have no standard error, and their intervals are beside them, {ends}"
            raise QueryError(f"{rule}: {why}.", label=column.name)


def without_attrs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without its certificate; its cells are not copied."""
    bare = pd.DataFrame(frame)
    bare.attrs = {}
    return bare


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
        rule = f"{what} would add {taken[0]!r}, which is the name of a column or level already"
        raise QueryError(f"{rule}. Leave that out, or use .dp.rename before.", label=taken[0])
    made = pd.concat([without_attrs(part) for part in (frame, added)], axis=1)
    made.columns = pd.Index(labels, tupleize_cols=False, name=frame.columns.name)
    return made
