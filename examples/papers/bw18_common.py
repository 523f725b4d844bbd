"""What the figures of `balle_wang_2018.py` share: settings, claims, tables and panels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from checks import Checks

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

DELTA = 1e-6
STANDARD_ERRORS = 6.0  # a false alarm in fewer than one of 10^7 checks, for a mean of many squares
TIE = 1.01  # ratio of two errors that counts as none


@dataclass(frozen=True)
class Settings:
    """How much to compute, and on what."""

    quick: bool
    data: Path | None


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


def _in_words(index: pd.Index, setting: object) -> str:
    values = setting if isinstance(setting, tuple) else (setting,)
    return ", ".join(f"{name}={value:g}" for name, value in zip(index.names, values, strict=True))


def draw_lines(axes: plt.Axes, table: pd.DataFrame, styles: Mapping[str, str]) -> None:
    """Draw each column of a table over its index, both logarithmic."""
    for name in table:
        axes.plot(table.index, table[name], styles.get(name, "-"), label=name, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel=table.index.name)
    axes.grid(alpha=0.3)


def panels_by_epsilon(errors: pd.DataFrame, label: str, styles: Mapping[str, str]) -> plt.Figure:
    """Draw errors over d, one panel for each epsilon."""
    epsilons = errors.index.unique("epsilon")
    figure, panels = plt.subplots(
        1, len(epsilons), figsize=(4 * len(epsilons) + 1.5, 4), layout="constrained"
    )
    for axes, epsilon in zip(np.atleast_1d(panels), epsilons, strict=True):
        draw_lines(axes, errors.loc[epsilon], styles)
        axes.set_title(f"$\\epsilon$ = {epsilon:g}")
    panels[0].set_ylabel(label)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure
