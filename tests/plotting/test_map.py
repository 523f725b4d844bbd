"""Maps: values at their places, on one scale of colors, over the edges of the graph."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from support.certifying import recertified
from support.pictures import denoised

from dpframe.errors import CertificateError, QueryError, UnknownColumnError
from dpframe.plotting.map import plot_map

mpl.use("Agg")
from matplotlib import dates  # the backend comes first
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from support.raising import raises

PLACES = {"C": (4.0, 1.0), "A": (0.0, 2.0), "spare": (9.0, 9.0), "B": (1.0, 7.0)}
KEYS = ["A", "B", "C"]


def counts(epsilon=1.0):
    frame = pd.DataFrame({"zone": ["A"] * 500 + ["B"] * 20})
    return frame.dp.count("zone", keys=KEYS, epsilon=epsilon)


def coords(x="x", y="y"):
    return pd.DataFrame.from_dict(PLACES, orient="index", columns=[x, y])


def nodes(axes):
    """Return the scatter, the last collection drawn."""
    return axes.collections[-1]


def color_bars(axes):
    return [other for other in axes.figure.axes if other.get_label() == "<colorbar>"]


@pytest.mark.parametrize("places", [PLACES, coords()])
def test_nodes_stand_at_their_coordinates(places):
    made = counts()
    axes = plot_map(made, places)
    assert nodes(axes).get_offsets().tolist() == [[0, 2], [1, 7], [4, 1]]
    assert nodes(axes).get_array().tolist() == made["count"].tolist()
    assert axes.get_aspect() == 1
    (bar,) = color_bars(axes)
    assert bar.get_ylabel() == "count"
    assert axes.get_title() == ""


def test_degrees_have_the_proportions_of_a_map():
    places = pd.DataFrame({"lon": [0, 1, 2], "lat": [60, 60.5, 59]}, index=KEYS)
    axes = plot_map(counts(), places)
    assert axes.get_aspect() == pytest.approx(1 / math.cos(math.radians(59.75)))
    assert axes.get_aspect() == pytest.approx(1.985, abs=1e-3)
    axes = plot_map(counts(), places.set_axis(["x", "y"], axis=1))
    assert axes.get_aspect() == 1


def test_colors_are_linear_within_the_noise_and_logarithmic_beyond():
    made = counts(0.1)
    norm = nodes(plot_map(made, PLACES)).norm
    bars = made.dp.interval()
    width = (bars["count_high"] - bars["count_low"]).max() / 2
    assert norm.linthresh == width
    assert (norm.vmin, norm.vmax) == (made["count"].min(), made["count"].max())
    step = norm(width) - norm(0)
    assert float(norm(width / 2) - norm(0)) == pytest.approx(step / 2)
    assert float(norm(-width / 2) - norm(0)) == pytest.approx(-step / 2)
    ratios = [norm(width * 2**k) - norm(width * 2 ** (k - 1)) for k in (1, 2, 3)]
    assert ratios == pytest.approx([ratios[0]] * 3)


def test_negative_counts_have_colors_of_their_own():
    made = counts()
    altered = recertified(made.assign(count=[500, 0, -3]), made)
    axes = plot_map(altered, PLACES)
    axes.figure.canvas.draw()
    colors = nodes(axes).get_facecolors()
    assert len(np.unique(colors.round(6), axis=0)) == 3
    assert colors[2] == pytest.approx(mpl.colormaps["viridis"](0.0))
    assert colors[0] == pytest.approx(mpl.colormaps["viridis"](1.0))


def test_numbers_beside_the_colors_leave_out_those_within_the_noise():
    made = counts(0.1)
    altered = recertified(made.assign(count=[5000, 0, -400]), made)
    axes = plot_map(altered, PLACES)
    assert nodes(axes).norm.linthresh == 30
    ticks = color_bars(axes)[0].get_yticks().tolist()
    assert ticks == [-200, -100, -50, -20, 0, 20, 50, 100, 200, 500, 1000, 2000, 5000]


@pytest.mark.full
def test_new_figures_have_the_proportions_of_the_places():
    made, places = counts(), pd.DataFrame({"x": [0, 10, 4], "y": [0, 20, 9]}, index=KEYS)
    width, height = plot_map(made, places).figure.get_size_inches()
    assert (width - 1) / height == pytest.approx(1 / 2)  # an inch for the bar of colors
    wide, low = plot_map(denoised(made, count=[1, 2, 3]), places)[0].figure.get_size_inches()
    assert (wide - 1) / low == pytest.approx(1)
    assert width < wide < 2 * width
    line = places.assign(y=0)
    assert np.isfinite(plot_map(made, line).figure.get_size_inches()).all()


def test_colors_of_means_are_linear():
    frame = pd.DataFrame({"zone": list("AABC") * 50, "fare": range(200)})
    made = frame.dp.mean("fare", "zone", keys=KEYS, bounds=(0, 200), epsilon=50)
    axes = plot_map(made, PLACES)
    norm = nodes(axes).norm
    low, high = made["fare"].min(), made["fare"].max()
    assert norm([low, (low + high) / 2, high]).tolist() == pytest.approx([0, 0.5, 1])
    assert color_bars(axes)[0].get_ylabel() == "fare"


def test_any_released_column_can_be_drawn():
    frame = pd.DataFrame({"zone": ["A", "B"] * 9, "fare": 5, "tips": 1})
    bounds = {"fare": (0, 900), "tips": (0, 9)}  # noise of different sizes
    made = frame.dp.sum(["fare", "tips"], "zone", keys=KEYS, bounds=bounds, epsilon=1)
    axes = plot_map(made, PLACES, column="tips")
    assert nodes(axes).get_array().tolist() == made["tips"].tolist()
    bars = made.dp.interval()
    width = (bars["tips_high"] - bars["tips_low"]).max() / 2
    assert nodes(axes).norm.linthresh == pytest.approx(width)
    assert (bars["fare_high"] - bars["fare_low"]).median() / 2 > 3 * width
    assert color_bars(axes)[0].get_ylabel() == "tips"
    with raises(UnknownColumnError, "['fare', 'tips']", parameter="column", value="zone"):
        plot_map(made, PLACES, column="zone")


def test_it_says_that_the_noise_is_all_that_is_known():
    made = counts()
    half = (made.dp.interval()["count_high"] - made.dp.interval()["count_low"]).max() / 2
    words = f"95% intervals of about \u00b1{half:.3g}: noise only, not sampling, clipping or caps"
    assert plot_map(made, PLACES).figure.get_supxlabel() == words
    given = plot_map(made, PLACES, ax=plt.subplots()[1])
    assert words in " ".join(given.texts[-1].get_text().split("\n"))


def test_edges_are_drawn_below_the_nodes():
    edges = pd.DataFrame({"u": ["A", "C"], "v": ["B", "spare"], "length": [1, 2]})
    axes = plot_map(counts(), PLACES, edges=edges)
    lines, scatter = axes.collections
    assert isinstance(lines, LineCollection)
    drawn = [segment.tolist() for segment in lines.get_segments()]
    assert drawn == [[[0, 2], [1, 7]], [[4, 1], [9, 9]]]
    assert lines.get_zorder() < scatter.get_zorder()
    assert axes.get_xlim()[1] >= 9  # in view, though no key stands there


def test_raw_and_denoised_stand_side_by_side_on_one_scale():
    made = denoised(counts(), count=[600.5, 0, 0.25])
    panels = plot_map(made, PLACES, edges=pd.DataFrame({"u": ["A"], "v": ["B"]}))
    assert [panel.get_title() for panel in panels] == ["count", "count_denoised"]
    for panel, column in zip(panels, made, strict=True):
        assert nodes(panel).get_array().tolist() == made[column].tolist()
        assert nodes(panel).get_offsets().tolist() == [[0, 2], [1, 7], [4, 1]]
        assert len(panel.collections[0].get_segments()) == 1
    assert nodes(panels[0]).norm is nodes(panels[1]).norm
    assert nodes(panels[0]).norm.vmax == 600.5
    assert len(color_bars(panels[0])) == 1


@pytest.mark.parametrize(("chosen", "column"), [(False, "count"), (True, "count_denoised")])
def test_one_of_raw_and_denoised_can_be_chosen(chosen, column):
    made = denoised(counts(), count=[600.5, 0, 0.25])
    axes = plot_map(made, PLACES, denoised=chosen)
    assert nodes(axes).get_array().tolist() == made[column].tolist()
    assert color_bars(axes)[0].get_ylabel() == column


def test_denoised_values_must_be_there():
    with raises(QueryError, "'count_denoised'", parameter="denoised", value=True):
        plot_map(counts(), PLACES, denoised=True)


def test_pairs_of_keys_have_coordinates_of_their_own():
    frame = pd.DataFrame({"row": [0, 1, 1], "column": [5, 5, 6]})
    by = {"row": [0, 1], "column": [5, 6]}
    made = frame.dp.count(["row", "column"], keys=by, epsilon=1)
    places = {(row, column): (column, -row) for row in by["row"] for column in by["column"]}
    axes = plot_map(made, places)
    assert nodes(axes).get_offsets().tolist() == [[5, 0], [6, 0], [5, -1], [6, -1]]
    index = pd.MultiIndex.from_tuples(places)
    axes = plot_map(made, pd.DataFrame(list(places.values()), index=index))
    assert nodes(axes).get_offsets().tolist() == [[5, 0], [6, 0], [5, -1], [6, -1]]


def test_missing_coordinates_are_counted_and_the_first_is_named():
    places = {"A": (0, 0), "C": (math.nan, 1)}
    with raises(QueryError, "none for 2, the first 'B'", parameter="coords"):
        plot_map(counts(), places)
    edges = pd.DataFrame({"u": ["A", "B"], "v": ["C", "Z"]})
    with raises(QueryError, "none for 1; add", parameter="coords"):
        plot_map(counts(), PLACES, edges=edges)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([(0, 1)] * 3, "a frame indexed by the key"),
        ({"A": (0, 1), "B": (0, 1, 2), "C": (0, 1)}, "two numbers"),
        ({"A": (0, 1, 2)}, "two numbers"),
        ({"A": ("east", "north")}, "two numbers"),
        (coords().assign(z=1), "['x', 'y', 'z']"),
        (pd.concat([coords(), coords()]), "4 repeated"),
    ],
)
def test_coordinates_of_other_kinds_are_refused(places, message):
    with raises(QueryError, message, parameter="coords"):
        plot_map(counts(), places)


def test_altered_frames_are_not_drawn():
    with pytest.raises(CertificateError):
        plot_map(counts() + 1, PLACES)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_durations_have_a_unit(kind):
    minutes = pd.to_timedelta(np.arange(600) % 300, unit="min")
    frame = pd.DataFrame({"zone": ["A", "B", "C"] * 200, "wait": minutes})
    bounds = (pd.Timedelta(0), pd.Timedelta("5h"))
    made = getattr(frame.dp, kind)("wait", "zone", keys=KEYS, bounds=bounds, epsilon=1e3)
    axes = plot_map(made, PLACES)
    axes.figure.canvas.draw()
    (bar,) = color_bars(axes)
    unit = {"sum": "days", "mean": "minutes"}[kind]
    length = {"days": 86_400, "minutes": 60}[unit]
    drawn = np.asarray(nodes(axes).get_array())
    assert drawn == pytest.approx(made["wait"].dt.total_seconds().to_numpy() / length)
    assert bar.get_ylabel() == f"wait ({unit})"


def test_points_in_time_have_the_ticks_of_dates():
    days = pd.date_range("2021-01-01", periods=300, tz="Asia/Tokyo")
    frame = pd.DataFrame({"zone": ["A", "B", "C"] * 100, "seen": days})
    made = frame.dp.mean("seen", "zone", keys=KEYS, bounds=(days[0], days[-1]), epsilon=1)
    axes = plot_map(made, PLACES)
    axes.figure.canvas.draw()
    (bar,) = color_bars(axes)
    assert np.asarray(nodes(axes).get_array()) == pytest.approx(dates.date2num(made["seen"]))
    assert bar.get_ylabel() == "seen (Asia/Tokyo)"
    written = [label.get_text() for label in bar.get_yticklabels()]
    assert all(len(label) <= 10 for label in written)


def test_names_are_not_taken_for_formulas():
    frame = pd.DataFrame({"zone": list("AB"), "$x$_1 %": 1})
    made = frame.dp.sum("$x$_1 %", "zone", keys=KEYS, bounds=(0, 1), epsilon=1)
    axes = plot_map(made, PLACES)
    axes.figure.canvas.draw()
    label = color_bars(axes)[0].yaxis.label
    assert (label.get_text(), label.get_parse_math()) == ("$x$_1 %", False)


def box(x, y, size=1.0):
    """A ring that runs clockwise, as rings around areas should not."""
    return [[x, y], [x, y + size], [x + size, y + size], [x + size, y], [x, y]]


def area(key, *parts, **more):
    geometry = {"type": "MultiPolygon", "coordinates": list(parts)}
    if len(parts) == 1:
        geometry = {"type": "Polygon", "coordinates": parts[0]}
    return {"type": "Feature", "properties": {"zone": key, "size": 1}, "geometry": geometry} | more


def collection(*features):
    return {"type": "FeatureCollection", "features": list(features)}


AREAS = collection(
    area("C", [box(2, 51)]),
    area("A", [box(0, 50, 2), box(0.25, 50.25, 0.5)]),
    area("B", [box(2, 50)], [box(3.5, 50, 0.5)]),
    area("unknown", [box(9, 50)]),
)


class Frame(pd.DataFrame):
    """What a GeoDataFrame says of itself."""

    crs = type("System", (), {"is_geographic": False})

    @property
    def __geo_interface__(self):
        return AREAS


def test_areas_are_filled_by_their_values():
    made = counts()
    axes = plot_map(made, AREAS)
    drawn = nodes(axes)
    assert drawn.get_array().tolist() == made["count"].tolist()
    corners = [path.get_extents().bounds for path in drawn.get_paths()]
    assert corners == [(0, 50, 2, 2), (2, 50, 2, 1), (2, 51, 1, 1)]
    assert axes.get_aspect() == pytest.approx(1 / math.cos(math.radians(51)))
    names = {note.get_text(): note.xy for note in axes.texts}
    assert names["A"] == pytest.approx((1, 51)) and names["B"] == pytest.approx((2.5, 50.5))
    (bar,) = color_bars(axes)
    assert bar.get_ylabel() == "count" and len(bar.get_yticks()) >= 3
    drawn.figure.canvas.draw()
    hole, beside = ((0.5, 50.5), (1.5, 51.5))
    path = drawn.get_paths()[0]
    image = np.asarray(drawn.figure.canvas.buffer_rgba())
    colors = []
    for spot in (hole, beside):
        x, y = axes.transData.transform(spot)
        colors.append(image[image.shape[0] - 1 - int(y), int(x), :3].tolist())
    assert colors[0] == [255, 255, 255] and colors[1] != colors[0]
    assert len(path.vertices) == 10


def test_areas_of_frames_say_in_what_they_are():
    assert plot_map(counts(), Frame(index=KEYS)).get_aspect() == 1


def test_areas_may_be_named_by_ids():
    features = [
        one | {"properties": {}, "id": one["properties"]["zone"]} for one in AREAS["features"]
    ]
    made = counts()
    assert (
        nodes(plot_map(made, collection(*features))).get_array().tolist() == made["count"].tolist()
    )


def test_areas_without_a_number_are_hatched():
    made = counts(1e6).dp.suppress(below=100)
    axes = plot_map(made, AREAS)
    empty, filled = axes.collections
    assert filled.get_array().tolist() == [500]
    assert len(empty.get_paths()) == 2 and empty.get_hatch() is not None


def test_raw_and_denoised_areas_share_a_scale():
    panels = plot_map(denoised(counts(), count=[600.5, 0, 0.25]), AREAS)
    assert [nodes(panel).norm.vmax for panel in panels] == [600.5, 600.5]


WRONG_AREAS = {
    "a number": ([1], "must have features"),
    "an area less": (AREAS["features"][:2], "the first 'B'"),
    "an area twice": ([*AREAS["features"], area("B", [box(0, 0)])], "none or several"),
    "a point": (
        [area(key, [box(0, 0)]) for key in "AB"]
        + [area("C", [box(0, 0)], geometry={"type": "Point", "coordinates": [0, 0]})],
        "the first 'C'",
    ),
    "no numbers": ([area(key, [[["x", 0]] * 4]) for key in KEYS], "finite numbers"),
    "no end": ([area(key, [[[math.nan, 0]] * 4]) for key in KEYS], "finite numbers"),
}


@pytest.mark.parametrize("case", WRONG_AREAS)
def test_other_areas_are_refused(case):
    features, message = WRONG_AREAS[case]
    with raises(QueryError, message, parameter="coords"):
        plot_map(counts(), collection(*features))


def test_a_collection_of_nothing_is_refused():
    with raises(QueryError, "must have features", parameter="coords"):
        plot_map(counts(), {"type": "FeatureCollection", "features": None})
