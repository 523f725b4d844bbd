"""What the figures of `balle_wang_2018.py` share: settings, claims, tables and panels."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from checks import Checks

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

STANDARD_ERRORS = 6.0  # a false alarm in fewer than one of 10^7 checks, for a mean of many squares
TIE = 1.01  # ratio of two errors that counts as none
STYLES = {
    "cGM": "C3--",
    "aGM": "k-",
    "aGM-JS": "C0-o",
    "aGM-TH": "C1-s",
    "aGM-TH, SURE": "C1:s",
    "aGM-W": "C5-D",
    "aGM-W, SURE, 5 trees": "C5:D",
    "aGM-TF": "C6-x",
    "Laplace": "0.6",
    "aGM, posterior": "C2-^",
    "auto": "C4-v",
    "zero": "k:",
}


@dataclass(frozen=True)
class Settings:
    """How much to compute, and on what."""

    quick: bool
    data: Path | None


class Measured(NamedTuple):
    """Mean errors with a row for each setting, and the standard errors of these means."""

    mean: pd.DataFrame
    spread: pd.DataFrame


def measure(repetitions: Iterable[pd.DataFrame]) -> Measured:
    """Average tables of errors that have the same settings as their index."""
    together = pd.concat(repetitions)
    groups = together.groupby(level=list(together.index.names), sort=False)
    return Measured(groups.mean(), groups.sem())


def just_below_one(epsilon: float) -> float:
    """Return where to take the classical noise, which is defined below 1 only."""
    return min(epsilon, math.nextafter(1.0, 0.0))


def show(title: str, table: pd.DataFrame) -> None:
    """Print a table with four digits."""
    print(f"\n{title}\n{table.to_string(float_format='{:.4g}'.format)}\n")


def claim(what: str, holds: bool) -> None:
    """Print whether a claim of the paper holds here, where that may depend on the data."""
    print(f"{'agrees:' if holds else 'differs:'} {what}")


def check_noise(checks: Checks, what: str, squares: float, variance: float, draws: int) -> None:
    """Check a mean of squares of independent Gaussian noise against the variance it should have."""
    most = STANDARD_ERRORS * math.sqrt(2 / draws)
    checks.close(f"{what}: mean squared error", squares / variance, 1.0, most)


def check_best(
    checks: Checks,
    errors: pd.DataFrame,
    best: str,
    others: Sequence[str],
    sure: Mapping[object, float],
) -> None:
    """Check that a method is the best, where it clearly should be; say where it is not.

    `errors` has a row for each setting and a column for each method. `sure` gives, for settings,
    the largest ratio of the error of `best` to the least of the others at which the claim holds.
    """
    rivals = [name for name in others if name != best]
    for setting, row in errors.iterrows():
        rival = row[rivals].idxmin()
        ratio = row[best] / row[rival]
        what = f"{_in_words(errors.index, setting)}: {best} is best, {ratio:.3f} times {rival}"
        if setting in sure:
            checks.true(f"{what} (at most {sure[setting]})", ratio <= sure[setting])
        else:
            holds = ratio <= TIE
            claim(what if holds else f"{what}, which is better", holds)


def say_where_zero_is_as_good(errors: pd.DataFrame, methods: Sequence[str], gain: float) -> None:
    """Name the settings in which no method has an error below `gain` times that of zeros."""
    best = errors[list(methods)].min(axis=1)
    for setting in errors.index[best > gain * errors["zero"]]:
        where = _in_words(errors.index, setting)
        print(f"note: {where}: no method of the paper gains {1 - gain:.0%} over answering zero")


def _in_words(index: pd.Index, setting: object) -> str:
    values = setting if isinstance(setting, tuple) else (setting,)
    return ", ".join(f"{name}={value:g}" for name, value in zip(index.names, values, strict=True))


def draw_lines(axes: plt.Axes, table: pd.DataFrame, styles: Mapping[str, str] = STYLES) -> None:
    """Draw each column of a table over its index, both logarithmic."""
    for name in table:
        axes.plot(table.index, table[name], styles.get(name, "-"), label=name, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel=table.index.name)
    axes.grid(alpha=0.3)


def draw_measured(axes: plt.Axes, errors: Measured) -> None:
    """Draw mean errors, with bars of two standard errors."""
    draw_lines(axes, errors.mean)
    limits = axes.get_ylim()
    for line, name in zip(axes.lines, errors.mean, strict=True):
        bars = 2 * errors.spread[name].replace(0, np.nan)
        style = {"fmt": "none", "ecolor": line.get_color(), "elinewidth": 1, "capsize": 2}
        axes.errorbar(errors.mean.index, errors.mean[name], bars, **style)
    axes.set_ylim(limits)


def panels_by_epsilon(errors: Measured, label: str, more: Measured | None = None) -> plt.Figure:
    """Draw errors over d, one panel for each epsilon, and those of larger d beside them."""
    epsilons = errors.mean.index.unique("epsilon")
    shown = [(epsilon, errors, f"$\\epsilon$ = {epsilon:g}") for epsilon in epsilons]
    if more is not None:
        beside = more.mean.index.unique("epsilon")
        shown += [(epsilon, more, f"$\\epsilon$ = {epsilon:g}, larger d") for epsilon in beside]
    figure, panels = plt.subplots(
        1, len(shown), figsize=(3.6 * len(shown) + 1.5, 4), layout="constrained"
    )
    for axes, (epsilon, part, title) in zip(np.atleast_1d(panels), shown, strict=True):
        draw_measured(axes, Measured(part.mean.loc[epsilon], part.spread.loc[epsilon]))
        axes.set_title(title)
    panels[0].set_ylabel(label)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure
