"""Searches for keys are prepared once, and go with the keys."""

import gc

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
