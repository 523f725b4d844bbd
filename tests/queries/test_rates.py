"""Rates: released, previewed, certified and shown like any other query."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.plans import plan_of
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError, UnknownColumnError

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ZONES = ["A", "B", "C"]
EXACT = {"epsilon": 1e7}
LATE = "delay > 15"


def flights(**facts):
    """Of 90 rows in A, 10 are missing and 30 late; of 10 in B, none is missing and 4 are late."""
    delay = [np.nan] * 10 + [20.0] * 30 + [3.0] * 50 + [16.0] * 4 + [15.0] * 6
    frame = pd.DataFrame({"zone": ["A"] * 90 + ["B"] * 10, "delay": delay, "to": "X"})
    frame.dp.declare(keys={"zone": ZONES}, bounds={"delay": (0, 60)}, **facts)
    return frame


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("ask", ["accessor", "function"])
def test_a_rate_is_the_share_of_rows_where_the_condition_is_known(ask, mechanism):
    frame, spend = flights(), {**EXACT, "delta": 1e-6, "mechanism": mechanism}
    if ask == "accessor":
        found = frame.dp.rate(LATE, "zone", **spend)
    else:
        found = dpf.release(frame, dpf.rate(LATE, "zone"), **spend)
    assert list(found.columns) == ["rate"]
    assert found["rate"].dtype == np.float64
    assert found["rate"].tolist()[:2] == pytest.approx([30 / 80, 0.4], abs=1e-3)
    assert np.isnan(found.loc["C", "rate"])  # it has no rows


def test_what_is_missing_is_neither_met_nor_not():
    rates = [flights().dp.rate(text, "zone", **EXACT)["rate"] for text in (LATE, f"not ({LATE})")]
    assert (rates[0] + rates[1]).tolist()[:2] == pytest.approx([1, 1], abs=1e-3)


def scales(query, mechanism, **spend):
    plan = plan_of(flights(), query, mechanism, **spend)
    return plan.of(plan.tables[None]).scales


def test_a_rate_costs_what_one_count_costs():
    for mechanism, spend in [("laplace", {"epsilon": 0.5}), ("gaussian", {"mu": 0.5})]:
        rate = scales(dpf.rate(LATE, "zone"), mechanism, **spend)
        (count,) = scales(dpf.count("zone"), mechanism, **spend)
        # Gaussian noise is measured turned by 45 degrees: root 2 wider, and halved
        factor = 1 if mechanism == "laplace" else np.sqrt(2)
        assert rate == pytest.approx([factor * count] * 2)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_counts_of_the_same_condition_are_read_off_the_same_integers(mechanism):
    both = dpf.aggregate("zone", late=dpf.count(where=LATE), r=dpf.rate(LATE))
    alone = dpf.aggregate("zone", r=dpf.rate(LATE))
    spend = {"epsilon": 1, "delta": 1e-6}
    assert scales(both, mechanism, **spend) == pytest.approx(
        scales(alone, mechanism, **spend), rel=0.42
    )
    assert len(scales(both, mechanism, **spend)) == 2
    frame = flights()
    made = frame.dp.release(both, **EXACT)
    assert made["late"].dtype == np.int64
    assert made["late"].tolist() == [30, 4, 0]


def test_schemas_know_the_range():
    made = flights().dp.rate(LATE, "zone", epsilon=1)
    schema = dpf.schema(made)
    schema.validate(made)
    with pytest.raises(Exception, match="in_range"):
        schema.validate(made + 2)


def test_rates_are_drawn_with_their_intervals():
    made = flights().dp.rate(LATE, "zone", epsilon=1)
    axes = made.dp.plot()
    assert axes.get_ylabel() == "rate"
    plt.close("all")


def test_rates_are_denoised_as_means_are():
    rows = np.arange(60_000)  # in few groups, a gain is not clear, and nothing moves
    frame = pd.DataFrame({"g": rows % 400, "x": rows // 400 * 31 % 100})
    frame.dp.declare(keys={"g": range(400)})
    made = frame.dp.rate("x > 49", "g", epsilon=0.05, mechanism="laplace", denoise="auto")
    found = made["rate_denoised"]
    assert found.between(0, 1).all()
    assert ((found - 0.5) ** 2).sum() < ((made["rate"] - 0.5) ** 2).sum()
    with raises(QueryError, "counts and sums"):
        frame.dp.rate("x > 49", "g", epsilon=1, denoise="nonnegative")


def test_covariances_and_combinations_know_rates():
    made = flights().dp.aggregate("zone", late=dpf.count(where=LATE), r=dpf.rate(LATE), epsilon=5)
    assert made.dp.covariance.loc[("A", "late"), "r"] > 0
    one = flights().dp.rate(LATE, "zone", epsilon=20)  # at 20, noise is 0, but for 1 in 10^8
    gap = dpf.combine(one, {"A": 1, "B": -1})
    errors = one.dp.std_error["rate"]
    # rates of both zones are pooled as far as noise hides how they differ, which it hardly does
    assert gap["std_error"].item() == pytest.approx(np.hypot(errors["A"], errors["B"]), rel=1e-6)


@pytest.mark.parametrize("wrong", [None, 5, "", "delay >", "delay", ["delay > 1"]])
def test_what_is_no_condition_is_refused(wrong):
    if wrong == "delay":
        assert dpf.rate(wrong).outputs[0].condition.text == "delay"  # whether it is not 0
        return
    with raises(QueryError, "condition", parameter="condition"):
        dpf.rate(wrong)


def test_columns_that_are_not_there_are_refused():
    with raises(UnknownColumnError, "arrival"):
        flights().dp.rate("arrival > 15", "zone", epsilon=1)


def test_no_group_can_be_called_rate():
    with raises(QueryError, "'rate'", parameter="by", label="rate"):
        dpf.rate(LATE, "rate")


@pytest.mark.parametrize("condition", ["x == x", "x != x", "x == x and not y < y"])
def test_a_column_compared_with_itself_alone_is_no_rate(condition):
    with raises(QueryError, "add missing=False", parameter="condition", label="x"):
        dpf.rate(condition)
    assert dpf.rate(condition, missing=False).outputs[0].blanks_fail
    assert dpf.rate(f"{condition} and x > 1").outputs[0].condition.columns[0] == "x"


@pytest.mark.parametrize("missing", [True, 0, "drop"])
def test_missing_is_false_or_none(missing):
    with raises(QueryError, "missing must be False", parameter="missing"):
        dpf.rate("x > 1", missing=missing)


def test_blanks_count_as_not_met_where_so_asked():
    frame = pd.DataFrame({"opt": ["x"] * 30 + ["y"] * 10 + [None] * 60, "k": [1, 2] * 50})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    asked = {
        "out": dpf.rate("opt == 'x'"),
        "no": dpf.rate("opt == 'x'", missing=False),
        "others": dpf.rate("opt != 'x'", missing=False),
        "either": dpf.rate("opt == 'x' or k == 1", missing=False),
        "there": dpf.rate("opt == opt", missing=False),
    }
    released = frame.dp.aggregate(**asked, epsilon=1e6).iloc[0]
    assert released.round(3).tolist() == [0.75, 0.3, 0.1, 0.65, 0.4]
    said = frame.dp.aggregate(**asked, epsilon=1).dp.certificate.query
    assert said.left_out == ("opt is missing, of out",)
    assert "rate of opt == 'x', missing as not met" in said.words
