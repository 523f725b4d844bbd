"""A plan file: data, declaration, queries, amounts, files to write and a ledger, checked."""

import csv
import importlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dpframe.arguments import MOST_GROUPS
from dpframe.context import cached_property
from dpframe.errors import DPFrameError, a_type
from dpframe.frozen import frozen
from dpframe.jobs import output_paths
from dpframe.jobs.data import Data, read_data
from dpframe.jobs.output_paths import LedgerPlace, why_not_portable
from dpframe.jobs.plan_toml import PlanText, Section, did_you_mean, placeholders, read_text
from dpframe.jobs.stopping import ended_at_once
from dpframe.ledger.store import is_url
from dpframe.privacy.amounts import AMOUNTS, Budget, Spend
from dpframe.privacy.neighbors import EACH_ROW
from dpframe.privacy.selection import SELECT
from dpframe.queries import binned, of_columns
from dpframe.queries.aggregate import aggregate
from dpframe.queries.binned import Quantile, ranges
from dpframe.queries.groups import cut, period
from dpframe.queries.margins import margins
from dpframe.queries.of_columns import regression
from dpframe.queries.query import Query, Request
from dpframe.queries.searches import Discovery, discover
from dpframe.sources.cells import read_cell
from dpframe.steps.quantiles import quantile

CAPS = ("max_rows", "max_groups", "max_rows_per_group")
BUDGET = ("epsilon", "delta", "discovery")
QUERIES: dict[str, Callable[..., Query]] = {
    "count": of_columns.count,
    "rate": of_columns.rate,
    "sum": of_columns.sum,
    "mean": of_columns.mean,
    "var": of_columns.var,
    "std": of_columns.std,
    "cov": of_columns.cov,
    "corr": of_columns.corr,
    "slope": of_columns.slope,
    "regression": regression,
    "histogram": binned.histogram,
    "ranges": ranges,
    "quantile": quantile,
    "units": of_columns.units,
    "aggregate": aggregate,
    "margins": margins,
}
SEARCHES: dict[str, Callable[..., Discovery]] = {"discover": discover}
_NOT_DECIDING = ("files", "name", "note", "spill_folder")  # names are found as they are
_NO_KEYWORDS = {"kind", "within", "mechanism", "publish", "files", "outputs"}
_YAML = (".yaml", ".yml")
_ENDS = 2  # of an interval: low and high
_FAR = 1e300  # edges stay finite
_Made = TypeVar("_Made")


@frozen(slots=True)
class Overrides:
    """What is given in the call of a job, in place of what the plan says."""

    values: Mapping[str, str] = field(default_factory=dict)  # what placeholders stand for, by name
    data: tuple[str, ...] = ()  # paths of the data
    name: str | None = None  # name of the release in the ledger
    note: str | None = None  # what else to keep with it
    allow_imports: bool = False  # whether a schema may be imported from a module


@frozen
class Job:
    """A plan that was read: nothing of the data is known yet."""

    plan: Section  # the outermost table of the file, for errors
    data: Data  # where the private rows are
    declared: Mapping[str, Any]  # keywords of `declare`, but for the ledger
    queries: Mapping[str, Query]  # what is asked, by name
    options: Mapping[str, Any]  # keywords of `release`
    files: Mapping[str, tuple[Path, ...]]  # where each release is written to, by name of the table
    ledger: LedgerPlace  # the file of the ledger, or its database
    budget: Budget | None  # what the plan says of the budget; `None`: nothing
    part: str | None = None  # the column whose every value has that budget, as the plan says
    # where runs keep what they drew until it is written, as the plan says
    runs_folder: Path | None = None
    # groups to be found, in place of the one query, which then says what is read for it
    search: Discovery | None = None

    @cached_property
    def asked_by(self) -> Mapping[str, str]:
        """The names of the queries, by those of the tables."""
        return {
            table: name
            for name, query in self.queries.items()
            for table in output_paths.table_names(name, query)
        }

    @property
    def request(self) -> Request:
        """What is released: all queries together, or what is released on its own."""
        if self.search is not None:
            return self.search
        return next(iter(self.queries.values())) if self.is_alone else self.queries

    @property
    def is_alone(self) -> bool:
        """Whether the one query is released on its own: it finds groups, or is selected."""
        if self.search is not None:
            return True
        first, *others = self.queries.values()
        selected = self.options.get("mechanism") == SELECT
        return selected and not others and isinstance(first, Quantile)

    @property
    def spool_folder(self) -> Path:
        """The folder in which runs keep what they drew until it is written."""
        if self.runs_folder is not None:
            return self.runs_folder
        for file in self.ledger.files:
            return file.with_name(f"{file.name}.runs")
        name = str(self.ledger).rpartition("ledger=")[2]
        return self.source.path.with_name(f"{name}.runs")

    @property
    def source(self) -> PlanText:
        """The file that says so."""
        return self.plan.source

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that decides what is released: not of places of files, nor of comments."""
        table = self.plan.table
        asked, read = (table.get(one, {}) for one in ("release", "data"))
        release, data = (_without(one, *_NOT_DECIDING) for one in (asked, read))
        queries = {name: _without(query, "files") for name, query in table["queries"].items()}
        text = _canonical([release, data, queries, table.get("declare")])
        named = {one: self.source.values[one] for one in placeholders(text)}
        given = [str(place) for place in self.data.places] if self.data.given else None
        return sha256(_canonical([text, named, given, self.source.read]).encode()).hexdigest()


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _canonical(value: object) -> str:
    """Write what TOML can hold in one way."""
    return json.dumps(value, sort_keys=True, default=lambda time: f"{type(time).__name__} {time}")


def read_plan(path: Path, given: Overrides) -> Job:
    """Read a plan file and check all that can be checked without data and ledger."""
    plan = read_text(path, given.values)
    from dpframe.jobs.plan_models import check_plan  # pydantic is slow to import

    check_plan(plan)
    if given.name is None:
        _check_name(plan)
    asked = plan.section("queries")
    search = _search(asked)
    if search is None:
        queries = {name: _query(asked.section(name)) for name in asked.table}
    else:
        where = None if search.where is None else search.where.text
        reading: Query = of_columns.units(by=list(search.by), where=where)
        queries = dict.fromkeys(asked.table, reading)
    options = _options(plan.section("release"), asked, given)
    data = read_data(plan.section("data"), given.data)
    if search is not None:
        kinds = {str(axis.column): axis.kind for axis in search.axes}
        data = replace(data, types={**kinds, **data.types})
    ledger = plan.section("ledger")
    folder = ledger.table.get("runs_folder")
    budget = ledger.section("budget") if "budget" in ledger.table else None
    return Job(
        plan=plan,
        data=data,
        declared=_read_declared(plan.section("declare"), allow_imports=given.allow_imports),
        queries=queries,
        options=options,
        files=output_paths.read_paths(plan, queries, options["name"]),
        ledger=_ledger(ledger),
        budget=None if budget is None else _check_section(budget, partial(Budget, **budget.table)),
        part=ledger.table.get("part"),
        runs_folder=None if folder is None else ledger.path("runs_folder", folder),
        search=search,
    )


def _search(asked: Section) -> Discovery | None:
    """Read groups that are to be found, which no plan can do beside other queries."""
    for name in asked.table:
        section = asked.section(name)
        make = SEARCHES.get(section.table["kind"])
        if make is None:
            continue
        if len(asked.table) > 1:
            way = "give it a plan of its own, and the groups that it finds as keys to the others"
            raise section.error(f"is charged and released on its own: {way}.", "kind")
        return _check_section(section, partial(make, **_keywords(section)))
    return None


def _check_name(plan: Section) -> None:
    """Check that runs on other data have other names, or all but the first would be refused."""
    release = plan.section("release")
    name = release.table.get("name")
    read = {"data.path": plan.section("data").table.get("path")}
    read["release.part"] = release.table.get("part")
    data = {one: key for key, text in reversed(read.items()) for one in placeholders(text)}
    lacking = [f"{{{one}}}" for one in data if one not in placeholders(name)]
    if name is not None and lacking:
        wrong = [one for one in placeholders(name) if one not in plan.source.values]
        if near := [one for one in wrong if did_you_mean(one, [lacking[0][1:-1]])]:
            raise release.error(f"{{{near[0]}}} has no value. Did you mean {lacking[0]}?", "name")
        way = f'Write name = "{name:.200} {" ".join(lacking)}".'
        refused = f"the run on the next {lacking[0][1:-1]} would be refused"
        where = data[lacking[0][1:-1]]
        why = f"release.name has no {lacking[0]}, but {where} has: {refused}. {way}"
        raise release.error(why, "name")


def _options(section: Section, queries: Section, given: Overrides) -> dict[str, Any]:
    """Read how much to spend, how, and what to record."""
    table = section.table
    options: dict[str, Any] = {name: table.get(name) for name in AMOUNTS}
    _check_section(section, lambda: Spend.of(**options))
    named_here = ("mechanism", "denoise", "rows", "useful")
    options |= {name: table[name] for name in named_here if name in table}
    limits = {name: queries.section(name).table.get("within", {}) for name in queries.table}
    within = {(name, out): most for name, own in limits.items() for out, most in own.items()}
    options |= {"within": within} if within else {}
    sections = {name: queries.section(name) for name in queries.table}
    named_there = {
        n: own.table["mechanism"] for n, own in sections.items() if "mechanism" in own.table
    }
    if named_there:
        if "mechanism" in options or len(named_there) < len(sections):
            way = "name one in every query, or one for all in [release]."
            first = sections[next(iter(named_there))]
            raise first.error(f"is of this query alone: {way}", "mechanism")
        options["mechanism"] = named_there
    named = section.text("name") if given.name is None else given.name
    if named is None:
        way = 'for instance name = "trips {month}", so that no run counts twice'
        raise section.error(f"name is missing; {way}.")
    part = table.get("part")
    options["part"] = section.text("part") if isinstance(part, str) else part
    return {**options, "name": named, "note": given.note or section.text("note")}


def _read_declared(section: Section, *, allow_imports: bool) -> dict[str, Any]:
    """Read keywords of `declare`; whom a row belongs to must be said."""
    table = section.table
    unit = table.get("privacy_unit")
    if (unit is None) != bool(table.get("each_row")):
        raise section.error(
            "say whom a row belongs to, in one way: privacy_unit = the name of a column, with "
            "max_rows, or each_row = true, where every row is a person of its own."
        )
    keys = section.section("keys")
    return {
        "schema": _schema(section, allow_imports=allow_imports),
        "privacy_unit": EACH_ROW if unit is None else unit,
        "unit": table.get("unit"),
        **{cap: table.get(cap) for cap in CAPS},
        "neighboring": table.get("neighboring", "add_remove"),
        "keys": {name: _groups(keys, name) for name in keys.table},
        "bounds": _READERS["bounds"](section, "bounds") if "bounds" in table else {},
        "missing": dict(table.get("missing", {})),
        "name": section.text("name"),
    }


def _schema(section: Section, *, allow_imports: bool) -> Any:
    """Read what the key `schema` names; `None` where it is not given.

    A YAML file is data. A module is code that runs when it is imported, which whoever starts the
    job must have allowed.
    """
    named = section.table.get("schema")
    if named is None:
        return None
    if named.lower().endswith(_YAML):
        return _from_yaml(section, section.source.path.parent / named)
    module, colon, name = named.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        why = f'must be a YAML file, "trips.yaml", or "module:Name", got {named!r:.200}.'
        raise section.error(why, "schema")
    if not allow_imports:
        way = "if you trust the plan and the module, give --allow-imports. A YAML file runs none."
        why = f"{named!r} imports a module, which runs its code: {way}"
        raise section.error(why, "schema")
    try:
        with ended_at_once():
            return getattr(importlib.import_module(module), name)
    except Exception as error:  # the module may raise anything
        why = f"{type(error).__name__}: {error}"
        raise section.error(f"{named!r} cannot be imported: {why:.300}.", "schema") from None


def _from_yaml(section: Section, path: Path) -> Any:
    """Read a schema that pandera wrote."""
    text = _text_of(section, path, "schema")
    try:
        import yaml  # comes with an extra of pandera  # noqa: F401
        from pandera.io.pandas_io import from_yaml  # slow to import, and not always needed
    except ImportError:
        needed = "reading a schema from YAML needs PyYAML: pip install 'pandera[io]'."
        raise section.error(needed, "schema") from None
    read: Any = from_yaml
    try:
        return read(io.StringIO(text))
    except Exception as error:  # whatever the file makes of pandera
        why = f"{path} is no schema that pandera wrote with to_yaml ({a_type(error)})."
        raise section.error(why, "schema") from None


def _text_of(section: Section, path: Path, key: str) -> str:
    """Read a text file that a key names."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise section.error(f"{path} cannot be read: {why}.", key) from None
    section.source.read[".".join((*section.keys, key))] = sha256(text.encode()).hexdigest()
    return text


def _groups(section: Section, key: str) -> Any:
    """Read the groups of a column: a list, whole numbers in a range, or the lines of a file."""
    given = section.table[key]
    if isinstance(given, list):
        return given
    if form_of_groups(given) == "combinations":
        return _combinations(section.section(key))
    if ("range" in given) == ("file" in given):
        such = '["A", "B"], {range = [0, 24]} or {file = "zones.txt"}'
        raise section.error(f"must be groups, {such}, got {given!r:.200}.", key)
    return (_range if "range" in given else _lines)(section.section(key))


def _combinations(section: Section) -> pd.DataFrame:
    """Read {columns = [...], rows = [[...]]}, or the columns of a CSV file with a header."""
    columns, rows = section.table["columns"], section.table.get("rows")
    if ("file" in section.table) != (rows is None):
        such = 'columns = ["country", "region"], file = "regions.csv"'
        raise section.error(f"must have either rows or a file, for instance {such}.", "columns")
    if rows is None:
        return _read_combinations(section, columns)
    if any(not isinstance(row, list) or len(row) != len(columns) for row in rows):
        raise section.error("must be lists with a key for each of columns.", "rows")
    return pd.DataFrame(rows, columns=columns)


def _read_combinations(section: Section, columns: list[str]) -> pd.DataFrame:
    """Read columns of a CSV file, each combination once; it may have further columns."""
    place, kind = _file_of(section), section.table.get("type", "string")
    header, *rows = csv.reader(io.StringIO(_text_of(section, place, "file")))
    missing = [column for column in columns if column not in header]
    if missing or any(len(row) != len(header) for row in rows):
        why = f"no column {missing[0]!r:.200}" if missing else "lines of other lengths"
        raise section.error(f"{place} has {why}.", "file")
    places = [header.index(column) for column in columns]
    found = [[read_cell(kind, row[at]) for at in places] for row in rows]
    if any(value is None for row in found for value in row):
        raise section.error(f"{place} has cells that are no {kind}.", "file")
    return pd.DataFrame(found, columns=columns).drop_duplicates(ignore_index=True)


def _range(section: Section) -> range:
    """Read {range = [start, stop]} or [start, stop, step], without the stop, as in Python."""
    ends = section.table["range"]
    try:
        found = range(*ends)
        if 0 < len(found) <= MOST_GROUPS:
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    form = "[start, stop] or [start, stop, step] of whole numbers, without the stop"
    such = "range = [0, 24] for 0 to 23"
    raise section.error(f"must be {form}, for instance {such}, got {ends!r:.200}.", "range")


def _lines(section: Section) -> list[Any]:
    """Read the lines of a text file that are not empty, as texts or as another type."""
    place, kind = _file_of(section), section.table.get("type", "string")
    lines = [line.strip() for line in _text_of(section, place, "file").splitlines()]
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line]
    values = [read_cell(kind, line) for _, line in numbered]
    for (number, _), value in zip(numbered, values, strict=True):
        if value is None:
            raise section.error(f"line {number} of {place} is no {kind}.", "file")
    return values


def _file_of(section: Section) -> Path:
    place: Path = section.source.path.parent / section.table["file"]
    if not place.is_file():
        raise section.error(f"there is no file {place}.", "file")
    return place


def _edges(section: Section, key: str) -> Any:
    """Read the edges of bins: a list, or {from = 0, to = 100, bins = 20} of equal widths."""
    given = section.table[key]
    if not isinstance(given, dict):
        return given
    low, high, number = given["from"], given["to"], given["bins"]
    if not 0 < number <= MOST_GROUPS or not -_FAR <= low < high <= _FAR:
        rule = f"must have 1 to {MOST_GROUPS:,} bins and from < to, both finite"
        raise section.error(f"{rule}, got {given!r:.200}.", key)
    edges = np.linspace(low, high, number + 1)
    whole = (np.abs(edges) < 2**53).all() and (edges == np.rint(edges)).all()
    return edges.astype(np.int64) if whole else edges  # whole numbers are shown as such


def _pair(section: Section, key: str) -> tuple[Any, Any]:
    """Read bounds: [lower, upper]."""
    given = section.table[key]
    if len(given) != _ENDS:
        raise section.error(f"must be [lower, upper], got {given!r:.200}.", key)
    return given[0], given[1]


def _query(section: Section) -> Query:
    """Read one query: a kind, and the keywords of the function of that name."""
    keywords = _keywords(section)
    parts = section.section("outputs")
    keywords |= {name: _query(parts.section(name)) for name in parts.table}
    return _check_section(section, partial(QUERIES[section.table["kind"]], **keywords))


def _keywords(section: Section) -> dict[str, Any]:
    """Read the keywords of a query."""
    keywords = {key: given for key, given in section.table.items() if key not in _NO_KEYWORDS}
    keywords |= {key: read(section, key) for key, read in _READERS.items() if key in keywords}
    if section.table["kind"] == "margins":
        keywords["columns"] = _grouped_by(section, "columns")
    if isinstance(keywords.get("n"), list):  # an estimate of the rows, and its variance
        keywords["n"] = tuple(keywords["n"])
    return keywords


def form_of(given: object) -> str:
    """Tell which form of bounds or bins is given."""
    if not isinstance(given, dict):
        return type(given).__name__
    by_column = all(isinstance(value, list | dict) for value in given.values())
    return "columns" if given and by_column else "table"


def form_of_group(given: object) -> str:
    """Tell which form of a column to group by is given, or whether several are."""
    if not isinstance(given, dict):
        return type(given).__name__
    return "cut" if "cut" in given else "period"


def form_of_groups(given: object) -> str:
    """Tell which form of groups is given."""
    if isinstance(given, dict) and isinstance(given.get("columns"), list):
        if given.keys() & {"rows", "file"}:
            return "combinations"
    one_level = isinstance(given, dict) and given.keys() & {"range", "file"}
    return "table" if one_level else form_of(given)


def _by_column(
    read: Callable[[Section, str], Any], tell: Callable[[object], str] = form_of
) -> Callable[[Section, str], Any]:
    """Read a value, or a table of such values by column."""

    def read_all(section: Section, key: str) -> Any:
        if tell(section.table[key]) != "columns":
            return read(section, key)
        table = section.section(key)
        return {column: read(table, column) for column in table.table}

    return read_all


def _grouped_by(section: Section, key: str) -> Any:
    """Read columns to group by, of which some may be cut or read as periods."""
    given = section.table[key]
    if isinstance(given, list):
        return [_group(section, key, part) for part in given]
    return _group(section, key, given)


def _group(section: Section, key: str, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    own = Section(section.source, (*section.keys, key), given)
    others = {name: value for name, value in given.items() if name not in ("cut", "period")}
    if "cut" not in given:
        return _check_section(own, partial(period, given["period"], **others))
    others["edges"] = _edges(own, "edges")
    return _check_section(own, partial(cut, given["cut"], **others))


def _weights(section: Section, key: str) -> Any:
    """Read a column of weights; or those of tables, {table = ["sex", "age"], weight = 4} each."""
    weights = section.table[key]
    if isinstance(weights, str):
        return weights
    by_table = {}
    for given in weights:
        columns = tuple(given["table"])
        if columns in by_table:
            rule = "must not name a table twice"
            raise section.error(f"{rule}, got {given['table']!r:.200} again.", key)
        by_table[columns] = given["weight"]
    return by_table


_READERS: dict[str, Callable[[Section, str], Any]] = {
    **dict.fromkeys(("where", "condition"), Section.text),
    "keys": _by_column(_groups, form_of_groups),
    "by": _grouped_by,
    "bounds": _by_column(_pair),
    "bins": _by_column(_edges),
    "weights": _weights,
}


def _ledger(section: Section) -> LedgerPlace:
    path: str = section.table["path"]
    url = section.fill_text("path", path, environment=True)
    if is_url(url):
        return LedgerPlace(url)
    if url == path and (why := why_not_portable(path)):
        raise section.error(f"{why}: give another name, for plans travel.", "path")
    return LedgerPlace(section.path("path", path))


def _check_section(section: Section, make: Callable[[], _Made]) -> _Made:
    """Make something of a table; what is wrong with it is said with its place."""
    try:
        return make()
    except (DPFrameError, TypeError) as error:
        raise section.about(error) from None
