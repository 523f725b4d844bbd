"""Margins, as they are asked for: which tables, what is refused, and why."""

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CallError, QueryError, UnknownColumnError
from dpframe.queries.tasks import BinAxis, KeyAxis

COLUMNS = ["sex", "age", "region"]
CUT = dpf.cut("age", [0, 18, 99])
IN_BINS = ["sex", CUT, "region"]


def test_a_tuple_is_a_set_or_one_label_where_ways_is_given():
    assert dpf.margins([("sex", "age"), ("age",), ()]).tables == (("sex", "age"), ("age",), ())
    one, other = labels = ("a", "b"), ("a", "c")
    assert dpf.margins(labels, ways=2).tables == ((), (one,), (other,), (one, other))
    assert dpf.margins(labels, ways=1).tables == ((), (one,), (other,))
    query = dpf.margins([[one, other], [one]], weights={one: 2, (other, one): 3})
    assert query.tables == ((one, other), (one,))
    assert query.margin_weights == (3, 2)
    frame = pd.DataFrame({one: [1, 2], other: [3, 4]})
    tables = frame.dp.margins(labels, 2, keys={one: [1, 2], other: [3, 4]}, epsilon=1)
    assert tables[one, other].index.nlevels == 2
    flat = pd.DataFrame({"a": [1], "b": [2]})
    with raises(UnknownColumnError, "'a', 'b'"):
        flat.dp.margins([one], ways=1, epsilon=1)


def test_tables_may_be_listed():
    query = dpf.margins([["region", "sex"], ["sex", "age"], []])
    assert query.by == ("region", "sex", "age")
    assert query.tables == (("region", "sex"), ("sex", "age"), ())
    assert query.words == "count in 3 margins by region, sex, age"
    assert [part.words for part in query.margins.values()] == [
        "count by region, sex",
        "count by sex, age",
        "count",
    ]


@pytest.mark.parametrize(
    ("columns", "options", "word", "parameter", "label"),
    [
        ("sex", {}, "dpf.count(by=...)", "columns", None),
        ([], {}, "at least one", "columns", None),
        ({"sex"}, {}, "a set", "columns", None),
        ({"sex": 1}, {}, "a dict", "columns", None),
        ([["sex", "age"]], {"ways": 2}, "lists of columns", "ways", None),
        ([["sex"], "age"], {}, "ways=", "columns", None),
        (COLUMNS, {"weights": {("age", "sex"): 2, ("sex", "age"): 3}}, "twice", "weights", None),
        (COLUMNS, {"weights": {"age": 2, ("age",): 3}}, "twice", "weights", None),
        (["sex", "sex"], {}, "column twice", "columns", None),
        (["sex", ["age"]], {}, "['region']", "columns", None),
        ([["sex", "age"], ["age", "sex"]], {}, "table twice", "columns", None),
        ([["sex", "sex"]], {}, "column twice", "columns", None),
        (COLUMNS, {"ways": 4}, "from 1 to 3, got ways=4", "ways", None),
        (COLUMNS, {"ways": 0}, "got ways=0", "ways", None),
        (COLUMNS, {"ways": 1.5}, "got ways=1.5", "ways", None),
        (COLUMNS, {"ways": True}, "got ways=True", "ways", None),
        ([f"c{k}" for k in range(40)], {"ways": 9}, "fewer ways=", "ways", None),
        ([[f"c{k}" for k in range(18)]], {}, "too many tables", "ways", None),
        (COLUMNS, {"weights": {"ages": 2}}, "'ages'", "weights", None),
        (COLUMNS, {"weights": {("sex", "age", "region"): 2}}, "7 tables", "weights", None),
        (COLUMNS, {"weights": {"age": 0}}, "weights=0", "weights", "age"),
        (COLUMNS, {"weights": {"age": "x"}}, "weights='x'", "weights", "age"),
        (COLUMNS, {"weights": [1, 2]}, "dict", "weights", None),
        ([[CUT], [dpf.cut("age", [0, 1])]], {}, "two ways", "by", None),
        (COLUMNS, {"keys": ["f", "m"]}, "dict by column", "keys", None),
        (COLUMNS, {"other": {"town": "other"}}, "not among", "other", "town"),
        (IN_BINS, {"other": {"age": "x"}}, "infinity", "other", "age"),
        (COLUMNS, {"other": {"age": None}}, "a key", "other", "age"),
        (COLUMNS, {"max_rows": 0}, "max_rows=0", "max_rows", None),
        (COLUMNS, {"max_groups": 3}, "give max_rows=", "max_groups", None),
        (COLUMNS, {"max_rows_per_group": 3}, "give max_rows=", "max_rows_per_group", None),
        (COLUMNS, {"v": dpf.var("age")}, "dpf.aggregate(", "v", None),
        (COLUMNS, {"v": dpf.std("age")}, "do not have", "v", None),
        (COLUMNS, {"v": dpf.units()}, "counts units", "v", None),
        (COLUMNS, {"v": 3}, "dpf.mean(column), got v=3", "v", None),
        (COLUMNS, {"v": dpf.count("sex")}, "groups of its own", "v", None),
        (COLUMNS, {"v": dpf.count(max_rows=2)}, "caps of its own", "v", None),
        (COLUMNS, {"v": dpf.sum("x", n_weight=2)}, "weights= of tables", "v", None),
        (COLUMNS, {"v": dpf.sum(["x", "y"])}, "single column", "v", None),
        (COLUMNS, {"epsilon": dpf.count()}, "output of margins", "epsilon", None),
        (COLUMNS, {"sex": dpf.count()}, "level", "by", "sex"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(columns, options, word, parameter, label):
    with raises(QueryError, word, parameter=parameter, label=label):
        dpf.margins(columns, **options)


def test_a_misspelled_keyword_is_answered():
    with raises(CallError, "'max_row'"):
        dpf.margins(COLUMNS, max_row=3)


def test_the_groups_of_a_column_are_bins_or_keys_with_one_for_the_rest():
    query = dpf.margins(IN_BINS, other={"region": "z"})
    assert isinstance(query.axis("age", None), BinAxis)
    assert query.axis("sex", None) is None
    plain = query.axis("sex", pd.Index(["f", "m"], name="sex"))
    assert isinstance(plain, KeyAxis)
    assert not plain.rest
    axis = query.axis("region", pd.Index(["a", "b"], name="region"))
    assert axis.rest
    assert list(axis.keys) == ["a", "b", "z"]
    assert axis.keys.name == "region"


@pytest.mark.parametrize(("keys", "rest"), [(["a", "z"], "z"), ([1, 2], 1.0), ([0, 1], True)])
def test_the_key_for_the_rest_is_none_of_the_others(keys, rest):
    with raises(QueryError, "'region'", parameter="other", label="region"):
        dpf.margins(["region"], other=rest).axis("region", pd.Index(keys, name="region"))
    frame = pd.DataFrame({"region": keys})
    with raises(QueryError, "equals a key", parameter="other", label="region"):
        frame.dp.margins(["region"], other=rest, keys={"region": keys}, epsilon=1)
