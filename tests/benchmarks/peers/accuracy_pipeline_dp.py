"""Errors of PipelineDP: Laplace noise by its naive accountant, or Gaussian noise by its PLD one."""

import functools
import operator

from measuring import BOUNDS, DELTA, EDGES, EPSILON, example_values, main, spread, truth


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
        output_noise_stddev=statistic == "count",
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


def planned(rows, statistic, releases, law):
    """Plan the releases; they are computed when they are read."""
    import pipeline_dp as pdp

    accountant = accountants()[law](total_epsilon=EPSILON, total_delta=DELTA)
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


def stated(releases, law):
    """Return the standard deviation that PipelineDP states for a count."""
    result = next(iter(planned([(0, 1.0)], "count", releases, law)[0]))
    return result[1].count_noise_stddev


def draws(rows, statistic, releases, law, true):
    while True:
        for result in planned(rows, statistic, releases, law):
            cells = sorted(result)
            yield from zip((getattr(made, made._fields[0]) for _, made in cells), true, strict=True)


def run(case):
    statistic, releases = case["statistic"], case["releases"]
    law = min(("laplace", "gaussian"), key=lambda law: stated(releases, law))
    values = example_values()
    places = [min(int(v // 5), 9) if statistic == "histogram" else 0 for v in values]
    rows = list(zip(places, values, strict=True))
    found = spread(draws(rows, statistic, releases, law, truth(statistic)), case["samples"])
    return {**found, "mechanism": law}


if __name__ == "__main__":
    main(run)
