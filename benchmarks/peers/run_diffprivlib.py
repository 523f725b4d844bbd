"""diffprivlib: a count and a sum of each group, one group after another, and no caps."""

import warnings
from itertools import pairwise

from measuring import BOUNDS, EPSILON, MAX_GROUPS, MAX_ROWS_PER_GROUP, main, measured


def release(key, value, keys, epsilon):
    import numpy as np
    from diffprivlib import tools

    counts, _ = tools.histogram(key, epsilon=epsilon, bins=keys, range=(-0.5, keys - 0.5))
    order = np.argsort(key, kind="stable")
    ends = np.searchsorted(key[order], np.arange(keys + 1))
    ordered = value[order]
    sums = [
        tools.sum(ordered[start:stop], epsilon=epsilon, bounds=BOUNDS)
        for start, stop in pairwise(ends)
    ]
    return list(zip(counts, sums, strict=True))


def run(case):
    import pyarrow.dataset as ds

    table = ds.dataset(case["folder"], format="parquet").to_table(["key", "value"])
    key, value = (column.to_numpy() for column in table.columns)
    rows_of_unit = MAX_GROUPS * MAX_ROWS_PER_GROUP if case["task"] == "unit" else 1
    epsilon = EPSILON / 2 / rows_of_unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(lambda: release(key, value, case["keys"], epsilon))


if __name__ == "__main__":
    main(run)
