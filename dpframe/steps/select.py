"""Which rows and columns of a release are published, and in which order.

Each call writes down a step, which `actions` carries out; the certificate lists it, so that it can
be read, and done again by whoever has the release.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from dpframe.arguments import a_type, is_one_of, shown
from dpframe.calls import with_keywords
from dpframe.certificates.certificate import Certified, first_of
from dpframe.certificates.companion_columns import followers
from dpframe.certificates.packed import Packed
from dpframe.certificates.steps import HeadStep, SelectStep, SortStep
from dpframe.certificates.unstacked import is_wide
from dpframe.certificates.verify import verify
from dpframe.columns.filters import keep
from dpframe.declaration.warnings import warn
from dpframe.errors import QueryError, UnknownColumnError
from dpframe.privacy.neighbors import MOST_ROWS
from dpframe.queries.where import Condition
from dpframe.steps.apply import after, place_of
from dpframe.steps.matching import check_condition, check_keys

__all__ = ["head", "select", "sort_values", "tail"]


@with_keywords
def sort_values(
    released: pd.DataFrame,
    by: Hashable | Sequence[Hashable],
    *,
    ascending: bool | Sequence[bool] = True,
) -> pd.DataFrame:
    """Sort the rows of a release, and keep its certificate.

    Rows that are alike stay in order; suppressed cells come last.

    Parameters
    ----------
    released
        A released frame.
    by
        A column or a level of the index, or a list of them.
    ascending
        Whether small values come first; one for all, or one for each.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column or level, or its values have no order.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> sorted_ = sort_values(released, "count", ascending=False)
    >>> list(sorted_.index), dpf.verify(sorted_).state
    (['B', 'A'], 'post-processed')
    """
    certificate = verify(released)
    labels = list(by) if isinstance(by, list) else [by]
    names = tuple(_name_of(released, label, "by") for label in labels)
    flags = list(ascending) if isinstance(ascending, list | tuple) else [ascending] * len(labels)
    if not all(isinstance(flag, bool | np.bool_) for flag in flags) or len(flags) != len(names):
        raise QueryError(
            f"ascending must be True or False, or a list of them for {shown(labels)}, got "
            f"{shown(ascending)}."
        )
    if not names:
        raise QueryError("by must name at least one column or level, got none.")
    directions = tuple(map(bool, flags))
    return after(
        released, certificate, SortStep("sort_values", names, directions, certificate.digest)
    )


@with_keywords
def head(released: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """Keep the first rows of a release, and its certificate.

    Parameters
    ----------
    released
        A released frame.
    n
        How many.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If n is not a whole number, 0 or more.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> head(released, 1).dp.interval().index.tolist()
    ['A']
    """
    certificate = verify(released)
    return after(released, certificate, HeadStep("head", _number_of_rows(n), certificate.digest))


@with_keywords
def tail(released: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """Keep the last rows of a release, and its certificate; see `head`.

    Parameters
    ----------
    released
        A released frame.
    n
        How many.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If n is not a whole number, 0 or more.
    """
    certificate = verify(released)
    return after(released, certificate, HeadStep("tail", _number_of_rows(n), certificate.digest))


@with_keywords
def select(
    released: pd.DataFrame,
    where: str | None = None,
    *,
    keys: Mapping[Hashable, Sequence[object]] | Sequence[object] | None = None,
    columns: Hashable | Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Keep some rows and columns of a release, and its certificate.

    Rows may be chosen by what was released: that is post-processing. Intervals hold for each row
    that was released, and less often than they say among those that were chosen for their values;
    `interval(simultaneous=True)` holds for whatever is chosen.

    Parameters
    ----------
    released
        A released frame.
    where
        A condition on columns and levels of the index, such as `"count >= 100 and zone != 'A'"`.
    keys
        The keys to keep: a list, of tuples where there are several levels; or a dict by level. Rows
        stay in order.
    columns
        The columns to keep, in order; a denoised one, an interval or a percentage beside that which
        it was computed from. All that are computed come after all that were released.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the condition is not one, names what there is not, or compares it with what is of another
        kind than all of its values, or there are no such keys or columns.

    Warns
    -----
    DPFrameWarning
        If no row is left.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B", "C"]), epsilon=1e6)
    >>> select(released, "count >= 1", keys=["A", "C"])["count"].to_dict()
    {'A': 1}
    """
    certificate = verify(released)
    if where is None and keys is None and columns is None:
        raise QueryError("select needs a condition, keys= or columns=, and got none of them.")
    chosen = np.ones(len(released), bool)
    text = None
    if where is not None:
        condition = Condition.parse(where)
        chosen &= _where(released, condition)
        text = condition.text
    if keys is not None:
        chosen &= _with_keys(released.index, keys)
    every = where is None and keys is None
    if len(released) and not chosen.any():
        warn("select: no row is left, because no row satisfies all that was asked for.")
    names = None if columns is None else _names_of_columns(released, certificate, columns)
    rows = None if every else Packed.of(np.flatnonzero(chosen))
    return after(released, certificate, SelectStep("select", text, rows, names, certificate.digest))


def _where(released: pd.DataFrame, condition: Condition) -> np.ndarray:
    """Tell which rows satisfy a condition on columns and levels."""
    released = pd.DataFrame(released)  # pandas copies all attrs for each column
    levels = {
        name: released.index.get_level_values(at) for at, name in enumerate(released.index.names)
    }
    named = {
        **{label: released.iloc[:, at] for at, label in enumerate(released.columns)},
        **{name: keys.to_series() for name, keys in levels.items() if name is not None},
    }
    unknown = [label for label in condition.columns if label not in named]
    if unknown:
        raise UnknownColumnError(
            f"where names {unknown[0]!r}, and it can name {list(named)!r}: columns and levels of "
            "this table."
        )
    check_condition(condition, named, list(levels))
    table = {label: named[label].reset_index(drop=True) for label in condition.columns}
    return keep(condition, pd.DataFrame(table, index=range(len(released))))


def _with_keys(
    index: pd.Index, keys: Mapping[Hashable, Sequence[object]] | Sequence[object]
) -> np.ndarray:
    """Tell which rows have some keys."""
    if not isinstance(keys, Mapping):
        return _are_among(index, keys, index.names[0] if index.nlevels == 1 else list(index.names))
    chosen = np.ones(len(index), bool)
    for level, wanted in keys.items():
        places = [at for at, name in enumerate(index.names) if name == level]
        if len(places) != 1:
            raise QueryError(f"keys must be by {list(index.names)!r}, got {shown(level)}.")
        chosen &= _are_among(index.get_level_values(places[0]), wanted, level)
    return chosen


def _are_among(known: pd.Index, wanted: Sequence[object], of: object) -> np.ndarray:
    """Tell which keys are among some."""
    if isinstance(wanted, str | bytes) or not hasattr(wanted, "__iter__"):
        raise QueryError(f"keys of {of!r} must be a list of keys, got {shown(wanted)}.")
    listed = list(wanted)
    called = None if isinstance(wanted, list | tuple) else f"a key of {a_type(wanted)}"
    check_keys(known, listed, of, called)
    return np.fromiter((key in set_ for set_ in [set(listed)] for key in known), bool, len(known))


def _names_of_columns(
    released: pd.DataFrame, certificate: Certified, columns: Hashable | Sequence[Hashable]
) -> tuple[str, ...]:
    """Check which columns are to be kept: denoised ones need those that they were computed from."""
    labels = list(columns) if isinstance(columns, list) else [columns]
    places = [place_of(released, label, "columns") for label in labels]
    if not labels or len(set(places)) < len(places):
        raise QueryError(f"columns must name some columns, each once, got {shown(labels)}.")
    sources = {
        later: at
        for at in range(len(first_of(certificate).columns))
        for later in followers(released, certificate, at)
    }
    for label, place in zip(labels, places, strict=True):
        if sources.get(place, place) not in places:
            raise QueryError(
                f"columns name {label!r} without {released.columns[sources[place]]!r}, which it "
                "was computed from. Name both."
            )
    if not is_wide(certificate) and min(places) >= len(first_of(certificate).columns):
        raise QueryError("columns must name one of those released, beside what was computed of it.")
    return tuple(map(str, labels))


def _number_of_rows(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < MOST_ROWS:
        raise QueryError(f"n must be a whole number of rows, 0 or more, got {shown(n)}.")
    return int(n)


def _name_of(released: pd.DataFrame, label: Hashable, called: str) -> str:
    """Check the name of a column or a level."""
    if label is None or not is_one_of(label, [*released.columns, *released.index.names]):
        raise QueryError(
            f"{called} must name a column, {list(released.columns)!r}, or a level, "
            f"{list(released.index.names)!r}, got {shown(label)}."
        )
    return str(label)
