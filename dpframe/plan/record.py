"""The certificate of a planned release as plain JSON, before its values are known."""

import math
from collections.abc import Hashable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from dpframe.declaration.checks import Bounds
from dpframe.declaration.facts import Declaration
from dpframe.ledger.ledger import Entry, Ledger
from dpframe.plan.plan import Plan, TablePlan
from dpframe.plan.tables import OutputColumn
from dpframe.privacy.calibration import gaussian_epsilon, mu_of_pure
from dpframe.privacy.rounding import below
from dpframe.queries.grid import Ticks
from dpframe.queries.kinds import Query
from dpframe.queries.timescale import microseconds
from dpframe.queries.where import Condition
from dpframe.results.certificate import FORMAT, pack
from dpframe.strategies import Prediction

__all__ = ["cost", "record_of"]

try:  # once, at import: nothing may fail between charge and release
    _LIBRARY = f"dpframe {version('dpframe')}"
except PackageNotFoundError:  # a source tree that is not installed
    _LIBRARY = "dpframe"


def cost(plan: Plan, declaration: Declaration) -> dict[str, float | None]:
    """Return what a whole release costs: mu, epsilon and delta, the latter two `None` if unknown.

    Gaussian noise of mu is (epsilon, delta)-DP for every delta > 0; the one spent with, or the
    budget's, is shown.
    """
    loss, spend = plan.loss, plan.spend
    if not loss.mu_squared:
        return {"mu": mu_of_pure(loss.epsilon), "epsilon": float(loss.epsilon), "delta": 0.0}
    budget = None if declaration.ledger is None else declaration.ledger.budget
    delta = spend.delta if spend.delta is not None or budget is None else below(budget.noise_delta)
    if not delta:
        return {"mu": loss.mu, "epsilon": None, "delta": None}
    # what was asked for as an epsilon is what was honored: the way back from mu may end an ulp
    # above it
    asked = float(spend.amount) if spend.kind == "epsilon" else gaussian_epsilon(delta, loss.mu)
    return {"mu": loss.mu, "epsilon": asked, "delta": delta}


def record_of(
    name: Hashable, planned: TablePlan, plan: Plan, declaration: Declaration, entry: Entry
) -> dict[str, Any]:
    """Write the certificate of one table, all but loadings and digest.

    It answers what NIST SP 800-226 asks of a claim: the unit and the neighboring relation, the
    parameters of the guarantee, the mechanism and its noise, what is public, and what was spent
    before.
    """
    table = planned.table
    known = table.workload.known_rows
    how = plan.how
    caps = table.caps
    unit = declaration.privacy_unit
    return {
        "format": FORMAT,
        "library": _LIBRARY,
        "release_id": entry.release_id,
        "released_at": entry.released_at,
        "privacy_unit": {
            "column": None if unit is None else str(unit),
            "caps": {
                "max_rows": caps.rows,
                "max_groups": caps.groups,
                "max_rows_per_group": caps.rows_per_group,
            },
        },
        "neighboring": declaration.neighboring,
        "query": {
            "name": None if name is None else str(name),
            "words": table.query.words,
            "by": [
                {
                    "column": str(axis.column),
                    "groups": len(axis),
                    "source": _source(axis.column, table.query, declaration),
                }
                for axis in table.cells.axes
            ],
            "cells": table.cells.size,
            "where": _text(table.where),
            "options": {
                "max_true": table.workload.most,
                "n_weight": table.workload.rows_weight,
                "objective": "worst" if table.workload.worst else "total",
                "n": None if known is None else {"rows": pack(known[0]), "variance": known[1]},
            },
        },
        "columns": [
            _column(column, prediction, planned)
            for column, prediction in zip(planned.outputs, planned.predictions(), strict=True)
        ],
        "mechanism": {
            "name": plan.mechanism,
            "title": how.title,
            "law": how.law.name,
            "scales": {str(block): scale for block, scale in enumerate(planned.scales)},
        },
        "common_blocks": [str(block) for block in sorted(planned.design.common)],
        "covariance": "Cells are independent, but for common blocks. In a cell, two columns have "
        "as covariance the sum over measured blocks of the products of their loadings.",
        "privacy_loss": {
            **cost(plan, declaration),
            "rho": plan.loss.rho,
            "joint": len(plan.tables) > 1,
        },
        "ledger": None if declaration.ledger is None else _ledger(declaration.ledger, entry),
        "steps": [],
    }


def _source(label: Hashable, query: Query, declaration: Declaration) -> str:
    """Say where the keys of a grouping column were given."""
    binned = query.bin_axis is not None and label == query.bin_axis.column
    if binned or query.keys is not None:
        return "call"
    return declaration.column(label).source


def _text(where: Condition | None) -> str | None:
    return None if where is None else where.text


def _column(column: OutputColumn, prediction: Prediction, planned: TablePlan) -> dict[str, Any]:
    """Describe one released column and its noise."""
    block = prediction.block
    bounds = column.bounds
    ticks = column.ticks
    return {
        "name": str(column.name),
        "kind": column.kind,
        "column": None if column.column is None else str(column.column),
        "where": _text(column.where),
        "bounds": None if bounds is None else [_bound(bound) for bound in bounds],
        "times": None if ticks is None or bounds is None else _times(ticks, bounds),
        "integer": column.integer,
        "noise": None if block is None else {"scale": planned.scales[block], "step": column.step},
        "std_error": None if prediction.per_row else _finite(prediction.std_error * column.step),
        "loadings": {},
    }


def _finite(number: float) -> float | None:
    """Leave out what JSON cannot say: bounds can be near the largest float."""
    return number if math.isfinite(number) else None


def _bound(bound: object) -> object:
    """Write a bound as JSON."""
    return str(bound) if isinstance(bound, pd.Timestamp | pd.Timedelta) else bound


def _times(ticks: Ticks, bounds: Bounds) -> dict[str, Any]:
    """Say what the numbers of a column of times stand for; those below are microseconds."""
    return {
        "counted": "from the lower bound, in seconds" if ticks.points else "in seconds",
        "origin": ticks.origin,
        "bounds": [microseconds(bound) for bound in bounds],
        "zone": None if ticks.zone is None else str(ticks.zone),
    }


def _ledger(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    status = ledger.last_status()  # nothing may fail between charge and release
    return {
        "id": ledger.ledger_id,
        "budget": asdict(ledger.budget),
        "part": status.part(entry.loss),
        "used": status.used,
    }
