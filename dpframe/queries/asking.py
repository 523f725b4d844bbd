"""What to compute, as frozen values: counts, sums, means, histograms, units, several at once."""

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType

import pandas as pd

from dpframe.arguments import a_type, is_label, is_unicode, shown
from dpframe.errors import QueryError
from dpframe.queries.bins import check_bins
from dpframe.queries.kinds import (
    Aggregate,
    By,
    Columns,
    Count,
    GivenBounds,
    Histogram,
    Keys,
    KnownRows,
    Mean,
    Objective,
    Query,
    Sum,
    UnitCount,
)
from dpframe.queries.options import read_options
from dpframe.queries.where import Condition

__all__ = [
    "NOT_OUTPUTS",
    "aggregate",
    "check_query",
    "count",
    "histogram",
    "mean",
    "sum",
    "units",
]

NOT_OUTPUTS = (
    "by",
    "where",
    "keys",
    "epsilon",
    "delta",
    "mu",
    "rho",
    "share",
    "mechanism",
    "denoise",
    "graph",
    "name",
    "note",
    "privacy_unit",
    "n_weight",
    "objective",
)
"""Names that outputs of `aggregate` cannot have: its own keywords and those of a release."""

_NOT_NAMES = f"{', '.join(NOT_OUTPUTS)} are keywords and cannot be names"


def count(by: By = None, *, where: str | None = None, keys: Keys = None) -> Count:
    """Describe the number of rows per group.

    Parameters
    ----------
    by
        Column or list of columns to group by; `None`: one group of all rows.
    where
        Row-wise condition, for instance `"fare > 0 and zone in ['A', 'B']"`.
    keys
        The groups, where they are not declared: a dict from column to list, a list for a single
        column, or a frame whose rows are the combinations wanted.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> count(by="zone", where="fare > 0").by
    ('zone',)
    """
    return Count(_labels("by", by), _condition(where), _kept(keys))


def sum(
    columns: Columns,
    by: By = None,
    *,
    where: str | None = None,
    keys: Keys = None,
    bounds: GivenBounds = None,
    max_true: int | None = None,
    n: KnownRows = None,
    n_weight: float = 0.0,
    objective: Objective = "total",
) -> Sum:
    """Describe the sum of one or several columns per group.

    Values are clipped to their bounds; missing ones contribute nothing unless a replacement is
    declared.

    Parameters
    ----------
    columns
        Column or list of columns to add up.
    by, where, keys
        As in `count`.
    bounds
        `(lower, upper)` for all the columns, or a dict from column to bounds, where they are not
        declared.
    max_true
        How many of the columns, all boolean, are true in a row at most. Of more, a uniformly random
        choice is kept.
    n
        The number of rows per group, where it is public: a number, or a series on the groups;
        or a pair of it and its variance, where it is an estimate that was published before.
    n_weight
        Importance of an accurate number of rows, relative to that of a column. Correlated noise
        releases it as column `n` in any case.
    objective
        "total": the sum of the columns' relative variances is as small as can be; "worst": the
        largest of them is.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, bounds={"fare": (0, 100)})
    >>> released = dpf.release(trips, sum("fare", by="zone"), epsilon=1e6)  # hardly any noise
    >>> released["fare"].round().tolist()
    [17.0, 20.0]
    """
    labels = _some(_labels("columns", columns))
    given = _labels("by", by), _condition(where), _kept(keys), labels, _bounds(labels, bounds)
    return Sum(*given, read_options(max_true, n, n_weight, objective))


def mean(
    columns: Columns,
    by: By = None,
    *,
    where: str | None = None,
    keys: Keys = None,
    bounds: GivenBounds = None,
) -> Mean:
    """Describe the mean of one or several columns per group.

    Rows where the column is missing are not counted, unless a replacement is declared.

    Parameters
    ----------
    columns
        Column or list of columns to average.
    by, where, keys, bounds
        As in `sum`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, bounds={"fare": (0, 100)})
    >>> released = dpf.release(trips, mean("fare", by="zone"), epsilon=1e6)  # hardly any noise
    >>> released["fare"].round(1).tolist()
    [8.5, 20.0]
    """
    labels = _some(_labels("columns", columns))
    groups = _labels("by", by), _condition(where), _kept(keys)
    return Mean(*groups, labels, _bounds(labels, bounds))


def histogram(
    column: Hashable, bins: object, by: By = None, *, where: str | None = None, keys: Keys = None
) -> Histogram:
    """Describe the number of rows per bin of a numeric column, by group.

    Parameters
    ----------
    column
        Column whose values fall into the bins. Values in none of them are left out.
    bins
        Increasing edges, with `-inf` and `inf` allowed at the ends, for bins closed on the right as
        in `pandas.cut`; or a `pandas.IntervalIndex` without overlaps.
    by, where, keys
        As in `count`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"fare": [9.5, 20.0, 7.5]})
    >>> released = dpf.release(trips, histogram("fare", [0, 10, 100]), epsilon=1e6)
    >>> [(str(bin), count) for bin, count in released["count"].items()]  # hardly any noise
    [('(0, 10]', 2), ('(10, 100]', 1)]
    """
    labels = _labels("by", by)
    if not is_label(column):
        raise QueryError(f"column must be the label of one column, got {shown(column)}.")
    if column in labels:
        raise QueryError(
            f"column {column!r} cannot be binned and grouped by at once; drop it from by=."
        )
    groups = labels, _condition(where), _kept(keys)
    return Histogram(*groups, column=column, bins=check_bins(column, bins))


def units(by: By = None, *, where: str | None = None, keys: Keys = None) -> UnitCount:
    """Describe the number of distinct privacy units per group.

    With `x_i` the set of groups that unit i has a row in, a group c gets the number of units with
    `c in x_i`. However many rows a unit has there, it counts once, and no row is dropped by
    `max_rows` or `max_rows_per_group`. It counts in at most `g` groups, the smallest of
    `max_groups`, `max_rows` and the number of groups, as far as these are declared: of more, in a
    uniformly random choice. One unit more or fewer moves at most g counts by 1, one replaced at
    most `min(2 g, number of groups)`. Without a privacy unit, every row is one.

    Parameters
    ----------
    by, where, keys
        As in `count`; a unit is in a group if one of its rows there satisfies `where`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"driver": [1, 1, 2], "zone": ["A", "A", "B"]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, privacy_unit="driver", max_rows=2)
    >>> released = trips.dp.units(by="zone", epsilon=1e6)  # so much that hardly any noise is added
    >>> released["units"].tolist()
    [1, 1]
    """
    return UnitCount(_labels("by", by), _condition(where), _kept(keys))


def aggregate(
    by: By = None,
    *,
    where: str | None = None,
    keys: Keys = None,
    n_weight: float = 0.0,
    objective: Objective = "total",
    **queries: Count | Sum | Mean,
) -> Aggregate:
    """Describe several counts, sums and means by the same groups, one output column each.

    Parameters
    ----------
    by, where, keys
        As in `count`; `where` holds for all of them, beside their own.
    n_weight, objective
        As in `sum`.
    **queries
        Output columns: `flights=count(), total=sum("distance"), delay=mean("dep_delay")`. Keywords
        of `release` cannot be their names.

    Raises
    ------
    QueryError
        If there is nothing to compute, a name is a keyword of `release`, or a query does not fit.

    Examples
    --------
    >>> sorted(aggregate(by="zone", n=count(), fare=sum("fare")).queries)
    ['fare', 'n']
    """
    labels = _labels("by", by)
    if not queries:
        raise QueryError(
            f"aggregate needs at least one named query, for instance n=dpf.count(); {_NOT_NAMES}."
        )
    for name, query in queries.items():
        _check_part(name, query, labels)
    given = labels, _condition(where), _kept(keys), MappingProxyType(dict(queries))
    return Aggregate(*given, read_options(None, None, n_weight, objective))


def check_query(query: object, called: str = "") -> Query:
    """Return what is asked for, if it is a query; it may be called something in the error."""
    if isinstance(query, Query):
        return query
    raise QueryError(
        "a query must be dpf.count(...), dpf.sum(...), dpf.mean(...), dpf.histogram(...), "
        f"dpf.units(...) or dpf.aggregate(...); got {type(query).__name__}{called}."
    )


def _check_part(name: str, query: object, by: tuple[Hashable, ...]) -> None:
    if name in NOT_OUTPUTS:
        raise QueryError(
            f"{name}= cannot name an output of aggregate: {_NOT_NAMES}. Choose another name; "
            "amounts and options go to release(...)."
        )
    if not is_unicode(name):
        raise QueryError(f"{name!r} must be a valid Unicode text to name an output.")
    if isinstance(query, UnitCount):
        raise QueryError(
            f"{name}= counts units, and the outputs of aggregate add up rows that caps may drop. "
            f"Ask for both at once: release({{{name!r}: dpf.units(by=...), 'rows': "
            "dpf.aggregate(by=..., ...)})."
        )
    if not isinstance(query, Count | Sum | Mean):
        raise QueryError(
            f"{name}= must be dpf.count(), dpf.sum(column) or dpf.mean(column), "
            f"got {type(query).__name__}. "
            "Several queries by different groups go through release({...})."
        )
    if query.by not in ((), by) or query.keys is not None:
        raise QueryError(
            f"{name}= has groups of its own; in aggregate, by= and keys= are given once for all."
        )
    if query.options.given:
        raise QueryError(
            f"{name}= has options for several outputs; in aggregate, n_weight= and objective= are "
            "given once for all, and max_true= and n= belong to dpf.sum([...]) on its own."
        )
    if len(query.outputs) != 1:
        columns = [asked.column for asked in query.outputs]
        raise QueryError(
            f"{name}= must be of a single column, got {columns!r}; name each on its own."
        )


def _condition(where: str | None) -> Condition | None:
    return None if where is None else Condition.parse(where)


def _kept(keys: Keys) -> Keys:
    """Keys that can be read again and again: a query may be previewed, and then released."""
    return list(keys) if isinstance(keys, Iterator) else keys


def _labels(name: str, given: Columns | None) -> tuple[Hashable, ...]:
    """Read a label or a list of them."""
    if given is None:
        return ()
    if is_label(given) and not isinstance(given, Iterator | frozenset):
        return (given,)
    wrong = QueryError(f"{name} must be a column label or a list of labels, got {a_type(given)}.")
    # sets have no order, and a column of the frame is private
    if isinstance(given, set | frozenset | pd.Series | pd.DataFrame):
        raise wrong
    try:
        labels = tuple(given)  # type: ignore[arg-type]  # a TypeError if it is not iterable
        repeated = len(set(labels)) != len(labels)
    except TypeError:
        raise wrong from None
    if repeated:
        raise QueryError(f"{name} must not name a column twice, got {name}={list(labels)!r}.")
    return labels


def _some(columns: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    if not columns:
        raise QueryError("columns must name at least one column.")
    return columns


def _bounds(columns: tuple[Hashable, ...], bounds: GivenBounds) -> GivenBounds:
    """Check that bounds are of the columns that are asked for."""
    named = bounds if isinstance(bounds, Mapping) else ()
    unknown = [label for label in named if label not in columns]
    if unknown:
        raise QueryError(f"bounds names {unknown!r}, which is not among columns={list(columns)!r}.")
    return bounds
