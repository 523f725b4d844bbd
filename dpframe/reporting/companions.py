"""Intervals and percentages that are columns of a released table, for the report of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from dpframe.certificates.added_steps import IntervalsStep, PercentStep
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.companion_columns import ENDS, PERCENT, followers
from dpframe.certificates.quantile_parts import QuantilesStep
from dpframe.certificates.steps import RenameStep, StepPart

_WITH_ENDS = IntervalsStep | QuantilesStep


@dataclass(frozen=True)
class Beside:
    """Where intervals and percentages of released columns are, by the place of the column.

    Parameters
    ----------
    ends
        Places of both ends of its intervals.
    level
        Of which level they are.
    percent
        Places of percentages and their ends, of what they are, and of which level the ends.
    """

    ends: Mapping[int, list[int]]
    level: str
    percent: Mapping[int, tuple[list[int], tuple[str, str]]]

    @property
    def places(self) -> set[int]:
        """The places of all of these columns."""
        pairs = [*self.ends.values(), *(places for places, _ in self.percent.values())]
        return {place for places in pairs for place in places}


def published_beside(released: pd.DataFrame, certificate: Certificate) -> Beside:
    """Find the intervals and percentages of a table that have both ends.

    Parameters
    ----------
    released
        The table, in rows.
    certificate
        That of its release.
    """
    ends, percent = {}, {}
    steps = _percent_steps(certificate.steps)
    for at in range(len(certificate.columns)):
        there = {suffix: later for later, suffix in followers(released, certificate, at).items()}
        if {*ENDS} <= there.keys():
            ends[at] = [there[end] for end in ENDS]
        wanted = [f"{PERCENT}{end}" for end in ("", *ENDS)]
        step = steps.get(str(released.columns[at]))
        if there.keys() >= {*wanted} and step is not None:
            within = "" if step.by is None else f" by {', '.join(step.by)}"
            said = f"of the total{within}", f"{100 * step.level:g} %"
            percent[at] = [there[suffix] for suffix in wanted], said
    found = next((step for step in certificate.steps if isinstance(step, _WITH_ENDS)), None)
    if found is None:
        return Beside({}, "", percent)
    at_once = ", all at once," if found.simultaneous else ""
    return Beside(ends, f"{100 * found.level:g} %{at_once}", percent)


def _percent_steps(steps: tuple[StepPart, ...]) -> dict[str, PercentStep]:
    """Return the steps that added percentages, by what their columns are called now."""
    found: dict[str, PercentStep] = {}
    for step in steps:
        if isinstance(step, PercentStep):
            found[step.column] = step
        if isinstance(step, RenameStep):
            found = {
                step.columns.get(name, name): _renamed(one, step) for name, one in found.items()
            }
    return found


def _renamed(step: PercentStep, names: RenameStep) -> PercentStep:
    by = None if step.by is None else tuple(names.levels.get(name, name) for name in step.by)
    return replace(step, by=by)
