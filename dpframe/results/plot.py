"""Figures of released frames. Matplotlib is imported when a figure is asked for."""

from collections.abc import Hashable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from dpframe.errors import DPFrameError, QueryError, UnknownColumnError
from dpframe.queries.timescale import in_seconds
from dpframe.results.certificate import certificate_of, verify
from dpframe.results.intervals import interval

__all__ = ["Kind", "locate", "plot", "pyplot"]

Kind: TypeAlias = Literal["auto", "bars", "histogram", "denoised"]

_MOST_LABELS = 40
_MOST_SERIES = 10  # as many colors as a cycle has
_MOST_OVERLAID = 4
_MOST_PANELS = 64
_DOTS = {"s": 20, "edgecolor": "k", "lw": 0.5, "zorder": 3}


def plot(
    released: pd.DataFrame,
    *,
    column: Hashable = None,
    kind: Kind = "auto",
    level: float = 0.95,
    ax: Any = None,
) -> Any:
    """Draw a released column with its error bars, as bars, as a histogram, or beside its denoising.

    `bars` has one series per outer key where there are two levels of keys or more. `histogram`
    stands on the numbers that the bins of the innermost key cover, so that wide bins are wide; its
    heights are the released values, not densities. More than four groups get panels of their own.
    `denoised` draws the released values faintly and the denoised ones over them; rows too many to
    be labeled are sorted by the denoised value. `auto` draws a histogram over bins, with the
    denoised values if there are any; else `denoised` if there are any, and else `bars`.

    Bars of times are in seconds, of points in time from the lower bound.

    Parameters
    ----------
    released
        A released frame.
    column
        The released column to draw, the first by default.
    kind
        What to draw.
    level
        Confidence level of the error bars.
    ax
        Matplotlib axes to draw on, all groups in one panel; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        The axes; an array, one per group in order, where groups have panels of their own.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column or kind, or the frame does not hold what the kind draws.
    DPFrameError
        If matplotlib is not installed.

    Examples
    --------
    >>> import dpframe as dpf
    >>> from matplotlib.figure import Figure
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> axes = plot(released, level=0.9, ax=Figure().add_subplot())
    >>> axes.get_ylabel()
    'count (90% error bars)'
    """
    if kind not in get_args(Kind):
        raise QueryError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}.")
    cells = _cells(released, column, level)
    if kind == "auto":
        kind = _suitable(cells, ax)
    elif kind != "denoised":
        cells = cells.drop(columns="denoised", errors="ignore")
    _check(kind, cells, ax)
    draw = {"bars": _bars, "histogram": _histogram, "denoised": _denoised}[kind]
    return draw(cells, f"{cells.columns.name} ({100 * level:g}% error bars)", ax)


def locate(released: pd.DataFrame, column: Hashable) -> tuple[int, int | None]:
    """Return the positions of a released column, by default the first, and of its denoised values.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    UnknownColumnError
        If there is no such released column.
    """
    size = len(verify(released).columns)
    raw, derived = list(released.columns[:size]), list(released.columns[size:])
    if column is not None and column not in raw:
        raise UnknownColumnError(
            f"column must be one of the released columns {raw}, got {column!r}."
        )
    place = 0 if column is None else raw.index(column)
    partner = f"{raw[place]}_denoised"
    return place, size + derived.index(partner) if partner in derived else None


def pyplot() -> Any:
    """Import what draws figures.

    Raises
    ------
    DPFrameError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt  # optional, and slow to import
    except ImportError:
        raise DPFrameError("drawing needs matplotlib: pip install dpframe[plot].") from None
    return plt


def _cells(released: pd.DataFrame, column: Hashable, level: float) -> pd.DataFrame:
    """Gather value, ends of the interval and denoised value, under the name of the column."""
    bars = interval(released, level)
    place, partner = locate(released, column)
    parts = {
        "value": released.iloc[:, place],
        "low": bars.iloc[:, 2 * place],
        "high": bars.iloc[:, 2 * place + 1],
    }
    if partner is not None:
        parts["denoised"] = released.iloc[:, partner]
    origin = certificate_of(released).columns[place].origin
    numbers = {name: in_seconds(part, origin) for name, part in parts.items()}
    cells = pd.DataFrame(numbers, index=released.index)
    return cells.rename_axis(columns=str(released.columns[place]))


def _suitable(cells: pd.DataFrame, ax: Any) -> Kind:
    panels = 1 if ax is not None else _group_count(cells.index)
    if _bins(cells.index) is not None and panels <= _MOST_PANELS:
        return "histogram"
    return "denoised" if "denoised" in cells else "bars"


def _check(kind: Kind, cells: pd.DataFrame, ax: Any) -> None:
    """Refuse a kind that the cells do not suit."""
    if kind == "denoised" and "denoised" not in cells:
        name = cells.columns.name
        raise QueryError(
            f"kind='denoised' needs denoised values, and there is no column '{name}_denoised'; "
            "denoise the release first, or use kind='bars'."
        )
    if kind == "histogram" and _bins(cells.index) is None:
        raise QueryError(
            "kind='histogram' needs an innermost key of numeric intervals that do not overlap, got "
            f"{cells.index.names[-1]!r} without; use kind='bars'."
        )
    groups = _group_count(cells.index)
    if kind == "histogram" and ax is None and groups > _MOST_PANELS:
        raise QueryError(
            f"kind='histogram' draws at most {_MOST_PANELS} panels, got {groups} groups; give ax= "
            "to draw all on the same axes, or use kind='bars'."
        )


def _group_count(index: pd.Index) -> int:
    return 1 if index.nlevels == 1 else index.droplevel(-1).nunique(dropna=False)


def _bins(index: pd.Index) -> pd.IntervalIndex | None:
    """Return the innermost keys if they are intervals of an axis, with a finite end."""
    labels = list(index.get_level_values(-1).unique())
    if not all(isinstance(label, pd.Interval) for label in labels):
        return None
    if len({label.closed for label in labels}) != 1:
        return None
    bins = pd.IntervalIndex(labels)
    if bins.dtype.subtype.kind not in "iuf" or bins.is_overlapping:
        return None
    ends = np.isfinite([bins.left, bins.right])
    return bins if ends.any(axis=0).all() and (bins.left < bins.right).all() else None


def _wide(column: pd.Series, index: pd.Index) -> pd.DataFrame:
    """Make rows of the places along the axis and columns of the series, the outer keys."""
    if index.nlevels == 1:
        return column.to_frame("released")
    rows, places = index.get_level_values(-1).factorize(use_na_sentinel=False)
    columns, series = index.droplevel(-1).factorize(use_na_sentinel=False)
    table = np.full((len(places), len(series)), np.nan)  # a combination may not be there
    table[rows, columns] = column
    return pd.DataFrame(table, index=places.rename(index.names[-1]), columns=series)


def _bars(cells: pd.DataFrame, name: str, ax: Any) -> Any:
    many = _group_count(cells.index) > _MOST_SERIES
    index = cells.index.to_flat_index() if many else cells.index  # one series of all rows
    value, low, high = (_wide(cells[part], index) for part in ("value", "low", "high"))
    axes = pyplot().subplots(layout="constrained")[1] if ax is None else ax
    width = 0.8 / value.shape[1]
    errors = {"ecolor": "0.25", "lw": 1 if value.size > _MOST_LABELS else 1.5}
    caps = 0 if value.size > _MOST_LABELS else 2
    places = np.arange(len(value))
    for position, series in enumerate(value.columns):
        height = value.iloc[:, position].to_numpy()
        reach = [
            height - low.iloc[:, position].to_numpy(),
            high.iloc[:, position].to_numpy() - height,
        ]
        shift = (position - (value.shape[1] - 1) / 2) * width
        bars = {"yerr": reach, "capsize": caps, "error_kw": errors, "label": _text(series)}
        axes.bar(places + shift, height, width, **bars)
    _label_places(axes, list(value.index))
    axes.set_xlabel(_names(cells.index.names if many else cells.index.names[-1:]))
    axes.set_ylabel(name)
    if value.shape[1] > 1:
        axes.legend(title=_names(cells.index.names[:-1]), loc="best")
    return axes


def _denoised(cells: pd.DataFrame, name: str, ax: Any) -> Any:
    """Draw denoised values over faint released ones."""
    axes = pyplot().subplots(layout="constrained")[1] if ax is None else ax
    crowded = len(cells) > _MOST_LABELS
    if crowded:
        cells = cells.sort_values("denoised", ascending=False, kind="stable")
    places = np.arange(len(cells))
    value, size = cells["value"].to_numpy(), 9 if crowded else 36
    reach = [value - cells["low"].to_numpy(), cells["high"].to_numpy() - value]
    faint = {"fmt": ".", "ms": size**0.5, "alpha": 0.35, "lw": np.clip(400 / len(cells), 0.1, 1)}
    bars = axes.errorbar(places, value, reach, color="C0", label="released", **faint)
    marks = {"color": "C1", "s": size, "zorder": 3, "label": "denoised"}
    dots = axes.scatter(places, cells["denoised"].to_numpy(), **marks)
    keys = _names(cells.index.names)
    if crowded:
        axes.set_xlabel(f"rank by denoised value, {len(cells):,} rows" + (keys and f" of {keys}"))
    else:
        _label_places(axes, list(cells.index))
        axes.set_xlabel(keys)
    axes.set_ylabel(name)
    axes.legend(handles=[bars, dots], loc="upper right" if crowded else "best")
    return axes


def _histogram(cells: pd.DataFrame, name: str, ax: Any) -> Any:
    """Draw a line of steps per group, with an error band, on the axis of the bins."""
    tables = {str(part): _wide(cells[part], cells.index) for part in cells}
    groups = list(tables["value"].columns)
    bins = pd.IntervalIndex(list(tables["value"].index))
    edges, where = _edges(bins)
    panels = _panels(len(groups), ax)
    for position, group in enumerate(groups):
        axes = panels[position % len(panels)]
        parts = {part: np.full(len(edges) - 1, np.nan) for part in tables}
        for part, values in parts.items():
            values[where] = tables[part].iloc[:, position]  # what lies between bins stays missing
        alone = len(panels) > 1 or len(groups) == 1
        label = "released" if alone else _text(group)
        shift = 0 if alone else (position + 1) / (len(groups) + 1) - 0.5
        _draw_steps(axes, edges, parts, shift, color="C0" if alone else f"C{position}", label=label)
    for axes in panels:
        _label_ends(axes, bins, edges)
    _name_panels(panels, cells, groups, name.replace("bars", "band"))
    return panels if len(panels) > 1 else panels[0]


def _edges(bins: pd.IntervalIndex) -> tuple[np.ndarray, np.ndarray]:
    """Return finite edges, a stub per open end, and the step between them that a bin is."""
    left, right = np.asarray(bins.left, np.float64), np.asarray(bins.right, np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    ends = _finite_ends(bins)
    # wide enough that the label of the open end stands beside the one of the last finite edge
    stub = max(np.median((right - left)[finite]) if finite.any() else 0, (ends[1] - ends[0]) / 12)
    left = np.where(np.isfinite(left), left, ends[0] - (stub or 1))
    right = np.where(np.isfinite(right), right, ends[1] + (stub or 1))
    edges = np.unique([left, right])
    return edges, np.searchsorted(edges, left)


def _finite_ends(bins: pd.IntervalIndex) -> tuple[float, float]:
    edges = np.asarray([bins.left, bins.right], np.float64)
    return float(edges[np.isfinite(edges)].min()), float(edges[np.isfinite(edges)].max())


def _panels(groups: int, ax: Any) -> Any:
    """Return the axes given, one for all groups, or one per group if there are many."""
    if ax is not None:
        return np.array([ax])
    if groups <= _MOST_OVERLAID:
        return np.array([pyplot().subplots(layout="constrained")[1]])
    wide = min(int(np.ceil(groups**0.5)), 6)
    high = -(-groups // wide)
    figure, grid = pyplot().subplots(
        high,
        wide,
        sharex=True,
        sharey=True,
        squeeze=False,
        figsize=(max(6.4, 2.2 * wide), max(4.8, 1.7 * high)),
        layout="constrained",
    )
    for axes in grid.flat[groups:]:
        figure.delaxes(axes)
    for axes in grid[-2, groups - (high - 1) * wide :] if high > 1 else ():
        axes.tick_params(labelbottom=True)  # nothing is left below
    return grid.ravel()[:groups]


def _draw_steps(
    axes: Any, edges: np.ndarray, parts: dict[str, np.ndarray], shift: float, **look: str
) -> None:
    """Draw steps and band, and denoised values off the middle by a part of the width."""
    axes.stairs(parts["value"], edges, lw=1.5, **look)
    color = look["color"]
    band = {"baseline": parts["low"], "fill": True, "color": color, "alpha": 0.25, "lw": 0}
    axes.stairs(parts["high"], edges, **band).sticky_edges.y.clear()  # leave a margin below
    if "denoised" in parts:
        places = edges[:-1] + (0.5 + shift) * np.diff(edges)
        axes.scatter(places, parts["denoised"], **_DOTS, color=color)


def _label_ends(axes: Any, bins: pd.IntervalIndex, edges: np.ndarray) -> None:
    """Write an infinity at the end of a stub, and numbers at finite places only."""
    first, last = _finite_ends(bins)
    if (first, last) == (edges[0], edges[-1]):
        return
    ticks = axes.xaxis.get_major_locator().tick_values(first, last)
    labels = {tick: f"{tick:g}" for tick in ticks if first <= tick <= last}
    if edges[0] < first:
        labels[edges[0]] = r"$-\infty$"
    if last < edges[-1]:
        labels[edges[-1]] = r"$\infty$"
    axes.set_xticks(list(labels), labels.values())


def _name_panels(panels: Any, cells: pd.DataFrame, groups: list[Any], name: str) -> None:
    inner, outer = _names(cells.index.names[-1:]), _names(cells.index.names[:-1])
    axes = panels[0]
    if "denoised" in cells:  # one entry for all groups
        axes.scatter([], [], **_DOTS, color="w", label="denoised")
    if len(panels) > 1:
        axes.figure.supxlabel(inner)
        axes.figure.supylabel(name)
        for panel, group in zip(panels, groups, strict=True):
            panel.set_title(f"{outer} = {_text(group)}", fontsize="medium")
        if "denoised" in cells:
            entries = axes.get_legend_handles_labels()
            axes.figure.legend(*entries, ncols=2, loc="outside upper right")
    else:
        axes.set_xlabel(inner)
        axes.set_ylabel(name)
        if "denoised" in cells or len(groups) > 1:
            axes.legend(title=outer, loc="best")


def _label_places(axes: Any, keys: list[Any]) -> None:
    """Name the places along the axis, or some of them if there are many."""
    places = range(0, len(keys), max(-(-len(keys) // _MOST_LABELS), 1))  # none may be found
    labels = [_text(keys[place]) for place in places]
    crowded = len(labels) * max(map(len, labels), default=0) > 80  # noqa: PLR2004
    axes.set_xticks(list(places), labels, rotation=90 if crowded else 0)


def _text(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _names(names: Any) -> str:
    return ", ".join(str(name) for name in names if name is not None)
