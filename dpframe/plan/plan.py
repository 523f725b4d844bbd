"""The frozen, data-free plan of a release: measurements, noise, cost and error.

All tables of a release share one allowance. Noise scales are the designs' relative scales times one
common factor, at most a few ulps above the smallest for which

    sum over tables of max over neighbors of sum_k (|Delta w_k| / sigma_k)^p <= allowance

holds in exact rational arithmetic, with p = 2 and mu^2 for Gaussian noise, p = 1 and epsilon for
Laplace noise.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.declaration.facts import Declaration
from dpframe.errors import CalibrationError
from dpframe.plan.allocation import relative_variance, scale_designs
from dpframe.plan.tables import OutputColumn, Table, table_of
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, exact
from dpframe.privacy.calibration import gaussian_mu, pure_of_mu
from dpframe.privacy.classical import classical_mu
from dpframe.privacy.laws import standard_deviation
from dpframe.queries.kinds import Query
from dpframe.strategies import MECHANISMS, Design, Mechanism, Prediction, independently

__all__ = ["Plan", "TablePlan", "plan_release"]

_LARGEST_SPEND = 2**100  # beyond, squares and their inverses would leave the range of floats


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most a release may lose: `mu_squared` with Gaussian noise, `epsilon` with Laplace."""

    mu_squared: Fraction
    epsilon: Fraction
    delta: float | None = None


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

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        """The columns released: those asked for, and the number of rows where it comes for free."""
        return self.table.outputs + (self.table.rows_column,) * self.design.extra

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
    others
        Plans of the same release with the other mechanisms that were compared.
    """

    tables: Mapping[Hashable, TablePlan]
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    others: tuple["Plan", ...] = ()

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Private columns that are read."""
        labels = [label for planned in self.tables.values() for label in planned.table.columns]
        return tuple(dict.fromkeys(labels))

    def error_relative_to(self, other: "Plan") -> float:
        """Return the root mean square of all relative errors, as a multiple of another plan's."""
        mine, theirs = _score(self), _score(other)
        return math.sqrt(mine / theirs) if theirs else (1.0 if mine == 0 else math.inf)

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
        among those that the budget allows, and those of the kind already spent where a ledger holds
        spends by share and this is one, too.

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
    ledger = declaration.ledger
    fitting = [plan for plan in plans if ledger is None or ledger.allows(plan.loss)]
    best = min(fitting or plans, key=_score)  # the first of the best
    others = tuple(plan for plan in plans if plan is not best)
    return replace(best, others=others)


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
        return [name for name, how in MECHANISMS.items() if how.automatic]
    return [name for name, how in MECHANISMS.items() if how.automatic and how.law in kinds]


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
        delta = _delta(spend, budget)
        return Allowance(Fraction(gaussian_mu(float(amount), delta)) ** 2, below, delta)
    mu_squared = below**2 if spend.kind == "mu" else 2 * below
    return Allowance(mu_squared, Fraction(pure_of_mu(math.sqrt(mu_squared) * (1 - 2.0**-52))))


def _delta(spend: Spend, budget: Budget | None) -> float:
    if spend.delta is not None:
        return spend.delta
    return 0.0 if budget is None else budget.delta


def _classical(spend: Spend, allowance: Allowance) -> Fraction:
    """Return mu^2 of the classical calibration, which knows epsilon and delta alone."""
    if spend.kind != "epsilon" or allowance.delta is None:
        raise CalibrationError(
            f'mechanism="classical" is calibrated by epsilon= and delta=, got {spend.kind}=.'
        )
    return Fraction(classical_mu(float(spend.amount), allowance.delta)) ** 2


def _plan_with(
    name: str, tables: Mapping[Hashable, Table], spend: Spend, allowance: Allowance
) -> Plan | None:
    """Plan with one mechanism; `None` if it does not apply or its allowance is 0."""
    how = MECHANISMS[name]
    allowed = allowance.mu_squared if how.law == "gaussian" else allowance.epsilon
    if how.classical:
        allowed = _classical(spend, allowance)
    if allowed == 0:
        return None
    found = {key: how.design(table.workload, how.norm) for key, table in tables.items()}
    if not any(found.values()):
        return None
    # a strategy may fit some tables of a release: the others are measured independently
    designs = {
        key: (table.workload, found[key] or independently(table.workload, how.norm))
        for key, table in tables.items()
    }
    scales = scale_designs(list(designs.values()), how.norm, allowed)
    planned = {
        key: TablePlan(
            tables[key],
            design,
            own,
            tuple(standard_deviation(how.law, scale) for scale in own),
        )
        for (key, (_, design)), own in zip(designs.items(), scales, strict=True)
    }
    spent = allowed if any(scale for own in scales for scale in own) else Fraction(0)
    loss = PrivacyLoss(mu_squared=spent) if how.law == "gaussian" else PrivacyLoss(epsilon=spent)
    return Plan(planned, name, spend, loss)


def _score(plan: Plan) -> float:
    """Predicted variance of all outputs, each relative to the range of what a row adds."""
    return sum(
        relative_variance(planned.table.workload, planned.predictions())
        for planned in plan.tables.values()
    )


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
