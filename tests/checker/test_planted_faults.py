"""The check refuses plans of a planner that is broken on purpose, and none of the same unbroken."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.designing import keep_no_plans
from support.planted_faults import FOUND_BEFORE

import dpframe as dpf
from dpframe.errors import PlanCheckError
from dpframe.plan import designs, tables
from dpframe.privacy import sensitivity
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.sensitivity import movement
from dpframe.strategies.base import Workload
from dpframe.strategies.linear import Block, LinearDesign
from dpframe.strategies.margins import ContrastLayers

LAPLACE = {"epsilon": 1, "mechanism": "laplace"}
GAUSSIAN = {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"}
FLAGS = [f"b{k}" for k in range(4)]
ROWS_ALONE = {"max_groups": None, "max_rows_per_group": None}


def declared(**facts):
    columns = {"u": 1, "w": 1, "g": "a", "h": 0, "x": 1.0, "y": 2.0, "wt": 1.0}
    frame = pd.DataFrame({**columns, **dict.fromkeys(FLAGS, True)}, index=[0])
    known = {
        "keys": {"g": ["a", "b", "c"], "h": [0, 1]},
        "bounds": {"x": (-5, 5), "y": (0, 4), "wt": (0, 3)},
        "privacy_unit": "u",
        "max_rows": 4,
        "max_groups": 3,
        "max_rows_per_group": 2,
    }
    schema = pa.DataFrameSchema({flag: pa.Column(bool) for flag in FLAGS})
    frame.dp.declare(schema, **{**known, **facts})
    return frame


def one_row_less(patch):
    over_units = sensitivity.over_units

    def fewer(distance, norm, reach, neighboring):
        less = {"rest": reach.rest - 1} if reach.rest else {"full": reach.full - 1}
        return over_units(distance, norm, replace(reach, **less), neighboring)

    patch.setattr(sensitivity, "over_units", fewer)


def scales_three_percent_too_small(patch):
    scale_design = designs.scale_design

    def scaled(*given, **how):
        return tuple(0.97 * scale for scale in scale_design(*given, **how))

    patch.setattr(designs, "scale_design", scaled)


def a_source_is_dropped(patch):
    footprints = LinearDesign.footprints.func

    def others(design):
        found = footprints(design)
        return found[1:] if len(found) > 1 else found

    patch.setattr(LinearDesign, "footprints", property(others))


def groups_are_capped_at_one(patch):
    reach_of = tables.reach_of

    def capped(caps, cells, *, always=False):
        return reach_of(replace(caps, groups=1), cells, always=always)

    patch.setattr(tables, "reach_of", capped)


def units_are_added_in_place_of_replaced(patch):
    over_units = sensitivity.over_units
    patch.setattr(
        sensitivity,
        "over_units",
        lambda d, norm, reach, _: over_units(d, norm, reach, "add_remove"),
    )


def all_tables_have_the_design_of_the_first(patch):
    fitting, known = designs.fitting, {}

    def first(mechanism, work, **how):
        return known.setdefault(mechanism, fitting(mechanism, work, **how))

    patch.setattr(designs, "fitting", first)


def all_conditions_exclude_each_other(patch):
    patch.setattr(tables, "exclusive_sets", lambda found: (tuple(range(1, len(found))),))


def weights_are_three_quarters(patch):
    def lighter(**facts):
        return Workload(**{**facts, "weight": max(1, facts["weight"] * 3 // 4)})

    patch.setattr(tables, "Workload", lighter)


def missing_values_are_always_there(patch):
    source = tables._source
    patch.setattr(tables, "_source", lambda key: replace(source(key), optional=False))


def units_have_one_row(patch):
    reach_of = tables.reach_of

    def of_one_row(caps, cells, *, always=False):
        return reach_of(Caps(1, 1, 1), cells, always=always)

    patch.setattr(tables, "reach_of", of_one_row)


def values_are_encoded_twice(patch):
    of = Block.of

    def doubled(block, totals):
        return of(block, totals) * np.int64(2 if block.value else 1)

    patch.setattr(Block, "of", doubled)


def values_are_clipped_too_far(patch):
    terms = tables._terms

    def wider(sources):
        return {
            need: replace(term, grid=replace(term.grid, upper=2 * term.grid.upper))
            if term.kind == "sum"
            else term
            for need, term in terms(sources).items()
        }

    patch.setattr(tables, "_terms", wider)


def boxes_are_drawn_apart(patch):
    grouped = LinearDesign.groups.func

    def moved(design, scales, law):
        work = design.workload
        groups = grouped(design) if law.inside == "max" else None
        how = law.norm, work.reach, work.neighboring
        return movement(design.footprints, scales, *how, groups=groups, joined=design.joined)

    patch.setattr(LinearDesign, "movement", moved)
    apart = property(lambda design: tuple((k,) for k in range(len(design.blocks))))
    patch.setattr(LinearDesign, "groups", apart)


def profiles_three_percent_too_small(patch):
    profile = ContrastLayers.profile.func
    patch.setattr(ContrastLayers, "profile", property(lambda layers: 0.97 * profile(layers)))


SUMS = dpf.aggregate("g", a=dpf.sum("x"), b=dpf.sum("y"))
OVERLAPPING = dpf.aggregate(
    "g", a=dpf.count(where="x > 0"), b=dpf.count(where="x > 2"), c=dpf.count(where="y > 1")
)
THREE = dpf.aggregate("g", a=dpf.sum("x"), b=dpf.sum("y"), c=dpf.count(where="x > 0"))
ROWS = {"privacy_unit": dpf.EACH_ROW, "max_rows": None, **ROWS_ALONE}
FAULTS = [
    (one_row_less, {"max_rows": 3}, dpf.count("g"), LAPLACE),
    (scales_three_percent_too_small, {}, dpf.mean("x", "g"), GAUSSIAN),
    (a_source_is_dropped, {}, SUMS, LAPLACE),
    (groups_are_capped_at_one, {}, dpf.count("g"), LAPLACE),
    (units_are_added_in_place_of_replaced, {"neighboring": "replace"}, dpf.sum("x", "g"), LAPLACE),
    (
        all_tables_have_the_design_of_the_first,
        {"bounds": {"x": (-5, 5), "y": (0, 2.2)}},
        {"a": dpf.sum("y", "h"), "b": dpf.sum("x", "g")},
        LAPLACE,
    ),
    (all_conditions_exclude_each_other, {}, OVERLAPPING, LAPLACE),
    (weights_are_three_quarters, {}, dpf.count("g", weights="wt"), LAPLACE),
    (
        missing_values_are_always_there,
        {**ROWS, "bounds": {"x": (4, 5)}, "neighboring": "replace"},
        dpf.sum("x"),
        LAPLACE,
    ),
    (units_have_one_row, {"privacy_unit": ["u", "w"]}, dpf.sum("y", "g"), GAUSSIAN),
    (values_are_encoded_twice, {}, dpf.mean("x", "g"), GAUSSIAN),
    (values_are_clipped_too_far, {}, dpf.sum("x"), LAPLACE),
    (boxes_are_drawn_apart, {}, THREE, {"epsilon": 1, "mechanism": "box"}),
    (
        profiles_three_percent_too_small,
        ROWS_ALONE,
        dpf.margins(["g", "h"], 2, n=dpf.count()),
        GAUSSIAN,
    ),
]
BY_SIGN = dpf.margins(["g", "h"], 1, up=dpf.count(where="x > 0"), down=dpf.count(where="x <= 0"))
OF_TWO_SIZES = {"a": dpf.count(), "b": dpf.count("g")}
KNOWN = [
    (FOUND_BEFORE[0].plant, ROWS_ALONE, BY_SIGN, {"epsilon": 0.01}),
    (FOUND_BEFORE[1].plant, ROWS_ALONE, OF_TWO_SIZES, {"epsilon": 3, "mechanism": "staircase"}),
]


@pytest.mark.parametrize("case", [*FAULTS, *KNOWN], ids=lambda case: case[0].__name__)
def test_a_planted_fault_is_refused_and_the_plan_without_it_is_not(case):
    plant, facts, queries, spend = case
    frame = declared(**facts)
    with pytest.MonkeyPatch.context() as patch:
        keep_no_plans(patch)
        frame.dp.plan(queries, **spend)
        plant(patch)
        keep_no_plans(patch)
        with pytest.raises(PlanCheckError, match="report it") as refused:
            frame.dp.plan(queries, **spend)
    assert "Nothing was charged or released" in str(refused.value)


def test_nothing_is_charged_where_a_plan_is_refused():
    frame = declared(budget=dpf.Budget(epsilon=3))
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        keep_no_plans(patch)
        scales_three_percent_too_small(patch)
        with pytest.raises(PlanCheckError, match=r"could cost epsilon = 1\.03093, charged are 1\."):
            frame.dp.count("g", epsilon=1)
    assert not frame.dp.ledger.entries
