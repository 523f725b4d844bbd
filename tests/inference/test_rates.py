"""Intervals of rates: all that the test does not reject, by a search over a fine grid."""

import numpy as np
import pandas as pd
import pytest
from scipy import special
from support.columns import column_of
from support.raising import raises

import dpframe as dpf
from dpframe.certificates.mechanism_parts import BlockNoisePart
from dpframe.errors import QueryError
from dpframe.inference.intervals import TableNoise, quotient_ends
from dpframe.privacy.noise_sum import NoiseSum
from dpframe.strategies import MECHANISMS

GRID = np.linspace(0, 1, 4001)
SPAN = np.arange(-40, 130, 3)
MET, OTHERS = (part.ravel() for part in np.meshgrid(SPAN, SPAN))


def made_of(mechanism, scale):
    """The noise of two disjoint counts of this scale, as a certificate has it."""
    how = MECHANISMS[mechanism]
    scales = {"0": scale, "1": scale}
    named = mechanism, how.title, how.law.name
    part = BlockNoisePart("noise", *named, scales, (), joined=False, common_blocks=())
    sd = how.law.standard_deviation(scale)
    return part, {"y": {"0": sd, "1": -sd}, "rows": {"0": sd, "1": sd}}


def intervals_of(met, others, mechanism, scale, level=0.95, *, sampling=False):
    part, _ = made_of(mechanism, scale)
    rates = rates_of(met, others, mechanism, scale)
    return quotient_ends(rates, TableNoise(part, (), level), sampling=sampling)


def rates_of(met, others, mechanism, scale):
    """What a certificate says of rates."""
    met, others = np.asarray(met, float), np.asarray(others, float)
    return column_of(
        "rate", {"rows": met + others, "y": met - others}, made_of(mechanism, scale)[1]
    )


def released_rates(met, others, mechanism, scale):
    """The rates that are released: those in the middle say nothing."""
    rates = rates_of(met, others, mechanism, scale)
    return rates.statistic.estimate(rates.totals)[0]


def half_widths(rates, mechanism, scale, level=0.95):
    part, loadings = made_of(mechanism, scale)
    of_rows = loadings["rows"]
    loadings = {"0": (1 - rates) * of_rows["0"], "1": -rates * of_rows["1"]}
    noise = NoiseSum(loadings, part.scales)
    return part.distribution.sum_half_width(noise, level), noise.deviation


@pytest.mark.parametrize("sampling", [False, True])
@pytest.mark.parametrize(
    ("mechanism", "scale"), [("laplace", 1.0), ("laplace", 10.0), ("gaussian", 4.2247)]
)
def test_intervals_are_the_rates_that_are_not_rejected(mechanism, scale, sampling):
    low, high = intervals_of(MET, OTHERS, mechanism, scale, sampling=sampling)
    width, deviation = half_widths(GRID, mechanism, scale)
    rows = (MET + OTHERS)[:, None]
    if sampling:
        both = deviation**2 + np.maximum(rows, 0) * GRID * (1 - GRID)
        share = (deviation**2 / both) ** 2
        width = np.sqrt(both) * (1.959964 * (1 - share) + width / deviation * share)
    kept = np.abs((1 - GRID) * MET[:, None] - GRID * OTHERS[:, None]) <= width + 1e-9
    # where none is kept, the group counts as one of which all rows, or none, are met
    none = np.abs(GRID - (MET > OTHERS)[:, None]) * rows <= width + 1e-9
    nearest = [
        GRID[near][[0, -1]] if some > 0 else [0, 1] for near, some in zip(none, rows, strict=True)
    ]
    step = 1.02 * GRID[1]
    rates = released_rates(MET, OTHERS, mechanism, scale)
    # fewer rows than none, by more than noise, say nothing
    kept |= (rows <= 0) & ~kept[:, :1] & ~kept[:, -1:]
    for at, inside in enumerate(kept):
        ends = GRID[inside][[0, -1]] if inside.any() else nearest[at]
        ends = np.array([min(ends[0], rates[at]), max(ends[1], rates[at])])
        if not sampling or (inside.any() and 0 <= MET[at] <= rows[at, 0]):
            assert abs(low[at] - ends[0]) <= step
            assert abs(high[at] - ends[1]) <= step
        else:  # never narrower
            assert low[at] <= ends[0] + step
            assert high[at] >= ends[1] - step


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.2, 1.0, 1e6])
@pytest.mark.parametrize("sampling", [False, True])
def test_intervals_are_never_missing_and_stay_in_their_range(mechanism, scale, sampling):
    far = np.array([0, 1, -1, 5, 2.0**62, -(2.0**62)])
    met, others = (part.ravel() for part in np.meshgrid(far, far))
    low, high = intervals_of(met, others, mechanism, scale, sampling=sampling)
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    value = np.clip(met / np.maximum(met + others, 1), 0, 1)
    inside = (met >= 0) & (others >= 0) & (met + others > 0)
    assert ((low <= value + 1e-12) & (value - 1e-12 <= high))[inside].all()


@pytest.fixture
def frame():
    rows = np.arange(60)
    made = pd.DataFrame({"zone": np.array(["A", "B"])[rows % 2], "fare": rows % 7})
    made.dp.declare(keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 6)})
    return made


def test_intervals_of_samples_are_wider(frame):
    made = frame.dp.aggregate("zone", n=dpf.count(), r=dpf.rate("fare > 2"), epsilon=1)
    alone, sampled = made.dp.interval(), dpf.interval(made, sampling=True)
    assert (sampled["r_low"] < alone["r_low"]).loc["A":"B"].all()
    with raises(QueryError, "True or False", parameter="sampling", value="yes"):
        made.dp.interval(sampling="yes")


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.2247])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_half_widths_hold_for_whole_numbers(mechanism, scale, rate):
    # the exact law of (1 - r) X - r Y, added up over all pairs of integers
    whole = np.arange(-80, 81)
    mass = np.diff(cumulative(mechanism, scale, np.arange(-80, 82)))
    both = np.outer(mass, mass)
    far = np.abs((1 - rate) * whole[:, None] - rate * whole[None])
    for level in (0.5, 0.9, 0.95, 0.99):
        width = half_widths(np.array([rate]), mechanism, scale, level)[0].item()
        assert both[far <= width + 1e-9].sum() >= level - 1e-9


def cumulative(mechanism, scale, whole):
    """P(Y < k) for the integer noise of a law."""
    if mechanism == "gaussian":
        return special.ndtr((whole - 0.5) / scale)
    q = np.exp(-1 / scale)
    below = q ** (1 - np.minimum(whole, 1)) / (1 + q)
    return np.where(whole <= 0, below * 1.0, 1 - q ** np.maximum(whole, 0) / (1 + q))


def test_an_interval_holds_both_pieces_of_what_is_not_rejected():
    rng = np.random.default_rng(0)
    met, others = rng.integers(-30, 50, (2, 4000))
    met, others = met[met + others > 0], others[met + others > 0]
    low, high = intervals_of(met, others, "laplace", 4.0)
    width, _ = half_widths(GRID, "laplace", 4.0)
    kept = np.abs((1 - GRID) * met[:, None] - GRID * others[:, None]) <= width * 0.999
    ends = np.count_nonzero(np.diff(kept, axis=1), axis=1) + kept[:, 0] + kept[:, -1]
    assert (ends > 2).any()
    some = kept.any(axis=1)
    first, last = kept.argmax(axis=1), len(GRID) - 1 - kept[:, ::-1].argmax(axis=1)
    assert (low <= GRID[first] + GRID[1])[some].all()
    assert (high >= GRID[last] - GRID[1])[some].all()
