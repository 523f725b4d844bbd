"""Designs of a mechanism with the noise that an allowance demands.

Candidates are compared in floats; what is chosen is calibrated in fractions. So a wrong choice
costs accuracy, and never privacy.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from dpframe.arguments import is_one_of
from dpframe.checker.measured import BlockNoise
from dpframe.context import cached_property
from dpframe.declaration.facts import Declaration
from dpframe.errors import BudgetExceededError, CalibrationError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import Budget, Spend, below, exact, round_up
from dpframe.privacy.gaussian import classical_mu, gaussian_mu, pure_of_mu
from dpframe.privacy.laplace import pure_of_rho
from dpframe.privacy.law import Allowance, Law
from dpframe.privacy.noise import MAX_SCALE
from dpframe.privacy.selection import SELECT
from dpframe.privacy.sensitivity import Norm
from dpframe.public import did_you_mean
from dpframe.strategies import MECHANISMS, Mechanism, Planner
from dpframe.strategies.base import Design, Estimate, Need, Prediction, Workload
from dpframe.strategies.independent import WeightedDesign

_ORDINARY = 2**20, 2.0**39  # with factors and scales up to these, no product is near the limit
_SMALL = 2**11  # cells of the designs of which many are kept


@frozen(eq=False)
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
    mechanism
        Name of the mechanism that plans so.
    moved
        How far it moves at its relative scales, if that is known.
    """

    workload: Workload
    design: Design
    law: Law
    scales: tuple[float, ...]
    mechanism: str = ""
    moved: Fraction | None = None

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
    def errors(self) -> list[float]:
        """The errors of all outputs, by which designs are compared."""
        return self.design.errors(self.deviations)

    @cached_property
    def relative_errors(self) -> list[float]:
        """The same, relative to the ranges of what a row adds."""
        widths = [self.workload.width(output) for output in self.workload.outputs]
        return [error / width for error, width in zip(self.errors, itertools.cycle(widths))]

    @cached_property
    def variance(self) -> float:
        """Variance of all outputs wanted, relative to the ranges of what a row adds."""
        return relative_variance(self.workload, self.errors)

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

    @cached_property
    def group_of(self) -> dict[int, int]:
        """By block, the position of its group among those that are shared."""
        return {block: at for at, group in enumerate(self.shared) for block in group}


def sketch(
    mechanism: str,
    workload: Workload,
    allowed: Fraction,
    *,
    beside: bool,
    without: frozenset[Planner] = frozenset(),
) -> NoisyDesign | None:
    """Choose a design for a workload, with noise that is enough but for rounding.

    Parameters
    ----------
    mechanism
        A name in `MECHANISMS`.
    workload
        What is wanted of a table.
    allowed
        What movement may add up to.
    beside
        Whether it is released beside others: then the plain designs of the mechanism do, too.
    without
        Ways to plan that are known to do no better.

    Returns
    -------
    NoisyDesign or None
        That of the least relative variance, the first among equals; `None` where no design fits.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60, or the amount is too small for the law.
    """
    return _kept(_sketch, workload)(mechanism, workload, allowed, beside=beside, without=without)


def _sketch(
    mechanism: str, workload: Workload, allowed: Fraction, **options: Any
) -> NoisyDesign | None:
    law = MECHANISMS[mechanism].law
    sketches, refusals = [], []
    for design, moved in _kept(_fit, workload)(mechanism, workload, **options):
        try:
            scales = scale_design(design, law, allowed, exact=False, moved=moved)
        except CalibrationError as error:  # another design may still do
            refusals.append(error)
        else:
            sketches.append(NoisyDesign(workload, design, law, scales, mechanism, moved))
    if refusals and not sketches:
        raise refusals[0]
    if len(sketches) < 2:  # noqa: PLR2004
        return next(iter(sketches), None)
    return min(sketches, key=lambda noisy: noisy.variance)


def _fit(mechanism: str, workload: Workload, **options: Any) -> list[tuple[Design, Fraction]]:
    """Return the designs that apply, and how far they move at their relative scales."""
    law = MECHANISMS[mechanism].law
    designs = fitting(mechanism, workload, **options)
    return [(design, Fraction(design.movement(design.scales, law))) for design in designs]


def calibrate(noisy: NoisyDesign, allowed: Fraction) -> NoisyDesign:
    """Scale the noise of a sketch so that it costs no more than is allowed, in exact fractions."""
    return _kept(_calibrate, noisy.workload)(noisy, allowed)


def _calibrate(noisy: NoisyDesign, allowed: Fraction) -> NoisyDesign:
    scales = scale_design(noisy.design, noisy.law, allowed, exact=True, moved=noisy.moved)
    return replace(noisy, scales=scales)


_Made = TypeVar("_Made")


def _kept(make: Callable[..., _Made], workload: Workload) -> Callable[..., _Made]:
    """Keep what is made again and again, of equal demands: few where there are many cells."""
    if workload.known_rows is not None:  # arrays are not kept
        return make
    return _KEPT[make, workload.cells > _SMALL]


_KEPT: dict[Any, Callable[..., Any]] = {
    (make, large): lru_cache(maxsize=32 if large else 1024)(make)  # suggestions plan hundreds
    for make in (_fit, _sketch, _calibrate)
    for large in (False, True)
}


def fitting(
    mechanism: str, workload: Workload, *, beside: bool, without: frozenset[Planner] = frozenset()
) -> list[Design]:
    """Return the designs of a mechanism that apply to a workload; see `sketch`."""
    entry = MECHANISMS[mechanism]
    planners = entry.planners(workload)
    if beside:
        planners += entry.plain_planners(workload)
    proposals = [planner(workload, entry.law) for planner in planners if planner not in without]
    designs = [design for design in proposals if design is not None]
    if workload.weight == 1:
        return designs
    return [WeightedDesign(design, workload.weight) for design in designs]


def scale_design(
    design: Design, law: Law, allowed: Fraction, *, exact: bool, moved: Fraction | None = None
) -> tuple[float, ...]:
    """Return noise scales for every block of a design.

    They are its relative scales, times the smallest factor, up to a few ulps, for which it moves by
    no more than is allowed.

    Parameters
    ----------
    design
        What is measured.
    law
        Law of the noise.
    allowed
        mu^2 for Gaussian and epsilon for Laplace noise.
    exact
        Whether fractions judge; otherwise the last digits may be too small.
    moved
        How far it moves at its relative scales, if that is known.

    Raises
    ------
    CalibrationError
        If a scale would be above 2**60, or the amount is too small for the law.
    """
    if moved is None:
        moved = Fraction(design.movement(design.scales, law))
    if moved == 0:
        return design.scales
    least = moved / allowed
    if _is_too_wide(least, widest(design, design.scales), law.norm):
        raise _too_wide()

    def is_enough(factor: float) -> bool:
        return Fraction(design.movement(_fractions(factor, design.scales), law)) <= allowed

    # scales divide what moves, which is added up in the power `norm`
    factor = float(least) ** (1 / law.norm)
    if exact:
        factor = round_up(factor, is_enough)
    scales = tuple(factor * scale for scale in design.scales)
    # products are rounded: the last digit may be above the limit, which draws would refuse
    if widest(design, scales) > MAX_SCALE:
        raise _too_wide()
    return tuple(map(law.settle, scales, design.scales))


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
    """Return the variance of all outputs by weight, relative to the ranges of what a row adds.

    The number of rows counts with its weight, once more where it is an output itself. Of several
    tables of a query, it is the mean, by their weights; those of several queries add up.
    """
    domain, size = workload.domain, len(workload.outputs)
    outputs = (*workload.outputs, workload.everyone)
    widths = [workload.width(output) * workload.weight for output in outputs]
    rows = next(at for at, output in enumerate(outputs) if output.is_everyone)
    counted = [output.weight for output in workload.outputs]

    def of_table(table_errors: Sequence[float]) -> float:
        # the width of the number of rows is last, and not all designs give that number
        squares = [(error / width) ** 2 for error, width in zip(table_errors, widths, strict=False)]
        weighted = math.fsum(map(operator.mul, counted, squares[:size]))
        return weighted + workload.rows_weight * sum(squares[rows : rows + 1])

    if domain.margins:
        weights = domain.weights or (1.0,) * len(domain.margins)
        variances = [of_table(errors[at : at + size]) for at in range(0, len(errors), size)]
        total = 1.0 if domain.apart else math.fsum(weights)
        return math.fsum(map(operator.mul, weights, variances)) / total
    return of_table(errors)


_LARGEST_SPEND = 2**100  # beyond, squares and their inverses would leave the range of floats


def candidates(mechanism: str) -> list[str]:
    """Return the names of the mechanisms to compare.

    Raises
    ------
    CalibrationError
        If the mechanism is not known.
    """
    if is_one_of(mechanism, (SELECT,)):
        raise CalibrationError(
            f'mechanism="{SELECT}" is for quantiles that are released on their own, in a call of '
            ".dp.quantile(...), not in a dict or a plan; other numbers have noise added to them. "
            'Use mechanism="auto", with which quantiles are read off numbers of rows.',
            parameter="mechanism",
            value=mechanism,
        )
    if not is_one_of(mechanism, ("auto", *MECHANISMS)):
        names = ", ".join(f'"{name}"' for name in ("auto", *MECHANISMS, SELECT))
        remedy = did_you_mean(mechanism, (*MECHANISMS, SELECT)).strip()
        rule = f"must be one of {names} (of quantiles alone)"
        raise CalibrationError.about("mechanism", rule, mechanism, remedy)
    if mechanism != "auto":
        return [mechanism]
    return [name for name, entry in MECHANISMS.items() if entry.automatic]


def allowance_of(spend: Spend, declaration: Declaration) -> Allowance:
    """Translate a spend into exact allowances, never above what it says."""
    ledger = declaration.ledger
    budget = None if ledger is None else ledger.budget
    amount = spend.amount
    if max(amount, exact(budget.epsilon) if budget else 0) > _LARGEST_SPEND:
        raise CalibrationError(
            "epsilon, mu and rho must be at most 2**100, also in the budget: so much allows no "
            f"noise at all; got {spend.kind}={float(amount):.3g}"
            + (f" of {budget}." if budget else "."),
            parameter=spend.kind,
            value=float(amount),
        )
    if spend.kind == "share":
        if ledger is None:
            reason = "share= is a part of a budget and none is declared."
            remedy = "Declare budget=dpf.Budget(...), or spend epsilon=, mu= or rho=."
            raise CalibrationError(f"{reason} {remedy}", parameter="share", value=float(amount))
        now = ledger.glance().share(amount)
        return Allowance(now.mu_squared, now.epsilon)
    least = min(amount, Fraction(float(amount)))  # its float may be above it
    if spend.kind == "epsilon":
        delta = _delta(spend, budget)
        return Allowance(Fraction(gaussian_mu(amount, delta)) ** 2, least, delta)
    if spend.kind == "rho":
        return Allowance(2 * least, Fraction(pure_of_rho(least)))
    # one rounding lower: the float of an exact amount may be above it
    return Allowance(least**2, Fraction(pure_of_mu(float(least) * (1 - 2.0**-52))))


def allowance_of_look(spend: Spend, declaration: Declaration) -> Allowance | None:
    """Say what a share allows that spares others; `None` where `allowance_of` does."""
    if spend.kind != "share" or declaration.ledger is None:
        return None
    status = declaration.ledger.glance()
    if status.shares == 1:  # spent by others meanwhile: the charge refuses it
        return None
    losses = status.pots.for_look(spend.amount / (1 - status.shares))
    return None if losses is None else Allowance(losses.mu_squared, losses.epsilon)


def _delta(spend: Spend, budget: Budget | None) -> float:
    """Return the delta to spend; refuse one alone that was not given for this release."""
    if spend.delta is not None:
        return spend.delta
    delta = 0.0 if budget is None else below(budget.noise_delta)
    if spend.amount == 0 and delta:
        rule = f"must be > 0 where delta is that of the budget, delta={delta:g}"
        remedy = "Give epsilon > 0, or give delta= in the call to spend a delta alone."
        raise CalibrationError.about("epsilon", rule, 0, remedy)
    return delta


def movement_allowed(mechanism: Mechanism, spend: Spend, allowance: Allowance) -> Fraction:
    """Return the most that movement may add up to."""
    if not mechanism.classical:
        return mechanism.law.movement_allowed(allowance)
    if spend.kind != "epsilon" or allowance.delta is None:
        reason = f'mechanism="classical" is calibrated by epsilon= and delta=, got {spend.kind}=.'
        raise CalibrationError(reason, parameter="mechanism", value="classical")
    return Fraction(classical_mu(float(spend.amount), allowance.delta)) ** 2


def nothing_allowed(name: str, allowance: Allowance) -> CalibrationError:
    """Say why a spend allows no noise of a mechanism."""
    law = MECHANISMS[name].law
    if law.needs_delta and allowance.epsilon:
        reason = f'mechanism="{name}" needs delta > 0, and none is given or declared.'
        way_out = 'Give delta= (1e-6 for instance), or use mechanism="laplace".'
        return CalibrationError(f"{reason} {way_out}", parameter="delta")
    when = "where delta is 0" if law.needs_delta else f"for {law.title} noise"
    way_out = "Give epsilon > 0, or delta > 0 with Gaussian noise."
    return CalibrationError.about("epsilon", f"must be > 0 {when}", 0, way_out)


def used_up(spend: Spend, declaration: Declaration) -> BudgetExceededError | None:
    """Say so where a share is nothing because other noise has used what the mechanism needs."""
    ledger = declaration.ledger
    if spend.kind != "share" or ledger is None:
        return None
    if not ledger.budget.noise_delta or ledger.status().pots.is_untouched:
        return None
    wrong = f"no Gaussian noise fits any more in what is left of {ledger.budget}:"
    reason = f"epsilon={ledger.status().remaining_epsilon:.6g} is left for Laplace noise."
    text = f'{wrong} {reason} Use mechanism="laplace".'
    return BudgetExceededError(text, parameter="share", value=float(spend.amount))
