"""How much selected quantiles tell of one row, from what is released, and what two faults would do.

Each group is a trial of its own. Half of the trials hold a row more, or one at another place. The
event is that a bin above the median is selected, of which there are few. A bound is false in fewer
than one run in 10**6 (Clopper-Pearson).
"""

import numpy as np
import pandas as pd
import pytest
from support.auditing import FALSE_ALARM, largest_probability, least_probability

import dpframe as dpf
from dpframe.errors import PlanCheckError
from dpframe.operations import select as planning
from dpframe.privacy import selection

TRIALS, BINS, MEDIAN = 90_000, 1024, 1002
LEAST_RATIO = 0.6  # of the claim: the event shows 0.97 of it, less what trials leave open
GAMES = {
    "a row more": ("add_remove", [MEDIAN, MEDIAN], [MEDIAN, MEDIAN, BINS - 1]),
    "a row elsewhere": ("replace", [0, MEDIAN, MEDIAN], [MEDIAN, MEDIAN, BINS - 1]),
}


AMONG = {"bins": {"bins": BINS}, "candidates": {"candidates": np.arange(BINS) + 0.5}}


def above(bins, neighboring, among="bins"):
    """How often a bin above the median is selected, where each group has rows in some bins."""
    rows = len(bins)
    zones = np.repeat(np.arange(TRIALS), rows)
    frame = pd.DataFrame({"zone": zones, "x": np.tile(np.add(bins, 0.5), TRIALS)})
    facts = {"privacy_unit": dpf.EACH_ROW, "neighboring": neighboring}
    dpf.declare(frame, keys={"zone": range(TRIALS)}, bounds={"x": (0, BINS)}, **facts)
    query = dpf.quantile("x", 0.5, by="zone", **AMONG[among])
    released = dpf.release(frame, query, epsilon=1, mechanism="select")
    return int((released["x"] > MEDIAN + 1).sum()), released.dp.certificate.privacy_loss.epsilon


def loss_at_least(game, among="bins"):
    """Bound from below the epsilon that a game shows, beside what was claimed."""
    neighboring, before, after = GAMES[game]
    few, claim = above(before, neighboring, among)
    many, _ = above(after, neighboring, among)
    p = least_probability(many, TRIALS, FALSE_ALARM / 2)
    q = largest_probability(few, TRIALS, FALSE_ALARM / 2)
    return float(np.log(p / q)), claim


def half_the_noise(patch):
    draw = selection.geometric
    patch.setattr(
        selection, "geometric", lambda scale, size, context: draw(scale / 2, size, context)
    )


def replaced_rows_taken_for_removed_ones(patch):
    made = planning.selection_of

    def careless(quantiles, epsilon, reach, _):
        return made(quantiles, epsilon, reach, "add_remove")

    patch.setattr(planning, "selection_of", careless)


@pytest.mark.audit
@pytest.mark.parametrize("among", AMONG)
@pytest.mark.parametrize("game", GAMES)
def test_a_row_is_hidden_as_well_as_claimed_and_no_better(game, among):
    found, claim = loss_at_least(game, among)
    assert LEAST_RATIO * claim < found <= claim


@pytest.mark.audit
@pytest.mark.parametrize(
    ("game", "among", "fault"),
    [
        ("a row more", "bins", half_the_noise),
        ("a row more", "candidates", half_the_noise),
        ("a row elsewhere", "bins", half_the_noise),
    ],
)
def test_faults_are_caught(game, among, fault, monkeypatch):
    fault(monkeypatch)
    found, claim = loss_at_least(game, among)
    assert found > claim


@pytest.mark.audit
def test_a_plan_for_another_relation_is_refused(monkeypatch):
    replaced_rows_taken_for_removed_ones(monkeypatch)
    with pytest.raises(PlanCheckError, match="could cost epsilon = 2"):
        above([0, MEDIAN, MEDIAN], "replace")
