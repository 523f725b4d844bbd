"""From panels to a figure: axes, marks, names of axes, legend, title and caption."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.plotting import look
from dpframe.plotting.look import INK, PLAIN, Look, inches, wrap
from dpframe.plotting.positions import NUMBERS, Places, Scale, shorten_label

_CROWDED = 40
_MOST_BARS = 1000  # that are drawn as such
_MOST_RIMS = 100
_DOTS = {"color": "w", "lw": 1, "zorder": 4}
_LIGHT = {"alpha": 0.12}  # of bands with the error of sampled rows
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
        `sampled_low` and `sampled_high`, `denoised`, and `below` and `above`, where an interval has
        no end.
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
        style = {"color": one.look.color, "hatch": one.look.hatch, "label": one.label, **edge}
        if len(at) > _MOST_BARS and places.labels is not None:  # narrower than a pixel, and slow
            ends = np.arange(len(at) + 1) - 0.5
            side = {"orientation": "horizontal" if across else "vertical"}
            axes.stairs(one.parts["value"], ends, fill=True, **side, **style)
        else:
            (axes.barh if across else axes.bar)(at, one.parts["value"], widths, **style)
        _draw_whiskers(axes, at, one, across=across, crowded=crowded)
    if any((one.parts["value"] < 0).any() for one in series):
        frame = axes.spines["bottom"].get_edgecolor()
        (axes.axvline if across else axes.axhline)(0, color=frame, lw=0.8)


def draw_points(axes: Any, places: Places, series: list[Series], *, across: bool = False) -> None:
    """Draw points side by side, with their error bars; across: with a line at 0."""
    step = _SPREAD * np.asarray(places.room) / len(series)
    crowded = len(places.at) * len(series) > _CROWDED
    for position, one in enumerate(series):
        at = places.at + (position - (len(series) - 1) / 2) * step
        _draw_whiskers(axes, at, one, across=across, crowded=crowded, halo=False)
        style = {"color": one.look.color, "marker": one.look.marker, "label": one.label}
        size = 4.5 if crowded else 6
        spots = (one.parts["value"], at) if across else (at, one.parts["value"])
        axes.plot(*spots, ls="", ms=size, mec=INK, mew=0.5, zorder=3, **style)
    if across:
        axes.axvline(0, color=axes.spines["bottom"].get_edgecolor(), lw=0.8, zorder=1)


def draw_lines(axes: Any, places: Places, series: list[Series]) -> None:
    """Draw a line with markers and a band for each series, broken where values are missing."""
    order = np.argsort(places.at, kind="stable")
    at = places.at[order]
    crowded = len(at) > _CROWDED
    size = 8 if crowded else 20
    for position, one in enumerate(series):
        parts = {name: part[order] for name, part in one.parts.items()}
        style = {"color": one.look.color, "marker": one.look.marker, "label": one.label}
        style["ls"] = one.look.dashes
        if crowded:  # some markers tell series apart; on a line alone they would be noise
            every = len(at) // 12
            style["markevery"] = (position * every // len(series), every) if series[1:] else []
        axes.plot(at, parts["value"], lw=1.5, ms=4, zorder=3, **style)
        band = {"color": one.look.color, "alpha": 0.25, "lw": 0}
        axes.fill_between(at, parts["low"], parts["high"], **band)
        if "sampled_low" in parts:
            axes.fill_between(at, parts["sampled_low"], parts["sampled_high"], **band | _LIGHT)
        alone = _alone(parts["value"])
        if alone.any():  # a band needs two
            some = {name: part[alone] for name, part in parts.items()}
            _draw_whiskers(axes, at[alone], Series(one.label, one.look, some), halo=False)
        if "denoised" in parts:
            axes.scatter(at, parts["denoised"], s=size, edgecolor=one.look.color, **_DOTS)
        _draw_endless(axes, at, parts)


def draw_steps(axes: Any, places: Places, series: list[Series], edges: np.ndarray) -> None:
    """Draw steps with a band for each series, and denoised values off the middle of the steps."""
    left = np.asarray(places.left)
    where = np.searchsorted(edges, np.where(np.isfinite(left), left, edges[0]))
    size = 8 if len(edges) > _CROWDED else 20
    for position, one in enumerate(series):
        parts = {name: np.full(len(edges) - 1, np.nan) for name in one.parts}
        for name, part in parts.items():
            part[where] = one.parts[name]  # what lies between bins stays missing
        color = one.look.color
        style = {"color": color, "ls": one.look.dashes, "label": one.label}
        axes.stairs(parts["value"], edges, lw=1.5, **style)
        band = {"baseline": parts["low"], "fill": True, "color": color, "alpha": 0.25, "lw": 0}
        axes.stairs(parts["high"], edges, **band).sticky_edges.y.clear()  # leave a margin below
        if "sampled_low" in parts:
            band |= {"baseline": parts["sampled_low"]} | _LIGHT
            axes.stairs(parts["sampled_high"], edges, **band).sticky_edges.y.clear()
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
    width = float(np.clip(400 / max(len(at), 1), 0.1, 1)) if crowded else 1.5
    color, cap = INK if halo else one.look.color, 0 if crowded else 2
    style = {"fmt": "none", "ecolor": color, "capsize": cap}
    if "sampled_low" in one.parts:
        outer = _along(at, one.parts["sampled_low"], one.parts["sampled_high"], across=across)
        axes.errorbar(**outer, **style, lw=0.7 * width, alpha=0.45, zorder=2.4)
        width *= 1.6
    where = _along(at, one.parts["low"], one.parts["high"], across=across)
    drawn = axes.errorbar(**where, **style, lw=width, zorder=2.5)
    if halo and len(at) <= _MOST_RIMS:
        from matplotlib.patheffects import withStroke  # optional, and slow to import

        rim = [withStroke(linewidth=width + 1.2, foreground="w", alpha=0.8)]
        for line in [*drawn.lines[1], *drawn.lines[2]]:
            line.set_path_effects(rim)
    _draw_endless(axes, at, one.parts, across=across)


def _along(
    at: np.ndarray, low: np.ndarray, high: np.ndarray, *, across: bool
) -> dict[str, np.ndarray]:
    """Say where error bars are, for `errorbar`."""
    middle, half = _bar(low, high)
    return {"x": middle, "y": at, "xerr": half} if across else {"x": at, "y": middle, "yerr": half}


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
    there = np.pad(np.isfinite(values), 1)
    return np.asarray(there[1:-1] & ~(there[:-2] | there[2:]))


_MOST_LABELS = 40
_MOST_TURNED = 24  # characters of labels that are turned
_LABELS, _PER_CHARACTER, _FEWEST = 0.45, 0.085, 9  # of the width; inches; characters
_MOST_NUMBERS = 6  # beside each other
_PER_INCH = 15  # characters of labels beside each other
_PER_LABEL = 0.12  # inches between labels that are turned
_SIDE_BY_SIDE = 4  # columns in one row, or below each other
_MOST_WIDE = 6
_WIDTH, _HEIGHT = 6.4, 4.8  # inches, as in matplotlib
_BESIDE = 1.4  # inches of a legend, for which the figure is wider
_LEGEND = 0.9  # inches of one that makes the axes narrower
_PER_BAR, _HIGHEST = 0.24, 11.0  # inches
_FEW = 4  # places that fill the width


@dataclass(frozen=True, eq=False)
class Panel:
    """What is drawn on one pair of axes.

    Parameters
    ----------
    kind
        What is drawn.
    title
        The group, where groups have panels of their own.
    places
        Where the keys stand.
    series
        What stands there.
    key, name
        What is written beside the axis of the keys, and beside that of the values.
    scale
        What the values stand for.
    legend
        The names of the outer keys.
    """

    kind: str
    title: str
    places: Places
    series: list[Series]
    key: str
    name: str
    scale: Scale
    legend: str

    @property
    def across(self) -> bool:
        """Whether values go to the right."""
        return self.kind in ("barh", "forest")

    @property
    def denoised(self) -> bool:
        """Whether denoised values are drawn."""
        return any("denoised" in one.parts for one in self.series)

    @property
    def telling(self) -> bool:
        """Whether a legend has something to tell apart."""
        return self.denoised or len(self.series) > 1

    @property
    def rank(self) -> bool:
        """Whether rows are sorted by their denoised value: they are too many for labels."""
        crowded = len(self.places.at) > _MOST_LABELS
        return self.kind == "denoised" and crowded and self.places.labels is not None


@dataclass(frozen=True, eq=False)
class Figure:
    """How panels are put together.

    Parameters
    ----------
    panels
        The panels.
    caption
        What error bars are about.
    title
        What is written above.
    legend
        Whether there is one, if there is something to tell apart.
    ax
        Axes to draw on, if they are given.
    figsize
        Width and height in inches.
    """

    panels: list[Panel]
    caption: str
    title: str | None
    legend: bool
    ax: Any
    figsize: tuple[float, float] | None


def draw_figure(figure: Figure) -> Any:
    """Draw all panels; return the axes, or an array of them."""
    panels, own = figure.panels, figure.ax is None
    wide = _width(panels) if own else 1
    if own:
        size = figure.figsize or _size(panels, wide, legend=figure.legend)
        axes = look.new_panels(len(panels), wide, size, **_shared_axes(panels))
    else:
        axes = look.given_panels(len(panels), figure.ax, figure.figsize)
    for place, (panel, one) in enumerate(zip(panels, axes, strict=True)):
        _draw(panel, one)
        first, last = place % wide == 0, place >= len(panels) - wide
        _name_axes(panel, one, first=first or not own, last=last or not own)
    if own and panels[0].title and not panels[0].across:
        whole = axes[0].figure
        whole.supylabel(wrap(panels[0].name, whole.get_figheight()), **PLAIN)
    if figure.legend:
        _add_legends(panels, axes, own=own)
    look.add_title(axes, figure.title, own=own)
    look.add_caption(axes, figure.caption, own=own)
    return axes if len(axes) > 1 else axes[0]


def is_crowded(labels: list[str], room: float = _WIDTH * 0.775) -> bool:
    """Whether labels have no room beside each other, in so many inches."""
    return len(labels) * (max(map(len, labels), default=0) + 1) > _PER_INCH * room


def _width(panels: list[Panel]) -> int:
    """Choose how many panels stand side by side: columns below each other, if they are few."""
    count = len(panels)
    if panels[0].across and not panels[0].title:
        return min(count, _SIDE_BY_SIDE)
    if count <= _SIDE_BY_SIDE and not panels[0].title:
        return 1
    return min(int(np.ceil(count**0.5)), _MOST_WIDE)


def _shared_axes(panels: list[Panel]) -> dict[str, bool]:
    """Choose which axes the panels share: groups both, columns that of the keys."""
    groups, across = bool(panels[0].title), panels[0].across
    alike = len({(panel.kind, panel.rank) for panel in panels}) == 1
    return {"sharex": groups or (alike and not across), "sharey": groups or (alike and across)}


def _size(panels: list[Panel], wide: int, *, legend: bool) -> tuple[float, float]:
    """Choose the size of a figure: room for every panel, for labels and for a legend."""
    first, high = panels[0], -(-len(panels) // wide)
    if len(panels) == 1 and first.across:
        bars = len(first.places.at) * max(1.0, len(first.series) / 2)
        longest = max(map(len, first.places.labels or ()), default=0)
        return max(_WIDTH, 4.4 + longest / 12), min(max(2.4, 1.4 + _PER_BAR * bars), _HIGHEST)
    if len(panels) == 1:
        return _WIDTH, _HEIGHT
    if not first.title:
        return max(_WIDTH, 3.2 * wide), max(_HEIGHT, 1 + 2 * high)
    beside = _BESIDE if legend and first.denoised else 0
    return max(_WIDTH, 2.2 * wide) + beside, max(_HEIGHT, 1.7 * high)


def _draw(panel: Panel, axes: Any) -> None:
    """Draw the marks of a panel."""
    places, series = panel.places, panel.series
    if len(places.at) == 0:
        axes.text(0.5, 0.5, "no groups", ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return
    if panel.kind in ("bar", "barh"):
        draw_bars(axes, places, series, across=panel.across)
    elif panel.kind in ("points", "forest"):
        draw_points(axes, places, series, across=panel.across)
    elif panel.kind == "line":
        draw_lines(axes, places, series)
    elif panel.kind == "histogram":
        draw_steps(axes, places, series, *(edges := _edges(places),))
        _label_ends(axes, places, edges)
    else:
        draw_faint(axes, places, series[0], look.looks(range(3), None)[2])
    if panel.denoised and panel.kind != "denoised":
        # an entry for denoised values of all groups
        axes.scatter([], [], s=20, edgecolor=INK, label="denoised", **_DOTS)
    _dress(panel, axes)


def _dress(panel: Panel, axes: Any) -> None:
    """Put the ticks of the keys and of the values."""
    along, values = (axes.yaxis, axes.xaxis) if panel.across else (axes.xaxis, axes.yaxis)
    labels = panel.places.labels
    if labels is not None and not panel.rank:
        beside = _LEGEND if panel.telling and not panel.across else 0.0
        _label_places(along, list(labels), inches(along) - beside, across=panel.across)
        # few bars are not wide, and many have no margin
        room = max(0.6, (_FEW - len(labels)) / 2)
        ends = -room, len(labels) - 1 + room
        (axes.set_ylim if panel.across else axes.set_xlim)(ends)
    panel.places.scale.dress(along)
    panel.scale.dress(values)
    if panel.across and not panel.scale.points:
        look.tune(values, nbins=_MOST_NUMBERS)
    if panel.across and not along.get_inverted():
        along.set_inverted(True)  # the first is on top


def _label_places(axis: Any, labels: list[str], room: float, *, across: bool) -> None:
    """Name the places along an axis of so many inches, or some of them if there are many."""
    places = range(0, len(labels), -(-len(labels) // max(int(room / _PER_LABEL), 1)))
    some = [labels[place] for place in places]
    turned = not across and is_crowded(some, room)
    if turned:
        some = [shorten_label(label, _MOST_TURNED) for label in some]
    if across:
        most = int(_LABELS * axis.axes.figure.get_figwidth() / _PER_CHARACTER)
        some = [shorten_label(label, max(most, _FEWEST)) for label in some]
    axis.set_ticks(list(places), some, rotation=90 if turned else 0, **PLAIN)


def _name_axes(panel: Panel, axes: Any, *, first: bool, last: bool) -> None:
    """Write the names of the axes, those that panels share only below and beside all of them."""
    many = f"{len(panel.places.at):,} rows"
    behind = f" of {panel.key}" if panel.key else ""
    key = f"rank by denoised value, {many}{behind}" if panel.rank else panel.key
    key = panel.places.scale.with_unit(key)
    name = "" if panel.title and not panel.across else panel.name
    below, beside = (name, key) if panel.across else (key, name)
    if last:
        labels = axes.get_yticklabels() if panel.across else []
        axes.set_xlabel(wrap(below, inches(axes.xaxis) - _longest(labels)), **PLAIN)
    if first or not panel.across:
        labels = [label for label in axes.get_xticklabels() if label.get_rotation()]
        axes.set_ylabel(wrap(beside, inches(axes.yaxis) - _longest(labels)), **PLAIN)
    if panel.title:
        title = look.wrap_small(panel.title, inches(axes.xaxis))
        axes.set_title(title, fontsize="small", **PLAIN)
        axes.tick_params(labelsize="small")


def _longest(labels: list[Any]) -> float:
    """Return how many inches labels take, by which the axes will be smaller."""
    return _PER_CHARACTER * max((len(label.get_text()) for label in labels), default=0)


def _add_legends(panels: list[Panel], axes: Any, *, own: bool) -> None:
    """Add one legend for all panels, if there is something to tell apart."""
    telling = [panel.telling for panel in panels]
    if not any(telling):
        return
    found: dict[str, Any] = {}
    for one, wanted in zip(axes, telling, strict=True):
        handles, labels = one.get_legend_handles_labels()
        if wanted:
            found = dict(zip(labels, handles, strict=True)) | found
    entries = list(found.values()), list(found)
    if own and len(panels) > 1:
        look.add_legend_of_figure(axes[0].figure, entries, panels[0].legend)
    else:
        look.add_legend(axes[0], entries, panels[0].legend, own=own)


def _edges(places: Places) -> np.ndarray:
    """Return finite edges, with a stub per open end."""
    left, right = np.asarray(places.left), np.asarray(places.right)
    finite = np.isfinite(left) & np.isfinite(right)
    ends = _finite_ends(places)
    # wide enough that the label of the open end stands beside the one of the last finite edge
    stub = max(np.median((right - left)[finite]) if finite.any() else 0, (ends[1] - ends[0]) / 12)
    left = np.where(np.isfinite(left), left, ends[0] - (stub or 1))
    right = np.where(np.isfinite(right), right, ends[1] + (stub or 1))
    return np.unique([left, right])


def _finite_ends(places: Places) -> tuple[float, float]:
    edges = np.array([places.left, places.right])
    return float(edges[np.isfinite(edges)].min()), float(edges[np.isfinite(edges)].max())


def _label_ends(axes: Any, places: Places, edges: np.ndarray) -> None:
    """Write an infinity at the end of a stub, and numbers at finite places only."""
    first, last = _finite_ends(places)
    if places.scale is not NUMBERS or (first, last) == (edges[0], edges[-1]):
        return
    ticks = axes.xaxis.get_major_locator().tick_values(first, last)
    labels = {float(tick): f"{tick:g}" for tick in ticks if first <= tick <= last}
    if edges[0] < first:
        labels[float(edges[0])] = "-\N{INFINITY}"
    if last < edges[-1]:
        labels[float(edges[-1])] = "\N{INFINITY}"
    axes.set_xticks(list(labels), list(labels.values()), **PLAIN)
