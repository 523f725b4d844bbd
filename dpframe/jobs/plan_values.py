"""Values of a plan that TOML has no form for: ranges, fractions and lists in a file."""

import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from dpframe.arguments import MOST_GROUPS
from dpframe.errors import a_type
from dpframe.jobs.csv_cells import KINDS, cells_as
from dpframe.jobs.plan_toml import Section

_YAML = (".yaml", ".yml")


def schema_at(section: Section, *, allow_imports: bool) -> Any:
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
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise section.error(f"{path} cannot be read: {why}.", key) from None


_ENDS = 2
_FAR = 1e300  # edges stay finite
_SUCH_GROUPS = '["A", "B"], {range = [0, 24]} or {file = "zones.txt"}'


def groups_at(section: Section, key: str) -> Any:
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
    cells = cells_as(kind, [line for _, line in numbered])
    for (number, _), wrong in zip(numbered, cells.isna(), strict=True):
        if wrong:
            raise section.error(f"line {number} of {place} is no {kind}.", "file")
    return list(cells)


def edges_at(section: Section, key: str) -> Any:
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


def pairs_at(section: Section, key: str) -> Any:
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
