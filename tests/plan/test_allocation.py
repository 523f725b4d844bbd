"""The noise of a design: exactly what is allowed."""

import math
from fractions import Fraction

import pytest
from support.designing import EVERYONE, columns, counting, workload
from support.raising import raises

from dpframe.errors import CalibrationError
from dpframe.plan.designs import relative_variance, scale_design
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.strategies import correlated, sparse
from dpframe.strategies.base import Output
from dpframe.strategies.independent import design as plan_independent

ALLOWED = Fraction(1, 3)
NOTHING = workload(columns((0, 0)), cells=3)


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


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_all_that_is_allowed_is_used_and_no_more(law):
    for _, design in several(law):
        total = moved(design, scale_design(design, law, ALLOWED, exact=True), law)
        assert 0 <= 1 - total / ALLOWED < Fraction(1, 10**12)
        rough = scale_design(design, law, ALLOWED, exact=False)
        assert 0 <= abs(1 - moved(design, rough, law) / ALLOWED) < Fraction(1, 10**12)


def test_a_design_keeps_its_relative_scales():
    work = counting(10)
    made = correlated.design(work, GAUSSIAN)
    n, *queries = scale_design(made, GAUSSIAN, ALLOWED, exact=True)
    assert queries[0] / n == pytest.approx(made.scales[1] / made.scales[0], rel=1e-12)
    wide = 2.0**40  # so that rounding adds nothing
    errors = made.errors([wide * scale for scale in (n, *queries)])
    # Var f = ((sqrt d + 1) / 2)^2 / mu^2
    assert relative_variance(work, errors) / wide**2 == pytest.approx(
        10 * ((math.sqrt(10) + 1) / 2) ** 2 * 3
    )


def test_a_design_that_nothing_moves_has_no_noise():
    assert scale_design(independent(NOTHING)[1], GAUSSIAN, ALLOWED, exact=True) == (0.0,)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_too_wide_noise_is_refused(law):
    design = plan_independent(workload(columns((0, 2**32)), caps=ROW_CAPS), law)
    with raises(CalibrationError, "2**60", parameter="epsilon"):
        scale_design(design, law, Fraction(1, 2**29) ** law.norm, exact=True)
    (scale,) = scale_design(design, law, Fraction(1, 2**27) ** law.norm, exact=True)
    assert 0 <= scale / 2**59 - 1 < 1e-12


def test_the_number_of_rows_counts_with_its_weight_and_once_more_as_an_output():
    rows, total = 3.0, 10.0
    work = workload(columns((0, 5)), rows_weight=2.0)
    assert relative_variance(work, [total, rows]) == 4 + 2 * 9
    both = workload(columns((0, 5)), (Output("count", 0), Output("sum", 1)), rows_weight=2.0)
    assert relative_variance(both, [rows, total]) == 9 + 4 + 2 * 9
