"""Groups that OpenDP finds: its thresholds for noisy counts of groups, as floats.

Of whole numbers, it publishes those at the threshold, too, and counts those above it alone.
"""

import math
import statistics

from measuring import DELTA, EPSILON, found_by, laplace, main

PARTS = 20  # of a delta that Gaussian noise and the threshold share


def space(norm):
    import opendp.prelude as dp

    domain = dp.map_domain(dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False))
    metric = {1: dp.l01inf_distance, 2: dp.l02inf_distance}[norm]
    return domain, metric(dp.absolute_distance(T=float))


def with_laplace(labels):
    """Return its measurement of the least threshold."""
    import opendp.prelude as dp

    def made(threshold):
        return dp.m.make_laplace_threshold(*space(1), scale=labels / EPSILON, threshold=threshold)

    threshold = dp.binary_search(
        lambda t: fits(made(t).map((labels, float(labels), 1.0)), DELTA), (1.0, 1e6)
    )
    return made(threshold), threshold, labels / EPSILON


def fits(loss, delta):
    return loss[0] <= EPSILON and loss[1] <= delta


def with_gaussian(labels):
    """Return its measurement of the least threshold, over parts of delta for the noise."""
    found = (of_part(labels, DELTA * part / PARTS) for part in range(1, PARTS))
    return min(found, key=lambda one: one[1])


def of_part(labels, for_noise):
    """Calibrate noise through zCDP, then the threshold with the rest of delta."""
    import opendp.prelude as dp

    moved = math.sqrt(labels)
    scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def noise(scale):
        private = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*scalar, scale))
        return dp.c.make_fix_delta(private, for_noise)

    scale = dp.binary_search_param(noise, d_in=moved, d_out=(EPSILON, for_noise), T=float)

    def made(threshold):
        return dp.m.make_gaussian_threshold(*space(2), scale=scale, threshold=threshold)

    rest = DELTA - for_noise
    threshold = dp.binary_search(lambda t: made(t).map((labels, moved, 1.0))[1] <= rest, (1.0, 1e6))
    return made(threshold), threshold, scale


def run(case):
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    made = {"laplace": with_laplace(case["labels"]), "gaussian": with_gaussian(case["labels"])}
    law = min(made, key=lambda law: made[law][1])
    measurement, threshold, scale = made[law]
    normal = statistics.NormalDist()

    def chance(size):
        far = (size - threshold) / scale
        if law == "gaussian":
            return normal.cdf(far)
        return 1 - math.exp(-far) / 2 if far > 0 else math.exp(far) / 2

    found = found_by(chance)
    samples = case["samples"]
    published = measurement(dict.fromkeys(range(samples), float(found["found_50"])))
    return {
        **found,
        "drawn": len(published) / samples,
        "trials": samples,
        "error": laplace(scale) if law == "laplace" else scale,
        "threshold": threshold,
        "mechanism": law,
    }


if __name__ == "__main__":
    main(run)
