"""Four errata of Balle and Wang (2018), and their Theorem 2, shown in numbers.

Borja Balle and Yu-Xiang Wang, "Improving the Gaussian Mechanism for Differential Privacy",
arXiv 1805.06530.

- Theorem 2 holds: noise of scale sigma = Delta / (2 delta) is (0, delta)-private. At least a fifth
  less is enough.
- Theorem 4 bounds sigma from below, by Delta / sqrt(2 epsilon), for a range of delta that is too
  wide: the factor exp(-3 epsilon) in it must go.
- Theorem 11, the mean squared error of James and Stein's estimator, has a ratio squared that must
  not be.
- James and Stein's estimator is not that of Bayes with the likeliest w^2 in place of w^2: that one
  has d where it has d - 2.
- Its risk is not within d^2 / (d - 2)^2 of the Bayes risk: where w is small, it is far more.

The bound on the risk of soft thresholds at sigma sqrt(2 log d), which their sparse denoising rests
on, holds (D. L. Donoho and I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", 1994,
Theorem 1).

Run it with `python examples/papers/errata.py`; the exit code is 1 if a number is not as claimed.
"""

import math

import numpy as np
from checks import Checks
from scipy.special import ndtr
from scipy.stats import norm

from dpframe.denoising.shrinkage import soft_threshold
from dpframe.privacy.gaussian import gaussian_delta, gaussian_sigma, least_sigma

ROUNDS = 400_000


def theorem_2(checks: Checks) -> None:
    """Integrate how far two normal densities are apart, at distance Delta / sigma = 2 delta.

    The sufficient condition that the loss L is at most 0 but with probability delta, with which the
    classical scale is proved, is no proof: L > 0 has probability Phi(delta), more than 1/2.
    """
    print("Theorem 2: sigma = Delta / (2 delta) is (0, delta)-private?")
    for delta in (0.001, 0.1, 0.4, 0.97):
        points, step = np.linspace(-12, 14, 1_000_001, retstep=True)
        moved, still = norm.pdf(points, loc=2 * delta), norm.pdf(points)
        attained = float((moved - still).clip(0).sum() * step)
        exact = gaussian_delta(0, 2 * delta)
        checks.close(f"delta = {delta:g}: attained, from the exact curve", exact, attained, 1e-8)
        checks.true(f"delta = {delta:g}: {attained:.6f} is less", attained < delta)
        if delta < 0.5:
            above = moved[moved > still].sum() * step
            checks.true(f"but P[L > 0] = {above:.4f} is more", above > 0.5 > delta)
    spared = gaussian_sigma(0, 1e-6) * 2e-6
    checks.close("sigma that is enough at delta = 1e-6, relative", spared, 0.797885, 1e-6)


def theorem_4(checks: Checks) -> None:
    """Find noise below the bound, inside the range that the paper states."""
    epsilon, delta = 1.0, 0.4
    bound = 1 / math.sqrt(2 * epsilon)
    stated = 0.5 - math.exp(-3 * epsilon) / math.sqrt(4 * math.pi * epsilon)
    corrected = 0.5 - 1 / math.sqrt(4 * math.pi * epsilon)
    enough = gaussian_sigma(epsilon, delta)
    print("\nTheorem 4: no Gaussian noise below Delta / sqrt(2 epsilon) is private enough?")
    checks.close("bound on sigma at epsilon = 1", bound, 0.7071, 1e-4)
    checks.close("sigma that is enough at delta = 0.4", enough, 0.5872, 1e-4)
    attained = gaussian_delta(epsilon, 1 / enough)
    checks.true(f"its delta, from the exact curve, is {attained:.6f} <= 0.4", attained <= delta)
    checks.true(f"delta = 0.4 is in the stated range, below {stated:.4f}", delta < stated)
    checks.true(f"but not in the corrected range, below {corrected:.4f}", delta >= corrected)
    checks.true("least_sigma claims no bound there", least_sigma(epsilon, delta) == 0)
    checks.true("the corrected theorem holds on a grid", corrected_theorem_4_holds())


def corrected_theorem_4_holds() -> bool:
    """Compare the exact calibration with the bound, up to the end of the corrected range.

    At sigma = Delta / sqrt(2 epsilon) the exact delta is 1/2 - e^epsilon Phi(-sqrt(2 epsilon)), and
    Phi(-x) <= exp(-x^2 / 2) / (x sqrt(2 pi)) makes it at least 1/2 - 1 / sqrt(4 pi epsilon).
    """
    for epsilon in np.geomspace(0.33, 300, 60):  # below 1 / pi the range is empty
        bound = 1 / math.sqrt(2 * epsilon)
        end = 0.5 - 1 / math.sqrt(4 * math.pi * epsilon)
        exact = 0.5 - math.exp(epsilon) * ndtr(-math.sqrt(2 * epsilon))
        if exact < end:
            return False
        for delta in end * np.array([1e-12, 1e-6, 0.01, 0.5, 0.9, 0.999]):
            if not least_sigma(epsilon, delta) == bound <= gaussian_sigma(epsilon, delta):
                return False
    return True


def theorem_11(checks: Checks) -> None:
    """Estimate the error of James and Stein's estimator under a Gaussian prior."""
    d, prior, noise = 5, 1.0, 1.0
    ratio = noise / (noise + prior)
    paper = d * noise * (1 - ((d - 2) / d) ** 2 * ratio)
    corrected = d * noise * (1 - (d - 2) / d * ratio)
    errors = james_stein_errors(d, prior, noise)
    realized, spread = errors.mean(), errors.std() / math.sqrt(ROUNDS)
    print("\nTheorem 11: the mean squared error of James and Stein's estimator, d = 5, w = sigma")
    print(f"       {ROUNDS} rounds: {realized:.4f} +- {spread:.4f}")
    checks.close("realized, corrected formula", realized, corrected, 5 * spread / corrected)
    checks.close("the formula of the paper", paper, 4.1, 1e-12)
    far = abs(realized - paper) / spread
    checks.true(f"which is {far:.0f} standard errors away", far > 50)


def likeliest_prior(checks: Checks) -> None:
    """Find the w^2 under which y ~ N(0, w^2 + sigma^2) is likeliest, on a grid."""
    d, noise = 5, 1.0
    squares = 40.0  # |y|^2
    variances = np.linspace(1, 20, 190_001)  # of y, by steps of 1e-4
    likelihood = -d / 2 * np.log(variances) - squares / (2 * variances)
    likeliest = float(variances[likelihood.argmax()])
    factor = noise / likeliest * squares / noise  # in 1 - factor sigma^2 / |y|^2
    print("\nJames and Stein's estimator is that of Bayes with the likeliest w^2?")
    checks.close("factor with the likeliest w^2, which is d", factor, d, 1e-4)
    checks.true(f"James and Stein have d - 2 = {d - 2}", abs(factor - (d - 2)) > 1)


def risk_beside_bayes(checks: Checks) -> None:
    """Compare the risk of James and Stein's estimator with that of Bayes, for a narrow prior."""
    d, noise = 5, 1.0
    prior = 0.1**2
    bayes = d * noise * prior / (prior + noise)
    errors = james_stein_errors(d, prior, noise)
    realized, spread = errors.mean() / bayes, errors.std() / math.sqrt(ROUNDS) / bayes
    closed = d * noise * (1 - (d - 2) / d * noise / (noise + prior)) / bayes
    stated = (d / (d - 2)) ** 2
    print("\nIts risk is within d^2 / (d - 2)^2 of the Bayes risk? d = 5, w = 0.1, sigma = 1")
    checks.close("ratio of the risks, closed form", closed, 41.0, 1e-12)
    checks.close("realized", realized, closed, 5 * spread / closed)
    checks.true(f"far above {stated:.2f}", realized - 5 * spread > 10 * stated)


def james_stein_errors(d: int, prior: float, noise: float) -> np.ndarray:
    """Draw squared errors of `(1 - (d - 2) sigma^2 / |y|^2) y`, with y ~ N(f, sigma^2)."""
    draw = np.random.default_rng(5)
    truth = draw.normal(scale=math.sqrt(prior), size=(ROUNDS, d))
    noisy = truth + draw.normal(scale=math.sqrt(noise), size=(ROUNDS, d))
    shrunk = (1 - (d - 2) * noise / (noisy**2).sum(axis=1, keepdims=True)) * noisy
    squares: np.ndarray = ((shrunk - truth) ** 2).sum(axis=1)
    return squares


def soft_thresholds(checks: Checks) -> None:
    """Compare the risk at f with (2 log d + 1) (1 / d + min(f^2, 1)), whose sum is the bound.

    Both are sums over coordinates, so that each bounds its own: sigma = 1, f from 0 to 60.
    """
    print("\nSoft thresholds err by at most (2 log d + 1) (1 + the sum of min(f^2, 1))?")
    value, threshold = 1.5, math.sqrt(2 * math.log(100))
    noisy = value + np.random.default_rng(5).normal(size=ROUNDS)
    squares = (soft_threshold(noisy, 1.0, threshold).values - value) ** 2
    spread = squares.std() / math.sqrt(ROUNDS)
    exact = float(risk_of_threshold(threshold, np.array(value)))
    checks.close("risk at f = 1.5, d = 100, drawn", squares.mean(), exact, 5 * spread / exact)
    values = np.linspace(0, 60, 600_001)
    for d in (1, 2, 10, 100, 10**6):
        threshold = math.sqrt(2 * math.log(d))
        bound = (2 * math.log(d) + 1) * (1 / d + np.minimum(values**2, 1))
        most = float((risk_of_threshold(threshold, values) / bound).max())
        checks.true(f"d = {d}: at most {most:.4f} of the bound", most <= 1 + 1e-12)
        checks.true("and a bound a third lower is passed", most > 0.66)


def risk_of_threshold(threshold: float, values: np.ndarray) -> np.ndarray:
    """Return the mean squared error of soft thresholds of f + N(0, 1), in closed form."""
    below, above = threshold - values, threshold + values
    kept = ndtr(below) - ndtr(-above)  # the probability that 0 is estimated
    bias: np.ndarray = (values**2 - 1 - threshold**2) * kept
    return 1 + threshold**2 + bias - below * norm.pdf(above) - above * norm.pdf(below)


def main() -> None:
    """Print and check all numbers."""
    checks = Checks()
    theorem_2(checks)
    theorem_4(checks)
    theorem_11(checks)
    likeliest_prior(checks)
    risk_beside_bayes(checks)
    soft_thresholds(checks)
    checks.finish()


if __name__ == "__main__":
    main()
