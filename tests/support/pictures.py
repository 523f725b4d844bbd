"""Releases to draw, and what is seen in a figure."""

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from support.certifying import recertified

import dpframe as dpf


def trips():
    rows = np.arange(600)
    zone = np.array(list("CAB"))[rows * rows % 7 % 3]
    return pd.DataFrame(
        {"zone": zone, "day": rows % 11 % 3, "paid": rows % 5 > 2, "fare": rows % 60}
    )


def denoised(made, **columns):
    """Put denoised values behind the released ones, as a denoised release has them."""
    wide = made.assign(**{f"{name}_denoised": values for name, values in columns.items()})
    return recertified(wide, dpf.denoise(made, "nonnegative"))


def steps(axes):
    """Return the left ends, the right ends and the heights of the steps of each line."""
    lines = [line.get_data() for line in axes.lines]
    return [(x[::3].tolist(), x[1::3].tolist(), y[::3].tolist()) for x, y in lines]


def ends_of_bands(axes):
    """Return the heights at which each band begins or ends somewhere."""
    bands = [part for part in axes.collections if isinstance(part, PolyCollection)]
    return [{float(y) for path in band.get_paths() for y in path.vertices[:, 1]} for band in bands]


def segments(axes):
    """Return the ends of all error bars, one series after the other."""
    bars = [part for part in axes.containers if hasattr(part, "has_yerr")]
    return np.array([part[:, 1] for one in bars for part in one.lines[2][0].get_segments()])


def caption(axes):
    """Return what is written below a figure."""
    return axes.figure.get_supxlabel()


def entries(axes):
    (legend,) = legends(axes)
    return [text.get_text() for text in legend.get_texts()]


def heights(axes):
    """Return the lengths of bars, of each series."""
    return [
        [bar.get_height() if bars.orientation == "vertical" else bar.get_width() for bar in bars]
        for bars in axes.containers
        if hasattr(bars, "patches")
    ]


def labels(axes):
    return [label.get_text() for label in axes.get_xticklabels()]


def drawn(axes):
    """Draw the figure of axes; return what draws it."""
    figure = np.ravel(axes)[0].figure
    figure.canvas.draw()
    return figure.canvas.get_renderer()


def boxes(axes):
    """Return the boxes of bars, lines, points and error bars, in pixels."""
    renderer = drawn(axes)
    found = [part.get_window_extent(renderer) for part in [*axes.patches, *axes.lines]]
    errors = [part for part in axes.collections if isinstance(part, LineCollection)]
    ends = [segment for part in errors for segment in part.get_segments()]
    return found + [Bbox(axes.transData.transform(end)) for end in ends]


def legends(axes):
    """Return the legends beside axes and figure."""
    own = axes.get_legend()
    return [*axes.figure.legends, *([] if own is None else [own])]


def texts(figure):
    """Return what is written in a figure."""
    return [part for part in figure.findobj(Text) if part.get_text() and part.get_visible()]


def dots(axes):
    """Return where the denoised values of each series are."""
    parts = [part.get_offsets() for part in axes.collections if isinstance(part, PathCollection)]
    return [part for part in parts if len(part)]
