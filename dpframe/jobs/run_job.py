"""A job is tried without data, and then made: checked, charged once, written."""

import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
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
    check_places,
    frames_of,
    lost_file,
    render_tables,
    try_to_write,
    write_all,
)
from dpframe.jobs.output_paths import LedgerPlace, by_table, opened_ledger
from dpframe.jobs.plan_toml import keys_of
from dpframe.jobs.starts import DrawnFiles, Published, Start, WrittenFiles
from dpframe.jobs.stopping import Stage, Stopped, set_spent, set_stage
from dpframe.ledger.leases import MOST_AGAIN, ChargedRun
from dpframe.ledger.ledger import Ledger, copy_in_memory
from dpframe.ledger.log import Entry
from dpframe.operations.declare import declare, facts_of
from dpframe.operations.diagnose import diagnose
from dpframe.operations.planning import in_part, plan, release
from dpframe.privacy.amounts import AMOUNTS
from dpframe.sources.cells import STRING
from dpframe.sources.text import ID, type_of

PATIENCE = 120.0
"""Seconds that a release waits for another start of its run: most runs take less."""

_PLANNED = (*AMOUNTS, "mechanism", "part", "within", "rows", "useful", "denoise")
_CLEAR = (
    errors.AlreadyReleasedError,
    errors.BudgetExceededError,
    errors.LedgerError,
    errors.PlanFileError,
    errors.ReleaseError,
    errors.TemporaryError,
)


@contextmanager
def _placed(place: Callable[[errors.DPFrameError], errors.PlanFileError]) -> Iterator[None]:
    """Let errors say where in the plan they are from, unless they are clear as they are."""
    try:
        yield
    except _CLEAR:
        raise
    except errors.DPFrameError as error:
        raise place(error) from None


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
    published: Published  # the same as files, and where they are kept
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
        with _placed(partial(place_error, job)):
            options = {name: job.options[name] for name in _PLANNED if name in job.options}
            if rows is not None and not job.is_alone:
                options["rows"] = rows  # of queries whose errors depend on them
            planned = plan(frame, job.request, **options)
            table, fits = planned.table, planned.fits
            notes = check_places(job, overwrite=overwrite, here=with_data)
            size = try_to_write(job, _released(job, frame), here=with_data) if fits else 0
    job.data.check_typed(needed)
    notes += [] if run is None else [_begins_again(run)]
    return Tried(table, fits, ledger, (*_ours(caught), *notes), size, scan, needed)


def open_data(
    job: Job, ledger: Ledger, *, with_data: bool = True
) -> tuple[Scan, Mapping[str, str | None]]:
    """Open the data of a plan, and say which columns are read, with what they hold.

    What is wrong with a column is said where the plan names it first.
    """
    with _placed(partial(place_error, job)):
        declared = replace(plan_facts(job), ledger=ledger).in_part(job.options["part"])
    queries: Any = in_part(declared, job.queries)
    labels = [label for query in queries.values() for label in query.labels]
    facts = [label for name in ("keys", "bounds", "missing") for label in job.declared[name]]
    part = [] if ledger.part is None else [ledger.part]
    named = dict.fromkeys([*labels, *facts, *declared.unit_columns, *part])
    kinds = kinds_of_columns(
        [*named, *declared.columns], declared, queries.values(), job.data.types
    )
    if not with_data:
        return _nothing(kinds), kinds
    types = {**kinds}
    for label in kinds.keys() - {*labels}:
        is_id = label in declared.unit_columns and kinds[label] == STRING
        types[label] = ID if is_id else kinds[label] or STRING  # an id has any encoding
    with _placed(partial(_place_column, job)):
        scan = job.data.scan(types, kinds.keys() - named)
        scan.check(named)
    if job.data.form == "csv":
        return scan, {label: types.get(label, ID) for label in scan.columns}
    present = engine_for(scan).manifest(scan).types
    needed = {label: present[label] for label in kinds if label in present}
    if declared.unit_columns:
        scan.check_room(needed, [query.condition for query in queries.values()])
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
        reason = f"{name!r} was released {whose}, at {run.entry.released_at}, and is not done by"
        remedy = "this one. Nothing was spent. Give another name, or put back the plan that it was."
        raise job.plan.section("release").error(f"{reason} {remedy}", "name")
    return run


def _begins_again(run: ChargedRun) -> str:
    """Say that a run costs nothing, and how often one still will."""
    left = MOST_AGAIN - run.state.epoch - 1
    limit = f"It may begin again {left} more time{'s' * (left > 1)}."
    return (
        f"a run of this name was charged at {run.entry.released_at} and ended, or stood still, "
        "before its noise: it begins again, and is charged nothing. "
        f"{limit if left else 'This is the last time.'}"
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
    return Start(ledger, job.digest, name, job.spool_folder, work, patience, set_spent)


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

    def write(self, tables: DrawnFiles) -> WrittenFiles:
        """Write the files to where the plan wants them."""
        files = write_all(self.job, tables, overwrite=self.overwrite)
        if files.all_there:
            set_stage(Stage.WRITTEN)
        return files

    def missing(self, entry: Entry) -> str:
        """Say which file is not what was released."""
        return lost_file(self.job, entry.release_id)

    def try_once(self) -> Done:
        """Release in a testing block."""
        ledger = _opened_ledger(self.job, self.job.ledger)
        self.prepare()
        self.release(ledger.of_plan(self.job.digest, self.job.options["name"]))
        tables = self.render(None)
        return self.done(ledger, Published(tables, self.write(tables)))

    def done(self, ledger: Ledger, published: Published) -> Done:
        """Say what was done."""
        frames = frames_of(published.tables) if self._drawn is None else self._drawn
        warned = (_PUBLISHED,) if self._tried is None else self._tried.warned
        return Done(frames, ledger, published, warned)


_PUBLISHED = "an earlier start drew this release and kept it: it is charged nothing"


def _release_job(job: Job, frame: Frame, ledger: Ledger) -> dict[str, pd.DataFrame]:
    """Release; whatever ends this after the charge is a `ReleaseError`."""
    try:
        frames = _released(job, frame)
        set_spent(True)
    except errors.DPFrameError as error:
        # of others, nothing was charged, or the run goes on elsewhere
        set_spent(isinstance(error, errors.ReleaseError))
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
    frames: Any = release(frame, job.request, **job.options)
    if job.is_alone:
        frames = dict.fromkeys(job.queries, frames)
    return by_table(frames, job.queries)


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
    with _placed(job.plan.section("declare").about):
        return facts_of(job.declared["schema"], job.declared)


def declare_plan(job: Job, frame: Frame, ledger: Ledger) -> None:
    """Declare a frame as a plan says."""
    with _placed(job.plan.section("declare").about):
        declare(frame, **job.declared, ledger=ledger)


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
            remedy = "Leave part out, or create another ledger with --create --part."
            raise error(f"{rule} {remedy}", "part")
        raise error(f"must be that of {path}, {ledger.part!r}, got {job.part!r:.200}.", "part")
    if job.budget is not None and job.budget != ledger.budget:
        rule = f"must be that of {path}, {ledger.budget}, got {job.budget}."
        remedy = "Write that one, or leave budget out of the plan; another needs another ledger."
        raise error(f"{rule} {remedy}", "budget")
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
    options = "--epsilon 1 --delta 1e-6, or as large as the budget shall be"
    if job.budget is not None:
        options = f"--epsilon {job.budget.epsilon!r} --delta {job.budget.delta!r}"
        if job.budget.discovery:
            options = f"{options} --discovery {job.budget.discovery:g}"
    if job.part is not None:
        options = f"{options} --part {shlex.quote(job.part)}"
    return f"Make it once, for all runs: dpframe ledger {place} --create {options}."


def _ours(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return what this package warned of, once each."""
    texts = [str(w.message) for w in caught if issubclass(w.category, errors.DPFrameWarning)]
    return tuple(dict.fromkeys(texts))


def diagnose_job(job: Job) -> Mapping[str, pd.DataFrame]:
    """Read the rows of a plan, and say where each is left out; the ledger stays as it is."""
    job = replace(job, data=job.data.expanded())
    ledger = copy_in_memory(ledger_now(job, here=False))
    scan, needed = open_data(job, ledger)
    job.data.check_typed(needed)
    frame = job.data.rows(scan, needed)
    declare_plan(job, frame, ledger)
    with _placed(partial(place_error, job)):
        diagnoses = diagnose(frame, job.request, part=job.options["part"])
    return dict.fromkeys(job.queries, diagnoses) if job.is_alone else dict(diagnoses)
