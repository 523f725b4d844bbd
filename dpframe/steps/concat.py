"""Several releases in one table, each with its own certificate."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.certificates.certificate import FORMAT, UNSEALED, Certificate, Release, check_alike
from dpframe.certificates.companion_columns import without_attrs
from dpframe.certificates.digest import NOTHING
from dpframe.certificates.json_records import Packed
from dpframe.certificates.steps import ConcatStep
from dpframe.certificates.verify import attach, verify
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
        Released frames, or frames made of them by steps of this library, with the same columns and
        levels; or a dict of them by key.
    keys
        Keys of a new outermost level, one for each release; without them, no two rows may share a
        key.
    name
        Name of the new level.

    Returns
    -------
    DataFrame
        All rows, in order. The certificate keeps the promise of each release.

    Raises
    ------
    CertificateError
        If a frame is not what was released.
    QueryError
        If columns or levels differ, keys have no name or come twice, a cell of a release does,
        or a frame was put together or unstacked before.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> query = dpf.count(by="zone", keys=["A", "B"])
    >>> years = {year: dpf.release(trips, query, epsilon=1e6) for year in (2025, 2026)}
    >>> both = concat(years, name="year")
    >>> dpf.unstack(both, "year")
    year  2025  2026
    zone
    A        1     1
    B        2     2
    """
    if isinstance(releases, Mapping):
        if keys is not None:
            raise QueryError.about("keys", "are those of the dict already", keys, "Leave them out.")
        keys, releases = list(releases), list(releases.values())
    frames = [*releases] if isinstance(releases, list | tuple) else []
    if not frames:
        raise QueryError.about("releases", "must be a list or a dict of released frames", releases)
    certificates = [_of_one(frame) for frame in frames]
    parts = [replace(one.release, steps=one.steps) for one in certificates]
    for frame, part in zip(frames, parts, strict=True):
        check_alike(frame, part, frames[0], parts[0], "releases")
    _check_different(frames, parts)
    labels = None if keys is None else _checked_keys(list(keys), name, frames)
    if keys is None and name is not None:
        raise QueryError.about("name", "is for a level of keys", name, "Give keys=, too.")
    made = _join_frames(frames, labels, name)
    if not made.index.is_unique:
        way_out = "Tell them apart: keys=[...], name=..."
        raise QueryError(f"keys come twice in these releases. {way_out}", parameter="releases")
    rows = np.split(np.arange(len(made)), np.cumsum([len(frame) for frame in frames[:-1]]))
    if len(parts) > 1:
        pairs = zip(parts, rows, strict=True)
        parts = [replace(one, rows=Packed.of(own)) for one, own in pairs]
    written = None if labels is None else tuple(map(str, labels))
    step = ConcatStep("concat", name, written, tuple(one.digest for one in certificates))
    attach(made, Certificate(FORMAT, tuple(parts), (step,), None, NOTHING, UNSEALED))
    return made


def _of_one(frame: pd.DataFrame) -> Certificate:
    """Return the certificate of one release, in rows."""
    certificate = verify(frame)
    if any(isinstance(step, ConcatStep) for step in certificate.steps):
        rule = "releases were put together before: give all of them in one call."
        raise QueryError(rule, parameter="releases")
    if certificate.unstacked is not None:
        rule = "concat takes the table as it was before unstack: unstack what it returns."
        raise QueryError(rule, parameter="releases")
    return certificate


def _check_different(frames: Sequence[pd.DataFrame], releases: Sequence[Release]) -> None:
    """Check that no cell comes twice: it would seem to have been measured twice."""
    for (at, one), (later, other) in combinations(enumerate(releases), 2):
        same = (one.release_id, one.query.name) == (other.release_id, other.query.name)
        if same and _of(one) & _of(other) and frames[at].index.isin(frames[later].index).any():
            rule = f"releases {at + 1} and {later + 1} have cells of one release, {one.release_id}"
            way_out = "whose noise was drawn once. Leave one out, or .dp.select other rows of it"
            raise QueryError(f"{rule}, {way_out}.", parameter="releases")


def _of(release: Release) -> set[tuple[object, ...]]:
    """Say what was measured, whatever it is called."""
    return {(one.kind, one.about, one.where, one.weights) for one in release.columns}


def _checked_keys(
    keys: list[Hashable], name: str | None, frames: Sequence[pd.DataFrame]
) -> list[Hashable]:
    """Check the keys of a new level."""
    names = [*frames[0].columns, *frames[0].index.names]
    if not isinstance(name, str) or not name or not is_unicode(name) or name in names:
        raise QueryError.about("name", "must be that of the level of keys, and of no column", name)
    if len(keys) != len(frames) or len({str(key) for key in keys}) < len(keys):
        rule = f"must be {len(frames)}, one for each release, and no two may read alike"
        raise QueryError.about("keys", rule, keys)
    if not all(map(is_unicode, keys)):
        raise QueryError("keys must be valid Unicode.", parameter="keys")
    return keys


def _join_frames(
    frames: Sequence[pd.DataFrame], keys: list[Hashable] | None, name: str | None
) -> pd.DataFrame:
    """Put tables under each other."""
    joined = pd.concat([without_attrs(frame) for frame in frames])
    if keys is None:
        return joined
    outer = pd.Index(keys, tupleize_cols=False).repeat([len(frame) for frame in frames])
    index = joined.index
    if index.names == [None] and index.nlevels == 1:  # totals have no keys
        return joined.set_axis(outer.rename(name), axis=0)
    levels = [index.get_level_values(at) for at in range(index.nlevels)]
    keyed = pd.MultiIndex.from_arrays([outer, *levels], names=[name, *index.names])
    return joined.set_axis(keyed, axis=0)
