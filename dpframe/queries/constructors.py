"""What to compute, as frozen values: counts, rates, sums, means and more, or several at once."""

import math
from collections.abc import Hashable
from typing import Annotated, TypedDict, Unpack, get_args

from dpframe.calls import with_keywords
from dpframe.errors import QueryError, quote
from dpframe.privacy.amounts import WRITTEN, as_number
from dpframe.queries import kinds, reading
from dpframe.queries.binned import Histogram
from dpframe.queries.bins import check_bins
from dpframe.queries.kinds import By, Columns
from dpframe.queries.reading import ColumnOptions, CountOptions
from dpframe.queries.where import Condition


class AccuracyOptions(TypedDict, total=False):
    """What is to be accurate of several outputs; see `dpframe.sum`."""

    n_weight: Annotated[float, 0.0]
    objective: Annotated[kinds.Objective, "total"]


class SumOptions(ColumnOptions, AccuracyOptions, total=False):
    """What to add up, and what is known; see `dpframe.sum`."""

    max_true: int | None
    n: kinds.KnownRows


_MOST_WEIGHT = 1e100  # its products with squared errors stay finite


def read_options(
    max_true: object, n: kinds.KnownRows, n_weight: object, objective: object
) -> kinds.QueryOptions:
    """Check options of a sum or an aggregate; the plan checks n, which it alone can match."""
    options = kinds.QueryOptions(_max_true(max_true), n, _n_weight(n_weight), _objective(objective))
    others = [name for name in options.names_given if name != "max_true"]
    if options.max_true is not None and others:
        raise QueryError(f"max_true= has its own best noise: it cannot go with {others[0]}=.")
    if options.n is not None and options.n_weight:
        raise QueryError(
            "n= says that the number of rows is public: n_weight= has no meaning then."
        )
    return options


def _max_true(value: object) -> int | None:
    if value is None:
        return None
    try:
        number = as_number(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(number, int) and 1 <= number < WRITTEN:
        return number
    raise QueryError(f"max_true must be a whole number >= 1, got max_true={quote(value)}.")


def _n_weight(value: object) -> float:
    try:
        number = float(as_number(value))
    except (TypeError, OverflowError):
        number = math.nan
    if 0 <= number <= _MOST_WEIGHT:
        return number
    raise QueryError(
        f"n_weight must be a number >= 0, and at most {_MOST_WEIGHT:g}, got "
        f"n_weight={quote(value)}. 1 makes the number of rows as important as a column."
    )


def _objective(value: object) -> kinds.Objective:
    for name in get_args(kinds.Objective):
        if isinstance(value, str) and value == name:
            return name  # type: ignore[no-any-return]
    raise QueryError(f'objective must be "total" or "worst", got objective={quote(value)}.')


def _of_columns(
    columns: Columns, by: By, options: ColumnOptions
) -> tuple[
    tuple[Hashable, ...], Condition | None, kinds.Keys, tuple[Hashable, ...], kinds.GivenBounds
]:
    """Read groups, columns and their bounds."""
    labels = reading.labels_of("columns", columns)
    if not labels:
        raise QueryError("columns must name at least one column.")
    groups = reading.groups_of(by, options)
    return (*groups, labels, reading.bounds_of(labels, options.get("bounds")))


@with_keywords
def count(by: By = None, **options: Unpack[CountOptions]) -> kinds.Count:
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
    max_rows, max_groups, max_rows_per_group
        They take the place of the caps of the same
        name that are declared with a privacy unit. Noise is made for the caps that hold.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> count(by="zone", where="fare > 0").by
    ('zone',)
    """
    return kinds.Count(*reading.groups_of(by, options), limits=reading.limits_of(options))


@with_keywords
def rate(condition: str, by: By = None, **options: Unpack[CountOptions]) -> kinds.Rate:
    """Describe the share of the rows per group that satisfy a condition.

    With A the number of rows that satisfy it and C the number of those that do not, it is `A / (A +
    C)`, in [0, 1]. A row in which a column of the condition is missing counts in neither. A row
    moves one of the two by 1, so that both are measured at the price of one count.

    Parameters
    ----------
    condition
        What is to hold, as a row-wise condition, for instance `"dep_delay > 15"`.
    by, where, keys, max_rows, max_groups, max_rows_per_group
        As in `count`; rows that do not satisfy `where` count in neither number.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> query = rate("fare > 8", by="zone", keys=["A", "B"])
    >>> dpf.release(trips, query, epsilon=1e6)["rate"].round(3).tolist()  # hardly any noise
    [0.5, 1.0]
    """
    groups = reading.groups_of(by, options)
    return kinds.Rate(*groups, met=Condition.parse(condition), limits=reading.limits_of(options))


@with_keywords
def sum(columns: Columns, by: By = None, **options: Unpack[SumOptions]) -> kinds.Sum:
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
    max_rows, max_groups, max_rows_per_group
        As in `count`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, bounds={"fare": (0, 100)})
    >>> released = dpf.release(trips, sum("fare", by="zone"), epsilon=1e6)  # hardly any noise
    >>> released["fare"].round().tolist()
    [17.0, 20.0]
    """
    given = _of_columns(columns, by, options)
    known = read_options(
        options["max_true"], options["n"], options["n_weight"], options["objective"]
    )
    return kinds.Sum(*given, known, limits=reading.limits_of(options))


@with_keywords
def mean(columns: Columns, by: By = None, **options: Unpack[ColumnOptions]) -> kinds.Mean:
    """Describe the mean of one or several columns per group.

    Rows where the column is missing are not counted, unless a replacement is declared.

    Parameters
    ----------
    columns
        Column or list of columns to average.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group
        As in `sum`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, bounds={"fare": (0, 100)})
    >>> released = dpf.release(trips, mean("fare", by="zone"), epsilon=1e6)  # hardly any noise
    >>> released["fare"].round(1).tolist()
    [8.5, 20.0]
    """
    return kinds.Mean(*_of_columns(columns, by, options), limits=reading.limits_of(options))


@with_keywords
def var(columns: Columns, by: By = None, **options: Unpack[ColumnOptions]) -> kinds.Variance:
    """Describe the variance of one or several columns per group.

    It is the population variance, `sum (x - mean)^2 / n`, over the rows where the column is
    present, between 0 and a quarter of the squared width of the bounds. With pure noise, n, mean
    and variance of one column together cost what n alone costs.

    Parameters
    ----------
    columns
        Column or list of columns of numbers.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group
        As in `sum`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, bounds={"fare": (0, 100)})
    >>> released = dpf.release(trips, var("fare", by="zone"), epsilon=1e9)  # hardly any noise
    >>> (released["fare"].round(2) + 0).tolist()
    [1.0, 0.0]
    """
    return kinds.Variance(*_of_columns(columns, by, options), limits=reading.limits_of(options))


@with_keywords
def std(columns: Columns, by: By = None, **options: Unpack[ColumnOptions]) -> kinds.Deviation:
    """Describe the standard deviation of one or several columns per group: the root of `var`.

    Parameters
    ----------
    columns, by, where, keys, bounds, max_rows, max_groups, max_rows_per_group
        As in `var`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> std("fare", by="zone").words
    'standard deviation of fare by zone'
    """
    return kinds.Deviation(*_of_columns(columns, by, options), limits=reading.limits_of(options))


@with_keywords
def histogram(
    column: Hashable, bins: object, by: By = None, **options: Unpack[CountOptions]
) -> Histogram:
    """Describe the number of rows per bin of a numeric column, by group.

    Parameters
    ----------
    column
        Column whose values fall into the bins. Values in none of them are left out.
    bins
        Increasing edges, with `-inf` and `inf` allowed at the ends, for bins closed on the right as
        in `pandas.cut`; or a `pandas.IntervalIndex` without overlaps.
    by, where, keys, max_rows, max_groups, max_rows_per_group
        As in `count`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"fare": [9.5, 20.0, 7.5]})
    >>> released = dpf.release(trips, histogram("fare", [0, 10, 100]), epsilon=1e6)
    >>> [(str(bin), count) for bin, count in released["count"].items()]  # hardly any noise
    [('(0, 10]', 2), ('(10, 100]', 1)]
    """
    groups = reading.binned_groups_of(column, by, options)
    bins = check_bins(column, bins)
    return Histogram(*groups, column=column, bins=bins, limits=reading.limits_of(options))


@with_keywords
def units(by: By = None, **options: Unpack[CountOptions]) -> kinds.UnitCount:
    """Describe the number of distinct privacy units per group.

    With `x_i` the set of groups that unit i has a row in, a group c gets the number of units with
    `c in x_i`. However many rows a unit has there, it counts once, and no row is dropped by
    `max_rows` or `max_rows_per_group`. It counts in at most `g` groups, the smallest of
    `max_groups`, `max_rows` and the number of groups, as far as these are given: of more, in a
    uniformly random choice. One unit more or fewer moves at most g counts by 1, one replaced at
    most `min(2 g, number of groups)`. Without a privacy unit, every row is one.

    Parameters
    ----------
    by, where, keys, max_rows, max_groups, max_rows_per_group
        As in `count`; a unit is in a group if one of its rows there satisfies `where`.
        `max_rows_per_group` is refused: it would change nothing.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"driver": [1, 1, 2], "zone": ["A", "A", "B"]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, privacy_unit="driver", max_rows=2)
    >>> released = trips.dp.units(by="zone", epsilon=1e6)  # so much that hardly any noise is added
    >>> released["units"].tolist()
    [1, 1]
    """
    limits = reading.limits_of(options)
    if limits.rows_per_group is not None:
        raise QueryError(
            "units counts a unit once in a group, however many rows it has there: "
            f"max_rows_per_group={limits.rows_per_group} would change nothing. Leave it out; "
            "max_groups= says in how many groups a unit counts."
        )
    return kinds.UnitCount(*reading.groups_of(by, options), limits=limits)
