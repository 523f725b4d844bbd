"""Queries for how two bounded columns go together: covariance, correlation and slope."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dpframe.arguments import check_flag, is_label
from dpframe.errors import QueryError
from dpframe.options import By, ChosenRows, GivenBounds, Keys
from dpframe.public import public_call
from dpframe.queries import reading
from dpframe.queries.query import OutputSpec, Query
from dpframe.statistics.table import STATISTICS, StatisticName


@dataclass(frozen=True, eq=False)
class _OfPair(Query):
    """One statistic of two bounded columns."""

    _statistic: ClassVar[StatisticName]

    x: Hashable = None
    y: Hashable = None
    bounds: Mapping[Hashable, object] = field(default_factory=dict)
    sampling: bool = False

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One output, named after what it is."""
        name = self._statistic
        spec = OutputSpec(name, name, self.x, bounds=self.bounds)
        return (replace(spec, other=self.y, sampled=self.sampling),)

    @property
    def subject(self) -> str:
        """What is computed."""
        words = STATISTICS[self._statistic].words((self.x, self.y))
        return words + ", with what its sampling error takes" * self.sampling


@dataclass(frozen=True, eq=False)
class Covariance(_OfPair):
    """The covariance of two columns per group, over the rows where both have a value."""

    _statistic = "cov"


@dataclass(frozen=True, eq=False)
class Correlation(_OfPair):
    """The correlation of two columns per group, as `Covariance`."""

    _statistic = "corr"


@dataclass(frozen=True, eq=False)
class Slope(_OfPair):
    """The slope of the second column on the first one per group, as `Covariance`."""

    _statistic = "slope"


def _of_pair(
    x: Hashable, y: Hashable, by: By, rows: ChosenRows, bounds: GivenBounds
) -> tuple[*reading.Groups, Hashable, Hashable, Mapping[Hashable, object]]:
    """Read groups, the two columns and their bounds."""
    for name, label in (("x", x), ("y", y)):
        if not is_label(label):
            raise QueryError.about(name, "must be the label of one column", label)
    if x == y:
        raise QueryError.about("y", "must be another column than x", y)
    groups = reading.groups_of(by, rows)
    return (*groups, x, y, reading.bounds_of((x, y), bounds))


@public_call
def cov(
    x: Hashable, y: Hashable, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    bounds: GivenBounds = None,
) -> Covariance:  # fmt: skip
    """Describe the covariance of two columns of numbers per group.

    It is the population covariance, `sum (x - m_x) (y - m_y) / n`, over the n rows where both
    columns have a value. Values are clipped to their bounds, then rounded to 1 / 65,536 of the
    width. Alone, or with `corr` and `slope` of the same columns and `count` in one `aggregate`, it
    costs what one count costs.

    Parameters
    ----------
    x, y
        Two columns of numbers.
    by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight)
    pair = _of_pair(x, y, by, rows, bounds)
    return Covariance(*pair, **reading.shared_of(rows))


@public_call
def corr(
    x: Hashable, y: Hashable, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    bounds: GivenBounds = None, sampling: bool = False,
) -> Correlation:  # fmt: skip
    """Describe the correlation of two columns of numbers per group: Pearson's, in [-1, 1].

    Parameters
    ----------
    x, y, by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight)
    pair = _of_pair(x, y, by, rows, bounds)
    check_flag("sampling", sampling)
    return Correlation(*pair, bool(sampling), **reading.shared_of(rows))


@public_call
def slope(
    x: Hashable, y: Hashable, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    bounds: GivenBounds = None, sampling: bool = False,
) -> Slope:  # fmt: skip
    """Describe the slope of the line of least squares that gives y for x, per group.

    It is `cov(x, y) / var(x)`, in units of y for a unit of x.

    Parameters
    ----------
    x, y, by, where, keys, bounds, max_rows, max_groups, max_rows_per_group, weight
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
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight)
    pair = _of_pair(x, y, by, rows, bounds)
    check_flag("sampling", sampling)
    return Slope(*pair, bool(sampling), **reading.shared_of(rows))
