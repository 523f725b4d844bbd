"""Groups that dpframe finds: their noisy numbers of units reach its threshold."""

from measuring import DELTA, EPSILON, found_by, main

ASKED = {"dtype": "int64", "epsilon": EPSILON, "delta": DELTA}


def declared(frame, labels):
    """Declare that a unit counts for so many groups, with one row each."""
    frame.dp.declare(privacy_unit="unit", max_rows=labels, max_groups=labels)
    return frame


def of_size(size, sets, labels):
    """Make groups of one size; a unit is in as many of them as it may be."""
    import numpy as np
    import pandas as pd

    unit, label = np.divmod(np.arange(sets * size * labels), labels)
    frame = pd.DataFrame({"unit": unit, "group": unit // size * labels + label})
    return declared(frame, labels)


def run(case):
    import dpframe  # noqa: F401  # registers .dp

    labels = case["labels"]
    one = of_size(1, 1, labels).dp.discover("group", **ASKED).dp.certificate
    law, scale, least = (one.mechanism.distribution, one.mechanism.scales["0"], one.mechanism.least)
    found = found_by(lambda size: float(law.at_least(scale, least - size)))
    sets = -(-case["samples"] // labels)
    published = of_size(found["found_50"], sets, labels).dp.discover("group", **ASKED)
    return {
        **found,
        "drawn": len(published) / (sets * labels),
        "trials": sets * labels,
        "error": one.columns[0].std_error,
        "threshold": one.mechanism.threshold,
        "mechanism": one.mechanism.name,
    }


if __name__ == "__main__":
    main(run)
