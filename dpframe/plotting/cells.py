"""What is drawn: released numbers with the ends of their intervals, on a scale."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpframe.accuracy.distribution import ENDS_OF_ROUNDING, below_edges, deviations, risen
from dpframe.accuracy.intervals import intervals_of
from dpframe.accuracy.quotients import percent_of, ratio_of
from dpframe.accuracy.ranges import Distribution, distribution_of
from dpframe.accuracy.sampling import check_sampled, widen
from dpframe.arguments import is_one_of
from dpframe.calls import did_you_mean
from dpframe.cells.needs import whole_release
from dpframe.cells.verify import Shown
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.column_parts import AssociationPart, QuantilePart, ValuePart
from dpframe.certificates.definitions import DenoiseDefinition
from dpframe.certificates.mechanism_parts import ThresholdPart, TreePart
from dpframe.errors import QueryError, UnknownColumnError
from dpframe.plotting.positions import NUMBERS, Scale, duration_scale, seconds_along, text
from dpframe.privacy.accuracy import check_level
from dpframe.queries.timescale import in_seconds

_ENDS = ["value", "low", "high"]
_SAMPLED = ["sampled_low", "sampled_high"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """One column, ready to be drawn.

    Parameters
    ----------
    label
        Its label.
    name
        What is written beside the axis of its values.
    parts
        On the index of the release, the columns `value`, `low` and `high`, and where there are such
        `sampled_low` and `sampled_high`, the ends with the error of sampled rows, `denoised`, and
        `below` and `above`, the places of arrows at ends that are infinite.
    scale
        What the numbers stand for.
    caption
        What the intervals are about, and what they leave out.
    effect
        Whether it says how two columns go together, with 0 for not at all.
    """

    label: Hashable
    name: str
    parts: pd.DataFrame
    scale: Scale
    caption: str
    effect: bool = False


_Places: TypeAlias = tuple[int, int | None]


def locate(shown: Shown, column: Hashable) -> _Places:
    """Return the positions of a released column, by default the first, and of its denoised values.

    Raises
    ------
    UnknownColumnError
        If there is no such released column.
    """
    raw: list[Hashable] = list(shown.frame.columns)
    if column is not None and not is_one_of(column, raw):
        rule = f"must be one of the released columns {raw}"
        instead = did_you_mean(column, raw).strip()
        raise UnknownColumnError.about("column", rule, column, instead)
    place = 0 if column is None else raw.index(column)
    name = shown.certificate.releases[0].columns[place].name
    partners = [
        at
        for at, one in enumerate(shown.computed.values(), len(raw))
        if isinstance(one, DenoiseDefinition) and one.column == name
    ]
    return place, partners[0] if partners else None


def gather(
    shown: Shown, columns: list[Hashable], level: float, *, sampling: bool = False
) -> list[Drawn]:
    """Gather released columns, with their intervals and denoised values."""
    places = [locate(shown, column) for column in columns]
    level = check_level(level)
    bars = {"": intervals_of(shown, level)}
    if sampling:
        bars["sampled_"] = intervals_of(shown, level, sampling=True)
    return [_of_column(shown.table, bars, shown.certificate, place) for place in places]


def _of_column(
    released: pd.DataFrame, bars: dict[str, pd.DataFrame], certificate: Certificate, places: _Places
) -> Drawn:
    place, partner = places
    parts = {"value": released.iloc[:, place]}
    for which, table in bars.items():
        parts[f"{which}low"] = table.iloc[:, 2 * place]
        parts[f"{which}high"] = table.iloc[:, 2 * place + 1]
    if partner is not None:
        parts["denoised"] = released.iloc[:, partner]
    origin = certificate.releases[0].columns[place].origin
    numbers = {name: in_seconds(part, origin) for name, part in parts.items()}
    scale = _scale(released.iloc[:, place], numbers)
    if origin is not None:
        numbers = {name: seconds_along(one, origin, scale) for name, one in numbers.items()}
    label = released.columns[place]
    name = scale.with_unit(text(label))
    caption = caption_of(certificate, [place], sampling=len(bars) > 1)
    effect = isinstance(certificate.releases[0].columns[place], AssociationPart)
    return Drawn(label, name, _drawable(numbers, released.index), scale, caption, effect)


def gather_ratio(
    shown: Shown, column: Hashable, per: Hashable, level: float, *, sampling: bool
) -> list[Drawn]:
    """Gather the quotients of two released columns."""
    certificate = shown.certificate
    label = shown.frame.columns[locate(shown, column)[0]]
    about = shown, label, per, check_level(level)
    names = "column", "per"
    tables = [
        ratio_of(*about, called=names, sampling=one) for one in _without_and_with(sampling=sampling)
    ]
    both = [locate(shown, one)[0] for one in (label, per)]
    caption = caption_of(certificate, both, sampling=sampling)
    return [_of_tables(shown, tables, label, f"{text(label)} / {text(per)}", caption)]


def gather_percent(
    shown: Shown, column: Hashable | None, level: float, *, sampling: bool
) -> list[Drawn]:
    """Gather percentages of the total of a released column."""
    certificate = shown.certificate
    about = shown, column, check_level(level)
    tables = [percent_of(*about, sampling=one) for one in _without_and_with(sampling=sampling)]
    place = locate(shown, column)[0]
    label = shown.frame.columns[place]
    caption = caption_of(certificate, [place], sampling=sampling)
    return [_of_tables(shown, tables, label, f"{text(label)} (% of the total)", caption)]


def _without_and_with(*, sampling: bool) -> list[bool]:
    return [False, True] if sampling else [False]


def _of_tables(
    shown: Shown, tables: list[pd.DataFrame], label: Hashable, name: str, caption: str
) -> Drawn:
    """Draw estimates, with ends for the noise and perhaps those of a second table outside them."""
    first = tables[0]
    columns = zip(_ENDS, ("estimate", "low", "high"), strict=True)
    numbers = {part: first[column].to_numpy(np.float64) for part, column in columns}
    for table in tables[1:]:
        numbers["sampled_low"] = np.minimum(table["low"].to_numpy(np.float64), numbers["low"])
        numbers["sampled_high"] = np.maximum(table["high"].to_numpy(np.float64), numbers["high"])
    return Drawn(label, name, _drawable(numbers, shown.table.index), NUMBERS, caption)


def together(drawn: list[Drawn]) -> Drawn:
    """Make one of several columns: their labels become the outermost keys.

    Raises
    ------
    QueryError
        If they are not on one scale.
    """
    kinds = {(one.scale.points, bool(one.scale.unit)) for one in drawn}
    if len(kinds) > 1 or len({one.scale for one in drawn}) > 1:
        rule = "draws numbers, or times of one length, on one axis, and these are several kinds"
        way_out = "Leave it out, or choose others with column=."
        raise QueryError.about("subplots", rule, False, way_out)
    names = [None, *drawn[0].parts.index.names]
    parts = [one.parts.drop(columns="denoised", errors="ignore") for one in drawn]
    keys = ((one.label, key) for one in drawn for key in one.parts.index)
    rows = [(label, *(key if names[2:] else (key,))) for label, key in keys]
    table = pd.concat(parts, ignore_index=True)
    table.index = pd.MultiIndex.from_tuples(rows, names=names)
    captions = list(dict.fromkeys(one.caption for one in drawn))
    name, caption = drawn[0].scale.with_unit(""), max(captions, key=len)
    effect = all(one.effect for one in drawn)
    return Drawn(None, name, table, drawn[0].scale, caption, effect)


def _scale(column: pd.Series, numbers: dict[str, np.ndarray]) -> Scale:
    if column.dtype.kind == "M":
        return Scale(points=True, zone=getattr(column.dtype, "tz", None))
    if column.dtype.kind == "m":
        return duration_scale(np.concatenate(list(numbers.values())))
    return NUMBERS


def _drawable(numbers: dict[str, np.ndarray], index: pd.Index) -> pd.DataFrame:
    """Put parts in a frame; where an interval has no end, it gets one beyond all, and an arrow."""
    table = pd.DataFrame(numbers, index=index)
    shown = [*_ENDS, *(name for name in _SAMPLED if name in table)]
    ends = table[shown].to_numpy(np.float64)
    if not np.isinf(ends).any():
        return table
    finite = ends[np.isfinite(ends)]
    first, last = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    beyond = 0.15 * (last - first) or max(abs(last), 1.0) / 2
    for end, arrow, infinite, place in (
        ("low", "below", -np.inf, first - beyond),
        ("high", "above", np.inf, last + beyond),
    ):
        tones = [name for name in (end, f"sampled_{end}") if name in table]
        table[arrow] = np.where(table[tones[-1]] == infinite, place, np.nan)
        table[tones] = table[tones].replace(infinite, place)
    return table


def caption_of(certificate: Certificate, places: list[int], *, sampling: bool = False) -> str:
    """Say what intervals are about, and what they leave out."""
    releases = certificate.releases
    columns = [one.columns[place] for one in releases for place in places]
    clipped = any(isinstance(column, ValuePart | AssociationPart) for column in columns)
    capped = any(one.privacy_unit.columns for one in releases)
    left_out = [
        *["sampling"] * (not sampling),
        *["clipping"] * clipped,
        *["rows beyond caps"] * capped,
    ]
    found = any(isinstance(one.mechanism, ThresholdPart) for one in releases)
    about = "noise of groups that were found" if found else "noise only"
    if sampling:
        about = "noise, and lighter noise with sampling"
    if not left_out:
        return about
    listed = ", ".join(left_out[:-1]) + " or " * (len(left_out) > 1) + left_out[-1]
    return f"{about}, not {listed}"


def is_distribution(shown: Shown) -> bool:
    """Whether a table holds all numbers of rows in ranges, in rows."""
    first, *others = shown.certificate.releases
    read = isinstance(first.columns[0], QuantilePart)
    whole = shown.layout.rows is not None and len(shown.rows) == shown.opened.rows
    return isinstance(first.mechanism, TreePart) and not others and not read and whole


def gather_distribution(shown: Shown, level: float, *, sampling: bool) -> Drawn:
    """Gather the numbers of rows below the edges, made increasing, with intervals of each."""
    level = check_level(level)
    release, released = whole_release(shown, "kind='distribution'"), shown.frame
    certificate = shown.certificate
    found = distribution_of(released, release, "kind='distribution'")
    below, rising = below_edges(found.rows), risen(below_edges(found.rows))
    errors = deviations(found.known, len(found.bins), [0.0])
    width = release.noise.distribution.quantile(level) * errors + ENDS_OF_ROUNDING
    low, high = np.minimum(below - width, rising), np.maximum(below + width, rising)
    numbers = dict(zip(_ENDS, map(np.ravel, (rising, low, high)), strict=True))
    if sampling:
        check_sampled(release, list(release.columns))
        wide = widen(width, errors, below, level)
        numbers["sampled_low"] = np.minimum(np.maximum(below - wide, 0), low).ravel()
        numbers["sampled_high"] = np.maximum(below + wide, high).ravel()
    parts = pd.DataFrame(numbers, index=_index(found, released.index.names))
    label: Hashable = released.columns[0]
    caption = caption_of(certificate, [0], sampling=sampling)
    return Drawn(label, f"{text(label)} below", parts, NUMBERS, caption)


def _index(found: Distribution, names: list[Hashable]) -> pd.Index:
    """Return the groups with the edges of their bins."""
    edges = found.edges
    if found.groups is None:
        return edges.rename(names[-1])
    levels = [found.groups.get_level_values(at).repeat(len(edges)) for at in range(len(names) - 1)]
    along = edges[np.tile(np.arange(len(edges)), len(found.groups))]
    return pd.MultiIndex.from_arrays([*levels, along], names=names)
