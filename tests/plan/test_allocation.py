"""How designs share an allowance: exactly all of it, and as well as can be."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, counting, workload

from dpframe.errors import CalibrationError
from dpframe.plan.allocation import relative_variance, scale_designs
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.strategies import Output, Prediction, correlated, independently, spread

ALLOWED = Fraction(1, 3)
NOTHING = workload(columns((0, 0)), cells=3)


def independent(work, norm=2):
    return work, independently(work, norm)


def several(norm):
    """Designs of very different variances."""
    made = [
        independent(counting(4, cells=3), norm),
        independent(workload((EVERYONE,), (Output("rows", 0),), cells=3, caps=Caps(5, 2, 3)), norm),
        independent(workload(columns((-5, 100)), (Output("mean", 1),), cells=3), norm),
    ]
    if norm == 2:
        histogram = workload(
            (EVERYONE,), (Output("rows", 0),), cells=20, caps=Caps(None, 5, 1), has_units=True
        )
        made += [(work, correlated.design(work, 2)) for work in [counting(30, cells=3)]]
        made += [(histogram, spread.design(histogram, 2))]
    return made


def moved(design, scales, norm):
    return design.movement([Fraction(scale) for scale in scales], norm)


def variance(designs, scales):
    return sum(
        relative_variance(work, design.predict(own))
        for (work, design), own in zip(designs, scales, strict=True)
    )


@pytest.mark.parametrize("norm", [1, 2])
def test_the_whole_allowance_is_used_and_no_more(norm):
    designs = several(norm)
    scales = scale_designs(designs, norm, ALLOWED)
    total = sum(moved(design, own, norm) for (_, design), own in zip(designs, scales, strict=True))
    assert 0 <= 1 - total / ALLOWED < Fraction(1, 10**12)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_total_of_all_variances_is_the_closed_form(norm):
    # min sum v_i / m_i^(2/p) with sum m_i = allowed: (sum v_i^(p/(p+2)))^((p+2)/p) / allowed^(2/p)
    designs = several(norm)
    alone = [
        variance([one], scale_designs([one], norm, Fraction(1))) ** (norm / (norm + 2))
        for one in designs
    ]
    expected = sum(alone) ** ((norm + 2) / norm) / float(ALLOWED) ** (2 / norm)
    assert variance(designs, scale_designs(designs, norm, ALLOWED)) == pytest.approx(expected)


@pytest.mark.parametrize("norm", [1, 2])
def test_no_other_shares_have_a_smaller_total(norm):
    designs = several(norm)
    scales = scale_designs(designs, norm, ALLOWED)
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
            moved(design, own, norm) for (_, design), own in zip(designs, other, strict=True)
        )
        fair = float(total / ALLOWED) ** (1 / norm)
        other = [tuple(fair * scale for scale in own) for own in other]
        assert variance(designs, other) >= best * (1 - 1e-9)


def test_one_design_keeps_its_relative_scales():
    work = counting(10)
    made = correlated.design(work, 2)
    ((n, *queries),) = scale_designs([(work, made)], 2, ALLOWED)
    assert queries[0] / n == pytest.approx(made.scales[1] / made.scales[0], rel=1e-12)
    # Var f = ((sqrt d + 1) / 2)^2 / mu^2
    assert variance([(work, made)], [(n, *queries)]) == pytest.approx(
        10 * ((math.sqrt(10) + 1) / 2) ** 2 * 3
    )


def test_equal_designs_have_equal_shares():
    work = counting(3, cells=4)
    scales = scale_designs([independent(work)] * 5, 2, Fraction(1))
    assert len(set(scales)) == 1
    assert scales[0][0] == pytest.approx(math.sqrt(3 * 5))


def test_a_design_that_nothing_moves_takes_no_share():
    work = counting(3, cells=4)
    still, moving = scale_designs([independent(NOTHING), independent(work)], 2, ALLOWED)
    assert still == (0.0,)
    (alone,) = scale_designs([independent(work)], 2, ALLOWED)
    assert moving == pytest.approx(alone, rel=1e-12)
    assert scale_designs([independent(NOTHING)], 2, ALLOWED) == [(0.0,)]


@pytest.mark.parametrize("norm", [1, 2])
def test_too_wide_noise_is_refused(norm):
    work = workload(columns((0, 2**32)), caps=ROW_CAPS)
    with pytest.raises(CalibrationError, match=r"2\*\*60"):
        scale_designs([independent(work, norm)], norm, Fraction(1, 2**29) ** norm)
    ((scale,),) = scale_designs([independent(work, norm)], norm, Fraction(1, 2**27) ** norm)
    assert 0 <= scale / 2**59 - 1 < 1e-12


def test_the_number_of_rows_counts_with_its_weight_and_once_more_as_an_output():
    rows, total = Prediction(3.0), Prediction(10.0)
    work = workload(columns((0, 5)), rows_weight=2.0)
    assert relative_variance(work, [total, rows]) == 4 + 2 * 9
    both = workload(columns((0, 5)), (Output("rows", 0), Output("value", 1)), rows_weight=2.0)
    assert relative_variance(both, [rows, total]) == 9 + 4 + 2 * 9
