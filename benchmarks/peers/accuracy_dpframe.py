"""Errors of dpframe: all queries in one release, each of them about a column of its own."""

import math

from measuring import (
    BOUNDS,
    EDGES,
    EPSILON,
    HIGH,
    RANGE_BINS,
    example_values,
    main,
    range_sums,
    spread,
    truth,
)


def query(statistic, column):
    import dpframe as dpf

    return {
        "count": lambda: dpf.count(where=f"{column} > {HIGH}"),
        "sum": lambda: dpf.sum(column),
        "mean": lambda: dpf.mean(column),
        "histogram": lambda: dpf.histogram(column, bins=EDGES),
        "ranges": lambda: dpf.ranges(column, RANGE_BINS),
        "rate": lambda: dpf.rate(f"{column} > {HIGH}"),
        "variance": lambda: dpf.var(column),
        "variance, replaced": lambda: dpf.var(column),
    }[statistic]()


def draws(release, true, statistic):
    while True:
        for one in release().values():
            cells = one.iloc[:, 0].tolist()
            ranges = statistic == "ranges"
            yield from range_sums(cells, true) if ranges else zip(cells, true, strict=True)


def law_of(one, statistic):
    """Return the standard error that a certificate states; of quotients, at the true values."""
    if statistic == "ranges":
        return of_ranges(one.dp.certificate)
    (column,) = one.dp.certificate.columns
    if column.kind == "var":
        return of_moments(column)
    if column.kind in ("count", "sum"):
        return column.std_error
    (mean,) = truth(statistic)
    middle, half = column.statistic.column.center, column.statistic.unit
    noise = column.totals.noise({"y": half, "rows": middle - mean}).values()
    return math.hypot(*noise) / len(example_values())


def of_ranges(certificate):
    """Return the root mean square error over all ranges of bins, with the noise of a tree."""
    import numpy as np

    (block,) = certificate.columns[0].deviations
    known = certificate.mechanism.by_block[block]
    edges = np.arange(RANGE_BINS + 1)
    first, last = np.triu_indices(len(edges), 1)
    own = known.edge_covariances(edges, edges)
    both = known.edge_covariances(first, last)
    return math.sqrt(np.mean(own[first] + own[last] - 2 * both))


def of_moments(column):
    """Return the error of a variance, from sums of y and of y^2 - 1 / 2 in half widths."""
    (mean,), (variance,) = truth("mean"), truth("variance")
    (bounds,) = column.statistic.columns
    y, v = (mean - bounds.center) / bounds.half, variance / bounds.half**2
    noise = column.totals.noise({"squares": 1, "y": -2 * y, "rows": y**2 - v + 0.5}).values()
    return bounds.half**2 * math.hypot(*noise) / len(example_values())


def run(case):
    import pandas as pd

    import dpframe as dpf

    statistic, values = case["statistic"], example_values()
    true = truth(statistic)
    if statistic == "count":
        true = [sum(value > HIGH for value in values)]
    frame = pd.DataFrame({f"value_{k}": values for k in range(case["releases"])})
    relation = "replace" if statistic.endswith("replaced") else "add_remove"
    bounds = dict.fromkeys(frame, BOUNDS)
    frame.dp.declare(bounds=bounds, privacy_unit=dpf.EACH_ROW, neighboring=relation)
    queries = {column: query(statistic, column) for column in frame}

    def release():
        return frame.dp.release(queries, epsilon=EPSILON, delta=case["delta"])

    one = release()["value_0"]
    found = spread(draws(release, true, statistic), case["samples"])
    return {
        **found,
        "error": law_of(one, statistic),
        "mechanism": one.dp.certificate.mechanism.name,
    }


if __name__ == "__main__":
    main(run)
