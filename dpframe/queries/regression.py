"""Queries for regressions: all numbers of a fit by least squares, measured together."""

from collections.abc import Hashable, Mapping
from dataclasses import field

from dpframe.arguments import is_label
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.options import By, ChosenRows, Columns, GivenBounds, Keys, Other
from dpframe.public import public_call
from dpframe.queries import reading
from dpframe.queries.query import OutputSpec, Query
from dpframe.statistics.regression import MOST_COVARIATES, OfRegression
from dpframe.statistics.table import StatisticName

_COEFFICIENTS: tuple[StatisticName, ...] = (
    "coefficient 1",
    "coefficient 2",
    "coefficient 3",
    "coefficient 4",
    "coefficient 5",
)
_TAKEN = ("intercept", "r_squared")


@frozen(eq=False)
class Regression(Query):
    """A regression per group, over the rows where all of its columns are present."""

    covariates: tuple[Hashable, ...] = field(kw_only=True)
    response: Hashable = field(kw_only=True)
    bounds: Mapping[Hashable, object] = field(default_factory=dict, kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """The intercept, a coefficient for each covariate, and R^2."""
        coefficients = zip(self.covariates, _COEFFICIENTS, strict=False)
        intercept, fit = _TAKEN
        named: list[tuple[Hashable, StatisticName]] = [
            (intercept, "intercept"),
            *coefficients,
            (fit, "r_squared"),
        ]
        first, *others = (*self.covariates, self.response)
        return tuple(
            OutputSpec(name, statistic, first, bounds=self.bounds, others=tuple(others))
            for name, statistic in named
        )

    @property
    def subject(self) -> str:
        """What is computed."""
        return OfRegression.words((*self.covariates, self.response))


@public_call
def regression(
    y: Hashable, x: Columns, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, bounds: GivenBounds = None,
) -> Regression:  # fmt: skip
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
    if not is_label(y):
        raise QueryError.about("y", "must be the label of one column", y)
    covariates = reading.labels_of("x", x)
    if not 1 <= len(covariates) <= MOST_COVARIATES:
        raise QueryError.about("x", f"must name 1 to {MOST_COVARIATES} columns", x)
    if y in covariates:
        raise QueryError.about("x", "must not name y, which it is to explain", x)
    taken = [label for label in covariates if label in _TAKEN]
    if taken:
        rule = "must not name a column as the regression names its own"
        raise QueryError.about("x", rule, taken[0], "Rename the column of the frame.")
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    labels = (*covariates, y)
    groups, by_column = reading.groups_of(by, rows), reading.bounds_of(labels, bounds)
    return Regression(**groups, covariates=covariates, response=y, bounds=by_column)
