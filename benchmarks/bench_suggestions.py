"""Compare suggested caps or bounds, the cost of asking included, with the best fixed ones.

Run with `python benchmarks/bench_suggestions.py --data DIR`, or with `--tables unseen` on
tables that packages ship; `suggestion_tables.py` says which. Compared are counts by group with the
best of all fixed caps and the whole epsilon, which nobody knows who has not seen the data; and with
a suggested cap, a part of the same epsilon spent on asking. With `--bounds`, the same for bounds of
sums and means of rows, each of which is a unit.

Errors are mean absolute errors of a group: suggestions are released, and what a cap or bounds then
do to each group is computed from the data, with the noise that `plan` says.
"""

import argparse
import statistics
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from suggestion_tables import SEEN, TABLES, UNSEEN, is_there, table_of  # a script, no package

import dpframe as dpf
from dpframe.steps.suggest_caps import best_suggestion, expected_error, mean_error

DELTA = 1e-6
ENDS = [0.0, *(sign * 2.0**k for k in range(-3, 14) for sign in (-1, 1))]


class Compared:
    """A table, and what is released of it: a count, a sum or a mean by group."""

    def __init__(self, name: str, data: Path | None, query: str) -> None:
        self.query = query
        self.table = table_of(name, data)
        if query != "count":
            self.table = self.table.dropna(subset=["value"]).reset_index(drop=True)
        self.groups, keys = pd.factorize(self.table["group"], sort=True)
        unit = {"privacy_unit": "unit", "max_rows": 1}
        unit = unit if query == "count" else {"privacy_unit": dpf.EACH_ROW}
        self.table.dp.declare(keys={"group": keys.tolist()}, **unit)
        self.of_unit = self.table.groupby("unit")["unit"].transform("size").to_numpy()
        self.rows = self._added_up(np.ones(len(self.table)))
        self.error = cache(self._error)

    @property
    def candidates(self) -> list[object]:
        """All fixed caps or bounds that may be best."""
        if self.query == "count":
            shown = self.table.dp.plan(dpf.suggest_caps("group", largest=2**12), epsilon=1).table
            return shown.index.tolist()
        return [(low, high) for low in ENDS for high in ENDS if low < high]

    def suggested(self, epsilon: float, part: float) -> object:
        """Suggest a cap or bounds."""
        spend = {
            "epsilon": part * epsilon,
            "planned": {"epsilon": (1 - part) * epsilon, "delta": DELTA},
        }
        if self.query == "count":
            found = self.table.dp.suggest_caps("group", **spend)
            return best_suggestion(found)[-1].best["max_rows"]
        found = self.table.dp.suggest_bounds("value", "group", query=self.query, **spend)
        return best_suggestion(found)[-1].best["bounds"]

    def _error(self, chosen: object, epsilon: float) -> float:
        """Return the mean absolute error of a group with a cap or bounds."""
        if self.query == "count":
            asked = dpf.count("group", max_rows=chosen)
            lost = self._added_up(np.maximum(1 - chosen / self.of_unit, 0))
        else:
            asked = getattr(dpf, self.query)("value", "group", bounds=chosen)
            values = self.table["value"].to_numpy()
            lost = np.abs(self._added_up(values - np.clip(values, *chosen)))
        shown = self.table.dp.plan(asked, epsilon=epsilon, delta=DELTA).table
        noise = np.full(len(lost), mean_error(shown["std_error"].iloc[0]))
        per = self.rows if self.query == "mean" else 1
        return float(expected_error(lost / per, noise / per).mean())

    def _added_up(self, amounts: np.ndarray) -> np.ndarray:
        return np.bincount(self.groups, amounts)


def compare(one: Compared, epsilon: float, parts: list[float], times: int) -> dict[str, object]:
    """Compare suggestions for one table with the best fixed cap or bounds."""
    best = min(one.candidates, key=lambda chosen: one.error(chosen, epsilon))
    least = one.error(best, epsilon)
    row = {
        "rows": len(one.table),
        "units": one.table["unit"].nunique(),
        "groups": len(one.rows),
        "best": best,
        "its error": least,
    }
    for part in parts:
        suggested = [one.suggested(epsilon, part) for _ in range(times)]
        errors = [one.error(chosen, (1 - part) * epsilon) for chosen in suggested]
        row[f"ratio, {part:.0%}"] = statistics.mean(errors) / least
    return row


def main() -> None:
    """Compare on all tables; print a table, and the median and the worst of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", default="data", choices=["data", "seen", "unseen"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--parts", type=float, nargs="+", default=[0.1, 0.05])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--bounds", action="store_true", help="compare bounds in place of caps")
    options = parser.parse_args()
    names = {"data": list(TABLES), "seen": SEEN, "unseen": UNSEEN}[options.tables]
    warnings.simplefilter("ignore", dpf.errors.DPFrameWarning)
    for query in ["sum", "mean"] if options.bounds else ["count"]:
        rows = {}
        for name in filter(lambda name: is_there(name, options.data), names):
            one = Compared(name, options.data, query)
            rows[name] = compare(one, options.epsilon, options.parts, options.times)
            print(query, name, rows[name], flush=True)
        found = pd.DataFrame.from_dict(rows, orient="index")
        ratios = found.filter(like="ratio")
        print(found.to_string(float_format="{:.2f}".format))
        print(pd.DataFrame({"median": ratios.median(), "worst": ratios.max()}).to_string())


if __name__ == "__main__":
    main()
