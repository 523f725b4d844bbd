"""Figures 2, 5 and 6 of Balle and Wang (2018): traffic at the junctions of a city.

A driver is protected, with at most 5 rides in an hour: a junction's count moves by at most 5, and
so does the length of the vector of counts. Methods of the paper know nothing but the noise and the
roads. Empirical Bayes and the automatic choice know besides that counts are whole and not negative.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from bw18_common import (
    DELTA,
    Settings,
    check_best,
    check_noise,
    claim,
    draw_lines,
    plt,
    show,
)
from checks import Checks
from city import City, manhattan, synthetic_city
from matplotlib.collections import LineCollection
from matplotlib.colors import SymLogNorm

from dpframe.denoise.choice import choose
from dpframe.denoise.methods import Facts, denoise_array
from dpframe.privacy.calibration import gaussian_sigma
from dpframe.privacy.classical import classical_sigma
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise import integer_noise
from dpframe.results.graphs import edges_of

RIDES = 5
EPSILON = 0.5  # of the map
OF_THE_PAPER: Mapping[str, tuple[str, dict[str, Any]]] = {
    "aGM-JS": ("james_stein", {"toward": "zero"}),
    "aGM-TH": ("soft_threshold", {"threshold": "universal"}),
    "aGM-TH, SURE": ("soft_threshold", {}),
    "aGM-W": ("tree_wavelets", {"trees": 1, "threshold": "universal"}),
    "aGM-W, SURE, 5 trees": ("tree_wavelets", {}),
    "aGM-TF": ("trend_filter", {"order": 0}),
}
STYLES = {
    "cGM": "C3--",
    "aGM": "k-",
    "aGM-JS": "C0-o",
    "aGM-TH": "C1-s",
    "aGM-TH, SURE": "C1:s",
    "aGM-W": "C5-D",
    "aGM-W, SURE, 5 trees": "C5:D",
    "aGM-TF": "C6-x",
    "aGM, empirical Bayes": "C2-^",
    "aGM, auto": "C4-v",
}


class Hour(NamedTuple):
    """Counts at the junctions in one hour, and which junctions are neighbors."""

    name: str
    counts: np.ndarray
    edges: np.ndarray
    town: City


def hours(settings: Settings) -> tuple[Hour, Hour]:
    """Return a busy and a quiet hour; rides made up are thinned for the quiet one."""
    if settings.data is None:
        town = synthetic_city(side=20 if settings.quick else 63)
        names = ("smooth hills", "rough and heavy-tailed, a fiftieth")
        thinned = np.random.default_rng(6).binomial(town.counts["rough and heavy-tailed"], 1 / 50)
        counts = (town.counts[names[0]].to_numpy(), thinned)
    else:
        town = manhattan(settings.data)
        names = ("yellow cabs, 00:45-01:45", "Uber, 12:00-13:00")
        counts = tuple(town.counts[name].to_numpy() for name in names)
        print("\nA New Year's night, and Uber at noon, stand in for 24 September 2014.")
    edges = edges_of(town.roads, town.nodes.index)
    busy, quiet = (
        Hour(name, count, edges, town) for name, count in zip(names, counts, strict=True)
    )
    return busy, quiet


def estimates(hour: Hour, epsilon: float) -> dict[str, np.ndarray]:
    """Return private estimates of the counts, by method."""
    n = hour.counts.size
    sigma = gaussian_sigma(epsilon, DELTA, RIDES)
    analytic = hour.counts + integer_noise(GAUSSIAN.curve, sigma, n)
    facts = Facts(GAUSSIAN, GAUSSIAN.standard_deviation(sigma), edges=hour.edges)
    known = facts._replace(lower=0.0, integer=True)
    found = {}
    if epsilon < 1:
        classical = classical_sigma(epsilon, DELTA, RIDES)
        found["cGM"] = hour.counts + integer_noise(GAUSSIAN.curve, classical, n)
    found["aGM"] = analytic
    for name, (method, options) in OF_THE_PAPER.items():
        found[name] = denoise_array(analytic, method, facts, options).values
    found["aGM, empirical Bayes"] = denoise_array(analytic, "empirical_bayes", known, {}).values
    found["aGM, auto"] = choose(analytic, known).denoised.values
    return found


def figure_5(checks: Checks, settings: Settings) -> plt.Figure:
    """Mean squared error in a busy hour, over epsilon."""
    return _over_epsilon(checks, settings, hours(settings)[0], 5)


def figure_6(checks: Checks, settings: Settings) -> plt.Figure:
    """Mean squared error in a quiet hour, over epsilon."""
    return _over_epsilon(checks, settings, hours(settings)[1], 6)


def _over_epsilon(checks: Checks, settings: Settings, hour: Hour, number: int) -> plt.Figure:
    some = (0.05, 0.5, 10)
    epsilons = some if settings.quick else (0.01, 0.03, 0.1, 0.3, 0.9, 3, 6, 10)
    repetitions = 1 if settings.quick else 3
    errors = pd.DataFrame(
        [_squared_errors(hour, epsilon, repetitions) for epsilon in epsilons],
        pd.Index(epsilons, name="epsilon"),
    )
    n, mean = hour.counts.size, hour.counts.mean()
    show(
        f"Figure {number}: mean squared error, {hour.name}: {n} junctions, {mean:.3g} on average, "
        f"repetitions: {repetitions}",
        errors,
    )
    show("The same, relative to aGM", errors.div(errors["aGM"], axis=0))
    _check_realized(checks, errors, n * repetitions)
    _check_gains(checks, errors)
    _claims(checks, errors, busy=number == 5)
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    draw_lines(axes, errors, STYLES)
    axes.set(ylabel="mean squared error", title=hour.name)
    axes.legend(fontsize=8)
    return figure


def _squared_errors(hour: Hour, epsilon: float, repetitions: int) -> pd.Series:
    found = [
        {
            name: float(np.mean((values - hour.counts) ** 2))
            for name, values in estimates(hour, epsilon).items()
        }
        for _ in range(repetitions)
    ]
    return pd.DataFrame(found).mean()


def _check_realized(checks: Checks, errors: pd.DataFrame, draws: int) -> None:
    for epsilon, row in errors.iterrows():
        sigma = gaussian_sigma(epsilon, DELTA, RIDES)
        variance = GAUSSIAN.standard_deviation(sigma) ** 2
        check_noise(checks, f"epsilon={epsilon:g}, aGM", row["aGM"], variance, draws)
        if epsilon < 1:
            sigma = classical_sigma(epsilon, DELTA, RIDES)
            variance = GAUSSIAN.standard_deviation(sigma) ** 2
            check_noise(checks, f"epsilon={epsilon:g}, cGM", row["cGM"], variance, draws)


def _check_gains(checks: Checks, errors: pd.DataFrame) -> None:
    """Check what holds whatever the traffic, with much room for the noise."""
    relative = errors.div(errors["aGM"], axis=0)
    for epsilon, row in relative[relative.index <= 0.1].iterrows():
        filtered = row["aGM-TF"]
        checks.true(f"epsilon={epsilon:g}: aGM-TF {filtered:.4f} of aGM <= 1/4", filtered <= 0.25)
    for epsilon, row in relative.iterrows():
        chosen = row["aGM, auto"]
        checks.true(f"epsilon={epsilon:g}: auto {chosen:.4f} of aGM <= 1.05", chosen <= 1.05)


def _claims(checks: Checks, errors: pd.DataFrame, busy: bool) -> None:
    """Compare trend filtering with wavelets, and soft thresholds with doing nothing."""
    sure = {epsilon: 0.8 for epsilon in errors.index if busy and epsilon >= 0.5}
    check_best(checks, errors, "aGM-TF", ["aGM-W"], sure)
    check_best(checks, errors, "aGM-TF", ["aGM-W, SURE, 5 trees"], {})
    for epsilon, row in errors[errors.index > 5].iterrows():
        universal, sure_chosen = row[["aGM-TH", "aGM-TH, SURE"]] / row["aGM"]
        what = f"epsilon={epsilon:g}: soft thresholds cost a little, {universal:.3f} times aGM"
        claim(f"{what} (with SURE {sure_chosen:.3f})", 1 <= universal <= 1.5)


def figure_2(checks: Checks, settings: Settings) -> plt.Figure:
    """Map true, released and denoised traffic."""
    hour = hours(settings)[0]
    found = estimates(hour, EPSILON)
    shown = {
        "true": hour.counts,
        f"released, epsilon {EPSILON:g}": found["aGM"],
        "trend filtering": found["aGM-TF"],
        "chosen automatically": found["aGM, auto"],
    }
    roots = {name: np.sqrt(np.mean((v - hour.counts) ** 2)) for name, v in shown.items()}
    show(f"Figure 2: {hour.name}", pd.DataFrame({"root mean squared error": roots}))
    true, released, filtered, _ = roots.values()
    assert true == 0
    checks.true(
        f"root mean squared error {filtered:.2f} after trend filtering <= 0.8 of {released:.2f}",
        filtered <= 0.8 * released,
    )
    return _maps(hour, shown)


def _maps(hour: Hour, shown: dict[str, np.ndarray]) -> plt.Figure:
    places = hour.town.nodes.to_numpy()
    width, height = np.ptp(places, axis=0)
    # a degree of latitude is longer than one of longitude, except in a synthetic city
    aspect = 1.0 if places.max() <= 1 else 1 / np.cos(np.radians(places[:, 1].mean()))
    figure, panels = plt.subplots(
        1, len(shown), figsize=(14, 0.7 + 3.1 * aspect * height / width), layout="constrained"
    )
    most = float(np.abs(hour.counts).max())
    norm = SymLogNorm(linthresh=10, vmin=-most, vmax=most)
    for axes, (title, values) in zip(panels, shown.items(), strict=True):
        axes.add_collection(LineCollection(places[hour.edges], colors="0.8", linewidths=0.4))
        order = np.argsort(np.abs(values))
        x, y = places[order].T
        points = axes.scatter(x, y, c=values[order], norm=norm, cmap="RdBu_r", s=4, zorder=2)
        axes.set(title=title, aspect=aspect)
        axes.set_axis_off()
    figure.colorbar(points, ax=panels, label="rides at a junction", fraction=0.03, pad=0.01)
    return figure
