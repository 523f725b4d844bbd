"""The parts of a certificate about the cells of its table: keys, values, and what was published.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpframe.certificates import json_records as records
from dpframe.certificates.definitions import CutPart, Definition

_FASTEST = 1  # level of zlib: noise does not get smaller by more work
_MOST_BYTES = 1 << 28  # of what is unpacked: a file may say anything
DTYPES = (
    "(object|category|str|string(\\[(python|pyarrow)\\])?"
    "|[Uu]?[Ii]nt(8|16|32|64)|[Ff]loat(32|64)|bool(ean)?"
    "|(datetime64|timedelta64|period)\\[[^\\]]*\\]"
    "|interval\\[[^\\]]*(\\[[^\\]]*\\])?, (left|right|both|neither)\\]"
    "|(u?int(8|16|32|64)|float|double|bool|(large_)?string|(timestamp|duration)\\[[^\\]]*\\])"
    "\\[pyarrow\\])"
)
Dtype: TypeAlias = Annotated[str, records.Limits(pattern=f"^{DTYPES}$")]
"""The dtypes that are read: another, from a file, may ask for any amount of memory."""
Token: TypeAlias = str
"""A label or a key with its kind, as JSON."""


class Zipped(records.Held):
    """Many numbers, or a long text.

    Parameters
    ----------
    zlib
        Numbers of 64 bits, little-endian, or a text in UTF-8; compressed by zlib, in base64.
    """

    zlib: records.Base64

    @classmethod
    def of(cls, numbers: np.ndarray, dtype: str) -> "Zipped":
        """Keep numbers."""
        return cls.holding(_content=records.owned(np.ravel(numbers), dtype))

    @classmethod
    def writing(cls, content: Any, write: Callable[[Any], bytes]) -> "Zipped":
        """Keep an object, and how it is written."""
        return cls.holding(_content=content, _bytes_of=write)

    @property
    def content(self) -> Any:
        """The object that was kept; `None` of what was read from a file."""
        return vars(self).get("_content")

    def _write(self, content: Any) -> str:
        bytes_of = vars(self).get("_bytes_of", np.ndarray.tobytes)
        plain = bytes_of(content)
        return base64.b64encode(zlib.compress(plain, _FASTEST)).decode("ascii")

    def unzip(self) -> bytes:
        """Return what was compressed.

        Raises
        ------
        ValueError
            If it is no such thing, or would take too much memory.
        """
        reader = zlib.decompressobj()
        try:
            plain = reader.decompress(base64.b64decode(self.zlib), _MOST_BYTES)
        except zlib.error:
            raise ValueError("compressed numbers are damaged") from None
        if not reader.eof:
            raise ValueError("compressed numbers are too many")
        return plain

    def numbers(self, dtype: str, size: int) -> np.ndarray:
        """Return so many numbers of a dtype, that of what was kept.

        Raises
        ------
        ValueError
            If they are not that many.
        """
        kept = self.content
        found: np.ndarray = np.frombuffer(self.unzip(), dtype) if kept is None else kept
        if len(found) != size:
            raise ValueError("columns have a number for each row")
        return found

    def listed(self) -> list[Any]:
        """Return a list that was written as JSON."""
        found = json.loads(self.unzip().decode("utf-8", "surrogatepass"))
        if not isinstance(found, list):
            raise TypeError("keys are a list")
        return found


class LevelPart(records.Record):
    """A level of keys.

    Parameters
    ----------
    name
        Its name, as JSON.
    dtype
        Their dtype in pandas.
    keys
        The keys, each once: integers, and times in the unit of the dtype, as numbers of 64 bits;
        others as a list in JSON, in which texts, numbers and truths are as they are, and the rest
        is a list of its kind and what it takes to write it.
    """

    name: Token
    dtype: Dtype
    keys: Zipped


class CellsPart(records.Record):
    """The cells of a column.

    Parameters
    ----------
    label
        Its label, as JSON.
    dtype
        Their dtype in pandas.
    values
        Whole numbers, floats, or microseconds of times: one for each row.
    missing
        A byte for each row: 1 where the cell is missing; null: none is.
    definition
        How it was computed from the release; null: it was released.
    """

    label: Token
    dtype: Dtype
    values: Zipped
    missing: Zipped | None
    definition: Annotated[Definition, records.TaggedBy("call")] | None


class AliasPart(records.Record):
    """What is shown under another name: by the new one, the one that was released; as JSON.

    Parameters
    ----------
    columns
        Labels of columns.
    levels
        Names of levels.
    keys
        Keys, by the released name of their level.
    """

    columns: Mapping[Token, Token]
    levels: Mapping[Token, Token]
    keys: Mapping[Token, Mapping[Token, Token]]


NO_ALIAS = AliasPart({}, {}, {})


class JoinedPart(records.Record):
    """The level that tells several releases apart.

    Parameters
    ----------
    name
        Its name.
    keys
        The keys of the releases, in order.
    """

    name: str
    keys: tuple[str, ...]


class PublishedPart(records.Record):
    """What a table shows that was made for publication. What it does not show is not in it.

    Parameters
    ----------
    cells
        By column, as JSON, how many cells are shown, and how many there are.
    units
        By column, as JSON, the unit to which its cells are rounded; 0: they are as released.
    note
        A sentence about it.
    """

    cells: Mapping[Token, tuple[records.AtLeastNone, records.AtLeastNone]]
    units: Mapping[Token, records.NotNegative]
    note: str | None


class TablePart(records.Record):
    """The cells that were released, by their keys. Their layout is free.

    Parameters
    ----------
    levels
        The levels of keys, in order.
    rows
        Number of rows.
    codes
        For each level, the position of the key of each row; null: all combinations, in order, the
        last level running fastest.
    columns
        The columns, in order.
    alias
        What is shown under another name.
    units
        Units of rounding beside 1 and 5 times powers of ten, by column, as JSON.
    cuts
        How cells were chosen by their values, as far as that is known.
    joined
        How several releases are told apart; null: by their own keys, or there is one.
    published
        What is shown, where the rest was left out for publication; null: nothing was.
    salt
        Random: without it, nobody can guess cells that are not shown from `origin`. It is left out
        with them.
    origin
        SHA-256 of releases, keys, released cells and salt: the same in all tables made of them.
    """

    levels: tuple[LevelPart, ...]
    rows: records.AtLeastNone
    codes: Zipped | None
    columns: tuple[CellsPart, ...]
    alias: AliasPart
    units: Mapping[Token, Annotated[float, records.Limits(gt=0)]]
    cuts: tuple[CutPart, ...]
    joined: JoinedPart | None
    published: PublishedPart | None
    salt: Annotated[str, records.Limits(pattern="^[0-9a-f]{32}$")] | None
    origin: records.Digest

    @property
    def released(self) -> Sequence[CellsPart]:
        """The columns that were released."""
        return [column for column in self.columns if column.definition is None]

    @property
    def definitions(self) -> Sequence[Definition]:
        """How the other columns were computed."""
        return [one.definition for one in self.columns if one.definition is not None]
