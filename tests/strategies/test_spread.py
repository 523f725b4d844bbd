"""Histograms in which units have one row in each of a few bins: closed forms and exact decoding."""

import math

import numpy as np
import pytest
from support.designing import EVERYONE, variances, workload

from dpframe.privacy.laws import BOX, GAUSSIAN
from dpframe.privacy.neighbors import Caps
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
