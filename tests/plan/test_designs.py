"""Equal demands get the plan that was made before; others do not."""

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, counting, row_of, workload

from dpframe.plan.designs import _calibrate, calibrate
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Reach
from dpframe.strategies import MECHANISMS
from dpframe.strategies.base import Output, PublicRows, Source
from dpframe.strategies.domain import Dimension, Domain

WORK = workload(columns((-5, 100), (0, 7)), cells=4, caps=Caps(6, 2, None))
HOW = MECHANISMS["box"]
ALLOWED = Fraction(1, 3)
OTHER = {
    "sources": columns((-5, 99), (0, 7)),
    "outputs": (Output("sum", 1),),
    "domain": row_of(5),
    "reach": replace(WORK.reach, rows=2),
    "neighboring": "replace",
    "most": 1,
    "rows_weight": 2.0,
    "worst": True,
    "known_rows": PublicRows(np.arange(4), 1.0),
    "has_units": True,
    "ranges": True,
    "exclusive": ((1, 2),),
    "weight": 3,
}


def test_an_equal_demand_gets_the_same_plan():
    again = replace(WORK, domain=Domain((Dimension(4, ordered=False),)))
    assert calibrate(HOW, [WORK], ALLOWED) is calibrate(HOW, [again], Fraction(2, 6))


def test_every_part_of_a_demand_counts():
    assert set(OTHER) == {field.name for field in fields(WORK)}
    made = calibrate(HOW, [WORK], ALLOWED)
    for name, value in OTHER.items():
        if name != "most":  # it is for zeros and ones
            other = replace(WORK, **{name: value})
            assert calibrate(HOW, [other], ALLOWED) is not made
    few = [calibrate(HOW, [counting(3, most=most)], ALLOWED) for most in (1, 2)]
    assert few[0] is not few[1]
    assert calibrate(HOW, [WORK], ALLOWED / 2) is not made
    assert calibrate(HOW, [WORK, WORK], ALLOWED) is not made
    assert calibrate(MECHANISMS["laplace"], [WORK], ALLOWED) is not made


PARTS = {
    Source: {"lower": -1, "upper": 3, "optional": True, "other": (0, 1), "degree": 4},
    Output: {"name": "mean", "source": 2, "sampled": True, "of_rows": 1.5},
    Domain: {
        "dimensions": (Dimension(5, ordered=False),),
        "chosen": 2,
        "margins": ((0,),),
        "weights": (2.0,),
    },
    Dimension: {"size": 5, "ordered": True, "hidden": True},
    Reach: {"full": 2, "rows": 2, "rest": 1, "cells": 3, "always": True, "groups": 1},
}
WHOLE = {
    Source: Source(0, 1, optional=False),
    Output: Output("sum", 1),
    Domain: row_of(4),
    Dimension: Dimension(4, ordered=False),
    Reach: Reach(1, 1, 0, 4),
}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_no_fact_is_left_out_where_workloads_are_compared(part):
    """Designs are told nothing else; what they share is shared by equal workloads."""
    whole = WHOLE[part]
    assert set(PARTS[part]) == {field.name for field in fields(part) if field.compare}
    assert set(PARTS[part]) == {field.name for field in fields(part)}
    for name, value in PARTS[part].items():
        other = replace(whole, **{name: value})
        assert other != whole and replace(other, **{name: getattr(whole, name)}) == whole


def test_known_rows_are_equal_to_themselves_alone():
    one, other = (replace(WORK, known_rows=PublicRows(np.arange(4), 1.0)) for _ in range(2))
    assert one == replace(one) and one != other
    made = [calibrate(HOW, [one], ALLOWED) for _ in range(2)]
    assert made[0] is not made[1]  # arrays are not kept


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_kept_is_what_would_be_made(name):
    how = MECHANISMS[name]
    units = workload(
        (EVERYONE,), (Output("count", 0),), cells=9, caps=Caps(4, 3, 2), has_units=True
    )
    for works in ((WORK,), (counting(3),), (units,), (WORK, units)):
        for _ in range(2):
            kept, fresh = calibrate(how, works, ALLOWED), _calibrate(how, works, ALLOWED)
            assert kept.keys() == fresh.keys()
            for work, mine in kept.items():
                theirs = fresh[work]
                assert type(mine.design) is type(theirs.design)
                assert (mine.law, mine.scales) == (theirs.law, theirs.scales)
                assert (mine.deviations, mine.variance) == (theirs.deviations, theirs.variance)
                assert mine.predictions == theirs.predictions


def test_of_large_plans_the_last_are_kept():
    def kept(cells, part=1):
        return calibrate(HOW, [replace(WORK, domain=row_of(cells))], ALLOWED / part)

    small = kept(4)
    made = {part: kept(9_000, part) for part in range(1, 9)}  # more than one request compares
    assert all(kept(9_000, part) is plan for part, plan in made.items())
    assert kept(9_000, 9) is kept(9_000, 9)
    assert kept(9_000, 1) is not made[1]
    assert kept(4) is small


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_equal_tables_share_a_design_that_each_would_have_alone(name, neighboring, monkeypatch):
    def table(cells, *bounds, **more):
        how = {"cells": cells, "neighboring": neighboring, "caps": ROW_CAPS} | more
        return workload(columns(*bounds), **how) if bounds else count_of(**how)

    def count_of(**how):
        return workload((EVERYONE,), (Output("count", 0),), **how)

    works = [table(2), table(3), table(3), table(40), table(4, (0, 9)), table(5, (0, 9))]
    works += [table(6, (0, 1), (0, 7)), table(9, (0, 1), (0, 7)), table(9, caps=Caps(4, 3, 2))]
    made = _calibrate(MECHANISMS[name], works, ALLOWED)
    with monkeypatch.context() as patch:
        patch.setattr(type(WORK), "__hash__", object.__hash__)
        patch.setattr(type(WORK), "__eq__", object.__eq__)
        alone = _calibrate(MECHANISMS[name], works, ALLOWED)
        apart = [alone[work] for work in works if alone]
    for work, own in zip(works, apart, strict=bool(apart)):
        mine = made[work]
        assert (mine.scales, mine.deviations) == (own.scales, own.deviations)
        assert (mine.variance, mine.predictions) == (own.variance, own.predictions)
    assert len(made) == 8 * bool(apart)  # two are equal
