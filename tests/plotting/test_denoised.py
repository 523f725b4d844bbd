"""Figures of denoised releases: released values and denoised ones, told apart."""

import matplotlib as mpl
import numpy as np
import pytest
from support.pictures import denoised, dots, entries, heights, segments, steps, trips

import dpframe as dpf

mpl.use("Agg")


@pytest.mark.parametrize("kind", ["bar", "barh", "points", "line"])
def test_dots_mark_denoised_values_over_the_released_ones(kind):
    made = trips().dp.sum(["fare", "day"], "zone", keys=list("CAB"), bounds=(0, 60), epsilon=1)
    axes = dpf.plot(denoised(made, day=[50.5, 1.25, 30]), column="day", kind=kind, level=0.8)
    (spots,) = dots(axes)
    assert spots[:, :: -1 if kind == "barh" else 1].tolist() == [[0, 50.5], [1, 1.25], [2, 30]]
    assert entries(axes) == ["released", "denoised"]
    if kind == "points":
        bars = made.dp.interval(0.8)[["day_low", "day_high"]]
        assert segments(axes) == pytest.approx(bars.to_numpy())
        assert axes.lines[-1].get_ydata().tolist() == made["day"].tolist()


def test_denoised_histograms_have_a_dot_in_each_bin():
    made = trips().dp.histogram("fare", [0, 20, 60], "zone", keys=list("CA"), epsilon=1)
    axes = dpf.plot(denoised(made, count=[1.5, 2, 3, 4]))
    assert [values for _, _, values in steps(axes)] == [made["count"].loc[z].tolist() for z in "CA"]
    first, second = dots(axes)
    assert [first[:, 1].tolist(), second[:, 1].tolist()] == [[1.5, 2], [3, 4]]
    assert 0 < first[0, 0] < second[0, 0] < 20 < first[1, 0] < second[1, 0] < 60
    assert entries(axes) == ["C", "A", "denoised"]


def test_panels_of_denoised_histograms_share_a_legend():
    made = trips().dp.histogram("fare", [0, 20, 60], "day", keys=range(5), epsilon=1)
    panels = dpf.plot(denoised(made, count=np.arange(10)), panels=True)
    for day, panel in enumerate(panels):
        assert dots(panel)[0].tolist() == [[10, 2 * day], [40, 2 * day + 1]]
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["released", "denoised"]


def test_a_released_column_with_such_a_name_is_no_denoised_one():
    query = dpf.aggregate(count=dpf.count(), count_denoised=dpf.sum("day", bounds=(0, 2)))
    made = trips().dp.release(query, epsilon=1)
    assert heights(dpf.plot(made, column="count")) == [[made["count"].iloc[0]]]
    assert heights(dpf.plot(made, column="count_denoised")) == [[made["count_denoised"].iloc[0]]]
