"""Queries as frozen values: what they keep, and what they refuse."""

import dataclasses
import inspect
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CallError, DPFrameError, QueryError
from dpframe.queries.aggregate import NOT_OUTPUTS
from dpframe.queries.edges import check_bins, edges_of

SECRET = pd.Series(["secret", "secret"], name="zone")


def edges(intervals: pd.IntervalIndex) -> list:
    return edges_of(intervals).tolist()


@pytest.mark.parametrize("name", ["by", "columns"])
@pytest.mark.parametrize(
    "value", [{"zone", "day"}, frozenset({"zone"}), SECRET, [["zone"]], ("a", [])]
)
def test_other_things_name_no_columns(name, value):
    with raises(QueryError, "a column label or a list", parameter=name, value=None) as caught:
        dpf.count(by=value) if name == "by" else dpf.sum(value)
    assert "secret" not in str(caught.value)


def test_a_frame_names_no_columns():
    with raises(CallError, "takes no frame") as caught:
        dpf.sum(SECRET.to_frame())
    assert "secret" not in str(caught.value)
    with raises(QueryError, "label", parameter="by"):
        dpf.count(by=SECRET.to_frame())


def test_a_column_is_named_once():
    with raises(QueryError, "'a', 'a'", parameter="by"):
        dpf.count(by=["a", "a"])
    for query in (dpf.sum, dpf.mean):
        with raises(QueryError, "twice", parameter="columns"):
            query(["a", "b", "a"])
        with raises(QueryError, "twice", parameter="by"):
            query("x", by=[1, True])


@pytest.mark.parametrize("columns", [None, [], pd.Index([])])
def test_sums_and_means_are_of_something(columns):
    for query in (dpf.sum, dpf.mean):
        with raises(QueryError, "least", parameter="columns"):
            query(columns)


@pytest.mark.parametrize("query", [dpf.sum, dpf.mean])
def test_bounds_are_of_the_columns_asked_for(query):
    with raises(QueryError, "bounds names", parameter="bounds", label="tip"):
        query(["fare", "toll"], bounds={"fare": (0, 9), "tip": (0, 1)})


def test_queries_are_frozen():
    for query in (
        dpf.count(),
        dpf.sum("x"),
        dpf.histogram("x", [0, 1]),
        dpf.aggregate(n=dpf.count()),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            query.by = ("zone",)


@pytest.mark.parametrize("where", [5, "", "fare >", lambda row: True, pd.Series([True]), True])
def test_conditions_are_text(where):
    for query in (dpf.count, lambda **rest: dpf.sum("x", **rest)):
        with raises(QueryError, "where"):
            query(where=where)


@pytest.mark.parametrize("closed", ["left", "right", "both", "neither"])
def test_intervals_follow_each_other_as_pandas_says_and_at_both_ends(closed):
    ends = list(itertools.combinations_with_replacement(range(3), 2))
    for pairs in itertools.product(ends, repeat=3):
        found = pd.IntervalIndex.from_tuples(pairs, closed=closed)
        apart = found.is_monotonic_increasing and found.is_unique and not found.is_overlapping
        apart = apart and found.right.is_monotonic_increasing
        try:
            assert check_bins("x", found).equals(found) and apart
        except QueryError:
            assert not apart, pairs


@pytest.mark.full
def test_a_million_edges_are_the_bins_of_as_many_numbers():
    plain = np.linspace(0, 1, 1_000_001)
    odd = [*plain[:-1], Fraction(1)]  # read one by one
    assert check_bins("x", plain).equals(check_bins("x", odd))


def intervals(*pairs, closed="right") -> pd.IntervalIndex:
    return pd.IntervalIndex.from_tuples(list(pairs), closed=closed)


@pytest.mark.parametrize(
    ("bins", "rule"),
    [
        (0, "must be from 1 to"),
        (np.int64(-5), "must be from 1 to"),
        (True, "must be edges or a pandas.IntervalIndex"),
        (None, "must be edges or a pandas.IntervalIndex"),
        ("auto", "must be edges or a pandas.IntervalIndex"),
        (math.nan, "must be edges or a pandas.IntervalIndex"),
        ([0, "1"], "must be numbers"),
        (["0", "1"], "must be numbers"),
        ([False, True], "must be numbers"),
        ([0, None], "must be numbers"),
        ([1j, 2], "must be numbers"),
        ([[0, 1], [1, 2]], "must be numbers"),
        ([pd.Interval(0, 1)], "must be numbers"),
        ([0, 10**400], "must be numbers"),
        ([], "must be at least two edges"),
        ([0], "must be at least two edges"),
        ([0, 1, 1], "must be at least two edges"),
        ([2, 1, 0], "must be at least two edges"),
        ([0, math.nan, 1], "must be at least two edges"),
        ([math.nan, 0], "must be at least two edges"),
        ([math.inf, math.inf], "must be at least two edges"),
        (pd.IntervalIndex([]), "must be at least one interval"),
        (
            intervals((0, 1), (math.nan, math.nan)),
            "must have edges that are numbers, times or durations, none missing",
        ),
        (intervals((0, 2), (1, 3)), "must not overlap and must increase"),
        (intervals((1, 2), (0, 1)), "must not overlap and must increase"),
        (intervals((0, 1), (0, 1)), "must not overlap and must increase"),
        (intervals((0, 1), (1, 2), closed="both"), "must not overlap and must increase"),
    ],
    ids=str,
)
def test_bins_that_are_none_are_refused(bins, rule):
    with raises(QueryError, rule, parameter="bins", label="x"):
        dpf.histogram("x", bins)


@pytest.mark.parametrize(
    "bins", [pd.Series([7777.5, 1.0]), np.array([7777.5, 1.0]), pd.Series(["7777.5"])]
)
def test_errors_never_show_what_may_be_a_private_column(bins):
    with raises(QueryError, "bins", parameter="bins", label="x") as caught:
        dpf.histogram("x", bins)
    assert "7777" not in str(caught.value)
    with raises(QueryError, "label", parameter="column") as caught:
        dpf.histogram(bins, [0, 1])
    assert "7777" not in str(caught.value)


def test_a_histogram_is_of_one_column_that_is_not_grouped_by():
    assert dpf.histogram("x", [0, 1], by="zone").binned == ("x",)
    for by in ("x", ["zone", "x"]):
        with raises(QueryError, "grouped", parameter="column"):
            dpf.histogram("x", [0, 1], by=by)
    with raises(QueryError, "label", parameter="column"):
        dpf.histogram(["x"], [0, 1])


def test_parts_of_an_aggregate_keep_their_names_and_order():
    query = dpf.aggregate(by="zone", b=dpf.count(), a=dpf.sum("x", where="x > 0"), c=dpf.mean("x"))
    assert [output.name for output in query.outputs] == ["b", "a", "c"]
    assert query.by == ("zone",)
    assert dpf.aggregate(by="zone", n=dpf.count(by="zone")).by == ("zone",)


@pytest.mark.parametrize(
    ("parts", "word", "parameter"),
    [
        ({}, "at least one named query", None),
        ({"n": "count"}, "dpf.slope(x, y), got n='count'", "n"),
        ({"n": dpf.count}, "a function", "n"),
        ({"n": dpf.count(), "bounds": {"x": (0, 1)}}, "'column', bounds=(low, high)", "bounds"),
        ({"n": dpf.histogram("x", [0, 1])}, "got n='histogram of x'", "n"),
        ({"n": dpf.aggregate(n=dpf.count())}, "got n='n: count'", "n"),
        ({"n": dpf.count(by="day")}, "groups of its own", "n"),
        ({"n": dpf.count(keys=["A"])}, "groups of its own", "n"),
        ({"n": dpf.sum(["x", "y"])}, "single column, got n=['x', 'y']", "n"),
        ({"ok": dpf.count(), "m": dpf.mean(["x", "y"])}, "single column", "m"),
    ],
)
def test_parts_that_do_not_fit_an_aggregate_are_refused(parts, word, parameter):
    with raises(QueryError, word, parameter=parameter):
        dpf.aggregate(by="zone", **parts)


@pytest.mark.parametrize(
    ("ask", "word", "parameter"),
    [
        (lambda: dpf.count("ward", "year"), "by=['ward', 'year']", "by"),
        (lambda: dpf.sum("stay", "ward", "year"), "by=['ward', 'year']", "by"),
        (lambda: dpf.aggregate({"stay": "mean"}), "aggregate(by=..., name=dpf.mean('stay'))", "by"),
        (lambda: dpf.count({"ward": ["A", "B"]}), "by=['ward'], and give their groups", "by"),
        (lambda: dpf.count({"ward"}), "a set", "by"),
        (lambda: dpf.histogram("stay"), "histogram(column, bins)", "bins"),
        (lambda: dpf.count(where="ward = 'A'"), "==", "where"),
        (lambda: dpf.count(where="year > 3 and ward='A=1'"), "==", "where"),
    ],
)
def test_what_other_libraries_take_is_answered_with_what_to_write(ask, word, parameter):
    with raises(DPFrameError, word, parameter=parameter):
        ask()


@pytest.mark.parametrize("where", ["a >= 3 and b <= ", "a != '=' or", "a == 3 and"])
def test_nothing_is_said_of_equality_where_it_is_written_right(where):
    with raises(QueryError, "Allowed", parameter="where") as caught:
        dpf.count(where=where)
    assert "assigns" not in str(caught.value)


def test_names_that_cannot_be_outputs_are_the_keywords_of_the_accessor():
    taken = inspect.signature(dpf.DPAccessor.aggregate).parameters.values()
    ordinary = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    elsewhere = {"mu", "rho", "graph", "weight", "n_weight", "objective"}
    own = {taken.name for taken in taken if taken.kind in ordinary}
    assert set(NOT_OUTPUTS) == own | elsewhere


def test_keywords_of_a_release_are_refused_as_outputs():
    names = set(NOT_OUTPUTS) - set(inspect.signature(dpf.aggregate).parameters)
    assert {"epsilon", "denoise", "graph", "name", "note"} < names
    for name in names:
        with raises(QueryError, "graph, name, note", parameter=name):
            dpf.aggregate(**{name: dpf.count()})
