"""All engines count the same rows in the bins of ranges, and caps see groups, not bins."""

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.privacy.gaussian import gaussian_epsilon

KEYS = ["A", "B", "C"]
QUERY = dpf.ranges("fare", 16, "zone", keys=KEYS, bounds=(0, 8))
HARDLY_ANY = {"epsilon": 1e7, "mechanism": "laplace"}


def trips(rows=3000):
    rng = np.random.default_rng(4)
    fares = rng.exponential(2, rows)
    fares[::97], fares[5::101], fares[7::103] = np.nan, -3, np.inf
    zones = np.array(["A", "B", "C", "D"])[rng.integers(0, 4, rows)]
    return pd.DataFrame({"zone": zones, "fare": fares, "who": rng.integers(0, 40, rows)})


def test_bins_are_no_groups_for_the_caps():
    # one unit with six rows of one zone, all in other bins
    frame = pd.DataFrame({"zone": "A", "fare": np.arange(6) + 0.2, "who": 1})
    frame.dp.declare(privacy_unit="who", max_groups=1, max_rows_per_group=4, max_rows=5)
    released = frame.dp.release(QUERY, **HARDLY_ANY)
    assert released["count"].sum() == pytest.approx(4, abs=1e-5)
    frame.dp.declare(privacy_unit="who", max_groups=1, max_rows=5)
    released = frame.dp.release(QUERY, **HARDLY_ANY)
    assert released["count"].sum() == pytest.approx(5, abs=1e-5)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_the_error_follows_the_caps_of_groups(mechanism, neighboring):
    frame = trips()
    spend = {"mu": 0.5} if mechanism == "gaussian" else {"epsilon": 0.1}

    def error(**caps):
        frame.dp.declare(privacy_unit="who", neighboring=neighboring, **caps)
        table = frame.dp.plan(QUERY, mechanism=mechanism, **spend).table
        return table["std_error"].iloc[0]

    one = error(max_rows=1)
    assert error(max_rows=4) == pytest.approx(4 * one, rel=0.03)
    half = 0.5 if mechanism == "gaussian" else 1
    spread = error(max_groups=3, max_rows_per_group=4)
    assert spread == pytest.approx(4 * 3**half * one, rel=0.03)
    assert error(max_rows=4, max_groups=1, max_rows_per_group=9) == error(max_rows=4)


def test_a_plan_says_what_an_error_needs():
    frame = trips()
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    plan = frame.dp.plan(QUERY, within=10, epsilon=9, delta=1e-6)
    needed = plan.table
    assert needed["half_width_95"].between(9.9, 10).all()
    assert (needed["epsilon"] < 9).all()
    # as much as is charged
    assert plan.cost["epsilon"] == pytest.approx(gaussian_epsilon(1e-6, plan.cost["mu"]))
    loss = plan.release().dp.certificate.privacy_loss
    assert (loss.mu, loss.epsilon, loss.delta) == tuple(plan.cost.values())
    shown = frame.dp.diagnose(QUERY)
    assert "Not for publication" in repr(shown)


@pytest.mark.parametrize("mechanism", ["box", "correlated"])
def test_other_mechanisms_do_not_apply(mechanism):
    with raises(dpf.errors.CalibrationError, "does not apply"):
        trips().dp.release(
            QUERY, epsilon=1, delta=1e-6, mechanism=mechanism, privacy_unit=dpf.EACH_ROW
        )
