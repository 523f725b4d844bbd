"""No output is named like a level of the index: `reset_index` works on every release."""

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError

KEYS = pd.DataFrame({"zone": ["A"], "day": [1]})
TAKEN = {
    "a count in an aggregate": lambda: dpf.aggregate("zone", zone=dpf.count()),
    "a sum in an aggregate": lambda: dpf.aggregate("zone", zone=dpf.sum("fare")),
    "a level of several": lambda: dpf.aggregate(["zone", "day"], n=dpf.count(), day=dpf.count()),
    "combinations": lambda: dpf.aggregate(["zone", "day"], keys=KEYS, day=dpf.count()),
    "a count": lambda: dpf.count("count"),
    "units": lambda: dpf.units(["zone", "units"]),
    "a sum of keys": lambda: dpf.sum("day", by="day"),
    "a sum of several": lambda: dpf.sum(["fare", "day"], by=["zone", "day"]),
    "a mean of keys": lambda: dpf.mean("day", by="day"),
    "a label that is equal": lambda: dpf.sum(1.0, by=1),
}


@pytest.mark.parametrize("name", TAKEN)
def test_names_of_levels_are_refused(name):
    with raises(QueryError, "of the index", parameter="by"):
        TAKEN[name]()


def test_the_way_out_leads_out():
    frame = pd.DataFrame({"day": [1, 2]})
    query = dpf.aggregate("day", keys=[1, 2], total=dpf.sum("day", bounds=(0, 2)))
    assert list(dpf.release(frame, query, epsilon=1).reset_index()) == ["day", "total"]


@pytest.mark.parametrize(
    ("columns", "by", "free"),
    [
        (["a", "b"], "n", "n_rows"),
        (["a", "n"], "n_rows", "n_rows_2"),
        (["n", "n_rows"], ["n_rows_2", "a"], "n_rows_3"),
    ],
)
@pytest.mark.parametrize("mechanism", ["correlated", "laplace"])
def test_numbers_of_rows_have_a_name_of_their_own_where_they_are_asked_for(
    columns, by, free, mechanism
):
    labels = [*columns, *([by] if isinstance(by, str) else by)]
    frame = pd.DataFrame(np.ones((4, len(labels)), int), columns=labels)
    keys = {label: [1] for label in labels if label not in columns}
    spend = {"mechanism": mechanism, **({"epsilon": 1} if mechanism == "laplace" else {"mu": 1})}
    for weight, beside in ((0, []), (1, [free])):
        query = dpf.sum(columns, by, keys=keys, bounds=(0, 1), n_weight=weight)
        released = dpf.release(frame, query, **spend)
        assert list(released.reset_index()) == [*keys, *columns, *beside]


def test_denoised_columns_are_not_named_like_a_level():
    frame = pd.DataFrame({"count_denoised": ["A", "B"]})
    query = dpf.count("count_denoised", keys=["A", "B"])
    with raises(QueryError, "'count_denoised'"):
        dpf.release(frame, query, epsilon=1, denoise="nonnegative")
    with raises(QueryError, "'count_denoised'"):
        dpf.denoise(dpf.release(frame, query, epsilon=1), "nonnegative")
