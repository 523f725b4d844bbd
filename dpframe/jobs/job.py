"""A plan file: data, declaration, queries, amounts, files to write and a ledger, checked."""

import importlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpframe.arguments import MOST_GROUPS
from dpframe.errors import DPFrameError, a_type
from dpframe.forks import cached_property
from dpframe.jobs import output_paths
from dpframe.jobs.data import Data, read_data
from dpframe.jobs.plan_toml import PlanText, Section, did_you_mean, placeholders, read_text
from dpframe.jobs.portable_names import why_not_portable
from dpframe.jobs.released_files import LedgerPlace
from dpframe.jobs.stopping import ended_at_once
from dpframe.ledger.store import is_url
from dpframe.privacy.amounts import AMOUNTS, Budget, Spend
from dpframe.privacy.neighbors import EACH_ROW
from dpframe.privacy.selection import SELECT
from dpframe.queries import association, binned, counts, sums_and_means
from dpframe.queries.aggregate import aggregate
from dpframe.queries.binned import ranges
from dpframe.queries.discovery import Discovery, discover
from dpframe.queries.margins import margins
from dpframe.queries.quantiles import LEVEL
from dpframe.queries.query import Query, Request
from dpframe.sources.cells import KINDS, read_cell
from dpframe.steps.quantiles import quantile

TABLES = ("data", "declare", "queries", "release", "ledger", "values")
CAPS = ("max_rows", "max_groups", "max_rows_per_group")
_FACTS = ("keys", "bounds", "missing")
DECLARE = ("schema", "each_row", "privacy_unit", "unit", *CAPS, "neighboring", *_FACTS, "name")
_AMOUNT = (int, float, str)  # a text such as "1/12" is read by whoever spends it
RELEASE = (*AMOUNTS, "mechanism", "denoise", "name", "note", "part", "files")
BUDGET = ("epsilon", "delta", "discovery")
QUERIES: dict[str, Callable[..., Query]] = {
    "count": counts.count,
    "rate": counts.rate,
    "sum": sums_and_means.sum,
    "mean": sums_and_means.mean,
    "var": sums_and_means.var,
    "std": sums_and_means.std,
    "cov": association.cov,
    "corr": association.corr,
    "slope": association.slope,
    "histogram": binned.histogram,
    "ranges": ranges,
    "quantile": quantile,
    "units": counts.units,
    "aggregate": aggregate,
    "margins": margins,
}
SEARCHES: dict[str, Callable[..., Discovery]] = {"discover": discover}
_NUMBERED_BINS = ("ranges", "quantile")  # between the bounds of their column
_SEVERAL = ("aggregate", "margins")
_OUTPUTS = "outputs"
_NOT_DECIDING = ("files", "name", "note", "spill_folder")  # names are found as they are
_YAML = (".yaml", ".yml")
_ENDS = 2
_FAR = 1e300  # edges stay finite
_SUCH_GROUPS = '["A", "B"], {range = [0, 24]} or {file = "zones.txt"}'
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What is given in the call of a job, in place of what the plan says."""

    values: Mapping[str, str] = field(default_factory=dict)  # what placeholders stand for, by name
    data: tuple[str, ...] = ()  # paths of the data
    name: str | None = None  # name of the release in the ledger
    note: str | None = None  # what else to keep with it
    allow_imports: bool = False  # whether a schema may be imported from a module


@dataclass(frozen=True)
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
        return selected and not others and LEVEL in first.levels

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
    plan.only(TABLES, "a plan")
    if given.name is None:
        _check_name(plan)
    asked = plan.section("queries")
    if not asked.table:
        raise plan.error(
            'there is no query; for instance [queries.by_zone] with kind = "count" and by = "zone".'
        )
    search = _search(asked)
    if search is None:
        queries = {name: _query(asked.section(name)) for name in asked.table}
    else:
        where = None if search.where is None else search.where.text
        reading: Query = counts.units(by=list(search.by), where=where)
        queries = dict.fromkeys(asked.table, reading)
    options = _options(plan.section("release"), given)
    data = read_data(plan.section("data"), given.data)
    if search is not None:
        kinds = {str(axis.column): axis.kind for axis in search.axes}
        data = replace(data, types={**kinds, **data.types})
    return Job(
        plan=plan,
        data=data,
        declared=_read_declared(plan.section("declare"), allow_imports=given.allow_imports),
        queries=queries,
        options=options,
        files=output_paths.read_paths(plan, queries, options["name"]),
        ledger=_ledger(plan.section("ledger")),
        budget=_budget(plan.section("ledger")),
        part=plan.section("ledger").get("part", str),
        runs_folder=_runs_folder(plan.section("ledger")),
        search=search,
    )


def _search(asked: Section) -> Discovery | None:
    """Read groups that are to be found, which no plan can do beside other queries."""
    for name in asked.table:
        section = asked.section(name)
        make = SEARCHES.get(section.table.get("kind", ""))
        if make is None:
            continue
        if len(asked.table) > 1:
            way = "give it a plan of its own, and the groups that it finds as keys to the others"
            raise section.error(f"is charged and released on its own: {way}.", "kind")
        kind = section.table["kind"]
        known = arguments_of(kind, make)
        section.only(("kind", *known, "files"), f'a query of kind "{kind}"', RELEASE)
        keywords = {key: _read(section, key) for key in section.table if key in known}
        _check_required(section, make)
        return _check_section(section, partial(make, **keywords))
    return None


def _check_name(plan: Section) -> None:
    """Check that runs on other data have other names, or all but the first would be refused."""
    release = plan.section("release")
    name = release.get("name", str)
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


def _options(section: Section, given: Overrides) -> dict[str, Any]:
    """Read how much to spend, how, and what to record."""
    section.only(RELEASE, "release")
    options: dict[str, Any] = {name: section.get(name, *_AMOUNT) for name in AMOUNTS}
    _check_section(section, lambda: Spend.of(**options))
    for name in ("mechanism", "denoise"):
        if name in section.table:
            options[name] = section.get(name, str)
    named = section.text("name") if given.name is None else given.name
    if named is None:
        section.need("name", str, such_as='name = "trips {month}", so that no run counts twice.')
    part = section.get("part", str, int, float)
    options["part"] = section.text("part") if isinstance(part, str) else part
    return {**options, "name": named, "note": given.note or section.text("note")}


def _read_declared(section: Section, *, allow_imports: bool) -> dict[str, Any]:
    """Read keywords of `declare`; whom a row belongs to must be said."""
    section.only(DECLARE, "declare")
    unit = section.get("privacy_unit", str, list)
    if isinstance(unit, list) and not all(isinstance(name, str) for name in unit):
        why = 'must be a column or a list of columns, ["aircraft", "week"]'
        raise section.error(f"{why}, got {unit!r:.200}.", "privacy_unit")
    if (unit is None) != bool(section.get("each_row", bool)):
        raise section.error(
            "say whom a row belongs to, in one way: privacy_unit = the name of a column, with "
            "max_rows, or each_row = true, where every row is a person of its own."
        )
    keys, _, missing = (section.section(name) for name in _FACTS)
    return {
        "schema": _schema(section, allow_imports=allow_imports),
        "privacy_unit": EACH_ROW if unit is None else unit,
        "unit": section.get("unit", str),
        **{cap: section.get(cap, int) for cap in CAPS},
        "neighboring": section.get("neighboring", str) or "add_remove",
        "keys": {name: _groups(keys, name) for name in keys.table},
        "bounds": _pairs(section, "bounds") or {},
        "missing": dict(missing.table),
        "name": section.text("name"),
    }


def _schema(section: Section, *, allow_imports: bool) -> Any:
    """Read what the key `schema` names; `None` where it is not given.

    A YAML file is data. A module is code that runs when it is imported, which whoever starts the
    job must have allowed.
    """
    named = section.get("schema", str)
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
    given = section.get(key, list, dict)
    if isinstance(given, list):
        return given
    table = section.section(key)
    table.only(("range", "file", "type"), "groups")
    if "range" in given and len(given) == 1:
        return _range(table)
    if "file" in given and "range" not in given:
        return _lines(table)
    raise section.error(f"must be groups, {_SUCH_GROUPS}, got {given!r:.200}.", key)


def _range(section: Section) -> range:
    """Read {range = [start, stop]} or [start, stop, step], without the stop, as in Python."""
    ends = section.get("range", list)
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
    place = section.source.path.parent / section.get("file", str)
    kind = section.get("type", str) or "string"
    if kind not in KINDS:
        raise section.error(f"must be one of {', '.join(KINDS)}, got {kind!r:.200}.", "type")
    if not place.is_file():
        raise section.error(f"there is no file {place}.", "file")
    lines = [line.strip() for line in _text_of(section, place, "file").splitlines()]
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line]
    values = [read_cell(kind, line) for _, line in numbered]
    for (number, _), value in zip(numbered, values, strict=True):
        if value is None:
            raise section.error(f"line {number} of {place} is no {kind}.", "file")
    return values


def _edges(section: Section, key: str) -> Any:
    """Read the edges of bins: a list, or {from = 0, to = 100, bins = 20} of equal widths."""
    given = section.get(key, list, dict)
    if not isinstance(given, dict):
        return given
    table = section.section(key)
    table.only(("from", "to", "bins"), "bins of equal widths")
    such = "bins = {from = 0, to = 100, bins = 20}"
    low, high = (table.need(end, int, float, such_as=such) for end in ("from", "to"))
    number = table.need("bins", int, such_as=such)
    if not 0 < number <= MOST_GROUPS or not -_FAR <= low < high <= _FAR:
        rule = f"must have 1 to {MOST_GROUPS:,} bins and from < to, both finite"
        raise section.error(f"{rule}, got {given!r:.200}.", key)
    edges = np.linspace(low, high, number + 1)
    whole = (np.abs(edges) < 2**53).all() and (edges == np.rint(edges)).all()
    return edges.astype(np.int64) if whole else edges  # whole numbers are shown as such


def _pairs(section: Section, key: str) -> Any:
    """Read bounds: [lower, upper] for all columns, or a table of them by column."""
    given = section.get(key, list, dict)
    if isinstance(given, dict):
        table = section.section(key)
        return {column: _pair(table, column) for column in given}
    return None if given is None else _pair(section, key)


def _pair(section: Section, key: str) -> tuple[Any, Any]:
    given = section.get(key, list)
    if len(given) != _ENDS:
        raise section.error(f"must be [lower, upper], got {given!r:.200}.", key)
    return given[0], given[1]


def _query(section: Section) -> Query:
    """Read one query: a kind, and the keywords of the function of that name."""
    wanted = section.need("kind", str, such_as='kind = "count"')
    make = QUERIES.get(wanted)
    if make is None:
        kinds = ", ".join((*QUERIES, *SEARCHES))
        raise section.error(f"must be one of {kinds}, got {wanted!r:.200}.", "kind")
    known = arguments_of(wanted, make)
    extra = ("files",) if section.keys[:1] == ("queries",) and section.keys[2:] == () else ()
    section.only(("kind", *known, *extra), f'a query of kind "{wanted}"', RELEASE)
    keywords = {name: _read(section, name) for name in section.table if name in known}
    parts = keywords.pop(_OUTPUTS, {})
    _check_required(section, make)
    return _check_section(section, lambda: make(**keywords, **parts))


def arguments_of(kind: str, make: Callable[..., object]) -> list[str]:
    """List the keys that a query of a kind may have, beside `kind` and `files`."""
    known = [name for name in signature(make).parameters if name not in ("caps", "queries")]
    if kind in SEARCHES:
        return known
    known += [cap for cap in CAPS if cap not in known]
    return [*known, _OUTPUTS] if kind in _SEVERAL else known


def needed_by(make: Callable[..., object]) -> list[str]:
    """List the keys that a query must have."""
    given = signature(make).parameters.values()
    named = [one for one in given if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    return [one.name for one in named if one.default is one.empty]


def _check_required(section: Section, make: Callable[..., object]) -> None:
    for name in needed_by(make):
        if name not in section.table:
            raise section.error(f"{name} is missing{section.such(name)}.")


def _read(section: Section, key: str) -> Any:
    """Read one keyword of a query."""
    if key == _OUTPUTS:
        parts = section.section(key)
        return {name: _query(parts.section(name)) for name in parts.table}
    reader = _READERS.get(key)
    return section.get(key, str, list) if reader is None else reader(section, key)


def _keys(section: Section, key: str) -> Any:
    """Read keys: groups, or a table of them by column."""
    given = section.get(key, list, dict)
    if isinstance(given, list) or set(given) <= {"range", "file", "type"}:
        return _groups(section, key)
    table = section.section(key)
    return {column: _groups(table, column) for column in given}


def _rows(section: Section, key: str) -> Any:
    """Read a public number of rows, or a pair of an estimate and its variance."""
    given = section.get(key, int, float, list)
    return tuple(given) if isinstance(given, list) else given


def _bins(section: Section, key: str) -> Any:
    """Read bins: how many, edges, or a table of edges by column."""
    if section.table.get("kind") in _NUMBERED_BINS and type(section.table[key]) is int:
        return section.get(key, int)
    given = section.get(key, list, dict)
    if not isinstance(given, dict) or not all(isinstance(v, list | dict) for v in given.values()):
        return _edges(section, key)
    table = section.section(key)
    return {column: _edges(table, column) for column in given}


def _weights(section: Section, key: str) -> Any:
    """Read a column of weights; or those of tables, {table = ["sex", "age"], weight = 4} each."""
    if section.table.get("kind") != "margins":
        return section.get(key, str)
    found = {}
    for given in section.get(key, list):
        table = given.get("table") if isinstance(given, dict) else None
        if not isinstance(table, list) or set(given) != {"table", "weight"}:
            such = '[{table = ["sex", "age"], weight = 4}]'
            raise section.error(f"must be a list such as {such}, got {given!r:.200}.", key)
        if tuple(table) in found:
            raise section.error(f"must not name a table twice, got {table!r:.200} again.", key)
        found[tuple(table)] = given["weight"]
    return found


_READERS: dict[str, Callable[[Section, str], Any]] = {
    **dict.fromkeys(("where", "condition"), Section.text),
    "keys": _keys,
    "bounds": _pairs,
    "bins": _bins,
    "weights": _weights,
    "other": lambda section, key: section.get(key, str, int, dict),
    **dict.fromkeys(("column", "objective"), lambda section, key: section.get(key, str)),
    "n": _rows,
    "q": lambda section, key: section.get(key, int, float, list),
    **dict.fromkeys(("level", "n_weight"), lambda section, key: section.get(key, int, float)),
    **dict.fromkeys(
        ("simultaneous", "sampling", "counts", "missing"),
        lambda section, key: section.get(key, bool),
    ),
    "dtype": lambda section, key: section.get(key, str, dict),
    "discovery": lambda section, key: section.get(key, *_AMOUNT),
    **{
        whole: lambda section, key: section.get(key, int)
        for whole in (*CAPS, "max_true", "ways", "max_length")
    },
}


def _ledger(section: Section) -> LedgerPlace:
    section.only(("path", "budget", "part", "runs_folder"), "ledger")
    path: str = section.need("path", str, such_as='path = "trips.ledger"')
    if not path or "\0" in path:
        raise section.error(f"must be the path of a file, got {path!r:.200}.", "path")
    url = section.fill_text("path", path, environment=True)
    if is_url(url):
        return LedgerPlace(url)
    if url == path and (why := why_not_portable(path)):
        raise section.error(f"{why}: give another name, for plans travel.", "path")
    return LedgerPlace(section.path("path", path))


def _runs_folder(section: Section) -> Path | None:
    """Read where runs keep what they drew."""
    folder: str | None = section.get("runs_folder", str)
    if folder is None:
        return None
    if not folder or "\0" in folder:
        raise section.error(f"must be the path of a folder, got {folder!r}.", "runs_folder")
    return section.path("runs_folder", folder)


def _budget(section: Section) -> Budget | None:
    """Read what the budget of the ledger should be, to check it."""
    if "budget" not in section.table:
        return None
    table = section.section("budget")
    table.only(BUDGET, "a budget")
    amounts: dict[str, Any] = {name: table.get(name, *_AMOUNT) for name in table.table}
    table.need("epsilon", *_AMOUNT, such_as="epsilon = 1")
    return _check_section(table, lambda: Budget(**amounts))


def _check_section(section: Section, make: Callable[[], _Made]) -> _Made:
    """Make something of a table; what is wrong with it is said with its place."""
    try:
        return make()
    except (DPFrameError, TypeError) as error:
        raise section.about(error) from None
