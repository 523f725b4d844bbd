"""What travels with a published table: cells as they are shown, and nothing that is not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpframe.cells.keys import factored
from dpframe.cells.record import Opened, cells_part, codes_part, levels_of
from dpframe.cells.verify import Shown, look_with
from dpframe.certificates.certificate import Release, without_all_rows, without_rows
from dpframe.certificates.parts import AliasPart, CellsPart, PublishedPart
from dpframe.errors import QueryError, quote


def reduced(shown: Shown, note: str | None = None) -> Opened:
    """Return the record of what a table shows.

    A table that shows all cells as they were released keeps all of its record: nothing is hidden.
    Otherwise cells and keys that are not shown, unrounded cells and parts of means are left out,
    and with them the salt, without which hidden cells cannot be guessed from digests.

    Parameters
    ----------
    shown
        The table.
    note
        A sentence about it.

    Raises
    ------
    QueryError
        If an interval tells a cell that is hidden, or not rounded as its column is.
    """
    opened = shown.opened
    labels = [label for label in opened.columns if label in shown.seen]
    if opened.columns and not labels:
        names = [opened.shown_label(label) for label in opened.columns]
        raise QueryError(f"this table shows none of the columns of its release, {quote(names)}.")
    all_shown = all(shown.is_whole(label) for label in opened.columns)
    if all_shown and note is None and not opened.promise.is_derived:
        return opened
    _check_intervals(shown, labels)
    rows = _rows(shown)
    released = [part.label for part in opened.table.released]
    complete = all(shown.is_whole(label) for label in released)
    releases = opened.releases
    kept = [at for at, label in enumerate(released) if label in labels]
    if kept or not labels:
        promise = opened.promise.with_columns(kept)
        releases = tuple(_of_rows(release, rows, complete=complete) for release in promise.releases)
    else:  # all of it was computed from released numbers, and shows none
        releases = tuple(map(without_all_rows, releases))
    return opened.changed(
        releases,
        **_keys(opened, rows),
        columns=tuple(_part(shown, label, rows) for label in labels),
        alias=_alias(opened.table.alias, labels),
        units={name: unit for name, unit in opened.table.units.items() if name in labels},
        cuts=tuple(
            replace(cut, at=cut.at if cut.call == "suppress" else None) for cut in opened.table.cuts
        ),
        published=PublishedPart(
            cells={label: shown.counts(label) for label in labels},
            units={label: shown.unit(label) for label in labels},
            note=note,
        ),
        salt=None,
    )


def _rows(shown: Shown) -> np.ndarray:
    """Return the released rows of all cells of a table, missing ones, too."""
    if not shown.layout.located:
        return np.sort(shown.rows)
    seen = np.zeros(shown.opened.rows + 1, bool)
    for cells in shown.layout.located:
        seen[cells.rows] = True  # the last is of no row
    return np.flatnonzero(seen[:-1])


def _of_rows(release: Release, rows: np.ndarray, *, complete: bool) -> Release:
    """Return what is said about some rows."""
    some = release.with_rows_of(rows)
    return some if complete else without_rows(some)


def _keys(opened: Opened, rows: np.ndarray) -> dict[str, Any]:
    """Write the keys of some rows."""
    if np.array_equal(rows, np.arange(opened.rows)):
        return {}
    pairs = zip(opened.levels, opened.codes, strict=True)
    values = [factored(level.keys.take(codes[rows])) for level, codes in pairs]
    levels, codes = levels_of(values, [level.name for level in opened.levels], len(rows))
    return {
        "levels": tuple(level.part() for level in levels),
        "rows": len(rows),
        "codes": codes_part(codes, levels),
    }


def _part(shown: Shown, label: str, rows: np.ndarray) -> CellsPart:
    """Return the cells of a column as they are shown."""
    column = shown.opened.columns[label]
    before = column.part
    full = shown.is_whole(label) and len(rows) == shown.opened.rows
    if full and column.numbers.values.dtype.kind == "i":  # floats may be shown with fewer digits
        return before
    cells = shown.cells_of(label, rows)
    part = cells_part(None, cells, before.definition)
    return replace(part, label=label)


def _alias(alias: AliasPart, labels: Sequence[str]) -> AliasPart:
    shown = {new: old for new, old in alias.columns.items() if old in labels}
    return replace(alias, columns=shown)


def _check_intervals(shown: Shown, labels: Sequence[str]) -> None:
    """Refuse ends of intervals whose middle tells a cell that is hidden, or the one unrounded."""
    opened = shown.opened
    for label in labels:
        definition = opened.columns[label].part.definition
        if definition is None or getattr(definition, "end", None) is None:
            continue
        source = opened.labels_by_name.get(definition.column, "")
        if source not in labels:
            continue
        name = opened.shown_label(label)
        present = ~opened.columns[source].numbers.missing
        if (shown.seen[label] & present & ~shown.seen[source]).any():
            hidden = opened.shown_label(source)
            rule = f"{hidden!r} is hidden where {name!r} tells it"
            raise QueryError(f"{rule}. Hide both, by .dp.suppress.", label=hidden)
        middle = shown.middle_of(label)
        if middle is None or middle not in labels:
            continue
        unit = shown.units[middle]
        ends = shown.cells_of(label, np.flatnonzero(shown.seen[label]))
        if unit and not _are_multiples(ends, unit):
            middle_name = opened.shown_label(middle)
            rule = f"{middle_name!r} is rounded, and {name!r} tells what it was"
            raise QueryError(f"{rule}. Round both, by .dp.round.", label=middle_name)


def _are_multiples(ends: pd.Series, unit: float) -> bool:
    if ends.dtype.kind in "mM":
        step = f"{int(unit)}us"
        return bool((ends.dt.floor(step) == ends).all())
    numbers = ends.to_numpy(np.float64) / unit
    return bool(np.allclose(numbers, np.rint(numbers), rtol=1e-9, atol=0))


def apart(shown: Shown) -> list[Shown]:
    """Return the tables of the releases in one table, each with its rows."""
    releases = shown.opened.releases
    if len(releases) == 1:
        return [shown]
    return [_alone(shown, release) for release in releases]


def _alone(shown: Shown, release: Release) -> Shown:
    """Return the table of one of several releases."""
    opened, rows = shown.opened, np.arange(shown.opened.rows)[release.places]
    frame = opened.frame.iloc[rows]
    parts = [
        replace(cells_part(None, frame.iloc[:, at], part.definition), label=part.label)
        for at, part in enumerate(opened.table.columns)
    ]
    alone = opened.changed(
        [replace(release, rows=None)], **_keys(opened, rows), columns=tuple(parts), published=None
    )
    return look_with(shown.table[np.isin(shown.rows, rows)], alone)
