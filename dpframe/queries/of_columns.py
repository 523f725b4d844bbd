"""Queries for numbers of rows and units, and for statistics of bounded columns."""

from collections.abc import Hashable, Sequence
from typing import Literal, cast, get_args

from dpframe.arguments import check_flag, is_one_of
from dpframe.errors import QueryError, quote
from dpframe.options import By, ChosenRows, Columns, GivenBounds, Keys, KnownRows, Objective, Other
from dpframe.privacy.amounts import WRITTEN
from dpframe.public import public_call
from dpframe.queries import reading
from dpframe.queries.conditions import compared_with_itself
from dpframe.queries.groups import check_column
from dpframe.queries.query import (
    NO_OPTIONS,
    AggregatePart,
    OutputSpec,
    Query,
    QueryOptions,
    weighted_words,
)
from dpframe.queries.where import Condition
from dpframe.statistics.regression import MOST_COVARIATES, OfRegression
from dpframe.statistics.table import STATISTICS, StatisticName


def several_rows(unit: Sequence[Hashable], *, of_all_groups: bool) -> QueryError:
    """Make the error about a sampling error of rows of which one unit may have several.

    Parameters
    ----------
    unit
        The columns of the unit.
    of_all_groups
        Whether rows of several groups are put together.
    """
    rule = "takes each row for a draw of its own"
    named = ", ".join(map(str, unit))
    reason = (
        f"{rule}, and a unit ({named}) may have several{'' if of_all_groups else ' in a group'}"
    )
    cap = "max_rows=1" if of_all_groups else "max_rows_per_group=1"
    way_out = f"Release it with {cap}, so that each unit counts with one row at random."
    return QueryError.about("sampling", reason, True, way_out)


_MOST_WEIGHT = 1e100  # its products with squared errors stay finite


def read_options(
    max_true: object, n: KnownRows, n_weight: object, objective: object
) -> QueryOptions:
    """Check options of a sum or an aggregate; the plan checks n, which it alone can match."""
    most = None if max_true is None else reading.check_whole("max_true", max_true, WRITTEN - 1)
    options = QueryOptions(most, n, _n_weight(n_weight), _objective(objective))
    others = [name for name in options.names_given if name != "max_true"]
    if options.max_true is not None and others:
        raise QueryError.about("max_true", f"cannot go with {others[0]}=", max_true)
    if options.n is not None and options.n_weight:
        rule = "has no meaning with n=, which says that the number of rows is public"
        raise QueryError.about("n_weight", rule, n_weight)
    return options


def _n_weight(value: object) -> float:
    rule = f"must be a number >= 0, and at most {_MOST_WEIGHT:g}"
    remedy = "1 makes the number of rows as important as a column."
    return reading.check_number("n_weight", value, rule, remedy, least=0.0, most=_MOST_WEIGHT)


def _objective(value: object) -> Objective:
    if is_one_of(value, get_args(Objective)):
        return cast(Objective, value)
    raise QueryError.about("objective", 'must be "total" or "worst"', value)


def _of_columns(
    statistic: StatisticName, columns: Columns, by: By, rows: ChosenRows, bounds: GivenBounds, *,
    options: QueryOptions = NO_OPTIONS, weights: Hashable = None, sampling: bool = False,
) -> AggregatePart:  # fmt: skip
    """Describe a statistic of each of some columns, or of several together."""
    labels = reading.labels_of("columns", columns)
    if not labels:
        raise QueryError.about("columns", "must name at least one column", columns)
    groups, by_column = reading.groups_of(by, rows), reading.bounds_of(labels, bounds)
    form = STATISTICS[statistic]
    named = [(statistic, labels)] if form.of_several else [(label, (label,)) for label in labels]
    outputs = (
        OutputSpec(
            name,
            statistic,
            first,
            bounds={label: ends for label, ends in by_column.items() if label in (first, *others)},
            sampled=sampling,
            others=tuple(others),
            weights=weights,
        )
        for name, (first, *others) in named
    )
    subject = weighted_words(form.words(labels), weights)
    subject += ", with what its sampling error takes" * sampling
    return AggregatePart(**groups, outputs=tuple(outputs), subject=subject, options=options)


def _of_pair(
    statistic: StatisticName, pair: tuple[Hashable, Hashable], by: By, rows: ChosenRows,
    bounds: GivenBounds, *, sampling: bool = False,
) -> AggregatePart:  # fmt: skip
    """Describe a statistic of two columns together."""
    for name, label in zip("xy", pair, strict=True):
        check_column(name, label)
    if pair[0] == pair[1]:
        raise QueryError.about("y", "must be another column than x", pair[1])
    check_flag("sampling", sampling)
    return _of_columns(statistic, [*pair], by, rows, bounds, sampling=bool(sampling))


@public_call
def sum(
    columns: Columns, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None, weights: Hashable = None,
    max_true: int | None = None, n: KnownRows = None,
    n_weight: float = 0.0, objective: Objective = "total",
) -> AggregatePart:  # fmt: skip
    """Describe the sum of one or several columns per group.

    Values are clipped to their bounds. Missing ones contribute nothing unless a replacement is
    declared.

    Parameters
    ----------
    columns
        Column or list of columns to add up.
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`.
    weights
        Column of survey weights w, as in `count`: the sum is that of w x.
    bounds
        `(lower, upper)` for all the columns, or a dict by column, if not declared.
    max_true
        How many of the columns, all boolean, are true in a row at most. If more are, a uniformly
        random choice is kept.
    n
        The public number of rows per group: a number, or a series on the groups; or, if it is an
        earlier published estimate, a pair of it and its variance.
    n_weight
        Importance of an accurate number of rows, relative to that of a column. Above 0, it is one
        more column, `n`.
    objective
        "total": the least sum of the columns' relative variances; "worst": the least maximum.

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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    weights = reading.weights_of(weights)
    for name, value in {"max_true": max_true, "n": n}.items():
        if weights is not None and value is not None:
            raise QueryError.about("weights", f"cannot go with {name}=", weights)
    options = read_options(max_true, n, n_weight, objective)
    return _of_columns("sum", columns, by, rows, bounds, options=options, weights=weights)


@public_call
def mean(
    columns: Columns, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None,
    bounds: GivenBounds = None, sampling: bool = False, weights: Hashable = None,
) -> AggregatePart:  # fmt: skip
    """Describe the mean of one or several columns per group.

    Rows where the column is missing are not counted, unless a replacement is declared.

    Parameters
    ----------
    columns
        Column or list of columns to average.
    sampling
        Whether to measure the sum of squares, too, for `interval(sampling=True)`: how far off the
        mean of the sampled population may be. With Laplace noise it costs next to nothing for one
        column; with Gaussian noise, errors are about 1/8 larger. Not with weights.
    weights
        Column of survey weights w, as in `count`. The mean is `(l A + u B) / (A + B)`, where a row
        with x in [l, u] adds `a = w (u - x) / (u - l)` to A and `b = w (x - l) / (u - l)` to B:
        both are >= 0 and add up to w, so they cost what the weighted total alone costs.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
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
    check_flag("sampling", sampling)
    weights = reading.weights_of(weights)
    if sampling and weights is not None:
        rule = "is not known of weighted means, whose rows count for more or less than one draw"
        raise QueryError.about("sampling", rule, True, "Leave out sampling= or weights=.")
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    sampled = bool(sampling)
    return _of_columns("mean", columns, by, rows, bounds, sampling=sampled, weights=weights)


@public_call
def var(
    columns: Columns, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None,
) -> AggregatePart:  # fmt: skip
    """Describe the variance of one or several columns per group.

    It is the population variance, `sum (x - mean)^2 / n`, over the rows where the column is
    present, between 0 and a quarter of the squared width of the bounds. With pure noise, n, mean
    and variance of one column together cost what n alone costs.

    Parameters
    ----------
    columns
        Column or list of columns of numbers.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    return _of_columns("var", columns, by, rows, bounds)


@public_call
def std(
    columns: Columns, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None,
) -> AggregatePart:  # fmt: skip
    """Describe the standard deviation of one or several columns per group: the root of `var`.

    Parameters
    ----------
    columns, by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    return _of_columns("std", columns, by, rows, bounds)


@public_call
def cov(
    x: Hashable, y: Hashable, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None,
) -> AggregatePart:  # fmt: skip
    """Describe the covariance of two columns of numbers per group.

    It is the population covariance, `sum (x - m_x) (y - m_y) / n`, over the n rows where both
    columns have a value. Values are clipped to their bounds, then rounded to 1 / 65,536 of the
    width. Alone, or with `corr` and `slope` of the same columns and `count` in one `aggregate`, it
    costs what one count costs.

    Parameters
    ----------
    x, y
        Two columns of numbers.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
        As in `mean`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"miles": [1.0, 3.0, 5.0, 7.0], "fare": [5.0, 11.0, 13.0, 19.0]})
    >>> query = cov("miles", "fare", bounds={"miles": (0, 10), "fare": (0, 50)})
    >>> released = dpf.release(trips, query, epsilon=1e9)  # hardly any noise
    >>> released["cov"].round(2).tolist()
    [11.0]
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    return _of_pair("cov", (x, y), by, rows, bounds)


@public_call
def corr(
    x: Hashable, y: Hashable, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None, sampling: bool = False,
) -> AggregatePart:  # fmt: skip
    """Describe the correlation of two columns of numbers per group: Pearson's, in [-1, 1].

    Parameters
    ----------
    x, y, by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
        As in `cov`.
    sampling
        Whether to measure fourth moments, too, for `interval(sampling=True)`: how far off the
        correlation of the sampled population may be. Errors of the noise are then about a quarter
        larger.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> corr("miles", "fare", by="zone").words
    'correlation of miles and fare by zone'
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    return _of_pair("corr", (x, y), by, rows, bounds, sampling=sampling)


@public_call
def slope(
    x: Hashable, y: Hashable, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None, sampling: bool = False,
) -> AggregatePart:  # fmt: skip
    """Describe the slope of the line of least squares that gives y for x, per group.

    It is `cov(x, y) / var(x)`, in units of y for a unit of x.

    Parameters
    ----------
    x, y, by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
        As in `cov`.
    sampling
        As in `corr`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> slope("miles", "fare", by="zone").words
    'slope of fare on miles by zone'
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    return _of_pair("slope", (x, y), by, rows, bounds, sampling=sampling)


@public_call
def count(
    by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, weights: Hashable = None,
) -> AggregatePart:  # fmt: skip
    """Describe the number of rows per group.

    Parameters
    ----------
    by
        Column or list of columns to group by; `None`: one group of all rows.
    weights
        Column of survey weights w, with declared bounds (0, W): a row counts for w in place of 1,
        and the count is the weighted total, the sum of w. Weights are clipped to their bounds; a
        missing one counts for nothing. Noise is W times that of a count.
    where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        See `dpframe.options.ChosenRows`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> count(by="zone", where="fare > 0").by
    ('zone',)
    >>> count(by="region", weights="w").words
    'weighted total (weights w) by region'
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups, weights = reading.groups_of(by, rows), reading.weights_of(weights)
    subject = "count" if weights is None else weighted_words("total", weights)
    outputs = (OutputSpec("count", "count", weights=weights),)
    return AggregatePart(**groups, outputs=outputs, subject=subject)


@public_call
def rate(
    condition: str, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, weights: Hashable = None, missing: Literal[False] | None = None,
) -> AggregatePart:  # fmt: skip
    """Describe the share of the rows per group that satisfy a condition.

    With A the number of rows that satisfy it and C the number of those that do not, it is `A / (A +
    C)`, in [0, 1]. A row in which a column of the condition is missing counts in neither, unless
    `missing=False`. A row moves one of the two by 1, so both together cost one count.

    Parameters
    ----------
    condition
        A row-wise condition, for instance `"dep_delay > 15"`.
    missing
        `False`: rows that something missing keeps from meeting the condition count as not meeting
        it, for columns that are ticked or blank. `None`: they are left out.
    weights
        As in `count`: A and C are the weighted totals of these rows.
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups, met = reading.groups_of(by, rows), Condition.parse(condition, "condition")
    weights = reading.weights_of(weights)
    if missing is not None and missing is not False:
        rule = "must be False, so that a missing value counts as not met, or None, to leave it out"
        raise QueryError.about("missing", rule, missing)
    alone = compared_with_itself(met)
    if missing is None and alone is not None:
        rule = f"compares {quote(alone)} with itself, and rows where it is missing are left out:"
        reason = f"condition {rule} the rate says nothing."
        remedy = "For the share of rows that have a value, add missing=False."
        raise QueryError(f"{reason} {remedy}", parameter="condition", label=alone)
    fails = missing is False
    share = OutputSpec("rate", "rate", condition=met, blanks_fail=fails, weights=weights)
    subject = f"rate of {met.text}{', missing as not met' * fails}"
    return AggregatePart(**groups, outputs=(share,), subject=weighted_words(subject, weights))


@public_call
def units(
    by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None,
) -> Query:  # fmt: skip
    """Describe the number of distinct privacy units per group.

    A unit counts once in a group, however many rows it has there; `max_rows` and
    `max_rows_per_group` drop no row. It counts in at most `g` groups, the smallest of `max_groups`,
    `max_rows` and the number of groups; if it has more, in a uniformly random choice. One unit more
    or fewer moves at most g counts by 1, one replaced at most `min(2 g, number of groups)`. Without
    a privacy unit, every row is one.

    Parameters
    ----------
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups = reading.groups_of(by, rows)
    if max_rows_per_group is not None:
        rule = "changes nothing for units, which count once in a group, whatever their rows"
        remedy = "Leave it out; max_groups= says in how many groups a unit counts."
        raise QueryError.about("max_rows_per_group", rule, max_rows_per_group, remedy)
    outputs = (OutputSpec("units", "count"),)
    return Query(**groups, outputs=outputs, subject="units", counts_units=True)


_COEFFICIENTS: tuple[StatisticName, ...] = (
    "coefficient 1",
    "coefficient 2",
    "coefficient 3",
    "coefficient 4",
    "coefficient 5",
)
_INTERCEPT, _FIT = "intercept", "r_squared"


@public_call
def regression(
    y: Hashable, x: Columns, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None,
) -> Query:  # fmt: skip
    """Describe the regression of a column on up to five others per group, by least squares.

    It gives columns `intercept`, one for each covariate, and `r_squared`, over the rows where all
    columns have a value. All are read off the same moments. They are missing where noise may hide
    that covariates vary on their own; `interval` then gives all that is possible.

    Parameters
    ----------
    y
        The column to explain.
    x
        Covariate, or list of up to five.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight, other
        As in `cov`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"miles": [1.0, 3.0, 5.0, 7.0], "fare": [5.0, 11.0, 13.0, 19.0]})
    >>> query = regression("fare", "miles", bounds={"miles": (0, 10), "fare": (0, 50)})
    >>> released = dpf.release(trips, query, epsilon=1e9)  # hardly any noise
    >>> released.round(2).iloc[0].tolist()
    [3.2, 2.2, 0.97]
    """
    check_column("y", y)
    covariates = reading.labels_of("x", x)
    if not 1 <= len(covariates) <= MOST_COVARIATES:
        raise QueryError.about("x", f"must name 1 to {MOST_COVARIATES} columns", x)
    if y in covariates:
        raise QueryError.about("x", "must not name y, which it is to explain", x)
    taken = [label for label in covariates if label in (_INTERCEPT, _FIT)]
    if taken:
        rule = "must not name a column as the regression names its own"
        raise QueryError.about("x", rule, taken[0], "Rename the column of the frame.")
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    labels = (*covariates, y)
    groups, by_column = reading.groups_of(by, rows), reading.bounds_of(labels, bounds)
    first, *others = labels
    named: list[tuple[Hashable, StatisticName]] = [
        (_INTERCEPT, "intercept"),
        *zip(covariates, _COEFFICIENTS, strict=False),
        (_FIT, "r_squared"),
    ]
    outputs = (
        OutputSpec(name, statistic, first, bounds=by_column, others=tuple(others))
        for name, statistic in named
    )
    return Query(**groups, outputs=tuple(outputs), subject=OfRegression.words(labels))
