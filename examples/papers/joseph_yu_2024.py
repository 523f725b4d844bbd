"""Count and Vote of Joseph and Yu (2024): Gaussian noise in an ellipse, beside that in a sphere.

Matthew Joseph and Alexander Yu, "Some Constructions of Private, Efficient, and Optimal K-Norm and
Elliptic Gaussian Noise", arXiv 2309.15790.

- Count: a row has at most k of d. Releases of it are in `lebeda_2024.py`.
- Vote: a row ranks d candidates, and gives them 0, 1, ..., d - 1 points. Here nothing declares that
  the points of a row are a ranking: what is released knows their bounds only.

That no row costs more than 1, and that no Gaussian noise has a smaller total variance, is checked
over all rows there can be. Released variances are found three times, as in `lebeda_2024.py`. The
exit code is 1 where something disagrees.

Run it with `python examples/papers/joseph_yu_2024.py --output figures`, or with `--quick`.
"""

import argparse
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from checks import Checks
from lebeda_2024 import Variances, compare, lifted, plt, sparse

import dpframe as dpf

EXACT = 1e-12
SIZE = 1000  # d of Count and the largest of Vote, as in the paper's figure


def covariance(d: int, r: float, t: float) -> np.ndarray:
    """Return the covariance, times mu^2, of queries shifted by t in a ball of radius r."""
    return (r + t) * (r * np.eye(d) + t)


def count_shape(d: int, k: int) -> tuple[float, float]:
    """Return r and t of Count, for k up to (d + sqrt d) / 2."""
    r = math.sqrt(k * (d - k) / (d - 1))
    return r, (k - r) / d


def vote_shape(d: int) -> tuple[float, float]:
    """Return r and t of Vote: rows are sqrt(d (d^2 - 1) / 12) from their mean, d (d - 1) / 2 up."""
    r = d * math.sqrt((d + 1) / 12)
    return r, (d - 1) / 2 - r / d


def vote_error(d: int) -> float:
    """Return the standard error of a candidate, times mu."""
    return sum(vote_shape(d))


def vote_sphere(d: int) -> float:
    """Return the standard error with the same independent noise for all: the length of a row."""
    return math.sqrt(d * (d - 1) * (2 * d - 1) / 6)


def by_bounds(d: int) -> Variances:
    """Give closed forms for d sums of values in [0, d - 1], as far as bounds tell."""
    counting = lifted(math.sqrt(d) / 2, 0.5, math.sqrt(d) / 4)
    return replace(counting, query=counting.query * (d - 1) ** 2)


def check_best(checks: Checks, what: str, rows: np.ndarray, noise: np.ndarray) -> None:
    """Check that the noise is enough for all rows, and that its total variance is the least.

    If v' S^-1 v <= 1 for all rows v, then tr(S^-1 M) <= 1 for M, the mean of v v' over the longest
    rows, and by Cauchy and Schwarz (tr M^(1/2))^2 <= tr(S) tr(S^-1 M) <= tr(S).
    """
    costs = ((rows @ np.linalg.inv(noise)) * rows).sum(axis=1)
    checks.close(f"{what}: the farthest row costs", costs.max(), 1.0, EXACT)
    longest = rows[rows.sum(axis=1) == rows.sum(axis=1).max()]
    squares = np.linalg.eigvalsh(longest.T @ longest / len(longest))
    least = np.sqrt(squares.clip(0)).sum() ** 2
    checks.close(f"{what}: total variance", np.trace(noise), least, 1e-6)


def shapes(checks: Checks) -> None:
    """Check both shapes over all rows, and the axes of Vote against Theorem 9.10."""
    d = 6
    corners = np.array(list(itertools.product([0, 1], repeat=d)))
    for k in (1, 2, 3, 4):
        rows = corners[corners.sum(axis=1) <= k]
        check_best(checks, f"Count: d={d}, k={k}", rows, covariance(d, *count_shape(d, k)))
        query = sum(count_shape(d, k)) ** 2
        checks.close(f"Count: d={d}, k={k}: variance", query, sparse(d, k).query, EXACT)
    for d in (2, 3, 5, 7):
        rankings = np.array(list(itertools.permutations(range(d))))
        noise = covariance(d, *vote_shape(d))
        check_best(checks, f"Vote: d={d}", rankings, noise)
        along, across = math.sqrt(d) * (d - 1) / 2, math.sqrt(d * (d**2 - 1) / 12)
        whole = along + across * math.sqrt(d - 1)
        across_axis, along_axis = np.linalg.eigvalsh(noise)[[0, -1]]
        checks.close(f"Vote: d={d}: axis of the sum", along_axis, whole * along, EXACT)
        axis = whole * across / math.sqrt(d - 1)
        checks.close(f"Vote: d={d}: other axes", across_axis, axis, EXACT)
    paper = (3 + math.sqrt(15)) * (1 + math.sqrt(5 / 3)) / 2 / (28 / 3)  # the authors' example
    checks.close("Vote: d=4: variance relative to the sphere", vote_gain(4), paper, EXACT)


def count_gain(d: int, k: int) -> float:
    """Return the variance of the ellipse of Count relative to that of the sphere."""
    return sparse(d, k).query / k


def vote_gain(d: int) -> float:
    """Return the variance of the ellipse of Vote relative to that of the sphere."""
    return (vote_error(d) / vote_sphere(d)) ** 2


def votes(d: int, cells: int) -> pd.DataFrame:
    """Build and declare a frame of one ranking in each cell."""
    rows = np.arange(cells)
    points = {f"q{j}": (rows + j) % d for j in range(d)}
    frame = pd.DataFrame({"cell": rows, **points})
    bounds = dict.fromkeys(points, (0, d - 1))
    frame.dp.declare(bounds=bounds, keys={"cell": range(cells)}, privacy_unit=dpf.EACH_ROW)
    return frame


def released(checks: Checks, sizes: list[int], cells: int) -> dict[int, float]:
    """Check releases of sums of points; return the realized standard error of a candidate."""
    found = {}
    for d in sizes:
        frame = votes(d, cells)
        query = dpf.sum([name for name in frame if name != "cell"], by="cell")
        realized, _ = compare(checks, f"Vote: d={d}", frame, query, by_bounds(d))
        found[d] = math.sqrt(realized)
        closed = math.sqrt(by_bounds(d).query)
        times = f"{closed / vote_sphere(d):.4f} times the sphere's"
        print(f"       d={d}: error {times}, {closed / vote_error(d):.4f} times the ellipse's")
    return found


def draw(found: dict[int, float]) -> plt.Figure:
    """Draw what an ellipse saves over a sphere, and the errors of Vote."""
    figure, (gains, errors) = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")
    few, every = range(1, SIZE // 2), range(2, SIZE)
    gains.plot(few, [count_gain(SIZE, k) for k in few], "C2:", label=f"Count, d = {SIZE}, over k")
    gains.plot(every, [vote_gain(d) for d in every], "C0--", label="Vote, over d")
    gains.set(xlabel="k or d", ylabel="variance, relative to the sphere", ylim=(0, 1.05))
    drawn = range(2, max(found) + 1)
    errors.plot(drawn, [vote_sphere(d) for d in drawn], "C3--", label="sphere")
    known = [math.sqrt(by_bounds(d).query) for d in drawn]
    errors.plot(drawn, known, "0.6", label="correlated, from bounds")
    errors.plot(drawn, [vote_error(d) for d in drawn], "C0", label="ellipse")
    errors.plot(list(found), list(found.values()), "o", color="0.4", label="simulated")
    errors.set(xlabel="d candidates", ylabel="standard error of a candidate, times $\\mu$")
    for axes in (gains, errors):
        axes.legend(fontsize=8)
    return figure


def main() -> None:
    """Print and check all numbers, and save the figure if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder for the figure")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and cells")
    options = parser.parse_args()

    checks = Checks()
    print("Variances times mu^2.\n")
    shapes(checks)
    for d in (10, 100, SIZE):
        numbers = f"Vote {vote_gain(d):.4f}, Count at k = d / 2 {count_gain(d, d // 2):.4f}"
        print(f"       d={d}: variance of the ellipse relative to the sphere: {numbers}")
    sizes, cells = ([3, 20], 4_000) if options.quick else ([3, 5, 10, 20, 50, 100], 40_000)
    figure = draw(released(checks, sizes, cells))
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "count-and-vote.png"
        figure.savefig(path, dpi=110)
        print(f"saved {path}")
    checks.finish()


if __name__ == "__main__":
    main()
