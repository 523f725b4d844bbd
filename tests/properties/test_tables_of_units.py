"""Units in margins and ranges: a unit adds the same number of rows to all tables, within its caps.

Columns are of every dtype. Each unit draws the same random words whoever else is there, so that
what the totals of two frames differ by is what one unit adds.
"""

from dataclasses import dataclass
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hostile import KINDS, MIDNIGHT, NOON
from support.randomness import SYSTEM

from dpframe.engines import pandas as engine
from dpframe.engines import units
from dpframe.engines.pandas import totals_of
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis, Task, Term

BY_NAME = {kind.name: kind for kind in KINDS}
WORD = (0x9E3779B97F4A7C15).to_bytes(8, "little")
ROWS = 24
MARGINS = ((0, 1), (0, 2), (1, 2), (0,))
BINS = [
    pd.IntervalIndex.from_breaks([0.0, 0.5, 1.0, 2.5]),
    pd.IntervalIndex.from_breaks([MIDNIGHT, NOON, NOON + pd.Timedelta("1h")]),
]
limits = st.none() | st.integers(1, 4)


@dataclass(frozen=True)
class Drawn:
    """What is drawn of a frame: plain values, since some frames cannot be shown."""

    places: bytes
    units: list[int | None]
    rest: bool
    clipped: bool
    times: bool

    def frame(self, kind, without=None):
        """Make a frame, with the rows of one unit or not: some columns cannot be filtered."""
        rows = [row for row, unit in enumerate(self.units) if without is None or unit != without]
        values = kind.chosen(self.places)
        columns = [kind.column([values[at * ROWS + row] for row in rows]) for at in range(3)]
        units = pd.Series([self.units[row] for row in rows], dtype="float64")
        return pd.DataFrame(dict(zip("khxu", [*columns, units], strict=True)))

    def axes(self, kind):
        """A column of keys, one in which all others are the last, and one of bins."""
        keys = pd.Index(list(dict.fromkeys([*kind.keys, 1, "A"])), dtype=object)
        rest = KeyAxis("h", pd.Index([1, "A", "other"], dtype=object), rest=self.rest)
        return KeyAxis("k", keys), rest, BinAxis("x", BINS[self.times], clipped=self.clipped)


drawn = st.builds(
    Drawn,
    st.binary(min_size=3 * ROWS, max_size=3 * ROWS),
    st.lists(st.sampled_from([0, 1, 2, None]), min_size=ROWS, max_size=ROWS),
    *[st.booleans()] * 3,
)


def added_by_one(drawn, kind, task):
    """What one of the units adds to the cells, of rows."""
    with (
        mock.patch("dpframe.context._system_bytes", lambda n: (WORD * n)[:n]),
        mock.patch.object(engine, "_BLOCK", 5),
        mock.patch.object(units, "_GROUP", 3),
    ):
        whole, without = (
            totals_of([drawn.frame(kind, one)], [task], SYSTEM, 1)[0][0] for one in (None, 1)
        )
    added = whole - without
    assert (added >= 0).all()
    return added


@pytest.mark.sampled(every=22, full=18)
@pytest.mark.parametrize("name", BY_NAME)
@given(drawn=drawn, most=st.integers(1, 4))
@settings(max_examples=6)
def test_a_unit_adds_as_many_rows_to_every_table(name, drawn, most):
    kind = BY_NAME[name]
    axes, caps = drawn.axes(kind), Caps(rows=most)
    cells = Cells(axes, margins=MARGINS)
    added = added_by_one(drawn, kind, Task(cells, (Term("rows"),), unit=("u",), caps=caps))
    sizes = [cells.of_margin(margin).size for margin in MARGINS]
    tables = np.split(added, np.cumsum(sizes)[:-1])
    found = {int(table.sum()) for table in tables}
    free = Task(Cells(axes), (Term("rows"),), unit=("u",), caps=Caps(rows=ROWS))
    assert found == {min(most, int(added_by_one(drawn, kind, free).sum()))}


@pytest.mark.sampled(every=22, full=18, offset=1)
@pytest.mark.parametrize("name", BY_NAME)
@given(rows=limits, groups=limits, each=limits, drawn=drawn)
@settings(max_examples=6)
def test_a_unit_fills_groups_of_bins_up_to_its_caps(name, rows, groups, each, drawn):
    kind = BY_NAME[name]
    keys, _, bins = drawn.axes(kind)
    cells, inner = Cells((keys, bins)), len(bins)

    def by_group(caps):
        task = Task(cells, (Term("rows"),), unit=("u",), caps=caps, inner=inner)
        return added_by_one(drawn, kind, task).reshape(-1, inner).sum(axis=1)

    had, kept = by_group(Caps(rows=ROWS)), by_group(Caps(rows, groups, each))
    most = np.minimum(had, each or ROWS)
    assert (kept <= most).all()
    assert kept.sum() <= (rows or ROWS)
    full = min(np.count_nonzero(had), groups or ROWS)
    assert np.count_nonzero(kept) <= full
    if kept.sum() < (rows or ROWS):  # then no more is dropped than the other caps say
        assert np.count_nonzero(kept) == full
        assert (kept[kept > 0] == most[kept > 0]).all()
