"""The `.dp` accessor: one-line delegations to public functions, without state of its own."""

from collections.abc import Hashable, Mapping
from os import PathLike
from typing import Any, Self, TypedDict, Unpack

import pandas as pd

from dpframe.declaration.facts import Declaration
from dpframe.declare import declare
from dpframe.diagnose import diagnose
from dpframe.discover import (
    DiscoverOptions,
    LookOptions,
    discover,
    preview_discover,
)
from dpframe.engines import Frame
from dpframe.engines.declared import declaration_of
from dpframe.errors import DeclarationError
from dpframe.ledger.ledger import BudgetStatus, Ledger
from dpframe.preview import Wanted, preview
from dpframe.privacy.amounts import Budget
from dpframe.privacy.neighbors import EachRow, Neighboring
from dpframe.queries import asking
from dpframe.queries.kinds import (
    By,
    Columns,
    Count,
    GivenBounds,
    Keys,
    KnownRows,
    Mean,
    Objective,
    Query,
    Sum,
)
from dpframe.release import release
from dpframe.results import intervals, plot, plot_map
from dpframe.results.certificate import Certificate, certificate_of
from dpframe.results.combine import Weights, combine
from dpframe.results.csv_files import write_csv
from dpframe.results.denoise import denoised, denoising_report
from dpframe.results.denoise_checks import Across
from dpframe.results.quotients import percent, ratio
from dpframe.results.to_pandera import schema_of

__all__ = ["DPAccessor", "PrivateAccessor", "ReleaseOptions", "SpendOptions"]


class SpendOptions(TypedDict, total=False):
    """How much to spend, in exactly one way, and on which mechanism; see `dpframe.release`."""

    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    share: float | None
    mechanism: str
    privacy_unit: EachRow | None


class PreviewOptions(SpendOptions, total=False):
    """What to show of a release that is not made; see `dpframe.preview`."""

    compare: bool
    std_error: Wanted | None
    half_width: Wanted | None
    rows: float | None


class ReleaseOptions(SpendOptions, total=False):
    """How much to spend, how to denoise, and what to record; see `dpframe.release`."""

    denoise: str | None
    graph: object
    name: str | None
    note: str | None


class PrivateAccessor:
    """Differentially private releases of a private frame of any kind that an engine can read.

    Parameters
    ----------
    frame
        A private frame.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def declare(
        self,
        schema: object = None,
        *,
        bounds: Mapping[Hashable, object] | None = None,
        keys: Mapping[Hashable, object] | None = None,
        privacy_unit: Hashable | EachRow | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        neighboring: Neighboring = "add_remove",
        missing: Mapping[Hashable, object] | None = None,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        name: str | None = None,
        validate: bool = False,
    ) -> Self:
        """Declare what is public about this frame; see `dpframe.declare`. Returns the accessor."""
        declare(
            self._frame,
            schema,
            bounds=bounds,
            keys=keys,
            privacy_unit=privacy_unit,
            unit=unit,
            max_rows=max_rows,
            max_groups=max_groups,
            max_rows_per_group=max_rows_per_group,
            neighboring=neighboring,
            missing=missing,
            budget=budget,
            ledger=ledger,
            name=name,
            validate=validate,
        )
        return self

    def count(
        self,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        **spend: Unpack[ReleaseOptions],
    ) -> pd.DataFrame:
        """Release the number of rows per group; see `dpframe.count` and `dpframe.release`."""
        return self._one(asking.count(by, where=where, keys=keys), spend)

    def sum(
        self,
        columns: Columns,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        bounds: GivenBounds = None,
        max_true: int | None = None,
        n: KnownRows = None,
        n_weight: float = 0.0,
        objective: Objective = "total",
        **spend: Unpack[ReleaseOptions],
    ) -> pd.DataFrame:
        """Release sums of columns per group; see `dpframe.sum` and `dpframe.release`."""
        query = asking.sum(
            columns,
            by,
            where=where,
            keys=keys,
            bounds=bounds,
            max_true=max_true,
            n=n,
            n_weight=n_weight,
            objective=objective,
        )
        return self._one(query, spend)

    def mean(
        self,
        columns: Columns,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        bounds: GivenBounds = None,
        **spend: Unpack[ReleaseOptions],
    ) -> pd.DataFrame:
        """Release means of columns per group; see `dpframe.mean` and `dpframe.release`."""
        return self._one(asking.mean(columns, by, where=where, keys=keys, bounds=bounds), spend)

    def histogram(
        self,
        column: Hashable,
        bins: object,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        **spend: Unpack[ReleaseOptions],
    ) -> pd.DataFrame:
        """Release the number of rows per bin; see `dpframe.histogram` and `dpframe.release`."""
        return self._one(asking.histogram(column, bins, by, where=where, keys=keys), spend)

    def units(
        self,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        **spend: Unpack[ReleaseOptions],
    ) -> pd.DataFrame:
        """Release the number of units per group; see `dpframe.units` and `dpframe.release`."""
        return self._one(asking.units(by, where=where, keys=keys), spend)

    def aggregate(
        self,
        /,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        epsilon: float | None = None,
        delta: float | None = None,
        mu: float | None = None,
        rho: float | None = None,
        share: float | None = None,
        mechanism: str = "auto",
        denoise: str | None = None,
        graph: object = None,
        name: str | None = None,
        note: str | None = None,
        privacy_unit: EachRow | None = None,
        n_weight: float = 0.0,
        objective: Objective = "total",
        **named: Count | Sum | Mean,
    ) -> pd.DataFrame:
        """Release several outputs by the same groups; see `dpframe.aggregate`."""
        query = asking.aggregate(
            by, where=where, keys=keys, n_weight=n_weight, objective=objective, **named
        )
        spend: ReleaseOptions = {
            "epsilon": epsilon,
            "delta": delta,
            "mu": mu,
            "rho": rho,
            "share": share,
            "mechanism": mechanism,
            "denoise": denoise,
            "graph": graph,
            "name": name,
            "note": note,
            "privacy_unit": privacy_unit,
        }
        return self._one(query, spend)

    def release(self, query: Query | Mapping[str, Query], **spend: Unpack[ReleaseOptions]) -> Any:
        """Release a query, or a dict of them at once; see `dpframe.release`."""
        return release(self._frame, query, **spend)

    def preview(
        self,
        query: Query | Mapping[str, Query],
        **options: Unpack[PreviewOptions],
    ) -> pd.DataFrame:
        """Show cost and error of a release without making it; see `dpframe.preview`."""
        return preview(self._frame, query, **options)

    def diagnose(
        self, query: Query | Mapping[str, Query] | None = None, *, groups: bool = False
    ) -> Any:
        """Show, in private, what a release leaves out and changes; see `dpframe.diagnose`."""
        return diagnose(self._frame, query, groups=groups)

    def discover(self, by: Columns, **options: Unpack[DiscoverOptions]) -> pd.DataFrame:
        """Find the groups that may be published; see `dpframe.discover`."""
        return discover(self._frame, by, **options)

    def preview_discover(self, by: Columns, **options: Unpack[LookOptions]) -> pd.DataFrame:
        """Show which groups would be found, without looking; see `dpframe.preview_discover`."""
        return preview_discover(self._frame, by, **options)

    @property
    def declaration(self) -> Declaration:
        """What is declared about this frame."""
        return declaration_of(self._frame)

    @property
    def ledger(self) -> Ledger:
        """The ledger that releases of this frame are charged to."""
        ledger = declaration_of(self._frame).ledger
        if ledger is None:
            raise DeclarationError(
                "no budget is declared for this frame. Declare one: .dp.declare(..., "
                "budget=dpf.Budget(epsilon=1, delta=1e-6))."
            )
        return ledger

    @property
    def budget(self) -> BudgetStatus:
        """What is spent of the declared budget and what is left."""
        return self.ledger.status()

    def _one(self, query: Query, spend: ReleaseOptions) -> pd.DataFrame:
        released: pd.DataFrame = release(self._frame, query, **spend)
        return released


@pd.api.extensions.register_dataframe_accessor("dp")
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

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return confidence intervals of every released cell; see `dpframe.interval`."""
        return intervals.interval(self._frame, level, simultaneous=simultaneous)

    def denoise(
        self,
        method: str = "auto",
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

    def combine(self, weights: Weights, level: float = 0.95) -> pd.DataFrame:
        """Return a linear combination of released cells with its error; see `dpframe.combine`."""
        return combine(self._frame, weights, level)

    def ratio(
        self, numerator: Hashable, denominator: Hashable, level: float = 0.95
    ) -> pd.DataFrame:
        """Return the quotient of two released columns with its error; see `dpframe.ratio`."""
        return ratio(self._frame, numerator, denominator, level)

    def percent(self, column: Hashable | None = None, level: float = 0.95) -> pd.DataFrame:
        """Return percentages of the total with their errors; see `dpframe.percent`."""
        return percent(self._frame, column, level)

    def write_csv(self, path: str | PathLike[str]) -> None:
        """Write the release to a CSV file, its certificate beside it; see `dpframe.write_csv`."""
        write_csv(self._frame, path)

    def schema(self) -> Any:
        """Return a pandera schema that the release satisfies; see `dpframe.schema_of`."""
        return schema_of(self._frame)

    def plot(
        self,
        *,
        column: Hashable | None = None,
        kind: plot.Kind = "auto",
        level: float = 0.95,
        ax: Any = None,
    ) -> Any:
        """Draw the release with error bars; see `dpframe.plot`."""
        return plot.plot(self._frame, column=column, kind=kind, level=level, ax=ax)

    def plot_map(
        self,
        coords: plot_map.Coords,
        *,
        column: Hashable | None = None,
        edges: pd.DataFrame | None = None,
        ax: Any = None,
        denoised: bool | None = None,
    ) -> Any:
        """Draw the release on a map; see `dpframe.plot_map`."""
        return plot_map.plot_map(
            self._frame, coords, column=column, edges=edges, ax=ax, denoised=denoised
        )
