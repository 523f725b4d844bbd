"""A plan file: data, declaration, queries, amounts, files to write and a ledger, checked."""

import csv
import importlib
import io
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
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
from dpframe.jobs.output_paths import LedgerPlace, check_portable
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
_EXACT = 2**53  # from here on, floats no longer tell all integers apart
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
        names = ("release", "data")
        release, data = (_without(table.get(name, {}), *_NOT_DECIDING) for name in names)
        queries = {name: _without(query, "files") for name, query in table["queries"].items()}
        text = _canonical([release, data, queries, table.get("declare")])
        values = {name: self.source.values[name] for name in placeholders(text)}
        places = [str(place) for place in self.data.places] if self.data.in_call else None
        return sha256(_canonical([text, values, places, self.source.read]).encode()).hexdigest()


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _canonical(value: object) -> str:
    """Write what TOML can hold in one way."""
    return json.dumps(value, sort_keys=True, default=lambda time: f"{type(time).__name__} {time}")


def read_plan(path: Path, overrides: Overrides) -> Job:
    """Read a plan file and check all that can be checked without data and ledger."""
    plan = read_text(path, overrides.values)
    from dpframe.jobs.plan_models import check_plan  # pydantic is slow to import

    check_plan(plan)
    if overrides.name is None:
        _check_name(plan)
    sections = plan.section("queries")
    search = _search(sections)
    if search is None:
        queries = {name: _query(sections.section(name)) for name in sections.table}
    else:
        where = None if search.where is None else search.where.text
        reading: Query = of_columns.units(by=list(search.by), where=where)
        queries = dict.fromkeys(sections.table, reading)
    options = _options(plan.section("release"), sections, overrides)
    data = read_data(plan.section("data"), overrides.data)
    if search is not None:
        kinds = {str(axis.column): axis.kind for axis in search.axes}
        data = replace(data, types={**kinds, **data.types})
    ledger = plan.section("ledger")
    budget = None
    if "budget" in ledger.table:
        section = ledger.section("budget")
        budget = _check_section(section, partial(Budget, **section.table))
    return Job(
        plan=plan,
        data=data,
        declared=_read_declared(plan.section("declare"), allow_imports=overrides.allow_imports),
        queries=queries,
        options=options,
        files=output_paths.read_paths(plan, queries, options["name"]),
        ledger=_ledger(ledger),
        budget=budget,
        part=ledger.table.get("part"),
        runs_folder=ledger.path_or_none("runs_folder"),
        search=search,
    )


def _search(queries: Section) -> Discovery | None:
    """Read groups that are to be found, which no plan can do beside other queries."""
    for name in queries.table:
        section = queries.section(name)
        make = SEARCHES.get(section.table["kind"])
        if make is None:
            continue
        if len(queries.table) > 1:
            remedy = "give it a plan of its own, and the groups that it finds as keys to the others"
            raise section.error(f"is charged and released on its own: {remedy}.", "kind")
        return _check_section(section, partial(make, **_keywords(section)))
    return None


def _check_name(plan: Section) -> None:
    """Check that runs on other data have other names, or all but the first would be refused."""
    release = plan.section("release")
    name = release.table.get("name")
    texts = {"data.path": plan.section("data").table.get("path")}
    texts["release.part"] = release.table.get("part")
    keys = {value: key for key, text in reversed(texts.items()) for value in placeholders(text)}
    lacking = [value for value in keys if value not in placeholders(name)]
    if name is None or not lacking:
        return
    first, *_ = lacking
    for value in placeholders(name):
        if value not in plan.source.values and did_you_mean(value, [first]):
            raise release.error(f"{{{value}}} has no value. Did you mean {{{first}}}?", "name")
    remedy = f'Write name = "{name:.200} {" ".join(f"{{{value}}}" for value in lacking)}".'
    reason = f"release.name has no {{{first}}}, but {keys[first]} has:"
    raise release.error(f"{reason} the run on the next {first} would be refused. {remedy}", "name")


def _options(section: Section, queries: Section, overrides: Overrides) -> dict[str, Any]:
    """Read how much to spend, how, and what to record."""
    table = section.table
    options: dict[str, Any] = {name: table.get(name) for name in AMOUNTS}
    _check_section(section, lambda: Spend.of(**options))
    names = ("mechanism", "denoise", "rows", "useful")
    options |= {name: table[name] for name in names if name in table}
    within = {
        (name, output): limit
        for name, query in queries.table.items()
        for output, limit in query.get("within", {}).items()
    }
    if within:
        options["within"] = within
    mechanisms = {
        name: query["mechanism"] for name, query in queries.table.items() if "mechanism" in query
    }
    if mechanisms:
        reason = ""
        if "mechanism" in options:
            reason = "stands in [release], too: keep one of the two."
        elif len(mechanisms) < len(queries.table):
            reason = "is of this query alone: name one in every query, or one for all in [release]."
        if reason:
            raise queries.section(next(iter(mechanisms))).error(reason, "mechanism")
        options["mechanism"] = mechanisms
    options["name"] = section.text("name") if overrides.name is None else overrides.name
    if options["name"] is None:
        example = 'for instance name = "trips {month}", so that no run counts twice'
        raise section.error(f"name is missing; {example}.")
    part = table.get("part")
    options["part"] = section.text("part") if isinstance(part, str) else part
    return {**options, "note": overrides.note or section.text("note")}


def _read_declared(section: Section, *, allow_imports: bool) -> dict[str, Any]:
    """Read keywords of `declare`; whom a row belongs to must be said."""
    table = section.table
    unit = table.get("privacy_unit", EACH_ROW)
    if (unit is EACH_ROW) != bool(table.get("each_row")):
        raise section.error(
            "say whom a row belongs to, in one way: privacy_unit = the name of a column, with "
            "max_rows, or each_row = true, where every row is a person of its own."
        )
    keys = section.section("keys")
    return {
        "schema": _schema(section, allow_imports=allow_imports),
        "privacy_unit": unit,
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
    text = section.table.get("schema")
    if text is None:
        return None
    if text.lower().endswith(_YAML):
        return _from_yaml(section, section.source.path.parent / text)
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module.split("."), name]):
        rule = f'must be a YAML file, "trips.yaml", or "module:Name", got {text!r:.200}.'
        raise section.error(rule, "schema")
    if not allow_imports:
        reason = f"{text!r} imports a module, which runs its code: if you trust the plan and the"
        remedy = "module, give --allow-imports. A YAML file runs none."
        raise section.error(f"{reason} {remedy}", "schema")
    try:
        with ended_at_once():
            return getattr(importlib.import_module(module), name)
    except Exception as error:  # the module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise section.error(f"{text!r} cannot be imported: {reason:.300}.", "schema") from None


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
        reason = f"{path} is no schema that pandera wrote with to_yaml ({a_type(error)})."
        raise section.error(reason, "schema") from None


def _text_of(section: Section, path: Path, key: str) -> str:
    """Read a text file that a key names."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is no text in UTF-8")
        raise section.error(f"{path} cannot be read: {reason}.", key) from None
    section.source.read[".".join((*section.keys, key))] = sha256(text.encode()).hexdigest()
    return text


def _groups(section: Section, key: str) -> Any:
    """Read the groups of a column: a list, whole numbers in a range, or the lines of a file."""
    groups = section.table[key]
    if isinstance(groups, list):
        return groups
    table = section.section(key)
    if form_of_groups(groups) == "combinations":
        return _combinations(table)
    if ("range" in groups) == ("file" in groups):
        examples = '["A", "B"], {range = [0, 24]} or {file = "zones.txt"}'
        raise section.error(f"must be groups, {examples}, got {groups!r:.200}.", key)
    return _range(table) if "range" in groups else _lines(table)


def _combinations(section: Section) -> pd.DataFrame:
    """Read {columns = [...], rows = [[...]]}, or the columns of a CSV file with a header."""
    columns, rows = section.table["columns"], section.table.get("rows")
    if ("file" in section.table) != (rows is None):
        example = 'columns = ["country", "region"], file = "regions.csv"'
        raise section.error(f"must have either rows or a file, for instance {example}.", "columns")
    if rows is None:
        return _read_combinations(section, columns)
    if any(not isinstance(row, list) or len(row) != len(columns) for row in rows):
        raise section.error("must be lists with a key for each of columns.", "rows")
    return pd.DataFrame(rows, columns=columns)


def _read_combinations(section: Section, columns: list[str]) -> pd.DataFrame:
    """Read columns of a CSV file, each combination once; it may have further columns."""
    place, kind = _file_of(section), section.table.get("type", "string")
    header, *rows = csv.reader(io.StringIO(_text_of(section, place, "file")))
    for column in columns:
        if column not in header:
            raise section.error(f"{place} has no column {column!r:.200}.", "file")
    if any(len(row) != len(header) for row in rows):
        raise section.error(f"{place} has lines of other lengths.", "file")
    places = [header.index(column) for column in columns]
    cells = [[read_cell(kind, row[at]) for at in places] for row in rows]
    if any(None in row for row in cells):
        raise section.error(f"{place} has cells that are no {kind}.", "file")
    return pd.DataFrame(cells, columns=columns).drop_duplicates(ignore_index=True)


def _range(section: Section) -> range:
    """Read {range = [start, stop]} or [start, stop, step], without the stop, as in Python."""
    ends = section.table["range"]
    with suppress(TypeError, ValueError, OverflowError):
        numbers = range(*ends)
        if 0 < len(numbers) <= MOST_GROUPS:
            return numbers
    form = "[start, stop] or [start, stop, step] of whole numbers, without the stop"
    example = "range = [0, 24] for 0 to 23"
    raise section.error(f"must be {form}, for instance {example}, got {ends!r:.200}.", "range")


def _lines(section: Section) -> list[Any]:
    """Read the lines of a text file that are not empty, as texts or as another type."""
    place, kind = _file_of(section), section.table.get("type", "string")
    values = []
    lines = map(str.strip, _text_of(section, place, "file").splitlines())
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        values.append(read_cell(kind, line))
        if values[-1] is None:
            raise section.error(f"line {number} of {place} is no {kind}.", "file")
    return values


def _file_of(section: Section) -> Path:
    place: Path = section.source.path.parent / section.table["file"]
    if not place.is_file():
        raise section.error(f"there is no file {place}.", "file")
    return place


def _edges(section: Section, key: str) -> Any:
    """Read the edges of bins: a list, or {from = 0, to = 100, bins = 20} of equal widths."""
    bins = section.table[key]
    if not isinstance(bins, dict):
        return bins
    low, high, number = bins["from"], bins["to"], bins["bins"]
    if not 0 < number <= MOST_GROUPS or not -_FAR <= low < high <= _FAR:
        rule = f"must have 1 to {MOST_GROUPS:,} bins and from < to, both finite"
        raise section.error(f"{rule}, got {bins!r:.200}.", key)
    edges = np.linspace(low, high, number + 1)
    if (np.abs(edges) < _EXACT).all() and (edges == np.rint(edges)).all():
        return edges.astype(np.int64)  # whole numbers are shown as such
    return edges


def _pair(section: Section, key: str) -> tuple[Any, Any]:
    """Read bounds: [lower, upper]."""
    ends = section.table[key]
    if len(ends) != _ENDS:
        raise section.error(f"must be [lower, upper], got {ends!r:.200}.", key)
    return ends[0], ends[1]


def _query(section: Section) -> Query:
    """Read one query: a kind, and the keywords of the function of that name."""
    keywords = _keywords(section)
    parts = section.section("outputs")
    keywords |= {name: _query(parts.section(name)) for name in parts.table}
    return _check_section(section, partial(QUERIES[section.table["kind"]], **keywords))


def _keywords(section: Section) -> dict[str, Any]:
    """Read the keywords of a query."""
    keywords = _without(section.table, *_NO_KEYWORDS)
    keywords |= {key: read(section, key) for key, read in _READERS.items() if key in keywords}
    if section.table["kind"] == "margins":
        keywords["columns"] = _grouped_by(section, "columns")
    if isinstance(keywords.get("n"), list):  # an estimate of the rows, and its variance
        keywords["n"] = tuple(keywords["n"])
    return keywords


def form_of(value: object) -> str:
    """Tell which form of bounds or bins a value has."""
    if not isinstance(value, dict):
        return type(value).__name__
    by_column = all(isinstance(item, list | dict) for item in value.values())
    return "columns" if value and by_column else "table"


def form_of_group(value: object) -> str:
    """Tell which form of a column to group by a value has, or whether several are named."""
    if not isinstance(value, dict):
        return type(value).__name__
    return "cut" if "cut" in value else "period"


def form_of_groups(value: object) -> str:
    """Tell which form of groups a value has."""
    keys = value.keys() if isinstance(value, dict) else set()
    if isinstance(value, dict) and isinstance(value.get("columns"), list):
        if keys & {"rows", "file"}:
            return "combinations"
    return "table" if keys & {"range", "file"} else form_of(value)


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
    groups = section.table[key]
    if isinstance(groups, list):
        return [_group(section, key, group) for group in groups]
    return _group(section, key, groups)


def _group(section: Section, key: str, group: Any) -> Any:
    if not isinstance(group, dict):
        return group
    table = Section(section.source, (*section.keys, key), group)
    options = _without(group, "cut", "period")
    if "cut" not in group:
        return _check_section(table, partial(period, group["period"], **options))
    options["edges"] = _edges(table, "edges")
    return _check_section(table, partial(cut, group["cut"], **options))


def _weights(section: Section, key: str) -> Any:
    """Read a column of weights; or those of tables, {table = ["sex", "age"], weight = 4} each."""
    weights = section.table[key]
    if isinstance(weights, str):
        return weights
    by_table = {}
    for entry in weights:
        columns = tuple(entry["table"])
        if columns in by_table:
            rule = "must not name a table twice"
            raise section.error(f"{rule}, got {entry['table']!r:.200} again.", key)
        by_table[columns] = entry["weight"]
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
    if url == path:
        check_portable(section, path, "path")
    return LedgerPlace(section.path("path", path))


def _check_section(section: Section, make: Callable[[], _Made]) -> _Made:
    """Make something of a table; what is wrong with it is said with its place."""
    try:
        return make()
    except (DPFrameError, TypeError) as error:
        raise section.about(error) from None
