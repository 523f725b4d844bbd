"""A job is tried without data, and then made: checked, charged once, written."""

import shlex
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpframe import errors
from dpframe.accessors.private import Scan
from dpframe.columns import pa, require_arrow
from dpframe.context import at_the_door
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame, engine_for
from dpframe.engines.batches import remove_leftovers, temporary_folder
from dpframe.engines.sources import source_of
from dpframe.frozen import frozen
from dpframe.jobs.data import kinds_of_columns
from dpframe.jobs.job import Job
from dpframe.jobs.output_files import (
    WrittenFiles,
    check_places,
    frames_of,
    lost_files,
    render_tables,
    try_to_write,
    write_all,
)
from dpframe.jobs.output_paths import LedgerPlace, by_table, opened_ledger
from dpframe.jobs.plan_toml import keys_of
from dpframe.jobs.starts import DrawnFiles, Published, Start, Written, digest_of
from dpframe.jobs.stopping import Stage, Stopped, set_stage
from dpframe.ledger.leases import MOST_AGAIN, ChargedRun
from dpframe.ledger.ledger import Ledger, copy_in_memory
from dpframe.ledger.log import Entry
from dpframe.operations.declare import declare, facts_of
from dpframe.operations.diagnose import diagnose
from dpframe.operations.planning import in_part, plan, release
from dpframe.privacy.amounts import AMOUNTS, Budget
from dpframe.sources.cells import STRING
from dpframe.sources.text import ID, type_of

PATIENCE = 120.0
"""Seconds that a release waits for another start of its run: most runs take less."""

_PLANNED = (*AMOUNTS, "mechanism", "part", "within", "rows", "useful", "denoise")
_TIMES = ("time", "times")
_CLEAR = (
    errors.AlreadyReleasedError,
    errors.BudgetExceededError,
    errors.LedgerError,
    errors.PlanFileError,
    errors.ReleaseError,
    errors.TemporaryError,
)


@frozen(slots=True)
class Tried:
    """What a job would do."""

    table: pd.DataFrame  # cost and error of every output, as plans show them
    fits: bool  # whether the budget allows it
    ledger: Ledger  # the ledger as it is, in memory
    warned: tuple[str, ...]  # what protects people less than it seems to
    size: int  # bytes of the files of tables without rows
    scan: Scan  # the data, opened
    needed: Mapping[str, str | None]  # columns that are read, with what they hold


@frozen(slots=True)
class Done:
    """What a job did."""

    frames: Mapping[str, pd.DataFrame]  # the releases, by name of the table
    ledger: Ledger  # the ledger that was charged
    files: WrittenFiles  # those that were written, and those that were not
    published: Published  # the same in memory, and where they are kept
    warned: tuple[str, ...]  # what protects people less than it seems to


def preview_job(
    job: Job, *, overwrite: bool = False, rows: float | None = None, with_data: bool = True
) -> Tried:
    """Try a job on a frame without rows, with a copy of the ledger: all that can fail beforehand.

    What depends on rows are the released numbers alone, so that the rest can be seen without any:
    cost, errors, groups, and whether the files can be written.
    """
    if with_data:
        job = replace(job, data=job.data.expanded())
    for folder in {path.parent for paths in job.files.values() for path in paths}:
        remove_leftovers(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ledger = ledger_now(job, here=with_data)
        name = job.options["name"]
        run = _run_of(job, ledger)
        tried = copy_in_memory(ledger).of_plan(job.digest, name)
        scan, needed = open_data(job, tried, with_data=with_data)
        frame = scan.without_rows()
        declare_plan(job, frame, tried)
        tried.check_name(name)
        try:
            asked = {name: job.options[name] for name in _PLANNED if name in job.options}
            if rows is not None and not job.is_alone:
                asked["rows"] = rows  # of queries whose errors depend on them
            planned = plan(frame, job.request, **asked)
            table, fits = planned.table, planned.fits
            notes = check_places(job, overwrite=overwrite, here=with_data)
            size = try_to_write(job, _released(job, frame), here=with_data) if fits else 0
        except _CLEAR:
            raise
        except errors.DPFrameError as error:
            raise place_error(job, error) from None
    job.data.check_typed(needed)
    notes += [] if run is None else [_begins_again(run)]
    return Tried(table, fits, ledger, (*_said(caught), *notes), size, scan, needed)


def open_data(
    job: Job, ledger: Ledger, *, with_data: bool = True
) -> tuple[Scan, Mapping[str, str | None]]:
    """Open the data of a plan, and say which columns are read, with what they hold.

    What is wrong with a column is said where the plan names it first.
    """
    try:
        declared = replace(plan_facts(job), ledger=ledger).in_part(job.options["part"])
    except errors.PlanFileError:
        raise
    except errors.DPFrameError as error:
        raise place_error(job, error) from None
    asked: Any = in_part(declared, job.queries)
    labels = [label for query in asked.values() for label in query.labels]
    facts = [label for name in ("keys", "bounds", "missing") for label in job.declared[name]]
    part = [] if ledger.part is None else [ledger.part]
    named = dict.fromkeys([*labels, *facts, *declared.unit_columns, *part])
    found = kinds_of_columns([*named, *declared.columns], declared, asked.values(), job.data.types)
    if not with_data:
        return _nothing(found), found
    types = {**found}
    for label in found.keys() - {*labels}:
        is_id = label in declared.unit_columns and found[label] == STRING
        types[label] = ID if is_id else found[label] or STRING  # an id has any encoding
    try:
        scan = job.data.scan(types, found.keys() - named)
        scan.check(named)
    except errors.PlanFileError:
        raise
    except errors.DPFrameError as error:
        raise _place_column(job, error) from None
    if job.data.form == "csv":
        return scan, {label: types.get(label, ID) for label in scan.columns}
    known = engine_for(scan).manifest(scan).types
    needed = {label: known[label] for label in found if label in known}
    if declared.unit_columns:
        scan.check_room(needed, [query.condition for query in asked.values()])
    return scan, needed


def _nothing(kinds: Mapping[str, str | None]) -> Scan:
    """Make a frame of columns without rows, where no data are."""
    require_arrow("a plan without data")
    fields = [(label, type_of(kind)) for label, kind in kinds.items()]
    return Scan(source_of(pa.schema(fields).empty_table()))


def _place_column(job: Job, error: errors.DPFrameError) -> errors.PlanFileError:
    """Say where a plan names a column first that files lack, or hold in another way."""
    queries = job.plan.section("queries")
    for section in (*map(queries.section, job.queries), job.plan.section("declare")):
        if keys_of(section.table, error):
            return section.about(error)
    return job.data.error(str(error))


def _run_of(job: Job, ledger: Ledger) -> ChargedRun | None:
    """Return what became of an earlier run of the same name, which must have had the same plan."""
    name = job.options["name"]
    run = ledger.run_of(name)
    if run is not None and run.entry.plan != job.digest:
        whose = "without a plan" if run.entry.plan is None else "by another plan"
        why = f"{name!r} was released {whose}, at {run.entry.released_at}, and is not done by this"
        way = "Nothing was spent. Give another name, or put back the plan that it was."
        raise job.plan.section("release").error(f"{why} one. {way}", "name")
    return run


def _begins_again(run: ChargedRun) -> str:
    """Say that a run costs nothing, and how often one still will."""
    left = MOST_AGAIN - run.state.epoch - 1
    after = (
        f"It may begin again {left} more {_TIMES[left > 1]}" if left else "This is the last time"
    )
    return (
        f"a run of this name was charged at {run.entry.released_at} and ended, or stood still, "
        "before its noise: "
        f"it begins again, and is charged nothing. {after}."
    )


def release_job(
    job: Job,
    *,
    overwrite: bool = False,
    begin: Callable[[], object] = lambda: None,
    patience: float = PATIENCE,
) -> Done:
    """Start a run: try it, say that it begins, read the data, release in one charge, and write.

    If another start is at work, or was, then this one waits for it, goes on after it, or writes the
    files that it did not.

    Raises
    ------
    AlreadyReleasedError
        If the files are written.
    ReleaseError
        If what was charged is not released, or lost.
    RunPausedError
        If another start is still at work.
    """
    job = replace(job, data=job.data.expanded())
    work = JobWork(job, overwrite=overwrite, begin=begin)
    if at_the_door(looking=True).is_test:  # nothing is paid for, and nobody else is there
        return work.try_once()
    start = _start_of(job, work, patience)
    return work.done(start.ledger, start.run())


def _start_of(job: Job, work: "JobWork", patience: float) -> Start:
    ledger, name = _opened_ledger(job, job.ledger), job.options["name"]

    def at_stake(stake: bool) -> None:
        set_stage(Stage.SPENT if stake else Stage.UNSPENT)

    return Start(ledger, job.digest, name, job.spool_folder, work, patience, at_stake)


def start_of(job: Job) -> Start:
    """Return the next start of a job, to see what it would do."""
    return _start_of(job, JobWork(job), patience=0)


class JobWork:
    """What a plan asks a run to do.

    Parameters
    ----------
    job
        The plan, with the files of its data.
    overwrite
        Whether files that are there are replaced.
    begin
        Called before data are read.
    """

    def __init__(
        self, job: Job, *, overwrite: bool = False, begin: Callable[[], object] = lambda: None
    ) -> None:
        self.job, self.overwrite, self._begin = job, overwrite, begin
        self._tried: Tried | None = None
        self._frame: Frame | None = None
        self._drawn: dict[str, pd.DataFrame] | None = None
        self._files = WrittenFiles([], [])

    def prepare(self) -> int:
        """Try it without rows, and open the data."""
        self._tried = preview_job(self.job, overwrite=self.overwrite)
        self._begin()
        self._frame = self.job.data.rows(self._tried.scan, self._tried.needed)
        return self._tried.size

    def release(self, charged: Ledger) -> None:
        """Release in one charge."""
        assert self._tried is not None  # noqa: S101  # it was prepared
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.DPFrameWarning)  # was said when it was tried
            declare_plan(self.job, self._frame, charged)
            self._drawn = _release_job(self.job, self._frame, charged)

    def render(self, inside: Path | None) -> DrawnFiles:
        """Make files of what was drawn."""
        assert self._drawn is not None  # noqa: S101  # it was released
        return render_tables(self.job, self._drawn, inside)

    def write(self, tables: DrawnFiles) -> Written:
        """Write the files to where the plan wants them."""
        self._files = write_all(self.job, tables, overwrite=self.overwrite)
        if not self._files.failed:
            set_stage(Stage.WRITTEN)
        contents = [file for files in tables.values() for file in files.values()]
        return Written(tuple(map(digest_of, contents)), not self._files.failed)

    def missing(self, entry: Entry) -> str:
        """Say which file is not what was released."""
        return next(iter(lost_files(self.job, entry.release_id)), "")

    def try_once(self) -> Done:
        """Release in a testing block."""
        ledger = _opened_ledger(self.job, self.job.ledger)
        self.prepare()
        self.release(ledger.of_plan(self.job.digest, self.job.options["name"]))
        tables = self.render(None)
        written = self.write(tables)
        return self.done(ledger, Published(tables, written, None))

    def done(self, ledger: Ledger, published: Published) -> Done:
        """Say what was done."""
        frames = frames_of(published.tables) if self._drawn is None else self._drawn
        warned = (_PUBLISHED,) if self._tried is None else self._tried.warned
        return Done(frames, ledger, self._files, published, warned)


_PUBLISHED = "an earlier start drew this release and kept it: it is charged nothing"


def _release_job(job: Job, frame: Frame, ledger: Ledger) -> dict[str, pd.DataFrame]:
    """Release; whatever ends this after the charge is a `ReleaseError`."""
    try:
        frames = _released(job, frame)
        set_stage(Stage.SPENT)
    except errors.ReleaseError:
        set_stage(Stage.SPENT)
        raise
    except errors.DPFrameError:  # nothing was charged, or the run goes on elsewhere
        set_stage(Stage.UNSPENT)
        raise
    except BaseException as error:  # an interrupt may come anywhere, and memory end anywhere
        set_stage(Stage.SPENT)
        stage = _stage_by(ledger, job.options["name"])
        if stage is Stage.UNSPENT or (stage is Stage.CHARGED and isinstance(error, Stopped)):
            set_stage(stage)
            raise
        ended = str(error) if isinstance(error, Stopped) else type(error).__name__
    else:
        return frames
    raise errors.ReleaseError(f"the release was ended after its amount was charged: {ended}.")


def _released(job: Job, frame: Frame) -> dict[str, pd.DataFrame]:
    """Release what a job asks for, and return its tables by name."""
    made: Any = release(frame, job.request, **job.options)
    return by_table({name: made for name in job.queries} if job.is_alone else made, job.queries)


def _stage_by(ledger: Ledger, name: str) -> Stage:
    """Say how far a run has come, by what its ledger holds; if in doubt, it has spent."""
    try:
        run = ledger.run_of(name)
    except errors.DPFrameError:
        return Stage.SPENT
    if run is None:
        return Stage.UNSPENT
    return Stage.CHARGED if run.may_begin_again else Stage.SPENT


def is_used_up(job: Job) -> bool:
    """Whether nothing is left of the ledger of a job, or of the part of it that the job spends."""
    return ledger_now(job, here=False).status(part=job.options["part"]).largest_share == 0


def place_error(job: Job, error: errors.DPFrameError) -> errors.PlanFileError:
    """Say which query an error is about, or that it is about the amounts, which all share."""
    amounts, declares = job.plan.section("release"), job.plan.section("declare")
    query = next(iter(job.queries)) if job.is_alone else error.query
    if isinstance(query, str) and query in job.queries:
        section = job.plan.section("queries").section(query)
        keys = keys_of(section.table, error)
        if error.parameter in declares.table and error.parameter not in keys:
            return declares.about(error)
        if keys or not keys_of(amounts.table, error):
            return section.about(error)
    return amounts.about(error)


def plan_facts(job: Job) -> Declaration:
    """Read what a plan declares."""
    try:
        return facts_of(job.declared["schema"], job.declared)
    except errors.DPFrameError as error:
        raise job.plan.section("declare").about(error) from None


def declare_plan(job: Job, frame: Frame, ledger: Ledger) -> None:
    """Declare a frame as a plan says."""
    try:
        declare(frame, **job.declared, ledger=ledger)
    except errors.LedgerError:
        raise
    except errors.DPFrameError as error:
        raise job.plan.section("declare").about(error) from None


def ledger_now(job: Job, *, here: bool) -> Ledger:
    """Return the ledger as it is, in memory; one that is not made yet is as the plan says.

    Reading one locks it, which needs rights to write: where the job is only reviewed, it is copied.
    """
    if not job.ledger.exists() and job.budget is not None:
        return Ledger(budget=job.budget, part=job.part)
    files = [file for file in job.ledger.files if file.is_file()]
    if here or not files:
        return copy_in_memory(_opened_ledger(job, job.ledger))
    with temporary_folder("dpframe-ledger-") as folder:
        copy = folder / "copy.ledger"
        shutil.copyfile(files[0], copy)
        return copy_in_memory(_opened_ledger(job, LedgerPlace(copy)))


def _opened_ledger(job: Job, where: LedgerPlace) -> Ledger:
    """Open the ledger, or a copy, which must be there: a new one would forget what was spent."""
    error, path = job.plan.section("ledger").error, job.ledger
    if not path.exists():
        raise error(f"there is no ledger {path}. {_to_make(job)}", "path")
    try:
        ledger = opened_ledger(where)
    except PermissionError:
        wrong = f"{path} and its folder must be readable and writable: ask for the right."
        raise error(wrong, "path") from None
    except OSError as wrong:
        raise error(f"{path}: {wrong}", "path") from None
    if job.part is not None and job.part != ledger.part:
        if ledger.part is None:
            rule = f"is for a ledger with a budget for each part, and {path} has one for all."
            way = "Leave part out, or create another ledger with --create --part."
            raise error(f"{rule} {way}", "part")
        raise error(f"must be that of {path}, {ledger.part!r}, got {job.part!r:.200}.", "part")
    if job.budget is not None and job.budget != ledger.budget:
        way = "Write that one, or leave budget out of the plan; another needs another ledger."
        raise error(f"must be that of {path}, {ledger.budget}, got {job.budget}. {way}", "budget")
    return ledger


def not_made(job: Job) -> str:
    """Say that the ledger of a plan is not there; empty if it is."""
    if job.ledger.exists():
        return ""
    return f"the ledger {job.ledger} is not made yet: a release is refused. {_to_make(job)}"


def _to_make(job: Job) -> str:
    """Say how the ledger of a plan is made."""
    place = str(job.ledger)
    # the shell fills in a variable between these marks
    place = f'"{place}"' if "${" in place else shlex.quote(place)
    amounts = _amounts(job.budget)
    if job.part is not None:
        amounts = f"{amounts} --part {shlex.quote(job.part)}"
    return f"Make it once, for all runs: dpframe ledger {place} --create {amounts}."


def _amounts(budget: Budget | None) -> str:
    """Give a budget as options of the command that makes a ledger."""
    if budget is None:
        return "--epsilon 1 --delta 1e-6, or as large as the budget shall be"
    kept = f" --discovery {budget.discovery:g}" if budget.discovery else ""
    return f"--epsilon {budget.epsilon!r} --delta {budget.delta!r}{kept}"


def _said(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return what was warned of, once each."""
    own = [one.message for one in caught if issubclass(one.category, errors.DPFrameWarning)]
    return tuple(dict.fromkeys(map(str, own)))


def diagnose_job(job: Job) -> Mapping[str, pd.DataFrame]:
    """Read the rows of a plan, and say where each is left out; the ledger stays as it is."""
    job = replace(job, data=job.data.expanded())
    ledger = copy_in_memory(ledger_now(job, here=False))
    scan, needed = open_data(job, ledger)
    job.data.check_typed(needed)
    frame = job.data.rows(scan, needed)
    declare_plan(job, frame, ledger)
    try:
        found = diagnose(frame, job.request, part=job.options["part"])
    except errors.DPFrameError as error:
        raise place_error(job, error) from None
    return {next(iter(job.queries)): found} if job.is_alone else dict(found)
