"""Labels that are not known beforehand: which of them may be published, with how many units.

Without numbers of units they are found in rounds: see `dpframe.privacy.threshold`.

It is the one release whose rows are a result, as its counts are: dtype and order of the labels say
nothing besides.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpframe.cells.record import attach
from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import LedgerPart
from dpframe.certificates.witness_parts import witness_parts
from dpframe.checker.rounds import LabelRound, worst_labels
from dpframe.checker.witness import Witness
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame, engine_for
from dpframe.engines.labels import LabelCounts
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Operation
from dpframe.operations.probing import check_rows
from dpframe.plan.discovery import DiscoveryPlan, plan_discovery
from dpframe.plan.record import Charged, outlook, record_of_discovery
from dpframe.privacy.amounts import Spend
from dpframe.privacy.threshold import LabelThreshold
from dpframe.provenance import mark_found
from dpframe.queries.discovery import Discovery
from dpframe.queries.tasks import Axis, LabelAxis

_CHANCES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False)
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


class Labels(Operation[DiscoveryPlan, LabelCounts | Rounds, LabelCounts]):
    """Labels to be found, with the number of units on each, or the round in which it was found."""

    @property
    def axes(self) -> Mapping[Hashable, Sequence[Axis]]:
        """There are no groups yet."""
        return {}

    def preview(self) -> pd.DataFrame:
        """One row per mechanism, the one that would be used first."""
        plans = [self.plan, *self.plan.others]
        index = pd.Index([one.mechanism for one in plans], name="mechanism")
        return pd.DataFrame([_preview_mechanism(one, self.declaration) for one in plans], index)

    def witness(self) -> Witness:
        """Find the worst unit of each round."""
        check_rows(self.declaration, [self.plan.task])
        rounds = [
            LabelRound(one.law, one.scale, one.least, _weights(one))
            for one in self.plan.threshold.rounds
        ]
        return Witness(worst_labels(rounds, self.declaration.neighboring))

    def measure(self, frame: Frame) -> LabelCounts | Rounds:
        """Count the units of all labels; of a set, in the first round."""
        counted = self.engine.labels(frame, self.plan.task)
        return counted if self.plan.wanted.counts else Rounds(counted, partial(self._left, frame))

    def _left(self, frame: Frame, found: LabelCounts) -> LabelCounts:
        """Count the weights of labels that were not found yet."""
        return self.engine.labels(frame, replace(self.plan.task, without=found.labels))

    def draw(self, exact: LabelCounts | Rounds) -> LabelCounts:
        """Draw noise for all labels, and keep those that reach the threshold."""
        if isinstance(exact, LabelCounts):
            return _publish_labels(exact, self.plan.threshold)
        first, *others = self.plan.threshold.rounds
        found = _in_round(_publish_labels(exact.first, first), 1)
        for number, threshold in enumerate(others, 2):
            found += _in_round(_publish_labels(exact.others(found), threshold), number)
        return found

    def certifier(
        self, entry: Entry, witness: Witness
    ) -> Callable[[LabelCounts, LedgerPart | None], pd.DataFrame]:
        """Write the certificate but for the number of labels and the ledger."""
        charged = Charged(entry, witness_parts(witness))
        record = record_of_discovery(self.plan, self.declaration, charged)
        axes = self.plan.wanted.axes
        return lambda published, ledger: _certify_labels(
            published, axes, replace(record, ledger=ledger)
        )


def _weights(threshold: LabelThreshold) -> dict[int, int]:
    """Return what each label of a unit counts for, by how many it has."""
    if threshold.weights:
        return dict(enumerate(threshold.weights, 1))
    return {threshold.labels: 1}  # with fewer labels, it moves and shows less


def plan_labels(
    frame: Frame, declaration: Declaration, wanted: Discovery, spend: Spend, mechanism: str
) -> Labels:
    """Check everything public about labels to be found, and plan it."""
    engine = engine_for(frame)
    engine.check(frame, wanted.labels)
    plan = plan_discovery(declaration, wanted, spend, mechanism)
    engine.check(frame, plan.columns)
    return Labels(declaration, engine, plan)


def _preview_mechanism(plan: DiscoveryPlan, declaration: Declaration) -> dict[str, Any]:
    """Say what to expect of one mechanism; of a set, in the last round."""
    threshold = plan.threshold
    deviation = threshold.law.standard_deviation(threshold.scale)
    amounts: tuple[float, float, float] = threshold.least, threshold.scale, deviation
    sizes = _sizes_found(threshold)
    if threshold.weights:
        one, full = threshold.weights[0], threshold.weights[-1]
        amounts = amounts[0] / one, amounts[1] / one, amounts[2] / one
        sizes = {
            **_sizes_found(threshold, one),
            **{f"{name}_full": size for name, size in _sizes_found(threshold, full).items()},
        }
    return {
        **dict(zip(("threshold", "sigma", "std_error"), amounts, strict=True)),
        **sizes,
        **outlook(plan, declaration),
        "extra_delta": float(plan.loss.delta),
    }


def _sizes_found(threshold: LabelThreshold, weight: int = 1) -> dict[str, int]:
    """Say how many units of a weight a label takes to be found, by probability."""
    return {f"found_{q:.0%}"[:-1]: threshold.size_published(q, weight) for q in _CHANCES}


def _publish_labels(found: LabelCounts, threshold: LabelThreshold) -> LabelCounts:
    """Draw noise for all labels, and keep those that reach the threshold."""
    (noise,) = threshold.law.draw([threshold.scale], len(found.units))
    noisy = np.add(found.units, noise, out=noise)
    published = LabelCounts(found.labels, noisy)
    return _of_rows(published, noisy >= threshold.least)


def _of_rows(found: LabelCounts, rows: np.ndarray) -> LabelCounts:
    """Return some of the labels."""
    return LabelCounts(tuple(column[rows] for column in found.labels), found.units[rows])


def _in_round(found: LabelCounts, number: int) -> LabelCounts:
    """Say in which round labels were found, in place of their weights."""
    return LabelCounts(found.labels, np.full(len(found.units), number, np.int64))


def _certify_labels(
    published: LabelCounts, axes: Sequence[LabelAxis], record: Release
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
    attach(released, [replace(record, query=query)])
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
