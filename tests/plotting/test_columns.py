"""Figures of several columns, of quotients and percentages, and of odd tables and numbers."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.certifying import recertified
from support.pictures import caption, drawn, entries, heights, labels, segments, trips
from support.quotients import quotients_of

import dpframe as dpf
from dpframe.errors import QueryError

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first
from support.raising import raises


def several(epsilon=1, **parts):
    parts = parts or {
        "trips": dpf.count(),
        "dear": dpf.count(where="fare > 40"),
        "fare": dpf.mean("fare", bounds=(0, 60)),
    }
    query = dpf.aggregate("zone", keys=["C", "A", "B"], **parts)
    return trips().dp.release(query, epsilon=epsilon)


@pytest.mark.parametrize("column", [None, ["fare", "trips"]])
def test_columns_have_panels_below_each_other(column):
    made = several()
    panels = made.dp.plot(column=column)
    names = ["trips", "dear", "fare"] if column is None else column
    assert [panel.get_ylabel() for panel in panels] == names
    assert [heights(panel) for panel in panels] == [[made[name].tolist()] for name in names]
    assert [panel.get_xlabel() for panel in panels] == [""] * (len(names) - 1) + ["zone"]
    assert len({panel.get_position().x0 for panel in panels}) == 1
    assert len({panel.containers[0].patches[0].get_facecolor() for panel in panels}) == len(names)
    for panel, name in zip(panels, names, strict=True):
        bars = made.dp.interval()[[f"{name}_low", f"{name}_high"]]
        assert segments(panel) == pytest.approx(bars.to_numpy())
    assert caption(panels[0]) == "95% error bars: noise only, not sampling, clipping or caps"
    drawn(panels)


def test_columns_can_be_series_of_one_panel():
    made = several()
    axes = made.dp.plot(column=["trips", "dear"], subplots=False)
    assert heights(axes) == [made["trips"].tolist(), made["dear"].tolist()]
    assert labels(axes) == ["C", "A", "B"]
    assert entries(axes) == ["trips", "dear"]
    assert axes.get_xlabel() == "zone"
    assert axes.get_ylabel() == ""
    drawn(axes)


def test_columns_of_numbers_and_of_times_share_no_axis():
    frame = trips().assign(wait=lambda made: pd.to_timedelta(made["fare"], unit="min"))
    query = dpf.aggregate(
        trips=dpf.count(), wait=dpf.mean("wait", bounds=(pd.Timedelta(0), pd.Timedelta("1h")))
    )
    made = frame.dp.release(query, epsilon=1)
    with raises(QueryError, "several kinds", parameter="subplots", value=False):
        made.dp.plot(subplots=False)
    assert len(made.dp.plot()) == 2


def test_columns_by_two_keys_have_series_in_each_panel():
    by = {"zone": ["A", "B"], "day": [0, 1, 2]}
    query = dpf.aggregate([*by], keys=by, trips=dpf.count(), dear=dpf.count(where="fare > 40"))
    made = trips().dp.release(query, epsilon=1)
    panels = made.dp.plot()
    for panel, name in zip(panels, made, strict=True):
        assert heights(panel) == [made[name].loc[zone].tolist() for zone in "AB"]
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B"]
    with raises(QueryError, "2 columns", parameter="panels", value=True):
        made.dp.plot(panels=True)


def test_axes_are_as_many_as_panels():
    made = several()
    axes = plt.subplots(1, 3)[1]
    assert [*made.dp.plot(ax=axes)] == [*axes]
    assert [panel.get_xlabel() for panel in axes] == ["zone"] * 3
    with raises(QueryError, "3 matplotlib axes", parameter="ax"):
        made.dp.plot(ax=axes[0])
    for other in (7, "ax"):
        with raises(QueryError, "1 matplotlib axes", parameter="ax"):
            made.dp.plot(column="dear", ax=other)


@pytest.mark.parametrize("option", ["percent", "subplots", "panels", "legend"])
def test_flags_are_true_or_false(option):
    with raises(QueryError, "True or False", parameter=option, value="no"):
        several().dp.plot(**{option: "no"})


def test_quotients_are_drawn_with_their_intervals():
    made = several()
    axes = made.dp.plot(column="dear", per="trips", level=0.9)
    table = quotients_of(made.dp.ratio("dear", "trips", level=0.9))
    assert heights(axes) == [table["estimate"].tolist()]
    assert segments(axes) == pytest.approx(table[["low", "high"]].to_numpy())
    assert axes.get_ylabel() == "dear / trips"
    assert caption(axes) == "90% error bars: noise only, not sampling, clipping or caps"


def test_percentages_are_drawn_with_their_intervals():
    made = several()
    axes = made.dp.plot(column="trips", percent=True, kind="points")
    table = quotients_of(made.dp.percent("trips"))
    assert axes.lines[-1].get_ydata().tolist() == table["estimate"].tolist()
    assert segments(axes) == pytest.approx(table[["low", "high"]].to_numpy())
    assert axes.get_ylabel() == "trips (% of the total)"


@pytest.mark.parametrize(
    ("options", "word", "parameter"),
    [
        ({"column": "dear", "per": "trips", "percent": True}, "two kinds", "per"),
        ({"column": ["dear"], "per": "trips"}, "a single one", "column"),
        ({"column": ["dear"], "percent": True}, "a single one", "column"),
        ({"percent": True}, "one of the columns", "column"),
        ({"column": "dear", "per": "fare"}, "a count or a sum", "per"),
        ({"column": "dear", "per": "zone"}, "label", "per"),
    ],
)
def test_quotients_are_those_of_two_columns(options, word, parameter):
    with raises(QueryError, word, parameter=parameter):
        several().dp.plot(**options)


@pytest.mark.parametrize("kind", ["bar", "barh", "points", "line"])
def test_intervals_without_an_end_have_an_arrow(kind):
    made = several(
        over=dpf.sum("fare", bounds=(-60, 60)), rest=dpf.sum("day", bounds=(-1, 2)), epsilon=0.001
    )
    table = quotients_of(made.dp.ratio("over", "rest"))
    assert np.isinf(table[["low", "high"]].to_numpy()).any()
    axes = made.dp.plot(column="over", per="rest", kind=kind)
    drawn(axes)
    marks = "<>" if kind == "barh" else "v^"
    arrows = [line for line in axes.lines if line.get_marker() in marks and line.get_ls() == "None"]
    assert len(arrows) == np.isinf(table[["low", "high"]].to_numpy()).any(axis=0).sum()
    assert all(np.isfinite(end).all() for end in segments(axes)) or kind == "line"


def test_intervals_need_not_be_about_their_values():
    frame = trips()
    made = frame.dp.std("fare", "zone", keys=list("ABZ"), bounds=(0, 60), epsilon=0.3)
    axes = made.dp.plot()
    assert segments(axes) == pytest.approx(made.dp.interval().to_numpy(), abs=1e-12)
    made = frame.dp.rate("fare > 10", "zone", keys=list("ABZ"), epsilon=0.3)
    axes = made.dp.plot(kind="points")
    assert segments(axes) == pytest.approx(made.dp.interval().to_numpy(), abs=1e-12)


def found(words):
    frame = pd.DataFrame({"word": words})
    return frame.dp.discover("word", epsilon=1, delta=1e-6, privacy_unit=dpf.EACH_ROW)


def test_groups_that_were_found_are_drawn():
    made = found(["tea"] * 900 + ["water"] * 400)
    axes = made.dp.plot()
    assert heights(axes) == [made["units"].tolist()]
    assert segments(axes) == pytest.approx(made.dp.interval().to_numpy())
    assert caption(axes) == "95% error bars: noise of groups that were found, not sampling or caps"


@pytest.mark.parametrize("kind", ["auto", "bar", "barh", "points", "line"])
def test_a_release_without_rows_says_so(kind):
    made = found(["once"])  # found with a probability of at most 1e-6
    assert len(made) == 0
    axes = made.dp.plot(kind=kind)
    drawn(axes)
    assert [text.get_text() for text in axes.texts] == ["no groups"]
    assert axes.get_ylabel() == ("units" if kind != "barh" else "word")


@pytest.mark.parametrize("bound", [1e100, 1e-100])
@pytest.mark.parametrize("kind", ["bar", "line"])
def test_the_size_of_numbers_does_not_matter(bound, kind):
    frame = pd.DataFrame({"zone": list("AB") * 9, "fare": bound / 2})
    made = frame.dp.sum("fare", "zone", keys=list("AB"), bounds=(-bound, bound), epsilon=1)
    axes = made.dp.plot(kind=kind)
    drawn(axes)
    low, high = axes.get_ylim()
    assert low <= made.dp.interval()["fare_low"].min()
    assert high >= made.dp.interval()["fare_high"].max()


def test_bars_below_zero_have_a_line_at_zero():
    made = several()
    below = recertified(made.assign(trips=[5, -3, 1]), made)
    assert [0, 0] in [[*line.get_ydata()] for line in below.dp.plot(column="trips").lines]
    above = recertified(made.assign(trips=[5, 3, 1]), made)
    assert [0, 0] not in [[*line.get_ydata()] for line in above.dp.plot(column="trips").lines]
