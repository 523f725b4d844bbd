"""Where keys stand: on scales of time or numbers where all agree, else one by one."""

import datetime

import numpy as np
import pandas as pd
import pytest

from dpframe.plotting.frame import place, text

pytest.importorskip("matplotlib")

DAY = pd.Timestamp("2021-03-01")


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["A"],
        [None, DAY],
        [pd.NaT, DAY],
        [DAY, DAY.tz_localize("UTC")],
        [DAY, pd.Timedelta(1)],
        [datetime.time(1), datetime.time(2)],
        [pd.Interval(0, 1), pd.Interval(DAY, DAY)],
        [1, 2],  # not asked for
    ],
)
def test_other_keys_have_no_scale(keys):
    assert len(place(keys).labels) == len(keys)


@pytest.mark.parametrize("keys", [[True, False], [1, "A"], [1, np.nan], [1, 1j]])
def test_what_is_not_a_number_has_no_scale_of_numbers(keys):
    assert place(keys, numbers=True).labels is not None


def test_numbers_stand_on_a_scale_if_that_is_asked_for():
    places = place([np.int64(3), 1, 2.5], numbers=True)
    assert places.at.tolist() == [3, 1, 2.5]
    assert places.room == pytest.approx(0.8 * 0.5)


@pytest.mark.parametrize(
    "keys",
    [
        [pd.Interval(0, 20), pd.Interval(10, 30)],
        [pd.Interval(0, 1), pd.Interval(DAY, DAY)],
        [pd.Interval(DAY, DAY + pd.Timedelta(2)), pd.Interval(0, 1)],
        [pd.Interval(0, 1, "left"), pd.Interval(1, 2, "right")],
        [pd.Interval(-np.inf, 0), pd.Interval(0, 1)],
        [pd.Interval(3, 3, "both")],
    ],
)
def test_intervals_of_no_axis_are_no_bins(keys):
    assert place(keys, numbers=True).bins is None


def test_years_that_matplotlib_does_not_know_have_no_scale():
    far = pd.Timestamp(np.datetime64("20000-01-01", "s"))
    assert place([DAY, far]).labels is not None


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (DAY, "2021-03-01"),
        (DAY + pd.Timedelta("6h"), "2021-03-01 06:00:00"),
        (datetime.date(2021, 3, 1), "2021-03-01"),
        (pd.Period("2021-03", "M"), "2021-03"),
        (pd.Interval(DAY, DAY + pd.Timedelta("7D"), "left"), "[2021-03-01, 2021-03-08)"),
        (pd.Timedelta("2D"), "2 days"),
        (pd.Timedelta("90min"), "01:30:00"),
        (("A", 1, DAY), "A, 1, 2021-03-01"),
        ("a\u202eb\n", "a\\u202eb\\n"),
        ("half \ud800", "half \\ud800"),
        ("x" * 50 + "end of it", "x" * 26 + "\N{HORIZONTAL ELLIPSIS}" + "xxxxend of it"),
        (pd.Interval(0, 5), "(0, 5]"),
    ],
)
def test_labels_are_short_and_harmless(key, shown):
    assert text(key) == shown
