"""Print how many labels are found with their numbers of units, and without, at (1, 1e-6).

Run with `python benchmarks/found_sets.py`. A unit has m labels, m from 1 to 84 with a
probability proportional to 1/m; each is drawn from 2,000 labels, label l with a probability
proportional to `1 / l^1.5`, and labels that are drawn twice count once.
"""

import numpy as np
import pandas as pd

import dpframe as dpf

UNITS, LABELS, MOST, POWER = 12_000, 2_000, 84, 1.5
SPEND = {"epsilon": 1, "delta": 1e-6, "dtype": "int64"}
RUNS = 10


def drawn(seed: int) -> pd.DataFrame:
    """Draw units with their labels, a row for each."""
    rng = np.random.default_rng(seed)
    m = np.arange(1, MOST + 1)
    sizes = rng.choice(m, UNITS, p=1 / m / (1 / m).sum())
    law = np.arange(1, LABELS + 1) ** -POWER
    labels = rng.choice(LABELS, sizes.sum(), p=law / law.sum())
    rows = pd.DataFrame({"unit": np.repeat(np.arange(UNITS), sizes), "label": labels})
    return rows.drop_duplicates()


def main() -> None:
    """Print the mean number of labels that are found, by cap on the labels of a unit."""
    found: dict[tuple[str, int], list[int]] = {}
    for seed in range(RUNS):
        frame = drawn(seed)
        frame.dp.declare(privacy_unit="unit", max_groups=MOST, max_rows=MOST)
        for most in (1, 3, 10, 30, 84):
            for name, counts in (("with counts", True), ("labels alone", False)):
                released = frame.dp.discover("label", counts=counts, max_groups=most, **SPEND)
                found.setdefault((name, most), []).append(len(released))
    table = pd.Series({key: np.mean(numbers) for key, numbers in found.items()}).unstack()
    print(table.round(0).astype(int).to_string(), f"{RUNS} runs", dpf.__name__)


if __name__ == "__main__":
    main()
