"""Views of a column: right for each value, the same in every dtype, deaf to the other rows."""

import math
import zoneinfo
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.columns.times import instants, wall_times
from dpframe.columns.values import missing, numbers, split_categories, texts

NEW_YORK = zoneinfo.ZoneInfo("America/New_York")
DAY = 86_400_000_000


class Hostile:
    """Answers nothing."""

    def _refuse(self, *_):
        raise RuntimeError

    __eq__ = __ne__ = __lt__ = __float__ = __int__ = __index__ = __bool__ = _refuse
    __hash__ = __array__ = __len__ = __iter__ = __str__ = __repr__ = __class__ = property(_refuse)


class HostileFloat(float):
    __float__ = __eq__ = __ne__ = __lt__ = __hash__ = Hostile._refuse


class HostileInt(int):
    __float__ = __index__ = __eq__ = __ne__ = __lt__ = __hash__ = Hostile._refuse


class HostileText(str):
    __eq__ = __ne__ = __lt__ = __hash__ = __str__ = Hostile._refuse


class HostileTime(datetime):
    __sub__ = __eq__ = __hash__ = utcoffset = replace = Hostile._refuse


class HostileMeta(type):
    __eq__ = __hash__ = Hostile._refuse


class OfHostileType(metaclass=HostileMeta):
    pass


class Level(IntEnum):
    HIGH = 3


def cell(value):
    """A column of this object alone."""
    column = np.empty(1, dtype=object)
    column[0] = value
    return pd.Series(column, dtype=object)


HOSTILE = [
    Hostile(),
    OfHostileType(),
    HostileTime(2013, 1, 1),
    [1, 2],
    [],
    {"a": 1},
    {1},
    (1,),
    np.array([1.0, 2.0]),
    np.array(3.0),
    pd.Series([1]),
    b"3",
    1j,
    np.complex64(1 + 1j),
    complex(5, 1e-300),
    np.clongdouble(1) + np.clongdouble(1j) * np.finfo(np.longdouble).tiny,
    pd.Timedelta("1s"),
    timedelta(1),
    np.timedelta64(1, "s"),
    pd.Period("2013"),
    pd.Interval(0, 1),
    object,
]

NUMBERS = [
    (True, 1.0),
    (np.False_, 0.0),
    (3, 3.0),
    (2**53 + 1, 2.0**53),
    (2**53 + 3, 2.0**53 + 4),
    (10**400, math.inf),
    (-(10**400), -math.inf),
    (HostileInt(7), 7.0),
    (HostileInt(-(10**400)), -math.inf),
    (Level.HIGH, 3.0),
    (2.5, 2.5),
    (-math.inf, -math.inf),
    (HostileFloat(2.5), 2.5),
    (np.float32(0.1), 0.10000000149011612),
    (np.float16(65504), 65504.0),
    (np.longdouble("1e4000"), math.inf),
    (np.uint64(2**64 - 1), 2.0**64),
    (Decimal("0.1"), 0.1),
    (Decimal("1e999"), math.inf),
    (Decimal("-Infinity"), -math.inf),
    (Fraction(1, 3), 1 / 3),
    (Fraction(-(10**400), 3), -math.inf),
    (Fraction(10**400, 10**399), 10.0),
    (complex(2.5, -0.0), 2.5),
    (complex(-math.inf, 0), -math.inf),
    (np.complex64(0.1), 0.10000000149011612),
    (np.clongdouble("1e4000"), math.inf),
]
ABSENT = [
    None,
    math.nan,
    np.float32("nan"),
    np.longdouble("nan"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "s"),
    np.timedelta64("NaT", "s"),
    Decimal("NaN"),
    Decimal("sNaN"),
    complex(math.nan, 0),
    complex(5, math.nan),
    np.complex64(math.nan),
    np.clongdouble(complex(1, math.nan)),
    HostileFloat("nan"),
]
TIMES = [  # value, wall clock, UTC
    (datetime(1970, 1, 2), DAY, None),
    (datetime(1, 1, 1), -719_162 * DAY, None),
    (date(1970, 1, 2), DAY, None),
    (pd.Timestamp("1970-01-02 00:00:00.000001999"), DAY + 1, None),
    (pd.Timestamp("1969-12-31 23:59:59.999999999"), -1, None),
    (np.datetime64("1970-01-02"), DAY, None),
    (np.datetime64("1971"), 365 * DAY, None),
    (np.datetime64(3, "ps"), 0, None),
    (np.datetime64(2, ("s", 25)), 50_000_000, None),
    (np.datetime64(2**62, "s"), 2**62 // 10**6 * 10**6, None),
    (np.datetime64(-(2**62), "ms"), -(2**62 // 1000) * 1000, None),
    (datetime(1970, 1, 2, tzinfo=UTC), DAY, DAY),
    (datetime(1970, 1, 2, tzinfo=timezone(timedelta(hours=2))), DAY, DAY - DAY // 12),
    (pd.Timestamp("1970-01-02", tz="America/New_York"), DAY, DAY + 5 * DAY // 24),
    (datetime(1970, 7, 2, tzinfo=NEW_YORK), 182 * DAY, 182 * DAY + 4 * DAY // 24),
    (datetime(9999, 12, 31, tzinfo=UTC), 2_932_896 * DAY, 2_932_896 * DAY),
]
TEXTS = ["", "a", "é", "nan", "3", "\ud800", "\0", np.str_("b"), HostileText("c")]


def each(values):
    """Parametrize by position: hostile objects must not meet the test runner."""
    rows = enumerate(values)
    return pytest.mark.parametrize(
        "row", [pytest.param(row, id=f"{type(value).__name__}{row}") for row, value in rows]
    )


@each([value for value, _, _ in TIMES])
def test_times_are_counted(row):
    value, wall, utc = TIMES[row]
    assert [part.tolist() for part in wall_times(cell(value))] == [[wall], [True]]
    assert [part.tolist() for part in instants(cell(value))] == [[utc or 0], [utc is not None]]
    assert np.isnan(numbers(cell(value))).all()


def test_codes_cost_no_more_than_the_rows():
    column = pd.Series(pd.Categorical.from_codes([7, -1, 900], categories=range(1000)))
    parts = split_categories(column)
    assert parts.values.tolist() == [7, 900]
    assert parts.codes.tolist() == [0, -1, 1]
    assert split_categories(pd.Series([1])) is None


CELLS = [*HOSTILE, *ABSENT, *TEXTS, *(row[0] for row in NUMBERS), *(row[0] for row in TIMES)]


@given(st.lists(st.integers(0, len(CELLS) - 1), min_size=1, max_size=8))
def test_no_row_sees_the_others(chosen):
    cells = [CELLS[position] for position in chosen]
    column = np.empty(len(cells), dtype=object)
    for row, value in enumerate(cells):
        column[row] = value
    column = pd.Series(column, dtype=object)
    for view in (numbers, texts, missing, wall_times, instants):
        together = np.atleast_2d(view(column))
        alone = [np.atleast_2d(view(cell(value))) for value in cells]
        np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))
