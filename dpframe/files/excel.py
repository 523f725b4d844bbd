"""Released tables as Excel files: a sheet a table, notes for people, and the certificates inside.

Texts are never formulas, whatever they begin with. A hidden sheet has a line of text for each
table: its layout and its certificate, in pieces that a cell has room for.
"""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd

from dpframe.arguments import check_place
from dpframe.cells.keys import listed
from dpframe.cells.locate import CELLS, ROWS
from dpframe.cells.record import RECORD, Opened, carry, opened_of
from dpframe.cells.reduce import reduced
from dpframe.cells.texts import decimals, unit_of_time
from dpframe.cells.verify import Shown, look, look_with
from dpframe.certificates import json_records
from dpframe.certificates.parts import Zipped
from dpframe.context import at_the_door
from dpframe.errors import CertificateError, DPFrameError, QueryError, pip_install
from dpframe.files.layout import (
    FORMULA,
    NUMBERS,
    ChangedFileError,
    Sidecar,
    TableReader,
    TableWriter,
)
from dpframe.public import public_call

_FILE = "an Excel file"
_ENDINGS = (".xlsx",)
_NOTES, _HIDDEN = "Notes", "dpframe"
_MOST_ROWS, _MOST_COLUMNS, _LONGEST = 1_048_576, 16_384, 32_767  # of a sheet, and characters
_LONGEST_NAME = 31  # of a sheet
# XML 1.0 has no such characters, and Excel reads "_x0041_" as "A"
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
_NO_NAME = re.compile(r"[\[\]:*?/\\]|^'|'$|^history$", re.IGNORECASE)
_MOST_WHOLE = 2**53  # beyond, Excel keeps no whole numbers
_FIRST_YEAR = 1901  # before, Excel counts a day that never was
_WIDEST, _NARROWEST, _SPACE = 40, 10, 2  # of a column, in characters
_DAYS, _TIMES = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
_MICRO = 1e6  # microseconds of a second


class _Sheet(json_records.Record):
    """What is kept of a table.

    Parameters
    ----------
    sheet
        The name of its sheet.
    layout
        Its layout.
    seconds
        What durations of a column count, in seconds; null for other columns.
    record
        Its certificate, as JSON.
    """

    sheet: str
    layout: Sidecar
    seconds: tuple[float | None, ...]
    record: str


@public_call
def write_excel(
    released: pd.DataFrame,
    path: str | PathLike[str],
    *,
    sheet_name: str = "Table",
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """Write what a table shows to an Excel file, or several tables, with their certificates.

    Each table has a sheet: keys, then numbers in formats that show the digits the noise leaves,
    each with its interval beside it. The sheet "Notes" says what was promised. `dpf.read_excel`
    checks the numbers.

    Parameters
    ----------
    released
        A released frame, in any layout.
    path
        The file, which ends in .xlsx. One that is there is replaced.
    sheet_name
        The name of its sheet.
    tables
        More released frames, by the names of their sheets.

    Raises
    ------
    CertificateError
        If a frame is not what was released, or has a key or label that Excel cannot hold; no file
        is written then.
    DPFrameError
        If openpyxl is not installed.
    OSError
        If the file cannot be written.
    QueryError
        If the path is none, does not end in .xlsx, or is in no folder that is there; if a name is
        none of a sheet; or if an interval tells a hidden cell, see `publish`.

    Examples
    --------
    >>> import tempfile
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.dp.write_excel(f"{folder}/zones.xlsx", sheet_name="Trips by zone")
    ...     back = dpf.read_excel(f"{folder}/zones.xlsx")
    >>> back.equals(released)
    True
    """
    place = check_place(path, _FILE, _ENDINGS)
    if not isinstance(tables, Mapping | None):
        raise QueryError.about("tables", "must be released frames by the names of sheets", tables)
    named = [(sheet_name, released), *(tables or {}).items()]
    _check_names([name for name, _ in named])
    sheets = {name: _beside(look(frame)) for name, frame in named}
    records = {name: reduced(shown) for name, shown in sheets.items()}
    _require_openpyxl("writing", " .dp.write_csv needs no extra.")
    content = _written(sheets, records)
    try:
        for name, frame in _read(content, None).items():
            look_with(frame, records[name])
    except (ArithmeticError, LookupError, TypeError, ValueError):
        rule = "a key, a label or a dtype of this table does not read back from Excel as it is"
        raise CertificateError(f"{rule}. Use .dp.write_csv.") from None
    at_the_door(looking=True).place(place).write_bytes(content)


@overload
def read_excel(path: str | PathLike[str], sheet_name: str | int = 0) -> pd.DataFrame: ...


@overload
def read_excel(path: str | PathLike[str], sheet_name: None) -> dict[str, pd.DataFrame]: ...


@public_call
def read_excel(
    path: str | PathLike[str], sheet_name: str | int | None = 0
) -> pd.DataFrame | dict[str, pd.DataFrame]:
    """Read a released table written by `.dp.write_excel`, and check it against its certificate.

    Rows may be sorted, and cells formatted, in Excel. Every row and column must be there, and no
    other. Notes are for people, and are not checked.

    Parameters
    ----------
    path
        The Excel file.
    sheet_name
        The name of a sheet, or which of the tables, from 0; `None`: all of them.

    Returns
    -------
    DataFrame or dict of DataFrame
        The table: the same keys, labels and values; or all, by the names of their sheets.

    Raises
    ------
    CertificateError
        If there is no certificate in the file, or a table or certificate was changed or cut.
    UnreadableCertificateError
        If what is in it is no certificate of this version.
    DPFrameError
        If openpyxl is not installed.
    OSError
        If the file cannot be read.
    QueryError
        If the path is none of an Excel file, or the file has no such table.

    Examples
    --------
    >>> import tempfile
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.dp.write_excel(f"{folder}/zones.xlsx", tables={"Again": released})
    ...     list(read_excel(f"{folder}/zones.xlsx", sheet_name=None))
    ['Table', 'Again']
    """
    place = at_the_door(looking=True).written(check_place(path, _FILE, _ENDINGS))
    if not (sheet_name is None or type(sheet_name) in (int, str)):
        raise QueryError.about("sheet_name", "must be a name, a number or None", sheet_name)
    content = place.read_bytes()
    _require_openpyxl("reading")
    try:
        tables = _read(content, sheet_name)
        for frame in tables.values():
            look(frame)
    except DPFrameError:
        raise
    except ChangedFileError as error:
        rule = f"{place.name!r} is not what .dp.write_excel writes: {error}"
        raise CertificateError(f"{rule}. Write it anew from the released frame.") from None
    except Exception:  # a file from anywhere makes its reader raise anything
        reason = "sheets, rows, values or certificates were changed"
        rule = f"{place.name!r} is not what .dp.write_excel writes: {reason}"
        raise CertificateError(f"{rule}. Write it anew from the released frame.") from None
    if sheet_name is None:
        return tables
    (frame,) = tables.values()
    return frame


def _require_openpyxl(action: str, way_out: str = "") -> None:
    try:
        import openpyxl  # noqa: F401  # comes with an extra
    except ImportError:
        rule = f"{action} Excel files needs openpyxl: {pip_install('excel')}"
        raise DPFrameError(f"{rule}.{way_out}") from None


def _check_names(names: Sequence[object]) -> None:
    """Refuse names that sheets cannot have."""
    taken = {_NOTES.lower(), _HIDDEN}
    for name in names:
        text = name if isinstance(name, str) else ""
        if not 0 < len(text) <= _LONGEST_NAME or _NO_NAME.search(text) or _NO_TEXT.search(text):
            rule = f"must be a text of 1 to {_LONGEST_NAME} characters without [ ] : * ? / \\"
            raise QueryError.about("sheet_name", rule, name)
        if text.lower() in taken:
            rule = f"must differ from other sheets, also from {_NOTES!r} and {_HIDDEN!r}"
            raise QueryError.about("sheet_name", rule, name)
        taken.add(text.lower())


def _beside(shown: Shown) -> Shown:
    """Put ends of intervals beside their numbers, where a table has columns of both."""
    homes = shown.homes
    order = sorted(range(len(homes)), key=lambda at: (homes[at], at))
    if order == [*range(len(homes))]:
        return shown
    return look_with(shown.layout.frame.iloc[:, order], shown.opened)


class _Format(NamedTuple):
    """How the numbers of a column are shown, and what durations count, in seconds."""

    code: str
    seconds: float | None = None
    unit: str = ""


def _format_of(shown: Shown, label: str) -> _Format:
    """Return how a column is shown: with the digits that its rounding, or the noise, leaves."""
    middle = shown.middle_of(label) or label
    column = shown.opened.columns[middle]
    if column.kind == "M":
        return _Format(_TIMES)
    values, missing = column.numbers
    if values.dtype.kind == "i" and not column.kind:
        return _Format("#,##0")
    name, scale, seconds = "", 1.0, None
    if column.kind:
        largest = float(np.abs(values[~missing]).max(initial=0))
        name, seconds = unit_of_time(largest / _MICRO)
        scale = seconds * _MICRO
    unit, width = shown.unit(middle) / scale, _half_width(shown, middle) / scale
    places = max(decimals(unit) - 1, 0) if unit else decimals(width)
    code = "General"
    if unit or width:
        code = "#,##0" + f".{'0' * places}" * (places > 0)
    return _Format(f'{code}" {name}"' if name else code, seconds, name)


def _half_width(shown: Shown, middle: str) -> float:
    """Return half of the usual width of the intervals that stand beside a column; 0 without."""
    ends = [label for label in shown.computed if shown.middle_of(label) == middle]
    if len(ends) != len(("low", "high")):
        return 0.0
    first, last = (shown.opened.columns[label].numbers.values.astype(float) for label in ends)
    widths = np.abs(last - first) / 2
    finite = widths[np.isfinite(widths) & (widths > 0)]
    return float(np.median(finite)) if len(finite) else 0.0


class _ExcelWriter(TableWriter):
    """A table that is written to a sheet."""

    file = _FILE

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self.depth, self.above = (axis.nlevels for axis in self.frame.axes)
        height, width = self.frame.shape
        if height + self.above > _MOST_ROWS or width + self.depth > _MOST_COLUMNS:
            raise self.no_form(f"a table of {height:,} rows and {width:,} columns")
        self.formats = {at: _format_of(shown, shown.labels_at[at]) for at in self.numbers}

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts that the file cannot hold."""
        if any(len(text) > _LONGEST or _NO_TEXT.search(text) for text in texts):
            raise self.no_form("a key or a label that is too long, or has control characters,")

    def record(self, sheet: str, opened: Opened) -> _Sheet:
        """Return what is kept of the table."""
        seconds = tuple(
            self.formats[at].seconds if at in self.formats else None
            for at in range(self.frame.shape[1])
        )
        return _Sheet(sheet=sheet, layout=self.sidecar(), seconds=seconds, record=opened.text)

    def columns(self) -> list[tuple[list[Any], str]]:
        """Return the cells of each column of the sheet, and how numbers are shown."""
        index, width = self.frame.index, self.frame.shape[1]
        keys = [(self._keys(index, ROWS, at), "General") for at in range(self.depth)]
        return [*keys, *(self._cells(at) for at in range(width))]

    def _keys(self, values: Any, axis: int, number: int) -> list[Any]:
        codes, keys, texts = self.keys(values, axis, number)
        cells = [*map(_cell_of, listed(keys), texts), None]  # a missing key has the code -1
        return [*map(cells.__getitem__, codes.tolist())]

    def _cells(self, at: int) -> tuple[list[Any], str]:
        column = self.frame.iloc[:, at]
        if at not in self.numbers:
            return self._keys(column.array, CELLS, at), "General"
        values, missing = self.numbers[at]
        code, seconds, _ = self.formats[at]
        if seconds is not None:
            values = values / (_MICRO * seconds)
        if getattr(column.dtype, "kind", "O") == "M":
            cells = [_cell_of(cell, str(cell)) for cell in column]
        elif self.dtype(at) in ("int64", "Int64"):
            cells = np.where(missing, 0, values).astype(np.int64).tolist()
        else:
            cells = [cell if np.isfinite(cell) else str(cell) for cell in values.tolist()]
        pairs = zip(cells, missing, strict=True)
        return [None if gone else cell for cell, gone in pairs], code


def _cell_of(key: Any, text: str) -> Any:
    """Return a key as Excel knows it, where it reads back as such; else its text."""
    match key:
        case bool() | np.bool_():
            return bool(key)
        case np.integer() | np.floating():
            return _cell_of(key.item(), text)
        case int() | float() if abs(key) <= _MOST_WHOLE:
            return key
        case pd.Timestamp() if key.tz is None and key.year >= _FIRST_YEAR:
            return key.to_pydatetime() if key.floor("s") == key else text
    return text


def _written(tables: Mapping[str, Shown], records: Mapping[str, Opened]) -> bytes:
    """Return what the file holds."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    notes: list[list[Any]] = []
    kept: list[list[Any]] = []
    for name, shown in tables.items():
        writer = _ExcelWriter(shown)
        _fill(book.create_sheet(name), writer)
        notes += [[name], *_notes(writer, records[name]), []]
        kept.append(_pieces(writer.record(name, records[name])))
    _fill_texts(book.create_sheet(_NOTES), notes)
    hidden = book.create_sheet(_HIDDEN)
    hidden.sheet_state = "veryHidden"
    _fill_texts(hidden, kept)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def _fill(sheet: Any, writer: _ExcelWriter) -> None:
    """Write a table: header, then a line for each row."""
    from openpyxl.utils import get_column_letter

    header, columns = writer.header, writer.columns()
    for at, (cells, _) in enumerate(columns):
        texts = [line[at] for line in header]
        texts += [str(cell) for cell in cells] if at < writer.depth else []
        width = min(max(map(len, texts)) + _SPACE, _WIDEST)
        sheet.column_dimensions[get_column_letter(at + 1)].width = max(width, _NARROWEST)
    corner = get_column_letter(writer.depth + 1)
    sheet.freeze_panes = f"{corner}{writer.above + 1}"
    _fill_texts(sheet, header, bold=True)
    codes = [code for _, code in columns]
    for row in zip(*(cells for cells, _ in columns), strict=True):
        pairs = zip(row, codes, strict=True)
        sheet.append([_excel_cell(sheet, cell, code) for cell, code in pairs])


def _fill_texts(sheet: Any, lines: Sequence[Sequence[str]], *, bold: bool = False) -> None:
    from openpyxl.styles import Font

    font = Font(bold=bold)
    for line in lines:
        cells = [_excel_cell(sheet, text) for text in line]
        for cell in cells if bold else ():
            cell.font = font
        sheet.append(cells)


def _excel_cell(sheet: Any, value: Any, code: str = "General") -> Any:
    """Make a cell: a text is no formula, and a number keeps all of its digits."""
    from openpyxl.cell import WriteOnlyCell

    if isinstance(value, bool | None):
        return WriteOnlyCell(sheet, value)
    if isinstance(value, datetime):
        cell = WriteOnlyCell(sheet, value)
        cell.number_format = _DAYS if value.time() == datetime.min.time() else _TIMES
        return cell
    if isinstance(value, str):
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"
        cell.quotePrefix = FORMULA.match(value) is not None
        return cell
    cell = WriteOnlyCell(sheet, repr(value))
    cell.data_type = "n"
    cell.number_format = code
    return cell


def _notes(writer: _ExcelWriter, opened: Opened) -> Iterator[list[str]]:
    """Say for people what the certificate says."""
    for line in str(opened.certificate).splitlines():
        name, *text = re.split(r"\s{2,}", line.strip(), maxsplit=1)
        yield [_NO_TEXT.sub("\ufffd", part)[:_LONGEST] for part in ("", name, *text)]
    for at, (_, _, unit) in writer.formats.items():
        if unit:
            yield ["", "unit", f"{writer.header[-1][writer.depth + at]}: {unit}"]


def _pieces(kept: _Sheet) -> list[str]:
    """Write what is kept of a table, in pieces that cells have room for."""
    text = json.dumps(json_records.plain(kept))
    packed = Zipped.writing(text, str.encode).zlib
    return [packed[at : at + _LONGEST] for at in range(0, len(packed), _LONGEST)]


def _read(content: bytes, sheet_name: str | int | None) -> dict[str, pd.DataFrame]:
    """Read one table of a file, or all; anything can be raised if it was changed."""
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(content), read_only=True)
    if _HIDDEN not in book.sheetnames:
        rule = "this file holds no certificate: .dp.write_excel did not write it"
        raise CertificateError(f"{rule}. It writes released frames.", parameter="path")
    kept = {sheet.sheet: sheet for sheet in _kept(book[_HIDDEN])}
    names = [*kept]
    if sheet_name is not None:
        choices = range(len(names)) if isinstance(sheet_name, int) else names
        if sheet_name not in choices:
            raise QueryError.about(
                "sheet_name", f"must be one of {names!r}, or a place", sheet_name
            )
        names = [names[sheet_name] if isinstance(sheet_name, int) else sheet_name]
    return {name: _table_of(book[name], kept[name]) for name in names}


def _kept(sheet: Any) -> Iterator[_Sheet]:
    sheet.reset_dimensions()
    for row in sheet.iter_rows(values_only=True):
        packed = Zipped(zlib="".join(piece for piece in row if piece))
        content = json_records.parse_json(packed.unzip().decode())
        yield json_records.read(_Sheet, content, "what is kept of a table")


def _table_of(sheet: Any, kept: _Sheet) -> pd.DataFrame:
    """Read a table; anything can be raised if it was changed."""
    layout, opened = kept.layout, opened_of({RECORD: kept.record})
    above, depth = len(layout.header), len(layout.index)
    width = depth + len(layout.dtypes)
    rows: list[list[Any]] = []
    sheet.reset_dimensions()
    for row in sheet.iter_rows():
        values = [cell.value for cell in row]
        if any(value is not None for value in values[width:]):
            raise ChangedFileError("a column was added")
        if any(cell.data_type == "f" for cell in row):
            raise ChangedFileError("a cell is a formula")
        if len(rows) < above + layout.rows:
            rows.append([*values, *[None] * (width - len(values))][:width])
        elif any(value is not None for value in values):
            raise ChangedFileError("a row was added")
    if len(rows) < above + layout.rows:
        raise ChangedFileError("rows were taken away")
    header = [[*map(_text_of, row)] for row in rows[:above]]
    reader = _ExcelReader(layout, opened)
    reader.check_header(header)
    columns = list(zip(*rows[above:], strict=True)) or [()] * width
    seconds = [*[None] * depth, *kept.seconds]
    cells = {at: reader.cells(at, column, seconds[at]) for at, column in enumerate(columns)}
    frame = reader.table(header, pd.DataFrame(cells))
    carry(frame, opened)
    return frame


class _ExcelReader(TableReader):
    """What reads a table of a sheet back."""

    def cells(self, at: int, cells: Sequence[Any], seconds: float | None) -> pd.Series:
        """Return the cells of a column of the sheet."""
        depth = len(self.sidecar.index)
        dtype = None if at < depth else self.sidecar.dtypes[at - depth]
        if dtype in NUMBERS:
            return pd.Series(cells, dtype=dtype)
        if seconds is not None:
            steps = [None if cell is None else round(cell * seconds * _MICRO) for cell in cells]
            lengths = [None if n is None else pd.Timedelta(n, "us") for n in steps]
            return pd.Series(lengths, dtype=object)
        keys = self.keys_at((ROWS, at) if at < depth else (CELLS, at - depth))
        if keys is not None and isinstance(keys.dtype, np.dtype) and keys.dtype.kind in "iuf":
            read = float if keys.dtype.kind == "f" else int
            return pd.Series([*map(read, cells)], dtype=keys.dtype)
        return pd.Series([*map(_text_of, cells)], dtype=object)


def _text_of(cell: Any) -> str:
    return "" if cell is None else str(cell)
