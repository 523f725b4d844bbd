"""Sort the rows of a release."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.steps import SortStep
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError, quote
from dpframe.public import public_call
from dpframe.steps.apply import MOST_SHOWN, Outcome, after, keep_rows, label_place


@public_call
def sort_values(
    released: pd.DataFrame,
    by: Hashable | Sequence[Hashable],
    *,
    ascending: bool | Sequence[bool] = True,
) -> pd.DataFrame:
    """Sort the rows of a release, and keep its certificate.

    Rows with equal values keep their order; suppressed cells come last.

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
    names = tuple(_name_of(released, label) for label in labels)
    flags = list(ascending) if isinstance(ascending, list | tuple) else [ascending] * len(labels)
    if not all(isinstance(flag, bool | np.bool_) for flag in flags) or len(flags) != len(names):
        rule = f"must be True or False, or a list of them for {quote(labels)}"
        raise QueryError.about("ascending", rule, ascending)
    if not names:
        raise QueryError.about("by", "must name at least one column or level", by)
    directions = tuple(map(bool, flags))
    step = SortStep("sort_values", names, directions, certificate.digest)
    return after(released, certificate, step, apply_sort)


def _name_of(released: pd.DataFrame, label: Hashable) -> str:
    """Check the name of a column or a level."""
    if label is None or not is_one_of(label, [*released.columns, *released.index.names]):
        known = f"a column, {quote(list(released.columns))}, or a level, {released.index.names!r}"
        raise QueryError.about("by", f"must name {known}", label)
    return str(label)


def apply_sort(frame: pd.DataFrame, certificate: Certificate, step: SortStep) -> Outcome:
    """Bring rows into another order."""
    columns = {str(at): _column_or_level(frame, name) for at, name in enumerate(step.by)}
    table = pd.DataFrame(columns, index=range(len(frame)))
    try:
        order = table.sort_values(list(columns), ascending=list(step.ascending), kind="stable")
    except (TypeError, ValueError):
        names = ", ".join(map(repr, step.by))[:MOST_SHOWN]
        rule = f"by names {names}, whose values have no order: they are of several kinds"
        raise QueryError(f"{rule}. Sort by another.", parameter="by") from None
    return keep_rows(frame, certificate, order.index.to_numpy())


def _column_or_level(frame: pd.DataFrame, name: str) -> Any:
    """Return the values that rows are sorted by."""
    levels = [at for at, level in enumerate(frame.index.names) if str(level) == name]
    if not levels or any(str(label) == name for label in frame.columns):
        return frame.iloc[:, label_place(frame, name)].array
    return frame.index.get_level_values(levels[0]).array
