"""Several tables of the same rows, each by some of the same columns, that agree with each other."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.errors import QueryError, quote
from dpframe.forks import cached_property
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.kinds import Aggregate, Query
from dpframe.queries.tasks import Axis, BinAxis, KeyAxis


@dataclass(frozen=True, eq=False)
class Margins(Aggregate):
    """Tables by some sets of columns.

    Parameters
    ----------
    tables
        The sets of columns, each in the order of `by`.
    weights
        How much the variance of a cell of each table counts; none: all errors are to be equal.
    bins
        Bins of numeric columns among `by`.
    other
        By column, the key for rows with none of its keys.
    """

    tables: tuple[tuple[Hashable, ...], ...] = field(kw_only=True)
    weights: tuple[float, ...] = field(default=(), kw_only=True)
    bins: Mapping[Hashable, pd.IntervalIndex] = field(default_factory=dict, kw_only=True)
    other: Mapping[Hashable, Hashable] = field(default_factory=dict, kw_only=True)

    @property
    def what(self) -> str:
        """What is computed."""
        return f"{_outputs(self)} in {len(self.tables)} margins"

    @cached_property
    def margins(self) -> Mapping[tuple[Hashable, ...], Query]:
        """The tables, by their columns."""
        return {
            table: _Margin(table, self.where, queries=self.queries, limits=self.limits)
            for table in self.tables
        }

    @property
    def margin_weights(self) -> tuple[float, ...]:
        """How much the variance of a cell of each table counts."""
        return self.weights

    def axis(self, column: Hashable, keys: pd.Index | None) -> Axis | None:
        """Return bins, or keys of which the last one is for all other rows."""
        if column in self.bins:
            return BinAxis(column, self.bins[column])
        if keys is None or column not in self.other:
            return super().axis(column, keys)
        return KeyAxis(column, _with_rest(column, keys, self.other[column]), rest=True)

    def caps(self, declared: Caps) -> Caps:
        """Keep so many rows of a unit: a row is in a cell of every table, so that all is one group.

        Raises
        ------
        QueryError
            If other caps are given, or declared and not replaced by `max_rows` in the call.
        """
        return _rows_alone(self.limits, declared)


@dataclass(frozen=True, eq=False)
class _Margin(Aggregate):
    """One of these tables."""

    @property
    def what(self) -> str:
        """What is computed."""
        return _outputs(self)

    def caps(self, declared: Caps) -> Caps:
        """Return what is kept of a unit, the same for all tables."""
        return _rows_alone(self.limits, declared)


def _outputs(query: Aggregate) -> str:
    """Name the outputs; a name that says no more than its query stands for both."""
    return ", ".join(
        part.words if part.words == name else f"{name}: {part.words}"
        for name, part in query.queries.items()
    )


def _with_rest(column: Hashable, keys: pd.Index, rest: Hashable) -> pd.Index:
    """Put a key behind all others, of which it must be none: it would not say what it counts."""
    if is_one_of(rest, keys):
        raise QueryError(
            f"other={quote(rest)} equals a key of {column!r}, and rows with that key would be "
            "counted "
            f"together with all that have none: choose another one, other={{{column!r}: ...}}, or "
            f"leave {quote(rest)} out of the keys, so that its rows count as such, too."
        )
    return pd.Index([*keys, rest], name=keys.name, tupleize_cols=False)


def _rows_alone(own: Caps, declared: Caps) -> Caps:
    caps = own if own.rows else declared
    limits = replace(NO_CAPS, groups=caps.groups, rows_per_group=caps.rows_per_group)
    if limits == NO_CAPS and own.groups is None and own.rows_per_group is None:
        return Caps(rows=caps.rows)
    given = (limits if limits != NO_CAPS else replace(own, rows=None)).words[2:]
    raise QueryError(
        f"margins count a row in one cell of every table, so that a cap on groups has no meaning "
        f"for all of them together; got {given}. Give max_rows= in the query, which then holds "
        "alone, or declare max_rows= alone."
    )
