"""The lines of a diagnosis: each row stands at the line that drops it, or is counted."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, assert_never

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.columns import values
from dpframe.columns.values import contain_errors
from dpframe.declaration.facts import Declaration
from dpframe.declaration.kinds import OTHER, kind_of_value
from dpframe.engines.steps import RowTrace, Step, Trace
from dpframe.frozen import frozen
from dpframe.operations.record import UNWANTED, outside_of, unlike
from dpframe.plan.columns import OutputColumn
from dpframe.plan.tables import Table
from dpframe.queries.conditions import met, present, surely
from dpframe.queries.query import Query
from dpframe.queries.tasks import Axis, BinAxis, Cells, LabelAxis, RowWeights
from dpframe.queries.where import Condition
from dpframe.sources.match import constants_compared, may_match


@frozen(slots=True)
class Line:
    """A line of a diagnosis: how many rows it is about, of how many, and what is left then."""

    part: str
    step: str
    rows: int
    of: int
    left: int
    units_left: int | None = None
    hint: str = ""


@frozen
class Words:
    """What the lines of a diagnosis are called by.

    Parameters
    ----------
    unit
        The columns of the unit.
    where
        The condition on all rows, or on those of an output.
    caps
        What is beyond each cap.
    """

    unit: tuple[Hashable, ...] = ()
    where: Condition | None = None
    caps: Mapping[str, str] = field(default_factory=dict)

    def of(self, step: Step) -> str:
        """Say what leaves rows out."""
        part, condition = (None, None) if self.where is None else self.where.split_part()
        match step.kind:
            case "part":
                words = f"not in the part {_known(part).text}"
            case "unknown":
                words = f"where {_known(condition).text}: a value is missing"
            case "where":
                words = f"where {_known(condition).text}: not met"
            case "missing value" | "missing key":
                words = f"{step.column} is missing"
            case "unusable value":
                words = f"{step.column} is {unlike(_known(step.grid))}"
            case "unit":
                words = f"no unit ({', '.join(map(str, self.unit))})"
            case "undeclared key":
                words = f"{step.column} is {outside_of(_known(step.axis))}"
            case "moved key" if isinstance(step.axis, BinAxis):
                words = f"{step.column} is below or above all bins"
            case "moved key":
                words = f"{step.column} is missing, or not a declared key"
            case "combination":
                words = UNWANTED
            case "max_rows_per_group" | "max_groups" | "max_rows" | "further rows":
                words = self.caps[step.kind]
            case _:
                assert_never(step.kind)
        return words


def _known(fact: Any) -> Any:
    """Return what a step of such a kind has."""
    assert fact is not None  # noqa: S101
    return fact


def _words_of(table: Table, declaration: Declaration) -> Words:
    """Say how the lines about a table are called."""
    caps, declared = table.caps, declaration.caps
    beyond = {
        "max_rows_per_group": f"beyond max_rows_per_group={caps.rows_per_group}",
        "max_groups": f"beyond max_groups={caps.groups}",
        "max_rows": f"beyond max_rows={caps.rows}",
        "further rows": "further rows of a unit, which counts once",
    }
    if table.query.counts_units:
        once = "further rows of a unit in its group, where it counts once"
        beyond["max_rows_per_group"] = once
        if caps.groups != declared.groups and caps.groups == declared.rows:
            beyond["max_groups"] = f"beyond max_rows={caps.groups}"
    return Words(table.unit, table.where, beyond)


class _Chain:
    """Makes the lines of a part: rows are dropped one after the other.

    Parameters
    ----------
    part
        Its name.
    trace
        All rows.
    left
        Mask of the rows that are not dropped above.
    """

    def __init__(self, part: str, trace: Trace, left: np.ndarray) -> None:
        self._part, self._trace, self.left = part, trace, left

    def all(self, words: str) -> Line:
        """Begin: say how many rows are not left from above."""
        return self._line(words, self._trace.rows - self.counted)

    def drop(self, words: str, rows: np.ndarray, hint: str = "") -> Line:
        """Drop the rows of a mask."""
        self.left = self.left & ~rows
        return self._line(words, _number(rows), hint)

    def end(self, hint: str = "") -> Line:
        """Say how many rows are counted."""
        return self._line("counted", self.counted, hint)

    def beside(self, words: str, rows: np.ndarray, hint: str = "") -> Line:
        """Say what some of the rows that are counted are."""
        counted, number = self.counted, _number(rows & self.left)
        return Line(self._part, f"of these, {words}", number, counted, counted, hint=hint)

    @property
    def counted(self) -> int:
        """How many rows are left."""
        return _number(self.left)

    def _line(self, words: str, number: int, hint: str = "") -> Line:
        units = self._trace.units(self.left)
        return Line(self._part, words, number, self._trace.rows, self.counted, units, hint)


def lines_of_table(trace: RowTrace, table: Table, declaration: Declaration) -> Iterator[Line]:
    """Say what becomes of the rows, and of the values in those that are counted."""
    yield from lines_of_chain(trace, table, declaration)
    for out in {out.source: out for out in table.outputs}.values():
        yield from lines_of_output(trace, out, declaration, trace.kept)
    weights = table.outputs[0].row_weights
    if weights is not None:
        yield from _lines_of_weights(trace, weights, declaration)
    most = table.workload.most
    if most is not None:
        true, kept = trace.dropped_true(most)
        yield Line("true values", "in all", true, true, true)
        yield Line("true values", f"beyond max_true={most}", true - kept, true, kept)
        yield Line("true values", "counted", kept, true, kept)


def lines_of_chain(trace: RowTrace, table: Table, declaration: Declaration) -> Iterator[Line]:
    """Say what becomes of the rows of a table."""
    return lines_of_rows(trace, _words_of(table, declaration), _group_hint(trace, table))


def _number(rows: np.ndarray) -> int:
    return int(np.count_nonzero(rows))


def lines_of_rows(trace: Trace, words: Words, hint: str) -> Iterator[Line]:
    """Say what becomes of the rows: each is at the line that drops it, or counted."""
    chain = _Chain("rows", trace, np.ones(trace.rows, bool))
    total = trace.rows
    yield Line("rows", "in all", total, total, total, trace.units(chain.left))
    condition = None if words.where is None else words.where.split_part()[1]
    for step in trace.steps:
        cause = ids_hint(trace, words.unit) if step.kind == "unit" else key_hint(trace, step)
        if step.kind == "where" and condition is not None:
            cause = where_hint(condition, step, chain.left & ~step.rows, trace)
        if step.kind != "moved key":
            yield chain.drop(words.of(step), step.rows, cause)
    yield chain.end(hint)
    for step in trace.steps:
        if step.kind == "moved key":
            seen = replace(step, rows=step.rows & chain.left)
            yield chain.beside(words.of(step), seen.rows, key_hint(trace, seen))


def _group_hint(trace: RowTrace, table: Table) -> str:
    """Name the group of which caps leave out most; of margins, all rows are one."""
    cells, inner = table.cells, trace.inner
    alone = not cells.axes or cells.margins or inner == cells.size or table.sizes is not None
    if alone or not cells.size:
        return ""
    present_rows, kept = (
        by_cell.reshape(-1, inner).sum(axis=1)
        for by_cell in (
            rows_there(trace, table.query, cells),
            trace.rows_by_cell(trace.kept, cells),
        )
    )
    lost = share_of(present_rows - kept, present_rows)
    worst = int(np.argmax(lost))
    if lost[worst] <= 0:
        return ""
    (key,) = cells.index[worst * inner : worst * inner + 1].tolist()  # 1998, not np.int64(1998)
    if inner > 1:
        *group, _ = key  # all but the bin
        key = tuple(group) if group[1:] else group[0]
    named = in_short(key)
    return f"caps leave out {lost[worst]:.1%} of group {named}, the most; see groups=True"


def lines_of_output(
    trace: RowTrace, out: OutputColumn, declaration: Declaration, among: np.ndarray
) -> Iterator[Line]:
    """Say what becomes of some rows, of which others are dropped above, in one output."""
    sides = out.values
    if out.where is None and out.condition is None and not sides:
        return
    words = Words(where=out.where)
    chain = _Chain(_part_of(out), trace, among)
    yield chain.all("rows dropped above")
    if out.where is not None:
        for step in trace.failing(out.where, chain.left):
            hint = where_hint(out.where, step, chain.left & ~step.rows, trace)
            yield chain.drop(words.of(step), step.rows, hint)
    if out.condition is not None and not out.blanks_fail:
        blank = chain.left & ~trace.satisfying(present(out.condition), chain.left)
        hint = _both_rates(trace, out.condition, chain.left & ~blank, blank)
        yield chain.drop("a value of the condition is missing", blank, hint)
    replaced: list[tuple[Step, str]] = []
    for column, grid, bounds in sides:
        cause = bounds_hint(trace, column, bounds, chain.left)
        for step in list(trace.lacking(column, grid, chain.left)):
            hint = cause if step.kind == "unusable value" else ""
            if grid.fill is None:
                yield chain.drop(words.of(step), step.rows, hint)
            else:
                counts_as = f"counted as {declaration.column(column).missing}"
                replaced.append((step, hint or counts_as))
    yield chain.end()
    for step, hint in replaced:
        yield chain.beside(words.of(step), step.rows, hint)
    for column, grid, (lower, upper) in sides:
        below, above = trace.beyond(column, grid)
        yield chain.beside(f"{column} below {lower}", below, "clipped")
        yield chain.beside(f"{column} above {upper}", above, "clipped")


def _part_of(out: OutputColumn) -> str:
    """Name the part about an output."""
    if out.condition is not None:
        part = f"rate of {out.condition.text}"
    elif out.values:
        part = " and ".join(f"values of {column}" for column, _, _ in out.values)
    else:
        part = "rows of an output"
    return part if out.where is None else f"{part} where {out.where.text}"


def _both_rates(trace: RowTrace, condition: Condition, left: np.ndarray, blank: np.ndarray) -> str:
    """Say what a rate is without the rows that lack a value, and with them."""
    if not blank.any():
        return ""
    true, rows = _number(trace.satisfying(met(condition), left)), _number(left)
    more, blanks = _number(trace.satisfying(surely(condition), blank)), _number(blank)
    alone = f"{true / rows:.4g}" if rows else "of no row"
    return f"the rate is {alone}; with missing=False, {(true + more) / (rows + blanks):.4g}"


def _lines_of_weights(
    trace: RowTrace, weights: RowWeights, declaration: Declaration
) -> Iterator[Line]:
    """Say what becomes of the weights of the rows that are counted, and of their total."""
    grid, column, (lower, upper) = weights.grid, weights.column, weights.bounds
    chain = _Chain(f"weights {column}", trace, trace.kept)
    yield chain.all("rows dropped above")
    yield chain.end()
    replaced = declaration.column(column).missing
    counts_as = f"counted as {replaced if isinstance(replaced, int | float) else 0}"
    for step in list(trace.lacking(column, grid, trace.kept)):
        hint = bounds_hint(trace, column, weights.bounds, trace.kept)
        hint = hint if step.kind == "unusable value" else ""
        yield chain.beside(Words().of(step), step.rows, hint or counts_as)
    added, taken = trace.clipped_weight(weights, trace.kept)
    below, above = trace.beyond(column, grid)
    up = f"clipped: {added:.2%} more of the weighted total"
    down = f"clipped: {taken:.2%} less of the weighted total"
    yield chain.beside(f"{column} below {lower}", below, up)
    yield chain.beside(f"{column} above {upper}", above, down)


def rows_there(trace: RowTrace, query: Query, cells: Cells) -> np.ndarray:
    """Return what a query would count in every group without caps."""
    if query.counts_units:
        return trace.units_by_cell(trace.grouped, cells)
    return trace.rows_by_cell(trace.grouped, cells)


def share_of(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Divide; nothing of nothing is 0."""
    share: np.ndarray = np.divide(part, total, out=np.zeros(len(total)), where=total > 0)
    return share


_MOST_TEXT = 40  # characters


def _kinds_of(items: Iterable[object]) -> set[str]:
    """Say of what kinds some objects are; one may lie about its class."""
    return {contain_errors(kind_of_value, item, otherwise=OTHER) for item in items}


def _listed(kinds: Iterable[str]) -> str:
    return " and ".join(sorted(kinds))


def in_short(value: object) -> str:
    """Show a private value on one line."""
    text: str = contain_errors(repr, value, otherwise="?")
    return visible(text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "...")


def where_hint(condition: Condition, step: Step, left: np.ndarray, trace: Trace) -> str:
    """Say why no row is left by a condition, where some were.

    Parameters
    ----------
    condition
        The condition.
    step
        The rows that do not meet it.
    left
        Mask of the rows that are left after it.
    trace
        All rows.
    """
    if step.kind != "where" or left.any() or not step.rows.any():
        return ""
    for label, constant in constants_compared(condition):
        held = _sample(trace.column(label), step.rows)
        if len(held) and not may_match(held, constant):
            kind = "a text" if isinstance(constant, str) else "a number"
            written = f"{constant:.6g}" if kind == "a number" else in_short(constant)
            kinds = _listed(_kinds_of(values.objects(held)))
            holds = f"the column {label} holds {kinds}, and these are not compared"
            return f"no row satisfies it: {written} is {kind}, {holds}"
    return "no row satisfies it"


_MOST_OFTEN = 3  # values that are named
_SAMPLE = 1000  # values of a column that say of what kind they are


def key_hint(trace: Trace, step: Step) -> str:
    """Say which keys are not declared, and as what they count if they do."""
    if step.axis is None or not isinstance(trace, RowTrace):
        return ""
    if isinstance(step.axis, LabelAxis):
        return ""
    if step.kind == "missing key":
        return _read_as_missing(trace, step, step.axis)
    seen = _seen_instead(trace, step, step.axis) if step.rows.any() else ""
    if step.kind != "moved key":
        return seen
    counted = f"counted {_instead(step.axis)}"
    return "; ".join(filter(None, (counted, seen, _read_as_missing(trace, step, step.axis))))


_READ_AS_MISSING = frozenset(
    "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|"
    "nan|null".split("|")
)
"""Texts that `pandas.read_csv` reads as missing by default, as its `na_values` says."""


def _read_as_missing(trace: RowTrace, step: Step, axis: Axis) -> str:
    """Say so where rows lack a key, and pandas reads a declared one as missing."""
    if isinstance(axis, BinAxis):
        return ""
    column = values.dense(trace.column(axis.column))
    if not (values.missing(column) & step.rows).any():
        return ""
    texts = [key for key in axis.keys.tolist() if isinstance(key, str)]
    lost = _READ_AS_MISSING.intersection(texts).difference(values.texts(column))
    if not lost:
        return ""
    named = " and ".join(map(in_short, sorted(lost)))
    remedy = "pass it keep_default_na=False, na_values=['']"
    return f"pd.read_csv reads declared keys as missing, {named}: {remedy}"


def _instead(axis: Axis) -> str:
    """Say where rows count that have none of the keys, or are in no bin."""
    if isinstance(axis, BinAxis):
        return "in the first bin or the last"
    (key,) = axis.keys[-1:].tolist()  # 1998, not np.int64(1998)
    return f"as {in_short(key)}"


def _seen_instead(trace: RowTrace, step: Step, axis: Axis) -> str:
    """Say which keys are not declared, or why no row can have one that is."""
    if not trace.has_rows_on(axis):
        keys = axis.keys.left if isinstance(axis, BinAxis) else axis.keys
        noun = "bins" if isinstance(axis, BinAxis) else "keys"
        declared = keys[:_SAMPLE].astype(object)
        unlike = _unlike(noun, declared, "row", trace.column(axis.column), step.rows)
        if unlike:
            return unlike
    often = trace.most_often(axis.column, step.rows, _MOST_OFTEN)
    listed = ", ".join(f"{in_short(value)} ({rows:,})" for value, rows in often)
    return f"most often {listed}" if listed else ""


def _sample(column: pd.Series, rows: np.ndarray) -> pd.Series:
    """Take some values of a column in some rows, and none that is missing."""
    some = values.dense(column).iloc[np.flatnonzero(rows)[:_SAMPLE]]
    return some[~values.missing(some)]


def _unlike(
    noun: str, declared: Iterable[object], none: str, column: pd.Series, rows: np.ndarray
) -> str:
    """Say so where none of the values of a column in some rows is of a kind that is wanted."""
    held = _kinds_of(values.objects(_sample(column, rows)))
    kinds = _kinds_of(declared)
    if not held or held & kinds:
        return ""
    said = f"{noun} are {_listed(kinds)}, the column holds {_listed(held)}"
    return f"{said}: no {none} can match"


def bounds_hint(
    trace: RowTrace, label: Hashable, bounds: Iterable[object], rows: np.ndarray
) -> str:
    """Say so where a column holds nothing that its bounds are of."""
    return _unlike("bounds", bounds, "value", trace.column(label), rows)


def ids_hint(trace: Trace, unit: Sequence[Hashable]) -> str:
    """Say so where ids are numbers in some rows and texts in others: their texts are compared."""
    for label in unit:
        column = trace.column(label)
        if values.split_categories(column) is not None or column.dtype != object:
            continue
        texts = sum(text is not None for text in values.texts(column))
        numbers = int((~np.isnan(values.numbers(column))).sum())
        if texts and numbers:
            held = f"{label} is a number in {numbers:,} rows and a text in {texts:,}"
            return f"{held}: 7 and '7' are one unit, '07' is another. Read ids as texts"
    return ""
