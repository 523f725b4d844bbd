"""Margins: errors beside those of separate tables, and the time and memory of a large release.

Run it with `python benchmarks/margins.py`. Errors are root mean squares per cell, the mean
over tables, for mu = 1: as planned, and as found in releases of made-up rows.
"""

import itertools
import math
import resource
import time

import numpy as np
import pandas as pd

import dpframe as dpf

ADULT = (11, 9, 16, 7, 15, 6, 5, 2, 8, 42, 2)
LARGE = (5, 9, 16, 7, 15, 6, 5, 2, 10, 42, 2, 3, 4, 100, 12)
PLANS = {
    "eleven columns of Adult, up to two-way": (ADULT, 2),
    "eleven columns of Adult, up to three-way": (ADULT, 3),
    "ten columns of two groups, up to two-way": ((2,) * 10, 2),
    "seven columns of 2 to 100 groups, up to two-way": ((2, 3, 5, 10, 20, 50, 100), 2),
}
ROWS = 50_000


def made(sizes, rows=ROWS):
    """Declared rows with skewed and dependent columns of these numbers of groups."""
    rng = np.random.default_rng(1)
    common = rng.random(rows)
    columns = {
        f"c{k}": ((0.5 * common + 0.5 * rng.random(rows) ** 2) * n).astype(np.int64)
        for k, n in enumerate(sizes)
    }
    frame = pd.DataFrame(columns)
    keys = {f"c{k}": range(n) for k, n in enumerate(sizes)}
    frame.dp.declare(keys=keys, privacy_unit=dpf.EACH_ROW)
    return frame


def released_error(frame, tables):
    """Root mean square error of released counts, the mean over tables."""
    errors = []
    for columns, released in tables.items():
        exact = np.array([len(frame)])
        if columns:
            counted = frame.groupby(list(columns)).size()
            exact = counted.reindex(released.index, fill_value=0).to_numpy()
        errors.append(((released["count"].to_numpy() - exact) ** 2).mean())
    return math.sqrt(np.mean(errors))


def compare(title, sizes, ways):
    """Print errors of one plan: one by one, planned and found."""
    frame = made(sizes, 5_000)
    query = dpf.margins(list(frame.columns), ways)
    number = len(query.tables)
    # so much noise that rounding does not show
    planned = frame.dp.plan(query, mu=0.01, mechanism="gaussian").table["std_error"]
    tables = frame.dp.release(query, mu=0.01, mechanism="gaussian")
    print(
        f"{title}: {number} tables, one by one {math.sqrt(number):.2f}, planned "
        f"{0.01 * math.sqrt((planned**2).mean()):.3f}, found "
        f"{0.01 * released_error(frame, tables):.3f}"
    )


def large():
    """Print the time and memory of a release of all tables up to three-way of 15 columns."""
    frame = made(LARGE)
    query = dpf.margins(list(frame.columns), 3)
    cells = sum(math.prod(one) for k in range(4) for one in itertools.combinations(LARGE, k))
    began = time.perf_counter()
    frame.dp.plan(query, epsilon=1, delta=1e-6, mechanism="gaussian")
    planned = time.perf_counter()
    tables = frame.dp.release(query, epsilon=1, delta=1e-6)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(tables)} tables of {cells:,} cells, {ROWS:,} rows: plan {planned - began:.2f} s, "
        f"release {done - planned:.2f} s, largest memory of the process {peak:.2f} GiB"
    )


if __name__ == "__main__":
    for name, (sizes, ways) in PLANS.items():
        compare(name, sizes, ways)
    large()
