"""How designs share an allowance: exactly all of it, and as well as can be."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, counting, workload
from support.raising import raises

from dpframe.errors import CalibrationError
from dpframe.plan import designs as planning
from dpframe.plan.designs import relative_variance
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.strategies import correlated, sparse
from dpframe.strategies.base import Output
from dpframe.strategies.independent import design as plan_independent

ALLOWED = Fraction(1, 3)
NOTHING = workload(columns((0, 0)), cells=3)


def scale_designs(pairs, law, allowed):
    """Return the scales of designs, some of which are for equal workloads."""
    times = Counter(work for work, _ in pairs)
    scales = planning.scale_designs(dict(pairs), times, law, allowed)
    return [scales[work] for work, _ in pairs]


def independent(work, law=GAUSSIAN):
    return work, plan_independent(work, law)


def several(law):
    """Designs of very different variances."""
    made = [
        independent(counting(4, cells=3), law),
        independent(workload((EVERYONE,), (Output("count", 0),), cells=3, caps=Caps(5, 2, 3)), law),
        independent(workload(columns((-5, 100)), (Output("mean", 1),), cells=3), law),
    ]
    if law is GAUSSIAN:
        histogram = workload(
            (EVERYONE,), (Output("count", 0),), cells=20, caps=Caps(None, 5, 1), has_units=True
        )
        made += [(work, correlated.design(work, GAUSSIAN)) for work in [counting(30, cells=3)]]
        made += [(histogram, sparse.plan_bins(histogram, GAUSSIAN))]
    return made


def moved(design, scales, law):
    return design.movement([Fraction(scale) for scale in scales], law)


def variance(designs, scales):
    wide = 2.0**40  # so that rounding adds nothing
    return sum(
        relative_variance(work, design.errors([wide * each for each in own])) / wide**2
        for (work, design), own in zip(designs, scales, strict=True)
    )


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_the_whole_allowance_is_used_and_no_more(law):
    designs = several(law)
    scales = scale_designs(designs, law, ALLOWED)
    total = sum(moved(design, own, law) for (_, design), own in zip(designs, scales, strict=True))
    assert 0 <= 1 - total / ALLOWED < Fraction(1, 10**12)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_the_total_of_all_variances_is_the_closed_form(law):
    # min sum v_i / m_i^(2/p) with sum m_i = allowed: (sum v_i^(p/(p+2)))^((p+2)/p) / allowed^(2/p)
    designs = several(law)
    alone = [
        variance([one], scale_designs([one], law, Fraction(1))) ** (law.norm / (law.norm + 2))
        for one in designs
    ]
    expected = sum(alone) ** ((law.norm + 2) / law.norm) / float(ALLOWED) ** (2 / law.norm)
    assert variance(designs, scale_designs(designs, law, ALLOWED)) == pytest.approx(expected)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_no_other_shares_have_a_smaller_total(law):
    designs = several(law)
    scales = scale_designs(designs, law, ALLOWED)
    best = variance(designs, scales)
    rng = np.random.default_rng(3)
    for _ in range(100):
        step = math.exp(rng.uniform(-7, 0))
        factors = np.exp(step * rng.standard_normal(len(designs)))
        other = [
            tuple(factor * scale for scale in own)
            for factor, own in zip(factors.tolist(), scales, strict=True)
        ]
        total = sum(
            moved(design, own, law) for (_, design), own in zip(designs, other, strict=True)
        )
        fair = float(total / ALLOWED) ** (1 / law.norm)
        other = [tuple(fair * scale for scale in own) for own in other]
        assert variance(designs, other) >= best * (1 - 1e-9)


def test_one_design_keeps_its_relative_scales():
    work = counting(10)
    made = correlated.design(work, GAUSSIAN)
    ((n, *queries),) = scale_designs([(work, made)], GAUSSIAN, ALLOWED)
    assert queries[0] / n == pytest.approx(made.scales[1] / made.scales[0], rel=1e-12)
    # Var f = ((sqrt d + 1) / 2)^2 / mu^2
    assert variance([(work, made)], [(n, *queries)]) == pytest.approx(
        10 * ((math.sqrt(10) + 1) / 2) ** 2 * 3
    )


def test_equal_designs_have_equal_shares():
    work = counting(3, cells=4)
    scales = scale_designs([independent(work)] * 5, GAUSSIAN, Fraction(1))
    assert len(set(scales)) == 1
    assert scales[0][0] == pytest.approx(math.sqrt(3 * 5))


def test_a_design_that_nothing_moves_takes_no_share():
    work = counting(3, cells=4)
    still, moving = scale_designs([independent(NOTHING), independent(work)], GAUSSIAN, ALLOWED)
    assert still == (0.0,)
    (alone,) = scale_designs([independent(work)], GAUSSIAN, ALLOWED)
    assert moving == pytest.approx(alone, rel=1e-12)
    assert scale_designs([independent(NOTHING)], GAUSSIAN, ALLOWED) == [(0.0,)]


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_too_wide_noise_is_refused(law):
    work = workload(columns((0, 2**32)), caps=ROW_CAPS)
    with raises(CalibrationError, "2**60", parameter="epsilon"):
        scale_designs([independent(work, law)], law, Fraction(1, 2**29) ** law.norm)
    ((scale,),) = scale_designs([independent(work, law)], law, Fraction(1, 2**27) ** law.norm)
    assert 0 <= scale / 2**59 - 1 < 1e-12


def test_the_number_of_rows_counts_with_its_weight_and_once_more_as_an_output():
    rows, total = 3.0, 10.0
    work = workload(columns((0, 5)), rows_weight=2.0)
    assert relative_variance(work, [total, rows]) == 4 + 2 * 9
    both = workload(columns((0, 5)), (Output("count", 0), Output("sum", 1)), rows_weight=2.0)
    assert relative_variance(both, [rows, total]) == 9 + 4 + 2 * 9
