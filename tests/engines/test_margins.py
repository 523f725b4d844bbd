"""Several tables at once: a row is in a cell of each, or in none, and caps choose rows once."""

import itertools
from collections import Counter
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.randomness import SYSTEM

from dpframe.engines import pandas as engine
from dpframe.engines import sums
from dpframe.engines.pandas import totals_of
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition

SIZES = (2, 3, 4, 1)
GRID = Grid.for_bounds(-2, 5, integer=True)
TERMS = (
    Term("rows"),
    Term("sum", "x", GRID),
    Term("valid", "x", GRID, Condition.parse("y > 3")),
    Term("sum", "x", GRID, Condition.parse("y > 3")),
    Term("square", "x", GRID),
    Term("rows", where=Condition.parse("y < 5")),
)
AXES = tuple(KeyAxis(f"k{at}", pd.RangeIndex(size)) for at, size in enumerate(SIZES))
ALL_SETS = [s for n in range(5) for s in itertools.combinations(range(4), n)]


def frame_of(seed, rows, most=None):
    """Rows with keys that are not declared, and values out of bounds and missing."""
    rng = np.random.default_rng(seed)
    drawn = {f"k{at}": rng.integers(0, size + 1, rows) for at, size in enumerate(SIZES)}
    x = rng.integers(-4, 8, rows).astype(float)
    x[rng.random(rows) < 0.2] = np.nan
    units = rng.integers(0, max(rows // 4, 1) if most is None else most, rows)
    return pd.DataFrame({**drawn, "x": x, "y": rng.integers(0, 9, rows), "u": units})


def by_pandas(frame, sets, where=None):
    """The totals of all terms in all tables, from plain pandas."""
    inside = np.logical_and.reduce([frame[f"k{at}"] < size for at, size in enumerate(SIZES)])
    rows = frame[inside] if where is None else frame[inside & frame.eval(where)]
    clipped = rows["x"].clip(-2, 5)
    squares = np.ceil((2 * clipped - 3) ** 2 / 7)
    amounts = [1, clipped, clipped.notna() & (rows["y"] > 3), clipped * (rows["y"] > 3)]
    amounts += [squares, rows["y"] < 5]
    found = []
    for amount in amounts:
        tables = []
        for one in sets:
            table = np.zeros(tuple(SIZES[at] for at in one), np.int64)
            added = pd.Series(amount, rows.index, dtype=float).fillna(0)
            for row, n in zip(rows.itertuples(index=False), added, strict=True):
                table[tuple(row[at] for at in one)] += int(n)
            tables.append(table.ravel())
        found.append(np.concatenate(tables))
    return np.stack(found)


@given(
    st.lists(st.sampled_from(ALL_SETS), unique=True, min_size=1, max_size=6),
    st.integers(0, 60),
    st.sampled_from([None, "y > 2"]),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 8]),
)
@settings(max_examples=60)
def test_rows_are_in_a_cell_of_every_table_or_in_none(sets, rows, where, threads, rows_a_cell):
    frame = frame_of(rows, rows)
    condition = None if where is None else Condition.parse(where)
    task = Task(Cells(AXES, margins=tuple(sets)), TERMS, condition)
    small = mock.patch.multiple(sums, _PART=5, _ROWS_A_CELL=rows_a_cell)
    with mock.patch.object(engine, "_BLOCK", 17), small:
        found = totals_of([frame[:7], frame[7:]], [task], SYSTEM, threads)[0]
    assert found.dtype == np.int64 and found.shape == (len(TERMS), task.cells.size)
    np.testing.assert_array_equal(found, by_pandas(frame, sets, where))


def test_no_product_of_all_axes_is_needed():
    axes = tuple(KeyAxis(at, pd.RangeIndex(100)) for at in range(15))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 101, (500, 15)))
    pairs = tuple(itertools.combinations(range(15), 2))
    found = totals_of([frame], [Task(Cells(axes, margins=pairs), (Term("rows"),))], SYSTEM)[0]
    inside = frame[(frame < 100).all(axis=1)]
    tables = found.reshape(len(pairs), 100, 100)
    for (one, other), table in zip(pairs, tables, strict=True):
        expected = Counter(zip(inside[one], inside[other], strict=True))
        assert {tuple(at): table[tuple(at)] for at in np.argwhere(table).tolist()} == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_caps_choose_rows_once_for_all_tables_and_tasks(threads):
    """Every row adds a bit of its own, so that totals show which rows are kept.

    Four units of about ten rows keep two: tasks agree by chance with less than 1e-6.
    """
    drawn = frame_of(3, 400, most=4)
    out = np.logical_or.reduce([drawn[f"k{at}"] == size for at, size in enumerate(SIZES)])
    frame = pd.concat([drawn[~out][:40], drawn[out][:8]]).sample(frac=1, random_state=1)
    frame = frame.reset_index(drop=True)
    rows = len(frame)
    frame["x"] = 2.0 ** np.arange(rows)
    term = (Term("sum", "x", Grid(0, 0, 2**rows)), Term("rows"))
    caps, sets = Caps(rows=2), (((0, 1), (2,)), ((1, 2), (0, 3)), ((),))
    tasks = [Task(Cells(AXES, margins=one), term, unit=("u",), caps=caps) for one in sets]
    swapped = Cells(AXES[::-1], margins=((0,),))
    tasks.append(Task(swapped, term, unit=("u",), caps=caps))
    inside = np.logical_and.reduce([frame[f"k{at}"] < size for at, size in enumerate(SIZES)])
    with mock.patch.object(engine, "_BLOCK", 17):
        found = totals_of([frame], tasks, SYSTEM, threads)
    kept = set()
    for task, totals in zip(tasks, found, strict=True):
        start = 0
        for margin in task.cells.margins:
            own = totals[:, start : start + task.cells.of_margin(margin).size]
            kept.add(tuple(own.sum(axis=1).tolist()))
            start += own.shape[1]
    ((bits, count),) = kept
    chosen = [row for row in range(rows) if bits >> row & 1]
    assert len(chosen) == count and inside[chosen].all()
    expected = frame["u"][inside].value_counts().clip(upper=2)
    assert rows == 48 and expected.tolist() == [2] * 4
    assert frame["u"][chosen].value_counts().to_dict() == expected.to_dict()


class Fickle:
    """A value that equals a key only when it is asked for the first time."""

    def __init__(self):
        self.asked = 0

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        self.asked += 1
        return other == "a" and self.asked == 1


def test_values_that_change_while_they_are_read_are_in_no_cell_that_is_not_there():
    column = pd.Series(["a", Fickle(), "b", None], dtype=object)
    frame = pd.DataFrame({"k": column, "j": [0, 1, 1, 0], "u": [1, 1, 1, 2]})
    axes = (KeyAxis("k", pd.Index(["a", "b"])), KeyAxis("j", pd.RangeIndex(2)))
    cells = Cells(axes, margins=((0,), (0, 1)))
    task = Task(cells, (Term("rows"),), unit=("u",), caps=Caps(rows=3))
    assert totals_of([frame], [task], SYSTEM)[0].tolist() == [[1, 1, 1, 0, 0, 1]]
