"""Groups that PipelineDP finds: thresholds for noisy numbers of units, and keys alone."""

from measuring import DELTA, EPSILON, found_by, laplace, main


def thresholding(law, labels):
    """Return the mechanism that publishes noisy numbers of units, and its deviation."""
    import pipeline_dp as pdp
    from pipeline_dp import dp_computations as computations
    from pipeline_dp.aggregate_params import MechanismType

    kinds = {
        "laplace": MechanismType.LAPLACE_THRESHOLDING,
        "gaussian": MechanismType.GAUSSIAN_THRESHOLDING,
    }
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    spec = accountant.request_budget(kinds[law])
    accountant.compute_budgets()
    sensitivities = computations.Sensitivities(l0=labels, linf=1)
    made = computations.create_thresholding_mechanism(spec, sensitivities, None)
    if law == "laplace":
        return made._thresholding_strategy, laplace(labels / EPSILON)
    # half of delta is for the noise, half for the threshold
    return made._thresholding_strategy, computations.compute_sigma(
        EPSILON, DELTA / 2, l2_sensitivity=labels**0.5
    )


def run(case):
    from pipeline_dp import PartitionSelectionStrategy, partition_selection

    labels, samples = case["labels"], case["samples"]
    if case["variant"] == "keys alone":
        law, error = "truncated geometric", None
        kind = PartitionSelectionStrategy.TRUNCATED_GEOMETRIC
        made = partition_selection.create_partition_selection_strategy(kind, EPSILON, DELTA, labels)
        found = found_by(made.probability_of_keep)
    else:
        laws = {law: thresholding(law, labels) for law in ("laplace", "gaussian")}
        law = min(laws, key=lambda law: laws[law][0].threshold)
        made, error = laws[law]
        found = found_by(made.probability_of_keep)
    published = sum(made.should_keep(found["found_50"]) for _ in range(samples))
    return {
        **found,
        "drawn": published / samples,
        "trials": samples,
        "error": error,
        "threshold": getattr(made, "threshold", None),
        "mechanism": law,
    }


if __name__ == "__main__":
    main(run)
