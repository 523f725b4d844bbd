"""What comes in from a source, the same from every door: its files, its types, how text is read.

It is made before a charge, and no row is read. What is public of it has a hash, which ledger and
certificate keep; files are private.
"""

import json
import operator
import os
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import glob
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dpframe.columns import require_arrow
from dpframe.declaration import kinds
from dpframe.declaration.facts import Declaration
from dpframe.errors import DeclarationError
from dpframe.frozen import frozen
from dpframe.ledger.log import SourceFacts
from dpframe.sources.match import known_of

LOCAL = ("local", "py::fsspec+file", "py::fsspec+local", "py::fsspec+('file', 'local')")
"""File systems of pyarrow that are disks of this machine."""

# names that pyarrow leaves out, too
_HIDDEN = re.compile("(^|/)[._]")
_WILDCARD = re.compile(r"[*?\[]")


class FileId(NamedTuple):
    """A file, however it is named.

    Parameters
    ----------
    place
        Device and inode on a disk; kind of the store and key elsewhere.
    path
        How it is named.
    """

    place: Hashable
    path: str


def identify_file(path: str, filesystem: Any = None) -> FileId:
    """Tell where a file is, whatever links and file systems lead there.

    Parameters
    ----------
    path
        The file.
    filesystem
        A file system of pyarrow; `None`: the disks of this machine.
    """
    inner, inside = filesystem, path
    while inner is not None and inner.type_name == "subtree":
        inner, inside = inner.base_fs, inner.base_path + inside
    if inner is not None and inner.type_name not in LOCAL:
        return FileId((inner.type_name, inside), path)
    status = os.stat(inside)
    if status.st_ino:  # not known on all systems
        return FileId((status.st_dev, status.st_ino), path)
    return FileId(os.path.realpath(inside), path)


def check_read_once(files: Iterable[FileId], parameter: str = "path") -> tuple[FileId, ...]:
    """Refuse to read a file twice: its rows would count twice, for the price of one.

    Raises
    ------
    DeclarationError
        If two names lead to one file.
    """
    seen: dict[Hashable, FileId] = {}
    for file in files:
        first = seen.setdefault(file.place, file)
        if first is not file:
            same = f"{file.path} is the same file as {first.path}"
            places = f"{file.path} is listed twice" if file.path == first.path else same
            rule = f"must name each file once: {places}"
            hint = "its rows would count twice. Leave one out, or remove the link."
            raise DeclarationError(f"{parameter} {rule}, and {hint}", parameter=parameter)
    return tuple(seen.values())


def resolve(path: str | list[str], filesystem: Any) -> tuple[Any, Any]:
    """Return a file system of pyarrow, with paths in it."""
    # slow to import, and not always needed
    from pyarrow import fs

    if isinstance(path, list):
        places = [resolve(part, filesystem) for part in path]
        return (places[0][0] if places else fs.LocalFileSystem()), [part for _, part in places]
    if isinstance(filesystem, str):
        filesystem, _ = fs.FileSystem.from_uri(filesystem)
    if filesystem is None:
        return fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    # that of fsspec reads no links
    if type(filesystem).__name__ == "LocalFileSystem":
        filesystem = fs.LocalFileSystem()
    elif not isinstance(filesystem, fs.FileSystem):
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    return filesystem, filesystem.normalize_path(path)


def list_files(filesystem: Any, path: str | list[str]) -> list[Any]:
    """List files, those in folders but hidden ones; a request, as a rule."""
    # slow to import, and not always needed
    from pyarrow import fs

    listed = path if isinstance(path, list) else [path]
    infos = filesystem.get_file_info(listed)
    if not isinstance(path, list) and infos[0].type == fs.FileType.Directory:
        folder = infos[0].path
        base = folder.rstrip("/")
        inside = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
        infos = [info for info in inside if info.is_file]
        infos = [info for info in infos if not _HIDDEN.search(info.path.removeprefix(base))]
    absent = [info.path for info in infos if not info.is_file]
    if absent:
        raise FileNotFoundError(absent[0])
    return sorted(infos, key=operator.attrgetter("path"))


def expand(place: Path | str, store: Any = None) -> list[Any]:
    """List the files that a pattern stands for; a name that is there stands for itself.

    Parameters
    ----------
    place
        A path on a disk, or a text for what is in a store.
    store
        The file system of pyarrow that it is in; `None`: the one that the text implies.
    """
    if isinstance(place, str):
        return _in_store(place, store)
    if place.exists():
        return [place]
    return [Path(name) for name in sorted(glob(str(place), recursive=True))]


def _in_store(pattern: str, store: Any) -> list[str]:
    """List the files in a store that a pattern stands for, if it has wildcards; none match a /.

    What follows a ? in an address, such as `s3://bucket/a?region=eu-west-1`, says how it is opened.
    """
    head, mark, options = pattern.partition("?") if store is None else (pattern, "", "")
    wildcard = _WILDCARD.search(head)
    if wildcard is None:
        return [pattern]
    require_arrow("looking into a store")
    # slow to import, and not always needed
    from pyarrow import fs

    folder = head[: wildcard.start()].rpartition("/")[0]
    base = folder
    if store is None:
        store, base = fs.FileSystem.from_uri(f"{folder}{mark}{options}")
    infos = store.get_file_info(fs.FileSelector(base, recursive=True))
    inside = sorted(info.path.removeprefix(base.rstrip("/")) for info in infos)
    pattern_parts = head.removeprefix(folder).split("/")
    return [
        f"{folder}{name}{mark}{options}"
        for name in inside
        if _is_like(name.split("/"), pattern_parts)
    ]


def _is_like(parts: list[str], pattern: list[str]) -> bool:
    """Whether a path is what a pattern says, folder by folder; ** is any number of folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_is_like(parts[n:], pattern[1:]) for n in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _is_like(parts[1:], pattern[1:])


_IN_MEMORY = ("pandas", "dask")
# of Python objects, by pandas
_GUESSED = ("datetime64", "timedelta64", "period", "interval")


@frozen(eq=False)
class Manifest:
    """What is known of a source before any of its rows is read.

    Parameters
    ----------
    door
        What reads it.
    types
        The public types of its columns by label; `None` where one cell may have decided on it.
    files
        The files that it reads; `None`: rows in memory, or nobody can tell.
    opaque
        Whether nobody can tell what it reads.
    text
        How cells of text are read; `None`: it holds values.
    """

    door: str
    types: Mapping[Hashable, str | None] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[FileId, ...] | None = None
    opaque: bool = False
    text: str | None = None

    def source(self, declaration: Declaration) -> SourceFacts:
        """Say what a ledger keeps of it: a hash of what is public, and the kinds of some columns.

        Where nothing says what the column of parts holds, parts are numbers.
        """
        ledger = declaration.ledger
        part = None if ledger is None else ledger.part
        kind = None if part is None else self._kind(part, self.types.get(part), declaration)
        if declaration.part is not None:
            kind = kind or "numbers"
        unit = declaration.unit_columns
        named = tuple((repr(label), self._certain(kind)) for label, kind in self.types.items())
        return SourceFacts(
            manifest=_hash(self.door, named, tuple(map(repr, unit)), part, self.text),
            door=self.door if self.opaque else None,
            unit=tuple(
                self._kind(label, self._certain(self.types.get(label)), declaration)
                for label in unit
            ),
            part=kind,
        )

    def _certain(self, kind: str | None) -> str | None:
        """Return a type, unless pandas may have guessed it: then one cell may have changed it.

        A release may be refused for such a type, and tells it then; what is published does not.
        """
        if self.door not in _IN_MEMORY or kind is None:
            return kind
        return None if kind == "str" or kind.startswith(_GUESSED) else kind

    def _kind(self, label: Hashable, type_name: str | None, declaration: Declaration) -> str | None:
        """Say of which kinds the values of a column are, as far as that is public.

        Bytes and texts are one kind: a plan reads ids as bytes that a frame holds as texts.
        """
        public = known_of(type_name, declaration.column(label))
        if public.kinds is None or kinds.OTHER in public.kinds:
            return None
        held = {kinds.TEXT if kind == kinds.BYTES else kind for kind in public.kinds}
        return " and ".join(sorted(held))


@lru_cache(256)
def _hash(*facts: Hashable) -> str:
    """Hash what is public of a source; the same facts are those of every release."""
    return sha256(json.dumps(facts).encode()).hexdigest()
