"""What `.dp` does with private frames of any kind: one-line delegations, without state."""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Never, Self, cast, overload

import pandas as pd

from dpframe.accessors.helping import DataFrame
from dpframe.accessors.showing import (
    accessor_html,
    accessor_text,
    names_on_offer,
    no_such_item,
    no_such_name,
    public_names,
)
from dpframe.arguments import is_one_of
from dpframe.cells.record import ATTRIBUTE
from dpframe.context import at_the_door
from dpframe.declaration.facts import Declaration
from dpframe.denoising.methods import DenoiserName
from dpframe.engines import ACCESSORS, Frame
from dpframe.engines.declared import declaration_of
from dpframe.engines.parquet_files import ParquetFiles, Paths
from dpframe.engines.scans import BATCH_ROWS, ScannedFrame
from dpframe.engines.sources import source_of
from dpframe.engines.text_files import text_files
from dpframe.errors import DeclarationError, QueryError, a_type
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.status import BudgetStatus
from dpframe.operations.declare import declare
from dpframe.operations.diagnose import diagnose
from dpframe.operations.planning import ReleasePlan, plan, release
from dpframe.options import (
    FRONT,
    RARE,
    By,
    Columns,
    GivenBounds,
    Keys,
    KnownRows,
    Mechanisms,
    Other,
    Usefulness,
    Within,
)
from dpframe.privacy.amounts import Amount, Budget
from dpframe.privacy.neighbors import EachRow, Neighboring
from dpframe.public import no_such_keyword, public_call, public_calls
from dpframe.queries import binned, of_columns
from dpframe.queries.aggregate import AskedPart, aggregate
from dpframe.queries.binned import QUARTILES, Quantiles
from dpframe.queries.margins import MarginWeights, margins
from dpframe.queries.query import Query, Request, Search
from dpframe.queries.searches import (
    DiscoveryMechanism,
    Dtypes,
    OfValues,
    discover,
    suggest_bounds,
    suggest_caps,
)
from dpframe.sources.cells import UTF8, Dialect
from dpframe.steps.quantiles import quantile, quantiles_of
from dpframe.strategies import MechanismName
from dpframe.strategies.ordered import Window


def _others(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords among the arguments of a method."""
    return {name: value for name, value in arguments.items() if name not in ("self", "query")}


@public_calls
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

    def declare(
        self, schema: object = None, *,
        bounds: Mapping[Hashable, object] | None = None,
        keys: Mapping[Hashable, object] | None = None,
        privacy_unit: Hashable | list[Hashable] | EachRow | None = None, unit: str | None = None,
        max_rows: int | None = None, max_groups: int | None = None,
        max_rows_per_group: int | None = None, neighboring: Neighboring = "add_remove",
        missing: Mapping[Hashable, object] | None = None, budget: Budget | None = None,
        ledger: Ledger | str | PathLike[str] | None = None, name: str | None = None,
        validate: bool = False, confirmed_public: bool = False,
        types: Mapping[Hashable, str] | None = None,
    ) -> Self:  # fmt: skip
        """Declare what is public about this frame; see `dpframe.declare`. Returns the accessor.

        Example: `df.dp.declare(privacy_unit="rider", max_rows=3, keys={"zone": ["A", "B"]})`.
        """
        declare(self._frame, **_others(locals()))
        return self

    def _read_off(self, arguments: dict[str, Any]) -> DataFrame:
        """Read quantiles off a released distribution: the first argument is q, or its column."""
        column, q = arguments["column"], arguments["q"]
        shown = {name: arguments.pop(name) for name in ("level", "simultaneous")}
        defaults = signature(type(self).quantile).parameters
        for name, value in arguments.items():
            default = defaults[name].default
            if name not in ("self", "column", "q") and value is not default:
                raise DeclarationError(
                    "this frame was released: quantiles are read off a release of ranges for "
                    "nothing, and take no groups and no amount, as in .dp.quantile([0.25, 0.75]).",
                    parameter=name,
                )
        if column is None or is_one_of(column, self._frame.index.names[-1:]):
            return cast(DataFrame, quantiles_of(self._frame, q, **shown))
        if q is not QUARTILES:
            rule = "the quantiles come first, or after the column, and level= by its name"
            raise QueryError(f"{rule}, as in .dp.quantile([0.25, 0.75], level=0.9).", parameter="q")
        return cast(DataFrame, quantiles_of(self._frame, column, **shown))

    def _release(self, make: Callable[..., Query | Search], arguments: dict[str, Any]) -> DataFrame:
        """Release the query that a call describes, from all arguments of the call."""
        spend = {name: arguments.pop(name) for name in FRONT if name in arguments}
        named = arguments.pop("named", {})
        for name in named.keys() & {*RARE, "n_weight", "objective"}:
            raise no_such_keyword(make.__name__, name, [*FRONT, *arguments])
        del arguments["self"]
        query: Any = make(**arguments, **named)
        return cast(DataFrame, release(self._frame, query, **spend))

    def ranges(
        self, column: Hashable, bins: object = None, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None, window: Window = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release numbers of rows in ranges; see `dpframe.ranges` and `dpframe.release`.

        Example: `df.dp.ranges("fare", 8, by="zone", epsilon=1)`.
        """
        return self._release(binned.ranges, locals())

    def quantile(
        self, column: Hashable | list[float] = None, q: Quantiles = QUARTILES, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None,
        bounds: GivenBounds = None, level: float = 0.95, simultaneous: bool = False,
        bins: object = None, candidates: object = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release quantiles of a column per group; see `dpframe.quantile` and `dpframe.release`.

        Example: `df.dp.quantile("fare", [0.25, 0.5, 0.75], by="zone", epsilon=1)`.

        They are read off a release of ranges, or selected with `mechanism="select"`. Of a frame
        that is a release of ranges, `.dp.quantile(q)` reads them off for nothing.
        """
        arguments = locals()
        if isinstance(self._frame, pd.DataFrame) and ATTRIBUTE in self._frame.attrs:
            return self._read_off(arguments)
        return self._release(quantile, arguments)

    def margins(
        self, /, columns: Columns | Iterable[Sequence[Hashable]], ways: int | None = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        other: Other = None, weights: MarginWeights = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
        **named: AskedPart,
    ) -> dict[tuple[Hashable, ...], pd.DataFrame]:  # fmt: skip
        """Release tables by several sets of columns that agree; see `dpframe.margins`.

        Example: `df.dp.margins(["zone", "day"], ways=1, epsilon=1)`.
        """
        return cast(dict[tuple[Hashable, ...], pd.DataFrame], self._release(margins, locals()))

    def count(
        self, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, weights: Hashable = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release the number of rows per group; see `dpframe.count` and `dpframe.release`.

        Example: `df.dp.count(["zone", "day"], where="fare > 10", epsilon=1)`.
        """
        return self._release(of_columns.count, locals())

    def rate(
        self, condition: str, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, weights: Hashable = None, missing: Literal[False] | None = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release the share of rows that satisfy a condition; see `dpframe.rate`.

        Example: `df.dp.rate("fare > 10", by="zone", epsilon=1)`.
        """
        return self._release(of_columns.rate, locals())

    def sum(
        self, columns: Columns, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None, weights: Hashable = None,
        max_true: int | None = None, n: KnownRows = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release sums of columns per group; see `dpframe.sum` and `dpframe.release`.

        Example: `df.dp.sum("fare", by="zone", epsilon=1)`.
        """
        return self._release(of_columns.sum, locals())

    def mean(
        self, columns: Columns, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None,
        bounds: GivenBounds = None, sampling: bool = False, weights: Hashable = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release means of columns per group; see `dpframe.mean` and `dpframe.release`.

        Example: `df.dp.mean("fare", by="zone", epsilon=1)`.
        """
        return self._release(of_columns.mean, locals())

    def var(
        self, columns: Columns, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release variances of columns per group; see `dpframe.var` and `dpframe.release`.

        Example: `df.dp.var("fare", epsilon=1)`.
        """
        return self._release(of_columns.var, locals())

    def std(
        self, columns: Columns, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release standard deviations per group; see `dpframe.std` and `dpframe.release`.

        Example: `df.dp.std("fare", epsilon=1)`.
        """
        return self._release(of_columns.std, locals())

    def cov(
        self, x: Hashable, y: Hashable, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release covariances of two columns; see `dpframe.cov` and `dpframe.release`.

        Example: `df.dp.cov("fare", "tip", epsilon=1)`.
        """
        return self._release(of_columns.cov, locals())

    def corr(
        self, x: Hashable, y: Hashable, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None, sampling: bool = False,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release correlations of two columns; see `dpframe.corr` and `dpframe.release`.

        Example: `df.dp.corr("fare", "tip", epsilon=1)`.
        """
        return self._release(of_columns.corr, locals())

    def slope(
        self, x: Hashable, y: Hashable, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None, sampling: bool = False,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release slopes of y on x per group; see `dpframe.slope` and `dpframe.release`.

        Example: `df.dp.slope("fare", "tip", epsilon=1)`.
        """
        return self._release(of_columns.slope, locals())

    def regression(
        self, y: Hashable, x: Columns, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, bounds: GivenBounds = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> pd.DataFrame:  # fmt: skip
        """Release regressions of y on other columns; see `dpframe.regression`, `dpframe.release`.

        Example: `df.dp.regression("tip", ["fare"], epsilon=1)`.
        """
        return self._release(of_columns.regression, locals())

    def histogram(
        self, column: Hashable, bins: object, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None, weights: Hashable = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release the number of rows per bin; see `dpframe.histogram` and `dpframe.release`.

        Example: `df.dp.histogram("fare", [0, 10, 20, 50], epsilon=1)`.
        """
        return self._release(binned.histogram, locals())

    def units(
        self, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release the number of units per group; see `dpframe.units` and `dpframe.release`.

        Example: `df.dp.units(by="zone", epsilon=1)`.
        """
        return self._release(of_columns.units, locals())

    def aggregate(
        self, /, by: By = None, *,
        where: str | None = None, keys: Keys = None, max_rows: int | None = None,
        max_groups: int | None = None, max_rows_per_group: int | None = None,
        other: Other = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None,
        **named: AskedPart,
    ) -> DataFrame:  # fmt: skip
        """Release several outputs by the same groups; see `dpframe.aggregate`.

        Example: `df.dp.aggregate("zone", n=dpf.count(), fare=dpf.mean("fare"), epsilon=1)`.
        """
        return self._release(aggregate, locals())

    @overload
    def release(
        self, query: Query | Search, *,
        epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
        rho: Amount | None = None, share: Amount | None = None, part: object = None,
        mechanism: MechanismName = "auto", privacy_unit: EachRow | None = None,
        within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
        name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None, graph: object = None,
    ) -> DataFrame: ...  # fmt: skip

    @overload
    def release(
        self, query: Mapping[str, Query], *,
        epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
        rho: Amount | None = None, share: Amount | None = None, part: object = None,
        mechanism: Mechanisms = "auto", privacy_unit: EachRow | None = None,
        within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
        name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None, graph: object = None,
    ) -> dict[str, pd.DataFrame]: ...  # fmt: skip

    def release(
        self, query: Request, *,
        epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
        rho: Amount | None = None, share: Amount | None = None, part: object = None,
        mechanism: Mechanisms = "auto", privacy_unit: EachRow | None = None,
        within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
        name: str | None = None, note: str | None = None,
        denoise: DenoiserName | None = None, graph: object = None,
    ) -> Any:  # fmt: skip
        """Release a query, or a dict of them at once; see `dpframe.release`.

        Example: `df.dp.release({"all": dpf.count(), "zones": dpf.count("zone")}, epsilon=1)`.
        """
        return release(self._frame, query, **_others(locals()))

    def plan(
        self, query: Request, *,
        epsilon: Amount | None = None, delta: Amount | None = None, mu: Amount | None = None,
        rho: Amount | None = None, share: Amount | None = None, part: object = None,
        mechanism: Mechanisms = "auto", privacy_unit: EachRow | None = None,
        within: Within = None, rows: float | None = None, useful: Usefulness = "rough",
        denoise: DenoiserName | None = None, graph: object = None,
    ) -> ReleasePlan:  # fmt: skip
        """Plan a release: no row is read and nothing is spent; see `dpframe.release`.

        Returns
        -------
        ReleasePlan
            With `.table`, one row per output, `.advice`, and `.release()`, which charges exactly
            what is shown.

        Raises
        ------
        CalibrationError, DeclarationError, QueryError, UnknownColumnError
            As `dpframe.release`; what would say nothing is shown, and refused when released.

        Examples
        --------
        >>> import dpframe as dpf
        >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
        >>> _ = trips.dp.declare(keys={"zone": ["A", "B", "C"]}, privacy_unit=dpf.EACH_ROW)
        >>> plan = trips.dp.plan(dpf.count(by="zone"), epsilon=0.5, rows=10)
        >>> plan.table[["mechanism", "epsilon", "useful"]].to_dict("list")
        {'mechanism': ['laplace'], 'epsilon': [0.5], 'useful': ['nothing']}
        """
        return plan(self._frame, query, **_others(locals()))

    def diagnose(
        self, query: Request | None = None, *, groups: bool = False, part: object = None
    ) -> Any:
        """Show, in private, what a release leaves out and changes; see `dpframe.diagnose`.

        Example: `df.dp.diagnose(dpf.count("zone"))`.
        """
        return diagnose(self._frame, query, groups=groups, part=part)

    def discover(
        self, by: Columns, *, dtype: Dtypes = "string", max_length: int = 256,
        where: str | None = None, max_groups: int | None = None, discovery: Amount | None = None,
        counts: bool = True,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: DiscoveryMechanism = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
    ) -> DataFrame:  # fmt: skip
        """Find the groups that may be published; see `dpframe.discover`.

        Example: `df.dp.discover("zone", max_groups=1, epsilon=1, delta=1e-6)`.
        """
        return self._release(discover, locals())

    def suggest_caps(
        self, by: By = None, *, query: Query | None = None, cap: str | None = None,
        largest: int | None = None, planned: Mapping[str, Any] | None = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release how many rows units have, and the best cap; see `dpframe.suggest_caps`.

        Example: `df.dp.suggest_caps("zone", epsilon=1)`.
        """
        return self._release(suggest_caps, locals())

    def suggest_bounds(
        self, column: Hashable, by: By = None, *, where: str | None = None, keys: Keys = None,
        query: OfValues = "sum", smallest: float | None = None, largest: float | None = None,
        within: tuple[float, float] | None = None, bins: int | None = None,
        planned: Mapping[str, Any] | None = None,
        epsilon: Amount | None = None, delta: Amount | None = None, share: Amount | None = None,
        part: object = None, mechanism: MechanismName = "auto",
        privacy_unit: EachRow | None = None, name: str | None = None, note: str | None = None,
    ) -> DataFrame:  # fmt: skip
        """Release how large values are, and the best bounds; see `dpframe.suggest_bounds`.

        Example: `df.dp.suggest_bounds("fare", epsilon=1)`.
        """
        return self._release(suggest_bounds, locals())

    @property
    def declaration(self) -> Declaration:
        """What is declared about this frame."""
        return declaration_of(self._frame, at_the_door(looking=True))

    @property
    def ledger(self) -> Ledger:
        """The ledger that releases of this frame are charged to."""
        ledger = self.declaration.ledger
        if ledger is None:
            reason = "no budget is declared for this frame."
            remedy = "Declare one: .dp.declare(..., budget=dpf.Budget(epsilon=1, delta=1e-6))."
            raise DeclarationError(f"{reason} {remedy}", parameter="budget")
        return ledger

    @property
    def budget(self) -> BudgetStatus:
        """What is spent of the declared budget and what is left."""
        return self.ledger.status()


ACCESSORS.append(PrivateAccessor)  # `register` gives it to classes of frames


class Scan(ScannedFrame):
    """Rows of files, tables or queries as one private frame: declare it, and release through `.dp`.

    It holds no rows. What is declared is kept on this object, not on copies.
    """

    @property
    def dp(self) -> PrivateAccessor:
        """Differentially private releases of these rows."""
        return PrivateAccessor(self)


@public_call
def scan(
    source: Any, *, types: Mapping[str, str] | object = None, batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None, progress: bool | None = None,
    separator: str = ",", encoding: str = UTF8, na_values: str | Sequence[str] = (),
    thousands: str | None = None, decimal: str = ".", percent: bool = False,
    true: str | Sequence[str] = ("true", "1"), false: str | Sequence[str] = ("false", "0"),
    dates: str | Sequence[str] = (), newlines: bool = False,
) -> Scan:  # fmt: skip
    """Open text files, or a source of Arrow batches, as a private frame larger than memory.

    Rows are read anew whenever something is released: only columns that are needed, batch by batch.

    Parameters
    ----------
    source
        A path or a list of paths of text files, such as `.csv` or `.csv.gz`, together with `types`;
        a `pyarrow.dataset.Dataset` of Parquet, Feather or ORC files, or of CSV files with a type
        for every column (`ConvertOptions(column_types=...)`); a `pyarrow.Table`; a frame or a lazy
        frame of Polars, which its streaming engine collects in batches; a relation of DuckDB; a
        function that makes a new `pyarrow.RecordBatchReader` at each call; or any other object with
        `__arrow_c_stream__` that can be read again.
    types
        What columns of text files hold: "string", "int64", "float64", "bool", "date", "datetime",
        "datetime-utc" (with an offset) or "id" by label, or a pandera schema. A cell that is not of
        its type is missing, and changes no other cell. Ids are the bytes of their cells. Columns
        without a type are not read.
    batch_rows
        How many rows are read at once, or fewer where they are large.
    spill_folder
        An existing folder for temporary files with private rows, made if there is a
        `privacy_unit` and more than about 2 million rows; `None`: where the system keeps such.
    progress
        Whether to show a bar while rows are read, where their number is known: a part and a time,
        no numbers. `None`: in a terminal or a notebook, once it takes more than two seconds, if
        tqdm is installed.
    separator
        The character between the cells of text files.
    encoding
        The encoding of text files. Cells that are not of it are missing, unless they are ids.
    na_values
        Cells that are missing, beside empty ones: `["NA"]`. None are by default, so that "NA" can
        be a key.
    thousands, decimal
        Marks within numbers: `"."` and `","` for 1.234,5. Those of thousands stand between groups
        of three digits alone.
    percent
        Whether a number may end in a percent sign: 12.5% is 0.125.
    true, false
        The words for true and false, in letters of any case.
    dates
        Forms of dates and times as `strptime` has them, such as `"%d.%m.%Y"`, in place of ISO 8601.
    newlines
        Whether cells in quotes may hold line ends. By default, a line that is no row by itself is
        left out, and changes no other row. With `True` you trust the writer of the files: a quote
        that is not closed hides all rows up to the next quote.

    Returns
    -------
    Scan
        With `.dp`, as a frame has.

    Raises
    ------
    DeclarationError
        If the source cannot be read, or only once, or one cell decides on the types of others.
    DPFrameError
        If pyarrow is not installed, or tqdm for `progress=True`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import dpframe as dpf
    >>> trips = dpf.scan(pa.table({"zone": ["A", "B", "A"]}))
    >>> zones = ["A", "B", "C"]
    >>> released = trips.dp.count("zone", keys=zones, epsilon=0.5, privacy_unit=dpf.EACH_ROW)
    >>> list(released.index), list(released.columns)
    (['A', 'B', 'C'], ['count'])
    """
    dialect = Dialect.of(
        separator=separator, encoding=encoding, na_values=na_values, thousands=thousands,
        decimal=decimal, percent=percent, true=true, false=false, dates=dates, newlines=newlines,
    )  # fmt: skip
    if isinstance(source, str | os.PathLike | list | tuple):
        rows: Any = text_files(source, types, dialect)
    else:
        _refuse_text_options(source, types, dialect)
        rows = source_of(source)
    return Scan(rows, batch_rows=batch_rows, spill_folder=spill_folder, progress=progress)


def _refuse_text_options(source: Any, types: object, dialect: Dialect) -> None:
    """Refuse what says how text files are read where there are none."""
    changed = [
        option.name for option in fields(dialect) if getattr(dialect, option.name) != option.default
    ]
    if types is not None:
        changed.insert(0, "types")
    for name in changed:
        rule = f"{name} says how text files are read, and source is {a_type(source)}"
        raise DeclarationError(f"{rule}. Give the paths of the files.", parameter=name)


@public_call
def scan_parquet(
    path: Paths, *, filesystem: Any = None, batch_rows: int = BATCH_ROWS,
    spill_folder: str | os.PathLike[str] | None = None, progress: bool | None = None,
) -> Scan:  # fmt: skip
    """Open Parquet files as a private frame that may be larger than memory.

    Rows are read anew whenever something is released.

    Parameters
    ----------
    path
        A file, a folder with files, or a list of files. Folders in it named `name=value` become a
        column.
    filesystem
        A file system of pyarrow or fsspec; `None`: the one that the path implies.
    batch_rows, spill_folder, progress
        As in `scan`.

    Returns
    -------
    Scan
        With `.dp`, as a frame has.

    Raises
    ------
    DeclarationError
        If there are no such files, or their columns cannot be read or differ in type.
    DPFrameError
        If pyarrow is not installed, or tqdm for `progress=True`.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"zone": ["A", "B", "A"]}).to_parquet(f"{folder}/trips.parquet")
    ...     trips = scan_parquet(folder)
    ...     zones = ["A", "B", "C"]
    ...     released = trips.dp.count("zone", keys=zones, epsilon=0.5, privacy_unit=dpf.EACH_ROW)
    >>> list(released.index), list(released.columns)
    (['A', 'B', 'C'], ['count'])
    """
    return Scan(
        ParquetFiles(path, filesystem),
        batch_rows=batch_rows,
        spill_folder=spill_folder,
        progress=progress,
    )
