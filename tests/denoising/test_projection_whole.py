"""Rounding to whole numbers that keep their total."""

import itertools
import math

import numpy as np
import pytest
from support.raising import raises

from dpframe.denoising.projection import whole
from dpframe.errors import QueryError


def noisy_values(n):
    return 4 * np.random.default_rng(n).standard_normal(n) + 2 + np.arange(n) / 9


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_rounding_is_the_nearest_with_its_total(n):
    y = noisy_values(n) - 3
    choices = np.array(list(itertools.product(*zip(np.floor(y), np.ceil(y), strict=True))))
    for total in range(int(np.floor(y).sum()), int(np.ceil(y).sum()) + 1):
        kept = choices[choices.sum(axis=1) == total]
        best = kept[np.argmin(((kept - y) ** 2).sum(axis=1))]
        assert np.array_equal(whole(y, total=total).values, best)
        if total == round(y.sum()):
            assert np.array_equal(whole(y).values, best)


@pytest.mark.parametrize(
    ("values", "rounded"),
    [
        ([0.5, 0.25] * 20, [1, 0] * 15 + [0] * 10),
        ([0.5, 1.0], [1, 1]),
        ([0.5, -0.0], [0, 0]),
        ([-0.5, 0.25, -1.25], [-1, 0, -1]),
        ([-1e-20, 3.0], [0, 3]),
        ([2.0**53, 0.5, 0.5], [2.0**53, 1, 0]),
        ([1e300, -1e300, 0.75], [1e300, -1e300, 1]),
        ([1.7e308, 1.7e308, 0.75], [1.7e308, 1.7e308, 1]),
    ],
)
def test_ties_go_to_the_first_and_halves_to_even_totals(values, rounded):
    found = whole(values)
    assert found.values.tolist() == rounded
    assert not np.signbit(found.values[found.values == 0]).any()
    assert math.isnan(found.risk)


@pytest.mark.parametrize("total", [4, 7, 5.5, True, "5", math.nan, math.inf, 10**400])
def test_totals_out_of_reach_are_refused(total):
    with raises(QueryError, "from 5 to 6", parameter="total"):
        whole([2.0, 3.25], total=total)


@pytest.mark.parametrize("total", [6, 6.0, np.int64(6), np.float32(6)])
def test_totals_within_reach_are_kept(total):
    assert whole([2.0, 3.25], total=total).values.tolist() == [2, 4]
