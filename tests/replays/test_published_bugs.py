"""Bugs that were published of libraries of this kind, built in here: each is caught by a rule.

What is planted is what went wrong, in the place where the real code could go wrong in that way.
"""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support import variants
from support.replay_faults import CAPPED, Fault, asking, pair, row

from dpframe.checker.measured import BlockNoise
from dpframe.engines import blocks, units
from dpframe.operations import planning
from dpframe.privacy import selection, threshold
from dpframe.queries import of_columns


def clipped_and_thrown_away(patch):
    def snapped(numbers, grid):
        scaled = blocks._round_to_grid(numbers, grid)
        np.clip(scaled, grid.lower, grid.upper)
        return np.nan_to_num(scaled).astype(np.int64), np.isnan(scaled)

    patch.setattr(blocks, "_snap_to_grid", snapped)


def keys_of_the_data(patch):
    plan = planning.plan_tables

    def planned(frame, declaration, query, *given, **more):
        query = of_columns.count("zone", keys=sorted(frame["zone"].unique()))
        return plan(frame, declaration, query, *given, **more)

    patch.setattr(planning, "plan_tables", planned)


def means_by_true_numbers_of_rows(patch):
    draw = BlockNoise.draw

    def spared(*given):
        *noise, rows = draw(*given)
        return [*noise, np.zeros_like(rows)]

    patch.setattr(BlockNoise, "draw", spared)


def totals_lost_with_one_value(patch):
    snap = blocks._snap_to_grid

    def snapped(numbers, grid):
        found, missing = snap(numbers, grid)
        return found * (not missing.any()), missing

    patch.setattr(blocks, "_snap_to_grid", snapped)


def selection_as_bounded_range(patch):
    above = selection.float_above
    patch.setattr(selection, "float_above", lambda exact: above(exact / 2))


def codes_by_appearance(patch):
    kept_rows = units.kept_rows

    def kept(people, cells, caps, *, context):
        codes = cells.numbers.copy()
        codes[cells.present] = pd.factorize(codes[cells.present])[0]
        return kept_rows(people, cells._replace(numbers=codes), caps, context=context)

    patch.setattr(units, "kept_rows", kept)


def people_redefined_after_caps(patch):
    kept_rows = units.kept_rows

    def kept(people, *given, context):
        rows = np.arange(len(people.numbers))
        own = np.where(people.present, rows, len(rows))
        return kept_rows(people._replace(numbers=own, none=len(rows)), *given, context=context)

    patch.setattr(units, "kept_rows", kept)


def a_density_at_the_threshold(patch):
    def extra(law, scale, least, k, weights):
        away = (least - weights[0]) / scale  # as if noise were not rounded
        beyond = math.erfc(away / math.sqrt(2)) / 2
        return Fraction(-math.expm1(k * math.log1p(-beyond)))

    patch.setattr(threshold, "extra_delta", extra)


LONE = [row(9)]
LOW = [row(who, zone, fare=0.5) for who, zone in enumerate("AABBCCA", start=10)]
OF_C = [row(who, "C") for who in range(10, 14)]

BUGS = [
    Fault(
        "values are clipped, and the raw ones added up",
        clipped_and_thrown_away,
        asking("sum", "fare", "zone"),
        pair([row(9, fare=1e6)]),
        "charge",
    ),
    Fault(
        "a domain inferred from the data",
        keys_of_the_data,
        asking("count", "zone"),
        pair(LONE, others=OF_C),
        "invariance",
    ),
    Fault(
        "the sensitivity of a row added where one is replaced",
        variants.noise_for_the_other_relation,
        asking("sum", "fare", "zone", relation="replace"),
        pair([row(9, fare=-5.0)], [row(9, fare=10.0)]),
        "charge",
    ),
    Fault(
        "numbers of rows taken for public",
        means_by_true_numbers_of_rows,
        asking("mean", "fare", "zone", mechanism="gaussian"),
        pair(LONE),
        "noise",
    ),
    Fault(
        "one amount spent on each of two tables",
        variants.the_whole_amount_for_each_table,
        asking("release", {"a": of_columns.count("zone"), "b": of_columns.count("day")}),
        pair(LONE),
        "charge",
    ),
    Fault(
        "a NaN spoils a total",
        totals_lost_with_one_value,
        asking("sum", "fare", "zone"),
        pair([row(9, fare=math.nan)], others=LOW),
        "additivity",
    ),
    Fault(
        "permute-and-flip charged as bounded range",
        selection_as_bounded_range,
        asking("quantile", "fare", 0.5, bins=8, mechanism="select"),
        pair([row(9, fare=4.0)], others=LOW),
        "charge",
    ),
    Fault(
        "codes by appearance",
        codes_by_appearance,
        asking("count", "zone", caps={"max_rows_per_group": 1, "max_groups": 1}),
        pair([row(9, zone) for zone in "ABC"], others=OF_C),
        "additivity",
    ),
    Fault(
        "people redefined after their rows were cut off",
        people_redefined_after_caps,
        asking("count", "zone", caps=CAPPED),
        pair([row(9)] * 9),
        "charge",
    ),
    Fault(
        "no mass at the threshold",
        a_density_at_the_threshold,
        asking("discover", "zone", mechanism="gaussian"),
        pair(LONE),
        "chance",
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_published_bug_is_caught_by_its_rule(bug):
    assert bug.rule in {one.rule for one in bug.found(planted=True)}


@pytest.mark.full
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_without_the_bug_no_rule_is_broken(bug):
    assert bug.found(planted=False) == []
