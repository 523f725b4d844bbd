"""Quantiles of a private frame, selected exactly: no noise is added, and none has to be hidden.

The order is that of every release: validate, plan, charge, total the integers, draw, decode.
"""

from dataclasses import replace
from typing import Unpack

import numpy as np
import pandas as pd

from dpframe.certificates import parts
from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import QuantilePart
from dpframe.certificates.verify import attach
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame
from dpframe.engines.declared import check_queries, check_readable
from dpframe.errors import CalibrationError, QueryError
from dpframe.ledger.log import Entry
from dpframe.operations.charging import RecordOptions, charge_and_make, entry_of
from dpframe.plan.record import before_values, certificate_for, cost, source_of
from dpframe.plan.selection import SelectionPlan, plan_selection
from dpframe.privacy.amounts import Spend
from dpframe.privacy.selection import GEOMETRIC, SELECT, select
from dpframe.queries.quantiles import LEVEL, Quantile
from dpframe.queries.tasks import Axis

_COVARIANCE = (
    "No noise was added: values were selected, independently in different groups, and one after "
    "the other in a group."
)


def record_of_selection(plan: SelectionPlan, declaration: Declaration, entry: Entry) -> Release:
    """Write what is promised about quantiles to be selected, all but the ledger."""
    query, column = plan.query, plan.column
    lower, upper = column.bounds or (0, 1)
    return Release(
        **before_values(declaration, plan.caps, entry),
        query=parts.QueryPart(
            name=None,
            words=query.words,
            by=tuple(_grouping(axis, plan, declaration) for axis in plan.cells.axes),
            cells=plan.cells.size,
            outputs=1,
            where=None if query.where is None else query.where.text,
            options=parts.OptionsPart(max_true=None, n_weight=0.0, objective="total", n=None),
        ),
        columns=(
            QuantilePart(
                "quantile", str(column.name), None, None, str(column.column), (lower, upper)
            ),
        ),
        mechanism=_selection(plan),
        covariance=_COVARIANCE,
        privacy_loss=parts.LossPart(
            **cost(plan, declaration), rho=plan.loss.rho, extra_delta=0.0, joint=False
        ),
    )


def _grouping(axis: Axis, plan: SelectionPlan, declaration: Declaration) -> parts.GroupingPart:
    """Say where the keys of a level were given."""
    label = axis.column
    source = "call" if label == LEVEL else source_of(label, plan.query, declaration)
    return parts.GroupingPart(str(label), len(axis), source, rest=None)


def _selection(plan: SelectionPlan) -> parts.SelectionPart:
    """Say how quantiles are selected."""
    chosen = plan.selection
    rows = {one.at: scale / one.b for one, scale in zip(chosen.steps, chosen.scales, strict=True)}
    return parts.SelectionPart(
        kind="selection",
        name=SELECT,
        title="permute-and-flip selection",
        law=GEOMETRIC,
        quantiles=tuple(map(float, plan.query.quantiles)),
        bins=len(plan.bins.axis),
        rounds=chosen.levels,
        scales=tuple(rows[at] for at in sorted(rows)),
    )


def check_denoising_of_quantiles(denoise: str | None, graph: object) -> None:
    """Refuse to denoise what has no noise."""
    if denoise is not None or graph is not None:
        raise QueryError(
            "denoise= and graph= are for noise, and none is added to quantiles that are selected. "
            "Leave them out."
        )


def check_no_errors(*, wanted: bool) -> None:
    """Refuse to look for the errors of what has no noise."""
    if wanted:
        raise CalibrationError(
            "std_error=, half_width=, compare= and rows= are for errors of noise, and none is "
            "added to quantiles that are selected: preview an amount, epsilon=..., and see "
            "rank_error_95."
        )


def release_quantiles(
    frame: Frame,
    declaration: Declaration,
    query: Quantile,
    spend: Spend,
    **recorded: Unpack[RecordOptions],
) -> pd.DataFrame:
    """Release selected quantiles; see `dpframe.quantile` and `dpframe.release`."""
    engine, plan = _plan_for_frame(frame, declaration, query, spend)
    entry = entry_of(query.words, plan, declaration, **recorded)
    record = record_of_selection(plan, declaration, entry)
    index = plan.cells.index

    def measure(ledger: parts.LedgerPart | None) -> pd.DataFrame:
        (totals,) = engine.totals(frame, [plan.task])
        rows = totals[0].reshape(plan.groups.size, len(plan.bins.axis))
        chosen = select(rows, plan.selection, plan.bins.parts)
        return _certify_quantiles(plan, chosen, index, replace(record, ledger=ledger))

    return charge_and_make(frame, declaration, spend, entry, measure)


def preview_quantiles(
    frame: Frame, declaration: Declaration, query: Quantile, spend: Spend
) -> pd.DataFrame:
    """Show how far off selected quantiles may be; see `dpframe.operations.preview`."""
    _, plan = _plan_for_frame(frame, declaration, query, spend)
    quantiles = pd.Index([float(one) for one in query.quantiles], name=LEVEL)
    return pd.DataFrame(
        {
            "mechanism": plan.mechanism,
            "rank_error_95": plan.rank_errors(),
            **cost(plan, declaration),
            "fits": declaration.allows(plan.loss),
        },
        index=quantiles,
    )


def _plan_for_frame(
    frame: Frame, declaration: Declaration, query: Quantile, spend: Spend
) -> tuple[Engine, SelectionPlan]:
    """Check everything public and plan, and return the engine that can read the frame."""
    engine, _ = check_queries(frame, query)
    plan = plan_selection(declaration, query, spend)
    check_readable(engine, frame, plan)
    return engine, plan


def _certify_quantiles(
    plan: SelectionPlan, chosen: np.ndarray, index: pd.Index, record: Release
) -> pd.DataFrame:
    """Certify the values of the bins that were selected."""
    values = plan.bins.values[chosen].ravel()
    released = pd.DataFrame({0: values}, index=index)
    released.columns = pd.Index([plan.column.name], tupleize_cols=False)
    attach(released, certificate_for(record))
    return released
