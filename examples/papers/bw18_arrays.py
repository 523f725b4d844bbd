"""Figures 3 and 4 of Balle and Wang (2018): means and sparse histograms, at delta = 1e-4.

Both are of 500 records, over the number d of dimensions or bins. James and Stein's estimator
shrinks toward zero, and the threshold is the universal one, as in the paper; thresholds chosen by
SURE, the posterior, the automatic choice and the line of answering zero are additions.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from bw18_common import (
    STANDARD_ERRORS,
    Measured,
    Settings,
    check_best,
    check_noise,
    claim,
    just_below_one,
    measure,
    panels_by_epsilon,
    plt,
    say_where_zero_is_as_good,
    show,
)
from checks import Checks

import dpframe
from dpframe.context import SYSTEM
from dpframe.denoising.shrinkage import james_stein, soft_threshold
from dpframe.privacy.gaussian import classical_sigma, gaussian_sigma
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.noise import integer_noise

DELTA = 1e-4
EPSILONS = (1.0, 0.1, 0.01)
RECORDS = 500
GRID = 2**20  # steps to the side of the cube: what rounding to them adds does not show
SIZES = (10, 30, 100, 300, 1000, 2000)
MANY = (1_000, 10_000, 100_000)  # bins of the panel of high dimension
OF_THE_PAPER = ("cGM", "aGM", "aGM-JS", "aGM-TH", "Laplace")


def figure_3(checks: Checks, settings: Settings) -> plt.Figure:
    """Error of the mean of vectors in a cube of side 1 around x_0 ~ N(0, I), over d."""
    sizes = (10, 2000) if settings.quick else SIZES
    repetitions = 10 if settings.quick else 100
    rng = np.random.default_rng(3)
    errors = _by_epsilon(_mean_errors(rng, d) for d in sizes for _ in range(repetitions))
    means = errors.mean
    show(f"Figure 3: L2 error of a mean of {RECORDS} vectors, {repetitions} repetitions", means)
    show("Standard errors of these means", errors.spread)
    for (epsilon, d), row in means.iterrows():
        sigma = gaussian_sigma(epsilon, DELTA, math.sqrt(d) / RECORDS)
        what = f"epsilon={epsilon:g}, d={d}, aGM"
        # mean length of d standard normal variables
        norm = math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))
        check_noise(checks, what, (row["aGM"] / norm) ** 2, sigma**2, d * repetitions)
    _check_james_stein(checks, means, repetitions)
    sure = {(1.0, 2000): 0.99, (0.1, 2000): 0.95}
    check_best(checks, means, "aGM-JS", OF_THE_PAPER, sure)
    _check_orders(checks, means, "aGM-JS")
    _compare_laplace(checks, means, "aGM-JS", repetitions)
    say_where_zero_is_as_good(means, OF_THE_PAPER, 0.95)
    return panels_by_epsilon(errors, "L2 error of the mean")


def _by_epsilon(repetitions: Iterable[pd.DataFrame]) -> Measured:
    """Average errors, the largest epsilon first."""
    mean, spread = (
        table.sort_index(level="epsilon", ascending=False, sort_remaining=False)
        for table in measure(repetitions)
    )
    return Measured(mean, spread)


def _mean_errors(rng: np.random.Generator, d: int) -> pd.DataFrame:
    """Return errors of all methods on one data set, by epsilon."""
    total = _total_of_vectors(rng, d)
    rows = {
        (epsilon, d): {
            name: float(np.linalg.norm(estimate - total)) / (RECORDS * GRID)
            for name, estimate in _totals(total, epsilon).items()
        }
        for epsilon in EPSILONS
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["epsilon", "d"])


def _total_of_vectors(rng: np.random.Generator, d: int) -> np.ndarray:
    """Draw vectors uniform in the cube of side 1 around x_0 ~ N(0, I), in whole steps; add them up.

    A coordinate of the total moves by at most GRID when a vector is replaced by another one in the
    cube: sensitivity sqrt(d) / n of the mean. That takes the place of the cube as public; in
    earnest one would then shrink toward x_0, not toward zero.
    """
    center = np.rint(rng.normal(size=d) * GRID).astype(np.int64)
    around = rng.integers(-GRID // 2, GRID // 2, (RECORDS, d), endpoint=True)
    return RECORDS * center + around.sum(axis=0)


def _totals(total: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    """Return private estimates of a sum of whole vectors, by method."""
    d = total.size
    moved = GRID * math.sqrt(d)
    sigma = gaussian_sigma(epsilon, DELTA, moved)
    wide = classical_sigma(just_below_one(epsilon), DELTA, moved)
    analytic = total + integer_noise(GAUSSIAN.curve, sigma, d, SYSTEM)
    return {
        "cGM": total + integer_noise(GAUSSIAN.curve, wide, d, SYSTEM),
        "aGM": analytic,
        "aGM-JS": james_stein(analytic, sigma, toward="zero").values,
        "aGM-TH": soft_threshold(analytic, sigma, "universal").values,
        "aGM-TH, SURE": soft_threshold(analytic, sigma, "sure").values,
        "Laplace": total + integer_noise(LAPLACE.curve, math.ceil(d * GRID / epsilon), d, SYSTEM),
        "zero": np.zeros(d),
    }


def _check_james_stein(checks: Checks, errors: pd.DataFrame, repetitions: int) -> None:
    """Compare with Theorem 11, corrected (see `errata.py`), where its factor stays above zero.

    The error of a coordinate is close to normal, and so a length has a relative standard error
    of 1 / sqrt(2 d) in each repetition, and lies below the root of the mean square by 1 / (4 d).
    """
    prior = 1 + 1 / (12 * RECORDS)  # variance of a coordinate of the mean
    for (epsilon, d), row in errors.iterrows():
        noise = gaussian_sigma(epsilon, DELTA, math.sqrt(d) / RECORDS) ** 2
        if d >= 1000 and noise < 10 * prior:
            expected = math.sqrt(d * noise * (1 - (d - 2) / d * noise / (noise + prior)))
            what = f"epsilon={epsilon:g}, d={d}: aGM-JS, corrected Theorem 11"
            most = STANDARD_ERRORS / math.sqrt(2 * d * repetitions) + 1 / d
            checks.close(what, row["aGM-JS"], expected, most)


def _check_orders(checks: Checks, errors: pd.DataFrame, denoiser: str) -> None:
    """Check that denoising gains an order of magnitude at tiny epsilon and in many dimensions."""
    epsilon, d = min(errors.index)[0], max(errors.index.unique("d"))
    row = errors.loc[(epsilon, d)]
    gain = row["aGM"] / row[denoiser]
    what = f"epsilon={epsilon:g}, d={d}: {denoiser} gains {gain:.1f} times over aGM"
    checks.true(f"{what} (at least 10)", gain >= 10)
    claim(f"{what}: two orders of magnitude", gain >= 100)


def _compare_laplace(checks: Checks, errors: pd.DataFrame, denoiser: str, repetitions: int) -> None:
    """Compare Laplace and Gaussian noise at epsilon 1: Appendix B.1 has it win for histograms.

    Plain noise has closed forms. A mean moves by d / n in L1 and by sqrt(d) / n in L2, so that the
    lengths of its errors are as sqrt(2 d) to sigma, that for sensitivity 1: Laplace noise is better
    for `2 d < sigma^2` alone. It would be better for all d with the scale of the L2 sensitivity,
    which does not protect. A histogram moves by 2 / n and sqrt(2) / n, whatever d is.
    """
    sigma = gaussian_sigma(1.0, DELTA)
    for d, row in errors.loc[1.0].iterrows():
        if denoiser == "aGM-JS":
            expected = math.sqrt(2 * d) / sigma
        else:
            expected = 1 / _gain_of_laplace(1.0)
        what, laplace = f"epsilon=1, d={d}: Laplace", row["Laplace"]
        most = 2 * STANDARD_ERRORS / math.sqrt(d * repetitions)
        checks.close(f"{what} relative to aGM", laplace / row["aGM"], expected, most)
        for rival in ("aGM", denoiser) if denoiser == "aGM-TH" else ():
            holds = laplace < row[rival]
            numbers = f"{laplace:.4g} against {row[rival]:.4g} of {rival}"
            claim(f"{what} is better (Appendix B.1), {numbers}", holds)
        if denoiser == "aGM-JS":
            would = math.sqrt(2) * d / RECORDS
            numbers = f"{would:.4g} against {row['aGM']:.4g} and {row[denoiser]:.4g}"
            what = f"epsilon=1, d={d}: at the L2 sensitivity, not private, Laplace would be better"
            checks.true(f"{what}, {numbers}", would < min(row["aGM"], row[denoiser]))
    if denoiser == "aGM-TH":
        for small, gain in ((0.1, 1.383), (0.01, 0.974)):  # not at small epsilon alone
            checks.close(
                f"epsilon={small:g}: plain aGM / Laplace", _gain_of_laplace(small), gain, 1e-3
            )
    if denoiser == "aGM-JS":
        largest = sigma**2 / 2
        print(f"because: Laplace noise is better for 2 d < {sigma:.4g}^2, up to d = {largest:.1f}")


def _gain_of_laplace(epsilon: float) -> float:
    """Return the L1 error of Gaussian noise on a histogram relative to that of Laplace noise."""
    q = math.exp(-epsilon / 2)
    return 2 * gaussian_sigma(epsilon, DELTA) / math.sqrt(math.pi) / (2 * q / (1 - q**2))


def _spread_out(
    checks: Checks, rng: np.random.Generator, sizes: Sequence[int], repetitions: int
) -> None:
    """Show why thresholds beat Laplace noise in a sparse histogram: it errs in all bins.

    A threshold errs in bins that hold records, Laplace noise in all d. Where records are spread
    over all bins, as in a histogram drawn with Dirichlet weights of 1, thresholds lose them.
    """
    for d in sizes:
        sparse = np.mean([np.unique(_bins(rng, d, 1 / d)).size for _ in range(repetitions)])
        spread = _by_epsilon(
            _histogram_errors(rng, d, (1.0,), weight=1.0) for _ in range(repetitions)
        )
        row = spread.mean["L1"].loc[(1.0, d)]
        numbers = f"Laplace {row['Laplace']:.4g}, aGM-TH {row['aGM-TH']:.4g}"
        print(
            f"because: d={d}: {sparse:.1f} bins hold records; with records in all bins, {numbers}"
        )
        if d <= 100:  # beyond, few records are left for a bin
            what = f"epsilon=1, d={d}, records in all bins: {numbers}"
            checks.true(f"{what}: Laplace is better", row["Laplace"] < row["aGM-TH"])


def figure_4(checks: Checks, settings: Settings) -> plt.Figure:
    """Error of normalized sparse histograms, over the number of bins."""
    rng = np.random.default_rng(4)
    sizes, repetitions = ((10, 300), 2) if settings.quick else (SIZES, 100)
    errors = _histograms_of(checks, rng, sizes, repetitions, EPSILONS)
    sure = {(1.0, d): 0.7 for d in sizes if d >= 300}
    check_best(checks, errors.mean, "aGM-TH", OF_THE_PAPER, sure)
    _check_orders(checks, errors.mean, "aGM-TH")
    _compare_laplace(checks, errors.mean, "aGM-TH", repetitions)
    _spread_out(checks, rng, sizes, min(repetitions, 20))
    say_where_zero_is_as_good(errors.mean, OF_THE_PAPER, 0.95)

    sizes, repetitions = ((500, 3000), 2) if settings.quick else (MANY, 20)
    many = _histograms_of(checks, rng, sizes, repetitions, EPSILONS[:1])
    check_best(checks, many.mean, "aGM-TH", OF_THE_PAPER, {(1.0, d): 0.5 for d in sizes})
    return panels_by_epsilon(errors, "L1 error of the histogram, normalized", many)


def _histograms_of(
    checks: Checks,
    rng: np.random.Generator,
    sizes: Sequence[int],
    repetitions: int,
    epsilons: Sequence[float],
) -> Measured:
    """Print errors, check those of plain noise, and return those in L1."""
    both = _by_epsilon(
        _histogram_errors(rng, d, epsilons) for d in sizes for _ in range(repetitions)
    )
    errors = Measured(both.mean["L1"], both.spread["L1"])
    show(
        f"Figure 4: L1 error of a histogram of {RECORDS} records, {repetitions} repetitions",
        errors.mean,
    )
    show("Standard errors of these means", errors.spread)
    show("L2 error of the same, which the posterior and auto make small", both.mean["L2"])
    for (epsilon, d), row in errors.mean.iterrows():
        sigma = gaussian_sigma(epsilon, DELTA, math.sqrt(2) / RECORDS)
        most = STANDARD_ERRORS * math.sqrt((math.pi / 2 - 1) / (d * repetitions))
        what = f"epsilon={epsilon:g}, d={d}, aGM: L1 error"
        checks.close(what, row["aGM"], d * sigma * math.sqrt(2 / math.pi), most)
    return errors


def _bins(rng: np.random.Generator, d: int, weight: float) -> np.ndarray:
    """Draw the bins of the records: the smaller the Dirichlet weight, the fewer bins hold many."""
    return rng.choice(d, RECORDS, p=rng.dirichlet(np.full(d, weight)))


def _histogram_errors(
    rng: np.random.Generator, d: int, epsilons: Sequence[float], weight: float | None = None
) -> pd.DataFrame:
    """Return errors of all methods on one data set, by epsilon, from releases of a frame."""
    bins = _bins(rng, d, 1 / d if weight is None else weight)
    frame = pd.DataFrame({"bin": bins})
    frame.dp.declare(keys={"bin": range(d)}, neighboring="replace", privacy_unit=dpframe.EACH_ROW)
    truth = np.bincount(bins, minlength=d)
    rows = {
        (epsilon, d): {
            (f"L{order}", name): float(np.linalg.norm(counts - truth, order)) / RECORDS
            for name, counts in _histograms(frame, epsilon).items()
            for order in (1, 2)
        }
        for epsilon in epsilons
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["epsilon", "d"])


def _histograms(frame: pd.DataFrame, epsilon: float) -> dict[str, np.ndarray]:
    """Return private counts by method; denoised ones are raised to zero where below."""

    def counts(mechanism: str) -> pd.DataFrame:
        level = just_below_one(epsilon) if mechanism == "classical" else epsilon
        delta = {} if mechanism == "laplace" else {"delta": DELTA}
        return frame.dp.count(by="bin", mechanism=mechanism, epsilon=level, **delta)

    def without_noise(released: pd.DataFrame, method: str, **options: str) -> np.ndarray:
        return released.dp.denoise(method, **options)["count_denoised"].to_numpy()

    analytic = counts("gaussian")
    return {
        "cGM": counts("classical")["count"].to_numpy(),
        "aGM": analytic["count"].to_numpy(),
        "aGM-JS": without_noise(analytic, "james_stein", toward="zero"),
        "aGM-TH": without_noise(analytic, "soft_threshold", threshold="universal"),
        "aGM-TH, SURE": without_noise(analytic, "soft_threshold", threshold="sure"),
        "Laplace": counts("laplace")["count"].to_numpy(),
        "aGM, posterior": without_noise(analytic, "posterior"),
        "auto": without_noise(counts("auto"), "auto"),
        "zero": np.zeros(len(analytic)),
    }
