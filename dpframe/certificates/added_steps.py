"""The parts of a certificate about intervals and percentages that were put beside a release.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from dpframe.certificates.json_records import Digest, Limits, Part

_Level: TypeAlias = Annotated[float, Limits(gt=0, lt=1)]


@dataclass(frozen=True)
class IntervalsStep(Part):
    """The ends of intervals were put beside all released columns, `<column>_low` and `_high`.

    Parameters
    ----------
    step
        What kind of step it was.
    level
        Confidence level.
    simultaneous
        Whether it is that of all intervals of the release at once.
    sampling
        Whether intervals of rates are about more rows, of which these are a sample.
    of
        Digest of the table before the step.
    """

    step: Literal["with_intervals"]
    level: _Level
    simultaneous: bool
    sampling: bool
    of: Digest


@dataclass(frozen=True)
class PercentStep(Part):
    """Percentages of the total of a column were put beside it, `<column>_percent`, with intervals.

    Parameters
    ----------
    step
        What kind of step it was.
    column
        The column, a count or a sum.
    by
        Levels of the index: the total is that of the rows with the same keys there; null: of all
        rows.
    level
        Confidence level of `<column>_percent_low` and `<column>_percent_high`.
    of
        Digest of the table before the step.
    """

    step: Literal["with_percent"]
    column: str
    by: Annotated[tuple[str, ...], Limits(min_length=1)] | None
    level: _Level
    of: Digest
