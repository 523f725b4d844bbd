"""Releases under other names: what they say of themselves, and which names are refused."""

import pytest
from support.publishing import released

import dpframe as dpf
from dpframe.errors import CallError, QueryError


def test_names_change_wherever_they_are_said():
    frame = released("denoised")
    made = frame.dp.rename({"count": "flights"}, levels={"zone": "borough"})
    assert list(made.columns) == ["flights", "flights_denoised"]
    assert list(made.index.names) == ["borough"] and list(frame.index.names) == ["zone"]
    assert made.dp.certificate.columns[0].name == "flights"
    assert list(made.dp.interval().columns) == ["flights_low", "flights_high"]
    assert dpf.verify(made, against=frame)


@pytest.mark.parametrize(
    ("names", "levels", "message"),
    [
        ({"fee": "x"}, None, "columns must name columns"),
        ({"fare": "flights"}, None, "'flights' would be the name of two"),
        ({"fare": "zone"}, None, "'zone' would be the name of two"),
        ({"fare": 1}, None, "columns of 'fare' must be texts"),
        ({"fare": ""}, None, "columns of 'fare' must be texts"),
        ({"fare": "\ud800"}, None, "columns of 'fare' must be texts"),
        (None, {"day": "x"}, "levels must be among"),
        (str.upper, None, r"columns must be a dict .* such as \{'count': 'trips'\}"),
        (["x"], None, r"columns must be a dict .* got columns=\['x'\]"),
        (None, "x", "levels must be a dict"),
        ({"paid": "flights", "flights": "paid"}, None, "exchanges 'paid' and 'flights'"),
        ({"paid": "zone"}, {"zone": "paid"}, "exchanges 'paid' and 'zone'"),
    ],
)
def test_names_are_checked(names, levels, message):
    with pytest.raises(QueryError, match=message):
        released("several").dp.rename(names, levels=levels)


def test_denoised_columns_have_no_names_of_their_own():
    with pytest.raises(QueryError, match="Rename that"):
        released("denoised").dp.rename({"count_denoised": "best"})


def test_levels_are_not_exchanged():
    frame = released("two keys")
    with pytest.raises(QueryError, match=r"exchanges 'zone' and 'day' .* move nothing"):
        dpf.rename(frame, levels={"zone": "day", "day": "zone"})


def test_names_that_become_free_are_taken():
    frame = released("several").dp.rename({"flights": "n", "paid": "flights", "fare": "fare"})
    assert list(frame.columns) == ["n", "flights", "total", "fare"]
    assert [part.where for part in frame.dp.certificate.columns[:2]] == [None, "paid"]


@pytest.mark.parametrize("new", ["paid_percent", "paid_low", "flights_percent"])
def test_no_released_column_reads_as_a_computed_one(new):
    frame = released("several")
    assert new in frame.dp.rename({"flights": new}).columns
    with pytest.raises(QueryError, match=f"{new!r} would read as a column that was computed"):
        frame.dp.percent("flights", join=True).dp.rename({"flights": new})


@pytest.mark.parametrize("call", [dpf.rename, lambda frame, **new: frame.dp.rename(**new)])
def test_keys_are_not_renamed(call):
    with pytest.raises(CallError, match=r"'index'\. Keys stay .* before it is declared"):
        call(released("several"), index={"A": "Z"})


def test_names_of_keys_after_unstack_are_not_exchanged():
    wide = released("two keys").unstack("day")
    assert list(wide.dp.rename({0: "Monday", 1: "Tuesday"}).columns) == ["Monday", "Tuesday", 2]
    names = wide.dp.rename({0: "a", 1: "b"})
    with pytest.raises(QueryError, match="exchanges 'a' and 'b'"):
        names.dp.rename({"a": "b", "b": "a"})
