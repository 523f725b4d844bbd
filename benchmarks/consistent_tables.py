"""Measure the errors of consistent tables of real data, by the number of attributes of a table.

Run with `python benchmarks/consistent_tables.py --data DIR`; `real_tables.py` says what is in
DIR. Without it, the tables are flights, which a package ships, and a made-up table. All tables of
at most two attributes are released with equal errors in all cells, at (1, 1e-6).
"""

import argparse
import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables import adult, flights, survey

from dpframe.denoising.consistent import Tables, consistent_tables, whole_tables
from dpframe.privacy.gaussian import gaussian_mu

MU = gaussian_mu(1.0, 1e-6)
ORDERS = ("total", "one-way", "two-way")


def coded(columns: pd.DataFrame) -> pd.DataFrame:
    """Number the values of each column, missing ones too."""
    return columns.apply(lambda column: pd.factorize(column, sort=True, use_na_sentinel=False)[0])


def people(data: Path) -> pd.DataFrame:
    """Read eleven attributes of UCI Adult."""
    table = adult(data)
    ages = [0, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 200]
    hours = [0, 10, 20, 30, 39, 40, 50, 60, 200]
    names = "workclass education marital_status occupation relationship race sex".split()
    return coded(
        table[[*names, "native_country", "income"]].assign(
            age=pd.cut(table["age"], ages, labels=False),
            hours=pd.cut(table["hours_per_week"], hours, labels=False),
        )
    )


def workers(data: Path) -> pd.DataFrame:
    """Read nine attributes of the French labor force survey."""
    names = "QUARTER DEGURBA SEX AGE NATIONAL ILOSTAT ISCO1D HATLEV1D NACE1D".split()
    return coded(survey(data)[names])


def departures() -> pd.DataFrame:
    """Read six attributes of flights from New York."""
    table = flights()
    late = pd.cut(table["dep_delay"], [-100, -5, 0, 15, 60, 180, 2000], labels=False)
    return coded(table[["month", "hour", "carrier", "origin", "dest"]].assign(late=late))


def made_up() -> pd.DataFrame:
    """Draw 20,000 rows of six skewed attributes, each of which depends on the one before."""
    rng = np.random.default_rng(1)
    columns = {"a": rng.geometric(0.3, 20_000).clip(1, 8) - 1}
    for name, size in zip("bcdef", (2, 3, 12, 20, 30), strict=True):
        before = next(reversed(columns.values()))
        columns[name] = (
            before * size // (before.max() + 1) + rng.geometric(0.4, 20_000) - 1
        ) % size
    return coded(pd.DataFrame(columns))


def tables(data: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Read all tables that there are."""
    if data is not None:
        yield "UCI Adult", people(data)
        yield "labor force survey", workers(data)
    yield "flights", departures()
    yield "made up", made_up()


def counted(rows: pd.DataFrame) -> Tables:
    """Count all tables of at most two attributes."""
    sizes = [int(rows[name].max()) + 1 for name in rows]
    codes = rows.to_numpy()
    made = {(): np.array(float(len(rows)))}
    for k in (1, 2):
        for axes in itertools.combinations(range(len(sizes)), k):
            shape = tuple(sizes[axis] for axis in axes)
            flat = np.ravel_multi_index(tuple(codes[:, axis] for axis in axes), shape)
            made[axes] = np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(float)
    return made


def released(truth: Tables, rng: np.random.Generator) -> Tables:
    """Add noise of contrasts, with equal variances in all cells: see `deviation`.

    The layer of attributes S is centered white noise of variance `V prod_S (1 + 1 / n_i)`. A table
    holds those of all its subsets, each divided by the sizes of the attributes that S has not.
    """
    spread = deviation(truth)
    layers = {}
    for axes, table in truth.items():
        noise = rng.standard_normal(table.shape)
        for axis, size in enumerate(table.shape):
            noise = (noise - noise.mean(axis, keepdims=True)) * math.sqrt(1 + 1 / size)
        layers[axes] = spread * noise if axes else np.rint(spread * noise)  # as the true total
    return {axes: table + _noise_in(axes, table.shape, layers) for axes, table in truth.items()}


def _noise_in(axes: tuple[int, ...], shape: tuple[int, ...], layers: Tables) -> np.ndarray:
    noise = np.zeros(shape)
    for k in range(len(axes) + 1):
        for places in itertools.combinations(range(len(axes)), k):
            others = [place for place in range(len(axes)) if place not in places]
            layer = np.expand_dims(layers[tuple(axes[place] for place in places)], others)
            noise += layer / math.prod(shape[place] for place in others)
    return noise


def deviation(truth: Tables) -> float:
    """Return the standard error of all cells: `V = sum_S prod_S (n_i - 1) / (n_i + 1) / mu^2`."""
    layers = (math.prod((n - 1) / (n + 1) for n in table.shape) for table in truth.values())
    return math.sqrt(math.fsum(layers)) / MU


def errors(made: Tables, truth: Tables) -> list[float]:
    """Return mean squared errors of cells, averaged over the tables of an order."""
    return [
        float(np.mean([np.square(made[a] - truth[a]).mean() for a in truth if len(a) == k]))
        for k in range(len(ORDERS))
    ]


def measure(truth: Tables, repeats: int) -> pd.DataFrame:
    """Return root mean squared errors by order of table, errors of totals and seconds."""
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(repeats):
        raw = released(truth, rng)
        clipped = {axes: np.maximum(table, 0) for axes, table in raw.items()}
        start = time.perf_counter()
        consistent = consistent_tables(raw, truth)
        between = time.perf_counter()
        rounded = whole_tables(consistent)
        spent = {"consistent": between - start, "whole": time.perf_counter() - between}
        for name, made in {
            "raw": raw,
            "clipped": clipped,
            "consistent": consistent,
            "whole": rounded,
        }.items():
            gap = np.mean([table.sum() - raw[()] for table in made.values()])
            rows.append([name, *errors(made, truth), gap, spent.get(name, 0.0)])
    found = pd.DataFrame(rows, columns=["tables", *ORDERS, "gap", "seconds"])
    means = found.groupby("tables", sort=False).mean()
    means[[*ORDERS]] **= 0.5
    return means


def main() -> None:
    """Print the errors of all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    asked = parser.parse_args()
    for name, rows in tables(asked.data):
        truth = counted(rows)
        cells = sum(table.size for table in truth.values())
        print(
            f"{name}: {len(rows)} rows, {rows.shape[1]} attributes, {len(truth)} tables, "
            f"{cells} cells, standard error {deviation(truth):.2f}"
        )
        print(measure(truth, asked.repeats).round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
