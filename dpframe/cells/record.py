"""The record that a released frame carries in `attrs`: what was promised, and all released cells.

It is one text: copies of a frame share it, Parquet keeps it, and what it says is read once.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import prod
from os import PathLike
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from dpframe.cells.keys import (
    Factored,
    Level,
    Numbers,
    factored,
    label_of,
    numbers_of,
    series_of,
    token,
)
from dpframe.certificates.certificate import FORMAT, UNSEALED, Certificate, Release
from dpframe.certificates.definitions import Definition
from dpframe.certificates.diagnosis import about_computed, mark_test
from dpframe.certificates.json_records import parse_json, plain, read
from dpframe.certificates.parts import NO_ALIAS, CellsPart, JoinedPart, TablePart, Zipped
from dpframe.context import at_the_door, cached_property
from dpframe.declaration.facts import kept_declaration
from dpframe.errors import CertificateError, QueryError, UnreadableCertificateError, a_type
from dpframe.frozen import frozen
from dpframe.provenance import is_marked, is_private

ATTRIBUTE = "dpframe"
RECORD = "record"
_MOST_DENSE = 20_000_000  # combinations of keys, of which a table of places is kept
_MOST_FLAT = 2**62  # combinations of keys that integers count
_LONGEST: Final = 1 << 28  # characters of a record
_MOST_FORMATS = 1000  # a version above is no number of a format
_KEPT = 8  # records that were read last
_LENGTHS = "timedelta64"
_SALT_DIGITS = 32  # hexadecimal, of 16 bytes
_PRIVATE = (
    "this frame carries no certificate: it is private, declared or made of a declared one. Release "
    "first, for instance .dp.count(by=..., epsilon=...), and call this on what that returns."
)
_DIAGNOSIS = (
    "this frame is a diagnosis, or was made of one: it holds exact numbers of a private frame and "
    "is not for publication. Release the query, and work on what that returns."
)
_LOST = (
    "this frame carries no certificate: it was not released by dpframe, or pandas lost its attrs, "
    "as Series.unstack, pivot, merge and files do. dpf.certify(table, of=released) puts it on "
    "again; dpf.read_csv and dpf.read_excel read it from files."
)


@frozen(eq=False)
class CellColumn:
    """The cells of a column, in the order of rows.

    Parameters
    ----------
    part
        What the record says.
    numbers
        The cells.
    """

    part: CellsPart
    numbers: Numbers

    @property
    def kind(self) -> str:
        """The kind of their dtype: "m" and "M" are times."""
        return self.part.dtype[:1].replace("t", "m").replace("d", "M") if self._timed else ""

    @property
    def _timed(self) -> bool:
        return self.part.dtype.startswith(("timedelta64", "datetime64"))

    @cached_property
    def cells(self) -> int:
        """How many cells there are."""
        return int(np.count_nonzero(~self.numbers.missing))


@frozen(eq=False)
class Opened:
    """A record: promises and cells. It is written as text when somebody reads that.

    Parameters
    ----------
    releases
        What was promised.
    describe
        Says what there is to say about the cells, but for the origin.
    base
        The record of the release that this one is of; `None`: itself.
    others
        The records of other releases that cells were computed from.
    """

    releases: tuple[Release, ...]
    describe: Callable[[], TablePart]
    base: "Opened | None" = None
    others: tuple["Opened", ...] = ()

    @classmethod
    def read(cls, certificate: Certificate, text: str) -> "Opened":
        """Return what a text says."""
        opened = cls(certificate.releases, lambda: certificate.table)
        vars(opened).update(certificate=certificate, text=text)
        return opened

    @cached_property
    def table(self) -> TablePart:
        """What it says about the cells; the origin is in the certificate.

        Raises
        ------
        ValueError
            If its columns are not those of its releases.
        """
        table = self.describe()
        labels = {part.label for part in table.columns}
        widths = {len(release.columns) for release in self.releases}
        computed = bool(table.columns) and not table.released
        if len(labels) < len(table.columns) or not (computed or widths == {len(table.released)}):
            raise ValueError("each released column has its cells")
        return table

    @cached_property
    def promise(self) -> Certificate:
        """The certificate, but for digest and origin, which take long."""
        return Certificate(FORMAT, self.releases, self.table, UNSEALED)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate."""
        record = self.promise.to_dict()
        origin = _origin_of(record) if self.base is None else self.base.certificate.table.origin
        record["table"]["origin"] = origin
        text = json.dumps(record)
        digest = _digest(text)
        vars(self).setdefault("text", text.replace(_field(UNSEALED), _field(digest)))
        return replace(self.promise, table=replace(self.table, origin=origin), digest=digest)

    @cached_property
    def text(self) -> str:
        """The record as JSON."""
        _ = self.certificate
        text: str = vars(self)["text"]
        return text

    @cached_property
    def levels(self) -> list[Level]:
        """Its levels of keys."""
        return [Level.read(part) for part in self.table.levels]

    @cached_property
    def codes(self) -> np.ndarray:
        """For each level, the place of the key of each row."""
        return _codes(self.table, [len(level.keys) for level in self.levels])

    @cached_property
    def columns(self) -> dict[str, CellColumn]:
        """Its columns, by label, as JSON."""
        parts = self.table.columns
        return {part.label: CellColumn(part, _numbers(part, self.rows)) for part in parts}

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.table.rows

    @cached_property
    def labels_by_name(self) -> dict[str, str]:
        """The released columns, as JSON, by their names in the certificate."""
        if self.promise.is_derived:
            return {}
        names = [column.name for column in self.releases[0].columns]
        return dict(zip(names, (part.label for part in self.table.released), strict=True))

    @cached_property
    def kind(self) -> str:
        """The kind of the times among the cells, "m" or "M"; empty: there are none."""
        return "".join(column.kind for column in self.columns.values())[:1]

    def middle_of(self, end: Definition, labels: Iterable[str]) -> str | None:
        """Return the one of some columns that an end is of: it was computed alike."""
        middle = {**plain(end), "end": None}
        for label in labels:
            definition = self.columns[label].part.definition
            if definition is not None and plain(definition) == middle:
                return label
        return None

    @cached_property
    def source(self) -> "Opened":
        """The release that all cells were computed from: its own, where it has released ones.

        Raises
        ------
        QueryError
            If it was left out for publication.
        """
        if not self.promise.is_derived:
            return self
        if self.base is None or self.table.published is not None:
            rule = "this table left out the release that it was computed from, as files do"
            raise QueryError(f"{rule}. Call it on the table before.")
        return self.base

    def cells_of(self, label: str) -> int:
        """Return how many cells of a column were released, published or not."""
        published = self.table.published
        if published is not None and label in published.cells:
            return published.cells[label][1]
        return self.columns[label].cells

    @cached_property
    def _size(self) -> int:
        return prod(len(level.keys) for level in self.levels)

    @cached_property
    def strides(self) -> list[int]:
        """By how much the key of each level moves the place of a combination."""
        sizes = [len(level.keys) for level in self.levels]
        return [prod(sizes[at + 1 :]) for at in range(len(sizes))]

    @property
    def dtype(self) -> Any:
        """What counts combinations of keys."""
        return np.int64 if self._size < _MOST_FLAT else object

    @cached_property
    def _rows_by_place(self) -> np.ndarray | dict[int, int] | None:
        """Which row each combination of keys is; `None`: they are counted alike."""
        if self.table.codes is None:
            return None
        flat = sum(
            (codes.astype(self.dtype) * stride for codes, stride in self._strided),
            start=np.zeros(self.rows, self.dtype),
        )
        if self._size > _MOST_DENSE:
            return {int(place): row for row, place in enumerate(flat)}
        rows = np.full(self._size, -1, np.int64)
        rows[flat] = np.arange(self.rows)
        return rows

    @property
    def _strided(self) -> Iterable[tuple[np.ndarray, int]]:
        return zip(self.codes, self.strides, strict=True)

    def rows_at(self, places: np.ndarray) -> np.ndarray:
        """Return the rows of combinations of keys, -1 where one was not released."""
        rows = self._rows_by_place
        match rows:
            case None:
                return places
            case dict():
                return np.array([rows.get(int(place), -1) for place in places], np.int64)
            case _:
                released_rows: np.ndarray = rows[places]
                return released_rows

    @cached_property
    def index(self) -> pd.Index:
        """The keys of the rows, with the names of levels that are shown."""
        names = [self.shown_label(token(level.name), "levels") for level in self.levels]
        if not self.levels:
            return pd.RangeIndex(self.rows)
        keys = [self.shown_keys(at) for at in range(len(self.levels))]
        if len(keys) == 1:
            return keys[0].take(self.codes[0]).rename(names[0])
        levels: Any = keys
        return pd.MultiIndex(levels=levels, codes=list(self.codes), names=names)

    def shown_keys(self, at: int) -> pd.Index:
        """Return the keys of a level as they are shown."""
        level = self.levels[at]
        alias = self.table.alias.keys.get(token(level.name), {})
        if not alias:
            return level.keys
        shown = {old: label_of(new) for new, old in alias.items()}
        keys = [shown.get(token(key), key) for key in level.keys]
        return pd.Index(keys, dtype=object, tupleize_cols=False).infer_objects()

    def places(self, at: int, values: Factored) -> np.ndarray:
        """Return the places of values among the keys of a level."""
        level = self.levels[at]
        return level.places(values, self.table.alias.keys.get(token(level.name), {}))

    def shown_label(self, label: str, which: str = "columns") -> Any:
        """Return what a column or a level is called where it is shown."""
        alias: Mapping[str, str] = getattr(self.table.alias, which)
        return label_of(next((new for new, old in alias.items() if old == label), label))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The whole table, under the labels that are shown."""
        return self.frame_of(list(self.columns))

    def frame_of(self, labels: Sequence[str]) -> pd.DataFrame:
        """Return some columns of the table."""
        columns = [self.columns[label] for label in labels]
        series = [series_of(column.numbers, column.part.dtype) for column in columns]
        frame = pd.DataFrame({at: cells.array for at, cells in enumerate(series)}, index=self.index)
        names = [self.shown_label(label) for label in labels]
        frame.columns = pd.Index(names, tupleize_cols=False)
        return frame

    def changed(self, releases: Sequence[Release] | None = None, **fields: Any) -> "Opened":
        """Return a record with other fields of its table, or with what is said of some of it."""
        promised = self.releases if releases is None else tuple(releases)
        table = replace(self.table, **fields)
        return Opened(promised, lambda: table, self.base or self, self.others)

    def with_others(self, others: Iterable["Opened"]) -> "Opened":
        """Return a record of cells that were computed from other releases, too."""
        table = self.table
        kept = (*self.others, *(other for other in others if other not in self.others))
        return Opened(self.releases, lambda: table, self.base or self, kept)

    def with_columns(self, added: pd.DataFrame, definitions: Sequence[Definition]) -> "Opened":
        """Return a record with more columns, each with its definition; others of a label go."""
        parts = [
            cells_part(label, added.iloc[:, at], definition)
            for at, (label, definition) in enumerate(zip(added.columns, definitions, strict=True))
        ]
        labels = {part.label for part in parts}
        kept = [part for part in self.table.columns if part.label not in labels]
        return self.changed(columns=(*kept, *parts))


def cells_part(label: Any, column: pd.Series, definition: Definition | None = None) -> CellsPart:
    """Write the cells of a column."""
    values, missing = numbers_of(column)
    dtype = str(column.dtype)
    if dtype.startswith(_LENGTHS):  # in the unit of the dtype, in which every sum has room
        values = column.to_numpy().view(np.int64)
    if _is_whole(dtype):
        values = np.where(missing, 0, values)
    return CellsPart(
        label=token(label),
        dtype=dtype,
        values=Zipped.of(values, "<i8" if _is_whole(dtype) else "<f8"),
        missing=Zipped.of(missing, "u1") if missing.any() else None,
        definition=definition,
    )


def _is_whole(dtype: str) -> bool:
    """Whether cells of a dtype are written as integers."""
    return dtype.lower().startswith(("int", "uint", "timedelta64", "datetime64"))


def attach(
    frame: pd.DataFrame,
    releases: Sequence[Release],
    definitions: Sequence[Definition | None] | None = None,
    *,
    joined: JoinedPart | None = None,
    salt: str,
) -> None:
    """Put the record of a released frame on it.

    Parameters
    ----------
    frame
        All released cells.
    releases
        What was promised.
    definitions
        How columns were computed, in order; `None` for one that was released.
    joined
        The level that tells several releases apart.
    salt
        What nobody can guess, in hexadecimal.
    """
    # a copy of all of it: the frame is handed out, and may be another when somebody looks
    kept = pd.DataFrame(frame)
    kept.attrs = {}
    kept = kept.copy()
    kept.index = frame.index[:].copy(deep=True)  # a range keeps its cache
    column_definitions = definitions or [None] * kept.shape[1]
    opened = Opened(tuple(releases), lambda: _described(kept, column_definitions, joined, salt))
    carry(frame, opened)


def carry(frame: pd.DataFrame, opened: Opened) -> None:
    """Let a frame carry a record."""
    frame.attrs[ATTRIBUTE] = Carried(opened)
    mark_test(frame, opened.releases)


def _described(
    frame: pd.DataFrame,
    definitions: Sequence[Definition | None],
    joined: JoinedPart | None,
    salt: str,
) -> TablePart:
    """Say what there is to say about all cells that were released."""
    index = frame.index
    names = list(index.names)
    if names == [None] and len(index) == 1 and index[0] == 0:  # of all rows, which have no keys
        names = []
    levels, codes = levels_of([factored(index, at) for at in range(len(names))], names, len(frame))
    columns = zip(frame.items(), definitions, strict=True)
    return TablePart(
        levels=tuple(level.part() for level in levels),
        rows=len(frame),
        codes=codes_part(codes, levels),
        columns=tuple(cells_part(*column, definition) for column, definition in columns),
        alias=NO_ALIAS,
        units={},
        cuts=(),
        joined=joined,
        published=None,
        salt=salt,
        origin=UNSEALED,
    )


def levels_of(
    values: Iterable[Factored], names: Iterable[Hashable], rows: int
) -> tuple[list[Level], np.ndarray]:
    """Return the keys in use of each level, and the place of each row's key."""
    pairs = [Level.of(level_values, name) for level_values, name in zip(values, names, strict=True)]
    codes = np.array([places for _, places in pairs], np.int64).reshape(len(pairs), rows)
    return [level for level, _ in pairs], codes


def codes_part(codes: np.ndarray, levels: Sequence[Level]) -> Zipped | None:
    """Write the places of keys; `None`: rows are all combinations of keys, in order."""
    sizes = [len(level.keys) for level in levels]
    complete = prod(sizes) == codes.shape[1] and np.array_equal(codes, _product(sizes))
    return None if complete else Zipped.of(codes, "<i8")


def _product(sizes: Sequence[int]) -> np.ndarray:
    """Return the places of keys in all combinations of so many, in order."""
    places = np.arange(prod(sizes))
    strides = [prod(sizes[at:]) for at in range(len(sizes) + 1)]
    of_levels = [places % outer // inner for outer, inner in pairwise(strides)]
    return np.array(of_levels, np.int64).reshape(len(sizes), len(places))


def salt_of(records: Iterable[Opened]) -> str:
    """Return the salt of a table made of others: it follows from theirs, and nobody guesses it."""
    salts = "".join(str(opened.table.salt) for opened in records)
    return hashlib.sha256(salts.encode()).hexdigest()[:_SALT_DIGITS]


def _origin_of(record: Mapping[str, Any]) -> str:
    """Return the digest of what was released, and of the salt."""
    table = record["table"]
    released = [part for part in table["columns"] if part["definition"] is None]
    content = [record["releases"], table["levels"], table["codes"], released, table["salt"]]
    return _digest(json.dumps(content))


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _field(digest: str) -> str:
    """Return how a record has its digest, that of its text without."""
    return f'"digest": "{digest}"'


class Carried(dict[str, str]):
    """What `attrs` carries: a record, under "record" as text, which is written when it is read.

    Copies of a frame share it. In pickles and files it is a plain dict of the text.
    """

    def __init__(self, opened: Opened) -> None:
        super().__init__({RECORD: ""})  # json asks an empty one for nothing
        self.opened = opened

    def _plain(self) -> dict[str, str]:
        return {RECORD: self.opened.text}

    def __getitem__(self, name: str) -> str:
        return self._plain()[name] if name == RECORD else super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the text."""
        return self[name] if name in self else default

    def items(self) -> Any:
        """Return the text with its name; `json` asks for no more."""
        return self._plain().items()

    def values(self) -> Any:
        """Return the text."""
        return self._plain().values()

    def __setitem__(self, name: str, value: str) -> None:
        raise TypeError("a record is not changed")

    def __eq__(self, other: object) -> bool:
        return self is other or self._plain() == other

    def __ne__(self, other: object) -> bool:  # that of dict compares what it holds itself
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return repr(self._plain())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._plain(),)


_OPENED: OrderedDict[str, Opened] = OrderedDict()


def _keep(opened: Opened) -> Opened:
    """Keep a record that was read, by its text: copies of a frame have the same one."""
    _OPENED[opened.text] = opened
    while len(_OPENED) > _KEPT:
        with suppress(KeyError):  # another thread may have taken the last
            _OPENED.popitem(last=False)  # in one step, whatever other threads keep meanwhile
    return opened


def opened_of(carried: object) -> Opened:
    """Return a record that `attrs` carries, which anybody may have written.

    Raises
    ------
    CertificateError
        If it was edited, or made inside a test, and this is none.
    UnreadableCertificateError
        If it is none, or has another format.
    """
    if isinstance(carried, Carried):
        opened = carried.opened
    else:
        text = carried.get(RECORD) if isinstance(carried, dict) else None
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise _unreadable("it is no text, or too long")
        opened = _OPENED.get(text) or _keep(_read(text))
    refuse_test(opened.releases)
    return opened


def _unreadable(reason: object) -> UnreadableCertificateError:
    rule = f"this certificate cannot be read: {reason}"
    return UnreadableCertificateError(f"{rule}. Go back to what was released.")


def _read(text: str) -> Opened:
    try:
        record = parse_json(text)
    except ValueError as error:
        raise _unreadable(error) from None
    version = record.get("format") if isinstance(record, dict) else None
    plausible = type(version) is int and 0 < version < _MOST_FORMATS  # True is no version
    if plausible and version != FORMAT:
        ours = f"this certificate has format {version}, and this version reads {FORMAT}"
        raise UnreadableCertificateError(f"{ours}. Read it with the version that made it.")
    certificate = read(Certificate, record, "this certificate", text)
    if _digest(text.replace(_field(certificate.digest), _field(UNSEALED))) != certificate.digest:
        raise CertificateError(
            "this frame is not what its certificate was given for: the certificate itself was "
            "changed. Go back to the released frame."
        )
    opened = Opened.read(certificate, text)
    try:
        _ = opened.levels, opened.columns, opened.codes  # all of it is read, as it may be damaged
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise _unreadable(error) from None
    return opened


def _codes(table: TablePart, sizes: Sequence[int]) -> np.ndarray:
    rows = table.rows
    if table.codes is not None:
        codes = table.codes.numbers("<i8", rows * len(sizes)).reshape(len(sizes), rows)
        if ((codes < 0) | (codes >= np.reshape(sizes, (-1, 1)))).any():
            raise ValueError("each row has a key of each level")
        return codes
    if prod(sizes) != rows:
        raise ValueError("each combination of keys has a row")
    return _product(sizes)


def _numbers(part: CellsPart, rows: int) -> Numbers:
    values = part.values.numbers("<i8" if _is_whole(part.dtype) else "<f8", rows)
    if part.dtype.startswith(_LENGTHS):
        values = numbers_of(pd.Series(values.view(part.dtype))).values
    if part.missing is None:
        return Numbers(values, np.zeros(rows, bool))
    return Numbers(values, part.missing.numbers("u1", rows).astype(bool))


def refuse_test(releases: Iterable[Release]) -> None:
    """Refuse what was made inside a testing block, but in such a block.

    Raises
    ------
    CertificateError
        If it was.
    """
    tested = any(release.testing for release in releases)
    if tested and not at_the_door(looking=True).is_test:
        rule = "this table was made inside a testing block: it is neither private nor a release."
        raise CertificateError(f"{rule} Look at it inside of the block, or release outside.")


def record_on(frame: object) -> Opened:
    """Return the record that a frame carries; its cells are not looked at.

    Raises
    ------
    CertificateError
        If it carries none.
    UnreadableCertificateError
        If it carries one that this version cannot read.
    """
    if not isinstance(frame, pd.DataFrame):
        path = isinstance(frame, str | PathLike)
        hint = " Read it with dpf.read_csv, dpf.read_excel or pandas.read_parquet." if path else ""
        hint = " Use .to_frame()." if isinstance(frame, pd.Series) else hint
        rule = "a certificate is for a whole released DataFrame"
        raise CertificateError(f"{rule}, got {a_type(frame)}.{hint}")
    if is_private(frame.attrs):
        raise CertificateError(_DIAGNOSIS)
    if ATTRIBUTE not in frame.attrs:
        without = _PRIVATE if kept_declaration(frame) or is_marked(frame.attrs) else _LOST
        raise CertificateError(about_computed(frame.attrs) or without)
    return opened_of(frame.attrs[ATTRIBUTE])


def certificate_of(frame: pd.DataFrame) -> Certificate:
    """Return the certificate that a frame carries; see `record_on`."""
    return record_on(frame).certificate
