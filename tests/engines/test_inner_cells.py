"""Cells next to each other are one group for the caps: a unit's rows in all bins of a group."""

import itertools

import numpy as np
import pandas as pd
import pytest
from support.randomness import SYSTEM

from dpframe.engines import capping
from dpframe.engines.pandas import totals_of
from dpframe.engines.units import Units
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import BinAxis, Cells, KeyAxis, Task, Term

LIMITS = (None, 1, 2, 3)
ALL_CAPS = [Caps(*limits) for limits in itertools.product(LIMITS, repeat=3)]
GROUPS, INNER = 3, 4
UNITS = 3000  # every choice has a chance of 1/60 or more: one is missed with less than 1e-20
ROWS = [(0, 0), (0, 3), (0, 3), (1, 1), (2, 0)]  # group and bin of the rows of a unit


def allowed(caps):
    """All sets of rows that a plain reading of the caps may keep, one cap after the other."""
    by_group = [[row for row, (group, _) in enumerate(ROWS) if group == g] for g in range(GROUPS)]
    each = [
        list(itertools.combinations(rows, min(len(rows), caps.rows_per_group or len(rows))))
        for rows in by_group
    ]
    outcomes = set()
    for kept in itertools.product(*each):
        for groups in itertools.combinations(kept, min(GROUPS, caps.groups or GROUPS)):
            rows = sorted(itertools.chain(*groups))
            most = min(len(rows), caps.rows or len(rows))
            outcomes.update(itertools.combinations(rows, most))
    return outcomes


def kept_by(caps, inner, groups=GROUPS):
    """The sets of rows that some unit keeps."""
    cells = np.array([group * INNER + place for group, place in ROWS])
    column = pd.Series(np.repeat(np.arange(UNITS), len(ROWS)))
    mask = Units([column]).choose(np.tile(cells, UNITS), groups * INNER, caps, SYSTEM, inner)
    rows = mask.reshape(UNITS, len(ROWS))
    return {tuple(np.flatnonzero(own).tolist()) for own in np.unique(rows, axis=0)}


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("caps", ALL_CAPS, ids=str)
def test_what_caps_allow_is_what_comes_up(caps):
    found = kept_by(caps, INNER)
    bound = capping.binding(caps, GROUPS)
    expected = allowed(caps)
    assert found <= expected  # no cap that others imply changes that
    assert found == allowed(bound)


def test_bins_taken_for_groups_are_seen():
    caps = Caps(groups=1, rows_per_group=2)
    assert not kept_by(caps, 1) <= allowed(caps)


def axes():
    bins = pd.interval_range(0, INNER, closed="left", name="x")
    return KeyAxis("k", pd.RangeIndex(GROUPS)), BinAxis("x", bins)


def frame_of():
    """Units with these rows, each of which adds a bit of its own; one has no unit, one no bin."""
    frame = pd.DataFrame(ROWS, columns=["k", "x"], dtype=float)
    frame = pd.concat([frame.assign(u=float(unit)) for unit in range(6)], ignore_index=True)
    frame["bit"] = 2.0 ** np.arange(len(frame))
    frame.loc[0, "u"] = np.nan
    frame.loc[6, "x"] = np.nan
    return frame


@pytest.mark.parametrize("chosen", [None, [1, 0]], ids=str)
@pytest.mark.parametrize("caps", [Caps(None, 1, 2), Caps(2, 2, None), Caps(None, None, 1)], ids=str)
def test_totals_are_of_groups_that_caps_allow(caps, chosen):
    frame, (keys, bins) = frame_of(), axes()
    places = None if chosen is None else np.add.outer(np.array(chosen) * INNER, np.arange(INNER))
    cells = Cells((keys, bins), None if places is None else places.ravel())
    task = Task(
        cells, (Term("sum", "bit", Grid(0, 0, 2**40)),), unit=("u",), caps=caps, inner=INNER
    )
    total = sum(totals_of([frame], [task], SYSTEM)[0][0].tolist())
    kept = frame[[bool(total >> row & 1) for row in range(len(frame))]]
    usable = frame[frame["u"].notna() & frame["x"].notna() & frame["k"].isin(chosen or [0, 1, 2])]
    assert kept.index.isin(usable.index).all()
    for unit, own in usable.groupby("u"):
        rows = kept[kept["u"] == unit]
        sizes = own.groupby("k").size().clip(upper=caps.rows_per_group or 9).sort_values()
        most = min(len(sizes), caps.groups or 9)
        least, largest = sizes.iloc[:most].sum(), sizes.iloc[-most:].sum()
        assert min(least, caps.rows or 9) <= len(rows) <= min(largest, caps.rows or 9)
        assert rows["k"].nunique() <= most
        assert (rows.groupby("k").size() <= (caps.rows_per_group or 9)).all()
