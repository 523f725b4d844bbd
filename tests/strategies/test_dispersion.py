"""Variances from noisy numbers: inside their bounds, with first-order errors."""

import itertools
import math

import numpy as np
import pytest

from dpframe.strategies.base import Moments
from dpframe.strategies.dispersion import WORST, dispersion, loadings_at

OF = ({0: 1.0, 1: 0.5}, {0: 0.3, 2: 0.7}, {1: -0.2, 2: 0.4})
FAR = [0.0, -3.0, 0.4, 1.0, 55.0, 1e19, -1e19]


def moments(rows, first, rest, *, half=3.0):
    made = (np.atleast_1d(np.asarray(part, float)) for part in (rows, first, rest))
    return Moments(*made, *OF, half)


@pytest.mark.parametrize("root", [False, True])
def test_values_and_errors_are_finite_and_inside(root):
    made = moments(*np.array(list(itertools.product(FAR, repeat=3))).T)
    found = dispersion(made, root=root)
    most = 3.0 if root else 9.0
    assert ((found.values >= 0) & (found.values <= most)).all()
    error = np.sqrt(sum(np.square(part) for part in found.loadings.values()))
    assert np.isfinite(error).all()
    assert (error <= most * (1 + 1e-12)).all()


def test_the_variance_is_that_of_the_population():
    y = np.array([-1.0, -0.5, 0.25, 1.0, 0.5])
    made = moments(5, y.sum(), (y**2 - 0.5).sum())
    assert dispersion(made, root=False).values == pytest.approx([9 * y.var()])
    assert dispersion(made, root=True).values == pytest.approx([3 * y.std()])


@pytest.mark.parametrize("root", [False, True])
def test_loadings_are_derivatives(root):
    at = np.array([900.0, 120.0, -150.0])
    whole = dispersion(moments(*at), root=root)
    for block in range(3):
        step = 1e-4 * np.array([of.get(block, 0.0) for of in OF])
        ends = [dispersion(moments(*(at + sign * step)), root=root).values for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-4
        assert whole.loadings[block] == pytest.approx(slope, rel=1e-6)


def test_the_worst_error_is_at_an_extreme_mean_and_variance():
    noise = loadings_at(*WORST, OF)
    worst = np.sqrt(sum(np.square(part + 0 * WORST[0]) for part in noise.values())).max()
    m, v = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(0, 1, 201))
    some = loadings_at(m, m**2 - np.minimum(v, 1 - m**2), OF)
    largest = np.sqrt(sum(np.square(part) for part in some.values())).max()
    assert largest <= worst * (1 + 1e-12)
    assert worst <= largest * 1.001


def test_no_noise_is_no_error():
    made = Moments(np.ones(1), np.zeros(1), np.array([-0.5]), {0: 0.0}, {0: 0.0}, {0: 0.0}, 1.0)
    found = dispersion(made, root=True)
    assert found.values.tolist() == [0.0]
    assert math.hypot(*(part.item() for part in found.loadings.values())) == 0
