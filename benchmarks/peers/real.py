"""Real columns, and how far published tables and quantiles are from theirs."""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Table = tuple[int, ...]  # the attributes of a margin
DECILES = tuple(k / 10 for k in range(1, 10))
ASKED = {"deciles": DECILES, "median": (0.5,)}
BOUNDS = {"weight": (0.0, 1_000_000.0), "amount": (0.0, 500.0), "distance": (0.0, 20.0)}
ORDERS = ("rows", "one-way", "two-way")


def adult(folder: str) -> tuple[np.ndarray, list[int]]:
    """Return the attributes as whole numbers from zero, and how many values each has."""
    codes = np.load(Path(folder) / "adult.npy")
    return codes, [int(n) for n in codes.max(axis=0) + 1]


def margins_of(codes: np.ndarray, sizes: Sequence[int], ways: int = 2) -> dict[Table, np.ndarray]:
    """Count all tables of at most so many attributes."""
    return {
        table: counted(codes, sizes, table)
        for order in range(ways + 1)
        for table in itertools.combinations(range(len(sizes)), order)
    }


def counted(codes: np.ndarray, sizes: Sequence[int], table: Table) -> np.ndarray:
    """Count one table."""
    shape = tuple(sizes[k] for k in table)
    if not table:
        return np.array(len(codes))
    places = np.ravel_multi_index(tuple(codes[:, k] for k in table), shape)
    return np.bincount(places, minlength=math.prod(shape)).reshape(shape)


def by_order(
    published: Mapping[Table, np.ndarray], true: Mapping[Table, np.ndarray]
) -> dict[str, float]:
    """Return the mean square error of a cell of each order, every table with the same weight."""
    errors: dict[str, list[float]] = {}
    for table, cells in published.items():
        square = float(np.mean((np.asarray(cells, float) - true[table]) ** 2))
        errors.setdefault(ORDERS[len(table)], []).append(square)
    return {order: float(np.mean(squares)) for order, squares in errors.items()}


def root_of_orders(squares: Mapping[Table, float]) -> dict[str, float]:
    """Return the root mean square of a cell of each order, from mean squares by table."""
    found = by_order(
        {t: np.sqrt(square) for t, square in squares.items()}, dict.fromkeys(squares, 0)
    )
    return root_mean([found])


def root_mean(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return root mean squares over releases."""
    return {order: math.sqrt(np.mean([run[order] for run in runs])) for order in runs[0]}


def column(folder: str, name: str) -> np.ndarray:
    """Return a column, clipped to its bounds and in order."""
    return np.sort(np.clip(np.load(Path(folder) / f"{name}.npy"), *BOUNDS[name]))


def rank_error(ordered: np.ndarray, value: float, level: float) -> float:
    """Return by how many rows a value misses the rank that was asked for; ties miss by none."""
    below, upto = (np.searchsorted(ordered, value, side) for side in ("left", "right"))
    wanted = level * len(ordered)
    return float(max(below - wanted, wanted - upto, 0.0))


def ranked(
    case: Mapping[str, object], release: Callable[[], Sequence[float]], ordered: np.ndarray
) -> dict[str, object]:
    """Release the quantiles again and again: mean absolute rank error, and time of one."""
    levels = ASKED[str(case["statistic"])]
    errors, spent = [], []
    for _ in range(int(str(case["samples"]))):
        start = time.perf_counter()
        values = release()
        spent.append(time.perf_counter() - start)
        errors.append([rank_error(ordered, v, q) for v, q in zip(values, levels, strict=True)])
    mean = np.mean(errors, axis=1)
    return {
        "error": float(mean.mean()),
        "deviation": float(mean.std(ddof=1) / math.sqrt(len(mean))),
        "seconds": float(np.median(spent)),
    }
