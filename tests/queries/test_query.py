"""Kinds of queries say what they ask for, and no other module asks for their kind."""

from pathlib import Path

import pandas as pd
import pytest

import dpframe as dpf
from dpframe import Query
from dpframe.queries.query import OutputSpec, QueryOptions

ROOT = Path(dpf.__file__).parent
ALL = [
    dpf.count("zone", where="fare > 0"),
    dpf.sum(["fare", "tip"], "zone", where="fare > 0"),
    dpf.mean("fare"),
    dpf.histogram("fare", [0, 1, 2], "zone", where="tip > 0"),
    dpf.aggregate(
        "zone",
        where="fare > 0",
        n=dpf.count(where="toll > 0"),
        s=dpf.sum("tip", where="fare < 9", bounds=(0, 5)),
    ),
    dpf.aggregate(n=dpf.count(where="toll > 0"), m=dpf.mean("tip", where="toll > 0")),
    dpf.units("zone", where="fare > 0"),
    dpf.rate("tip > fare", "zone", where="fare > 0"),
    dpf.var(["fare", "tip"], "zone", bounds=(0, 9)),
    dpf.std("fare", where="tip > 0"),
    dpf.cov("fare", "tip", "zone"),
    dpf.corr("fare", "tip", bounds=(0, 9)),
    dpf.slope("fare", "tip", where="toll > 0"),
    dpf.regression("fare", ["tip", "toll"], "zone", where="toll > 0"),
]


def told(asked):
    where = None if asked.where is None else asked.where.text
    return asked.name, asked.statistic, asked.column, where, dict(asked.bounds)


@pytest.mark.parametrize(
    ("query", "condition", "expected"),
    [
        (ALL[0], "fare > 0", [("count", "count", None, None, {})]),
        (ALL[1], "fare > 0", [(name, "sum", name, None, {}) for name in ("fare", "tip")]),
        (ALL[2], None, [("fare", "mean", "fare", None, {})]),
        (ALL[3], "tip > 0", [("count", "count", None, None, {})]),
        (
            ALL[4],
            "fare > 0",
            [
                ("n", "count", None, "toll > 0", {}),
                ("s", "sum", "tip", "fare < 9", {"tip": (0, 5)}),
            ],
        ),
        # a condition that all have leaves rows out of the table as a whole
        (ALL[5], "toll > 0", [("n", "count", None, None, {}), ("m", "mean", "tip", None, {})]),
        (ALL[6], "fare > 0", [("units", "count", None, None, {})]),
        (ALL[7], "fare > 0", [("rate", "rate", None, None, {})]),
        (ALL[8], None, [(name, "var", name, None, {name: (0, 9)}) for name in ("fare", "tip")]),
        (ALL[9], "tip > 0", [("fare", "std", "fare", None, {})]),
    ],
)
def test_each_kind_says_its_outputs(query, condition, expected):
    assert [told(asked) for asked in query.outputs] == expected
    assert (query.condition.text if query.condition else None) == condition


@pytest.mark.parametrize(
    ("query", "words", "labels"),
    [
        (ALL[0], "count by zone where fare > 0", ("zone", "fare")),
        (ALL[1], "sum of fare, tip by zone where fare > 0", ("zone", "fare", "tip")),
        (ALL[2], "mean of fare", ("fare",)),
        (ALL[3], "histogram of fare by zone where tip > 0", ("zone", "fare", "tip")),
        (
            ALL[4],
            "n: count where toll > 0, s: sum of tip where fare < 9 by zone where fare > 0",
            ("zone", "tip", "fare", "toll"),
        ),
        (ALL[5], "n: count where toll > 0, m: mean of tip where toll > 0", ("tip", "toll")),
        (ALL[6], "units by zone where fare > 0", ("zone", "fare")),
        (ALL[8], "variance of fare, tip by zone", ("zone", "fare", "tip")),
        (ALL[9], "standard deviation of fare where tip > 0", ("fare", "tip")),
        (ALL[7], "rate of tip > fare by zone where fare > 0", ("zone", "fare", "tip")),
        (dpf.sum(["a", "b"], max_true=1), "sum of a, b, at most 1 true in a row", ("a", "b")),
        (dpf.sum("a", n=7), "sum of a, given the rows of each group", ("a",)),
        (dpf.sum("a", n=(7, 2)), "sum of a, given an estimate of the rows", ("a",)),
    ],
)
def test_each_kind_says_its_words_and_columns(query, words, labels):
    assert (query.words, tuple(query.labels)) == (words, labels)


def test_labels_say_by_which_parameter_they_are_named():
    rate = dpf.rate("tip > fare", "zone", where="fare > 0")
    assert rate.labels == {"zone": "by", "fare": "where", "tip": "condition"}
    assert dpf.sum("fare", "zone", where="tip > 0").labels == {
        "zone": "by",
        "fare": "columns",
        "tip": "where",
    }
    assert dpf.quantile("fare").labels == dpf.histogram("fare", [0, 1]).labels == {"fare": "column"}
    pair = {"zone": "by", "fare": "columns", "tip": "columns"}
    assert dpf.cov("fare", "tip", "zone").labels == pair
    assert dpf.margins(["zone"]).labels == {"zone": "columns"}
    assert dpf.suggest_bounds("fare", "zone").labels == {"zone": "by", "fare": "column"}
    assert dpf.discover("zone", where="tip > 0").labels == {"zone": "by", "tip": "where"}


def test_only_histograms_make_groups_of_their_own():
    axes = [[(axis.column, len(axis)) for axis in query.bin_axes] for query in ALL]
    assert axes == [[]] * 3 + [[("fare", 2)], *[[]] * 10]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, []),
        ({"max_true": 1}, ["max_true"]),
        ({"n": pd.Series([1, 2]), "objective": "worst"}, ["n", "objective"]),
        ({"n_weight": 0.5}, ["n_weight"]),
    ],
)
def test_options_know_which_are_given(given, names):
    assert QueryOptions(**given).names_given == names


def test_a_query_that_does_not_say_what_it_asks_for_cannot_be_made():
    with pytest.raises(TypeError, match="outputs"):
        Query(("zone",), subject="silence")


def test_a_new_kind_is_released_without_being_known_anywhere():
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]})
    mean = OutputSpec("fare", "mean", "fare", bounds={"fare": (0, 9)})
    outputs = OutputSpec("rows", "count"), mean
    query = Query(("zone",), outputs=outputs, subject="rows and their mean fare")
    spend = {"epsilon": 1e9, "mechanism": "laplace"}
    released = frame.dp.release(query, **spend)
    assert released["rows"].tolist() == [2, 1]
    assert released["fare"].tolist() == pytest.approx([2, 2])
    kinds_of = [column.kind for column in released.dp.certificate.columns]
    assert kinds_of == ["count", "mean"]
    assert released.dp.certificate.query.words == "rows and their mean fare by zone"
    assert list(frame.dp.plan(query, **spend).table["per"]) == ["cell", "1 / rows"]
