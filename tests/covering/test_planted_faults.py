"""Faults that are planted between features are found by the cases that hold their features."""

from functools import cache

import pytest
from support.covering import RefusedError, cases_of
from support.feature_runs import ask, refusal_of, unchecked
from support.features import ARRAYS
from support.planted_faults import FOUND_BEFORE, PLANTED, PlantedFault

import dpframe as dpf

SEED = 1
DEEPER = {
    "one staircase for tables of any size": "stairs",
    "dropped rows are always there": "one cell",
    "dropped rows meet every condition": "one cell",
}
"""Faults that pairs of features do not find, and the arrays that do."""

SLOW = {
    "exclusive parts leave margins",
    "laplace noise of replaced units too narrow",
    "rows of capped units are always there",
    "files are read without the cap on groups",
    *DEEPER,
}


@cache
def cases(name):
    return cases_of(*ARRAYS[name], SEED)


def is_found(fault: PlantedFault, name):
    """Whether a case of an array, of those in which the fault can show, is wrong with it."""
    with unchecked(), fault.planted():
        return any(_is_wrong(case) for case in cases(name) if fault.may_show(case))


def _is_wrong(case):
    try:
        return ask(case).is_wrong
    except RefusedError:
        return False
    except dpf.errors.DPFrameError:  # a refusal that is not known
        return True


UNCHARGED = {
    "dropped rows meet every condition",
    "units of two columns are capped by the first",
    "conditions of queries replace that of the part",
    "joined tables read the outputs of the first",
    "files are read without the cap on groups",
}
"""Faults of what is read and decoded: what a plan charges is right."""


CHARGED_TOO_LITTLE = {
    **DEEPER,
    "one design for tables of other caps": "stairs",
    "steep stairs count half": "stairs",
}
"""The arrays in which faults charge too little: in the pair, tables of larger caps come first."""


def each_fault(*left_out):
    faults = (fault for fault in (*FOUND_BEFORE, *PLANTED) if fault.name not in left_out)
    for fault in faults:
        marks = [pytest.mark.full] if fault.name in SLOW else []
        yield pytest.param(fault, id=fault.name, marks=marks)


@pytest.mark.parametrize("fault", [*each_fault()])
def test_a_fault_between_features_is_found(fault):
    assert is_found(fault, DEEPER.get(fault.name, "pairs"))


@pytest.mark.parametrize("fault", [*each_fault(*UNCHARGED)])
def test_a_fault_between_features_is_refused_before_it_is_charged(fault):
    shown = filter(fault.may_show, cases(CHARGED_TOO_LITTLE.get(fault.name, "pairs")))
    with fault.planted():
        assert any(map(_is_refused_by_the_check, shown))


def _is_refused_by_the_check(case):
    try:
        return "refused its own plan" in refusal_of(case)
    except (AssertionError, ZeroDivisionError):
        return False
