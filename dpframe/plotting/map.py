"""Maps of released frames: values at the nodes of a graph, or at any places of a plane."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpframe.calls import with_keywords
from dpframe.cells.needs import check_parts
from dpframe.cells.verify import Shown, look
from dpframe.certificates.column_parts import TotalPart
from dpframe.errors import QueryError
from dpframe.plotting.cells import Drawn, gather, locate
from dpframe.plotting.look import PLAIN, add_caption, given_panels, inches, pyplot, wrap
from dpframe.plotting.positions import Scale, text

Coords: TypeAlias = pd.DataFrame | Mapping[Any, Sequence[float]]
"""Two numbers per key: a frame of two columns indexed by the key, or a dict."""

_AREA = 42.0  # of a new panel, in square inches
_LEVEL = 0.95  # of the intervals within which colors are linear


@with_keywords
def plot_map(
    released: pd.DataFrame,
    coords: Coords,
    *,
    column: Hashable = None,
    edges: pd.DataFrame | None = None,
    ax: Any = None,
    denoised: bool | None = None,
) -> Any:
    """Draw released values at their places, in color, over the edges that join them.

    A line below the map states the size of the noise, without other errors.

    Colors of counts and sums are linear in the value v while `|v| <= t`, and linear in
    `sign(v) log10(|v|)` beyond, where t is half the median width of the 95% intervals: one busy
    place does not hide all others, and noise below zero stays in view. Colors of means are linear.
    Raw and denoised values share one scale.

    Parameters
    ----------
    released
        A released frame.
    coords
        Two numbers (x, y) per key, in a frame of two columns indexed by the key, or in a dict.
        Columns named `lon` and `lat` are drawn with the proportions of a map. More places than keys
        may be there.
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
        If there is no such column, a key or an end of an edge has no coordinates, or denoised
        values are asked for and not there.
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
    shown.certificate.require_numbers()
    check_parts(shown, "plot_map")
    release, released = shown.certificate.release, shown.table
    raw, places = _positions(shown, column, denoised)
    points, geographic = _points(coords)
    spots = _spots(points, list(released.index), "keys of the release", known=True)
    lines = None if edges is None else _lines(points, edges)
    (drawn,) = gather(shown, [released.columns[raw]], _LEVEL)
    parts = ["value" if place == raw else "denoised" for place in places]
    values = [drawn.parts[part].to_numpy() for part in parts]
    stretch = _stretch(spots[:, 1]) if geographic else 1.0
    panels = _panels(ax, len(places), spots * [1, stretch])
    known = np.concatenate(values)
    known = known[~np.isnan(known)]
    total = isinstance(release.columns[raw], TotalPart)
    norm = _norm(drawn, known, linear=not total)
    for axes, heat in zip(panels, values, strict=True):
        nodes = _draw(axes, spots, heat, lines, norm)
        axes.set_aspect(stretch)
    several = len(places) > 1
    if several:
        for axes, place in zip(panels, places, strict=True):
            axes.set_title(text(released.columns[place]), **PLAIN)
    name = text(released.columns[raw if several else places[0]])
    _add_bar(panels, nodes, drawn.scale, drawn.scale.with_unit(name), _ticks(norm))
    add_caption(panels, _caption(drawn, testing=release.testing), own=ax is None)
    return panels if several else panels[0]


def _caption(drawn: Drawn, *, testing: bool) -> str:
    """Say how far the noise typically reaches, and what else it leaves out."""
    half = float((drawn.parts["high"] - drawn.parts["low"]).median()) / 2
    unit = " days" if drawn.scale.points else f" {drawn.scale.unit}" * bool(drawn.scale.unit)
    test = "TEST, not private; " * testing
    return f"{test}{100 * _LEVEL:g}% intervals of about \u00b1{half:.3g}{unit}: {drawn.caption}"


def _positions(shown: Shown, column: Hashable, denoised: bool | None) -> tuple[int, list[int]]:
    """Return the positions of the released column, and of the columns to draw."""
    raw, partner = locate(shown, column)
    if partner is None and denoised:
        rule = f"draws the column '{shown.frame.columns[raw]}_denoised', and there is none"
        raise QueryError.about("denoised", rule, denoised, "Denoise the release first.")
    if partner is None or denoised is False:
        return raw, [raw]
    return raw, [partner] if denoised else [raw, partner]


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
        why = f"coords must hold two numbers (x, y) per key, and got others, in columns {names}"
        raise QueryError(f"{why}; select two columns of numbers.", parameter="coords")
    if repeated := len(keys) - len(set(keys)):
        rule = f"coords must name each key once, got {repeated} repeated"
        raise QueryError(f"{rule}; drop them.", parameter="coords")
    geographic = [str(name).lower() for name in names] == ["lon", "lat"]
    return dict(zip(keys, table, strict=True)), geographic


def _spots(
    points: Mapping[Any, np.ndarray], keys: Sequence[Any], what: str, *, known: bool
) -> np.ndarray:
    """Look up the coordinates of keys, as rows."""
    missing = [key for key in keys if key not in points or not np.isfinite(points[key]).all()]
    if missing:
        first = f", the first {missing[0]!r}" if known else ""  # edges may hold anything
        rule = f"coords must hold two finite numbers for all {len(keys)} {what}"
        why = f"{rule}, got none for {len(missing)}{first}; add them."
        raise QueryError(why, parameter="coords")
    return np.array([points[key] for key in keys]).reshape(-1, 2)


def _lines(points: Mapping[Any, np.ndarray], edges: object) -> np.ndarray:
    """Return the segments of the edges: edge, end, coordinate."""
    if not isinstance(edges, pd.DataFrame) or edges.shape[1] < 2:  # noqa: PLR2004
        raise QueryError.about("edges", "must be a frame whose first two columns hold keys", edges)
    columns = (list(edges.iloc[:, end]) for end in (0, 1))
    ends = [_spots(points, keys, "ends of edges", known=False) for keys in columns]
    return np.stack(ends, axis=1)


def _stretch(latitudes: np.ndarray) -> float:
    """Return the length of a degree of latitude in degrees of longitude, at the middle."""
    middle = (latitudes.min() + latitudes.max()) / 2
    return float(1 / max(np.cos(np.radians(middle)), 0.1))  # no map reaches a pole


def _norm(drawn: Drawn, values: np.ndarray, *, linear: bool) -> Any:
    """Return the scale of colors, linear within the noise and logarithmic beyond it."""
    from matplotlib import colors  # optional, and slow to import

    if not values.size:
        raise QueryError("there are no cells to draw: all were suppressed, or no row was kept.")
    ends = {"vmin": values.min(), "vmax": values.max()}
    if linear:
        return colors.Normalize(**ends)
    width = float((drawn.parts["high"] - drawn.parts["low"]).median())
    # noise can be next to none, and a scale needs a linear part
    within = max(width / 2, np.abs(values).max() / 1e3)
    return colors.SymLogNorm(within or 1.0, linscale=0.5, **ends)


def _add_bar(panels: np.ndarray, nodes: Any, scale: Scale, name: str, ticks: Any) -> None:
    """Put a bar of colors beside the panels, with the ticks of what it stands for."""
    options = {} if scale.points else {"format": "%g", "ticks": ticks}
    bar = panels[0].figure.colorbar(nodes, ax=list(panels), shrink=0.8, **options)
    bar.set_label(wrap(name, inches(bar.ax.yaxis)), **PLAIN)
    scale.dress(bar.ax.yaxis)


def _ticks(norm: Any) -> Any:
    """Return the ticks of the color bar, few of them within the noise."""
    if not hasattr(norm, "linthresh"):
        return None
    from matplotlib import ticker  # optional, and slow to import

    locator = ticker.SymmetricalLogLocator(base=10, linthresh=norm.linthresh, subs=(1, 2, 5))
    ticks = np.unique(locator.tick_values(norm.vmin, norm.vmax))
    ticks = ticks[(ticks >= norm.vmin) & (ticks <= norm.vmax)]
    return ticks[(ticks == 0) | (np.abs(ticks) >= norm.linthresh / 2)]


def _panels(ax: Any, count: int, spots: np.ndarray) -> Any:
    """Return the axes given, or new ones in the proportions of the places."""
    if ax is None:
        width, height = np.ptp(spots, axis=0)
        ratio = np.clip(width / height if height else 1.0, 0.4, 2.5)
        area = _AREA / count**0.5
        size = (count * (area * ratio) ** 0.5 + 1, (area / ratio) ** 0.5)  # an inch for the bar
        figure = pyplot().figure(figsize=size, layout="constrained")
        ax = [figure.add_subplot(1, count, panel + 1) for panel in range(count)]
    return given_panels(count, ax, None, "choose one panel with denoised=True or denoised=False")


def _draw(
    axes: Any, spots: np.ndarray, heat: np.ndarray, lines: np.ndarray | None, norm: Any
) -> Any:
    """Draw edges, and nodes over them."""
    if lines is not None:
        from matplotlib.collections import LineCollection  # optional, and slow to import

        axes.add_collection(LineCollection(list(lines), colors="0.75", lw=0.6, zorder=1))
    size = np.clip(9000 / len(spots), 4, 80)
    nodes = axes.scatter(*spots.T, s=size, c=heat, cmap="viridis", norm=norm, zorder=2)
    axes.set(xticks=[], yticks=[], frame_on=False)
    return nodes
