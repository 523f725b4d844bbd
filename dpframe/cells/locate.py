"""Which released cell each cell of a table is: names and labels say so, values never do."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpframe.cells.keys import Numbers, alter, factored, label_of, numbers_of, token
from dpframe.cells.record import Opened
from dpframe.errors import CertificateError
from dpframe.frozen import frozen

ROWS, COLUMNS, CELLS = range(3)
_WAYS = "; .dp.rename gives another label, and .dp.interval(join=True) adds intervals"
_VALUE = "value"  # what `melt` calls the column of values

Place: TypeAlias = tuple[int, int]
"""Where a level is: in the index, in the columns or among the columns, and the number there."""


class Located(NamedTuple):
    """Cells of a column of a table.

    Parameters
    ----------
    column
        The position of the column.
    label
        The released column, as JSON; `None`: its cells alone say which.
    where
        The rows of the table that hold the cells.
    rows
        The released row of each cell, -1 where there is none.
    numbers
        The cells.
    """

    column: int
    label: str | None
    where: np.ndarray | slice
    rows: np.ndarray
    numbers: Numbers


@frozen(eq=False)
class TableLayout:
    """Where the cells of a table are in the release.

    Parameters
    ----------
    located
        The cells, by column, and by label where a column has several.
    rows
        If each row of the table is a released row, which; -1 where it was not released.
    levels
        Where each level of keys is.
    frame
        The table, without attributes, with labels in the index where `melt` made a column of them.
    """

    located: Sequence[Located]
    rows: np.ndarray | None
    levels: Sequence[Place]
    frame: pd.DataFrame


class _Names:
    """Names as they are shown: files may make texts of them."""

    def __init__(self, tokens: Iterable[str], alias: Mapping[str, str]) -> None:
        self._known = {**{name: name for name in tokens}, **alias}
        self._texts: dict[str, str | None] = {}
        for shown, released in self._known.items():
            text = _text(shown)
            same = self._texts.get(text, released) == released
            self._texts[text] = released if same else None

    def find(self, name: Any) -> str | None:
        """Return the released name that is shown so."""
        exact = self._known.get(token(name))
        return self._texts.get(str(name)) if exact is None and name is not None else exact


def _text(shown: str) -> str:
    """Return what a name reads like."""
    return str(label_of(shown))


def locate(frame: pd.DataFrame, opened: Opened) -> TableLayout:
    """Find each cell of a table.

    Raises
    ------
    CertificateError
        If a level, a key or a label was not released, or it cannot be known which one it is.
    """
    frame = pd.DataFrame(frame)
    frame.attrs = {}  # pandas copies all attrs for each column that is looked at
    return _Search(frame, opened).layout()


class _Search:
    """The search for the cells of a table."""

    def __init__(self, frame: pd.DataFrame, opened: Opened) -> None:
        alias = opened.table.alias
        self.opened = opened
        self.labels = _Names(opened.columns, alias.columns)
        self.names = _Names([token(level.name) for level in opened.levels], alias.levels)
        self.frame = self._melted(frame)
        self.axes = self.frame.index, self.frame.columns

    def _melted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Put the column of labels that `melt` makes into the index."""
        flat = frame.columns.nlevels == 1 and _VALUE in frame.columns
        if not flat or self.labels.find(_VALUE) is not None:
            return frame
        levels = [label for label in frame.columns if self.names.find(label) is not None]
        for label in frame.columns:
            if label != _VALUE and label not in levels and self._are_labels(frame[label].unique()):
                return frame.set_index([*levels, label])[[_VALUE]]
        return frame

    def _are_labels(self, values: Iterable[Any]) -> bool:
        labels = [self.labels.find(value) for value in values]
        return bool(labels) and None not in labels

    def layout(self) -> TableLayout:
        """Find all cells."""
        levels, stray = self._find_levels()
        rows = np.zeros(len(self.frame), self.opened.dtype)
        columns = np.zeros(self.frame.shape[1], self.opened.dtype)
        wide = False
        for at, (axis, number) in enumerate(levels):
            places = self._places(at, axis, number).astype(self.opened.dtype)
            places = places * self.opened.strides[at]
            wide |= axis == COLUMNS
            if axis == COLUMNS:
                columns = columns + places
            else:
                rows = rows + places
        keys = {number for axis, number in levels if axis == CELLS}
        of_rows, of_columns = self._find_labels(stray)
        located = list(self._cells(keys, rows, columns, of_rows, of_columns))
        tall = None if wide or of_rows is not None else self.opened.rows_at(rows)
        return TableLayout(located, tall, levels, self.frame)

    def _places(self, at: int, axis: int, number: int) -> np.ndarray:
        """Return the places of the keys of a level, along an axis or in a column."""
        if axis == CELLS:
            return self.opened.places(at, factored(self.frame.iloc[:, number].array))
        values, level = self.axes[axis], self.opened.levels[at]
        aliased = token(level.name) in self.opened.table.alias.keys
        alike = values.dtype == level.keys.dtype != object and not aliased
        if alike and values.equals(level.keys):  # as released
            return np.arange(len(values))
        return self.opened.places(at, factored(values, number))

    def _find_levels(self) -> tuple[list[Place], list[Place]]:
        """Return where each released level is, and the levels of the table that are none.

        Levels whose names were dropped are found by their keys, if one way alone fits.
        """
        names = [token(level.name) for level in self.opened.levels]
        places: dict[str, Place] = {}
        stray = []
        for axis, index in enumerate(self.axes):
            for number, name in enumerate(index.names):
                released_name = None if name is None else self.names.find(name)
                if released_name is None:
                    self._check_stray(axis, number, name)
                    stray.append((axis, number))
                elif released_name in places:
                    raise alter(f"two levels are called {name!r}")
                else:
                    places[released_name] = axis, number
        if self.frame.columns.nlevels == 1:
            for number, label in enumerate(self.frame.columns):
                released_name = self.names.find(label)
                if released_name is not None and released_name not in places:
                    places[released_name] = CELLS, number
        lacking = [at for at, name in enumerate(names) if name not in places]
        if lacking:
            pick = self._fit(lacking, stray)
            places |= {names[at]: place for at, place in zip(lacking, pick, strict=True)}
            stray = [place for place in stray if place not in pick]
        return [places[name] for name in names], stray

    def _check_stray(self, axis: int, number: int, name: Hashable) -> None:
        """Refuse a named level that holds neither labels of columns nor keys of a level."""
        if name is None or self._are_labels(self.axes[axis].get_level_values(number).unique()):
            return
        if axis == COLUMNS and self.axes[axis].nlevels == 1 and not len(self.axes[axis]):
            return
        if axis == COLUMNS and all(
            self.names.find(label) or self.labels.find(label) for label in self.axes[axis]
        ):
            return
        raise alter(f"no level {name!r} was released; names are changed by .dp.rename")

    def _fit(self, lacking: list[int], stray: list[Place]) -> tuple[Place, ...]:
        """Find the only way in which levels without names can be those that are lacking."""
        fits = []
        for pick in permutations(stray, len(lacking)):
            try:
                for at, (axis, number) in zip(lacking, pick, strict=True):
                    self._places(at, axis, number)
            except CertificateError:
                continue
            fits.append(pick)
        if len(fits) == 1:
            return fits[0]
        name = self.opened.levels[lacking[0]].name
        if fits:
            raise alter(f"names of levels are gone, and more than one could be {name!r}")
        raise alter(f"level {name!r} is not in it; names are changed by .dp.rename")

    def _find_labels(
        self, stray: list[Place]
    ) -> tuple[list[str | None] | None, list[str | None] | None]:
        """Return the labels of rows, or of columns, where a level holds them."""
        of_rows = of_columns = None
        for axis, number in stray:
            values = self.axes[axis].get_level_values(number)
            labels = [self.labels.find(value) for value in values]
            numbered = values.dtype.kind in "iu"
            if axis == ROWS and labels and None not in labels:
                of_rows = labels
            elif numbered and (axis == ROWS or of_rows is not None):
                continue  # numbers of rows, or of columns
            elif axis == ROWS:
                raise alter("it has an index that was not released")
            elif axis == COLUMNS and of_columns is not None:
                raise alter("its columns have a level that was not released")
            else:
                of_columns = labels
        return of_rows, of_columns

    def _cells(
        self,
        keys: set[int],
        rows: np.ndarray,
        columns: np.ndarray,
        of_rows: list[str | None] | None,
        of_columns: list[str | None] | None,
    ) -> Iterator[Located]:
        """Find the cells of each column that holds no keys."""
        all_rows = slice(None)
        for at in range(self.frame.shape[1]):
            if at in keys:
                continue
            label = None if of_columns is None else of_columns[at]
            if of_rows is None and of_columns is not None and label is None:
                raise alter(f"no column {self.frame.columns[at]!r} was released{_WAYS}")
            numbers = numbers_of(self.frame.iloc[:, at], self.opened.kind)
            places = self.opened.rows_at(rows + columns[at])
            if of_rows is None:
                yield Located(at, label, all_rows, places, numbers)
                continue
            for label in dict.fromkeys(of_rows):
                where = np.flatnonzero([row_label == label for row_label in of_rows])
                some = Numbers(numbers.values[where], numbers.missing[where])
                yield Located(at, label, where, places[where], some)
