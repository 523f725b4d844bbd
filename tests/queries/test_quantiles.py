"""Queries for quantiles: what can be asked, and what is said of the rest."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError
from dpframe.queries.binned import check_selectable


@pytest.mark.parametrize(
    "q",
    [
        0,
        1,
        -0.1,
        50,
        "0.5",
        None,
        True,
        [0.5, 0.25],
        [0.5, 0.5],
        [0.5, "x"],
        {0.5},
        {0.5: 1},
        math.nan,
    ],
)
def test_other_quantiles_are_refused(q):
    with raises(QueryError, "number", parameter="q"):
        dpf.quantile("fare", q)
    with raises(QueryError, "got q=a Series", parameter="q"):
        dpf.quantile("fare", pd.Series([0.5]))


def test_too_many_quantiles_and_too_fine_ones_cannot_be_selected():
    with raises(QueryError, "quantiles", parameter="q"):
        check_selectable(dpf.quantile("fare", [n / 11 for n in range(1, 11)]))
    with raises(QueryError, "six decimals", parameter="q"):
        check_selectable(dpf.quantile("fare", 0.1234567))
    with raises(QueryError, "six decimals", parameter="q"):  # of both together
        check_selectable(dpf.quantile("fare", [Fraction(1, 999_983), Fraction(1, 999_979)]))
    with raises(QueryError, "number", parameter="q"):
        dpf.quantile("fare", [])


@pytest.mark.parametrize("bins", [1, 2**20 + 1, [0, 1]])
def test_bins_to_select_among_are_two_or_more(bins):
    with raises(QueryError, "1,048,576", parameter="bins"):
        check_selectable(dpf.quantile("fare", 0.5, bins=bins))


NO_CANDIDATES = [[], [1], 5, "10", {1, 2}, {1: 2}, [2, 1], [1, 1], [0, np.inf], [0, np.nan]]
NO_NUMBERS = [[0, None], [0, 1j], [0, "1"], [1, True], pd.date_range("2024", periods=2)]


@pytest.mark.parametrize("candidates", [*NO_CANDIDATES, *NO_NUMBERS, np.ones((2, 2))])
def test_candidates_are_increasing_numbers(candidates):
    with raises(QueryError, "candidates of 'fare' must be", parameter="candidates", label="fare"):
        dpf.quantile("fare", 0.5, candidates=candidates)


def test_candidates_stand_in_place_of_bins():
    with raises(QueryError, "one of the two", parameter="candidates"):
        dpf.quantile("fare", 0.5, bins=10, candidates=[1, 2])


@pytest.mark.full
def test_candidates_are_a_million_at_most():
    with raises(QueryError, "at most", parameter="candidates"):
        dpf.quantile("fare", 0.5, candidates=range(2**20 + 1))


@pytest.mark.parametrize("bins", [0, -5, 2.5, "10", True])
def test_bins_are_a_number_or_edges(bins):
    with raises(QueryError, "bins of 'fare'", parameter="bins", label="fare"):
        dpf.quantile("fare", 0.5, bins=bins)


def test_columns_and_groups_must_not_be_mixed_up():
    with raises(QueryError, "Drop it from by", parameter="column"):
        dpf.quantile("fare", 0.5, by=["zone", "fare"])
    with raises(QueryError, "Rename", parameter="by", label="quantile"):
        dpf.quantile("fare", 0.5, by="quantile")
    with raises(QueryError, "cannot have", parameter="by", label="quantile"):
        dpf.quantile("quantile", [0.5])
    with raises(QueryError, "label", parameter="column"):
        dpf.quantile(["fare"], 0.5)
    with raises(QueryError, "not among columns", parameter="bounds", label="tip"):
        dpf.quantile("fare", 0.5, bounds={"tip": (0, 1)})


@pytest.mark.parametrize("mechanism", ["auto", "select"])
def test_columns_and_groups_called_count_have_quantiles(mechanism):
    how = {"mechanism": mechanism, "epsilon": 1e6, "privacy_unit": dpf.EACH_ROW}
    values = np.arange(400) % 40 + 0.5
    frame = pd.DataFrame({"count": values, "fare": values, "count_": values})
    found = dpf.release(frame, dpf.quantile("count", 0.5, bounds=(0, 40), bins=40), **how)
    assert found["count"].item() == pytest.approx(20, abs=1)
    assert dpf.verify(found).state == ("released" if mechanism == "select" else "post-processed")
    keys = {"count": [0.5], "count_": [0.5]}
    by = dpf.quantile("fare", 0.5, list(keys), keys=keys, bounds=(0, 40))
    assert dpf.release(frame, by, **how).index.names == ["count", "count_"]


def test_ranges_of_a_column_called_count_are_refused_with_a_way_out():
    with raises(QueryError, "rename", parameter="by", label="count"):
        dpf.ranges("count", bounds=(0, 40))
