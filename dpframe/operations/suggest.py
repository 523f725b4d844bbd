"""Caps and bounds without looking: released histograms, and the errors that they predict.

Plans of the later query are made first, without data; then the histogram is a release as any other.
Errors are computed from what came out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import pandas as pd

from dpframe.certificates.parts import LedgerPart
from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame, engine_for
from dpframe.engines.declared import SINGLE, check_keys_match
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Operation
from dpframe.operations.tables import PlannedTables, plan_tables
from dpframe.plan.cells import cells_of
from dpframe.plan.suggestion import plan_search
from dpframe.privacy.amounts import Spend
from dpframe.queries.suggestions import BoundSearch, CapSearch
from dpframe.steps.suggest_caps import BoundErrors, CapErrors
from dpframe.strategies.base import Estimate


@dataclass(frozen=True, eq=False)
class Suggestion(PlannedTables):
    """A histogram from which caps or bounds are suggested."""

    facts: CapErrors | BoundErrors = field(kw_only=True)

    def denoised(self, method: str | None, graph: object) -> Self:
        """Refuse to denoise what errors are predicted from."""
        return Operation.denoised(self, method, graph)

    def preview(self, rows: float | None = None) -> pd.DataFrame:
        """One row per bin: its error, and the noise of the later query."""
        planned = self.plan.tables[SINGLE]
        (prediction,) = planned.predictions()
        columns = {"std_error": prediction.std_error, **self.facts.columns_of_noise}
        return pd.DataFrame(columns, planned.table.cells.index)

    def certifier(
        self, entry: Entry
    ) -> Callable[[list[list[Estimate]], LedgerPart | None], pd.DataFrame]:
        """Write the certificate of the histogram, to which errors are added."""
        certify = super().certifier(entry)
        return lambda estimates, ledger: self.facts.add_to(certify(estimates, ledger))


def plan_suggestion(
    frame: Frame,
    declaration: Declaration,
    search: CapSearch | BoundSearch,
    spend: Spend,
    mechanism: str,
) -> Suggestion:
    """Check everything public about a suggestion, and plan its histogram and the later query."""
    engine = engine_for(frame)
    engine.check(frame, search.labels)
    query, facts = plan_search(declaration, search, spend)
    check_keys_match(engine, frame, cells_of(search.query, declaration).axes)
    tables = plan_tables(frame, declaration, query, spend, mechanism)
    return Suggestion(declaration, engine, tables.plan, several=False, facts=facts)
