"""Values of a plan that TOML has no form for: ranges, fractions and lists in a file."""

from typing import Any

import numpy as np

from dpframe.arguments import MOST_GROUPS
from dpframe.jobs.csv_cells import KINDS, cells_as
from dpframe.jobs.plan_text import Section

_ENDS = 2
_FAR = 1e300  # edges stay finite
_SUCH_GROUPS = '["A", "B"], {range = [0, 24]} or {file = "zones.txt"}'


def amount_at(section: Section, key: str) -> float | str | None:
    """Read an amount: a number, or a text such as "1/12", which whoever spends it reads."""
    amount: float | str | None = section.get(key, int, float, str)
    return amount


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
    raise section.error(
        "must be [start, stop] or [start, stop, step] of whole numbers, without the stop, for "
        f"instance range = [0, 24] for 0 to 23, got {ends!r:.200}.",
        "range",
    )


def _lines(section: Section) -> list[Any]:
    """Read the lines of a text file that are not empty, as texts or as another type."""
    place = section.source.folder / section.get("file", str)
    kind = section.get("type", str) or "string"
    if kind not in KINDS:
        raise section.error(f"must be one of {', '.join(KINDS)}, got {kind!r:.200}.", "type")
    if not place.is_file():
        raise section.error(f"there is no file {place}.", "file")
    try:
        lines = [line.strip() for line in place.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise section.error(f"{place} cannot be read: {why}.", "file") from None
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
    low, high = (
        table.need(end, int, float, such_as="bins = {from = 0, to = 100, bins = 20}")
        for end in ("from", "to")
    )
    number = table.need("bins", int, such_as="bins = {from = 0, to = 100, bins = 20}")
    if not 0 < number <= MOST_GROUPS or not -_FAR <= low < high <= _FAR:
        raise section.error(
            f"must have 1 to {MOST_GROUPS:,} bins and from < to, both finite, got {given!r:.200}.",
            key,
        )
    edges = np.linspace(low, high, number + 1)
    return edges.astype(np.int64) if _is_whole(edges) else edges


def _is_whole(edges: np.ndarray) -> bool:
    """Whether edges are whole numbers, which are shown as such."""
    return bool((np.abs(edges) < 2**53).all() and (edges == np.rint(edges)).all())


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
