"""The layout of a released table, which files lose, and what gives it back to them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from dpframe.cells.keys import (
    Numbers,
    are_whole,
    factored,
    label_of,
    listed,
    numbers_of,
    series_of,
    texts_of_times,
    token,
)
from dpframe.cells.locate import CELLS, COLUMNS, ROWS, Place, locate
from dpframe.cells.record import Opened
from dpframe.cells.verify import Shown
from dpframe.certificates import json_records
from dpframe.certificates.parts import Dtype, Token
from dpframe.context import cached_property
from dpframe.errors import CertificateError

INSTEAD = "Write Parquet or pickle, or rename one of them by .dp.rename."
"""What to do with what has no form in a file."""

NUMBERS: Final = frozenset({"int64", "Int64", "float64", "float32"})
"""Dtypes of numbers that files hold."""

FORMULA: Final = re.compile(r"'*[=+\-@\t\r]")
"""What a spreadsheet takes for a formula, or for one that was escaped: that is to read back."""

_Format: TypeAlias = Literal[3]

(FORMAT,) = get_args(_Format)
"""Version of what is said of a layout: the only one that is read."""

_NEAR = 1e-6  # how far floats of 32 bits may be off as texts, relatively

_GONE = frozenset({"", "NaT"})


class ChangedFileError(ValueError):
    """What of a file is not what was written, in words without a value of it."""


class Sidecar(json_records.Record):
    """What a file loses of a table, but for the certificate.

    Parameters
    ----------
    format
        Version of this form.
    index
        Names of the levels of the index, as JSON.
    header
        Names of the levels of the columns, as JSON; there is a line of labels for each.
    rows
        Number of rows.
    cells
        Number of cells that are not missing, but for keys.
    levels
        Where each released level is: 0 in the index, 1 in the header, 2 among the columns, and its
        number there.
    dtypes
        Dtypes of the columns; null for those that hold keys.
    escaped_formulas
        Whether texts that a spreadsheet would take for formulas were escaped.
    """

    format: _Format
    index: tuple[Token, ...]
    header: tuple[Token, ...]
    rows: json_records.AtLeastNone
    cells: json_records.AtLeastNone
    levels: tuple[tuple[int, int], ...]
    dtypes: tuple[Dtype | None, ...]
    escaped_formulas: bool


def texts_of(values: Iterable[Any]) -> list[str]:
    """Write keys or labels; a missing one is empty."""
    if isinstance(values, pd.DatetimeIndex):
        return texts_of_times(values)
    texts = listed(values) if isinstance(values, pd.Index) else [*values]
    if {*map(type, texts)} != {str}:
        texts = ["" if value is None else str(value) for value in texts]
    return texts


class TableWriter:
    """A table that is written by columns.

    Parameters
    ----------
    shown
        The table.
    """

    file: ClassVar[str]
    """What the file is called in errors."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.frame = shown.layout.frame
        self.levels: Mapping[Place, int] = {
            place: at for at, place in enumerate(shown.layout.levels)
        }
        opened = shown.opened
        self._require_apart(self.texts(map(opened.shown_label, opened.columns)), "labels")
        self.numbers = {
            at: numbers_of(self.frame.iloc[:, at], opened.kind)
            for at in range(self.frame.shape[1])
            if (CELLS, at) not in self.levels
        }

    def sidecar(self, *, escaped: bool = False) -> Sidecar:
        """Describe the layout."""
        index, columns = self.frame.index, self.frame.columns
        width = self.frame.shape[1]
        return Sidecar(
            format=FORMAT,
            index=tuple(token(name) for name in index.names),
            header=tuple(token(name) for name in columns.names),
            rows=len(index),
            cells=sum(int((~column.missing).sum()) for column in self.numbers.values()),
            levels=tuple(self.shown.layout.levels),
            dtypes=tuple(self.dtype(at) for at in range(width)),
            escaped_formulas=escaped,
        )

    @cached_property
    def header(self) -> list[list[str]]:
        """A line of labels for each level of the columns, the last after the names of the index."""
        columns, names = self.frame.columns, self.frame.index.names
        lines = []
        for number in range(columns.nlevels):
            codes, _, texts = self.keys(columns, COLUMNS, number)
            labels = [*texts, ""]  # a missing one has the code -1
            lines.append([""] * len(names) + [*map(labels.__getitem__, codes.tolist())])
        lines[-1][: len(names)] = self.texts(names)
        return lines

    def dtype(self, at: int) -> str | None:
        """Return the dtype that a column is read back in; `None`: it holds keys."""
        if at not in self.numbers:
            return None
        column, numbers = self.frame.dtypes.iloc[at], self.numbers[at]
        if getattr(column, "kind", "O") in "mM":
            return str(column)
        if numbers.values.dtype == np.float32:
            return "float32"
        integral = numbers.values.dtype.kind == "i" or str(column) == "Int64"
        if integral:
            return "Int64" if numbers.missing.any() else "int64"
        return "float64"

    def texts(self, values: Iterable[Any]) -> list[str]:
        """Write keys or labels, those that the file can hold."""
        texts = texts_of(values)
        self.check_texts(texts)
        return texts

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts that the file cannot hold."""
        raise NotImplementedError

    def no_form(self, content: str) -> CertificateError:
        """Make the error about what cannot be written."""
        return CertificateError(f"{content} has no form in {self.file}. {INSTEAD}")

    def _require_apart(self, texts: Sequence[str], kind: str) -> None:
        """Refuse keys or labels that read alike."""
        if len({*texts}) < len(texts):
            raise self.no_form(f"{kind}, of which two read alike,")

    def keys(self, values: Any, axis: int, number: int) -> tuple[np.ndarray, pd.Index, list[str]]:
        """Return which key each value is, -1 for a missing one; the keys; and their texts."""
        codes, keys = parts = factored(values, number if axis != CELLS else 0)
        level = self.levels.get((axis, number))
        opened = self.shown.opened
        if level is not None:  # as they were released: a table may hold floats for integers
            codes, keys = opened.places(level, parts), opened.shown_keys(level)
        texts = self.texts(keys)
        if level is not None and not are_whole(keys):
            self._require_apart(texts, "keys")
        return codes, keys, texts


def another_header() -> ChangedFileError:
    """Make the error about names of levels."""
    return ChangedFileError("its header was changed")


def another_key(level: object) -> ChangedFileError:
    """Make the error about a key that was not released."""
    return ChangedFileError(f"a key of level {level!r} was not released")


def changed_cell(frame: pd.DataFrame, opened: Opened) -> str:
    """Say where a table that was read first differs from the record of what was written."""
    labels_or_keys = "keys or labels were changed"
    try:
        located = locate(frame, opened).located
    except CertificateError:
        return labels_or_keys
    for cells in located:
        if cells.label is None or (cells.rows < 0).any():
            continue
        released = opened.columns[cells.label].numbers
        values, missing = cells.numbers
        originals, gone = released.values[cells.rows], released.missing[cells.rows]
        same = np.where(missing | gone, missing == gone, np.isclose(values, originals, _NEAR, 0))
        if not same.all():
            label = frame.columns[cells.column]
            rows = np.arange(len(frame))[cells.where]
            return f"the value in row {rows[same.argmin()] + 1:,} of column {label!r} was changed"
    return labels_or_keys


class TableReader:
    """What reads a table back.

    Parameters
    ----------
    sidecar
        Its layout.
    opened
        Its record.
    """

    def __init__(self, sidecar: Sidecar, opened: Opened) -> None:
        self.sidecar, self.opened = sidecar, opened
        self._levels = {place: at for at, place in enumerate(sidecar.levels)}
        labels = [opened.shown_label(label) for label in opened.columns]
        labels += [name for name in opened.index.names if name is not None]
        self._labels = dict(zip(texts_of(labels), labels, strict=True))

    def written(self, texts: list[str]) -> list[str]:
        """Return texts as the file has them."""
        return texts

    def given_back(self, texts: list[str]) -> list[str]:
        """Return texts of the file as they were."""
        return texts

    def check_header(self, header: Sequence[Sequence[str]]) -> None:
        """Check the lines above the cells."""
        depth, width = len(self.sidecar.index), len(self.sidecar.dtypes)
        names = self.written(texts_of(map(label_of, self.sidecar.index)))
        if any(len(line) != depth + width for line in header) or header[-1][:depth] != names:
            raise another_header()

    def dtypes(self) -> dict[int, str | None]:
        """Return the dtypes of numbers among all columns of the file; `None`: texts."""
        depth = len(self.sidecar.index)
        of_keys = {number: self._dtype_of_keys((ROWS, number)) for number in range(depth)}
        by_column = {**of_keys, **dict(enumerate(self.sidecar.dtypes, depth))}
        return {at: dtype if dtype in NUMBERS else None for at, dtype in by_column.items()}

    def keys_at(self, place: Place) -> pd.Index | None:
        """Return the keys of a level that is at a place, if one is."""
        level = self._levels.get(place)
        return None if level is None else self.opened.shown_keys(level)

    def _dtype_of_keys(self, place: Place) -> str | None:
        """Return the dtype of integers among the keys in the index."""
        keys = self.keys_at(place)
        return str(keys.dtype) if keys is not None and are_whole(keys) else None

    def table(self, header: Sequence[Sequence[str]], cells: pd.DataFrame) -> pd.DataFrame:
        """Return the table of a file; anything can be raised if that was changed.

        Parameters
        ----------
        header
            The lines above the cells, with the names of the index in the last.
        cells
            Keys as texts or numbers, then the columns; as `dtypes` says.
        """
        sidecar = self.sidecar
        depth, width = len(sidecar.index), len(sidecar.dtypes)
        keys = [
            self._keys(cells[number], (ROWS, number), label_of(name))
            for number, name in enumerate(sidecar.index)
        ]
        index = keys[0] if depth == 1 else pd.MultiIndex.from_arrays(keys)
        columns = {at: self._column(cells[depth + at], at) for at in range(width)}
        frame = pd.DataFrame(columns, index=index, copy=False)
        numbers = [at for at, dtype in enumerate(sidecar.dtypes) if dtype is not None]
        if sum(int(frame[at].count()) for at in numbers) != sidecar.cells:
            raise ChangedFileError("values were added, or taken away")
        labels = [
            self._keys(pd.Series(line[depth:], dtype=object), (COLUMNS, number), label_of(name))
            for number, (line, name) in enumerate(zip(header, sidecar.header, strict=True))
        ]
        frame.columns = labels[0] if len(labels) == 1 else pd.MultiIndex.from_arrays(labels)
        return frame

    def _column(self, cells: pd.Series, at: int) -> Any:
        dtype = self.sidecar.dtypes[at]
        if dtype is None:
            return self._keys(cells, (CELLS, at), None).array
        if dtype in NUMBERS:
            return cells.array
        if dtype.startswith(("timedelta64", "datetime64")):
            kind = "m" if dtype.startswith("timedelta64") else "M"
            texts = pd.Series([None if text in _GONE else text for text in cells], dtype=object)
            return series_of(Numbers(*numbers_of(texts, kind)), dtype).array
        raise ValueError("a dtype that is not written")

    def _keys(self, texts: pd.Series, place: Place, name: Any) -> pd.Index:
        """Return the keys of a level, or labels, or numbers of rows."""
        level = self._levels.get(place)
        if texts.dtype.kind in "iuf":
            keys = self.opened.shown_keys(self._levels[place])
            if not np.array_equal(keys, texts):  # not in the order that was released
                positions = keys.get_indexer(texts.array)
                if (positions < 0).any():
                    raise another_key(name)
                keys = keys.take(positions)
            return keys.rename(name)
        keys = pd.Index([]) if level is None else self.opened.shown_keys(level)
        plain = not self.sidecar.escaped_formulas
        if plain and keys.equals(pd.Index(texts)):  # as released
            return keys.rename(name)
        written = texts_of(keys)
        if plain and texts.tolist() == written:
            return keys.rename(name)
        codes, distinct = pd.factorize(texts)
        unique = self.given_back([*distinct])
        if level is not None:
            places = dict(zip(written, range(len(written)), strict=True))
            positions = np.array([places.get(text, -1) for text in unique], np.intp)
            if (positions < 0).any():
                raise another_key(name)
            return keys.take(positions[codes]).rename(name)
        numbered = all(text.isdecimal() and text not in self._labels for text in unique)
        if unique and numbered:
            return pd.Index([int(text) for text in unique], dtype=np.int64).take(codes).rename(name)
        labels = [self._labels.get(text, text) for text in unique]
        known_labels = pd.Index(labels, tupleize_cols=False, dtype=None if labels else object)
        index: pd.Index = known_labels.take(codes).rename(name)
        return index
