"""One total of every cell with staircase noise: stairs, scales and errors."""

from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest
from support.designing import EVERYONE, columns, counting, workload

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.errors import CalibrationError
from dpframe.plan.designs import scale_design, sketch
from dpframe.privacy.laws import STAIRCASE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.staircase import stairs_of
from dpframe.strategies import staircase
from dpframe.strategies.base import Output, Source

COUNT = (Output("count", 0),)
SUMS = {
    "a count": ((EVERYONE,), COUNT),
    "a filtered count": ((EVERYONE, Source(0, 0, optional=True)), (Output("count", 1),)),
    "a sum": (columns((0, 5)), None),
    "a sum of both signs": (columns((-2, 3)), None),
    "a sum that may miss": ((EVERYONE, Source(2, 3, optional=True)), None),
    "a far sum": (columns((4, 5)), None),
}


def made_for(name, cells, caps, neighboring, **more):
    sources, outputs = SUMS[name]
    work = workload(sources, outputs, cells=cells, caps=caps, neighboring=neighboring, **more)
    return staircase.design_beside(work, STAIRCASE)


def test_where_a_row_never_leaves_the_farthest_replacement_is_one_stair():
    made = made_for("a sum of both signs", 1, ROW_CAPS, "replace", always=True)
    assert (made.scales, made.stairs) == ((5.0,), 1)
    assert made_for("a count", 1, ROW_CAPS, "replace", always=True) is None  # it is public


def test_groups_count_where_rows_can_be_spread():
    spread = made_for("a count", 9, Caps(3, None, None), "add_remove")
    held = made_for("a count", 9, Caps(3, 1, None), "add_remove")
    assert (spread.stairs, held.stairs) == (3, 1)
    both = made_for("a count", 9, Caps(3, 1, None), "replace")
    assert (both.scales, both.stairs) == ((3.0,), 2)


@pytest.mark.parametrize(
    "work",
    [
        counting(2),
        workload(columns((0, 5)), (*COUNT, Output("sum", 1))),
        workload(columns((0, 5)), (Output("mean", 1),)),
        workload(columns((3, 9)), rows_weight=1.0),
        workload((EVERYONE,), COUNT, cells=4, ranges=True),
        workload(columns((0, 2**41))),
    ],
    ids=["two sums", "count and sum", "a mean", "rows that matter", "ranges", "vast"],
)
def test_where_several_totals_move_there_is_no_design(work):
    assert staircase.design_beside(work, STAIRCASE) is None
    assert sketch("staircase", work, Fraction(3), beside=False) is None


@pytest.mark.parametrize("epsilon", [Fraction(3, 2), Fraction(3), Fraction(5)])
def test_a_table_uses_the_epsilon_and_no_more(epsilon):
    works = [workload(columns((0, 20))), workload((EVERYONE,), COUNT, cells=4, caps=Caps(6, 1))]
    for work, period in zip(works, (20, 6), strict=True):
        design = staircase.design(work, STAIRCASE)
        (scale,) = scale_design(design, STAIRCASE, epsilon, exact=True)
        cost = design.stairs * STAIRCASE.loss(int(design.scales[0]), scale)
        assert epsilon * (1 - Fraction(1, 10**9)) < cost <= epsilon
        assert stairs_of(scale).period == period
    with pytest.raises(CalibrationError, match="Laplace"):
        scale_design(design, STAIRCASE, Fraction(1, 100), exact=True)


def test_a_sum_is_as_near_as_it_can_be():
    # standard deviations in widths at epsilon 3 and 5, of the continuous law .391 and .172
    work = workload(columns((0, 1000)))
    for epsilon, ours, theirs in ((3, 0.391, 0.471), (5, 0.172, 0.283)):
        for name, expected in (("staircase", ours), ("laplace", theirs)):
            made = sketch(name, work, Fraction(epsilon), beside=False)
            assert made.deviations[0] / 1000 == pytest.approx(expected, abs=6e-4)


SHARED = {
    "by columns and in all": {"a": dpf.count("g"), "b": dpf.count()},
    "of several sizes": {"a": dpf.count("g"), "b": dpf.count("h"), "c": dpf.count(["g", "h"])},
}


def capped(rows):
    """One unit with a row in each group, and another one."""
    frame = pd.DataFrame({"u": [1] * rows + [2], "g": [*range(rows), 0], "h": 0})
    frame.loc[0, "h"] = 1
    return frame


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["staircase", "auto"])
@pytest.mark.parametrize("epsilon", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("tables", SHARED)
@pytest.mark.parametrize("rows", [4, 10])
def test_tables_of_units_with_many_rows_lose_no_more_than_is_charged(
    rows, tables, epsilon, mechanism, neighboring
):
    def released(frame):
        facts = {"privacy_unit": "u", "max_rows": rows, "neighboring": neighboring}
        frame.dp.declare(keys={"g": range(rows), "h": [0, 1]}, **facts)
        frame.dp.release(SHARED[tables], epsilon=epsilon, mechanism=mechanism)

    frame = capped(rows)
    with dpt.record() as run:
        released(frame)
    other = frame.assign(g=0) if neighboring == "replace" else frame[frame["u"] == 2]
    with run.replay():
        released(other)


def test_a_design_is_of_one_block_that_moves():
    made = made_for("a count", 3, Caps(2), "add_remove")
    with pytest.raises(ValueError, match="one block"):
        replace(made, scales=(1.0, 2.0))


@pytest.mark.parametrize(
    "query",
    [dpf.cov("x", "y"), dpf.corr("x", "y", "g", sampling=True), dpf.slope("x", "y"), dpf.var("x")],
)
def test_integers_that_move_together_get_none(query):
    """A move by a part of the period costs a whole stair: what moves several pays for each."""
    frame = pd.DataFrame({"x": [1.0], "y": [1.0]}).assign(g="a")
    facts = {"bounds": {"x": (0, 1), "y": (0, 1)}, "keys": {"g": ["a", "b"]}}
    frame.dp.declare(**facts, privacy_unit=dpf.EACH_ROW)
    assert "staircase" not in set(frame.dp.plan(query, epsilon=5).table["mechanism"])
    with pytest.raises(CalibrationError, match="does not apply"):
        frame.dp.plan(query, epsilon=5, mechanism="staircase")
