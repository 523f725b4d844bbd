"""What the check of a charge is handed: the functions that turn rows into integers, and facts."""

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import assert_never

import numpy as np
import pandas as pd

from dpframe.checker.measured import Measured, OddColumn, OddRows, ProbedTotal, RowPlaces
from dpframe.checker.noise import BlockNoise
from dpframe.engines.pandas import totals_of
from dpframe.plan.measurement import Measurement
from dpframe.privacy.neighbors import ROW_CAPS, Neighboring
from dpframe.queries import where
from dpframe.queries.grid import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.strategies.base import Need

_PROBE = "\0probe"
_INNER = (1, 2, 3)
"""Quarters of a width at which squares and products are tried, too."""


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
    constants = [_constants_of(term) for term in task.terms]
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
        tuple(
            _total(term, found, few=few) for term, found in zip(task.terms, constants, strict=True)
        ),
        _columns(task, constants),
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


def _encode(
    measurement: Measurement, needs: Sequence[Need], totals: Sequence[np.ndarray]
) -> list[np.ndarray]:
    return measurement.design.encode(dict(zip(needs, totals, strict=True)))


def _probe(task: Task, rows: OddRows, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Total odd rows by the engine of pandas, each in a cell of its own, without caps.

    The condition on all rows is left out: rows that meet it are some of these.
    """
    frame = pd.DataFrame({_PROBE: np.arange(number)})
    for label, (values, at) in rows.items():
        frame[label] = _series(values).take(at).array
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


_Constants = tuple[dict[str, list[float | str]], bool]
"""What columns are compared with, and whether that decides on all that a condition says."""


def _constants_of(term: Term) -> _Constants:
    found: dict[str, list[float | str]] = {}
    if term.where is None:
        return found, True
    known = True
    for labels, constants, plain in _compared(term.where.root):
        known = known and plain
        for label in labels:
            found.setdefault(label, []).extend(constants)
    return found, known


_Compared = tuple[Sequence[str], Sequence[float | str], bool]


def _compared(node: where.Node) -> Iterator[_Compared]:
    """Yield which columns are compared with what, and whether with constants alone."""
    match node:
        case where.Not(operand):
            yield from _compared(operand)
        case where.All(parts) | where.Any(parts):
            for part in parts:
                yield from _compared(part)
        case where.Name(label):
            yield [label], [0.0], True
        case where.InPart(label, text, number):
            yield [label], [text, *([] if number is None else [number])], True
        case where.Membership(operand, items):
            yield [*where.names_in(operand)], items, isinstance(operand, where.Name)
        case where.Compare(_, left, right):
            labels = [*where.names_in(left), *where.names_in(right)]
            plain = {type(left), type(right)} == {where.Name, where.Constant}
            yield labels, [*_constants(left), *_constants(right)], plain
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


def _total(term: Term, constants: _Constants, *, few: bool) -> ProbedTotal:
    given: list[Hashable] = [] if term.where is None else [*term.where.columns]
    given += [] if term.weights is None else [term.weights.column]
    grids = ((term.column, term.grid), (term.other, term.other_grid))
    values = tuple(label for label, grid in grids if grid is not None)
    known = constants[1] and term.kind not in ("square", "part")
    return ProbedTotal(
        values, tuple(given), term.kind == "units", few and term.kind == "sum", known
    )


def _columns(task: Task, constants: Sequence[_Constants]) -> dict[Hashable, OddColumn]:
    """Gather the odd values of every column that is read by terms."""
    ends: dict[Hashable, list[object]] = {label: [] for label, _ in task.valued}
    compared: dict[Hashable, list[float | str]] = {}
    grids = list(task.valued)
    for term in task.terms:
        own = [(term.column, term.grid), (term.other, term.other_grid)]
        own += [(term.weights.column, term.weights.grid)] if term.weights else []
        for label, grid in own:
            if grid is not None:
                grids.append((label, grid))
                inner = _INNER if term.kind in ("square", "part") else ()
                ends.setdefault(label, []).extend(
                    _value(grid, grid.lower + (grid.upper - grid.lower) * k // 4) for k in inner
                )
    for label, grid in grids:
        ends[label] += [_value(grid, grid.lower), _value(grid, grid.upper)]
    for found, _ in constants:
        for label, own_constants in found.items():
            compared.setdefault(label, []).extend(own_constants)
            ends.setdefault(label, []).extend(_moments(own_constants))
    return {
        label: OddColumn(tuple(dict.fromkeys(own)), tuple(dict.fromkeys(compared.get(label, ()))))
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
