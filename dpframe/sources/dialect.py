"""How text files are written: their encoding, the marks in them, the words for missing and true."""

import codecs
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from dpframe.errors import DeclarationError

UTF8 = "utf-8"
_HIGH_BYTES = range(128, 256)
# ASCII as other encodings do not read it: escapes, shifts, two bytes a character
_ASCII_SAMPLES = (b"\\u0041", b"xn--4ca", b"\x1b$B,,\x1b(B", bytes(range(128)))
_SAMPLE_DAY = datetime(2001, 2, 3, tzinfo=UTC)
_NO_SEPARATOR = '"\r\n'
_NO_MARK = _NO_SEPARATOR + "+-%eE0123456789"


@dataclass(frozen=True, slots=True)
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
        way = "Convert the files, to UTF-8 for instance."
        raise DeclarationError.about("encoding", rule, name, way)
    return UTF8 if encoding.startswith(UTF8) else encoding


def _is_mark(value: object, excluded: str) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in excluded


def _is_date_form(form: str) -> bool:
    """Tell whether a form of `strptime` says the year, and reads what it writes."""
    written = _SAMPLE_DAY.strftime(form)
    if written == _SAMPLE_DAY.replace(year=_SAMPLE_DAY.year + 1).strftime(form):
        return False  # says no year: newer Pythons warn of reading it
    try:
        return datetime.strptime(written, form).year == _SAMPLE_DAY.year
    except ValueError:
        return False
