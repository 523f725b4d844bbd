"""Bins of ranges: between bounds, or given."""

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import DeclarationError, QueryError
from dpframe.plan.cells import cells_of
from dpframe.queries.binned import bins_of
from dpframe.queries.edges import edges_of

WEEK = pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-08")


def bins(query, bounds=None, *, integer=False):
    return bins_of(query.bins, bounds, integer=integer)


def test_integers_have_a_bin_each_where_they_are_few():
    axis = bins(dpf.ranges("age"), (17.5, 90.0), integer=True)
    assert list(axis.keys.right) == list(range(18, 91))
    assert axis.keys.left.dtype == np.int64
    assert len(bins(dpf.ranges("age", 10), (18.0, 90.0), integer=True)) == 10
    assert len(bins(dpf.ranges("age"), (0.0, 1024.0), integer=True)) == 1024
    assert bins(dpf.ranges("age"), (0.0, 1024.0), integer=True).keys.left.dtype == np.float64


def test_edges_are_whole_numbers_for_integers_alone():
    query = dpf.ranges("age", range(0, 101))
    assert bins(query, (0.0, 100.0)).keys.left.dtype == np.float64
    assert bins(query, (0.0, 100.0), integer=True).keys.left.dtype == np.int64


def test_times_have_bins_of_whole_microseconds():
    axis = bins(dpf.ranges("when", 7), WEEK)
    assert list(edges_of(axis.keys)) == list(pd.date_range(*WEEK, periods=8))
    odd = bins(dpf.ranges("when", 1000), WEEK)
    assert len(odd) == 1000 and not any(edge.nanosecond for edge in odd.keys.left)
    waits = bins(dpf.ranges("wait", 4), (pd.Timedelta(0), pd.Timedelta("1h")))
    assert list(waits.keys.right.total_seconds()) == [900, 1800, 2700, 3600]


def test_a_time_zone_is_kept():
    zone = tuple(edge.tz_localize("Europe/Berlin") for edge in WEEK)
    axis = bins(dpf.ranges("when", 7), zone)
    assert str(axis.keys.left.tz) == "Europe/Berlin" and axis.keys.right[-1] == zone[1]


def test_edges_are_as_round_as_can_be():
    edges = bins(dpf.ranges("fare", 1000), (0.0, 100.0)).keys.right
    assert list(edges) == [k / 10 for k in range(1, 1001)]


def test_bounds_may_be_as_far_apart_as_floats_are():
    axis = bins(dpf.ranges("fare", 8), (-1.7e308, 1.7e308))
    assert len(axis) == 8 and np.isfinite(axis.keys.left).all()


@pytest.mark.parametrize(
    "given",
    [0, -3, 10**9, True, 2.5, "fare", [1], [3, 2], [0, np.inf], [-np.inf, 0, 1], [0, np.nan, 1]],
)
def test_other_bins_are_refused(given):
    with raises(QueryError, "bins of 'fare'", parameter="bins", label="fare"):
        dpf.ranges("fare", given)


def test_bins_with_gaps_or_both_ends_are_refused():
    gap = pd.IntervalIndex.from_tuples([(0, 1), (2, 3)])
    with raises(QueryError, "adjacent", parameter="bins", label="fare"):
        dpf.ranges("fare", gap)
    with raises(QueryError, "adjacent", parameter="bins", label="fare"):
        dpf.ranges("fare", pd.IntervalIndex.from_breaks([0, 1, 2], closed="neither"))


def test_bins_reach_from_bound_to_bound():
    with raises(QueryError, "bound", parameter="bins", label="fare"):
        bins(dpf.ranges("fare", [0, 1, 2]), (0.0, 5.0))
    with raises(QueryError, "bound", parameter="bins", label="fare"):
        bins(dpf.ranges("fare", [0, 1, 2]), WEEK)
    assert len(bins(dpf.ranges("fare", [0, 1, 2]))) == 2


def test_bounds_are_needed_where_there_are_no_edges():
    with raises(DeclarationError, "public"):
        cells_of(dpf.ranges("fare"), Declaration())
    with raises(QueryError, "must differ", parameter="bounds", label="fare"):
        cells_of(dpf.ranges("fare", bounds=(2, 2)), Declaration())
    with raises(QueryError, "float", parameter="bounds", label="fare"):
        cells_of(dpf.ranges("fare", bounds=(2**62, 2**62 + 100)), Declaration())
    declared = Declaration({"fare": Column(bounds=(0.0, 1.0))})
    assert cells_of(dpf.ranges("fare", 3, bounds=(5, 8)), declared).index[0].left == 4.999


@pytest.mark.parametrize(
    "make",
    [
        lambda: dpf.ranges(["fare"]),
        lambda: dpf.ranges("fare", by="fare"),
        lambda: dpf.ranges("fare", bounds={"tip": (0, 1)}),
        lambda: dpf.ranges("fare", window=0),
        lambda: dpf.ranges("fare", window="cumulative"),
        lambda: dpf.ranges("fare", [0, 1, 2], window=3),
        lambda: dpf.quantile("fare", [0.5, 0.5]),
        lambda: dpf.quantile("fare", []),
        lambda: dpf.quantile("fare", 1),
        lambda: dpf.quantile("fare", 0.5, level=2),
        lambda: dpf.quantile("fare", 0.5, simultaneous="yes"),
        lambda: dpf.aggregate("zone", n=dpf.ranges("fare")),
    ],
)
def test_what_does_not_fit_is_refused(make):
    with pytest.raises(QueryError):
        make()


def test_words_say_what_is_asked():
    assert (
        dpf.ranges("fare", by="zone", where="fare > 0").words
        == "ranges of fare by zone where fare > 0"
    )
    assert dpf.ranges("fare", window=4).words == "ranges of fare over 4 bins"
    assert dpf.ranges("fare", window="expanding").words == "cumulative ranges of fare"
