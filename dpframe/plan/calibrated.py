"""Designs of a mechanism with the noise that an allowance demands; equal ones are kept.

A preview and its release, or releases made again and again, ask for the same. What is kept depends
on public facts alone.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpframe.plan.allocation import relative_variance, scale_designs
from dpframe.plan.choice import choose_designs
from dpframe.strategies import Design, Mechanism, Prediction, Workload
from dpframe.strategies.noise import deviations_of

_MOST_KEPT = 64


class Calibrated(NamedTuple):
    """A design with its noise and errors.

    Parameters
    ----------
    design
        What is measured and how it is decoded.
    scales
        Noise scales of the measured blocks: sigma of a Gaussian, b of a Laplace.
    deviations
        Standard deviations of the rounded noise of the blocks.
    predictions
        The errors of all outputs.
    variance
        The predicted variance of all outputs, relative to the ranges of what a row adds.
    """

    design: Design
    scales: tuple[float, ...]
    deviations: tuple[float, ...]
    predictions: tuple[Prediction, ...]
    variance: float


def calibrated(
    how: Mechanism, workloads: Sequence[Workload], allowed: Fraction
) -> tuple[Calibrated, ...] | None:
    """Choose a design for every workload, and scale its noise.

    Parameters
    ----------
    how
        The mechanism.
    workloads
        What is wanted of each table.
    allowed
        What movement may add up to, over all tables.

    Returns
    -------
    tuple or None
        One for each workload, in their order; `None` where the mechanism fits none of them.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60.
    """
    # arrays are not compared, nor kept
    plain = all(work.domain.chosen is None and work.known_rows is None for work in workloads)
    make = _kept if plain else _calibrated
    return make(how, tuple(workloads), allowed)


def _calibrated(
    how: Mechanism, workloads: tuple[Workload, ...], allowed: Fraction
) -> tuple[Calibrated, ...] | None:
    designs = choose_designs(how, workloads, allowed)
    if designs is None:
        return None
    pairs = list(zip(workloads, designs, strict=True))
    scaled = scale_designs(pairs, how.law, allowed)
    return tuple(
        _predicted(how, work, design, scales)
        for (work, design), scales in zip(pairs, scaled, strict=True)
    )


def _predicted(
    how: Mechanism, work: Workload, design: Design, scales: tuple[float, ...]
) -> Calibrated:
    """Say how far off a design is with some noise."""
    deviations = deviations_of(how.law, design, scales, work.cells)
    predictions = tuple(design.predict(deviations))
    variance = relative_variance(work, predictions)
    return Calibrated(design, scales, deviations, predictions, variance)


_kept = lru_cache(_MOST_KEPT)(_calibrated)
