"""Labels that are not known beforehand: which of them may be published, with how many units.

Without numbers of units they are found in rounds: see `dpframe.privacy.threshold`.

It is the one release whose rows are a result, as its counts are: dtype and order of the labels say
nothing besides.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe.cells.record import attach
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart, FeaturePart, NoisePart
from dpframe.certificates.mechanism_parts import SetPart, ThresholdPart
from dpframe.certificates.parts import GroupingPart, QueryPart
from dpframe.checker.rounds import LabelRound, require_together, worst_labels
from dpframe.checker.witness import Witness
from dpframe.context import Context
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame, engine_for
from dpframe.engines.labels import LabelCounts
from dpframe.errors import BudgetExceededError, CalibrationError, DeclarationError
from dpframe.frozen import frozen
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Certifier, Operation
from dpframe.operations.probing import check_rows
from dpframe.operations.record import NO_OPTIONS, rules_of_groups, text_of
from dpframe.plan.designs import allowance_of, allowance_of_look, candidates
from dpframe.plan.plan import that_fit
from dpframe.privacy.amounts import Budget, Spend, below, exact
from dpframe.privacy.law import Allowance, Law
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.threshold import (
    MOST_LABELS,
    ROUND_PARTS,
    LabelThreshold,
    best_split,
    set_threshold_of,
    threshold_alone,
    threshold_of,
)
from dpframe.provenance import mark_found
from dpframe.queries.searches import Discovery
from dpframe.queries.tasks import LabelAxis, LabelTask
from dpframe.statistics.form import ROWS
from dpframe.strategies import MECHANISMS

_SINGLE = ("laplace", "gaussian")
"""Mechanisms with independent noise on each count."""
_CHANCES = (0.05, 0.5, 0.95)
_BLOCK = "0"
_PUBLISHED = "Rows are independent, given that they were published."
_NO_NUMBERS = "There are no numbers: the labels alone were published."


@frozen(eq=False)
class Rounds:
    """What is measured to find a set of labels, round by round.

    Parameters
    ----------
    first
        Weights of all labels.
    others
        Counts again, without labels that were found.
    """

    first: LabelCounts
    others: Callable[[LabelCounts], LabelCounts]

    def given(self, published: LabelCounts, rounds: int) -> list[LabelCounts]:
        """Return what is measured in each round, where these labels are found in theirs."""
        before = (_of_rows(published, published.units < number) for number in range(2, rounds + 1))
        return [self.first, *map(self.others, before)]


@frozen(eq=False, kw_only=True)
class Labels(Operation):
    """Labels to be found, with the number of units on each, or the round in which it was found.

    Parameters
    ----------
    wanted
        What to look for.
    task
        What the engine is asked.
    threshold
        Noise, and the least noisy count that is published; of a set, in the last of its rounds.
    others
        The same with the other mechanism, where it applies.
    """

    wanted: Discovery
    task: LabelTask
    threshold: LabelThreshold
    others: tuple["Labels", ...] = ()

    @property
    def tasks(self) -> Sequence[LabelTask]:
        """What the engine is asked first."""
        return [self.task]

    def outlook_table(self) -> pd.DataFrame:
        """One row per mechanism, the one that would be used first."""
        compared = [self, *self.others]
        index = pd.Index([labels.mechanism for labels in compared], name="mechanism")
        return pd.DataFrame([labels._expected() for labels in compared], index)

    def _expected(self) -> dict[str, Any]:
        """Say what to expect of one mechanism; of a set, in the last round."""
        threshold = self.threshold
        deviation = self._deviation
        sizes = _sizes_found(threshold, 1)
        if not self.wanted.counts:
            full = _sizes_found(threshold, threshold.labels)
            sizes |= {f"{name}_full": size for name, size in full.items()}
        return {
            "threshold": threshold.least_units,
            "sigma": threshold.sigma,
            "std_error": deviation,
            **sizes,
            **self.outlook(),
            "extra_delta": float(self.loss.delta),
        }

    def witness(self) -> Witness:
        """Find the worst unit of each round."""
        check_rows(self.declaration, self.tasks)
        rounds = [
            LabelRound(part.law, part.scale, part.least, self._weights(part))
            for part in self.threshold.rounds
        ]
        neighboring, spend = self.declaration.neighboring, self.spend
        if spend.delta is not None and self.wanted.counts:
            require_together(rounds[0], neighboring, spend.amount, exact(spend.delta))
        return Witness(worst_labels(rounds, neighboring))

    def _weights(self, threshold: LabelThreshold) -> dict[int, int]:
        """Return what each label of a unit counts for, by how many it has."""
        if self.wanted.counts:  # with fewer labels, it moves and shows less
            return {threshold.labels: threshold.weights[0]}
        return dict(enumerate(threshold.weights, 1))

    def measure(self, frame: Frame, context: Context) -> LabelCounts | Rounds:
        """Count the units of all labels, in parts; of a set, in the first round."""
        counted = self.engine.labels(frame, self.task, context)
        if self.wanted.counts:
            return replace(counted, units=counted.units * self.threshold.weights[0])
        return Rounds(counted, lambda earlier: self._left(frame, earlier, context))

    def _left(self, frame: Frame, earlier: LabelCounts, context: Context) -> LabelCounts:
        """Count the weights of labels that were not found yet."""
        return self.engine.labels(frame, replace(self.task, without=earlier.labels), context)

    def draw(self, exact: LabelCounts | Rounds, context: Context) -> LabelCounts:
        """Draw noise for all labels, and keep those that reach the threshold."""
        if isinstance(exact, LabelCounts):
            return _publish_labels(exact, self.threshold, context)
        first, *others = self.threshold.rounds
        labels = _in_round(_publish_labels(exact.first, first, context), 1)
        for number, threshold in enumerate(others, 2):
            published = _publish_labels(exact.others(labels), threshold, context)
            labels += _in_round(published, number)
        return labels

    def certifier(self, entry: Entry, witness: Witness, context: Context) -> Certifier:
        """Write the certificate but for the number of labels and the ledger."""
        axes, counts = self.wanted.axes, self.wanted.counts
        groupings = (GroupingPart(str(axis.column), 0, "discovered", rest=None) for axis in axes)
        record = Release(
            **self.promise(entry, witness, context),
            privacy_unit=self.unit_part(self.caps[0]),
            query=QueryPart(
                name=None,
                words=self.words,
                by=tuple(groupings),
                cells=0,
                outputs=1,
                where=text_of(self.wanted.where),
                left_out=rules_of_groups(self.task.unit, axes),
                options=NO_OPTIONS,
            ),
            columns=(self._units_part(),) if counts else (),
            mechanism=self._mechanism_part(),
            covariance=_PUBLISHED if counts else _NO_NUMBERS,
        )
        parts = self.threshold.weights[0] if counts else 1
        return lambda published, ledger: _certify_labels(
            _in_units(published, parts), axes, replace(record, ledger=ledger), context.new_id()
        )

    def _mechanism_part(self) -> ThresholdPart | SetPart:
        """Describe noise and thresholds: of numbers of units, or of rounds."""
        threshold, axes = self.threshold, self.wanted.axes
        title, law = MECHANISMS[self.mechanism].title, threshold.law.name
        dtypes, longest = tuple(axis.kind for axis in axes), axes[0].longest
        if self.wanted.counts:
            return ThresholdPart(
                "threshold",
                self.mechanism,
                title,
                law,
                scales={_BLOCK: threshold.sigma},
                threshold=threshold.least_units,
                parts=threshold.weights[0],
                max_labels=threshold.labels,
                dtypes=dtypes,
                max_length=longest,
            )
        return SetPart(
            "set",
            self.mechanism,
            title,
            law,
            scales=tuple(part.scale for part in threshold.rounds),
            thresholds=tuple(part.least for part in threshold.rounds),
            parts=tuple(map(float, ROUND_PARTS)),
            weights=threshold.weights,
            dtypes=dtypes,
            max_length=longest,
        )

    @property
    def _deviation(self) -> float:
        """The standard deviation of the noise, in units."""
        return self.threshold.law.standard_deviation(self.threshold.sigma)

    def _units_part(self) -> ColumnPart:
        """Describe the noisy numbers of units."""
        scale, deviation = self.threshold.sigma, self._deviation
        return ColumnPart(
            kind="count",
            name="units",
            columns=(),
            condition=None,
            where=None,
            weights=None,
            integer=True,
            noise=NoisePart(scale, 1.0, 1),
            std_error=deviation,
            features={ROWS: FeaturePart(None, {_BLOCK: deviation})},
        )


def plan_labels(
    frame: Frame, declaration: Declaration, search: Discovery, spend: Spend, mechanism: str = "auto"
) -> Labels:
    """Check everything public about labels to be found, and plan it, without reading data.

    Parameters
    ----------
    frame, declaration
        A private frame, and what was declared about it.
    search, spend
        What is searched, and for how much.
    mechanism
        "laplace", "gaussian", or "auto": the one with the least threshold, then the least scale,
        among those that the budget allows; of sets, in units with as many labels as count. "auto"
        makes a small share cost what `Pots.for_look` says.

    Raises
    ------
    BudgetExceededError
        If the budget has no extra delta left.
    CalibrationError
        If no mechanism can honor the spend.
    DeclarationError
        If a unit has no cap on its labels.
    """
    engine = engine_for(frame)
    engine.check(frame, search.labels)
    names = _candidates(mechanism)
    task = label_task(declaration, search)
    caps = Caps(groups=task.most, rows_per_group=1) if task.unit else ROW_CAPS
    extra = _most_extra(declaration.ledger, search.extra_delta)
    allowance = allowance_of(spend, declaration)
    sparing = allowance_of_look(spend, declaration) if mechanism == "auto" else None
    arguments = declaration, search, spend, sparing or allowance
    thresholds, refused = [], []
    for name in names:
        try:
            threshold = _threshold(MECHANISMS[name].law, *arguments, extra=extra)
        except CalibrationError as error:  # the noise of another law may be narrow enough
            refused.append(error)
            continue
        if threshold is not None:
            thresholds.append((name, threshold))
    if refused and not thresholds:
        raise refused[0]
    if not thresholds:
        rule = "epsilon and delta must both be > 0 to find labels"
        reason = f"{rule}: the one that the noise needs is 0. Give both;"
        remedy = 'mechanism="laplace" needs an epsilon, "gaussian" a delta beside the threshold\'s.'
        amount = float(spend.amount)
        raise CalibrationError(f"{reason} {remedy}", parameter=spend.kind, value=amount)
    plans = [
        Labels(
            declaration=declaration,
            engine=engine,
            mechanism=name,
            spend=spend,
            loss=threshold.loss,
            words=search.words,
            caps=(caps,),
            axes={},  # there are no groups yet
            wanted=search,
            task=task if search.counts else replace(task, weights=threshold.weights),
            threshold=threshold,
        )
        for name, threshold in thresholds
    ]
    best = min(that_fit(plans, declaration), key=lambda plan: plan.threshold.order)
    engine.check(frame, best.columns)
    return replace(best, others=tuple(plan for plan in plans if plan is not best))


def label_task(declaration: Declaration, search: Discovery) -> LabelTask:
    """Say what is looked for, and for how many labels a unit counts."""
    most = _most_labels(declaration, search)
    return LabelTask(search.axes, most, search.where, declaration.unit_columns)


def _candidates(mechanism: str) -> list[str]:
    """Return the names of the mechanisms to compare."""
    names = [name for name in candidates(mechanism) if name in _SINGLE]
    if names:
        return names
    rule = 'must be "auto", "laplace" or "gaussian" to find labels'
    raise CalibrationError.about("mechanism", rule, mechanism, "Each count has noise of its own.")


def _most_labels(declaration: Declaration, search: Discovery) -> int:
    """Return for how many labels a unit counts."""
    if not declaration.unit_columns:
        if search.max_groups not in (None, 1):
            rule = "is a cap on the labels of one privacy unit, and none is declared"
            remedy = "A row has one label. Declare privacy_unit=, or leave it out."
            raise DeclarationError.about("max_groups", rule, search.max_groups, remedy)
        return 1
    most = search.most(declaration.caps)
    if most is None:
        rule = "max_groups must say for how many labels one privacy unit counts: without a cap,"
        reason = "all labels of one person could be published."
        remedy = "Declare max_groups=, or give it in the call."
        raise DeclarationError(f"{rule} {reason} {remedy}", parameter="max_groups")
    if most > MOST_LABELS and not search.counts:
        rule = f"must be at most {MOST_LABELS:,} to find groups without counts"
        raise DeclarationError.about("max_groups", rule, most, "Give a smaller one in the call.")
    return most


def _most_extra(ledger: Ledger | None, extra: Fraction | None) -> Fraction | None:
    """Say which extra delta may be charged at most; `None` where nothing says so."""
    if ledger is None:
        return extra
    left = ledger.glance().pots.spare_delta
    if left <= 0:
        raise _nothing_kept(ledger.budget)
    if extra is not None and extra > left:
        rule = f"must fit in what is left of the delta to find groups with, of {ledger.budget}"
        remedy = f"Give at most discovery={below(left):.6g}."
        raise BudgetExceededError.about("discovery", rule, float(extra), remedy)
    return left if extra is None else extra


def _nothing_kept(budget: Budget) -> BudgetExceededError:
    if budget.discovery:
        reason = f"nothing is left of the delta to find groups with, of {budget}."
        remedy = "Give earlier ones a part of it, discovery=..., or declare a larger budget."
        return BudgetExceededError(f"{reason} {remedy}", parameter="discovery")
    delta = f"{budget.delta or 1e-6:g}"
    wrong = "finding labels needs an extra delta, and no part of delta is kept for such in"
    kept = f"dpf.Budget(epsilon={budget.epsilon:g}, delta={delta}, discovery={delta} / 10)"
    remedy = f"Keep a tenth when it is declared, discovery=delta/10: {kept}."
    return BudgetExceededError(f"{wrong} {budget}. {remedy}", parameter="discovery")


def _threshold(
    law: Law,
    declaration: Declaration,
    search: Discovery,
    spend: Spend,
    allowance: Allowance,
    *,
    extra: Fraction | None,
) -> LabelThreshold | None:
    """Find the least threshold of one law, if there is noise of it.

    The extra delta is the most that may be charged, `None` where nothing says so.
    """
    neighboring, sets = declaration.neighboring, not search.counts
    labels = _most_labels(declaration, search)
    if spend.delta is not None and search.extra_delta is None:
        total = exact(spend.delta)
        if declaration.ledger is None and law.needs_delta and not sets and labels <= MOST_LABELS:
            return threshold_alone(law, spend.amount, total, labels, neighboring)
        most = total if extra is None else min(extra, total)
        return best_split(
            law, spend.amount, total, labels=labels, neighboring=neighboring, most=most, sets=sets
        )
    if extra is None:
        ways = "delta= beside epsilon=, or discovery= beside mu= or rho=;"
        remedy = f"{ways} or declare a budget with discovery=delta/10."
        reason = "With about that probability, a label is published that one unit alone has."
        text = f"say how much delta finding labels may use: {remedy} {reason}"
        raise CalibrationError(text, parameter="delta")
    if spend.delta is not None:
        allowance = allowance_of(_rest(spend, spend.delta, extra), declaration)
    allowed = law.movement_allowed(allowance)
    find = set_threshold_of if sets else threshold_of
    return find(law, allowed, extra, labels, neighboring) if allowed else None


def _rest(spend: Spend, delta: float, extra: Fraction) -> Spend:
    """Leave to the noise what the threshold does not have of a delta."""
    if extra > exact(delta):
        raise CalibrationError.about(
            "discovery", f"must be at most delta={delta:g}, of which it is a part", float(extra)
        )
    return replace(spend, delta=below(exact(delta) - extra))


def _sizes_found(threshold: LabelThreshold, labels: int) -> dict[str, int]:
    """Say how many units with so many labels a label takes to be found, by probability."""
    return {f"found_{q:.0%}"[:-1]: threshold.size_published(q, labels) for q in _CHANCES}


def _publish_labels(
    counts: LabelCounts, threshold: LabelThreshold, context: Context
) -> LabelCounts:
    """Draw noise for all labels, and keep those that reach the threshold."""
    (noise,) = threshold.law.draw([threshold.scale], len(counts.units), context)
    noisy = np.add(counts.units, noise, out=noise)
    published = LabelCounts(counts.labels, noisy)
    return _of_rows(published, noisy >= threshold.least)


def _of_rows(counts: LabelCounts, rows: np.ndarray) -> LabelCounts:
    """Return some of the labels."""
    return LabelCounts(tuple(column[rows] for column in counts.labels), counts.units[rows])


def _in_units(counts: LabelCounts, parts: int) -> LabelCounts:
    """Round numbers in an odd number of parts of a unit to whole units."""
    return LabelCounts(counts.labels, (counts.units + parts // 2) // parts)


def _in_round(counts: LabelCounts, number: int) -> LabelCounts:
    """Say in which round labels were found, in place of their weights."""
    return LabelCounts(counts.labels, np.full(len(counts.units), number, np.int64))


def _certify_labels(
    published: LabelCounts, axes: Sequence[LabelAxis], record: Release, salt: str
) -> pd.DataFrame:
    """Certify what is published: in the order of the labels, never in that of the data."""
    order = _in_order(published.labels)
    levels = [
        _level(column[order], axis) for column, axis in zip(published.labels, axes, strict=True)
    ]
    index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)
    if record.columns:
        released = pd.DataFrame({"units": published.units[order]}, index=index)
    else:
        released = pd.DataFrame(index=index, columns=pd.Index([], dtype=object))  # as files have
    by = tuple(
        replace(grouping, groups=level.nunique())
        for grouping, level in zip(record.query.by, levels, strict=True)
    )
    query = replace(record.query, by=by, cells=len(released))
    attach(released, [replace(record, query=query)], salt=salt)
    mark_found(released.index)
    return released


def _in_order(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Sort by the first column of labels, then by the next."""
    ranks = [pd.factorize(column, sort=True)[0] for column in labels]
    return np.lexsort(ranks[::-1])


def _level(labels: np.ndarray, axis: LabelAxis) -> pd.Index:
    """Make an index of one dtype, whatever was found: of texts, that of pandas itself."""
    dtype = str if axis.kind == "string" else labels.dtype
    return pd.Index(labels, dtype=dtype, name=axis.column, tupleize_cols=False)
