"""Quantiles that are selected exactly: no noise is added, and none has to be hidden."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from dpframe.certificates.certificate import Release
from dpframe.certificates.parts import LedgerPart
from dpframe.certificates.verify import attach
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame
from dpframe.engines.declared import check_keys_match, check_queries
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Operation
from dpframe.plan.record import certificate_for, cost, record_of_selection
from dpframe.plan.selection import SelectionPlan, plan_selection
from dpframe.privacy.amounts import Spend
from dpframe.privacy.selection import select
from dpframe.queries.quantiles import LEVEL, Quantile


class SelectedQuantiles(Operation[SelectionPlan, np.ndarray, np.ndarray]):
    """Quantiles to be selected."""

    def preview(self) -> pd.DataFrame:
        """One row per quantile: how far off it may be."""
        plan, declaration = self.plan, self.declaration
        table = {
            "mechanism": plan.mechanism,
            "rank_error_95": plan.rank_errors(),
            **cost(plan, declaration),
            "fits": declaration.allows(plan.loss),
        }
        quantiles = pd.Index([float(one) for one in plan.query.quantiles], name=LEVEL)
        return pd.DataFrame(table, index=quantiles)

    def measure(self, frame: Frame) -> np.ndarray:
        """Count the rows of all groups by bin."""
        (totals,) = self.engine.totals(frame, [self.plan.task])
        rows: np.ndarray = totals[0].reshape(self.plan.groups.size, len(self.plan.bins.axis))
        return rows

    def draw(self, exact: np.ndarray) -> np.ndarray:
        """Select bins."""
        return select(exact, self.plan.selection, self.plan.bins.parts)

    def certifier(self, entry: Entry) -> Callable[[np.ndarray, LedgerPart | None], pd.DataFrame]:
        """Write the certificate but for values and ledger."""
        record = record_of_selection(self.plan, self.declaration, entry)
        index = self.plan.cells.index
        return lambda chosen, ledger: _certify_quantiles(
            self.plan, chosen, index, replace(record, ledger=ledger)
        )


def plan_quantiles(
    frame: Frame, declaration: Declaration, query: Quantile, spend: Spend
) -> SelectedQuantiles:
    """Check everything public about quantiles to be selected, and plan it."""
    engine, _ = check_queries(frame, query)
    plan = plan_selection(declaration, query, spend)
    engine.check(frame, plan.columns)
    check_keys_match(engine, frame, plan.groups.axes)
    return SelectedQuantiles(declaration, engine, plan)


def _certify_quantiles(
    plan: SelectionPlan, chosen: np.ndarray, index: pd.Index, record: Release
) -> pd.DataFrame:
    """Certify the values of the bins that were selected."""
    values = plan.bins.values[chosen].ravel()
    released = pd.DataFrame({0: values}, index=index)
    released.columns = pd.Index([plan.column.name], tupleize_cols=False)
    attach(released, certificate_for(record))
    return released
