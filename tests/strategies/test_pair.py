"""One column measured from both bounds: errors and exact answers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, variances, workload

from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import Caps
from dpframe.strategies import pair
from dpframe.strategies.base import Output, PublicRows, Source

COUNT = Output("count", 0)
PRESENT, SUM, MEAN = (Output(kind, 1) for kind in ("count", "sum", "mean"))


def column(lower, upper, *, optional=False):
    return (EVERYONE, Source(lower, upper, optional=optional))


@pytest.mark.parametrize("width", [1, 2, 1000])
def test_the_errors_of_count_sum_and_mean(width):
    asked = (COUNT, SUM, MEAN)
    made = pair.design(workload(column(0, width), asked), LAPLACE)
    count, total, mean = (math.sqrt(2 * v) for v in variances(made, law=LAPLACE))
    assert count == pytest.approx(2)
    assert total == pytest.approx(math.sqrt(2) * width)
    assert mean == pytest.approx(math.sqrt(2) * width)


@pytest.mark.parametrize("kind", [MEAN, PRESENT])
def test_missing_values_cost_nothing_where_all_rows_are_not_asked_for(kind):
    made = pair.design(workload(column(0, 1, optional=True), (SUM, kind)), LAPLACE)
    assert len(made.blocks) == 2
    assert math.sqrt(2 * variances(made, law=LAPLACE)[0]) == pytest.approx(math.sqrt(2))


def test_all_rows_of_a_column_with_missing_values():
    made = pair.design(workload(column(0, 1, optional=True), (COUNT, SUM, MEAN)), LAPLACE)
    count, total, mean = (math.sqrt(2 * v) for v in variances(made, law=LAPLACE))
    assert count == pytest.approx(math.sqrt(6))  # 2.45
    assert total == pytest.approx(math.sqrt(2))
    assert mean == pytest.approx(math.sqrt(2))
    # a discrete Laplace of scale 1 has deviation 1.357
    made = pair.design(workload(column(0, 100, optional=True), (COUNT, MEAN)), LAPLACE)
    wide, one = (LAPLACE.standard_deviation(scale) for scale in (100, 1))
    assert made.predict([wide, wide, one])[0].std_error == pytest.approx(2.43, abs=0.01)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("optional", [False, True])
def test_all_of_them_cost_exactly_what_a_count_costs(optional, law):
    # two cells with two rows each, and one row
    most = 2 * 2**law.norm + 1
    for neighboring, expected in (("add_remove", most), ("replace", 2 * most)):
        options = {"cells": 5, "caps": Caps(5, 4, 2), "neighboring": neighboring}
        made = pair.design(workload(column(-3, 4, optional=optional), (COUNT, SUM), **options), law)
        assert made.scales == (7, 7, 1)[: len(made.blocks)]
        assert made.movement([*map(Fraction, made.scales)], law) == expected


@pytest.mark.parametrize(
    ("work", "law"),
    [
        (workload(column(3, 3), (COUNT, MEAN)), LAPLACE),
        (workload(column(0, 1), (SUM,)), LAPLACE),
        (workload((EVERYONE,), (COUNT,)), LAPLACE),
        (workload(columns((0, 1), (0, 1)), (MEAN, Output("mean", 2))), LAPLACE),
        (workload(columns((0, 1), (0, 1)), most=1), LAPLACE),
        (workload(column(0, 1), (SUM,), known_rows=PublicRows(np.array([5.0]), 0.0)), LAPLACE),
    ],
    ids=["no width", "a sum", "a count", "two columns", "few true", "known rows"],
)
def test_it_is_for_one_column_of_values(work, law):
    assert pair.design(work, law) is None


def test_counts_are_rounded_to_whole_numbers():
    made = pair.design(workload(column(0, 4), (COUNT, MEAN), cells=9), LAPLACE)
    count = made.decode([np.arange(9), np.zeros(9, np.int64)], [4.0, 4.0])[0]
    assert count.values.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]  # halves to even
    error = math.hypot(*count.loadings.values())
    assert error == made.predict([4.0, 4.0])[0].std_error
    # quarters, each as likely, are off by 0, 1/4, 1/2 and 1/4
    assert error**2 == pytest.approx(2 + (1 + 4 + 1) / 16 / 4)
    # a sum of values in [-2, 4] is (4 A - 2 B) / 6: a multiple of 1 / 3
    total = pair.design(workload(column(-2, 4), (SUM, MEAN), cells=9), LAPLACE)
    sums = total.decode([np.arange(9), np.zeros(9, np.int64)], [4.0, 4.0])[0]
    assert sums.values.tolist() == [0, 1, 1, 2, 3, 3, 4, 5, 5]
    assert sums.values.dtype == np.int64
    # thirds are off by 0, 1/3 and 1/3
    exact = math.hypot(4 * 4 / 6, 2 * 4 / 6)
    assert math.hypot(*sums.loadings.values()) ** 2 == pytest.approx(exact**2 + 2 / 9 / 3)
    # sums that wrapped around end at the largest number, without a word
    far = np.full(9, 2**63 - 1)
    assert made.decode([far, far], [4.0, 4.0])[0].values.max() == 2**62
