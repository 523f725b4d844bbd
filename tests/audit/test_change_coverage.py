"""Changes hold what they say: 8,000 pairs of releases of every law, from empty groups on.

Each group of a pair of tables has noise of its own, so that 4 pairs of tables with 2,000 groups are
8,000 pairs of releases of a group. A coverage of 95 % is seen with a standard error of 0.24 %, one
of 80 % with 0.45 %: six of these are passed with chance 1e-9, of which 1,000 numbers are looked at.
"""

import math

import numpy as np
import pandas as pd
import pytest
from support.quotients import changes

import dpframe as dpf
from dpframe.privacy.law import Law
from dpframe.privacy.laws import LAWS

pytestmark = pytest.mark.audit

GROUPS, PAIRS = 2_000, 4
LEVELS = {level: 6 * math.sqrt(level * (1 - level) / GROUPS / PAIRS) for level in (0.8, 0.95)}
QUERIES = {
    "totals": dpf.aggregate("g", n=dpf.count(), total=dpf.sum("x"), high=dpf.count(where="x > 4")),
    "quotients": dpf.aggregate("g", mean=dpf.mean("x"), rate=dpf.rate("x > 4")),
    "spread": dpf.aggregate("g", spread=dpf.std("x")),
}
SPENDS = {
    "laplace": [{"mechanism": "laplace", "epsilon": 1}] * 2,
    "gaussian": [{"mechanism": "gaussian", "epsilon": 1, "delta": 1e-6}] * 2,
    "box": [{"mechanism": "box", "epsilon": 1}] * 2,
    "both": [
        {"mechanism": "laplace", "epsilon": 1},
        {"mechanism": "gaussian", "epsilon": 1, "delta": 1e-6},
    ],
    "box and gaussian": [
        {"mechanism": "box", "epsilon": 1},
        {"mechanism": "gaussian", "epsilon": 1, "delta": 1e-6},
    ],
}
CASES = [
    (query, spend)
    for query in QUERIES
    for spend in SPENDS
    if query != "spread" or "box" not in spend
]
# rows of a group before and now; intervals of standard deviations are first-order
ROWS = {"totals": [(0, 3), (100, 130)], "quotients": [(5, 8), (40, 30), (400, 300)]}
ROWS["spread"] = [(400, 300)]


def table(rows, turn):
    """Make a frame with so many rows in each of many groups, all alike."""
    values = np.random.default_rng(3).permutation(np.arange(rows) * 10 // max(rows, 1) + turn)
    frame = pd.DataFrame({"g": np.repeat(np.arange(GROUPS), rows)})
    frame["x"] = np.tile(np.minimum(values, 10.0), GROUPS)
    keys = {"g": range(GROUPS)}
    frame.dp.declare(keys=keys, bounds={"x": (0, 10)}, privacy_unit=dpf.EACH_ROW)
    return frame


def exact(frame, query, spend):
    """Release without noise."""
    with pytest.MonkeyPatch.context() as patch:
        for law in (Law, *map(type, LAWS.values())):
            patch.setattr(
                law,
                "draw",
                lambda _, scales, size, *rest: [np.zeros(size, np.int64) for _ in scales],
            )
        return frame.dp.release(query, **spend)


def narrower(column, level):
    """Say by which factor intervals are made too narrow: of counts, a fifth may hold as much."""
    return 0.6 if column in ("n", "high") and level < 0.9 else 0.8


def within(found, truth, factor=1.0):
    """How often intervals hold the truth, if their width is multiplied by a factor."""
    middle, half = (found["high"] + found["low"]) / 2, (found["high"] - found["low"]) / 2
    if factor == 1:
        return (found["low"] - 1e-9 <= truth) & (truth <= found["high"] + 1e-9)
    return (middle - truth).abs() <= half * factor


@pytest.mark.parametrize(("query", "spend"), CASES)
def test_changes_are_held_as_often_as_intervals_say(query, spend):
    asked, spends = QUERIES[query], SPENDS[spend]
    for sizes in ROWS[query]:
        frames = [table(rows, turn) for turn, rows in enumerate(sizes)]
        before, now = (exact(frame, asked, own) for frame, own in zip(frames, spends, strict=True))
        x, y = (one.astype(float).to_numpy() for one in (before, now))
        truths = {False: y - x, True: 100 * (y / np.where(x == 0, np.nan, x) - 1)}
        seen = {}
        for _ in range(PAIRS):
            made = [f.dp.release(asked, **own) for f, own in zip(frames, spends, strict=True)]
            for percent, truth in truths.items():
                if np.isnan(truth).all():
                    continue
                for level in LEVELS:
                    found = changes(made[1].dp.change(made[0], level, percent=percent))
                    width = made[0].shape[1]
                    for at, column in enumerate(made[0].columns):
                        rows = found.iloc[at::width]
                        key = (column, percent, level)
                        held = seen.setdefault(key, [0.0, 0.0])
                        held[0] += within(rows, truth[0, at]).mean() / PAIRS
                        factor = narrower(column, level)
                        held[1] += within(rows, truth[0, at], factor).mean() / PAIRS
        print(query, spend, sizes, {key: np.round(one, 4) for key, one in seen.items()})
        for (column, percent, level), (held, narrow) in seen.items():
            assert held > level - LEVELS[level], (column, percent, level, sizes)
            if min(sizes) >= 100 and spend in ("laplace", "gaussian"):
                assert narrow < level - LEVELS[level], (column, percent, level)
