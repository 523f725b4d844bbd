"""A city as a graph of junctions with numbers of rides: Manhattan, from files, or a synthetic one.

The files are those of a folder with `graph/nodes.csv` (id, lon, lat), `graph/edges.csv` (u, v) and
`trips/junction_counts.csv.gz` (id and one column of counts for each hour); `rides` also reads
`trips/yellow_2013-01-01_0000-0145_manhattan.csv.gz` (driver_id, pickup_time, pickup_lon,
pickup_lat). The yellow-cab rides are those of a New Year's night, which stand in for the 24
September 2014 of Balle and Wang (2018). The other hours are of Uber rides of 2014, many fewer.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

HOURS = {
    "yellow cabs, 00:00-01:00": "yellow_2013_01_01_0000_0100_both",
    "yellow cabs, 00:45-01:45": "yellow_2013_01_01_0045_0145_both",
    "Uber, 12:00-13:00": "uber_2014_04_30_12h",
}
_METERS = np.array([84_300.0, 111_000.0])  # of a degree of longitude and of latitude, at 40.75 N
_NEAR = 150.0


@dataclass(frozen=True)
class City:
    """Junctions with coordinates, roads between them, and counts per junction under some names."""

    nodes: pd.DataFrame
    roads: pd.DataFrame
    counts: dict[str, pd.Series]


def city(data: Path | None) -> City:
    """Return Manhattan from a folder of files, or a synthetic city without one."""
    return synthetic_city() if data is None else manhattan(data)


def manhattan(data: Path) -> City:
    """Read junctions, roads and counts."""
    nodes = pd.read_csv(data / "graph" / "nodes.csv", index_col="id")[["lon", "lat"]]
    roads = pd.read_csv(data / "graph" / "edges.csv")[["u", "v"]]
    table = pd.read_csv(data / "trips" / "junction_counts.csv.gz", index_col="id").loc[nodes.index]
    return City(nodes, roads, {name: table[column] for name, column in HOURS.items()})


def synthetic_city(side: int = 63, seed: int = 7) -> City:
    """Make a grid of streets with holes and dead ends, and three kinds of traffic on it."""
    rng = np.random.default_rng(seed)
    spot = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.column_stack([spot[:, :-1].ravel(), spot[:, 1:].ravel()]),
            np.column_stack([spot[:-1].ravel(), spot[1:].ravel()]),
        ]
    )
    pairs = pairs[rng.random(len(pairs)) < 0.94]
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(side * side, side * side))
    part = connected_components(graph, directed=False)[1]
    kept = part == np.bincount(part).argmax()
    place = np.cumsum(kept) - 1
    pairs = place[pairs[kept[pairs].all(axis=1)]]
    row, column = np.divmod(np.flatnonzero(kept), side)
    nodes = pd.DataFrame({"lon": column / side, "lat": row / side})
    traffic = {
        "blocks": _blocks(nodes),
        "smooth hills": _hills(nodes),
        "rough and heavy-tailed": _rough(nodes, rng),
    }
    counts = {name: pd.Series(rng.poisson(mean)) for name, mean in traffic.items()}
    return City(nodes.rename_axis("id"), pd.DataFrame(pairs, columns=["u", "v"]), counts)


def _blocks(nodes: pd.DataFrame) -> np.ndarray:
    x, y = nodes["lon"], nodes["lat"]
    dense = (x > 0.6) & (y > 0.55)
    small = (abs(x - 0.5) < 0.12) & (abs(y - 0.3) < 0.12)
    return np.select([small, dense, (x < 0.35) & (y < 0.5)], [250.0, 120.0, 30.0], 4.0)


def _hills(nodes: pd.DataFrame) -> np.ndarray:
    hills = [(200, 0.3, 0.6, 0.02), (120, 0.7, 0.3, 0.05), (60, 0.6, 0.8, 0.01)]
    x, y = nodes["lon"].to_numpy(), nodes["lat"].to_numpy()
    return 2 + sum(h * np.exp(-((x - a) ** 2 + (y - b) ** 2) / w) for h, a, b, w in hills)


def _rough(nodes: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Make a log-normal field: waves that neighbors share, and much that they do not."""
    waves = rng.normal(size=(2, 60)) * 6
    phases = rng.uniform(0, 2 * np.pi, 60)
    field = np.cos(nodes.to_numpy() @ waves + phases).sum(axis=1) * np.sqrt(2 / 60)
    return np.exp(1.2 + 1.3 * field + 1.2 * rng.normal(size=len(nodes)))


def rides(data: Path | None, town: City) -> pd.DataFrame:
    """Return one row for each ride: driver, junction of the pick-up, hour of the pick-up.

    A pick-up belongs to the nearest junction, if there is one within 150 m; this looks at no other
    ride. Without files, rides are made up: as many as the heavy-tailed counts say.
    """
    if data is None:
        return _made_up_rides(town)
    path = data / "trips" / "yellow_2013-01-01_0000-0145_manhattan.csv.gz"
    table = pd.read_csv(path, parse_dates=["pickup_time"])
    where = table[["pickup_lon", "pickup_lat"]].to_numpy() * _METERS
    distance, nearest = cKDTree(town.nodes.to_numpy() * _METERS).query(where)
    junction = pd.Series(town.nodes.index[nearest], dtype="Int64").where(distance <= _NEAR)
    return pd.DataFrame(
        {
            "driver": table["driver_id"],
            "junction": junction,
            "minute": table["pickup_time"].dt.hour * 60 + table["pickup_time"].dt.minute,
        }
    )


def _made_up_rides(town: City, seed: int = 11) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    counts = town.counts["rough and heavy-tailed"]
    junction = rng.permutation(np.repeat(counts.index.to_numpy(), counts))
    n = len(junction)
    driver = rng.integers(0, n // 3, n)
    return pd.DataFrame({"driver": driver, "junction": junction, "minute": rng.integers(0, 105, n)})
