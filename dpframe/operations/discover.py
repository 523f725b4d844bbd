"""Labels that are not known beforehand: which of them may be published, with how many units.

It is the one release whose rows are a result, as its counts are: dtype and order of the labels say
nothing besides.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import LedgerPart
from dpframe.certificates.verify import attach
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame, engine_for
from dpframe.engines.labels import LabelCounts
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Operation
from dpframe.plan.discovery import DiscoveryPlan, plan_discovery
from dpframe.plan.record import certificate_for, outlook, record_of_discovery
from dpframe.privacy.amounts import Spend
from dpframe.privacy.threshold import LabelThreshold
from dpframe.queries.discovery import Discovery
from dpframe.queries.tasks import LabelAxis

_CHANCES = (0.05, 0.5, 0.95)


class Labels(Operation[DiscoveryPlan, LabelCounts, LabelCounts]):
    """Labels to be found, with the number of units on each."""

    def preview(self) -> pd.DataFrame:
        """One row per mechanism, the one that would be used first."""
        plans = [self.plan, *self.plan.others]
        index = pd.Index([one.mechanism for one in plans], name="mechanism")
        return pd.DataFrame([_preview_mechanism(one, self.declaration) for one in plans], index)

    def measure(self, frame: Frame) -> LabelCounts:
        """Count the units of all labels."""
        return self.engine.labels(frame, self.plan.task)

    def draw(self, exact: LabelCounts) -> LabelCounts:
        """Draw noise for all labels, and keep those that reach the threshold."""
        return _publish_labels(exact, self.plan.threshold)

    def certifier(self, entry: Entry) -> Callable[[LabelCounts, LedgerPart | None], pd.DataFrame]:
        """Write the certificate but for the number of labels and the ledger."""
        record = record_of_discovery(self.plan, self.declaration, entry)
        axes = self.plan.wanted.axes
        return lambda published, ledger: _certify_labels(
            published, axes, replace(record, ledger=ledger)
        )


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
    """Say what to expect of one mechanism."""
    threshold = plan.threshold
    return {
        "threshold": threshold.least,
        "sigma": threshold.scale,
        "std_error": threshold.law.standard_deviation(threshold.scale),
        **{f"found_{chance:.0%}"[:-1]: threshold.size_published(chance) for chance in _CHANCES},
        **outlook(plan, declaration),
        "extra_delta": float(plan.loss.delta),
    }


def _publish_labels(found: LabelCounts, threshold: LabelThreshold) -> LabelCounts:
    """Draw noise for all labels, and keep those that reach the threshold."""
    (noise,) = threshold.law.draw([threshold.scale], len(found.units))
    noisy = np.add(found.units, noise, out=noise)
    kept = noisy >= threshold.least
    return LabelCounts(tuple(column[kept] for column in found.labels), noisy[kept])


def _certify_labels(
    published: LabelCounts, axes: Sequence[LabelAxis], record: Release
) -> pd.DataFrame:
    """Certify what is published: in the order of the labels, never in that of the data."""
    order = _in_order(published.labels)
    levels = [
        _level(column[order], axis) for column, axis in zip(published.labels, axes, strict=True)
    ]
    index = levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)
    released = pd.DataFrame({"units": published.units[order]}, index=index)
    by = tuple(
        replace(grouping, groups=level.nunique())
        for grouping, level in zip(record.query.by, levels, strict=True)
    )
    query = replace(record.query, by=by, cells=len(released))
    attach(released, certificate_for(replace(record, query=query)))
    return released


def _in_order(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Sort by the first column of labels, then by the next."""
    ranks = [pd.factorize(column, sort=True)[0] for column in labels]
    return np.lexsort(ranks[::-1])


def _level(labels: np.ndarray, axis: LabelAxis) -> pd.Index:
    """Make an index of one dtype, whatever was found: of texts, that of pandas itself."""
    dtype = str if axis.kind == "string" else labels.dtype
    return pd.Index(labels, dtype=dtype, name=axis.column, tupleize_cols=False)
