"""Keep rows and columns of a release, by released values and by keys."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Certificate
from dpframe.certificates.companion_columns import followers
from dpframe.certificates.json_records import Packed, places_of
from dpframe.certificates.steps import SelectStep
from dpframe.certificates.verify import verify
from dpframe.columns.filters import keep
from dpframe.declaration.warnings import warn
from dpframe.errors import QueryError, UnknownColumnError, a_type, quote
from dpframe.public import public_call
from dpframe.queries.where import Condition
from dpframe.steps.apply import Outcome, after, keep_cells, keep_rows, label_place, place_of
from dpframe.steps.matching import check_condition, check_keys


@public_call
def select(
    released: pd.DataFrame,
    where: str | None = None,
    *,
    keys: Mapping[Hashable, Sequence[object]] | Sequence[object] | None = None,
    columns: Hashable | Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Keep some rows and columns of a release, and its certificate.

    You may choose rows by released values: that is post-processing. But intervals hold for each
    released row, and less often among rows chosen for their values;
    `interval(simultaneous=True)` holds for any choice.

    Parameters
    ----------
    released
        A released frame.
    where
        A condition on columns and levels of the index, such as `"count >= 100 and zone != 'A'"`.
    keys
        The keys to keep: a list, of tuples for several levels; or a dict by level. Rows stay in
        order.
    columns
        The columns to keep, in order; a computed one (denoised, interval, percentage) beside the
        one it was computed from. Computed columns come after released ones.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the condition is not one, names something unknown, or compares it with another kind of
        value; or if there are no such keys or columns.

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
    condition = None if where is None else Condition.parse(where)
    if condition is not None:
        chosen &= _where(released, condition)
    if keys is not None:
        chosen &= _with_keys(released.index, keys)
    if len(released) and not chosen.any():
        warn("select: no row is left, because no row satisfies all that was asked for.")
    names = None if columns is None else _names_of_columns(released, certificate, columns)
    rows = None if where is None and keys is None else Packed.of(np.flatnonzero(chosen))
    text = None if condition is None else condition.text
    step = SelectStep("select", text, rows, names, certificate.digest)
    return after(released, certificate, step, apply_select)


def _where(released: pd.DataFrame, condition: Condition) -> np.ndarray:
    """Tell which rows satisfy a condition on columns and levels."""
    released = pd.DataFrame(released)  # pandas copies all attrs for each column
    levels = {
        name: released.index.get_level_values(at) for at, name in enumerate(released.index.names)
    }
    named: dict[Hashable, pd.Series] = {
        **{label: released.iloc[:, at] for at, label in enumerate(released.columns)},
        **{name: keys.to_series() for name, keys in levels.items() if name is not None},
    }
    unknown = [label for label in condition.columns if label not in named]
    if unknown:
        known = f"columns and levels of this table, {quote(list(named))}"
        rule = f"where names {unknown[0]!r}, and it can name {known}."
        raise UnknownColumnError(rule, parameter="where", label=unknown[0])
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
            raise QueryError.about("keys", f"must be by {list(index.names)!r}", level)
        chosen &= _are_among(index.get_level_values(places[0]), wanted, level)
    return chosen


def _are_among(known: pd.Index, wanted: Sequence[object], of: object) -> np.ndarray:
    """Tell which keys are among some."""
    if isinstance(wanted, str | bytes) or not hasattr(wanted, "__iter__"):
        raise QueryError.about("keys", "must be a list of keys", wanted, label=of)
    listed = list(wanted)
    called = None if isinstance(wanted, list | tuple) else f"a key of {a_type(wanted)}"
    check_keys(known, listed, of, called)
    return np.fromiter((key in set_ for set_ in [set(listed)] for key in known), bool, len(known))


def _names_of_columns(
    released: pd.DataFrame, certificate: Certificate, columns: Hashable | Sequence[Hashable]
) -> tuple[str, ...]:
    """Check which columns are to be kept: denoised ones need those that they were computed from."""
    labels = list(columns) if isinstance(columns, list) else [columns]
    places = [place_of(released, label, "columns") for label in labels]
    if not labels or len(set(places)) < len(places):
        raise QueryError.about("columns", "must name some columns, each once", labels)
    own = range(certificate.width)
    sources = {later: at for at in own for later in followers(released, certificate, at)}
    for label, place in zip(labels, places, strict=True):
        if sources.get(place, place) not in places:
            source = released.columns[sources[place]]
            rule = f"columns name {label!r} without {source!r}, which it was computed from"
            raise QueryError(f"{rule}. Name both.", parameter="columns", label=label)
    if certificate.unstacked is None and min(places) >= certificate.width:
        rule = "columns must name one of those released, beside what was computed of it."
        raise QueryError(rule, parameter="columns")
    return tuple(map(str, labels))


def apply_select(frame: pd.DataFrame, certificate: Certificate, step: SelectStep) -> Outcome:
    """Keep rows and columns."""
    if step.rows is not None:
        frame, certificate = keep_rows(frame, certificate, places_of(step.rows))
    if step.columns is None:
        return frame, certificate
    kept = [label_place(frame, name) for name in step.columns]
    if certificate.unstacked is not None:
        return keep_cells(frame, certificate, np.arange(len(frame)), np.array(kept, np.intp))
    released = [place for place in kept if place < certificate.width]
    later = [place for place in kept if place >= certificate.width]
    return frame.iloc[:, released + later], certificate.with_columns(released)
