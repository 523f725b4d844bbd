"""The part of a certificate about cells that were measured together, layer by layer.

As in `record`, docstrings are the descriptions of the JSON Schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from dpframe.certificates.json_records import Limits, NotNegative, Part, require
from dpframe.certificates.packed import BlockName
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
    def described(self) -> Mapping[str, Structure]:
        """What is known of the noise of each block."""
        return {
            block: Structure(self.kind, self.sizes, self.layers, scales, self.rounding)
            for block, scales in self.tau.items()
        }
