"""Labels of columns that no file can keep are refused before anything is charged."""

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError

ODD = "\udc80"


@pytest.fixture
def frame():
    frame = pd.DataFrame({"zone": ["A", "B"], "fare": [1, 2]})
    frame.columns = pd.Index(["zone", ODD], dtype=object)
    frame.dp.declare(keys={"zone": ["A"]}, privacy_unit=dpf.EACH_ROW, budget=dpf.Budget(1, 1e-6))
    return frame


QUERIES = {
    "columns": dpf.sum(ODD, bounds=(0, 1)),
    "by": dpf.count(ODD, keys=[1]),
    "a bin": dpf.histogram(ODD, [0, 1]),
    "a part of several": {"one": dpf.count(), "two": dpf.mean(ODD, bounds=(0, 1))},
    "a name": {ODD: dpf.count()},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_labels_that_are_no_unicode_are_refused_before_the_charge(frame, query):
    for ask in (frame.dp.release, frame.dp.plan):
        with raises(QueryError, "valid Unicode text"):
            ask(query, epsilon=0.1)
    assert not frame.dp.ledger.entries
    assert frame.dp.count("zone", epsilon=0.1).shape == (1, 1)


FACTS = [
    {"bounds": {ODD: (0, 1)}},
    {"keys": {ODD: [1]}},
    {"missing": {ODD: 0}},
    {"privacy_unit": ODD, "max_rows": 1},
]


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: next(iter(facts)))
def test_labels_that_are_no_unicode_are_not_declared(frame, facts):
    with raises(QueryError, "must be a valid Unicode text"):
        frame.dp.declare(**facts)


def test_a_tuple_of_texts_is_a_label_if_all_are_unicode():
    frame = pd.DataFrame([[1, 2]])
    frame.columns = pd.Index([("a", "b"), ("a", ODD)], dtype=object, tupleize_cols=False)
    asked = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    assert frame.dp.count(where=None, **asked).shape == (1, 1)
    with raises(QueryError, "must be a valid Unicode text"):
        frame.dp.sum([("a", ODD)], bounds=(0, 1), **asked)


def test_a_frame_without_columns_says_so():
    with raises(QueryError, "columns", label="zone"):
        pd.DataFrame(index=[1]).dp.count("zone", keys=["A"], epsilon=1)
