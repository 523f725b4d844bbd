"""Maps of released frames: values in areas, at the nodes of a graph, or at any places."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpframe.cells.verify import look
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.plotting.frame import gather, pyplot, text
from dpframe.plotting.plot import PLAIN, caption, finish, given_axes, length, wrap
from dpframe.public import public_call

Coords: TypeAlias = pd.DataFrame | Mapping[Any, Any]
"""Two numbers per key: a frame of two columns indexed by the key, or a dict. Or areas: GeoJSON."""

_AREA = 42.0  # of a new panel, in square inches
_MOST_NAMES = 40  # of places that are named; more would cover each other
_FEWEST_TICKS = 3  # of a color bar
_LEVEL = 0.95  # of the intervals within which colors are linear


@public_call
def plot_map(
    released: pd.DataFrame, coords: Coords, *, column: Hashable = None,
    edges: pd.DataFrame | None = None, ax: Any = None, denoised: bool | None = None,
) -> Any:  # fmt: skip
    """Draw released values in their areas or at their places, in color, over edges that join them.

    A line below the map states the size of the noise, without other errors. Up to 40 places are
    named by their keys.

    Colors of counts and sums are linear in the value v while `|v| <= t`, and linear in
    `sign(v) log10(|v|)` beyond, where t is half the width of the 95% intervals: one busy
    place does not hide all others, and noise below zero stays in view. Colors of means are linear.
    Raw and denoised values share one scale.

    Parameters
    ----------
    released
        A released frame.
    coords
        Two numbers (x, y) per key, in a frame of two columns indexed by the key, or in a dict.
        Columns named `lon` and `lat` are drawn with the proportions of a map. More places than keys
        may be there. Or areas: a `GeoDataFrame`, or GeoJSON, as `json.load` reads a
        "FeatureCollection". Columns, or properties, that are named as the levels of the release
        say which key it is; otherwise, the index, or ids.
    column
        The released column to draw, the first by default.
    edges
        A frame whose first two columns hold the keys that an edge joins, all of them in `coords`.
    ax
        Matplotlib axes to draw on, two of them for two panels; new ones by default.
    denoised
        Whether to draw denoised values instead of released ones. By default the two stand side by
        side if the frame holds both.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        The axes; an array of two, released and denoised, where both are drawn.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column, a key or an end of an edge has no coordinates or area, or
        denoised values are asked for and not there.
    DPFrameError
        If matplotlib is not installed.

    Examples
    --------
    >>> import dpframe as dpf
    >>> from matplotlib.figure import Figure
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> axes = plot_map(released, {"A": (0, 1), "B": (2, 0)}, ax=Figure().add_subplot())
    >>> axes.collections[0].get_offsets().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    shown = look(released)
    certificate = shown.certificate
    certificate.require_numbers()
    release = certificate.release
    pyplot()
    columns: list[Hashable] = list(shown.frame.columns)
    label = columns[0] if column is None else column
    (drawn,) = gather(shown, label, _LEVEL, sampling=False)
    partner = f"{label}_denoised"
    parts = {label: drawn.cells["value"].to_numpy()}
    if "denoised" in drawn.cells and denoised is not False:
        parts[partner] = drawn.cells["denoised"].to_numpy()
    elif denoised:
        rule = f"draws the column {partner!r}, and there is none"
        raise QueryError.about("denoised", rule, denoised, "Denoise the release first.")
    if denoised:
        del parts[label]
    places = _Places.of(coords, shown.table.index)
    spots = places.spots
    lines = None if edges is None else _lines(places.points, edges)
    widths = drawn.cells["high"] - drawn.cells["low"]
    total = release.columns[columns.index(label)].form.is_total
    width = float(widths.max() if total else widths.median())  # near 0, those of counts are cut
    norm = _norm(np.concatenate(list(parts.values())), width / 2 if total else None)
    stretch = places.stretch
    panels = _new_axes(len(parts), places.corners * [1, stretch]) if ax is None else ax
    way_out = "choose one panel with denoised=True or denoised=False"
    panels = given_axes(len(parts), panels, None, way_out)
    size = np.clip(9000 / len(spots), 4, 80)  # square points
    for axes, (title, values) in zip(panels, parts.items(), strict=True):
        if lines is not None:
            from matplotlib.collections import LineCollection  # optional, and slow to import

            axes.add_collection(LineCollection(list(lines), colors="0.75", lw=0.6, zorder=1))
        if places.areas:
            nodes = _draw_areas(axes, places.areas, values, norm)
        else:
            nodes = axes.scatter(*spots.T, s=size, c=values, cmap="viridis", norm=norm, zorder=2)
        axes.set(xticks=[], yticks=[], frame_on=False, aspect=stretch)
        if len(spots) <= _MOST_NAMES:
            _name_places(axes, shown.table.index, spots, above=not places.areas)
        if len(parts) > 1:
            axes.set_title(text(title), **PLAIN)
    options = {} if drawn.scale.dates else {"format": "%g", "ticks": _ticks(norm)}
    bar = panels[0].figure.colorbar(nodes, ax=list(panels), shrink=0.8, **options)
    name = drawn.scale.name(text(next(iter(parts))))
    bar.set_label(wrap(name, length(bar.ax.yaxis)), **PLAIN)
    drawn.scale.dress(bar.ax.yaxis)
    unit = "days" if drawn.scale.dates else drawn.scale.unit
    note = f"intervals of about \u00b1{width / 2:.3g} {unit}".rstrip()
    finish(panels, None, caption(certificate, _LEVEL, note), new_figure=ax is None)
    return panels if len(panels) > 1 else panels[0]


def _name_places(axes: Any, keys: pd.Index, spots: np.ndarray, *, above: bool) -> None:
    """Write the keys above their places, or into their areas."""
    options: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
    options |= {"va": "bottom"} if above else {"va": "center", "bbox": _PLATE}
    for key, spot in zip(keys, spots, strict=True):
        axes.annotate(text(key), spot, (0, 5 if above else 0), **options, **PLAIN)


_PLATE = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.7}
"""What is below a name, so that it can be read on every color."""

Rings: TypeAlias = list[np.ndarray]
"""Closed lines: around the parts of an area, and the other way around holes in them."""


@frozen(eq=False)
class _Places:
    """Where the keys of a release are.

    Parameters
    ----------
    points
        (x, y) by key: of areas, their middles.
    spots
        Those of the keys, in order.
    areas
        The rings around the area of each key, in order; none: keys are points.
    geographic
        Whether x and y are degrees of longitude and latitude.
    """

    points: Mapping[Any, np.ndarray]
    spots: np.ndarray
    areas: Sequence[Rings]
    geographic: bool

    @classmethod
    def of(cls, coords: Any, keys: pd.Index) -> "_Places":
        """Read coordinates, or areas."""
        features = getattr(coords, "__geo_interface__", coords)
        areas: list[Rings] = []
        if isinstance(features, Mapping) and features.get("type") == "FeatureCollection":
            areas = _areas(features, keys)
            points = {key: _middle(rings) for key, rings in zip(keys, areas, strict=True)}
            # GeoJSON is in degrees (RFC 7946); a frame says in what it is
            system = getattr(coords, "crs", None)
            geographic = features is coords or bool(getattr(system, "is_geographic", False))
        else:
            points, geographic = _points(coords)
        spots = _spots(points, list(keys), "keys of the release", public=True)
        return cls(points, spots, areas, geographic)

    @property
    def corners(self) -> np.ndarray:
        """All points that are drawn."""
        rings = [ring for area in self.areas for ring in area]
        return np.concatenate(rings) if rings else self.spots

    @property
    def stretch(self) -> float:
        """How many degrees of longitude are as long as one of latitude."""
        if not self.geographic:
            return 1.0
        latitudes = self.corners[:, 1]
        middle = np.radians((latitudes.min() + latitudes.max()) / 2)
        return float(1 / max(np.cos(middle), 0.1))  # no map reaches a pole


def _areas(collection: Mapping[str, Any], keys: pd.Index) -> list[Rings]:
    """Return the rings around the area of each key."""
    names = [str(name) for name in keys.names]
    areas: dict[tuple[str, ...], Rings] = {}
    again = set()
    features = collection.get("features")
    if not isinstance(features, list | tuple) or not all(map(_is_mapping, features)):
        rule = "coords must have features, as a FeatureCollection of GeoJSON has"
        raise QueryError(f"{rule}.", parameter="coords")
    for feature in features:
        properties = feature.get("properties") or {}
        words: tuple[str, ...] = (str(feature.get("id")),)
        if all(name in properties for name in names):
            words = tuple(str(properties[name]) for name in names)
        if words in areas:
            again.add(words)
        areas[words] = _rings(feature.get("geometry") or {})
    key_words = [_words_of(key) for key in keys]
    missing = [words for words in key_words if not areas.get(words) or words in again]
    if missing:
        rule = f"coords must have one area for each of {len(keys)} keys of the release"
        first = f"got none or several for {len(missing)}, the first {', '.join(missing[0])!r}"
        way_out = f"Name them by properties {names!r}, or by ids"
        raise QueryError(f"{rule}, {first}. {way_out}.", parameter="coords")
    return [areas[words] for words in key_words]


def _is_mapping(feature: object) -> bool:
    return isinstance(feature, Mapping)


def _words_of(key: Any) -> tuple[str, ...]:
    return tuple(map(str, key)) if isinstance(key, tuple) else (str(key),)


def _rings(geometry: Mapping[str, Any]) -> Rings:
    """Return the rings of an area; of other shapes, none."""
    parts: Sequence[Any] = []
    match geometry.get("type"):
        case "Polygon":
            parts = [geometry["coordinates"]]
        case "MultiPolygon":
            parts = geometry["coordinates"]
    rings = []
    for part in parts:
        for at, points in enumerate(part):
            try:
                ring = np.array([point[:2] for point in points], np.float64)  # then come heights
            except (TypeError, ValueError):
                ring = np.empty(0)
            if ring.ndim != 2 or not np.isfinite(ring).all():  # noqa: PLR2004  # points of numbers
                rule = "coords must hold rings of two finite numbers a point, as GeoJSON has"
                raise QueryError(f"{rule}.", parameter="coords")
            turned = (_cross(ring).sum() < 0) == (at == 0)
            rings.append(ring[::-1] if turned else ring)
    return rings


def _cross(ring: np.ndarray) -> np.ndarray:
    """Return twice the area between each side and the origin; they add up to that of the ring."""
    x, y = ring.T
    products: np.ndarray = x[:-1] * y[1:] - x[1:] * y[:-1]
    return products


def _middle(rings: Rings) -> np.ndarray:
    """Return the center of gravity of the largest ring."""
    ring = max(rings, key=lambda points: float(_cross(points).sum()))
    near = ring - ring[0]  # of small areas far from 0, no digits are lost
    cross = _cross(near)
    twice = float(cross.sum())
    weighed = (near[:-1] + near[1:]).T @ cross
    moved = weighed / (3 * twice) if twice else near.mean(axis=0)
    return np.asarray(ring[0] + moved)


def _draw_areas(axes: Any, areas: Sequence[Rings], values: np.ndarray, norm: Any) -> Any:
    """Draw areas in the colors of their values; those without one are hatched."""
    from matplotlib.collections import PathCollection  # optional, and slow to import
    from matplotlib.path import Path

    paths = [Path.make_compound_path(*map(Path, rings)) for rings in areas]
    present = ~np.isnan(values)
    empty = [path for path, filled in zip(paths, present, strict=True) if not filled]
    axes.add_collection(PathCollection(empty, fc="none", ec="0.6", lw=0.5, hatch="///"))
    drawn = PathCollection(
        [path for path, filled in zip(paths, present, strict=True) if filled],
        array=values[present], cmap="viridis", norm=norm, ec="white", lw=0.5,
    )  # fmt: skip
    axes.add_collection(drawn)
    axes.autoscale_view()
    return drawn


def _points(coords: object) -> tuple[dict[Any, np.ndarray], bool]:
    """Return (x, y) by key, and whether they are degrees of longitude and latitude."""
    rows: Any
    if isinstance(coords, pd.DataFrame):
        keys, rows, names = list(coords.index), coords.to_numpy(), list(coords.columns)
    elif isinstance(coords, Mapping):
        keys, rows, names = list(coords), list(coords.values()), ["x", "y"]
    else:
        raise QueryError.about("coords", "must be a frame indexed by the key, or a dict", coords)
    try:
        table = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape != (len(keys), 2):
        rule = f"coords must hold two numbers (x, y) per key, and got others, in columns {names}"
        raise QueryError(f"{rule}; select two columns of numbers.", parameter="coords")
    if repeated := len(keys) - len(set(keys)):
        rule = f"coords must name each key once, got {repeated} repeated"
        raise QueryError(f"{rule}; drop them.", parameter="coords")
    geographic = [str(name).lower() for name in names] == ["lon", "lat"]
    return dict(zip(keys, table, strict=True)), geographic


def _spots(
    points: Mapping[Any, np.ndarray], keys: Sequence[Any], names: str, *, public: bool
) -> np.ndarray:
    """Look up the coordinates of keys, as rows."""
    missing = [key for key in keys if key not in points or not np.isfinite(points[key]).all()]
    if missing:
        first = f", the first {missing[0]!r}" if public else ""  # edges may hold anything
        rule = f"coords must hold two finite numbers for all {len(keys)} {names}"
        message = f"{rule}, got none for {len(missing)}{first}; add them."
        raise QueryError(message, parameter="coords")
    return np.array([points[key] for key in keys]).reshape(-1, 2)


def _lines(points: Mapping[Any, np.ndarray], edges: object) -> np.ndarray:
    """Return the segments of the edges: edge, end, coordinate."""
    if not isinstance(edges, pd.DataFrame) or edges.shape[1] < 2:  # noqa: PLR2004
        raise QueryError.about("edges", "must be a frame whose first two columns hold keys", edges)
    columns = (list(edges.iloc[:, end]) for end in (0, 1))
    ends = [_spots(points, keys, "ends of edges", public=False) for keys in columns]
    return np.stack(ends, axis=1)


def _norm(values: np.ndarray, within: float | None) -> Any:
    """Return the scale of colors, linear within the noise and logarithmic beyond it."""
    from matplotlib import colors  # optional, and slow to import

    finite = values[~np.isnan(values)]
    if not finite.size:
        raise QueryError("there are no cells to draw: all were suppressed, or no row was kept.")
    if within is None:
        return colors.Normalize(finite.min(), finite.max())
    # noise can be next to none, and a scale needs a linear part
    linear = max(within, np.abs(finite).max() / 1e3) or 1.0
    return colors.SymLogNorm(linear, linscale=0.5, vmin=finite.min(), vmax=finite.max())


def _ticks(norm: Any) -> Any:
    """Return the ticks of the color bar, few of them within the noise."""
    if not hasattr(norm, "linthresh"):
        return None
    from matplotlib import ticker  # optional, and slow to import

    locator = ticker.SymmetricalLogLocator(base=10, linthresh=norm.linthresh, subs=(1, 2, 5))
    ticks = np.unique(locator.tick_values(norm.vmin, norm.vmax))
    inside = (ticks >= norm.vmin) & (ticks <= norm.vmax)
    shown = ticks[inside & ((ticks == 0) | (np.abs(ticks) >= norm.linthresh / 2))]
    if len(shown) >= _FEWEST_TICKS:
        return shown
    even = ticker.MaxNLocator(_FEWEST_TICKS).tick_values(norm.vmin, norm.vmax)
    return even[(even >= norm.vmin) & (even <= norm.vmax)]


def _new_axes(count: int, spots: np.ndarray) -> Any:
    """Return new axes in the proportions of the places."""
    width, height = np.ptp(spots, axis=0)
    ratio = np.clip(width / height if height else 1.0, 0.4, 2.5)
    area = _AREA / count**0.5
    size = count * (area * ratio) ** 0.5 + 1, (area / ratio) ** 0.5  # an inch for the color bar
    return pyplot().subplots(1, count, figsize=size, layout="constrained")[1]
