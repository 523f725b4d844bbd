"""Draw which mechanism has the least error, from plans: the picture of the documentation.

Run it with `python examples/papers/which_mechanism.py --output docs/images`, or with `--quick`.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pandera.pandas as pa

import dpframe as dpf

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

MECHANISMS = ("laplace", "box", "gaussian", "correlated")
TICKS = [1, 2, 5, 10, 20, 50, 100]
COLORS = dict(zip(MECHANISMS, ("C1", "C2", "C3", "C0"), strict=True))
TITLES = {
    "laplace": "Laplace",
    "box": "in a box",
    "gaussian": "independent Gaussian",
    "correlated": "correlated Gaussian",
}


def answered(columns: dict[str, Any], missing: dict[str, float] | None = None) -> pd.DataFrame:
    """Declare an empty frame in one group: plans read no data."""
    frame = pd.DataFrame({name: [] for name in ("group", *columns)})
    facts = {name: pa.Column(**about) for name, about in columns.items()}
    schema = pa.DataFrameSchema(facts)
    frame.dp.declare(schema, keys={"group": ["all"]}, missing=missing, privacy_unit=dpf.EACH_ROW)
    return frame


def errors(frame: pd.DataFrame, **options: Any) -> pd.Series:
    """Return standard errors of the first column at (1, 1e-6) by mechanism, the best first."""
    names = [name for name in frame if name != "group"]
    query = dpf.sum(names, by="group", **options)
    found = {}
    for mechanism in ("gaussian", "correlated", "laplace", "box", "staircase"):
        with suppress(dpf.errors.CalibrationError):  # where it does not apply
            plan = frame.dp.plan(query, epsilon=1, delta=1e-6, mechanism=mechanism)
            found[mechanism] = plan.table["std_error"].iloc[0]
    return pd.Series(found).sort_values()


def booleans(d: int) -> pd.DataFrame:
    """Compare mechanisms for d boolean columns."""
    return answered({f"b{j}": {"dtype": bool} for j in range(d)})


def off_center(center: float) -> pd.DataFrame:
    """Compare mechanisms for ten columns of width 1 around a center."""
    bounds = {"dtype": float, "checks": pa.Check.in_range(center - 0.5, center + 0.5)}
    names = [f"x{j}" for j in range(10)]
    return answered(dict.fromkeys(names, bounds), missing=dict.fromkeys(names, center))


def draw(
    axes: plt.Axes, xs: Sequence[float], compare: Callable[[float], pd.Series], label: str
) -> None:
    """Draw the error of each mechanism over x, and the background in the color of the best."""
    tables = {x: compare(x) for x in xs}
    for name in MECHANISMS:
        found = [(x, table[name]) for x, table in tables.items() if name in table]
        axes.plot(*zip(*found, strict=True), color=COLORS[name], label=TITLES[name])
    edges = [xs[0], *(sum(pair) / 2 for pair in pairwise(xs)), xs[-1]]
    for table, low, high in zip(tables.values(), edges, edges[1:], strict=False):
        axes.axvspan(low, high, color=COLORS[table.index[0]], alpha=0.15, linewidth=0)
    axes.set(xlabel=label, xlim=(xs[0], xs[-1]))


def main() -> None:
    """Draw three panels, and print who wins where."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--quick", action="store_true", help="fewer points")
    options = parser.parse_args()
    many = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100]
    centers = [0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3]
    if options.quick:
        many, centers = [1, 3, 5, 20], [0, 0.5, 2]

    hundred = booleans(max(many))
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    draw(panels[0], many, lambda d: errors(booleans(int(d))), "number of boolean columns d")
    draw(panels[1], many, lambda k: errors(hundred, max_true=int(k)), "at most k are true in a row")
    draw(panels[2], centers, lambda c: errors(off_center(c)), "center of the bounds / width")
    titles = "All may be true", f"{max(many)} columns, max_true=k", "10 columns, bounds off zero"
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
    for axes in panels[:2]:
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(FixedLocator(TICKS))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_locator(NullLocator())
    panels[0].set_ylabel("standard error of a column at (1, 1e-6)")
    panels[0].legend(fontsize=9)

    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "which-mechanism.png"
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})
    print(f"saved {path}")


if __name__ == "__main__":
    main()
