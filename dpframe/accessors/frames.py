"""The `.dp` accessor: one-line delegations to public functions, without state of its own."""

from collections.abc import Hashable, Mapping
from os import PathLike
from typing import Any, Literal, Never

import pandas as pd
from pandas.api.typing import DataFrameGroupBy, SeriesGroupBy

from dpframe.accessors.private import PrivateAccessor
from dpframe.accessors.showing import Grouped, no_dp_of_groups, no_dp_of_series
from dpframe.cells.record import certificate_of
from dpframe.certificates.certificate import Certificate
from dpframe.denoising.methods import DenoiserName
from dpframe.files.csv import write_csv
from dpframe.files.parquet import write_parquet
from dpframe.inference import intervals
from dpframe.inference.combine import Weights, combine
from dpframe.inference.independence import independence
from dpframe.ledger.ledger import Ledger
from dpframe.options import By
from dpframe.plotting import plot
from dpframe.plotting.map import Coords, plot_map
from dpframe.public import public_calls
from dpframe.reporting.report import report
from dpframe.steps import rename, round, suppress
from dpframe.steps.denoise import denoise
from dpframe.steps.denoise_checks import Across
from dpframe.steps.derive import (
    PER_100_000,
    Public,
    change,
    per,
    percent,
    ratio,
    relative,
    standardize,
    total,
)
from dpframe.steps.join import interval
from dpframe.steps.quantiles import between
from dpframe.steps.suggest_caps import best
from dpframe.steps.verify import publish


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


class GroupedAccessor:
    """No accessor: `.dp` of a grouped frame says what to ask of the frame.

    Raises
    ------
    NoSuchNameError
        Whatever is asked of it.
    """

    def __init__(self, grouped: Grouped) -> None:
        self._grouped = grouped

    def __getattr__(self, name: str) -> Never:
        """Say what to use in place of it."""
        raise no_dp_of_groups(name, self._grouped)

    def __repr__(self) -> str:
        """Say the same."""
        return str(no_dp_of_groups("count", self._grouped))


for kind in (DataFrameGroupBy, SeriesGroupBy):
    setattr(kind, "dp", property(GroupedAccessor))  # noqa: B010  # types do not know it


@pd.api.extensions.register_dataframe_accessor("dp")
@public_calls
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
        """Standard error of every released cell.

        For counts and sums it is the exact standard deviation of the noise, the same in all rows.
        For means it is the first-order error of the ratio, from the released number of rows.
        Denoised columns have none: their error depends on what is not known.

        Returns
        -------
        DataFrame
            The released rows and columns; in the units of the column, durations for times.

        Raises
        ------
        CertificateError
            If the frame is not what was released.

        Examples
        --------
        >>> import pandas as pd
        >>> import dpframe as dpf
        >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
        >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
        >>> released.dp.std_error["count"].round(3).tolist()
        [2.799, 2.799]
        """
        return intervals.std_error(self._frame)

    @property
    def covariance(self) -> pd.DataFrame:
        """Covariance of the columns within a row.

        Different rows are independent, except for blocks that all rows share, which the certificate
        names as `common_blocks`; `combine` takes them into account.

        It is `sum_b L_b(i) L_b(j)` for columns i and j, where `L_b` is the standard deviation that
        the noise of the measured block b gives a column, with its sign. For means it is that of
        the first-order error.

        Returns
        -------
        DataFrame
            One row per row and column of the release, one column per column. Columns of times count
            in seconds.

        Raises
        ------
        CertificateError
            If the frame is not what was released.

        Examples
        --------
        Correlated noise goes into several columns at once:

        >>> import pandas as pd
        >>> import dpframe as dpf
        >>> answers = pd.DataFrame({"tea": [True, False], "milk": [True, True]})
        >>> query = dpf.sum(["tea", "milk"], bounds=(0, 1))
        >>> both = dpf.release(answers, query, mu=0.5, mechanism="correlated")
        >>> both.dp.covariance.round(2)
                    tea  milk     n
          column
        0 tea     5.85  2.44  4.87
          milk    2.44  5.85  4.87
          n       4.87  4.87  9.74
        """
        return intervals.covariance(self._frame)

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, sampling: bool = False,
        chosen: Literal["keys"] | None = None, join: bool = False,
    ) -> pd.DataFrame:  # fmt: skip
        """Return confidence intervals of every released cell; see `dpframe.interval`.

        Example: `released.dp.interval(0.9, join=True)`.
        """
        flags = {"simultaneous": simultaneous, "sampling": sampling, "join": join}
        return interval(self._frame, level, chosen=chosen, **flags)

    def denoise(
        self, method: DenoiserName = "auto", *, columns: Hashable | list[Hashable] | None = None,
        graph: object = None, across: Across | None = None, **options: Any,
    ) -> pd.DataFrame:  # fmt: skip
        """Add denoised columns beside the released ones; see `dpframe.denoise`.

        Example: `released.dp.denoise()`.
        """
        return denoise(self._frame, method, columns=columns, graph=graph, across=across, **options)

    @property
    def best(self) -> dict[str, Any]:
        """The best value that a suggestion found, by keyword: give it to the later query.

        Raises
        ------
        CertificateError
            If the frame is no suggestion.
        QueryError
            If too few people are seen to tell.

        Examples
        --------
        >>> import pandas as pd
        >>> import dpframe as dpf
        >>> trips = pd.DataFrame({"rider": range(999), "zone": ["A", "A", "B"] * 333})
        >>> _ = trips.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit="rider", max_rows=9)
        >>> found = trips.dp.suggest_caps("zone", largest=1, epsilon=1)
        >>> found.dp.best, list(trips.dp.count("zone", **found.dp.best, epsilon=1).columns)
        ({'max_rows': 1}, ['count'])
        """
        return best(self._frame)

    def combine(
        self, weights: Weights, level: float = 0.95, *, sampling: bool = False
    ) -> pd.DataFrame:
        """Return a linear combination of released cells with its error; see `dpframe.combine`."""
        return combine(self._frame, weights, level, sampling=sampling)

    def total(
        self, by: By | Mapping[Hashable, Any] = None, level: float = 0.95, *,
        margins: bool = False, margins_name: Hashable = "All",
    ) -> pd.DataFrame:  # fmt: skip
        """Add rows up to fewer groups, with intervals; see `dpframe.total`."""
        return total(self._frame, by, level, margins=margins, margins_name=margins_name)

    def change(
        self, along: Hashable | pd.DataFrame, level: float = 0.95, *, percent: bool = False,
        lag: int = 1, sampling: bool = False,
    ) -> pd.DataFrame:  # fmt: skip
        """Return by how much rows differ from earlier ones; see `dpframe.change`."""
        return change(self._frame, along, level, percent=percent, lag=lag, sampling=sampling)

    def ratio(
        self, numerator: Hashable, denominator: Hashable, level: float = 0.95, *,
        sampling: bool = False,
    ) -> pd.DataFrame:  # fmt: skip
        """Add the quotient of two released columns; see `dpframe.ratio`."""
        return ratio(self._frame, numerator, denominator, level, sampling=sampling)

    def percent(
        self, column: Hashable | None = None, level: float = 0.95, *, by: By = None,
        of: float | pd.DataFrame | None = None, sampling: bool = False,
    ) -> pd.DataFrame:  # fmt: skip
        """Add percentages of the total, or of something else; see `dpframe.percent`."""
        return percent(self._frame, column, level, by=by, of=of, sampling=sampling)

    def per(
        self, population: Public, unit: float = PER_100_000, level: float = 0.95, *,
        column: Hashable | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """Add rates for so many members of a public population; see `dpframe.per`."""
        return per(self._frame, population, unit, level, column=column)

    def standardize(
        self, weights: Public, *, over: Hashable, population: Public, unit: float = PER_100_000,
        level: float = 0.95,
    ) -> pd.DataFrame:  # fmt: skip
        """Return directly standardized rates; see `dpframe.standardize`."""
        by = {"unit": unit, "level": level}
        return standardize(self._frame, weights, over=over, population=population, **by)

    def relative(
        self, along: Hashable, to: Hashable, level: float = 0.95, *, column: Hashable | None = None
    ) -> pd.DataFrame:
        """Add quotients of rows and the one with another key; see `dpframe.relative`."""
        return relative(self._frame, along, to, level, column=column)

    def independence(self, column: Hashable | None = None, level: float = 0.95) -> pd.DataFrame:
        """Test whether groupings of released counts are independent; see `dpframe.independence`."""
        return independence(self._frame, column, level)

    def between(self, low: object = None, high: object = None, level: float = 0.95) -> pd.DataFrame:
        """Return the number of rows with values in a range; see `dpframe.between`."""
        return between(self._frame, low, high, level)

    def report(
        self, path: str | PathLike[str] | None = None, *, ledger: Ledger | None = None,
        title: str = "Release report", level: float = 0.95, percent: bool = False,
    ) -> str:  # fmt: skip
        """Return one page to decide by whether to publish the release; see `dpframe.report`."""
        return report(
            self._frame, ledger=ledger, title=title, path=path, level=level, percent=percent
        )

    def nlargest(self, n: int, column: Hashable | None = None) -> pd.DataFrame:
        """Keep the rows with the largest values of a released column, and write that down.

        Parameters
        ----------
        n
            How many.
        column
            The column; `None`: the only one. Released values decide, rounded or not.

        Raises
        ------
        CertificateError
            If the frame is not what was released.
        QueryError
            If n is not a whole number, or there is no such released column.

        Examples
        --------
        >>> import pandas as pd
        >>> import dpframe as dpf
        >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
        >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
        >>> released.dp.nlargest(1).index.tolist()
        ['B']
        """
        return suppress.nlargest(self._frame, n, column)

    def nsmallest(self, n: int, column: Hashable | None = None) -> pd.DataFrame:
        """Keep the rows with the smallest values of a released column; see `.dp.nlargest`.

        Parameters
        ----------
        n
            How many.
        column
            The column; `None`: the only one.
        """
        return suppress.nsmallest(self._frame, n, column)

    def round(
        self, decimals: int | Mapping[Hashable, int] = 0, *, to: float | None = None
    ) -> pd.DataFrame:
        """Round the release, and its intervals to the outside; see `dpframe.round`."""
        return round.round(self._frame, decimals, to=to)

    def suppress(
        self, *, below: float | None = None, relative_error: float | None = None,
        by: Hashable | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """Make cells missing that say too little; see `dpframe.suppress`."""
        return suppress.suppress(self._frame, below=below, relative_error=relative_error, by=by)

    def rename(
        self,
        columns: Mapping[Hashable, str] | None = None,
        *,
        levels: Mapping[Hashable, str] | None = None,
        keys: Mapping[Hashable, Mapping[Hashable, str]] | None = None,
    ) -> pd.DataFrame:
        """Rename columns, levels and keys of the release; see `dpframe.rename`."""
        return rename.rename(self._frame, columns, levels=levels, keys=keys)

    def publish(self, *, note: str | None = None) -> pd.DataFrame:
        """Return the table with what it shows in its certificate alone; see `dpframe.publish`."""
        return publish(self._frame, note=note)

    def write_csv(self, path: str | PathLike[str], *, escape_formulas: bool = False) -> None:
        """Write the release to a CSV file, its certificate beside it; see `dpframe.write_csv`.

        Existing files are replaced.
        """
        write_csv(self._frame, path, escape_formulas=escape_formulas)

    def write_parquet(self, path: str | PathLike[str]) -> None:
        """Write the release to a Parquet file; see `dpframe.write_parquet`.

        An existing file is replaced.
        """
        write_parquet(self._frame, path)

    def plot(
        self, *, column: Hashable | list[Hashable] | None = None, kind: plot.Kind = "auto",
        level: float = 0.95, per: Hashable | None = None, percent: bool = False,
        sampling: bool = False, subplots: bool = True, panels: bool | None = None, ax: Any = None,
        figsize: tuple[float, float] | None = None, title: str | None = None, color: Any = None,
        legend: bool = True,
    ) -> Any:  # fmt: skip
        """Draw the release with error bars; see `dpframe.plot`."""
        arguments = {name: value for name, value in locals().items() if name != "self"}
        return plot.plot(self._frame, **arguments)

    def plot_map(
        self, coords: Coords, *, column: Hashable | None = None, edges: pd.DataFrame | None = None,
        ax: Any = None, denoised: bool | None = None,
    ) -> Any:  # fmt: skip
        """Draw the release on a map; see `dpframe.plot_map`."""
        return plot_map(self._frame, coords, column=column, edges=edges, ax=ax, denoised=denoised)
