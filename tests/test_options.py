"""Keywords that calls share are told once, and every public signature repeats them."""

import inspect
from collections.abc import Hashable
from dataclasses import fields

import pytest

import dpframe as dpf
from dpframe.options import FRONT, RARE, Aim, ChosenRows, GivenBounds, Mechanisms, Memo, Spending
from dpframe.privacy.amounts import AMOUNTS, Amount
from dpframe.queries.searches import DiscoveryMechanism

QUERIES = (
    "count rate sum mean var std cov corr slope regression histogram ranges quantile units "
    "aggregate"
).split()
SEARCHES = ["discover", "suggest_caps", "suggest_bounds"]
RELEASED_AT_ONCE = [*QUERIES, "margins", *SEARCHES]
PART_OF = {  # fields that a call leaves out, since they say nothing there
    "margins": {"max_groups", "max_rows_per_group"},
    "discover": {"keys", "other", "max_rows", "max_rows_per_group", "denoise", "weight"},
    "suggest_caps": {field.name for field in fields(ChosenRows)} | {"denoise"},
    "suggest_bounds": {
        "other",
        "max_rows",
        "max_groups",
        "max_rows_per_group",
        "denoise",
        "weight",
    },
}
OTHER_TYPES = {
    ("discover", "mechanism"): DiscoveryMechanism,
    **dict.fromkeys([("release", "mechanism"), ("plan", "mechanism")], Mechanisms),
}
OTHERS = {"weights": (Hashable, None), "bounds": (GivenBounds, None), "level": (float, 0.95)}
"""Keywords that several queries have beside those of a family, with type and default."""


def drift(call, families, without=()):
    """List how a signature differs from the families that it repeats."""
    parameters = inspect.signature(call).parameters
    named = [field for family in families for field in fields(family) if field.name not in without]
    types = {name: kind for (called, name), kind in OTHER_TYPES.items() if called == call.__name__}
    faults = []
    for field in named:
        parameter = parameters.get(field.name)
        if parameter is None:
            faults.append(f"lacks {field.name}")
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            faults.append(f"{field.name} by position")
        if parameter.default != field.default:
            faults.append(f"{field.name}={parameter.default!r}")
        if parameter.annotation != types.get(field.name, field.type):
            faults.append(f"{field.name}: {parameter.annotation}")
    order = [field.name for field in named]
    if [name for name in parameters if name in order] != [n for n in order if n in parameters]:
        faults.append("another order")
    faults += [f"takes {name}" for name in without if name in parameters]
    for name, (kind, default) in OTHERS.items():
        if name in parameters and call.__name__ in QUERIES:
            shown = parameters[name]
            if (shown.annotation, shown.default) != (kind, default):
                faults.append(f"{name}: {shown}")
    return faults


@pytest.mark.parametrize("name", [*QUERIES, "margins"])
def test_descriptions_repeat_how_rows_are_chosen(name):
    assert drift(getattr(dpf, name), [ChosenRows], PART_OF.get(name, ())) == []


@pytest.mark.parametrize("name", RELEASED_AT_ONCE)
def test_methods_repeat_all_three_families_but_what_is_rare(name):
    without = {*RARE, *PART_OF.get(name, ())}
    assert drift(getattr(dpf.DPAccessor, name), [ChosenRows, Spending, Memo], without) == []


@pytest.mark.parametrize("call", [dpf.release, dpf.DPAccessor.release])
def test_release_takes_all_of_the_amount_and_of_the_memo(call):
    assert drift(call, [Spending, Aim, Memo]) == []


def test_plans_take_all_of_the_amount_and_of_the_aim():
    assert drift(dpf.DPAccessor.plan, [Spending, Aim]) == []


@pytest.mark.parametrize("name", [*QUERIES, "margins", *SEARCHES, "declare", "release"])
def test_methods_and_functions_differ_in_what_is_released_alone(name):
    function = inspect.signature(getattr(dpf, name)).parameters
    method = inspect.signature(getattr(dpf.DPAccessor, name)).parameters
    rare = {"n_weight", "objective", "frame", "queries", "weight"}
    shown = [function[label] for label in function if label not in rare]
    own = {"self", "query", "named"} if name == "release" else {"self", "named"}
    added = [] if name in ("declare", "release") else FRONT
    repeated = [method[label] for label in method if label not in {*own, *added}]
    assert [(p.name, p.default, p.annotation) for p in repeated] == [
        (p.name, p.default, p.annotation) for p in shown
    ] or name == "quantile"
    assert [p.name for p in repeated] == [p.name for p in shown]


def short(
    by=None,
    *,
    keys=None,
    where: str | None = None,
    epsilon: Amount | None = 1.0,
    delta: str | None = None,
    mu: Amount | None = None,
):
    """Planted: an order, types, a default, a rare keyword, and many that are missing."""


def test_planted_drifts_are_found():
    faults = drift(short, [ChosenRows, Spending, Memo], RARE)
    assert {"lacks share", "lacks max_rows", "another order", "epsilon=1.0", "takes mu"} <= {
        *faults
    }
    assert any(fault.startswith("delta: ") for fault in faults)
    assert any(fault.startswith("keys: ") for fault in faults)
    assert drift(dpf.DPAccessor.count, [ChosenRows, Spending], RARE) == []
    assert drift(lambda where=None: None, [ChosenRows])[:2] == [
        "where by position",
        f"where: {inspect._empty}",
    ]


def test_a_mean_has_no_more_keywords_than_a_reader_can_look_over():
    assert len(inspect.signature(dpf.DPAccessor.mean).parameters) - 1 <= 20


def test_amounts_are_those_of_the_family():
    assert [field.name for field in fields(Spending)][: len(AMOUNTS)] == [*AMOUNTS]


@pytest.mark.parametrize("name", ["mu", "rho", "graph"])
def test_what_left_the_front_row_says_where_it_went(name):
    with pytest.raises(
        dpf.errors.CallError, match=rf"\.dp\.release\(dpf\.count\(\.\.\.\), {name}="
    ):
        dpf.DPAccessor.count(None, **{name: 1})


@pytest.mark.parametrize("name", ["n_weight", "objective"])
def test_what_a_query_takes_is_given_to_the_query(name):
    frame = dpf.DPAccessor(None)
    for called in ("sum", "aggregate"):
        words = rf"\.dp\.release\(dpf\.{called}\(\.\.\., {name}=\.\.\.\), epsilon=\.\.\.\)"
        with pytest.raises(dpf.errors.CallError, match=words):
            getattr(frame, called)("fare", **{name: 1})
