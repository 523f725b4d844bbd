"""What a release would cost and how accurate it would be, before anything is spent."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpframe.declaration.facts import Declaration
from dpframe.engines import Frame
from dpframe.engines.declared import declaration_of
from dpframe.plan.plan import Plan, TablePlan
from dpframe.plan.record import cost
from dpframe.plan.tables import OutputColumn
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import EachRow
from dpframe.queries.kinds import Query
from dpframe.release import checked_plan
from dpframe.strategies import Prediction

__all__ = ["preview"]


def preview(
    frame: Frame,
    queries: Query | Mapping[str, Query],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    rho: float | None = None,
    share: float | None = None,
    mechanism: str = "auto",
    compare: bool = False,
    privacy_unit: EachRow | None = None,
) -> pd.DataFrame:
    """Show cost and error of a release without making it; reads no data and spends nothing.

    Parameters
    ----------
    frame
        A declared frame. Only its declaration and its column labels are read.
    queries, epsilon, delta, mu, rho, share, mechanism
        As in `release`.
    compare
        Whether to show one row per mechanism that "auto" would compare.
    privacy_unit
        As in `release`.

    Returns
    -------
    DataFrame
        One row per output column. `mechanism`; `sigma`, the scale of the noise in the units of the
        column; `std_error` and `half_width_95` of one cell, to be divided by the number of rows in
        the cell where `per` says "1 / rows" (means, for the worst they can be); the cost of the
        whole release as `mu`, `epsilon` and `delta`; `fits`, whether the budget allows it. With
        `compare`, one row per mechanism, the one chosen first: `relative_error`, the root mean
        square of all errors relative to the chosen one's, and the standard errors of the outputs.

    Raises
    ------
    CalibrationError, DeclarationError, QueryError, UnknownColumnError
        As `release`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> query = dpf.count(by="zone", keys=["A", "B", "C"])
    >>> preview(trips, query, epsilon=0.5)[["mechanism", "epsilon", "fits"]].to_dict("list")
    {'mechanism': ['laplace'], 'epsilon': [0.5], 'fits': [True]}
    """
    spend = Spend.of(epsilon=epsilon, delta=delta, mu=mu, rho=rho, share=share)
    declaration = declaration_of(frame).with_unit(privacy_unit)
    _, plan = checked_plan(frame, declaration, queries, spend, mechanism)
    if compare:
        return _compared(plan, several=isinstance(queries, Mapping))
    rows = []
    labels: list[tuple[Hashable, Hashable]] = []
    for name, planned in plan.tables.items():
        for column, prediction in zip(planned.outputs, planned.predictions(), strict=True):
            labels.append((name, column.name))
            rows.append(_previewed(plan, planned, column, prediction))
    table = pd.DataFrame(rows).assign(**cost(plan, declaration), fits=_fits(plan, declaration))
    if isinstance(queries, Mapping):
        table.index = pd.MultiIndex.from_tuples(labels, names=["query", "column"])
    else:
        table.index = pd.Index([label for _, label in labels], name="column", tupleize_cols=False)
    return table


def _compared(plan: Plan, *, several: bool) -> pd.DataFrame:
    """One row per mechanism."""
    plans = [plan, *plan.others]
    rows = []
    for other in plans:
        row: dict[Hashable, float] = {"relative_error": other.error_relative_to(plan)}
        for name, planned in other.tables.items():
            for column, prediction in zip(planned.outputs, planned.predictions(), strict=True):
                label = (name, column.name) if several else column.name
                row[label] = prediction.std_error * column.step
        rows.append(row)
    index = pd.Index([other.mechanism for other in plans], name="mechanism")
    table = pd.DataFrame(rows, index=index)
    return table.sort_values("relative_error", kind="stable")


def _previewed(
    plan: Plan, planned: TablePlan, column: OutputColumn, prediction: Prediction
) -> dict[str, Any]:
    """One row of a preview."""
    law, step = plan.how.law, column.step
    error = prediction.std_error * step
    if prediction.block is None:
        sigma, width = np.nan, law.quantile(0.95) * error
    else:
        scale = planned.scales[prediction.block]
        sigma, width = scale * step, step * law.half_width(scale, 0.95)
    return {
        "mechanism": plan.mechanism,
        "sigma": sigma,
        "std_error": error,
        "half_width_95": width,
        "per": "1 / rows" if prediction.per_row else "cell",
    }


def _fits(plan: Plan, declaration: Declaration) -> bool:
    if declaration.ledger is None:
        return True
    return declaration.ledger.allows(plan.loss)
