"""The files that a job writes: tried before anything is charged, and never lost after it."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from dpframe.certificates.verify import verify
from dpframe.engines.temporary import temporary_folder
from dpframe.errors import CertificateError, DPFrameError, TemporaryError
from dpframe.files.csv import INSTEAD, sidecar_of, write_csv
from dpframe.files.parquet import write_parquet
from dpframe.jobs.job import Job
from dpframe.jobs.plan_toml import Section
from dpframe.jobs.released_files import read_released
from dpframe.ledger.failures import NO_ROOM
from dpframe.privacy import seam

WRITERS = {".csv": write_csv, ".parquet": write_parquet}
"""How releases are written, by suffix."""


def check_places(job: Job, *, overwrite: bool, here: bool = True) -> list[str]:
    """Check that every file can be written where it is wanted, and replaces nothing."""
    notes: list[str] = []
    own = {place.resolve() for place in (job.source.path, *job.ledger.files, *job.data.paths)}
    for name, path in _places(job):
        error = _section(job, name).error
        if path.suffix.lower() not in WRITERS:
            raise error(f"{path} must end in {' or '.join(WRITERS)}.", "files")
        if not path.parent.is_dir():
            if not here:
                notes.append(f"there is no folder {path.parent} here; a release needs it.")
                continue
            raise error(f"there is no folder {path.parent}: make it first.", "files")
        for file in _files_of_release(path):
            if file.resolve() in own or any(place in file.resolve().parents for place in own):
                raise error(f"{file} is a file or a folder that this job reads.", "files")
            if file.is_symlink() or (file.exists() and not file.is_file()):
                raise error(f"{file} is a link, a folder or a device, not a file.", "files")
            if file.exists() and not overwrite:
                way = "give --overwrite to replace it, or another name."
                raise error(f"there is a file {file} already: {way}", "files")
    return notes


def try_to_write(job: Job, frames: Mapping[str, pd.DataFrame], *, here: bool = True) -> None:
    """Write frames like those that will be released, and remove them again.

    They are written into the folders where they will be, or, if these are not here, among temporary
    files.
    """
    for name, path in _places(job):
        try:
            with temporary_folder(".dpframe-trial-", path.parent if here else None) as folder:
                WRITERS[path.suffix.lower()](frames[name], folder / path.name)
        except (DPFrameError, OSError) as error:
            why = _why_not(frames[name], path, error)
            wrong = _section(job, name).error(f"{path} cannot be written: {why}", "files")
            full = isinstance(error, OSError) and error.errno in NO_ROOM
            raise (TemporaryError(str(wrong)) if full else wrong) from None


def _why_not(frame: pd.DataFrame, path: Path, error: DPFrameError | OSError) -> str:
    """Say why a file cannot be written, and what a plan can do."""
    if isinstance(error, PermissionError):
        return f"the folder {path.parent} must be writable; name another, or ask for the right."
    if isinstance(error, OSError):
        return f"{error.strerror}."
    levels = [frame.index.get_level_values(at) for at in range(frame.index.nlevels)]
    objects = [level for level in levels if level.dtype == object]
    odd = [repr(one.name) for one in objects if not all(isinstance(key, str) for key in one)]
    if path.suffix.lower() == ".parquet":
        why, advice, _ = str(error).partition(" Use .dp.write_csv")
        return f"{why} Let files end in .csv." if advice else why
    if not odd:
        return str(error).replace(INSTEAD, "Let files end in .parquet.")
    why = f"the keys of {', '.join(odd)} are dates, or of several kinds"
    return f"{why}, which have no form in a CSV file. Let files end in .parquet."


def write_all(
    job: Job, frames: Mapping[str, pd.DataFrame], *, overwrite: bool
) -> tuple[list[Path], list[tuple[str, Path, str]]]:
    """Write what was released: each file appears as a whole, or not at all.

    Returns
    -------
    written, failed
        The files that were written; and query, path and reason of those that were not.
    """
    written, failed = [], []
    for name, path in _places(job):
        try:
            _write(frames[name], path, overwrite=overwrite)
            written.append(path)
        except (Exception, KeyboardInterrupt) as error:  # no release may be lost
            failed.append((name, path, str(error) or type(error).__name__))
    return written, failed


def _write(frame: pd.DataFrame, path: Path, *, overwrite: bool) -> None:
    # a process that is killed leaves it, for it may hold what was paid for
    with tempfile.TemporaryDirectory(
        prefix=".dpframe-", dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        WRITERS[path.suffix.lower()](frame, Path(folder, path.name))
        for made in sorted(Path(folder).iterdir(), reverse=True):  # a certificate before its table
            place = path.parent / made.name
            if place.exists() and not overwrite:
                raise FileExistsError(f"{place} was made by something else meanwhile")
            os.replace(made, place)


def lost_files(job: Job, release_id: str) -> list[str]:
    """Say which files of a job, and their certificates, are not what a release wrote."""
    return list(filter(None, (_why_lost(path, release_id) for _, path in _places(job))))


def _why_lost(path: Path, release_id: str) -> str:
    """Say why a file is not that of a release; empty if it is."""
    for file in _files_of_release(path):
        if not file.is_file():
            return f"{file} is not there"
    try:
        releases = verify(read_released(path)).releases
    except CertificateError:
        return f"{path} is cut or was changed"
    except Exception:  # a file from anywhere makes its reader raise anything
        return f"{path} is cut, or cannot be read"
    known = any(one.release_id == release_id for one in releases)
    return "" if known else f"{path} is of another release"


def rescue_frames(job: Job, frames: Mapping[str, pd.DataFrame]) -> Path | None:
    """Write releases that could not be written where they should be into a new folder."""
    for place in (
        *(file.parent for file in job.ledger.files),
        Path.cwd(),
        Path(tempfile.gettempdir()),
    ):
        folder = None
        try:
            there = seam.place(place / "released").parent
            folder = Path(tempfile.mkdtemp(prefix="dpframe-released-", dir=there))
            for number, (name, frame) in enumerate(frames.items(), start=1):
                suffix = job.files[name][0].suffix.lower()
                WRITERS[suffix](frame, folder / f"{number}-{_plain(name)}{suffix}")
        except (Exception, KeyboardInterrupt):  # the next place may be better
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        else:
            return folder
    return None


def _plain(name: str) -> str:
    """Return what is left of a name that any system takes for one of a file."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)[:50]


def _places(job: Job) -> Iterator[tuple[str, Path]]:
    return ((name, seam.place(path)) for name, paths in job.files.items() for path in paths)


def _files_of_release(path: Path) -> list[Path]:
    """List the files that one release makes."""
    return [path, sidecar_of(path)] if path.suffix.lower() == ".csv" else [path]


def _section(job: Job, name: str) -> Section:
    """Return the table that says where a release is written to."""
    section = job.plan.section("queries").section(job.asked_by[name])
    return section if "files" in section.table else job.plan.section("release")
