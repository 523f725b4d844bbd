"""Sparse counting queries: closed forms, optimality, and exact decoding."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.designing import columns, counting, variances, workload
from support.plans import parts_of
from support.raising import raises

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration
from dpframe.errors import QueryError
from dpframe.plan.plan import plan_release
from dpframe.privacy.amounts import Spend
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.strategies import MECHANISMS, independent, sparse
from dpframe.strategies.base import Output, Source
from dpframe.strategies.sparse import lift

PAIRS = [(10, 2), (10, 3), (10, 5), (10, 6), (100, 5), (100, 20), (100, 54), (3, 2), (400, 7)]
DENSE = [(10, 7), (10, 9), (100, 55), (100, 90), (4, 3)]


def exact(d, k):
    """The radius and the shift, not rounded."""
    if k >= (d + math.sqrt(d)) / 2:
        return math.sqrt(d) / 2, 0.5
    radius = math.sqrt(k * (d - k) / (d - 1))
    return radius, (k - radius) / d


@pytest.mark.parametrize(("d", "k"), PAIRS + DENSE)
def test_variances_are_those_of_the_closed_form(d, k):
    *queries, rows = variances(sparse.design(counting(d, most=k), GAUSSIAN))
    radius, shift = exact(d, k)
    # the shift is a fraction with a small denominator: at most 1/2000 off
    assert queries == pytest.approx([(radius + shift) ** 2] * d, rel=2e-3)
    rounded = float(lift(d, k)[1])
    assert rounded == pytest.approx(shift, abs=1 / 2000)
    assert rows == pytest.approx((radius + rounded) / rounded, rel=2e-3)


NAMES = [f"b{position}" for position in range(4)]
BOOLEANS = {name: Column(bounds=(0, 1), integer=True) for name in NAMES}


def planned(query, mechanism="correlated", **facts):
    declaration = Declaration({**BOOLEANS, "x": Column(bounds=(0.0, 1.0))}, **facts)
    plan = plan_release(declaration, {None: query}, Spend.of(mu=1), mechanism)
    (part,) = parts_of(plan)
    return part


def test_a_limit_that_all_rows_keep_is_none():
    for most in (4, 9):
        assert planned(dpf.sum(NAMES, max_true=most)).scales == planned(dpf.sum(NAMES)).scales
    assert planned(dpf.sum(NAMES, max_true=np.int64(2))).table.workload.most == 2


def test_a_limit_is_one_on_boolean_columns():
    with raises(QueryError, "max_true=2 needs boolean columns, and 'x'"):
        planned(dpf.sum([*NAMES, "x"], max_true=2))


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2", np.nan, 2.0])
def test_a_limit_is_a_whole_number(most):
    with raises(QueryError, "max_true must be a whole number >= 1"):
        dpf.sum(NAMES, max_true=most)


def test_other_mechanisms_use_the_limit_too():
    for law in (GAUSSIAN, LAPLACE):
        limited, free = (
            variances(independent.design(counting(4, most=most), law), law=law)[0]
            for most in (1, None)
        )
        assert free / limited == pytest.approx(4 ** (2 / law.norm))
    assert all(
        design(counting(4, most=1), GAUSSIAN) is None for design in MECHANISMS["correlated"].designs
    )


@pytest.mark.parametrize(
    ("sources", "outputs"),
    [
        (columns((0, 1), (0, 1)), (Output("sum", 1), Output("mean", 2))),
        ((*columns((0, 1)), Source(0, 1, optional=True)), (Output("mean", 1), Output("mean", 2))),
    ],
    ids=["a sum and a mean", "rows without a value"],
)
def test_queries_that_are_not_of_one_kind_are_refused(sources, outputs):
    """What is said of one of them would be charged for all."""
    made = independent.design(workload(sources, outputs, most=1), GAUSSIAN)
    with pytest.raises(ValueError, match="of one kind"):
        made.movement([Fraction(1)] * len(made.scales), GAUSSIAN)
