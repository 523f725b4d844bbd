"""Errors of PipelineDP: Laplace noise by its naive accountant, or Gaussian noise by its PLD one."""

import functools
import operator

from measuring import (
    BOUNDS,
    EDGES,
    EPSILON,
    MIDDLE,
    RANGE_BINS,
    above,
    example_values,
    main,
    of_bins,
    of_quotient,
    of_variance,
    place_of,
    range_sums,
    spread,
    truth,
)

BINS = {"histogram": len(EDGES) - 1, "ranges": RANGE_BINS}


def params(statistic, law):
    import pipeline_dp as pdp

    metrics = {
        "sum": pdp.Metrics.SUM,
        "mean": pdp.Metrics.MEAN,
        "rate": pdp.Metrics.MEAN,
        "variance": pdp.Metrics.VARIANCE,
    }
    lower, upper = (0.0, 1.0) if statistic == "rate" else BOUNDS
    return pdp.AggregateParams(
        metrics=[metrics.get(statistic, pdp.Metrics.COUNT)],
        noise_kind=pdp.NoiseKind.GAUSSIAN if law == "gaussian" else pdp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=lower,
        max_value=upper,
        contribution_bounds_already_enforced=True,
    )


@functools.cache
def accountants():
    """Name its accountants; what the PLD one found for a plan is used for the next such plan."""
    import pipeline_dp as pdp

    known = {}

    class Remembering(pdp.PLDBudgetAccountant):
        def _find_minimum_base_noise_std(self):
            size = len(self._mechanisms)
            known[size] = known.get(size) or super()._find_minimum_base_noise_std()
            return known[size]

    return {"gaussian": Remembering, "laplace": pdp.NaiveBudgetAccountant}


def accountant_of(statistic, law):
    """Choose an accountant; the PLD one cannot plan a variance."""
    import pipeline_dp as pdp

    return pdp.NaiveBudgetAccountant if statistic == "variance" else accountants()[law]


def planned(rows, statistic, releases, law, delta):
    """Plan the releases; they are computed when they are read."""
    import pipeline_dp as pdp

    accountant = accountant_of(statistic, law)(total_epsilon=EPSILON, total_delta=delta)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(
        partition_extractor=operator.itemgetter(0), value_extractor=operator.itemgetter(1)
    )
    keys = list(range(BINS.get(statistic, 1)))
    results = [
        engine.aggregate(rows, params(statistic, law), extractors, public_partitions=keys)
        for _ in range(releases)
    ]
    accountant.compute_budgets()
    return results


def law_of(statistic, releases, law, delta):
    """Return the standard error, from the deviations that its mechanisms state when they are made.

    A mean has two: that of the number of rows, and that of the sum around the middle. A variance
    has that of the sum of squares as a third.
    """
    from pipeline_dp import dp_computations

    if statistic == "variance":
        rows, total, squares = deviations_of_variance(releases, law, delta)
        return of_variance(squares, total, rows)
    made = dp_computations.create_additive_mechanism
    deviations = []

    def stated(*arguments):
        mechanism = made(*arguments)
        deviations.append(mechanism.std)
        return mechanism

    dp_computations.create_additive_mechanism = stated
    try:
        list(planned([(0, 1.0)], statistic, releases, law, delta)[0])
    finally:
        dp_computations.create_additive_mechanism = made
    if statistic == "mean":
        return of_quotient(deviations[1], deviations[0], middle=MIDDLE)
    if statistic == "rate":
        return of_quotient(deviations[1], deviations[0], middle=0.5, statistic="rate")
    return of_bins(deviations[0]) if statistic == "ranges" else deviations[0]


def deviations_of_variance(releases, law, delta):
    """Return the deviations for rows, sum and squares, in the order in which it adds noise."""
    from pipeline_dp import dp_computations

    added = dp_computations._add_random_noise
    deviations = []

    def noted(value, *how):
        eps, delta, l0, linf, kind = how
        amounts = dp_computations.ScalarNoiseParams(eps, delta, *BOUNDS, None, None, l0, 1, kind)
        deviations.append(dp_computations._compute_noise_std(linf, amounts))
        return added(value, *how)

    dp_computations._add_random_noise = noted
    try:
        list(planned([(0, 1.0)], "variance", releases, law, delta)[0])
    finally:
        dp_computations._add_random_noise = added
    return deviations


def draws(plan, true):
    while True:
        for result in plan():
            cells = [getattr(made, made._fields[0]) for _, made in sorted(result)]
            ranges = len(true) == RANGE_BINS
            yield from range_sums(cells, true) if ranges else zip(cells, true, strict=True)


def run(case):
    statistic, releases, delta = case["statistic"], case["releases"], case["delta"]
    laws = ("laplace", "gaussian") if delta else ("laplace",)
    errors = {law: law_of(statistic, releases, law, delta) for law in laws}
    law = min(errors, key=errors.get)
    values = example_values()
    places = [place_of(value, BINS.get(statistic, 1)) for value in values]
    if statistic == "rate":
        values = [float(above(value)) for value in values]
    rows = list(zip(places, values, strict=True))
    made = draws(lambda: planned(rows, statistic, releases, law, delta), truth(statistic))
    return {**spread(made, case["samples"]), "error": errors[law], "mechanism": law}


if __name__ == "__main__":
    main(run)
