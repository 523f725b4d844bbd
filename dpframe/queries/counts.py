"""Queries for numbers and shares: rows, rows that satisfy a condition, and units."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Literal

from dpframe.errors import QueryError, quote
from dpframe.options import By, ChosenRows, Keys, Other
from dpframe.privacy.neighbors import Caps
from dpframe.public import public_call
from dpframe.queries import reading
from dpframe.queries.conditions import compared_with_itself
from dpframe.queries.query import OutputSpec, Query, weighted_words
from dpframe.queries.where import Condition


@dataclass(frozen=True, eq=False)
class Count(Query):
    """The number of rows per group, or the total of their weights."""

    weights: Hashable = field(default=None, kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column."""
        return (OutputSpec("count", "count", weights=self.weights),)

    @property
    def subject(self) -> str:
        """What is computed."""
        return "count" if self.weights is None else weighted_words("total", self.weights)


@public_call
def count(
    by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, weights: Hashable = None,
) -> Count:  # fmt: skip
    """Describe the number of rows per group.

    Parameters
    ----------
    by
        Column or list of columns to group by; `None`: one group of all rows.
    weights
        Column of survey weights w, with declared bounds (0, W): a row counts for w in place of 1,
        and the count is the weighted total, the sum of w. Weights are clipped to their bounds; a
        missing one counts for nothing. Noise is W times that of a count.
    where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        See `dpframe.options.ChosenRows`.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> count(by="zone", where="fare > 0").by
    ('zone',)
    >>> count(by="region", weights="w").words
    'weighted total (weights w) by region'
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    return Count(**reading.groups_of(by, rows), weights=reading.weights_of(weights))


@dataclass(frozen=True, eq=False)
class Rate(Query):
    """The share of the rows per group that satisfy a condition."""

    met: Condition = field(kw_only=True)
    blanks_fail: bool = field(default=False, kw_only=True)
    weights: Hashable = field(default=None, kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column."""
        share = OutputSpec("rate", "rate", condition=self.met, weights=self.weights)
        return (replace(share, blanks_fail=self.blanks_fail),)

    @property
    def subject(self) -> str:
        """What is computed."""
        blanks = ", missing as not met" if self.blanks_fail else ""
        return weighted_words(f"rate of {self.met.text}{blanks}", self.weights)


@public_call
def rate(
    condition: str, by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None, weights: Hashable = None, missing: Literal[False] | None = None,
) -> Rate:  # fmt: skip
    """Describe the share of the rows per group that satisfy a condition.

    With A the number of rows that satisfy it and C the number of those that do not, it is `A / (A +
    C)`, in [0, 1]. A row in which a column of the condition is missing counts in neither, unless
    `missing=False`. A row moves one of the two by 1, so both together cost one count.

    Parameters
    ----------
    condition
        A row-wise condition, for instance `"dep_delay > 15"`.
    missing
        `False`: rows that something missing keeps from meeting the condition count as not meeting
        it, for columns that are ticked or blank. `None`: they are left out.
    weights
        As in `count`: A and C are the weighted totals of these rows.
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`; rows that do not satisfy `where` count in neither number.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [9.5, 20.0, 7.5]})
    >>> query = rate("fare > 8", by="zone", keys=["A", "B"])
    >>> dpf.release(trips, query, epsilon=1e6)["rate"].round(3).tolist()  # hardly any noise
    [0.5, 1.0]
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups, met = reading.groups_of(by, rows), Condition.parse(condition, "condition")
    weights = reading.weights_of(weights)
    if missing is not None and missing is not False:
        rule = "must be False, so that a missing value counts as not met, or None, to leave it out"
        raise QueryError.about("missing", rule, missing)
    alone = compared_with_itself(met)
    if missing is None and alone is not None:
        rule = f"compares {quote(alone)} with itself, and rows where it is missing are left out:"
        reason = f"condition {rule} the rate says nothing."
        remedy = "For the share of rows that have a value, add missing=False."
        raise QueryError(f"{reason} {remedy}", parameter="condition", label=alone)
    return Rate(**groups, met=met, blanks_fail=missing is False, weights=weights)


@dataclass(frozen=True, eq=False)
class UnitCount(Query):
    """The number of distinct privacy units per group."""

    outputs = (OutputSpec("units", "count"),)
    subject = "units"
    counts_units = True

    def caps(self, declared: Caps) -> Caps:
        """Keep one row of a unit per group: it is in no more groups than it may have rows."""
        caps = super().caps(declared)
        limits = [cap for cap in (caps.groups, caps.rows) if cap is not None]
        return Caps(groups=min(limits, default=None), rows_per_group=1)


@public_call
def units(
    by: By = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    max_groups: int | None = None, max_rows_per_group: int | None = None, weight: float = 1.0,
    other: Other = None,
) -> UnitCount:  # fmt: skip
    """Describe the number of distinct privacy units per group.

    A unit counts once in a group, however many rows it has there; `max_rows` and
    `max_rows_per_group` drop no row. It counts in at most `g` groups, the smallest of `max_groups`,
    `max_rows` and the number of groups; if it has more, in a uniformly random choice. One unit more
    or fewer moves at most g counts by 1, one replaced at most `min(2 g, number of groups)`. Without
    a privacy unit, every row is one.

    Parameters
    ----------
    by, where, keys, max_rows, max_groups, max_rows_per_group, weight, other
        As in `count`; a unit is in a group if one of its rows there satisfies `where`.
        `max_rows_per_group` is refused: it would change nothing.

    Raises
    ------
    QueryError
        If an argument is not usable.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"driver": [1, 1, 2], "zone": ["A", "A", "B"]})
    >>> dpf.declare(trips, keys={"zone": ["A", "B"]}, privacy_unit="driver", max_rows=2)
    >>> released = trips.dp.units(by="zone", epsilon=1e6)  # so much that hardly any noise is added
    >>> released["units"].tolist()
    [1, 1]
    """
    rows = ChosenRows(where, keys, max_rows, max_groups, max_rows_per_group, weight, other)
    groups = reading.groups_of(by, rows)
    if max_rows_per_group is not None:
        rule = "changes nothing for units, which count once in a group, whatever their rows"
        remedy = "Leave it out; max_groups= says in how many groups a unit counts."
        raise QueryError.about("max_rows_per_group", rule, max_rows_per_group, remedy)
    return UnitCount(**groups)
