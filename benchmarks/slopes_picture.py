"""Draw time and memory against size, on logarithmic scales."""

import itertools
import math
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt  # the backend comes first
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from slopes_axes import Axis
from slopes_page import LEAST_MB, Points

COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73")  # Okabe and Ito: told apart by all readers
MARKERS = ("o", "s", "^", "D")
GAP = 0.075  # between labels, of the height


def spread(heights: list[float], gap: float = GAP) -> list[float]:
    """Move heights of labels apart, upward first, in their order; down again from the top."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    for below, above in itertools.pairwise(order):
        placed[above] = max(placed[above], placed[below] + gap)
    top = 1.0 - gap / 2
    for place in reversed(order):
        placed[place] = min(placed[place], top)
        top = placed[place] - gap
    return placed


def size_text(value: float, _: object = None) -> str:
    """Write a power of ten."""
    for least, name in ((1e6, " M"), (1e3, ",000")):
        if value >= least:
            return f"{value / least:,.0f}{name}"
    return f"{value:g}"


def time_tick(seconds: float, _: object = None) -> str:
    """Write a time without digits that it does not need."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit * (1 - 1e-9):
            return f"{seconds / unit:,.3g} {name}"
    return f"{1e6 * seconds:.3g} µs"


def memory_text(megabytes: float, _: object = None) -> str:
    return f"{megabytes:,g} MB" if megabytes < 1000 else f"{megabytes / 1000:,g} GB"


def label(axes: plt.Axes, names: list[str], ends: Mapping[int, tuple[float, float]]) -> None:
    """Name each line at its end: right of the last size, and left of one that ends before."""
    to_height = axes.transData + axes.transAxes.inverted()
    last = max(x for x, _ in ends.values())
    whole = {line: to_height.transform(end)[1] for line, end in ends.items() if end[0] == last}
    look = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
    for line, height in zip(whole, spread(list(whole.values())), strict=True):
        place = {"xy": (last, height), "xycoords": ("data", "axes fraction"), "xytext": (7, 0)}
        axes.annotate(names[line], **place, **look, color=COLORS[line], annotation_clip=False)
    for line in ends.keys() - whole.keys():
        place = {"xy": ends[line], "xytext": (-6, 5), "ha": "right"}
        axes.annotate(names[line], **place, **look, color=COLORS[line])


def panel(axes: plt.Axes, names: list[str], lines: list[Points]) -> None:
    """Draw the lines, and one in proportion to size through the middle."""
    axes.set(xscale="log", yscale="log")
    ends = {}
    for place, points in enumerate(lines):
        if points:
            look = "--" if place == 0 and "pandas" in names[0] else "-"
            axes.plot(
                *zip(*points, strict=True),
                color=COLORS[place],
                linestyle=look,
                marker=MARKERS[place],
                markersize=4.5,
            )
            ends[place] = points[-1]
    limits, bottom, top = sorted({n for points in lines for n, _ in points}), *axes.get_ylim()
    if top < 30 * bottom:  # a flat line is to look flat
        wider = math.sqrt(30 * bottom / top)
        bottom, top = bottom / wider, top * wider
    middle = math.sqrt(bottom * top)
    center = math.sqrt(limits[0] * limits[-1])
    axes.plot(limits, [middle * n / center for n in limits], color="0.65", linestyle=":", zorder=0)
    axes.set_ylim(bottom, top)
    axes.set_xlim(limits[0] / 1.3, limits[-1] * 1.3)
    steps = (1.0,) if top > 100 * bottom else (1.0, 3.0)
    for axis, parts in ((axes.xaxis, (1.0,)), (axes.yaxis, steps)):
        axis.set_major_locator(LogLocator(10, parts, numticks=20))
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8.5)
    label(axes, names, ends)


def draw(axis: Axis, found: Mapping[str, tuple[Points, Points]], path: Path) -> None:
    """Draw time on the left and memory on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.9))
    figure.subplots_adjust(left=0.07, right=0.87, bottom=0.13, top=0.91, wspace=0.62)
    names = list(axis.lines.values())
    panel(left, names, [times for times, _ in found.values()])
    panel(right, names, [[(n, max(mb, LEAST_MB)) for n, mb in used] for _, used in found.values()])
    left.yaxis.set_major_formatter(FuncFormatter(time_tick))
    right.yaxis.set_major_formatter(FuncFormatter(memory_text))
    for axes, title in ((left, "time"), (right, "memory above the start")):
        axes.set_title(title, fontsize=10.5, loc="left")
        axes.set_xlabel(axis.noun, fontsize=9.5)
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})
    plt.close(figure)
