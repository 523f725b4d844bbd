"""From a released table to tables and columns computed from it, with a record of how."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.cells.keys import factored, series_of, token
from dpframe.cells.record import Opened, carry, cells_part, codes_part, levels_of
from dpframe.cells.verify import Shown, check_whole, look_with
from dpframe.certificates.certificate import UNSEALED, Release, without_all_rows
from dpframe.certificates.column_parts import ColumnPart
from dpframe.certificates.definitions import Definition, DerivedDefinition, End, Link
from dpframe.certificates.json_records import plain
from dpframe.certificates.mechanism_parts import TreePart
from dpframe.certificates.parts import NO_ALIAS, AliasPart, TablePart
from dpframe.certificates.words import unit_in_lines
from dpframe.derived.columns import CellEstimates, ColumnSums, EndPair
from dpframe.derived.linear import LinearSums, Matrix, ReleasedNumbers, grouping
from dpframe.derived.links import ComputedTable, rows_of
from dpframe.errors import QueryError, quote
from dpframe.html import bounds_text
from dpframe.inference.combine import combined_rows
from dpframe.inference.intervals import all_intervals, check_not_selected
from dpframe.inference.joint_errors import check_no_given_rows, check_sampled, sampling_variance
from dpframe.queries.edges import in_seconds, seconds, times_between, times_like

ENDS: tuple[End | None, ...] = (None, "low", "high")
Chain = tuple[Link, ...]
_SUFFIXES = ("", "_low", "_high")


class ReleaseSource:
    """A release, or several in one table, from which columns are computed.

    Parameters
    ----------
    opened
        Its record.
    sampling
        Whether its rows are a sample.

    Raises
    ------
    QueryError
        If errors of its cells are not known, or its releases are not comparable.
    """

    def __init__(self, opened: Opened, *, sampling: bool = False) -> None:
        released = tuple(opened.table.released)
        self.opened = opened.changed(columns=released, alias=NO_ALIAS)
        self._sampling = sampling
        self._bars: dict[float, pd.DataFrame] = {}
        self.names = [column.name for column in self.releases[0].columns]
        for release in self.releases:
            check_not_selected(release, "this")
            _ = release.noise  # quantiles that were selected have none
            if isinstance(release.mechanism, TreePart):
                rule = "parts of a distribution were measured together"
                raise QueryError(f"{rule}. For numbers of rows in a range, use .dp.between(...).")
        if len(self.releases) > 1:
            _check_comparable(self.releases)
        self.rows = rows_of(self.opened.index)

    @property
    def releases(self) -> Sequence[Release]:
        """The releases."""
        return self.opened.releases

    def table(self, names: Sequence[str]) -> ComputedTable:
        """Return some of its columns."""
        return ComputedTable(
            self.rows, {name: self._column(self.names.index(name)) for name in names}
        )

    def _column(self, place: int) -> ColumnSums:
        part = self.releases[0].columns[place]
        if not part.features:
            rule = f"{quote(part.name)} are quantiles, which do not add up"
            raise QueryError(f"{rule}. Choose other columns, released[[...]].", label=part.name)
        cells = self.model(place)
        values = in_seconds(cells, part.origin)
        features = {name: self._feature(place, name, values) for name in part.features}
        variance = None
        if self._sampling:
            variance = np.zeros(len(values))
            for release in self.releases:
                column = release.columns[place]
                check_sampled(release, [column])
                variance[release.places] = sampling_variance(column, values[release.places])

        def intervals(level: float) -> EndPair:
            return self._intervals(place, level)

        def combined(weights: Matrix, level: float) -> np.ndarray:
            return self._combined(place, weights, level)

        return ColumnSums(part, features, intervals, variance=variance, combined=combined)

    def _combined(self, place: int, weights: Matrix, level: float) -> np.ndarray:
        """Return weighted sums of the cells of a column, with both ends; times in seconds."""
        ordered = weights.sorted_indices()
        borders = ordered.indptr[1:-1]
        rows, cell_weights = np.split(ordered.indices, borders), np.split(ordered.data, borders)
        pairs = list(zip(rows, cell_weights, strict=True)) if weights.shape[0] else []
        return combined_rows(self.opened.frame, self.releases, place, pairs, level)

    def _feature(self, place: int, name: str, values: np.ndarray) -> LinearSums:
        """Return the totals of a feature, of each release."""
        terms = []
        size = len(values)
        for release in self.releases:
            part = release.columns[place]
            rows = np.arange(size)[release.places]
            all_totals = part.totals
            totals = values[rows] if part.form.is_total else all_totals.values[name]
            numbers = ReleasedNumbers(np.asarray(totals, float), all_totals.loadings[name], release)
            weights = grouping(rows, size)
            terms.append((weights, numbers))
        return LinearSums(terms)

    def model(self, place: int) -> pd.Series:
        """Return the released cells of a column."""
        column = self.opened.columns[self.opened.table.released[place].label]
        return series_of(column.numbers, column.part.dtype)

    def _intervals(self, place: int, level: float) -> EndPair:
        """Return the intervals of the released cells of a column; times in seconds."""
        bars = self._bars.get(level)
        if bars is None:
            view = look_with(self.opened.frame, self.opened)
            bars = self._bars[level] = all_intervals(view, level, sampling=self._sampling)
        origin = self.releases[0].columns[place].origin
        low, high = (in_seconds(bars.iloc[:, 2 * place + end], origin) for end in (0, 1))
        return low, high


def _check_comparable(releases: Sequence[Release]) -> None:
    """Refuse releases that share noise, or measure something else."""
    first = releases[0]
    ids = {release.release_id for release in releases}
    if len(ids) < len(releases):
        rule = "tables of one release are in this one, and may share noise"
        raise QueryError(f"{rule}. Totals among them were released; or use dpf.combine.")
    way_out = "dpf.combine compares cells as they are."
    for release in releases:
        check_no_given_rows(release)
        units = first.privacy_unit, release.privacy_unit
        if units[0] != units[1]:
            said = " and ".join(", ".join(unit_in_lines(unit)) for unit in units)
            rule = "releases must have the same privacy unit and caps, or a change may be theirs"
            raise QueryError(f"{rule}: {said}. {way_out}")
        for column, other in zip(first.columns, release.columns, strict=True):
            if column.declared != other.declared:
                bounds = f"{bounds_text(column.declared)} and {bounds_text(other.declared)}"
                rule = f"releases must have the same bounds, or a change of {quote(column.name)}"
                raise QueryError(f"{rule} may be theirs: {bounds}. {way_out}", label=column.name)


class Computed:
    """Columns computed from a release, by chains of functions.

    Parameters
    ----------
    source
        The record of the release.
    others
        Those of other releases, by origin.
    level
        Level of the intervals.
    sampling
        Whether rows are a sample.
    """

    def __init__(
        self, source: Opened, others: Mapping[str, Opened], level: float, *, sampling: bool = False
    ) -> None:
        self._source = ReleaseSource(source, sampling=sampling)
        self._others = others
        self._level = level
        self._tables: dict[tuple[str, ...], ComputedTable] = {}
        self.index: pd.Index = self._source.opened.index

    def column(self, name: str, chain: Chain) -> list[pd.Series]:
        """Return a column, and both ends of its intervals."""
        needed = [name, *(link.to for link in chain if link.f == "ratio")]
        table = self._source.table(list(dict.fromkeys(needed)))
        others = {
            origin: ReleaseSource(opened).table(ReleaseSource(opened).names)
            for origin, opened in self._others.items()
        }
        with np.errstate(all="ignore"):  # a warning could depend on what was released
            for link in chain:
                table = table.apply(link, others)
            estimates = table.columns[name].estimates(self._level)
        self.index = self._named(table.rows.index)
        place = self._source.names.index(name)
        part = self._source.releases[0].columns[place]
        return _as_cells(estimates, part, self._source.model(place))

    def is_total(self, name: str) -> bool:
        """Whether a column is a count or a sum."""
        place = self._source.names.index(name)
        return self._source.releases[0].columns[place].form.is_total

    def _named(self, index: pd.Index) -> pd.Index:
        """Give levels their names back, which may be no texts."""
        level_names = {str(level.name): level.name for level in self._source.opened.levels}
        names: list[Hashable] = [level_names.get(str(name), name) for name in index.names]
        return index.set_names(names)


def _as_cells(estimates: CellEstimates, part: ColumnPart, model: pd.Series) -> list[pd.Series]:
    """Return numbers as cells of the dtype that they stand for."""
    value, low, high = estimates[:3]
    columns: Sequence[Any]
    match estimates.kind:
        case "number":
            columns = [value, low, high]
        case "whole":
            columns = [np.rint(end).astype(np.int64) for end in (value, low, high)]
        case "duration":
            columns = [seconds(end) for end in (value, low, high)]
        case "like":
            origin = part.origin or 0
            cells = model.iloc[np.zeros(len(value), np.intp)] if len(model) else model
            limits = _limits(part)
            columns = [times_like(cells, value, origin)]
            columns += times_between(cells, (low, high), origin, limits)
    return [pd.Series(cells) for cells in columns]


_FARTHEST = 2**62  # where nothing bounds a cell; integers of 64 bits hold it


def _limits(part: ColumnPart) -> tuple[int, int]:
    """Return between which times ends lie, in microseconds; sums have no limits."""
    if part.form.is_total or part.times is None:
        return -_FARTHEST, _FARTHEST
    return part.times.bounds


def middles(shown: Shown, column: Hashable | None, call: str) -> list[tuple[str, str, Chain]]:
    """Return the columns shown that numbers are computed from: label, released name and chain.

    Raises
    ------
    QueryError
        If there are none, or no such column, or cells were left out for publication.
    """
    certificate = shown.opened.promise
    entries: list[tuple[str, str, Chain]] = []
    if not certificate.is_derived:
        certificate.require_numbers()
        check_whole(shown, call)
        names = {label: name for name, label in shown.opened.labels_by_name.items()}
        entries = [(label, names[label], ()) for label in shown.labels]
    for label, definition in shown.computed.items():
        if isinstance(definition, DerivedDefinition) and definition.end is None:
            entries.append((label, definition.column, definition.chain))
    if column is None:
        return entries
    chosen = [entry for entry in entries if is_one_of(column, [shown.opened.shown_label(entry[0])])]
    if len(chosen) != 1:
        labels = [shown.opened.shown_label(label) for label, *_ in entries]
        rule = f"must be the label of one of the columns computed from, {labels!r}"
        raise QueryError.about("column", rule, column)
    return chosen


def check_people(shown: Shown, call: str) -> None:
    """Refuse to add up numbers of units, each of which may be in several groups.

    Raises
    ------
    QueryError
        If one may be.
    """
    for release in shown.opened.source.releases:
        caps = release.privacy_unit.caps
        once = caps.single_row or caps.max_groups == 1
        if release.query.words.startswith("units") and not once:
            rule = f"{call} would count a unit in each of its groups, and it may be in several"
            way_out = "Give of=df.dp.units(epsilon=...), or the number of people."
            if call == "total":
                way_out = "Release units for these groups: df.dp.units(by=..., epsilon=...)."
            raise QueryError(f"{rule}. {way_out}")


def definitions_of(
    name: str, chain: Chain, level: float, *, sampling: bool
) -> list[DerivedDefinition]:
    """Say how a column and both ends of its intervals were computed."""
    return [DerivedDefinition("derive", name, chain, end, level, sampling=sampling) for end in ENDS]


def new_table(
    shown: Shown, link: Link, call: str, *, level: float, sampling: bool = False
) -> pd.DataFrame:
    """Return what a function makes of all columns of a table, as a table of its own."""
    source, others = shown.opened.source, others_of(shown.opened)
    computed = Computed(source, others, level, sampling=sampling)
    cells: list[pd.Series] = []
    labels: list[Hashable] = []
    definitions: list[DerivedDefinition] = []
    for label, name, chain in middles(shown, None, call):
        full_chain = (*chain, link)
        cells += computed.column(name, full_chain)
        shown_as = shown.opened.shown_label(label)
        labels += [f"{shown_as}{suffix}" if suffix else shown_as for suffix in _SUFFIXES]
        definitions += definitions_of(name, full_chain, level, sampling=sampling)
    _check_labels(labels, computed.index, call)
    opened = attach_computed(computed.index, cells, labels, definitions, [source, *others.values()])
    _check_keys(opened, call)
    return with_record(opened)


def _check_labels(labels: Sequence[Hashable], index: pd.Index, call: str) -> None:
    """Refuse labels of which two read alike."""
    texts = [*map(str, labels), *map(str, index.names)]
    again = [text for text in texts if texts.count(text) > 1]
    if again:
        rule = f"{call} would make two columns {again[0]!r}"
        raise QueryError(f"{rule}. Use .dp.rename before.", label=again[0])


def _check_keys(opened: Opened, call: str) -> None:
    """Refuse new keys that are the names which others were given."""
    for at, level in enumerate(opened.levels):
        if token(level.name) not in opened.table.alias.keys:
            continue
        keys = opened.shown_keys(at)
        again = keys[pd.Index([*map(token, keys)]).duplicated()].tolist()
        if again:
            rule = f"{call} would make two keys {again[0]!r} of level {level.name!r}"
            raise QueryError(f"{rule}. Use .dp.rename before.", label=level.name)


def others_of(opened: Opened) -> dict[str, Opened]:
    """Return the other releases that cells were computed from."""
    return {other.certificate.table.origin: other for other in opened.others}


def with_record(opened: Opened) -> pd.DataFrame:
    """Return the whole table of a record."""
    frame = opened.frame
    carry(frame, opened)
    return frame


def attach_computed(
    index: pd.Index,
    cells: Sequence[pd.Series],
    labels: Sequence[Hashable],
    definitions: Sequence[DerivedDefinition],
    sources: Sequence[Opened],
) -> Opened:
    """Return the record of a table that was computed from a release, and perhaps from others."""
    source = sources[0]
    names = [] if list(index.names) == [None] else list(index.names)
    levels, codes = levels_of([factored(index, at) for at in range(len(names))], names, len(index))
    kept = {level.part().name for level in levels}
    alias = source.table.alias
    columns = zip(labels, cells, definitions, strict=True)
    table = TablePart(
        levels=tuple(level.part() for level in levels),
        rows=len(index),
        codes=codes_part(codes, levels),
        columns=tuple(
            cells_part(label, column, definition) for label, column, definition in columns
        ),
        alias=AliasPart(
            {},
            {new: old for new, old in alias.levels.items() if old in kept},
            {name: keys for name, keys in alias.keys.items() if name in kept},
        ),
        units={},
        cuts=(),
        joined=None,
        published=None,
        salt=source.table.salt,
        origin=UNSEALED,
    )
    releases = tuple(map(without_all_rows, source.releases))
    return Opened(releases, lambda: table, source, tuple(sources[1:]))


def beside(
    shown: Shown,
    link: Link,
    suffix: str,
    *,
    column: Hashable | None,
    level: float,
    sampling: bool = False,
    others: Sequence[Opened] = (),
) -> pd.DataFrame:
    """Return a table with what a function makes of its columns beside them."""
    if others:
        shown = replace(shown, opened=shown.opened.with_others(others))
    by_origin = others_of(shown.opened)
    computed = Computed(shown.opened.source, by_origin, level, sampling=sampling)
    columns: dict[Hashable, Any] = {}
    definitions: list[DerivedDefinition] = []
    sources: list[str] = []
    chosen = middles(shown, column, link.f)
    if column is None:
        totals = [entry for entry in chosen if computed.is_total(entry[1])]
        chosen = totals or chosen
    for label, name, chain in chosen:
        full_chain = (*chain, link)
        cells = computed.column(name, full_chain)
        shown_as = shown.opened.shown_label(label)
        columns |= {
            f"{shown_as}{suffix}{end}": part for end, part in zip(_SUFFIXES, cells, strict=True)
        }
        definitions += definitions_of(name, full_chain, level, sampling=sampling)
        sources += [label] * len(cells)
    added = pd.DataFrame({at: part.array for at, part in enumerate(columns.values())})
    added.columns = pd.Index(list(columns), tupleize_cols=False)
    added.index = shown.opened.index
    return put_beside(shown, added, definitions, sources, link.f)


def numbers_shown(
    shown: Shown, link: Link, column: Hashable | None, level: float, *, sampling: bool = False
) -> pd.DataFrame:
    """Return what a function makes of a column, in the rows shown: `estimate`, `low` and `high`."""
    chosen = middles(shown, column, link.f)
    if len(chosen) > 1:
        labels = [shown.opened.shown_label(label) for label, *_ in chosen]
        raise QueryError.about("column", f"must be one of the columns released, {labels!r}", None)
    ((label, name, chain),) = chosen
    computed = Computed(shown.opened.source, others_of(shown.opened), level, sampling=sampling)
    cells = computed.column(name, (*chain, link))
    named = zip(("estimate", "low", "high"), cells, strict=True)
    numbers = pd.DataFrame({name: part.array for name, part in named}, index=shown.opened.index)
    return shown.pick(numbers, [label] * numbers.shape[1])


def computed_again(
    opened: Opened, full: Opened
) -> dict[str, tuple[pd.Series, DerivedDefinition, pd.Index]]:
    """Compute again, from a release, all derived columns of a table, by label."""
    cells_by_label = {}
    computed: dict[tuple[float, bool], Computed] = {}
    columns: dict[str, list[pd.Series]] = {}
    for part in opened.table.columns:
        definition = part.definition
        if not isinstance(definition, DerivedDefinition):
            continue
        level, sampling = settings = definition.level, definition.sampling
        if settings not in computed:
            others = others_of(full)
            computed[settings] = Computed(full.source, others, level, sampling=sampling)
        # a middle and both ends are one request, which is computed once
        request = json.dumps(plain(replace(definition, end=None)))
        if request not in columns:
            columns[request] = computed[settings].column(definition.column, definition.chain)
        cells = columns[request][ENDS.index(definition.end)]
        cells_by_label[part.label] = cells, definition, computed[settings].index
    return cells_by_label


def put_beside(
    shown: Shown,
    added: pd.DataFrame,
    definitions: Sequence[Definition],
    sources: Sequence[str],
    call: str,
) -> pd.DataFrame:
    """Return a table with more columns, after those that it has.

    Raises
    ------
    QueryError
        If one of their labels is that of another column or level.
    """
    table = shown.in_rows()
    released = [shown.opened.shown_label(part.label) for part in shown.opened.table.released]
    names = [*table.columns, *released, *shown.opened.index.names]
    computed = [shown.opened.shown_label(label) for label in shown.computed]
    # what is computed again takes the place of what was computed before
    taken = {*map(str, names)} - {*map(str, computed)}
    again = [label for label in added.columns if label in taken]
    again += [label for label in added.columns if list(map(str, added.columns)).count(label) > 1]
    if again:
        rule = f"{call} would add {again[0]!r}, which is the name of a column or level already"
        raise QueryError(f"{rule}. Leave that out, or use .dp.rename before.", label=again[0])
    return shown.add(added, definitions, sources)
