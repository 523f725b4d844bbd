"""Errors of SmartNoise SQL: Laplace noise, as much of it as its odometer asks for."""

import warnings

from measuring import BOUNDS, DELTA, EPSILON, example_values, main, spread, truth

QUERIES = {
    "count": "SELECT COUNT(*) AS n FROM S.T",
    "sum": "SELECT SUM(value) AS total FROM S.T",
    "mean": "SELECT AVG(value) AS mean FROM S.T",
    "histogram": "SELECT bin, COUNT(*) AS n FROM S.T GROUP BY bin",
}
METADATA = {
    "row_privacy": True,
    "max_ids": 1,
    "censor_dims": False,
    "clamp_counts": False,
    "clamp_columns": True,
    "bin": {"type": "int"},
    "value": {"type": "float", "lower": BOUNDS[0], "upper": BOUNDS[1]},
}


def spent(epsilon, spends):
    """Return what the odometer says of Laplace mechanisms; half of its delta is its slack."""
    from snsql import Privacy
    from snsql.sql.odometer import OdometerHeterogeneous

    odometer = OdometerHeterogeneous(Privacy(epsilon=epsilon, delta=2 * DELTA))
    for _ in range(spends):
        odometer.spend(Privacy(epsilon=epsilon, delta=0.0))
    return odometer.spent[0]


def largest(spends):
    """Return the largest epsilon for each mechanism."""
    low, high = 0.0, EPSILON
    if spent(high, spends) <= EPSILON:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle, spends) <= EPSILON else (low, middle)
    return low


def draws(reader, statistic, true):
    while True:
        rows = sorted(reader.execute(QUERIES[statistic])[1:])
        yield from zip((row[-1] for row in rows), true, strict=True)


def run(case):
    import pandas as pd
    from snsql import Privacy, from_df

    warnings.simplefilter("ignore")
    statistic, values = case["statistic"], example_values()
    places = [min(int(value // 5), 9) for value in values]
    frame = pd.DataFrame({"bin": places, "value": values})
    epsilon = largest(case["releases"] * (2 if statistic == "mean" else 1))
    metadata = {"": {"S": {"T": {**METADATA, "rows": len(frame)}}}}
    reader = from_df(frame, privacy=Privacy(epsilon=epsilon, delta=DELTA), metadata=metadata)
    found = spread(draws(reader, statistic, truth(statistic)), case["samples"])
    return {**found, "mechanism": "laplace"}


if __name__ == "__main__":
    main(run)
