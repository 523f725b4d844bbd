"""The frozen, data-free plan of a release: measurements, noise, cost and error.

All tables of a release share one allowance. Noise scales are the designs' relative scales times one
common factor, at most a few ulps above the smallest for which

    sum over tables of max over neighbors of sum_k (|Delta w_k| / sigma_k)^p <= allowance

holds in exact rational arithmetic, with p = 2 and mu^2 for Gaussian noise, p = 1 and epsilon for
Laplace noise.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpframe.calibration import gaussian_mu, pure_of_mu, round_up
from dpframe.declaration import Declaration
from dpframe.errors import CalibrationError
from dpframe.noise import MAX_SCALE, standard_deviation
from dpframe.privacy import Budget, PrivacyLoss, Spend, exact
from dpframe.queries import Query
from dpframe.strategies import MECHANISMS, Design, Mechanism, Prediction
from dpframe.tables import Table, table_of

__all__ = ["Plan", "TablePlan", "plan_release"]

_LARGEST_SPEND = 2**100  # beyond, squares and their inverses would leave the range of floats


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most a release may lose: `mu_squared` with Gaussian noise, `epsilon` with Laplace."""

    mu_squared: Fraction
    epsilon: Fraction


@dataclass(frozen=True, eq=False)
class TablePlan:
    """One table of a release with its calibrated design.

    Parameters
    ----------
    table
        The resolved query.
    design
        What is measured and how it is decoded.
    scales
        Noise scale of each measured block: sigma of a Gaussian, b of a Laplace.
    deviations
        Standard deviation of the rounded noise of each block.
    """

    table: Table
    design: Design
    scales: tuple[float, ...]
    deviations: tuple[float, ...]

    def predictions(self) -> list[Prediction]:
        """Return the error of each output column."""
        return self.design.predict(self.deviations)


@dataclass(frozen=True, eq=False)
class Plan:
    """A release that is ready to be charged and made.

    Parameters
    ----------
    tables
        Plans by the name of the query; a single query has the name `None`.
    mechanism
        Name of the mechanism chosen.
    spend
        How the amount was given.
    loss
        What the release costs.
    compared
        Predicted error of every mechanism that applies, relative to the chosen one.
    """

    tables: Mapping[Hashable, TablePlan]
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    compared: Mapping[str, float]

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Private columns that are read."""
        labels = [label for planned in self.tables.values() for label in planned.table.columns]
        return tuple(dict.fromkeys(labels))

    @property
    def how(self) -> Mechanism:
        """The mechanism chosen."""
        return MECHANISMS[self.mechanism]


def plan_release(
    declaration: Declaration,
    queries: Mapping[Hashable, Query],
    spend: Spend,
    mechanism: str = "auto",
) -> Plan:
    """Plan the joint release of some queries; reads no data and spends nothing.

    Parameters
    ----------
    declaration
        What is public about the frame.
    queries
        Queries by name.
    spend
        How much the release may use.
    mechanism
        A name in `MECHANISMS`, or "auto": the one with the smallest predicted error at that spend,
        among those of the kind already spent where a ledger holds spends by share and this is one,
        too.

    Raises
    ------
    CalibrationError
        If no mechanism can honor the spend.
    DeclarationError, QueryError
        If the queries do not fit what is declared.
    """
    names = _candidates(mechanism, spend, declaration)
    tables = {name: table_of(query, declaration) for name, query in queries.items()}
    allowance = _allowance(spend, declaration)
    plans, too_wide = [], None
    for name in names:
        try:
            plan = _plan_with(name, tables, spend, allowance)
        except CalibrationError as error:  # another mechanism may still do
            too_wide = error
        else:
            plans += [] if plan is None else [plan]
    if not plans:
        raise too_wide or _impossible(mechanism, allowance)
    scores = [_score(plan) for plan in plans]
    best = min(range(len(plans)), key=scores.__getitem__)
    compared = {
        plan.mechanism: _ratio(score, scores[best])
        for plan, score in zip(plans, scores, strict=True)
    }
    chosen = plans[best]
    return Plan(chosen.tables, chosen.mechanism, spend, chosen.loss, compared)


def _candidates(mechanism: str, spend: Spend, declaration: Declaration) -> list[str]:
    """Mechanisms to compare."""
    if mechanism != "auto":
        if not isinstance(mechanism, str) or mechanism not in MECHANISMS:
            known = ", ".join(f'"{name}"' for name in ("auto", *MECHANISMS))
            raise CalibrationError(
                f"mechanism must be one of {known}, got mechanism={mechanism!r}."
            )
        return [mechanism]
    entries = () if declaration.ledger is None else declaration.ledger.entries
    kinds = {
        MECHANISMS[entry.mechanism].law
        for entry in entries
        if entry.spend.kind == "share" and entry.mechanism in MECHANISMS
    }
    if spend.kind != "share" or not kinds:
        return list(MECHANISMS)
    return [name for name, how in MECHANISMS.items() if how.law in kinds]


def _allowance(spend: Spend, declaration: Declaration) -> Allowance:
    """Translate a spend into exact allowances, never above what it says."""
    ledger = declaration.ledger
    budget = None if ledger is None else ledger.budget
    amount = spend.amount
    if max(amount, exact(budget.epsilon) if budget else 0) > _LARGEST_SPEND:
        raise CalibrationError(
            "epsilon, mu and rho must be at most 2**100, in the budget, too: so much allows no "
            f"noise at all; got {spend.kind}={float(amount):.3g}"
            + (f" of {budget}." if budget else ".")
        )
    if spend.kind == "share":
        if budget is None:
            raise CalibrationError(
                "share= is a part of a budget and none is declared. Declare "
                "budget=dpf.Budget(...), or spend epsilon=, mu= or rho=."
            )
        whole = Fraction(gaussian_mu(budget.epsilon, budget.delta)) ** 2
        return Allowance(amount * whole, amount * exact(budget.epsilon))
    below = min(amount, Fraction(float(amount)))
    if spend.kind == "epsilon":
        mu = gaussian_mu(float(amount), _delta(spend, budget))
        return Allowance(Fraction(mu) ** 2, below)
    mu_squared = below**2 if spend.kind == "mu" else 2 * below
    return Allowance(mu_squared, Fraction(pure_of_mu(math.sqrt(mu_squared) * (1 - 2.0**-52))))


def _delta(spend: Spend, budget: Budget | None) -> float:
    if spend.delta is not None:
        return spend.delta
    return 0.0 if budget is None else budget.delta


def _plan_with(
    name: str, tables: Mapping[Hashable, Table], spend: Spend, allowance: Allowance
) -> Plan | None:
    """Plan with one mechanism; `None` if it does not apply or its allowance is 0."""
    how = MECHANISMS[name]
    allowed = allowance.mu_squared if how.law == "gaussian" else allowance.epsilon
    if allowed == 0:
        return None
    designs: dict[Hashable, Design] = {}
    for key, table in tables.items():
        design = how.design(table.workload, how.norm)
        if design is None:
            return None
        designs[key] = design
    scales = _calibrate(list(designs.values()), how, allowed)
    planned = {
        key: TablePlan(
            tables[key],
            design,
            own,
            tuple(standard_deviation(how.law, scale) for scale in own),
        )
        for (key, design), own in zip(designs.items(), scales, strict=True)
    }
    spent = allowed if any(scale for own in scales for scale in own) else Fraction(0)
    loss = PrivacyLoss(mu_squared=spent) if how.law == "gaussian" else PrivacyLoss(epsilon=spent)
    return Plan(planned, name, spend, loss, {})


def _calibrate(
    designs: Sequence[Design], how: Mechanism, allowed: Fraction
) -> list[tuple[float, ...]]:
    """Choose the common factor of all noise scales, in exact arithmetic."""

    def scaled(factor: float) -> list[tuple[float, ...]]:
        return [tuple(factor * scale for scale in design.scales) for design in designs]

    def loss(scales: Sequence[tuple[float, ...]]) -> Fraction:
        return sum(
            (
                design.movement([Fraction(scale) for scale in own], how.norm)
                for design, own in zip(designs, scales, strict=True)
            ),
            start=Fraction(0),
        )

    moved = loss(scaled(1.0))
    if moved == 0:
        return scaled(1.0)
    largest = Fraction(max(scale for design in designs for scale in design.scales))
    if moved / allowed * largest**how.norm > Fraction(MAX_SCALE) ** how.norm:
        raise CalibrationError(
            "the noise needed has a scale above the limit of 2**60 on the integers measured. "
            "Spend more, or declare tighter bounds or caps."
        )
    start = float(moved / allowed) ** (1 / how.norm)
    return scaled(round_up(start, lambda factor: loss(scaled(factor)) <= allowed))


def _score(plan: Plan) -> float:
    """Predicted variance of all outputs, each relative to the range of what a row adds."""
    total = 0.0
    for planned in plan.tables.values():
        work = planned.table.workload
        for output, prediction in zip(work.outputs, planned.predictions(), strict=True):
            total += (prediction.std_error / work.width(output)) ** 2
    return total


def _ratio(score: float, best: float) -> float:
    """Root mean square error relative to the best one."""
    return math.sqrt(score / best) if best else (1.0 if score == 0 else math.inf)


def _impossible(mechanism: str, allowance: Allowance) -> CalibrationError:
    """Say why nothing can be released."""
    if mechanism != "laplace" and allowance.mu_squared == 0 and allowance.epsilon:
        return CalibrationError(
            f'mechanism="{mechanism}" needs delta > 0, and none is given or declared. '
            'Give delta= (1e-6 for instance), or use mechanism="laplace".'
        )
    if allowance.epsilon == 0 and (mechanism == "laplace" or allowance.mu_squared == 0):
        return CalibrationError(
            "epsilon must be > 0 for Laplace noise, and for any noise where delta is 0; got "
            "epsilon=0. "
            "Give epsilon > 0, or delta > 0 with Gaussian noise."
        )
    return CalibrationError(
        f'mechanism="{mechanism}" does not apply to these queries; use mechanism="auto".'
    )
