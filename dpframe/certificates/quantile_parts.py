"""The part of a certificate about quantiles that were read off released numbers of rows.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from dpframe.certificates.json_records import Digest, Limits, Part

_Part: TypeAlias = Annotated[float, Limits(gt=0, lt=1)]


@dataclass(frozen=True)
class QuantilesStep(Part):
    """Quantiles were read off the numbers of rows in bins, which they replace.

    A value is where the number of rows below, made non-negative and increasing by least squares,
    crosses its part of all rows; straight inside a bin. Its interval holds all values that a test
    of the noise does not reject.

    Parameters
    ----------
    step
        What kind of step it was.
    column
        The column whose bins these were.
    quantiles
        The quantiles, in the order of the rows of a group.
    level
        Confidence level of the intervals.
    simultaneous
        Whether it is that of all intervals of the table at once.
    of
        Digest of the table before the step.
    """

    step: Literal["quantiles"]
    column: str
    quantiles: Annotated[tuple[_Part, ...], Limits(min_length=1)]
    level: _Part
    simultaneous: bool
    of: Digest
