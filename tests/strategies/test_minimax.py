"""The worst relative variance: no scales, and no other method, make it smaller."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import optimize, special
from support.designing import columns, counting, relative, variances, workload

from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.neighbors import ROW_CAPS
from dpframe.strategies import correlated
from dpframe.strategies.base import Output, Source

GENERAL = {
    "mixed": columns((0, 10), (5, 6), (-3, 3), (100, 101)),
    "negative": columns((-7, -2), (-9, 0), (-1, 0)),
    "one far from zero": columns((0, 1), (100, 101)),
    "with a constant": columns((0, 10), (4, 4), (-2, 5)),
    "nullable": (*columns((0, 3)), Source(-20, 30, optional=True), Source(5, 8, optional=True)),
}
RELATIONS = ["add_remove", "replace"]


def planned(name, neighboring="add_remove", *, caps=ROW_CAPS, worst=True, weight=0.0):
    options = {"neighboring": neighboring, "cells": 9, "caps": caps, "rows_weight": weight}
    work = workload(GENERAL[name], worst=worst, **options)
    return work, correlated.design(work, GAUSSIAN)


def worst_of(work, made, scales=None):
    weighted = [*relative(work, made, scales), work.rows_weight * variances(made, scales)[-1]]
    return max(weighted)


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", GENERAL)
def test_all_relative_variances_that_can_be_are_equal(name, neighboring):
    work, made = planned(name, neighboring)
    errors = relative(work, made)
    moving = [error for error, scale in zip(errors, made.scales[1:], strict=True) if scale]
    assert moving == pytest.approx([max(errors)] * len(moving), rel=1e-6)
    # a constant is read off the number of rows alone, which is as accurate at least
    assert len(moving) == len(errors) - (name == "with a constant")


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", ["mixed", "negative", "nullable"])
def test_a_general_method_finds_nothing_better(name, neighboring):
    # a convex program in the precisions, solved without knowing its structure
    work, made = planned(name, neighboring)

    def soft(x):
        return special.logsumexp(40 * np.log(relative(work, made, np.exp(x)))) / 40

    start = np.zeros(len(made.scales))
    found = optimize.minimize(soft, start, method="Powell", options={"xtol": 1e-4, "ftol": 1e-9})
    best = worst_of(work, made)
    assert best * (1 - 1e-8) <= worst_of(work, made, np.exp(found.x)) < 1.1 * best
    assert worst_of(work, made, np.exp(start)) > 1.2 * best


@pytest.mark.parametrize("name", ["mixed", "with a constant"])
def test_the_worst_is_smaller_and_the_total_larger_than_with_least_total(name):
    least, worst = [relative(*planned(name, worst=flag)) for flag in (False, True)]
    assert max(worst) < 0.99 * max(least)
    assert sum(worst) > 1.0001 * sum(least)


@pytest.mark.parametrize("d", [2, 10, 100])
def test_equal_queries_have_one_optimum(d):
    least, worst = (correlated.design(counting(d, worst=flag), GAUSSIAN) for flag in (False, True))
    assert variances(worst) == pytest.approx(variances(least), rel=1e-6)


def test_a_number_of_rows_that_matters_is_among_the_worst():
    for weight in (0.5, 4, 100):
        *errors, rows = variances(
            correlated.design(counting(10, worst=True, rows_weight=weight), GAUSSIAN)
        )
        binding = weight * rows == pytest.approx(max(errors), rel=1e-6)
        assert binding if weight > 1 else weight * rows < max(errors)


def test_a_block_that_no_row_moves_gets_no_noise():
    _, made = planned("with a constant")
    assert [scale > 0 for scale in made.scales] == [True, True, False, True]


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_means_and_filtered_counts_are_among_the_outputs(neighboring):
    sources = (*columns((0, 10)), Source(0, 0, optional=True))
    outputs = (Output("count", 0), Output("sum", 1), Output("mean", 1), Output("count", 2))
    options = {"cells": 9, "neighboring": neighboring}
    work = workload(sources, outputs, worst=True, **options)
    made = correlated.design(work, GAUSSIAN)
    least = correlated.design(workload(sources, outputs, **options), GAUSSIAN)
    linear = [0, 1, 3]
    errors = [relative(work, design) for design in (made, least)]
    assert max(errors[0][k] for k in linear) < max(errors[1][k] for k in linear)


@pytest.mark.full
def test_the_optimizer_is_imported_only_when_it_is_needed():
    code = "import sys, dpframe; print('scipy.optimize' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
