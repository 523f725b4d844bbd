"""The spool: what a run drew, kept in one file until all its files are written.

It holds the released tables alone, as they are to be published, so that whoever finds it can do so
after any crash: `<ledger>.runs/<release_id>.zip`, which its owner alone may read. It appears as a
whole, on disk, or not at all. All that can fail beforehand is done before the charge.
"""

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from dpframe.engines.temporary import remove_leftovers, temporary_folder
from dpframe.errors import TemporaryError
from dpframe.ledger import platform
from dpframe.ledger.failures import NO_ROOM
from dpframe.ledger.runs import Spool

DrawnFiles: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""Files by name of the table and by what their names end in: a CSV table has a certificate, too."""

_MARGIN = 1 << 12  # bytes for names and lengths in the file
_GROWS = 2  # values take at most so many times the room of those of a trial without rows
_DRAFT = "spool"
_ROOM = "room"


def place_of_spool(folder: Path, release_id: str) -> Path:
    """Say where what a release drew is kept."""
    return folder / f"{release_id}.zip"


def look_for_spool(folders: list[Path], release_id: str) -> tuple[Spool, Path | None]:
    """Say whether what a release drew is in one of some folders, and where."""
    unseen = False
    for folder in folders:
        place = place_of_spool(folder, release_id)
        try:
            os.stat(place)
        except FileNotFoundError:
            continue
        except OSError:  # others may not look into it
            unseen = True
        else:
            return Spool.THERE, place
    return (Spool.UNSEEN if unseen else Spool.ABSENT), None


class Draft:
    """A file that is open, with room on the disk, before anything is charged."""

    def __init__(self, folder: Path, inside: Path, size: int) -> None:
        self.folder, self.inside = folder, inside
        self._room = _GROWS * size + _MARGIN
        _reserve(inside / _DRAFT, self._room)
        _reserve(inside / _ROOM, self._room)

    def make_room(self) -> None:
        """Give back what was reserved for files that are made on the way into the spool."""
        os.unlink(self.inside / _ROOM)

    def keep(self, tables: DrawnFiles, release_id: str) -> str:
        """Keep what was drawn, and return the SHA-256 of the file, in hexadecimal.

        Raises
        ------
        OSError
            If it cannot be kept, though there was room.
        """
        packed = pack(tables)
        draft, place = self.inside / _DRAFT, place_of_spool(self.folder, release_id)
        handle = os.open(draft, os.O_WRONLY)
        try:
            _write(handle, packed)
            os.ftruncate(handle, len(packed))
            platform.HERE.flush(handle)
        finally:
            os.close(handle)
        os.replace(draft, place)
        platform.HERE.flush_folder(self.folder)
        return digest_of(packed)


@contextmanager
def opened_draft(folder: Path, size: int) -> Iterator[Draft]:
    """Open a draft of a spool in a folder, which is made if need be, for tables of some bytes.

    Raises
    ------
    TemporaryError
        If there is no room on the disk.
    OSError
        If the folder cannot be used.
    """
    folder.mkdir(exist_ok=True)
    remove_leftovers(folder)
    try:
        with temporary_folder(".dpframe-trial-", folder) as inside:
            yield _drafted(folder, inside, size)
    finally:
        remove_empty(folder)


def _drafted(folder: Path, inside: Path, size: int) -> Draft:
    try:
        return Draft(folder, inside, size)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        why = f"{folder} has no room for what is drawn ({error.strerror}): nothing was charged."
        raise TemporaryError(f"{why} Make room on the disk, and try again.") from None


def remove_empty(folder: Path) -> None:
    """Remove a folder of spools that has none."""
    with suppress(OSError):
        os.rmdir(folder)


def read_spool(place: Path) -> tuple[DrawnFiles, str]:
    """Read what was kept, and the SHA-256 of the file.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is damaged.
    """
    packed = place.read_bytes()
    return unpack(packed), digest_of(packed)


def remove_spool(place: Path) -> None:
    """Remove what is published by now."""
    with suppress(OSError):
        os.unlink(place)
    remove_empty(place.parent)


def pack(tables: DrawnFiles) -> bytes:
    """Put tables into one archive, which is the same for the same tables."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, (table, files) in enumerate(tables.items(), start=1):
            for ending, content in files.items():
                member = zipfile.ZipInfo(f"{number}/table{ending}")
                member.comment = table.encode()
                archive.writestr(member, content)
    return packed.getvalue()


def unpack(packed: bytes) -> DrawnFiles:
    """Take tables out of an archive."""
    tables: dict[str, dict[str, bytes]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            for member in archive.infolist():
                ending = member.filename.partition("table")[2]
                tables.setdefault(member.comment.decode(), {})[ending] = archive.read(member)
    except (zipfile.BadZipFile, UnicodeDecodeError, EOFError) as error:
        raise ValueError("it is damaged") from error
    return tables


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return sha256(content).hexdigest()


def _write(handle: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(handle, content[written:])


def _reserve(path: Path, size: int) -> None:
    """Make a file that takes so much room on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            _write(handle, bytes(size))
    finally:
        os.close(handle)
