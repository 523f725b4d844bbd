"""Equal demands get the plan that was made before; others do not."""

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from support.designing import EVERYONE, columns, counting, row_of, workload

from dpframe.plan.designs import _calibrate, _sketch, calibrate, sketch
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.sensitivity import Reach
from dpframe.strategies import MECHANISMS
from dpframe.strategies.base import Output, PublicRows, Source
from dpframe.strategies.domain import Dimension, Domain

WORK = workload(columns((-5, 100), (0, 7)), cells=4, caps=Caps(6, 2, None))
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
    "window": "expanding",
    "exclusive": ((1, 2),),
    "weight": 3,
}


def made_for(mechanism, work, allowed):
    made = sketch(mechanism, work, allowed, beside=False)
    return None if made is None else calibrate(made, allowed)


def test_every_part_of_a_demand_counts():
    assert set(OTHER) == {field.name for field in fields(WORK)}
    made = made_for("box", WORK, ALLOWED)
    for name, value in OTHER.items():
        if name != "most":  # it is for zeros and ones
            other = replace(WORK, **{name: value})
            assert made_for("box", other, ALLOWED) is not made
    few = [made_for("box", counting(3, most=most), ALLOWED) for most in (1, 2)]
    assert few[0] is not few[1]
    assert made_for("box", WORK, ALLOWED / 2) is not made
    assert made_for("laplace", WORK, ALLOWED) is not made


PARTS = {
    Source: {"lower": -1, "upper": 3, "optional": True, "others": ((0, 1),), "degree": 4},
    Output: {
        "name": "mean",
        "source": 2,
        "sampled": True,
        "of_rows": 1.5,
        "weight": 2.0,
        "mirrored": True,
        "among": (1, 1),
    },
    Domain: {
        "dimensions": (Dimension(5, ordered=False),),
        "chosen": 2,
        "margins": ((0,),),
        "weights": (2.0,),
        "possible": b"12345678",
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


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_kept_is_what_would_be_made(name):
    units = workload(
        (EVERYONE,), (Output("count", 0),), cells=9, caps=Caps(4, 3, 2), has_units=True
    )
    for work in (WORK, counting(3), units):
        for _ in range(2):
            mine, other = made_for(name, work, ALLOWED), _sketch(name, work, ALLOWED, beside=False)
            assert (mine is None) == (other is None)
            if mine is not None:
                theirs = _calibrate(other, ALLOWED)
                assert type(mine.design) is type(theirs.design)
                assert (mine.law, mine.scales) == (theirs.law, theirs.scales)
                assert (mine.deviations, mine.variance) == (theirs.deviations, theirs.variance)
                assert mine.predictions == theirs.predictions
