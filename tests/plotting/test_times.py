"""Figures over time: keys, bins and released values that are times stand on axes of time."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.pictures import drawn, entries, heights, labels, segments, steps

from dpframe.errors import QueryError
from dpframe.plotting.frame import Scale

mpl.use("Agg")
from matplotlib import dates  # the backend comes first
from matplotlib import pyplot as plt
from support.raising import raises

DAYS = list(pd.date_range("2021-03-01", periods=6, freq="D"))


def visits(keys=DAYS):
    rows = np.arange(300)
    day = [keys[place] for place in rows * rows % 7 % len(keys)]
    return pd.DataFrame({"day": pd.Series(day), "zone": np.array(list("BA"))[rows % 3 % 2]})


def shown(axis):
    """Return the labels of ticks in view."""
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


def is_time(axis):
    return isinstance(axis.get_major_locator(), dates.AutoDateLocator)


NEW_YORK = [day.tz_localize("America/New_York") for day in DAYS]
BINS = list(pd.interval_range(pd.Timestamp("2021-03-01"), periods=6, freq="D", closed="left"))
IN_ZONE = list(pd.interval_range(NEW_YORK[0], periods=6, freq="D"))


@pytest.mark.parametrize(
    ("keys", "at", "zone"),
    [
        (DAYS, DAYS, None),
        ([day.date() for day in DAYS], DAYS, None),
        ([pd.Period(day, "D") for day in DAYS], DAYS, None),
        (list(pd.period_range("2021-01", periods=6, freq="M")), "months", None),
        (NEW_YORK, NEW_YORK, "America/New_York"),
        ([day.tz_localize("UTC") for day in DAYS], DAYS, "UTC"),
        (DAYS[::-1], DAYS, None),
    ],
)
def test_times_are_a_line_along_an_axis_of_time(keys, at, zone):
    made = visits(keys).dp.count("day", keys=keys, epsilon=1)
    axes = made.dp.plot()
    if at == "months":
        at = list(pd.date_range("2021-01-01", periods=6, freq="MS"))
    (line,) = axes.lines
    assert line.get_xdata() == pytest.approx(dates.date2num(at))
    order = np.argsort([key if isinstance(key, pd.Period) else pd.Timestamp(key) for key in keys])
    assert line.get_ydata().tolist() == made["count"].iloc[order].tolist()
    assert is_time(axes.xaxis)
    assert axes.get_xlabel() == ("day" if zone is None else f"day ({zone})")
    band = axes.collections[0].get_paths()[0].vertices
    bars = made.dp.interval()
    assert {*band[:, 1]} == {*bars["count_low"], *bars["count_high"]}
    drawn(axes)
    assert all(len(label) <= 10 for label in shown(axes.xaxis))


def test_ticks_are_written_in_the_time_zone():
    hours = list(pd.date_range("2021-03-01", periods=25, freq="h", tz="Asia/Tokyo"))
    axes = visits(hours).dp.count("day", keys=hours, epsilon=1).dp.plot()
    drawn(axes)
    written = dict(zip(axes.get_xticks(), labels(axes), strict=True))
    midnight = dates.date2num(pd.Timestamp("2021-03-01 15:00"))  # in UTC, of March 2 in Tokyo
    assert written[midnight] == "Mar-02"


@pytest.mark.parametrize(("bins", "zone"), [(BINS, ""), (IN_ZONE, " (America/New_York)")])
def test_bins_of_times_are_steps_along_an_axis_of_time(bins, zone):
    frame = visits([interval.mid for interval in bins])
    made = frame.dp.histogram("day", pd.IntervalIndex(bins), epsilon=1)
    axes = made.dp.plot()
    ((left, _, values),) = steps(axes)
    assert left == pytest.approx(dates.date2num([interval.left for interval in bins]))
    assert values == made["count"].tolist()
    assert axes.get_xlabel() == f"day{zone}"
    drawn(axes)
    assert all(len(label) <= 10 for label in shown(axes.xaxis))  # 38 before


def test_bars_stand_on_their_bins():
    made = visits().dp.histogram("day", pd.IntervalIndex(BINS), epsilon=1)
    axes = made.dp.plot(kind="bar")
    assert heights(axes) == [made["count"].tolist()]
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.containers[0]]
    assert middles == pytest.approx(dates.date2num(DAYS) + 0.5)
    assert is_time(axes.xaxis)


def test_bars_at_times_do_not_touch():
    keys = list(pd.period_range("2021-01", periods=12, freq="M"))
    by = {"zone": ["A", "B"], "day": keys}
    axes = visits(keys).dp.count([*by], keys=by, epsilon=1).dp.plot(kind="bar")
    bars = sorted((bar.get_x(), bar.get_width()) for part in axes.containers[::2] for bar in part)
    ends = [place + width for place, width in bars]
    assert all(end <= place + 1e-9 for end, (place, _) in zip(ends, bars[1:], strict=False))
    assert entries(axes) == ["A", "B"]


@pytest.mark.parametrize(
    ("keys", "unit"),
    [
        (pd.to_timedelta(range(0, 160, 20), unit="min"), "minutes"),
        (pd.to_timedelta(range(0, 2400, 300), unit="min"), "hours"),
        (pd.to_timedelta(range(8), unit="D"), "days"),
        (pd.to_timedelta(range(8), unit="s"), "seconds"),
    ],
)
def test_durations_are_counted_in_a_unit_that_fits(keys, unit):
    made = visits(list(keys)).dp.count("day", keys=list(keys), epsilon=1)
    axes = made.dp.plot()
    length = pd.Timedelta(1, unit).total_seconds()
    assert axes.lines[0].get_xdata() == pytest.approx(keys.total_seconds() / length)
    assert axes.get_xlabel() == f"day ({unit})"
    made = visits(list(keys)).dp.histogram("day", keys, epsilon=1)
    ((left, _, _),) = steps(made.dp.plot())
    assert left == pytest.approx(keys[:-1].total_seconds() / length)


def test_released_points_in_time_stand_on_an_axis_of_time():
    lower, upper = NEW_YORK[0], NEW_YORK[-1]
    frame = visits(NEW_YORK)
    made = frame.dp.mean("day", "zone", keys=["A", "B"], bounds=(lower, upper), epsilon=1)
    axes = made.dp.plot()
    assert axes.lines[-1].get_ydata() == pytest.approx(dates.date2num(made["day"]))
    bars = made.dp.interval()
    assert segments(axes) == pytest.approx(
        np.column_stack([dates.date2num(bars["day_low"]), dates.date2num(bars["day_high"])])
    )
    assert is_time(axes.yaxis)
    assert axes.get_ylabel() == "day (America/New_York)"
    assert heights(axes) == []  # nothing is drawn from 1970
    with raises(QueryError, "points in time", parameter="kind", value="bar"):
        made.dp.plot(kind="bar")


def test_released_durations_are_in_a_unit_that_fits():
    frame = pd.DataFrame({"wait": pd.to_timedelta(np.arange(600) % 240, unit="min")})
    bounds = (pd.Timedelta(0), pd.Timedelta("5h"))
    made = frame.dp.mean("wait", bounds=bounds, epsilon=1e4)  # nearly without noise: two hours
    axes = made.dp.plot()
    assert heights(axes) == [pytest.approx([made["wait"].item().total_seconds() / 60])]
    assert axes.get_ylabel() == "wait (minutes)"


@pytest.mark.parametrize("end", ["0001-01-01", "9999-12-31"])  # such as of what has no end yet
def test_margins_do_not_reach_beyond_all_dates(end):
    days = [pd.Timestamp(end).as_unit("s"), pd.Timestamp("2021-03-01").as_unit("s")]
    drawn(visits(days).dp.count("day", keys=days, epsilon=1).dp.plot())


def test_lines_stand_on_numbers_and_on_keys_in_their_order():
    frame = pd.DataFrame({"age": np.arange(90) % 9, "zone": list("BCA") * 30})
    made = frame.dp.count("age", keys=[8, 1, 2], epsilon=1)
    (line,) = made.dp.plot(kind="line").lines
    assert line.get_xdata().tolist() == [1, 2, 8]
    assert line.get_ydata().tolist() == made["count"].loc[[1, 2, 8]].tolist()
    made = frame.dp.count("zone", keys=list("CAB"), epsilon=1)
    axes = made.dp.plot(kind="line")
    assert axes.lines[0].get_ydata().tolist() == made["count"].tolist()
    assert labels(axes) == list("CAB")


def test_a_value_without_neighbors_on_its_line_has_an_error_bar():
    keys = pd.DataFrame({"zone": ["B", "A", "A"], "day": [DAYS[0], DAYS[0], DAYS[1]]})
    made = visits().dp.count(["zone", "day"], keys=keys, epsilon=1)
    axes = made.dp.plot()
    bars = made.dp.interval()
    assert segments(axes) == pytest.approx(bars.loc[[("B", DAYS[0])]].to_numpy())
    assert entries(axes) == ["B", "A"]


def test_groups_are_lines_or_panels():
    by = {"zone": list("ABCDEFG"), "day": DAYS}
    made = visits().dp.count([*by], keys=by, epsilon=1)
    panels = made.dp.plot()
    assert [panel.get_title() for panel in panels] == [f"zone = {zone}" for zone in by["zone"]]
    assert all(is_time(panel.xaxis) for panel in panels)
    axes = made.dp.plot(panels=False)
    assert entries(axes) == by["zone"]
    assert len({(line.get_color(), line.get_marker()) for line in axes.lines}) == 7
    drawn(axes)


def test_times_go_along_the_axis_wherever_they_are_among_the_keys():
    by = {"day": DAYS, "zone": ["B", "A"]}
    made = visits().dp.count([*by], keys=by, epsilon=1)
    axes = made.dp.plot()
    assert entries(axes) == ["B", "A"]
    assert is_time(axes.xaxis)
    assert axes.get_xlabel() == "day"
    for zone, line in zip(["B", "A"], axes.lines, strict=True):
        assert line.get_ydata().tolist() == made["count"].xs(zone, level="zone").tolist()
    assert heights(made.dp.plot(kind="bar", panels=False))[0] == made["count"][DAYS[0]].tolist()


@pytest.mark.full
def test_all_spans_of_time_have_ticks_without_a_warning():
    figure = plt.figure(figsize=(2, 2))
    for seconds in np.geomspace(1e-4, 9e9, 60):
        axis = figure.add_subplot().xaxis
        axis.axes.set_xlim(19_000, 19_000 + seconds / 86_400)
        Scale(dates=True).dress(axis)
        assert len(axis.get_majorticklocs()) <= 10
        figure.clear()


@pytest.mark.full
@pytest.mark.parametrize("groups", [7, 12])
def test_ticks_of_small_panels_do_not_touch(groups):
    days = list(pd.date_range("2021-01-01", "2021-12-31", freq="3D"))
    by = {"zone": range(groups), "day": days}
    frame = visits(days).assign(zone=1)
    panels = frame.dp.count([*by], keys=by, epsilon=1).dp.plot()
    drawn(panels)
    written = [label for label in panels[-1].get_xticklabels() if label.get_text()]
    found = [label.get_window_extent() for label in written]
    assert len(found) >= 2
    assert not any(one.overlaps(other) for one, other in pairwise(found))
