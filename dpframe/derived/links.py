"""The functions by which columns are computed: what each does to rows, and to a column."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, assert_never

import numpy as np
import pandas as pd

from dpframe.cells.keys import check_margins_apart, factored, label_of, token
from dpframe.certificates import definitions
from dpframe.certificates.json_records import unpack
from dpframe.derived.columns import (
    ColumnCombinations,
    ColumnPair,
    ColumnQuotient,
    ColumnSums,
    ComputedColumn,
    error_of,
    least_of,
    not_read_off,
    of_total,
    poisson,
    sums_of,
)
from dpframe.derived.linear import Matrix, Shared, grouping, sparse
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.inference.quotients import span_of_signs

PERCENT = 100.0  # per cent of a part of 1


@frozen(eq=False)
class KeyRows:
    """The rows of a table by their keys.

    Parameters
    ----------
    names
        The levels, as texts.
    keys
        By level, the keys in order.
    codes
        By level, which of them each row has.
    margins
        The place of the key that stands for all keys of a level, by level.
    """

    names: Sequence[str]
    keys: Sequence[pd.Index]
    codes: np.ndarray
    margins: Mapping[str, int]

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.codes.shape[1])

    def at(self, name: str) -> int:
        """Return the position of a level."""
        if name not in self.names:
            rule = f"must name a level of the index, {quote(list(self.names))}"
            raise QueryError.about("by", rule, name)
        return list(self.names).index(name)

    def place(self, name: str, written: str) -> int:
        """Return the place of a key, written as JSON, of a level."""
        tokens = [token(key) for key in self.keys[self.at(name)]]
        if written not in tokens:
            rule = f"{written} is no key of level {name!r}"
            raise QueryError(f"{rule}: {quote(list(self.keys[self.at(name)])[:5])}.")
        return tokens.index(written)

    def groups(self, names: Sequence[str]) -> np.ndarray:
        """Return the group of each row: rows with the same keys of some levels, in order."""
        flat = np.zeros(self.size, np.intp)
        for name in names:
            at = self.at(name)
            _, flat = np.unique(flat * len(self.keys[at]) + self.codes[at], return_inverse=True)
        return pd.factorize(flat)[0]

    def others(self, name: str) -> list[str]:
        """Return the levels but one."""
        return [other for other in self.names if other != name]

    def without(self, name: str) -> "KeyRows":
        """Return them without a level."""
        at = self.at(name)
        keys = [level_keys for place, level_keys in enumerate(self.keys) if place != at]
        margins = {other: key for other, key in self.margins.items() if other != name}
        return KeyRows(self.others(name), keys, np.delete(self.codes, at, axis=0), margins)

    def take(self, rows: np.ndarray) -> "KeyRows":
        """Return some of them."""
        return replace(self, codes=self.codes[:, rows])

    @property
    def index(self) -> pd.Index:
        """Their keys, as an index."""
        if not self.names:
            return pd.RangeIndex(self.size)
        if len(self.names) == 1:
            return self.keys[0].take(self.codes[0]).rename(self.names[0])
        levels: Any = list(self.keys)
        return pd.MultiIndex(levels=levels, codes=list(self.codes), names=list(self.names))


def rows_of(index: pd.Index) -> KeyRows:
    """Take the keys of an index apart."""
    if list(index.names) == [None]:
        return KeyRows([], [], np.zeros((0, len(index)), np.intp), {})
    parts = [factored(index, at) for at in range(index.nlevels)]
    codes = np.array([part.codes for part in parts], np.intp).reshape(len(parts), len(index))
    return KeyRows([str(name) for name in index.names], [part.keys for part in parts], codes, {})


@frozen(eq=False)
class ComputedTable:
    """Columns over some rows.

    Parameters
    ----------
    rows
        The rows.
    columns
        The columns, by the name of the released one.
    """

    rows: KeyRows
    columns: Mapping[str, ComputedColumn]

    def apply(  # noqa: PLR0911  # a function a line
        self, link: definitions.Link, others: Mapping[str, "ComputedTable"]
    ) -> "ComputedTable":
        """Return the table after a function.

        Parameters
        ----------
        link
            The function.
        others
            Other releases that it may divide by, by origin.
        """
        rows = self.rows
        match link:
            case definitions.TotalLink():
                return _total(self, link)
            case definitions.ChangeLink():
                return _change(self, link)
            case definitions.PercentLink():
                return _each(self, rows, lambda column: _percent(column, rows, link, others))
            case definitions.PerLink():
                weights = link.unit / np.asarray(unpack(link.population))
                return _each(self, rows, lambda column: _scaled(column, weights, "per"))
            case definitions.StandardizeLink():
                return _standardize(self, link)
            case definitions.RelativeLink():
                return _each(self, rows, lambda column: _relative(column, rows, link))
            case definitions.RatioLink():
                return _each(self, rows, lambda column: _ratio(column, self.columns[link.to]))
            case _:
                assert_never(link)


def _each(table: ComputedTable, rows: KeyRows, change: Any) -> ComputedTable:
    return ComputedTable(rows, {name: change(column) for name, column in table.columns.items()})


def _total(table: ComputedTable, link: definitions.TotalLink) -> ComputedTable:
    """Add rows up."""
    rows = table.rows
    if rows.margins:
        rule = "total is for rows that are apart, and these have totals among them"
        raise QueryError(f"{rule}. Take it before, or choose rows without them.")
    mapped = _mapped(rows, link.mapping)
    kept = [mapped.at(name) for name in link.by]
    names, keys = list(link.by), [mapped.keys[at] for at in kept]
    codes = mapped.codes[kept]
    margins = {}
    parts = [codes]
    if link.margins is not None:
        key = label_of(link.margins)
        margins = {name: len(level_keys) for name, level_keys in zip(names, keys, strict=True)}
        check_margins_apart(key, keys)
        keys = [
            pd.Index([*level_keys, key], dtype=object, tupleize_cols=False) for level_keys in keys
        ]
        # the first choice sums over no level: these are the rows themselves
        for choice in list(product([False, True], repeat=len(names)))[1:]:
            margin_codes = codes.copy()
            for at, summed in enumerate(choice):
                if summed:
                    margin_codes[at] = margins[names[at]]
            parts.append(margin_codes)
    codes, cells = np.concatenate(parts, axis=1), np.tile(np.arange(rows.size), len(parts))
    sizes = [len(level_keys) for level_keys in keys]
    flat = np.ravel_multi_index(tuple(codes), sizes) if names else np.zeros(len(cells), np.intp)
    used, first, groups = np.unique(flat, return_index=True, return_inverse=True)
    if link.margins is None:  # in the order of the table
        order = np.argsort(first)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        first, groups = first[order], places[groups]
    weights = sparse().csr_array((np.ones(len(cells)), (groups, cells)), (len(used), rows.size))
    total_rows = KeyRows(names, keys, codes[:, first], margins)
    return _each(table, total_rows, lambda column: _added(column, weights))


def _added(column: ComputedColumn, weights: Any) -> ColumnSums:
    sums = sums_of(column, "total")
    if sums.statistic.interval in ("test by row", "none"):
        raise not_read_off(sums.part)
    return sums.map(lambda feature: feature.times(weights))


def _mapped(rows: KeyRows, mapping: Mapping[str, Mapping[str, str]]) -> KeyRows:
    """Put keys into groups."""
    keys, codes = list(rows.keys), rows.codes.copy()
    for name, groups in mapping.items():
        at = rows.at(name)
        old = [token(key) for key in keys[at]]
        new = [groups.get(key, key) for key in old]
        tokens = list(dict.fromkeys(new))
        keys[at] = pd.Index([label_of(key) for key in tokens], dtype=object, tupleize_cols=False)
        keys[at] = keys[at].infer_objects()
        places = np.array([tokens.index(key) for key in new], np.intp)
        codes[at] = places[codes[at]]
    return replace(rows, keys=keys, codes=codes)


def _change(table: ComputedTable, link: definitions.ChangeLink) -> ComputedTable:
    """Compare rows with earlier ones."""
    rows = table.rows
    at = rows.at(link.along)
    places = rows.codes[at]
    # the key that stands for all keys comes last, and is later than none
    last = rows.margins.get(link.along, len(rows.keys[at]))
    groups = rows.groups(rows.others(link.along))
    width = len(rows.keys[at])
    rows_by_place = {int(flat): row for row, flat in enumerate(groups * width + places)}
    earlier = np.full(rows.size, -1, np.intp)
    for row, (group, place) in enumerate(zip(groups, places, strict=True)):
        if link.lag <= place < last:
            earlier[row] = rows_by_place.get(int(group * width + place - link.lag), -1)
    now = np.flatnonzero(earlier >= 0)
    if not len(now):
        rule = f"no two rows differ by {link.lag} keys of level {link.along!r} alone"
        raise QueryError(f"{rule}. Give another level, or a smaller lag.", parameter="along")
    then = earlier[now]
    kept_rows = rows.take(now)
    if link.dropped:
        kept_rows = kept_rows.without(link.along)
    return _each(table, kept_rows, lambda column: _changed(column, now, then, percent=link.percent))


def _changed(
    column: ComputedColumn, now: np.ndarray, then: np.ndarray, *, percent: bool
) -> ComputedColumn:
    if isinstance(column, ColumnCombinations) and not percent:
        return column.less(now, then)
    sums = sums_of(column, "change")
    if percent and sums.part.times is not None and sums.part.times.counted != "in seconds":
        rule = "is for numbers and durations, and points in time have no zero"
        raise QueryError.about("percent", rule, True, "Leave it out.")
    current, earlier = sums.take(now), sums.take(then)
    if not sums.is_total:
        return ColumnPair(current, earlier, percent)
    if not percent:
        variance = None if current.variance is None else current.variance + earlier.variance
        difference = sums.map(lambda _: current.total.plus(earlier.total.scaled(-1.0)))
        return replace(difference, variance=variance)
    span = span_of_signs(sums.signs, sums.signs)
    bottom, variance = earlier.total, None
    if current.variance is not None:
        variance = _of_both(current.variance, earlier.variance)
    return ColumnQuotient(
        current.total, bottom, span, least_of(sums, bottom), PERCENT, -PERCENT, variance=variance
    )


def _of_both(top: Any, bottom: Any) -> Any:
    return lambda a, b, rows: np.square(a) * top[rows] + np.square(b) * bottom[rows]


def _percent(
    column: ComputedColumn,
    rows: KeyRows,
    link: definitions.PercentLink,
    others: Mapping[str, ComputedTable],
) -> ComputedColumn:
    sums = of_total(column, "percent")
    top = sums.total
    match link.of:
        case None:
            pass
        case str():
            return _percent_of_release(sums, rows, others[link.of], str(link.of_column))
        case number:
            return _scaled(sums, np.full(rows.size, PERCENT / number), "percent")
    if rows.margins:
        rule = "percent is for rows that are apart, and these have totals among them"
        raise QueryError(f"{rule}. Take it before, or divide by them with .dp.relative.")
    groups = rows.groups(link.by)
    cells = np.bincount(groups)[groups]
    bottom = Shared(top.times(grouping(groups, int(groups.max(initial=-1)) + 1)), groups)
    span = (0.0, 1.0) if sums.part.span[0] >= 0 else (-np.inf, np.inf)
    (_, numbers), *more_terms = top.terms
    plain = sums.intervals is not None and not more_terms
    scalar = plain and not any(map(np.ndim, numbers.loadings.values()))
    shares = cells if scalar and span[0] == 0 else None
    least = 1.0 if sums.part.counts_rows and not sums.scaled else least_of(sums, bottom)
    variance = None if sums.variance is None else poisson(bottom.values)
    return ColumnQuotient(top, bottom, span, least, PERCENT, shares=shares, variance=variance)


def _percent_of_release(
    sums: ColumnSums, rows: KeyRows, other: ComputedTable, name: str
) -> ColumnQuotient:
    """Divide by the cells of another release, with all keys that it has."""
    column = other.columns[name]
    below = of_total(column, "of=")
    names = list(other.rows.names)
    lacking = [name for name in names if name not in rows.names]
    if lacking:
        rule = f"must have levels of this table alone, and has {quote(lacking)}"
        raise QueryError.about("of", rule, None, "Release it by fewer columns.")
    rows_by_keys = {keys: at for at, keys in enumerate(_tokens(other.rows, names))}
    places = np.array([rows_by_keys.get(keys, -1) for keys in _tokens(rows, names)], np.intp)
    if (places < 0).any():
        raise QueryError("of= must have a row for all keys of this table.", parameter="of")
    bottom = Shared(below.total, places)
    top = sums.total
    ids = {numbers.release.release_id for _, numbers in top.terms}
    if ids & {numbers.release.release_id for _, numbers in below.total.terms}:
        rule = "of= must be another release: noise of one release may be shared"
        raise QueryError(f"{rule}. For the total of a table, leave it out.", parameter="of")
    people = (
        below.part.counts_rows and sums.part.counts_rows and sums.part.where == below.part.where
    )
    span = (0.0, 1.0) if people else span_of_signs(sums.signs, below.signs)
    return ColumnQuotient(top, bottom, span, least_of(below, bottom), PERCENT)


def _tokens(rows: KeyRows, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the keys of each row, as JSON, of some levels."""
    columns = []
    for name in names:
        at = rows.at(name)
        written = [token(key) for key in rows.keys[at]]
        columns.append([written[code] for code in rows.codes[at]])
    return list(zip(*columns, strict=True)) if columns else [()] * rows.size


def _scaled(column: ComputedColumn, weights: np.ndarray, call: str) -> ColumnSums:
    sums = of_total(column, call)
    if sums.part.times is not None:
        rule = f"{call} is for numbers, and {quote(sums.part.name)} counts time"
        raise QueryError(f"{rule}. Choose other columns, released[[...]].")
    return sums.map(lambda feature: feature.scaled(weights), scaled=True)


def _standardize(table: ComputedTable, link: definitions.StandardizeLink) -> ComputedTable:
    """Add up rates, each with the weight of its key."""
    rows = table.rows
    if rows.margins:
        raise QueryError("standardize is for rows that are apart. Take it before totals.")
    groups = rows.groups(rows.others(link.over))
    size = int(groups.max(initial=-1)) + 1
    if (np.bincount(groups, minlength=size) != len(rows.keys[rows.at(link.over)])).any():
        rule = f"standardize needs all keys of level {link.over!r} in each group of rows"
        raise QueryError(f"{rule}. Release counts of all of them.", parameter="over")
    shares = link.unit * np.asarray(unpack(link.weights))
    sums = grouping(groups, size)
    first = np.unique(groups, return_index=True)[1]
    kept = rows.without(link.over).take(first)
    if link.population is None:
        return _each(table, kept, lambda column: _weighted_rates(column, link.unit, shares, sums))
    rates = shares / np.asarray(unpack(link.population))

    def standardized(column: ComputedColumn) -> ColumnSums:
        return _scaled(column, rates, "standardize").map(lambda feature: feature.times(sums))

    return _each(table, kept, standardized)


def _weighted_rates(
    column: ComputedColumn, unit: float, weights: np.ndarray, sums: Matrix
) -> ColumnCombinations:
    """Add up released means or rates."""
    rates = sums_of(column, "standardize")
    if rates.is_total or rates.combined is None:
        rule = "standardize without population= is for released means and rates, each by itself"
        way_out = "Give population= for counts and sums, or take it before totals."
        raise QueryError(f"{rule}. {way_out}", parameter="population")
    if unit != 1 and rates.part.times is not None:
        raise QueryError.about("unit", "is for numbers, and must be 1 for times", unit)
    matrix = sums.copy()
    matrix.data = weights[matrix.indices]
    return ColumnCombinations(rates.part, rates.combined, matrix)


def _relative(
    column: ComputedColumn, rows: KeyRows, link: definitions.RelativeLink
) -> ColumnQuotient:
    """Divide rows by the one with another key of a level."""
    sums = of_total(column, "relative")
    base = rows.codes[rows.at(link.along)] == rows.place(link.along, link.to)
    groups = rows.groups(rows.others(link.along))
    places = np.full(int(groups.max(initial=-1)) + 1, -1, np.intp)
    places[groups[base]] = np.flatnonzero(base)
    if (places < 0).any():
        rule = f"relative needs a row with that key of {link.along!r} for each of the others"
        raise QueryError(f"{rule}. Give another key.", parameter="to")
    top = sums.total
    bottom = Shared(top.take(places), groups)
    span = span_of_signs(sums.signs, sums.signs)
    return ColumnQuotient(top, bottom, span, least_of(sums, bottom), same=base)


def _ratio(column: ComputedColumn, other: ComputedColumn) -> ColumnQuotient:
    """Divide a column by another one."""
    x, y = of_total(column, "ratio"), of_total(other, "ratio")
    top, bottom = x.total, y.total
    variance = None if y.variance is None or x.variance is None else poisson(bottom.values)
    least = 1.0 if y.part.counts_rows and not y.scaled else float(np.max(error_of(bottom))) or 1.0
    return ColumnQuotient(top, bottom, _span(x, y), least, variance=variance)


def _span(x: ColumnSums, y: ColumnSums) -> tuple[float, float]:
    """Return where a quotient lies, from public facts: what a row adds to both columns."""
    low, high = x.part.span
    alike = y.part.form.is_whole and x.part.weights == y.part.weights
    if alike and y.part.where in (None, x.part.where) and not (x.scaled or y.scaled):
        return min(low, 0.0), max(high, 0.0)  # x is about rows that y counts
    return span_of_signs((low, high), y.part.span)
