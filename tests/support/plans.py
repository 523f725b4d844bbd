"""What plans measure: tables with their designs and noise, for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from dpframe.checker.measured import BlockNoise
from dpframe.plan.designs import NoisyDesign
from dpframe.plan.plan import Plan, plan_release
from dpframe.plan.tables import Table
from dpframe.privacy.amounts import Spend
from dpframe.privacy.law import Law
from dpframe.strategies.base import Design


def plan_of(frame: Any, query: Any, mechanism: str = "auto", **spend: float) -> Plan:
    """Plan what a declared frame is asked for: one query, or several by name."""
    queries = query if isinstance(query, dict) else {None: query}
    return plan_release(frame.dp.declaration, queries, Spend.of(**spend), mechanism)


@dataclass(frozen=True, eq=False)
class Part:
    """A table that is measured; all else is of its design with noise."""

    table: Table
    noisy: NoisyDesign

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noisy, name)


def parts_of(plan: Plan) -> list[Part]:
    """Return what is measured, table by table."""
    return [Part(table, noisy) for table, noisy in plan.designs.items()]


def law_of(plan: Plan) -> Law:
    """Return the law of the noise."""
    return next(iter(plan.designs.values())).law


def noises_of(plan: Plan) -> list[BlockNoise]:
    """Return the noise of what is measured."""
    return [noisy.noise for noisy in plan.designs.values()]


def noise_of(law: Law, design: Design, scales: Sequence[float]) -> BlockNoise:
    """Return the noise of the blocks of a design."""
    return NoisyDesign(_in_cells(1), design, law, tuple(scales)).noise


def deviations_of(law: Law, design: Design, scales: Sequence[float], cells: int) -> list[float]:
    """Return the standard deviations of noise of these scales, in so many cells."""
    return NoisyDesign(_in_cells(cells), design, law, tuple(scales)).deviations


def _in_cells(cells: int) -> Any:
    return SimpleNamespace(cells=cells)
