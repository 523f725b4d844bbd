"""Publish how many records were bought in each month, protecting every customer.

The table is CDNOW: 69,659 purchases of 23,570 customers, who bought once or 217 times. How many
purchases of one customer may count is not known beforehand: a tenth of the budget finds out.

Run it with `python examples/purchases.py --output purchases-release`, and `--data FILE` for a file
of your own in place of the one that the package `lifetimes` ships.
"""

import argparse
import importlib.util
from pathlib import Path

import matplotlib as mpl
import pandas as pd

import dpframe as dpf

mpl.use("Agg")

MONTHS = pd.period_range("1997-01", "1998-06", freq="M").astype(str).tolist()


def file_of_package() -> Path:
    """Find the table in the package that ships it, which need not be imported for it."""
    spec = importlib.util.find_spec("lifetimes")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs its data: pip install '.[examples]'")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "CDNOW_master.txt"


def read_purchases(file: Path) -> pd.DataFrame:
    """Read the table: one row per purchase."""
    table = pd.read_csv(file, sep=r"\s+", dtype={"date": str})
    month = pd.to_datetime(table["date"], format="%Y%m%d").dt.strftime("%Y-%m")
    return table.assign(month=month)


def main() -> None:
    """Declare, diagnose, suggest, release and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path, default=Path("purchases-release"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    purchases = read_purchases(options.data or file_of_package())
    purchases.dp.declare(
        keys={"month": MONTHS},
        privacy_unit="customer_id",
        max_rows=2,  # a guess, as good as any
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6)),  # an example is forgotten
    )
    query = dpf.count(by="month")

    print("What the guess does, for the curator's eyes alone:")
    print(purchases.dp.diagnose(query)[["rows", "share", "left"]].round(2).to_string())

    found = purchases.dp.suggest_caps(query=query, share=0.1)
    print("\nWhat may be published, of a tenth of the budget:")
    print(found.head(16).round(1).to_string())
    print(f"best: {found.dp.best}")
    found.dp.plot().figure.savefig(options.output / "caps.png", bbox_inches="tight")

    counts = purchases.dp.count(by="month", share=0.9, **found.dp.best)
    counts.dp.write_csv(options.output / "months.csv")
    dpf.verify(dpf.read_csv(options.output / "months.csv"))

    # a real script must not touch the truth: it is here because this table is public
    truth = purchases["month"].value_counts().reindex(counts.index)
    error = (counts["count"] - truth).abs().mean()
    guessed = dpf.release(declared(purchases, 2), query, epsilon=1)
    print("\nMean error of a month, of", round(truth.mean()), "purchases:")
    print(f"{error:.0f} with the suggested cap and nine tenths of the budget")
    print(f"{(guessed['count'] - truth).abs().mean():.0f} with the guess and all of it")
    print(f"\n{purchases.dp.budget}")


def declared(purchases: pd.DataFrame, cap: int) -> pd.DataFrame:
    """Copy the table, and declare it with a budget of its own, to compare with."""
    copy = purchases.copy()
    copy.attrs.clear()
    copy.dp.declare(
        keys={"month": MONTHS},
        privacy_unit="customer_id",
        max_rows=cap,
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6)),  # an example is forgotten
    )
    return copy


if __name__ == "__main__":
    main()
