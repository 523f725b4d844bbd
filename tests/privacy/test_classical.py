"""The classical calibration and its bounds, against the analytic one."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from support.raising import raises

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import CalibrationError
from dpframe.plan.designs import candidates
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Budget, Spend
from dpframe.privacy.gaussian import (
    TIGHT,
    classical_mu,
    classical_sigma,
    gaussian_delta,
    gaussian_mu,
    gaussian_sigma,
    least_sigma,
)

EPSILONS = [1e-6, 0.01, 0.1, 0.5, 0.9, 0.999999]
DELTAS = [1e-300, 1e-12, 1e-6, 0.01, 0.3, 0.9, 1 - 1e-9]


def test_the_constants_of_the_papers():
    assert classical_sigma(1 - 1e-9, 1e-6) == pytest.approx(5.29880, abs=5e-6)
    assert classical_sigma(1 - 1e-9, 1e-6, 5) == pytest.approx(5 * 5.29880, abs=3e-5)
    with mp.workdps(30):
        tight = mp.sqrt(2 * mp.exp(mp.mpf(8) / 9) / mp.pi)
    assert pytest.approx(float(tight), rel=1e-15) == TIGHT
    assert TIGHT < 1.25
    # 95 % of the errors are below 1.96 sigma: 10.385, and 10.384 with the tightened constant
    half_widths = [
        1.959963984540054 * classical_sigma(1 - 1e-12, 1e-6, constant=constant)
        for constant in (1.25, TIGHT)
    ]
    assert half_widths == pytest.approx([10.385, 10.384], abs=1e-3)
    assert half_widths[1] < half_widths[0]


@pytest.mark.parametrize("constant", [1.25, TIGHT])
@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_inside_the_unit_interval_the_noise_is_more_than_enough(epsilon, delta, constant):
    mu = classical_mu(epsilon, delta, constant=constant)
    assert 0 < mu < gaussian_mu(epsilon, delta)
    assert gaussian_delta(epsilon, mu) < delta
    with mp.workdps(40):
        ideal = mp.mpf(epsilon) / mp.sqrt(2 * mp.log(mp.mpf(constant) / mp.mpf(delta)))
        assert 0 < 1 - mp.mpf(mu) / ideal < 2e-12  # rounded down


@pytest.mark.parametrize("epsilon", [1, 1.0, 5, 1e9, 0])
def test_elsewhere_it_is_refused(epsilon):
    with raises(CalibrationError, "in (0, 1), got epsilon=", parameter="epsilon"):
        classical_mu(epsilon, 1e-6)


def test_the_reason_of_the_refusal_holds():
    # the formula at (10, 1e-6) has 0.979 of the noise needed
    formula = math.sqrt(2 * math.log(1.25e6)) / 10
    assert formula / gaussian_sigma(10, 1e-6) == pytest.approx(0.979, abs=5e-4)
    assert gaussian_delta(10, 1 / formula) > 1e-6


def test_a_delta_is_needed():
    with raises(CalibrationError, "got delta=0", parameter="delta"):
        classical_mu(0.5, 0)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01, 0.3, 0.9])
def test_without_epsilon_the_analytic_calibration_needs_less(delta):
    simple, analytic = 3 / (2 * delta), gaussian_sigma(0, delta, 3)
    # (1 + delta) / 2 = Phi(1 / (2 sigma)), and Phi(x) - 1/2 < x / sqrt(2 pi)
    assert analytic < simple * math.sqrt(2 / math.pi) * (1 + 1e-9)
    assert gaussian_delta(0, 3 / simple) < delta
    if delta < 0.1:
        assert analytic / simple == pytest.approx(math.sqrt(2 / math.pi), rel=0.01)


def test_no_gaussian_noise_is_below_the_least():
    epsilons = np.geomspace(0.33, 500, 40)
    checked = 0
    for epsilon in epsilons:
        edge = 0.5 - 1 / math.sqrt(4 * math.pi * epsilon)
        for delta in (1e-300, 1e-9, 1e-3, 0.1 * edge, 0.5 * edge, 0.99 * edge, 0.999999 * edge):
            if 0 < delta < edge:
                assert least_sigma(epsilon, delta, 2) == pytest.approx(2 / math.sqrt(2 * epsilon))
                assert gaussian_sigma(epsilon, delta, 2) >= least_sigma(epsilon, delta, 2)
                checked += 1
    assert checked > 240


def test_the_range_of_the_lower_bound_cannot_be_as_wide_as_stated():
    # at (1, 0.4) a scale of 0.587 is enough, below 1 / sqrt(2)
    assert gaussian_sigma(1, 0.4) == pytest.approx(0.587, abs=5e-4)
    assert gaussian_sigma(1, 0.4) < 1 / math.sqrt(2)
    assert least_sigma(1, 0.4) == 0
    assert least_sigma(1, 0.2) == 1 / math.sqrt(2)
    assert least_sigma(0, 0.2) == least_sigma(0.1, 1e-6) == 0


def planned(mechanism="classical", budget=None, **spend):
    declaration = Declaration({"x": Column(bounds=(0, 9), integer=True)})
    if budget is not None:
        from dpframe.ledger.ledger import Ledger

        declaration = Declaration(declaration.columns, ledger=Ledger(budget=budget))
    queries = {None: dpf.sum("x")}
    return plan_release(declaration, queries, Spend.of(**spend), mechanism)


def test_a_release_has_the_classical_scale_and_is_charged_for_it():
    made = planned(epsilon=0.5, delta=1e-6)
    assert made.of(made.tables[None]).scales[0] == pytest.approx(classical_sigma(0.5, 1e-6, 9))
    assert made.loss.mu_squared == Fraction(classical_mu(0.5, 1e-6)) ** 2
    analytic = planned("gaussian", epsilon=0.5, delta=1e-6)
    assert made.of(made.tables[None]).scales[0] > analytic.of(analytic.tables[None]).scales[0]
    with_budget = planned(budget=Budget(1, 1e-6), epsilon=0.5)
    assert with_budget.of(with_budget.tables[None]).scales == made.of(made.tables[None]).scales


@pytest.mark.parametrize("spend", [{"mu": 0.1}, {"rho": 0.1}, {"share": 0.1}])
def test_only_an_epsilon_and_a_delta_calibrate_it(spend):
    with raises(CalibrationError, "calibrated by epsilon= and delta=, got"):
        planned(budget=Budget(1, 1e-6), **spend)


@pytest.mark.parametrize(
    ("spend", "message"),
    [
        ({"epsilon": 1, "delta": 1e-6}, r"epsilon in \(0, 1\)"),
        ({"epsilon": 0, "delta": 1e-6}, r"epsilon in \(0, 1\)"),
        ({"epsilon": 0.5}, "delta"),
    ],
)
def test_releases_outside_its_range_are_refused(spend, message):
    with pytest.raises(CalibrationError, match=message):
        planned(**spend)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 0.99])
def test_it_is_never_chosen_nor_compared(epsilon):
    made = planned("auto", epsilon=epsilon, delta=0.5)
    assert made.mechanism in candidates("auto")
    assert "gaussian" in candidates("auto")
    assert "classical" not in candidates("auto")
