"""Draw the time per row against the number of groups."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt  # the backend comes first
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

Record = dict[str, Any]
STYLES = {
    "pandas": ("black", "--", "o"),
    "dpframe": ("tab:blue", "-", "o"),
    "opendp": ("tab:orange", "-", "s"),
    "pipeline_dp": ("tab:green", "-", "^"),
    "diffprivlib": ("tab:red", "-", "D"),
    "smartnoise": ("tab:purple", "-", "v"),
    "tumult": ("tab:brown", "-", "P"),
}
TITLES = {"row": "each row its own unit", "unit": "units, with caps"}


def panel(axes: plt.Axes, found: Sequence[Record], titles: dict[str, str]) -> None:
    """Draw one line for each library."""
    for library, (color, line, marker) in STYLES.items():
        points = sorted(
            (r["keys"], 1e9 * r["seconds"] / r["rows"]) for r in found if r["library"] == library
        )
        if points:
            look = {"color": color, "linestyle": line, "marker": marker, "markersize": 5}
            axes.plot(*zip(*points, strict=True), label=titles[library], **look)
    keys = sorted({r["keys"] for r in found})
    axes.set(xscale="log", yscale="log", xlabel="groups")
    axes.xaxis.set_major_locator(FixedLocator(keys))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
    axes.grid(alpha=0.3)


def draw(results: Sequence[Record], titles: dict[str, str], path: Path) -> None:
    """Draw the largest number of rows at which most was measured."""
    timed = [
        r for r in results if r["part"] == "memory" and "seconds" in r and r["variant"] == "key"
    ]
    sizes = [rows for rows, _ in {(r["rows"], r["library"]) for r in timed}]
    rows = max(sizes, key=lambda rows: (sizes.count(rows), rows))  # most libraries, then most rows
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained", sharey=True)
    for axes, (task, title) in zip(panels, TITLES.items(), strict=True):
        panel(axes, [r for r in timed if r["rows"] == rows and r["task"] == task], titles)
        axes.set_title(f"{rows:,} rows, {title}", fontsize=11)
    panels[0].set_ylabel("nanoseconds per row")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})
    plt.close(figure)
