"""Rank errors of released quantiles, in rows: `python benchmarks/quantiles.py [--quick]`.

A rank error is by how many rows a value misses the place of its quantile, 0 where it lies between
the two rows there; where rows share values, also within half a bin of one of them. Means over all
quantiles and groups.
"""

import argparse
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import dpframe as dpf

DECILES = [k / 10 for k in range(1, 10)]
WORKLOADS = {"one median": [0.5], "quartiles": [0.25, 0.5, 0.75], "nine deciles": DECILES}
SIZES = {"10,000 rows": (1, 10_000, 400), "20 groups of 500 rows": (20, 500, 20)}
BOUNDS = 0.0, 10.0
HALF_BIN = 10 / 16_384 / 2

Release = Callable[[pd.DataFrame, list[float]], np.ndarray]
"""From a frame with columns `group` and `x` to values by group and quantile."""


def rank_errors(
    rows: np.ndarray, values: np.ndarray, quantiles: list[float], near: float
) -> np.ndarray:
    """By how many rows values miss the quantiles of rows in increasing order."""
    wanted = np.multiply(quantiles, len(rows))
    below = np.searchsorted(rows, values - near, "left")
    up_to = np.searchsorted(rows, values + near, "right")
    return np.maximum(np.maximum(below - wanted, wanted - up_to), 0)


def selected(frame: pd.DataFrame, quantiles: list[float]) -> np.ndarray:
    """Select quantiles at epsilon = 1."""
    released = frame.dp.quantile("x", quantiles, by="group", mechanism="select", epsilon=1)
    return released["x"].to_numpy().reshape(-1, len(quantiles))


def read_off(**spend: Any) -> Release:
    """Read quantiles off a release of ranges in 1,024 bins."""

    def released(frame: pd.DataFrame, quantiles: list[float]) -> np.ndarray:
        found = frame.dp.quantile("x", quantiles, by="group", **spend)
        return found["x"].to_numpy().reshape(-1, len(quantiles))

    return released


MECHANISMS: dict[str, Release] = {
    "select, epsilon = 1": selected,
    "ranges, Laplace, epsilon = 1": read_off(mechanism="laplace", epsilon=1),
    "ranges, Gaussian, (1, 1e-6)": read_off(mechanism="gaussian", epsilon=1, delta=1e-6),
}


def skewed(rng: np.random.Generator, size: int) -> np.ndarray:
    """Rows of an exponential law, clipped."""
    return np.minimum(rng.exponential(1.0, size), BOUNDS[1])


def tied(rng: np.random.Generator, size: int) -> np.ndarray:
    """Rows of which 30 % are 0, 10 % are 1/2 and 5 % are 1."""
    share = rng.random(size)
    return np.select([share < 0.3, share < 0.4, share < 0.45], [0.0, 0.5, 1.0], skewed(rng, size))


LAWS = {"exponential": (skewed, 0.0), "with ties": (tied, HALF_BIN)}
"""Values, and how near one of them counts as that value."""


def framed(x: np.ndarray, groups: int, size: int) -> pd.DataFrame:
    """Declare rows by group."""
    frame = pd.DataFrame({"group": np.repeat(np.arange(groups), size), "x": x})
    frame.dp.declare(keys={"group": range(groups)}, bounds={"x": BOUNDS}, privacy_unit=dpf.EACH_ROW)
    return frame


def measured(release: Release, law: str, quantiles: list[float], size: str, runs: int) -> float:
    """Return the mean rank error."""
    groups, rows, _ = SIZES[size]
    rng = np.random.default_rng(16)
    draw, near = LAWS[law]
    errors = []
    for _ in range(runs):
        frame = framed(draw(rng, groups * rows), groups, rows)
        values = release(frame, quantiles)
        own = np.sort(frame["x"].to_numpy().reshape(groups, rows), axis=1)
        errors += [
            rank_errors(one, value, quantiles, near) for one, value in zip(own, values, strict=True)
        ]
    return float(np.mean(errors))


def main() -> None:
    """Print a table of mean rank errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    quick = parser.parse_args().quick
    print("# Rank errors of released quantiles\n\nWritten by `python benchmarks/quantiles.py`.\n")
    print("| mechanism | values | quantiles | rows | mean rank error |")
    print("|---|---|---|---|---|")
    for name, law, workload, size in product(MECHANISMS, LAWS, WORKLOADS, SIZES):
        if name.startswith("ranges") and law == "with ties":  # in their bins, lines are straight
            continue
        runs = SIZES[size][2] // (10 if quick else 1)
        error = measured(MECHANISMS[name], law, WORKLOADS[workload], size, runs)
        print(f"| {name} | {law} | {workload} | {size} | {error:.2f} |", flush=True)


if __name__ == "__main__":
    main()
