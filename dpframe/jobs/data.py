"""The data of a job: opened without their rows to try a release, and with them to make it."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import partial
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pandas as pd

from dpframe.accessors.scan import Scan, scan_parquet
from dpframe.columns.values import arrow_type
from dpframe.declaration.facts import Declaration
from dpframe.declaration.kinds import FOLDERS
from dpframe.engines import Frame
from dpframe.engines.base import check_labels
from dpframe.engines.text_files import TextFiles
from dpframe.errors import DPFrameError, PlanFileError, TemporaryError, a_type, pip_install
from dpframe.forks import cached_property
from dpframe.jobs.column_types import kind_from_plan
from dpframe.jobs.plan_toml import Section
from dpframe.jobs.stores import open_store, read_store, stored_matches
from dpframe.queries.query import Query
from dpframe.sources.cells import STRING
from dpframe.sources.dialect import Dialect
from dpframe.sources.manifest import check_read_once, identify_file
from dpframe.sources.text import ID, TYPES

DIALECT = tuple(option.name for option in fields(Dialect))
"""Keys of the table `data` that say how text files are written."""

DATA = ("path", "filesystem", "spill_folder", "types", *DIALECT)
"""Keys of the table `data`."""

_CSV = (".csv", ".csv.gz", ".csv.zip")
_FORMATS = "Parquet (a file, a folder or files), .feather, or .csv (also .csv.gz and .csv.zip)"
_NOTHING = "null"  # the type of a column without any value
_NOT_SHOWN = "(It is not shown, since it may be a private row.)"
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Stored:
    """What is public about the rows that are stored: their columns. No row is read."""

    labels: list[Hashable]  # the labels of the columns
    types: Mapping[str, str]  # what they hold, by label, as far as it is known
    # the labels in each file; of Parquet files, none
    files: Mapping[Path, list[Hashable]] = field(default_factory=dict)
    scan: Scan | None = None  # Parquet files, opened


@dataclass(frozen=True)
class Data:
    """Where private rows are, and how they are read."""

    section: Section  # what the plan says
    places: tuple[Path | str, ...]  # files, or a folder; those in a store are texts
    types: Mapping[str, str]  # what columns of CSV files hold, where the plan says so
    dialect: Dialect  # how CSV files are written
    given: bool = False  # whether the files are named on the command line, not in the plan
    # how a store is opened that the paths are in; `None`: as the paths say
    filesystem: Mapping[str, Any] | None = None
    spill_folder: Path | None = None  # where private rows are kept for a while
    folders: bool = False  # whether the plan says by a / at their ends that they are folders

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files on disks, and not in a store."""
        return tuple(place for place in self.places if isinstance(place, Path))

    @property
    def form(self) -> str:
        """Which kind of files they are: "csv", "feather" or "parquet"."""
        names = [str(place).rstrip("/").rpartition("/")[2].lower() for place in self.places]
        if all(name.endswith(_CSV) for name in names) and self.paths:
            return "csv"
        if all(name.endswith(".feather") for name in names) and self.paths:
            return "feather"
        parquet = all(name.endswith((".parquet", ".pq")) or "." not in name for name in names)
        if parquet or self.folders or not self._has_file(names):
            return "parquet"
        shown = ", ".join(map(str, self.places))
        stores = "" if self.paths else " (in a store, Parquet alone)"
        raise self.error(f"must name {_FORMATS}, all of one kind{stores}, got {shown}.")

    def _has_file(self, names: list[str]) -> bool:
        """Whether there may be other files than those of Parquet: a folder may have a dot."""
        if not self.paths:
            return any(name.endswith((*_CSV, ".feather")) for name in names)
        return not all(path.is_dir() for path in self.paths)

    @property
    def _place(self) -> Path | str | list[Path | str]:
        """A file or a folder by itself, or a list of files."""
        return self.places[0] if len(self.places) == 1 else list(self.places)

    def expanded(self) -> "Data":
        """Return the files that patterns such as `2024-*.parquet` stand for, in their order."""
        self.form  # noqa: B018  # what is wrong with names is said first
        found: list[Path | str] = []
        for place in self.places:
            store = None if isinstance(place, Path) else self._opened_store
            inside: list[Path | str] = self._read(partial(_matches, place, store))
            if not inside:
                raise self.error(f"there is no file {place}.")
            found += inside
        return replace(self, places=tuple(found))

    @cached_property
    def _opened_store(self) -> Any:
        """Return the file system that the paths are in; `None`: the one that they imply."""
        return None if self.filesystem is None else open_store(self.section, self.filesystem)

    def _scan(self) -> Scan:
        spill: dict[str, Any] = {"spill_folder": self.spill_folder}
        return self._read(lambda: scan_parquet(self._place, filesystem=self._opened_store, **spill))

    def stored_types(self) -> Stored:
        """Look which columns the files have; they are public, and no row is read."""
        form = self.form
        for path in self.paths:
            if not path.exists():
                raise self.error(f"there is no {path}.")
            if not path.is_file() and not (form == "parquet" and path.is_dir()):
                raise self.error(f"{path} is not a file.")
        self._read(lambda: check_read_once(identify_file(str(path)) for path in self.paths))
        if form == "parquet":
            scan = self._scan()
            known = {**dict.fromkeys(scan.columns, FOLDERS), **_names_of(scan.types)}
            return Stored(list(scan.columns), known, scan=scan)
        if form == "csv":
            files = self._read(TextFiles(self.paths, {}, self.dialect).headers)
            labels = list(dict.fromkeys(chain(*files.values())))
            return Stored(labels, self.types, files)
        typed = {path: self._read(partial(_feather_types, path)) for path in self.paths}
        types = self._join_types(typed)
        return Stored(list(types), types, {path: list(kinds) for path, kinds in typed.items()})

    def _join_types(self, typed: Mapping[Path, Mapping[str, str]]) -> Mapping[str, str]:
        """Join the types of files, of which no column may have two."""
        first: dict[str, tuple[str, Path]] = {}
        for path, types in typed.items():
            for label, kind in types.items():
                known, place = first.setdefault(label, (kind, path))
                if known == _NOTHING:
                    first[label] = kind, path
                elif kind not in (known, _NOTHING):
                    types_differ = f"{label!r} is {kind} in {path}, and {known} in {place}"
                    rule = "all files must have the same types of columns"
                    raise self.error(f"{rule}: {types_differ}. Write them with one schema.")
        return {label: kind for label, (kind, _) in first.items()}

    def what_is_wrong(
        self, stored: Stored, wanted: Iterable[Hashable], known: Collection[Hashable]
    ) -> DPFrameError | None:
        """Say which wanted column a file lacks or has twice, and quote no line: it may be private.

        The first line of a CSV file with no column that the plan knows need not be a header.
        """
        for label in wanted:
            lacking = [path for path, labels in stored.files.items() if label not in labels]
            if lacking and (self.form == "csv" or len(lacking) < len(stored.files)):
                why = self._lacks(stored, lacking[0], label, known)
                return PlanFileError(why, label=label)
            for path, labels in stored.files.items():
                if (times := labels.count(label)) > 1:
                    why = (
                        f"{path} has {times} columns {label!r}: rename them, so that it names one."
                    )
                    return PlanFileError(why, label=label)
            if stored.scan is not None and label in stored.labels:
                try:
                    stored.scan.check([label])
                except DPFrameError as error:
                    return error
        return None

    def check_alike(self, stored: Stored) -> None:
        """Check that all files have the same columns: one without a header would lose a row."""
        first = next(iter(stored.files), None)
        for path, labels in stored.files.items():
            others = sorted(map(str, set(labels) ^ set(stored.files[first or path])))
            if others:
                named = "" if self.form == "csv" else f", such as {others[0]!r}"
                differ = f"{path} has others than {first}{named}"
                raise self.error(f"the files must have the same columns, and {differ}.")

    def _lacks(
        self, stored: Stored, path: Path, label: Hashable, known: Collection[Hashable]
    ) -> str:
        """Say that a file has no column of a label."""
        labels = stored.files[path]
        elsewhere = label in stored.labels
        words = "the files must have the same columns, and " if elsewhere else ""
        where = f"{path} has" if elsewhere or len(stored.files) > 1 else "the data have"
        words = f"{words}{where} no column {label!r}."
        if self.form != "csv":
            return words
        near = get_close_matches(str(label), map(str, labels), n=1)
        if near and not set(known).isdisjoint(labels):
            return f"{words} Did you mean {near[0]!r}?"
        header = f"is it the header, with {self.dialect.separator!r} between the names?"
        return f"{words} The first line has {len(labels)} cells: {header} {_NOT_SHOWN}"

    def frame(self, needed: Mapping[str, str | None]) -> Frame:
        """Open the private rows; needed are columns, with what they hold in CSV files."""
        if self.form == "parquet":
            return self._scan()
        if self.form == "csv":
            return self._read(partial(self._text_scan, needed))
        parts = [self._read(partial(_feather_rows, path, needed)) for path in self.paths]
        frame = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
        frame.attrs.clear()  # what the writer of a file kept there is not a declaration
        return frame

    def _text_scan(self, needed: Mapping[str, Any]) -> Scan:
        """Read CSV files now: what is damaged is known before anything is charged."""
        files = TextFiles(self.paths, needed, self.dialect)
        files.load()
        return Scan(files, spill_folder=self.spill_folder)

    def columns_for(
        self, labels: list[Hashable], declared: Declaration, queries: Collection[Query]
    ) -> Mapping[str, str | None]:
        """Say which columns a release reads, and what they hold in CSV files."""
        asked = [label for query in queries for label in query.labels]
        unit = declared.unit_columns
        others = [label for label in declared.columns if label in labels]
        needed = list(dict.fromkeys([*asked, *unit, *others]))
        try:
            check_labels(labels, needed)
        except DPFrameError as error:
            raise self.error(str(error)) from None
        if self.form != "csv":
            return {str(label): None for label in needed}
        kinds: dict[str, str | None] = {}
        for label in needed or labels[:1]:  # rows alone can be counted
            kind = self.types.get(str(label)) or kind_from_plan(label, declared, queries)
            if label in asked:
                kinds[str(label)] = kind or self._refuse_unknown(label)
            elif label in unit and kind == STRING:
                kinds[str(label)] = ID  # whatever its encoding
            else:
                kinds[str(label)] = kind or STRING
        return kinds

    def _refuse_unknown(self, label: Hashable) -> NoReturn:
        """Refuse a column of a CSV file of which no public fact says what it holds."""
        way = f'give data.types.{label} = "int64", or another of {", ".join(TYPES)}'
        why = f"what is declared does not say what {label!r} holds"
        raise self.section.error(f"{why}, and CSV files have no types: {way}.")

    def _read(self, read: Callable[[], _Read]) -> _Read:
        """Read files; an error of another package may quote private cells."""
        try:
            return read()
        except (PlanFileError, MemoryError):
            raise
        except PermissionError as error:
            raise self.error(f"permission denied: {error.filename or self._place}.") from None
        except ImportError:
            needed = f"reading {self.form} files needs pyarrow: {pip_install('parquet')}."
            raise self.error(needed) from None
        except DPFrameError as error:
            wrong = self.error(str(error))
            away = isinstance(error.__cause__, OSError) and not self.paths
            raise (TemporaryError(str(wrong)) if away else wrong) from None
        except FileNotFoundError:
            raise self.error("there is no such file.") from None
        except Exception as error:  # a file from anywhere makes its reader raise anything
            if isinstance(error, OSError) and not self.paths:
                wrong = self.error(f"the store does not answer, or refuses ({a_type(error)}).")
                raise TemporaryError(str(wrong)) from None
            hidden = "The cause is not shown, because it may quote private values"
            why = f"the files cannot be read as {self.form} ({a_type(error)})"
            raise self.error(f"{why}. {hidden}: read them by themselves to see it.") from None

    def error(self, why: str) -> PlanFileError:
        """Say what is wrong with the files, and where they are named."""
        return PlanFileError(f"--data: {why}") if self.given else self.section.error(why, "path")


def read_data(section: Section, given: tuple[str, ...]) -> Data:
    """Read the table `data`; paths that are given go before those of the plan."""
    section.only(DATA, "data")
    types = section.section("types")
    named = {column: types.get(column, str) for column in types.table}
    for column, kind in named.items():
        if kind not in TYPES:
            raise types.error(f"must be one of {', '.join(TYPES)}, got {kind!r}.", column)
    written: Any = {key: section.table[key] for key in DIALECT if key in section.table}
    try:
        dialect = Dialect.of(**written)
    except DPFrameError as error:
        raise section.about(error) from None
    filesystem = None if "filesystem" not in section.table else read_store(section)
    texts = list(given) or _texts(section)
    local = filesystem is None
    places = tuple(_as_place(section, text, local=local, given=bool(given)) for text in texts)
    if len({isinstance(place, Path) for place in places}) > 1:
        raise section.error("must be all in a store, or none.", "path")
    spill = section.get("spill_folder", str)
    return Data(
        section,
        places,
        named,
        dialect,
        bool(given),
        filesystem,
        None if spill is None else section.path("spill_folder", spill),
        all(text.endswith("/") for text in texts),
    )


def _as_place(section: Section, text: str, *, local: bool, given: bool) -> Path | str:
    """Return where files are: a path, or a text for what is in a store."""
    if local and "://" not in text:
        return Path(text) if given else section.path("path", text)
    filled = text if given else section.fill_text("path", text, environment=True)
    return filled if local else filled.partition("://")[2] or filled


def _matches(place: Path | str, store: Any) -> list[Any]:
    """List the files that a pattern stands for; what has no wildcards stands for itself."""
    if isinstance(place, str):
        return list(stored_matches(place, store))
    if place.exists() or not has_magic(str(place)):
        return [place]
    return [Path(name) for name in sorted(glob(str(place), recursive=True))]


def _texts(section: Section) -> list[str]:
    found = section.need("path", str, list, such_as='path = "trips.parquet"')
    texts = [found] if isinstance(found, str) else found
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise section.error(f"must be a path or a list of paths, got {found!r:.200}.", "path")
    return texts


def _feather_types(path: Path) -> Mapping[str, str]:
    from pyarrow import ipc  # comes with the extra that reads such files

    with ipc.open_file(path) as reader:
        return _names_of(dict(zip(reader.schema.names, reader.schema.types, strict=True)))


def _names_of(types: Mapping[str, Any]) -> Mapping[str, str]:
    return {label: arrow_type(kind) for label, kind in types.items()}


def _feather_rows(path: Path, needed: Mapping[str, str | None]) -> pd.DataFrame:
    from pyarrow import feather  # comes with the extra that reads such files

    table = feather.read_table(path, columns=list(needed), memory_map=False)
    table.validate(full=True)
    # dtypes that do not depend on what is missing
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas(types_mapper=pd.ArrowDtype)
    return frame
