"""Noise and the error of sampled rows, in two tones: where bars and bands end, and what is said."""

import matplotlib as mpl
import numpy as np
import pytest
from support.pictures import caption, trips
from support.quotients import quotients_of

import dpframe as dpf

mpl.use("Agg")


KEYS = {"zone": ["A", "B"], "day": [0, 1, 2]}
SPEND = {"epsilon": 1.0}


def bars_of(axes):
    """The ends of error bars by tone: the light ones, then the dark ones."""
    found = [
        np.sort(np.array([path.vertices[:, 1] for path in one.get_paths()]), axis=1)
        for one in sorted(axes.collections, key=lambda one: one.get_zorder())
        if type(one).__name__ == "LineCollection"
    ]
    return found


def bands_of(axes):
    """The lowest and highest places of bands, by their tone."""
    return {
        one.get_alpha(): (
            one.get_paths()[0].vertices[:, 1].min(),
            one.get_paths()[0].vertices[:, 1].max(),
        )
        for one in axes.collections
    }


def test_bars_end_where_intervals_do():
    made = trips().dp.count("zone", keys=KEYS["zone"], **SPEND)
    light, dark = bars_of(made.dp.plot(sampling=True))
    assert light == pytest.approx(made.dp.interval(sampling=True).to_numpy(float))
    assert dark == pytest.approx(made.dp.interval().to_numpy(float))
    (alone,) = bars_of(made.dp.plot())
    assert alone == pytest.approx(dark)


def test_shares_have_both():
    frame = trips()
    some = dpf.count(where="day > 0")
    query = dpf.aggregate("zone", keys=KEYS["zone"], some=some, n=dpf.count())
    made = frame.dp.release(query, **SPEND)
    light, dark = bars_of(made.dp.plot(column="some", per="n", sampling=True))
    both = quotients_of(made.dp.ratio("some", "n", sampling=True))
    assert (light[:, 0] <= dark[:, 0]).all()
    assert (light[:, 1] >= both["high"].to_numpy() - 1e-12).all()
    counts = frame.dp.count("zone", keys=KEYS["zone"], **SPEND)
    light, dark = bars_of(counts.dp.plot(percent=True, sampling=True))
    assert (light[:, 1] - light[:, 0] >= dark[:, 1] - dark[:, 0]).all()


def test_bands_have_two_tones():
    made = trips().dp.count("day", keys=KEYS["day"], **SPEND)
    noise, both = made.dp.interval(), made.dp.interval(sampling=True)
    found = bands_of(made.dp.plot(kind="line", sampling=True))
    assert found[0.25] == pytest.approx((noise["count_low"].min(), noise["count_high"].max()))
    assert found[0.12] == pytest.approx((both["count_low"].min(), both["count_high"].max()))
    assert set(bands_of(made.dp.plot(kind="line"))) == {0.25}


def test_a_distribution_has_bands_of_expected_numbers_of_rows():
    made = trips().dp.ranges("fare", bounds=(0, 60), bins=8, **SPEND)
    axes = made.dp.plot(sampling=True)
    found = bands_of(axes)
    assert found[0.12][1] > found[0.25][1]
    assert "95% bands: noise, and lighter noise with sampling" in caption(axes)


PAIR = {"bounds": {"fare": (0, 60), "day": (0, 2)}, "sampling": True, "keys": KEYS}


def widths_of(axes):
    """The ends of error bars across by tone: the light ones, then the dark ones."""
    lines = [one for one in axes.collections if type(one).__name__ == "LineCollection"]
    lines.sort(key=lambda one: one.get_zorder())
    return [
        np.sort(np.array([path.vertices[:, 0] for path in one.get_paths()]), axis=1)
        for one in lines
    ]


def test_a_forest_has_both_tones_and_a_line_at_0():
    made = trips().dp.corr("fare", "day", "zone", **PAIR | {"keys": KEYS["zone"]}, **SPEND)
    axes = made.dp.plot(sampling=True)  # the default of correlations
    light, dark = widths_of(axes)
    assert light == pytest.approx(made.dp.interval(sampling=True).to_numpy(float))
    assert dark == pytest.approx(made.dp.interval().to_numpy(float))
    at = [line.get_xdata() for line in axes.lines]
    assert [0, 0] in [list(line) for line in at]
    assert list(made["corr"]) in [list(line) for line in at]
    assert [label.get_text() for label in axes.get_yticklabels()] == KEYS["zone"]
    assert axes.yaxis.get_inverted()
    said = "95% error bars: noise, and lighter noise with sampling, not clipping or caps"
    assert caption(axes) == said


def test_other_columns_can_be_a_forest():
    made = trips().dp.count(["zone", "day"], keys=KEYS, **SPEND)
    axes = made.dp.plot(kind="forest", level=0.8)
    (first, second) = widths_of(axes)
    assert np.vstack([first, second]) == pytest.approx(made.dp.interval(0.8).to_numpy(float))
