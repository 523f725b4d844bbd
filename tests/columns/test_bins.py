"""Bins are found where `numpy.searchsorted` finds them, whatever the edges and the values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpframe.columns.lookup import finder
from dpframe.queries.tasks import BinAxis

MOST, LEAST = np.finfo(np.float64).max, 5e-324
INFINITY = float("inf")
NAN_WITH_A_SIGN = -np.float64("nan")
FLOATS = st.floats(allow_nan=False)
EDGES = {
    "equal": np.linspace(0, 50, 1025),
    "geometric": np.geomspace(1e-6, 1e9, 257),
    "geometric, negative": -np.geomspace(1e-6, 1e9, 257)[::-1],
    "uneven": np.array([-3.0, 0.0, 1.0, 1.0000001, 2.0, 7.5, 1e6]),
    "next to one another": np.nextafter(1.0, [0.0, 1.0, 2.0]),
    "least": LEAST * np.array([0, 1, 2, 5]),
    "around zero": np.array([-LEAST, 0.0, LEAST]),
    "all floats": np.array([-MOST, -1.0, 0.0, LEAST, MOST]),
    "largest": MOST / np.array([4.0, 2.0, 1.0]),
    "infinite": np.array([-INFINITY, -1.0, 0.0, 3.0, INFINITY]),
    "infinite above": np.array([1.0, 10.0, 100.0, INFINITY]),
    "one": np.array([-INFINITY, 2.0, INFINITY]),
    "none": np.array([-INFINITY, INFINITY]),
    "far from zero": 1e16 + np.arange(0, 64, 2.0),
}


def around(edges):
    """Values on edges, next to them, between them and far from them, and what is no number."""
    finite = edges[np.isfinite(edges)]
    near = [edges]
    for end in (-INFINITY, INFINITY):
        step = edges
        for _ in range(3):
            step = np.nextafter(step, end)
            near.append(step)
    between = (
        np.random.default_rng(1).uniform(-1.5, 1.5, 20_000) * np.abs(finite).max(initial=1) / 2
    )
    odd = [0.0, -0.0, LEAST, -LEAST, MOST, -MOST, INFINITY, -INFINITY, np.nan, NAN_WITH_A_SIGN]
    return np.concatenate([*near, between, odd])


def searched(edges, numbers, closed, clipped):
    """What `numpy.searchsorted` finds."""
    size = len(edges) - 1
    places = np.searchsorted(edges, numbers, "left" if closed == "right" else "right") - 1
    if clipped:
        places = places.clip(0, size - 1)
    places[(places < 0) | np.isnan(numbers)] = size
    return places


def check(edges, numbers):
    """Compare, with either end of the bins closed, and values outside clipped or not."""
    for closed in ("left", "right"):
        bins = pd.IntervalIndex.from_breaks(edges, closed=closed)
        for clipped in (False, True):
            column = pd.Series(numbers)
            places = finder(BinAxis("x", bins, clipped=clipped), column)(column)
            assert places.dtype == np.int64
            expected = searched(edges, numbers, closed, clipped)
            np.testing.assert_array_equal(places, expected, f"{closed}, {clipped}")


@pytest.mark.parametrize("name", EDGES)
def test_values_around_edges_are_where_a_search_finds_them(name):
    edges = EDGES[name]
    with np.errstate(all="ignore"):  # as engines do
        numbers = around(edges)
        check(edges, numbers)
        check(edges, np.stack([numbers, numbers])[:, ::2].T[:, 0])  # not contiguous


@given(st.lists(FLOATS, min_size=2, max_size=40, unique=True), st.lists(FLOATS, max_size=20))
@example([0.0, -0.0, 1.0], [])
@example([1.0, MOST], [])
def test_any_edges_and_values_are_those_of_a_search(edges, numbers):
    edges = np.unique(edges)
    if len(edges) > 1:
        with np.errstate(all="ignore"):
            check(edges, np.append(around(edges)[-10:], [*edges, *numbers]))
