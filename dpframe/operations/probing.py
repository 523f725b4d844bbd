"""What the check of a charge is handed: the functions that turn rows into integers, and facts."""

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import NamedTuple, assert_never

import numpy as np
import pandas as pd

from dpframe.checker.measured import (
    Measured,
    OddColumn,
    OddRows,
    ProbedTotal,
    Recognized,
    RowPlaces,
)
from dpframe.context import SYSTEM
from dpframe.declaration.facts import Declaration
from dpframe.engines.pandas import totals_of
from dpframe.errors import PlanCheckError
from dpframe.plan.designs import NoisyDesign
from dpframe.privacy.neighbors import ROW_CAPS, Caps, Neighboring
from dpframe.queries import where
from dpframe.queries.edges import Grid, moment_of
from dpframe.queries.tasks import Cells, KeyAxis, LabelTask, Task, Term

_PROBE = "\0probe"
_INNER = range(1, 8)
"""Eighths of a width at which squares and products are tried, too."""
_SUCCESSOR = "\0"
"""Makes of a text the one that is next to it in order."""
_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
_BEYOND = 10.0
"""How far beyond all numbers a column is tried that is compared with another one."""


class ReadFacts(NamedTuple):
    """What is read of a measurement, beside its noise and how it is encoded."""

    terms: tuple[Term, ...]
    valued: tuple[tuple[Hashable, Grid], ...]
    most: int | None
    caps: Caps
    has_unit: bool
    neighboring: Neighboring
    filtered: bool
    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    cells: int
    inner: int
    everywhere: bool


def recognized(task: Task, noisy: NoisyDesign, neighboring: Neighboring) -> Recognized:
    """Hand a measurement to the check, with all that it reads.

    Parameters
    ----------
    task
        The pass over a frame that totals it: what is checked is totaled.
    noisy
        What is measured, and the noise that will be drawn.
    neighboring
        The relation of neighbors.
    """
    cells = task.cells
    facts = ReadFacts(
        task.terms,
        task.valued,
        task.most,
        task.caps if task.sizes is None else ROW_CAPS,
        bool(task.unit),
        neighboring,
        task.where is not None,
        tuple(map(len, cells.axes)),
        cells.margins,
        cells.size,
        task.inner,
        cells.chosen is None and all(axis.hidden or axis.rest for axis in task.groups.axes),
    )
    return Recognized((facts, noisy), partial(measured_of, facts, noisy))


def measured_of(facts: ReadFacts, noisy: NoisyDesign) -> Measured:
    """Make a measurement ready to be checked, by what was read of it, its design and its noise."""
    compared = [
        [] if term.where is None else [*map(_comparison, where.leaves(term.where.root))]
        for term in facts.terms
    ]
    grids = [*_grids(facts)]
    timed = {label for label, grid, _ in grids if grid.ticks and grid.ticks.points}
    few = facts.most is not None
    totals = [
        _total(term, clauses, timed, few=few)
        for term, clauses in zip(facts.terms, compared, strict=True)
    ]
    return Measured(
        noisy.noise,
        tuple(totals),
        _columns(grids, [clause for clauses in compared for clause in clauses]),
        partial(_probe, facts),
        noisy.encode,
        facts.most,
        facts.caps,
        facts.has_unit,
        facts.neighboring,
        RowPlaces(facts.sizes, facts.tables, facts.cells, facts.inner, facts.everywhere),
        noisy.design.layers is not None or bool(noisy.design.common),
        facts.filtered,
        (facts.terms, facts.valued, facts.most),
    )


def check_rows(declaration: Declaration, tasks: Iterable[Task | LabelTask]) -> None:
    """Refuse tasks that cap the rows of other units, or count rows out of the part.

    Raises
    ------
    PlanCheckError
        If there is one.
    """
    part = declaration.part_condition
    for task in tasks:
        if task.unit != declaration.unit_columns:
            raise PlanCheckError.of("rows are capped by other columns than units are of")
        root = None if task.where is None else task.where.root
        demands = root.parts if isinstance(root, where.All) else (root,)
        if part is not None and part.root not in demands:
            raise PlanCheckError.of("rows are counted that are not in the part")


def _probe(facts: ReadFacts, rows: OddRows, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Total odd rows by the engine of pandas, each in a cell of its own, without caps.

    The condition on all rows is left out: rows that meet it are some of these.
    """
    columns = [np.arange(number), *(_series(values).take(at).array for values, at in rows.values())]
    frame = pd.DataFrame(dict(enumerate(columns)))
    frame.columns = pd.Index([_PROBE, *rows], dtype=object, tupleize_cols=False)
    cells = Cells((KeyAxis(_PROBE, pd.RangeIndex(number, name=_PROBE)),))
    terms = (Term("rows"), *facts.terms)
    alone = Task(cells, terms, None, valued=facts.valued)
    ((counted, *totals),) = totals_of([frame], [alone], SYSTEM, 1)
    return counted > 0, np.array(totals)


def _series(values: Sequence[object]) -> pd.Series:
    """Make a column of odd values: of numbers, or of times, or of anything."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pd.Series([math.nan if value is None else value for value in values], dtype=float)
    if len(kinds) == 1 and not kinds & {str}:
        return pd.Series(list(values))
    return pd.Series(list(values), dtype=object)


class _Comparison(NamedTuple):
    """Columns that are compared, with which constants, and whether with these alone."""

    labels: Sequence[str]
    constants: Sequence[float | str]
    plain: bool

    @property
    def of_text(self) -> bool:
        """Whether a constant is a text, which may be a point in time."""
        return any(isinstance(constant, str) for constant in self.constants)


def _comparison(leaf: where.Leaf) -> _Comparison:
    match leaf:
        case where.Name(label):
            return _Comparison([label], [0.0], plain=True)
        case where.InPart(label, text, number):
            return _Comparison([label], [text, *([] if number is None else [number])], plain=True)
        case where.Membership(operand, items):
            plain = isinstance(operand, where.Name)
            return _Comparison([*where.names_in(operand)], items, plain=plain)
        case where.Compare(operator, left, right):
            labels = [*where.names_in(left), *where.names_in(right)]
            plain = {type(left), type(right)} == {where.Name, where.Constant}
            constants = [*_constants(left), *_constants(right)]
            texts = [constant for constant in constants if isinstance(constant, str)]
            if texts and operator != "==":
                constants += ["", *(text + _SUCCESSOR for text in texts)]
            return _Comparison(labels, constants, plain=plain)
        case _:
            assert_never(leaf)


def _constants(value: where.Value) -> Iterator[float | str]:
    match value:
        case where.Constant(constant):
            yield constant
        case where.Name():
            return
        case where.Negative(operand):
            for constant in _constants(operand):
                yield constant if isinstance(constant, str) else -constant
        case where.Arithmetic(_, left, right):
            yield from _constants(left)
            yield from _constants(right)
        case _:
            assert_never(value)


def _total(
    term: Term, compared: Sequence[_Comparison], timed: set[Hashable], *, few: bool
) -> ProbedTotal:
    conditions: list[Hashable] = [] if term.where is None else [*term.where.columns]
    conditions += [] if term.weights is None else [term.weights.column]
    values = tuple(label for label, _ in term.valued)
    # clocks decide on conditions, and instants on values: a day apart, in any time zone
    clocks = any(timed.intersection(clause.labels) and clause.of_text for clause in compared)
    plain = not clocks and all(clause.plain for clause in compared)
    is_exact = plain and not term.multiplies
    return ProbedTotal(
        values, tuple(conditions), term.kind == "units", few and term.kind == "sum", is_exact
    )


def _grids(facts: ReadFacts) -> Iterator[tuple[Hashable, Grid, bool]]:
    """Yield the columns of values and weights with their grids, and whether they are multiplied."""
    for label, grid in facts.valued:
        yield label, grid, False
    for term in facts.terms:
        yield from ((label, grid_of_value, term.multiplies) for label, grid_of_value in term.valued)
        if term.weights is not None:
            yield term.weights.column, term.weights.grid, False


def _columns(
    grids: Sequence[tuple[Hashable, Grid, bool]], compared: Sequence[_Comparison]
) -> dict[Hashable, OddColumn]:
    """Gather the odd values of every column that is read by terms."""
    ends: dict[Hashable, list[object]] = {}
    constants: dict[Hashable, list[float | str]] = {}
    for label, grid, multiplied in grids:
        width = grid.upper - grid.lower
        inner = [grid.lower + width * k // 8 for k in _INNER] if multiplied else []
        values = [_value(grid, place) for place in (*inner, grid.lower, grid.upper)]
        ends.setdefault(label, []).extend(values)
    gridded = set(ends)
    places = {place for values in ends.values() for place in values if isinstance(place, float)}
    compared_with = [constant for clause in compared for constant in clause.constants]
    places |= {number for number in compared_with if isinstance(number, float)}
    # what one column is decides on what another is compared with
    pool = sorted({*places, min(places, default=0.0) - _BEYOND, max(places, default=0.0) + _BEYOND})
    between = [low / 2 + high / 2 for low, high in itertools.pairwise(sorted({*pool, 0.0, 1.0}))]
    for clause in compared:
        for label in clause.labels:
            ends.setdefault(label, [])
            constants.setdefault(label, []).extend(clause.constants)
    for label, marks in constants.items():
        ends[label] += _moments(marks)
    for label in {label for clause in compared if not clause.plain for label in clause.labels}:
        constants[label] += pool
        if label not in gridded:
            ends[label] += between
    return {
        label: OddColumn(tuple(marks), tuple(dict.fromkeys(constants.get(label, ()))))
        for label, marks in ends.items()
    }


def _moments(constants: Sequence[float | str]) -> list[object]:
    """Return points in time of which one meets the conditions that any other would meet.

    They are what texts may be, and what is next to it. A value with a time zone is an instant, and
    what a clock shows less than a day from it: where both are compared, all pairs are tried.
    """
    read = [moment_of(text) for text in dict.fromkeys(constants) if isinstance(text, str)]
    marks = [mark for moment in read if moment is not None for mark in _next_to(moment)]
    local = [mark for mark in marks if mark.tzinfo is None]
    instants = [mark for mark in marks if mark.tzinfo is not None]
    if not local or not instants:
        return [pd.Timestamp(mark) for mark in marks]
    clocks = [mark.replace(tzinfo=None) for mark in instants]
    pairs = [*itertools.product(local, clocks), *((mark, mark) for mark in local)]
    zoned = [
        instant.replace(tzinfo=UTC).astimezone(timezone(clock - instant))
        for clock, instant in pairs
        if abs(clock - instant) < _DAY
    ]
    return [pd.Timestamp(mark) for mark in (*marks, *zoned)]


def _next_to(moment: datetime) -> Iterator[datetime]:
    """Yield a point in time and those next to it, of those that there are; instants as of UTC."""
    zone = None if moment.tzinfo is None else UTC
    first, last = (end.replace(tzinfo=zone) for end in (datetime.min, datetime.max))
    for step in (-1, 0, 1):
        since = moment - first + step * _MICROSECOND
        yield first + min(max(since, timedelta()), last - first)


def _value(grid: Grid, place: int) -> object:
    """Return the value of a column that is a point of its grid."""
    number = math.ldexp(place, grid.exponent)
    if grid.ticks is None:
        return number
    microseconds = round(number * grid.ticks.tick) + grid.ticks.origin
    if grid.ticks.points:
        return pd.Timestamp(microseconds, unit="us", tz=grid.ticks.zone)
    return pd.Timedelta(microseconds, unit="us")
