"""Errors of diffprivlib: Laplace noise, with all of delta as slack."""

import math
import warnings

from measuring import (
    BOUNDS,
    EDGES,
    EPSILON,
    HIGH,
    MIDDLE,
    RANGE_BINS,
    discrete_laplace,
    example_values,
    laplace,
    main,
    of_quotient,
    of_variance,
    over_ranges,
    range_edges,
    range_sums,
    spread,
    truth,
)


def release(statistic, values, epsilon):
    import numpy as np
    from diffprivlib import tools

    edges = {"histogram": EDGES, "ranges": range_edges(RANGE_BINS)}
    if statistic in edges:
        return tools.histogram(values, epsilon=epsilon, bins=np.array(edges[statistic]))[0]
    if statistic == "variance, replaced":
        return [tools.var(values, epsilon=epsilon, bounds=BOUNDS)]
    # a count is cut off at the length of the array: rows that do not count keep that away
    counted = np.repeat([1, 0], len(values))
    count = tools.count_nonzero(counted, epsilon=epsilon)
    if statistic == "count":
        return [count]
    if statistic == "rate":
        high = np.repeat([1, 0], [(values > HIGH).sum(), 2 * len(values)])
        return [tools.count_nonzero(high, epsilon=epsilon) / count]
    if statistic == "variance":
        far = values - MIDDLE
        bounds = BOUNDS[0] - MIDDLE, BOUNDS[1] - MIDDLE
        squares = tools.sum(far**2, epsilon=epsilon, bounds=(0, bounds[1] ** 2))
        mean = tools.sum(far, epsilon=epsilon, bounds=bounds) / count
        return [squares / count - mean**2]
    total = tools.sum(values, epsilon=epsilon, bounds=BOUNDS)
    return [total] if statistic == "sum" else [total / count]  # the number of rows is not public


def draws(statistic, values, epsilon, true):
    while True:
        cells = release(statistic, values, epsilon)
        ranges = statistic == "ranges"
        yield from range_sums(cells, true) if ranges else zip(cells, true, strict=True)


def law_of(statistic, epsilon):
    """Return the standard error: its counts have noise of the discrete Laplace law."""
    of_values, of_rows = laplace(BOUNDS[1] / epsilon), discrete_laplace(1 / epsilon)
    laws = {
        "sum": lambda: of_values,
        "ranges": lambda: of_ranges(epsilon),
        "mean": lambda: of_quotient(of_values, of_rows),
        "rate": lambda: of_quotient(of_rows, of_rows, statistic="rate"),
        # a sum is taken to move by the whole width of its bounds
        "variance": lambda: of_variance(laplace(MIDDLE**2 / epsilon), of_values, of_rows),
        "variance, replaced": lambda: of_bounded_variance(epsilon),
    }
    return laws.get(statistic, lambda: of_rows)()


def of_ranges(epsilon):
    """Return the error of a range: its noisy counts are not negative, so that small ones rise."""
    import numpy as np

    ratio, true = math.exp(-epsilon), np.array(truth("ranges"))
    found = np.arange(math.ceil(true.max() + 50 / epsilon))
    chance = (1 - ratio) / (1 + ratio) * ratio ** np.abs(found - true[:, None])
    chance[:, 0] = ratio**true / (1 + ratio)  # all that is at zero or below
    mean = chance @ found
    return over_ranges(np.diag(chance @ found**2 - mean**2), mean - true)


def of_bounded_variance(epsilon):
    """Return the error of its own variance: Laplace noise inside what a variance can be."""
    from diffprivlib.mechanisms import LaplaceBoundedDomain

    (width, rows), (variance,) = (BOUNDS[1], len(example_values())), truth("variance")
    moves = (width / rows) ** 2 * (rows - 1)
    noise = LaplaceBoundedDomain(epsilon=epsilon, sensitivity=moves, lower=0, upper=width**2 / 4)
    return math.hypot(math.sqrt(noise.variance(variance)), noise.bias(variance))


def run(case):
    import numpy as np
    from diffprivlib import BudgetAccountant

    warnings.simplefilter("ignore")
    statistic, delta = case["statistic"], case["delta"]
    spends = case["releases"] * {"mean": 2, "rate": 2, "variance": 3}.get(statistic, 1)
    accountant = BudgetAccountant(epsilon=EPSILON, delta=delta, slack=delta)
    epsilon = accountant.remaining(spends)[0]
    values = np.array(example_values())
    found = spread(draws(statistic, values, epsilon, truth(statistic)), case["samples"])
    return {**found, "error": law_of(statistic, epsilon), "mechanism": "laplace"}


if __name__ == "__main__":
    main(run)
