"""Means from a noisy sum and a noisy number of rows: inside the bounds, with first-order errors."""

import math

import numpy as np
import pytest

from dpframe.strategies.dispersion import ratio


@pytest.mark.parametrize(("rows", "mean"), [(-4, 13), (0, 13), (1, 13), (2, 11.5), (3, 11)])
def test_a_sum_is_divided_by_the_number_of_rows_or_by_one(rows, mean):
    estimate = ratio(np.array([3.0]), np.array([rows]), ({0: 1.0}, {1: 1.0}), (0, 20))
    assert estimate.values.tolist() == [mean]
    error = math.hypot(1, mean - 10) / max(rows, 1)
    assert math.hypot(*(part[0] for part in estimate.loadings.values())) == pytest.approx(error)


@pytest.mark.parametrize("rows", [-50, 0, 1, 2])
@pytest.mark.parametrize("total", [-(10**6), -3, 0, 10**6])
def test_means_stay_within_bounds_whatever_is_measured(rows, total):
    deviations = ({0: 5.0}, {1: 2.0})
    estimate = ratio(np.array([float(total)]), np.array([rows]), deviations, (-10, 30))
    assert -10 <= estimate.values[0] <= 30
    assert (
        0 < math.sqrt(sum(part[0] ** 2 for part in estimate.loadings.values())) <= 40 * (1 + 1e-12)
    )


def test_standard_errors_of_means_are_those_of_a_first_order_expansion():
    # m = c + T/N: dm = dT/N - (m - c) dN/N, also where T and N share a block
    for shared in (0.0, 1.5):
        centered, rows = {0: 6.0, 1: shared}, {1: 2.0}
        estimate = ratio(np.array([400.0]), np.array([100]), (centered, rows), (0, 20))
        assert estimate.values[0] == 14
        error = math.sqrt(sum(part[0] ** 2 for part in estimate.loadings.values()))
        assert error == pytest.approx(math.hypot(6, shared - 4 * 2) / 100)


def error_of(estimate):
    return np.sqrt(sum(np.square(part) for part in estimate.loadings.values()))


@pytest.mark.parametrize("total", [-(10.0**6), -30.0, 0.0, 30.0, 10.0**6])
@pytest.mark.parametrize("rows", [-9, 0, 1])
def test_where_errors_span_the_bounds_the_estimate_is_their_middle(rows, total):
    estimate = ratio(np.array([total]), np.array([rows]), ({0: 10.0}, {1: 1.0}), (0, 20))
    assert estimate.values.tolist() == [10]
    assert error_of(estimate) == pytest.approx(20)


def test_what_a_few_rows_say_is_kept():
    # errors of 10, which 2.5 times span the bounds, and 5
    estimate = ratio(np.array([2.0, 2.0, 9e9]), np.array([2, 4, 1]), ({0: 20.0}, {}), (0, 20))
    assert estimate.values.tolist() == [10, 10.5, 10]
    assert error_of(estimate).tolist() == [20, 5, 20]
    exact = ratio(np.array([0.0, 9.0]), np.array([0, 1]), ({0: 0.0}, {1: 0.0}), (0, 20))
    assert exact.values.tolist() == [10, 19]
    assert error_of(exact).tolist() == [0, 0]
    constant = ratio(np.array([0.0]), np.array([0]), ({0: 1.0}, {1: 1.0}), (7, 7))
    assert constant.values.tolist() == [7]
    assert error_of(constant).tolist() == [0]
