"""The errors that a suggestion predicts, drawn over its candidates."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from dpframe.results.suggested import best, suggested

__all__ = ["draw_errors"]

_LINES = {"lost": ("cut off", "--"), "noise": ("noise", ":"), "error": ("both", "-")}


def draw_errors(released: pd.DataFrame, new_axes: Callable[[], Any]) -> Any:
    """Draw what is cut off, the noise, and both together, and mark the best candidate.

    Parameters
    ----------
    released
        A suggestion.
    new_axes
        Returns the axes to draw on.

    Raises
    ------
    CertificateError
        If the frame is no suggestion.
    """
    ((name, found),) = best(released).items()
    axes = new_axes()
    for column, (label, style) in _LINES.items():
        axes.plot(released.index, released[column], style, color="C0", label=label)
    mark = {"marker": "o", "color": "C1", "ls": "", "label": f"best: {name}={found}"}
    axes.plot([found], [released["error"].loc[found]], **mark)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(name)
    axes.set_ylabel("predicted mean absolute error of a group")
    axes.set_title(suggested(released)[-1].query, fontsize="medium")
    axes.legend(loc="best")
    return axes
