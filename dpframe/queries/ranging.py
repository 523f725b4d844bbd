"""Numbers of rows in ranges of a column, and what is read off them: queries as frozen values."""

from collections.abc import Hashable
from typing import Unpack

from dpframe.calls import with_keywords
from dpframe.queries.binned import Ranges, check_range_bins
from dpframe.queries.kinds import By
from dpframe.queries.reading import ColumnOptions, binned_groups_of, bounds_of, limits_of


@with_keywords
def ranges(
    column: Hashable, bins: object = None, by: By = None, **options: Unpack[ColumnOptions]
) -> Ranges:
    """Describe the number of rows in ranges of a bounded column, by group.

    What is released is one number per group and bin, as of `histogram`, measured so that sums over
    adjacent bins are accurate: with B bins, the variance of a sum grows as `log(B)^2` or `log(B)^3`
    and not as the number of bins in it. Numbers are not rounded, so that they add up. Quantiles and
    ranges are read off the release at no further cost; see `quantiles` and `between`.

    Parameters
    ----------
    column
        Column whose values fall into the bins. Values beyond the first and the last edge count in
        the first and the last bin; rows where it is missing are left out.
    bins
        How many bins of equal width there are between the bounds of the column, 1,024 by default.
        Where it is declared to hold integers, and no more than that, there is one for each: k is in
        `(k - 1, k]`. Or increasing finite edges, of bins closed on the right, or a
        `pandas.IntervalIndex` without gaps, that reach from bound to bound where bounds are
        declared.
    by, where, keys, max_rows, max_groups, max_rows_per_group
        As in `count`. Bins are no groups for the caps: they say how many rows of a unit count in
        each group of `by`, whatever their values.
    bounds
        `(lower, upper)`, where they are not declared, or in their place.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Notes
    -----
    Bins are the leaves of a tree. With Gaussian noise, contrasts of integers of the children of
    every node are measured, which is cheaper than their counts; with Laplace noise the counts of
    some levels, which are reconciled by least squares (Hay, Rastogi, Miklau and Suciu 2010).

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"fare": [9.5, 20.0, 7.5, 30.0]})
    >>> query = ranges("fare", 4, bounds=(0, 40))
    >>> released = dpf.release(trips, query, epsilon=1e6)  # hardly any noise
    >>> [(str(bin), round(count)) for bin, count in released["count"].items()]
    [('(0.0, 10.0]', 2), ('(10.0, 20.0]', 1), ('(20.0, 30.0]', 1), ('(30.0, 40.0]', 0)]
    """
    return Ranges(
        *binned_groups_of(column, by, options),
        column=column,
        bins=check_range_bins(column, bins),
        bounds=bounds_of((column,), options["bounds"]),
        limits=limits_of(options),
    )
