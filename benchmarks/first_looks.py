"""Print how much larger errors are after a first look: 12 settings, at five budgets.

Run with `python benchmarks/first_looks.py`. A ratio of 1.05 says that the standard error is
5 % larger than that of the same share without a look.
"""

import pandas as pd
from peers.looks_dpframe import run

BUDGETS = ((1, 1e-6), (1, 1e-9), (0.5, 1e-5), (3, 1e-6), (8, 1e-6))


def main() -> None:
    """Print a row for each setting."""
    found = {
        f"({epsilon:g}, {delta:g})": run({"epsilon": epsilon, "delta": delta})["ratios"]
        for epsilon, delta in BUDGETS
    }
    print(pd.DataFrame(found).to_string(float_format="%.2f"))


if __name__ == "__main__":
    main()
