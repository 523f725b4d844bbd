"""Labels, keys and cells with their kinds: 1 and 1.0 are one key, True and "1" are others."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from dpframe.arguments import is_label, is_unicode
from dpframe.certificates.parts import DTYPES, LevelPart, Zipped
from dpframe.context import cached_property
from dpframe.errors import CertificateError, QueryError
from dpframe.frozen import frozen

_MISSING = ["missing"]
_MIDNIGHT = time()
_SECONDS = "2026-01-31T00:00:00"


def alter(reason: str) -> CertificateError:
    """Make the error about a table that is not what was released."""
    return CertificateError(f"this frame is not what its certificate was given for: {reason}")


def check_margins_name(key: object) -> None:
    """Refuse what cannot be the key of totals; `groupby` would leave out a missing one."""
    if not is_label(key) or not is_unicode(key) or pd.isna(cast(Any, key)):
        raise QueryError.about("margins_name", "must be a key that is not missing", key)


def check_margins_apart(key: object, levels: Iterable[pd.Index]) -> None:
    """Refuse a key of totals that is a key of a level."""
    if token(key) in {token(other) for keys in levels for other in keys}:
        raise QueryError.about("margins_name", "must be a key that the levels do not have", key)


def write_key(value: Any) -> Any:  # noqa: PLR0911, PLR0912  # a kind a line
    """Write a label or a key as JSON; whole floats are whole numbers, as files exchange them."""
    if value is None or value is pd.NaT or value is pd.NA:
        return _MISSING
    match value:
        case str():
            return str(value)
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return _write_float(float(value))
        case datetime() | np.datetime64():
            return ["datetime", pd.Timestamp(value).isoformat()]
        case timedelta() | np.timedelta64():
            return ["timedelta", str(pd.Timedelta(value))]
        case date() | time():
            return [type(value).__name__, value.isoformat()]
        case pd.Period():
            return ["period", str(value), value.freqstr]
        case pd.Interval():
            return ["interval", value.closed, write_key(value.left), write_key(value.right)]
        case tuple():
            return ["tuple", *map(write_key, value)]
        case bytes():
            return ["bytes", value.hex()]
        case Decimal() | Fraction():
            return [type(value).__name__, str(value)]
        case _:
            return ["other", type(value).__name__, str(value)]


def are_whole(keys: pd.Index) -> bool:
    """Whether keys are integers of NumPy."""
    return isinstance(keys.dtype, np.dtype) and keys.dtype.kind in "iu"


def are_mixed(keys: Any) -> bool:
    """Whether keys are of several kinds, such as periods and "All"; files keep them as texts."""
    kinds = ("mixed", "mixed-integer")
    mixed = keys.dtype == object and pd.api.types.infer_dtype(keys, skipna=True) in kinds
    return mixed and len({*map(type, keys)}) > 1


def listed(keys: pd.Index) -> list[Any]:
    """Return keys as objects; Arrow gives one after the other slowly."""
    objects: list[Any] = (keys if are_whole(keys) else keys.to_numpy(object)).tolist()
    return objects


def _bytes_of(keys: pd.Index) -> bytes:
    """Write keys: numbers as such, others as JSON, texts in it at once."""
    if _packed_dtype(_dtype_of(keys)) is not None:
        return np.asarray(_integers(keys), "<i8").tobytes()
    write = str if _family(keys) == "text" else write_key
    return json.dumps([*map(write, listed(keys))]).encode("utf-8", "surrogatepass")


def _dtype_of(keys: pd.Index) -> str:
    """Return the dtype that is written of keys: "object" stands for one that would not be read."""
    dtype = str(keys.dtype)
    packed = _packed_dtype(dtype)
    if packed is not None:
        return dtype if packed == keys.dtype else "object"
    return dtype if re.fullmatch(DTYPES, dtype) and not re.fullmatch(_PACKED, dtype) else "object"


def _packed_dtype(dtype: str) -> Any:
    """Return a dtype of pandas whose keys are written as integers; `None`: they are JSON."""
    if re.fullmatch(_PACKED, dtype) is None:
        return None
    try:
        return pd.api.types.pandas_dtype(dtype)
    except (ImportError, LookupError, TypeError, ValueError):  # a zone that has no name
        return None


def _integers(keys: pd.Index) -> np.ndarray:
    """Return integers, and times as how many of their units they are from 1970 in UTC."""
    if isinstance(keys, pd.DatetimeIndex | pd.TimedeltaIndex):
        return keys.asi8
    return keys.to_numpy()


def _packed_keys(integers: np.ndarray, dtype: Any) -> pd.Index:
    if isinstance(dtype, pd.DatetimeTZDtype):
        utc = pd.DatetimeIndex(integers.view(f"M8[{dtype.unit}]"), tz="UTC")
        zoned: pd.Index = utc.tz_convert(dtype.tz)
        return zoned
    values = integers.view(dtype) if dtype.kind in _TIMES else integers.astype(dtype)
    keys: pd.Index = pd.Index(values)
    return keys


def _write_float(number: float) -> Any:
    if number != number:  # noqa: PLR0124  # a missing value
        return _MISSING
    if np.isinf(number):
        return ["float", str(number)]
    return int(number) if number.is_integer() else number


def read_key(written: Any) -> Any:  # noqa: PLR0911  # a kind a line
    """Return the key that was written, or its text where its type is not one of the usual ones.

    Raises
    ------
    ValueError
        If nothing is written so.
    """
    if not isinstance(written, list):
        return written
    match written:
        case ["missing"]:
            return None
        case ["period", text, freq]:
            return pd.Period(text, freq=freq)
        case ["interval", closed, left, right]:
            return pd.Interval(*_ends(read_key(left), read_key(right)), closed=closed)
        case ["tuple", *parts]:
            return tuple(map(read_key, parts))
        case ["other", _, text]:
            return text
        case [str(kind), str(text)] if kind in _READERS:
            return _READERS[kind](text)
    raise ValueError("a key has no known kind")


def _ends(left: Any, right: Any) -> tuple[Any, Any]:
    """Return ends of an interval in one zone: offsets of one differ between winter and summer."""
    if isinstance(left, pd.Timestamp) and isinstance(right, pd.Timestamp) and left.tz and right.tz:
        return left.tz_convert("UTC"), right.tz_convert("UTC")
    return left, right


_READERS: Mapping[str, Any] = {
    "float": float,
    "datetime": pd.Timestamp,
    "timedelta": pd.Timedelta,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "bytes": bytes.fromhex,
    "Decimal": Decimal,
    "Fraction": Fraction,
}


def token(value: Any) -> str:
    """Write a label or a key as JSON text.

    Examples
    --------
    >>> [token(value) for value in (1.0, "1", True, pd.Timestamp("2026-01-31"))]
    ['1', '"1"', 'true', '["datetime", "2026-01-31T00:00:00"]']
    """
    return json.dumps(write_key(value))


def label_of(written: str) -> Hashable:
    """Return the label that a token stands for."""
    label: Hashable = read_key(json.loads(written))
    return label


def _texts_of(key: Any) -> set[str]:
    """Return what a key may read like in a text file."""
    texts = {str(key)}
    if isinstance(key, pd.Timestamp):
        texts |= {key.isoformat(), key.isoformat(" ")}
        if key.time() == _MIDNIGHT:
            texts.add(key.strftime("%Y-%m-%d"))
    return texts


def texts_of_times(times: pd.DatetimeIndex) -> list[str]:
    """Write times as `str` does, whole seconds all at once."""
    local = times.tz_localize(None)
    seconds = local.to_numpy().astype("M8[s]")
    if (seconds != local.to_numpy()).any():
        return [*map(str, times)]
    # a zero byte is in none of them
    texts = "\0".join(np.datetime_as_string(seconds).tolist()).replace("T", " ").split("\0")
    if times.tz is None or not len(times):
        return texts
    _, first, offsets = np.unique(local.asi8 - times.asi8, return_index=True, return_inverse=True)
    written = [times[at].isoformat(timespec="seconds")[len(_SECONDS) :] for at in first]
    return [text + written[offset] for text, offset in zip(texts, offsets.tolist(), strict=True)]


class Factored(NamedTuple):
    """The values of a level: which of some keys each is, -1 for a missing one."""

    codes: np.ndarray
    keys: pd.Index


def factored(values: Any, level: int = 0) -> Factored:
    """Take the values of a level, or of a column, apart; those of a level come so already."""
    if isinstance(values, pd.MultiIndex):
        codes, keys = np.asarray(values.codes[level], np.intp), values.levels[level]
    elif isinstance(values.dtype, pd.CategoricalDtype):
        cells = pd.Categorical(values)
        codes, keys = np.asarray(cells.codes, np.intp), pd.Index(cells.categories)
    else:
        codes, uniques = pd.factorize(pd.Series(values, dtype=values.dtype))
        keys = pd.Index(uniques, dtype=uniques.dtype, tupleize_cols=False)
    if isinstance(keys.dtype, pd.CategoricalDtype):
        inner = pd.Categorical(keys)
        codes = np.append(np.asarray(inner.codes, np.intp), -1)[codes]
        keys = pd.Index(inner.categories)
    return Factored(codes, keys)


@frozen(eq=False)
class Level:
    """A level of released keys.

    Parameters
    ----------
    name
        Its name.
    keys
        The keys, each once.
    written
        What was written of the keys, if they were read; those of odd classes are texts among them.
    """

    name: Hashable
    keys: pd.Index
    written: Sequence[Any] | None = None

    @classmethod
    def of(cls, values: Factored, name: Hashable) -> tuple["Level", np.ndarray]:
        """Return a level of the keys in use, in order of appearance, and the place of each row."""
        places, codes = pd.factorize(values.codes)
        keys = values.keys.take(codes)
        if (codes < 0).any():  # a missing key
            listed = [None if code < 0 else values.keys[code] for code in codes]
            keys = pd.Index(listed, dtype=object, tupleize_cols=False)
        return cls(name, keys), places

    def part(self) -> LevelPart:
        """Write it."""
        keys = Zipped.writing(self.keys, _bytes_of)
        return LevelPart(token(self.name), _dtype_of(self.keys), keys)

    @classmethod
    def read(cls, part: LevelPart) -> "Level":
        """Read it.

        Raises
        ------
        ValueError, TypeError
            If it cannot be; it may come from a file.
        """
        kept = part.keys.content
        if kept is not None:
            return cls(label_of(part.name), kept)
        packed = _packed_dtype(part.dtype)
        if packed is not None:
            integers = np.frombuffer(part.keys.unzip(), "<i8")
            return cls(label_of(part.name), _packed_keys(integers, packed))
        listed = part.keys.listed()
        plain = list not in {*map(type, listed)}
        read = listed if plain else [read_key(key) for key in listed]
        keys = pd.Index(read, dtype=object, tupleize_cols=False)
        return cls(label_of(part.name), _of_dtype(keys, part.dtype), listed)

    @cached_property
    def tokens(self) -> dict[str, int]:
        """The places of keys by their texts with kinds."""
        texts = map(token, self.keys) if self.written is None else map(json.dumps, self.written)
        return {text: place for place, text in enumerate(texts)}

    @cached_property
    def _texts(self) -> dict[str, int]:
        """The places of keys by what they read like; -1: two read alike."""
        places: dict[str, int] = {}
        for place, key in enumerate(self.keys):
            for text in _texts_of(key):
                places[text] = place if places.get(text, place) == place else -1
        return places

    @cached_property
    def _family(self) -> str:
        return _family(self.keys)

    def places(self, values: Factored, alias: Mapping[str, str]) -> np.ndarray:
        """Return the places of values among the keys.

        Keys are found by their kind; where none is, all of them by what they read like, as dates
        of a text file are. Of keys of several kinds, which files keep as texts, others are, too.

        Raises
        ------
        CertificateError
            If one is no key.
        """
        used = np.flatnonzero(np.bincount(values.codes + 1, minlength=len(values.keys) + 1)) - 1
        present = values.keys.take(used[used >= 0])
        if len(present) < len(used):
            listed = [None, *present]
            places = self._by_token(listed, alias)
        elif not alias and _family(present) == self._family != "other":
            places = self.keys.get_indexer(present)
        else:
            listed = list(present)
            places = self._by_token(listed, alias)
        lacking = places < 0
        if lacking.any() and (lacking.all() or are_mixed(self.keys)):
            read = np.full(len(places), -1, np.intp)
            read[len(places) - len(present) :] = [self._texts.get(str(key), -1) for key in present]
            places = np.where(lacking, read, places)
        if (places < 0).any() or len(places) < len(used):
            raise alter(f"level {self.name!r} has a key that was not released")
        by_code = np.zeros(len(values.keys) + 1, np.intp)
        by_code[used + 1] = places
        row_places: np.ndarray = by_code[values.codes + 1]
        return row_places

    def _by_token(self, keys: list[Any], alias: Mapping[str, str]) -> np.ndarray:
        texts = map(token, keys)
        return np.array([self.tokens.get(alias.get(text, text), -1) for text in texts], np.intp)


def _of_dtype(keys: pd.Index, dtype: str) -> pd.Index:
    """Give keys their dtype back, if they are such; a file may say anything."""
    if dtype in ("object", "category"):
        return keys
    try:
        if dtype.startswith("datetime64") and "," in dtype:
            keys = pd.DatetimeIndex(pd.to_datetime(keys, utc=True))
        elif dtype.startswith("interval"):
            keys = _intervals(keys, cast(pd.IntervalDtype, pd.api.types.pandas_dtype(dtype)))
        # texts of the dtype of pandas itself, which has another name in other versions
        typed_keys: pd.Index = keys.astype(str if dtype == "str" else dtype)
    except (ArithmeticError, AttributeError, TypeError, ValueError, ImportError):
        return keys
    return typed_keys


def _intervals(keys: pd.Index, dtype: pd.IntervalDtype) -> pd.Index:
    """Make an index of intervals; ends are cast, as whole floats were written as integers."""
    if dtype.closed is None or any(key.closed != dtype.closed for key in keys):
        return keys
    ends = [key.left for key in keys], [key.right for key in keys]
    left, right = (_of_dtype(pd.Index(side, dtype=object), str(dtype.subtype)) for side in ends)
    return pd.IntervalIndex.from_arrays(left, right, dtype.closed)


def _family(keys: pd.Index) -> str:
    """Say whether keys are all numbers, texts or times of one zone, which pandas finds quickly."""
    kind = getattr(keys.dtype, "kind", "O")
    if isinstance(keys.dtype, np.dtype) and kind in "iuf":
        return "number"
    if isinstance(keys, pd.TimedeltaIndex):
        return "duration"
    if isinstance(keys, pd.DatetimeIndex):
        return f"time in {keys.tz}"
    if kind in "OT" or isinstance(keys.dtype, pd.StringDtype):
        return "text" if pd.api.types.infer_dtype(keys, skipna=False) == "string" else "other"
    return "other"


_TIMES = "mM"
_PACKED = r"u?int(8|16|32|64)|(datetime64|timedelta64)\[[^\]]*\]"
_A_SECOND = 1e6  # in microseconds


class Numbers(NamedTuple):
    """Numbers, and where they are missing."""

    values: np.ndarray
    missing: np.ndarray


def numbers_of(column: pd.Series, kind: str = "") -> Numbers:
    """Return the numbers of a column: of NumPy, nullable, of Arrow, or objects.

    Parameters
    ----------
    column
        The column.
    kind
        "m" or "M": texts in it stand for durations, or points in time.
    """
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column))
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        column = _of_objects(column, kind)
    missing = column.isna().to_numpy()
    dtype_kind = getattr(column.dtype, "kind", "O")
    if dtype_kind in _TIMES:
        return Numbers(_microseconds(column, dtype_kind), missing)
    if dtype_kind in "iu" and not missing.any():
        return Numbers(column.to_numpy(np.int64), missing)
    if column.dtype == np.float32:
        return Numbers(column.to_numpy(), missing)
    return Numbers(column.to_numpy(np.float64, na_value=np.nan), missing)


def _of_objects(column: pd.Series, kind: str) -> pd.Series:
    if pd.api.types.infer_dtype(column, skipna=True) in ("datetime", "timedelta"):
        return column.infer_objects()
    if kind == "m":
        return pd.to_timedelta(column)
    if kind == "M":
        return pd.to_datetime(column, format="ISO8601")
    return pd.to_numeric(column)


def _microseconds(column: pd.Series, kind: str) -> np.ndarray:
    if kind == "m":
        try:
            return column.astype("timedelta64[us]").astype("int64").to_numpy()
        except pd.errors.OutOfBoundsTimedelta:  # sums of long ones are in seconds
            return np.asarray(column.dt.total_seconds(), np.float64) * _A_SECOND
    if not isinstance(column.dtype, np.dtype):  # of Arrow, or zoned
        column = pd.Series(pd.DatetimeIndex(pd.to_datetime(column, utc=True)).tz_localize(None))
    return column.astype("datetime64[us]").astype("int64").to_numpy()


def series_of(numbers: Numbers, dtype: Any) -> pd.Series:
    """Return numbers as a column of a dtype, or of the nullable one where whole ones are missing.

    Raises
    ------
    ValueError, TypeError
        If they cannot be; dtype and numbers may come from a file.
    """
    values, missing = numbers
    base = dtype.partition("[")[0]
    column: Any
    if base == "timedelta64" and values.dtype.kind == "f":
        seconds = np.rint(values / _A_SECOND).astype(np.int64)
        column = pd.Series(seconds.view("timedelta64[s]")).astype(dtype)
    elif base == "timedelta64":
        column = pd.Series(values.view("timedelta64[us]")).astype(dtype)
    elif base == "datetime64":
        column = pd.Series(values.view("datetime64[us]"))
        zone = dtype.partition(", ")[2].rstrip("]")
        column = column.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else column
        column = column.astype(dtype)
    elif missing.any() and values.dtype.kind == "i":
        column = pd.Series(values).astype("Int64")
    else:
        column = pd.Series(values).astype(dtype)
    nothing = pd.NA if str(column.dtype) == "Int64" else None
    cells: pd.Series = column.mask(missing, nothing) if missing.any() else column
    return cells
