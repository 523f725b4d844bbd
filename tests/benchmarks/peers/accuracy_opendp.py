"""Errors of OpenDP: Laplace noise, or Gaussian noise through zCDP, whichever is less."""

from measuring import (
    BOUNDS,
    EDGES,
    EPSILON,
    MIDDLE,
    above,
    discrete_laplace,
    example_values,
    laplace,
    main,
    of_quotient,
    of_variance,
    spread,
    truth,
)

HALF = BOUNDS[1] - MIDDLE


def parts(statistic, norm):
    """List the transformations to be released, each with its sensitivity."""
    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    count = space >> dp.t.then_count()
    total = space >> dp.t.then_clamp(BOUNDS) >> dp.t.then_sum()
    bins = dp.t.then_find_bin(list(EDGES[1:-1]))
    cells = dp.t.then_count_by_categories(list(range(len(EDGES) - 1)), null_category=False, MO=norm)
    rate = space >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum()
    centered = space >> dp.t.then_clamp((-HALF, HALF)) >> dp.t.then_sum()
    squares = space >> dp.t.then_clamp((0.0, HALF**2)) >> dp.t.then_sum()
    return {
        "rate": lambda: [(rate, 1), (count, 1)],
        "variance": lambda: [(squares, HALF**2), (centered, HALF), (count, 1)],
        "variance, replaced": lambda: [(variance_of_known_rows(), variance_moves())],
        "count": lambda: [(count, 1)],
        "sum": lambda: [(total, BOUNDS[1])],
        "mean": lambda: [(total, BOUNDS[1]), (count, 1)],  # the number of rows is not public
        "histogram": lambda: [(space >> bins >> cells, 1)],
    }[statistic]()


def variance_of_known_rows():
    import opendp.prelude as dp

    atoms = dp.atom_domain(bounds=BOUNDS, nan=False)
    space = dp.vector_domain(atoms, size=len(example_values())), dp.symmetric_distance()
    return space >> dp.t.then_variance(ddof=0)


def variance_moves():
    """Return how far one replaced row, at distance 2, moves that variance."""
    return variance_of_known_rows().map(2)


def distance(statistic):
    return 2 if statistic.endswith("replaced") else 1


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
    close = distance(statistic)
    scale = dp.binary_search_param(composed, d_in=close, d_out=amount, T=float)
    return measurements(scale), scale


def columns(statistic):
    """Return what each of the parts adds up."""
    import numpy as np

    values = np.array(example_values())
    if statistic == "rate":
        return np.array([float(above(value)) for value in values]), values
    if statistic == "variance":
        return (values - MIDDLE) ** 2, values - MIDDLE, values
    return values, values


def draws(measurements, true, statistic):
    data = columns(statistic)
    while True:
        released = [part(column) for part, column in zip(measurements, data, strict=False)]
        if statistic in {"mean", "rate"}:
            released = [released[0] / released[1]]
        if statistic == "variance":
            squares, total, rows = released
            released = [squares / rows - (total / rows) ** 2]
        cells = released[0] if statistic == "histogram" else released
        yield from zip(cells, true, strict=True)


def law_of(statistic, law, scale):
    """Return the standard error, from the scale of a sensitivity of 1.

    Counts are integers, with noise of the discrete laws; the discrete Gaussian has the deviation
    sigma to many digits.
    """
    of_one = laplace(scale) if law == "laplace" else scale
    of_rows = discrete_laplace(scale) if law == "laplace" else scale
    laws = {
        "sum": lambda: BOUNDS[1] * of_one,
        "mean": lambda: of_quotient(BOUNDS[1] * of_one, of_rows),
        "rate": lambda: of_quotient(of_one, of_rows, statistic="rate"),
        "variance": lambda: of_variance(HALF**2 * of_one, HALF * of_one, of_rows),
        "variance, replaced": lambda: variance_moves() * of_one,
    }
    return laws.get(statistic, lambda: of_rows)()


def run(case):
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    statistic, releases, delta = case["statistic"], case["releases"], case["delta"]
    laws = ("laplace", "gaussian") if delta else ("laplace",)
    made = {law: calibrated(statistic, releases, law, delta) for law in laws}
    law = min(laws, key=lambda law: law_of(statistic, law, made[law][1]))
    measurements, scale = made[law]
    found = spread(draws(measurements, truth(statistic), statistic), case["samples"])
    return {**found, "error": law_of(statistic, law, scale), "mechanism": law}


if __name__ == "__main__":
    main(run)
