"""Quantiles of OpenDP: candidates one at a time, or a tree of noisy counts made consistent."""

from measuring import EPSILON, main
from real import ASKED, BOUNDS, column, ranked

BINS = 1024
CANDIDATES = 16_384


def budget_of(delta):
    """Return the measure and the amount that the whole release may cost."""
    import opendp.prelude as dp

    if not delta:
        return dp.max_divergence(), EPSILON
    return dp.zero_concentrated_divergence(), zcdp_of(delta)


def zcdp_of(delta):
    """Return the most rho whose (epsilon, delta) is within the budget."""
    import opendp.prelude as dp

    def private(scale):
        scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*scalar, scale))
        return dp.c.make_fix_delta(made, delta)

    scale = dp.binary_search_param(private, d_in=1.0, d_out=(EPSILON, delta), T=float)
    return 0.5 / scale**2


def space():
    import opendp.prelude as dp

    return dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def grid(name, count):
    lower, upper = BOUNDS[name]
    return [lower + (upper - lower) * k / count for k in range(count + 1)]


def by_candidates(name, levels, delta):
    """Share the budget among the quantiles."""
    import opendp.prelude as dp

    measure, amount = budget_of(delta)

    def composed(scale, candidates):
        return dp.c.make_composition(
            [
                space() >> dp.m.then_private_quantile(measure, candidates, level, scale)
                for level in levels
            ]
        )

    few = list(BOUNDS[name])  # the scale does not depend on the candidates
    scale = dp.binary_search_param(
        lambda scale: composed(scale, few), d_in=1, d_out=amount, T=float
    )
    return composed(scale, grid(name, CANDIDATES))


def by_tree(name, levels, _delta):
    """Count in bins and in all nodes above them, then make the counts agree.

    The noise is Laplace: a Gaussian one is charged for as many moves as there are levels, too.
    """
    import opendp.prelude as dp

    edges = grid(name, BINS)
    branching = dp.t.choose_branching_factor(size_guess=10_000)
    counts = (
        space()
        >> dp.t.then_find_bin(edges[1:-1])
        >> dp.t.then_count_by_categories(
            list(range(BINS)), null_category=False, MO="L1Distance<i64>"
        )
        >> dp.t.then_b_ary_tree(leaf_count=BINS, branching_factor=branching)
    )
    scale = dp.binary_search_param(
        lambda scale: counts >> dp.m.then_laplace(scale), d_in=1, d_out=EPSILON, T=float
    )
    noisy = counts >> dp.m.then_laplace(scale)
    agree = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    read = dp.t.make_quantiles_from_counts(edges, list(levels), interpolation="linear")
    return lambda data: read(agree(noisy(data))[:BINS])


def run(case):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    levels = ASKED[case["statistic"]]
    ordered = column(case["folder"], case["table"])
    made = {"candidates": by_candidates, "tree": by_tree}[case["variant"]]
    release = made(case["table"], levels, case["delta"])
    return ranked(case, lambda: release(ordered.tolist()), ordered)


if __name__ == "__main__":
    main(run)
