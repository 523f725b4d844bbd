"""Histograms in which units have one row in each of a few bins: closed forms and exact decoding."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, deviations, variances, workload

from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.strategies import Output, independently, spread
from dpframe.strategies.sparse import lift

COUNT = Output("rows", 0)


def bins(cells, caps, **options):
    return workload((EVERYONE,), (COUNT,), cells=cells, caps=caps, has_units=True, **options)


@pytest.mark.parametrize(("cells", "groups"), [(10, 3), (50, 10), (10, 8), (100, 90), (6, 6)])
@pytest.mark.parametrize("total", [False, True])
def test_bins_have_the_variance_of_sparse_queries(cells, groups, total):
    caps = Caps(groups, None, 1) if total else Caps(None, groups, 1)
    work = bins(cells, caps)
    (variance,) = variances(spread.design(work, 2))
    if groups >= (cells + math.sqrt(cells)) / 2:
        assert variance == pytest.approx(((math.sqrt(cells) + 1) / 2) ** 2)
    else:
        radius = math.sqrt(groups * (cells - groups) / (cells - 1))
        shift = (groups - radius) / cells
        assert variance == pytest.approx((radius + shift) ** 2, rel=2e-3)
    assert variances(independently(work, 2)) == pytest.approx([groups])
    assert variance < groups


@pytest.mark.parametrize(
    ("work", "norm"),
    [
        (bins(10, Caps(None, 3, 1)), 1),
        (bins(10, Caps(None, 3, 1), neighboring="replace"), 2),
        (bins(10, Caps(None, 3, 2)), 2),
        (bins(10, Caps(4, 3, 2)), 2),
        (bins(10, Caps(None, 1, 1)), 2),
        (bins(1, Caps(None, 3, 1)), 2),
        (workload((EVERYONE,), (COUNT,), cells=10, caps=ROW_CAPS), 2),
        (workload(columns((0, 1)), cells=10, caps=Caps(None, 3, 1), has_units=True), 2),
        (workload((EVERYONE,), (COUNT,), cells=10, caps=Caps(None, 3, 1)), 2),
    ],
    ids=[
        "Laplace",
        "replaced",
        "two rows in a bin",
        "two rows and one",
        "one bin each",
        "one bin",
        "rows",
        "a sum",
        "no units to count",
    ],
)
def test_where_nothing_is_gained_there_is_no_design(work, norm):
    assert spread.design(work, norm) is None


def test_the_number_of_units_is_measured_once():
    made = spread.design(bins(10, Caps(None, 3, 1)), 2)
    rows, units = np.arange(10) + 5, np.array([4, 3, 2, *[1] * 7])
    blocks = made.encode({(0, "rows"): rows, (0, "units"): units})
    shift = lift(10, 3)[1]
    assert [len(block) for block in blocks] == [10, 1]
    assert blocks[1].tolist() == [16]
    assert blocks[0].tolist() == [shift.denominator * int(n) - shift.numerator * 16 for n in rows]
    (estimate,) = made.decode(blocks, [0.0, 0.0])
    assert estimate.values == pytest.approx(rows)
    assert made.common == {1}
    assert made.extra == 0


def test_the_movement_is_that_of_the_farthest_unit():
    made = spread.design(bins(6, Caps(None, 3, 1)), 2)
    scales = [Fraction(5, 4), Fraction(2, 3)]
    farthest = 0
    for touched in range(4):
        rows = np.array([1] * touched + [0] * (6 - touched))
        units = np.array([touched > 0, 0, 0, 0, 0, 0]).astype(np.int64)
        own, once = made.encode({(0, "rows"): rows, (0, "units"): units})
        moved = sum(Fraction(int(w)) ** 2 for w in own) / scales[0] ** 2
        farthest = max(farthest, moved + Fraction(int(once[0])) ** 2 / scales[1] ** 2)
    assert made.movement(scales, 2) == farthest


def test_bins_share_the_error_of_the_number_of_units():
    # 50,000 draws: a variance is off by 0.6 %, 3 % is 4.7 of that, and one of the four comparisons
    # fails by chance in 10^5 runs
    made, draws = spread.design(bins(10, Caps(None, 5, 1)), 2), 50_000
    scales = [30 * scale for scale in deviations(made)]
    noise = GAUSSIAN.draw([scales[0], scales[0], scales[1]], draws)
    exact = [np.hypot(scale, math.sqrt(1 / 12)) for scale in scales]
    (one,) = made.decode([noise[0], noise[2]], exact)
    (other,) = made.decode([noise[1], noise[2]], exact)
    (prediction,) = made.predict(exact)
    assert one.values.var() == pytest.approx(prediction.std_error**2, rel=0.03)
    assert other.values.var() == pytest.approx(prediction.std_error**2, rel=0.03)
    difference = (one.values - other.values).var()
    assert difference == pytest.approx(2 * one.loadings[0] ** 2, rel=0.03)
    total = (one.values + other.values).var()
    assert total == pytest.approx(2 * one.loadings[0] ** 2 + 4 * one.loadings[1] ** 2, rel=0.03)
    assert total > 1.1 * difference
