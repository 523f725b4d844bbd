"""All statistics, by name: the only list of them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from dpframe.statistics.form import ClippedColumn, Statistic
from dpframe.statistics.pairs import PairCorrelation, PairCovariance, PairSlope
from dpframe.statistics.regression import (
    FifthCoefficient,
    FirstCoefficient,
    FourthCoefficient,
    RegressionFit,
    RegressionIntercept,
    SecondCoefficient,
    ThirdCoefficient,
)
from dpframe.statistics.values import (
    ConditionRate,
    PopulationDeviation,
    PopulationVariance,
    RowCount,
    SelectedQuantile,
    ValueMean,
    ValueSum,
)

StatisticName: TypeAlias = Literal[
    "count", "sum", "mean", "rate", "var", "std", "cov", "corr", "slope", "quantile",
    "intercept", "coefficient 1", "coefficient 2", "coefficient 3", "coefficient 4",
    "coefficient 5", "r_squared",
]  # fmt: skip
"""What an output says about its rows: their number, something of their values, or a share."""

STATISTICS: Mapping[StatisticName, type[Statistic]] = MappingProxyType(
    {
        "count": RowCount,
        "sum": ValueSum,
        "mean": ValueMean,
        "rate": ConditionRate,
        "var": PopulationVariance,
        "std": PopulationDeviation,
        "cov": PairCovariance,
        "corr": PairCorrelation,
        "slope": PairSlope,
        "intercept": RegressionIntercept,
        "coefficient 1": FirstCoefficient,
        "coefficient 2": SecondCoefficient,
        "coefficient 3": ThirdCoefficient,
        "coefficient 4": FourthCoefficient,
        "coefficient 5": FifthCoefficient,
        "r_squared": RegressionFit,
        "quantile": SelectedQuantile,
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
    return STATISTICS[name](tuple(ClippedColumn(*ends) for ends in bounds), sampled)
