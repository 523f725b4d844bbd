"""The errors that a suggestion predicts, drawn over its candidates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpframe.plotting.look import PLAIN
from dpframe.steps.suggest_caps import best, suggested

_LEAST = 1e-9
_LINES = {"lost": ("cut off", "--"), "noise": ("noise", ":"), "error": ("both", "-")}


def draw_errors(
    released: pd.DataFrame, new_axes: Callable[[], Any], title: str | None = None
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
    axes = new_axes()
    if isinstance(found, tuple):
        _draw_bounds(axes, released, found)
    else:
        _draw_caps(axes, released, name, found)
    axes.set_ylabel("predicted mean absolute error of a group")
    axes.set_title(title or suggested(released)[-1].query, fontsize="medium", **PLAIN)
    axes.legend(loc="best")
    return axes


def _draw_caps(axes: Any, released: pd.DataFrame, name: str, found: int) -> None:
    """Draw what caps cut off, the noise that they need, and both together, and mark the best."""
    for column, (label, style) in _LINES.items():
        axes.plot(released.index, released[column], style, color="C0", label=label)
    mark = {"marker": "o", "color": "C1", "ls": "", "label": f"best: {name}={found}"}
    axes.plot([found], [released["error"].loc[found]], **mark)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=max(released["noise"].min(), _LEAST) / 4)  # less is lost in the noise
    axes.set_xlabel(name)


def _draw_bounds(axes: Any, released: pd.DataFrame, found: tuple[float, float]) -> None:
    """Draw the errors of lower and of upper bounds beside the best other one, and mark the best."""
    bins = pd.IntervalIndex(released.index)
    ends = {"as_low": bins.left, "as_high": bins.right}
    for column, bound, color in zip(ends, found, ("C0", "C1"), strict=True):
        errors = pd.Series(released[column].to_numpy(), ends[column])
        errors = errors[np.isfinite(errors) & np.isfinite(errors.index)]
        label = {"as_low": "lower bound", "as_high": "upper bound"}[column]
        axes.plot(errors.index, errors, color=color, label=label)
        axes.plot([bound], [errors[bound]], "o", color=color, label=f"best: {bound:g}")
    sizes = np.abs(bins.left[1:])
    axes.set_xscale("symlog", linthresh=float(sizes[sizes > 0].min()))
    axes.set_yscale("log")
    axes.set_xlabel(str(released.index.name), **PLAIN)
