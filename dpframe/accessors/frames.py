"""The `.dp` accessor: one-line delegations to public functions, without state of its own."""

from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any, Never, cast

import pandas as pd
from pandas.api.typing import DataFrameGroupBy, SeriesGroupBy

from dpframe.accessors.helping import DataFrame, frame_method_of, method_of
from dpframe.accessors.private import PrivateAccessor
from dpframe.accessors.showing import Grouped, no_dp_of_groups, no_dp_of_series
from dpframe.cells.record import certificate_of
from dpframe.certificates.certificate import Certificate
from dpframe.denoising.methods import DenoiserName
from dpframe.files import csv, excel, parquet
from dpframe.inference import independence, intervals
from dpframe.inference.combine import Weights, combine
from dpframe.ledger.ledger import Ledger
from dpframe.plotting import map as maps
from dpframe.plotting import plot
from dpframe.public import public_calls
from dpframe.reporting.report import report
from dpframe.reporting.style import style
from dpframe.steps import denoise, derive, quantiles, rename, suppress, verify
from dpframe.steps.denoise_checks import Across
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
        >>> query = dpf.sum(["tea", "milk"], bounds=(0, 1), n_weight=1)
        >>> both = dpf.release(answers, query, mu=0.5, mechanism="correlated")
        >>> both.dp.covariance.round(2)
                    tea  milk     n
          column
        0 tea     6.29  1.84  3.67
          milk    1.84  6.29  3.67
          n       3.67  3.67  7.35
        """
        return intervals.covariance(self._frame)

    interval = frame_method_of(derive.interval)

    def denoise(
        self, method: DenoiserName = "auto", *, graph: object = None, across: Across | None = None,
        columns: Hashable | Sequence[Hashable] | None = None, **options: Any,
    ) -> DataFrame:  # fmt: skip
        """Add denoised columns beside the released ones; see `dpframe.denoise`.

        Example: `released.dp.denoise()`.
        """
        options |= {"columns": columns, "graph": graph, "across": across}
        return cast(DataFrame, denoise.denoise(self._frame, method, **options))

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

    total = frame_method_of(derive.total)
    change = frame_method_of(derive.change)
    ratio = frame_method_of(derive.ratio)
    percent = frame_method_of(derive.percent)
    per = frame_method_of(derive.per)
    standardize = frame_method_of(derive.standardize)
    relative = frame_method_of(derive.relative)
    independence = method_of(independence.independence)
    between = frame_method_of(quantiles.between)

    def report(
        self, path: str | PathLike[str] | None = None, *, ledger: Ledger | None = None,
        title: str = "Release report", level: float = 0.95, percent: bool = False,
    ) -> str:  # fmt: skip
        """Return one page to decide by whether to publish the release; see `dpframe.report`."""
        return report(
            self._frame, ledger=ledger, title=title, path=path, level=level, percent=percent
        )

    nlargest = frame_method_of(suppress.nlargest)
    nsmallest = frame_method_of(suppress.nsmallest)
    round = frame_method_of(suppress.round)
    suppress = frame_method_of(suppress.suppress)
    rename = frame_method_of(rename.rename)
    publish = method_of(verify.publish)
    write_csv = method_of(csv.write_csv)
    write_excel = method_of(excel.write_excel)
    write_parquet = method_of(parquet.write_parquet)
    style = method_of(style)
    plot = method_of(plot.plot)
    plot_map = method_of(maps.plot_map)
