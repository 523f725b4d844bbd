"""The kinds of queries, as frozen values."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pandas as pd

from dpframe.queries.where import Condition

__all__ = [
    "Aggregate",
    "By",
    "Columns",
    "Count",
    "GivenBounds",
    "Histogram",
    "Keys",
    "KnownRows",
    "Mean",
    "Objective",
    "Query",
    "Sum",
    "labels_of",
]

By: TypeAlias = Hashable | Iterable[Hashable] | None
Columns: TypeAlias = Hashable | Iterable[Hashable]
Keys: TypeAlias = Mapping[Hashable, object] | Iterable[object] | pd.DataFrame | pd.MultiIndex | None
GivenBounds: TypeAlias = tuple[float, float] | Mapping[Hashable, object] | None
KnownRows: TypeAlias = float | pd.Series | tuple[float | pd.Series, float] | None
Objective: TypeAlias = Literal["total", "worst"]


@dataclass(frozen=True, eq=False)
class _Grouped:
    """What all queries share: groups, a condition, and keys given in the call."""

    by: tuple[Hashable, ...] = ()
    where: Condition | None = None
    keys: Keys = None


@dataclass(frozen=True, eq=False)
class Count(_Grouped):
    """The number of rows in each group."""


@dataclass(frozen=True, eq=False)
class _OfColumns(_Grouped):
    columns: tuple[Hashable, ...] = ()
    bounds: GivenBounds = None


@dataclass(frozen=True, eq=False)
class Sum(_OfColumns):
    """The sum of each of some columns in each group."""

    max_true: int | None = None
    n: KnownRows = None
    n_weight: float = 0.0
    objective: Objective = "total"

    @property
    def has_options(self) -> bool:
        """Whether something is said about all its outputs together."""
        several = (self.max_true, self.n, self.n_weight or None)
        return any(option is not None for option in several) or self.objective != "total"


@dataclass(frozen=True, eq=False)
class Mean(_OfColumns):
    """The mean of each of some columns in each group, over rows where it is present."""


@dataclass(frozen=True, eq=False)
class Histogram(_Grouped):
    """The number of rows in each bin of a numeric column, in each group."""

    column: Hashable = None
    bins: pd.IntervalIndex | None = None


@dataclass(frozen=True, eq=False)
class Aggregate(_Grouped):
    """Several counts, sums and means by the same groups, measured together."""

    queries: Mapping[str, "Count | Sum | Mean"] = field(default_factory=dict)
    n_weight: float = 0.0
    objective: Objective = "total"


Query: TypeAlias = Count | Sum | Mean | Histogram | Aggregate


def labels_of(query: Query) -> tuple[Hashable, ...]:
    """Return the labels of the columns that a query names."""
    parts = query.queries.values() if isinstance(query, Aggregate) else ()
    conditions = [query.where, *(part.where for part in parts)]
    labels = list(query.by)
    labels += [label for part in (query, *parts) for label in getattr(part, "columns", ())]
    labels += [query.column] if isinstance(query, Histogram) else []
    labels += [name for condition in conditions if condition for name in condition.columns]
    return tuple(dict.fromkeys(labels))
