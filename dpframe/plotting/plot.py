"""Figures of released frames. Matplotlib is imported when a figure is asked for."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag, is_one_of
from dpframe.calls import did_you_mean, with_keywords
from dpframe.cells.verify import Shown, look
from dpframe.errors import QueryError
from dpframe.plotting import cells, positions
from dpframe.plotting.figure import Figure, Panel, Series, draw_figure, is_crowded
from dpframe.plotting.look import (
    PLAIN,
    check_figure,
    given_panels,
    inches,
    listed_axes,
    looks,
    pyplot,
    wrap,
)
from dpframe.steps.concat import concat
from dpframe.steps.suggest_caps import best, best_suggestion

_RELEASE = "release"  # the level of the names of several
_LEAST = 1e-9
_FAINT = 0.15
_MOST_DECADES = 8  # that are named along an axis
_LINES = {"lost": ("cut off", "--"), "noise": ("noise", ":"), "error": ("both", "-")}


def draw_errors(
    released: pd.DataFrame, ax: Any, figsize: tuple[float, float] | None, title: str | None
) -> Any:
    """Draw what is cut off, the noise, and both together, and mark the best candidate.

    Parameters
    ----------
    released
        A suggestion.
    new_axes
        Returns the axes to draw on.
    title
        By default the query whose errors are predicted.

    Raises
    ------
    CertificateError
        If the frame is no suggestion.
    """
    ((name, found),) = best(released).items()
    if ax is None:
        axes = pyplot().subplots(layout="constrained", figsize=figsize)[1]
    else:
        (axes,) = given_panels(1, ax, figsize)
    if isinstance(found, tuple):
        _draw_bounds(axes, released, found)
    else:
        _draw_caps(axes, released, name, found)
    axes.set_ylabel(wrap("predicted mean absolute error of a group", inches(axes.yaxis)))
    above = wrap(title or best_suggestion(released)[-1].query, inches(axes.xaxis))
    axes.set_title(above, fontsize="medium", **PLAIN)
    axes.legend(loc="best")
    return axes


def _draw_caps(axes: Any, released: pd.DataFrame, name: str, found: int) -> None:
    """Draw what caps cut off, the noise that they need, and both together, and mark the best."""
    for column, (label, style) in _LINES.items():
        axes.plot(released.index, released[column], style, color="C0", label=label)
    span = released.index, released["error"], released["error_high"]
    axes.fill_between(*span, color="C0", alpha=_FAINT, linewidth=0, label="both, up to 95 %")
    mark = {"marker": "o", "color": "C1", "ls": "", "label": f"best: {name}={found}"}
    axes.plot([found], [released["error"].loc[found]], **mark)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=max(released["noise"].min(), _LEAST) / 4)  # less is lost in the noise
    axes.set_xlabel(name)


def _draw_bounds(axes: Any, released: pd.DataFrame, found: tuple[float, float]) -> None:
    """Draw the errors of lower and of upper bounds beside the best other one, and mark the best."""
    bins = cast(pd.IntervalIndex, released.index)
    sides = (("as_low", "lower bound", bins.left), ("as_high", "upper bound", bins.right))
    for (column, label, ends), bound, color in zip(sides, found, ("C0", "C1"), strict=True):
        errors = pd.Series(released[column].to_numpy(), ends)
        errors = errors[np.isfinite(errors) & np.isfinite(errors.index)]
        axes.plot(errors.index, errors, color=color, label=label)
        axes.plot([bound], [errors[bound]], "o", color=color, label=f"best: {bound:g}")
    edges = bins.left[1:].to_numpy(np.float64)
    if len(edges) < 3 or not np.allclose(np.diff(edges), edges[1] - edges[0]):  # noqa: PLR2004
        least = float(np.abs(edges[edges != 0]).min())
        axes.set_xscale("symlog", linthresh=least)
        axes.set_xticks(_decades(edges, least))
    axes.set_yscale("log")
    axes.set_xlabel(str(released.index.name), **PLAIN)


def _decades(ends: np.ndarray, least: float) -> list[float]:
    """Return some powers of ten between ends, on both sides of 0, which stands alone."""
    first, last = np.log10([least, np.abs(ends).max()])
    sides = [side for side in (-1, 1) if (side * ends > 0).any()]
    powers = np.arange(np.ceil(first + 0.5), np.floor(last) + 1)
    powers = powers[:: -(-len(powers) * len(sides) // _MOST_DECADES) or 1]
    ticks = [side * 10**power for side in sides for power in powers]
    inside = [tick for tick in ticks if ends.min() <= tick <= ends.max()]
    return sorted([*inside, *[0.0] * bool(ends.min() <= 0 <= ends.max())])


Kind: TypeAlias = Literal[
    "auto",
    "bar",
    "barh",
    "line",
    "points",
    "forest",
    "histogram",
    "distribution",
    "denoised",
    "errors",
]

_MOST_LABELS = 40
_SHORT = 8  # characters of labels that may be turned
_MOST_SERIES = {
    **dict.fromkeys(("bar", "barh", "points", "forest"), 6),
    **dict.fromkeys(("line", "histogram"), 4),
    "denoised": 1,
}
_MOST_BARS = 72  # in a panel with several series
_MOST_LOOKS = 30  # that differ
_MOST_PANELS = 64
_WIDE = 22  # characters of a title of one line


@with_keywords
def plot(
    released: pd.DataFrame | Mapping[Hashable, pd.DataFrame],
    *,
    column: Hashable | list[Hashable] | None = None,
    kind: Kind = "auto",
    level: float = 0.95,
    per: Hashable | None = None,
    percent: bool = False,
    sampling: bool = False,
    subplots: bool = True,
    panels: bool | None = None,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    color: Any = None,
    legend: bool = True,
) -> Any:
    """Draw released columns with the ends of their intervals.

    The innermost key goes along the axis; the outer keys are series of one panel, or have panels of
    their own where they are many. Keys that are dates, times, periods or durations, and bins of
    them, stand on an axis of time, a period at its start; so do released values that are times. A
    line below the figure says what the error bars cover: the noise alone.

    - `bar` and `barh`: bars from 0, side by side for several series; `barh` has room for long
      labels.
    - `line`: a line with a band for each series, along times, numbers, or keys in their order.
    - `points`: values with error bars, without a zero.
    - `forest`: values with error bars below each other, and a line at 0.
    - `histogram`: steps with a band on the numbers or times that the bins of the innermost key
      cover, so that wide bins are wide; heights are the released values, not densities.
    - `distribution`: of a release of ranges, a line with a band of the numbers of rows below each
      edge, made increasing; `auto` draws it, where there are panels enough.
    - `denoised`: the released values faintly and the denoised ones over them; rows too many to be
      labeled are sorted by the denoised value.
    - `errors`: what a suggestion predicts by candidate, with the best one marked; `auto` draws it.
    - `auto`: a histogram over bins and a line along times, both with denoised values if there are
      any; else `denoised` if there are any; else `points` for points in time, `forest` for
      covariances, correlations and slopes, and bars for others.

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
    >>> axes.get_ylabel(), axes.texts[0].get_text()
    ('count', '90% error bars: noise only, not sampling')
    >>> later = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> axes = plot({2025: released, 2026: later}, ax=Figure().add_subplot())
    >>> axes.get_legend_handles_labels()[1]
    ['2025', '2026']
    """
    kinds = get_args(Kind)
    if not is_one_of(kind, kinds):
        hint = did_you_mean(kind, kinds)
        raise QueryError.about("kind", f"must be one of {', '.join(kinds)}", kind, hint.strip())
    flags = {"percent": percent, "sampling": sampling, "subplots": subplots, "legend": legend}
    for name, flag in flags.items():
        check_flag(name, flag)
    check_figure(figsize, title)
    alone = column is None and per is None and not percent
    if isinstance(released, Mapping):
        if per is not None or percent:
            rule = "are for one release, and a dict of several was given"
            raise QueryError(
                f"per= and percent= {rule}. Draw each by itself.", parameter="released"
            )
        released = concat(released, name=_RELEASE)
    shown = look(released)
    certificate = shown.certificate
    certificate.require_numbers()
    if kind == "errors" or (kind == "auto" and alone and best_suggestion(released)):
        return draw_errors(released, ax, figsize, title)
    if kind == "denoised" and (per is not None or percent or not subplots):
        way_out = "Leave out per=, percent= and subplots=."
        raise QueryError.about("kind", "draws released columns, each in a panel", kind, way_out)
    if panels is not None:
        check_flag("panels", panels)
    whole = alone and subplots and cells.is_distribution(shown)
    if kind == "distribution" or (kind == "auto" and whole and _has_panels(shown.frame.index)):
        whole_range = cells.gather_distribution(shown, level, sampling=sampling)
        drawn, kind = [whole_range], "line"
    else:
        about = (shown, column, level, per)
        drawn = _gather(*about, percent=percent, sampling=sampling)
    pyplot()  # nothing is known of dates without it
    if len(drawn) > 1 and not subplots:
        drawn = [cells.together(drawn)]
    if len(drawn) > 1 and panels:
        rule = f"is for the groups of one column, and these are {len(drawn)} columns"
        way_out = "Choose one with column=, or leave panels out."
        raise QueryError.about("panels", rule, panels, way_out)
    one_panel = panels is False or len(drawn) > 1 or len(listed_axes(ax)) == 1
    split = False if one_panel else panels
    arranged = [panel for one in drawn for panel in _arrange(one, kind, split, color)]
    if len(drawn) > 1:
        arranged = _color_columns(arranged, [one.label for one in drawn], color)
    test = "TEST, not private; " * any(one.testing for one in certificate.releases)
    text = f"{test}{100 * level:.10g}% {_caption(drawn, arranged[0].kind)}"
    return draw_figure(Figure(arranged, text, title, legend, ax, figsize))


def _caption(drawn: Sequence[cells.Drawn], kind: str) -> str:
    """Say what is drawn for an interval, and what intervals are about."""
    about = max((one.caption for one in drawn), key=len)
    return f"{'bands' if kind in ('line', 'histogram') else 'error bars'}: {about}"


def _has_panels(index: pd.Index) -> bool:
    """Whether all groups can have panels."""
    return _group_count(index) <= _MOST_PANELS


def _gather(
    shown: Shown, column: Any, level: float, per: Hashable | None, *, percent: bool, sampling: bool
) -> list[cells.Drawn]:
    """Gather what is asked for: columns, a quotient of two of them, or percentages."""
    if per is None and not percent:
        own = list(shown.frame.columns) if column is None else [column]
        several = column if isinstance(column, list) else own
        if not 0 < len(several) <= _MOST_PANELS:
            rule = f"must be 1 to {_MOST_PANELS} columns"
            raise QueryError.about("column", rule, column, "Choose some with column=[...].")
        return cells.gather(shown, several, level, sampling=sampling)
    if per is not None and percent:
        way_out = "These are two kinds of quotients: give one of them."
        raise QueryError.about("per", "does not go with percent=True", per, way_out)
    if isinstance(column, list):
        raise QueryError.about("column", "must be a single one beside per= or percent=True", column)
    if percent:
        return cells.gather_percent(shown, column, level, sampling=sampling)
    return cells.gather_ratio(shown, column, per, level, sampling=sampling)


def _arrange(one: cells.Drawn, kind: Kind, panels: bool | None, color: Any) -> list[Panel]:
    """Put the cells of a column in series, and these in panels."""
    if one.parts.empty:  # there are no groups, whatever their keys would be
        above: list[Hashable] = [*range(one.parts.index.nlevels - 1)]
        bare = one.parts.droplevel(above).drop(columns="denoised", errors="ignore")
        one = replace(one, parts=bare)
    if kind in ("auto", "line"):
        one = replace(one, parts=_time_last(one.parts))
    index = one.parts.index
    if kind == "auto":
        kind = _suitable(one, alone=panels is False)
    elif kind != "denoised":
        one = replace(one, parts=one.parts.drop(columns="denoised", errors="ignore"))
    _check(kind, one)
    split = _split(kind, index, panels)
    if split == "rows":
        one = replace(one, parts=one.parts.set_axis(index.to_flat_index()))
    keys, groups, parts = _wide(one.parts)
    names = index.names if split == "rows" else index.names[-1:]
    places = _places(kind, keys, index.names)
    if kind == "denoised" and len(keys) > _MOST_LABELS and places.labels is not None:
        order = np.argsort(-parts["denoised"][:, 0], kind="stable")
        parts = {name: part[order] for name, part in parts.items()}
    outer = "" if len(groups) == 1 else positions.names_of(index.names[:-1])
    styles = looks(groups if len(groups) > 1 else [one.label], color)
    apart = split == "panels"
    series = [
        Series(
            "released" if apart or len(groups) == 1 else positions.text(group),
            looks([group], color)[0] if apart else style,
            {name: part[:, position] for name, part in parts.items()},
        )
        for position, (group, style) in enumerate(zip(groups, styles, strict=True))
    ]
    key, legend = positions.names_of(names), "" if apart else outer
    panel = Panel(kind, "", places, series, key, one.name, one.scale, legend)
    if not apart:
        return [panel]
    titles = (_title(outer, positions.text(group)) for group in groups)
    pairs = zip(titles, series, strict=True)
    return [replace(panel, title=name, series=[only]) for name, only in pairs]


def _title(names: str, group: str) -> str:
    """Name a panel, in two lines if one has no room."""
    if not names:
        return group
    return f"{names} = {group}" if len(names + group) <= _WIDE else f"{names} =\n{group}"


def _color_columns(panels: list[Panel], columns: Sequence[Hashable], color: Any) -> list[Panel]:
    """Give each panel of a single series the color of its column."""
    plain = [replace(look, hatch="", dashes="-") for look in looks(columns, color)]
    return [
        one if len(one.series) > 1 else replace(one, series=[replace(one.series[0], look=look)])
        for one, look in zip(panels, plain, strict=True)
    ]


def _suitable(one: cells.Drawn, *, alone: bool) -> Kind:
    """Choose what to draw."""
    index = one.parts.index
    few = alone or _has_panels(index)
    keys = _innermost_keys(index)
    if few and positions.bins_along(keys) is not None:
        return "histogram"
    along = positions.scale_of_times(keys)
    if few and along is not None and len(keys) > 1:
        return "line"
    if "denoised" in one.parts:
        return "denoised"
    if one.scale.points:
        return "points"
    if one.effect:
        return "forest"
    labels = [positions.text(key) for key in keys]
    long = max(map(len, labels), default=0) > _SHORT and is_crowded(labels)
    fits = len(labels) <= _MOST_LABELS and _split("bar", index, None) == "series"
    return "barh" if long and fits and along is None else "bar"


def _innermost_keys(index: pd.Index) -> list[Any]:
    return list(index.get_level_values(-1).unique())


def _time_last(parts: pd.DataFrame) -> pd.DataFrame:
    """Make the innermost of the keys that are times the last one: it goes along the axis."""
    index = parts.index
    for level in reversed(range(index.nlevels)):
        along = positions.scale_of_times(list(index.get_level_values(level).unique()))
        if along is not None and len(along.at) > 1:
            others = [other for other in range(index.nlevels) if other != level]
            return parts.reorder_levels([*others, level]) if others else parts
    return parts


def _check(kind: Kind, one: cells.Drawn) -> None:
    """Refuse a kind that the cells do not suit."""
    index = one.parts.index
    if kind == "denoised" and "denoised" not in one.parts:
        rule = f"needs denoised values, and there is no column '{one.label}_denoised'"
        way_out = "Denoise the release first, or use kind='bar'."
        raise QueryError.about("kind", rule, kind, way_out)
    if kind == "histogram" and positions.bins_along(_innermost_keys(index)) is None:
        bins = "intervals of numbers or times that do not overlap"
        rule = f"needs an innermost key of {bins}, and {index.names[-1]!r} is none"
        raise QueryError.about("kind", rule, kind, "Use kind='bar'.")
    if kind in ("bar", "barh", "forest") and one.scale.points:
        way_out = "Use kind='points' or kind='line'."
        raise QueryError.about("kind", "draws from 0, and points in time have none", kind, way_out)


def _split(kind: Kind, index: pd.Index, panels: bool | None) -> Literal["series", "panels", "rows"]:
    """Choose what outer keys are: series of a panel, panels, or rows beside each other."""
    groups = _group_count(index)
    if kind == "denoised":
        return "rows"
    if groups == 1 or index.nlevels == 1:
        return "series"
    on_scale = kind in ("line", "histogram")
    if panels is False:
        return "series" if on_scale or groups <= _MOST_LOOKS else "rows"
    crowded = not on_scale and len(index) > _MOST_BARS
    if panels is None and groups <= _MOST_SERIES[kind] and not crowded:
        return "series"
    if groups <= _MOST_PANELS:
        return "panels"
    if panels or on_scale:
        rule = f"draws at most {_MOST_PANELS} panels, and there are {groups} groups"
        way_out = "Give ax= or panels=False to draw all on the same axes, or use kind='bar'."
        raise QueryError.about("kind", rule, kind, way_out)
    return "rows"


def _group_count(index: pd.Index) -> int:
    return index.droplevel(-1).nunique(dropna=False) if isinstance(index, pd.MultiIndex) else 1


def _places(kind: Kind, keys: list[Any], names: Sequence[Any]) -> positions.Places:
    """Let keys stand on a scale where the kind and the keys have one; a total has no key."""
    if len(keys) == 1 and list(names) == [None]:
        return replace(positions.one_by_one(keys), labels=[""])
    if kind == "histogram" and (bins := positions.bins_along(keys)) is not None:
        return bins
    return positions.scale_of_times(keys, numbers=kind == "line") or positions.one_by_one(keys)


def _wide(parts: pd.DataFrame) -> tuple[list[Any], list[Any], Mapping[str, np.ndarray]]:
    """Return the places along the axis, the series, and tables of the parts by both."""
    index = parts.index
    if not isinstance(index, pd.MultiIndex):
        keys, groups = list(index), [None]
        return keys, groups, {str(name): parts[[name]].to_numpy(np.float64) for name in parts}
    rows, places = index.get_level_values(-1).factorize(use_na_sentinel=False)
    columns, series = index.droplevel(-1).factorize(use_na_sentinel=False)
    tables = {}
    for name in parts:
        tables[str(name)] = np.full((len(places), len(series)), np.nan)  # some may not be there
        tables[str(name)][rows, columns] = parts[name]
    return list(places), list(series), tables
