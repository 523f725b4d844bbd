"""Keys of every kind that can be released."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

DAYS = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])
KEYS = {
    "tuples": [("a", 1), ("b", 2), ("a", 2)],
    "decimals": [Decimal("1.50"), Decimal(2), Decimal("-0.1")],
    "fractions": [Fraction(1, 3), Fraction(2), Fraction(-1, 7)],
    "dates": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
    "times of day": [datetime.time(hour) for hour in (1, 2, 3)],
    "bytes": [b"a", b"\xff", b""],
    "long integers": [10**30, -(10**30), 1],
    "numbers and texts": [1, "1", "x"],
    "booleans": [True, False],
    "floats": [0.5, -0.0, np.inf],
    "whole floats": [0.0, 1.0, 2.5],
    "categories": pd.Categorical(["B", "A"], ["B", "A", "C"], ordered=True),
    "times": DAYS,
    "zoned times": DAYS.tz_localize("Asia/Tokyo"),
    "months": pd.period_range("2020-01", periods=3, freq="M"),
    "durations": pd.to_timedelta(["1D", "2D", "3s"]),
    "bins": pd.interval_range(0.0, 3.0, periods=3),
    "bins far out": pd.IntervalIndex.from_breaks([-np.inf, 0.0, 1e100, np.inf], closed="left"),
    "bins of zoned times": pd.interval_range(*DAYS.tz_localize("Asia/Tokyo")[[0, 2]], periods=2),
    "bins of days": pd.interval_range(DAYS[0], DAYS[2], periods=2),
    "nullable": pd.array([1, 2, 3], dtype="Int64"),
    "texts that a terminal obeys": ["\x1b[31m", "\u202e", "a\nb", "", "<b>"],
}
