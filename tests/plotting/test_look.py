"""How figures look: without colors, without room, with hostile labels, on axes that are given."""

from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.pictures import boxes, drawn, labels, legends, texts, trips

import dpframe as dpf
from dpframe.errors import QueryError
from dpframe.plotting.plot import CAPTION, PALETTE, looks

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb, to_rgba
from support.raising import raises

# of Machado, Oliveira and Fernandes (2009), for linear red, green and blue, at full severity
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]


def lightness(color, seen=None):
    """CIE L* of a color, as a person with the given matrix sees it."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if seen is not None:
        linear = np.clip(np.array(seen) @ linear, 0, 1)
    return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16


@pytest.mark.parametrize("seen", [None, DEUTERANOPIA], ids=["gray", "deuteranopia"])
def test_neighboring_colors_differ_in_lightness(seen):
    found = [lightness(color, seen) for color in PALETTE]
    assert all(abs(one - other) > 11 for one, other in pairwise([*found, found[0]]))
    assert all(abs(one - other) > 8 for one, other in combinations(found[:3], 2))
    assert max(found) < 80  # seen on white


def test_the_simulation_finds_colors_that_look_alike():
    one, other = "#00A000", "#E04000"  # a green and a red
    assert abs(lightness(one) - lightness(other)) < 6
    assert abs(lightness("C0") - lightness("C3")) < 8  # of the default cycle of matplotlib


def test_series_differ_without_their_colors():
    found = looks(range(30), None)
    assert len({(look["color"], look["hatch"]) for look in found}) == 30
    assert len({(look["color"], look["marker"]) for look in found}) == 30
    for name, parts in {name: [look[name] for look in found] for name in found[0]}.items():
        assert all(one != other for one, other in pairwise(parts)), name


def by_zone_and_day(**keys):
    made = {"zone": list("CAB"), "day": [0, 1, 2]} | keys
    return trips().dp.count([*made], keys=made, epsilon=1)


def test_bars_of_several_series_are_hatched():
    axes = by_zone_and_day().dp.plot()
    hatches = [axes.containers[place].patches[0].get_hatch() for place in (0, 2, 4)]
    assert len(set(hatches)) == 3
    alone = by_zone_and_day(zone=["A"]).dp.plot().patches
    assert not any(patch.get_hatch() for patch in alone)


@pytest.mark.sampled(every=10, full=4)
@pytest.mark.parametrize("kind", ["bar", "barh", "line", "points"])
@pytest.mark.parametrize("names", [list("CAB"), ["an airport with quite a long name", "A", "B"]])
@pytest.mark.parametrize("given", [False, True])
def test_legends_cover_nothing(kind, names, given):
    made = by_zone_and_day(zone=names, day=list(range(9)))
    ax = plt.subplots()[1] if given else None
    axes = made.dp.plot(kind=kind, title="A title", ax=ax)
    found = boxes(axes)
    (legend,) = legends(axes)
    box = legend.get_window_extent(drawn(axes))
    assert len(found) >= (3 if kind == "line" else 27)
    assert not any(box.overlaps(part) for part in found)
    assert not box.overlaps(axes.get_window_extent())
    (title,) = [part for part in texts(axes.figure) if part.get_text() == "A title"]
    assert not box.overlaps(title.get_window_extent())
    if not given:
        assert axes.figure.bbox.x1 >= box.x1
        assert axes.figure.bbox.y1 >= box.y1


@pytest.mark.full
def test_legends_of_panels_cover_nothing():
    made = trips().dp.histogram(
        "fare", [0, 20, 60], "day", keys=range(7), epsilon=1, denoise="auto"
    )
    panels = made.dp.plot()
    drawn(panels)
    (legend,) = legends(panels[0])
    box = legend.get_window_extent()
    assert not any(box.overlaps(panel.get_window_extent()) for panel in panels)


@pytest.mark.parametrize("kind", ["bar", "line", "points"])
def test_colors_are_those_given(kind):
    def colors(**given):
        axes = by_zone_and_day().dp.plot(kind=kind, **given)
        handles = legends(axes)[0].legend_handles
        return [
            handle.get_facecolor() if kind == "bar" else to_rgba(handle.get_color())
            for handle in handles
        ]

    assert colors(color="tab:red") == [to_rgba("tab:red")] * 3
    assert colors(color=(1, 0, 0.5)) == [(1, 0, 0.5, 1)] * 3
    assert colors(color=["r", "g"]) == [to_rgba("r"), to_rgba("g"), to_rgba("r")]
    assert colors(color={"A": "r"}) == [to_rgba(PALETTE[0]), to_rgba("r"), to_rgba(PALETTE[2])]
    assert colors() == [to_rgba(color) for color in PALETTE[:3]]


@pytest.mark.parametrize("color", ["no color", ["r", "no color"], {"A": 7}, [], 7])
def test_what_is_no_color_is_refused(color):
    with raises(QueryError, "matplotlib", parameter="color"):
        by_zone_and_day().dp.plot(color=color)
    assert plt.get_fignums() == []


def captions(axes):
    return [text.get_text() for text in axes.texts if text.get_gid() == CAPTION]


def test_captions_on_axes_that_are_given_are_below_them_and_written_once():
    ax = plt.subplots(layout="constrained")[1]
    by_zone_and_day().dp.plot(ax=ax, level=0.57)
    by_zone_and_day().dp.plot(ax=ax, level=0.9)
    assert captions(ax) == ["90% error bars: noise only, not sampling, clipping or caps"]
    drawn(ax)
    box = ax.texts[-1].get_window_extent()
    assert not box.overlaps(ax.xaxis.label.get_window_extent())
    assert 0 <= box.y0 < box.y1 <= ax.xaxis.label.get_window_extent().y0


HOSTILE = [
    "$x_1$ costs $5",
    r"100% _sure_ \alpha",
    "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}\N{HEBREW LETTER VAV}",
    "\N{ARABIC LETTER MEEM}\N{ARABIC LETTER REH}",
    "<script>\u202ealert",
    "two\nlines",
    r"\frac{$",
    "x" * 200,
]


@pytest.mark.sampled(every=10, full=6)
@pytest.mark.parametrize("kind", ["auto", "bar", "line", "points"])
@pytest.mark.parametrize("place", ["key", "series", "panel"])
def test_labels_are_not_taken_for_formulas(kind, place):
    frame = pd.DataFrame({"k_$1$": HOSTILE * 9, "v%": 1})
    by = {"k_$1$": HOSTILE, "v%": [0, 1]} if place != "key" else {"k_$1$": HOSTILE}
    made = frame.dp.count([*by], keys=by, epsilon=1)
    axes = made.dp.plot(kind=kind, panels=place == "panel", title="$_$ 100%")
    drawn(axes)
    written = texts(np.ravel(axes)[0].figure)
    shown = [text.get_text() for text in written]
    assert any("$x_1$ costs $5" in text for text in shown)
    assert any(r"\u202ealert" in text for text in shown)
    assert any("two" + r"\n" + "lines" in text for text in shown)
    assert max(map(len, shown)) < 70
    own = [text for text in written if "$" in text.get_text()]
    assert len(own) >= 3
    assert not any(text.get_parse_math() or text.get_usetex() for text in own)


def test_long_labels_have_bars_across():
    keys = [f"a rather long label, number {n}" for n in range(9)]
    made = pd.DataFrame({"key": keys}).dp.count("key", keys=keys, epsilon=1)
    axes = made.dp.plot(kind="barh")
    assert [bar.get_width() for bar in axes.containers[0]] == made["count"].tolist()
    drawn(axes)
    assert axes.get_ylabel() == "key"
    assert axes.get_xlabel() == "count"
    found = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(one.overlaps(other) for one, other in combinations(found, 2))
    assert found[0].y0 > found[-1].y0  # the first key is on top
    assert all(axes.figure.bbox.x0 <= box.x0 for box in found)
    segments = axes.collections[0].get_segments()
    assert np.array(segments)[:, :, 0] == pytest.approx(made.dp.interval().to_numpy())


def test_figures_are_drawn_without_layout_of_their_own():
    ax = plt.subplots()[1]
    by_zone_and_day().dp.plot(ax=ax)
    assert ax.figure.get_layout_engine() is None
    assert labels(ax) == ["0", "1", "2"]


@pytest.mark.sampled(every=10, full=6)
@pytest.mark.parametrize("kind", ["bar", "barh", "points"])
@pytest.mark.parametrize("groups", [1, 3, 9])
@pytest.mark.parametrize(
    "keys", [range(24), [f"a label of some length, {n}" for n in range(12)], ["of a length"] * 5]
)
def test_labels_do_not_touch(kind, groups, keys):
    keys = [f"{key} {n}" for n, key in enumerate(keys)] if len(keys) == 5 else keys
    by = {"day": range(groups), "fare": keys}
    frame = trips().assign(fare=keys[0])
    made = frame.dp.count([*by], keys=by, epsilon=1)
    panels = np.ravel(made.dp.plot(kind=kind))
    drawn(panels)
    axis = panels[0].yaxis if kind == "barh" else panels[-1].xaxis
    found = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    assert len(found) > 2
    assert not any(one.overlaps(other) for one, other in pairwise(found))


def test_a_dict_of_colors_names_columns():
    made = trips().dp.count("zone", keys=["A"], epsilon=1)
    axes = made.dp.plot(color={"count": "tab:red"})
    assert axes.patches[0].get_facecolor() == to_rgba("tab:red")


@pytest.mark.parametrize("scale", ["linear", "symlog"])
@pytest.mark.parametrize("kind", ["barh", "line"])
def test_axes_with_ticks_of_their_own_keep_the_scale_of_values(kind, scale):
    made = trips().dp.count("fare", keys=range(9), epsilon=1)
    ax = plt.subplots()[1]
    ax.set_xticks([0, 4, 8])
    values = ax.xaxis if kind == "barh" else ax.yaxis
    (ax.set_xscale if kind == "barh" else ax.set_yscale)(scale)
    made.dp.plot(ax=ax, kind=kind)
    made.dp.plot(ax=ax, kind=kind, color="r")  # over the first
    drawn(ax)
    assert values.get_scale() == scale
    assert len(captions(ax)) == 1


@pytest.mark.parametrize("kind", ["bar", "line", "points"])
def test_all_is_seen_on_a_dark_background(kind):
    with plt.style.context("dark_background"):
        axes = by_zone_and_day(zone=["A"]).dp.plot(kind=kind)
        words = [text.get_color() for text in texts(axes.figure)]
        assert all(lightness(color) > 60 for color in words)
        lines = [part for part in axes.collections if isinstance(part, LineCollection)]
        for part in lines:
            rims = part.get_path_effects()
            assert rims or all(lightness(color) > 40 for color in part.get_colors())


def within(figure):
    """Whether all names, titles and captions of a figure end inside of it."""
    figure.canvas.draw()
    names = [figure._suptitle, figure._supxlabel, figure._supylabel, *figure.texts]
    for axes in figure.axes:
        names += [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.get_yticklabels()]
    boxes = [one.get_window_extent() for one in names if one is not None and one.get_text()]
    (left, low), (right, high) = figure.bbox.get_points()
    return all(
        left - 1 <= box.x0 and box.x1 <= right + 1 and low - 1 <= box.y0 and box.y1 <= high + 1
        for box in boxes
    )


LONG = "stay of the patient in the ward, in hours"


@pytest.mark.parametrize("figsize", [None, (5, 4)])
@pytest.mark.parametrize("kind", ["barh", "bar", "histogram"])
def test_long_names_end_inside_the_page(kind, figsize):
    wards = [
        f"Department of Cardiology and Medicine, {side}" for side in ("North", "South", "West")
    ]
    frame = pd.DataFrame({LONG: [1.0, 30.0], "ward": wards[:2]})
    facts = {"by": "ward", "keys": wards, "epsilon": 1, "privacy_unit": dpf.EACH_ROW}
    if kind == "histogram":
        released = frame.dp.histogram(LONG, [0, 10, 50], **facts)
    else:
        released = frame.dp.mean(LONG, bounds={LONG: (0, 50)}, **facts)
    panels = True if kind == "histogram" else None
    title = "Mean stay of patients, by department, with the error of the noise, in the year 2024"
    axes = released.dp.plot(kind=kind, panels=panels, figsize=figsize, title=title)
    assert within(np.ravel(axes)[0].figure)


def test_small_panels_below_each_other_keep_their_ticks():
    days = pd.to_timedelta(np.arange(400) % 9, "D")
    frame = pd.DataFrame({"zone": ["A", "B"] * 200, "t": pd.Timestamp("2024-02-17") + days})
    frame["n"] = 1.0
    bounds = {"t": (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-05-01")), "n": (0, 2)}
    frame.dp.declare(keys={"zone": ["A", "B"]}, bounds=bounds, privacy_unit=dpf.EACH_ROW)
    means = {"t": dpf.mean("t"), "n": dpf.mean("n"), "c": dpf.count()}
    panels = frame.dp.aggregate("zone", epsilon=30, **means).dp.plot(figsize=(6, 3))
    panels[0].figure.canvas.draw()
    for axes in panels:
        low, high = axes.get_ylim()
        assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 2
