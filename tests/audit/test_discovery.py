"""How often groups are published that one unit alone is in, and what three faults would do.

Each group is a trial of its own: a frame has as many as it takes. A bound is false in fewer than
one run in 10**6 (Clopper-Pearson).
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.auditing import FALSE_ALARM, largest_probability, least_probability

import dpframe as dpf
from dpframe.checker.witness import Witness
from dpframe.engines import labels
from dpframe.operations import discover as discovering
from dpframe.operations import pipeline
from dpframe.privacy import threshold
from dpframe.privacy.neighbors import Caps

TRIALS = 1_200_000
DELTA = 0.02
GAMES = {
    f"{mechanism}, {most} labels, {neighboring}": (mechanism, most, neighboring)
    for mechanism in ("laplace", "gaussian")
    for most in (1, 3)
    for neighboring in ("add_remove", "replace")
}
SETS = [name for name in GAMES if "add_remove" in name]


def alone(most, neighboring):
    """Units with two rows of each of their own labels."""
    unit = np.repeat(np.arange(TRIALS // most), 2 * most)
    label = np.repeat(np.arange(TRIALS // most * most), 2)
    frame = pd.DataFrame({"u": unit, "label": label})
    facts = {"max_groups": most, "max_rows": 2 * most, "neighboring": neighboring}
    frame.dp.declare(privacy_unit="u", **facts)
    return frame


def played(game, **options):
    """The number of units of which a label is published, that of all, and what was claimed."""
    mechanism, most, neighboring = game
    frame = alone(most, neighboring)
    spend = {"epsilon": 1, "delta": 2 * DELTA, "discovery": DELTA, "mechanism": mechanism}
    found = frame.dp.discover("label", dtype="int64", **spend, **options)
    units = len(set((found.index // most).tolist()))
    claim = found.dp.certificate.privacy_loss.extra_delta
    return units, TRIALS // most, claim


@pytest.mark.audit
@pytest.mark.parametrize("name", GAMES)
def test_labels_of_one_unit_are_published_as_rarely_as_claimed(name):
    units, trials, claim = played(GAMES[name])
    assert claim <= DELTA
    assert least_probability(units, trials, FALSE_ALARM / 2) <= claim
    # the claim is exact, to a fifth at most
    assert largest_probability(units, trials, FALSE_ALARM / 2) >= claim
    assert largest_probability(units, trials, FALSE_ALARM / 2) <= 1.2 * claim
    assert claim * trials > 200


@pytest.mark.audit
@pytest.mark.parametrize("name", SETS)
def test_labels_of_one_unit_are_as_rarely_in_sets(name):
    units, trials, claim = played(GAMES[name], counts=False)
    assert claim <= DELTA
    assert least_probability(units, trials, FALSE_ALARM / 2) <= claim
    # of the number of labels that is the worst for the threshold; rounds overlap a little
    assert largest_probability(units, trials, FALSE_ALARM / 2) >= 0.7 * claim


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_thresholds_for_one_label_of_a_unit_are_caught(mechanism, monkeypatch):
    unchecked(monkeypatch)
    exact = threshold.extra_delta
    monkeypatch.setattr(
        threshold, "extra_delta", lambda law, s, t, most, w: exact(law, s, t, 1, w[:1])
    )
    units, trials, claim = played((mechanism, 3, "add_remove"), counts=False)
    assert least_probability(units, trials, FALSE_ALARM / 2) > claim


def one_lower(patch):
    published = discovering._publish_labels

    def lower(found, own, context):
        lowered = replace(own, least=own.least - own.weights[0])
        return published(found, lowered, context)

    patch.setattr(discovering, "_publish_labels", lower)


def unchecked(patch):
    """Let what the check of a charge refuses through: draws alone are to show it."""
    patch.setattr(pipeline, "check_charge", lambda operation, loss: Witness(()))


def mass_at_the_threshold_dropped(patch):
    unchecked(patch)
    exact = threshold.extra_delta

    def dropped(law, scale, least, most, weights):
        least += weights[0]  # P(Y <= T - 1), as if T were not published
        return exact(law, scale, least, most, weights)

    patch.setattr(threshold, "extra_delta", dropped)


def rows_counted(patch):
    class Counting(labels.Units):
        def choose(self, cells, cell_count, caps, context):
            return super().choose(cells, cell_count, Caps(None, caps.groups, None), context)

    patch.setattr(labels, "Units", Counting)


def labels_without_cap(patch):
    class Counting(labels.Units):
        def choose(self, cells, cell_count, caps, context):
            return super().choose(cells, cell_count, Caps(None, None, 1), context)

    patch.setattr(labels, "Units", Counting)


def a_label_alone(patch):
    unchecked(patch)
    exact = threshold.extra_delta
    patch.setattr(threshold, "extra_delta", lambda law, s, t, most, w: exact(law, s, t, 1, w))


FAULTS = [one_lower, mass_at_the_threshold_dropped, rows_counted]


@pytest.mark.audit
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("name", GAMES)
def test_faults_are_caught(name, fault, monkeypatch):
    fault(monkeypatch)
    units, trials, claim = played(GAMES[name])
    assert least_probability(units, trials, FALSE_ALARM / 2) > claim


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_labels_of_a_unit_that_are_charged_as_one_are_caught(mechanism, monkeypatch):
    a_label_alone(monkeypatch)
    units, trials, claim = played((mechanism, 3, "add_remove"))
    assert least_probability(units, trials, FALSE_ALARM / 2) > claim


@pytest.mark.audit
def test_a_unit_with_more_labels_than_its_cap_is_caught_without_it(monkeypatch):
    def found():
        frame = alone(3, "add_remove")
        asked = {"epsilon": 1, "delta": 2 * DELTA, "discovery": DELTA, "mechanism": "laplace"}
        return frame.dp.discover("label", dtype="int64", max_groups=1, **asked)

    trials = TRIALS // 3
    published, claim = found(), DELTA
    units = len(set((published.index // 3).tolist()))
    assert least_probability(units, trials, FALSE_ALARM) <= claim
    labels_without_cap(monkeypatch)
    units = len(set((found().index // 3).tolist()))
    assert least_probability(units, trials, FALSE_ALARM) > claim


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_groups_are_found_as_often_as_the_preview_says(mechanism):
    facts = {"epsilon": 1, "delta": 1e-3, "mechanism": mechanism, "privacy_unit": dpf.EACH_ROW}
    small = pd.DataFrame({"label": [0]})
    shown = small.dp.plan(dpf.discover("label", dtype="int64"), **facts).table.iloc[0]
    for percent in (5, 50, 95):
        size = int(shown[f"found_{percent}"])
        groups = 20_000
        frame = pd.DataFrame({"label": np.repeat(np.arange(groups), size)})
        found = len(frame.dp.discover("label", dtype="int64", **facts))
        law = small.dp.discover("label", dtype="int64", **facts).dp.certificate.mechanism
        scale, least = law.scales["0"], law.least
        chance = float(law.distribution.at_least(scale, least - size))
        # 6 standard deviations: a false alarm in 10**8 runs
        assert abs(found - groups * chance) < 6 * math.sqrt(groups * chance * (1 - chance)) + 1
        assert chance >= percent / 100
