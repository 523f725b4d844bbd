"""Histograms of how much units fill: what one unit can do to them, by brute force.

A unit falls in one bin, whatever it has: added or removed, it moves one number by 1; replaced, two.
"""

import itertools
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.neighbors import allowed, farthest, reached
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe import Ledger
from dpframe.declaration.facts import Column, Declaration
from dpframe.engines import units as grouping
from dpframe.engines.pandas import PandasEngine
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Budget, Spend, exact
from dpframe.privacy.neighbors import Caps
from dpframe.queries.searches import candidate_caps, sizes_of

ENGINE = PandasEngine()
KEYS = list("AB")
KINDS = ["rows", "groups", "rows_per_group"]
BASE = [("A", 1, "p"), ("A", 1, "p"), ("B", 1, "p"), ("B", 0, "q"), ("Z", 1, "q")]
# up to six rows: none, in one group or both, in none that is declared, left out by the condition
CELLS = [("A", 1), ("B", 1), ("A", 0), ("Z", 1)]
UNITS = [rows for n in range(7) for rows in itertools.combinations_with_replacement(CELLS, n)]
NEEDS = [(0, "rows"), (0, "units")]


def planned(kind, mechanism, neighboring, *, budget=None, **spend):
    declaration = Declaration(
        {"g": Column(keys=pd.Index(KEYS, name="g"))},
        privacy_unit=("u",),
        caps=Caps(rows=2),
        neighboring=neighboring,
        ledger=None if budget is None else Ledger(budget=budget),
    )
    query = sizes_of(dpf.count("g", where="x > 0"), kind, candidate_caps(kind, 4))
    spent = Spend.of(**(spend or {"epsilon": 0.7, "delta": 1e-5}))
    return plan_release(declaration, {None: query}, spent, mechanism, look=budget is not None)


def totals(plan, rows):
    """All totals of a frame with one more unit, which has some rows."""
    everything = [*BASE, *((*row, "new") for row in rows)]
    frame = pd.DataFrame(everything, columns=["g", "x", "u"])
    (found,) = ENGINE.totals(frame, [plan.tables[None].task(NEEDS)], SYSTEM)
    return dict(zip(NEEDS, found, strict=True))


def moved(plan):
    """How far neighbors are apart at most, as the plan counts it."""
    design = plan.of(plan.tables[None]).design
    ones = [design.encode(totals(plan, rows)) for rows in UNITS]
    replaced = plan.tables[None].workload.neighboring == "replace"
    others = ones if replaced else [design.encode(totals(plan, ()))]
    return farthest(plan, ones, others)


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_one_unit_moves_the_histogram_as_far_as_claimed(mechanism, neighboring, kind):
    plan = planned(kind, mechanism, neighboring)
    assert reached(plan, moved(plan))
    (scale,) = plan.of(plan.tables[None]).scales
    claimed = Fraction(scale) ** {"laplace": 1, "gaussian": 2}[mechanism] * allowed(plan)
    bins = {"add_remove": 1, "replace": 2}[neighboring]
    assert 0 <= claimed / bins - 1 < Fraction(1, 10**9)


@pytest.mark.parametrize(
    "neighboring", [pytest.param("add_remove", marks=pytest.mark.full), "replace"]
)
def test_one_unit_moves_a_look_as_far_as_its_pure_noise_allows(neighboring):
    plan = planned("rows", "auto", neighboring, budget=Budget(3, 1e-6), share=0.1)
    assert reached(plan, moved(plan))
    assert 0 < plan.loss.epsilon < 3 * exact(0.1)
    assert not plan.loss.mu_squared


def twice(units, kept):
    """Mark two rows of a unit, where it has two: the fault that is planted."""
    rows = pd.Series(units.numbers).where(kept)
    return kept & (rows.groupby(units.numbers).cumcount() < 2).to_numpy()


def test_a_unit_that_is_counted_twice_is_found():
    plan = planned("rows", "auto", "add_remove", budget=Budget(3, 1e-6), share=0.1)
    with mock.patch.object(grouping, "_first", twice), pytest.raises(AssertionError):
        moved(plan)


@pytest.mark.parametrize("kind", KINDS)
def test_no_cap_is_applied_while_units_are_counted(kind):
    rows = [("A", 1)] * 9 + [("B", 1)] * 2
    plan = planned(kind, "laplace", "add_remove")
    added = totals(plan, rows)[0, "rows"] - totals(plan, ())[0, "rows"]
    expected = {"rows": 4, "groups": 2, "rows_per_group": 4}[kind]  # the last bin is open
    index = plan.tables[None].cells.index
    assert index[np.flatnonzero(added)].tolist() == [expected]
