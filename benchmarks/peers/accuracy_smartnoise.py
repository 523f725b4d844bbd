"""Errors of SmartNoise SQL: Laplace noise, as much of it as its odometer asks for."""

import warnings

from measuring import (
    BOUNDS,
    EPSILON,
    above,
    cut_laplace,
    example_values,
    laplace,
    main,
    of_quotient,
    place_of,
    spread,
    truth,
)

QUERIES = {
    "count": "SELECT COUNT(*) AS n FROM S.T",
    "sum": "SELECT SUM(value) AS total FROM S.T",
    "mean": "SELECT AVG(value) AS mean FROM S.T",
    "rate": "SELECT AVG(high) AS rate FROM S.T",
    "histogram": "SELECT bin, COUNT(*) AS n FROM S.T GROUP BY bin",
}
METADATA = {
    "row_privacy": True,
    "max_ids": 1,
    "censor_dims": False,
    "clamp_counts": False,
    "clamp_columns": True,
    "bin": {"type": "int"},
    "high": {"type": "float", "lower": 0.0, "upper": 1.0},
    "value": {"type": "float", "lower": BOUNDS[0], "upper": BOUNDS[1]},
}


def spent(epsilon, spends, delta):
    """Return what the odometer says of Laplace mechanisms; half of its delta is its slack."""
    from snsql import Privacy
    from snsql.sql.odometer import OdometerHeterogeneous

    odometer = OdometerHeterogeneous(Privacy(epsilon=epsilon, delta=2 * delta))
    for _ in range(spends):
        odometer.spend(Privacy(epsilon=epsilon, delta=0.0))
    return odometer.spent[0]


def largest(spends, delta):
    """Return the largest epsilon for each mechanism; without a delta they add up."""
    if not delta:
        return EPSILON / spends
    low, high = 0.0, EPSILON
    if spent(high, spends, delta) <= EPSILON:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle, spends, delta) <= EPSILON else (low, middle)
    return low


def law_of(reader, statistic):
    """Return the standard error, from the scales with which its mechanism releases.

    Counts are cut off to the whole number below, which moves them by half on average.
    """
    from snsql.sql._mechanisms.laplace import Laplace

    release = Laplace.release
    scales = []

    def noted(mechanism, values):
        scales.append(mechanism.scale)
        return release(mechanism, values)

    Laplace.release = noted
    try:
        reader.execute(QUERIES[statistic])
    finally:
        Laplace.release = release
    if statistic in {"mean", "rate"}:
        return of_quotient(laplace(max(scales)), laplace(min(scales)), statistic=statistic)
    return (laplace if statistic == "sum" else cut_laplace)(scales[-1])


def draws(reader, statistic, true):
    while True:
        rows = sorted(reader.execute(QUERIES[statistic])[1:])
        yield from zip((row[-1] for row in rows), true, strict=True)


def run(case):
    import pandas as pd
    from snsql import Privacy, from_df

    warnings.simplefilter("ignore")
    statistic, delta, values = case["statistic"], case["delta"], example_values()
    places = [place_of(value, 10) for value in values]
    high = [float(above(value)) for value in values]
    frame = pd.DataFrame({"bin": places, "high": high, "value": values})
    epsilon = largest(case["releases"] * (2 if statistic in {"mean", "rate"} else 1), delta)
    metadata = {"": {"S": {"T": {**METADATA, "rows": len(frame)}}}}
    privacy = Privacy(epsilon=epsilon, delta=delta or 1e-6)  # it asks for one, and spends none
    reader = from_df(frame, privacy=privacy, metadata=metadata)
    found = spread(draws(reader, statistic, truth(statistic)), case["samples"])
    return {**found, "error": law_of(reader, statistic), "mechanism": "laplace"}


if __name__ == "__main__":
    main(run)
