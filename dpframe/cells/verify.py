"""Whether each cell of a table is the released one with the same keys and label, or a rounding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpframe.cells.keys import Numbers, alter, label_of, series_of
from dpframe.cells.locate import COLUMNS, Located, TableLayout, locate
from dpframe.cells.record import Opened, carry, record_on
from dpframe.cells.rounding import unit_of
from dpframe.certificates.certificate import Certificate, Release, has_rows
from dpframe.certificates.claims import check_cost
from dpframe.certificates.definitions import Definition, DerivedDefinition
from dpframe.context import cached_property
from dpframe.errors import STOPS, CertificateError, QueryError, quote
from dpframe.frozen import frozen


@frozen(eq=False)
class Shown:
    """A sound table: all that was released, and which cells of it are shown.

    Parameters
    ----------
    source
        The table.
    opened
        Its record.
    layout
        Where its cells are in the release.
    seen
        By column, as JSON, which cells are shown.
    units
        By column, to which unit they are rounded; 0: as released.
    """

    source: pd.DataFrame
    opened: Opened
    layout: TableLayout
    seen: Mapping[str, np.ndarray]
    units: Mapping[str, float]

    @cached_property
    def labels(self) -> list[str]:
        """The released columns that are shown, in the order of the release, as JSON."""
        parts = self.opened.table.released
        shown = [part.label for part in parts if part.label in self.seen]
        if parts and not shown:
            names = [self.opened.shown_label(part.label) for part in parts]
            raise QueryError(f"this table shows none of the columns released, {quote(names)}.")
        return shown

    @cached_property
    def computed(self) -> dict[str, Definition]:
        """How the other columns that are shown were computed."""
        return {
            part.label: part.definition
            for part in self.opened.table.columns
            if part.definition is not None and part.label in self.seen
        }

    @cached_property
    def labels_at(self) -> dict[int, str]:
        """The columns of the release, as JSON, by the places where their cells are."""
        return {cells.column: str(cells.label) for cells in self.layout.located}

    def middle_of(self, label: str) -> str | None:
        """Return the column of whose intervals a column holds an end, if that is known.

        Of what was computed, that is what was computed alike, not the released column.
        """
        definition = self.opened.columns[label].part.definition
        if definition is None or getattr(definition, "end", None) is None:
            return None
        if isinstance(definition, DerivedDefinition):
            return self.opened.middle_of(definition, self.opened.columns)
        source = self.opened.labels_by_name.get(getattr(definition, "column", ""), "")
        return source if source in self.seen else None

    @cached_property
    def homes(self) -> list[int]:
        """For each column of the table, the one that it holds ends of, or itself."""
        columns = self.layout.frame.columns
        labels, width = self.labels_at, len(columns)
        if len(self.layout.located) > len(labels):  # numbers and ends stand below each other
            return [*range(width)]
        inner = [number for axis, number in self.layout.levels if axis == COLUMNS]
        parts = [columns.get_level_values(at) for at in inner]
        keys = [tuple(part[at] for part in parts) for at in range(width)]
        places = {(labels.get(at), key): at for at, key in enumerate(keys)}
        middles = {at: self.middle_of(label) for at, label in labels.items()}
        return [places.get((middles.get(at), key), at) for at, key in enumerate(keys)]

    @cached_property
    def certificate(self) -> Certificate:
        """What is said about the released columns that are shown."""
        parts = [part.label for part in self.opened.table.released]
        if self.labels == parts:
            return self.opened.promise
        return self.opened.promise.with_columns([parts.index(label) for label in self.labels])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows as they were released, of the released columns that are shown."""
        return self.opened.frame_of(self.labels)

    @cached_property
    def rows(self) -> np.ndarray:
        """The released rows that are shown: those of the table, or all with a cell in it."""
        if self.layout.rows is not None:
            return self.layout.rows
        masks = [*self.seen.values()] or [np.zeros(self.opened.rows, bool)]
        return np.flatnonzero(np.logical_or.reduce(masks))

    @cached_property
    def index(self) -> pd.Index:
        """The index of what is computed: that of the table, where its rows are released ones."""
        if self.layout.rows is not None:
            return self.source.index
        return self.opened.index.take(self.rows)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The cells as they are shown, by their keys; released columns come first."""
        labels = [label for label in self.opened.columns if label in self.seen]
        gone = self.rows < 0
        rows = np.where(gone, 0, self.rows)
        cells = [self.cells_of(label, rows, gone) for label in labels]
        frame = pd.DataFrame(
            {at: column.array for at, column in enumerate(cells)}, self.opened.index.take(rows)
        )
        names = [self.opened.shown_label(label) for label in labels]
        return frame.set_axis(pd.Index(names, tupleize_cols=False), axis=1)

    def cells_of(self, label: str, rows: np.ndarray, gone: np.ndarray | bool = False) -> pd.Series:
        """Return the cells of a column as they are shown, in some rows of the release."""
        column = self.opened.columns[label]
        values = np.zeros(self.opened.rows, np.float64)
        if column.numbers.values.dtype.kind == "i":
            values = np.zeros(self.opened.rows, np.int64)  # of a float, all of it is kept
        for cells in self.layout.located:
            if cells.label == label:
                present = ~cells.numbers.missing
                values[cells.rows[present]] = cells.numbers.values[present]
        numbers = Numbers(values[rows], ~self.seen[label][rows] | gone)
        return series_of(numbers, column.part.dtype)

    def _taken(self, result: pd.DataFrame) -> pd.DataFrame:
        """Take the rows that are shown."""
        gone = self.rows < 0
        taken = result.take(np.where(gone, 0, self.rows)) if len(result) else result
        taken = taken.set_axis(self.index, axis=0)
        return taken.mask(gone) if gone.any() else taken

    def pick(self, result: pd.DataFrame, labels: Sequence[str] = ()) -> pd.DataFrame:
        """Return the rows shown of what was computed for all.

        Parameters
        ----------
        result
            What was computed.
        labels
            For each of its columns, the released one whose hidden cells hide it.
        """
        taken = self._taken(result)
        for at, label in enumerate(labels):
            present = ~self.opened.columns[label].numbers.missing
            hidden = (present & ~self.seen[label])[self.rows]
            if hidden.any():
                taken.isetitem(at, without_cells(taken.iloc[:, at], hidden).array)
        taken.attrs = dict(result.attrs)
        return taken

    def counts(self, label: str) -> tuple[int, int]:
        """Return how many cells of a column are shown, and how many were released."""
        return int(np.count_nonzero(self.seen[label])), self.opened.cells_of(label)

    def unit(self, label: str) -> float:
        """Return the unit to which a column is rounded, now or when it was published before."""
        published = self.opened.table.published
        before = 0.0 if published is None else published.units.get(label, 0.0)
        return max(self.units[label], before)

    def is_whole(self, label: str) -> bool:
        """Whether a column shows all cells as they were released."""
        if label not in self.seen or self.unit(label):
            return False
        cells, released = self.counts(label)
        return cells == released

    @property
    def state(self) -> str:
        """What the table is: "released", or "post-processed" by `.dp` or by pandas."""
        parts = self.opened.table.released
        unchanged = all(self.is_whole(part.label) for part in parts)
        return self.opened.promise.state if unchanged else "post-processed"

    def lines(self) -> list[str]:
        """Say which cells are shown of columns that are not shown as they were released."""
        lines = []
        for label in self.seen:
            if self.middle_of(label) not in self.seen and not self.is_whole(label):
                cells, released = self.counts(label)
                rounded = f", rounded to {self.unit(label):g}" * (self.unit(label) > 0)
                name = self.opened.shown_label(label)
                lines.append(f"{name}: {cells:,} of {released:,} cells{rounded}")
        return lines

    def in_rows(self) -> pd.DataFrame:
        """Return the table, with one row for each released one."""
        return self.source if self.layout.rows is not None else self.table

    def sealed(self, frame: pd.DataFrame, opened: Opened) -> pd.DataFrame:
        """Return a table with a record."""
        frame = frame.copy(deep=False)
        frame.attrs = {}
        carry(frame, opened)
        return frame

    def add(
        self, columns: pd.DataFrame, definitions: Sequence[Definition], labels: Sequence[str]
    ) -> pd.DataFrame:
        """Return the table with more columns, which were computed for all rows.

        Parameters
        ----------
        columns
            The columns.
        definitions
            How they were computed.
        labels
            The released columns they belong to.
        """
        opened = self.opened.with_columns(columns, definitions)
        picked, before = self.pick(columns, labels), pd.DataFrame(self.in_rows())
        before.attrs, picked.attrs = {}, {}
        before = before.copy(deep=False)
        places = {label: at for at, label in enumerate(before.columns)}
        new = []
        for at, label in enumerate(columns.columns):
            if label in places:  # what is computed again takes its place
                before.isetitem(places[label], picked.iloc[:, at].array)
            else:
                new.append(at)
        table = pd.concat([before, picked.iloc[:, new]], axis=1)
        names = [*before.columns, *columns.columns[new]]
        table.columns = pd.Index(names, tupleize_cols=False, name=before.columns.name)
        return self.sealed(table, opened)

    def change(
        self, opened: Opened, edit: Callable[[Located, pd.Series], pd.Series]
    ) -> pd.DataFrame:
        """Return the table with other cells, in the same layout, and another record."""
        frame = self.layout.frame.copy(deep=False)
        for cells in self.layout.located:
            column = frame.iloc[:, cells.column]
            if isinstance(cells.where, slice):
                frame.isetitem(cells.column, edit(cells, column).array)
                continue
            column = column.copy()
            part = edit(cells, column.iloc[cells.where])
            column = column.astype("Float64") if part.isna().any() else column
            column.iloc[cells.where] = part.array
            frame.isetitem(cells.column, column.array)
        return self.sealed(frame, opened)


def without_cells(column: pd.Series, cells: np.ndarray) -> pd.Series:
    """Make cells missing; whole numbers stay whole."""
    if column.dtype.kind == "i":
        column = column.astype("Int64")
    return column.mask(cells)


def look(frame: pd.DataFrame) -> Shown:
    """Check a table, and say what it shows.

    Raises
    ------
    CertificateError
        If it carries no certificate, or holds what was not released.
    """
    opened = record_on(frame)
    shown = look_with(frame, opened)
    for release in opened.releases:
        check_cost(release)
    return shown


def look_with(frame: pd.DataFrame, opened: Opened) -> Shown:
    """Check a table with a record, which it may not carry."""
    try:
        return _compare(frame, opened)
    except CertificateError as error:
        way_out = "Go back to the released frame: sorting, choosing and laying out keep it; to"
        way_out += " compute with its numbers, use .dp.combine"
        raise CertificateError(f"{error}. {way_out}.") from None
    except (*STOPS, MemoryError):
        raise
    except BaseException:  # cells that were not released can raise anything when they are looked at
        raise alter("it holds something else. Go back to the released frame.") from None


def _compare(frame: pd.DataFrame, opened: Opened) -> Shown:
    layout = locate(frame, opened)
    seen: dict[str, np.ndarray] = {}
    units: dict[str, float] = {}
    named = []
    for cells in layout.located:
        present = ~cells.numbers.missing
        rows, values = cells.rows[present], cells.numbers.values[present]
        if (rows < 0).any():
            raise alter("it holds groups that were not released")
        label = _label_by_cells(values, rows, opened) if cells.label is None else cells.label
        column = opened.columns[label]
        if column.numbers.missing[rows].any():
            raise alter(f"column {label_of(label)!r} shows a cell that was missing")
        mask = seen.setdefault(label, np.zeros(opened.rows, bool))
        before = np.count_nonzero(mask)
        mask[rows] = True
        if np.count_nonzero(mask) < before + len(rows):
            raise alter("it shows a cell twice")
        unit = unit_of(values, column, rows, opened.table.units.get(label)) if len(rows) else 0.0
        units[label] = max(unit, units.get(label, 0.0))
        named.append(cells._replace(label=label))
    if not opened.columns and layout.rows is not None:
        if (layout.rows < 0).any() or len(np.unique(layout.rows)) < len(layout.rows):
            raise alter("it holds groups that were not released, or some twice")
    return Shown(frame, opened, replace(layout, located=named), seen, units)


def _label_by_cells(values: np.ndarray, rows: np.ndarray, opened: Opened) -> str:
    """Return the only column that shown cells can be of: the one that fits exactly, if one does."""
    fits: dict[str, float] = {}
    for label, column in opened.columns.items():
        try:
            unit = opened.table.units.get(label)
            fits[label] = unit_of(values, column, rows, unit) if len(rows) else 0.0
        except CertificateError:
            continue
    exact = [label for label, unit in fits.items() if not unit] or list(fits)
    if len(exact) == 1 or (exact and not len(rows)):
        return exact[0]
    if exact:
        raise alter("its labels do not say which column it shows")
    raise alter("a cell is neither the released one nor a rounding of it")


def whole_release(shown: Shown, call: str) -> Release:
    """Return the only release of a table, of which all cells that are shown are known.

    Raises
    ------
    QueryError
        If there are several or no numbers, or a published table left cells out or rounded them.
    """
    shown.certificate.require_numbers()
    check_whole(shown, call)
    return shown.certificate.release


def check_whole(shown: Shown, call: str) -> None:
    """Refuse what needs all cells as released, of a published table that has not.

    Raises
    ------
    QueryError
        If it left some out, or rounded them.
    """
    check_parts(shown, call)
    published = shown.opened.table.published
    if published is None:
        return
    for label in shown.labels:
        cells, released = published.cells[label]
        if cells < released or published.units.get(label):
            rule = f"{call} needs all cells as released"
            reason = f"and this published table has {cells:,} of {released:,}, or rounded ones"
            raise QueryError(f"{rule}, {reason}. Call it on the release.")


def check_parts(shown: Shown, call: str) -> None:
    """Refuse what needs the parts of means where a published table has left them out.

    Raises
    ------
    QueryError
        If they were.
    """
    for release in shown.certificate.releases:
        for column in release.columns:
            if not has_rows(column):
                rule = f"{call} needs what column {column.name!r} was read off"
                way_out = "which a published table leaves out: call it on the release"
                raise QueryError(f"{rule}, {way_out}.", label=column.name)
