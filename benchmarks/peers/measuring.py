"""Time, memory and errors; run inside each library's environment, so standard library alone."""

import json
import math
import os
import random
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

BOUNDS = (0.0, 50.0)
EPSILON, DELTA = 1.0, 1e-6  # of the timings
MAX_GROUPS, MAX_ROWS_PER_GROUP = 5, 2
EDGES = tuple(5.0 * number for number in range(11))  # of the histogram
HIGH = 25.0  # a rate is the share of values above
MIDDLE = sum(BOUNDS) / 2
SHORT = 10.0  # a run that takes longer is not repeated
RANGE_BINS = 1_024
RANGES = 10  # drawn of each release


def megabytes(field: str, processes: Sequence[int]) -> float:
    """Add up a field of /proc/PID/status: VmRSS is memory now, VmHWM the highest so far."""
    total = 0
    for process in processes:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                total += int(line.split()[1])
    return total / 1024


def forget_peak(processes: Sequence[int]) -> None:
    """Let the highest memory start again from what is used now."""
    for process in processes:
        Path(f"/proc/{process}/clear_refs").write_text("5")


def measured(call: Callable[[], object], processes: Sequence[int] = ()) -> dict[str, object]:
    """Run a call three times, seven times if it is short and once if it is long."""
    processes = processes or [os.getpid()]
    forget_peak(processes)
    before = megabytes("VmRSS", processes)
    seconds: list[float] = []
    wanted = 1
    while len(seconds) < wanted:
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        if len(seconds) == 1:
            wanted = 1 if seconds[0] > SHORT else 3 if seconds[0] > 1 else 7
    return {
        "seconds": statistics.median(seconds),
        "runs": len(seconds),
        "before_mb": before,
        "peak_mb": megabytes("VmHWM", processes),
        "groups": len(result),  # type: ignore[arg-type]
    }


def example_values() -> list[float]:
    """Return the fixed column whose statistics are released again and again."""
    rng = random.Random(5)
    return [min(rng.expovariate(1 / 20), BOUNDS[1]) for _ in range(10_000)]


def truth(statistic: str) -> list[float]:
    """Return the true values of a statistic of that column."""
    values = example_values()
    if statistic in {"histogram", "ranges"}:
        bins = RANGE_BINS if statistic == "ranges" else len(EDGES) - 1
        found = Counter(place_of(value, bins) for value in values)
        return [float(found[place]) for place in range(bins)]
    total = sum(values)
    found = {
        "count": len(values),
        "sum": total,
        "mean": total / len(values),
        "rate": sum(map(above, values)) / len(values),
        "variance": statistics.pvariance(values),
        "variance, replaced": statistics.pvariance(values),
    }
    return [found[statistic]]


def place_of(value: float, bins: int) -> int:
    """Return the bin of a value, among so many of equal width."""
    return min(int(value * bins / BOUNDS[1]), bins - 1)


def range_edges(bins: int) -> list[float]:
    """Return the edges of bins of equal width."""
    return [BOUNDS[1] * k / bins for k in range(bins + 1)]


def range_sums(cells: Sequence[float], true: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Add up bins, as released and as they are, over some of all ranges of bins."""
    for _ in range(RANGES):
        first, last = sorted(random.sample(range(len(true) + 1), 2))
        yield math.fsum(cells[first:last]), math.fsum(true[first:last])


def of_bins(error: float) -> float:
    """Return the error of a range, the root mean square over all, of bins with independent noise.

    A range of B bins has (B + 2) / 3 of them on average.
    """
    return error * math.sqrt((RANGE_BINS + 2) / 3)


def over_ranges(covariance: Any, bias: Any = 0.0) -> float:
    """Return the error of a range, the root mean square over all, from what bins have."""
    import numpy as np

    covariance = covariance + bias * np.reshape(bias, (-1, 1))
    below = np.zeros((len(covariance) + 1,) * 2)
    below[1:, 1:] = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
    own = np.diagonal(below)
    first, last = np.triu_indices(len(own), 1)
    return math.sqrt(np.mean(own[first] + own[last] - 2 * below[first, last]))


def above(value: float) -> bool:
    """Say whether a value counts for the rate."""
    return value > HIGH


def laplace(scale: float) -> float:
    """Return the standard deviation of a Laplace law."""
    return math.sqrt(2) * scale


def cut_laplace(scale: float) -> float:
    """Return the root mean square of Laplace noise that is cut off to the whole number below.

    With j = floor(|x|), that number is j or -(j + 1), either with half of P(j).
    """
    ratio = math.exp(-1 / scale)
    least = math.ceil(800 * scale)  # what is left out is far below a float
    terms = (ratio**j * (1 - ratio) * (j**2 + (j + 1) ** 2) / 2 for j in range(least))
    return math.sqrt(math.fsum(terms))


def discrete_laplace(scale: float) -> float:
    """Return the standard deviation of the Laplace law of integers, p(k) ~ exp(-|k| / scale)."""
    ratio = math.exp(-1 / scale)
    return math.sqrt(2 * ratio) / (1 - ratio)


def of_quotient(
    of_sum: float, of_rows: float, middle: float = 0.0, statistic: str = "mean"
) -> float:
    """Return the error of a mean: of a sum of values, less a middle each, over a number of rows.

    Both have independent noise. The first order in 1 / rows is all that shows.
    """
    (mean,) = truth(statistic)
    return math.hypot(of_sum, (mean - middle) * of_rows) / len(example_values())


def of_variance(of_squares: float, of_sum: float, of_rows: float) -> float:
    """Return the error of a variance, from sums of squares and of values less their middle each.

    The three have independent noise; to the first order, as for means.
    """
    (mean,), (variance,) = truth("mean"), truth("variance")
    far = mean - MIDDLE
    parts = of_squares, 2 * far * of_sum, (far**2 - variance) * of_rows
    return math.hypot(*parts) / len(example_values())


def found_by(chance: Callable[[int], float]) -> dict[str, float]:
    """Return the smallest groups that are published half of the time and 19 times out of 20.

    Parameters
    ----------
    chance
        The probability with which a group of so many units is published; it rises with them.
    """
    sizes = {}
    size = 1
    for percent in (50, 95):
        while chance(size) < percent / 100:
            size += 1
        sizes[f"found_{percent}"] = size
    return {**sizes, "law": chance(sizes["found_50"])}


def spread(draws: Iterator[tuple[object, object]], samples: float) -> dict[str, object]:
    """Return the root mean square error of (released, true) pairs of numbers, and how many."""
    squares: list[float] = []
    for released, true in draws:
        squares.append((float(released) - float(true)) ** 2)  # type: ignore[arg-type]
        if len(squares) >= samples:
            break
    mean = statistics.fmean(squares)
    of_squares = statistics.stdev(squares) / len(squares) ** 0.5
    error = mean**0.5
    return {"drawn": error, "samples": len(squares), "relative": of_squares / mean / 2}


def main(run: Callable[[dict[str, object]], dict[str, object]]) -> None:
    """Read the arguments as JSON, and print the result as the last line."""
    try:
        found = run(json.loads(sys.argv[1]))
    except Exception as error:  # whatever it is, the table says it
        traceback.print_exc()
        line = next(iter(str(error).strip().splitlines()), "")
        found = {"failed": f"{type(error).__name__}: {line}"[:160]}
    print("\n" + json.dumps(found), flush=True)
