"""Errors of OpenDP: Laplace noise, or Gaussian noise through zCDP, whichever is less."""

import functools

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
    of_quotient,
    of_variance,
    over_ranges,
    range_edges,
    range_sums,
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
    fine = dp.t.then_find_bin(range_edges(RANGE_BINS)[1:-1])
    return {
        "ranges": lambda: [(space >> fine >> tree_of_counts(norm), 1)],
        "rate": lambda: [(rate, 1), (count, 1)],
        "variance": lambda: [(squares, HALF**2), (centered, HALF), (count, 1)],
        "variance, replaced": lambda: [(variance_of_known_rows(), variance_moves())],
        "count": lambda: [(count, 1)],
        "sum": lambda: [(total, BOUNDS[1])],
        "mean": lambda: [(total, BOUNDS[1]), (count, 1)],  # the number of rows is not public
        "histogram": lambda: [(space >> bins >> cells, 1)],
    }[statistic]()


def branching():
    """Return the number of children that it proposes for so many rows."""
    import opendp.prelude as dp

    return dp.t.choose_branching_factor(size_guess=len(example_values()))


def tree_of_counts(norm):
    """Count in bins and in all nodes above them."""
    import opendp.prelude as dp

    places = list(range(RANGE_BINS))
    whole = norm.replace("f64", "i64")
    counts = dp.t.then_count_by_categories(places, null_category=False, MO=whole)
    return counts >> dp.t.then_b_ary_tree(leaf_count=RANGE_BINS, branching_factor=branching())


def consistent(nodes):
    """Return bins, of counts of nodes that are made to agree."""
    import opendp.prelude as dp

    agree = dp.t.make_consistent_b_ary_tree(branching_factor=branching())
    return agree([round(node) for node in nodes])[:RANGE_BINS]


@functools.cache
def of_ranges():
    """Return the error of a range for a deviation of 1 of each node, as agreeing is linear."""
    import numpy as np

    nodes = len(calibrated("ranges", 1, "laplace", 0)[0][0]([1.0]))
    grown = 2**20  # what agrees is rounded to floats of few digits
    moved = np.array([consistent(grown * row) for row in np.eye(nodes)]) / grown
    return over_ranges(moved.T @ moved)


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
        if statistic == "ranges":
            yield from range_sums(consistent(released[0]), true)
            continue
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
        "ranges": lambda: of_rows * of_ranges(),
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
