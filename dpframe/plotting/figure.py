"""From panels to a figure: axes, marks, names of axes, legend, title and caption."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.plotting import marks
from dpframe.plotting.look import (
    PLAIN,
    add_caption,
    add_legend,
    add_legend_of_figure,
    add_title,
    given_panels,
    inches,
    looks,
    new_panels,
    tune,
)
from dpframe.plotting.positions import Places, shortened
from dpframe.plotting.scales import NUMBERS, Scale

_MOST_LABELS = 40
_MOST_TURNED = 24  # characters of labels that are turned
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
    series: list[marks.Series]
    key: str
    name: str
    scale: Scale
    legend: str

    @property
    def across(self) -> bool:
        """Whether values go to the right."""
        return self.kind == "barh"

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
        axes = new_panels(len(panels), wide, size, **_shared(panels))
    else:
        axes = given_panels(len(panels), figure.ax, figure.figsize)
    for place, (panel, one) in enumerate(zip(panels, axes, strict=True)):
        _draw(panel, one)
        first, last = place % wide == 0, place >= len(panels) - wide
        _name_axes(panel, one, first=first or not own, last=last or not own)
    if own and panels[0].title and not panels[0].across:
        axes[0].figure.supylabel(panels[0].name, **PLAIN)
    if figure.legend:
        _add_legends(panels, axes, own=own)
    add_title(axes, figure.title, own=own)
    add_caption(axes, figure.caption, own=own)
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


def _shared(panels: list[Panel]) -> dict[str, bool]:
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
        marks.draw_bars(axes, places, series, across=panel.across)
    elif panel.kind == "points":
        marks.draw_points(axes, places, series)
    elif panel.kind == "line":
        marks.draw_lines(axes, places, series)
    elif panel.kind == "histogram":
        marks.draw_steps(axes, places, series, *(edges := _edges(places),))
        _label_ends(axes, places, edges)
    else:
        marks.draw_faint(axes, places, series[0], looks(range(3), None)[2])
    if panel.denoised and panel.kind != "denoised":
        marks.name_denoised(axes)
    _dress(panel, axes)


def _dress(panel: Panel, axes: Any) -> None:
    """Put the ticks of the keys and of the values."""
    along, values = (axes.yaxis, axes.xaxis) if panel.across else (axes.xaxis, axes.yaxis)
    labels = panel.places.labels
    if labels is not None and not panel.rank:
        beside = _LEGEND if panel.telling and not panel.across else 0.0
        _label_places(along, list(labels), inches(along) - beside, across=panel.across)
        room = max(0.6, (_FEW - len(labels)) / 2)  # few bars are not wide, and many have no margin
        ends = -room, len(labels) - 1 + room
        (axes.set_ylim if panel.across else axes.set_xlim)(ends)
    panel.places.scale.dress(along)
    panel.scale.dress(values)
    if panel.across and not panel.scale.points:
        tune(values, nbins=_MOST_NUMBERS)
    if panel.across and not along.get_inverted():
        along.set_inverted(True)  # the first is on top


def _label_places(axis: Any, labels: list[str], room: float, *, across: bool) -> None:
    """Name the places along an axis of so many inches, or some of them if there are many."""
    places = range(0, len(labels), -(-len(labels) // max(int(room / _PER_LABEL), 1)))
    some = [labels[place] for place in places]
    turned = not across and is_crowded(some, room)
    if turned:
        some = [shortened(label, _MOST_TURNED) for label in some]
    axis.set_ticks(list(places), some, rotation=90 if turned else 0, **PLAIN)


def _name_axes(panel: Panel, axes: Any, *, first: bool, last: bool) -> None:
    """Write the names of the axes, those that panels share only below and beside all of them."""
    many = f"{len(panel.places.at):,} rows"
    behind = f" of {panel.key}" if panel.key else ""
    key = f"rank by denoised value, {many}{behind}" if panel.rank else panel.key
    key = panel.places.scale.named(key)
    name = "" if panel.title and not panel.across else panel.name
    if last:
        axes.set_xlabel(name if panel.across else key, **PLAIN)
    if first or not panel.across:
        axes.set_ylabel(key if panel.across else name, **PLAIN)
    if panel.title:
        axes.set_title(panel.title, fontsize="small", **PLAIN)
        axes.tick_params(labelsize="small")


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
        add_legend_of_figure(axes[0].figure, entries, panels[0].legend)
    else:
        add_legend(axes[0], entries, panels[0].legend, own=own)


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
