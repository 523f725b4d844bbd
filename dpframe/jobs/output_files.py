"""The files that a job writes: tried before anything is charged, and never lost after it."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpframe.cells.verify import look
from dpframe.context import at_the_door
from dpframe.engines.batches import temporary_folder
from dpframe.errors import CertificateError, DPFrameError, TemporaryError
from dpframe.files.csv import sidecar_of, write_csv
from dpframe.files.layout import INSTEAD
from dpframe.files.parquet import write_parquet
from dpframe.jobs.job import Job
from dpframe.jobs.output_paths import folded, read_released
from dpframe.jobs.plan_toml import Section
from dpframe.jobs.starts import DrawnFiles, WrittenFiles
from dpframe.ledger import platform
from dpframe.ledger.file import NO_ROOM
from dpframe.steps.derive import interval
from dpframe.steps.suppress import round as rounded
from dpframe.steps.suppress import suppress

_STEM = "table"
WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    ".csv": partial(write_csv, escape_formulas=True),
    ".parquet": write_parquet,
}
"""How releases are written, by suffix."""


def check_places(job: Job, *, overwrite: bool, here: bool = True) -> list[str]:
    """Check that every file can be written where it is wanted, and replaces nothing."""
    notes: list[str] = []
    read = (job.source.path, *job.ledger.files, *job.data.paths)
    taken = {folded(place.resolve()) for place in read}
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
            place = file.resolve()
            if taken.intersection(map(folded, (place, *place.parents))):
                raise error(f"{file} is a file or a folder that this job reads.", "files")
            if file.is_symlink() or (file.exists() and not file.is_file()):
                raise error(f"{file} is a link, a folder or a device, not a file.", "files")
            if file.exists() and not overwrite:
                remedy = "give --overwrite to replace it, or another name."
                raise error(f"there is a file {file} already: {remedy}", "files")
    return notes


def try_to_write(job: Job, frames: Mapping[str, pd.DataFrame], *, here: bool = True) -> int:
    """Write frames like those that will be released, and remove them again.

    They are written into the folders where they will be, or, if these are not here, among temporary
    files. Returns how many bytes they take.
    """
    published = _published(job, frames)
    size = 0
    for name, path in _places(job):
        try:
            with temporary_folder(".dpframe-trial-", path.parent if here else None) as folder:
                files = _render(published[name], path.suffix.lower(), folder)
                size += sum(map(len, files.values()))
        except (DPFrameError, OSError) as error:
            reason = _why_not(path, error)
            wrong = _section(job, name).error(f"{path} cannot be written: {reason}", "files")
            full = isinstance(error, OSError) and error.errno in NO_ROOM
            raise (TemporaryError(str(wrong)) if full else wrong) from None
    return size


def _why_not(path: Path, error: DPFrameError | OSError) -> str:
    """Say why a file cannot be written, and what a plan can do."""
    if isinstance(error, PermissionError):
        return f"the folder {path.parent} must be writable; name another, or ask for the right."
    if isinstance(error, OSError):
        return f"{error.strerror}."
    if path.suffix.lower() == ".parquet":
        reason, advice, _ = str(error).partition(" Use .dp.write_csv")
        return f"{reason} Let files end in .csv." if advice else reason
    return str(error).replace(INSTEAD, "Let files end in .parquet.")


def render_tables(
    job: Job, frames: Mapping[str, pd.DataFrame], inside: Path | None = None
) -> DrawnFiles:
    """Make the files of what was released, in memory, by way of a folder.

    Where no folder is given, that is a new one where each file will be.
    """
    published = _published(job, frames)
    tables: dict[str, dict[str, bytes]] = {name: {} for name in job.files}
    for name, path in _places(job):
        suffix = path.suffix.lower()
        if suffix in tables[name]:
            continue
        if inside is not None:
            tables[name] |= _render(published[name], suffix, inside)
            continue
        with tempfile.TemporaryDirectory(prefix=".dpframe-", dir=path.parent) as folder:
            tables[name] |= _render(published[name], suffix, Path(folder))
    return tables


def _published(job: Job, frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Do what a plan says of its tables before they are written."""
    published: dict[str, pd.DataFrame] = {}
    for name in job.files:
        section = job.plan.section("queries").section(job.asked_by[name])
        try:
            published[name] = _as_published(frames[name], section.table.get("publish", {}))
        except DPFrameError as error:
            raise section.error(str(error), "publish") from None
    return published


def _as_published(frame: pd.DataFrame, steps: Mapping[str, Any]) -> pd.DataFrame:
    """Hide cells, add intervals, and round."""
    if "suppress" in steps:
        frame = suppress(frame, **steps["suppress"])
    if "interval" in steps:
        frame = interval(frame, steps["interval"], join=True)
    if "round" in steps:
        frame = rounded(frame, steps["round"])
    return frame


def _render(frame: pd.DataFrame, suffix: str, folder: Path) -> dict[str, bytes]:
    """Write a frame and what belongs to it, and take it back, by what the names end in."""
    place = at_the_door(looking=True).place(folder / f"{_STEM}{suffix}")
    WRITERS[suffix](frame, place)
    files: dict[str, bytes] = {}
    for file in sorted(place.parent.glob(f"{place.name}*")):
        files[suffix + file.name.removeprefix(place.name)] = file.read_bytes()
        file.unlink()
    return files


def frames_of(tables: DrawnFiles) -> dict[str, pd.DataFrame]:
    """Read the tables of files that were made."""
    frames: dict[str, pd.DataFrame] = {}
    with temporary_folder("dpframe-trial-") as folder:
        for name, files in tables.items():
            for ending, content in files.items():
                (folder / f"{_STEM}{ending}").write_bytes(content)
            first = min(files, key=len)
            frames[name] = read_released(folder / f"{_STEM}{first}")
    return frames


def write_all(job: Job, tables: DrawnFiles, *, overwrite: bool) -> WrittenFiles:
    """Write what was released: each file appears as a whole, or not at all."""
    written, problems = [], []
    for name, path in _places(job):
        try:
            _write(_files_for(path, tables[name]), path, overwrite=overwrite)
            written.append(path)
        except (Exception, KeyboardInterrupt) as error:  # no release may be lost
            problems.append(f"{path} was not written: {str(error) or type(error).__name__}")
    return WrittenFiles(written, problems)


def _files_for(path: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give the files of one table that are written to a path, by their names."""
    suffix = path.suffix.lower()
    alike = {ending: content for ending, content in files.items() if ending.startswith(suffix)}
    if not alike:  # it was drawn when the plan named files of another kind
        (frame,) = frames_of({"": files}).values()
        with temporary_folder("dpframe-trial-") as folder:
            alike = _render(frame, suffix, folder)
    return {path.name + ending.removeprefix(suffix): content for ending, content in alike.items()}


def _write(files: Mapping[str, bytes], path: Path, *, overwrite: bool) -> None:
    """Write files that belong together, on disk when this returns; those that are there stay."""
    # looked up before contents: another start may write the same meanwhile
    standing = [name for name in files if (path.parent / name).exists()]
    new = {name: content for name, content in files.items() if not _holds(path, name, content)}
    taken = [path.parent / name for name in standing if name in new]
    if taken and not overwrite:
        raise FileExistsError(f"{taken[0]} was made by something else meanwhile")
    # a process that is killed leaves it, for it may hold what was paid for
    with tempfile.TemporaryDirectory(
        prefix=".dpframe-", dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        for name in sorted(new, reverse=True):  # a certificate before its table
            draft = Path(folder, name)
            with draft.open("wb") as file:
                file.write(new[name])
                file.flush()
                platform.HERE.flush(file.fileno())
            os.replace(draft, path.parent / name)
    platform.HERE.flush_folder(path.parent)


def _holds(path: Path, name: str, content: bytes) -> bool:
    place = path.parent / name
    return place.is_file() and place.read_bytes() == content


def any_file_is_there(job: Job) -> bool:
    """Whether another release of the job would replace a file, if only a certificate."""
    files = [file for _, path in _places(job) for file in _files_of_release(path)]
    return any(file.exists() for file in files)


def lost_file(job: Job, release_id: str) -> str:
    """Say which file of a job, or its certificate, is not what a release wrote."""
    reasons = (_why_lost(path, release_id) for _, path in _places(job))
    return next(filter(None, reasons), "")


def _why_lost(path: Path, release_id: str) -> str:
    """Say why a file is not that of a release; empty if it is."""
    for file in _files_of_release(path):
        if not file.is_file():
            return f"{file} is not there"
    try:
        releases = look(read_released(path)).opened.releases
    except CertificateError:
        return f"{path} is cut or was changed"
    except Exception:  # a file from anywhere makes its reader raise anything
        return f"{path} is cut, or cannot be read"
    if any(release.release_id == release_id for release in releases):
        return ""
    return f"{path} is of another release"


def _places(job: Job) -> Iterator[tuple[str, Path]]:
    context = at_the_door(looking=True)
    return ((name, context.place(path)) for name, paths in job.files.items() for path in paths)


def _files_of_release(path: Path) -> list[Path]:
    """List the files that one release makes."""
    return [path, sidecar_of(path)] if path.suffix.lower() == ".csv" else [path]


def _section(job: Job, name: str) -> Section:
    """Return the table that says where a release is written to."""
    section = job.plan.section("queries").section(job.asked_by[name])
    return section if "files" in section.table else job.plan.section("release")
