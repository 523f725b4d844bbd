"""The certificate of labels to be found, before they are known."""

import math
from fractions import Fraction

from dpframe.certificates.certificate import Certificate
from dpframe.certificates.noise_parts import ColumnPart, MechanismPart, NoisePart
from dpframe.certificates.parts import DiscoveryPart, GroupingPart, LossPart, OptionsPart, QueryPart
from dpframe.declaration.facts import Declaration
from dpframe.ledger.log import Entry
from dpframe.plan.discovery import DiscoveryPlan
from dpframe.plan.record import Cost, before_values, cost
from dpframe.privacy.rounding import round_up

_COVARIANCE = "Rows are independent, given that they were published."
_BLOCK = "0"


def cost_of_discovery(plan: DiscoveryPlan, declaration: Declaration) -> Cost:
    """Return what finding labels costs, the extra delta included.

    A delta that was given in the call is for noise and threshold together.
    """
    noise = cost(plan, declaration)
    together = bool(plan.loss.mu_squared) and plan.spend.delta is not None
    if noise["delta"] is None or together:
        return noise
    total = Fraction(noise["delta"]) + plan.loss.delta
    delta = round_up(float(total), lambda number: Fraction(number) >= total)
    return {**noise, "delta": min(delta, math.nextafter(1, 0))}


def record_of_discovery(plan: DiscoveryPlan, declaration: Declaration, entry: Entry) -> Certificate:
    """Write the certificate of labels to be found, all but their number, ledger and digest."""
    threshold = plan.threshold
    axes = plan.wanted.axes
    return Certificate(
        **before_values(declaration, plan.caps, entry),
        query=QueryPart(
            name=None,
            words=plan.words,
            by=tuple(GroupingPart(str(axis.column), 0, "discovered", rest=None) for axis in axes),
            cells=0,
            outputs=1,
            where=None if plan.wanted.where is None else plan.wanted.where.text,
            options=OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None),
        ),
        columns=(_column(plan),),
        mechanism=MechanismPart(
            plan.mechanism,
            plan.how.title,
            plan.how.law.name,
            scales={_BLOCK: threshold.scale},
            groups=(),
            joined=False,
            structure=None,
        ),
        common_blocks=(),
        covariance=_COVARIANCE,
        privacy_loss=LossPart(
            **cost_of_discovery(plan, declaration),
            rho=plan.loss.rho,
            extra_delta=float(plan.loss.delta),
            joint=False,
        ),
        discovery=DiscoveryPart(
            threshold.least,
            threshold.labels,
            tuple(axis.kind for axis in axes),
            axes[0].longest,
        ),
        selection=None,
    )


def _column(plan: DiscoveryPlan) -> ColumnPart:
    """Describe the noisy numbers of units."""
    deviation = plan.threshold.law.standard_deviation(plan.threshold.scale)
    return ColumnPart(
        name="units",
        kind="count",
        column=None,
        where=None,
        condition=None,
        bounds=None,
        times=None,
        integer=True,
        noise=NoisePart(plan.threshold.scale, 1.0, 1),
        std_error=deviation,
        loadings={_BLOCK: deviation},
        ratio=None,
        moments=None,
        rounded=None,
    )
