"""Figures of released frames. Matplotlib is imported when a figure is asked for."""

import importlib
from typing import Any

import numpy as np
import pandas as pd

from dpframe.errors import DPFrameError
from dpframe.postprocess import interval

__all__ = ["plot"]

_MOST_LABELS = 40


def plot(released: pd.DataFrame, *, level: float = 0.95, ax: Any = None) -> Any:
    """Draw bars with error bars, one series per innermost group where there are two levels of keys.

    Parameters
    ----------
    released
        A released frame; its first column is drawn.
    level
        Confidence level of the error bars.
    ax
        Matplotlib axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    DPFrameError
        If matplotlib is not installed.
    """
    bars = interval(released, level)
    low, value, high = (
        _wide(part, released.index)
        for part in (bars.iloc[:, 0], released.iloc[:, 0], bars.iloc[:, 1])
    )
    axes = _pyplot().subplots(layout="constrained")[1] if ax is None else ax
    width = 0.8 / value.shape[1]
    places = np.arange(len(value))
    for position, series in enumerate(value.columns):
        height = value.iloc[:, position].to_numpy(np.float64)
        reach = [
            height - low.iloc[:, position].to_numpy(np.float64),
            high.iloc[:, position].to_numpy(np.float64) - height,
        ]
        axes.bar(
            places + (position - (value.shape[1] - 1) / 2) * width,
            height,
            width,
            yerr=reach,
            capsize=2,
            label=str(series),
        )
    _label(axes, value, released, level)
    return axes


def _wide(column: pd.Series, index: pd.Index) -> pd.DataFrame:
    """Make rows of the places along the axis and columns of the series, the outer keys."""
    if index.nlevels == 1:
        return column.to_frame()
    rows, places = index.get_level_values(-1).factorize()
    columns, series = index.droplevel(-1).factorize()
    table = np.full((len(places), len(series)), np.nan)  # a combination may not be there
    table[rows, columns] = column
    return pd.DataFrame(table, index=places.rename(index.names[-1]), columns=series)


def _label(axes: Any, value: pd.DataFrame, released: pd.DataFrame, level: float) -> None:
    """Name the axes, the places and the series."""
    every = -(-len(value) // _MOST_LABELS)
    places = range(0, len(value), every)
    labels = [str(value.index[place]) for place in places]
    crowded = len(labels) * max(map(len, labels), default=0) > 80  # noqa: PLR2004
    axes.set_xticks(list(places), labels, rotation=90 if crowded else 0)
    axes.set_xlabel("" if value.index.name is None else str(value.index.name))
    axes.set_ylabel(f"{released.columns[0]} ({level:.0%} error bars)")
    if value.shape[1] > 1:
        axes.legend(title=", ".join(str(name) for name in released.index.names[:-1]))


def _pyplot() -> Any:
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise DPFrameError("drawing needs matplotlib: pip install dpframe[plot].") from None
