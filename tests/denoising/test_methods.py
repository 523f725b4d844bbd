"""What every denoiser promises: risks, units, sizes of values and what is refused."""

import math

import numpy as np
import pytest
from support.raising import raises

from dpframe.denoising.methods import Facts, denoise_array
from dpframe.errors import QueryError
from dpframe.privacy.laws import GAUSSIAN

VALUES = np.array([9.3, -2.1, 4.7, 0.4, 6.6, -1.5, 14.2])
CASES = {
    "to the mean": ("james_stein", {}),
    "to zero": ("james_stein", {"toward": "zero"}),
    "to the mean, plain": ("james_stein", {"positive_part": False}),
    "to zero, plain": ("james_stein", {"toward": "zero", "positive_part": False}),
    "universal threshold": ("soft_threshold", {"threshold": "universal"}),
    "threshold": ("soft_threshold", {"threshold": "sure"}),
    "trees": ("tree_wavelets", {"threshold": "universal", "trees": 3}),
    "levels": ("trend_filter", {"order": 0}),
    "lines": ("trend_filter", {"order": 1}),
    "increasing": ("monotone", {}),
    "decreasing": ("monotone", {"increasing": False}),
    "consistent": ("consistent", {}),
    "posterior": ("posterior", {}),
}
EACH = pytest.mark.parametrize("case", CASES)


def denoised(values, sigma, case):
    """Denoise values along a line, or of a binary tree."""
    method, options = CASES[case]
    n = len(values)
    if method == "consistent":
        options = {"parents": (np.arange(n) - 1) // 2}
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)]) if n > 1 else np.empty((0, 2), int)
    return denoise_array(values, method, Facts(GAUSSIAN, sigma, edges=edges), options)


ESTIMATED = [name for name in CASES if name not in ("threshold", "levels", "lines", "posterior")]


@pytest.mark.parametrize("case", ESTIMATED)  # risks of the others are tested with their choices
@pytest.mark.parametrize("sigma", [0.3, 2.0, 4.1, 30.0])
def test_the_risk_is_steins_estimate(case, sigma):
    # which is unbiased: |x - y|^2 / n + sigma^2 (2 div x / n - 1), derivatives by differences
    step = 1e-6 * sigma
    slopes = []
    for i, unit in enumerate(step * np.eye(len(VALUES))):
        higher, lower = (denoised(VALUES + sign * unit, sigma, case) for sign in (1, -1))
        slopes.append((higher.values[i] - lower.values[i]) / (2 * step))
    found = denoised(VALUES, sigma, case)
    expected = np.mean(np.square(found.values - VALUES)) + sigma**2 * (2 * np.mean(slopes) - 1)
    assert found.risk == pytest.approx(expected, rel=1e-6, abs=1e-6 * sigma**2)


@EACH
@pytest.mark.parametrize("sigma", [2.0, 4.1, 30.0])
def test_results_scale_with_the_unit(case, sigma):
    found = denoised(VALUES, sigma, case)
    for unit in (2.0**70, 2.0**-60, 1 / 3):
        scaled = denoised(VALUES * unit, sigma * unit, case)
        assert scaled.values == pytest.approx(found.values * unit, rel=1e-9, abs=1e-9 * unit)
        assert scaled.risk == pytest.approx(found.risk * unit**2, rel=1e-9, abs=1e-9 * unit**2)


@EACH
@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 1.0, 1e12])
@pytest.mark.parametrize("unit", [0.0, 1e-323, 1.0, 1e200, 1e306])
def test_no_size_of_values_is_a_problem(case, sigma, unit):
    for pattern in (VALUES[:0], VALUES[:1], VALUES[:2], VALUES[:3], VALUES, np.full(10, 0.1)):
        values = pattern * unit
        given = values.copy()
        found = denoised(given, sigma, case)
        assert found.values.shape == values.shape
        assert np.isfinite(found.values).all()
        assert not math.isnan(found.risk) or len(values) == 0
        found.values[:] = 7.0
        assert given.tolist() == values.tolist()


@EACH
def test_values_and_noise_are_checked(case):
    for wrong in ([1.0, math.nan, 2, 3], [1.0, math.inf, 2, 3], [[1.0]], ["a"]):
        with raises(QueryError, "values to denoise", parameter="values"):
            denoised(wrong, 1.0, case)
    for sigma in (0.0, math.inf):
        with raises(QueryError, "sigma must be", parameter="sigma"):
            denoised(VALUES, sigma, case)
