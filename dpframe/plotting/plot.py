"""Figures of released frames. Matplotlib is imported when a figure is asked for."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from textwrap import fill
from typing import Any, Literal, TypeAlias, assert_never, cast, get_args

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag, is_one_of
from dpframe.cells.verify import look
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.mechanism_parts import ThresholdPart
from dpframe.errors import QueryError, quote
from dpframe.frozen import frozen
from dpframe.plotting import frame
from dpframe.plotting.frame import MOST_PANELS, Drawn, Places, Scale, pyplot, text
from dpframe.public import did_you_mean, public_call
from dpframe.queries.binned import LEVEL
from dpframe.steps.rename import concat
from dpframe.steps.suggest_caps import best_suggestion

Kind: TypeAlias = Literal["auto", "bar", "barh", "line", "points", "forest", "histogram"]

PALETTE = ("#0072B2", "#E69F00", "#D55E00", "#444444", "#56B4E9", "#009E73")
"""Okabe and Ito (2008), a dark gray for yellow: neighbors differ in lightness, in gray too."""

PLAIN = {"parse_math": False, "usetex": False}
"""Dollars, underscores and percents in labels are what they are."""

CAPTION = "dpframe caption"
"""The `gid` of captions."""

# numbers of them that have no factor in common with that of the colors: 30 looks in all
_HATCHES = ("", "///", "...", "xx", "\\\\\\")
_MARKERS = "os^Dv"
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_MOST_SERIES = len(PALETTE)
_PER_INCH = 12  # letters of a name of an axis
_PER_LABEL = 0.12  # inches between labels that are turned
_LONG = 24  # letters of a label that is turned, or stands beside the axes in a legend
_WIDTH, _HEIGHT = 6.4, 4.8  # inches, as in matplotlib
_Look: TypeAlias = dict[str, Any]

_SPREAD = {"bar": 1, "barh": 1, "points": 0.5, "forest": 0.5, "histogram": 1, "line": 0}
"""How much of the room of a key the series of a panel take."""


@frozen(eq=False)
class Series:
    """Cells in one look: a color, and what tells it from others without colors."""

    label: str
    cells: pd.DataFrame
    look: _Look


@frozen(eq=False)
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
        What stands there: in each table, a row per place.
    key, name
        What is written beside the axis of the keys, and beside that of the values.
    scale
        What the values stand for.
    legend
        The names of the outer keys.
    """

    kind: Kind
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
        return any("denoised" in series.cells for series in self.series)


@public_call
def plot(
    released: pd.DataFrame | Mapping[Hashable, pd.DataFrame], *,
    column: Hashable | list[Hashable] | None = None, kind: Kind = "auto", level: float = 0.95,
    per: Hashable | None = None, percent: bool = False, sampling: bool = False,
    subplots: bool = True, panels: bool | None = None, ax: Any = None,
    figsize: tuple[float, float] | None = None, title: str | None = None, color: Any = None,
    legend: bool = True,
) -> Any:  # fmt: skip
    """Draw released columns with the ends of their intervals.

    The innermost key goes along the axis; the outer keys are series of one panel, or have panels of
    their own where they are many. Keys that are dates, times, periods or durations, and bins of
    them, stand on an axis of time, a period at its start; so do released values that are times.
    Dots mark denoised values. A line below the figure says what the error bars cover: the noise
    alone.

    - `bar` and `barh`: bars from 0, side by side for several series; `barh` has room for long
      labels.
    - `line`: a line with a band for each series, along times, numbers, or keys in their order.
    - `points`: values with error bars, without a zero.
    - `forest`: values with error bars below each other, and a line at 0.
    - `histogram`: steps with a band on the numbers or times that the bins of the innermost key
      cover, so that wide bins are wide; heights are the released values, not densities.
    - `auto`: a histogram over bins with two ends, a line along times or levels of quantiles,
      `points` for points in time, and for means whose bounds leave out 0, `forest` for covariances,
      correlations and slopes, and bars for others. A release of ranges is
      a line of the numbers of rows below each edge, made increasing. Of a suggestion, the errors
      that it predicts are drawn by candidate, with the best one marked.

    Parameters
    ----------
    released
        A released frame; or a dict of them, such as those of two years, which are drawn side by
        side as `concat` puts them together.
    column
        The released column to draw, or a list of them; all by default.
    kind
        What to draw.
    level
        Confidence level of the intervals, each by itself.
    per
        A released column by which the one drawn is divided, as `ratio` does.
    percent
        Whether percentages of the total of the column are drawn, as `percent` makes them.
    sampling
        Whether a lighter, longer bar or band shows noise and the error of sampled rows together,
        for rows that are a sample of a population; see `interval`.
    subplots
        Whether several columns have a panel each, below each other; else they are series.
    panels
        Whether outer keys have a panel each; by default where they are too many for one.
    ax
        Matplotlib axes to draw on, as many as there are panels: with one, all groups are in it. New
        ones by default.
    figsize
        Width and height of the figure, in inches.
    title
        Title of the figure, or of the axes that are given.
    color
        A color of matplotlib, a list of them, or a dict from outer key (or column) to color. The
        default ones can be told apart without colors.
    legend
        Whether to draw a legend beside the axes, where one is needed.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        The axes; an array, one per panel in order, if there are several.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column or kind, or the frame does not hold what the kind draws.
    DPFrameError
        If matplotlib is not installed.

    References
    ----------
    M. Okabe and K. Ito, "Color universal design: how to make figures and presentations that are
    friendly to colorblind people", 2008.

    Examples
    --------
    >>> import dpframe as dpf
    >>> from matplotlib.figure import Figure
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> axes = plot(released, level=0.9, ax=Figure().add_subplot())
    >>> axes.texts[0].get_text()
    '90% error bars: noise only, not sampling, clipping or caps'
    >>> later = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> axes = plot({2025: released, 2026: later}, ax=Figure().add_subplot())
    >>> axes.get_legend_handles_labels()[1]
    ['2025', '2026']
    """
    kinds = get_args(Kind)
    if not is_one_of(kind, kinds):
        hint = did_you_mean(kind, kinds).strip()
        raise QueryError.about("kind", f"must be one of {', '.join(kinds)}", kind, hint)
    flags = {"percent": percent, "sampling": sampling, "subplots": subplots, "legend": legend}
    for name, flag in flags.items() if panels is None else [*flags.items(), ("panels", panels)]:
        check_flag(name, flag)
    _check_figure(figsize, title)
    if isinstance(released, Mapping):
        released = _side_by_side(released, quotients=per is not None or percent)
    shown = look(released)
    certificate = shown.certificate
    certificate.require_numbers()
    alone = kind == "auto" and column is None and per is None and not percent
    if alone and best_suggestion(released):
        return _draw_suggestion(released, ax, figsize, title)
    pyplot()  # nothing is known of dates without it
    few = subplots and _count_groups(shown.table.index) <= MOST_PANELS
    if alone and few and frame.is_distribution(shown):
        drawn = frame.gather_distribution(shown, level, sampling=sampling)
        kind = "line"
    else:
        arguments = shown, column, level
        drawn = frame.gather(*arguments, per=per, percent=percent, sampling=sampling)
    if len(drawn) > 1 and not subplots:
        drawn = [frame.together(drawn, None)]
    if len(drawn) > 1 or len(_list_axes(ax)) == 1:
        panels = _in_one_panel(drawn, panels)
    styles = looks([part.label for part in drawn], color)
    arranged = [
        panel
        for part, style in zip(drawn, styles, strict=True)
        for panel in _arrange(part, kind, panels, style, color)
    ]
    if ax is None:
        axes = _draw_new(arranged, figsize)
    else:
        way_out = "choose one column with column=, or draw all in one panel with panels=False"
        axes = given_axes(len(arranged), ax, figsize, way_out)
        for panel, panel_axes in zip(arranged, axes, strict=True):
            _draw(panel, panel_axes)
    if legend:
        _add_legend(arranged, axes, new_figure=ax is None)
    marks = "bands" if arranged[0].kind in ("line", "histogram") else "error bars"
    words = caption(certificate, level, marks, sampling=sampling)
    finish(axes, title, words, new_figure=ax is None)
    return axes if len(axes) > 1 else axes[0]


def _in_one_panel(drawn: Sequence[Drawn], panels: bool | None) -> bool:
    """Let all groups of a column stand in one panel."""
    if panels and len(drawn) > 1:
        rule = f"is for the groups of one column, and these are {len(drawn)} columns"
        way_out = "Choose one with column=, or leave panels out."
        raise QueryError.about("panels", rule, panels, way_out)
    return False


def _side_by_side(released: Mapping[Hashable, pd.DataFrame], *, quotients: bool) -> pd.DataFrame:
    """Put several releases in one table."""
    if quotients:
        rule = "per= and percent= are for one release, and a dict of several was given"
        raise QueryError(f"{rule}. Draw each by itself.", parameter="released")
    return concat(released, name="release")


def caption(certificate: Certificate, level: float, marks: str, *, sampling: bool = False) -> str:
    """Say what intervals are about, and what they leave out."""
    releases = certificate.releases
    tests = "TEST, not private; " * any(release.testing for release in releases)
    words = "noise only, not sampling, clipping or caps"
    if sampling:
        words = "noise, and lighter noise with sampling, not clipping or caps"
    elif any(isinstance(release.mechanism, ThresholdPart) for release in releases):
        words = "noise of groups that were found, not sampling or caps"
    return f"{tests}{100 * level:.10g}% {marks}: {words}"


def _count_groups(index: pd.Index) -> int:
    return index.droplevel(-1).nunique(dropna=False) if isinstance(index, pd.MultiIndex) else 1


def _arrange(
    drawn: Drawn, kind: Kind, panels: bool | None, style: _Look, color: Any
) -> list[Panel]:
    """Put the cells of a column in series, and these in panels."""
    cells = drawn.cells
    if cells.empty:  # there are no groups, whatever their keys would be
        cells = cells.droplevel(list(range(cells.index.nlevels - 1)))
    if kind in ("auto", "line"):
        cells = _time_last(cells)
    names = [None if name is None else text(name) for name in cells.index.names]
    count = _count_groups(cells.index)
    beside = count <= MOST_PANELS or panels is False
    if kind == "auto":
        along_levels = drawn.quantiles and names[-1] == LEVEL
        innermost = list(cells.index.get_level_values(-1).unique())
        kind = "line" if along_levels and beside else _kind_of(drawn, innermost, beside=beside)
    on_scale = kind in ("line", "histogram")
    if count > MOST_PANELS and not (beside and on_scale):
        if on_scale or panels:
            rule = f"draws at most {MOST_PANELS} panels, and there are {count} groups"
            way_out = "Give ax= or panels=False to draw all on the same axes, or use kind='bar'."
            raise QueryError.about("kind", rule, kind, way_out)
        cells = cells.set_axis(cells.index.to_flat_index())
        names = [", ".join(name for name in names if name is not None)]
    index = cells.index
    rows, keys = index.get_level_values(-1).factorize(use_na_sentinel=False)
    groups, outer = np.zeros(len(index), int), [None]
    if isinstance(index, pd.MultiIndex):
        groups, outer_keys = index.droplevel(-1).factorize(use_na_sentinel=False)
        outer = list(outer_keys)
    tables = [
        cells[groups == group].set_axis(rows[groups == group]).reindex(range(len(keys)))
        for group in range(len(outer))  # some keys may not be there
    ]
    places = _place_keys(kind, list(keys), drawn, names)
    legend = ", ".join(name for name in names[:-1] if name is not None)
    plain = Panel(kind, "", places, [], names[-1] or "", drawn.name, drawn.scale, "")
    if len(tables) <= 1:
        look = style | {"hatch": "", "ls": "-"}
        return [replace(plain, series=[Series("released", table, look) for table in tables])]
    several = zip(outer, tables, strict=True)
    if panels or (panels is None and len(tables) > _MOST_SERIES):
        of = f"{legend} = " if legend else ""
        alike = [(text(key), table, looks([key], color)[0]) for key, table in several]
        return [
            replace(plain, title=f"{of}{title}", series=[Series("released", *parts)])
            for title, *parts in alike
        ]
    styles = looks(outer, color)
    series = [
        Series(text(key), *parts) for (key, *parts) in zip(outer, tables, styles, strict=True)
    ]
    return [replace(plain, series=series, legend=legend)]


def _kind_of(drawn: Drawn, keys: list[Any], *, beside: bool) -> Kind:
    """Tell what a table is: bins, a course in time, points in time, effects, or other numbers."""
    if beside and frame.place(keys, numbers=True).bins:
        return "histogram"
    if beside and len(keys) > 1 and frame.place(keys).labels is None:
        return "line"
    if drawn.scale.dates or not drawn.from_zero:
        return "points"
    return "forest" if drawn.effect else "bar"


def _time_last(cells: pd.DataFrame) -> pd.DataFrame:
    """Make the innermost of the keys that are times the last one: it goes along the axis."""
    levels = list(range(cells.index.nlevels))
    for level in levels[::-1] if len(levels) > 1 else []:
        keys = list(cells.index.get_level_values(level).unique())
        if len(keys) > 1 and frame.place(keys).labels is None:
            return cells.reorder_levels([*levels[:level], *levels[level + 1 :], level])
    return cells


def _place_keys(kind: Kind, keys: list[Any], drawn: Drawn, names: Sequence[str | None]) -> Places:
    """Let keys stand on a scale where the kind and the keys have one; a total has no key."""
    if kind in ("bar", "barh", "forest") and drawn.scale.dates:
        way_out = "Use kind='points' or kind='line'."
        raise QueryError.about("kind", "draws from 0, and points in time have none", kind, way_out)
    if len(keys) == 1 and list(names) == [None]:
        return Places(np.arange(1), labels=[""])
    places = frame.place(keys, numbers=kind in ("line", "histogram"))
    if kind == "histogram" and not places.bins:
        ranges = "bins that do not overlap, each with two ends"
        rule = f"needs an innermost key of {ranges}, and {names[-1]!r} is none"
        raise QueryError.about("kind", rule, kind, "Use kind='bar'.")
    return places


def looks(names: Sequence[Any], color: Any) -> list[_Look]:
    """Choose how series are drawn: in the colors given, one for all, in turn or by name.

    Raises
    ------
    QueryError
        If a color is none.
    """
    from matplotlib.colors import is_color_like  # optional, and slow to import

    listed = [color]
    if color is None or isinstance(color, Mapping):
        listed = [*PALETTE]
    elif isinstance(color, Sequence) and not isinstance(color, str) and not is_color_like(color):
        listed = list(color) or [None]
    colors = list(islice(cycle(listed), len(names)))
    if isinstance(color, Mapping):
        colors = [color.get(name, usual) for name, usual in zip(names, colors, strict=True)]
    for wrong in [part for part in colors if part is None or not is_color_like(part)]:
        rule = "must be a color of matplotlib, a list of them or a dict from series to color"
        raise QueryError.about("color", rule, wrong, "For instance color='tab:blue'.")
    styles = zip(colors, cycle(_HATCHES), cycle(_MARKERS), cycle(_DASHES), strict=False)
    return [dict(zip(("color", "hatch", "marker", "ls"), style, strict=True)) for style in styles]


def wrap(words: str, room: float, per_inch: float = _PER_INCH) -> str:
    """Write in several lines what has no room in one of so many inches.

    Examples
    --------
    >>> wrap("95% error bars: noise only, not sampling", 2).splitlines()
    ['95% error bars: noise', 'only, not sampling']
    """
    return fill(words, int(per_inch * max(room, 1)))


def length(axis: Any) -> float:
    """Return how many inches an axis is long."""
    box = axis.axes.get_window_extent()
    return float((box.width if axis.axis_name == "x" else box.height) / axis.axes.figure.dpi)


def _check_figure(figsize: object, title: object) -> None:
    """Check the size and the title of a figure: matplotlib would show what is none."""
    if title is not None and not isinstance(title, str):
        raise QueryError.about("title", "must be a text", title)
    sizes = figsize if isinstance(figsize, tuple | list) else ()
    numbers = [size for size in sizes if isinstance(size, int | float | np.number)]
    valid = len(sizes) == len(numbers) == 2 and all(0 < size < math.inf for size in numbers)  # noqa: PLR2004
    if figsize is not None and not valid:
        rule = "must be a width and a height in inches"
        raise QueryError.about("figsize", rule, figsize, "For instance figsize=(8, 4).")


def _list_axes(ax: object) -> np.ndarray:
    """List the axes that are given, in whatever shape; none where there is anything else."""
    try:
        axes = np.atleast_1d(np.asarray(ax, object)).ravel()
    except ValueError:  # parts of several shapes
        return np.empty(0, object)
    return axes if all(hasattr(part, "transAxes") for part in axes) else axes[:0]


def given_axes(count: int, ax: Any, figsize: tuple[float, float] | None, way_out: str) -> Any:
    """Return the axes that are given, in a figure of the size asked for.

    Raises
    ------
    QueryError
        If there are not as many axes as panels.
    """
    axes = _list_axes(ax)
    if len(axes) != count:
        got = len(axes) or quote(ax)
        rule = f"ax must be {count} matplotlib axes, one for each of the panels, got {got}"
        raise QueryError(f"{rule}; {way_out}.", parameter="ax")
    if figsize is not None:
        axes[0].get_figure(root=True).set_size_inches(*figsize)
    return axes


def _draw_new(panels: list[Panel], figsize: tuple[float, float] | None) -> Any:
    """Draw panels on axes of a new figure: groups in a grid, columns below each other if few."""
    count, facets = len(panels), bool(panels[0].title)
    wide = 1 if count <= 4 and not facets else min(math.ceil(count**0.5), 6)  # noqa: PLR2004
    high = -(-count // wide)
    bars = max(len(panel.places.at) * (len(panel.series) + 1) / 2 for panel in panels)
    least = max(2.4, min(1.4 + 0.24 * bars, 11)) if panels[0].across else _HEIGHT  # inches
    size = figsize or (max(_WIDTH, 3 * wide), max(least, 2 * high))
    alike = len({panel.kind for panel in panels}) == 1 and not panels[0].across
    share = {"sharex": facets or alike, "sharey": facets}
    figure, grid = pyplot().subplots(
        high, wide, squeeze=False, figsize=size, layout="constrained", **share
    )
    for spare in grid.flat[count:]:
        figure.delaxes(spare)
    for place, (panel, axes) in enumerate(zip(panels, grid.flat, strict=False)):
        _draw(panel, axes)
        if place + wide >= count:
            axes.tick_params(labelbottom=True)  # nothing is left below
        elif share["sharex"]:
            axes.set_xlabel("")
        if facets and place % wide:
            axes.set_ylabel("")
    return grid.ravel()[:count]


def _draw(panel: Panel, axes: Any) -> None:
    """Draw the marks of a panel, and name its axes."""
    places, across = panel.places, panel.across
    along, values = _turn(axes.xaxis, axes.yaxis, across=across)
    if not len(places.at):
        axes.text(0.5, 0.5, "no groups", ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
    for position in range(len(panel.series)):
        _draw_series(axes, panel, position)
    if panel.denoised:  # an entry for denoised values of all groups
        axes.scatter([], [], s=20, c="w", edgecolor=_ink(), label="denoised")
    below_zero = any((series.cells["value"] < 0).any() for series in panel.series)
    if panel.kind == "forest" or (panel.kind in ("bar", "barh") and below_zero):
        (axes.axvline if across else axes.axhline)(0, color=_ink(), lw=0.8, zorder=1)
    if places.labels:
        _label_keys(panel, axes, along)
    elif type(along.get_major_locator()).__name__ == "AutoLocator" and (places.at % 1 == 0).all():
        along.get_major_locator().set_params(integer=True)
    places.scale.dress(along)
    panel.scale.dress(values)
    along.set_inverted(across)  # the first is on top
    below, beside = _turn(places.scale.name(panel.key), panel.name, across=across)
    axes.set_xlabel(wrap(below, length(axes.xaxis) - 1), **PLAIN)
    axes.set_ylabel(wrap(beside, length(axes.yaxis) - 1), **PLAIN)
    if panel.title:
        axes.set_title(wrap(panel.title, length(axes.xaxis)), fontsize="small", **PLAIN)
        axes.tick_params(labelsize="small")


def _ink() -> Any:
    """Return the color of letters: it is seen on a dark background, too."""
    return pyplot().rcParams["text.color"]


def _turn(at: Any, values: Any, *, across: bool) -> tuple[Any, Any]:
    return (values, at) if across else (at, values)


def _draw_series(axes: Any, panel: Panel, position: int) -> None:
    """Draw a series: its marks with error bars or a band, arrows, and denoised values."""
    series, places, count = panel.series[position], panel.places, len(panel.series)
    cells, across = series.cells, panel.across
    color, hatch, marker, dashes = series.look.values()
    width = np.asarray(places.room) / count
    at = places.at + _SPREAD[panel.kind] * (position - (count - 1) / 2) * width
    size = float(np.clip(200 / max(len(at) * count, 1), 2.5, 6))  # points, of markers
    style = {"color": color, "label": series.label}
    marks = {"marker": marker, "mec": _ink(), "mew": 0.5, "ms": size, "zorder": 3}
    spots = _turn(at, cells["value"], across=across)
    match panel.kind:
        case "bar" | "barh":
            edge = {"edgecolor": _ink(), "linewidth": size / 12 if count > 1 else 0, "hatch": hatch}
            (axes.barh if across else axes.bar)(at, cells["value"], width, **edge, **style)
            _draw_whiskers(axes, at, cells, _ink(), size, across=across)
        case "points" | "forest":
            _draw_whiskers(axes, at, cells, color, size, across=across)
            axes.plot(*spots, ls="", **marks, **style)
        case "line" | "histogram":
            x, cells_along = _along(places, cells)
            marks["marker"] = "" if places.bins else marker
            axes.plot(x, cells_along["value"], ls=dashes, **marks, **style)
            for low, high, light in _tones(cells_along):
                axes.fill_between(x, low, high, color=color, alpha=0.12 if light else 0.25, lw=0)
            present = np.pad(cells_along["value"].notna(), 1)
            alone = present[1:-1] & ~present[:-2] & ~present[2:]  # a band needs two
            _draw_whiskers(axes, x[alone], cells_along[alone], color, size, across=False)
        case "auto":
            raise AssertionError
        case _:
            assert_never(panel.kind)
    for end, marker in zip(("below", "above"), "<>" if across else "v^", strict=True):
        if end in cells and cells[end].notna().any():
            axes.plot(
                *_turn(at, cells[end], across=across), ls="", marker=marker, color=_ink(), ms=5
            )
    if "denoised" in cells:
        spots = _turn(at, cells["denoised"], across=across)
        axes.scatter(*spots, s=0.6 * size**2, c="w", edgecolor=color, zorder=4)


def _along(places: Places, cells: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the points of a line, or of the steps of a histogram, broken between bins apart."""
    order = np.argsort(places.at, kind="stable")
    if places.bins is None:
        return places.at[order], cells.iloc[order]
    left, right = (ends[order] for ends in places.bins)
    steps = cells.iloc[order.repeat(3)].reset_index(drop=True)
    steps.iloc[3 * np.flatnonzero(left[1:] > right[:-1]) + 2] = np.nan
    return np.column_stack([left, right, right]).ravel(), steps


def _tones(cells: pd.DataFrame) -> Iterator[tuple[pd.Series, pd.Series, bool]]:
    """Yield the ends of intervals: light ones with the error of sampled rows, then the noise's."""
    if "sampled_low" in cells:
        yield cells["sampled_low"], cells["sampled_high"], True
    yield cells["low"], cells["high"], False


def _draw_whiskers(
    axes: Any, at: np.ndarray, cells: pd.DataFrame, color: Any, size: float, *, across: bool
) -> None:
    """Draw error bars from end to end: they need not be about their values."""
    for low, high, light in _tones(cells) if len(cells) else ():
        middle, half = low / 2 + high / 2, np.maximum(high / 2 - low / 2, 0)
        x, y = _turn(at, middle, across=across)
        style: dict[str, Any] = {"lw": size / 6, "alpha": 0.45} if light else {"lw": size / 4}
        style |= {"fmt": "none", "ecolor": color, "capsize": size / 3, "zorder": 2.5 - light / 10}
        axes.errorbar(x, y, **{"xerr" if across else "yerr": half}, **style)


def _label_keys(panel: Panel, axes: Any, along: Any) -> None:
    """Name the places along an axis, or some of them if there are many."""
    labels, across = panel.places.labels or [], panel.across
    room = length(along) - 0.9 * (len(panel.series) > 1 and not across)  # inches of a legend
    shown = range(0, len(labels), -(-len(labels) // max(int(room / _PER_LABEL), 1)))
    longest = max(len(labels[place]) for place in shown)
    turned = not across and len(shown) * (longest + 1) > 15 * room  # letters of an inch
    most = _LONG if turned else max(int(5 * axes.figure.bbox.width / axes.figure.dpi), 9)
    texts = [frame.shorten(labels[place], most) for place in shown]
    along.set_ticks(list(shown), texts, rotation=90 if turned else 0, **PLAIN)
    margin = max(0.6, (4 - len(labels)) / 2)  # few bars are not wide
    (axes.set_ylim if across else axes.set_xlim)(-margin, len(labels) - 1 + margin)


def _add_legend(panels: list[Panel], axes: Any, *, new_figure: bool) -> None:
    """Add one legend for all panels beside them, if there is something to tell apart."""
    if not any(panel.denoised or len(panel.series) > 1 for panel in panels):
        return
    entries: dict[str, Any] = {}
    for panel_axes in axes:
        handles, labels = panel_axes.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    if any(panel.denoised for panel in panels):
        entries["denoised"] = entries.pop("denoised")  # the last
    style = {"title": panels[0].legend or None, "frameon": False}
    right = max(map(len, entries)) <= _LONG
    at = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
    if new_figure:  # names that are long would squeeze the axes
        at = {"loc": "outside right upper" if right else "outside upper left"}
    drawn_on = axes[0].figure if new_figure else axes[0]
    legend = drawn_on.legend(list(entries.values()), list(entries), **at, **style)
    for words in [legend.get_title(), *legend.get_texts()]:
        words.set(**PLAIN)


def finish(axes: Any, title: str | None, words: str, *, new_figure: bool) -> None:
    """Write a title above, and what the marks mean below; once on axes that are given."""
    figure, last = axes[0].figure, axes[-1]
    room = figure.bbox.width / figure.dpi if new_figure else max(length(last.xaxis), 4)
    quiet = {"fontsize": "small", "alpha": 0.75, "gid": CAPTION, **PLAIN}
    words = wrap(words, room, 1.25 * _PER_INCH)  # small letters
    if new_figure:
        figure.supxlabel(words, **quiet)
    else:
        for earlier in [part for part in last.texts if part.get_gid() == CAPTION]:
            earlier.remove()
        below = {"xycoords": last.xaxis.label, "textcoords": "offset points", "va": "top"}
        last.annotate(
            words, (0.5, 0), (0, -3), ha="center", annotation_clip=False, **below, **quiet
        )
    if title is not None:
        write = figure.suptitle if new_figure else axes[0].set_title
        write(wrap(title, room, 0.8 * _PER_INCH), **PLAIN)  # large letters


def _draw_suggestion(
    released: pd.DataFrame, ax: Any, figsize: tuple[float, float] | None, title: str | None
) -> Any:
    """Draw the errors that a suggestion predicts by candidate, and mark the best one."""
    suggestion = best_suggestion(released)[-1]
    ((name, chosen),) = suggestion.best.items()
    verdict = "best" if suggestion.seen >= suggestion.needed else "too few people to tell, maybe"
    if ax is None:
        axes = pyplot().subplots(layout="constrained", figsize=figsize)[1]
    else:
        (axes,) = given_axes(1, ax, figsize, "a suggestion has one panel")
    if isinstance(chosen, tuple):
        edges = cast(pd.IntervalIndex, released.index)
        name = text(released.index.name)
        sides = ("as_low", "lower bound", edges.left), ("as_high", "upper bound", edges.right)
        for (column, label, ends), bound, color in zip(sides, chosen, PALETTE, strict=False):
            errors = pd.Series(released[column].to_numpy(), ends)
            errors = errors[np.isfinite(errors) & np.isfinite(errors.index)]
            axes.plot(errors.index, errors, color=color, label=label)
            axes.plot([bound], [errors[bound]], "o", color=color, label=f"{verdict}: {bound:g}")
        inner = edges.left[1:].to_numpy(np.float64)
        if not np.allclose(np.diff(inner, 2), 0):  # no steps of one length
            least = float(np.abs(inner[inner != 0]).min())
            axes.set_xscale("symlog", linthresh=least)
            axes.xaxis.get_major_locator().set_params(numticks=7)
            ticks = axes.get_xticks()  # those beside 0 have no room
            axes.set_xticks(ticks[(ticks == 0) | (np.abs(ticks) > 2 * least)])
    else:
        lines = {"lost": ("cut off", "--"), "noise": ("noise", ":"), "error": ("both", "-")}
        for column, (label, style) in lines.items():
            axes.plot(released.index, released[column], style, color=PALETTE[0], label=label)
        mark = {"color": PALETTE[2], "label": f"{verdict}: {name}={chosen}"}
        axes.plot([chosen], [released["error"].loc[chosen]], "o", **mark)
        axes.set_xscale("log")
        axes.set_ylim(bottom=max(released["noise"].min(), 1e-9) / 4)  # less is lost in the noise
    axes.set_yscale("log")
    axes.set_xlabel(name, **PLAIN)
    axes.set_ylabel(wrap("predicted mean absolute error of a group", length(axes.yaxis)))
    above = wrap(title or suggestion.query, length(axes.xaxis))
    axes.set_title(above, fontsize="medium", **PLAIN)
    axes.legend(loc="best")
    return axes
