"""Intervals of counts that were published for their size: exact coverage, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from support.histograms import tails
from support.raising import raises

import dpframe as dpf
from dpframe.certificates.mechanism_parts import ThresholdPart
from dpframe.errors import QueryError
from dpframe.inference.selection import OwnNoise, chosen_ends
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

CASES = [
    (LAPLACE, 1.0, 15),
    (LAPLACE, 0.2, 3),
    (LAPLACE, 10.0, 156),
    (LAPLACE, 100.0, 1500),
    (GAUSSIAN, 4.22, 23),
    (GAUSSIAN, 13.4, 75),
    (GAUSSIAN, 0.5, 2),
]


def law_of_published(law, scale, least, units):
    """Counts that can be published, and their probabilities given that they are."""
    top = max(least, units) + math.ceil(scale * (34 if law.norm == 1 else 8)) + 2
    at = tails(law, scale, least - units, top - units)
    return np.arange(least, top), (at[:-1] - at[1:]) / at[0]


@pytest.mark.full
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_intervals_cover_as_often_as_they_say_given_that_a_count_is_published(case, level):
    law, scale, least = case
    far = math.ceil(3 * scale)
    sizes = {1, 2, least // 2, least - 1, least, least + 1, least + far, least + 9 * far}
    for units in sorted(sizes - {0}):
        noisy, chance = law_of_published(*case, units)
        low, high = chosen_ends(noisy, OwnNoise(law, scale, threshold=least), level)
        covered = chance[(low <= units) & (units <= high)].sum()
        assert covered >= level - 1e-9
        if units > least + far:  # whole numbers cannot be cut to any level
            assert covered <= level + 2 * chance[abs(noisy - units) >= high[-1] - noisy[-1]].max()
        assert (low >= 1).all() and (low <= noisy).all() and (noisy <= high).all()
        assert (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all()


@pytest.mark.parametrize("units", [1, 20, 21, 22, 40])
def test_intervals_hold_where_a_threshold_lies_between_whole_numbers(units):
    parts, scale, least = 25, 4.22, 532  # 21.28 units
    part = ThresholdPart(
        "threshold", "gaussian", "", "gaussian", {"0": scale}, least / parts, parts, 1, (), 1
    )
    noisy = np.arange(least, (units + 40) * parts)
    first, last = least - units * parts, noisy[-1] + 1 - units * parts
    at = tails(GAUSSIAN, scale * parts, first, last)
    chance = (at[:-1] - at[1:]) / at[0]
    low, high = chosen_ends(
        np.rint(noisy / parts), OwnNoise(GAUSSIAN, scale, threshold=part.least), 0.95
    )
    assert chance[(low <= units) & (units <= high)].sum() >= 0.95


def test_intervals_without_selection_would_cover_too_rarely():
    noisy, chance = law_of_published(LAPLACE, 1.0, 15, 10)
    width = LAPLACE.half_width(1.0, 0.95)
    assert chance[abs(noisy - 10) <= width].sum() < 0.05


@pytest.fixture(scope="module")
def found():
    frame = pd.DataFrame({"zone": ["A"] * 500 + ["B"] * 300})
    return frame.dp.discover("zone", epsilon=1, delta=1e-6, privacy_unit=dpf.EACH_ROW)


def test_a_frame_of_groups_found_has_them(found):
    bars = found.dp.interval()
    assert bars.columns.tolist() == ["units_low", "units_high"]
    pd.testing.assert_frame_equal(dpf.interval(found), bars)
    assert ((bars["units_low"] < found["units"]) & (found["units"] < bars["units_high"])).all()
    wider = found.dp.interval(simultaneous=True)
    assert (wider["units_low"] <= bars["units_low"]).all()


@pytest.mark.parametrize(
    "use", [dpf.denoise, lambda found: dpf.combine(found, "total")], ids=["denoised", "combine"]
)
def test_what_takes_counts_for_unbiased_is_refused(found, use):
    with raises(QueryError, "reached 15"):
        use(found)
