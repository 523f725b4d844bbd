"""Compare suggested caps or bounds, the cost of asking included, with the best fixed ones.

Run with `python tests/benchmarks/bench_suggestions.py --data DIR`; `suggestion_tables.py` says
what DIR holds. Counts by group are released with the best of all fixed caps and the whole epsilon;
nobody knows that cap who has not seen the data. They are released with a suggested cap, too, a part
of the same epsilon spent on asking. Errors are mean absolute errors of a group, of releases. With
`--bounds`, the same for bounds of sums and means of rows, each of which is a unit.
"""

import argparse
import statistics
import warnings
from pathlib import Path

import pandas as pd
from suggestion_tables import TABLES, table_of  # a script, no package

import dpframe as dpf

DELTA = 1e-6
LARGEST = 2**11


class Measured:
    """A table with its true counts."""

    def __init__(self, name: str, data: Path) -> None:
        self.table = table_of(name, data)
        keys = sorted(self.table["group"].unique())
        self.truth = self.table["group"].value_counts().reindex(keys)
        self.most = int(self.table["unit"].value_counts().max())
        self.table.dp.declare(keys={"group": keys}, privacy_unit="unit", max_rows=1)

    def error(self, epsilon: float, times: int, **caps: int) -> float:
        """Return the mean absolute error of releases with a cap."""
        spend = {"epsilon": epsilon, "delta": DELTA}
        errors = [
            (self.table.dp.count("group", **caps, **spend)["count"] - self.truth).abs().mean()
            for _ in range(times)
        ]
        return statistics.mean(errors)

    def fixed(self, epsilon: float, times: int) -> tuple[int, float]:
        """Return the best fixed cap, and its error: chosen by some releases, measured by others."""
        shown = self.table.dp.preview_suggest_caps("group", epsilon=epsilon, largest=LARGEST)
        caps = [cap for cap in shown.index.tolist() if cap < 2 * self.most]
        errors = {cap: self.error(epsilon, times, max_rows=cap) for cap in caps}
        best = min(errors, key=lambda cap: errors[cap])
        return best, self.error(epsilon, 4 * times, max_rows=best)

    def suggested(self, epsilon: float, part: float, times: int) -> tuple[float, float]:
        """Return the median of suggested caps, and the mean error of releases with them."""
        later = {"epsilon": (1 - part) * epsilon, "delta": DELTA}
        caps, errors = [], []
        for _ in range(times):
            found = self.table.dp.suggest_caps("group", epsilon=part * epsilon, planned=later)
            caps.append(found.dp.best["max_rows"])
            errors.append(self.error(later["epsilon"], 2, **found.dp.best))
        return statistics.median(caps), statistics.mean(errors)


class MeasuredBounds:
    """A table of which every row is a unit, with its true sums and means."""

    def __init__(self, name: str, data: Path, query: str) -> None:
        self.table = table_of(name, data).dropna(subset=["value"])
        keys = sorted(self.table["group"].unique())
        values = self.table.groupby("group")["value"]
        self.truth = values.agg(query).reindex(keys)
        self.query = query
        self.table.dp.declare(keys={"group": keys}, privacy_unit=dpf.EACH_ROW)

    def error(self, epsilon: float, times: int, bounds: tuple[float, float]) -> float:
        """Return the mean absolute error of releases with some bounds."""
        make = getattr(self.table.dp, self.query)
        spend = {"epsilon": epsilon, "delta": DELTA}
        errors = [
            (make("value", "group", bounds=bounds, **spend)["value"] - self.truth).abs().mean()
            for _ in range(times)
        ]
        return statistics.mean(errors)

    def fixed(self, epsilon: float, times: int) -> tuple[tuple[float, float], float]:
        """Return the best pair of powers of two, and its error."""
        ends = [-16.0, 0.0, *(2.0**k for k in range(12))]
        pairs = [(low, high) for low in ends for high in ends if low < high]
        errors = {pair: self.error(epsilon, times, pair) for pair in pairs}
        best = min(errors, key=lambda pair: errors[pair])
        return best, self.error(epsilon, 30 * times, best)

    def suggested(self, epsilon: float, part: float, times: int) -> tuple[object, float]:
        """Return the last of suggested bounds, and the mean error of releases with them."""
        later = {"epsilon": (1 - part) * epsilon, "delta": DELTA}
        asked = {"query": self.query, "epsilon": part * epsilon, "planned": later}
        errors = []
        for _ in range(times):
            bounds = self.table.dp.suggest_bounds("value", "group", **asked).dp.best["bounds"]
            errors.append(self.error(later["epsilon"], 5, bounds))
        return bounds, statistics.mean(errors)


def measure_bounds(data: Path, epsilon: float, parts: list[float], times: int) -> pd.DataFrame:
    """Measure sums and means of all tables: one row each."""
    rows = {}
    for query, name in ((query, name) for query in ("sum", "mean") for name in TABLES):
        one = MeasuredBounds(name, data, query)
        best, least = one.fixed(epsilon, 2)
        row: dict[str, object] = {"best bounds": best, "its error": least}
        for part in parts:
            bounds, error = one.suggested(epsilon, part, times)
            row |= {f"bounds, {part:.0%}": bounds, f"ratio, {part:.0%}": error / least}
        rows[query, name] = row
        print(query, name, row, flush=True)
    return pd.DataFrame.from_dict(rows, orient="index")


def measure(data: Path, epsilon: float, parts: list[float], times: int) -> pd.DataFrame:
    """Measure all tables: one row each."""
    rows = {}
    for name in TABLES:
        one = Measured(name, data)
        best, least = one.fixed(epsilon, times)
        row = {
            "rows": len(one.table),
            "units": one.table["unit"].nunique(),
            "groups": len(one.truth),
            "best cap": best,
            "its error": least,
        }
        for part in parts:
            cap, error = one.suggested(epsilon, part, 2 * times)
            row |= {f"cap, {part:.0%}": cap, f"ratio, {part:.0%}": error / least}
        rows[name] = row
        print(pd.DataFrame({name: row}).round(2).T.to_string(), flush=True)
    return pd.DataFrame.from_dict(rows, orient="index")


def main() -> None:
    """Measure, and print a table, with the median and the worst of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--parts", type=float, nargs="+", default=[0.1, 0.05])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--bounds", action="store_true", help="measure bounds in place of caps")
    options = parser.parse_args()
    warnings.simplefilter("ignore", dpf.errors.DPFrameWarning)
    run = measure_bounds if options.bounds else measure
    found = run(options.data, options.epsilon, options.parts, options.times)
    ratios = found.filter(like="ratio").astype(float)
    print(found.to_string(float_format="{:.2f}".format))
    print(
        pd.DataFrame({"median": ratios.astype(float).median(), "worst": ratios.astype(float).max()})
        .round(3)
        .to_string()
    )


if __name__ == "__main__":
    main()
