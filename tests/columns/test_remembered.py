"""Searches for keys are prepared once, and go with the keys."""

import gc

import numpy as np
import pandas as pd
import pytest

from dpframe.columns import lookup
from dpframe.columns.lookup import Remembered, finder
from dpframe.queries.tasks import KeyAxis

KEYS = pd.Index(["a", "b", "c"], name="k")


@pytest.fixture(autouse=True)
def _none_known(monkeypatch):
    monkeypatch.setattr(lookup, "_KNOWN", Remembered(lookup._FEW_LISTS))


def found(column, keys=KEYS):
    return finder(KeyAxis("k", keys), column)(column).tolist()


def columns():
    values = ["c", "x", None, "a"]
    yield pd.Series(values, dtype="str")
    yield pd.Series(values, dtype=object)
    yield pd.Series(values, dtype="category")
    yield pd.Series(pd.Categorical(values, ["x", "b", "c", "a"]))
    yield pd.Series(pd.Categorical(values, ["a", "c", "x"]))


def test_no_column_is_read_with_what_was_made_for_another():
    for _ in range(2):
        for column in columns():
            assert found(column) == [2, 3, 3, 0]
            assert found(column, KEYS[::-1]) == [0, 3, 3, 2]


def test_a_search_is_prepared_once_per_list_of_keys_and_dtype(monkeypatch):
    boxed = []
    read = lambda key: boxed.append(key) or pd.Timestamp(key)  # noqa: E731
    monkeypatch.setitem(lookup._TIMES, np.datetime64, read)
    days = pd.Index(np.array(["2020-01-01", "2020-01-02"], "M8[D]").astype(object), name="k")
    keys = pd.Index([np.datetime64(day) for day in days], dtype=object)
    column = pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01"]))
    assert [found(column, keys) for _ in range(3)] == [[1, 0]] * 3
    assert len(boxed) == 2
    assert found(column.astype(object), keys) == [1, 0]
    assert len(boxed) == 2
    assert found(column, keys.copy()) == [1, 0]
    assert len(boxed) == 4


@pytest.mark.full
def test_what_is_kept_goes_with_the_keys_and_the_categories():
    keys = KEYS.copy(deep=True)
    column = pd.Series(pd.Categorical(["c", "x", "a"], ["x", "c", "a"]))
    assert found(column, keys) == [2, 3, 0]
    tables = lookup.axis_keys(keys).tables
    assert (len(lookup._KNOWN), len(tables)) == (1, 1)
    del column
    gc.collect()
    assert (len(lookup._KNOWN), len(tables)) == (1, 0)
    del keys
    gc.collect()
    assert len(lookup._KNOWN) == 0


def test_only_the_last_few_are_kept():
    lists = [pd.Index([place]) for place in range(lookup._FEW_LISTS + 3)]
    made = [lookup.axis_keys(keys) for keys in lists]
    assert len(lookup._KNOWN) == lookup._FEW_LISTS
    assert lookup.axis_keys(lists[-1]) is made[-1]
    assert lookup.axis_keys(lists[0]) is not made[0]


def test_a_new_object_in_the_place_of_an_old_one_is_not_taken_for_it():
    kept = Remembered(3)
    one, other = {1}, {2}
    kept.of(one, lambda: "one")
    kept._known[id(other)] = kept._known.pop(id(one))
    assert kept.of(other, lambda: "other") == "other"
    del one
    assert kept.of(other, lambda: "again") == "other"


class Racing(dict):
    """Another thread drops each value as soon as it was looked at."""

    def get(self, name, default=None):
        return self.pop(name, default)


def test_what_another_thread_has_just_dropped_is_dropped():
    remembered, some = Remembered(2), {1}
    remembered._known = Racing()
    assert remembered.of(some, lambda: 1) == 1
    del some
    gc.collect()
    assert len(remembered) == 0
