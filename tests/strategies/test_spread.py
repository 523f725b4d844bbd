"""Histograms in which units have one row in each of a few bins: closed forms and exact decoding."""

import math

import numpy as np
import pytest
from support.designing import EVERYONE, columns, variances, workload

from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.strategies import independent, sparse
from dpframe.strategies.base import Output
from dpframe.strategies.sparse import lift

COUNT = Output("count", 0)


def bins(cells, caps, **options):
    return workload((EVERYONE,), (COUNT,), cells=cells, caps=caps, has_units=True, **options)


@pytest.mark.parametrize(("cells", "groups"), [(10, 3), (50, 10), (10, 8), (100, 90), (6, 6)])
@pytest.mark.parametrize("total", [False, True])
def test_bins_have_the_variance_of_sparse_queries(cells, groups, total):
    caps = Caps(groups, None, 1) if total else Caps(None, groups, 1)
    work = bins(cells, caps)
    (variance,) = variances(sparse.plan_bins(work, GAUSSIAN))
    if groups >= (cells + math.sqrt(cells)) / 2:
        assert variance == pytest.approx(((math.sqrt(cells) + 1) / 2) ** 2)
    else:
        radius = math.sqrt(groups * (cells - groups) / (cells - 1))
        shift = (groups - radius) / cells
        assert variance == pytest.approx((radius + shift) ** 2, rel=2e-3)
    assert variances(independent.design(work, GAUSSIAN)) == pytest.approx([groups])
    assert variance < groups


@pytest.mark.parametrize(
    ("rows", "error", "alone"), [(1, 8.79, 13.36), (2, 17.6, 26.7), (3, 26.4, 40.1)]
)
def test_ten_bins_with_several_rows_of_a_unit_in_each(rows, error, alone):
    work = bins(10, Caps(None, None, rows))
    mu = 0.2367044  # epsilon = 1, delta = 1e-6
    assert math.sqrt(variances(sparse.plan_bins(work, GAUSSIAN))[0]) / mu == pytest.approx(
        error, rel=3e-3
    )
    assert math.sqrt(variances(independent.design(work, GAUSSIAN))[0]) / mu == pytest.approx(
        alone, rel=3e-3
    )


@pytest.mark.parametrize(
    ("work", "law"),
    [
        (bins(10, Caps(None, 3, 1)), LAPLACE),
        (bins(10, Caps(None, 3, 1), neighboring="replace"), GAUSSIAN),
        (bins(10, Caps(5, 3, 2)), GAUSSIAN),
        (bins(10, Caps(None, 1, 1)), GAUSSIAN),
        (bins(1, Caps(None, 3, 1)), GAUSSIAN),
        (workload((EVERYONE,), (COUNT,), cells=10, caps=ROW_CAPS), GAUSSIAN),
        (workload(columns((0, 1)), cells=10, caps=Caps(None, 3, 1), has_units=True), GAUSSIAN),
        (workload((EVERYONE,), (COUNT,), cells=10, caps=Caps(None, 3, 1)), GAUSSIAN),
    ],
    ids=[
        "Laplace",
        "replaced",
        "two rows and one",
        "one bin each",
        "one bin",
        "rows",
        "a sum",
        "no units to count",
    ],
)
def test_where_nothing_is_gained_there_is_no_design(work, law):
    assert sparse.plan_bins(work, law) is None


def test_the_number_of_units_is_measured_once():
    made = sparse.plan_bins(bins(10, Caps(None, 3, 1)), GAUSSIAN)
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


@pytest.mark.parametrize("law", [GAUSSIAN, BOX])
def test_caps_so_large_that_few_units_leave_64_bits_have_no_design(law):
    for rows in (2**31 + 1, 2**56, 2**57):
        assert sparse.plan_bins(bins(20, Caps(None, 8, rows)), law) is None
    rows = 2**32 // 1000
    made = sparse.plan_bins(bins(20, Caps(None, 8, rows)), law)
    units = np.full(20, 10**7)
    blocks = made.encode({(0, "rows"): units // 10 * rows, (0, "units"): units})
    (estimate,) = made.decode(blocks, [0.0, 0.0])
    assert estimate.values.tolist() == (units // 10 * rows).tolist()
