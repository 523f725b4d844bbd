"""Errors of diffprivlib: Laplace noise, with all of delta as slack."""

import warnings

from measuring import (
    BOUNDS,
    EDGES,
    EPSILON,
    discrete_laplace,
    example_values,
    laplace,
    main,
    of_mean,
    spread,
    truth,
)


def release(statistic, values, epsilon):
    import numpy as np
    from diffprivlib import tools

    if statistic == "histogram":
        return tools.histogram(values, epsilon=epsilon, bins=np.array(EDGES))[0]
    # a count is cut off at the length of the array: rows that do not count keep that away
    counted = np.repeat([1, 0], len(values))
    count = tools.count_nonzero(counted, epsilon=epsilon)
    if statistic == "count":
        return [count]
    total = tools.sum(values, epsilon=epsilon, bounds=BOUNDS)
    return [total] if statistic == "sum" else [total / count]  # the number of rows is not public


def draws(statistic, values, epsilon, true):
    while True:
        yield from zip(release(statistic, values, epsilon), true, strict=True)


def law_of(statistic, epsilon):
    """Return the standard error: its counts have noise of the discrete Laplace law."""
    of_values, of_rows = laplace(BOUNDS[1] / epsilon), discrete_laplace(1 / epsilon)
    if statistic == "mean":
        return of_mean(of_values, of_rows)
    return of_values if statistic == "sum" else of_rows


def run(case):
    import numpy as np
    from diffprivlib import BudgetAccountant

    warnings.simplefilter("ignore")
    statistic, delta = case["statistic"], case["delta"]
    spends = case["releases"] * (2 if statistic == "mean" else 1)
    accountant = BudgetAccountant(epsilon=EPSILON, delta=delta, slack=delta)
    epsilon = accountant.remaining(spends)[0]
    values = np.array(example_values())
    found = spread(draws(statistic, values, epsilon, truth(statistic)), case["samples"])
    return {**found, "error": law_of(statistic, epsilon), "mechanism": "laplace"}


if __name__ == "__main__":
    main(run)
