"""How text files are written, and their cells read: one rule for each kind of value."""

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Self

import numpy as np

from dpframe.columns import compute, pa
from dpframe.errors import DeclarationError
from dpframe.frozen import frozen

UTF8 = "utf-8"
_HIGH_BYTES = range(128, 256)
# ASCII as other encodings do not read it: escapes, shifts, two bytes a character
_ASCII_SAMPLES = (b"\\u0041", b"xn--4ca", b"\x1b$B,,\x1b(B", bytes(range(128)))
_SAMPLE_DAY = datetime(2001, 2, 3, tzinfo=UTC)
_NO_SEPARATOR = '"\r\n'
_NO_MARK = _NO_SEPARATOR + "+-%eE0123456789"


@frozen(slots=True)
class Dialect:
    """How text files are written; see `dpframe.scan` for what the options mean."""

    separator: str = ","
    encoding: str = UTF8
    na_values: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str = "."
    percent: bool = False
    true: tuple[str, ...] = ("true", "1")
    false: tuple[str, ...] = ("false", "0")
    dates: tuple[str, ...] = ()
    newlines: bool = False

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Check what is said of files.

        Raises
        ------
        DeclarationError
            If it is none of what an option may be, or leaves open what a cell means.
        """
        for name in ("na_values", "true", "false", "dates"):
            options[name] = _texts(name, options.get(name, getattr(_PLAIN, name)))
        for name in ("percent", "newlines"):
            if not isinstance(options.get(name, False), bool):
                raise DeclarationError.about(name, "must be True or False", options[name])
        dialect = cls(**options)
        dialect = replace(dialect, encoding=_encoding(dialect.encoding))
        dialect._check_marks()
        dialect._check_words()
        return dialect

    @property
    def separator_byte(self) -> bytes:
        """The byte between two cells."""
        return self.separator.encode(self.encoding)

    @property
    def missing_cells(self) -> list[bytes]:
        """The cells that are missing."""
        return [b"", *(word.encode(self.encoding) for word in self.na_values)]

    def decode(self, cell: bytes) -> str | None:
        r"""Decode a cell; `None` for bytes that are not of the encoding.

        Examples
        --------
        >>> cyrillic = Dialect.of(encoding="cp1251")
        >>> cyrillic.decode(b"\xc4\xe0"), cyrillic.decode(b"\x98")
        ('Да', None)
        """
        try:
            return cell.decode(self.encoding)
        except ValueError:
            return None

    def _check_marks(self) -> None:
        """Check the separator, and the marks in numbers."""
        if not _is_mark(self.separator, _NO_SEPARATOR):
            raise DeclarationError.about("separator", "must be one character", self.separator)
        if not self._is_one_byte(self.separator):
            rule = f"must be ASCII, and no part of another character in {self.encoding}"
            raise DeclarationError.about("separator", rule, self.separator)
        rule = "must be one character that is no sign, digit or letter of a number"
        if not _is_mark(self.decimal, _NO_MARK):
            raise DeclarationError.about("decimal", rule, self.decimal)
        if self.thousands is not None and not _is_mark(self.thousands, _NO_MARK):
            raise DeclarationError.about("thousands", rule, self.thousands)
        if self.thousands == self.decimal:
            raise DeclarationError.about("thousands", "must differ from decimal", self.thousands)

    def _is_one_byte(self, character: str) -> bool:
        """Tell whether a character is one byte, and never the second byte of another character."""
        if not character.isascii():
            return False
        pairs = (self.decode(bytes([first, ord(character)])) for first in _HIGH_BYTES)
        return all(pair is None or len(pair) > 1 for pair in pairs)

    def _check_words(self) -> None:
        """Check words and forms of dates."""
        named = {"na_values": self.na_values, "true": self.true, "false": self.false}
        marks = {"thousands": [self.thousands or ""], "decimal": [self.decimal]}
        for name, words in {**named, **marks}.items():
            for word in words:
                try:
                    word.encode(self.encoding)
                except UnicodeEncodeError:
                    rule = f"must be text that {self.encoding} can write"
                    raise DeclarationError.about(name, rule, word) from None
        for name in ("true", "false"):
            if not named[name]:
                raise DeclarationError.about(name, "must have a word", named[name])
        if both := {*map(str.lower, self.true)} & {*map(str.lower, self.false)}:
            raise DeclarationError.about("true", "must have no word of false", sorted(both)[0])
        for form in self.dates:
            if not _is_date_form(form):
                rule = 'must be forms of dates with a year, such as "%d.%m.%Y" or "%m/%d/%Y %H:%M"'
                raise DeclarationError.about("dates", rule, form)


_PLAIN = Dialect()


def _texts(name: str, value: object) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise DeclarationError.about(name, "must be a text or a list of texts", value)
    return tuple(texts)


def _encoding(name: object) -> str:
    """Find an encoding in which no comma or line end is part of another character."""
    encoding = ""
    try:
        encoding = codecs.lookup(name).name  # type: ignore[arg-type]  # as it is given
        plain = all(sample.decode(encoding) == sample.decode("ascii") for sample in _ASCII_SAMPLES)
    except (LookupError, TypeError, ValueError):
        plain = False
    if not plain:
        such = "such as utf-8, cp1252, cp1251, gb18030 or cp932"
        rule = f"must be an encoding that has ASCII as it is, and no shifts, {such}"
        hint = "Convert the files, to UTF-8 for instance."
        raise DeclarationError.about("encoding", rule, name, hint)
    return UTF8 if encoding.startswith(UTF8) else encoding


def _is_mark(value: object, excluded: str) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in excluded


def _is_date_form(form: str) -> bool:
    """Tell whether a form of `strptime` says the year, and reads what it writes."""
    written = _SAMPLE_DAY.strftime(form)
    if written == _SAMPLE_DAY.replace(year=_SAMPLE_DAY.year + 1).strftime(form):
        # says no year: newer Pythons warn of reading it
        return False
    try:
        return datetime.strptime(written, form).year == _SAMPLE_DAY.year
    except ValueError:
        return False


_BLANKS = " \t"
_INT64 = range(-(2**63), 2**63)
# 10**18 is the largest power of ten below 2**63
_MOST_DIGITS = 18
_INFINITE = re.compile("[+-]?inf(?:inity)?", re.IGNORECASE)
_EXPONENT = "[eE][+-]?[0-9]+"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_OFFSET = "(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_ISO = re.compile(f"{_DATE}(?:[ T]{_CLOCK})?{_OFFSET}?")
# than microseconds
_FINER = re.compile(r"(\.[0-9]{6})[0-9]+")
# Arrow has a year 0 and years above 9999, and refuses what is finer than microseconds
_PLAIN_DATE = "[12]" + _DATE.replace("4", "3", 1)
_PLAIN_TIME = f"{_PLAIN_DATE}(?:[ T]{_CLOCK.replace('9}', '6}')})?"


@frozen(slots=True)
class CellKind:
    """A kind of values.

    Parameters
    ----------
    arrow
        The name of the Arrow type that holds them.
    rule
        Reads a cell; raises if it is not of the kind.
    plain
        Gives a regular expression of cells that Arrow reads as the rule does, once the marks of a
        dialect are undone.
    letters
        Bytes of which Arrow reads no cell otherwise than the rule does, whatever their order.
    """

    arrow: str
    rule: Callable[[str, Dialect], Any]
    plain: Callable[[Dialect], str]
    letters: Callable[[Dialect], bytes]

    @property
    def type(self) -> Any:
        """The Arrow type that holds them."""
        name, _, zone = self.arrow.partition(" ")
        return pa.timestamp("us", zone) if zone else pa.type_for_alias(name)

    def read(self, text: str, dialect: Dialect) -> Any:
        """Read a cell; `None` if it is not of the kind."""
        try:
            return self.rule(text, dialect)
        except (ValueError, ArithmeticError):  # such as an exponent beyond all
            return None


def read_cell(kind: str, text: str, dialect: Dialect | None = None) -> Any:
    """Read one cell as one of `KINDS`; `None` if it is not of that kind.

    Examples
    --------
    >>> [read_cell("int64", text) for text in ("1", "2.0", "2.5", "1e3", "x")]
    [1, 2, None, 1000, None]
    >>> read_cell("float64", "1.234,5 %", Dialect(thousands=".", decimal=",", percent=True))
    12.345
    """
    return KINDS[kind].read(text, dialect or Dialect())


def read_cells(kind: str, cells: Any, dialect: Dialect) -> Any:
    """Read an array of bytes as one of `KINDS`, each cell by itself.

    What the rule reads as Arrow does is cast at once. Other cells go through the rule, alike ones
    together.
    """
    reading = KINDS[kind]
    arrow = reading.type
    if _is_made_of(cells, reading.letters(dialect)):
        try:
            return cells.cast(pa.string()).cast(arrow)
        except pa.ArrowInvalid:  # such as a number beyond 64 bits
            pass
    pattern = f"^(?:{reading.plain(dialect)})$".encode(dialect.encoding)
    others = compute.invert(compute.match_substring_regex(cells, pattern)).fill_null(False)
    plain = compute.replace_with_mask(cells, others, pa.scalar(None, cells.type))
    try:
        values = _undo_marks(kind, plain, dialect).cast(pa.string()).cast(arrow)
    except pa.ArrowInvalid:  # such as 2023-02-29: the rule reads all of them
        values, others = pa.nulls(len(cells), arrow), cells.is_valid()
    if not others.true_count:
        return values
    distinct = cells.filter(others).dictionary_encode()
    texts = map(dialect.decode, distinct.dictionary.to_pylist())
    read = [None if text is None else reading.read(text, dialect) for text in texts]
    return compute.replace_with_mask(values, others, pa.array(read, arrow).take(distinct.indices))


def _is_made_of(cells: Any, letters: bytes) -> bool:
    """Tell whether there are no other bytes in any of some cells."""
    _, offsets, data = cells.buffers()
    bounds = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1]
    is_letter = np.zeros(256, bool)
    is_letter[list(letters)] = True
    return bool(is_letter[np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]].all())


def _undo_marks(kind: str, cells: Any, dialect: Dialect) -> Any:
    """Write numbers as Arrow reads them."""
    if kind not in (INTEGER, FLOAT):
        return cells
    for mark, instead in ((dialect.thousands or "", b""), (dialect.decimal, b".")):
        if mark.encode(dialect.encoding) != instead:
            pattern = mark.encode(dialect.encoding)
            cells = compute.replace_substring(cells, pattern, instead)
    # pandas writes integers beside missing cells as floats
    if kind == INTEGER:
        cells = compute.replace_substring_regex(cells, r"\.0*$", "")
    return cells


@lru_cache(maxsize=64)
def _number_pattern(dialect: Dialect) -> re.Pattern[str]:
    decimal = re.escape(dialect.decimal)
    digits = _digits(dialect)
    ending = rf"(?:{_EXPONENT}|[{_BLANKS}]*%)?" if dialect.percent else f"(?:{_EXPONENT})?"
    return re.compile(rf"[+-]?(?:{digits}(?:{decimal}[0-9]*)?|{decimal}[0-9]+){ending}")


def _digits(dialect: Dialect, most: int | None = None) -> str:
    """Describe the digits before a decimal mark: marks of thousands stand between threes alone."""
    count, groups = ("+", "+") if most is None else (f"{{1,{most}}}", f"{{1,{most // 3 - 1}}}")
    if dialect.thousands is None:
        return f"[0-9]{count}"
    mark = re.escape(dialect.thousands)
    return f"(?:[0-9]{count}|[0-9]{{1,3}}(?:{mark}[0-9]{{3}}){groups})"


# Rules raise a ValueError, or an ArithmeticError, of a cell that is not of their kind.


def _number(text: str, dialect: Dialect) -> str:
    """Write a number as Python reads it, a percentage as a power of ten."""
    text = text.strip(_BLANKS)
    if not _number_pattern(dialect).fullmatch(text):
        raise ValueError
    number = text.replace(dialect.thousands or "", "").replace(dialect.decimal, ".")
    if number.endswith("%"):
        return f"{number[:-1].rstrip(_BLANKS)}e-2"
    return number


def _integer(text: str, dialect: Dialect) -> int:
    """Read a whole number of 64 bits, which may be written as a float."""
    exact = Decimal(_number(text, dialect))
    if exact.adjusted() > _MOST_DIGITS or int(exact) != exact or int(exact) not in _INT64:
        raise ValueError
    return int(exact)


def _float(text: str, dialect: Dialect) -> float:
    """Read a number; one beyond all floats is infinite."""
    if _INFINITE.fullmatch(text.strip(_BLANKS)):
        return float(text)
    return float(_number(text, dialect))


def _truth(text: str, dialect: Dialect) -> bool:
    """Read one of the words for true and false, in letters of any case."""
    word = text.strip(_BLANKS).lower()
    is_true = word in map(str.lower, dialect.true)
    if not is_true and word not in map(str.lower, dialect.false):
        raise ValueError
    return is_true


def _moment(text: str, dialect: Dialect) -> datetime:
    """Read a point in time in the forms of a dialect, or else in the extended form of ISO 8601."""
    text = text.strip(_BLANKS)
    for form in dialect.dates:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    if dialect.dates or not _ISO.fullmatch(text):
        raise ValueError
    return datetime.fromisoformat(_FINER.sub(r"\1", text))


def _wall_clock(text: str, dialect: Dialect) -> datetime:
    """Read a point in time without an offset."""
    moment = _moment(text, dialect)
    if moment.tzinfo is not None:
        raise ValueError
    return moment


def _instant(text: str, dialect: Dialect) -> datetime:
    """Read a point in time with an offset, as that of UTC; the first day of all may have none."""
    moment = _moment(text, dialect)
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)


def _date(text: str, dialect: Dialect) -> date:
    """Read a date, which may be written as its midnight."""
    moment = _wall_clock(text, dialect)
    if moment.time() != time():
        raise ValueError
    return moment.date()


def _plain_float(dialect: Dialect) -> str:
    decimal = re.escape(dialect.decimal)
    digits = _digits(dialect)
    return f"-?(?:{digits}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:{_EXPONENT})?"


def _plain_integer(dialect: Dialect) -> str:
    return f"-?{_digits(dialect, _MOST_DIGITS)}(?:{re.escape(dialect.decimal)}0*)?"


def _unless_forms(pattern: str) -> Callable[[Dialect], str]:
    return lambda dialect: _NONE if dialect.dates else pattern


def _letters_of_floats(dialect: Dialect) -> bytes:
    point = b"." if dialect.decimal == "." else b""
    return b"0123456789+-eE" + point


def _letters_of_texts(dialect: Dialect) -> bytes:
    return bytes(range(256 if dialect.encoding == UTF8 else 128))


_NONE = r"[^\x00-\xff]"
_ASCII = r"[\x00-\x7f]*"
INTEGER, FLOAT, STRING = "int64", "float64", "string"
KINDS = {
    STRING: CellKind("string", lambda text, _: text, lambda _: _ASCII, _letters_of_texts),
    INTEGER: CellKind("int64", _integer, _plain_integer, lambda _: b"0123456789-"),
    FLOAT: CellKind("float64", _float, _plain_float, _letters_of_floats),
    "bool": CellKind("bool", _truth, lambda _: _NONE, lambda _: b""),
    "date": CellKind("date32", _date, _unless_forms(_PLAIN_DATE), lambda _: b""),
    "datetime": CellKind("timestamp[us]", _wall_clock, _unless_forms(_PLAIN_TIME), lambda _: b""),
    "datetime-utc": CellKind(
        "timestamp[us] UTC", _instant, _unless_forms(_PLAIN_TIME + _OFFSET), lambda _: b""
    ),
}
"""The kinds of values that cells may have, by name."""
