"""Theorem 1 of the accuracy note on the Gaussian mechanism (2020), and what is sharper.

"Gaussian Mechanism Accuracy", a note of the Harvard Privacy Tools Project, kept with SmartNoise
Core. The accuracy of a release at a level alpha is the a with Pr[|error| > a] = alpha. For Gaussian
noise of the classical scale, at sensitivity Delta, Theorem 1 gives

    a = (2 Delta / epsilon) sqrt(ln(1.25 / delta)) erfinv(1 - alpha).

Every number is found four times: by this formula, by the scale and the quantile of the library, by
the intervals that a release states, and from the errors of real releases. The formula must come out
to all digits, the stated intervals to a millionth, and errors must be beyond as often as alpha
says, to 6 standard errors; otherwise the exit code is 1.

Beyond the note: the constant of its footnote, the analytic calibration, and epsilon of 1 or more,
where the theorem is not proved and the library refuses it.

Run it with `python examples/papers/accuracy_2020.py`, or with `--quick`.
"""

import argparse
import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from checks import Checks
from scipy.special import erfinv, ndtri

import dpframe as dpf
from dpframe.errors import CalibrationError
from dpframe.privacy.gaussian import TIGHT, classical_sigma, gaussian_sigma

STATED = 1e-6  # what rounding the noise to whole steps adds is far less
STANDARD_ERRORS = 6.0  # a false alarm in fewer than one of 10^7 checks


class Setting(NamedTuple):
    """A release of sums of a column in [0, bound], and the accuracy that Theorem 1 gives it."""

    bound: int
    epsilon: float
    delta: float
    alpha: float
    accuracy: str


SETTINGS = (Setting(100, 0.5, 1e-6, 0.05, "2077.0924"), Setting(100, 0.1, 1e-6, 0.01, "13648.8108"))


def theorem_1(sensitivity: float, epsilon: float, delta: float, alpha: float) -> float:
    """Return the accuracy as the note writes it."""
    root = math.sqrt(math.log(1.25 / delta))
    return 2 * sensitivity / epsilon * root * float(erfinv(1 - alpha))


def quantile(alpha: float) -> float:
    """Return how many standard deviations a normal error exceeds with probability alpha."""
    return -float(ndtri(alpha / 2))


def formula(checks: Checks, setting: Setting) -> float:
    """Compare the formula with the digits, and the library's scale with the formula."""
    bound, epsilon, delta, alpha, digits = setting
    accuracy = theorem_1(bound, epsilon, delta, alpha)
    checks.true(f"Theorem 1: {accuracy:.4f} is {digits}", f"{accuracy:.4f}" == digits)
    ours = classical_sigma(epsilon, delta, bound) * quantile(alpha)
    checks.close("scale and quantile of the library", ours, accuracy, 1e-11)
    return accuracy


def releases(checks: Checks, setting: Setting, accuracy: float, cells: int) -> None:
    """Compare with the interval that a release states, and with its errors."""
    frame = pd.DataFrame({"cell": np.arange(cells), "amount": np.arange(cells) % 101})
    frame.dp.declare(
        bounds={"amount": (0, setting.bound)},
        keys={"cell": range(cells)},
        privacy_unit=dpf.EACH_ROW,
    )
    released = frame.dp.sum(
        "amount", by="cell", epsilon=setting.epsilon, delta=setting.delta, mechanism="classical"
    )
    bars = released.dp.interval(1 - setting.alpha)
    # no sum is below 0, and no interval goes below it: what is stated shows where none is cut
    off = {"below": released["amount"] - bars["amount_low"]}
    off["above"] = bars["amount_high"] - released["amount"]
    for side, end in (("below", "amount_low"), ("above", "amount_high")):
        stated = off[side][bars[end] > 0]
        checks.close(f"least that intervals reach {side}", float(stated.min()), accuracy, STATED)
        checks.close(f"most that intervals reach {side}", float(stated.max()), accuracy, STATED)
    errors = (released["amount"] - frame.set_index("cell")["amount"]).abs().astype(float)
    beyond = float((errors > accuracy).mean())
    most = STANDARD_ERRORS * math.sqrt((1 - setting.alpha) / (setting.alpha * cells))
    checks.close(f"errors beyond it, of {cells}, over alpha", beyond / setting.alpha, 1.0, most)


def sharper(checks: Checks, setting: Setting, accuracy: float) -> None:
    """Show what the footnote's constant and the analytic calibration give."""
    bound, epsilon, delta, alpha, _ = setting
    tight = classical_sigma(epsilon, delta, bound, constant=TIGHT) * quantile(alpha)
    analytic = gaussian_sigma(epsilon, delta, bound) * quantile(alpha)
    for name, found in (("constant of the footnote", tight), ("analytic calibration", analytic)):
        print(f"       {name}: {found:.4f}, {1 - found / accuracy:.2%} less")
    checks.true("analytic < tightened < Theorem 1", analytic < tight < accuracy)


def out_of_range(checks: Checks) -> None:
    """Show that the theorem promises too much accuracy where epsilon is large."""
    print("\nepsilon of 1 or more, delta = 1e-6, alpha = 0.05, sensitivity 1")
    for epsilon in (1, 5, 10):
        try:
            classical_sigma(epsilon, 1e-6)
        except CalibrationError:
            refused = True
        else:
            refused = False
        checks.true(f"classical noise at epsilon = {epsilon} is refused", refused)
    stated = theorem_1(1, 10, 1e-6, 0.05)
    needed = gaussian_sigma(10, 1e-6) * quantile(0.05)
    checks.close("Theorem 1 / what private noise needs, at 10", stated / needed, 0.979, 1e-3)


def main() -> None:
    """Print and check all numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer cells in each release")
    cells = 20_000 if parser.parse_args().quick else 1_000_000
    checks = Checks()
    for setting in SETTINGS:
        bound, epsilon, delta, alpha, _ = setting
        print(f"\nDelta = {bound}, epsilon = {epsilon:g}, delta = {delta:g}, alpha = {alpha:g}")
        accuracy = formula(checks, setting)
        releases(checks, setting, accuracy, cells)
        sharper(checks, setting, accuracy)
    out_of_range(checks)
    checks.finish()


if __name__ == "__main__":
    main()
