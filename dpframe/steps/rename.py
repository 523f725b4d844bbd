"""Columns and levels of a release under other names, for those who read them.

As in `choosing`, the call writes down a step, which `actions` carries out.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.companion_columns import SUFFIXES, followers
from dpframe.certificates.steps import RenameStep
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError, quote
from dpframe.public import public_call
from dpframe.steps.apply import Outcome, after, label_place, place_of

_Labels: TypeAlias = Mapping[Hashable, str]


@public_call
def rename(
    released: pd.DataFrame,
    columns: Mapping[Hashable, str] | None = None,
    *,
    levels: Mapping[Hashable, str] | None = None,
) -> pd.DataFrame:
    """Rename columns and levels of the index of a release, and keep its certificate.

    Two existing labels cannot be swapped. Keys cannot be renamed: change the column before it is
    declared.

    Parameters
    ----------
    released
        A released frame.
    columns
        New labels by old ones. Computed columns follow those that they were computed from.
    levels
        New names of levels by old ones.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column or level, a new label is no text, or taken, or labels are
        exchanged for each other.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> list(rename(released, {"count": "trips"}).dp.interval().columns)
    ['trips_low', 'trips_high']
    """
    certificate = verify(released)
    renamed, relabeled = _labels("columns", columns), _labels("levels", levels)
    _check_columns(released, certificate, renamed)
    _check_levels(released, relabeled)
    _check_no_exchange({**renamed, **relabeled})
    by_text, levels_by_text = (
        {str(old): new for old, new in given.items()} for given in (renamed, relabeled)
    )
    step = RenameStep("rename", by_text, levels_by_text, certificate.digest)
    return after(released, certificate, step, apply_rename)


def _labels(called: str, given: object) -> dict[Hashable, str]:
    """Read new labels by old ones."""
    if given is not None and not isinstance(given, Mapping):
        rule = "must be a dict of new labels by old ones, such as {'count': 'trips'}"
        raise QueryError.about(called, rule, given)
    labels = dict(given or {})
    for old, new in labels.items():
        if not isinstance(new, str) or not new or not is_unicode(new):
            raise QueryError.about(called, "must be texts that are not empty", new, label=old)
    return labels


def _check_columns(released: pd.DataFrame, certificate: Certificate, renamed: _Labels) -> None:
    """Check that columns have labels of their own, and none that says another was computed."""
    for label, new in renamed.items():
        if label in released.index.names and label not in released.columns:
            way = f"Levels have an argument of their own: levels={{{quote(label)}: {quote(new)}}}."
            raise QueryError.about("columns", "must name columns", label, way, label=label)
    places = [place_of(released, label, "columns") for label in renamed]
    if certificate.unstacked is not None:
        return
    own = certificate.width
    for label, place in zip(renamed, places, strict=True):
        if place >= own:
            rule = f"column {quote(label)} has the label of what it was computed from. Rename that."
            raise QueryError(rule, parameter="columns", label=label)
    beside = [followers(released, certificate, at) for at in range(own)]
    computed = [released.columns[place] for places in beside for place in places]
    bases = {renamed.get(label, label) for label in released.columns[:own]}
    for label, new in renamed.items():
        read_as = {f"{base}{suffix}" for base in {*bases} - {new} for suffix in SUFFIXES}
        if computed and label != new and (new in computed or new in read_as):
            rule = f"{quote(new)} would read as a column that was computed from another"
            text = f"{rule}, as {computed[0]!r} is. Take another label."
            raise QueryError(text, parameter="columns", label=label, value=new)


def _check_levels(released: pd.DataFrame, renamed: _Labels) -> None:
    """Check that there are such levels."""
    names = list(released.index.names)
    for level in renamed:
        if level is None or level not in names:
            raise QueryError.about("levels", f"must be among {names!r}", level)


def _check_no_exchange(labels: _Labels) -> None:
    """Refuse labels that are exchanged for each other: values would be under a wrong one."""
    for first in labels:
        seen, label = [first], labels[first]
        while label in labels and label not in seen:
            seen.append(label)
            label = labels[label]
        if label == first and len(seen) > 1:
            rule = f"rename exchanges {' and '.join(map(repr, seen))} with each other"
            way_out = "which would move nothing. To move columns, use .dp.select(columns=[...])"
            raise QueryError(f"{rule}, {way_out}.", parameter="columns", label=first)


def apply_rename(frame: pd.DataFrame, certificate: Certificate, step: RenameStep) -> Outcome:
    """Give columns and levels other names."""
    labels: list[Any] = list(frame.columns)
    names = {label_place(frame, old): new for old, new in step.columns.items()}
    for place, new in names.items():
        labels[place] = new
        for later, suffix in followers(frame, certificate, place).items():
            labels[later] = f"{new}{suffix}"
    levels = [step.levels.get(str(name), name) for name in frame.index.names]
    taken = [label for label in labels + levels if (labels + levels).count(label) > 1]
    if taken:
        rule = f"{taken[0]!r} would be the name of two columns or levels. Take another."
        parameter = "levels" if taken[0] in step.levels.values() else "columns"
        raise QueryError(rule, parameter=parameter, label=taken[0])
    renamed = frame.set_axis(pd.Index(labels, tupleize_cols=False, name=frame.columns.name), axis=1)
    renamed.index = frame.index.set_names(levels)
    if certificate.unstacked is not None:
        return renamed, certificate
    return renamed, certificate.with_each(
        lambda at, column, _: replace(column, name=names.get(at, column.name))
    )
