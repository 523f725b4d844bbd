"""Quantiles of PipelineDP: its tree of four levels of 16 children."""

import operator

from accuracy_pipeline_dp import accountants
from measuring import EPSILON, main
from real import ASKED, BOUNDS, column, ranked


def params(name, levels, law):
    import pipeline_dp as pdp

    lower, upper = BOUNDS[name]
    return pdp.AggregateParams(
        metrics=[pdp.Metrics.PERCENTILE(round(100 * level)) for level in levels],
        noise_kind=pdp.NoiseKind.GAUSSIAN if law == "gaussian" else pdp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=lower,
        max_value=upper,
        contribution_bounds_already_enforced=True,
    )


def release(rows, name, levels, law, delta):
    """Return the values asked for."""
    import pipeline_dp as pdp

    accountant = accountants()[law](total_epsilon=EPSILON, total_delta=delta)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(
        partition_extractor=operator.itemgetter(0), value_extractor=operator.itemgetter(1)
    )
    asked = params(name, levels, law)
    found = engine.aggregate(rows, asked, extractors, public_partitions=[0])
    accountant.compute_budgets()
    ((_, values),) = found
    return [getattr(values, f"percentile_{round(100 * level)}") for level in levels]


def run(case):
    ordered = column(case["folder"], case["table"])
    rows = [(0, value) for value in ordered.tolist()]
    asked = case["table"], ASKED[case["statistic"]], case["variant"], case["delta"]
    return ranked(case, lambda: release(rows, *asked), ordered)


if __name__ == "__main__":
    main(run)
