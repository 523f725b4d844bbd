"""Texts of CSV files in some encoding: each cell is decoded by itself.

Rows are taken apart before cells are decoded, so that no byte of one cell moves the ends of others.
Bytes that are no text of the encoding stay bytes: they equal no text, and each other if the same.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass

_FIRST = range(128, 256)  # of the bytes of a character
# ASCII as other encodings do not read it: escapes, shifts, two bytes a character
_SAMPLES = (b"\\u0041", b"xn--4ca", b"\x1b$B,,\x1b(B", bytes(range(128)))


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding that has ASCII as it is, and needs nothing of other cells to decode one.

    Parameters
    ----------
    name
        As Python calls it.
    opened
        How the file is opened, to be taken apart.
    """

    name: str
    opened: str

    @classmethod
    def of(cls, name: str) -> "Encoding":
        """Find an encoding.

        Raises
        ------
        LookupError
            If there is none of this name, or it is none of texts, or has no such properties.
        """
        try:
            found = codecs.lookup(name).name
            plain = all(sample.decode(found) == sample.decode("ascii") for sample in _SAMPLES)
        except ValueError:
            plain = False
        if not plain:
            raise LookupError(name)
        # UTF-8 can be taken apart as it is; others byte by byte
        return UTF8 if found.startswith("utf-8") else cls(found, "latin-1")

    def text(self, cell: str) -> str | bytes:
        r"""Decode a cell of the file as it was opened.

        Examples
        --------
        >>> cyrillic = Encoding.of("cp1251")
        >>> cyrillic.text("\xc4\xe0"), cyrillic.text("\x98")
        ('Да', b'\x98')
        """
        if cell.isascii():
            return cell
        data = cell.encode(self.opened, "surrogateescape")
        try:
            found = data.decode(self.name)
            # some encodings read two sequences of bytes as one text: one of them stays bytes
            return found if self == UTF8 or found.encode(self.name) == data else data
        except ValueError:
            return data

    def texts(self, cells: list[str]) -> Iterable[str | bytes]:
        """Decode cells."""
        return cells if "".join(cells).isascii() else map(self.text, cells)

    def separator(self, character: str) -> str:
        """Return what stands between cells of the file as it is opened.

        Raises
        ------
        ValueError
            If it can be part of another character, or has several bytes.
        """
        if self == UTF8:
            return character
        data = character.encode(self.name)
        if len(data) > 1 or any(self._is_one(bytes([first]) + data) for first in _FIRST):
            raise ValueError(character)
        return data.decode(self.opened)

    def _is_one(self, data: bytes) -> bool:
        try:
            return len(data.decode(self.name)) == 1
        except ValueError:
            return False


UTF8 = Encoding("utf-8", "utf-8")
"""What files are in where nothing else is said."""
