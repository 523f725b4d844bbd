"""Errors of PipelineDP: Laplace noise by its naive accountant, or Gaussian noise by its PLD one."""

import functools
import operator

from measuring import BOUNDS, EDGES, EPSILON, example_values, main, of_mean, spread, truth


def params(statistic, law):
    import pipeline_dp as pdp

    metric = {"sum": pdp.Metrics.SUM, "mean": pdp.Metrics.MEAN}.get(statistic, pdp.Metrics.COUNT)
    return pdp.AggregateParams(
        metrics=[metric],
        noise_kind=pdp.NoiseKind.GAUSSIAN if law == "gaussian" else pdp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=BOUNDS[0],
        max_value=BOUNDS[1],
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


def planned(rows, statistic, releases, law, delta):
    """Plan the releases; they are computed when they are read."""
    import pipeline_dp as pdp

    accountant = accountants()[law](total_epsilon=EPSILON, total_delta=delta)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(
        partition_extractor=operator.itemgetter(0), value_extractor=operator.itemgetter(1)
    )
    keys = list(range(len(EDGES) - 1)) if statistic == "histogram" else [0]
    results = [
        engine.aggregate(rows, params(statistic, law), extractors, public_partitions=keys)
        for _ in range(releases)
    ]
    accountant.compute_budgets()
    return results


def law_of(statistic, releases, law, delta):
    """Return the standard error, from the deviations that its mechanisms state when they are made.

    A mean has two: that of the number of rows, and that of the sum around the middle.
    """
    from pipeline_dp import dp_computations

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
        return of_mean(deviations[1], deviations[0], middle=sum(BOUNDS) / 2)
    return deviations[0]


def draws(plan, true):
    while True:
        for result in plan():
            cells = sorted(result)
            yield from zip((getattr(made, made._fields[0]) for _, made in cells), true, strict=True)


def run(case):
    statistic, releases, delta = case["statistic"], case["releases"], case["delta"]
    laws = ("laplace", "gaussian") if delta else ("laplace",)
    errors = {law: law_of(statistic, releases, law, delta) for law in laws}
    law = min(errors, key=errors.get)
    values = example_values()
    places = [min(int(v // 5), 9) if statistic == "histogram" else 0 for v in values]
    rows = list(zip(places, values, strict=True))
    made = draws(lambda: planned(rows, statistic, releases, law, delta), truth(statistic))
    return {**spread(made, case["samples"]), "error": errors[law], "mechanism": law}


if __name__ == "__main__":
    main(run)
