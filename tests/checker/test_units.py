"""How the worst units fill cells, against all ways to fill them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.checker.witness import FilledCaps, worst_cells, worst_stairs
from dpframe.errors import PlanCheckError
from dpframe.privacy.neighbors import Caps

CAPS = [
    Caps(rows=1),
    Caps(rows=3),
    Caps(rows=3, groups=2),
    Caps(groups=2, rows_per_group=2),
    Caps(rows=3, groups=2, rows_per_group=2),
    Caps(rows=5, rows_per_group=2),
]
CELLS = [1, 2, 3, 4]
CASES = list(itertools.product(CAPS, CELLS, ["add_remove", "replace"]))


def units(caps, cells):
    """Return all ways to fill cells that obey caps."""
    most = caps.rows_per_group or caps.rows
    found = []
    for rows in itertools.product(range(most + 1), repeat=cells):
        within = caps.rows is None or sum(rows) <= caps.rows
        if within and (caps.groups is None or sum(map(bool, rows)) <= caps.groups):
            found.append(rows)
    return found


def farthest(distance, caps, cells, neighboring):
    """Return the most that a neighbor costs, by trying all."""
    own = units(caps, cells)
    others = own if neighboring == "replace" else [(0,) * cells]
    return max(
        sum(distance(a, b) for a, b in zip(one, other, strict=True))
        for one, other in itertools.product(own, others)
    )


def convex(seed):
    """Return the largest of some convex functions of rows, symmetric and 0 at 0."""
    vectors = np.random.default_rng(seed).integers(-4, 5, (4, 2))
    pairs = list(itertools.product(vectors, repeat=2))

    def distance(a, b):
        ends = [a * v - b * w for v, w in pairs] if a and b else [max(a, b) * v for v in vectors]
        return float(max((np.abs(end) ** 2 / [1, 3]).sum() for end in ends))

    return distance


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("caps", "cells", "neighboring"), CASES)
def test_no_way_to_fill_cells_costs_more(caps, cells, neighboring, seed):
    distance = convex(seed)
    filled = worst_cells(distance, FilledCaps.of(caps, cells), neighboring, always=False)
    found = sum(times * distance(a, b) for times, a, b in filled)
    assert math.isclose(found, farthest(distance, caps, cells, neighboring))


@pytest.mark.parametrize(("caps", "cells", "neighboring"), CASES)
def test_no_way_to_fill_cells_crosses_more_stairs(caps, cells, neighboring):
    filling = FilledCaps.of(caps, cells)
    for low, high in ((0, 3), (-2, 3), (2, 3)):
        alone = filling.rows * max(abs(low), abs(high))

        def stairs(a, b, low=low, high=high, width=alone):
            ends = itertools.product((low, high) if a else (0,), (low, high) if b else (0,))
            return max(-(-abs(a * x - b * y) // width) for x, y in ends)

        filled = worst_stairs(stairs, filling, neighboring, always=False)
        found = sum(times * stairs(a, b) for times, a, b in filled)
        truth = farthest(stairs, caps, cells, neighboring)
        plan = min(2 * filling.touched, cells) if neighboring == "replace" else filling.touched
        both = stairs(filling.rows, filling.rows)
        assert truth <= found <= (plan if both == 1 else 2 * filling.touched)
        assert found == truth or both > 1


def test_a_row_that_is_always_there_is_replaced():
    def distance(a, b):
        return {(1, 1): 4.0, (1, 0): 3.0}[a, b]

    one_cell, two_cells = (FilledCaps.of(Caps(1, 1, 1), cells) for cells in (1, 2))
    assert worst_cells(distance, one_cell, "replace", always=True) == [(1, 1, 1)]
    assert worst_cells(distance, two_cells, "replace", always=True) == [(2, 1, 0)]


def test_units_without_a_cap_are_refused():
    with pytest.raises(PlanCheckError, match="no cap bounds the rows"):
        FilledCaps.of(Caps(groups=2), 3)


@pytest.mark.parametrize("query", [dpf.rate("x > 1", missing=False), dpf.mean("x")])
def test_a_public_number_of_rows_has_no_staircase(query):
    """Where every row counts, its number stays the same as one is replaced: it needs no noise."""
    frame = pd.DataFrame({"x": [1.0]})
    facts = {"bounds": {"x": (0, 1)}, "missing": {"x": 0}, "privacy_unit": dpf.EACH_ROW}
    frame.dp.declare(**facts, neighboring="replace")
    found = dpf.release(frame, query, epsilon=1, mechanism="staircase")
    (release,) = dpf.verify(found).to_dict()["releases"]
    (part,) = release["witness"]
    assert list(part["scales"]) == ["0"]
    assert release["privacy_loss"]["epsilon"] == 1
