"""Several releases in one table, each with its own certificate."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.cells.record import attach, record_on, salt_of
from dpframe.cells.verify import Shown, look, whole_release
from dpframe.certificates.certificate import Release, check_alike
from dpframe.certificates.definitions import Definition, QuantileDefinition
from dpframe.certificates.json_records import Packed
from dpframe.certificates.table_parts import JoinedPart
from dpframe.errors import QueryError
from dpframe.public import public_call


@public_call
def concat(
    releases: Sequence[pd.DataFrame] | Mapping[Hashable, pd.DataFrame],
    *,
    keys: Sequence[Hashable] | None = None,
    name: str | None = None,
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
        or a frame was put together before.

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
    return join_tables([look(frame) for frame in frames], keys, name)


def join_tables(
    tables: Sequence[Shown], keys: Sequence[Hashable] | None, name: str | None
) -> pd.DataFrame:
    """Put tables that were looked at into one; see `concat`."""
    parts = [_only_release(table) for table in tables]
    for table, part in zip(tables, parts, strict=True):
        check_alike(table.frame, part, tables[0].frame, parts[0], "releases")
    _check_different(tables, parts)
    definitions = _shared_definitions(tables)
    labels = None if keys is None else _checked_keys(list(keys), name, tables[0].frame, len(tables))
    if keys is None and name is not None:
        raise QueryError.about("name", "is for a level of keys", name, "Give keys=, too.")
    whole = [table.opened.frame_of([*table.labels, *table.computed]) for table in tables]
    made = _join_frames(whole, labels, name)
    if not made.index.is_unique:
        way_out = "Tell them apart: keys=[...], name=..."
        raise QueryError(f"keys come twice in these releases. {way_out}", parameter="releases")
    rows = np.split(np.arange(len(made)), np.cumsum([len(frame) for frame in whole[:-1]]))
    if len(parts) > 1:
        pairs = zip(parts, rows, strict=True)
        parts = [replace(one, rows=Packed.of(own)) for one, own in pairs]
    joined = None if labels is None else JoinedPart(str(name), tuple(map(str, labels)))
    attach(
        made, parts, definitions, joined=joined, salt=salt_of([table.opened for table in tables])
    )
    shown = _join_frames([table.table for table in tables], labels, name)
    return tables[0].sealed(shown, record_on(made))


def _only_release(table: Shown) -> Release:
    """Return the only release of a table."""
    if table.opened.table.joined is not None or len(table.certificate.releases) > 1:
        rule = "releases were put together before: give all of them in one call."
        raise QueryError(rule, parameter="releases")
    return whole_release(table, "concat") if table.labels else table.certificate.release


def _shared_definitions(tables: Sequence[Shown]) -> list[Definition | None]:
    """Return how columns were computed, the same in all tables."""
    first, *others = ([_alike(one) for one in table.computed.values()] for table in tables)
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


def _check_different(tables: Sequence[Shown], releases: Sequence[Release]) -> None:
    """Check that no cell comes twice: it would seem to have been measured twice."""
    for (at, one), (later, other) in combinations(enumerate(releases), 2):
        same = (one.release_id, one.query.name) == (other.release_id, other.query.name)
        keys = [tables[place].frame.index for place in (at, later)]
        if same and _of(one) & _of(other) and keys[0].isin(keys[1]).any():
            rule = f"releases {at + 1} and {later + 1} have cells of one release, {one.release_id}"
            way_out = "whose noise was drawn once. Leave one out; pd.concat joins parts of a table"
            raise QueryError(f"{rule}, {way_out}.", parameter="releases")


def _of(release: Release) -> set[tuple[object, ...]]:
    """Say what was measured, whatever it is called."""
    return {(one.kind, one.about, one.where, one.weights) for one in release.columns}


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
