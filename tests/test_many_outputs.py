"""Options for many outputs at once: what is recorded, and what is refused with the way out."""

import math

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import dpframe as dpf
from dpframe.certificates.json_records import unpack
from dpframe.certificates.parts import OptionsPart
from dpframe.errors import QueryError

NAMES = [f"c{j}" for j in range(6)]


@pytest.fixture(scope="module")
def wide():
    frame = pd.DataFrame(
        {name: [True, False] for name in NAMES} | {"g": ["a", "b"], "h": ["x", "y"]}
    )
    schema = pa.DataFrameSchema({name: pa.Column(bool) for name in NAMES})
    frame.dp.declare(schema, keys={"g": ["a", "b"], "h": ["x", "y"]})
    return frame


@pytest.mark.parametrize(
    "options", [{"max_true": 1}, {"n": 5}, {"n_weight": 2}, {"objective": "worst"}]
)
def test_options_of_parts_of_an_aggregate_are_refused(options):
    with pytest.raises(QueryError, match="once for all"):
        dpf.aggregate(a=dpf.sum("c0", **options), b=dpf.sum("c1"))


@pytest.mark.parametrize(
    "options",
    [
        {"max_true": 2, "n": 5},
        {"max_true": 2, "n_weight": 1},
        {"max_true": 2, "objective": "worst"},
        {"n": 5, "n_weight": 1},
    ],
)
def test_options_without_meaning_together_are_refused(options):
    with pytest.raises(QueryError, match=r"cannot go with|has no meaning"):
        dpf.sum(NAMES, **options)


@pytest.mark.parametrize(
    "n",
    [
        -1,
        math.nan,
        math.inf,
        10**400,
        "5",
        True,
        1j,
        [5, 6],
        np.array([5, 6]),
        (1, 2, 3),
        (5, -1),
        (5, "1"),
        (5, 1.0),
        pd.Series([5], index=["a"]),
        pd.Series([5, 6, 7], index=["a", "b", "b"]),
        pd.Series([5, -6], index=["a", "b"]),
        pd.Series([5, math.nan], index=["a", "b"]),
        pd.Series(["5", "6"], index=["a", "b"]),
        pd.Series([True, False], index=["a", "b"]),
        pd.Series([1j, 2j], index=["a", "b"]),
        pd.Series(pd.to_datetime(["2020", "2021"]), index=["a", "b"]),
        pd.Series([5, 6], index=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")])),
    ],
)
def test_public_numbers_of_rows_are_numbers_of_every_group(wide, n):
    with pytest.raises(QueryError, match=r"\bn\b"):
        wide.dp.plan(dpf.sum(NAMES, by="g", n=n), mu=0.1)


def test_levels_of_public_numbers_are_matched_by_name(wide):
    index = pd.MultiIndex.from_product([["x", "y"], ["a", "b"]], names=["h", "g"])
    n = pd.Series([100.0, 200, 300, 400], index=index)
    released = wide.dp.release(dpf.sum(NAMES, by=["g", "h"], n=n), mu=1e4)
    known = released.dp.certificate.query.options.n
    assert list(unpack(known.rows)) == [100, 300, 200, 400]
    with pytest.raises(QueryError, match="indexed by"):
        wide.dp.release(dpf.sum(NAMES, by=["g", "h"], n=n.rename_axis(["h", "k"])), mu=1)


def test_the_certificate_tells_the_options(wide):
    few = wide.dp.release(dpf.sum(NAMES, by="g", max_true=3), mu=0.5).dp.certificate
    assert "at most 3 true in a row" in few.query.words
    assert few.query.options.max_true == 3
    told = wide.dp.release(dpf.sum(NAMES, by="g", n=7), mu=0.5).dp.certificate
    assert "given the rows of each group" in told.query.words
    worst = wide.dp.release(dpf.sum(NAMES, n_weight=2, objective="worst"), mu=0.5).dp.certificate
    assert worst.query.options == OptionsPart(None, 2.0, "worst", None)


def test_a_limit_of_one_true_column_fewer_binds():
    frame = pd.DataFrame(dict.fromkeys(NAMES, [True] * 300))
    frame.dp.declare(pa.DataFrameSchema({name: pa.Column(bool) for name in NAMES}))
    released = frame.dp.sum(NAMES, max_true=5, epsilon=1e6)
    assert released.to_numpy().sum() == 5 * 300  # noise of an integer is 0 but once in e^1e5


def test_an_accurate_number_of_rows_is_always_released(wide):
    for weight in (1, 100, 1e6):
        released = wide.dp.release(dpf.sum(NAMES, n_weight=weight), mu=0.1)
        assert list(released.columns) == [*NAMES, "n"]


@pytest.mark.parametrize("key", ["a", ("a", "x", 1), 5])
def test_weights_name_rows_by_all_their_keys(wide, key):
    released = wide.dp.release(dpf.count(["g", "h"]), mu=0.5)
    with pytest.raises(QueryError, match="weights must name rows by all of"):
        released.dp.combine({key: 1})


def test_weights_of_one_of_several_columns_are_told_to_choose_it(wide):
    released = wide.dp.release(dpf.aggregate("g", n=dpf.count(), m=dpf.count()), mu=0.5)
    key = released.index[0]
    with pytest.raises(QueryError, match=r"released\[\[\.\.\.\]\]"):
        released.dp.combine({key: 1})
    (estimate,) = released[["n"]].dp.combine({key: 1})["estimate"]
    assert estimate == released.loc[key, "n"]


@pytest.mark.parametrize("weight", [10**400, 1j, "1", True, None, math.nan])
def test_weights_are_finite_numbers(wide, weight):
    with pytest.raises(QueryError, match="weights must be finite"):
        wide.dp.release(dpf.count("g"), mu=0.5).dp.combine({"a": weight})


def test_a_weight_given_twice_is_named(wide):
    with pytest.raises(QueryError, match="a label comes twice"):
        wide.dp.release(dpf.count("g"), mu=0.5).dp.combine(pd.Series([1, 2], index=["a", "a"]))


@pytest.mark.parametrize("size", [1e-200, 1e100])
def test_errors_of_combinations_are_right_for_values_of_any_size(wide, size):
    frame = pd.DataFrame({"x": [size, 0.0] * 50})
    released = frame.dp.release(dpf.sum("x", bounds=(0, size)), mu=0.5)
    error = released.dp.std_error.iloc[0, 0]
    combined = released.dp.combine({0: 3.0})
    assert combined.loc[0, "std_error"] == pytest.approx(3 * error, rel=1e-12)
    assert combined.loc[0, "low"] < combined.loc[0, "estimate"] < combined.loc[0, "high"]
