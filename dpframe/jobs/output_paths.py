"""Where the releases of a plan are written to: their tables by name, and the paths of each."""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dpframe.certificates.json_records import ExcessError, check_json
from dpframe.columns import require_arrow
from dpframe.errors import DPFrameError
from dpframe.files.csv import read_csv, sidecar_of
from dpframe.frozen import frozen
from dpframe.jobs.plan_toml import Section, leads_elsewhere, placeholders
from dpframe.ledger.file import is_ledger
from dpframe.ledger.ledger import Ledger, open_patiently
from dpframe.ledger.store import is_url, store_at
from dpframe.queries.query import Query

_ALL = "all"
_APART = (
    "put {query} in its name, or put {table} in its name for margins; or name it once, or ask for "
    "one of the tables in a query of its own, with files of its own"
)
_NOT_IN_FILES = frozenset('/\\:*?"<>|.')


def read_paths(
    plan: Section, queries: Mapping[str, Query], release: str
) -> dict[str, tuple[Path, ...]]:
    """Read where releases are written to: the files of a query, or those of all."""
    for table, name in called_alike(queries):
        reason = f"two tables would be called {table!r}: give the query another name, or ask for"
        remedy = "one of the tables in a query of its own."
        raise plan.section("queries").error(f"{reason} {remedy}", name)
    places: dict[str, tuple[Path, ...]] = {}
    taken: dict[str, str] = {}
    for name, query in queries.items():
        section = plan.section("queries").section(name)
        if "files" not in section.table:
            section = plan.section("release")
        texts = section.paths("files")
        for table, columns in table_names(name, query).items():
            names = {"query": name, "name": release}
            if columns:
                names["table"] = columns
            paths = [place_of(section, text, names) for text in texts]
            files = [folded(path.resolve()) for path in paths]
            for path, file in zip(paths, files, strict=True):
                first = taken.setdefault(file, table)
                if first != table or files.count(file) > 1:
                    tables = f", for {first!r} and {table!r}" * (first != table)
                    reason = f"{path} would be written twice{tables}"
                    raise section.error(f"{reason}: {_APART}.", "files")
            places[table] = tuple(paths)
    return places


def table_names(name: str, query: Query) -> dict[str, str | None]:
    """Return what the tables of a query are called, and what `{table}` stands for in their paths.

    The table of all rows is `all`, with as many `_` behind it as keep it apart from the others.

    Examples
    --------
    >>> import dpframe as dpf
    >>> table_names("survey", dpf.margins(["sex", "age"], ways=1))
    {'survey: all': 'all', 'survey: sex': 'sex', 'survey: age': 'age'}
    >>> table_names("by_sex", dpf.count("sex"))
    {'by_sex': None}
    """
    return dict(_names(name, query))


def called_alike(queries: Mapping[str, Query]) -> list[tuple[str, str]]:
    """Return names that several tables have, each with a query that asks for one of them."""
    asked = [(table, name) for name, query in queries.items() for table, _ in _names(name, query)]
    often = Counter(table.casefold() for table, _ in asked)
    return [(table, name) for table, name in reversed(asked) if often[table.casefold()] > 1]


def by_table(released: Mapping[str, Any], queries: Mapping[str, Query]) -> dict[str, pd.DataFrame]:
    """Return released frames by the names of their tables."""
    frames: dict[str, pd.DataFrame] = {}
    for name, frame in released.items():
        of_query = frame.values() if queries[name].margins else [frame]
        frames |= zip(table_names(name, queries[name]), of_query, strict=True)
    return frames


def _names(name: str, query: Query) -> list[tuple[str, str | None]]:
    """List the names of tables, and what `{table}` stands for."""
    if not query.margins:
        return [(name, None)]
    words = [", ".join(map(str, columns)) for columns in query.margins]
    files = [_in_path("-".join(map(str, columns))) for columns in query.margins]
    total = _ALL
    while total.casefold() in {text.casefold() for text in (*words, *files)}:
        total += "_"
    return [
        (f"{name}: {text or total}", file or total) for text, file in zip(words, files, strict=True)
    ]


def _in_path(text: str) -> str:
    """Replace what has a meaning of its own in a path, here or elsewhere."""
    return "".join("_" if c in _NOT_IN_FILES or not c.isprintable() else c for c in text)


_VARIABLE = re.compile(r"\$\{\w+\}")
_NAMES = ("name", "query")  # the first may be given in the call; tables have names made for files


def place_of(section: Section, text: str, names: dict[str, str]) -> Path:
    """Fill the placeholders of a path of a plan, under the key `files`."""
    filled = section.fill_text("files", text, environment=True, **names)
    for name in _NAMES:
        if name in names and name in placeholders(text) and leads_elsewhere(names[name]):
            rule = "a name in a path must have no '/', '\\' or '..', which would lead it elsewhere."
            remedy = "Give another name, or leave it out of files."
            raise section.error(f"{{{name}}} is {names[name]!r:.200}: {rule} {remedy}", "files")
    # only the plan itself has values with folders; of any other, a name could stand there
    values = {**section.source.values, **names}
    plain = {name: value if leads_elsewhere(value) else "x" for name, value in values.items()}
    shape = _shape(section.fill_text("files", text, environment=True, **plain))
    if "\0" in filled or _shape(filled) != shape:
        reason = f"{filled!r:.200} leads elsewhere: no value may be empty or dots alone."
        raise section.error(reason, "files")
    # what variables hold is of a machine
    portable = section.fill_text("files", _VARIABLE.sub("x", text), environment=False, **names)
    check_portable(section, portable, "files")
    return section.path("files", text, **names)


def check_portable(section: Section, path: str, key: str) -> None:
    """Refuse a path of a plan that names no file, or another one, on some system."""
    if reason := why_not_portable(path):
        raise section.error(f"{reason}: give another name, for plans travel.", key)


def _shape(text: str) -> tuple[str, int]:
    """Give what a path starts from, and how often it leads to the folder above."""
    path = Path(text)
    return path.anchor, path.parts.count("..")


_DEVICES = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\N{SUPERSCRIPT ONE}"
    r"\N{SUPERSCRIPT TWO}\N{SUPERSCRIPT THREE}]) *(\..*)?",
    re.IGNORECASE | re.DOTALL,
)
_SIGNS = frozenset('<>:"|?*\\')
_LEADING = frozenset({".", ".."})


def folded(path: Path) -> str:
    """Return what two paths have in common that name one file on some system.

    Examples
    --------
    >>> folded(Path("out/Zones.csv")) == folded(Path("OUT/zones.CSV"))
    True
    """
    return unicodedata.normalize("NFC", str(path)).casefold()


def why_not_portable(text: str) -> str:
    """Say why a path of a plan names no file, or another one, on some system; empty if it does not.

    Examples
    --------
    >>> why_not_portable("out/nul.csv")
    "'nul.csv' is the name of a device on Windows"
    >>> why_not_portable("out/zones.csv")
    ''
    """
    path = Path(text)
    for part in path.parts[1:] if path.anchor else path.parts:
        if part in _LEADING:
            continue
        if _DEVICES.fullmatch(part):
            return f"{part!r:.200} is the name of a device on Windows"
        if part[-1] in ". ":
            return f"{part!r:.200} ends with a dot or a space, which Windows drops"
        if any(sign in _SIGNS or sign < " " for sign in part):
            listed = " ".join(sorted(_SIGNS))
            return f"{part!r:.200} has one of {listed}, which no name has on Windows"
    return ""


_METADATA = (b"PANDAS_ATTRS", b"pandas")
_MOST_BYTES = 1 << 26  # below, a file may be packed as tightly as it likes
_MOST_RATIO = 256  # of a table in memory to its file
_WIDTH = 8  # bytes of a value


def _check_parquet(path: Path) -> None:
    """Read the end of a Parquet file, and refuse one of too many values."""
    import pyarrow.parquet as pq  # comes with the extra that reads such files

    described = pq.read_metadata(path)
    size = _WIDTH * described.num_rows * described.num_columns
    if size > max(_MOST_BYTES, _MOST_RATIO * path.stat().st_size):
        raise ExcessError("it holds more values than a release in a file of its size.")
    for name in _METADATA:  # pandas parses all that is there
        check_json((described.metadata or {}).get(name, b"").decode("latin-1"))


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file, once it is known to take little memory."""
    require_arrow("reading Parquet files")
    try:
        _check_parquet(path)
        return pd.read_parquet(path)
    except (PermissionError, ExcessError):  # say what is wrong
        raise
    except Exception:  # a file from anywhere makes its reader raise anything
        raise ValueError("it is damaged, or no parquet file of a table.") from None


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {".parquet": _read_parquet, ".csv": read_csv}
_BESIDE = sidecar_of("").name
WORKBOOK = ".xlsx"


def without_certificates(paths: Sequence[Path]) -> list[Path]:
    """Leave out certificates of files that are among the paths: they are read with these."""
    beside = {sidecar_of(path) for path in paths}
    return [path for path in paths if path not in beside]


def read_released(path: Path) -> pd.DataFrame:
    """Read the file of a released frame; its certificate is not checked but in CSV files."""
    _check_is_there(path)
    if path.name.endswith(_BESIDE):
        table = path.with_name(path.name.removesuffix(_BESIDE))
        raise ValueError(f"give {table}: its certificate is read with it.")
    if path.suffix.lower() == WORKBOOK:
        raise ValueError("dpframe verify checks Excel files, and dpf.read_excel reads them.")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        pickles = "Pickle files are not opened, because they can run code."
        kind = path.suffix or "no suffix"
        raise ValueError(f"{kind!r} is not one of {', '.join(_READERS)}. {pickles}")
    return reader(path)


@frozen(slots=True)
class LedgerPlace:
    """Where a ledger is: a file, or, as a text, the URL of a database, which is not shown whole."""

    address: Path | str
    patience: float | None = None  # seconds to wait for others

    @property
    def files(self) -> tuple[Path, ...]:
        """The file, if it is one."""
        return (self.address,) if isinstance(self.address, Path) else ()

    def exists(self) -> bool:
        """Whether it was made."""
        if isinstance(self.address, Path):
            return self.address.exists()
        return store_at(self.address, self.patience).exists()

    def __str__(self) -> str:
        """Show it without a password."""
        try:
            return (
                str(self.address)
                if isinstance(self.address, Path)
                else store_at(self.address).place
            )
        except DPFrameError:  # whoever opens it is told
            return "the ledger"


def ledger_place(text: str) -> LedgerPlace:
    """Read where a ledger is."""
    return LedgerPlace(text if is_url(text) else Path(text))


def opened_ledger(place: LedgerPlace) -> Ledger:
    """Open a ledger that is there."""
    path = place.address
    if not isinstance(path, Path):
        return open_patiently(path, place.patience)
    _check_is_there(path)
    if not is_ledger(path):
        reason = "it is not a ledger of dpframe in the format of this version"
        raise OSError(f"{reason}, or its beginning is lost.")
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise PermissionError("a ledger is locked while it is read: copy it to a folder of yours.")
    return open_patiently(path, place.patience)


def _check_is_there(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError("it is a folder, not a file.")
    if not path.exists():
        raise FileNotFoundError("there is no such file.")
    if not path.is_file():
        raise OSError("it is a device or a pipe, not a file.")
