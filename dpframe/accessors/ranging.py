"""What `.dp` releases of the distribution of a column: ranges, quantiles and medians."""

from collections.abc import Hashable, Mapping
from typing import Any, Unpack, cast

import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.calls import with_keywords_of_methods
from dpframe.certificates.verify import ATTRIBUTE
from dpframe.engines import Frame
from dpframe.errors import DeclarationError
from dpframe.operations.preview import Wanted
from dpframe.operations.release import ReleaseOptions, SpendOptions, release
from dpframe.queries.kinds import By, GivenBounds, Keys, Query
from dpframe.queries.quantiles import Quantiles, quantile
from dpframe.queries.ranging import ranges
from dpframe.queries.reading import CapOptions
from dpframe.steps.quantiles import quantiles


class PreviewOptions(SpendOptions, total=False):
    """What to show of a release that is not made; see `dpframe.operations.preview`."""

    compare: bool
    std_error: Wanted | None
    half_width: Wanted | None
    rows: float | None


class CallOptions(ReleaseOptions, CapOptions, total=False):
    """Options of a release, and caps on one unit; see `dpframe.count`."""


def caps_of(options: CallOptions) -> CapOptions:
    """Take the caps out of the options of a call."""
    return {name: options.pop(name) for name in CapOptions.__annotations__ if name in options}  # type: ignore[misc, return-value]


_MEDIAN = 0.5


@with_keywords_of_methods(release)
class RangesAccessor:
    """Releases of the distribution of a column."""

    _frame: Frame

    @property
    def _is_released(self) -> bool:
        return isinstance(self._frame, pd.DataFrame) and ATTRIBUTE in self._frame.attrs

    def _read_off(
        self, column: object, q: Quantiles, how: dict[str, Any], given: Mapping[str, object]
    ) -> pd.DataFrame:
        """Read quantiles off a released distribution: the first argument is q, or its column."""
        named = is_one_of(column, self._frame.index.names[-1:])
        if any(value is not None for value in given.values()):
            raise DeclarationError(
                "this frame was released: quantiles are read off a release of ranges for nothing, "
                "and take no groups and no amount, as in .dp.quantile([0.25, 0.5, 0.75])."
            )
        wanted = q if named or column is None else cast(Quantiles, column)
        return quantiles(self._frame, wanted, **how)

    def _release(self, query: Query, spend: ReleaseOptions) -> pd.DataFrame:
        return release(self._frame, query, **spend)

    def ranges(
        self,
        column: Hashable,
        bins: object = None,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        bounds: GivenBounds = None,
        **spend: Unpack[CallOptions],
    ) -> pd.DataFrame:
        """Release numbers of rows in ranges; see `dpframe.ranges` and `dpframe.release`."""
        caps = caps_of(spend)
        query = ranges(column, bins, by, where=where, keys=keys, bounds=bounds, **caps)
        return self._release(query, spend)

    def quantile(
        self,
        column: Hashable | list[float] = None,
        q: Quantiles = (0.25, 0.5, 0.75),
        by: By = None,
        *,
        bins: object = None,
        where: str | None = None,
        keys: Keys = None,
        bounds: GivenBounds = None,
        level: float = 0.95,
        simultaneous: bool = False,
        **spend: Unpack[CallOptions],
    ) -> pd.DataFrame:
        """Release quantiles of a column per group; see `dpframe.quantile` and `dpframe.release`.

        They are read off a release of ranges, or selected with `mechanism="select"`. Of a frame
        that is a release of ranges, `.dp.quantile(q)` is `.dp.quantiles(q)`.
        """
        if self._is_released:
            groups = {"by": by, "bins": bins, "where": where, "keys": keys, "bounds": bounds}
            how = {"level": level, "simultaneous": simultaneous}
            return self._read_off(column, q, how, {**groups, **spend})
        query = quantile(
            cast(Hashable, column),  # a list is refused
            q,
            by,
            bins=bins,
            where=where,
            keys=keys,
            bounds=bounds,
            level=level,
            simultaneous=simultaneous,
            **caps_of(spend),
        )
        return self._release(query, spend)

    def median(
        self,
        column: Hashable = None,
        by: By = None,
        *,
        bins: object = None,
        where: str | None = None,
        keys: Keys = None,
        bounds: GivenBounds = None,
        level: float = 0.95,
        simultaneous: bool = False,
        **spend: Unpack[CallOptions],
    ) -> pd.DataFrame:
        """Release medians of a column per group; see `dpframe.quantile` and `dpframe.release`."""
        return self.quantile(
            column,
            _MEDIAN,
            by,
            bins=bins,
            where=where,
            keys=keys,
            bounds=bounds,
            level=level,
            simultaneous=simultaneous,
            **spend,
        )
