"""Groups that are public functions of one column: they have their keys, and cost nothing."""

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime
from itertools import pairwise
from typing import Any, TypeAlias, cast

import pandas as pd
from pandas.api.types import is_scalar

from dpframe.arguments import MOST_GROUPS, check_flag, is_label, is_one_of, is_unicode
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.options import Other
from dpframe.public import public_call
from dpframe.queries.edges import check_bins, edge_text
from dpframe.queries.tasks import BinAxis

_FREQUENCIES = ("Y", "Q", "M", "W", "D", "h", "min", "s")
"""What periods may last: those next to each other leave nothing out."""


@frozen(eq=False)
class Cut:
    """A column that is grouped by the bins that its values lie in; values in none have no group.

    Parameters
    ----------
    column
        Label of the column.
    bins
        The bins, increasing.
    labels
        The keys, one for each bin.
    """

    column: Hashable
    bins: pd.IntervalIndex
    labels: pd.Index

    @property
    def axis(self) -> BinAxis:
        """The groups."""
        return BinAxis(self.column, self.bins, labels=self.labels)


Cuts: TypeAlias = Mapping[Hashable, Cut]
"""Groups that are functions of a column, by its label."""


@public_call
def cut(column: Hashable, edges: object, *, right: bool = True, labels: object = None) -> Cut:
    """Group a column of numbers, times or durations by public edges, inside `by=`.

    Every edge belongs to a bin, as in `histogram`: with `right=True` the first edge to the first
    bin, with `right=False` the last edge to the last bin. Values beyond the edges, and missing
    ones, have no group: their rows are left out.

    Parameters
    ----------
    column
        Label of the column.
    edges
        Increasing edges, with `-inf` and `inf` allowed at the ends, or a `pandas.IntervalIndex`.
    right
        Whether bins hold their right edge.
    labels
        The keys: a text for each bin. By default those of the bins, "[0, 18]", "(18, 45]".

    Returns
    -------
    Cut
        What `by=` takes in place of the label of the column.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> people = pd.DataFrame({"age": [0, 18, 19, 90, 130]})
    >>> query = dpf.count(by=cut("age", [0, 18, 65, 120]))
    >>> released = dpf.release(people, query, epsilon=1e6, privacy_unit=dpf.EACH_ROW)
    >>> released["count"].to_dict()  # hardly any noise
    {'[0, 18]': 2, '(18, 65]': 1, '(65, 120]': 1}
    """
    check_flag("right", right)
    check_column("column", column)
    bins = check_bins(column, edges, "right" if right else "left")
    listed = list(edges) if isinstance(edges, Iterable) else []
    texts = _texts(bins if isinstance(edges, pd.IntervalIndex) else listed, right=right)
    keys = texts if labels is None else _check_labels(labels, len(bins))
    return Cut(column, bins, pd.Index(keys, name=column, tupleize_cols=False))


def check_column(name: str, label: object) -> None:
    """Check the label of a column."""
    if not is_label(label):
        raise QueryError.about(name, "must be the label of one column", label)


def _texts(edges: Any, *, right: bool) -> list[str]:
    """Write bins between edges, of which each holds one, and that at the end both."""
    if isinstance(edges, pd.IntervalIndex):
        return [*map(str, edges)]
    texts = [*map(edge_text, edges)]
    pairs = [*pairwise(texts)]
    written = [f"({low}, {high}]" if right else f"[{low}, {high})" for low, high in pairs]
    low, high = pairs[0 if right else -1]
    written[0 if right else -1] = f"[{low}, {high}]"
    return written


def _check_labels(labels: object, number: int) -> list[str]:
    listed = [] if isinstance(labels, str) or not isinstance(labels, Iterable) else list(labels)
    texts = [text for text in listed if isinstance(text, str) and is_unicode(text)]
    if len(texts) == len(listed) == len(set(texts)) == number:
        return texts
    rule = f"must be {number:,} different texts, one for each bin"
    raise QueryError.about("labels", rule, labels)


@public_call
def period(column: Hashable, freq: str, first: object, last: object) -> Cut:
    """Group a column of dates or times by public periods, inside `by=`.

    Parameters
    ----------
    column
        Label of the column. Values outside of the periods, and missing ones, have no group; in a
        column of `pandas.Period` no value has one: make it times by `.dt.to_timestamp()`.
    freq
        How long a period is, as pandas writes it: "Y", "Q", "M", "W", "D", "h", "min" or "s".
    first, last
        The first and the last period, "2024-01" or a date in it. For a column of times with an
        offset, `first` is a `pandas.Timestamp` in the time zone whose periods are meant.

    Returns
    -------
    Cut
        What `by=` takes in place of the label of the column; keys are `pandas.Period`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> visits = pd.DataFrame({"day": pd.to_datetime(["2024-01-31", "2024-02-01", "2023-12-31"])})
    >>> query = dpf.count(by=period("day", "M", "2024-01", "2024-02"))
    >>> released = dpf.release(visits, query, epsilon=1e6, privacy_unit=dpf.EACH_ROW)
    >>> released["count"].to_dict()  # hardly any noise
    {Period('2024-01', 'M'): 1, Period('2024-02', 'M'): 1}
    """
    check_column("column", column)
    if not isinstance(freq, str) or freq.partition("-")[0] not in _FREQUENCIES:
        listed = ", ".join(map(repr, _FREQUENCIES))
        raise QueryError.about("freq", f"must be one of {listed}", freq)
    zone = getattr(first, "tzinfo", None)
    start, end = _period("first", first, freq), _period("last", last, freq)
    number = end.ordinal - start.ordinal + 1
    if not 1 <= number <= MOST_GROUPS:
        rule = f"must be 1 to {MOST_GROUPS:,} periods from first={str(start)!r} on"
        raise QueryError.about("last", rule, str(end))
    keys = pd.period_range(start, end, name=column)
    rule = "must begin periods at times that pandas knows, and that the time zone has once"
    try:
        begins = pd.period_range(start, end + 1).to_timestamp().as_unit("us")
        edges = begins.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    except (ValueError, OverflowError):  # beyond what a Timestamp can be
        raise QueryError.about("first", rule, first) from None
    if edges.hasnans:  # the zone has no such hour, or two
        raise QueryError.about("first", rule, first)
    return Cut(column, pd.IntervalIndex.from_breaks(edges, closed="left", name=column), keys)


def _period(name: str, argument: object, freq: str) -> pd.Period:
    """Read a period."""
    value = argument.replace(tzinfo=None) if isinstance(argument, datetime) else argument
    period_read: object = None
    if isinstance(value, str | date | pd.Period):  # pandas takes whole numbers for years, or not
        with suppress(ValueError, OverflowError):
            period_read = pd.Period(value, freq=freq)
    if isinstance(period_read, pd.Period):  # a missing value makes none
        return period_read
    raise QueryError.about(name, f"must be a period of {freq!r}, such as '2024-01'", argument)


def split_groups(by: Any) -> tuple[Any, dict[Hashable, Cut]]:
    """Tell labels to group by from functions of columns, in a list or in lists of lists.

    Raises
    ------
    QueryError
        If a column is cut in two ways.
    """
    if isinstance(by, Cut):
        return by.column, {by.column: by}
    if not isinstance(by, list | tuple):
        return by, {}
    cuts: dict[Hashable, Cut] = {}
    labels = []
    for part in by:
        label, cuts_of_part = split_groups(part)
        labels.append(label)
        for column, cut_made in cuts_of_part.items():
            if cuts.setdefault(column, cut_made) is not cut_made:
                rule = "must not cut a column in two ways"
                raise QueryError.about("by", rule, column, "Copy it in the frame first.")
    return type(by)(labels) if cuts else by, cuts


def check_other(by: tuple[Hashable, ...], cuts: Cuts, other: Other) -> dict[Hashable, Hashable]:
    """Read the keys of rows that have none of the others, by column.

    Raises
    ------
    QueryError
        If one is no key, or for a column that is none of the groups, or in bins.
    """
    if other is None:
        return {}
    with_keys = [column for column in by if column not in cuts]
    named = dict(other if isinstance(other, Mapping) else dict.fromkeys(with_keys, other))
    if not named:
        rule = "is for columns with keys to group by"
        raise QueryError.about("other", rule, other, "Name some in by=.")
    for column, key in named.items():
        if column not in by:
            reason = f"other names {quote(column)}, which is not among the groups {quote([*by])}."
            raise QueryError(reason, parameter="other", label=column)
        if column in cuts:
            remedy = "Let the first or the last bin reach to infinity."
            raise QueryError.about("other", "is for columns with keys", key, remedy, label=column)
        plain = is_label(key) and is_scalar(key) and is_unicode(key)
        if not plain or pd.isna(cast(str, key)):
            rule = "must be a key, such as 'rest', or a dict of them by column, and names no output"
            raise QueryError.about("other", rule, key, label=column)
    return named


def with_rest(column: Hashable, keys: pd.Index, other: Hashable) -> pd.Index:
    """Put a key behind all others, of which it must be none: it would not say what it counts."""
    if is_one_of(other, keys):
        raise QueryError(
            f"other={quote(other)} equals a key of {column!r}, and rows with that key would be "
            "counted together with all that have none: choose another one, "
            f"other={{{column!r}: ...}}, or leave {quote(other)} out of the keys, so that its rows "
            "count as such, too.",
            parameter="other",
            label=column,
            value=other,
        )
    return pd.Index([*keys, other], name=keys.name, tupleize_cols=False)
