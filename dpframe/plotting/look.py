"""How figures look: colors, plain texts, legends beside the axes, captions and panels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from textwrap import fill
from typing import Any

import numpy as np

from dpframe.errors import DPFrameError, QueryError, pip_install, quote

PALETTE = ("#0072B2", "#E69F00", "#D55E00", "#444444", "#56B4E9", "#009E73")
"""Okabe and Ito (2008), a dark gray for yellow: neighbors differ in lightness, in gray too."""

INK = "0.15"
"""Error bars and edges of bars."""

PLAIN = {"parse_math": False, "usetex": False}
"""Dollars, underscores and percents in labels are what they are."""

CAPTION = "dpframe caption"
"""The `gid` of captions."""

# numbers of them that have no factor in common with that of the colors: 30 looks in all
_HATCHES = ("", "///", "...", "xx", "\\\\\\")
_MARKERS = "os^Dv"
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_QUIET = {"fontsize": "small", "alpha": 0.75, **PLAIN}
_LONG = 24  # characters of an entry that is too wide to stand to the right
_ONE_PANEL = "choose one column with column=, or draw all groups in one panel with panels=False"
_PER_CHARACTER = 0.085  # inches of an entry of a legend


@dataclass(frozen=True)
class Look:
    """How one series is drawn.

    Parameters
    ----------
    color
        Its color.
    hatch, marker, dashes
        What tells it from others without colors.
    """

    color: Any
    hatch: str
    marker: str
    dashes: Any


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
        raise DPFrameError(f"drawing needs matplotlib: {pip_install('plot')}.") from None
    return plt


def looks(names: Sequence[Any], color: Any) -> list[Look]:
    """Choose how series are drawn: in the colors given, one for all, in turn or by name.

    Raises
    ------
    QueryError
        If a color is none.
    """
    own = list(islice(cycle(PALETTE), len(names)))
    if isinstance(color, Mapping):
        colors = [color.get(name, found) for name, found in zip(names, own, strict=True)]
    elif color is None:
        colors = own
    else:
        colors = list(islice(cycle(_each(color)), len(names)))
    wrong = [one for one in colors if not _is_color(one)]
    if wrong:
        rule = "must be a color of matplotlib, a list of them or a dict from series to color"
        raise QueryError.about("color", rule, wrong[0], "For instance color='tab:blue'.")
    ways = zip(cycle(_HATCHES), cycle(_MARKERS), cycle(_DASHES), strict=False)
    return [Look(one, *way) for one, way in zip(colors, ways, strict=False)]


def _each(color: Any) -> list[Any]:
    """Return one color as a list, and several as they are."""
    several = isinstance(color, Sequence) and not isinstance(color, str) and not _is_color(color)
    return list(color) or [None] if several else [color]


def _is_color(color: Any) -> bool:
    from matplotlib.colors import is_color_like  # optional, and slow to import

    return color is not None and bool(is_color_like(color))


def inches(axis: Any) -> float:
    """Return how long an axis is."""
    box = axis.axes.get_window_extent()
    return float((box.width if axis.axis_name == "x" else box.height) / axis.axes.figure.dpi)


_PER_INCH = 12  # characters of a name of an axis
_SMALLER, _LARGER = 15, 10  # of a caption, and of a title
_NARROW = 4.0  # inches that the caption of given axes may take


def wrap(words: str, room: float, per_inch: int = _PER_INCH) -> str:
    """Write in several lines what has no room in one of so many inches.

    Examples
    --------
    >>> wrap("95% error bars: noise only, not sampling", 2).splitlines()
    ['95% error bars: noise', 'only, not sampling']
    """
    return fill(words, max(int(per_inch * room), per_inch))


def wrap_small(words: str, room: float) -> str:
    """Write in several lines, in small letters; lines that are there stay."""
    return "\n".join(wrap(line, room, _SMALLER) for line in words.split("\n"))


def tune(axis: Any, **parameters: Any) -> None:
    """Set parameters of the ticks of numbers, where matplotlib chooses these."""
    from matplotlib.ticker import MaxNLocator  # optional, and slow to import

    locator = axis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(**parameters)


def check_figure(figsize: object, title: object) -> None:
    """Check the size and the title of a figure: matplotlib would show what is none."""
    if title is not None and not isinstance(title, str):
        raise QueryError.about("title", "must be a text", title)
    sizes = figsize if isinstance(figsize, tuple | list) else ()
    numbers = [one for one in sizes if isinstance(one, int | float | np.number)]
    known = len(sizes) == len(numbers) == 2 and all(0 < one < math.inf for one in numbers)  # noqa: PLR2004
    if figsize is not None and not known:
        rule = "must be a width and a height in inches"
        raise QueryError.about("figsize", rule, figsize, "For instance figsize=(8, 4).")


def listed_axes(ax: object) -> np.ndarray:
    """List the axes that are given, in whatever shape; none where there is anything else."""
    try:
        panels = np.atleast_1d(np.asarray(ax, object)).ravel()
    except ValueError:  # parts of several shapes
        return np.empty(0, object)
    return panels if all(hasattr(one, "transAxes") for one in panels) else panels[:0]


def given_panels(
    count: int, ax: Any, figsize: tuple[float, float] | None, way_out: str = _ONE_PANEL
) -> Any:
    """Return the axes that are given, in a figure of the size asked for.

    Raises
    ------
    QueryError
        If there are not as many axes as panels.
    """
    panels = listed_axes(ax)
    if len(panels) != count:
        got = len(panels) or quote(ax)
        rule = f"ax must be {count} matplotlib axes, one for each of the panels, got {got}"
        way = "choose one column with column=, or draw all groups in one panel with panels=False"
        raise QueryError(f"{rule}; {way}.", parameter="ax")
    if figsize is not None:
        panels[0].get_figure(root=True).set_size_inches(*figsize)
    return panels


def new_panels(
    count: int, wide: int, size: tuple[float, float], *, sharex: bool, sharey: bool
) -> Any:
    """Return the axes of a new figure, in rows of so many."""
    high = -(-count // wide)
    figure, grid = pyplot().subplots(
        high, wide, squeeze=False, figsize=size, sharex=sharex, sharey=sharey, layout="constrained"
    )
    for axes in grid.flat[count:]:
        figure.delaxes(axes)
    for axes in grid[-2, count - (high - 1) * wide :] if high > 1 else ():
        axes.tick_params(labelbottom=True)  # nothing is left below
    return grid.ravel()[:count]


def add_legend(axes: Any, entries: tuple[list[Any], list[str]], title: str, *, own: bool) -> None:
    """Put a legend beside the axes: to the right, or above where that would squeeze them.

    It never covers what is drawn. Above, too, where the figure is not made here: matplotlib makes
    no room at the right of such axes.
    """
    handles, labels = entries
    longest = max(map(len, labels))
    right = own and longest <= _LONG
    if right:
        at = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
    else:
        width = axes.get_window_extent().width / axes.figure.dpi
        fitting = int(width / (_PER_CHARACTER * (longest + 6)))
        at = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
        at["ncols"] = min(max(fitting, 1), len(labels))
    _plain(axes.legend(handles, labels, title=title or None, frameon=False, **at))


def add_legend_of_figure(figure: Any, entries: tuple[list[Any], list[str]], title: str) -> None:
    """Put a legend of all panels at the right of them."""
    legend = figure.legend(*entries, title=title or None, frameon=False, loc="outside right upper")
    _plain(legend)


def _plain(legend: Any) -> None:
    for words in [legend.get_title(), *legend.get_texts()]:
        words.set(**PLAIN)


def add_title(panels: Any, title: str | None, *, own: bool) -> None:
    """Write a title above the panels, and above a legend that stands there."""
    if title is None:
        return
    if own:
        figure = panels[0].figure
        figure.suptitle(wrap(title, figure.get_figwidth(), _LARGER), **PLAIN)
        return
    legend = panels[0].get_legend()
    above = 0.0 if legend is None else legend.get_window_extent().height
    pad = 6 + above * 72 / panels[0].figure.dpi
    title = wrap(title, inches(panels[0].xaxis), _LARGER)
    panels[0].set_title(title, pad=pad, **PLAIN)


def add_caption(panels: Any, caption: str, *, own: bool) -> None:
    """Write below what the marks mean, and what they leave out."""
    figure = panels[0].figure
    if own:
        figure.supxlabel(wrap_small(caption, figure.get_figwidth()), gid=CAPTION, **_QUIET)
        return
    axes = panels[-1]
    caption = wrap_small(caption, max(inches(axes.xaxis), _NARROW))
    for other in [other for other in axes.texts if other.get_gid() == CAPTION]:
        other.remove()  # that of what was drawn on the same axes before
    below = {"xycoords": axes.xaxis.label, "textcoords": "offset points"}
    look = {"ha": "center", "va": "top", "annotation_clip": False, "gid": CAPTION, **_QUIET}
    axes.annotate(caption, (0.5, 0), (0, -3), **below, **look)
