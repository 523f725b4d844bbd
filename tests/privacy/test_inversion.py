"""Half-widths of sums of discrete Laplace noises: what they cover, by adding up the law itself."""

import math

import numpy as np
import pandas as pd
import pytest
from mpmath import mp
from scipy import signal

import dpframe as dpf
from dpframe.privacy.half_widths import Terms, solve_sum
from dpframe.privacy.laws import LAPLACE
from dpframe.privacy.noise_sum import NoiseSum

LEVELS = (0.5, 0.8, 0.95, 0.999)


def half_width(steps, scales, level):
    return Terms.of(np.array(steps), np.array(scales)).half_width(level, LAPLACE)


def covered(width, steps, scales, unit):
    """P(|S| <= width), all steps multiples of a unit: convolved noise by noise."""
    law = np.ones(1)
    for step, scale in zip(np.rint(np.divide(steps, unit)).astype(int), scales, strict=True):
        k = np.arange(-int(42 * scale) - 2, int(42 * scale) + 3)
        own = np.zeros(2 * abs(step * k[0]) + 1)
        own[step * k + abs(step * k[0])] = np.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)
        law = signal.fftconvolve(law, own)
    far = np.abs(np.arange(len(law)) - len(law) // 2) * unit
    return law[far <= width * (1 + 1e-12)].sum()


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("scale", [0.15, 0.6, 1, 7.3])
@pytest.mark.parametrize("weights", [(1,), (1, -1, 1), (3, 2, -1), (0.5, 0.75, 2), (1,) * 24])
def test_on_a_lattice_a_half_width_is_the_smallest_that_covers(weights, scale, level):
    unit = 0.25 if weights[0] == 0.5 else 1
    width = half_width(weights, np.full(len(weights), scale), level)
    scales = [scale] * len(weights)
    assert covered(width, weights, scales, unit) >= level
    if width:  # one point less may hold the level too, if hardly
        assert covered(width - 1.01 * unit, weights, scales, unit) < level + 2e-3 * (1 - level)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_off_a_lattice_coverage_is_hardly_more_than_the_level(level):
    steps, scales = (1.0, 0.373, -1.709), (3.1, 5.3, 1.9)  # multiples of 0.001, too fine to matter
    width = half_width(steps, scales, level)
    share = covered(width, steps, scales, 0.001)
    assert level <= share <= level + 0.005
    assert covered(0.95 * width, steps, scales, 0.001) < level  # planted: a bit too narrow
    # a coarse noise beside a fine one: most of the chance lies on few points
    width = half_width([1, 0.001], [0.3, 20.0], level)
    assert covered(width, (1, 0.001), (0.3, 20.0), 0.001) >= level


def test_the_tail_is_that_of_the_inversion_formula():
    # P(|S| <= a) is the mean of f(u) sin((a + 1/2) u) / sin(u / 2) over [0, pi]
    steps, scales = (1, 2, -5), (0.7, 3.1, 1.3)
    with mp.workdps(15):

        def inside(a):
            def f(u):
                of = [
                    1 + (mp.sin(u * c / 2) / mp.sinh(1 / mp.mpf(2 * s))) ** 2
                    for c, s in zip(steps, scales, strict=True)
                ]
                return mp.sin((a + mp.mpf("0.5")) * u) / mp.sin(u / 2) / mp.fprod(of)

            return mp.quad(f, mp.linspace(0, mp.pi, 20)) / mp.pi

        for level in (0.8,):
            width = half_width(steps, scales, level)
            assert inside(width) >= level > inside(width - 1)
            assert covered(width, steps, scales, 1) == pytest.approx(float(inside(width)), rel=1e-9)


def test_noise_that_is_nearly_none_and_noise_that_is_vast():
    assert half_width(np.zeros(3), np.ones(3), 0.95) == 0
    assert half_width(np.ones(5), np.full(5, 1e-3), 0.95) == 0
    wide = half_width([2e-9, -1e-9], [1e9, 3e9], 0.95)
    near = half_width([2e-3, -1e-3], [1e3, 3e3], 0.95)
    assert wide == pytest.approx(near, rel=2e-3)
    assert not Terms.of(np.arange(1.0, 3000), np.ones(2999)).is_quick(0.95)
    assert not Terms.of(np.ones(2), np.ones(2)).is_quick(1 - 1e-12)


def test_roundings_are_added():
    terms = {"0": np.array([3.0, 3.0]), "-2": np.array([0.2])}
    noise = NoiseSum({"0": 18**0.5}, {"0": 2.0}, largest={"0": 3.0}, terms=terms)
    bare = NoiseSum({"0": 18**0.5}, {"0": 2.0}, largest={"0": 3.0}, terms={"0": terms["0"]})
    more = LAPLACE.sum_half_width(noise, 0.9) - LAPLACE.sum_half_width(bare, 0.9)
    assert more == pytest.approx(0.2 * 1.6449, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "width"), [(1, 13), (5, 1)])
def test_a_total_of_cells_has_the_interval_of_its_law(epsilon, width):
    keys = list(range(24))
    frame = pd.DataFrame({"zone": [0, 3, 3] * 20})
    frame.dp.declare(keys={"zone": keys}, privacy_unit=dpf.EACH_ROW)
    made = frame.dp.count("zone", epsilon=epsilon, mechanism="laplace")
    row = made.dp.combine(dict.fromkeys(keys, 1)).iloc[0]
    assert row["high"] - row["estimate"] == row["estimate"] - row["low"] == width


@pytest.mark.parametrize("root", [1e-7, 0.3, 2.7, 8 - 1e-9])
def test_a_root_is_found_to_the_part_that_it_lies_in(root):
    tries = []

    def excess(t):
        tries.append(t)
        return math.log(root / max(t, 1e-300)) * (1 + t)

    part = 8 / 2**24
    assert solve_sum(excess, 8.0, 700.0) == math.ceil(root / part) * part
    assert len(tries) <= 45
