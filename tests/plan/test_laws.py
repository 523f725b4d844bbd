"""Two laws of noise in one charge, where `mechanism=` names one for each query."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

import dpframe as dpf
import dpframe.dask
from dpframe.certificates.claims import check_cost
from dpframe.errors import BudgetExceededError, CalibrationError, CertificateError
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.together import delta_of_loss, epsilon_of_loss

QUERIES = {"n": dpf.count("g"), "t": dpf.sum("cost", "g")}
BOTH = {"n": "laplace", "t": "gaussian"}
ONE = {"epsilon": 1, "delta": 1e-6}
BUDGET = dpf.Budget(**ONE)
FACTS = {"keys": {"g": ["a", "b", "c"]}, "bounds": {"cost": (0, 10)}}
FACTS |= {"privacy_unit": "p", "max_rows": 4}
FLAGS = [f"flag{k}" for k in range(200)]


def declared(**facts):
    columns = {
        "g": list("abcabc"),
        "cost": np.arange(6.0),
        "p": range(6),
        "week": [1, 1, 1, 2, 2, 2],
    }
    frame = pd.DataFrame({**columns, **dict.fromkeys(FLAGS, 1.0)})
    bounds = {"cost": (0, 10), **dict.fromkeys(FLAGS, (0, 1))}
    frame.dp.declare(**{**FACTS, "bounds": bounds, **facts})
    return frame


def delta_by_integration(epsilon, pure, mu):
    """The delta of randomized response beside a normal, from the densities of both."""
    likely = special.expit(pure)

    def excess(x):
        pairs = (likely, 1 - likely), (1 - likely, likely)
        own = [
            a * stats.norm.pdf(x - mu) - np.exp(epsilon) * b * stats.norm.pdf(x) for a, b in pairs
        ]
        return np.maximum(own, 0).sum()

    kinks = [(epsilon - moved) / mu + mu / 2 for moved in (pure, -pure)]
    ends = [-40, *sorted(kinks), 40]
    parts = itertools.pairwise(ends)
    return sum(integrate.quad(excess, *pair, epsabs=1e-16, limit=200)[0] for pair in parts)


@pytest.mark.parametrize(
    ("epsilon", "weight", "part"), [(1, 1, 0.807), (1, 3, 0.888), (0.2, 2, None), (4, 0.5, None)]
)
def test_both_laws_together_have_the_delta_that_was_asked_for(epsilon, weight, part):
    queries = {**QUERIES, "t": dpf.sum("cost", "g", weight=weight)}
    plan = declared().dp.plan(queries, epsilon=epsilon, delta=1e-6, mechanism=BOTH)
    spent = plan.release()["n"].dp.certificate.release
    loss = sum((one.loss for one in spent.witness), PrivacyLoss())
    found = delta_by_integration(epsilon, float(loss.epsilon), loss.mu)
    assert found == pytest.approx(1e-6, rel=1e-6)
    assert (spent.privacy_loss.epsilon, spent.privacy_loss.delta) == (epsilon, 1e-6)
    own = plan.table["part"].to_numpy()
    assert own[1] == pytest.approx(weight * own[0])
    assert part is None or own.sum() == pytest.approx(part, abs=1e-3)


@pytest.mark.parametrize(("epsilon", "pure", "mu"), [(1.0, 0.4, 0.2), (0.5, 0.7, 0.3), (3, 0.2, 1)])
def test_the_curve_of_both_laws_is_that_of_the_densities(epsilon, pure, mu):
    loss = PrivacyLoss(epsilon=Fraction(pure), mu_squared=Fraction(mu) ** 2)
    delta = delta_of_loss(Fraction(epsilon), loss)
    assert delta == pytest.approx(delta_by_integration(epsilon, pure, mu), rel=1e-9)
    assert epsilon_of_loss(delta, loss) == pytest.approx(epsilon, rel=1e-9)


def test_mu_and_rho_add_up_over_both_laws():
    frame = declared()
    for kind in ("mu", "rho"):
        plan = frame.dp.plan(QUERIES, mechanism=BOTH, **{kind: 0.5})
        loss = plan._operation.loss
        likely = special.expit(float(loss.epsilon))
        mu_squared = loss.mu**2 + 4 * stats.norm.ppf(likely) ** 2
        rho = loss.mu**2 / 2 + loss.epsilon * np.tanh(float(loss.epsilon) / 2)
        assert {"mu": np.sqrt(mu_squared), "rho": rho}[kind] == pytest.approx(0.5, rel=1e-9)
        assert plan.cost["mu"] == pytest.approx(np.sqrt(mu_squared))


def test_a_whole_budget_can_be_spent_on_both_laws_at_once():
    frame = declared(budget=BUDGET)
    assert frame.dp.plan(QUERIES, mechanism=BOTH, **ONE).fits
    more = {"epsilon": 1.0001, "delta": 1e-6}
    assert not frame.dp.plan(QUERIES, mechanism=BOTH, **more).fits
    frame.dp.release(QUERIES, mechanism=BOTH, **ONE)
    assert frame.dp.budget.used == 1
    with pytest.raises(BudgetExceededError):
        frame.dp.count("g", epsilon=1e-6)


def test_shares_of_both_laws_add_up_to_the_budget():
    frame = declared(budget=BUDGET)
    whole = frame.dp.plan(QUERIES, share=1, mechanism=BOTH).table["part"]
    assert whole.sum() == pytest.approx(0.65, abs=0.005)
    for _ in range(4):
        frame.dp.release(QUERIES, share="1/4", mechanism=BOTH)
    assert frame.dp.budget.used == 1
    with pytest.raises(BudgetExceededError):
        frame.dp.release(QUERIES, share=0.01, mechanism=BOTH)


def test_other_releases_fit_beside_a_small_one_of_both_laws():
    frame = declared(budget=BUDGET)
    frame.dp.release(QUERIES, share=0.1, mechanism=BOTH)
    frame.dp.count("g", share=0.4, mechanism="laplace")
    frame.dp.count("g", share=0.5, mechanism="gaussian")
    assert len(frame.dp.budget.entries) == 3
    kept = frame.dp.budget.entries[0].loss
    assert kept.epsilon > 0 < kept.mu_squared


def test_errors_that_are_wanted_get_the_least_amount_of_their_law():
    frame = declared()
    wanted = {("t", "cost"): 600}
    table = frame.dp.plan(QUERIES, mechanism=BOTH, within=wanted, **ONE).table
    assert table.loc[("t", "cost"), "half_width_95"] == pytest.approx(600, rel=1e-3)
    plain = frame.dp.plan(QUERIES, mechanism=BOTH, **ONE).table
    assert table.loc[("n", "count"), "part"] > plain.loc[("n", "count"), "part"]
    both = {("t", "cost"): 400, ("n", "count"): 25}
    with pytest.raises(CalibrationError, match=r"need epsilon=1\.264") as refused:
        frame.dp.plan(QUERIES, mechanism=BOTH, within=both, **ONE)
    enough = {"epsilon": refused.value.value * 1.0001, "delta": 1e-6}
    plan = frame.dp.plan(QUERIES, mechanism=BOTH, within=both, **enough)
    assert (plan.table["half_width_95"] <= [25, 400]).all()


def test_one_law_for_all_by_query_is_the_plan_of_one_mechanism():
    frame = declared()
    for name in ("laplace", "gaussian"):
        one = frame.dp.plan(QUERIES, mechanism=name, **ONE).table
        pd.testing.assert_frame_equal(
            frame.dp.plan(QUERIES, mechanism=dict.fromkeys(QUERIES, name), **ONE).table, one
        )
    plan = frame.dp.plan(QUERIES, mechanism={"n": "laplace", "t": "staircase"}, epsilon=4)
    assert plan.cost["epsilon"] == 4
    assert plan.table["part"].sum() == 1


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ({"n": "laplace"}, r"must name one for each query, and the queries are \['n', 't'\]"),
        ({**BOTH, "other": "box"}, r"must name one for each query"),
        ({"n": "laplace", "t": "gausian"}, "Did you mean 'gaussian'"),
        ({"n": "laplace", "t": "auto"}, "as the advice of a plan"),
        ({"n": "laplace", "t": "select"}, "released on their own"),
        ({"n": "laplace", "t": ["gaussian"]}, "must be one of"),
        ({"n": "staircase", "t": "classical"}, "needs epsilon in"),
    ],
)
def test_mechanisms_that_no_plan_has_are_refused(mechanism, words):
    with pytest.raises(CalibrationError, match=words) as refused:
        declared().dp.release(QUERIES, mechanism=mechanism, **ONE)
    assert len(str(refused.value).split()) <= 50


def test_calls_of_one_query_name_one_mechanism():
    frame = declared()
    for call in (frame.dp.count, frame.dp.discover):
        with pytest.raises(CalibrationError, match="must be one for the query"):
            call("g", mechanism=BOTH, **ONE)


@pytest.mark.parametrize("spend", [{"epsilon": 0.5}, {"share": 0.5}])
def test_a_pure_budget_says_what_both_laws_need(spend):
    frame = declared(budget=dpf.Budget(epsilon=1))
    with pytest.raises(CalibrationError, match=r'needs delta > 0.*Give delta=.*"laplace"'):
        frame.dp.release(QUERIES, mechanism=BOTH, **spend)


@pytest.mark.parametrize("spend", [{"mu": 0.1}, {"rho": 0.1}, {"epsilon": 0.5, "delta": 1e-6}])
def test_a_pure_budget_holds_nothing_of_both_laws(spend):
    frame = declared(budget=dpf.Budget(epsilon=1))
    with pytest.raises(BudgetExceededError, match="epsilon=1 of Laplace noise"):
        frame.dp.release(QUERIES, mechanism=BOTH, **spend)
    assert not frame.dp.budget.entries


def test_certificates_name_both_laws_and_are_recomputed():
    frame = declared(budget=BUDGET)
    released = frame.dp.release(QUERIES, share=0.5, mechanism=BOTH)
    for name, table in released.items():
        release = dpf.verify(table, ledger=frame.dp.ledger).release
        assert release.mechanism.law == BOTH[name]
        assert {part.law for part in release.witness} == {"laplace", "gaussian"}
        assert "two laws in one charge: pure noise of epsilon=" in str(table.dp.certificate)
        for changed in ({"epsilon": 0.99}, {"mu": 0.99}):
            (key,) = changed
            less = {key: getattr(release.privacy_loss, key) * changed[key]}
            with pytest.raises(CertificateError, match="more than it promises"):
                check_cost(replace(release, privacy_loss=replace(release.privacy_loss, **less)))
    page = dpf.report(released["n"])
    assert "(1 - p) G(epsilon + e)" in str(page)


def test_tables_of_both_laws_have_intervals_and_are_kept_in_files(tmp_path):
    frame = declared(budget=BUDGET)
    released = frame.dp.release(QUERIES, share=0.5, mechanism=BOTH, denoise="auto")
    for name, table in released.items():
        low, high = table.dp.interval().iloc[:, :2].to_numpy().T
        assert (low <= high).all()
        table.dp.write_csv(tmp_path / f"{name}.csv")
        read = dpf.read_csv(tmp_path / f"{name}.csv")
        table.dp.write_parquet(tmp_path / f"{name}.parquet")
        for again in (read, pd.read_parquet(tmp_path / f"{name}.parquet")):
            witness = dpf.verify(again, ledger=frame.dp.ledger).to_dict()["releases"][0]["witness"]
            assert json.dumps(witness) == json.dumps(
                table.dp.certificate.to_dict()["releases"][0]["witness"]
            )
        assert len(table.dp.total()) == 1


def test_a_table_of_both_laws_has_the_intervals_of_each():
    queries = {"n": dpf.count("g", where="cost > 2"), "t": dpf.count("g", where="cost <= 2")}
    released = declared().dp.release(queries, mechanism=BOTH, **ONE)
    intervals = dpf.concat(released, name="law").dp.interval()
    for name, table in released.items():
        own = table.dp.interval().to_numpy()
        assert (intervals.loc[name].to_numpy() == own).all()


def test_every_door_measures_both_laws(tmp_path):
    frame = declared()
    plain = frame.dp.plan(QUERIES, mechanism=BOTH, **ONE).table
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = dpf.scan_parquet(tmp_path / "rows.parquet")
    parts = dd.from_pandas(frame[["g", "cost", "p"]], npartitions=2)
    for private in (scan, parts):
        private.dp.declare(**FACTS)
        pd.testing.assert_frame_equal(private.dp.plan(QUERIES, mechanism=BOTH, **ONE).table, plain)
        with dask.config.set(scheduler="synchronous"):
            released = private.dp.release(QUERIES, mechanism=BOTH, **ONE)
        assert [list(table.index) for table in released.values()] == [["a", "b", "c"]] * 2


def test_a_part_of_the_data_spends_on_both_laws():
    ledger = dpf.Ledger(budget=BUDGET, part="week")
    frame = declared(ledger=ledger, privacy_unit=["p", "week"])
    for week in (1, 2):
        frame.dp.release(QUERIES, mechanism=BOTH, part=week, **ONE)
    with pytest.raises(BudgetExceededError):
        frame.dp.release(QUERIES, mechanism=BOTH, part=1, share=0.1)


def test_advice_names_two_laws_where_they_gain_enough():
    frame = declared()
    wide = {"n": dpf.count(), "flags": dpf.sum(FLAGS)}
    (advice,) = [one for one in frame.dp.plan(wide, **ONE).advice if "mechanism=" in one]
    named = {"n": "laplace", "flags": "correlated"}
    assert str(named) in advice
    one, two = (frame.dp.plan(wide, **ONE, **how).table for how in ({}, {"mechanism": named}))
    logs = np.log(two["std_error"] / one["std_error"]).groupby(level=0).mean()
    assert advice.startswith(f"{np.exp(logs.mean()):.2f} of the error")
    assert logs.mean() < -np.log(1.15)
    assert not any("mechanism=" in line for line in frame.dp.plan(QUERIES, **ONE).advice)
