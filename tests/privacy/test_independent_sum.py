"""Sums of noises of several laws, against convolutions."""

import numpy as np
import pytest
from scipy import special

from dpframe.inference.sums import IndependentSum
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.noise_sum import NoiseSum


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("scale", [0.6, 3.0, 20.0, 60.0])
def test_a_sum_of_noises_of_two_laws_is_covered_at_least_as_often_as_it_says(scale, level):
    sigma, size = 9.0, 1_500
    at = np.arange(-size, size + 1)
    q = np.exp(-1 / scale)
    laplace = (1 - q) / (1 + q) * q ** np.abs(at)
    normal = np.diff(special.ndtr((np.append(at, size + 1) - 0.5) / sigma))
    both = np.convolve(laplace, normal)
    noises = [
        (law, NoiseSum({"0": law.standard_deviation(own)}, {"0": own}))
        for law, own in ((GAUSSIAN, sigma), (LAPLACE, scale))
    ]
    total = IndependentSum.of(noises)
    width = total.half_width(level)
    off = np.abs(np.arange(-2 * size, 2 * size + 1))
    assert level <= both[off <= width].sum() < 1
    assert both[off <= 0.6 * width].sum() < level
    held = total.excess(np.array([width, width * 1.001]), level) <= 0
    assert held.tolist() == [True, False]


def test_sums_of_one_law_are_one_sum():
    noises = [(LAPLACE, NoiseSum({"0": 2.0}, {"0": 3.0}, [("0",)])) for _ in range(3)]
    ((law, total),) = IndependentSum.of(noises).parts
    assert law is LAPLACE and list(total.scales) == ["0:0", "1:0", "2:0"]
    assert total.groups == [("0:0",), ("1:0",), ("2:0",)]
    assert IndependentSum.of(noises).deviation == pytest.approx(2 * 3**0.5)
    assert IndependentSum.of(noises[:1]).parts[0][1] is noises[0][1]
