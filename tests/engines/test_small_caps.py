"""All small frames and caps: what is kept is what a plain reading of the caps allows, no more."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from support.randomness import SYSTEM

from dpframe.engines import engine_for
from dpframe.engines.capping import kept_rows
from dpframe.engines.units import Units, unit_codes
from dpframe.privacy.neighbors import Caps
from dpframe.queries.grid import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

CELLS = 3
LIMITS = (None, 1, 2, 3)
ALL_CAPS = [Caps(*limits) for limits in itertools.product(LIMITS, repeat=3)]
# how many rows a unit has in each cell, up to the order of cells: 0 to 4 in three of them
SHAPES = [c for c in itertools.product(range(5), repeat=CELLS) if list(c) == sorted(c)[::-1]]


def allowed(shape, caps):
    """What may be kept in each cell of a unit that has so many rows there: all outcomes."""
    each = [n if caps.rows_per_group is None else min(n, caps.rows_per_group) for n in shape]
    present = [cell for cell, n in enumerate(each) if n]
    most = len(present) if caps.groups is None else min(len(present), caps.groups)
    outcomes = set()
    for chosen in itertools.combinations(present, most):
        left = tuple(n if cell in chosen else 0 for cell, n in enumerate(each))
        total = sum(left) if caps.rows is None else min(sum(left), caps.rows)
        ways = itertools.product(*(range(n + 1) for n in left))
        outcomes.update(kept for kept in ways if sum(kept) == total)
    return outcomes


def frame_of(shapes):
    """Rows of units with these shapes, of all units in turn."""
    rows = [
        (turn, unit, cell)
        for unit, shape in enumerate(shapes)
        for cell, n in enumerate(shape)
        for turn in range(n)
    ]
    rows.sort()
    return pd.DataFrame(
        {"u": [unit for _, unit, _ in rows], "k": [cell for _, _, cell in rows]}, dtype=np.int64
    )


FRAME = frame_of(SHAPES)


def kept_in_cells(frame, mask):
    """Rows that are kept of each unit in each cell."""
    counts = Counter(zip(frame["u"][mask], frame["k"][mask], strict=True))
    units = range(len(SHAPES))
    return [tuple(counts[unit, cell] for cell in range(CELLS)) for unit in units]


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("caps", ALL_CAPS, ids=str)
def test_units_keep_what_caps_allow_and_no_less(caps):
    seen = [set() for _ in SHAPES]
    for _ in range(10):
        for mask in (
            Units([FRAME["u"]]).choose(FRAME["k"].to_numpy(), CELLS, caps, SYSTEM),
            kept_rows(
                *unit_codes([FRAME["u"]]), FRAME["k"].to_numpy(), CELLS, caps, context=SYSTEM
            ),
        ):
            for found, kept in zip(seen, kept_in_cells(FRAME, mask), strict=True):
                found.add(kept)
    for shape, found in zip(SHAPES, seen, strict=True):
        assert found <= allowed(shape, caps)


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize("caps", ALL_CAPS, ids=str)
@pytest.mark.parametrize("dtype", ["int64", "object", "category"])
def test_totals_of_small_frames_are_what_caps_allow(caps, dtype):
    """Each unit adds a digit of its own, so that one pass shows what every unit adds to a cell."""
    axis = KeyAxis("k", pd.RangeIndex(CELLS))
    for start in range(0, len(SHAPES), 12):
        shapes = SHAPES[start : start + 12]
        frame = frame_of(shapes)
        frame["x"] = 16 ** frame["u"]
        names = frame["u"].map(lambda unit: f"unit {unit}") if dtype != "int64" else frame["u"]
        terms = (Term("rows"), Term("sum", "x", Grid(0, 0, 2**52)), Term("units"))
        task = Task(Cells((axis,)), terms, unit=("u",), caps=caps)
        totals = engine_for(frame).totals(frame.assign(u=names.astype(dtype)), [task], SYSTEM)[0]
        rows, sums, units = totals
        digits = sums[:, None] // 16 ** np.arange(len(shapes)) % 16
        assert digits.sum(axis=1).tolist() == rows.tolist()
        assert units.sum() == np.count_nonzero(digits.any(axis=0))
        for shape, kept in zip(shapes, digits.T.tolist(), strict=True):
            assert tuple(kept) in allowed(shape, caps)


@pytest.mark.parametrize("off", [Caps(rows=1), Caps(groups=1), Caps(rows_per_group=1)])
def test_a_cap_off_by_one_is_seen(off):
    """The reference refuses what a cap that is larger by one keeps, somewhere."""
    larger = Caps(*(None if limit is None else limit + 1 for limit in vars_of(off)))
    mask = Units([FRAME["u"]]).choose(FRAME["k"].to_numpy(), CELLS, larger, SYSTEM)
    kept = kept_in_cells(FRAME, mask)
    assert any(one not in allowed(shape, off) for shape, one in zip(SHAPES, kept, strict=True))


def vars_of(caps):
    return caps.rows, caps.groups, caps.rows_per_group
