"""The parts of a certificate about what means and variances were read off.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpframe.certificates.json_records import NotNegative, Part
from dpframe.certificates.packed import BlockName, Packed, pack, packed_loadings, unpack
from dpframe.strategies import Moments, Ratio


@dataclass(frozen=True)
class RatioPart(Part):
    """What a mean was read off, so that it can be checked for bias, and denoised.

    Parameters
    ----------
    centered
        The noisy sum of values, each less the middle of the bounds, in the units of the column.
    rows
        The noisy number of rows, or the one that was given.
    of_centered
        By how much one standard deviation of each measured block moves the sum.
    of_rows
        By how much it moves the number of rows.
    """

    centered: float | Packed
    rows: float | Packed
    of_centered: Mapping[BlockName, float | Packed]
    of_rows: Mapping[BlockName, float | Packed]


def ratio_part(ratio: Ratio | None, step: float) -> RatioPart | None:
    """Write what a mean was read off, sums in its units; `None` for other outputs."""
    if ratio is None:
        return None
    return RatioPart(
        centered=pack(np.multiply(ratio.centered, step)),
        rows=pack(ratio.rows),
        of_centered=packed_loadings(ratio.of_centered, step),
        of_rows=packed_loadings(ratio.of_rows, 1.0),
    )


@dataclass(frozen=True)
class MomentsPart(Part):
    """What a variance or a standard deviation was read off, so that intervals can be made.

    Values count as y: how far they are off the middle of the bounds, in halves of their width.

    Parameters
    ----------
    rows
        The noisy number of rows.
    first
        The noisy sum of y.
    rest
        The noisy sum of y^2 - 1/2.
    of_rows
        By how much one standard deviation of each measured block moves the number of rows.
    of_first
        By how much it moves the sum of y.
    of_rest
        By how much it moves that of y^2 - 1/2.
    half_width
        Half the width of the bounds, in the units of the column.
    """

    rows: Packed
    first: Packed
    rest: Packed
    of_rows: Mapping[BlockName, float]
    of_first: Mapping[BlockName, float]
    of_rest: Mapping[BlockName, float]
    half_width: NotNegative

    @property
    def numbers(self) -> Moments:
        """The noisy numbers, by numbers of blocks."""
        rows, first, rest = (
            np.asarray(unpack(part)) for part in (self.rows, self.first, self.rest)
        )
        of_rows, of_first, of_rest = (
            {int(block): loading for block, loading in part.items()}
            for part in (self.of_rows, self.of_first, self.of_rest)
        )
        return Moments(rows, first, rest, of_rows, of_first, of_rest, self.half_width)


def moments_part(moments: Moments | None, step: float) -> MomentsPart | None:
    """Write what a variance was read off; `None` for other outputs."""
    if moments is None:
        return None
    rows, first, rest = (
        Packed.of(np.asarray(part)) for part in (moments.rows, moments.first, moments.rest)
    )
    of = (moments.of_rows, moments.of_first, moments.of_rest)
    of_rows, of_first, of_rest = (
        {str(block): loading for block, loading in part.items()} for part in of
    )
    half_width = moments.half_width * step
    return MomentsPart(rows, first, rest, of_rows, of_first, of_rest, half_width)
