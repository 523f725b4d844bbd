"""Functions of the normal law are those of many digits, to the last few bits, and of SciPy."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special

from dpframe.privacy.box import beyond
from dpframe.privacy.normal import (
    end_of_log_tail,
    inverse_erf,
    log_normal_tail,
    normal_end,
    scaled_erfc,
)

DIGITS = 60
CLOSE = 2e-15


@pytest.mark.parametrize("x", [-26.6, -3.3, -1e-9, 0.0, 0.7, 5.1, 24.9, 25.0, 25.1, 1e3, 1e9])
def test_scaled_erfc(x):
    with mpmath.workdps(DIGITS):
        exact = mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x) if x < 1e3 else None
    expected = special.erfcx(x) if exact is None else float(exact)
    assert scaled_erfc(x) == pytest.approx(expected, rel=CLOSE)


def test_scaled_erfc_at_its_ends():
    assert scaled_erfc(-30.0) == math.inf
    assert 0 < scaled_erfc(1e308) < 1e-308


@pytest.mark.parametrize("mass", [5e-324, 1e-12, 0.3, 0.5, 0.975, 1 - 2**-53])
def test_ends_of_a_normal(mass):
    assert normal_end(mass) == pytest.approx(special.ndtri(mass), rel=CLOSE)
    assert normal_end(1.0) == math.inf


@pytest.mark.parametrize("mass", [0.0, 5e-324, 1e-10, 1e-9, 0.2, 0.4999, 0.5, 0.9, 1 - 2**-53])
def test_inverse_erf(mass):
    assert inverse_erf(mass) == pytest.approx(special.erfinv(mass), rel=CLOSE)


@pytest.mark.parametrize("x", [0.4, 1.0, 8.3, 37.0, 1e3, 1e154])
def test_logarithms_of_tails_and_their_ends(x):
    log_mass = log_normal_tail(x)
    assert log_mass == pytest.approx(special.log_ndtr(-x), rel=CLOSE)
    assert end_of_log_tail(log_mass) == pytest.approx(x, rel=10 * CLOSE)
    assert end_of_log_tail(log_mass * 1.01) > x


@pytest.mark.parametrize("members", [1, 2, 5, 32, 33])
def test_tails_of_a_coordinate_in_a_box(members):
    x = np.array([0.0, 0.3, 4.0, 50.0, 700.0])
    with mpmath.workdps(DIGITS):
        exact = [
            sum((1 - mpmath.mpf(k) / members) * t**k / mpmath.factorial(k) for k in range(members))
            * mpmath.exp(-t)
            for t in map(mpmath.mpf, x)
        ]
    near = CLOSE if members <= 32 else 1e-9
    np.testing.assert_allclose(beyond(x, members), np.array(exact, float), rtol=near, atol=1e-300)
    assert beyond(math.inf, members) == 0
