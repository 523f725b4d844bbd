"""Previews: what a release would cost and how accurate it would be."""

import math

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import CalibrationError, DeclarationError, QueryError, UnknownColumnError
from dpframe.privacy.gaussian import gaussian_mu


@pytest.fixture
def frame():
    made = pd.DataFrame({"zone": list("ABAB"), "fare": [1.0, 2, 3, np.nan], "who": [1, 1, 2, 3]})
    made.dp.declare(
        keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 100)}, budget=dpf.Budget(1, 1e-6)
    )
    return made


QUERY = dpf.aggregate(by="zone", n=dpf.count(), s=dpf.sum("fare"), m=dpf.mean("fare"))


def test_a_preview_reads_no_data_and_spends_nothing(frame, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr(PandasEngine, "totals", never)
    monkeypatch.setattr("dpframe.context._system_bytes", never)
    before = dpf.preview(frame, QUERY, epsilon=0.5)
    frame["fare"] = 7.0
    frame["zone"] = None
    pd.testing.assert_frame_equal(frame.dp.preview(QUERY, epsilon=0.5), before)
    assert frame.dp.ledger.entries == ()


@pytest.mark.parametrize("spend", [{"epsilon": 0.5}, {"mu": 0.1}, {"share": 0.25}, {"rho": 0.01}])
@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "correlated", "laplace"])
def test_a_preview_is_what_the_certificate_then_says(frame, spend, mechanism):
    foreseen = frame.dp.preview(QUERY, **spend, mechanism=mechanism)
    released = frame.dp.release(QUERY, **spend, mechanism=mechanism)
    record = released.dp.certificate.to_dict()["releases"][0]
    assert list(foreseen.index) == [column["name"] for column in record["columns"]]
    assert (foreseen["mechanism"] == record["mechanism"]["name"]).all()
    for name in ("mu", "epsilon", "delta"):
        assert foreseen[name].tolist() == [record["privacy_loss"][name]] * 3
    for column in record["columns"][:2]:
        row = foreseen.loc[column["name"]]
        assert row["std_error"] == column["std_error"]
        if column["noise"] is None:  # read off several integers
            assert np.isnan(row["sigma"])
        else:
            assert row["sigma"] == column["noise"]["scale"] * column["noise"]["step"]
        width = released.dp.interval(0.95)[f"{column['name']}_high"] - released[column["name"]]
        assert row["half_width_95"] == pytest.approx(width.iloc[0])
        assert row["per"] == "cell"
    assert foreseen.loc["m", "per"] == "1 / rows"
    assert np.isnan(foreseen.loc["m", "sigma"])
    # for the worst mean in a cell of one row; with more rows it is to be divided by their number
    rows = np.maximum(released["n"], 1)
    assert (released.dp.std_error["m"] <= foreseen.loc["m", "std_error"] * (1 + 1e-9)).all()
    assert len(rows) == 3


def test_the_numbers_of_one_count(frame):
    row = frame.dp.preview(dpf.count(), epsilon=1, mechanism="gaussian").loc["count"]
    assert row["sigma"] == pytest.approx(4.224679, rel=1e-6)
    assert row["std_error"] == pytest.approx(math.hypot(4.224679, math.sqrt(1 / 12)), rel=1e-6)
    assert row["half_width_95"] == 8
    assert row["mu"] == gaussian_mu(1, 1e-6)
    assert (row["epsilon"], row["delta"], row["fits"]) == (1, 1e-6, True)
    row = frame.dp.preview(dpf.count(), epsilon=1).loc["count"]
    assert (row["mechanism"], row["sigma"], row["half_width_95"]) == ("laplace", 1, 3)
    assert (row["epsilon"], row["delta"]) == (1, 0)


def test_whether_a_release_fits(frame):
    frame.dp.count(epsilon=0.75)
    assert frame.dp.preview(dpf.count(), epsilon=0.25)["fits"].all()
    assert not frame.dp.preview(dpf.count(), epsilon=0.5, mechanism="laplace")["fits"].any()
    bare = pd.DataFrame({"x": [1.0]})
    assert bare.dp.preview(dpf.count(), epsilon=50)["fits"].all()


def test_several_queries_have_a_row_per_column(frame):
    table = frame.dp.preview({"n": dpf.count("zone"), "all": QUERY}, share=0.5)
    expected = [("n", "count"), ("all", "n"), ("all", "s"), ("all", "m")]
    assert list(table.index) == expected
    assert table.index.names == ["query", "column"]
    assert table["mechanism"].nunique() == 1


def test_gaussian_noise_without_a_delta_has_a_mu_and_no_epsilon():
    table = pd.DataFrame({"x": [1.0]}).dp.preview(dpf.count(), mu=0.5, mechanism="gaussian")
    assert table["mu"].tolist() == [0.5]
    assert table["epsilon"].isna().all()


@pytest.mark.parametrize(
    ("query", "spend", "error"),
    [
        (dpf.sum("price", bounds=(0, 1)), {"epsilon": 1}, UnknownColumnError),
        (dpf.sum("who"), {"epsilon": 1}, DeclarationError),
        (dpf.count("who"), {"epsilon": 1}, DeclarationError),
        (dpf.count(), {}, CalibrationError),
        (dpf.count(), {"mu": 1e-30}, CalibrationError),
    ],
)
def test_a_preview_refuses_what_a_release_would_refuse(frame, query, spend, error):
    with pytest.raises(error):
        frame.dp.preview(query, **spend)
    with pytest.raises(error):
        frame.dp.release(query, **spend)


@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "correlated", "laplace", "classical"])
@pytest.mark.parametrize("asked", ["std_error", "half_width"])
def test_the_least_spend_for_an_error_reaches_it_and_a_little_less_does_not(
    frame, mechanism, asked
):
    limits = {"n": 25, "s": 2_000} if asked == "std_error" else {"n": 50, "s": 4_000}
    needed = frame.dp.preview(QUERY, **{asked: limits}, mechanism=mechanism, rows=100)
    measure = "std_error" if asked == "std_error" else "half_width_95"
    for name, row in needed.iterrows():
        amount = {"epsilon": row["epsilon"], "mechanism": name}
        if row["delta"]:
            amount["delta"] = row["delta"]
        reached = frame.dp.preview(QUERY, **amount, rows=100)[measure]
        assert (reached[list(limits)] <= list(limits.values())).all()
        assert reached.to_dict() == pytest.approx(row[reached.index].to_dict())
        amount["epsilon"] *= 1 - 1e-5
        missed = frame.dp.preview(QUERY, **amount)[measure]
        assert (missed[list(limits)] > list(limits.values())).any()


def test_the_least_spend_is_that_of_a_formula():
    bare = pd.DataFrame({"x": [1.0]})
    needed = bare.dp.preview(dpf.count(where="x > 0"), std_error=2)
    # sd of the discrete Laplace: 1 / (sqrt(2) sinh(epsilon / 2)); of a rounded Gaussian from 2 on:
    # sqrt(1 / mu^2 + 1 / 12)
    assert needed.loc["laplace", "epsilon"] == pytest.approx(
        2 * math.asinh(1 / (2 * math.sqrt(2))), rel=2e-5
    )
    assert needed.loc["gaussian", "mu"] == pytest.approx(1 / math.sqrt(4 - 1 / 12), rel=2e-5)
    assert np.isnan(needed.loc["gaussian", "epsilon"])


def test_one_number_is_the_limit_of_all_outputs(frame):
    query = {"n": dpf.count("zone"), "both": dpf.aggregate(by="zone", n=dpf.count())}
    needed = frame.dp.preview(query, std_error=3)
    errors = needed.loc["laplace", [("n", "count"), ("both", "n")]]
    assert (errors <= 3).all() and errors.max() == pytest.approx(3, rel=1e-4)
    one = frame.dp.preview(query, std_error={("n", "count"): 3})
    assert one.loc["laplace", "epsilon"] <= needed.loc["laplace", "epsilon"]


@pytest.mark.parametrize(
    ("asked", "measure"),
    [
        ({"std_error": {"n": 9}}, "std_error"),
        ({"half_width": {"n": 9}}, "half_width_95"),
        ({"epsilon": 0.5, "compare": True}, "std_error"),
    ],
)
def test_tables_by_mechanism_say_which_errors_they_show(frame, asked, measure):
    table = frame.dp.preview(QUERY, **asked)
    assert table.columns.name == measure
    assert {"n", "s"} <= set(table.columns)
    assert "m" not in table  # an error per row would stand among errors of cells
    assert "m" in frame.dp.preview(QUERY, **asked, rows=100)


def test_an_error_that_the_delta_keeps_small_is_shown_as_it_is(frame):
    needed = frame.dp.preview(dpf.count(), std_error=1e15)
    assert needed.loc["laplace", "count"] == pytest.approx(1e15, rel=1e-4)
    assert needed.loc["gaussian", "count"] < 1e9
    assert needed.loc["gaussian", "delta"] > 0


def test_whether_the_least_spend_fits_is_said(frame):
    assert frame.dp.preview(dpf.count(), std_error=10)["fits"].all()
    assert not frame.dp.preview(dpf.count(), std_error=0.01)["fits"].any()


def test_errors_of_means_are_those_of_a_cell_of_so_many_rows(frame):
    whole = frame.dp.preview(QUERY, epsilon=0.5)
    of_cell = frame.dp.preview(QUERY, epsilon=0.5, rows=200)
    assert of_cell.loc["m", "per"] == "cell of 200 rows"
    for measure in ("std_error", "half_width_95"):
        assert of_cell.loc["m", measure] == pytest.approx(whole.loc["m", measure] / 200)
        assert of_cell.loc["n", measure] == whole.loc["n", measure]
    needed = frame.dp.preview(QUERY, std_error={"m": 2}, rows=200, mechanism="laplace")
    assert needed["m"].tolist() == pytest.approx([2], rel=1e-4)


def test_an_error_that_no_spend_reaches_is_refused(frame):
    query = dpf.sum("fare", n=(1_000, 50.0))
    with raises(CalibrationError, "no spend", parameter="mechanism"):
        frame.dp.preview(query, std_error=1e-3, mechanism="correlated")


def test_a_mechanism_that_does_not_apply_says_so(frame):
    with raises(CalibrationError, "does not apply", parameter="mechanism"):
        frame.dp.preview(dpf.count(), std_error=5, mechanism="correlated")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"std_error": 5}, QueryError, "give rows="),
        ({"std_error": {"nobody": 5}}, QueryError, "the outputs are"),
        ({"std_error": {}}, QueryError, "the outputs are"),
        ({"std_error": 0}, QueryError, "finite number above 0"),
        ({"half_width": math.nan}, QueryError, "finite number above 0"),
        ({"half_width": math.inf}, QueryError, "finite number above 0"),
        ({"half_width": "5"}, QueryError, "finite number above 0"),
        ({"std_error": True}, QueryError, "finite number above 0"),
        ({"std_error": 5, "half_width": 5}, CalibrationError, "give one of them"),
        ({"std_error": 5, "epsilon": 1}, CalibrationError, "without epsilon="),
        ({"std_error": 5, "compare": True}, CalibrationError, "compare="),
        ({"epsilon": 1, "rows": 0.5}, QueryError, "at least 1"),
        ({"epsilon": 1, "rows": "many"}, QueryError, "at least 1"),
        ({"std_error": {"n": 5}, "mechanism": "best"}, CalibrationError, "one of"),
        ({"std_error": {"n": 5}, "delta": 2}, CalibrationError, "delta"),
        ({"std_error": {"n": 0.1}, "mechanism": "classical"}, CalibrationError, "is below 1"),
    ],
)
def test_a_wrong_question_for_the_least_spend_is_refused(frame, options, error, words):
    with raises(error, words):
        frame.dp.preview(QUERY, **options)


def test_rows_without_a_value_cost_no_count_of_their_own_where_they_are_dropped():
    fares = pd.DataFrame({"fare": [1.0, 2.0, np.nan, 4.0], "zone": list("AABB")})
    each = {"privacy_unit": dpf.EACH_ROW, "bounds": {"fare": (0, 1)}, "keys": {"zone": ["A", "B"]}}
    query = dpf.aggregate(n=dpf.count(), s=dpf.sum("fare"), m=dpf.mean("fare"))
    errors = {}
    for missing in (None, {"fare": "drop"}):
        fares.dp.declare(**each, missing=missing)
        errors[missing is None] = fares.dp.preview(query, epsilon=1)["std_error"].to_list()
    assert errors[True] == pytest.approx([2.434, 1.414, 1.414], abs=0.001)
    assert errors[False] == pytest.approx([2.0207, 1.414, 1.414], abs=0.001)
    asked = {"all": dpf.count(by="zone"), "fares": query}
    assert fares.dp.diagnose(asked)["all"].loc["rows", "left"]["counted"] == 4
    assert fares.dp.diagnose(asked)["fares"].loc["rows", "left"]["counted"] == 3
    made = fares.dp.release(asked, epsilon=1)
    dropped, all_rows = (made[name].dp.certificate for name in ("fares", "all"))
    assert dropped.release.query.where == "fare == fare"
    assert all_rows.release.query.where is None
    assert "rows          those with fare == fare\n" in repr(dropped)
    assert "those with fare == fare" in dropped._repr_html_()
    assert "those with" not in repr(all_rows) + all_rows._repr_html_()


def test_tables_are_named_by_words_where_a_preview_is_shown(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    frame = pd.DataFrame({"zone": ["A"], "day": [1]})
    frame.dp.declare(keys={"zone": ["A", "B"], "day": [1, 2]}, privacy_unit=dpf.EACH_ROW)
    tables = dpf.margins([["zone"], ["zone", "day"]])
    asked = {"trips": tables, "all": dpf.count("zone")}
    compared = frame.dp.preview(asked, epsilon=1, compare=True)
    assert "trips: count by zone, day" in repr(compared) and "all: count" in repr(compared)
    assert "trips: count by zone, day" in compared._repr_html_()
    assert ("trips", ("zone", "day"), "count") in compared.columns
    plain = frame.dp.preview(tables, epsilon=1)
    assert (("zone", "day"), "count") in plain.index and "(zone" not in repr(plain)
    for shown in (repr(plain), repr(compared)):
        assert "..." not in shown and max(map(len, shown.splitlines())) <= 100
    assert "remaining_mu" not in repr(plain) or "fits" in repr(plain)
