"""Neighbors of margins, all of them: never moved further than claimed, and as far, exactly."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from support.marginal import COUNT, EVERYONE, counted, each_cell, marginal, sigmas, up_to

from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.sensitivity import Kernel
from dpframe.strategies import margins
from dpframe.strategies.base import Output, Source

BOTH = [(margins.apart, GAUSSIAN), (margins.apart, LAPLACE)]
VALUES = {
    "counts": ((EVERYONE,), (COUNT,)),
    "sums": ((EVERYONE, Source(-2, 3, optional=False)), (Output("sum", 1),)),
    "counts and means": ((EVERYONE, Source(1, 4, optional=True)), (COUNT, Output("mean", 1))),
}


def rows_of(design):
    """What one row adds to all that is measured, for every cell and every kind of row."""
    work = design.workload
    ends = [
        [*{source.lower, source.upper}, *[None] * source.optional] for source in work.sources[1:]
    ]
    for cells in each_cell(work.domain.sizes):
        one = counted(cells, work.domain)
        for values in itertools.product(*ends):
            held = {at for at, value in enumerate(values, start=1) if value is not None}
            several = any(len(held & {*sources}) > 1 for sources in work.exclusive)
            if several or (work.most is not None and sum(values) > work.most):
                continue  # there is no such row
            totals = {(0, "rows"): one}
            for position, value in enumerate(values, start=1):
                totals[position, "rows"] = one * (value is not None)
                totals[position, "value"] = one * (value or 0)
            yield np.concatenate(design.encode({need: totals[need] for need in design.needs}))


def farthest(design, law, most, scale=1.0):
    """The largest movement over all neighbors, and the claim, both exact."""
    rows = list(rows_of(design))
    units = np.stack(
        [
            np.sum([rows[k] for k in unit], axis=0) if unit else np.zeros_like(rows[0])
            for number in range(most + 1)
            for unit in itertools.combinations_with_replacement(range(len(rows)), number)
        ]
    )
    scales = [scale * one for one in design.scales]
    noise = [sigma for one in scales for sigma in sigmas(design.layers, one)]
    lengths = np.array([float(1 / sigma) for sigma in noise])
    others = units[:1] if design.workload.neighboring == "add_remove" else units
    norm = law.norm
    moved = np.stack(
        [(np.abs((units - other) * lengths) ** norm).sum(axis=1) for other in others], axis=1
    )
    worst = np.argsort(moved, axis=None)[-5:]
    exact = (
        sum(
            Fraction(abs(int(step))) ** norm / sigma**norm
            for step, sigma in zip(units[k] - others[j], noise, strict=True)
            if step
        )
        for k, j in zip(*np.unravel_index(worst, moved.shape), strict=True)
    )
    return max(exact), design.movement([Fraction(one) for one in scales], law)


def check(design, law, most, scale=1.0):
    found, claimed = farthest(design, law, most, scale)
    assert found <= claimed
    assert float(found / claimed) > 1 - 1e-12


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(("plan", "law"), BOTH, ids=["gaussian", "laplace"])
@pytest.mark.parametrize(
    "asked",
    [
        ((2, 3, 4, 3), [(), (0,), (0, 1), (1, 2), (0, 2, 3)], (), 1),
        ((2, 3, 4), up_to(3, 2), (3, 1, 1, 9, 0.1, 1, 2), 1),
        ((2, 2, 3), up_to(3, 2), (), 3),
        ((2, 3), [(0,), (1,)], (), 3),
        ((2, 1, 2), up_to(3, 3), (), 3),
        ((1,), [(), (0,)], (), 2),
    ],
    ids=["one row", "weights", "three rows", "two tables", "an axis of one", "one cell"],
)
def test_counts(neighboring, plan, law, asked):
    sizes, tables, weights, rows = asked
    work = marginal(sizes, tables, weights=weights, rows=rows, neighboring=neighboring)
    check(plan(work, law), law, rows, scale=7.7)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(("plan", "law"), BOTH, ids=["gaussian", "laplace"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("rows", [1, 2])
def test_sums_and_means(neighboring, plan, law, values, rows):
    sources, outputs = VALUES[values]
    options = {"sources": sources, "outputs": outputs, "rows": rows, "neighboring": neighboring}
    check(plan(marginal((2, 3), up_to(2, 1), **options), law), law, rows)


OPTIONAL = Source(0, 0, optional=True)
EXCLUSIVE = {
    "counts": ((EVERYONE, OPTIONAL, OPTIONAL), (Output("count", 1), Output("count", 2))),
    "a count and a rate": (
        (EVERYONE, OPTIONAL, Source(0, 1, optional=True)),
        (Output("count", 1), Output("mean", 2)),
    ),
    "sums beside all rows": (
        (EVERYONE, Source(-2, 5, optional=True), Source(1, 3, optional=True)),
        (COUNT, Output("sum", 1), Output("sum", 2)),
    ),
    "one of three overlaps": (
        (EVERYONE, OPTIONAL, OPTIONAL, OPTIONAL),
        (Output("count", 1), Output("count", 2), Output("count", 3)),
    ),
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(("plan", "law"), BOTH, ids=["gaussian", "laplace"])
@pytest.mark.parametrize("values", EXCLUSIVE)
@pytest.mark.parametrize("rows", [1, 2])
def test_sources_that_exclude_each_other(neighboring, plan, law, values, rows):
    """They move as far as the worst of them, exactly: no more is claimed, and no less."""
    sources, outputs = EXCLUSIVE[values]
    options = {"sources": sources, "outputs": outputs, "rows": rows, "neighboring": neighboring}
    work = replace(marginal((2, 3), up_to(2, 1), **options), exclusive=((1, 2),))
    check(plan(work, law), law, rows, scale=3.3)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(("plan", "law"), BOTH, ids=["gaussian", "laplace"])
def test_queries_of_which_a_row_has_few(neighboring, plan, law):
    """Of three columns of zeros and ones a row has one at most."""
    sources = (EVERYONE, *[Source(0, 1, optional=False)] * 3)
    outputs = tuple(Output("sum", at) for at in (1, 2, 3))
    options = {"sources": sources, "outputs": outputs, "rows": 2, "neighboring": neighboring}
    check(plan(replace(marginal((2, 2), up_to(2, 1), **options), most=1), law), law, 2)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("plan", "law"), [(margins.plan_paired, GAUSSIAN), (margins.plan_paired, LAPLACE)]
)
def test_a_column_from_both_of_its_bounds(neighboring, plan, law):
    sources = (EVERYONE, Source(1, 4, optional=False))
    outputs = (Output("sum", 1), Output("mean", 1))
    options = {"sources": sources, "outputs": outputs, "rows": 2, "neighboring": neighboring}
    check(plan(marginal((2, 2), up_to(2, 2), **options), law), law, 2)


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_a_layer_that_is_forgotten_is_found(neighboring, monkeypatch):
    design = margins.apart(marginal((2, 2, 3), up_to(3, 2), neighboring=neighboring), GAUSSIAN)
    check(design, GAUSSIAN, 1)
    kernel = design.layers.kernel
    share = Fraction(1, 2) * Fraction(2, 3)  # p a of the layer (1,)
    forgotten = Kernel(kernel.whole - share, kernel.least)
    monkeypatch.setitem(design.layers.__dict__, "kernel", forgotten)
    with pytest.raises(AssertionError):
        check(design, GAUSSIAN, 1)


def test_patterns_of_differences_that_are_forgotten_are_found(monkeypatch):
    design = margins.apart(marginal((2, 2, 3), up_to(3, 2), neighboring="replace"), GAUSSIAN)
    kernel = design.layers.kernel
    monkeypatch.setitem(design.layers.__dict__, "kernel", Kernel(kernel.whole, kernel.whole / 9))
    with pytest.raises(AssertionError):
        check(design, GAUSSIAN, 1)
