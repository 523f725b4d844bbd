"""Low bits of integer + noise: no pattern may be possible on one input and impossible on another.

Sums of floats fail this test: see the control. False alarms have probability `FALSE_ALARM` each.
"""

import numpy as np
import pytest
from scipy import special, stats
from support.randomness import SYSTEM

from dpframe.privacy import noise
from dpframe.privacy.laws import GAUSSIAN, LAPLACE, STAIRCASE
from dpframe.privacy.staircase import scale_for

FALSE_ALARM = 1e-6
LAWS = [GAUSSIAN, LAPLACE]
audit = pytest.mark.audit


def residue_probabilities(law, scale, modulus):
    """P(Y = r modulo the modulus) of a draw, r = 0, 1, ...; wide noise is even to 1e-5."""
    if scale > 64 * modulus:
        return np.full(modulus, 1 / modulus)
    last = int(40 * scale) // modulus * modulus + modulus
    k = np.arange(-last, last)
    if law is LAPLACE:
        found = np.exp(-np.abs(k) / scale) * np.tanh(0.5 / scale)
    else:
        # the law is even: compute with the negative side, where floats are fine
        near, far = -np.abs(k) + 0.5, -np.abs(k) - 0.5
        found = special.ndtr(near / scale) - special.ndtr(far / scale)
    return found.reshape(-1, modulus).sum(axis=0)


def residue_counts(law, scale, modulus, base, draws):
    """How often base + noise has each residue."""
    counts = np.zeros(modulus, np.int64)
    for _ in range(0, draws, 10**6):
        values = base + noise.integer_noise(law.curve, scale, min(draws, 10**6), SYSTEM)
        counts += np.bincount(values & modulus - 1, minlength=modulus)
    return counts


def check_low_bits(law, scale, modulus, draws):
    """Compare residues on inputs 0 and 1 with the law and, for wide noise, with each other."""
    probabilities = residue_probabilities(law, scale, modulus)
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    counts = [residue_counts(law, scale, modulus, base, draws) for base in (0, 1)]
    p_values = []
    for base in (0, 1):
        expected = np.roll(probabilities, base) * draws
        assert (expected > 50).all()
        assert (counts[base] > 0).all()
        p_values.append(stats.chisquare(counts[base], expected * draws / expected.sum()).pvalue)
    if scale > 64 * modulus:
        p_values.append(stats.chi2_contingency(np.array(counts)).pvalue)
    assert min(p_values) > FALSE_ALARM
    return p_values


CASES = [(1.0, 2), (4.2, 8), (4.2, 16), (1000.0, 16), (1000.0, 256), (2.0**20, 1024)]
WIDE = [(1.37 * 2.0**33, 1024), (2.0**40, 1024), (2.0**50, 4096)]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("scale", "modulus"), [(4.2, 8), (2.0**20, 256), (2.0**40, 256)])
def test_low_bits_show_no_gap(law, scale, modulus):
    check_low_bits(law, scale, modulus, 10**6)


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("scale", "modulus"), CASES + WIDE)
def test_low_bits_show_no_gap_at_length(law, scale, modulus):
    p_values = check_low_bits(law, scale, modulus, 10**7)
    print(f"{law} scale {scale:g} modulo {modulus}: p = {np.round(p_values, 3)}")


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("shift", [10, 20, 30])
def test_middle_bits_of_wide_noise_are_even(law, shift):
    counts = np.zeros(256)
    for _ in range(10):
        counts += np.bincount(
            noise.integer_noise(law.curve, 2.0**48, 10**6, SYSTEM) >> shift & 255, minlength=256
        )
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@audit
@pytest.mark.parametrize("moved", [7, 20, 2**20 + 3, 2**40])
def test_low_bits_of_staircase_noise_show_no_gap(moved):
    scale, modulus = scale_for(moved, moved / 3), 8
    even = np.full(modulus, 1 / modulus)
    if moved < 2**20:
        at = np.arange(-40 * moved, 40 * moved)
        own = STAIRCASE.at_least(scale, at) - STAIRCASE.at_least(scale, at + 1)
        even = np.bincount(at % modulus, own, modulus)
    for base in (0, 1):
        drawn = STAIRCASE.draw([scale], 10**7, SYSTEM)[0] + base
        counts = np.bincount(drawn & modulus - 1, minlength=modulus)
        p_value = stats.chisquare(counts, np.roll(even, base) * len(drawn) / even.sum()).pvalue
        print(f"staircase of {moved}, {base}: p = {p_value:.3f}")
        assert p_value > FALSE_ALARM


def test_control_float_noise_has_a_gap():
    """The event "not a multiple of 2**-53" has probability 0 on input 1, and not on input 0."""
    z = np.random.default_rng(1).normal(size=10**6)
    chances = [np.mean(np.ldexp(base + z, 53) % 1 != 0) for base in (0.0, 1.0)]
    assert chances[0] > 0.1
    assert chances[1] == 0
