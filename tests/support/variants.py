"""Ways to break a release on purpose, in the real code."""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from support.auditing import Game
from support.designing import keep_no_plans
from support.games import ADD, GAMES, REPLACE

import dpframe as dpf
from dpframe.engines import blocks, capping, sums, units
from dpframe.plan import designs, laws, tables
from dpframe.plan.plan import Sharing
from dpframe.privacy import noise, sensitivity
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.queries import edges
from dpframe.strategies import independent, linear, staircase


def half_the_noise(patch):
    draw = Law.draw
    patch.setattr(
        Law, "draw", lambda law, scales, *rest: draw(law, [scale / 2 for scale in scales], *rest)
    )


def one_row_too_many(patch):
    sample = capping._sample
    patch.setattr(
        capping, "_sample", lambda bounds, most, context: sample(bounds, most + 1, context)
    )


def groups_without_cap(patch):
    kept_rows = units.kept_rows

    def kept(*arguments, context):
        *others, caps = arguments
        return kept_rows(*others, Caps(caps.rows, None, caps.rows_per_group), context=context)

    patch.setattr(units, "kept_rows", kept)


def values_without_bounds(patch):
    snapped = blocks._snap_to_grid

    def unclipped(numbers, own):
        return snapped(numbers, replace(own, lower=-(2**62), upper=2**62))

    patch.setattr(blocks, "_snap_to_grid", unclipped)


def replacement_without_bounds(patch):
    for_bounds = edges.Grid.for_bounds

    def unclipped(lower, upper, *, missing=None, **options):
        found = for_bounds(lower, upper, missing=missing, **options)
        return found if missing is None else replace(found, fill=round(missing / found.step))

    patch.setattr(tables.Grid, "for_bounds", unclipped)


def noise_of_floats(patch):
    rng = np.random.default_rng()

    def floats(law, scales, size, _):
        drawn = rng.normal if law is GAUSSIAN else rng.laplace
        return [drawn(0, scale, size) for scale in scales]

    patch.setattr(Law, "draw", floats)


def zero_of_both_signs(patch):
    table = noise.strip_table(LAPLACE.curve)
    # |Y| is the whole part of scale * |Z|: nothing is added that makes up for the sign of 0
    twice = replace(
        table.curve, offset=lambda scale, bits: (0, 0), pull=lambda scales: 0.5 + 0 * scales
    )
    patch.setattr(noise, "strip_table", lambda curve: replace(table, curve=twice))


def noise_for_the_other_relation(patch):
    table_of = tables.table_of

    def added(query, declaration, *given):
        table = table_of(query, declaration, *given)
        return replace(table, workload=replace(table.workload, neighboring=ADD))

    patch.setattr(tables, "table_of", added)


def units_taken_for_rows(patch):
    reach_of = sensitivity.reach_of
    patch.setattr(
        tables, "reach_of", lambda caps, cells, *, always: reach_of(ROW_CAPS, cells, always=always)
    )


def noise_used_twice(patch):
    draw = Law.draw

    def twice(law, scales, size, context):
        drawn = draw(law, scales, (size + 1) // 2, context)
        return [half.repeat(2)[:size] for half in drawn]

    patch.setattr(Law, "draw", twice)


def noise_that_comes_again(patch):
    patch.setattr("dpframe.context._generator", lambda n: np.random.default_rng(5).bytes(n))


def no_noise_for_empty_groups(patch):
    encode, draw, exact = linear.LinearDesign.encode, Law.draw, []

    def remembered(design, totals):
        exact[:] = encode(design, totals)
        return list(exact)

    def masked(*given):
        return [drawn * (exact.pop(0) != 0) for drawn in draw(*given)]

    patch.setattr(linear.LinearDesign, "encode", remembered)
    patch.setattr(Law, "draw", masked)


def half_the_stairs(patch):
    best = staircase._best_step

    def halved(reach, alone, farthest, *, both):
        period, stairs = best(reach, alone, farthest, both=both)
        return period // 2, stairs

    patch.setattr(staircase, "_best_step", halved)


def the_number_of_rows_for_free(patch):
    def moved(design, scales, law):
        counted = [part for part in design.footprints if part.coordinates != (0,)]
        work = design.workload
        return sensitivity.movement(counted, scales, law.norm, work.reach, work.neighboring)

    patch.setattr(linear.LinearDesign, "movement", moved)


def noise_for_half_of_the_largest_weight(patch):
    movement = independent.WeightedDesign.movement

    def less(design, scales, law):
        return movement(replace(design, weight=design.weight // 2), scales, law)

    patch.setattr(independent.WeightedDesign, "movement", less)


def true_values_without_limit(patch):
    patch.setattr(sums, "keep_few", lambda *_: None)


def parts_of_more_than_one(patch):
    parts_of = sums.bernstein_parts
    patch.setattr(sums, "bernstein_parts", lambda *of: [3 * part for part in parts_of(*of)])


def the_whole_amount_for_each_table(patch):
    whole = property(lambda sharing: dict.fromkeys(sharing.planning.joining.queries, Fraction(1)))
    patch.setattr(Sharing, "parts", whole)
    once = property(lambda sharing: sharing.law.charge(sharing.allowed))
    patch.setattr(Sharing, "loss", once)  # which adds up what is given


def the_whole_amount_for_each_law(patch):
    patch.setattr(laws, "_largest_factor", lambda *_: Fraction(2))  # of halves


def the_largest_output_alone(patch):
    movement = sensitivity.movement

    def largest(parts, scales, *how, **groups):
        return max(movement([part], scales, *how, **groups) for part in parts)

    patch.setattr(linear, "movement", largest)


def a_ledger_that_forgets(patch):
    patch.setattr(dpf.Ledger, "charge", lambda ledger, *charged: None)


def the_classical_formula_out_of_its_range(patch):
    patch.setattr(designs, "classical_mu", lambda epsilon, delta: epsilon / classical_factor(delta))


def classical_factor(delta):
    """Noise of a unit sensitivity at epsilon = 1 (Dwork and Roth 2014, Theorem 3.22)."""
    return np.sqrt(2 * np.log(1.25 / delta))


class Variant(NamedTuple):
    """What is wrong, how it is made so, and the game that shows it."""

    name: str
    broken: object
    game: Game

    def plant(self, patch):
        """Break the code, plans included."""
        keep_no_plans(patch)
        self.broken(patch)


COUNT = GAMES["count", ADD, "gaussian"]
BEYOND = replace(
    COUNT,
    releases=(COUNT.releases[0] | {"mechanism": "classical", "epsilon": 10},),
    draws=2_000_000,
)
WEIGHTED = GAMES["weighted total", ADD, "laplace"]
BUDGET = GAMES["three releases of one budget", ADD, "gaussian"]
OVERSPENT = replace(BUDGET, releases=tuple(one | {"share": 1} for one in BUDGET.releases))

VARIANTS = (
    Variant("Gaussian noise of half the scale", half_the_noise, COUNT),
    Variant("Laplace noise of half the scale", half_the_noise, GAMES["count", ADD, "laplace"]),
    Variant(
        "a unit keeps one row more than the cap",
        one_row_too_many,
        GAMES["count, units of six rows, two of which count", ADD, "gaussian"],
    ),
    Variant(
        "the cap on groups is ignored",
        groups_without_cap,
        GAMES["count, units in eight groups, one of which counts", ADD, "gaussian"],
    ),
    Variant("stairs for half of the movement", half_the_stairs, GAMES["sum", ADD, "staircase"]),
    Variant("values are not clipped", values_without_bounds, GAMES["sum", ADD, "laplace"]),
    Variant(
        "replacements of missing values are not clipped",
        replacement_without_bounds,
        GAMES["sum with a replacement beyond the bounds", ADD, "laplace"],
    ),
    Variant("weights are not clipped", values_without_bounds, WEIGHTED),
    Variant("noise for half of the largest weight", noise_for_half_of_the_largest_weight, WEIGHTED),
    Variant("noise of floats, Gaussian", noise_of_floats, COUNT),
    Variant("noise of floats, Laplace", noise_of_floats, GAMES["count", ADD, "laplace"]),
    Variant("Laplace noise with 0 twice", zero_of_both_signs, GAMES["count", ADD, "laplace"]),
    Variant(
        "noise for a unit added where one is replaced",
        noise_for_the_other_relation,
        GAMES["count", REPLACE, "gaussian"],
    ),
    Variant(
        "Laplace noise for a sensitivity of 1 where it is 2",
        units_taken_for_rows,
        GAMES["count, units of six rows, two of which count", ADD, "laplace"],
    ),
    Variant(
        "the sensitivity of six sums is that of the largest",
        the_largest_output_alone,
        GAMES["six sums", ADD, "gaussian"],
    ),
    Variant("two groups get the same noise", noise_used_twice, GAMES["count", REPLACE, "gaussian"]),
    Variant(
        "all releases get the same noise",
        noise_that_comes_again,
        replace(GAMES["sum of all rows", ADD, "laplace"], draws=2000),
    ),
    Variant(
        "groups without rows get no noise",
        no_noise_for_empty_groups,
        GAMES["count", ADD, "laplace"],
    ),
    Variant(
        "shared noise: the number of rows costs nothing",
        the_number_of_rows_for_free,
        GAMES["six sums", ADD, "correlated"],
    ),
    Variant(
        "the limit on true values is ignored",
        true_values_without_limit,
        GAMES["six sums, two of six true", ADD, "correlated"],
    ),
    Variant(
        "the nine parts of a pair add up to more than one",
        parts_of_more_than_one,
        GAMES["covariance", ADD, "laplace"],
    ),
    Variant(
        "each table of a joint release is given the whole amount",
        the_whole_amount_for_each_table,
        GAMES["count and sum, jointly", ADD, "gaussian"],
    ),
    Variant(
        "each law in one charge is given the whole amount",
        the_whole_amount_for_each_law,
        GAMES["count and sum, two laws", ADD, "both"],
    ),
    Variant("the ledger forgets what was spent", a_ledger_that_forgets, OVERSPENT),
    Variant(
        "the classical formula at epsilon = 10", the_classical_formula_out_of_its_range, BEYOND
    ),
)
