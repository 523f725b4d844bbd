"""Time calibration against the textbook formula solved by `scipy.optimize.brentq`.

Run as `python benchmarks/bench_calibration.py`. Times are medians over random budgets, in one
process; read the ratios. The naive answers are also judged, at 80 digits: how many fail, how many
are not private, how many are far off.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence

import mpmath as mp
from scipy import optimize, special

from dpframe.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_sigma

Budgets = Sequence[tuple[float, float]]
COUNT = 2_000


def naive_mu(epsilon: float, delta: float) -> float:
    """Solve the textbook formula as it is printed."""

    def excess(mu: float) -> float:
        near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return float(special.ndtr(near) - math.exp(epsilon) * special.ndtr(far) - delta)

    return float(optimize.brentq(excess, 1e-12, 1e3, xtol=1e-16, rtol=1e-14, maxiter=500))


def budgets(epsilons: tuple[float, float], deltas: tuple[float, float]) -> Budgets:
    """Draw log-uniform budgets, all different: no answer comes from the cache."""
    rng = random.Random(20)

    def draw(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    return [(draw(*epsilons), draw(*deltas)) for _ in range(COUNT)]


def median_time(function: Callable[..., object], points: Sequence[tuple[float, ...]]) -> float:
    """Median seconds per call."""
    times = []
    for point in points:
        start = time.perf_counter()
        function(*point)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def is_private(epsilon: float, delta: float, mu: float) -> bool:
    """Tell whether mu-GDP implies (epsilon, delta)-DP, from the textbook formula in mpmath."""
    e, m = mp.mpf(epsilon), mp.mpf(mu)
    with mp.workdps(80):
        return bool(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m) <= delta)


def naive_faults(points: Budgets) -> tuple[int, int, int]:
    """Count naive answers that fail, are not private, or are off by 1e-9 of mu or more."""
    failed = unsafe = off = 0
    for epsilon, delta in points:
        try:
            mu = naive_mu(epsilon, delta)
        except (OverflowError, ValueError, RuntimeError):
            failed += 1
            continue
        unsafe += not is_private(epsilon, delta, mu)
        off += abs(mu / gaussian_mu(epsilon, delta) - 1) > 1e-9
    return failed, unsafe, off


def survive(epsilon: float, delta: float) -> None:
    """Run the naive solver and forget how it ends."""
    try:
        naive_mu(epsilon, delta)
    except (OverflowError, ValueError, RuntimeError):
        return


def report(title: str, points: Budgets) -> None:
    """Print the medians for one range of budgets."""
    ours, naive = median_time(gaussian_mu, points), median_time(survive, points)
    again = median_time(gaussian_mu, points)
    curve = [(epsilon, gaussian_mu(epsilon, delta)) for epsilon, delta in points]
    inverse = [(delta, mu) for (_, delta), (_, mu) in zip(points, curve, strict=True)]
    print(title)
    print(
        f"  gaussian_mu       {ours * 1e6:8.1f} us   (naive brentq {naive * 1e6:.1f} us,", end=" "
    )
    print(f"ratio {naive / ours:.2f})")
    print(f"  gaussian_mu again {again * 1e6:8.1f} us")
    print(f"  gaussian_sigma    {median_time(gaussian_sigma, points) * 1e6:8.1f} us   (mu known)")
    print(f"  gaussian_delta    {median_time(gaussian_delta, curve) * 1e6:8.1f} us")
    print(f"  gaussian_epsilon  {median_time(gaussian_epsilon, inverse) * 1e6:8.1f} us")
    failed, unsafe, off = naive_faults(points)
    print(f"  naive answers: {failed} failed, {unsafe} not private, {off} off by 1e-9 or more")


if __name__ == "__main__":
    report(
        f"everyday budgets, {COUNT:,} of epsilon in [0.01, 10], delta in [1e-10, 1e-3]",
        budgets((0.01, 10), (1e-10, 1e-3)),
    )
    print()
    report(
        f"all budgets, {COUNT:,} of epsilon in [1e-10, 1e4], delta in [1e-300, 0.5]",
        budgets((1e-10, 1e4), (1e-300, 0.5)),
    )
