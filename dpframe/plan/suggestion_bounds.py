"""The data-free part of suggested bounds: the histogram to release, and the noise of all bounds."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpframe.declaration.facts import Declaration
from dpframe.errors import CalibrationError, QueryError, shown
from dpframe.plan.cells import cells_of
from dpframe.plan.plan import plan_release
from dpframe.plan.suggestion import amounts_of
from dpframe.privacy.amounts import Spend
from dpframe.queries import constructors
from dpframe.queries.binned import Histogram
from dpframe.queries.kinds import By, Keys, Query
from dpframe.queries.scales import linear_ends, power_ends
from dpframe.steps.suggest_bounds import BoundErrors
from dpframe.steps.suggest_caps import mean_error

OfValues = Literal["sum", "mean"]

_SMALLEST = 2.0**-10
_LARGEST = 2.0**32
_UNIT = 2.0**32  # bounds of this size have whole numbers as their grid, of integers or not
_MAKERS: Mapping[OfValues, Callable[..., Query]] = {
    "sum": constructors.sum,
    "mean": constructors.mean,
}


@dataclass(frozen=True, eq=False)
class BoundsWanted:
    """Which bounds are looked for; see `dpframe.suggest_bounds`."""

    column: Hashable
    by: By = None
    query: OfValues = "sum"
    where: str | None = None
    keys: Keys = None
    smallest: float | None = None
    largest: float | None = None
    within: tuple[float, float] | None = None
    bins: int = 64
    planned: Mapping[str, Any] | None = None

    def ask(self, bounds: tuple[float, float] | None = None) -> Query:
        """Return the query to be released later."""
        if not isinstance(self.query, str) or self.query not in _MAKERS:
            raise QueryError(f'query must be "sum" or "mean", got query={shown(self.query)}.')
        make = _MAKERS[self.query]
        return make([self.column], self.by, where=self.where, keys=self.keys, bounds=bounds)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """Every column that is named."""
        return self.ask().labels


def plan_bounds(
    declaration: Declaration, wanted: BoundsWanted, spend: Spend
) -> tuple[Histogram, BoundErrors]:
    """Say which histogram to release, and what is public about the errors that bounds leave.

    Parameters
    ----------
    declaration
        What is public about the frame.
    wanted
        Which bounds are looked for.
    spend
        How much is spent on constructors.

    Raises
    ------
    CalibrationError, DeclarationError, QueryError
        As `dpframe.suggest_bounds`.
    """
    later = wanted.ask()
    ends = _ends(wanted, declaration)
    amounts = amounts_of(wanted.planned, spend, declaration)
    powers = wanted.within is None
    plans = _Plans(declaration, wanted, amounts, powers=powers)
    facts = BoundErrors(
        query=later.words,
        planned=amounts,
        ends=ends,
        noise=np.array([[plans.noise(low, high) for high in ends] for low in ends]),
        groups=cells_of(later, declaration).size,
        is_mean=wanted.query == "mean",
        powers=powers,
    )
    edges = [-np.inf, *ends, np.inf]
    return constructors.histogram(wanted.column, edges, where=wanted.where), facts


def _ends(wanted: BoundsWanted, declaration: Declaration) -> np.ndarray:
    """Return the candidates for both bounds."""
    facts = declaration.column(wanted.column)
    if facts.bounds is not None and isinstance(facts.bounds[0], pd.Timestamp | pd.Timedelta):
        raise QueryError(
            f"bounds are suggested for columns of numbers, and {wanted.column!r} is declared with "
            "bounds that are times. Make it a column of numbers, such as hours."
        )
    if wanted.within is not None:
        if wanted.smallest is not None or wanted.largest is not None:
            raise QueryError("within= has bins of equal widths: leave out smallest= and largest=.")
        return linear_ends(wanted.within, wanted.bins)
    smallest = 1.0 if facts.integer else _SMALLEST
    return power_ends(
        smallest if wanted.smallest is None else wanted.smallest,
        _LARGEST if wanted.largest is None else wanted.largest,
    )


@dataclass(frozen=True, eq=False)
class _Plans:
    """Plans of the later query, with all pairs of bounds; of a ratio of powers of two, one plan."""

    declaration: Declaration
    wanted: BoundsWanted
    amounts: Mapping[str, float]
    powers: bool = field(kw_only=True)
    known: dict[tuple[float, float], float] = field(default_factory=dict)

    def noise(self, low: float, high: float) -> float:
        """Return the mean absolute error that the noise for some bounds makes in a group."""
        if low >= high:
            return np.inf
        if not self.powers:
            return self._planned(float(low), float(high))
        # noise is proportional to bounds; powers of two are multiplied without rounding
        factor = max(abs(low), abs(high)) / _UNIT
        pair = float(low / factor), float(high / factor)
        if pair not in self.known:
            self.known[pair] = self._planned(*pair)
        return self.known[pair] * factor

    def _planned(self, low: float, high: float) -> float:
        query = self.wanted.ask((low, high))
        try:
            plan = plan_release(self.declaration, {None: query}, Spend.of(**self.amounts))
        except CalibrationError as error:
            raise CalibrationError(
                f"with planned={dict(self.amounts)!r}, the query cannot be released: {error} Say "
                "what it may spend with planned=."
            ) from None
        planned = plan.tables[None]
        (out, prediction), *_ = zip(planned.outputs, planned.predictions(), strict=True)
        return mean_error(prediction.std_error) * out.step
