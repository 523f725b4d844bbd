"""Figures: as many bars as rows, with the right heights, error bars and labels."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.certifying import recertified
from support.pictures import (
    caption,
    denoised,
    ends_of_bands,
    entries,
    heights,
    labels,
    legends,
    segments,
    steps,
    trips,
)

import dpframe as dpf
from dpframe.errors import CertificateError, DPFrameError, QueryError, UnknownColumnError

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first
from support.raising import raises


def test_there_is_one_bar_per_group():
    made = trips().dp.count("zone", keys=["C", "A", "B", "Z"], epsilon=5)
    axes = made.dp.plot()
    assert heights(axes) == [made["count"].tolist()]
    assert labels(axes) == ["C", "A", "B", "Z"]
    assert axes.get_xlabel() == "zone"
    assert axes.get_ylabel() == "count"
    assert caption(axes) == "95% error bars: noise only, not sampling, clipping or caps"
    assert legends(axes) == []


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_error_bars_are_the_intervals(level):
    made = trips().dp.mean("fare", "zone", keys=["A", "B"], bounds=(0, 60), epsilon=1)
    axes = made.dp.plot(level=level)
    assert segments(axes) == pytest.approx(made.dp.interval(level).to_numpy())


@pytest.mark.parametrize("by", [["zone", "day"], ["day", "zone"], ["paid", "zone", "day"]])
def test_outer_keys_are_series_and_the_innermost_are_places(by):
    keys = {"zone": ["C", "A", "B"], "day": [2, 0, 1], "paid": [True, False]}
    made = trips().dp.count(by, keys={label: keys[label] for label in by}, epsilon=1e6)
    axes = made.dp.plot()
    places = keys[by[-1]]
    assert labels(axes) == [str(place) for place in places]
    named = dict(zip(entries(axes), heights(axes), strict=True))
    assert len(named) == len(made) // len(places)
    for outer, row in named.items():
        rows = [key for key in made.index if outer == ", ".join(map(str, key[:-1]))]
        assert row == made["count"].loc[rows].tolist()
    assert legends(axes)[0].get_title().get_text() == ", ".join(by[:-1])


def test_several_releases_are_drawn_side_by_side():
    keys = {2025: ["C", "A"], 2026: ["C", "A", "B"]}
    made = {
        year: trips().dp.count("zone", keys={"zone": own}, epsilon=1) for year, own in keys.items()
    }
    axes = dpf.plot(made)
    assert labels(axes) == ["C", "A", "B"] and entries(axes) == ["2025", "2026"]
    first, second = heights(axes)
    assert first[:2] == made[2025]["count"].tolist() and np.isnan(first[2])
    assert second == made[2026]["count"].tolist()
    assert legends(axes)[0].get_title().get_text() == "release"
    for options in ({"percent": True}, {"per": "count"}):
        with raises(QueryError, "one release", parameter="released"):
            dpf.plot(made, **options)


def test_more_series_than_colors_have_panels():
    by = {"fare": range(12), "zone": ["A", "B"]}
    made = trips().dp.count(list(by), keys=by, epsilon=1)
    panels = dpf.plot(made)
    assert len(panels) == 12
    for fare, panel in enumerate(panels):
        assert heights(panel) == [made["count"].loc[fare].tolist()]
        assert panel.get_title() == f"fare = {fare}"
    assert labels(panels[-1]) == ["A", "B"]
    assert [panel.get_xlabel() for panel in panels] == [""] * 8 + ["zone"] * 4
    assert [panel.get_ylabel() for panel in panels] == ["count", "", "", ""] * 3


def test_more_groups_than_panels_are_one_series_of_all_rows():
    by = {"fare": range(70), "zone": ["A", "B"]}
    made = trips().dp.count(list(by), keys=by, epsilon=1)
    axes = dpf.plot(made)
    assert heights(axes) == [made["count"].tolist()]
    assert labels(axes)[:2] == ["0, A", "2, A"]
    assert axes.get_xlabel() == "fare, zone"
    assert legends(axes) == []


@pytest.mark.parametrize("panels", [True, False])
def test_panels_can_be_chosen(panels):
    by = {"day": range(8), "zone": ["A", "B"]}
    made = trips().dp.count(list(by), keys=by, epsilon=1)
    drawn = made.dp.plot(panels=panels)
    if panels:
        assert [heights(one) for one in drawn] == [
            [made["count"].loc[day].tolist()] for day in range(8)
        ]
    else:
        assert heights(drawn) == [made["count"].loc[day].tolist() for day in range(8)]
        bars = [drawn.containers[place].patches[0] for place in range(0, 16, 2)]
        assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in bars}) == 8


def test_any_released_column_can_be_drawn():
    made = trips().dp.sum(["fare", "day"], "zone", keys=["A", "B"], bounds=(0, 60), epsilon=1)
    axes = dpf.plot(made, column="day", level=0.999)
    assert heights(axes) == [made["day"].tolist()]
    assert axes.get_ylabel() == "day"
    assert caption(axes) == "99.9% error bars: noise only, not sampling, clipping or caps"
    bars = made.dp.interval(0.999)[["day_low", "day_high"]]
    assert segments(axes) == pytest.approx(bars.to_numpy())


def test_unknown_columns_and_kinds_are_refused():
    made = trips().dp.sum(["fare", "day"], bounds=(0, 60), epsilon=1)
    wide = denoised(made, fare=made["fare"])
    for name in ("zone", "fare_denoised"):
        with raises(UnknownColumnError, "['fare', 'day']", parameter="column", value=name):
            dpf.plot(wide, column=name)
    with raises(QueryError, "forest, histogram", parameter="kind", value="lines"):
        dpf.plot(wide, kind="lines")
    assert plt.get_fignums() == []


@pytest.mark.parametrize("kind", ["auto", "histogram"])
def test_histograms_stand_on_the_edges_of_their_bins(kind):
    made = trips().dp.histogram("fare", [0, 5, 20, 60], epsilon=0.1)
    made = recertified(made.assign(count=[-90, 7, 400]), made)  # one bar ends below zero
    axes = dpf.plot(made, kind=kind, level=0.9)
    assert steps(axes) == [([0, 5, 20], [5, 20, 60], made["count"].tolist())]
    bars = made.dp.interval(0.9)
    assert ends_of_bands(axes) == [{*bars["count_low"], *bars["count_high"]}]
    assert axes.get_xlabel() == "fare"
    assert axes.get_ylabel() == "count"
    assert caption(axes) == "90% bands: noise only, not sampling, clipping or caps"
    assert legends(axes) == []
    low, high = axes.get_ylim()
    assert low < bars["count_low"].min()
    assert high > bars["count_high"].max()


def test_bins_apart_leave_a_gap():
    bins = pd.IntervalIndex.from_tuples([(0, 10), (30, 60)])
    made = trips().dp.histogram("fare", bins, epsilon=1)
    axes = dpf.plot(made)
    assert steps(axes) == [([0, 30], [10, 60], made["count"].tolist())]
    assert np.isnan(axes.lines[0].get_ydata()).tolist() == [False, False, True, False, False, False]


def test_keys_that_are_intervals_are_put_in_their_order():
    keys = [pd.Interval(20, 60), pd.Interval(0, 20)]
    frame = trips().assign(range=pd.cut(trips()["fare"], [0, 20, 60]))
    made = frame.dp.count("range", keys=keys, epsilon=1)
    assert steps(dpf.plot(made)) == [([0, 20], [20, 60], made["count"].tolist()[::-1])]


def test_few_groups_share_axes():
    made = trips().dp.histogram("fare", [0, 20, 60], "zone", keys=list("CAB"), epsilon=1)
    axes = dpf.plot(made)
    bars = made.dp.interval()
    for zone, line, band in zip("CAB", steps(axes), ends_of_bands(axes), strict=True):
        assert line[2] == made["count"].loc[zone].tolist()
        assert band == {*bars["count_low"].loc[zone], *bars["count_high"].loc[zone]}
    assert entries(axes) == ["C", "A", "B"]
    assert legends(axes)[0].get_title().get_text() == "zone"
    assert len({line.get_color() for line in axes.lines}) == 3


def test_many_groups_have_panels_of_their_own():
    made = trips().dp.histogram("fare", [0, 20, 60], "day", keys=range(7), epsilon=1)
    panels = dpf.plot(made)
    assert len(panels) == len(panels[0].figure.axes) == 7
    assert len({panel.get_ylim() for panel in panels}) == 1
    for day, panel in enumerate(panels):
        assert steps(panel) == [([0, 20], [20, 60], made["count"].loc[day].tolist())]
        assert panel.get_title() == f"day = {day}"
    figure = panels[0].figure
    assert [panel.get_xlabel() for panel in panels] == [""] * 4 + ["fare"] * 3
    assert figure.get_supxlabel() == "95% bands: noise only, not sampling, clipping or caps"
    # numbers stand below the lowest panel of each column
    below = [panel.xaxis.get_tick_params()["labelbottom"] for panel in panels]
    assert below == [False, False, False, False, True, True, True]


def test_more_groups_than_panels_are_bars_or_share_axes_that_are_given():
    made = trips().dp.histogram("fare", [0, 20, 60], "day", keys=range(70), epsilon=1)
    assert heights(dpf.plot(made)) == [made["count"].tolist()]
    with raises(QueryError, "64 panels", parameter="kind", value="histogram"):
        dpf.plot(made, kind="histogram")
    axes = plt.subplots()[1]
    assert dpf.plot(made, ax=axes) is axes
    assert len(steps(axes)) == 70


@pytest.mark.parametrize(
    "keys",
    [
        ["A", "B"],
        [pd.Interval(0, 20), pd.Interval(10, 30)],
        [pd.Interval(0, 20), "B"],
        [pd.Interval(0, 1, "left"), pd.Interval(1, 2, "right")],
        [pd.Interval(-np.inf, 0), pd.Interval(0, 1)],
        [pd.Interval(pd.Timestamp(0), pd.Timestamp(9)), pd.Interval(0, 1)],
    ],
)
def test_keys_that_are_no_bins_are_bars(keys):
    made = pd.DataFrame({"key": keys}, dtype=object).dp.count("key", keys=keys, epsilon=1)
    assert heights(dpf.plot(made)) == [made["count"].tolist()]
    with raises(QueryError, "'key'", parameter="kind", value="histogram"):
        dpf.plot(made, kind="histogram")


def test_combinations_that_are_not_there_leave_gaps():
    keys = pd.DataFrame({"zone": ["B", "A", "A"], "day": [1, 1, 2]})
    made = trips().dp.count(["zone", "day"], keys=keys, epsilon=1e6)
    axes = made.dp.plot()
    drawn = {
        text.get_text(): row
        for text, row in zip(legends(axes)[0].get_texts(), heights(axes), strict=True)
    }
    assert drawn["A"] == [made["count"]["A", 1], made["count"]["A", 2]]
    assert drawn["B"][0] == made["count"]["B", 1]
    assert np.isnan(drawn["B"][1])


def test_a_total_is_one_bar():
    made = trips().dp.sum("fare", bounds=(0, 60), epsilon=1)
    axes = made.dp.plot()
    assert heights(axes) == [[made["fare"].iloc[0]]]
    assert axes.get_xlabel() == ""
    assert labels(axes) == [""]
    assert axes.get_ylabel() == "fare"


def test_many_groups_have_some_of_their_labels():
    made = trips().dp.count("fare", keys=range(200), epsilon=1)
    axes = made.dp.plot()
    assert len(heights(axes)[0]) == 200
    shown = labels(axes)
    assert 20 <= len(shown) <= 40
    every = int(shown[1]) - int(shown[0])
    assert shown == [str(n) for n in range(0, 200, every)]


def test_axes_can_be_given():
    axes = plt.subplots()[1]
    made = trips().dp.count("zone", keys=["A"], epsilon=1)
    assert dpf.plot(made, ax=axes) is axes
    assert len(plt.get_fignums()) == 1


def test_altered_frames_are_not_drawn():
    made = trips().dp.count("zone", keys=["A"], epsilon=1)
    with pytest.raises(CertificateError):
        (made + 1000).dp.plot()
    assert plt.get_fignums() == []


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    made = trips().dp.count("zone", keys=["A"], epsilon=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[plot\]'"):
        made.dp.plot()
