"""Errors of dpframe: all queries in one release, each of them about a column of its own."""

import math

from measuring import BOUNDS, EDGES, EPSILON, example_values, main, spread, truth

HIGH = 25  # a count is one of the rows where a column is above this


def query(statistic, column):
    import dpframe as dpf

    return {
        "count": lambda: dpf.count(where=f"{column} > {HIGH}"),
        "sum": lambda: dpf.sum(column),
        "mean": lambda: dpf.mean(column),
        "histogram": lambda: dpf.histogram(column, bins=EDGES),
    }[statistic]()


def draws(release, true):
    while True:
        for one in release().values():
            yield from zip(one.iloc[:, 0], true, strict=True)


def law_of(one):
    """Return the standard error that a certificate states; of a mean, at the true mean and rows."""
    (column,) = one.dp.certificate.columns
    if column.ratio is None:
        return column.std_error
    (mean,) = truth("mean")
    far = mean - sum(BOUNDS) / 2
    of_sum, of_rows = column.ratio.of_centered, column.ratio.of_rows
    noise = (of_sum.get(k, 0) - far * of_rows.get(k, 0) for k in {**of_sum, **of_rows})
    return math.hypot(*noise) / len(example_values())


def run(case):
    import pandas as pd

    import dpframe as dpf

    statistic, values = case["statistic"], example_values()
    true = truth(statistic)
    if statistic == "count":
        true = [sum(value > HIGH for value in values)]
    frame = pd.DataFrame({f"value_{k}": values for k in range(case["releases"])})
    frame.dp.declare(bounds=dict.fromkeys(frame, BOUNDS), privacy_unit=dpf.EACH_ROW)
    queries = {column: query(statistic, column) for column in frame}

    def release():
        return frame.dp.release(queries, epsilon=EPSILON, delta=case["delta"])

    one = release()["value_0"]
    found = spread(draws(release, true), case["samples"])
    return {**found, "error": law_of(one), "mechanism": one.dp.certificate.mechanism.name}


if __name__ == "__main__":
    main(run)
