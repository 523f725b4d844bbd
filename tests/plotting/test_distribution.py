"""Distributions are drawn as lines with bands, and quantiles as bars with their intervals."""

import numpy as np
import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")

ZONES = ["A", "B"]


def trips():
    rows = np.arange(900)
    return pd.DataFrame({"zone": np.array(ZONES)[rows % 2], "fare": rows % 40 + 0.5})


def distribution(by="zone", **spend):
    keys = {"keys": ZONES} if by else {}
    query = dpf.ranges("fare", 40, by, bounds=(0, 40), **keys)
    return dpf.release(trips(), query, privacy_unit=dpf.EACH_ROW, **{"epsilon": 1, **spend})


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_lines_rise_to_all_rows_inside_their_bands(mechanism):
    released = distribution(mechanism=mechanism, delta=1e-6)
    axes = released.dp.plot(level=0.9)
    lines = [line for line in axes.lines if len(line.get_xdata()) == 41]
    assert len(lines) == 2 and [line.get_label() for line in lines] == ZONES
    for line, zone in zip(lines, ZONES, strict=True):
        x, y = line.get_data()
        np.testing.assert_array_equal(x, np.arange(41))
        assert y[0] == 0 and (np.diff(y) >= 0).all()
        assert y[-1] == pytest.approx(released.loc[zone, "count"].sum())
    assert released.dp.plot(kind="histogram").get_ylabel() == "count"
    assert axes.get_ylabel() == "count below" and axes.get_xlabel() == "fare"
    texts = [one.get_text() for one in axes.figure.findobj(mpl.text.Text)]
    assert any("90% bands: noise only" in one for one in texts)
    for band, line in zip(axes.collections, lines, strict=False):
        vertices = band.get_paths()[0].vertices
        assert vertices[:, 1].max() >= line.get_ydata().max()


def test_quantiles_are_lines_along_their_levels_with_their_intervals_as_bands():
    found = distribution().dp.quantile([0.25, 0.5], level=0.9)
    axes = found.dp.plot(level=0.9)
    drawn = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert [list(line.get_xdata()) for line in drawn] == [[0.25, 0.5]] * 2
    assert sorted(y for line in drawn for y in line.get_ydata()) == sorted(found["fare"])
    bars = axes.figure.axes[0]
    assert len(bars.collections) == 2
    kept = found.dp.plot(level=0.9, kind="bar")
    heights = [bar.get_height() for bars in kept.containers for bar in getattr(bars, "patches", [])]
    assert sorted(heights) == sorted(found["fare"])
    with raises(QueryError, "level=0.9", parameter="level", value=0.95):
        found.dp.plot()
