"""Shared noise: variances against closed forms, and against every other choice of scales."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, counting, relative, variances, workload

from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.strategies import correlated, independent
from dpframe.strategies.base import Output, PublicRows, Source

COUNT = Output("count", 0)


@pytest.mark.parametrize("d", [2, 3, 10, 100, 400])
def test_counting_queries_have_the_variance_of_lebeda(d):
    *queries, rows = variances(correlated.design(counting(d), GAUSSIAN))
    assert queries == pytest.approx([((math.sqrt(d) + 1) / 2) ** 2] * d)
    assert rows == pytest.approx(math.sqrt(d) + 1)
    assert variances(independent.design(counting(d), GAUSSIAN)) == pytest.approx([d] * d)


def test_missing_values_are_lifted_by_bounds_that_hold_0():
    work = workload((EVERYONE, Source(5, 8, optional=True), Source(-3, -1, optional=True)))
    made = correlated.design(work, GAUSSIAN)
    assert [(block.value, block.everyone) for block in made.blocks[1:]] == [(2, -8), (2, 3)]
    # a row moves them by their widths, whatever its value
    scales = [Fraction(10**9), Fraction(8), Fraction(3)]
    assert round(made.movement(scales, GAUSSIAN), 9) == 2


@pytest.mark.parametrize("weight", [0, 0.1, 1, 22.5, 1000])
def test_an_accurate_number_of_rows_costs_what_the_trade_off_says(weight):
    d = 10
    *queries, rows = variances(correlated.design(counting(d, rows_weight=weight), GAUSSIAN))
    square = math.sqrt(d / 16 + weight / 4)  # gamma^2
    assert queries == pytest.approx([(d / 4 + square) * (1 + 1 / (4 * square))] * d)
    assert rows == pytest.approx(1 + d / (4 * square))


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(("variance", "extra"), [(0.0, 0.0), (3.0, 0.75)])
def test_a_public_number_of_rows_is_not_measured(variance, extra, neighboring):
    known = PublicRows(np.array([100.0] * 3), variance)
    options = {"known_rows": known, "cells": 3, "neighboring": neighboring}
    made = correlated.design(counting(10, **options), GAUSSIAN)
    assert made.extra == 0
    assert len(made.scales) == 10
    # a replaced row leaves one group and comes to another, or moves by 2 in its own
    shared = 10 / 4 if neighboring == "add_remove" else 10
    assert variances(made) == pytest.approx([shared + extra] * 10)
    totals = {need: np.array([need[0], 50, 100 - need[0]]) for need in made.needs}
    totals |= {need: np.array([100] * 3) for need in made.needs if need[1] == "rows"}
    answers = [
        estimate.values.tolist() for estimate in made.decode(made.encode(totals), [0.0] * 10)
    ]
    assert answers == [[k, 50, 100 - k] for k in range(1, 11)]


GENERAL = {
    "one far from zero": [(0, 1), (100, 101)],
    "mixed": [(0, 10), (5, 6), (-3, 3), (100, 101)],
    "negative": [(-7, -2), (-9, 0), (-1, 0)],
    "asymmetric": [(-2, 3), (-1, 8)],
    "with a constant": [(0, 10), (4, 4), (-6, -6), (-2, 5)],
}


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("name", GENERAL)
def test_columns_with_any_bounds_have_the_total_of_the_closed_form(name, counted):
    bounds = GENERAL[name]
    sums = tuple(Output("sum", position + 1) for position in range(len(bounds)))
    work = workload(columns(*bounds), (COUNT, *sums) if counted else sums)
    roots = [1 / ((upper - lower) or abs(upper)) for lower, upper in bounds]  # of omega
    pairs = list(zip(roots, bounds, strict=True))
    center = math.sqrt(sum((o * (lower + upper) / 2) ** 2 for o, (lower, upper) in pairs) + counted)
    root = sum(o * (upper - lower) / 2 for o, (lower, upper) in pairs)
    total = sum(relative(work, correlated.design(work, GAUSSIAN)))
    assert total == pytest.approx((root + center) ** 2)
    # the best that independent noise can do, with any scales
    alone = sum(o * max(abs(lower), abs(upper)) for o, (lower, upper) in pairs)
    assert total <= (alone + counted) ** 2 * (1 + 1e-9)
    assert total < (alone + counted) ** 2 * (0.99 if max(map(max, bounds)) < 50 else 1)


@pytest.mark.parametrize(
    ("work", "law"),
    [
        (counting(1), LAPLACE),
        (counting(10, most=3), GAUSSIAN),
        (workload((EVERYONE,), (COUNT,)), GAUSSIAN),
        (workload(columns((-3, 3), (-1, 1))), GAUSSIAN),
        (workload(columns((-3, 3), (0, 0)), (COUNT, Output("sum", 2))), GAUSSIAN),
    ],
    ids=["one query", "sparse", "a count", "centers at zero", "a column of zeros"],
)
def test_where_sharing_cannot_help_there_is_no_design(work, law):
    made = correlated.design(work, law)
    assert made is None or made.scales[1:] == (0.0,)


@pytest.mark.parametrize(("cells", "error"), [(1, 4.88), (10, 5.97)])
def test_a_mean_alone_gains_where_units_are_replaced(cells, error):
    work = workload(columns((0, 1000)), (Output("mean", 1),), cells=cells, neighboring="replace")
    made = correlated.design(work, GAUSSIAN)
    mu = 0.2367044  # epsilon = 1, delta = 1e-6
    assert math.sqrt(relative(work, made)[0]) / mu == pytest.approx(error, rel=1e-3)
    assert sum(relative(work, made)) < sum(relative(work, independent.design(work, GAUSSIAN)))


@pytest.mark.parametrize("d", [2, 3, 10])
def test_in_a_single_cell_replaced_rows_leave_room_for_their_number(d):
    queries = variances(correlated.design(counting(d, neighboring="replace"), GAUSSIAN))[:d]
    assert queries == pytest.approx([d + 1 / 3] * d)


# d sums in [99, 100], with Laplace noise at epsilon = 1
@pytest.mark.parametrize(("d", "error"), [(2, 150.66), (4, 156.60), (8, 166.20)])
def test_laplace_noise_gains_far_from_zero(d, error):
    work = workload(columns(*[(99, 100)] * d))
    made = correlated.design(work, LAPLACE)
    found = [math.sqrt(2 * v) for v in variances(made, law=LAPLACE)[:d]]
    assert found == pytest.approx([error] * d, rel=1e-4)
