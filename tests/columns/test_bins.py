"""Bins are found where `numpy.searchsorted` finds them, whatever the edges and the values."""

import numpy as np
import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from dpframe.columns.lookup import finder
from dpframe.queries.tasks import BinAxis

MOST, LEAST = np.finfo(np.float64).max, 5e-324
INFINITY = float("inf")
NAN_WITH_A_SIGN = -np.float64("nan")
FLOATS = st.floats(allow_nan=False)


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


@given(st.lists(FLOATS, min_size=2, max_size=40, unique=True), st.lists(FLOATS, max_size=20))
@example([0.0, -0.0, 1.0], [])
@example([1.0, MOST], [])
def test_any_edges_and_values_are_those_of_a_search(edges, numbers):
    edges = np.unique(edges)
    if len(edges) > 1:
        with np.errstate(all="ignore"):
            check(edges, np.append(around(edges)[-10:], [*edges, *numbers]))
