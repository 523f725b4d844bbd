"""All statistics, by name: the only list of them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from dpframe.statistics.form import Column, Statistic
from dpframe.statistics.pairs import Correlation, Covariance, Slope
from dpframe.statistics.values import Count, Deviation, Mean, Quantile, Rate, Sum, Variance

StatisticName: TypeAlias = Literal[
    "count", "sum", "mean", "rate", "var", "std", "cov", "corr", "slope", "quantile"
]
"""What an output says about its rows: their number, something of their values, or a share."""

STATISTICS: Mapping[StatisticName, type[Statistic]] = MappingProxyType(
    {
        "count": Count,
        "sum": Sum,
        "mean": Mean,
        "rate": Rate,
        "var": Variance,
        "std": Deviation,
        "cov": Covariance,
        "corr": Correlation,
        "slope": Slope,
        "quantile": Quantile,
    }
)


def statistic_of(
    name: StatisticName, bounds: Iterable[tuple[float, float]] = (), *, sampled: bool = False
) -> Statistic:
    """Return a statistic of columns with some bounds.

    Examples
    --------
    >>> statistic_of("var", [(0, 10)]).span
    (0.0, 25.0)
    """
    return STATISTICS[name](tuple(Column(*ends) for ends in bounds), sampled)
