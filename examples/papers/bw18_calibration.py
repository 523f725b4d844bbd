"""Figure 1 of Balle and Wang (2018): how much noise analytic calibration saves.

Beyond the paper: what epsilon of 1 and more needs, beside their Theorem 4 as a lower bound, and
the delta below which less than a third of the variance is saved.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from bw18_common import Settings, claim, draw_lines, just_below_one, plt, show
from checks import Checks

from dpframe.errors import CalibrationError
from dpframe.privacy.gaussian import classical_sigma, gaussian_delta, gaussian_sigma, least_sigma

DELTA = 1e-6  # of the panels over epsilon
EPSILONS = (0.001, 0.01, 0.1, 0.5, 1.0)
DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10)
THIRD = 1.5  # gain at which a third of the variance is saved
LEAST = 1.4  # gain near epsilon 1, for delta from 2e-9 on
STYLES = {"classical": "C3--", "formula only": "C3:", "analytic": "k-", "lower bound": "0.6"}


def figure_1(checks: Checks, _: Settings) -> plt.Figure:
    """Scale of classical and analytic noise, and the gain in variance, over epsilon."""
    sigmas = pd.DataFrame(
        {"classical": classical(epsilon, DELTA), "analytic": gaussian_sigma(epsilon, DELTA)}
        for epsilon in EPSILONS
    ).set_index(pd.Index(EPSILONS, name="epsilon"))
    show("Figure 1: sigma at sensitivity 1, delta 1e-6 (classical at 1: limit from below)", sigmas)
    gains = gains_over_delta(DELTAS)
    show("Gain in variance, classical / analytic, over delta and epsilon", gains)
    _check_gains(checks, gains)
    _check_range(checks)
    return _draw()


def classical(epsilon: float, delta: float) -> float:
    """Return the classical scale, at 1 the limit from below."""
    return classical_sigma(just_below_one(epsilon), delta)


def gain(epsilon: float, delta: float) -> float:
    """Return the variance of the classical noise relative to that of the analytic noise."""
    return (classical(epsilon, delta) / gaussian_sigma(epsilon, delta)) ** 2


def gains_over_delta(deltas: Sequence[float]) -> pd.DataFrame:
    """Return the gain with a row for each delta and a column for each epsilon."""
    columns = {epsilon: [gain(epsilon, delta) for delta in deltas] for epsilon in EPSILONS}
    index = pd.Index(deltas, name="delta")
    return pd.DataFrame(columns, index).rename_axis(columns="epsilon")


def _check_gains(checks: Checks, gains: pd.DataFrame) -> None:
    checks.true("the gain falls with epsilon", bool((gains.diff(axis=1).iloc[:, 1:] < 0).all(None)))
    rising = bool((gains.sort_index().diff().iloc[1:] > 0).all(None))
    checks.true("the gain rises with delta", rising)
    for delta, row in gains.iterrows():
        saved = 1 - 1 / row.min()
        claim(f"delta={delta:g}: a third of the variance is saved, {saved:.1%}", saved >= 1 / 3)
    end = last_delta(1.0, THIRD)
    print(f"note: at epsilon just below 1, a third is saved for delta above {end:.3g}")
    checks.close("gain there", gain(1.0, end), THIRD, 1e-9)
    checks.close("delta from which the gain is 1.4", last_delta(1.0, LEAST) * 1e9, 2.0, 5e-3)


def last_delta(epsilon: float, least: float) -> float:
    """Return the delta above which the gain is at least so much, by bisection."""
    low, high = 1e-12, 1e-2
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gain(epsilon, middle) > least else (middle, high)
    return high


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


def _draw() -> plt.Figure:
    figure, panels = plt.subplots(1, 4, figsize=(16, 4), layout="constrained")
    high, low = np.geomspace(1e-3, just_below_one(1), 60), np.geomspace(1, 100, 60)
    _draw_sigmas(panels[0], high, "classical")
    panels[0].set(ylabel="sigma", title="$\\delta$ = 1e-6")
    by_epsilon = {f"$\\delta$ = {d:g}": [gain(e, d) for e in high] for d in DELTAS[::2]}
    gains = pd.DataFrame(by_epsilon, pd.Index(high, name="epsilon"))
    deltas = np.geomspace(1e-10, 1e-3, 60)
    over_delta = gains_over_delta(deltas).rename(columns="$\\epsilon$ = {:g}".format)
    for panel, drawn in ((panels[1], gains), (panels[2], over_delta)):
        draw_lines(panel, drawn)
        panel.axhline(THIRD, color="0.6", linestyle=":", label="a third saved")
        panel.legend(fontsize=8)
    panels[1].set(title="gain in variance, classical / analytic")
    panels[2].set(title="beyond the paper: the gain over $\\delta$")
    _draw_sigmas(panels[3], low, "formula only")
    panels[3].set(title="beyond the paper: $\\epsilon$ above 1")
    return figure


def _draw_sigmas(axes: plt.Axes, epsilons: np.ndarray, name: str) -> None:
    sigmas = {
        name: [_formula(epsilon, DELTA) for epsilon in epsilons],
        "analytic": [gaussian_sigma(epsilon, DELTA) for epsilon in epsilons],
    }
    if epsilons[0] >= 1:
        sigmas["lower bound"] = [least_sigma(epsilon, DELTA) for epsilon in epsilons]
    draw_lines(axes, pd.DataFrame(sigmas, pd.Index(epsilons, name="epsilon")), STYLES)
    axes.legend(fontsize=8)
