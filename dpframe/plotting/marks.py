"""What figures are made of: bars, points, lines and steps, with the ends of their intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.plotting.look import INK, Look
from dpframe.plotting.positions import Places

_CROWDED = 40
_MOST_BARS = 1000  # that are drawn as such
_MOST_RIMS = 100
_DOTS = {"color": "w", "lw": 1, "zorder": 4}
_SPREAD = 0.5  # of the room of a key, for the points of several series


@dataclass(frozen=True, eq=False)
class Series:
    """What is drawn in one look.

    Parameters
    ----------
    label
        Its entry in a legend.
    look
        How it is drawn.
    parts
        By name, a number per place, missing where there is none: `value`, `low` and `high`, perhaps
        `denoised`, and `below` and `above`, where an interval has no end.
    """

    label: str
    look: Look
    parts: dict[str, np.ndarray]


def draw_bars(axes: Any, places: Places, series: list[Series], *, across: bool) -> None:
    """Draw bars side by side, from 0, along the axis or across it."""
    widths = np.asarray(places.room) / len(series)
    crowded = len(places.at) * len(series) > _CROWDED
    for position, one in enumerate(series):
        at = places.at + (position - (len(series) - 1) / 2) * widths
        edge = {"edgecolor": INK, "linewidth": 0 if crowded and len(series) == 1 else 0.6}
        look = {"color": one.look.color, "hatch": one.look.hatch, "label": one.label, **edge}
        if len(at) > _MOST_BARS and places.labels is not None:  # narrower than a pixel, and slow
            ends = np.arange(len(at) + 1) - 0.5
            side = {"orientation": "horizontal" if across else "vertical"}
            axes.stairs(one.parts["value"], ends, fill=True, **side, **look)
        else:
            (axes.barh if across else axes.bar)(at, one.parts["value"], widths, **look)
        _draw_whiskers(axes, at, one, across=across, crowded=crowded)
    if any((one.parts["value"] < 0).any() for one in series):
        frame = axes.spines["bottom"].get_edgecolor()
        (axes.axvline if across else axes.axhline)(0, color=frame, lw=0.8)


def draw_points(axes: Any, places: Places, series: list[Series], *, across: bool = False) -> None:
    """Draw points side by side, with their error bars."""
    step = _SPREAD * np.asarray(places.room) / len(series)
    crowded = len(places.at) * len(series) > _CROWDED
    for position, one in enumerate(series):
        at = places.at + (position - (len(series) - 1) / 2) * step
        _draw_whiskers(axes, at, one, across=across, crowded=crowded, halo=False)
        spots = (one.parts["value"], at) if across else (at, one.parts["value"])
        look = {"color": one.look.color, "marker": one.look.marker, "label": one.label}
        axes.plot(*spots, ls="", ms=4.5 if crowded else 6, mec=INK, mew=0.5, zorder=3, **look)


def draw_lines(axes: Any, places: Places, series: list[Series]) -> None:
    """Draw a line with markers and a band for each series, broken where values are missing."""
    order = np.argsort(places.at, kind="stable")
    at = places.at[order]
    crowded = len(at) > _CROWDED
    size = 8 if crowded else 20
    for position, one in enumerate(series):
        parts = {name: part[order] for name, part in one.parts.items()}
        look = {"color": one.look.color, "marker": one.look.marker, "label": one.label}
        look["ls"] = one.look.dashes
        if crowded:  # some markers tell series apart; on a line alone they would be noise
            every = len(at) // 12
            look["markevery"] = (position * every // len(series), every) if series[1:] else []
        axes.plot(at, parts["value"], lw=1.5, ms=4, zorder=3, **look)
        band = {"color": one.look.color, "alpha": 0.25, "lw": 0}
        axes.fill_between(at, parts["low"], parts["high"], **band)
        alone = _alone(parts["value"])
        if alone.any():  # a band needs two
            some = {name: part[alone] for name, part in parts.items()}
            _draw_whiskers(axes, at[alone], Series(one.label, one.look, some), halo=False)
        if "denoised" in parts:
            axes.scatter(at, parts["denoised"], s=size, edgecolor=one.look.color, **_DOTS)
        _draw_endless(axes, at, parts)


def draw_steps(axes: Any, places: Places, series: list[Series], edges: np.ndarray) -> None:
    """Draw steps with a band for each series, and denoised values off the middle of the steps."""
    where = np.searchsorted(edges, _finite_left(places, edges))
    size = 8 if len(edges) > _CROWDED else 20
    for position, one in enumerate(series):
        parts = {name: np.full(len(edges) - 1, np.nan) for name in one.parts}
        for name, part in parts.items():
            part[where] = one.parts[name]  # what lies between bins stays missing
        color = one.look.color
        look = {"color": color, "ls": one.look.dashes, "label": one.label}
        axes.stairs(parts["value"], edges, lw=1.5, **look)
        band = {"baseline": parts["low"], "fill": True, "color": color, "alpha": 0.25, "lw": 0}
        axes.stairs(parts["high"], edges, **band).sticky_edges.y.clear()  # leave a margin below
        shift = (position + 1) / (len(series) + 1)
        middles = edges[:-1] + shift * np.diff(edges)
        if "denoised" in parts:
            axes.scatter(middles, parts["denoised"], s=size, edgecolor=color, **_DOTS)
        _draw_endless(axes, middles, parts)


def draw_faint(axes: Any, places: Places, one: Series, other: Look) -> None:
    """Draw denoised values over faint released ones."""
    crowded = len(places.at) > _CROWDED
    size = 9 if crowded else 36
    value, low, high = (one.parts[part] for part in ("value", "low", "high"))
    faint = {"ms": size**0.5, "alpha": 0.45, "zorder": 1}
    lines = {"color": one.look.color, "alpha": 0.45, "zorder": 1}
    lines["lw"] = np.clip(400 / max(len(places.at), 1), 0.1, 1.2)
    axes.errorbar(places.at, *_bar(low, high), fmt="none", ecolor=lines.pop("color"), **lines)
    axes.plot(places.at, value, "o", color=one.look.color, label=one.label, **faint)
    marks = {"color": other.color, "marker": other.marker, "s": size, "zorder": 3}
    edge = {} if crowded else {"edgecolor": INK, "lw": 0.5}
    axes.scatter(places.at, one.parts["denoised"], label="denoised", **marks, **edge)


def name_denoised(axes: Any) -> None:
    """Add an entry for denoised values of all groups."""
    axes.scatter([], [], s=20, edgecolor=INK, label="denoised", **_DOTS)


def _bar(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middles and halves of intervals, which need not be about their values."""
    return low / 2 + high / 2, np.maximum(high / 2 - low / 2, 0)


def _draw_whiskers(
    axes: Any,
    at: np.ndarray,
    one: Series,
    *,
    across: bool = False,
    crowded: bool = False,
    halo: bool = True,
) -> None:
    """Draw error bars: in the color of their points, or dark with a light rim over bars."""
    middle, half = _bar(one.parts["low"], one.parts["high"])
    width = float(np.clip(400 / max(len(at), 1), 0.1, 1)) if crowded else 1.5
    where = {"x": middle, "y": at, "xerr": half} if across else {"x": at, "y": middle, "yerr": half}
    look = {
        "fmt": "none",
        "ecolor": INK if halo else one.look.color,
        "lw": width,
        "capsize": 0 if crowded else 2,
        "zorder": 2.5,
    }
    drawn = axes.errorbar(**where, **look)
    if halo and len(at) <= _MOST_RIMS:
        from matplotlib.patheffects import withStroke  # optional, and slow to import

        rim = [withStroke(linewidth=width + 1.2, foreground="w", alpha=0.8)]
        for line in [*drawn.lines[1], *drawn.lines[2]]:
            line.set_path_effects(rim)
    _draw_endless(axes, at, one.parts, across=across)


def _draw_endless(
    axes: Any, at: np.ndarray, parts: dict[str, np.ndarray], *, across: bool = False
) -> None:
    """Draw an arrow where an interval has no end."""
    for name, marker in (("below", "<" if across else "v"), ("above", ">" if across else "^")):
        ends = parts.get(name)
        if ends is not None and np.isfinite(ends).any():
            spots = (ends, at) if across else (at, ends)
            frame = axes.spines["bottom"].get_edgecolor()
            axes.plot(*spots, ls="", marker=marker, color=frame, ms=5, zorder=3)


def _alone(values: np.ndarray) -> np.ndarray:
    """Whether a value has none beside it."""
    there = np.isfinite(values)
    beside = np.zeros_like(there)
    beside[1:] |= there[:-1]
    beside[:-1] |= there[1:]
    return np.asarray(there & ~beside)


def _finite_left(places: Places, edges: np.ndarray) -> np.ndarray:
    left = np.asarray(places.left)
    return np.where(np.isfinite(left), left, edges[0])
