"""Errors of what is computed from margins, against their own standard errors and realized ones."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from support.quotients import quotients_of
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError
from dpframe.strategies.contrasts import restore_totals

SEX, AGE, EDU = ["f", "m"], [1, 2, 3], ["low", "mid", "high", "top"]
RELEASES = 400
# the standard deviation of 400 draws with a kurtosis of at most 4 is off by 4.3 % in the mean
# square, and by more than 22 % less than once in 1,000,000 times
TOLERANCE = 0.22


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(SEX, 300),
            "age": rng.choice(AGE, 300),
            "edu": rng.choice(EDU, 300, p=[0.5, 0.3, 0.2, 0.0]),
            "wage": rng.integers(0, 50, 300),
        }
    )
    dpf.declare(
        frame,
        keys={"sex": SEX, "age": AGE, "edu": EDU},
        bounds={"wage": (0, 50)},
        privacy_unit=dpf.EACH_ROW,
    )
    return frame


def margins(frame, mechanism="gaussian", **options):
    given = {"epsilon": 1, "delta": 1e-6, "mechanism": mechanism} | options
    return frame.dp.margins(["sex", "age", "edu"], ways=2, **given)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "box"])
def test_a_sum_of_cells_has_the_error_of_the_margin_that_it_is(people, mechanism):
    tables = margins(people, mechanism)
    for columns, part in ((("sex",), ("sex", "age")), (("edu",), ("age", "edu")), ((), ("sex",))):
        smaller, larger = tables[columns], tables[part]
        first = smaller.index[0]
        inside = larger if not columns else larger.xs(first, level=columns[0], drop_level=False)
        weights = pd.Series(1.0, index=inside.index)
        combined = larger.dp.combine(weights).iloc[0]
        assert combined["estimate"] == pytest.approx(smaller["count"].iloc[0], abs=1e-9)
        own = smaller.dp.std_error["count"].iloc[0]
        assert combined["std_error"] == pytest.approx(own, rel=2e-3)


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_realized_errors_of_combinations_are_those_that_are_stated(people, mechanism):
    weights = {
        ("sex", "age"): dict.fromkeys(itertools.product(SEX, AGE), 1.0),
        ("age", "edu"): {(1, "low"): 1.0, (3, "top"): 0.5},
        (): {0: -0.1},
    }

    def estimate(tables):
        return sum(w * tables[t].loc[k, "count"] for t in weights for k, w in weights[t].items())

    tables = margins(people, mechanism)
    combined = dpf.combine(tables, weights).iloc[0]
    assert combined["estimate"] == pytest.approx(estimate(tables), abs=1e-9)
    spread = np.std([estimate(margins(people, mechanism)) for _ in range(RELEASES)])
    assert abs(spread / combined["std_error"] - 1) < TOLERANCE
    if mechanism == "gaussian":  # what follows from independent cells is far off
        cell = tables["sex", "age"].dp.std_error["count"].iloc[0]
        assert spread < (1 - TOLERANCE) * cell * math.sqrt(6 + 1.25)


def test_tables_that_say_the_same_cancel(people):
    tables = margins(people)
    weights = {
        ("sex", "edu"): dict.fromkeys(tables["sex", "edu"].index[:4], 1.0),
        ("sex",): {"f": -1.0},
    }
    combined = dpf.combine(tables, weights).iloc[0]
    assert combined["std_error"] < 1e-9 and abs(combined["estimate"]) < 1e-9


def test_tables_are_named_by_their_columns_in_any_order(people):
    tables = margins(people)
    cells = dict.fromkeys(tables["sex", "edu"].index[:4], 1.0)
    expected = dpf.combine(tables, {("sex", "edu"): cells, ("sex",): {"f": -2.0}, (): {0: 1}})
    for both, one in ((("edu", "sex"), "sex"), (("sex", "edu"), ("sex",))):
        found = dpf.combine(tables, {one: {"f": -2.0}, (): {0: 1}, both: cells})
        np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-9, atol=1e-9)
    with raises(QueryError, "twice", parameter="weights"):
        dpf.combine(tables, {("sex", "edu"): cells, ("edu", "sex"): cells})


def test_covariances_are_those_of_a_dense_computation(people):
    structure = margins(people)["age", "edu"].dp.certificate.mechanism
    described = structure.by_block["0"]
    rows = []
    for layer, variances in zip(described.layers, described.variances(), strict=True):
        for place in np.ndindex(variances.shape):
            measured = np.zeros(described.sizes)
            at = iter(place)
            measured[tuple(next(at) + 1 if k in layer else 0 for k in range(2))] = 1.0
            rows.append(restore_totals(measured, range(2)).ravel() * math.sqrt(variances[place]))
    covariance = np.array(rows).T @ np.array(rows)
    rng = np.random.default_rng(4)
    for weights in rng.normal(size=(5, 12)):
        assert described.variance(weights) == pytest.approx(weights @ covariance @ weights)


@pytest.mark.audit
def test_intervals_of_shares_hold_as_often_as_they_say(people):
    truth = people.groupby("sex").size()["f"] / len(people) * 100
    held = 0
    for _ in range(150):
        share = quotients_of(margins(people)["sex",].dp.percent()).loc["f"]
        held += share["low"] <= truth <= share["high"]
    assert held >= 127  # 95 % of 150 are 142.5; fewer come less than once in 1,000,000 times


def test_rows_that_moved_are_combined_as_they_were_released(people):
    table = margins(people)["sex", "age"]
    weights = dict.fromkeys(table.index[-2:], 1.0)
    for moved in (table.head(3), table.sort_values("count"), table.query("age == 1")):
        assert moved.dp.combine(weights).equals(table.dp.combine(weights))


def test_denoisers_for_independent_cells_are_refused(people):
    tables = margins(people)
    with raises(QueryError, "measured together"):
        tables["sex", "age"].dp.denoise("james_stein")
    with raises(QueryError, "measured together"):
        margins(people, denoise="auto")


@pytest.mark.parametrize("weights", [{}, {("sex",): 1}, {("wage",): {"f": 1}}, 3, None])
def test_weights_of_tables_name_tables(people, weights):
    with raises(QueryError, "must", parameter="weights"):
        dpf.combine(margins(people), weights)


def test_tables_of_one_release_that_are_no_margins_of_one_query_are_refused(people):
    queries = {"n": dpf.count("sex"), "high": dpf.count("sex", where="wage > 9")}
    made = people.dp.release(queries, epsilon=1)
    for other in (made["high"], made["n"], made["n"].loc[["m"]]):
        with raises(QueryError, "may share noise", parameter="released"):
            dpf.combine({"a": made["n"], "b": other}, {"a": {"f": 1}, "b": {"m": -1}})
    twice = margins(people)["sex",]  # of margins it is known
    weights = {"a": {"f": 1}, "b": {"f": -1}}
    assert dpf.combine({"a": twice, "b": twice}, weights)["std_error"].iloc[0] < 1e-9


def test_tables_by_sums_of_signs_are_combined_by_the_sums_that_they_share(people):
    tables = margins(people, "box")
    by_sex = {("sex",): dict.fromkeys(SEX, 1.0), (): {0: -1.0}}
    nothing = dpf.combine(tables, by_sex).iloc[0]
    assert abs(nothing["estimate"]) < 1e-9
    assert nothing["std_error"] < 1e-9
    # what only one of the tables reads is counted with the group that it was drawn in
    both = {("sex",): {"f": 1.0}, ("age",): {1: -1.0}}
    apart = [tables[name].dp.std_error["count"].iloc[0] for name in (("sex",), ("age",))]
    combined = dpf.combine(tables, both).iloc[0]
    assert combined["std_error"] < math.hypot(*apart)  # the number of rows cancels in part
    assert combined["high"] - combined["low"] > 3.5 * combined["std_error"]
