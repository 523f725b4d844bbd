"""The frozen, data-free plan of labels to be found: noise, threshold and cost."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.declaration.facts import Declaration
from dpframe.errors import BudgetExceededError, CalibrationError, DeclarationError
from dpframe.ledger.ledger import Ledger
from dpframe.plan.plan import allowance_of, allowance_of_look, candidates
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, below, exact
from dpframe.privacy.law import Allowance, Law
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.threshold import (
    MOST_LABELS,
    LabelThreshold,
    best_split,
    set_threshold_of,
    threshold_of,
)
from dpframe.queries.discovery import Discovery
from dpframe.queries.tasks import LabelTask
from dpframe.strategies import MECHANISMS, Mechanism

_SINGLE = ("laplace", "gaussian")
"""Mechanisms with independent noise on each count."""


@dataclass(frozen=True, eq=False)
class DiscoveryPlan:
    """Labels that are ready to be charged and found.

    Parameters
    ----------
    wanted
        What to look for.
    task
        What the engine is asked.
    caps
        What of a unit counts.
    threshold
        Noise, and the least noisy count that is published; of a set, in the last of its rounds.
    mechanism
        Name of the mechanism chosen.
    spend
        How the amount was given.
    loss
        What it costs.
    others
        Plans of the same with the other mechanism, where it applies.
    """

    wanted: Discovery
    task: LabelTask
    caps: Caps
    threshold: LabelThreshold
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    others: tuple["DiscoveryPlan", ...] = ()

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return self.wanted.words

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Private columns that are read."""
        return tuple(dict.fromkeys(self.task.columns))

    @property
    def how(self) -> Mechanism:
        """The mechanism chosen."""
        return MECHANISMS[self.mechanism]


def plan_discovery(
    declaration: Declaration, wanted: Discovery, spend: Spend, mechanism: str = "auto"
) -> DiscoveryPlan:
    """Plan how labels are found; reads no data and spends nothing.

    Parameters
    ----------
    declaration
        What is public about the frame.
    wanted
        What to look for.
    spend
        How much may be used.
    mechanism
        "laplace", "gaussian", or "auto": the one with the least threshold, then the least scale,
        among those that the budget allows; of sets, in units with as many labels as count. "auto"
        makes a small share cost what `Pots.for_look`
        says.

    Raises
    ------
    BudgetExceededError
        If the budget has no extra delta left.
    CalibrationError
        If no mechanism can honor the spend.
    DeclarationError
        If a unit has no cap on its labels.
    """
    names = _candidates(mechanism)
    task = label_task(declaration, wanted)
    most, unit = task.most, task.unit
    extra, asked = (
        _most_extra(declaration.ledger, wanted.extra_delta),
        wanted.extra_delta is not None,
    )
    caps = Caps(groups=most, rows_per_group=1) if unit else ROW_CAPS
    sets = not wanted.counts
    allowance = allowance_of(spend, declaration)
    sparing = allowance_of_look(spend, declaration) if mechanism == "auto" else None
    about = declaration, spend, sparing or allowance, most
    plans, refused = [], []
    for name in names:
        try:
            one = _threshold(MECHANISMS[name].law, *about, most=extra, asked=asked, sets=sets)
        except CalibrationError as error:  # the noise of another law may be narrow enough
            refused.append(error)
            continue
        if one is not None:
            own = replace(task, weights=one.weights)
            plans.append(DiscoveryPlan(wanted, own, caps, one, name, spend, one.loss))
    if refused and not plans:
        raise refused[0]
    if not plans:
        rule = "epsilon and delta must both be > 0 to find labels"
        why = f"{rule}: the one that the noise needs is 0. Give both;"
        way = 'mechanism="laplace" needs an epsilon, "gaussian" a delta beside the threshold\'s.'
        raise CalibrationError(f"{why} {way}", parameter=spend.kind, value=float(spend.amount))
    pots = None if declaration.ledger is None else declaration.ledger.glance().pots
    fitting = [plan for plan in plans if pots is None or pots.fits(plan.loss)]
    best = min(fitting or plans, key=lambda plan: plan.threshold.order)
    return replace(best, others=tuple(plan for plan in plans if plan is not best))


def label_task(declaration: Declaration, wanted: Discovery) -> LabelTask:
    """Say what is looked for, and for how many labels a unit counts."""
    most = _most_labels(declaration, wanted)
    return LabelTask(wanted.axes, most, wanted.where, declaration.unit_columns)


def _candidates(mechanism: str) -> list[str]:
    """Return the names of the mechanisms to compare."""
    names = [name for name in candidates(mechanism) if name in _SINGLE]
    if names:
        return names
    rule = 'must be "auto", "laplace" or "gaussian" to find labels'
    raise CalibrationError.about("mechanism", rule, mechanism, "Each count has noise of its own.")


def _most_labels(declaration: Declaration, wanted: Discovery) -> int:
    """Return for how many labels a unit counts."""
    if not declaration.unit_columns:
        if wanted.max_groups not in (None, 1):
            rule = "is a cap on the labels of one privacy unit, and none is declared"
            way = "A row has one label. Declare privacy_unit=, or leave it out."
            raise DeclarationError.about("max_groups", rule, wanted.max_groups, way)
        return 1
    most = wanted.most(declaration.caps)
    if most is None:
        rule = "max_groups must say for how many labels one privacy unit counts: without a cap,"
        why = "all labels of one person could be published."
        way = "Declare max_groups=, or give it in the call."
        raise DeclarationError(f"{rule} {why} {way}", parameter="max_groups")
    if most > MOST_LABELS and not wanted.counts:
        rule = f"must be at most {MOST_LABELS:,} to find groups without counts"
        raise DeclarationError.about("max_groups", rule, most, "Give a smaller one in the call.")
    return most


def _most_extra(ledger: Ledger | None, asked: Fraction | None) -> Fraction | None:
    """Say which extra delta may be charged at most; `None` where nothing says so."""
    if ledger is None:
        return asked
    left = ledger.glance().pots.spare_delta
    if left <= 0:
        raise _nothing_kept(ledger.budget)
    if asked is not None and asked > left:
        rule = f"must fit in what is left of the delta to find groups with, of {ledger.budget}"
        way = f"Give at most discovery={below(left):.6g}."
        raise BudgetExceededError.about("discovery", rule, float(asked), way)
    return left if asked is None else asked


def _nothing_kept(budget: Budget) -> BudgetExceededError:
    if budget.discovery:
        why = f"nothing is left of the delta to find groups with, of {budget}."
        way = "Give earlier ones a part of it, discovery=..., or declare a larger budget."
        return BudgetExceededError(f"{why} {way}", parameter="discovery")
    delta = f"{budget.delta or 1e-6:g}"
    wrong = "finding labels needs an extra delta, and no part of delta is kept for such in"
    kept = f"dpf.Budget(epsilon={budget.epsilon:g}, delta={delta}, discovery={delta} / 10)"
    way = f"Keep a tenth when it is declared, discovery=delta/10: {kept}."
    return BudgetExceededError(f"{wrong} {budget}. {way}", parameter="discovery")


def _threshold(
    law: Law,
    declaration: Declaration,
    spend: Spend,
    allowance: Allowance,
    labels: int,
    *,
    most: Fraction | None,
    asked: bool,
    sets: bool,
) -> LabelThreshold | None:
    """Find the least threshold of one law, if there is noise of it."""
    neighboring = declaration.neighboring
    if spend.delta is not None and not asked:
        total = exact(spend.delta)
        most = total if most is None else min(most, total)
        return best_split(
            law, spend.amount, total, labels=labels, neighboring=neighboring, most=most, sets=sets
        )
    if most is None:
        ways = "delta= beside epsilon=, or discovery= beside mu= or rho=;"
        way = f"{ways} or declare a budget with discovery=delta/10."
        why = "With about that probability, a label is published that one unit alone has."
        text = f"say how much delta finding labels may use: {way} {why}"
        raise CalibrationError(text, parameter="delta")
    if spend.delta is not None:
        allowance = allowance_of(_rest(spend, spend.delta, most), declaration)
    allowed = law.movement_allowed(allowance)
    find = set_threshold_of if sets else threshold_of
    return find(law, allowed, most, labels, neighboring) if allowed else None


def _rest(spend: Spend, delta: float, extra: Fraction) -> Spend:
    """Leave to the noise what the threshold does not have of a delta."""
    if extra > exact(delta):
        raise CalibrationError.about(
            "discovery", f"must be at most delta={delta:g}, of which it is a part", float(extra)
        )
    return replace(spend, delta=below(exact(delta) - extra))
