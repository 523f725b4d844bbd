"""Time, memory and errors; run inside each library's environment, so standard library alone."""

import json
import math
import os
import random
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

BOUNDS = (0.0, 50.0)
EPSILON, DELTA = 1.0, 1e-6  # of the timings
MAX_GROUPS, MAX_ROWS_PER_GROUP = 5, 2
EDGES = tuple(5.0 * number for number in range(11))  # of the histogram
HIGH = 25.0  # a rate is the share of values above
MIDDLE = sum(BOUNDS) / 2
SHORT = 60.0  # a run that takes longer is not repeated


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
    """Run a call three times, more often if it is short and once if it is long."""
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
    if statistic == "histogram":
        places = [min(int(value // 5), 9) for value in values]
        return [float(places.count(place)) for place in range(10)]
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


def above(value: float) -> bool:
    """Say whether a value counts for the rate."""
    return value > HIGH


def laplace(scale: float) -> float:
    """Return the standard deviation of a Laplace law."""
    return math.sqrt(2) * scale


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


def spread(draws: Iterator[tuple[object, object]], samples: int) -> dict[str, object]:
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
