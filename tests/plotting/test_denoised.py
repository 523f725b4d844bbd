"""Figures of denoised releases: released values and denoised ones, told apart."""

import matplotlib as mpl
import numpy as np
import pytest
from support.pictures import denoised, entries, heights, labels, segments, steps, trips

import dpframe as dpf
from dpframe.errors import QueryError

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first
from support.raising import raises


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("kind", ["auto", "denoised"])
def test_denoised_values_stand_over_the_released_ones(kind):
    made = trips().dp.sum(["fare", "day"], "zone", keys=list("CAB"), bounds=(0, 60), epsilon=1)
    wide = denoised(made, day=[50.5, 1.25, 30])
    axes = dpf.plot(wide, column="day", kind=kind, level=0.8)
    bars = made.dp.interval(0.8)[["day_low", "day_high"]]
    assert axes.lines[0].get_ydata().tolist() == made["day"].tolist()
    assert segments(axes) == pytest.approx(bars.to_numpy())
    marks = axes.collections[-1].get_offsets()
    assert marks.tolist() == [[0, 50.5], [1, 1.25], [2, 30]]
    assert labels(axes) == ["C", "A", "B"]
    assert entries(axes) == ["released", "denoised"]
    assert axes.lines[0].get_alpha() < 0.5
    assert axes.collections[-1].get_alpha() is None


def test_released_values_can_be_drawn_alone():
    made = trips().dp.histogram("fare", [-np.inf, 0, 20, 60], epsilon=1)
    wide = denoised(made, count=[1, 2, 3])
    axes = dpf.plot(wide, kind="bar")
    assert labels(axes) == [str(interval) for interval in made.index]
    assert heights(axes) == [made["count"].tolist()]
    axes = dpf.plot(wide, kind="histogram")
    assert len(steps(axes)[0]) == 1
    assert len(axes.collections) == 0


def test_many_denoised_rows_are_sorted():
    by = {"fare": range(30), "paid": [True, False]}
    made = trips().dp.count(list(by), keys=by, epsilon=1)
    guess = np.arange(60) * 7 % 60 / 2
    axes = dpf.plot(denoised(made, count=guess))
    order = np.argsort(-guess)
    assert axes.collections[-1].get_offsets()[:, 1].tolist() == guess[order].tolist()
    raw = axes.lines[0].get_ydata()
    assert raw.tolist() == made["count"].iloc[order].tolist()
    assert segments(axes) == pytest.approx(made.dp.interval().to_numpy()[order])
    assert axes.get_xlabel() == "rank by denoised value, 60 rows of fare, paid"


def test_denoised_histograms_have_a_dot_in_each_bin():
    made = trips().dp.histogram("fare", [0, 20, 60], "zone", keys=list("CA"), epsilon=1)
    axes = dpf.plot(denoised(made, count=[1.5, 2, 3, 4]))
    values = [line.values.tolist() for line in steps(axes)[0]]
    assert values == [made["count"].loc[zone].tolist() for zone in "CA"]
    dots = [part.get_offsets() for part in axes.collections[:2]]
    assert [part[:, 1].tolist() for part in dots] == [[1.5, 2], [3, 4]]
    assert 0 < dots[0][0, 0] < dots[1][0, 0] < 20 < dots[0][1, 0] < dots[1][1, 0] < 60
    assert entries(axes) == ["C", "A", "denoised"]


def test_panels_of_denoised_histograms_share_a_legend():
    made = trips().dp.histogram("fare", [0, 20, 60], "day", keys=range(5), epsilon=1)
    panels = dpf.plot(denoised(made, count=np.arange(10)))
    for day, panel in enumerate(panels):
        offsets = panel.collections[0].get_offsets()
        assert offsets.tolist() == [[10, 2 * day], [40, 2 * day + 1]]
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["released", "denoised"]


def test_denoised_values_must_be_there():
    made = trips().dp.sum(["fare", "day"], bounds=(0, 60), epsilon=1)
    with raises(QueryError, "'day_denoised'", parameter="kind", value="denoised"):
        dpf.plot(denoised(made, fare=[1.0]), column="day", kind="denoised")


def test_a_released_column_with_such_a_name_is_no_denoised_one():
    query = dpf.aggregate(count=dpf.count(), count_denoised=dpf.sum("day", bounds=(0, 2)))
    made = trips().dp.release(query, epsilon=1)
    assert heights(dpf.plot(made, column="count")) == [[made["count"].iloc[0]]]
    assert heights(dpf.plot(made, column="count_denoised")) == [[made["count_denoised"].iloc[0]]]
