"""Independent noise on every total."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.designing import columns, perturbed, relative, variances, workload

from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.strategies import independent
from dpframe.strategies.base import Output, Source

COUNT = Output("count", 0)
LAWS = pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)


# sd at epsilon = 1 with Laplace noise, and at mu = .2367044, which is epsilon = 1, delta = 1e-6
MEANS = [(1, 2.0, 4.22), (2, 2.94, 5.10), (3, 3.82, 5.77), (5, 5.49, 6.84), (10, 9.47, 8.79)]


@pytest.mark.parametrize(("d", "laplace", "gaussian"), MEANS)
def test_means_of_several_columns_share_the_number_of_rows(d, laplace, gaussian):
    asked = tuple(Output("mean", k + 1) for k in range(d))
    work = workload(columns(*[(0, 1000)] * d), asked)
    for law, error, factor in ((LAPLACE, laplace, math.sqrt(2)), (GAUSSIAN, gaussian, 1 / 0.2367)):
        made = independent.design(work, law)
        assert len(made.blocks) == d + 1
        found = [factor * math.sqrt(v) for v in relative(work, made, law=law)]
        assert found == pytest.approx([error] * d, rel=2e-3)


@LAWS
@pytest.mark.parametrize("asked", ["cs", "sm", "csm", "smr"])
def test_no_other_scales_have_a_smaller_total(law, asked):
    kinds = {"c": COUNT, "s": Output("sum", 1), "m": Output("mean", 2), "r": Output("count", 3)}
    sources = (*columns((0, 1), (2, 9)), Source(-5, 7, optional=True))
    work = workload(sources, tuple(kinds[kind] for kind in asked))
    made = independent.design(work, law)
    best = sum(relative(work, made, law=law))
    rng = np.random.default_rng(3)
    others = [sum(relative(work, made, perturbed(made.scales, rng), law=law)) for _ in range(60)]
    assert best * (1 - 1e-9) <= min(others)
    assert max(others) > 1.001 * best


@LAWS
def test_a_sum_beside_the_mean_of_its_column_is_read_off_the_same_integers(law):
    work = workload(columns((2, 10)), (COUNT, Output("sum", 1), Output("mean", 1)))
    made = independent.design(work, law)
    totals = {(at, "rows"): np.array([5, 0]) for at in (0, 1)} | {(1, "value"): np.array([31, 0])}
    blocks = made.encode(totals)
    assert [block.tolist() for block in blocks] == [[5, 0], [2 * 31 - 12 * 5, 0]]
    count, total, mean = (estimate.values for estimate in made.decode(blocks, [1.0, 1.0]))
    assert count.dtype == np.int64
    assert count.tolist() == [5, 0]
    assert total.tolist() == [31, 0]
    assert mean.tolist() == [6.2, 6]
    assert variances(made, [1.0, 1.0], law)[1] > 36


@LAWS
def test_counts_that_exclude_each_other_have_the_error_of_a_histogram(law):
    work = workload(
        tuple(Source(0, 0, optional=at > 0) for at in range(6)),
        tuple(Output("count", at) for at in range(1, 6)),
    )
    sets = {"none": (), "all": ((1, 2, 3, 4, 5),), "a pair": ((1, 2),)}
    found = {
        name: relative(own := replace(work, exclusive=one), independent.design(own, law), law=law)
        for name, one in sets.items()
    }
    power = 2 if law is LAPLACE else 1
    assert found["all"] == pytest.approx([found["none"][0] / 5**power] * 5)
    pair = found["a pair"]
    assert sum(pair) < sum(found["none"])
    assert pair[0] == pair[1] < pair[2]  # what both share is worth more
