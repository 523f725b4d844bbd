"""What is lost where rows without a value count nowhere, bounded by experiment, and a fault."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.auditing import LEAST_RATIO, lower_bounds
from support.designing import keep_no_plans
from support.plans import noises_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.operations.tables import plan_tables
from dpframe.plan import columns
from dpframe.privacy.amounts import Spend

pytestmark = pytest.mark.audit

DRAWS = 400_000
EPSILON = 2.0
OUTPUTS = {"n": dpf.count(), "x": dpf.sum("x"), "mean": dpf.mean("x"), "y": dpf.sum("y")}
QUERIES = {
    "laplace": dpf.aggregate(**{name: OUTPUTS[name] for name in ("n", "x", "mean")}),
    "box": dpf.aggregate(**OUTPUTS),
}
WHOLE, LACKING = {"x": 20.0, "y": 1.0}, {"x": np.nan, "y": 1.0}
NEIGHBORS = {
    "a whole row": ("add_remove", WHOLE, None),
    "a row without a value": ("add_remove", LACKING, None),
    "one for the other": ("replace", WHOLE, LACKING),
}


def measured(rows, query, mechanism, neighboring):
    """What many releases would publish: the noisy totals that all outputs are read off."""
    frame = pd.DataFrame(rows)
    frame.dp.declare(
        bounds={"x": (10, 20), "y": (0, 1)},
        missing={"x": "drop"},
        privacy_unit=dpf.EACH_ROW,
        neighboring=neighboring,
    )
    made = plan_tables(frame, frame.dp.declaration, query, Spend.of(epsilon=EPSILON), mechanism)
    (exact,) = made.measure(frame, SYSTEM)
    noise = noises_of(made.plan)[0].draw([DRAWS] * len(exact), SYSTEM)
    return np.stack([block + own for block, own in zip(exact, noise, strict=True)], axis=1)


def bound(name, mechanism):
    neighboring, row, instead = NEIGHBORS[name]
    others = [{"x": 12.0, "y": 0.0}, {"x": np.nan, "y": 0.0}]
    frames = [*others, row], others + ([] if instead is None else [instead])
    samples = [measured(rows, QUERIES[mechanism], mechanism, neighboring) for rows in frames]
    return lower_bounds(*(sample.astype(np.float64) for sample in samples), 0.0).epsilon


@pytest.mark.parametrize("mechanism", QUERIES)
@pytest.mark.parametrize("name", NEIGHBORS)
def test_no_more_is_lost_than_claimed(name, mechanism):
    found = bound(name, mechanism)  # above the loss in one run of 1e6
    assert found <= EPSILON
    if name == "a whole row":
        assert found >= LEAST_RATIO * EPSILON
    elif name == "a row without a value":
        assert found == 0


@pytest.mark.parametrize("mechanism", QUERIES)
def test_rows_that_count_with_a_value_out_of_bounds_are_caught(mechanism, monkeypatch):
    grid_of = columns._grid

    def with_zero(*given):
        return replace(grid_of(*given), drop=False, fill=0)

    monkeypatch.setattr(columns, "_grid", with_zero)
    keep_no_plans(monkeypatch)
    assert bound("a row without a value", mechanism) > EPSILON
