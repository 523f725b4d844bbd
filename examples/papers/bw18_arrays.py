"""Figures 1, 3 and 4 of Balle and Wang (2018): calibration, means and sparse histograms."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from bw18_common import (
    DELTA,
    STANDARD_ERRORS,
    Settings,
    check_best,
    check_noise,
    claim,
    draw_lines,
    just_below_one,
    panels_by_epsilon,
    plt,
    show,
)
from checks import Checks

import dpframe
from dpframe.denoise.shrinkage import james_stein
from dpframe.denoise.thresholding import soft_threshold
from dpframe.errors import CalibrationError
from dpframe.privacy.calibration import gaussian_sigma
from dpframe.privacy.classical import classical_sigma, least_sigma
from dpframe.privacy.curve import gaussian_delta
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.noise import integer_noise

EPSILONS = (1.0, 0.1, 0.01)
RECORDS = 500
GRID = 2**20  # steps to the radius of the ball: what rounding to them adds does not show
SPREAD = 0.5  # root mean square distance of a vector from the center of its cloud
STYLES = {
    "cGM": "C3--",
    "aGM": "k-",
    "aGM-JS": "C0-o",
    "aGM-TH": "C1-s",
    "aGM-TH, SURE": "C1:s",
    "Laplace": "0.6",
    "aGM, empirical Bayes": "C2-^",
    "auto": "C4-v",
    "zero": "k:",
}
OF_THE_PAPER = ("cGM", "aGM", "aGM-JS", "aGM-TH", "Laplace")


def figure_1(checks: Checks, _: Settings) -> plt.Figure:
    """Scale of classical and analytic noise at sensitivity 1, and the variance saved."""
    epsilons, deltas = [0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0], [1e-4, DELTA, 1e-8]
    columns = {
        delta: pd.DataFrame([_calibrated(epsilon, delta) for epsilon in epsilons], epsilons)
        for delta in deltas
    }
    table = pd.concat(columns, axis=1, names=["delta", None]).rename_axis("epsilon")
    show("Figure 1: sigma at sensitivity 1 (classical at 1: the limit from below)", table)
    for delta in deltas:
        gain = table[delta]["gain"]
        checks.true(f"delta={delta:g}: gain near epsilon=1 {gain[1.0]:.4f} >= 1.4", gain[1.0] > 1.4)
        saved = 1 - 1 / gain.min()
        claim(f"delta={delta:g}: a third of the variance is saved, {saved:.1%}", saved >= 1 / 3)
    _check_range(checks)
    return _draw_calibration(deltas)


def _calibrated(epsilon: float, delta: float) -> dict[str, float]:
    classical = classical_sigma(just_below_one(epsilon), delta)
    analytic = gaussian_sigma(epsilon, delta)
    return {"classical": classical, "analytic": analytic, "gain": (classical / analytic) ** 2}


def _formula(epsilon: float, delta: float) -> float:
    """Return the classical formula outside of its range, where nothing is proved."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _check_range(checks: Checks) -> None:
    for epsilon in (0.0, 1.0, 10.0):
        try:
            classical_sigma(epsilon, DELTA)
        except CalibrationError:
            refused = True
        else:
            refused = False
        checks.true(f"classical noise at epsilon={epsilon:g} is refused", refused)
    real = gaussian_delta(10, 1 / _formula(10, DELTA))
    checks.true(f"its formula at (10, 1e-6) is not private: delta is {real:.3g}", real > DELTA)
    analytic = gaussian_sigma(0.01, DELTA) * 0.01
    checks.true(
        f"classical noise is {_formula(0.01, DELTA) * 0.01 / analytic:.3f} times the analytic at "
        "epsilon=0.01",
        _formula(0.01, DELTA) * 0.01 > 1.5 * analytic,
    )


def _draw_calibration(deltas: list[float]) -> plt.Figure:
    figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    high, low = np.geomspace(1e-3, just_below_one(1), 60), np.geomspace(1, 100, 60)
    for axes, epsilons, name in zip(
        panels, (high, low), ("classical", "formula only"), strict=False
    ):
        sigmas = {
            name: [_formula(epsilon, DELTA) for epsilon in epsilons],
            "analytic": [gaussian_sigma(epsilon, DELTA) for epsilon in epsilons],
            "lower bound": [least_sigma(epsilon, DELTA) or math.nan for epsilon in epsilons],
        }
        table = pd.DataFrame(sigmas, pd.Index(epsilons, name="epsilon"))
        styles = {
            "classical": "C3--",
            "formula only": "C3:",
            "analytic": "k-",
            "lower bound": "0.6",
        }
        draw_lines(axes, table, styles)
        axes.legend(fontsize=8)
    for delta in deltas:
        gains = [_calibrated(epsilon, delta)["gain"] for epsilon in high]
        panels[2].plot(high, gains, label=f"$\\delta$ = {delta:g}")
    panels[2].set(xscale="log", xlabel="epsilon", ylabel="variance, classical / analytic")
    panels[2].axhline(1.5, color="0.6", linestyle=":", label="a third saved")
    panels[2].legend(fontsize=8)
    panels[0].set_ylabel("sigma")
    return figure


def figure_3(checks: Checks, settings: Settings) -> plt.Figure:
    """Error of the mean of vectors in the unit ball, over the dimension."""
    sizes = (10, 300, 2000) if settings.quick else (10, 30, 100, 300, 1000, 2000)
    repetitions = 20 if settings.quick else 100
    rng = np.random.default_rng(3)
    errors = _average(_mean_errors(rng, d) for d in sizes for _ in range(repetitions))
    show(f"Figure 3: L2 error of a mean of {RECORDS} vectors, {repetitions} repetitions", errors)
    for (epsilon, d), row in errors.iterrows():
        sigma = gaussian_sigma(epsilon, DELTA, 2 / RECORDS)
        what = f"epsilon={epsilon:g}, d={d}, aGM"
        # mean length of d standard normal variables
        norm = math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))
        check_noise(checks, what, (row["aGM"] / norm) ** 2, sigma**2, d * repetitions)
    sure = {(1.0, d): 1.05 for d in sizes if d >= 100}
    check_best(checks, errors, "aGM-JS", OF_THE_PAPER, sure)
    _check_orders(checks, errors, "aGM-JS")
    _say_where_zero_is_as_good(errors)
    return panels_by_epsilon(errors, "L2 error of the mean", STYLES)


def _average(rows: Iterator[pd.DataFrame]) -> pd.DataFrame:
    means = pd.concat(rows).groupby(level=["epsilon", "d"], sort=False).mean()
    return means.sort_index(level="epsilon", ascending=False, sort_remaining=False)


def _mean_errors(rng: np.random.Generator, d: int) -> pd.DataFrame:
    """Return errors of all methods on one data set, by epsilon."""
    total = _whole_vectors(rng, d).sum(axis=0)
    rows = {
        (epsilon, d): {
            name: float(np.linalg.norm(estimate - total)) / (RECORDS * GRID)
            for name, estimate in _totals(total, epsilon).items()
        }
        for epsilon in EPSILONS
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["epsilon", "d"])


def _whole_vectors(rng: np.random.Generator, d: int) -> np.ndarray:
    """Draw a cloud of vectors in the unit ball, in whole steps and rounded towards zero.

    Its center is uniform in the ball; what falls outside is moved to the nearest point of it. No
    rounding makes a vector longer, so the sums move by at most 2 GRID when one is replaced.
    """
    center = rng.normal(size=d)
    center *= rng.random() ** (1 / d) / np.linalg.norm(center)
    vectors = center + rng.normal(scale=SPREAD / math.sqrt(d), size=(RECORDS, d))
    vectors /= np.maximum(1, np.linalg.norm(vectors, axis=1, keepdims=True))
    whole = np.trunc(vectors * (GRID - 1)).astype(np.int64)  # one step of room for floats
    assert int((whole**2).sum(axis=1).max()) <= GRID**2
    return whole


def _totals(total: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    """Return private estimates of a sum of whole vectors, by method."""
    d, moved = total.size, 2 * GRID
    sigma = gaussian_sigma(epsilon, DELTA, moved)
    classical = classical_sigma(just_below_one(epsilon), DELTA, moved)
    analytic = total + integer_noise(GAUSSIAN.curve, sigma, d)
    spread = math.ceil(moved * math.sqrt(d) / epsilon)  # the L1 norm is at most sqrt(d) times L2
    return {
        "cGM": total + integer_noise(GAUSSIAN.curve, classical, d),
        "aGM": analytic,
        "aGM-JS": james_stein(analytic, sigma, toward="zero").values,
        "aGM-TH": soft_threshold(analytic, sigma, "universal").values,
        "aGM-TH, SURE": soft_threshold(analytic, sigma).values,
        "Laplace": total + integer_noise(LAPLACE.curve, spread, d),
        "zero": np.zeros(d),
    }


def _check_orders(checks: Checks, errors: pd.DataFrame, denoiser: str) -> None:
    """Check that denoising gains orders of magnitude at tiny epsilon and in many dimensions."""
    epsilon, d = min(errors.index)[0], max(errors.index.unique("d"))
    row = errors.loc[(epsilon, d)]
    gain = row["aGM"] / row[denoiser]
    what = f"epsilon={epsilon:g}, d={d}: {denoiser} gains {gain:.1f} times over aGM"
    checks.true(f"{what} (at least 10)", gain >= 10)
    claim(f"{what}: two orders of magnitude", gain >= 100)


def _say_where_zero_is_as_good(errors: pd.DataFrame) -> None:
    """Name the settings in which no method of the paper is 5 % better than answering zero."""
    best = errors[list(OF_THE_PAPER)].min(axis=1)
    for epsilon, d in errors.index[best > 0.95 * errors["zero"]]:
        print(f"note: epsilon={epsilon:g}, d={d}: no method of the paper gains 5 % over zeros")


def figure_4(checks: Checks, settings: Settings) -> plt.Figure:
    """Error of sparse histograms, over the number of bins."""
    sizes = (10, 300, 2000) if settings.quick else (10, 30, 100, 300, 1000, 2000)
    repetitions = 6 if settings.quick else 100
    rng = np.random.default_rng(4)
    both = _average(_histogram_errors(rng, d) for d in sizes for _ in range(repetitions))
    errors = both["L1"]
    show(f"Figure 4: L1 error of {RECORDS} records in d bins, {repetitions} repetitions", errors)
    show("L2 error of the same, which empirical Bayes and auto make small", both["L2"])
    for (epsilon, d), row in errors.iterrows():
        expected = d * gaussian_sigma(epsilon, DELTA, math.sqrt(2)) * math.sqrt(2 / math.pi)
        most = STANDARD_ERRORS * math.sqrt((math.pi / 2 - 1) / (d * repetitions))
        checks.close(f"epsilon={epsilon:g}, d={d}, aGM: L1 error", row["aGM"], expected, most)
    sure = {(1.0, d): 0.7 for d in sizes if d >= 300}
    check_best(checks, errors, "aGM-TH", OF_THE_PAPER, sure)
    _check_orders(checks, errors, "aGM-TH")
    _say_where_zero_is_as_good(errors)
    return panels_by_epsilon(errors, "L1 error of the histogram", STYLES)


def _histogram_errors(rng: np.random.Generator, d: int) -> pd.DataFrame:
    """Return errors of all methods on one data set, by epsilon, from releases of a frame."""
    bins = rng.choice(d, RECORDS, p=rng.dirichlet(np.full(d, 1 / d)))
    frame = pd.DataFrame({"bin": bins})
    frame.dp.declare(keys={"bin": range(d)}, neighboring="replace", privacy_unit=dpframe.EACH_ROW)
    truth = np.bincount(bins, minlength=d)
    rows = {
        (epsilon, d): {
            (f"L{order}", name): float(np.linalg.norm(counts - truth, order))
            for name, counts in _histograms(frame, epsilon).items()
            for order in (1, 2)
        }
        for epsilon in EPSILONS
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
        "aGM-TH, SURE": without_noise(analytic, "soft_threshold"),
        "Laplace": counts("laplace")["count"].to_numpy(),
        "aGM, empirical Bayes": without_noise(analytic, "empirical_bayes"),
        "auto": without_noise(counts("auto"), "auto"),
        "zero": np.zeros(len(analytic)),
    }
