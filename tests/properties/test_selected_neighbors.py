"""From frames to the law of what is selected: neighbors are no further apart than epsilon.

All units within the caps, beside a few others, go through the plan and the engine that a release
uses; the law of what it would publish is then summed up. No unit is above its caps, so that none is
sampled.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import pandas as pd
import pytest
from support.randomness import SYSTEM
from support.selecting import Ratios

import dpframe as dpf
from dpframe.engines.pandas import PandasEngine
from dpframe.operations.select import plan_quantiles
from dpframe.privacy.amounts import Spend

ZONES, BINS, EPSILON = ("A", "B"), 3, 1.2
PLACES = list(itertools.product(ZONES, range(BINS)))
RESTS = [[], [("A", 1), ("B", 1)], [("A", 0), ("A", 2), ("B", 2), ("B", 2)]]
CASES = {
    "rows": {"max_rows": 2},
    "one group": {"max_groups": 1, "max_rows_per_group": 2},
    "one row in each group": {"max_rows_per_group": 1},
}


def units(caps):
    """All ways in which one unit can have rows within caps."""
    for size in range(3):
        for rows in itertools.combinations_with_replacement(PLACES, size):
            zones = [zone for zone, _ in rows]
            per_group = max(map(zones.count, ZONES))
            if per_group <= caps.get("max_rows_per_group", 2):
                if len({*zones}) <= caps.get("max_groups", 2):
                    yield rows


def frame_of(rest, unit, facts):
    rows = [("rest", k, *place) for k, place in enumerate(rest)]
    rows += [("unit", 0, *place) for place in unit]
    names = ["who", "k", "zone", "x"]
    frame = pd.DataFrame(rows, columns=names).astype({"k": int, "x": float})
    frame["who"] = frame["who"] + frame.pop("k").astype(str)
    shared = {"keys": {"zone": list(ZONES)}, "bounds": {"x": (0, BINS - 1)}}
    dpf.declare(frame, **shared, privacy_unit="who", **facts)
    return frame


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("caps", CASES)
@pytest.mark.parametrize(
    ("quantiles", "among"),
    [
        ([0.5], {"bins": BINS}),
        pytest.param([0.3], {"bins": BINS}, marks=pytest.mark.full),
        ([0.25, 0.5], {"bins": BINS}),
        ([0.3], {"candidates": [0, 0.8, 1.9]}),
    ],
)
def test_what_is_selected_of_neighbors_is_as_alike_as_claimed(quantiles, among, caps, neighboring):
    facts = {**CASES[caps], "neighboring": neighboring}
    query = dpf.quantile("x", quantiles, by="zone", **among)
    frame = frame_of([], [], facts)
    plan = plan_quantiles(frame, frame.dp.declaration, query, Spend.of(epsilon=EPSILON))
    steps, scales = plan.selection.steps, plan.selection.scales
    whole = 2 * math.lcm(*(step.most_moved for step in steps))
    w = Fraction(math.exp(-2 * steps[0].most_moved / scales[0] / whole))
    ratios = Ratios(steps, whole, w, (1,) * BINS)

    @cache
    def tables(rest, unit):
        (totals,) = PandasEngine().totals(frame_of(RESTS[rest], unit, facts), [plan.task], SYSTEM)
        return [tuple(row) for row in totals[0].reshape(len(ZONES), BINS).tolist()]

    own = list(units(CASES[caps]))
    others = own if neighboring == "replace" else [()]
    farthest = max(
        math.prod(
            ratios.between(one, other)
            for one, other in zip(tables(rest, mine), tables(rest, theirs), strict=True)
        )
        for rest in range(len(RESTS))
        for mine in own
        for theirs in others
        for mine, theirs in ((mine, theirs), (theirs, mine))
    )
    assert 0.3 * EPSILON < math.log(farthest) <= EPSILON * (1 + 1e-12)
