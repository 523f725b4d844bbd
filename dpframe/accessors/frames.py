"""The `.dp` accessor: one-line delegations to public functions, without state of its own."""

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Any

import pandas as pd

from dpframe.accessors.private import PrivateAccessor
from dpframe.accessors.showing import no_dp_of_series
from dpframe.accuracy import intervals
from dpframe.accuracy.combine import Weights, combine
from dpframe.accuracy.quotients import percent, ratio
from dpframe.arguments import check_place
from dpframe.calls import with_keywords_of_methods
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.verify import certificate_of
from dpframe.denoise.methods import DenoiserName
from dpframe.files.csv import write_csv
from dpframe.files.pandera import schema_of
from dpframe.files.parquet import write_parquet
from dpframe.ledger.ledger import Ledger
from dpframe.plotting import plot
from dpframe.plotting.map import Coords, plot_map
from dpframe.queries.quantiles import Quantiles
from dpframe.reporting.report import report
from dpframe.steps import head, rename, round, select, sort, suppress, unstack, with_intervals
from dpframe.steps.denoise import denoised, denoising_report
from dpframe.steps.denoise_checks import Across
from dpframe.steps.quantiles import between, quantiles
from dpframe.steps.replay import replay
from dpframe.steps.suggest_caps import best


@pd.api.extensions.register_series_accessor("dp")
class SeriesAccessor:
    """No accessor: `.dp` of a series says what to ask of its frame.

    Raises
    ------
    NoSuchNameError
        Always. It is an `AttributeError`, so that `hasattr` and `dir` show no `.dp` of a series.
    """

    def __init__(self, series: pd.Series) -> None:
        raise no_dp_of_series(series)


@pd.api.extensions.register_dataframe_accessor("dp")
@with_keywords_of_methods
class DPAccessor(PrivateAccessor):
    """Differentially private releases of a frame, and what can be done with a released frame.

    Parameters
    ----------
    frame
        A private frame, or one that was released.
    """

    @property
    def certificate(self) -> Certificate:
        """The certificate that this released frame carries; `dpframe.verify` checks it."""
        return certificate_of(self._frame)

    @property
    def std_error(self) -> pd.DataFrame:
        """Standard error of every released cell; see `dpframe.std_error`."""
        return intervals.std_error(self._frame)

    @property
    def covariance(self) -> pd.DataFrame:
        """Covariance of the columns within a row; see `dpframe.covariance`."""
        return intervals.covariance(self._frame)

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, sampling: bool = False
    ) -> pd.DataFrame:
        """Return confidence intervals of every released cell; see `dpframe.interval`."""
        return intervals.interval(self._frame, level, simultaneous=simultaneous, sampling=sampling)

    def denoise(
        self,
        method: DenoiserName = "auto",
        *,
        columns: Hashable | list[Hashable] | None = None,
        graph: object = None,
        across: Across | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Add denoised columns beside the released ones; see `dpframe.denoised`."""
        return denoised(self._frame, method, columns=columns, graph=graph, across=across, **options)

    @property
    def denoising(self) -> pd.DataFrame:
        """What the denoised columns were made with; see `dpframe.denoising_report`."""
        return denoising_report(self._frame)

    @property
    def best(self) -> dict[str, Any]:
        """What a suggestion found best, by keyword; see `dpframe.best`."""
        return best(self._frame)

    def combine(self, weights: Weights, level: float = 0.95) -> pd.DataFrame:
        """Return a linear combination of released cells with its error; see `dpframe.combine`."""
        return combine(self._frame, weights, level)

    def ratio(
        self, numerator: Hashable, denominator: Hashable, level: float = 0.95
    ) -> pd.DataFrame:
        """Return the quotient of two released columns with its error; see `dpframe.ratio`."""
        return ratio(self._frame, numerator, denominator, level)

    def percent(
        self,
        column: Hashable | None = None,
        level: float = 0.95,
        *,
        by: Hashable | list[Hashable] | None = None,
    ) -> pd.DataFrame:
        """Return percentages of the total with their errors; see `dpframe.percent`."""
        return percent(self._frame, column, level, by=by)

    def quantiles(
        self, q: Quantiles = (0.25, 0.5, 0.75), level: float = 0.95, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Read quantiles off a released distribution; see `dpframe.quantiles`."""
        return quantiles(self._frame, q, level, simultaneous=simultaneous)

    def between(self, low: object = None, high: object = None, level: float = 0.95) -> pd.DataFrame:
        """Return the number of rows with values in a range; see `dpframe.between`."""
        return between(self._frame, low, high, level)

    def with_intervals(
        self, level: float = 0.95, *, simultaneous: bool = False, sampling: bool = False
    ) -> pd.DataFrame:
        """Add intervals as columns, and keep the certificate; see `dpframe.with_intervals`."""
        flags = {"simultaneous": simultaneous, "sampling": sampling}
        return with_intervals.with_intervals(self._frame, level, **flags)

    def with_percent(
        self,
        column: Hashable | None = None,
        level: float = 0.95,
        *,
        by: Hashable | list[Hashable] | None = None,
    ) -> pd.DataFrame:
        """Add percentages as columns, and keep the certificate; see `dpframe.with_percent`."""
        return with_intervals.with_percent(self._frame, column, level, by=by)

    def report(
        self,
        path: str | PathLike[str],
        *,
        ledger: Ledger | None = None,
        title: str = "Release report",
        level: float = 0.95,
        percent: bool = False,
    ) -> None:
        """Write one page to decide by whether to publish the release; see `dpframe.report`."""
        place = check_place(path, "a page; dpf.report(frame) returns one")
        report(self._frame, ledger=ledger, title=title, path=place, level=level, percent=percent)

    def sort_values(
        self, by: Hashable | list[Hashable], *, ascending: bool | list[bool] = True
    ) -> pd.DataFrame:
        """Sort the rows of the release; see `dpframe.sort_values`."""
        return sort.sort_values(self._frame, by, ascending=ascending)

    def head(self, n: int = 5) -> pd.DataFrame:
        """Keep the first rows of the release; see `dpframe.head`."""
        return head.head(self._frame, n)

    def tail(self, n: int = 5) -> pd.DataFrame:
        """Keep the last rows of the release; see `dpframe.tail`."""
        return head.tail(self._frame, n)

    def select(
        self,
        where: str | None = None,
        *,
        keys: Mapping[Hashable, Sequence[object]] | Sequence[object] | None = None,
        columns: Hashable | list[Hashable] | None = None,
    ) -> pd.DataFrame:
        """Keep some rows and columns of the release; see `dpframe.select`."""
        return select.select(self._frame, where, keys=keys, columns=columns)

    def round(self, decimals: int | Mapping[Hashable, int] = 0) -> pd.DataFrame:
        """Round the release, and its intervals to the outside; see `dpframe.round`."""
        return round.round(self._frame, decimals)

    def suppress(
        self,
        *,
        below: float | None = None,
        relative_error: float | None = None,
        by: Hashable | None = None,
    ) -> pd.DataFrame:
        """Make cells missing that say too little; see `dpframe.suppress`."""
        return suppress.suppress(self._frame, below=below, relative_error=relative_error, by=by)

    def rename(
        self,
        columns: Mapping[Hashable, str] | None = None,
        *,
        levels: Mapping[Hashable, str] | None = None,
    ) -> pd.DataFrame:
        """Rename columns and levels of the release; see `dpframe.rename`."""
        return rename.rename(self._frame, columns, levels=levels)

    def unstack(self, level: Hashable = -1, *, column: Hashable | None = None) -> pd.DataFrame:
        """Make columns of the keys of a level; see `dpframe.unstack`."""
        return unstack.unstack(self._frame, level, column=column)

    def replay(self, released: pd.DataFrame) -> pd.DataFrame:
        """Do the steps again that lead from a release to this table; see `dpframe.replay`."""
        return replay(self._frame, released)

    def write_csv(self, path: str | PathLike[str]) -> None:
        """Write the release to a CSV file, its certificate beside it; see `dpframe.write_csv`."""
        write_csv(self._frame, path)

    def write_parquet(self, path: str | PathLike[str]) -> None:
        """Write the release to a Parquet file; see `dpframe.write_parquet`."""
        write_parquet(self._frame, path)

    def schema(self) -> Any:
        """Return a pandera schema that the release satisfies; see `dpframe.schema_of`."""
        return schema_of(self._frame)

    def plot(
        self,
        *,
        column: Hashable | list[Hashable] | None = None,
        kind: plot.Kind = "auto",
        level: float = 0.95,
        per: Hashable | None = None,
        percent: bool = False,
        subplots: bool = True,
        panels: bool | None = None,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
        color: Any = None,
        legend: bool = True,
    ) -> Any:
        """Draw the release with error bars; see `dpframe.plot`."""
        given = {name: value for name, value in locals().items() if name != "self"}
        return plot.plot(self._frame, **given)

    def plot_map(
        self,
        coords: Coords,
        *,
        column: Hashable | None = None,
        edges: pd.DataFrame | None = None,
        ax: Any = None,
        denoised: bool | None = None,
    ) -> Any:
        """Draw the release on a map; see `dpframe.plot_map`."""
        return plot_map(self._frame, coords, column=column, edges=edges, ax=ax, denoised=denoised)
