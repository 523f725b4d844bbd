"""Write the real columns that margins and quantiles are compared on, as arrays of NumPy.

DATA holds `tabular/` (UCI Adult, CDNOW) and `trips/` (taxi rides); no library gets anything else.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

AGES = [0, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 200]
HOURS = [0, 10, 20, 30, 39, 40, 50, 60, 200]
ATTRIBUTES = (
    "age workclass education marital_status occupation relationship race sex hours "
    "native_country income"
).split()
SAMPLE = 10_000
LATITUDE = 40.75
KILOMETERS = 111.2  # of a degree


def adult(data: Path) -> pd.DataFrame:
    """Read UCI Adult, with ages and hours of work cut into ranges."""
    table = pd.read_csv(data / "tabular" / "uci_adult_48842.csv.gz")
    table["age"] = pd.cut(table["age"], AGES, labels=False)
    table["hours"] = pd.cut(table["hours_per_week"], HOURS, labels=False)
    return table


def codes(table: pd.DataFrame) -> np.ndarray:
    """Number the values of each attribute from zero; a missing value is one of them."""
    found = [pd.factorize(table[a], sort=True, use_na_sentinel=False)[0] for a in ATTRIBUTES]
    return np.column_stack(found).astype(np.uint8)


def columns(data: Path) -> dict[str, pd.Series]:
    """Read the three columns of quantiles."""
    rides = pd.read_csv(data / "trips" / "yellow_2013-01-01_0000-0145_manhattan.csv.gz")
    return {
        "weight": adult(data)["fnlwgt"],
        "amount": pd.read_csv(data / "tabular" / "cdnow_master.csv.gz")["amount"],
        "distance": kilometers(rides),
    }


def kilometers(rides: pd.DataFrame) -> pd.Series:
    """Measure rides from end to end, in the plane."""
    north = rides["dropoff_lat"] - rides["pickup_lat"]
    east = (rides["dropoff_lon"] - rides["pickup_lon"]) * np.cos(np.radians(LATITUDE))
    return KILOMETERS * np.hypot(north, east)


def main(data: Path, folder: Path) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "adult.npy", codes(adult(data)))
    for name, column in columns(data).items():
        sample = column.dropna().sample(SAMPLE, random_state=5)
        np.save(folder / f"{name}.npy", sample.to_numpy(np.float64))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
