"""The data of a job: opened without their rows to try a release, and with them to make it."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dpframe.accessors.private import Scan, scan_parquet
from dpframe.columns import pa, require_arrow
from dpframe.context import cached_property
from dpframe.declaration.facts import Declaration
from dpframe.engines.sources import source_of
from dpframe.engines.text_files import open_columns
from dpframe.errors import DPFrameError, PlanFileError, TemporaryError, UnknownColumnError, a_type
from dpframe.frozen import frozen
from dpframe.jobs.plan_toml import Section
from dpframe.ledger.parts import is_text
from dpframe.queries.query import Query
from dpframe.sources.cells import STRING, Dialect
from dpframe.sources.manifest import expand
from dpframe.sources.match import claims_of_query, type_of_cells
from dpframe.sources.text import TYPES

FILESYSTEMS = {
    "s3": "S3FileSystem",
    "gcs": "GcsFileSystem",
    "azure": "AzureFileSystem",
    "hdfs": "HadoopFileSystem",
}
"""Classes of `pyarrow.fs`, by what a plan calls them."""

_SECRET = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")


def read_store(section: Section) -> Mapping[str, Any]:
    """Read the table `filesystem`: the type, and arguments of the class of pyarrow."""
    table = section.section("filesystem")
    options = dict(table.table)
    for key, value in table.table.items():
        if isinstance(value, str):
            if _SECRET.search(key) and not _VARIABLE.fullmatch(value):
                remedy = "write ${NAME}, which stands for a variable of the environment"
                raise table.error(f"must not stand in a plan: {remedy}.", key)
            options[key] = table.fill_text(key, value, environment=True)
    return options


def open_store(section: Section, options: Mapping[str, Any]) -> Any:
    """Make the file system; which arguments it has depends on pyarrow.

    Raises
    ------
    PlanFileError
        If this pyarrow has no such file system, or not with these arguments.
    """
    require_arrow("opening a store")
    from pyarrow import fs  # slow to import, and not always needed

    arguments = dict(options)
    name = FILESYSTEMS[arguments.pop("type")]
    kind = getattr(fs, name, None)
    if kind is None:
        raise section.error(f"this pyarrow has no {name}.", "filesystem", "type")
    try:
        return kind(**arguments)
    except (TypeError, ValueError):
        listed = ", ".join(arguments) or "nothing"
        reason = f"pyarrow.fs.{name} cannot be made with {listed}: see its arguments."
        raise section.error(reason, "filesystem") from None


DIALECT = tuple(option.name for option in fields(Dialect))
"""Keys of the table `data` that say how text files are written."""

_CSV = (".csv", ".csv.gz", ".csv.zip")
_FORMATS = "Parquet (a file, a folder or files), .feather, or .csv (also .csv.gz and .csv.zip)"
_Read = TypeVar("_Read")


@frozen
class Data:
    """Where private rows are, and how they are read."""

    section: Section  # what the plan says
    places: tuple[Path | str, ...]  # files, or a folder; those in a store are texts
    types: Mapping[str, str]  # what columns of CSV files hold, where the plan says so
    dialect: Dialect  # how CSV files are written
    in_call: bool = False  # whether the files are named on the command line, not in the plan
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
        places: list[Path | str] = []
        for place in self.places:
            store = None if isinstance(place, Path) else self._opened_store
            files: list[Path | str] = self._read(partial(expand, place, store))
            if not files:
                raise self.error(f"there is no file {place}.")
            places += files
        return replace(self, places=tuple(places))

    @cached_property
    def _opened_store(self) -> Any:
        """Return the file system that the paths are in; `None`: the one that they imply."""
        return None if self.filesystem is None else open_store(self.section, self.filesystem)

    def scan(self, types: Mapping[str, str | None], optional: Collection[Hashable]) -> Scan:
        """Open the files; no row is read.

        Parameters
        ----------
        types
            What columns of CSV files hold.
        optional
            Those that files may lack.
        """
        return self._read(partial(self._scan, types, optional))

    def _scan(self, types: Mapping[str, str | None], optional: Collection[Hashable]) -> Scan:
        spill: Any = {"spill_folder": self.spill_folder}
        if self.form == "parquet":
            return scan_parquet(self._place, filesystem=self._opened_store, **spill)
        for path in self.paths:
            if not path.is_file():
                raise self.error(f"{path} is not a file.")
        if self.form == "csv":
            return Scan(open_columns(self.paths, types, self.dialect, optional), **spill)
        require_arrow("reading Feather files")
        return Scan(source_of(_feather_files(self.paths)), **spill)

    def check_typed(self, types: Mapping[str, str | None]) -> None:
        """Refuse columns of CSV files of which no public fact says what they hold."""
        for label, kind in types.items():
            if kind is None and self.form == "csv":
                reason = f"what is declared does not say what {label!r} holds, and CSV files have"
                remedy = f'give data.types.{label} = "int64", or another of {", ".join(TYPES)}'
                raise self.section.error(f"{reason} no types: {remedy}.")

    def rows(self, scan: Scan, labels: Collection[Hashable]) -> Scan:
        """Read rows of files now that have no checksums: a damaged one is known before a charge."""
        if self.form == "parquet":
            return scan
        return self._read(lambda: scan.in_memory(list(map(str, labels)) or scan.columns[:1]))

    def _read(self, read: Callable[[], _Read]) -> _Read:
        """Read files; an error of another package may quote private cells."""
        try:
            return read()
        except (PlanFileError, UnknownColumnError, MemoryError):
            raise
        except Exception as error:  # a file from anywhere makes its reader raise anything
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> DPFrameError:
        """Say why files cannot be read."""
        cause = error.__cause__ or error
        away = isinstance(cause, OSError) and not self.paths
        if isinstance(cause, PermissionError):
            return self.error(f"permission denied: {cause.filename or self._place}.")
        if isinstance(error, FileNotFoundError):
            return self.error("there is no such file.")
        if isinstance(error, DPFrameError):
            reason = str(error)
        elif away:
            reason = f"the store does not answer, or refuses ({a_type(error)})."
        else:
            reason = f"the files cannot be read as {self.form} ({a_type(error)}). The cause is not"
            remedy = (
                "shown, because it may quote private values: read them by themselves to see it."
            )
            reason = f"{reason} {remedy}"
        refusal = self.error(reason)
        return TemporaryError(str(refusal)) if away else refusal

    def error(self, reason: str) -> PlanFileError:
        """Say what is wrong with the files, and where they are named."""
        if self.in_call:
            return PlanFileError(f"--data: {reason}")
        return self.section.error(reason, "path")


def read_data(section: Section, in_call: tuple[str, ...]) -> Data:
    """Read the table `data`; paths of the call go before those of the plan."""
    written: Any = {key: section.table[key] for key in DIALECT if key in section.table}
    try:
        dialect = Dialect.of(**written)
    except DPFrameError as error:
        raise section.about(error) from None
    filesystem = read_store(section) if "filesystem" in section.table else None
    texts = list(in_call) or section.paths("path")
    places: list[Path | str] = []
    for text in texts:
        if filesystem is None and "://" not in text:
            places.append(Path(text) if in_call else section.path("path", text))
            continue
        place = text if in_call else section.fill_text("path", text, environment=True)
        if filesystem is not None:  # which knows no schemes
            place = place.partition("://")[2] or place
        places.append(place)
    if len({isinstance(place, Path) for place in places}) > 1:
        raise section.error("must be all in a store, or none.", "path")
    return Data(
        section,
        tuple(places),
        section.table.get("types", {}),
        dialect,
        bool(in_call),
        filesystem,
        section.path_or_none("spill_folder"),
        all(text.endswith("/") for text in texts),
    )


def _feather_files(paths: Iterable[Path]) -> Any:
    """Open Feather files as one dataset, in the types of the first file that has a column."""
    import pyarrow.dataset as ds  # comes with the extra that reads such files
    from pyarrow import ipc

    fields: dict[str, Any] = {}
    for path in paths:
        with ipc.open_file(path) as reader:
            for field in reader.schema:
                if pa.types.is_null(fields.setdefault(field.name, field).type):
                    fields[field.name] = field
    return ds.dataset(list(map(str, paths)), pa.schema(list(fields.values())), format="feather")


def kinds_of_columns(
    labels: Iterable[Hashable],
    declared: Declaration,
    queries: Collection[Query],
    types: Mapping[str, str],
) -> dict[str, str | None]:
    """Say which types of cells columns have; a part that is a text stands in a column of texts.

    Parameters
    ----------
    labels
        The columns.
    declared
        What is declared.
    queries
        What is asked.
    types
        The types that a plan names.
    """
    kinds: dict[str, str | None] = {}
    claims = [claim for query in queries for claim in claims_of_query(declared, query)]
    for label in labels:
        if isinstance(label, str):  # as all columns of files are
            kinds[label] = types.get(label) or type_of_cells(label, declared, claims)
    if declared.ledger is not None and is_text(declared.part):
        part = str(declared.ledger.part)
        kinds[part] = kinds.get(part) or STRING
    return kinds
