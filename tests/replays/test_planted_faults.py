"""Faults that are planted in the real code are caught, each by the rule that is named beside it."""

import itertools
import logging
import warnings
from dataclasses import replace

import numpy as np
import pytest
from support import variants
from support.replay_faults import CAPPED, Fault, asking, pair, row
from support.replay_rules import RULES

import dpframe as dpf
from dpframe.checker.measured import BlockNoise
from dpframe.engines import blocks, capping, labels
from dpframe.engines.pandas import PandasEngine
from dpframe.operations import planning, tables
from dpframe.operations.tables import PlannedTables
from dpframe.privacy import threshold
from dpframe.privacy.amounts import PrivacyLoss, Spend
from dpframe.privacy.law import Law
from dpframe.steps import denoise
from dpframe.strategies import layered


def tables_share_all(patch):
    movement = layered.movement

    def shared(*given, kernel):
        return movement(*given, kernel=replace(kernel, least=kernel.most))

    patch.setattr(layered, "movement", shared)


def margins_for_half(patch):
    movement = layered.movement
    patch.setattr(layered, "movement", lambda *given, kernel: movement(*given, kernel=kernel) / 2)


def nan_as_an_integer(patch):
    def snapped(numbers, grid):
        scaled = np.clip(blocks._round_to_grid(numbers, grid), grid.lower, grid.upper)
        return scaled.astype(np.int64), np.zeros(len(scaled), bool)

    patch.setattr(blocks, "_snap_to_grid", snapped)


def a_path_by_dtype(patch):
    numbers = blocks._numbers

    def by_dtype(column, grid):
        found = numbers(column, grid)
        return np.floor(found) if column.dtype == object else found

    patch.setattr(blocks, "_numbers", by_dtype)


def rows_kept_by_others(patch):
    sample = capping._sample

    def by_all(bounds, *rest):
        kept = sample(bounds, *rest)
        if len(bounds) > 2:  # of several units
            for start, end in itertools.pairwise(bounds):
                kept[start:end] = kept[start:end][::-1]
        return kept

    patch.setattr(capping, "_sample", by_all)


def charged_once(patch):
    charge = dpf.Ledger.charge

    def once(ledger, entry):
        if entry.what not in {one.what for one in ledger.entries}:
            charge(ledger, entry)

    patch.setattr(dpf.Ledger, "charge", once)


def the_better_of_two_draws(patch):
    draw = PlannedTables.draw

    def closer(operation, exact, context):
        once, again = draw(operation, exact, context), draw(operation, exact, context)
        return [
            [np.where(abs(a - e) < abs(b - e), a, b) for a, b, e in zip(*blocks, strict=True)]
            for blocks in zip(once, again, exact, strict=True)
        ]

    patch.setattr(PlannedTables, "draw", closer)


def charged_half(patch):
    charge = dpf.Ledger.charge

    def half(ledger, entry):
        loss = PrivacyLoss(*(part / 2 for part in entry.loss.parts))
        charge(ledger, replace(entry, loss=loss))

    patch.setattr(dpf.Ledger, "charge", half)


def labels_added_where_replaced(patch):
    patch.setattr(threshold, "counts_moved", lambda labels, neighboring: labels)


def a_scale_from_the_data(patch):
    plan = planning.plan_tables

    def planned(frame, declaration, queries, spend, mechanism, **more):
        spend = Spend.of(epsilon=1 / (1 + len(frame)))
        return plan(frame, declaration, queries, spend, mechanism, **more)

    patch.setattr(planning, "plan_tables", planned)


def rows_from_the_data(patch):
    make = planning.make_release

    def made(frame, *given):
        released = make(frame, *given)
        return released[released.index.isin(frame["zone"].dropna())]

    patch.setattr(planning, "make_release", made)


def totaling(watch):
    """Plant something that looks at the frame while it is totaled."""

    def plant(patch):
        totals = PandasEngine.totals

        def watched(engine, frame, *rest):
            watch(frame)
            return totals(engine, frame, *rest)

        patch.setattr(PandasEngine, "totals", watched)

    return plant


def warn_of_missing(frame):
    if frame["fare"].isna().any():
        warnings.warn("some fares are missing", stacklevel=1)


def log_the_length(frame):
    logging.getLogger("dpframe.engines").debug("%s rows", len(frame))


def fail_on_missing(frame):
    if frame["fare"].isna().any():
        raise ValueError("missing")


def a_certificate_that_counts(patch):
    attach, lengths = tables.attach, []
    totaling(lambda frame: lengths.append(len(frame)))(patch)
    patch.setattr(
        tables,
        "attach",
        lambda frame, releases, salt: attach(
            frame, [replace(one, library=f"of {lengths[-1]} rows") for one in releases], salt=salt
        ),
    )


def no_noise_on_nothing(patch):
    draw = PlannedTables.draw

    def spared(operation, exact, context):
        if not any(block.any() for blocks in exact for block in blocks):
            return exact
        return draw(operation, exact, context)

    patch.setattr(PlannedTables, "draw", spared)


def denoising_by_totals(patch):
    measure, choose, known = PlannedTables.measure, denoise.choose, []

    def measured(operation, frame, context):
        known[:] = measure(operation, frame, context)
        return list(known)

    def closer(values, facts):
        choice = choose(values, facts)
        drawn = (choice.denoised.values + known[0][0]) / 2
        return replace(choice, denoised=replace(choice.denoised, values=drawn))

    patch.setattr(PlannedTables, "measure", measured)
    patch.setattr(denoise, "choose", closer)


def labels_by_appearance(patch):
    patch.setattr(labels, "_in_order", lambda coded: coded)


def one_draw_for_two_blocks(patch):
    draw = BlockNoise.draw

    def shared(*given):
        first, *others = draw(*given)
        return [first, *(first.copy() for _ in others)]

    patch.setattr(BlockNoise, "draw", shared)


def narrow_noise(patch):
    draw = Law.draw
    patch.setattr(
        Law, "draw", lambda law, scales, *rest: draw(law, [0.9 * s for s in scales], *rest)
    )


def a_threshold_for_one_more(patch):
    extra = threshold.extra_delta
    patch.setattr(threshold, "extra_delta", lambda law, s, t, k, w: extra(law, s, t + w[0], k, w))


SUM, MARGINS = asking("sum", "fare", "zone"), {"mechanism": "gaussian", "relation": "replace"}
SUMS = asking("sum", ["fare", "size"], "zone", mechanism="gaussian")
COUNT, CAPPED_COUNT = asking("count", "zone"), asking("count", "zone", caps=CAPPED)
FULL = [row(9, zone) for zone in "AAAAABBBBB"]  # beyond all caps
ALL_ZONES = [row(9, zone) for zone in "ABC"]
LONE, MISSING = [row(9)], [row(9, fare=None)]
HALVES = [row(who, zone, fare=2.5) for who, zone in enumerate("AABBCCA", start=10)]
OF_C = [row(who, "C") for who in range(10, 14)]

FAULTS = [
    Fault("no clip", variants.values_without_bounds, SUM, pair([row(9, fare=1e6)]), "charge"),
    Fault(
        "a margin's movement, all of it",
        margins_for_half,
        asking("margins", ["zone", "day"]),
        pair(LONE),
        "charge",
    ),
    Fault(
        "a margin's movement where rows are apart",
        tables_share_all,
        asking("margins", ["zone", "day"], **MARGINS),
        pair([row(9, "A", day=0)], [row(9, "B", day=1)]),
        "charge",
    ),
    Fault("a cap off by one", variants.one_row_too_many, CAPPED_COUNT, pair(FULL), "charge"),
    Fault(
        "group caps ignored",
        variants.groups_without_cap,
        asking("count", "zone", caps={"max_groups": 1, "max_rows_per_group": 1}),
        pair(ALL_ZONES),
        "charge",
    ),
    Fault("NaN as an integer", nan_as_an_integer, SUM, pair(MISSING), "charge"),
    Fault(
        "a path chosen by dtype",
        a_path_by_dtype,
        asking("sum", "fare", "zone", inferred=True),
        pair([row(9, fare="none")], others=HALVES),
        "additivity",
    ),
    Fault(
        "rows kept that depend on other units",
        rows_kept_by_others,
        CAPPED_COUNT,
        pair([row(9, zone) for zone in "AAAABB"]),
        "additivity",
    ),
    Fault(
        "drawn twice and charged once",
        charged_once,
        asking("count", "zone", twice=True),
        pair(LONE),
        "charge",
    ),
    Fault("drawn twice, the better is taken", the_better_of_two_draws, COUNT, pair(LONE), "noise"),
    Fault("charged half", charged_half, COUNT, pair(LONE), "charge"),
    Fault(
        "a scale without replacement",
        variants.noise_for_the_other_relation,
        asking("count", "zone", relation="replace"),
        pair([row(9, "A")], [row(9, "B")]),
        "charge",
    ),
    Fault(
        "discovery under replacement",
        labels_added_where_replaced,
        asking("discover", "zone", relation="replace"),
        pair([row(9, "A")], [row(9, "B")]),
        "charge",
    ),
    Fault("a scale from the data", a_scale_from_the_data, COUNT, pair(LONE), "invariance"),
    Fault("rows from the data", rows_from_the_data, COUNT, pair(LONE, others=OF_C), "invariance"),
    Fault("a warning", totaling(warn_of_missing), SUM, pair(MISSING), "invariance"),
    Fault("a log line", totaling(log_the_length), SUM, pair(LONE), "invariance"),
    Fault("an exception", totaling(fail_on_missing), SUM, pair(MISSING), "invariance"),
    Fault(
        "a certificate that counts rows", a_certificate_that_counts, COUNT, pair(LONE), "invariance"
    ),
    Fault("no noise on an empty frame", no_noise_on_nothing, COUNT, pair(LONE), "noise"),
    Fault(
        "denoising that looks at totals",
        denoising_by_totals,
        asking("count", "zone", denoise="auto"),
        pair(LONE),
        "invariance",
    ),
    Fault(
        "labels in order of appearance",
        labels_by_appearance,
        asking("discover", "zone", caps={"max_rows": 3, "max_groups": 1}),
        pair(ALL_ZONES, others=OF_C),
        "additivity",
    ),
    Fault("one draw for two blocks", one_draw_for_two_blocks, SUMS, pair(LONE), "noise"),
    Fault("noise .9 times too narrow", narrow_noise, COUNT, pair(LONE), "noise"),
    Fault(
        "a threshold too low by one",
        a_threshold_for_one_more,
        asking("discover", "zone"),
        pair(LONE),
        "chance",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught_by_its_rule(fault):
    assert fault.rule in {one.rule for one in fault.found(planted=True)}


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_without_the_fault_no_rule_is_broken(fault):
    assert fault.found(planted=False) == []


def test_every_rule_catches_something():
    assert {fault.rule for fault in FAULTS} == set(RULES)
