"""Errors that suggestions of caps predict hold on tables of many shapes, with all kinds of noise.

`unseen` is kept in 95 % of suggestions: fewer than 100 of 120 keep it with a chance of 5e-7.
"""

import numpy as np
import pandas as pd
import pytest

from dpframe.steps.suggest_caps import best_suggestion

pytestmark = pytest.mark.audit

TIMES, LEAST = 20, 100
SPENDS = {"laplace": {"epsilon": 0.1}, "gaussian": {"epsilon": 0.1, "delta": 1e-6}}
PLANNED = {"epsilon": 0.9, "delta": 1e-6}


def sizes(rng):
    """Rows of units: alike, uniform, Poisson, geometric, lognormal, and a few far from most."""
    return [
        np.full(3_000, 8),
        rng.integers(1, 101, 2_000),
        1 + rng.poisson(6, 4_000),
        rng.geometric(0.15, 8_000),
        np.minimum(np.exp(rng.normal(1.2, 0.9, 5_000)).astype(int) + 1, 400),
        np.concatenate([rng.geometric(0.5, 21_000), rng.integers(8, 29, 150)]),
    ]


def kept(mechanism):
    """How often units beyond the suggested cap are at most what was said."""
    found = 0
    for rows in sizes(np.random.default_rng(3)):
        frame = pd.DataFrame({"u": np.repeat(np.arange(len(rows)), rows)})
        frame.dp.declare(privacy_unit="u", max_rows=1)
        for _ in range(TIMES):
            made = frame.dp.suggest_caps(
                largest=512, planned=PLANNED, mechanism=mechanism, **SPENDS[mechanism]
            )
            cap = best_suggestion(made)[-1].best["max_rows"]
            found += (rows > cap).sum() <= made["unseen"].loc[cap]
    return found


@pytest.mark.parametrize("mechanism", SPENDS)
def test_units_beyond_caps_are_at_most_what_is_said(mechanism):
    assert kept(mechanism) >= LEAST


def test_a_bound_without_noise_is_found(monkeypatch):
    def bare(noisy, _):
        return np.append(np.cumsum(noisy[:0:-1])[::-1], noisy[-1])

    monkeypatch.setattr("dpframe.steps.suggest_caps.unseen", bare)
    assert kept("laplace") < LEAST
