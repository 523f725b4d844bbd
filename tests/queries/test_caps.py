"""Caps that are given with a query take the place of the declared ones, in it alone."""

import pandas as pd
import pytest
from support.plans import plan_of
from support.raising import raises

import dpframe as dpf
from dpframe.errors import DeclarationError, QueryError
from dpframe.privacy.neighbors import Caps

NEARLY_EXACT = {"epsilon": 1e7, "mechanism": "laplace"}
KINDS = {
    "count": lambda **caps: dpf.count("zone", **caps),
    "sum": lambda **caps: dpf.sum("fare", "zone", **caps),
    "mean": lambda **caps: dpf.mean("fare", "zone", **caps),
    "histogram": lambda **caps: dpf.histogram("fare", [0, 5, 10], "zone", **caps),
    "aggregate": lambda **caps: dpf.aggregate("zone", n=dpf.count(), **caps),
}


def made(**declared):
    # driver 1 has 4 rows in A and 2 in B, driver 2 has one in A
    frame = pd.DataFrame({"driver": [1] * 6 + [2], "zone": list("AAAABBA"), "fare": [2.0] * 7})
    facts = {"privacy_unit": "driver", "max_rows": 6} | declared
    frame.dp.declare(keys={"zone": ["A", "B", "C"]}, bounds={"fare": (0, 9)}, **facts)
    return frame


def scales(frame, query):
    plan = plan_of(frame, query, "laplace", epsilon=1)
    return plan.of(plan.tables[None]).scales


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("own", [{"max_rows": 3}, {"max_groups": 1, "max_rows_per_group": 2}])
def test_a_query_with_caps_is_one_on_a_frame_declared_with_them(name, own):
    asked, declared = KINDS[name](**own), KINDS[name]()
    here, there = made(max_groups=2), made(**{"max_groups": 2} | own)
    assert scales(here, asked) == scales(there, declared) != scales(here, declared)
    released = here.dp.release(asked, **NEARLY_EXACT)
    expected = there.dp.release(declared, **NEARLY_EXACT)
    assert released.dp.certificate.privacy_unit == expected.dp.certificate.privacy_unit


def test_caps_drop_rows_in_their_query_alone():
    released = made().dp.release(
        {"one": dpf.count("zone", max_rows_per_group=1), "all": dpf.count("zone")}, **NEARLY_EXACT
    )
    assert released["one"]["count"].tolist() == [2, 1, 0]
    assert released["all"]["count"].tolist() == [5, 2, 0]
    caps = [frame.dp.certificate.privacy_unit.caps for frame in released.values()]
    assert [(cap.max_rows, cap.max_rows_per_group) for cap in caps] == [(6, 1), (6, None)]


def test_units_are_in_as_many_groups_as_the_query_says():
    query = dpf.units("zone", max_groups=1)
    assert query.caps(Caps(rows=6)) == Caps(groups=1, rows_per_group=1)
    assert made().dp.release(query, **NEARLY_EXACT)["units"].sum() == 2
    assert made().dp.units("zone", **NEARLY_EXACT)["units"].sum() == 3


def test_queries_are_measured_as_one_where_their_caps_are_equal():
    queries = {
        "declared": dpf.count("zone"),
        "repeated": dpf.sum("fare", "zone", max_rows=6),
        "own": dpf.count("zone", max_rows=5),
        "own, too": dpf.mean("fare", "zone", max_rows=5),
    }
    tables = plan_of(made(), queries, "laplace", epsilon=1).tables
    one = {name: table.measured for name, table in tables.items()}
    assert one["declared"] == one["repeated"] != one["own"] == one["own, too"]


@pytest.mark.parametrize("unit", [None, dpf.EACH_ROW])
@pytest.mark.filterwarnings("ignore::dpframe.errors.DPFrameWarning")
def test_caps_without_a_unit_are_refused(unit):
    frame = made(privacy_unit=unit, max_rows=None)
    for query in (dpf.count(max_rows=1), dpf.units(max_groups=1)):
        with raises(DeclarationError, "privacy_unit"):
            frame.dp.release(query, epsilon=1)
        with raises(DeclarationError, "privacy_unit"):
            frame.dp.plan(query, epsilon=1)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2"])
@pytest.mark.parametrize("name", KINDS)
def test_caps_that_are_no_whole_numbers_are_refused(name, wrong):
    with raises(QueryError, "whole number", parameter="max_groups"):
        KINDS[name](max_groups=wrong)


def test_caps_of_a_part_of_an_aggregate_are_refused():
    with raises(QueryError, "caps", parameter="n"):
        dpf.aggregate("zone", n=dpf.count(max_rows=1))


@pytest.mark.parametrize("function", [dpf.count, dpf.units])
def test_a_misspelled_keyword_is_a_type_error(function):
    with raises(TypeError, "no keyword 'max_row'"):
        function(max_row=1)
    with raises(TypeError, "max_row"):
        made().dp.count(max_row=1, epsilon=1)
