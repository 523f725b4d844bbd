"""Noise arrives: replays hand out what was drawn before, and cannot see how it was drawn.

Here it is real. A false alarm is rarer than one in 10**6, for each of the tests: numbers of which
the variance is known are within 4.9 of their standard deviations, as normal numbers are.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.plans import parts_of

import dpframe as dpf
from dpframe.operations import discover
from dpframe.operations.tables import PlannedTables
from dpframe.privacy import selection
from dpframe.privacy.law import Law
from dpframe.testing.recorder import Run

CELLS = 20_000
MOST = 4.9  # standard deviations of a normal number, both sides: 1e-6
KURTOSIS = 6  # of Laplace noise; that of normal noise and of noise in a box is less


def frame_of(keys):
    frame = pd.DataFrame({"k": np.asarray(keys, np.int64), "x": 0.25, "y": 0.25})
    frame.dp.declare(
        keys={"k": np.arange(CELLS)}, bounds={"x": (0, 1), "y": (0, 1)}, privacy_unit=dpf.EACH_ROW
    )
    return frame


def variances(mechanism, keys):
    """Release sums, and return the variances of all blocks of noise, where 1 is claimed."""
    run = Run()
    with run:
        spend = {"mu": 1} if mechanism == "gaussian" else {"epsilon": 1}
        frame_of(keys).dp.release(dpf.sum(["x", "y"], "k"), mechanism=mechanism, **spend)
    (draw,) = run.measured
    (measured,) = parts_of(draw._operation.plan)
    triples = zip(draw._exact[0], draw._published[0], measured.deviations, strict=True)
    return [(((noisy - exact) / deviation) ** 2).mean() for exact, noisy, deviation in triples]


def fits(variance):
    return abs(variance - 1) < MOST * np.sqrt((KURTOSIS - 1) / CELLS)


MECHANISMS = ["gaussian", "laplace", "box"]
NOBODY, EVERYONE = [], np.arange(CELLS)


@pytest.mark.parametrize("keys", [NOBODY, EVERYONE], ids=["nobody", "everyone"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_of_tables_is_as_wide_as_claimed(mechanism, keys):
    found = variances(mechanism, keys)
    assert len(found) >= 2
    assert all(map(fits, found))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_that_is_too_narrow_is_seen(mechanism, monkeypatch):
    draw = Law.draw

    def narrow(law, scales, *rest):
        return draw(law, np.multiply(scales, 0.9), *rest)

    monkeypatch.setattr(Law, "draw", narrow)
    assert not any(map(fits, variances(mechanism, EVERYONE)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_that_an_empty_frame_does_not_get_is_seen(mechanism, monkeypatch):
    draw = PlannedTables.draw

    def spared(operation, exact, context):
        empty = not any(block.any() for blocks in exact for block in blocks)
        return exact if empty else draw(operation, exact, context)

    monkeypatch.setattr(PlannedTables, "draw", spared)
    assert not any(map(fits, variances(mechanism, NOBODY)))


# Labels ----------------------------------------------------------------------------------------

LABELS = 3_000
PARTS = 125  # of a unit, in which Gaussian noise is drawn


def published(mechanism):
    """Find labels of which the numbers of units are near the threshold, by how likely they are.

    Returns
    -------
    float
        How many more are found than is likely, in standard deviations.
    """
    spend = {"privacy_unit": dpf.EACH_ROW, "delta": 1e-6, "epsilon": 1}
    asked = dpf.discover("zone")
    shown = pd.DataFrame({"zone": ["A"]}).dp.plan(asked, mechanism=mechanism, **spend).table
    least, scale = shown["threshold"].iloc[0], shown["sigma"].iloc[0]
    units = round(least) + np.resize(np.arange(-6, 7), LABELS)
    zones = np.repeat([f"{at}" for at in range(LABELS)], units)
    found = dpf.release(pd.DataFrame({"zone": zones}), asked, mechanism=mechanism, **spend)
    wanted = least - units  # of the noise, or more
    if mechanism == "laplace":
        chances = stats.dlaplace(1 / scale).sf(wanted - 1)
    else:
        chances = stats.norm(scale=scale).sf(wanted - 0.5 / PARTS)
    return (len(found) - chances.sum()) / np.sqrt((chances * (1 - chances)).sum())


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_labels_are_found_as_often_as_their_noise_says(mechanism):
    assert abs(published(mechanism)) < MOST


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_threshold_that_is_one_too_low_is_seen(mechanism, monkeypatch):
    publish = discover._publish_labels

    def lower(found, threshold, context):
        object.__setattr__(threshold, "least", threshold.least - threshold.weights[0])
        return publish(found, threshold, context)

    monkeypatch.setattr(discover, "_publish_labels", lower)
    assert published(mechanism) > MOST


# Selection -------------------------------------------------------------------------------------


def lower_halves():
    """Select medians of two rows, both in the lower of two bins.

    The utilities of the bins are 0 and -2: the upper one is selected with `exp(-2 / s) / 2`.

    Returns
    -------
    float
        How many more upper bins are selected than is likely, in standard deviations.
    """
    run = Run()
    with run:
        found = frame_of(np.repeat(EVERYONE, 2)).dp.quantile(
            "x", 0.5, "k", bins=2, mechanism="select", epsilon=1
        )
    chance = np.exp(-2 / run.measured[0].scales[0]) / 2
    upper = (found["x"] > 0.5).sum()
    return (upper - CELLS * chance) / np.sqrt(CELLS * chance * (1 - chance))


def test_bins_are_selected_as_often_as_their_noise_says():
    assert abs(lower_halves()) < MOST


def test_noise_that_is_too_narrow_to_select_with_is_seen(monkeypatch):
    geometric = selection.geometric
    monkeypatch.setattr(
        selection, "geometric", lambda scale, size, context: geometric(0.75 * scale, size, context)
    )
    assert lower_halves() < -MOST
