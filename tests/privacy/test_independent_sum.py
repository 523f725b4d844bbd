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


def test_a_sum_that_no_noise_moves_does_not_widen_others():
    # of means of two years, each is read off one release, and moved by 2 noises of 4
    loadings = {"0": np.full(3, 0.0915), "1": np.full(3, 0.0113)}
    scales = {"0": 1e10, "1": 4.0}
    moving, still = (
        NoiseSum({block: f * part for block, part in loadings.items()}, scales, largest=largest)
        for f, largest in ((1.0, None), (0.0, {block: np.zeros(3) for block in loadings}))
    )
    alone = LAPLACE.sum_half_width(moving, 0.8)
    both = IndependentSum.of([(LAPLACE, still), (LAPLACE, moving)])
    np.testing.assert_array_equal(both.half_width(0.8), alone)
    # 1.14 deviations for one Laplace noise, 1.28 for a normal one
    assert (alone / both.deviation < 1.15).all()
    assert IndependentSum.of([(LAPLACE, still)]).half_width(0.8).max() == 0
