"""Margins, as they are asked for: tables by some sets of columns, checked to fit together."""

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias, cast

import pandas as pd

from dpframe.context import cached_property
from dpframe.errors import QueryError, a_type, quote
from dpframe.frozen import frozen
from dpframe.options import ChosenRows, Columns, Keys, Other
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.public import public_call
from dpframe.queries.aggregate import AskedPart, check_part, check_weights, outputs_of, read_outputs
from dpframe.queries.groups import check_other, split_groups
from dpframe.queries.of_columns import count
from dpframe.queries.query import Query
from dpframe.queries.reading import (
    check_number,
    check_whole,
    labels_of,
    limits_of,
    materialized_keys,
    read_weight,
    refuse_unknown,
)
from dpframe.queries.where import Condition

_IN_EVERY_TABLE = "margins count a row in one cell of every table, so that"


@frozen(eq=False)
class Margins(Query):
    """Tables by some sets of columns, or one of these tables.

    Parameters
    ----------
    tables
        The sets of columns, each in the order of `by`; none: it is one table.
    """

    tables: tuple[tuple[Hashable, ...], ...] = field(default=(), kw_only=True)

    groups_named_by = "columns"

    def caps(self, declared: Caps) -> Caps:
        """Keep so many rows of a unit: a row is in a cell of every table, so that all is one group.

        Raises
        ------
        QueryError
            If other caps are declared, and not replaced by `max_rows` in the call.
        """
        caps = self.limits if self.limits.rows else declared
        others = replace(caps, rows=None)
        if others == NO_CAPS:
            return caps
        reason = f"{_IN_EVERY_TABLE} a cap on groups has no meaning for all of them together;"
        remedy = "Give max_rows= in the query, which then holds alone, or declare max_rows= alone."
        message = f"{reason} got {others.words[2:]}. {remedy}"
        raise QueryError(message, parameter="max_rows")

    @cached_property
    def margins(self) -> Mapping[tuple[Hashable, ...], Query]:
        """The tables, by their columns."""
        return {
            table: Margins(
                table,
                self.where,
                outputs=self.outputs,
                subject=self.subject,
                shared=self.shared,
                limits=self.limits,
            )
            for table in self.tables
        }


MarginWeights: TypeAlias = Mapping[Hashable, float] | None
"""How important tables are, by their columns."""

ColumnSet: TypeAlias = tuple[Hashable, ...]

_WAYS = 2  # columns of a table, unless the call says so
_MOST_LAYERS = 2**17  # layers of all tables; planning more would take very long
_FAR_APART = 1e6  # how many times a weight may be more or less than 1
_GROUP_CAPS = ("max_groups", "max_rows_per_group")


@public_call
def margins(
    columns: Columns | Iterable[Sequence[Hashable]], ways: int | None = None, *,
    where: str | None = None, keys: Keys = None, max_rows: int | None = None,
    weight: float = 1.0, other: Other = None, weights: MarginWeights = None,
    **queries: AskedPart,
) -> Margins:  # fmt: skip
    """Describe tables by several sets of columns that agree with each other.

    They are measured together: the cells of a table add up to those of all tables by fewer of its
    columns, and errors are smaller than those of tables released one by one. With Gaussian noise,
    all cells of all tables have the same standard error: with `n_i` the number of groups of column
    i, `1 / mu` times the root of the sum over all sets S of columns that are part of a table of
    `prod_{i in S} (n_i - 1) / (n_i + 1)`. With pure noise, separate tables are measured and
    reconciled by least squares.

    A row is in one cell of every table. A row whose key is not declared, in any of the columns, is
    left out of all tables.

    Parameters
    ----------
    columns
        Columns: all sets of at most `ways` make a table, also the empty one, all rows. Or a list of
        such sets, each a list of columns, or a tuple if `ways` is not given; the columns of a table
        are in the order in which `columns` names them first.
    ways
        How many columns a table has at most, 2 by default. Not for lists of sets. With it, a tuple
        is the label of one column.
    where
        As in `count`.
    keys
        The groups, if not declared: a dict from column to list. Or the combinations that rows can
        have, a frame with one column per name in `columns`: such as regions with their countries.
        All other rows are left out, as those of keys that are not declared.
    other
        As in `count`.
    weights
        How important the error of a cell is, by table, 1 by default:
        `{("sex", "age"): 4, "region": 2, (): 10}`. The weighted sum of the variances is then the
        least possible, and errors differ between tables.
    max_rows
        Rows of a unit that are kept, the same for all tables, in place of the declared cap.
    weight
        As in `count`: of all tables together, beside other queries.
    **queries
        Output columns, as in `aggregate`: counts, sums, means and rates, all with the same survey
        weights or all without. Without any, `count=count()`.

    Raises
    ------
    QueryError
        If an argument is not usable, or a query does not fit.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"], "paid": ["card", "cash", "cash"]})
    >>> query = margins(["zone", "paid"], keys={"zone": ["A", "B"], "paid": ["card", "cash"]})
    >>> tables = dpf.release(trips, query, epsilon=1e6)  # hardly any noise
    >>> list(tables)
    [(), ('zone',), ('paid',), ('zone', 'paid')]
    >>> tables["zone", "paid"]["count"].round(3).tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    named, cuts = split_groups(_list_sets(columns))
    by, tables = _tables(named, ways)
    outputs = read_outputs(queries) or {"count": count()}
    for name, query in outputs.items():
        _check_part(name, query, by)
    check_weights(outputs, "margins")
    # an output whose name says no more than its query stands for both
    subject = ", ".join(
        part.words if part.words == name else f"{name}: {part.words}"
        for name, part in outputs.items()
    )
    return Margins(
        by,
        None if where is None else Condition.parse(where),
        _keys(by, keys),
        **outputs_of(outputs),
        subject=subject,
        tables=tables,
        margin_weights=_weights(by, tables, weights),
        cuts=cuts,
        other=check_other(by, cuts, other),
        limits=limits_of(ChosenRows(max_rows=max_rows)),
        weight=read_weight(weight),
    )


def _tables(listed: list[object], ways: object) -> tuple[ColumnSet, tuple[ColumnSet, ...]]:
    """Read all columns, and those of each table in their order."""
    kinds = list | tuple if ways is None else list
    sets = [labels for labels in listed if isinstance(labels, kinds)]
    if not sets:
        by = labels_of("columns", listed)
        return by, _all_sets(by, ways)
    if ways is not None:
        rule = "has no place beside lists of columns, which name the tables one by one"
        remedy = "With columns=[...], ways= makes all tables by so many columns at most."
        raise QueryError.about("ways", rule, ways, remedy)
    if len(sets) < len(listed):
        rule = "columns must be labels, or lists of labels, one for each table; got both."
        remedy = "A table by one column is written ['region']."
        ways = "Labels that are tuples are told apart by ways=."
        raise QueryError(f"{rule} {remedy} {ways}", parameter="columns")
    chosen = [labels_of("columns", list(labels)) for labels in sets]
    by = tuple(dict.fromkeys(itertools.chain(*chosen)))
    tables = tuple(_in_order(by, labels) for labels in chosen)
    if len(set(tables)) != len(tables):
        raise QueryError.about("columns", "must not name a table twice", list(tables))
    _check_layers(sum(2 ** len(labels) for labels in tables))
    return by, tables


def _list_sets(columns: object) -> list[object]:
    """Read a list of labels or sets; a label alone is refused, since a set is."""
    wrong = isinstance(columns, str | bytes | set | frozenset | Mapping | pd.Series | pd.DataFrame)
    if wrong or not isinstance(columns, Iterable):
        rule = "columns must be a list of column labels, or a list of lists of them"
        remedy = "For a single table, use dpf.count(by=...)."
        raise QueryError(f"{rule}, got {a_type(columns)}. {remedy}", parameter="columns")
    listed = list(columns)
    if not listed:
        raise QueryError.about("columns", "must name at least one column", listed)
    return listed


def _all_sets(by: ColumnSet, ways: object) -> tuple[ColumnSet, ...]:
    """List all sets of so many columns at most, the smallest first."""
    most = min(_WAYS, len(by)) if ways is None else check_whole("ways", ways, len(by))
    sizes, sets, layers = range(most + 1), 1, 0
    for size in sizes:
        layers += sets * 2**size
        sets = sets * (len(by) - size) // (size + 1)
        _check_layers(layers)
    return tuple(table for size in sizes for table in itertools.combinations(by, size))


def _check_layers(layers: int) -> None:
    """Refuse so many tables that planning them would take very long."""
    if layers > _MOST_LAYERS:
        wrong = "these are too many tables, or tables by too many columns:"
        reason = f"the sum of 2**columns over all tables may be {_MOST_LAYERS:,} at most."
        remedy = "Use fewer ways=, or list the tables that are wanted."
        raise QueryError(f"{wrong} {reason} {remedy}", parameter="ways")


def _in_order(by: ColumnSet, table: Iterable[Hashable]) -> ColumnSet:
    return tuple(sorted(table, key=by.index))


def _check_part(name: str, query: Query, by: ColumnSet) -> None:
    if name in _GROUP_CAPS:
        reason = (
            f"{_IN_EVERY_TABLE} {name}= has no meaning for all of them together; give max_rows=."
        )
        raise QueryError(reason, parameter=name)
    check_part(name, query, by, "margins")
    if not all(output.form.is_total or output.form.is_mean for output in query.outputs):
        wrong = f"{name}= is of a kind that margins do not have:"
        reason = "they are counts, sums, means and rates. Release it beside them:"
        remedy = f"release({{'margins': dpf.margins(...), {name!r}: dpf.aggregate(by=..., ...)}})."
        raise QueryError(f"{wrong} {reason} {remedy}", parameter=name)


def _keys(by: ColumnSet, keys: Keys) -> Keys:
    """Check that keys are given by column, or as the cells that can hold rows."""
    if keys is None or (by and isinstance(keys, pd.DataFrame | pd.MultiIndex)):
        return keys
    if not isinstance(keys, Mapping):
        example = f"must be a dict by column, as in keys={{{by[-1]!r}: ...}}"
        raise QueryError.about("keys", example if by else "needs columns", keys)
    refuse_unknown("keys", keys, by)
    return {column: materialized_keys(cast(Keys, groups)) for column, groups in keys.items()}


def _weights(by: ColumnSet, tables: Sequence[ColumnSet], weights: object) -> tuple[float, ...]:
    """Read how important tables are, in their order."""
    if weights is None:
        return ()
    if not isinstance(weights, Mapping):
        rule = "must be a dict from the columns of a table to a number"
        remedy = "Weights of rows go to each output: margins(..., count=dpf.count(weights=...))."
        raise QueryError.about("weights", rule, weights, remedy)
    least, most = 1 / _FAR_APART, _FAR_APART
    rule = f"must be numbers from {least:g} to {most:g}"
    by_table: dict[ColumnSet, float] = {}
    for columns, weight in weights.items():
        table = _named_table(by, tables, columns)
        if table in by_table:
            raise QueryError.about("weights", "must not name a table twice", columns)
        by_table[table] = check_number(
            "weights", weight, rule, least=least, most=most, label=columns
        )
    return tuple(by_table.get(table, 1.0) for table in tables)


def _named_table(by: ColumnSet, tables: Sequence[ColumnSet], columns: Hashable) -> ColumnSet:
    """Find a table by its columns, in any order."""
    sets = [columns] if isinstance(columns, tuple | frozenset) else []
    for table in (*sets, (columns,)):  # a tuple names several columns, or is the label of one
        if set(table) <= set(by) and (table_in_order := _in_order(by, set(table))) in tables:
            return table_in_order
    wrong = f"weights names {quote(columns)}, which is none of the {len(tables)} tables"
    raise QueryError(f"{wrong}, such as {tables[-1]!r}.", parameter="weights", value=columns)
