"""Figures: as many bars as rows, with the right heights, error bars and labels."""

import importlib

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import CertificateError, DPFrameError

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

plotting = importlib.import_module("dpframe.plotting")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def trips():
    rows = np.arange(600)
    zone = np.array(list("CAB"))[rows * rows % 7 % 3]
    return pd.DataFrame(
        {"zone": zone, "day": rows % 11 % 3, "paid": rows % 5 > 2, "fare": rows % 60}
    )


def heights(axes):
    return [
        [bar.get_height() for bar in bars] for bars in axes.containers if hasattr(bars, "patches")
    ]


def labels(axes):
    return [label.get_text() for label in axes.get_xticklabels()]


def test_one_bar_for_each_group():
    made = trips().dp.count("zone", keys=["C", "A", "B", "Z"], epsilon=5)
    axes = made.dp.plot()
    assert heights(axes) == [made["count"].tolist()]
    assert labels(axes) == ["C", "A", "B", "Z"]
    assert axes.get_xlabel() == "zone"
    assert "count" in axes.get_ylabel()
    assert "95%" in axes.get_ylabel()
    assert axes.get_legend() is None


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_error_bars_are_the_intervals(level):
    made = trips().dp.mean("fare", "zone", keys=["A", "B"], bounds=(0, 60), epsilon=1)
    axes = made.dp.plot(level)
    (bars,) = axes.containers[-1:] if hasattr(axes.containers[-1], "errorbar") else axes.containers
    segments = bars.errorbar.lines[2][0].get_segments()
    drawn = np.array([segment[:, 1] for segment in segments])
    assert drawn == pytest.approx(made.dp.interval(level).to_numpy())


@pytest.mark.parametrize("by", [["zone", "day"], ["day", "zone"], ["paid", "zone", "day"]])
def test_outer_keys_are_series_and_the_innermost_are_places(by):
    keys = {"zone": ["C", "A", "B"], "day": [2, 0, 1], "paid": [True, False]}
    made = trips().dp.count(by, keys={label: keys[label] for label in by}, epsilon=1e6)
    axes = made.dp.plot()
    places = keys[by[-1]]
    assert labels(axes) == [str(place) for place in places]
    named = {
        text.get_text(): row
        for text, row in zip(axes.get_legend().get_texts(), heights(axes), strict=True)
    }
    assert len(named) == len(made) // len(places)
    for outer, row in named.items():
        expected = [
            made["count"].loc[key]
            for key in made.index
            if outer in (str(key[:-1]), str(key[0]) if len(by) == 2 else None)
        ]
        assert row == expected
    assert axes.get_legend().get_title().get_text() == ", ".join(by[:-1])


def test_histograms_have_a_bar_for_each_bin():
    made = trips().dp.histogram("fare", [-np.inf, 0, 20, 40, np.inf], epsilon=1)
    axes = made.dp.plot()
    assert labels(axes) == [str(interval) for interval in made.index]
    made = trips().dp.histogram("fare", [0, 20, 40], "paid", keys=[False, True], epsilon=1)
    axes = made.dp.plot()
    assert heights(axes) == [made["count"].loc[key].tolist() for key in (False, True)]


def test_combinations_that_are_not_there_leave_gaps():
    keys = pd.DataFrame({"zone": ["B", "A", "A"], "day": [1, 1, 2]})
    made = trips().dp.count(["zone", "day"], keys=keys, epsilon=1e6)
    axes = made.dp.plot()
    drawn = {
        text.get_text(): row
        for text, row in zip(axes.get_legend().get_texts(), heights(axes), strict=True)
    }
    assert drawn["A"] == [made["count"]["A", 1], made["count"]["A", 2]]
    assert drawn["B"][0] == made["count"]["B", 1]
    assert np.isnan(drawn["B"][1])


def test_a_total_is_one_bar():
    made = trips().dp.sum(["fare", "day"], bounds=(0, 60), epsilon=1)
    axes = made.dp.plot()
    assert heights(axes) == [[made["fare"].iloc[0]]]
    assert axes.get_xlabel() == ""
    assert "fare" in axes.get_ylabel()


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
        (made + 1).dp.plot()
    assert plt.get_fignums() == []


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    made = trips().dp.count("zone", keys=["A"], epsilon=1)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(plotting.importlib, "import_module", missing)
    with pytest.raises(DPFrameError, match=r"pip install dpframe\[plot\]"):
        made.dp.plot()
