"""Bounds, caps, amounts and weights of any size: what is released is finite, or refused first."""

import sys

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CalibrationError, DeclarationError, QueryError

LARGEST = 1e100
BEYOND = np.nextafter(LARGEST, np.inf)


def visits(**facts):
    frame = pd.DataFrame({"who": [1, 1, 2], "zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    facts = {"privacy_unit": dpf.EACH_ROW, **facts}
    frame.dp.declare(keys={"zone": ["A", "B"]}, budget=dpf.Budget(9, 1e-6), **facts)
    return frame


def assert_finite(frame, query, **spend):
    """Check that all that is said of a release is finite, before it and after."""
    preview = frame.dp.plan(query, **spend).table
    released = frame.dp.release(query, **spend)
    for table in (released, released.dp.std_error, released.dp.interval()):
        numbers = table.to_numpy(float)
        means = query.outputs[0].statistic == "mean"
        is_unknown = np.isnan(numbers) & (table is released) & means
        assert (np.isfinite(numbers) | is_unknown).all()
    assert np.isfinite(preview["std_error"]).all()
    assert np.isfinite(preview["half_width_95"]).all()


@pytest.mark.parametrize(
    "bounds", [(0, BEYOND), (-BEYOND, 0), (0, 1.7e308), (-1e308, 1e308), (0, 10**101)], ids=str
)
def test_bounds_that_are_too_large_are_refused_before_the_charge(bounds):
    told = r"bounds of 'fare' must be at most 1e\+100 in size.*larger unit"
    with pytest.raises(DeclarationError, match=told):
        visits(bounds={"fare": bounds})
    frame = visits()
    for query in (dpf.sum("fare", "zone", bounds=bounds), dpf.mean("fare", bounds=bounds)):
        with pytest.raises(DeclarationError, match=told):
            frame.dp.release(query, epsilon=0.1)
        with pytest.raises(DeclarationError, match=told):
            frame.dp.plan(query, epsilon=0.1)
    assert frame.dp.ledger.entries == ()


def test_checks_beyond_the_largest_bound_are_no_bounds():
    def schema(largest, **metadata):
        checks = [pa.Check.ge(0), pa.Check.le(largest)]
        return pa.DataFrameSchema({"fare": pa.Column(float, checks, metadata=metadata)})

    frame = pd.DataFrame({"fare": [1.0]})
    frame.dp.declare(schema(sys.float_info.max))
    assert frame.dp.declaration.column("fare").bounds is None
    frame.dp.declare(schema(LARGEST))
    assert frame.dp.declaration.column("fare").bounds == (0, LARGEST)
    with raises(DeclarationError, "at most", parameter="bounds", label="fare"):
        frame.dp.declare(schema(1, dpframe={"bounds": (0, BEYOND)}))


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "gaussian", "correlated"])
@pytest.mark.parametrize("bounds", [(0, LARGEST), (-LARGEST, LARGEST), (LARGEST, LARGEST)], ids=str)
@pytest.mark.parametrize("epsilon", [1e-4, 0.5])
def test_releases_within_the_largest_bounds_are_finite(mechanism, bounds, epsilon):
    frame = visits(bounds={"fare": bounds, "who": (0, 2)})
    queries = [
        dpf.sum(["fare", "who"], "zone"),
        dpf.mean("fare", "zone"),
        dpf.sum(["fare", "who"], "zone", n=1e100),
        dpf.sum(["fare", "who"], "zone", n_weight=1e6, objective="worst"),
    ]
    for query in queries:
        how = "auto" if query.outputs[0].statistic == "mean" else mechanism
        assert_finite(frame, query, epsilon=epsilon, delta=1e-9, mechanism=how)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"n": 1e308}, r"n must be a number of at most 1e\+100"),
        ({"n": 10**300}, r"n must be a number of at most 1e\+100"),
        ({"n": pd.Series([1e101, 1.0], ["A", "B"])}, r"n must be at most 1e\+100"),
        ({"n": (pd.Series([1.0, 1.0], ["A", "B"]), 1e101)}, r"the variance of n must be a number"),
    ],
    ids=["a float", "an integer", "a series", "a variance"],
)
def test_known_rows_that_are_too_many_are_refused_before_the_charge(said, match):
    frame = visits(bounds={"fare": (0, 1), "who": (0, 2)})
    with pytest.raises(QueryError, match=match):
        frame.dp.release(dpf.sum(["fare", "who"], "zone", **said), mu=0.01)
    assert frame.dp.ledger.entries == ()


def test_released_rows_are_no_exact_number():
    frame = visits(bounds={"fare": (0, 1), "who": (0, 2)})
    released = frame.dp.release(dpf.count("zone"), mu=0.01)
    rows, variance = released["count"], float(released.dp.std_error.iloc[0, 0] ** 2)
    for noisy in (rows, rows.astype(float), 2 * rows):
        with raises(QueryError, "variance"):
            frame.dp.release(dpf.sum(["fare", "who"], "zone", n=noisy), mu=0.01)
    assert len(frame.dp.ledger.entries) == 1
    with_rows = frame.dp.plan(dpf.sum(["fare", "who"], "zone", n=(rows, variance)), mu=0.01).table
    exact = frame.dp.plan(
        dpf.sum(["fare", "who"], "zone", n=pd.Series({"A": 2, "B": 1})), mu=0.01
    ).table
    assert (with_rows["std_error"] > exact["std_error"]).all()


def test_weights_that_are_too_large_are_refused():
    with raises(QueryError, "at most 1e+100"):
        dpf.sum(["fare", "who"], n_weight=1e300, objective="worst")


@pytest.mark.parametrize("amount", [1e300, 1e100, 5e-324, 1e-300, 1e-100, 2.0**100, 1e15, 1e-18])
@pytest.mark.parametrize("kind", ["epsilon", "mu", "rho"])
@pytest.mark.filterwarnings("ignore::dpframe.errors.DPFrameWarning")
def test_amounts_of_any_size_are_refused_or_give_finite_answers(kind, amount):
    frame = pd.DataFrame({"zone": ["A"], "fare": [1.0]})
    for query in (dpf.count("zone", keys=["A", "B"]), dpf.mean("fare", bounds=(0, LARGEST))):
        try:
            assert_finite(frame, query, **{kind: amount})
        except CalibrationError as error:
            assert "2**" in str(error)


@pytest.mark.parametrize("cap", ["max_rows", "max_groups", "max_rows_per_group"])
def test_caps_that_python_cannot_write_are_not_declared(cap):
    with pytest.raises(DeclarationError, match=rf"^{cap} must be .*, got {cap}=an int\."):
        visits(privacy_unit="who", **{"max_rows": 2, cap: 10**5000})
    declared = visits(privacy_unit="who", **{"max_rows": 2, cap: 10**400 if cap[4] == "g" else 2})
    assert len(declared.dp.count("zone", epsilon=0.1)) == 2


@pytest.mark.parametrize("most", [2**60 + 1, 10**19, 10**400], ids=["2**60", "10**19", "10**400"])
def test_caps_that_bound_nothing_are_refused_before_the_charge(most):
    frame = visits(privacy_unit="who", max_rows=most)
    with raises(DeclarationError, "2**60 rows of one unit at most"):
        frame.dp.count("zone", epsilon=0.1)
    assert frame.dp.ledger.entries == ()


@pytest.mark.parametrize("most", [10**6, 2**31, 2**60])
def test_caps_of_any_size_give_finite_answers(most):
    frame = visits(privacy_unit="who", max_rows=most, bounds={"fare": (0, LARGEST)})
    for query in (dpf.count("zone"), dpf.sum("fare", "zone")):
        try:
            assert_finite(frame, query, epsilon=0.5)
        except CalibrationError as error:
            assert "scale above the limit of 2**60" in str(error)
            assert most >= 2**31
