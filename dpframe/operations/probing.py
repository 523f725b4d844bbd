"""What the check of a charge is handed: the functions that turn rows into integers, and facts."""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, assert_never

import numpy as np
import pandas as pd

from dpframe.checker.measured import Measured, OddColumn, OddRows, ProbedTotal, RowPlaces
from dpframe.checker.noise import BlockNoise
from dpframe.declaration.facts import Declaration
from dpframe.engines.pandas import totals_of
from dpframe.errors import PlanCheckError
from dpframe.plan.measurement import Measurement
from dpframe.privacy.neighbors import ROW_CAPS, Neighboring
from dpframe.queries import where
from dpframe.queries.grid import Grid
from dpframe.queries.tasks import Cells, KeyAxis, LabelTask, Task, Term
from dpframe.strategies.base import Need

_PROBE = "\0probe"
_INNER = range(1, 8)
"""Eighths of a width at which squares and products are tried, too."""
_BEYOND = 10.0
"""How far beyond all numbers a column is tried that is compared with another one."""


def measured_of(measurement: Measurement, noise: BlockNoise, neighboring: Neighboring) -> Measured:
    """Hand a measurement to the check.

    Parameters
    ----------
    measurement
        What is measured.
    noise
        The noise that will be drawn.
    neighboring
        The relation of neighbors.
    """
    table, design = measurement.table, measurement.design
    needs = sorted(design.needs)
    task = table.task(needs)
    compared = [
        [] if term.where is None else [*_comparisons(term.where.root)] for term in task.terms
    ]
    cells, few = task.cells, task.most is not None
    everywhere = cells.chosen is None and all(
        axis.hidden or (isinstance(axis, KeyAxis) and axis.rest) for axis in task.groups.axes
    )
    places = RowPlaces(
        tuple(map(len, cells.axes)), cells.margins, cells.size, task.inner, everywhere
    )
    caps = ROW_CAPS if task.sizes is not None else task.caps
    mixed = design.layers is not None or bool(design.common)
    filtered = task.where is not None
    content = task.terms, task.valued, task.most
    return Measured(
        noise,
        tuple(_total(term, own, few=few) for term, own in zip(task.terms, compared, strict=True)),
        _columns(task, [one for own in compared for one in own]),
        partial(_probe, task),
        partial(_encode, measurement, needs),
        task.most,
        caps,
        bool(task.unit),
        neighboring,
        places,
        mixed,
        filtered,
        content,
        key=(
            *(noise.law.name, noise.scales, noise.groups, noise.over_cells, id(design)),
            *(content, caps, bool(task.unit), neighboring, places, mixed, filtered),
        ),
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


def _encode(
    measurement: Measurement, needs: Sequence[Need], totals: Sequence[np.ndarray]
) -> list[np.ndarray]:
    return measurement.design.encode(dict(zip(needs, totals, strict=True)))


def _probe(task: Task, rows: OddRows, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Total odd rows by the engine of pandas, each in a cell of its own, without caps.

    The condition on all rows is left out: rows that meet it are some of these.
    """
    columns = [np.arange(number), *(_series(values).take(at).array for values, at in rows.values())]
    frame = pd.DataFrame(dict(enumerate(columns)))
    frame.columns = pd.Index([_PROBE, *rows], dtype=object, tupleize_cols=False)
    cells = Cells((KeyAxis(_PROBE, pd.RangeIndex(number, name=_PROBE)),))
    terms = (Term("rows"), *task.terms)
    alone = Task(cells, terms, None, valued=task.valued)
    ((counted, *totals),) = totals_of([frame], [alone], 1)
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


def _comparisons(node: where.Node) -> Iterator[_Comparison]:
    match node:
        case where.Not(operand):
            yield from _comparisons(operand)
        case where.All(parts) | where.Any(parts):
            for part in parts:
                yield from _comparisons(part)
        case where.Name(label):
            yield _Comparison([label], [0.0], plain=True)
        case where.InPart(label, text, number):
            yield _Comparison([label], [text, *([] if number is None else [number])], plain=True)
        case where.Membership(operand, items):
            plain = isinstance(operand, where.Name)
            yield _Comparison([*where.names_in(operand)], items, plain=plain)
        case where.Compare(_, left, right):
            labels = [*where.names_in(left), *where.names_in(right)]
            plain = {type(left), type(right)} == {where.Name, where.Constant}
            yield _Comparison(labels, [*_constants(left), *_constants(right)], plain=plain)
        case _:
            assert_never(node)


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


def _total(term: Term, compared: Sequence[_Comparison], *, few: bool) -> ProbedTotal:
    given: list[Hashable] = [] if term.where is None else [*term.where.columns]
    given += [] if term.weights is None else [term.weights.column]
    grids = ((term.column, term.grid), (term.other, term.other_grid))
    values = tuple(label for label, grid in grids if grid is not None)
    known = term.kind not in ("square", "part") and all(one.plain for one in compared)
    return ProbedTotal(
        values, tuple(given), term.kind == "units", few and term.kind == "sum", known
    )


def _grids(task: Task) -> Iterator[tuple[Hashable, Grid, bool]]:
    """Yield the columns of values and weights with their grids, and whether they are multiplied."""
    for label, grid in task.valued:
        yield label, grid, False
    for term in task.terms:
        multiplied = term.kind in ("square", "part")
        for label, own in ((term.column, term.grid), (term.other, term.other_grid)):
            if own is not None:
                yield label, own, multiplied
        if term.weights is not None:
            yield term.weights.column, term.weights.grid, False


def _columns(task: Task, compared: Sequence[_Comparison]) -> dict[Hashable, OddColumn]:
    """Gather the odd values of every column that is read by terms."""
    ends: dict[Hashable, list[object]] = {}
    constants: dict[Hashable, list[float | str]] = {}
    for label, grid, multiplied in _grids(task):
        width = grid.upper - grid.lower
        inner = [grid.lower + width * k // 8 for k in _INNER] if multiplied else []
        values = [_value(grid, place) for place in (*inner, grid.lower, grid.upper)]
        ends.setdefault(label, []).extend(values)
    known = {place for values in ends.values() for place in values if isinstance(place, float)}
    known |= {number for one in compared for number in one.constants if isinstance(number, float)}
    # what one column is decides on what another is compared with
    pool = sorted({*known, min(known, default=0.0) - _BEYOND, max(known, default=0.0) + _BEYOND})
    for one in compared:
        for label in one.labels:
            ends.setdefault(label, []).extend(_moments(one.constants))
            constants.setdefault(label, []).extend(one.constants)
    for label in {label for one in compared if not one.plain for label in one.labels}:
        constants[label] += pool
    return {
        label: OddColumn(tuple(dict.fromkeys(own)), tuple(dict.fromkeys(constants.get(label, ()))))
        for label, own in ends.items()
    }


def _moments(constants: Sequence[float | str]) -> list[object]:
    """Return the points in time that texts may be, with those just before and after."""
    found: list[object] = []
    for constant in constants:
        if isinstance(constant, str):
            moment = pd.to_datetime(constant, errors="coerce", format="ISO8601")
            if not pd.isna(moment):
                step = pd.Timedelta(1, "s")
                found += [moment - step, moment, moment + step]
    return found


def _value(grid: Grid, place: int) -> object:
    """Return the value of a column that is a point of its grid."""
    number = math.ldexp(place, grid.exponent)
    if grid.ticks is None:
        return number
    microseconds = round(number * grid.ticks.tick) + grid.ticks.origin
    if grid.ticks.points:
        return pd.Timestamp(microseconds, unit="us", tz=grid.ticks.zone)
    return pd.Timedelta(microseconds, unit="us")
