"""What `.dp` releases of the distribution of a column: ranges, quantiles and medians."""

from collections.abc import Hashable
from typing import Unpack

import pandas as pd

from dpframe.accessors.options import CallOptions, caps_of
from dpframe.calls import with_keywords_of_methods
from dpframe.doors.options import ReleaseOptions
from dpframe.doors.release import release
from dpframe.engines import Frame
from dpframe.errors import DeclarationError
from dpframe.queries import asking
from dpframe.queries.kinds import By, GivenBounds, Keys, Query
from dpframe.queries.quantiles import Quantile, Quantiles
from dpframe.results.certificate import ATTRIBUTE

__all__ = ["RangesAccessor"]

_MEDIAN = 0.5


@with_keywords_of_methods(release)
class RangesAccessor:
    """Releases of the distribution of a column."""

    _frame: Frame

    def _quantiles(self, query: Quantile, spend: ReleaseOptions) -> pd.DataFrame:
        """Release quantiles; of a release, say how they are read off."""
        if isinstance(self._frame, pd.DataFrame) and ATTRIBUTE in self._frame.attrs:
            raise DeclarationError(
                "this frame was released, and quantiles are read off a release of ranges for "
                "nothing: .dp.quantiles(q), as in .dp.quantiles([0.25, 0.5, 0.75])."
            )
        return self._released(query, spend)

    def _released(self, query: Query, spend: ReleaseOptions) -> pd.DataFrame:
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
        query = asking.ranges(column, bins, by, where=where, keys=keys, bounds=bounds, **caps)
        return self._released(query, spend)

    def quantile(
        self,
        column: Hashable,
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

        They are read off a release of ranges, or selected with `mechanism="select"`.
        """
        query = asking.quantile(
            column,
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
        return self._quantiles(query, spend)

    def median(
        self,
        column: Hashable,
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
        query = asking.quantile(
            column,
            _MEDIAN,
            by,
            bins=bins,
            where=where,
            keys=keys,
            bounds=bounds,
            level=level,
            simultaneous=simultaneous,
            **caps_of(spend),
        )
        return self._quantiles(query, spend)
