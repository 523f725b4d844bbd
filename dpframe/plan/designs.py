"""Designs of a mechanism with the noise that an allowance demands; equal ones are kept.

A preview and its release, or releases made again and again, ask for the same. What is kept depends
on public facts alone.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dpframe.checker.noise import BlockNoise
from dpframe.errors import CalibrationError
from dpframe.forks import cached_property
from dpframe.privacy.amounts import round_up
from dpframe.privacy.law import Law
from dpframe.privacy.noise import MAX_SCALE
from dpframe.privacy.sensitivity import Norm
from dpframe.strategies import Mechanism, Planner
from dpframe.strategies.base import Design, Estimate, Need, Prediction, Workload
from dpframe.strategies.weighted import WeightedDesign

_ORDINARY = 2**20, 2.0**39  # with factors and scales up to these, no product is near the limit
_WIDE = 2.0**50  # of noise so wide, rounding adds nothing that shows
_SMALL = 2**11  # cells of the plans of which many are kept


@dataclass(frozen=True, eq=False)
class NoisyDesign:
    """Integers that are measured together, with their noise; equal to itself alone.

    Parameters
    ----------
    workload
        What is wanted.
    design
        What is measured and how it is decoded.
    law
        The law of the noise.
    scales
        Noise scales of the measured blocks: sigma of a Gaussian, b of a Laplace.
    """

    workload: Workload
    design: Design
    law: Law
    scales: tuple[float, ...]

    @cached_property
    def needs(self) -> list[Need]:
        """What engines are asked for, in order."""
        return sorted(self.design.needs)

    def encode(self, totals: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Turn totals into the integers that noise is added to."""
        return self.design.encode(dict(zip(self.needs, totals, strict=True)))

    def decode(self, measured: Sequence[np.ndarray]) -> list[Estimate]:
        """Turn noisy integers into estimates of the outputs."""
        return self.design.decode(measured, self.deviations)

    @cached_property
    def members(self) -> dict[int, int]:
        """With how many coordinates, itself among them, one of each block is drawn.

        The first group of a joined design has one in every cell, or a single one for a common
        block.
        """
        design = self.design
        members = {k: len(group) for group in design.groups for k in group}
        if design.joined:
            first = design.groups[0]
            number = sum(1 if k in design.common else self.workload.cells for k in first)
            members |= dict.fromkeys(first, number)
        return members

    @cached_property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation of the rounded noise of every block.

        Where blocks have layers, these say what noise of a scale does: then it is the scale.
        """
        if self.design.layers is not None:
            return tuple(self.scales)
        kinds = [(scale, self.members[k]) for k, scale in enumerate(self.scales)]
        deviations = {kind: self.law.deviation_among(*kind) for kind in dict.fromkeys(kinds)}
        return tuple(deviations[kind] for kind in kinds)

    @cached_property
    def variance(self) -> float:
        """Variance of all outputs wanted, relative to the ranges of what a row adds."""
        return relative_variance(self.workload, self.design.errors(self.deviations))

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """The errors of all outputs."""
        return tuple(self.design.predict(self.deviations))

    @cached_property
    def noise(self) -> BlockNoise:
        """The noise of the blocks: what is checked is drawn."""
        design = self.design
        profile = None if design.layers is None else design.layers.profile
        return BlockNoise(self.law, self.scales, design.groups, design.joined, profile)

    @property
    def is_over_cells(self) -> bool:
        """Whether all that is measured is so over many cells, which then err together."""
        design = self.design
        return design.layers is not None or len(design.common) == len(self.scales)

    @cached_property
    def shared(self) -> list[tuple[int, ...]]:
        """Blocks whose noise is drawn together: of several, or over all cells."""
        return [
            group
            for position, group in enumerate(self.design.groups)
            if len(group) > 1 or (position == 0 and self.design.joined)
        ]


Designs: TypeAlias = Mapping[Workload, NoisyDesign]
"""A design with its noise for every workload; equal ones share it."""


def calibrate(mechanism: Mechanism, workloads: Sequence[Workload], allowed: Fraction) -> Designs:
    """Choose a design for every workload, and scale its noise.

    Parameters
    ----------
    mechanism
        The mechanism.
    workloads
        What is wanted of each table.
    allowed
        What movement may add up to, over all tables.

    Returns
    -------
    mapping
        Empty where the mechanism fits none of them, or not all.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60.
    """
    make: Callable[..., Designs] = _keep_many
    if any(work.known_rows is not None for work in workloads):  # arrays are not kept
        make = _calibrate
    elif sum(work.cells for work in workloads) > _SMALL:
        make = _keep_few
    return make(mechanism, tuple(workloads), allowed)


def _calibrate(mechanism: Mechanism, workloads: tuple[Workload, ...], allowed: Fraction) -> Designs:
    times, law = Counter(workloads), mechanism.law
    designs = choose_designs(mechanism, times, allowed)
    scales = scale_designs(designs, times, law, allowed) if designs else {}
    return {work: NoisyDesign(work, design, law, scales[work]) for work, design in designs.items()}


_keep_many = lru_cache(maxsize=512)(_calibrate)  # suggestions plan hundreds, every time
_keep_few = lru_cache(maxsize=8)(_calibrate)  # what "auto" compares for one request


def choose_designs(
    mechanism: Mechanism, times: Mapping[Workload, int], allowed: Fraction
) -> dict[Workload, Design]:
    """Choose a design for every workload; none where the mechanism does not fit them all.

    Each candidate is given the same part of the allowance, alone; that with the least relative
    variance is taken, the first among equals. Beside other tables, one may do as well or better
    with the plain designs of the law.

    Parameters
    ----------
    mechanism
        The mechanism.
    times
        What is wanted of each table, and of how many.
    allowed
        What movement may add up to, over all tables.
    """
    law, number = mechanism.law, sum(times.values())
    fitting = {work: _fitting(mechanism.planners(work), work, law) for work in times}
    if not any(fitting.values()):
        return {}
    if number > 1:
        for work in fitting:
            fitting[work] += _fitting(mechanism.plain_planners(work), work, law)
    if not all(fitting.values()):
        return {}
    part = allowed / number
    return {work: _least(designs, work, law, part) for work, designs in fitting.items()}


def _fitting(planners: Sequence[Planner], workload: Workload, law: Law) -> list[Design]:
    """Designs of the strategies that apply."""
    made = [planner(workload, law) for planner in planners]
    designs = [design for design in made if design is not None]
    if workload.weight == 1:
        return designs
    return [WeightedDesign(design, workload.weight) for design in designs]


def _least(designs: Sequence[Design], workload: Workload, law: Law, part: Fraction) -> Design:
    """Return the first design of the least relative variance."""
    if len(designs) == 1:
        return designs[0]
    return min(designs, key=lambda design: _variance(design, workload, law, part))


def _variance(design: Design, workload: Workload, law: Law, part: Fraction) -> float:
    """Predict the relative variance of a design that may move so far; infinite if it cannot."""
    moved = Fraction(design.movement(design.scales, law)) / part
    if _is_too_wide(moved, widest(design, design.scales), law.norm):
        return math.inf
    factor = float(moved) ** (1 / law.norm)
    wide = (min(factor * scale, MAX_SCALE) for scale in design.scales)
    try:
        scales = tuple(map(law.settle, wide, design.scales))
    except CalibrationError:  # the amount is too small for the law
        return math.inf
    return NoisyDesign(workload, design, law, scales).variance


def scale_designs(
    designs: Mapping[Workload, Design], times: Mapping[Workload, int], law: Law, allowed: Fraction
) -> dict[Workload, tuple[float, ...]]:
    """Return noise scales for every block of every design.

    They are the relative scales of the designs, times a factor per design that shares the
    allowance, times the smallest common factor, up to a few ulps, for which the total movement is
    at most the allowance.

    Parameters
    ----------
    designs, times
        Designs by the workloads that they are for, and for how many tables each is.
    law
        Law of the noise.
    allowed
        mu^2 for Gaussian and epsilon for Laplace noise.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60.
    """
    balanced = {work: design.scales for work, design in designs.items()}
    if sum(times.values()) > 1:
        balanced = {work: _balance(work, design, law) for work, design in designs.items()}

    def loss(factor: float) -> Fraction:
        moved = (
            times[work] * design.movement(_fractions(factor, balanced[work]), law)
            for work, design in designs.items()
        )
        return sum(moved, start=Fraction(0))

    moves = {work: design.movement(balanced[work], law) for work, design in designs.items()}
    moved = Fraction(math.fsum(moves[work] for work in Counter(times).elements()))
    if moved == 0:
        return balanced
    least = moved / allowed
    largest = max(widest(design, balanced[work]) for work, design in designs.items())
    if _is_too_wide(least, largest, law.norm):
        raise _too_wide()
    # floats say where to start, and fractions judge
    start = float(least) ** (1 / law.norm)
    factor = round_up(start, lambda factor: loss(factor) <= allowed)
    settled = {}
    for work, design in designs.items():
        scales = tuple(factor * scale for scale in balanced[work])
        # products are rounded: the last digit may be above the limit, which draws would refuse
        if widest(design, scales) > MAX_SCALE:
            raise _too_wide()
        settled[work] = tuple(map(law.settle, scales, design.scales))
    return settled


def _fractions(factor: float, scales: Sequence[float]) -> list[Fraction]:
    """Return the scales times a factor; of equal ones, the same object."""
    exact = {scale: Fraction(factor * scale) for scale in set(scales)}
    return [exact[scale] for scale in scales]


def _is_too_wide(least: Fraction, largest: float, norm: Norm) -> bool:
    """Whether a scale is above the limit, times a factor to the power `norm`."""
    if least <= _ORDINARY[0] and largest <= _ORDINARY[1]:  # no large powers of fractions
        return False
    return least * Fraction(largest) ** norm > Fraction(MAX_SCALE) ** norm


def _too_wide() -> CalibrationError:
    return CalibrationError(
        "the noise needed has a scale above the limit of 2**60 on the integers measured. Spend "
        "more, or declare tighter bounds or caps.",
        parameter="epsilon",
    )


def _balance(workload: Workload, design: Design, law: Law) -> tuple[float, ...]:
    """Relative scales at which a design moves in proportion to its best share."""
    moved, norm = design.movement(design.scales, law), law.norm
    if moved == 0:
        return design.scales
    wide = _WIDE / widest(design, design.scales)
    scales = tuple(wide * scale for scale in design.scales)
    unit = moved ** (1 / norm) / wide  # of its noise when it moves by 1, but for rounding
    variance = NoisyDesign(workload, design, law.limit, scales).variance * unit * unit
    factor = (moved / variance ** (norm / (norm + 2))) ** (1 / norm) if variance else 1.0
    return tuple(factor * scale for scale in design.scales)


def widest(design: Design, scales: Sequence[float]) -> float:
    """Return the largest scale of all integers that are measured, at these scales of blocks."""
    factor = 1.0 if design.layers is None else float(design.layers.profile.max(initial=0.0))
    return max(scales) * factor


def narrowest(design: Design, scales: Sequence[float]) -> float:
    """Return the smallest scale above 0 of all integers that are measured; infinite if none is."""
    factors = [1.0] if design.layers is None else design.layers.profile
    least = min((factor for factor in factors if factor), default=math.inf)
    return min((scale for scale in scales if scale), default=math.inf) * float(least)


def relative_variance(workload: Workload, errors: Sequence[float]) -> float:
    """Return the variance of all outputs wanted, relative to the ranges of what a row adds.

    The number of rows counts with its weight, once more where it is an output itself. Of several
    tables of a query, it is the mean, by their weights; those of several queries add up.
    """
    domain, size = workload.domain, len(workload.outputs)
    outputs = (*workload.outputs, workload.everyone)
    widths = [workload.width(output) * workload.weight for output in outputs]
    rows = outputs.index(workload.everyone)

    def of_table(own: Sequence[float]) -> float:
        squares = [(error / width) ** 2 for error, width in zip(own, widths, strict=False)]
        return sum(squares[:size]) + workload.rows_weight * sum(squares[rows : rows + 1])

    if domain.margins:
        weights = domain.weights or (1.0,) * len(domain.margins)
        variances = [of_table(errors[at : at + size]) for at in range(0, len(errors), size)]
        whole = 1.0 if domain.apart else math.fsum(weights)
        return math.fsum(map(operator.mul, weights, variances)) / whole
    return of_table(errors)
