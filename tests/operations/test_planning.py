"""Plans: what is shown is what is charged, errors that are wanted, and what is of use."""

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import CalibrationError, DeclarationError, QueryError

WARDS = list("abcdef")
QUERIES = {
    "a": dpf.aggregate("ward", n=dpf.count(), cost=dpf.mean("cost")),
    "m": dpf.quantile("stay", 0.5),
}


@pytest.fixture
def visits():
    frame = pd.DataFrame(
        {
            "who": range(60),
            "ward": WARDS * 10,
            "cost": [100.0 * k for k in range(60)],
            "stay": [1.0] * 60,
        }
    )
    frame.dp.declare(
        keys={"ward": WARDS},
        bounds={"cost": (0, 20_000), "stay": (0, 40)},
        privacy_unit="who",
        max_rows=3,
        budget=dpf.Budget(10, 1e-6),
    )
    return frame


@pytest.mark.parametrize("spend", [{"share": 0.3}, {"epsilon": 1}, {"mu": 0.3}, {"rho": 0.1}])
@pytest.mark.parametrize("asked", [QUERIES, dpf.count("ward"), dpf.suggest_caps(largest=4)])
def test_what_is_charged_is_what_was_shown(visits, spend, asked):
    plan = visits.dp.plan(asked, **spend)
    before = plan.table
    made = plan.release(name="once", note="as planned")
    (entry,) = visits.dp.ledger.entries
    assert (entry.mechanism, entry.name, entry.note) == (plan.mechanism, "once", "as planned")
    assert (entry.loss.mu or None) == (plan.cost["mu"] if entry.loss.mu_squared else None)
    table = made["a"] if asked is QUERIES else made
    if asked is QUERIES:
        error = table.dp.std_error["n"].iloc[0]
        assert error == pytest.approx(before.loc[("a", "n"), "std_error"])
    assert before.equals(plan.table)


def test_a_plan_of_another_declaration_or_budget_is_refused(visits):
    plan = visits.dp.plan(dpf.count("ward"), share=0.5)
    visits.dp.count("ward", epsilon=5)
    with raises(DeclarationError, "Plan again"):
        plan.release()
    plan = visits.dp.plan(dpf.count("ward"), epsilon=0.1)
    visits.dp.declare(keys={"ward": WARDS[::-1]}, privacy_unit="who", max_rows=3)
    with raises(DeclarationError, "Plan again"):
        plan.release()


def test_queries_share_by_weight_and_say_their_part(visits):
    shown = visits.dp.plan(QUERIES | {"m": dpf.quantile("stay", 0.5, weight=3)}, epsilon=1).table
    assert shown["part"].tolist() == [0.25, 0.25, 0.75]
    assert shown["epsilon"].tolist() == [1.0] * 3


def test_errors_that_are_wanted_are_reached_with_the_least(visits):
    spend = {"epsilon": 8, "mechanism": "laplace"}
    shown = visits.dp.plan(QUERIES, within={("m", "count"): 10}, rows=500, **spend).table
    assert shown["half_width_95"].iloc[-1] == pytest.approx(10, abs=0.5)
    alone = visits.dp.plan(QUERIES["m"], within=10, **spend).table
    assert alone["part"].item() == pytest.approx(shown["part"].iloc[-1], rel=1e-3)
    assert alone["epsilon"].item() < 8
    assert shown["part"].iloc[0] == pytest.approx(1 - shown["part"].iloc[-1])
    more = visits.dp.plan(QUERIES["m"], within=9.5, **spend).table
    assert more["epsilon"].item() > alone["epsilon"].item()


def test_the_least_amount_is_said_where_what_is_given_is_too_little(visits):
    with raises(CalibrationError, "need epsilon=", parameter="within") as refused:
        visits.dp.plan(QUERIES["m"], epsilon=0.1, within=10, mechanism="laplace")
    enough = refused.value.value * 1.0001
    spend = {"epsilon": enough, "mechanism": "laplace"}
    assert visits.dp.plan(QUERIES["m"], within=10, **spend).table["half_width_95"].item() <= 10
    with raises(CalibrationError, "need mu=", parameter="within") as refused:
        visits.dp.plan(QUERIES["m"], mu=0.01, within=10, mechanism="gaussian")
    spend = {"mu": refused.value.value * 1.0001, "mechanism": "gaussian"}
    assert visits.dp.plan(QUERIES["m"], within=10, **spend).table["half_width_95"].item() <= 10


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_what_would_say_nothing_is_refused_before_it_is_charged(visits, delta):
    """Means known to half of their range, or worse, once came out as the middle of it."""
    spend = {"epsilon": 0.5, "delta": delta, "rows": 10}
    plan = visits.dp.plan(QUERIES, **spend)
    assert plan.table.loc[("a", "cost"), "useful"] == "nothing"
    for release in (plan.release, lambda: visits.dp.release(QUERIES, **spend)):
        with raises(CalibrationError, 'useful="any"', parameter="useful"):
            release()
    with raises(CalibrationError, 'useful="any"', parameter="useful"):
        visits.dp.release(dpf.mean("cost", "ward"), **spend)
    assert not visits.dp.ledger.entries
    visits.dp.release(QUERIES, useful="any", **spend)
    visits.dp.release(QUERIES, epsilon=0.5, delta=delta)  # without a guess, nothing is judged
    assert len(visits.dp.ledger.entries) == 2


@pytest.mark.parametrize(
    ("query", "largest"),
    [
        (dpf.count("ward"), 400),
        (dpf.sum("cost", "ward"), 400 * 20_000),
        (dpf.mean("cost", "ward"), 20_000),
        (dpf.rate("cost > 5", "ward"), 1),
        (dpf.var("cost", "ward"), 10_000**2),
        (dpf.std("cost", "ward"), 10_000),
        (dpf.corr("cost", "stay", "ward"), 2),
        (dpf.quantile("stay", 0.5, "ward"), 400),
    ],
    ids=lambda one: getattr(one, "words", None),
)
@pytest.mark.parametrize("part", [0.09, 0.11, 0.49, 0.51])
def test_use_is_judged_by_what_an_output_can_be(visits, query, largest, part):
    shown = visits.dp.plan(query, epsilon=1e3, within=part * largest, rows=400).table.iloc[0]
    # whole numbers of rows: half-widths are a little less
    assert shown["half_width_95"] == pytest.approx(part * largest, rel=0.02)
    assert shown["useful"] == {0.09: "good", 0.11: "rough", 0.49: "rough", 0.51: "nothing"}[part]


def test_advice_is_of_public_facts_that_help(visits):
    advice = visits.dp.plan(dpf.count("ward"), epsilon=1).advice
    assert any("max_rows_per_group=1" in one for one in advice) or len(advice) == 2
    ratios = [float(one.split()[0]) for one in advice]
    assert ratios and max(ratios) < 0.8
    assert "epsilon=2" in advice[-1] and ratios[-1] == pytest.approx(0.5, abs=0.02)
    assert visits.dp.plan(dpf.quantile("stay", 0.5), epsilon=1, mechanism="select").advice == ()


def test_a_plan_shows_what_it_asks_costs_and_advises(visits):
    plan = visits.dp.plan(QUERIES, epsilon=1)
    shown = repr(plan)
    assert shown.startswith("Plan of n: count")
    assert "half_width_95" in shown and plan.advice[0] in shown
    assert "<table" in plan._repr_html_()
    assert plan.fits and set(plan.cost) == {"mu", "epsilon", "delta"}


def test_only_noise_has_errors_that_can_be_wanted(visits):
    for asked in (dpf.suggest_caps(largest=4), dpf.discover("ward", max_groups=1)):
        for aim in ({"within": 5}, {"rows": 10}):
            with raises(CalibrationError, "not for what is"):
                visits.dp.plan(asked, epsilon=1, **aim)
    with raises(QueryError, "finite number above 0", parameter="within"):
        visits.dp.plan(dpf.count(), epsilon=1, within=0)
    with raises(CalibrationError, "rough", parameter="useful"):
        visits.dp.plan(dpf.count(), epsilon=1, useful="good")


@pytest.mark.parametrize("denoise", [None, "auto"])
def test_advice_compares_plans_of_tables_that_share_noise_alike(denoise):
    columns = [f"flag{k}" for k in range(8)]
    frame = pd.DataFrame({column: [0, 1] for column in columns})
    counts = {column: dpf.count(column, keys=[0, 1]) for column in columns}
    spend = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    plan = frame.dp.plan(counts, denoise=denoise, **spend)
    assert plan.advice == ("0.50 of the error with epsilon=2",)


def test_advice_is_of_the_part_that_is_asked_of():
    """How many rows there are in all is public, and how many of a week is not."""
    frame = pd.DataFrame({"week": [1, 1, 2]})
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=8), part="week")
    frame.dp.declare(privacy_unit=dpf.EACH_ROW, neighboring="replace", ledger=ledger)
    plan = frame.dp.plan(dpf.count(), epsilon=1, part=1)
    (advice,) = plan.advice
    assert advice.endswith("of the error with epsilon=2")
    twice = frame.dp.plan(dpf.count(), epsilon=2, part=1).table["std_error"]
    ratio = (twice / plan.table["std_error"]).item()
    assert float(advice.split()[0]) == pytest.approx(ratio, abs=0.005)


def test_advice_compares_what_both_plans_measure():
    """Half the rows of a unit make another law measure a column more."""
    frame = pd.DataFrame({"u": [1, 2, 3], "h": [0, 1, 0], "x": [1.0, 2, 3], "w": [1.0, 2, 3]})
    frame.dp.declare(
        bounds={"x": (-3, 6), "w": (0, 3)},
        keys={"h": [0, 1]},
        privacy_unit="u",
        neighboring="replace",
        max_rows=5,
        max_groups=3,
        max_rows_per_group=2,
        missing={"x": 6},
        budget=dpf.Budget(epsilon=10, delta=1e-5),
    )
    mean = dpf.mean("x", weights="w")
    both = {"b": dpf.aggregate("h", m=mean), "a": dpf.aggregate(m=mean)}
    assert "of the error with" in repr(frame.dp.plan(both, mu=0.5))
