"""Time one release of many queries, beside another checkout in turn.

    python benchmarks/bench_many_tables.py --before ANOTHER_CHECKOUT

Each turn is a process of its own. Medians of CPU seconds, and the slope from the smaller to the
larger number of queries.
"""

import argparse
import math
import statistics
import subprocess
import sys
from pathlib import Path

TURNS = 3
ROWS = 500
SIZES = {"histogram": (250, 1_000), "mean": (500, 2_000)}
CALL = """
import sys, time
import numpy as np, pandas as pd, dpframe as dpf

def released(kind, size):
    values = np.random.default_rng(0).uniform(0, 100, ({rows}, size))
    frame = pd.DataFrame(values, columns=[f"c{{at}}" for at in range(size)])
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    asked = {{
        "histogram": lambda name: dpf.histogram(name, bins=range(0, 101, 10)),
        "mean": lambda name: dpf.mean(name, bounds=(0, 100)),
    }}
    queries = {{name: asked[kind](name) for name in frame.columns}}
    start = time.process_time()
    dpf.release(frame, queries, epsilon=1)
    return time.process_time() - start

kind, size = sys.argv[1], int(sys.argv[2])
released(kind, 10)
print(released(kind, size))
"""


def seconds(checkout: Path, kind: str, size: int) -> float:
    """The CPU time of a release by a checkout."""
    call = [sys.executable, "-c", CALL.format(rows=ROWS), kind, str(size)]
    done = subprocess.run(call, cwd=checkout, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print times of all checkouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    before = parser.parse_args().before
    here = Path(__file__).resolve().parents[1]
    checkouts = {"now": here} if before is None else {"before": before, "now": here}
    for kind, sizes in SIZES.items():
        for name, checkout in checkouts.items():
            turns = [[seconds(checkout, kind, size) for size in sizes] for _ in range(TURNS)]
            small, large = (statistics.median(times) for times in zip(*turns, strict=True))
            slope = math.log(large / small) / math.log(sizes[1] / sizes[0])
            print(f"{sizes[1]:,} of {kind:10}{name:8}{large:7.2f} s, slope {slope:.2f}")


if __name__ == "__main__":
    main()
