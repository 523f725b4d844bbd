"""What `.dp` releases of the distribution of a column: ranges, quantiles and medians."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Unpack, cast

import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.calls import with_keywords_of_methods
from dpframe.certificates.verify import ATTRIBUTE
from dpframe.engines import Frame
from dpframe.errors import DeclarationError
from dpframe.operations.charging import options_of
from dpframe.operations.release import ReleaseOptions, release
from dpframe.queries.constructors import SumOptions
from dpframe.queries.kinds import By, Query
from dpframe.queries.quantiles import IntervalOptions, QuantileOptions, Quantiles, quantile
from dpframe.queries.ranging import ranges
from dpframe.queries.reading import ColumnOptions, CountOptions
from dpframe.steps.quantiles import quantiles


class CountCall(CountOptions, ReleaseOptions, total=False):
    """Which rows to count, and options of the release; see `dpframe.count`."""


class ColumnCall(ColumnOptions, ReleaseOptions, total=False):
    """Which values to look at, and options of the release; see `dpframe.mean`."""


class SumCall(SumOptions, ReleaseOptions, total=False):
    """What to add up, and options of the release; see `dpframe.sum`."""


class QuantileCall(QuantileOptions, ReleaseOptions, total=False):
    """What to read quantiles off, and options of the release; see `dpframe.quantile`."""


_MEDIAN = 0.5


@with_keywords_of_methods
class RangesAccessor:
    """Releases of the distribution of a column."""

    _frame: Frame

    @property
    def _is_released(self) -> bool:
        return isinstance(self._frame, pd.DataFrame) and ATTRIBUTE in self._frame.attrs

    def _read_off(
        self, column: object, q: Quantiles, by: By, options: QuantileCall
    ) -> pd.DataFrame:
        """Read quantiles off a released distribution: the first argument is q, or its column."""
        named = is_one_of(column, self._frame.index.names[-1:])
        how = options_of(IntervalOptions, options)
        others = [value for name, value in options.items() if name not in how]
        if any(value is not None for value in (by, *others)):
            raise DeclarationError(
                "this frame was released: quantiles are read off a release of ranges for nothing, "
                "and take no groups and no amount, as in .dp.quantile([0.25, 0.5, 0.75])."
            )
        wanted = q if named or column is None else cast(Quantiles, column)
        return quantiles(self._frame, wanted, **how)

    def _ask(
        self, make: Callable[..., Query], options: Mapping[str, Any], *described: object
    ) -> pd.DataFrame:
        """Release the query that a call describes."""
        spend = options_of(ReleaseOptions, options)
        own = {name: value for name, value in options.items() if name not in spend}
        return release(self._frame, make(*described, **own), **spend)

    def ranges(
        self, column: Hashable, bins: object = None, by: By = None, **options: Unpack[ColumnCall]
    ) -> pd.DataFrame:
        """Release numbers of rows in ranges; see `dpframe.ranges` and `dpframe.release`."""
        return self._ask(ranges, options, column, bins, by)

    def quantile(
        self,
        column: Hashable | list[float] = None,
        q: Quantiles = (0.25, 0.5, 0.75),
        by: By = None,
        **options: Unpack[QuantileCall],
    ) -> pd.DataFrame:
        """Release quantiles of a column per group; see `dpframe.quantile` and `dpframe.release`.

        They are read off a release of ranges, or selected with `mechanism="select"`. Of a frame
        that is a release of ranges, `.dp.quantile(q)` is `.dp.quantiles(q)`.
        """
        if self._is_released:
            return self._read_off(column, q, by, options)
        return self._ask(quantile, options, column, q, by)

    def median(
        self, column: Hashable = None, by: By = None, **options: Unpack[QuantileCall]
    ) -> pd.DataFrame:
        """Release medians of a column per group; see `dpframe.quantile` and `dpframe.release`."""
        return self.quantile(column, _MEDIAN, by, **options)
