"""Errors of Tumult Analytics: pure noise in equal parts, or Gaussian noise through zCDP."""

import math
import warnings

from measuring import (
    BOUNDS,
    EDGES,
    EPSILON,
    MIDDLE,
    RANGE_BINS,
    above,
    discrete_laplace,
    example_values,
    laplace,
    main,
    of_bins,
    of_quotient,
    place_of,
    range_sums,
    spread,
    truth,
)
from sparked import started

BINS = {"histogram": len(EDGES) - 1, "ranges": RANGE_BINS}


def query(statistic, copies):
    """Ask for each copy of the data, so that one query makes as many draws."""
    from tmlt.analytics import KeySet, QueryBuilder

    keys = {"copy": list(range(copies))}
    if statistic in BINS:
        keys["bin"] = list(range(BINS[statistic]))
    rows = QueryBuilder("rows").groupby(KeySet.from_dict(keys))
    return {
        "count": rows.count,
        "sum": lambda: rows.sum("value", *BOUNDS),
        "mean": lambda: rows.average("value", *BOUNDS),
        "rate": lambda: rows.average("high", 0.0, 1.0),
        "variance": lambda: rows.variance("value", *BOUNDS),
    }.get(statistic, rows.count)()


def most_rho(delta):
    """Return the most rho that is within (epsilon, delta).

    The conversion is that of Canonne, Kamath and Steinke (2020), Proposition 7.
    """

    def needed(rho):
        orders = (1 + math.exp(step / 100) for step in range(-200, 900))
        return min(
            (a - 1) * (a * rho - EPSILON) + a * math.log1p(-1 / a) - math.log(a - 1) for a in orders
        )

    low, high = 0.0, EPSILON
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) <= math.log(delta) else (low, middle)
    return low


def deviation(noise):
    """Return the standard deviation of one of its noises; Gaussian ones state a variance."""
    law, parameter = noise["noise_mechanism"].name, float(noise["noise_parameter"])
    if "GAUSSIAN" in law:
        return math.sqrt(parameter)
    return {"GEOMETRIC": discrete_laplace, "LAPLACE": laplace}[law](parameter)


def law_of(statistic, noises):
    """Return the standard error, from the noises that a session plans.

    A variance is that of x^2 less half of its range, over the rows, less the square of the mean.
    """
    found = [deviation(noise) for noise in noises]
    if statistic in {"mean", "rate"}:
        middle = MIDDLE if statistic == "mean" else 0.5
        return of_quotient(found[0], found[1], middle=middle, statistic=statistic)
    if statistic == "variance":
        of_sum, of_squares, of_rows = found
        (mean,), (variance,) = truth("mean"), truth("variance")
        far = variance + mean**2 - BOUNDS[1] ** 2 / 2 - 2 * mean * (mean - MIDDLE)
        parts = of_squares, 2 * mean * of_sum, far * of_rows
        return math.hypot(*parts) / len(example_values())
    return of_bins(found[0]) if statistic == "ranges" else found[0]


def table(spark, statistic, copies):
    import pandas as pd

    values = example_values()
    places = [place_of(value, BINS.get(statistic, 1)) for value in values]
    high = [float(above(value)) for value in values]
    one = pd.DataFrame({"bin": places, "value": values, "high": high})
    found = pd.concat([one.assign(copy=number) for number in range(copies)])
    return spark.createDataFrame(found)


def session_of(frame, budget):
    from tmlt.analytics import AddOneRow, Session

    return Session.from_dataframe(
        privacy_budget=budget, source_id="rows", dataframe=frame, protected_change=AddOneRow()
    )


def draws(session, asked, budget, statistic):
    true = truth(statistic)
    found = session.evaluate(asked, budget).toPandas()
    by = ["copy", "bin"] if statistic in BINS else ["copy"]
    for _, one in found.sort_values(by).groupby("copy"):
        cells = one.iloc[:, -1].tolist()
        ranges = statistic == "ranges"
        yield from range_sums(cells, true) if ranges else zip(cells, true, strict=True)


def run(case):
    from tmlt.analytics import PureDPBudget, RhoZCDPBudget

    warnings.simplefilter("ignore")
    statistic, delta, releases = case["statistic"], case["delta"], case["releases"]
    copies = case["samples"] if releases == 1 else 1
    frame, asked = table(started(), statistic, copies), query(statistic, copies)
    budgets = {"laplace": PureDPBudget(EPSILON / releases)}
    if delta:
        budgets["gaussian"] = RhoZCDPBudget(most_rho(delta) / releases)
    whole = {"laplace": PureDPBudget(math.inf), "gaussian": RhoZCDPBudget(math.inf)}
    sessions = {law: session_of(frame, whole[law]) for law in budgets}
    errors = {
        law: law_of(statistic, sessions[law]._noise_info(asked, budget))
        for law, budget in budgets.items()
    }
    law = min(errors, key=errors.get)
    found = {"error": errors[law], "mechanism": law}
    if releases > 1:  # the same with less of the budget, and Spark takes its time
        return found
    return {**found, **spread(draws(sessions[law], asked, budgets[law], statistic), math.inf)}


if __name__ == "__main__":
    main(run)
