"""What a query asks for: its output columns, and options for all of them together."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pandas as pd

from dpframe.queries.where import Condition

KnownRows: TypeAlias = float | pd.Series | tuple[float | pd.Series, float] | None
Objective: TypeAlias = Literal["total", "worst"]
Statistic: TypeAlias = Literal["count", "sum", "mean", "rate", "var", "std", "quantile"]
"""What an output says about its rows: their number, something of their values, or a share."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One output column that a query asks for.

    Parameters
    ----------
    name
        Its label.
    statistic
        What it says about its rows.
    column
        The private column that it is about; `None` for counts and rates.
    where
        A condition of its own, beside the query's.
    bounds
        Bounds that were given in the call, by column: those of this column, or none.
    condition
        For a rate, the condition whose share of the rows is asked for.
    """

    name: Hashable
    statistic: Statistic
    column: Hashable = None
    where: Condition | None = None
    bounds: Mapping[Hashable, object] = field(default_factory=dict)
    condition: Condition | None = None

    @property
    def of_column(self) -> bool:
        """Whether it is about the values of a column."""
        return self.statistic not in ("count", "rate")


@dataclass(frozen=True, slots=True, eq=False)
class QueryOptions:
    """Options for all outputs of a query together; see `dpframe.sum`."""

    max_true: int | None = None
    n: KnownRows = None
    n_weight: float = 0.0
    objective: Objective = "total"

    @property
    def names_given(self) -> list[str]:
        """The names of the options that are given."""
        given = {
            "max_true": self.max_true is not None,
            "n": self.n is not None,
            "n_weight": self.n_weight != 0,
            "objective": self.objective != "total",
        }
        return [name for name, is_given in given.items() if is_given]

    @property
    def words(self) -> str:
        """What changes what is measured, in words."""
        words = "" if self.max_true is None else f", at most {self.max_true} true in a row"
        if self.n is None:
            return words
        estimated = isinstance(self.n, tuple)
        known = "an estimate of the rows" if estimated else "the rows of each group"
        return f"{words}, given {known}"


NO_OPTIONS = QueryOptions()
"""No option is given."""
