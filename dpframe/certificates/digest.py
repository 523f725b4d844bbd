"""The digest of a released frame: a SHA-256 over all that it says, the same after any file.

Every key is digested with its kind, so that 1 and "1" are two. Kinds that a file may exchange for
one another are one kind: whole numbers and floats that are whole, and the missing values of pandas.
Parquet and Feather make texts of the names of levels, and of labels of columns where these are of
several kinds: there, a kind counts where it alone tells two labels apart.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from dpframe.certificates.json_records import Limits, Record
from dpframe.columns.lookup import Remembered

Short: TypeAlias = Annotated[str, Limits(pattern="^[0-9a-f]{16}$")]

_SHORT = 16
_EXACT = 2.0**53  # up to here, floats tell all integers apart
_MANY = 256  # rows from which on it is quicker to write each key once
_TURNS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(1))


class _Values(NamedTuple):
    kind: bytes
    data: bytes | np.ndarray


class Piece(_Values):
    """What kind the values of a column are of, and all of them."""

    @property
    def fingerprint(self) -> tuple[str, str, str]:
        """See `fingerprint`; it is computed once."""
        known: dict[str, tuple[str, str, str]] = vars(self)
        if "fingerprint" not in known:
            known["fingerprint"] = fingerprint(self.kind, self.data)
        return known["fingerprint"]


_LEVELS: Remembered[pd.Index, list[Piece]] = Remembered(4)
"""Pieces of large indexes of the last releases: those of a declaration have the same keys."""


def digest(frame: pd.DataFrame, promise: str, pieces: Sequence[Piece] | None = None) -> str:
    """Return a SHA-256 over a frame and what is promised about it.

    Parameters
    ----------
    frame
        Its index, columns, their names, kinds and values count.
    promise
        What is said about the frame, as text.
    pieces
        What `pieces_of` says of the frame, if that is there already.

    Examples
    --------
    >>> one = pd.DataFrame({"n": [1, 2]}, index=[1, 2])
    >>> digest(one, "exact") == digest(one.copy(), "exact")
    True
    >>> digest(one, "exact") == digest(one.rename(index={1: "1"}), "exact")
    False
    """
    seen = hashlib.sha256()
    _feed(seen, b"promise", promise.encode("utf-8", "surrogatepass"))
    columns, index = frame.columns, frame.index
    _feed(seen, b"names", _names(list(columns.names)))
    _feed(seen, b"columns", _names(columns) if _is_mixed(columns.dtype) else _texts(columns))
    several = isinstance(index, pd.MultiIndex)
    # keys that are tuples of one part are not the keys that were released
    _feed(seen, b"tuples" if several and index.nlevels == 1 else b"levels", _names(index.names))
    for piece in pieces_of(frame) if pieces is None else pieces:
        _feed(seen, *piece)
    return f"sha256:{seen.hexdigest()}"


def pieces_of(frame: pd.DataFrame, keys: pd.Index | None = None) -> list[Piece]:
    """Return the levels of the index of a frame, and its columns, as they count.

    Parameters
    ----------
    frame
        The frame.
    keys
        Its index, as it is to be certified: what other releases made of it is used again. To check
        a frame, nothing is.
    """
    index = frame.index
    if keys is None or len(keys) < _MANY:
        levels = _pieces_of_levels(index)
    else:
        levels = _LEVELS.of(keys, lambda: _pieces_of_levels(index))
    # pandas copies all attrs for each column that is looked at
    bare = pd.DataFrame(frame) if frame.attrs else frame
    return [*levels, *(_kind_and_data(column) for _, column in bare.items())]


def _pieces_of_levels(index: pd.Index) -> list[Piece]:
    return [_kind_and_data(_level(index, at)) for at in range(index.nlevels)]


class _Repeated(NamedTuple):
    """The values of a level: keys that many rows share, and which of them each row has."""

    keys: pd.Index
    codes: np.ndarray


class _Written(bytes):
    """A list of texts as JSON, with a number for each of them."""

    words: np.ndarray


def _level(index: pd.Index, at: int) -> Any:
    """Return the values of a level, as repeated keys where these are written as texts."""
    if not isinstance(index, pd.MultiIndex):
        return index
    keys, codes = index.levels[at], np.asarray(index.codes[at])
    plain = getattr(keys.dtype, "kind", "O") in "iufb"
    if plain or isinstance(keys.dtype, pd.CategoricalDtype) or keys.hasnans:
        return index.get_level_values(at)
    # one that no row has could tell of what kind they are
    seen = np.zeros(len(keys), bool)
    seen[codes] = True
    if len(codes) < _MANY or not seen.all() or codes.min() < 0:
        return index.get_level_values(at)
    return _Repeated(keys, codes)


def fingerprint(kind: bytes, data: bytes | np.ndarray) -> tuple[str, str, str]:
    """Return the kind of the values of a column, a short digest, and one that forgets their order.

    Two digests are the same if the values are; for other values they differ by all odds.
    """
    seen = hashlib.sha256()
    _feed(seen, kind, data)
    short = seen.hexdigest()[:_SHORT]
    words = data.words if isinstance(data, _Written) else _words(data)
    total = int(_stir(words).sum(dtype=np.uint64))  # others, stirred, hardly have the same sum
    return kind.decode(), short, f"{total:0{_SHORT}x}"


def _words(data: bytes | np.ndarray) -> np.ndarray:
    """Return a number for each value, the same for the same values."""
    if isinstance(data, np.ndarray):
        size = min(data.dtype.itemsize, 8)  # longer ones count in parts
        parts = data.view(f"u{size}").astype(np.uint64)
        return parts if parts.ndim == 1 else parts[:, 0] ^ _stir(parts[:, 1])
    rows = [value if type(value) is str else repr(value) for value in json.loads(data)]
    items = np.array(rows, object)
    try:
        words: np.ndarray = pd.util.hash_array(items, categorize=False)
    except UnicodeEncodeError:  # pandas encodes no lone surrogates; bytes count as texts
        items = np.array([row.encode("utf-8", "surrogatepass") for row in rows], object)
        words = pd.util.hash_array(items, categorize=False)
    return words


def _stir(words: np.ndarray) -> np.ndarray:
    """Stir the bits of numbers."""
    for turn in _TURNS:
        words = (words ^ (words >> np.uint64(31))) * turn
    return words


def _is_mixed(dtype: Any) -> bool:
    """Whether labels may be of several kinds."""
    return getattr(dtype, "kind", "O") == "O"


def _names(labels: Iterable[object]) -> bytes:
    """Write labels as texts, as Parquet does, and with their kinds where two texts are the same."""
    texts = [None if label is None else str(label) for label in labels]
    return _texts(labels) if len(set(texts)) < len(texts) else json.dumps(texts).encode()


def _feed(seen: Any, kind: bytes, data: bytes | np.ndarray) -> None:
    """Add a piece with its kind and length, so that no two sequences of pieces look the same."""
    if isinstance(data, np.ndarray):
        data = data.reshape(-1).view(np.uint8)
    seen.update(kind + str(len(data)).encode() + b":")
    seen.update(data)


def _kind_and_data(values: Any) -> Piece:
    """Return kind and values, the same before and after a file."""
    if isinstance(values, _Repeated):
        return _of_repeated(values)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = pd.Index(np.asarray(values))  # a file may keep the categories alone
    dtype = values.dtype
    kind = getattr(dtype, "kind", "O")
    numbers = _numbers(values)
    if numbers is not None:
        return Piece(dtype.newbyteorder("<").str.encode(), np.ascontiguousarray(numbers))
    if values.hasnans:
        kind = "O"  # NumPy's have no missing ones
    if kind in "iuf":
        plain = _plain(dtype)
        name = plain.newbyteorder("<").str
        return Piece(name.encode(), np.ascontiguousarray(values, dtype=plain))
    if kind == "b":
        return Piece(b"booleans", np.ascontiguousarray(values, dtype=bool))
    edges = None if values.hasnans else _edges(values)
    if edges is not None:
        return Piece(f"intervals {dtype.closed}".encode(), edges)
    # a file may keep times in another unit, and intervals with it
    name = {"m": "durations", "M": "times"}.get(getattr(dtype, "kind", "O"), "objects")
    name = str(dtype) if isinstance(dtype, pd.PeriodDtype) else name
    return Piece(name.encode(), _texts(_to_list(values)))


def _of_repeated(values: _Repeated) -> Piece:
    kind, of_keys = _kind_and_data(values.keys)
    if isinstance(of_keys, np.ndarray):
        return Piece(kind, of_keys[values.codes])
    texts = np.array(_listed_texts(values.keys), object)
    written = _Written(f"[{', '.join(texts[values.codes])}]".encode())
    written.words = _words(of_keys)[values.codes]
    return Piece(kind, written)


def _numbers(values: Any) -> np.ndarray | None:
    """Return numbers of NumPy where none is missing, looked at without the detours of pandas."""
    if not isinstance(values.dtype, np.dtype) or values.dtype.kind not in "iuf":
        return None
    found: np.ndarray = values.to_numpy()
    return None if found.dtype.kind == "f" and np.isnan(found).any() else found


def _edges(values: Any) -> np.ndarray | None:
    """Return both edges of intervals of numbers, where floats tell whole ones apart."""
    if not isinstance(values.dtype, pd.IntervalDtype):
        return None
    subtype: Any = values.dtype.subtype
    if subtype.kind not in "iuf":
        return None
    found = values.array
    edges = np.column_stack([np.asarray(side, np.float64) for side in (found.left, found.right)])
    within = (np.abs(edges) <= _EXACT) | np.isinf(edges)
    return edges + 0.0 if within.all() else None  # -0.0 is 0.0


def _plain(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's dtype of nullable, Arrow and sparse numbers: files exchange them."""
    plain: np.dtype[Any] = np.dtype(getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype)))
    return plain


def _to_list(values: Any) -> list[Any]:
    """List values; texts of Arrow are quicker to read all at once."""
    if isinstance(values.dtype, pd.StringDtype):
        values = np.asarray(values, dtype=object)
    return list(values)


def _texts(values: Iterable[object]) -> bytes:
    """Write values as JSON: texts as they are, and all others as pairs of a kind and a text."""
    return json.dumps([v if type(v) is str else _kind_and_text(v) for v in values]).encode()


def _listed_texts(values: Any) -> list[str]:
    """Write each of some values as JSON, as `_texts` writes them together."""
    return [json.dumps(v if type(v) is str else _kind_and_text(v)) for v in _to_list(values)]


def _kind_and_text(value: object) -> object:  # noqa: PLR0911  # a kind a line
    """Write a label or a key the same way before and after a file."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return ["boolean", str(bool(value))]
    if isinstance(value, int | np.integer):
        return ["number", hex(value)]  # no number is too long for it
    if isinstance(value, float | np.floating):
        return _of_float(float(value))
    if value is None or value is pd.NA or value is pd.NaT:
        return ["missing", ""]
    if isinstance(value, tuple):
        return ["tuple", [_kind_and_text(part) for part in value]]
    if isinstance(value, pd.Interval):
        return ["interval", value.closed, *map(_kind_and_text, (value.left, value.right))]
    return [_kind(value), str(value)]


def _of_float(number: float) -> object:
    if number != number:  # noqa: PLR0124  # a missing value
        return ["missing", ""]
    # 1 and 1.0 are the same key: a file may widen the dtype of a level
    return ["number", hex(int(number)) if number.is_integer() else repr(number)]


def _kind(value: object) -> str:
    """Name what a value is; times and durations of pandas have the names of Python's."""
    if isinstance(value, pd.Timestamp):
        return "datetime"
    if isinstance(value, pd.Timedelta):
        return "timedelta"
    return type(value).__name__


class SeriesPart(Record):
    """A level of the index, or a column.

    Parameters
    ----------
    label
        Its name or label.
    kind
        What its values are.
    values
        The beginning of a SHA-256 over the values.
    unordered
        A checksum over the values that does not depend on their order.
    """

    label: str
    kind: str
    values: Short
    unordered: Short


class ContentPart(Record):
    """What the frame holds, so that one can say what was changed.

    Parameters
    ----------
    rows
        Number of rows.
    levels
        The levels of the index, in order.
    columns
        The columns, in order, with those that were computed afterwards.
    """

    rows: Annotated[int, Limits(ge=0)]
    levels: tuple[SeriesPart, ...]
    columns: tuple[SeriesPart, ...]


NOTHING = ContentPart(0, (), ())
"""In place of the content, until there is one."""


def content_of(frame: pd.DataFrame, pieces: Sequence[Piece] | None = None) -> ContentPart:
    """Describe what a frame holds, from its pieces if they are there already."""
    held = pieces_of(frame) if pieces is None else pieces
    parts = tuple(
        SeriesPart(str(label), *piece.fingerprint)
        for label, piece in zip([*frame.index.names, *frame.columns], held, strict=True)
    )
    depth = frame.index.nlevels
    return ContentPart(len(frame), parts[:depth], parts[depth:])
