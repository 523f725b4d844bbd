"""The parts of a certificate about what means and variances were read off.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from dpframe.certificates.json_records import Limits, NotNegative, Part, require
from dpframe.certificates.packed import BlockName, Packed, pack, packed_loadings, unpack
from dpframe.strategies import Moments, Ratio
from dpframe.strategies.structure import Structure

AtLeastOne = Annotated[int, Limits(ge=1)]
Position = Annotated[int, Limits(ge=0)]


@dataclass(frozen=True)
class StructurePart(Part):
    """How the errors of all cells go together, from which every standard error follows.

    Let h_j be the integer contrast (1, ..., 1, -j, 0, ...) with j ones, j = 1, 2, ..., of squared
    length j (j + 1). What was measured is the sum over all cells, and contrasts; each has noise of
    its own, of variance tau^2 |h|^2 + rounding, with |h|^2 the product of the squared lengths of
    its contrasts. A cell is the sum of what was measured, each times its coefficient for that cell
    over its squared length. The noise of a weighted sum of cells then has as variance the sum of
    the squared weights of what was measured, times these variances.

    Parameters
    ----------
    kind
        "margins": one of several tables that agree; a layer has the contrasts along some columns of
        the index, of sums over all others. "tree": bins are the leaves of a tree, one for each
        group; a layer has the contrasts of the children of the nodes of a level.
    sizes
        For margins, the number of groups of each column of the index; for a tree, the number of
        children of a node, from the root down. Leaves beyond the last bin are empty.
    layers
        For margins, the columns of the index along which there are contrasts, by position: the
        tables released together share the layers of the columns that they share. For a tree, the
        level of the nodes, 1 for the children of the root; none for the sum over all bins.
    tau
        By measured block, the scale of the noise of each layer.
    rounding
        Variance that rounding the noise to integers adds.
    """

    kind: Literal["margins", "tree"]
    sizes: tuple[AtLeastOne, ...]
    layers: Annotated[tuple[tuple[Position, ...], ...], Limits(min_length=1)]
    tau: Annotated[Mapping[BlockName, tuple[NotNegative, ...]], Limits(min_length=1)]
    rounding: NotNegative

    def __post_init__(self) -> None:
        lengths = {len(scales) for scales in self.tau.values()}
        require(lengths == {len(self.layers)}, "every layer has one scale per block")
        require(len(set(self.layers)) == len(self.layers), "a layer is named once")
        known = len(self.sizes) + (self.kind == "tree")
        places = [place for layer in self.layers for place in layer]
        require(all(place < known for place in places), "layers are along axes that there are")

    @property  # records say what their attributes are: nothing is kept beside
    def by_block(self) -> Mapping[str, Structure]:
        """What is known of the noise of each block."""
        return {
            block: Structure(self.kind, self.sizes, self.layers, scales, self.rounding)
            for block, scales in self.tau.items()
        }


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
