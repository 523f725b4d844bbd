"""The interface of the noise module: arguments, entropy, standard deviations, half-widths."""

import os
import subprocess
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from support.raising import raises
from support.randomness import SYSTEM
from support.streams import Stream

from dpframe.errors import CalibrationError
from dpframe.privacy import noise
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.noise import MAX_SCALE

LAWS = [GAUSSIAN, LAPLACE]


def mp_beyond(law, scale, a):
    """P(|Y| > a) for a >= 0, at the precision of mpmath."""
    if law is GAUSSIAN:
        return mp.erfc((a + mp.mpf("0.5")) / scale / mp.sqrt(2))
    q = mp.exp(-1 / mp.mpf(scale))
    return 2 * q ** (a + 1) / (1 + q)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 8, 9, 1000, noise._FEW, noise.BLOCK + 1])
@pytest.mark.parametrize("scale", [0, 0.0, -0.0, 1e-300, 5e-324, 0.3, 4, np.float32(2.5), 2.0**60])
def test_draws_are_int64_of_the_size_asked(law, size, scale):
    draws = noise.integer_noise(law.curve, scale, size, SYSTEM)
    assert draws.dtype == np.int64
    assert draws.shape == (size,)
    assert scale >= 0.3 or not draws.any()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_each_draw_can_have_its_own_scale(law):
    scale = np.tile([0.0, 1e-3, 1.0, 1e6, 2.0**50], 2000)
    draws = noise.integer_noise(law.curve, scale, scale.size, SYSTEM).reshape(2000, 5)
    typical = np.median(np.abs(draws), axis=0)
    assert typical[0] == typical[1] == 0
    assert 0 <= typical[2] <= 1
    # the median of |Z| is 0.674 or 0.693, and these bounds at least ten standard deviations away
    assert (typical[3:] > 0.4 * np.array([1e6, 2.0**50])).all()
    assert (typical[3:] < 1.1 * np.array([1e6, 2.0**50])).all()
    assert noise.integer_noise(law.curve, np.empty(0), 0, SYSTEM).shape == (0,)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_widest_noise_wraps(law):
    draws = noise.integer_noise(law.curve, MAX_SCALE, 100_000, SYSTEM).astype(float)
    assert np.abs(draws).max() <= 2.0**63
    # 3 % are at least 8 standard deviations of this estimate
    expected = 2.0**60 if law is GAUSSIAN else 2.0**60.5
    assert np.std(draws) == pytest.approx(expected, rel=0.03)


def test_wrapping_is_modulo_two_to_the_64():
    size = 9 * 2**60 + round(12345 / 1024)
    for law in LAWS:
        for sign, start in [(1, (9 << 70) + 12345), (-1, ~((9 << 70) + 12345))]:
            wrapped = noise._round_exactly(law.curve, 2.0**60, noise.Interval(start, 70, SYSTEM))
            assert wrapped == sign * (size - 2**64)


def test_numpy_error_state_does_not_matter():
    with np.errstate(all="raise"):
        assert noise.integer_noise(LAPLACE.curve, 1e-310, 100_000, SYSTEM).any() == np.False_
        assert noise.integer_noise(GAUSSIAN.curve, 2.0**60, 100_000, SYSTEM).any()


@pytest.mark.parametrize("scale", [-1, -1e-300, float("nan"), float("inf"), 2.0**61])
def test_scales_out_of_range_are_refused(scale):
    calls = [
        lambda: noise.integer_noise(GAUSSIAN.curve, scale, 3, SYSTEM),
        lambda: noise.integer_noise(LAPLACE.curve, np.array([1.0, scale, 2.0]), 3, SYSTEM),
        lambda: LAPLACE.standard_deviation(scale),
        lambda: GAUSSIAN.half_width(scale, 0.95),
    ]
    for call in calls:
        with raises(CalibrationError, "larger epsilon", parameter="scale"):
            call()


def test_other_wrong_arguments_are_refused():
    with raises(CalibrationError, ">= 0", parameter="size"):
        noise.integer_noise(GAUSSIAN.curve, 1.0, -1, SYSTEM)
    for shape in [(2,), (3, 1), (1,)]:
        with raises(CalibrationError, "shape", parameter="scale"):
            noise.integer_noise(GAUSSIAN.curve, np.ones(shape), 3, SYSTEM)
    for level in [0, 1, -0.5, 2, float("nan")]:
        with raises(CalibrationError, "strictly", parameter="level"):
            GAUSSIAN.half_width(1.0, level)


def test_all_randomness_comes_from_one_function(monkeypatch):
    def draws(seed):
        monkeypatch.setattr("dpframe.context._system_bytes", Stream(seed))
        drawn = [law.draw([1.0, 2.0**60], 70_000, SYSTEM) for law in LAWS]
        return np.concatenate(
            [*drawn[0], *drawn[1], noise.random_words(10, SYSTEM).astype(np.int64)]
        )

    first = draws(seed=1)
    assert (first == draws(seed=1)).all()
    assert (first != draws(seed=2)).any()


def test_random_bytes_and_words(monkeypatch):
    assert len(SYSTEM.bits(0)) == 0
    assert SYSTEM.bits(32) != SYSTEM.bits(32)
    monkeypatch.setattr("dpframe.context._LARGEST_REQUEST", 10)
    assert len(SYSTEM.bits(35)) == 35
    monkeypatch.setattr("dpframe.context._system_bytes", lambda n: bytes(range(n)))
    assert (
        noise.random_words(2, SYSTEM, np.uint16).tolist()
        == np.frombuffer(b"\0\1\2\3", "=u2").tolist()
    )
    assert noise.random_words(3, SYSTEM).dtype == np.uint64
    # 12 bits are the upper ones of two little-endian bytes
    assert noise._random_bits(12, SYSTEM) == 0x0100 >> 4


FORK = """
import os
import sys
from dpframe.context import SYSTEM
from dpframe.privacy import noise
from dpframe.privacy.laws import GAUSSIAN
def draws():
    return noise.integer_noise(GAUSSIAN.curve, 1e9, size, SYSTEM)[-4:].tolist()
for size in map(int, sys.argv[1:]):
    if os.fork() == 0:  # nothing was drawn here yet
        noise.integer_noise(GAUSSIAN.curve, 1e9, size + 6, SYSTEM)
        for child in range(3):
            if os.fork() == 0:
                print(draws(), flush=True)
                os._exit(0)
            os.wait()
        print(draws(), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_forked_processes_draw_differently():
    root = Path(noise.__file__).parents[2]
    command = [sys.executable, "-c", FORK, "4", "1000", "20000", "100000"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == 4 * 4
    assert len(set(lines)) == len(lines)


SCALES = [0.03, 0.05, 0.1, 0.3, 0.5, 1.0, 1.7, 1.999, 2.0, 2.3, 4.2, 30.0]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_standard_deviation_is_that_of_the_probabilities(law, scale):
    with mp.workdps(60):
        most = int(scale * 150) + 3
        variance = mp.fsum((2 * k - 1) * mp_beyond(law, scale, k - 1) for k in range(1, most))
        error = law.standard_deviation(scale) / mp.sqrt(variance) - 1
        assert abs(error) < 1e-12


def test_standard_deviation_at_the_ends():
    for law, factor in [(GAUSSIAN, 1), (LAPLACE, np.sqrt(2))]:
        assert law.standard_deviation(0) == 0
        assert law.standard_deviation(5e-324) == 0
        assert law.standard_deviation(2.0**60) == pytest.approx(2.0**60 * factor, rel=1e-15)
    # noise this narrow is nearly always 0, nothing like sqrt(scale**2 + 1 / 12)
    assert GAUSSIAN.standard_deviation(0.05) < 1e-10


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [*SCALES, 1000.0, 2.0**20])
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 1 - 1e-9, 1 - 2**-53])
def test_half_width_is_the_smallest_that_covers(law, scale, level):
    width = law.half_width(scale, level)
    assert isinstance(width, int)
    with mp.workdps(60):
        missed, allowed = mp_beyond(law, scale, width), 1 - mp.mpf(level)
        assert missed <= allowed * (1 + mp.mpf("1e-13"))
        if width:
            more = mp_beyond(law, scale, width - 1)
            assert more > allowed * (1 - mp.mpf("1e-13"))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [2.0**40, 2.0**55, 2.0**60])
def test_half_width_of_wide_noise(law, scale):
    with mp.workdps(60):
        quantile = mp.sqrt(2) * mp.erfinv(0.95) if law is GAUSSIAN else -mp.log(1 - mp.mpf(0.95))
        assert law.half_width(scale, 0.95) / (quantile * scale) == pytest.approx(1, rel=1e-12)


def test_the_laplace_is_that_of_the_geometric_mechanism():
    # at epsilon = 1: 1.84 where a rounded Laplace has 2.08
    variance = LAPLACE.standard_deviation(1) ** 2
    assert variance == pytest.approx(2 * np.exp(-1) / (1 - np.exp(-1)) ** 2, rel=1e-12)
    assert LAPLACE.half_width(1, 0.95) == 3


def test_half_width_without_noise():
    assert GAUSSIAN.half_width(0, 0.999) == 0
    assert LAPLACE.half_width(5e-324, 0.999) == 0
