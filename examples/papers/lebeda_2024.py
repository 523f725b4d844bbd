"""Figures 1 to 3 of Lebeda (2024), from closed forms, predicted and simulated releases.

Christian Janos Lebeda, "Better Gaussian Mechanism using Correlated Noise", arXiv 2408.06853.

- Figure 1: what a row adds to two counting queries, within the ellipses of both mechanisms.
- Figure 2: counting queries are traded for the number of rows n, by the weight gamma of n.
- Figure 3: the error of d counting queries of which a row has at most k, beside that of independent
  Gaussian noise and relative to it. Beyond the paper: what a k costs that is not declared.

Every number is found three times: by a closed form, by `plan`, and from the errors of real
releases. Predictions must agree with the closed forms to 0.1 %, realized variances to 6 standard
errors of their estimate; otherwise the exit code is 1.

Run it with `python examples/papers/lebeda_2024.py --output figures`, or with `--quick`.
"""

import argparse
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pandera.pandas as pa
from checks import Checks

import dpframe as dpf

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend comes first

MU = 0.01  # so little that the rounding of the noise, a variance of 1/12, does not show
PREDICTED = 1e-3
SIMULATED = 6.0  # standard errors: a false alarm in fewer than one of 10^7 checks


@dataclass(frozen=True)
class Variances:
    """Of a query, of n, and the correlation of two queries; all times mu^2."""

    query: float
    n: float
    correlation: float


def lifted(r: float, t: float, gamma_squared: float) -> Variances:
    """Give closed forms for queries shifted by t, in a ball of radius r, and n times gamma."""
    square = r * r + gamma_squared
    query = square * (1 + t * t / gamma_squared)
    common = square * t * t / gamma_squared
    return Variances(query, square / gamma_squared, common / query)


def sparse(d: int, k: int) -> Variances:
    """Give closed forms for d queries of which a row has at most k."""
    if k >= (d + math.sqrt(d)) / 2:
        r, t = math.sqrt(d) / 2, 0.5
    else:
        r = math.sqrt(k * (d - k) / (d - 1))
        t = (k - r) / d
    return lifted(r, t, r * t) if t else Variances(float(k), math.nan, 0.0)


def private_frame(d: int, cells: int) -> pd.DataFrame:
    """Build and declare a frame of one row in each cell, in which one of d columns is true."""
    rows = np.arange(cells)
    columns = {f"q{j}": rows % d == j for j in range(d)}
    frame = pd.DataFrame({"cell": rows, **columns})
    facts: dict[str, Any] = {name: pa.Column(bool) for name in columns}
    schema = pa.DataFrameSchema(facts)
    frame.dp.declare(schema, keys={"cell": range(cells)}, privacy_unit=dpf.EACH_ROW)
    return frame


def predicted(frame: pd.DataFrame, query: dpf.Query, mechanism: str = "auto") -> pd.Series:
    """Variance of each released column times mu^2, from the plan."""
    return (frame.dp.plan(query, mu=MU, mechanism=mechanism).table["std_error"] * MU) ** 2


def simulated(
    frame: pd.DataFrame, query: dpf.Query, mechanism: str = "auto"
) -> tuple[float, float]:
    """Realized variance of the queries and of n times mu^2, over all cells of one release."""
    released = frame.dp.release(query, mu=MU, mechanism=mechanism)
    errors = (released - frame.set_index("cell").assign(n=1)[released.columns]) * MU
    squares = (errors.astype(float) ** 2).mean()
    return float(squares.drop("n", errors="ignore").mean()), float(squares.get("n", math.nan))


def tolerance(d: int, correlation: float, cells: int) -> float:
    """How far a realized variance, the mean over d columns, may be off."""
    return SIMULATED * math.sqrt(2 * (1 / d + (1 - 1 / d) * correlation**2) / cells)


def compare(
    checks: Checks, what: str, frame: pd.DataFrame, query: dpf.Query, closed: Variances
) -> tuple[float, float]:
    """Check one setting; return the realized variances of a query and of n."""
    found = predicted(frame, query)
    n = float(found.get("n", math.nan))
    of_query = float(found.drop("n", errors="ignore").mean())
    checks.close(f"{what}: query, predicted", of_query, closed.query, PREDICTED)
    if not math.isnan(n):
        checks.close(f"{what}: n, predicted", n, closed.n, PREDICTED)
    realized, realized_n = simulated(frame, query)
    d, cells = frame.shape[1] - 1, len(frame)
    most = tolerance(d, closed.correlation, cells)
    checks.close(f"{what}: query, simulated", realized, closed.query, most)
    if not math.isnan(n):
        checks.close(f"{what}: n, simulated", realized_n, closed.n, tolerance(1, 1, cells))
    return realized, realized_n


def ellipses(checks: Checks) -> plt.Figure:
    """Figure 1: the hull of what a row adds or takes away, and one standard deviation of noise.

    Noise of covariance S hides a move v at a cost of v' S^-1 v in mu squared: at mu = 1, all moves
    of a row lie in the ellipse where that is 1. With n beside them, every row is on its surface.
    """
    for d in (2, 5, 10):
        moves = np.array(list(itertools.product([0, 1], repeat=d)))
        for name, covariance in _covariances(d).items():
            farthest = ((moves @ np.linalg.inv(covariance)) * moves).sum(axis=1).max()
            what = f"Figure 1: d={d}, {name}: the farthest row costs {farthest:.4f}"
            checks.true(what, 0.9 < farthest < 1 + 1e-12)
        queries = float(_covariances(d)["correlated"][0, 0])
        wanted = ((math.sqrt(d) + 1) / 2) ** 2
        checks.close(f"d={d}: variance of a query", queries, wanted, 1e-12)
    figure, axes = plt.subplots(figsize=(4.8, 4.8), layout="constrained")
    hull = np.array([(0, 1), (1, 1), (1, 0), (0, -1), (-1, -1), (-1, 0), (0, 1)])
    axes.fill(*hull.T, color="0.85", label="what a row adds or takes away")
    angles = np.linspace(0, 2 * math.pi, 200)
    circle = np.array([np.cos(angles), np.sin(angles)])
    for (name, covariance), style in zip(_covariances(2).items(), ("C3--", "C0-"), strict=True):
        axes.plot(*(np.linalg.cholesky(covariance) @ circle), style, label=name)
    axes.set(aspect="equal", xlabel="first query", ylabel="second query")
    axes.legend(fontsize=8)
    return figure


def _covariances(d: int) -> dict[str, np.ndarray]:
    """Return the covariances of both mechanisms for d counting queries, times mu^2."""
    closed = lifted(math.sqrt(d) / 2, 0.5, math.sqrt(d) / 4)
    common = closed.correlation * closed.query
    return {
        "independent": d * np.eye(d),
        "correlated": (closed.query - common) * np.eye(d) + common,
    }


def trade_off(checks: Checks, sizes: Iterable[int], cells: int) -> plt.Figure:
    """Figure 2: variance of a query against variance of n, over gamma^2."""
    figure, panels = plt.subplots(1, len(list(sizes)), figsize=(9.6, 4), layout="constrained")
    for axes, d in zip(panels, sizes, strict=True):
        frame = private_frame(d, cells)
        names = [name for name in frame if name != "cell"]
        points = []
        for gamma_squared in math.sqrt(d) / 4 * np.array([1, 1.25, 1.6, 2, math.sqrt(d)]):
            # n_weight joins the d/4 that the queries give n: gamma^2 = sqrt(d + 4 n_weight) / 4
            weight = max(0.0, ((4 * gamma_squared) ** 2 - d) / 4)
            query = dpf.sum(names, by="cell", n_weight=weight)
            closed = lifted(math.sqrt(d) / 2, 0.5, gamma_squared)
            points.append(
                compare(checks, f"d={d}, gamma^2={gamma_squared:.3f}", frame, query, closed)
            )
        known = predicted(frame, dpf.sum(names, by="cell", n=1.0), "correlated").mean()
        checks.close(f"d={d}, n public (Lemma 12): query, predicted", known, d / 4, PREDICTED)
        _draw_trade_off(axes, d, points, known)
    panels[0].set_ylabel("variance of a query, times $\\mu^2$")
    panels[0].legend(fontsize=8, loc="upper right", bbox_to_anchor=(1, 0.83))
    return figure


def _draw_trade_off(
    axes: plt.Axes, d: int, points: list[tuple[float, float]], known: float
) -> None:
    gammas = np.geomspace(math.sqrt(d) / 12, d / 2, 200)
    curve = [lifted(math.sqrt(d) / 2, 0.5, gamma_squared) for gamma_squared in gammas]
    axes.plot([v.n for v in curve], [v.query for v in curve], color="0.6", label="closed form")
    axes.plot(
        [n for _, n in points], [q for q, _ in points], "o", color="C0", label="simulated releases"
    )
    for (query, n), name in ((points[0], "n_weight = 0"), (points[-1], "$\\gamma^2 = d/4$")):
        axes.annotate(name, (n, query), (6, 8), textcoords="offset points", fontsize=9)
    axes.axhline(d, color="C3", linestyle="--", label="independent noise")
    axes.axhline(known, color="C2", linestyle=":", label="n is public")
    axes.set(
        xlabel="variance of n, times $\\mu^2$",
        title=f"d = {d}",
        xlim=(0, 2.2 * (math.sqrt(d) + 1)),
        ylim=(0, 1.1 * d),
    )


def over_k(checks: Checks, sizes: dict[int, list[int]], cells: int) -> plt.Figure:
    """Figure 3: standard errors of both mechanisms, and their ratio, over k."""
    figure, panels = plt.subplots(
        2, len(sizes), figsize=(9.6, 7.5), sharex="col", layout="constrained"
    )
    for column, (d, few) in zip(panels.T, sizes.items(), strict=True):
        frame = private_frame(d, cells)
        names = [name for name in frame if name != "cell"]
        found = {}
        for k in few:
            query = dpf.sum(names, by="cell", max_true=k)
            standard = standard_variance(checks, f"d={d}, k={k}", frame, query, k)
            of_query, _ = compare(checks, f"d={d}, k={k}", frame, query, sparse(d, k))
            relative = math.sqrt(of_query / k)
            print(f"       d={d}, k={k}: error relative to independent noise {relative:.4f}")
            found[k] = (math.sqrt(standard), math.sqrt(of_query))
        _draw_errors(column[0], d, found)
        _draw_relative(column[1], d, found)
    panels[0, 0].set_ylabel("standard error of a query, times $\\mu$")
    panels[1, 0].set_ylabel("relative to independent noise")
    for axes in panels[:, 0]:
        axes.legend(fontsize=8)
    return figure


def standard_variance(
    checks: Checks, what: str, frame: pd.DataFrame, query: dpf.Query, k: int
) -> float:
    """Check independent noise of variance k; return its realized variance."""
    variance = float(predicted(frame, query, "gaussian").mean())
    checks.close(f"{what}: independent noise, predicted", variance, k, PREDICTED)
    realized, _ = simulated(frame, query, "gaussian")
    most = tolerance(frame.shape[1] - 1, 0.0, len(frame))
    checks.close(f"{what}: independent noise, simulated", realized, k, most)
    return realized


def _draw_errors(axes: plt.Axes, d: int, found: dict[int, tuple[float, float]]) -> None:
    every = range(1, d + 1)
    axes.plot(every, [math.sqrt(k) for k in every], "C3--", label="independent, $\\sqrt{k}$")
    axes.plot(every, [math.sqrt(sparse(d, k).query) for k in every], "0.6", label="correlated")
    axes.plot(list(found), [alone for alone, _ in found.values()], "x", color="C3")
    axes.plot(
        list(found), [shared for _, shared in found.values()], "o", color="C0", label="simulated"
    )
    axes.set(title=f"d = {d}", ylim=(0, None))


def _draw_relative(axes: plt.Axes, d: int, found: dict[int, tuple[float, float]]) -> None:
    every = range(1, d + 1)
    closed = [math.sqrt(sparse(d, k).query / k) for k in every]
    careless = [(math.sqrt(d) + 1) / 2 / math.sqrt(k) for k in every]
    axes.axhline(1, color="C3", linestyle="--", label="independent")
    axes.plot(every, closed, color="0.6", label="correlated")
    axes.plot(every, careless, color="C1", linestyle=":", label="without max_true")
    relative = [shared / math.sqrt(k) for k, (_, shared) in found.items()]
    axes.plot(list(found), relative, "o", color="C0", label="simulated")
    axes.set(xlabel="k, the most that are true in a row", ylim=(0.4, 1.3))


def main() -> None:
    """Print and check all numbers, and save the figures if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder for the figures")
    parser.add_argument("--quick", action="store_true", help="fewer settings and cells")
    options = parser.parse_args()

    cells = 4_000 if options.quick else 40_000
    ten, hundred = list(range(1, 11)), [1, 2, 5, 10, 20, 30, 40, 50, 55, 60, 70, 80, 90, 100]
    sizes = {10: [1, 3, 7, 10], 100: [10, 100]} if options.quick else {10: ten, 100: hundred}
    checks = Checks()
    print(f"Variances times mu^2; {cells} cells in each release.\n")
    figures = {
        "figure-1-ellipses": ellipses(checks),
        "figure-2-trade-off": trade_off(checks, sizes, cells),
        "figure-3-over-k": over_k(checks, sizes, cells),
    }
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        for name, figure in figures.items():
            figure.savefig(options.output / f"{name}.png", dpi=110)
            print(f"saved {options.output / name}.png")
    checks.finish()


if __name__ == "__main__":
    main()
