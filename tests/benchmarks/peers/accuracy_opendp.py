"""Errors of OpenDP: Laplace noise, or Gaussian noise through zCDP, whichever is less."""

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


def parts(statistic, norm):
    """List the transformations to be released, each with its sensitivity."""
    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    count = space >> dp.t.then_count()
    total = space >> dp.t.then_clamp(BOUNDS) >> dp.t.then_sum()
    bins = dp.t.then_find_bin(list(EDGES[1:-1]))
    cells = dp.t.then_count_by_categories(list(range(len(EDGES) - 1)), null_category=False, MO=norm)
    return {
        "count": lambda: [(count, 1)],
        "sum": lambda: [(total, BOUNDS[1])],
        "mean": lambda: [(total, BOUNDS[1]), (count, 1)],  # the number of rows is not public
        "histogram": lambda: [(space >> bins >> cells, 1)],
    }[statistic]()


def calibrated(statistic, releases, law, delta):
    """Return the measurements of one release, and the scale of a sensitivity of 1."""
    import opendp.prelude as dp

    if law == "gaussian":
        made, noise = parts(statistic, "L2Distance<f64>"), dp.m.then_gaussian
    else:
        made, noise = parts(statistic, "L1Distance<f64>"), dp.m.then_laplace

    def measurements(scale):
        return [part >> noise(scale * sensitivity) for part, sensitivity in made]

    def composed(scale):
        together = dp.c.make_composition(measurements(scale) * releases)
        if law == "gaussian":
            return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(together), delta)
        return together

    amount = (EPSILON, delta) if law == "gaussian" else EPSILON
    scale = dp.binary_search_param(composed, d_in=1, d_out=amount, T=float)
    return measurements(scale), scale


def draws(measurements, values, true, statistic):
    while True:
        released = [measurement(values) for measurement in measurements]
        if statistic == "mean":
            released = [released[0] / released[1]]
        cells = released[0] if statistic == "histogram" else released
        yield from zip(cells, true, strict=True)


def law_of(statistic, law, scale):
    """Return the standard error, from the scale of a sensitivity of 1.

    Counts are integers, with noise of the discrete laws; the discrete Gaussian has the deviation
    sigma to many digits.
    """
    of_values = laplace(BOUNDS[1] * scale) if law == "laplace" else BOUNDS[1] * scale
    of_rows = discrete_laplace(scale) if law == "laplace" else scale
    if statistic == "mean":
        return of_mean(of_values, of_rows)
    return of_values if statistic == "sum" else of_rows


def run(case):
    import numpy as np
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    statistic, releases, delta = case["statistic"], case["releases"], case["delta"]
    laws = ("laplace", "gaussian") if delta else ("laplace",)
    made = {law: calibrated(statistic, releases, law, delta) for law in laws}
    law = min(laws, key=lambda law: law_of(statistic, law, made[law][1]))
    measurements, scale = made[law]
    values = np.array(example_values())
    found = spread(draws(measurements, values, truth(statistic), statistic), case["samples"])
    return {**found, "error": law_of(statistic, law, scale), "mechanism": law}


if __name__ == "__main__":
    main(run)
