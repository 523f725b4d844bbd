"""A plan is rehearsed: it runs on made-up rows in a testing block, and writes into a folder."""

import math
import warnings
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from dpframe.declaration.facts import Declaration
from dpframe.declaration.kinds import cells_of_dtype
from dpframe.engines.batches import temporary_folder
from dpframe.errors import DeclarationError, DPFrameError, DPFrameWarning, PlanFileError
from dpframe.frozen import frozen
from dpframe.jobs.data import Data
from dpframe.jobs.job import Job
from dpframe.jobs.output_paths import LedgerPlace
from dpframe.jobs.run_job import Tried, ledger_now, plan_facts, preview_job, release_job
from dpframe.jobs.stopping import unspent
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.parts import check_part, number_of
from dpframe.privacy.amounts import Budget
from dpframe.queries.edges import moment_of
from dpframe.queries.query import Query
from dpframe.reporting.report import report
from dpframe.sources.cells import Dialect
from dpframe.sources.match import claims_of_query, type_of_cells
from dpframe.testing import seeded_noise
from dpframe.testing.rehearsal import CellFacts, cells_of_schema, make_rows

_Files: TypeAlias = Mapping[str, tuple[Path, ...]]

PAGE = "TEST-report.html"
_ANOTHER = "another text"
_DAY = timedelta(days=1)


@frozen(slots=True)
class Rehearsal:
    """What came of a job on made-up rows."""

    tried: Tried  # what it would cost, with the whole budget
    written: list[Path]  # the files that were written
    problems: list[str]  # which files were not, and why


@frozen(slots=True)
class MadeUp:
    """Which rows are made up."""

    rows: int = 1000
    seed: int = 0
    nasty: bool = False


def rehearse_job(job: Job, folder: Path, made_up: MadeUp, *, overwrite: bool = False) -> Rehearsal:
    """Run a job on made-up rows, with a ledger of its own, and write into a folder.

    The data, the ledger and the files of the plan are not touched. All that is written is marked
    as a test.
    """
    _check_folder(job, folder)
    page = folder / PAGE
    files = _files_in(folder, job.files)
    for place in (page, *(path for paths in files.values() for path in paths)):
        if place.is_symlink():
            raise _wrong_folder(f"{place} is a link, not a file. Remove it.")
    if page.exists() and not overwrite:
        raise _wrong_folder(f"there is a file {page} already: give --overwrite to replace it.")
    budget, column = _budget(job), _part(job)
    frame = _rows(job, made_up, column)
    with temporary_folder("dpframe-rows-") as place, unspent():
        Ledger.create(place / "made-up.ledger", budget=budget, part=column)
        elsewhere = replace(
            job,
            data=_stored(job.data, frame, place),
            files=files,
            ledger=LedgerPlace(place / "made-up.ledger"),
            budget=None,
        )
        with seeded_noise(made_up.seed, folder=folder):
            folder.mkdir(parents=True, exist_ok=True)
            tried = preview_job(elsewhere, overwrite=overwrite)
            if not tried.fits:
                return Rehearsal(tried, [], [])
            done = release_job(elsewhere, overwrite=overwrite)
            tried = replace(tried, table=_in_groups(tried.table, made_up.rows, done.frames))
            published = done.published.files
            written, problems = [*published.written], [*published.problems]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DPFrameWarning)  # was said when it was tried
                    title = str(job.options["name"])
                    page.unlink(missing_ok=True)  # a file of another name may be the same
                    report(done.frames, path=page, ledger=done.ledger, title=title)
                written.append(page)
            except DPFrameError as error:  # Jinja2 is optional
                tried = replace(tried, warned=(*tried.warned, f"{page} was not written: {error}"))
    return Rehearsal(tried, written, problems)


def _in_groups(table: pd.DataFrame, rows: int, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Show errors of means in a group of average size of a table, of so many rows in all."""
    if "per" not in table:  # groups are looked for
        return table
    most = max([1, *map(len, frames.values())])
    groups = {str(name): len(frame) for name, frame in frames.items()}
    names = map(str, table.index.get_level_values(0))
    sizes = [rows / (groups.get(name) or most) for name in names]
    size = pd.Series(sizes, table.index)[table["per"] == "1 / rows"]
    errors = [*table.columns[table.columns.str.startswith(("std_error", "half_width"))]]
    shown = table.copy()
    shown.loc[size.index, errors] = shown.loc[size.index, errors].div(size, axis=0)
    shown.loc[size.index, "per"] = size.map("cell of {:.6g} rows".format)
    return shown


def _wrong_folder(reason: str) -> PlanFileError:
    return PlanFileError(f"--output: {reason}", parameter="output")


def _check_folder(job: Job, folder: Path) -> None:
    """Check that nothing of a plan is in a folder, and the folder is not in its data."""
    inside = folder.resolve()
    files = [path for paths in job.files.values() for path in paths]
    for path in (job.source.path, *job.ledger.files, *job.data.paths, *files):
        place = path.resolve()
        if place.is_relative_to(inside):
            raise _wrong_folder(f"{folder} is where the plan keeps {path}. Name another folder.")
    if any(inside.is_relative_to(path.resolve()) for path in job.data.paths):
        raise _wrong_folder(f"{folder} is in the data. Name another folder.")
    if folder.exists() and not folder.is_dir():
        raise _wrong_folder(f"{folder} is not a folder. Name another one.")


def _budget(job: Job) -> Budget:
    """Return the whole budget: that of the plan, or that of its ledger."""
    if job.budget is None and not job.ledger.exists():
        reason = f"there is no ledger {job.ledger}, and no budget in the plan"
        remedy = "write budget = { epsilon = 1, delta = 1e-6 }, or as large as it shall be"
        raise job.plan.section("ledger").error(f"{reason}: {remedy}.", "path")
    return job.budget or ledger_now(job, here=False).budget


def _part(job: Job) -> str | None:
    """Return the column whose values have a budget each: that of the plan, or of its ledger."""
    return job.part if job.part or not job.ledger.exists() else ledger_now(job, here=False).part


def _files_in(folder: Path, files: _Files) -> _Files:
    """Choose places in one folder for all files; if any are called alike, all are numbered."""
    names = [path.name.casefold() for paths in files.values() for path in paths]
    alike = len(set(names)) < len(names)
    numbers = count(1)
    return {
        table: tuple(folder / f"TEST-{f'{next(numbers)}-' * alike}{path.name}" for path in paths)
        for table, paths in files.items()
    }


def _rows(job: Job, made_up: MadeUp, column: str | None) -> pd.DataFrame:
    """Make up the rows of a plan from what it declares and asks, in parts by a column if any."""
    facts = plan_facts(job)
    queries = job.queries.values()
    cells = cells_of_schema(job.declared["schema"])
    labels = dict.fromkeys(label for query in queries for label in query.labels)
    part = job.options["part"]
    claims = [claim for query in queries for claim in claims_of_query(facts, query)]

    def kind_of(label: Hashable) -> str | None:
        kind = job.data.types.get(str(label))
        return kind or type_of_cells(label, facts, claims, guess=True)

    if column is not None:
        labels[column] = None
        if part is not None and facts.column(column).keys is None:
            facts = _with_fact(facts, "keys", column, _parts(part, kind_of(column)))
    for label in dict.fromkeys([*labels, *facts.columns, *facts.unit_columns]):
        if label not in cells:
            nullable = facts.column(label).missing is not None
            cells[label] = CellFacts(kind_of(label) or "string", nullable=nullable)
    for query in queries:
        if isinstance(query.keys, pd.DataFrame):
            facts = _with_fact(facts, "keys", tuple(query.keys.columns), query.keys)
        for name, label, value in _named_values(facts, query, cells):
            of_column = facts.column(label)
            if of_column.keys is None and of_column.bounds is None:
                facts = _with_fact(facts, name, label, value)
    others = {label: facts.column(label) for label in labels if label not in facts.columns}
    facts = replace(facts, columns={**facts.columns, **others})
    return make_rows(facts, cells, made_up.rows, made_up.seed, nasty=made_up.nasty)


def _with_fact(facts: Declaration, name: str, label: Hashable, value: object) -> Declaration:
    fact: Any = {name: {label: value}}
    try:
        return facts.with_facts(**fact)
    except DeclarationError:  # what cannot be declared may be asked for, such as an open bin
        return facts


def _parts(value: object, kind: str | None) -> list[object]:
    """Give the part that a plan reads, and another one, as a column has them."""
    part = check_part(value)
    number = number_of(part)
    if number is None or kind in (None, "string"):
        return [part, _ANOTHER]
    return [number, number + 1] if kind == "float64" else [int(number), int(not number)]


def _named_values(
    facts: Declaration, query: Query, cells: Mapping[Hashable, CellFacts]
) -> Iterator[tuple[str, Hashable, object]]:
    """Say which keys and bounds a query has itself, and what its conditions compare with."""
    compared: dict[Hashable, list[float | str]] = {}
    for claim in claims_of_query(facts, query):
        if claim.parameter == "keys":
            yield "keys", claim.label, claim.values
        elif claim.parameter in ("bounds", "bins"):
            yield "bounds", claim.label, claim.value
        elif claim.constant is not None:
            compared.setdefault(claim.label, []).append(claim.constant)
    for label, values in compared.items():
        texts = [value for value in values if isinstance(value, str)]
        kind = cells[label].kind
        times = [moment for moment in map(moment_of, texts) if moment and _is_of(moment, kind)]
        if times:
            yield "bounds", label, (min(times) - _DAY, max(times) + _DAY)
        elif texts:
            yield "keys", label, [*dict.fromkeys(texts), _ANOTHER]
        else:
            numbers: Any = values
            yield "bounds", label, (math.floor(min(numbers)) - 1, math.ceil(max(numbers)) + 1)


def _is_of(moment: datetime, kind: str) -> bool:
    """Whether a point in time, which is not among the first or the last, is of a kind."""
    if not datetime.min.year < moment.year < datetime.max.year:
        return False
    return kind == ("datetime" if moment.tzinfo is None else "datetime-utc")


def _stored(data: Data, frame: pd.DataFrame, folder: Path) -> Data:
    """Write made-up rows as the data of the plan are written, and return where they are."""
    ending = {"csv": ".csv", "feather": ".feather", "parquet": ".parquet"}[data.form]
    place = folder / f"made-up{ending}"
    if data.form == "csv":
        _write_text(frame, place, data.dialect)
    elif data.form == "feather":
        frame.to_feather(place)
    else:
        frame.to_parquet(place)
    return replace(data, places=(place,), filesystem=None, in_call=False)


def _write_text(frame: pd.DataFrame, place: Path, dialect: Dialect) -> None:
    """Write made-up rows as text files of a plan are written."""
    words = {True: dialect.true[0], False: dialect.false[0]}
    form = dialect.dates[0] if dialect.dates else None
    shown = frame.copy()
    for label, column in frame.items():
        if cells_of_dtype(column.dtype) == "bool":
            shown[label] = column.map(words).astype(object)
        elif form is not None and column.dtype == object:
            days = [value.strftime(form) if isinstance(value, date) else value for value in column]
            shown[label] = pd.Series(days, column.index, dtype=object)
    shown.to_csv(
        place,
        index=False,
        sep=dialect.separator,
        encoding=dialect.encoding,
        errors="replace",
        decimal=dialect.decimal,
        date_format=form,
    )
