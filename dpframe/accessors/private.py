"""What `.dp` does with private frames of any kind: one-line delegations, without state."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, Self, Unpack, cast, overload

import pandas as pd

from dpframe.accessors.showing import (
    accessor_html,
    accessor_text,
    names_on_offer,
    no_such_item,
    no_such_name,
    public_names,
)
from dpframe.arguments import is_one_of
from dpframe.calls import with_keywords_of_methods
from dpframe.cells.record import ATTRIBUTE
from dpframe.declaration.facts import Declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import ACCESSORS, Frame
from dpframe.engines.declared import declaration_of
from dpframe.errors import DeclarationError, QueryError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.status import BudgetStatus
from dpframe.operations.declare import DeclareOptions, declare
from dpframe.operations.diagnose import diagnose
from dpframe.operations.pipeline import RecordOptions, options_of
from dpframe.operations.preview import PreviewOptions, preview
from dpframe.operations.release import ReleaseOptions, SpendOptions, release
from dpframe.privacy.amounts import Amount, AmountOptions
from dpframe.privacy.neighbors import EachRow
from dpframe.queries import (
    aggregate,
    association,
    binned,
    counts,
    margins,
    suggestions,
    sums_and_means,
)
from dpframe.queries.aggregate import AggregatePart
from dpframe.queries.binned import ranges
from dpframe.queries.counts import RateOptions
from dpframe.queries.discovery import DiscoverOptions, DiscoveryMechanism, discover
from dpframe.queries.margins import MarginBins, MarginOther, MarginPart, MarginWeights
from dpframe.queries.quantiles import QUARTILES, IntervalOptions, QuantileOptions, Quantiles
from dpframe.queries.query import By, Columns, Keys, Objective, Query, Request, Search
from dpframe.queries.reading import ColumnOptions, CountOptions, RowOptions, WeightOptions
from dpframe.queries.suggestions import BoundSearchOptions, CapSearchOptions
from dpframe.queries.sums_and_means import AccuracyOptions, MeanOptions, SampledOptions, SumOptions
from dpframe.steps.quantiles import quantile, quantiles_of
from dpframe.strategies import MechanismName


class UnitCall(CountOptions, ReleaseOptions, total=False):
    """Which units to count, and options of the release; see `dpframe.units`."""


class CountCall(WeightOptions, ReleaseOptions, total=False):
    """Which rows to count, and options of the release; see `dpframe.count`."""


class RateCall(RateOptions, ReleaseOptions, total=False):
    """Which rows to look at, and options of the release; see `dpframe.rate`."""


class ColumnCall(ColumnOptions, ReleaseOptions, total=False):
    """Which values to look at, and options of the release; see `dpframe.mean`."""


class SampledCall(SampledOptions, ReleaseOptions, total=False):
    """Which values to look at, and options of the release; see `dpframe.corr`."""


class MeanCall(MeanOptions, ReleaseOptions, total=False):
    """Which values to look at, and options of the release; see `dpframe.mean`."""


class SumCall(SumOptions, ReleaseOptions, total=False):
    """What to add up, and options of the release; see `dpframe.sum`."""


class AggregateCall(CountOptions, AccuracyOptions, ReleaseOptions, total=False):
    """Which rows to look at, and options of the release; see `dpframe.aggregate`."""


class MarginsCall(RowOptions, ReleaseOptions, total=False):
    """Which rows to look at, and options of the release; see `dpframe.margins`."""

    bins: MarginBins
    other: MarginOther
    weights: MarginWeights
    max_rows: int | None


class QuantileCall(QuantileOptions, ReleaseOptions, total=False):
    """What to read quantiles off, and options of the release; see `dpframe.quantile`."""


class DiscoverCall(DiscoverOptions, AmountOptions, RecordOptions, total=False):
    """What labels to look for, and options of the release; see `dpframe.discover`."""

    mechanism: DiscoveryMechanism
    part: object
    privacy_unit: EachRow | None


class CapSearchCall(CapSearchOptions, SpendOptions, RecordOptions, total=False):
    """Which caps to look at, and options of the release; see `dpframe.suggest_caps`."""


class BoundSearchCall(BoundSearchOptions, SpendOptions, RecordOptions, total=False):
    """Which bounds to look for, and options of the release; see `dpframe.suggest_bounds`."""


@with_keywords_of_methods
class PrivateAccessor:
    """Differentially private releases of a private frame of any kind that an engine can read.

    Parameters
    ----------
    frame
        A private frame.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    if not TYPE_CHECKING:  # type checkers know all names

        def __getattr__(self, name: str) -> Never:
            """Say what to use in place of a name that is not there."""
            if hasattr(type(self), name):  # a property that has failed
                return object.__getattribute__(self, name)
            raise no_such_name(self, name)

        def __getitem__(self, key: object) -> Never:
            """Say how columns are named."""
            raise no_such_item(key)

    def __dir__(self) -> list[str]:
        """List what applies to this frame; no row of it is looked at."""
        private = public_names(PrivateAccessor)
        names = names_on_offer(self._frame, private, public_names(type(self)) - private)
        return sorted(names.union(name for name in super().__dir__() if name.startswith("_")))

    def __repr__(self) -> str:
        """Show what is declared, left and possible; no row is looked at, and no file read."""
        return accessor_text(self._frame, (name for name in dir(self) if name[0] != "_"))

    def _repr_html_(self) -> str:
        """Show the same in a notebook."""
        return accessor_html(self._frame, (name for name in dir(self) if name[0] != "_"))

    def declare(self, schema: object = None, **facts: Unpack[DeclareOptions]) -> Self:
        """Declare what is public about this frame; see `dpframe.declare`. Returns the accessor."""
        declare(self._frame, schema, **facts)
        return self

    def _read_off(
        self, column: object, q: Quantiles, by: By, options: QuantileCall
    ) -> pd.DataFrame:
        """Read quantiles off a released distribution: the first argument is q, or its column."""
        named = is_one_of(column, self._frame.index.names[-1:])
        how = options_of(IntervalOptions, options)
        others = {"by": by, **options}
        given = [name for name in others if name not in how and others[name] is not None]
        if given:
            raise DeclarationError(
                "this frame was released: quantiles are read off a release of ranges for nothing, "
                "and take no groups and no amount, as in .dp.quantile([0.25, 0.5, 0.75]).",
                parameter=given[0],
            )
        first = not named and column is not None
        if first and q is not QUARTILES:
            rule = "the quantiles come first, or after the column, and level= by its name"
            raise QueryError(f"{rule}, as in .dp.quantile([0.25, 0.75], level=0.9).", parameter="q")
        wanted = cast(Quantiles, column) if first else q
        return quantiles_of(self._frame, wanted, **how)

    def _ask(
        self, make: Callable[..., Query | Search], options: Mapping[str, Any], *about: object
    ) -> pd.DataFrame:
        """Release the query that a call describes."""
        spend = options_of(ReleaseOptions, options)
        own = {name: value for name, value in options.items() if name not in spend}
        return release(self._frame, make(*about, **own), **spend)

    def ranges(
        self, column: Hashable, bins: object = None, by: By = None, **options: Unpack[ColumnCall]
    ) -> pd.DataFrame:
        """Release numbers of rows in ranges; see `dpframe.ranges` and `dpframe.release`."""
        return self._ask(ranges, options, column, bins, by)

    def quantile(
        self,
        column: Hashable | list[float] = None,
        q: Quantiles = QUARTILES,
        by: By = None,
        **options: Unpack[QuantileCall],
    ) -> pd.DataFrame:
        """Release quantiles of a column per group; see `dpframe.quantile` and `dpframe.release`.

        They are read off a release of ranges, or selected with `mechanism="select"`. Of a frame
        that is a release of ranges, `.dp.quantile(q)` reads them off for nothing.
        """
        if isinstance(self._frame, pd.DataFrame) and ATTRIBUTE in self._frame.attrs:
            return self._read_off(column, q, by, options)
        return self._ask(quantile, options, column, q, by)

    def margins(
        self,
        /,
        columns: Columns | Iterable[Sequence[Hashable]],
        ways: int | None = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        bins: MarginBins = None,
        other: MarginOther = None,
        weights: MarginWeights = None,
        max_rows: int | None = None,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        mu: Amount | None = None,
        rho: Amount | None = None,
        share: Amount | None = None,
        mechanism: MechanismName = "auto",
        denoise: DenoiserName | None = None,
        graph: object = None,
        name: str | None = None,
        note: str | None = None,
        part: object = None,
        privacy_unit: EachRow | None = None,
        **named: MarginPart,
    ) -> dict[tuple[Hashable, ...], pd.DataFrame]:
        """Release tables by several sets of columns that agree; see `dpframe.margins`."""
        options = options_of(MarginsCall, locals()) | named
        tables = self._ask(margins.margins, options, columns, ways)
        return cast(dict[tuple[Hashable, ...], pd.DataFrame], tables)

    def count(self, by: By = None, **options: Unpack[CountCall]) -> pd.DataFrame:
        """Release the number of rows per group; see `dpframe.count` and `dpframe.release`."""
        return self._ask(counts.count, options, by)

    def rate(self, condition: str, by: By = None, **options: Unpack[RateCall]) -> pd.DataFrame:
        """Release the share of rows that satisfy a condition; see `dpframe.rate`."""
        return self._ask(counts.rate, options, condition, by)

    def sum(self, columns: Columns, by: By = None, **options: Unpack[SumCall]) -> pd.DataFrame:
        """Release sums of columns per group; see `dpframe.sum` and `dpframe.release`."""
        return self._ask(sums_and_means.sum, options, columns, by)

    def mean(self, columns: Columns, by: By = None, **options: Unpack[MeanCall]) -> pd.DataFrame:
        """Release means of columns per group; see `dpframe.mean` and `dpframe.release`."""
        return self._ask(sums_and_means.mean, options, columns, by)

    def var(self, columns: Columns, by: By = None, **options: Unpack[ColumnCall]) -> pd.DataFrame:
        """Release variances of columns per group; see `dpframe.var` and `dpframe.release`."""
        return self._ask(sums_and_means.var, options, columns, by)

    def std(self, columns: Columns, by: By = None, **options: Unpack[ColumnCall]) -> pd.DataFrame:
        """Release standard deviations per group; see `dpframe.std` and `dpframe.release`."""
        return self._ask(sums_and_means.std, options, columns, by)

    def cov(
        self, x: Hashable, y: Hashable, by: By = None, **options: Unpack[ColumnCall]
    ) -> pd.DataFrame:
        """Release covariances of two columns; see `dpframe.cov` and `dpframe.release`."""
        return self._ask(association.cov, options, x, y, by)

    def corr(
        self, x: Hashable, y: Hashable, by: By = None, **options: Unpack[SampledCall]
    ) -> pd.DataFrame:
        """Release correlations of two columns; see `dpframe.corr` and `dpframe.release`."""
        return self._ask(association.corr, options, x, y, by)

    def slope(
        self, x: Hashable, y: Hashable, by: By = None, **options: Unpack[SampledCall]
    ) -> pd.DataFrame:
        """Release slopes of y on x per group; see `dpframe.slope` and `dpframe.release`."""
        return self._ask(association.slope, options, x, y, by)

    def histogram(
        self, column: Hashable, bins: object, by: By = None, **options: Unpack[CountCall]
    ) -> pd.DataFrame:
        """Release the number of rows per bin; see `dpframe.histogram` and `dpframe.release`."""
        return self._ask(binned.histogram, options, column, bins, by)

    def units(self, by: By = None, **options: Unpack[UnitCall]) -> pd.DataFrame:
        """Release the number of units per group; see `dpframe.units` and `dpframe.release`."""
        return self._ask(counts.units, options, by)

    def aggregate(
        self,
        /,
        by: By = None,
        *,
        where: str | None = None,
        keys: Keys = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        mu: Amount | None = None,
        rho: Amount | None = None,
        share: Amount | None = None,
        mechanism: MechanismName = "auto",
        denoise: DenoiserName | None = None,
        graph: object = None,
        name: str | None = None,
        note: str | None = None,
        part: object = None,
        privacy_unit: EachRow | None = None,
        n_weight: float = 0.0,
        objective: Objective = "total",
        **named: AggregatePart,
    ) -> pd.DataFrame:
        """Release several outputs by the same groups; see `dpframe.aggregate`."""
        options = options_of(AggregateCall, locals()) | named
        return self._ask(aggregate.aggregate, options, by)

    @overload
    def release(self, query: Query | Search, **spend: Unpack[ReleaseOptions]) -> pd.DataFrame: ...

    @overload
    def release(
        self, query: Mapping[str, Query], **spend: Unpack[ReleaseOptions]
    ) -> dict[str, pd.DataFrame]: ...

    def release(self, query: Request, **spend: Unpack[ReleaseOptions]) -> Any:
        """Release a query, or a dict of them at once; see `dpframe.release`."""
        return release(self._frame, query, **spend)

    def preview(self, query: Request, **options: Unpack[PreviewOptions]) -> pd.DataFrame:
        """Show cost and error of a release without making it; see `dpframe.preview`."""
        return preview(self._frame, query, **options)

    def diagnose(
        self, query: Request | None = None, *, groups: bool = False, part: object = None
    ) -> Any:
        """Show, in private, what a release leaves out and changes; see `dpframe.diagnose`."""
        return diagnose(self._frame, query, groups=groups, part=part)

    def discover(self, by: Columns, **options: Unpack[DiscoverCall]) -> pd.DataFrame:
        """Find the groups that may be published; see `dpframe.discover`."""
        return self._ask(discover, options, by)

    def suggest_caps(self, by: By = None, **options: Unpack[CapSearchCall]) -> pd.DataFrame:
        """Release how many rows units have, and the best cap; see `dpframe.suggest_caps`."""
        return self._ask(suggestions.suggest_caps, options, by)

    def suggest_bounds(
        self, column: Hashable, by: By = None, **options: Unpack[BoundSearchCall]
    ) -> pd.DataFrame:
        """Release how large values are, and the best bounds; see `dpframe.suggest_bounds`."""
        return self._ask(suggestions.suggest_bounds, options, column, by)

    @property
    def declaration(self) -> Declaration:
        """What is declared about this frame."""
        return declaration_of(self._frame)

    @property
    def ledger(self) -> Ledger:
        """The ledger that releases of this frame are charged to."""
        ledger = declaration_of(self._frame).ledger
        if ledger is None:
            why = "no budget is declared for this frame."
            way = "Declare one: .dp.declare(..., budget=dpf.Budget(epsilon=1, delta=1e-6))."
            raise DeclarationError(f"{why} {way}", parameter="budget")
        return ledger

    @property
    def budget(self) -> BudgetStatus:
        """What is spent of the declared budget and what is left."""
        return self.ledger.status()


ACCESSORS.append(PrivateAccessor)  # `register` gives it to classes of frames
