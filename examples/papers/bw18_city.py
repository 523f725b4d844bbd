"""Figures 2, 5 and 6 of Balle and Wang (2018): traffic at the junctions of a city.

A driver is protected, with at most 5 rides in an hour: a junction's count moves by at most 5, and
so does the length of the vector of counts. Methods of the paper know nothing but the noise and the
roads. Additions: thresholds chosen by SURE, the posterior and the automatic choice, which know
besides that counts are whole and not negative, the line of answering zero, and error bars.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from bw18_common import (
    STANDARD_ERRORS,
    Measured,
    Settings,
    check_best,
    check_noise,
    claim,
    draw_measured,
    measure,
    plt,
    say_where_zero_is_as_good,
    show,
)
from checks import Checks
from city import City, manhattan, synthetic_city
from matplotlib.collections import LineCollection
from matplotlib.colors import SymLogNorm

from dpframe.context import SYSTEM
from dpframe.denoising.methods import Facts, choose, denoise_array
from dpframe.privacy.gaussian import classical_sigma, gaussian_sigma
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise import integer_noise
from dpframe.steps.denoise_checks import edges_of

DELTA = 1e-6
RIDES = 5
EPSILON = 0.5  # of the maps
OF_THE_PAPER: Mapping[str, tuple[str, dict[str, Any]]] = {
    "aGM-JS": ("james_stein", {"toward": "zero"}),
    "aGM-TH": ("soft_threshold", {"threshold": "universal"}),
    "aGM-TH, SURE": ("soft_threshold", {"threshold": "sure"}),
    "aGM-W": ("tree_wavelets", {"trees": 1, "threshold": "universal"}),
    "aGM-W, SURE, 5 trees": ("tree_wavelets", {}),
    "aGM-TF": ("trend_filter", {"order": 0}),
}


class Hour(NamedTuple):
    """Counts at the junctions in one hour, and which junctions are neighbors."""

    name: str
    counts: np.ndarray
    edges: np.ndarray
    town: City
    busy: bool


def noon_and_midnight(settings: Settings) -> tuple[Hour, Hour]:
    """Return two hours of a city; rides made up are thinned for midnight."""
    if settings.data is None:
        town = synthetic_city(side=12 if settings.quick else 63)
        thinned = np.random.default_rng(6).binomial(town.counts["rough and heavy-tailed"], 1 / 50)
        noon = ("made-up noon, smooth hills", town.counts["smooth hills"].to_numpy(), True)
        midnight = ("made-up midnight, few and scattered", thinned, False)
    else:
        town = manhattan(settings.data)
        uber, yellow = "Uber, 12:00-13:00", "yellow cabs, 00:45-01:45"
        noon = (f"noon: {uber}, 30 April 2014", town.counts[uber].to_numpy(), False)
        midnight = (f"midnight: {yellow}, 1 January 2013", town.counts[yellow].to_numpy(), True)
        print("\nUber at noon and a New Year's night stand in for 24 September 2014.")
    edges = edges_of(town.roads, town.nodes.index)
    first, second = (
        Hour(name, counts, edges, town, busy) for name, counts, busy in (noon, midnight)
    )
    return first, second


def estimates(hour: Hour, epsilon: float) -> dict[str, np.ndarray]:
    """Return private estimates of the counts, by method."""
    n = hour.counts.size
    sigma = gaussian_sigma(epsilon, DELTA, RIDES)
    analytic = hour.counts + integer_noise(GAUSSIAN.curve, sigma, n, SYSTEM)
    facts = Facts(GAUSSIAN, GAUSSIAN.standard_deviation(sigma), edges=hour.edges)
    known = facts._replace(nonnegative=True, integer=True)
    found = {}
    if epsilon < 1:
        classical = classical_sigma(epsilon, DELTA, RIDES)
        found["cGM"] = hour.counts + integer_noise(GAUSSIAN.curve, classical, n, SYSTEM)
    found["aGM"] = analytic
    for name, (method, options) in OF_THE_PAPER.items():
        found[name] = denoise_array(analytic, method, facts, options).values
    found["aGM, posterior"] = denoise_array(analytic, "posterior", known, {}).values
    found["auto"] = choose(analytic, known).denoised.values
    found["zero"] = np.zeros(n)
    return found


def figure_2(checks: Checks, settings: Settings) -> plt.Figure:
    """Map the traffic at midnight: true, released, denoised by wavelets and trend filtering."""
    return _maps(checks, noon_and_midnight(settings)[1], 2)


def figure_5(checks: Checks, settings: Settings) -> plt.Figure:
    """Map the traffic at noon."""
    return _maps(checks, noon_and_midnight(settings)[0], 5)


def _maps(checks: Checks, hour: Hour, number: int) -> plt.Figure:
    found = estimates(hour, EPSILON)
    shown = {
        "true": hour.counts,
        f"released (aGM), $\\epsilon$ = {EPSILON:g}": found["aGM"],
        "wavelets (aGM-W)": found["aGM-W"],
        "trend filtering (aGM-TF)": found["aGM-TF"],
        "chosen automatically": found["auto"],
    }
    errors = {
        name: np.sqrt(np.mean((found[name] - hour.counts) ** 2))
        for name in ("aGM", "aGM-W", "aGM-TF", "auto", "zero")
    }
    show(f"Figure {number}: {hour.name}", pd.DataFrame({"root mean squared error": errors}))
    for name in ("aGM-TF", "auto"):
        what = f"root mean squared error of {name} {errors[name]:.2f} <= 0.8 of {errors['aGM']:.2f}"
        checks.true(what, errors[name] <= 0.8 * errors["aGM"])
    return _draw_maps(hour, shown)


def _draw_maps(hour: Hour, shown: Mapping[str, np.ndarray]) -> plt.Figure:
    places = hour.town.nodes.to_numpy()
    width, height = np.ptp(places, axis=0)
    # a degree of latitude is longer than one of longitude, except in a synthetic city
    aspect = 1.0 if places.max() <= 1 else 1 / np.cos(np.radians(places[:, 1].mean()))
    figure, panels = plt.subplots(
        1, len(shown), figsize=(16, 1 + 2.9 * aspect * height / width), layout="constrained"
    )
    most = float(np.abs(hour.counts).max())
    norm = SymLogNorm(linthresh=min(10, most), vmin=-most, vmax=most)
    for axes, (title, values) in zip(panels, shown.items(), strict=True):
        axes.add_collection(LineCollection(places[hour.edges], colors="0.8", linewidths=0.4))
        order = np.argsort(np.abs(values))
        x, y = places[order].T
        points = axes.scatter(x, y, c=values[order], norm=norm, cmap="RdBu_r", s=4, zorder=2)
        axes.set_title(title, fontsize=10)
        axes.set_aspect(aspect)
        axes.set_axis_off()
    figure.suptitle(hour.name)
    figure.colorbar(points, ax=panels, label="rides at a junction", fraction=0.03, pad=0.01)
    return figure


def figure_6(checks: Checks, settings: Settings) -> plt.Figure:
    """Mean squared error over epsilon, at noon and at midnight."""
    epsilons = (0.05, 10) if settings.quick else (0.01, 0.03, 0.1, 0.3, 0.9, 3, 6, 10)
    repetitions = 2 if settings.quick else 5
    figure, panels = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axes, hour in zip(panels, noon_and_midnight(settings), strict=True):
        errors = measure(
            _squared_errors(hour, epsilon) for epsilon in epsilons for _ in range(repetitions)
        )
        _report(hour, errors, repetitions)
        _check(checks, hour, errors.mean, hour.counts.size * repetitions)
        draw_measured(axes, errors)
        axes.set(title=hour.name)
    panels[0].set_ylabel("mean squared error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure


def _squared_errors(hour: Hour, epsilon: float) -> pd.DataFrame:
    errors = {
        name: float(np.mean((values - hour.counts) ** 2))
        for name, values in estimates(hour, epsilon).items()
    }
    return pd.DataFrame([errors], pd.Index([epsilon], name="epsilon"))


def _report(hour: Hour, errors: Measured, repetitions: int) -> None:
    show(
        f"Figure 6: mean squared error, {hour.name}: {hour.counts.size} junctions, "
        f"{hour.counts.mean():.3g} on average, repetitions: {repetitions}",
        errors.mean,
    )
    show("Standard errors of these means", errors.spread)
    show("The same, relative to aGM", errors.mean.div(errors.mean["aGM"], axis=0))


def _check(checks: Checks, hour: Hour, errors: pd.DataFrame, draws: int) -> None:
    _check_realized(checks, errors, draws)
    _check_gains(checks, errors, STANDARD_ERRORS / math.sqrt(draws))
    _claims(checks, errors, hour.busy)
    say_where_zero_is_as_good(errors, ["cGM", "aGM", *OF_THE_PAPER], 0.9)


def _check_realized(checks: Checks, errors: pd.DataFrame, draws: int) -> None:
    for epsilon, row in errors.iterrows():
        sigma = gaussian_sigma(epsilon, DELTA, RIDES)
        variance = GAUSSIAN.standard_deviation(sigma) ** 2
        check_noise(checks, f"epsilon={epsilon:g}, aGM", row["aGM"], variance, draws)
        if epsilon < 1:
            sigma = classical_sigma(epsilon, DELTA, RIDES)
            variance = GAUSSIAN.standard_deviation(sigma) ** 2
            check_noise(checks, f"epsilon={epsilon:g}, cGM", row["cGM"], variance, draws)


def _check_gains(checks: Checks, errors: pd.DataFrame, room: float) -> None:
    """Check what holds whatever the traffic, with room for the noise."""
    relative = errors.div(errors["aGM"], axis=0)
    for epsilon, row in relative[relative.index <= 0.1].iterrows():
        filtered, most = row["aGM-TF"], 0.25 + room
        what = f"epsilon={epsilon:g}: aGM-TF {filtered:.4f} of aGM <= {most:.3f}"
        checks.true(what, filtered <= most)
    for epsilon, row in relative.iterrows():
        chosen, most = row["auto"], 1.05 + room
        checks.true(f"epsilon={epsilon:g}: auto {chosen:.4f} of aGM <= {most:.3f}", chosen <= most)


def _claims(checks: Checks, errors: pd.DataFrame, busy: bool) -> None:
    """Compare trend filtering with wavelets, and soft thresholds with doing nothing."""
    sure = {epsilon: 0.8 for epsilon in errors.index if busy and epsilon >= 0.5}
    check_best(checks, errors, "aGM-TF", ["aGM-W"], sure)
    check_best(checks, errors, "aGM-TF", ["aGM-W, SURE, 5 trees"], {})
    for epsilon, row in errors[errors.index > 5].iterrows():
        universal, sure_chosen = row[["aGM-TH", "aGM-TH, SURE"]] / row["aGM"]
        what = f"epsilon={epsilon:g}: soft thresholds cost a little, {universal:.3f} times aGM"
        claim(f"{what} (with SURE {sure_chosen:.3f})", 1 <= universal <= 1.5)
