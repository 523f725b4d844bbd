"""Releases under other names, and several of them in one table."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import is_label, is_unicode
from dpframe.cells.keys import check_margins_apart, check_margins_name, token
from dpframe.cells.locate import COLUMNS, ROWS
from dpframe.cells.record import attach, record_on, salt_of
from dpframe.cells.verify import Shown, look, whole_release
from dpframe.certificates.certificate import Release, check_alike
from dpframe.certificates.definitions import Definition, QuantileDefinition
from dpframe.certificates.json_records import Packed
from dpframe.certificates.parts import JoinedPart
from dpframe.errors import QueryError, quote
from dpframe.public import public_call

_Labels: TypeAlias = Mapping[Hashable, str]


@public_call
def rename(
    released: pd.DataFrame,
    columns: _Labels | None = None,
    *,
    levels: _Labels | None = None,
    keys: Mapping[Hashable, _Labels] | None = None,
) -> pd.DataFrame:
    """Rename columns, levels and keys of a release, and keep its certificate.

    The certificate says what was released under which name.

    Parameters
    ----------
    released
        A released frame, in any layout.
    columns
        New labels by old ones. Computed columns follow those that they were computed from.
    levels
        New names of levels by old ones.
    keys
        By level, new keys by old ones.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column, level or key, or a new name is no text, or taken.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> list(rename(released, {"count": "trips"}).dp.interval().columns)
    ['trips_low', 'trips_high']
    """
    shown = look(released)
    opened, alias = shown.opened, shown.opened.table.alias
    labels = [*opened.columns]
    names = [token(level.name) for level in opened.levels]
    of_columns = _alias(shown, "columns", columns, labels)
    of_columns |= _followers(shown, of_columns)
    of_levels = _alias(shown, "levels", levels, names)
    _check_free(shown, of_columns, of_levels)
    of_keys = _aliases_of_keys(shown, keys)
    changed = replace(
        alias,
        columns=_renamed(alias.columns, of_columns),
        levels=_renamed(alias.levels, of_levels),
        keys={**alias.keys, **of_keys},
    )
    renamed = _show(shown, of_columns, of_levels, keys or {})
    return shown.sealed(renamed, opened.changed(alias=changed))


def _alias(shown: Shown, called: str, new_labels: object, tokens: Sequence[str]) -> dict[str, str]:
    """Return new names, as texts, by what was released, as JSON."""
    which = {shown.opened.shown_label(released, called): released for released in tokens}
    if new_labels is not None and not isinstance(new_labels, Mapping):
        rule = "must be a dict of new labels by old ones, such as {'count': 'trips'}"
        raise QueryError.about(called, rule, new_labels)
    alias = {}
    for old, new in (new_labels or {}).items():
        _check_name(called, old, new)
        if not is_label(old) or old not in which:
            other = "levels" if called == "columns" else "columns"
            way_out = f"Give {other} by their own: {other}={{{quote(old)}: {quote(new)}}}."
            raise QueryError.about(called, f"must be among {quote(list(which))}", old, way_out)
        alias[which[old]] = new
    return alias


def _check_name(called: str, old: Any, new: object) -> None:
    if not isinstance(new, str) or not new or not is_unicode(new):
        raise QueryError.about(called, "must be texts that are not empty", new, label=old)


def _followers(shown: Shown, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the new names of what was computed from columns with new names."""
    opened = shown.opened
    followers = {}
    for name, source in opened.labels_by_name.items():
        if source not in renamed:
            continue
        before = str(opened.shown_label(source))
        for label, column in opened.columns.items():
            text = str(opened.shown_label(label))
            definition = column.part.definition
            follows = definition is not None and definition.column == name
            if follows and text.startswith(f"{before}_"):
                followers[label] = f"{renamed[source]}{text.removeprefix(before)}"
    return followers


def _check_free(shown: Shown, columns: Mapping[str, str], levels: Mapping[str, str]) -> None:
    """Refuse names of two columns or levels."""
    opened = shown.opened
    new = {**columns, **levels}
    names = [*opened.columns, *(token(level.name) for level in opened.levels)]
    after = [new.get(name, str(opened.shown_label(name, _which(opened, name)))) for name in names]
    taken = [name for name in new.values() if after.count(name) > 1]
    if taken:
        rule = f"{taken[0]!r} would be the name of two columns or levels. Take another."
        parameter = "levels" if taken[0] in levels.values() else "columns"
        raise QueryError(rule, parameter=parameter, label=taken[0])


def _which(opened: Any, name: str) -> str:
    return "columns" if name in opened.columns else "levels"


def _renamed(alias: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return what is shown, by new names; older ones of the same go."""
    kept = {shown: old for shown, old in alias.items() if old not in new}
    return kept | {token(name): old for old, name in new.items() if token(name) != old}


def _aliases_of_keys(shown: Shown, keys: object) -> dict[str, dict[str, str]]:
    """Check new keys by level."""
    if keys is not None and not isinstance(keys, Mapping):
        raise QueryError.about("keys", "must be a dict of dicts by level", keys)
    opened, aliases = shown.opened, {}
    levels = {opened.shown_label(token(level.name), "levels"): level for level in opened.levels}
    for name, new_keys in (keys or {}).items():
        if not is_label(name) or name not in levels or not isinstance(new_keys, Mapping):
            rule = f"must be dicts of new keys by level, one of {quote(list(levels))}"
            raise QueryError.about("keys", rule, name)
        level = levels[name]
        before = opened.table.alias.keys.get(token(level.name), {})
        renamed = {before.get(token(old), token(old)): new for old, new in new_keys.items()}
        for old, new in new_keys.items():
            _check_name("keys", old, new)
        unknown = [old for old in renamed if old not in level.tokens]
        after = {**{key: key for key in level.tokens}, **{o: token(n) for o, n in renamed.items()}}
        again = len({*after.values()}) < len(after) or any(
            token(new) in level.tokens and token(new) != old for old, new in renamed.items()
        )
        if unknown or again:
            rule = f"must rename keys of {name!r}, each to a text that is no other key's"
            raise QueryError.about("keys", rule, dict(new_keys), label=name)
        aliases[token(level.name)] = _renamed(before, renamed)
    return aliases


def _show(
    shown: Shown,
    columns: Mapping[str, str],
    levels: Mapping[str, str],
    keys: Mapping[Hashable, _Labels],
) -> pd.DataFrame:
    """Give columns, levels and keys of a table their new names, wherever it has them."""
    opened = shown.opened
    table = pd.DataFrame(shown.source)
    table.attrs = {}
    labels = {opened.shown_label(old): new for old, new in columns.items()}
    names = {opened.shown_label(old, "levels"): new for old, new in levels.items()}
    for name, new_keys in keys.items():
        if name in table.columns:
            table = table.assign(**{str(name): table[name].replace(dict(new_keys))})
        for axis in (0, 1):
            if name in table.axes[axis].names:
                table = table.rename(
                    dict(new_keys), axis=axis, level=name if table.axes[axis].nlevels > 1 else None
                )
    flat = table.columns.nlevels == 1
    both = labels | {name: new for name, new in names.items() if flat and name in table.columns}
    most = max(table.index.nlevels, table.columns.nlevels)
    for axis, number in product((ROWS, COLUMNS), range(most)):
        index = table.axes[axis]
        # a key may read like a label
        level = number if index.nlevels > 1 else None
        if number >= index.nlevels or (axis, number) in shown.layout.levels:
            continue
        if axis == COLUMNS:
            table = table.rename(columns=both, level=level)
        else:
            table = table.rename(index=labels, level=level)
    for axis in (ROWS, COLUMNS):
        index = table.axes[axis]
        renamed = index.set_names([names.get(n, n) for n in index.names])
        table = table.set_axis(renamed, axis="columns" if axis == COLUMNS else "index")
    return table


@public_call
def concat(
    releases: Sequence[pd.DataFrame] | Mapping[Hashable, pd.DataFrame],
    *,
    keys: Sequence[Hashable] | None = None,
    name: str | None = None,
    margins_name: Hashable | None = None,
) -> pd.DataFrame:
    """Put several releases into one table that keeps the certificates of all.

    Errors and intervals are those of the releases. The table does not state their total cost: the
    ledger adds it up.

    Parameters
    ----------
    releases
        Released frames, or tables made of them, with the same columns and levels; or a dict of them
        by key.
    keys
        Keys of a new outermost level, one for each release; without them, no two rows may share a
        key.
    name
        Name of the new level.
    margins_name
        The key, such as "All", that tables get in levels they lack: those of margins, or releases
        of fewer groups. Keys of a dict are then not used, and tables with more levels come first.

    Returns
    -------
    DataFrame
        The rows shown, in order. The certificate keeps the promise of each release.

    Raises
    ------
    CertificateError
        If a frame is not what was released.
    QueryError
        If columns or levels differ, keys have no name or come twice, a cell of a release does,
        a frame was put together before, or `margins_name` is a key.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> query = dpf.count(by="zone", keys=["A", "B"])
    >>> years = {year: dpf.release(trips, query, epsilon=1e6) for year in (2025, 2026)}
    >>> both = concat(years, name="year")
    >>> both.loc[2026, "count"].to_dict()
    {'A': 1, 'B': 2}
    """
    if isinstance(releases, Mapping):
        if keys is not None:
            raise QueryError.about("keys", "are those of the dict already", keys, "Leave them out.")
        keys, releases = list(releases), list(releases.values())
    frames = [*releases] if isinstance(releases, list | tuple) else []
    if not frames:
        raise QueryError.about("releases", "must be a list or a dict of released frames", releases)
    tables = [look(frame) for frame in frames]
    if margins_name is None:
        return join_tables(tables, keys, name)
    if name is not None:
        raise QueryError.about("name", "is for a level of keys, without margins_name=", name)
    tables.sort(key=lambda table: len(table.opened.levels), reverse=True)
    return join_tables(tables, None, None, MarginLevels.of(tables, margins_name))


class MarginLevels(NamedTuple):
    """The levels of a table, and the key that stands for all keys of one."""

    levels: Sequence[Hashable]
    key: Hashable

    @classmethod
    def of(cls, tables: Sequence[Shown], key: Hashable) -> "MarginLevels":
        """Take the levels of the first table, and check that those of others are among them."""
        levels = list(tables[0].frame.index.names)
        check_margins_name(key)
        for table in tables:
            for at, level in enumerate(table.opened.levels):
                check_margins_apart(key, [level.keys, table.opened.shown_keys(at)])
            names = table.frame.index.names if table.opened.levels else []
            lacking = [name for name in names if name not in levels]
            if lacking:
                rule = f"must name levels of one of the tables, {quote(levels)}, in all others"
                raise QueryError(f"releases {rule}; got {quote(lacking)}.", parameter="releases")
        return cls(levels, key)

    def fill(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with all levels."""
        index = frame.index
        levels = [index.get_level_values(at) for at in range(index.nlevels)]
        by_name = dict(zip(index.names, levels, strict=True))
        total = pd.Index([self.key] * len(frame), dtype=object, tupleize_cols=False)
        values = [by_name.get(name, total) for name in self.levels]
        if len(values) == 1:
            return frame.set_axis(values[0].rename(self.levels[0]), axis=0)
        return frame.set_axis(pd.MultiIndex.from_arrays(values, names=list(self.levels)), axis=0)


def join_tables(
    tables: Sequence[Shown],
    keys: Sequence[Hashable] | None,
    name: str | None,
    margins: MarginLevels | None = None,
) -> pd.DataFrame:
    """Put tables that were looked at into one; see `concat`."""

    def fill(frame: pd.DataFrame) -> pd.DataFrame:
        return frame if margins is None else margins.fill(frame)

    parts = [_only_release(table) for table in tables]
    frames = [fill(table.frame) for table in tables]
    for frame, part in zip(frames, parts, strict=True):
        check_alike(frame, part, frames[0], parts[0], "releases")
    _check_different(frames, parts)
    definitions = _shared_definitions(tables)
    labels = None if keys is None else _checked_keys(list(keys), name, tables[0].frame, len(tables))
    if keys is None and name is not None:
        raise QueryError.about("name", "is for a level of keys", name, "Give keys=, too.")
    filled = [fill(table.opened.frame_of([*table.labels, *table.computed])) for table in tables]
    united = _join_frames(filled, labels, name)
    if not united.index.is_unique:
        way_out = "Tell them apart: keys=[...], name=..."
        raise QueryError(f"keys come twice in these releases. {way_out}", parameter="releases")
    rows = np.split(np.arange(len(united)), np.cumsum([len(frame) for frame in filled[:-1]]))
    if len(parts) > 1:
        pairs = zip(parts, rows, strict=True)
        parts = [replace(promise, rows=Packed.of(places)) for promise, places in pairs]
    joined = None if labels is None else JoinedPart(str(name), tuple(map(str, labels)))
    attach(
        united, parts, definitions, joined=joined, salt=salt_of([table.opened for table in tables])
    )
    shown = _join_frames([fill(table.table) for table in tables], labels, name)
    return tables[0].sealed(shown, record_on(united))


def _only_release(table: Shown) -> Release:
    """Return the only release of a table."""
    if table.opened.table.joined is not None or len(table.certificate.releases) > 1:
        rule = "releases were put together before: give all of them in one call."
        raise QueryError(rule, parameter="releases")
    return whole_release(table, "concat") if table.labels else table.certificate.release


def _shared_definitions(tables: Sequence[Shown]) -> list[Definition | None]:
    """Return how columns were computed, the same in all tables."""
    first, *others = ([*map(_alike, table.computed.values())] for table in tables)
    if any(other != first for other in others):
        rule = "columns that were computed must be so in all releases alike"
        way_out = "Leave them out, or compute them afterwards"
        raise QueryError(f"{rule}. {way_out}.", parameter="releases")
    return [*[None] * len(tables[0].labels), *tables[0].computed.values()]


def _alike(definition: Definition) -> Definition:
    """Leave out of which table something was read off."""
    match definition:
        case QuantileDefinition():
            return replace(definition, of="")
        case _:
            return definition


def _check_different(frames: Sequence[pd.DataFrame], releases: Sequence[Release]) -> None:
    """Check that no cell comes twice: it would seem to have been measured twice."""
    for (at, release), (later, other) in combinations(enumerate(releases), 2):
        same = (release.release_id, release.query.name) == (other.release_id, other.query.name)
        keys = [frames[place].index for place in (at, later)]
        if same and _of(release) & _of(other) and keys[0].isin(keys[1]).any():
            numbers = f"{at + 1} and {later + 1}"
            rule = f"releases {numbers} have cells of one release, {release.release_id}"
            way_out = "whose noise was drawn once. Leave one out; pd.concat joins parts of a table"
            raise QueryError(f"{rule}, {way_out}.", parameter="releases")


def _of(release: Release) -> set[tuple[object, ...]]:
    """Say what was measured, whatever it is called."""
    return {(column.kind, column.about, column.where, column.weights) for column in release.columns}


def _checked_keys(
    keys: list[Hashable], name: str | None, frame: pd.DataFrame, tables: int
) -> list[Hashable]:
    """Check the keys of a new level."""
    names = [*frame.columns, *frame.index.names]
    if not isinstance(name, str) or not name or not is_unicode(name) or name in names:
        raise QueryError.about("name", "must be that of the level of keys, and of no column", name)
    if len(keys) != tables or len({str(key) for key in keys}) < len(keys):
        rule = f"must be {tables}, one for each release, and no two may read alike"
        raise QueryError.about("keys", rule, keys)
    if not all(map(is_unicode, keys)):
        raise QueryError("keys must be valid Unicode.", parameter="keys")
    return keys


def _join_frames(
    frames: Sequence[pd.DataFrame], keys: list[Hashable] | None, name: str | None
) -> pd.DataFrame:
    """Put tables under each other."""
    bare = [pd.DataFrame(frame) for frame in frames]
    for frame in bare:
        frame.attrs = {}
    joined = pd.concat(bare)
    if keys is None:
        return joined
    outer = pd.Index(keys, tupleize_cols=False).repeat([len(frame) for frame in frames])
    index = joined.index
    if index.names == [None] and index.nlevels == 1:  # totals have no keys
        return joined.set_axis(outer.rename(name), axis=0)
    levels = [index.get_level_values(at) for at in range(index.nlevels)]
    keyed = pd.MultiIndex.from_arrays([outer, *levels], names=[name, *index.names])
    return joined.set_axis(keyed, axis=0)
