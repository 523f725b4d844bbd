"""Choosing rows of a release by what no key can equal is refused, with the kinds and a way out."""

import re

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import DPFrameWarning, QueryError

MONTHS = pd.period_range("1997-11", periods=4, freq="M")
YEARS = [1997, 1998]
DAYS = pd.date_range("2024-01-01", periods=3)
LOTS = {"epsilon": 1e3, "privacy_unit": dpf.EACH_ROW}


def released(by, keys, values):
    frame = pd.DataFrame({**values, "x": 1.0})
    return frame.dp.release(dpf.count(by, keys=keys), **LOTS)


@pytest.fixture
def months():
    return released("month", MONTHS, {"month": MONTHS})


@pytest.fixture
def years():
    keys = {"year": YEARS, "zone": ["A", "B"]}
    return released(["year", "zone"], keys, {"year": YEARS, "zone": ["A", "B"]})


@pytest.fixture
def days():
    return released("day", DAYS, {"day": DAYS})


@pytest.fixture
def bins():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    return frame.dp.histogram("x", [0, 1.5, 3], **LOTS)


CONDITIONS = {
    "a text for Periods": (
        "months",
        "month >= '1998-01'",
        "'1998-01' is a text, and the keys of 'month' are monthly Periods: no row can match. "
        "Choose by keys: keys={'month': [Period('1997-11', 'M')]}.",
    ),
    "a number for Periods": ("months", "month == 1998", "1998 is a number, and the keys of"),
    "a text for integers": (
        "years",
        "year == '1997'",
        "'1997' is a text, and the keys of 'year' are integers: no row can match. Write numbers",
    ),
    "on the left": ("years", "'1997' == year", "are integers"),
    "one of a list": ("years", "year in [1997, '1998']", "'1998' is a text"),
    "not equal": ("years", "zone == 'A' and not (year != '1997')", "'1997' is a text"),
    "a number for texts": ("years", "zone == 4", "Write texts in quotes, '4'"),
    "a text for counts": ("years", "count > '5'", "the values of 'count' are integers"),
    "a text for times": ("days", "day >= 'Jan 2, 2024'", "Write times as '2024-01-01T00:00:00'"),
    "an instant for days": ("days", "day == '2024-01-02T00:00Z'", "are Timestamps"),
    "a number for bins": ("bins", "x > 1", "are Intervals: no row can match. Choose by keys"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_constant_of_a_kind_that_no_key_has_is_refused(name, request):
    table, where, message = CONDITIONS[name]
    with pytest.raises(QueryError, match=re.escape(message)):
        request.getfixturevalue(table).dp.select(where)


def test_constants_of_the_kind_of_keys_choose_rows(months, years, days):
    assert len(years.dp.select("year == 1997 and zone != 'C'")) == 2
    assert len(years.dp.select("count > 0 or count <= 0")) == 4
    assert list(days.dp.select("day >= '2024-01-02'").index) == list(DAYS[1:])
    mixed = released("key", pd.Index([1, "A"], dtype=object), {"key": pd.Series([1, "A"])})
    assert list(mixed.dp.select("key in [1, 'B']").index) == [1]
    hidden = years.dp.suppress(below=1e9)
    with pytest.warns(DPFrameWarning, match="no row is left"):
        assert hidden.dp.select("count > 5").empty  # no value says of which kind it is
    assert len(months.dp.select(keys=MONTHS[2:])) == 2


KEYS = {
    "texts for Periods": (
        "months",
        ["1997-11"],
        "'1997-11' is no key of 'month': it is a text, and those are monthly Periods, such as "
        "Period('1997-11', 'M').",
    ),
    "texts for integers by level": (
        "years",
        {"year": ["1997"]},
        "those are integers, such as 1997.",
    ),
    "a key of the kind": ("years", {"year": [1999]}, "1999 is no key of 'year'."),
    "keys of one of two levels": ("years", [1997], "Use keys={'year': [1997]}."),
    "keys of no level": ("years", [1999], "Give tuples, one key for each level, or a dict"),
    "a list": ("years", {"year": [[1997]]}, "it is of type list, and those are integers"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_that_there_are_not_are_named_with_their_kind(name, request):
    table, keys, message = KEYS[name]
    with pytest.raises(QueryError, match=re.escape(message)):
        dpf.select(request.getfixturevalue(table), keys=keys)


def test_a_selection_that_leaves_no_row_warns_at_the_line_of_the_caller(years):
    with pytest.warns(DPFrameWarning, match="select: no row is left") as caught:
        empty = years.dp.select("count > 1e9")
    assert caught[0].filename == __file__
    assert empty.empty and dpf.verify(empty).steps[-1].step == "select"
    assert empty.dp.select("count > 1e9").empty  # there was none before
