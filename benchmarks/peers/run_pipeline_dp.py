"""PipelineDP on its local backend, over Python tuples, with public partitions."""

import operator

from measuring import BOUNDS, DELTA, EPSILON, MAX_GROUPS, MAX_ROWS_PER_GROUP, main, measured


def release(rows, keys, by_unit):
    import pipeline_dp as pdp

    accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    params = pdp.AggregateParams(
        metrics=[pdp.Metrics.COUNT, pdp.Metrics.SUM],
        noise_kind=pdp.NoiseKind.GAUSSIAN if by_unit else pdp.NoiseKind.LAPLACE,
        max_partitions_contributed=MAX_GROUPS if by_unit else 1,
        max_contributions_per_partition=MAX_ROWS_PER_GROUP if by_unit else 1,
        min_value=BOUNDS[0],
        max_value=BOUNDS[1],
        contribution_bounds_already_enforced=not by_unit,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=operator.itemgetter(0) if by_unit else None,
        partition_extractor=operator.itemgetter(1),
        value_extractor=operator.itemgetter(2),
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=list(range(keys)))
    accountant.compute_budgets()
    return list(result)


def run(case):
    import pyarrow.dataset as ds

    table = ds.dataset(case["folder"], format="parquet").to_table(["unit", "key", "value"])
    rows = list(zip(*(column.to_numpy().tolist() for column in table.columns), strict=True))
    del table
    return measured(lambda: release(rows, case["keys"], case["task"] == "unit"))


if __name__ == "__main__":
    main(run)
