"""Intervals of quantiles over 2,000 releases, in groups of 50 to 10,000 rows.

With n intervals that hold with the level or more, so many miss as are counted here in fewer than
one run in 10**6, for all tests of this file together (a binomial tail).
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import dpframe as dpf

RELEASES, LEVEL = 2000, 0.8
SIZES = {"50": 50, "500": 500, "10,000": 10_000}
DECILES = [k / 10 for k in range(1, 10)]
FALSE_ALARM = 1e-6 / 200
NOISE = {
    "gaussian": {"mechanism": "gaussian", "epsilon": 1, "delta": 1e-6},
    "laplace": {"mechanism": "laplace", "epsilon": 1},
    "little": {"mechanism": "laplace", "epsilon": 8},
}


def most(releases):
    """As many may miss."""
    return int(binom.isf(FALSE_ALARM, releases, 1 - LEVEL))


def missed(rows, spend, *, groups=20, bins=256, simultaneous=False, narrow=1.0):
    """How many intervals of each decile miss that of the rows, and in how many groups any does."""
    rng = np.random.default_rng(rows)
    outside, any_of_all = np.zeros(9, int), 0
    for _ in range(RELEASES // groups):
        x = np.minimum(rng.exponential(1.0, (groups, rows)), 10)
        frame = pd.DataFrame({"zone": np.repeat(np.arange(groups), rows), "x": x.ravel()})
        released = dpf.release(
            frame,
            dpf.ranges("x", bins, "zone", keys=range(groups), bounds=(0, 10)),
            privacy_unit=dpf.EACH_ROW,
            **spend,
        )
        found = released.dp.quantile(DECILES, level=LEVEL, simultaneous=simultaneous)
        low, high = (found[f"x_{end}"].to_numpy().reshape(groups, 9) for end in ("low", "high"))
        middle, half = (low + high) / 2, narrow * (high - low) / 2
        true = np.sort(x, axis=1)[:, np.ceil(np.multiply(DECILES, rows)).astype(int) - 1]
        out = (true < middle - half) | (middle + half < true)
        outside += out.sum(axis=0)
        any_of_all += out.any()
    return outside, any_of_all


@pytest.mark.audit
@pytest.mark.parametrize("rows", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("noise", NOISE)
def test_intervals_hold_as_often_as_they_say(rows, noise):
    outside, _ = missed(rows, NOISE[noise])
    assert outside.max() <= most(RELEASES)


@pytest.mark.audit
@pytest.mark.parametrize("noise", ["laplace", "little"])
def test_exact_intervals_of_few_quantiles_hold_as_often_as_they_say(noise):
    outside, _ = missed(500, NOISE[noise], groups=2, bins=64)
    assert outside.max() <= most(RELEASES)
    assert outside.max() > 0


@pytest.mark.audit
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_all_intervals_of_a_table_hold_at_once(noise):
    _, tables = missed(500, NOISE[noise], simultaneous=True)
    assert tables <= most(RELEASES // 20)


@pytest.mark.audit
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_intervals_a_third_as_wide_are_found(noise):
    outside, _ = missed(10_000, NOISE[noise], narrow=0.33)
    assert outside.max() > most(RELEASES)
