"""Sorted, cut and chosen rows keep their intervals and their certificate, of any kind of frame."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from support.publishing import KINDS, STEPS, ZONES, is_refused, made, released

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError, UnknownColumnError

SOME = ["several", "histogram by key", "rate", "variance", "correlated"]
ROWS = ["sort_values", "head", "tail", "select"]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def frame(kind):
    return released(kind)


def same(one, other):
    pd.testing.assert_frame_equal(one, other.loc[one.index, list(one.columns)])


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.sampled(every=3)
def test_every_kind_of_frame_keeps_its_certificate(kind, frame, step):
    if is_refused(kind, step):
        with pytest.raises(QueryError, match=r"no numbers to round|cannot say by its size"):
            STEPS[step](frame)
        return
    made = STEPS[step](frame)
    certificate = dpf.verify(made)
    assert certificate.state == "post-processed" and certificate.steps[-1].step == step
    assert certificate.release_id == frame.dp.certificate.release_id
    assert frame.dp.certificate.state in ("released", "post-processed")  # it is left as it was
    dpf.schema(made).validate(made)
    assert dpf.replay(made, frame).equals(made)


@pytest.mark.parametrize("step", ROWS)
def test_rows_keep_values_errors_and_intervals(frame, step):
    made = STEPS[step](frame)
    assert len(made) == (len(frame) if step == "sort_values" else min(len(made), len(frame)))
    same(made, frame)
    for simultaneous in (False, True):
        wanted = frame.dp.interval(0.9, simultaneous=simultaneous)
        same(made.dp.interval(0.9, simultaneous=simultaneous), wanted)
    same(made.dp.std_error, frame.dp.std_error)


def test_rows_are_those_that_pandas_takes():
    frame = released("several")
    by = ["paid", "flights"]
    assert frame.dp.sort_values(by, ascending=[False, True]).equals(
        frame.sort_values(by, ascending=[False, True])
    )
    assert frame.dp.sort_values("zone", ascending=False).equals(frame.iloc[::-1])
    assert frame.dp.head(3).equals(frame.head(3)) and frame.dp.tail(3).equals(frame.tail(3))
    assert frame.dp.head(0).equals(frame.head(0)) and frame.dp.tail(0).equals(frame.tail(0))
    assert frame.dp.tail(99).equals(frame)
    assert frame.dp.select("zone in ['B', 'A'] and total > -1e9").equals(frame.loc[["A", "B"]])
    assert frame.dp.select(keys=["D", "A"]).equals(frame.loc[["A", "D"]])
    assert frame.dp.select("flights > 0", columns=["fare", "paid"]).equals(frame[["fare", "paid"]])
    assert frame.dp.select(columns="fare").equals(frame[["fare"]])
    assert dpf.head(frame, 1).dp.certificate.steps == frame.dp.head(1).dp.certificate.steps


def test_rows_of_several_keys_are_chosen_by_level_or_by_tuples():
    frame = released("two keys")
    some = frame.dp.select(keys={"zone": ["C", "A"], "day": [2]})
    assert list(some.index) == [("A", 2), ("C", 2)]
    assert some.equals(frame.dp.select(keys=[("C", 2), ("A", 2)]))
    assert some.equals(frame.dp.select("day == 2", keys={"zone": ["A", "C"]}))


def test_intervals_that_hold_at_once_do_so_for_rows_chosen_afterwards():
    """A quarter of the rows would have narrower ones, and be chosen for their noise."""
    frame = released("several")
    best = frame.dp.sort_values("flights", ascending=False).dp.select(columns="flights").dp.head(1)
    zone = best.index[0]
    at_once = frame.dp.interval(simultaneous=True).loc[zone, "flights_high"]
    assert best.dp.interval(simultaneous=True).loc[zone, "flights_high"] == at_once
    assert best.dp.interval().loc[zone, "flights_high"] < at_once


@pytest.mark.parametrize("steps", list(product(STEPS, STEPS)), ids="-".join)
@pytest.mark.parametrize("of", SOME)
@pytest.mark.sampled(every=16, full=10)
def test_steps_follow_each_other(of, steps):
    if is_refused(of, *steps):
        return
    frame = released(of)
    first, second = steps
    between = STEPS[first](frame)
    made = STEPS[second](between)
    assert [step.step for step in dpf.verify(made).steps] == [first, second]
    assert dpf.verify(made).steps[1].of == between.dp.certificate.digest
    bars, kept = made.dp.interval(), frame.dp.interval().loc[made.index].to_numpy(float)
    ends, own = bars.to_numpy(float, na_value=np.nan), made.iloc[:, : bars.shape[1] // 2]
    here = own.notna().to_numpy().repeat(2, axis=1)
    assert (np.isnan(ends) == ~here).all()
    assert (ends[:, ::2] <= kept[:, ::2] + 1e-9)[here[:, ::2]].all()
    assert (ends[:, 1::2] >= kept[:, 1::2] - 1e-9)[here[:, 1::2]].all()
    assert dpf.replay(made, frame).equals(made) and dpf.replay(made, between).equals(made)


WRONG = {
    "no such column": (lambda f: f.dp.sort_values("fee"), "by must name a column"),
    "no column": (lambda f: f.dp.sort_values([]), "at least one column"),
    "a direction too many": (
        lambda f: f.dp.sort_values("fare", ascending=[True, False]),
        "ascending must be",
    ),
    "a direction that is none": (
        lambda f: f.dp.sort_values("fare", ascending="no"),
        "ascending must",
    ),
    "a fraction of a row": (lambda f: f.dp.head(1.5), "n must be a whole number"),
    "less than no row": (lambda f: f.dp.tail(-1), "n must be a whole number"),
    "a truth": (lambda f: f.dp.head(True), "n must be a whole number"),
    "nothing": (lambda f: f.dp.select(), "needs a condition"),
    "a call": (lambda f: f.dp.select("fare.max() > 1"), "is a call"),
    "a key that is none": (lambda f: f.dp.select(keys=["A", "X"]), "'X' is no key of"),
    "a key alone": (lambda f: f.dp.select(keys="A"), "must be a list of keys"),
    "a level that is none": (
        lambda f: f.dp.select(keys={"day": [1]}),
        r"keys must be by \['zone'\]",
    ),
    "a list as key": (lambda f: f.dp.select(keys=[["A"]]), "is no key"),
    "no columns": (lambda f: f.dp.select(columns=[]), "must name some columns"),
    "a column twice": (lambda f: f.dp.select(columns=["fare", "fare"]), "each once"),
    "another column": (lambda f: f.dp.select(columns=["fee"]), "must name columns of this table"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_chosen_is_refused(name):
    call, message = WRONG[name]
    with pytest.raises(QueryError, match=message):
        call(released("several"))


def test_conditions_name_columns_and_levels_alone():
    with pytest.raises(UnknownColumnError, match=r"where names 'fee', and it can name .*'zone'"):
        released("several").dp.select("fee > 1")


def test_keys_of_several_kinds_have_no_order():
    keys = pd.Index([1, "A"], dtype=object)
    frame = made(dpf.count("zone", keys=keys))()
    with pytest.raises(QueryError, match="have no order"):
        frame.dp.sort_values("zone")
    assert len(frame.dp.sort_values("count")) == 2


def test_denoised_columns_stay_with_those_they_were_made_of():
    frame = released("denoised")
    with pytest.raises(QueryError, match="'count_denoised' without 'count'"):
        frame.dp.select(columns="count_denoised")
    assert list(frame.dp.select(columns="count").columns) == ["count"]
    by = frame.dp.sort_values("count_denoised").dp.select(columns=["count_denoised", "count"])
    assert list(by.columns) == ["count", "count_denoised"]
    assert dpf.replay(by, frame).equals(by)


def test_what_is_computed_from_all_rows_is_computed_before_rows_go():
    frame = released("several")
    few = frame.dp.head(2)
    with pytest.raises(QueryError, match=r"percent takes .* before head: .*by='year'"):
        few.dp.percent("flights")
    with pytest.raises(QueryError, match="denoise takes the table as it was before head"):
        few.dp.denoise()
    backwards = frame.dp.sort_values("zone", ascending=False)
    same(backwards.dp.percent("flights"), frame.dp.percent("flights"))
    same(few.dp.ratio("paid", "flights"), frame.dp.ratio("paid", "flights"))
    weights = pd.DataFrame({"flights": {"A": 1, "B": -1}})
    assert few.dp.combine(weights).equals(frame.dp.combine(weights))


@pytest.mark.parametrize("steps", [["head"], ["sort_values", "round"]])
def test_private_and_changed_frames_take_no_step(steps):
    frame = pd.DataFrame({"zone": ZONES})
    with pytest.raises(CertificateError, match="carries no certificate"):
        frame.dp.head()
    changed = released("several") + 1
    for step in steps:
        with pytest.raises(CertificateError, match="is not what its certificate was given for"):
            STEPS[step](changed)


def test_steps_of_another_release_are_told_apart():
    one, other = released("several"), released("several")
    with pytest.raises(CertificateError, match="do not lead from this release"):
        dpf.replay(one.dp.head(1), other)
    with pytest.raises(CertificateError, match="do not lead from this release"):
        dpf.replay(one, one.dp.head(1))
