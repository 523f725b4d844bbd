"""Time units of two columns beside a text column that is glued together of them by hand.

    python benchmarks/bench_unit_columns.py --rows 10000000

Both sides run in turn in one process; the least times of some rounds and their ratio are printed.
The bar is 1: two columns take no longer than the text alone, without the time it takes to glue it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe.context import SYSTEM
from dpframe.engines import Frame, engine_for
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term

KEYS = 100
WEEKS = 53
TERMS = (Term("rows"), Term("sum", "x", Grid.for_bounds(0.0, 50.0)))
CELLS = Cells((KeyAxis("k", pd.RangeIndex(KEYS)),))


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def names(codes: np.ndarray, dtype: str) -> pd.Series:
    """Name some codes by texts, such as N004711."""
    known = np.array([f"N{code:06d}" for code in range(codes.max() + 1)], dtype=object)
    return pd.Series(known[codes], dtype=dtype)


def kinds(rows: int) -> Mapping[str, Callable[[], tuple[pd.Series, pd.Series]]]:
    """Give the two columns of every kind."""
    rng = np.random.default_rng(1)

    def codes(count: int) -> np.ndarray:
        return rng.integers(0, count, rows)

    weeks = codes(WEEKS)
    return {
        "texts and weeks": lambda: (names(codes(4_000), "str"), pd.Series(weeks)),
        "objects and weeks": lambda: (names(codes(4_000), "object"), pd.Series(weeks)),
        "many texts and weeks": lambda: (names(codes(rows // 10), "str"), pd.Series(weeks)),
        "integers and weeks": lambda: (pd.Series(codes(rows // 10)), pd.Series(weeks)),
        "spread integers and days": lambda: (
            pd.Series(codes(rows // 10) * 7_919_000_000_007),
            pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(weeks, unit="D")),
        ),
        "many texts and many texts": lambda: (
            names(codes(rows // 10), "str"),
            names(codes(rows // 10), "str"),
        ),
    }


def glued(first: pd.Series, second: pd.Series) -> pd.Series:
    """Glue two columns together as a user would."""
    return first.astype("str") + " in week " + second.astype("str")


def compare(name: str, frame: Frame, glue: float, rounds: int) -> None:
    """Print times of both sides, and their ratio."""
    engine, caps = engine_for(frame), Caps(rows=5)
    both = Task(CELLS, TERMS, unit=("u", "v"), caps=caps)
    text = Task(CELLS, TERMS, unit=("glued",), caps=caps)
    sides = {"both": both, "text": text}
    least = dict.fromkeys(sides, np.inf)
    for _ in range(rounds):
        for side, task in sides.items():
            took = seconds(lambda task=task: engine.totals(frame, [task], SYSTEM))
            least[side] = min(least[side], took)
    ratio = least["both"] / least["text"]
    print(
        f"{name:34} two columns {least['both']:6.3f} s   text {least['text']:6.3f} s   "
        f"ratio {ratio:5.2f} (bar 1)   to glue {glue:6.3f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="kinds whose names begin so")
    options = parser.parse_args()
    rng = np.random.default_rng(2)
    rows = options.rows
    rest = {"k": rng.integers(0, KEYS, rows), "x": rng.normal(20, 30, rows)}
    for name, columns in kinds(rows).items():
        if not name.startswith(options.only):
            continue
        first, second = columns()
        start = time.perf_counter()
        frame = pd.DataFrame({**rest, "u": first, "v": second, "glued": glued(first, second)})
        glue = time.perf_counter() - start
        compare(name, frame, glue, options.rounds)
        if name.startswith("texts"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.parquet"
                frame.to_parquet(path)
                compare(f"{name}, in Parquet", dpf.scan_parquet(path), glue, options.rounds)


if __name__ == "__main__":
    main()
