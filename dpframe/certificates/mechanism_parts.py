"""The parts of a certificate about mechanisms: a record for each kind, with its own fields.

As in `parts`, docstrings are the descriptions of the JSON Schema.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias, assert_never

from dpframe.certificates import json_records as records
from dpframe.privacy.law import Law
from dpframe.privacy.laws import LAWS, law_named
from dpframe.privacy.selection import GEOMETRIC, SELECT
from dpframe.queries.tasks import LabelKind
from dpframe.strategies import MECHANISMS
from dpframe.strategies.domain import MarginStructure, Structure, TreeStructure
from dpframe.strategies.ordered import MOST_CHILDREN


class MechanismPart(records.Record):
    """The mechanism: where the noise comes from.

    It works on exact integers, in the hands of the trusted holder of the data (central model).

    Parameters
    ----------
    kind
        What kind of mechanism it is.
    name
        Name of the mechanism.
    title
        The mechanism in words.
    """

    kind: str
    name: str
    title: records.Text


class NoisyMechanismPart(MechanismPart):
    """Noise is added to exact integers as integers.

    It is drawn exactly, so that no low bits of floating-point numbers tell the truth.

    Parameters
    ----------
    law
        Law of the noise on every measured integer: a Gaussian, rounded, the discrete Laplace law,
        that of a box, which is the discrete Laplace law for a block that is drawn on its own, or a
        staircase. The scale of a staircase is D + b: all integers that are D farther from 0 are b
        times as likely, with a whole D and b below 1.
    """

    name: Annotated[str, records.OneOf(MECHANISMS)]
    law: Annotated[str, records.OneOf(LAWS)]

    def __post_init__(self) -> None:
        law = MECHANISMS[self.name].law.name
        records.require(self.law == law, "the law is that of the mechanism")

    @property
    def distribution(self) -> Law:
        """The law of the noise, by which intervals are made."""
        return law_named(self.law)

    @property
    def scale_by_block(self) -> Mapping[str, float]:
        """The scales of blocks that have one."""
        return {}

    @property
    def shared_blocks(self) -> tuple[str, ...]:
        """Measured blocks whose noise all rows share."""
        return ()

    def drawn_together(self, rows: int) -> list[tuple[str, ...]]:
        """Return the blocks that are drawn together, each as often as it has coordinates there."""
        return []


class BlockNoisePart(NoisyMechanismPart):
    """Noise on rows that were measured one by one.

    Parameters
    ----------
    scales
        Scale of the noise of each measured block that the table reads, or that is drawn together
        with one, by its number, on its integers. 0: the relation of neighbors makes it public.
    groups
        Blocks whose noise is drawn together in a row: it is uncorrelated, but not independent.
    joined
        Whether it is drawn together over all rows, in place of each.
    common_blocks
        Measured blocks whose noise all rows share: utility of whatever is computed from several
        rows.
    """

    kind: Literal["noise"]
    scales: records.ByBlock[records.NotNegative]
    groups: tuple[tuple[records.BlockName, ...], ...]
    joined: bool
    common_blocks: tuple[records.BlockName, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        grouped = [block for group in self.groups for block in group]
        records.require(len(set(grouped)) == len(grouped), "a block is in one group")
        records.require({*grouped} <= self.scales.keys(), "blocks of groups have a scale")
        of_law = all(map(self.distribution.knows, filter(None, self.scales.values())))
        records.require(of_law, "scales are of the law")
        records.require(not self.joined or len(self.groups) == 1, "one group reaches over all rows")

    @property
    def scale_by_block(self) -> Mapping[str, float]:
        """The scales of blocks that have one."""
        return self.scales

    @property
    def shared_blocks(self) -> tuple[str, ...]:
        """Measured blocks whose noise all rows share."""
        return self.common_blocks

    def drawn_together(self, rows: int) -> list[tuple[str, ...]]:
        """Return the blocks that are drawn together, each as often as it has coordinates there."""
        if not self.joined:
            return list(self.groups)
        often = {block: 1 if block in self.common_blocks else rows for block in self.scales}
        return [
            tuple(block for block in group for _ in range(often[block])) for group in self.groups
        ]


_OTHERS = ""
"""Stands for what is drawn together with the sums of a table, and is not read by it."""


class SignsPart(NoisyMechanismPart):
    """Noise on sums of signs, which several tables share.

    A sum adds 1, -1 or 0 for a row, by its cell; cells are weighted sums of these.

    Parameters
    ----------
    scales
        Scale of the noise of each sum that the table reads, by its number. Tables that were
        measured together number them alike. 0: the relation of neighbors makes it public.
    groups
        Sums whose noise is drawn together: it is uncorrelated, but not independent. Only those that
        the table reads are named; the groups are those of all tables, in the same order.
    members
        By group, how many sums are drawn together, those of other tables included.
    """

    kind: Literal["signs"]
    scales: records.SomeByBlock[records.NotNegative]
    groups: tuple[tuple[records.BlockName, ...], ...]
    members: tuple[records.AtLeastOne, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        grouped = [block for group in self.groups for block in group]
        records.require(len(set(grouped)) == len(grouped), "a block is in one group")
        records.require({*grouped} <= self.scales.keys(), "blocks of groups have a scale")
        records.require(len(self.members) == len(self.groups), "every group has members")
        pairs = zip(self.groups, self.members, strict=True)
        fits = all(len(members) <= most for members, most in pairs)
        records.require(fits, "groups have their members")

    @property
    def scale_by_block(self) -> Mapping[str, float]:
        """The scales of blocks that have one."""
        return {**self.scales, _OTHERS: 1.0}

    @property
    def shared_blocks(self) -> tuple[str, ...]:
        """Measured blocks whose noise all rows share: all of them."""
        return tuple(self.scales)

    def drawn_together(self, rows: int) -> list[tuple[str, ...]]:
        """Return the blocks that are drawn together, and one name for all that are not read."""
        pairs = zip(self.groups, self.members, strict=True)
        return [(*few, *(_OTHERS,) * (most - len(few))) for few, most in pairs if few]

    def beside(self, other: "SignsPart") -> "SignsPart":
        """Say where the noise of two tables that were measured together comes from."""
        pairs = zip(self.groups, other.groups, strict=True)
        groups = tuple(tuple(dict.fromkeys(blocks + theirs)) for blocks, theirs in pairs)
        return replace(self, scales={**self.scales, **other.scales}, groups=groups)


class ThresholdPart(NoisyMechanismPart):
    """Groups were found that were not known beforehand.

    Units were counted by label, a unit for a few labels at most; labels with a noisy count at the
    threshold or above are published. Others may be in the data as well.

    Parameters
    ----------
    scales
        Scale of the noise on the count of a label, as block 0.
    threshold
        The least noisy number of units that is published, before it is rounded to whole units.
    parts
        In how many parts of a unit noise was drawn, an odd number.
    max_labels
        For how many labels one unit counted at most.
    dtypes
        What the labels of each column are, in the order of the levels of the index. Values of other
        kinds are left out.
    max_length
        Texts with more characters are left out.
    """

    kind: Literal["threshold"]
    scales: records.ByBlock[records.NotNegative]
    threshold: Annotated[float, records.Limits(gt=0)]
    parts: records.AtLeastOne
    max_labels: records.AtLeastOne
    dtypes: tuple[LabelKind, ...]
    max_length: records.AtLeastOne

    def __post_init__(self) -> None:
        super().__post_init__()
        records.require(self.parts % 2 == 1, "a unit has an odd number of parts")

    @property
    def scale_by_block(self) -> Mapping[str, float]:
        """The scale of the counts."""
        return self.scales

    @property
    def least(self) -> float:
        """The least m with which a noisy number of m or more, were noise not rounded, is published.

        Noise Y of whole units rounds Z, noise in parts does it finer: with a threshold T,
        `P(Y >= m - n)` is that of `n + Z >= m - 1/2`, which is `T` less half a part.
        """
        return self.threshold + (1 - 1 / self.parts) / 2


class LayersPart(NoisyMechanismPart):
    """Noise on what was measured over many cells at once, so that errors of cells go together.

    Parameters
    ----------
    sizes
        For margins, the number of groups of each column of the index; for a tree, the number of
        children of a node, from the root down. Leaves beyond the last bin are empty. Of sums, the
        numbers of groups of all columns of all tables.
    tau
        By measured block, the scale of the noise of each layer.
    """

    kind: Literal["margins", "tree", "sums"]
    sizes: tuple[records.AtLeastOne, ...]
    tau: records.SomeByBlock[tuple[records.NotNegative, ...]]

    def __post_init__(self) -> None:
        super().__post_init__()
        lengths = {len(scales) for scales in self.tau.values()}
        records.require(lengths == {self._layers}, "every layer has one scale per block")

    @property
    def _layers(self) -> int:
        raise NotImplementedError

    @property  # records say what their attributes are: nothing is kept beside
    def by_block(self) -> Mapping[str, Structure]:
        """What is known of the noise of each block."""
        raise NotImplementedError


class MarginsPart(LayersPart):
    """Noise on one of several tables that agree.

    A layer has the contrasts along some columns of the index, of sums over all others. Let h_j be
    the integer contrast (1, ..., 1, -j, 0, ...) with j ones, j = 1, 2, ..., of squared length
    j (j + 1). What was measured is the sum over all cells, and contrasts; each has noise of its
    own, of variance tau^2 |h|^2 + rounding, with |h|^2 the product of the squared lengths of its
    contrasts. A cell is the sum of what was measured, each times its coefficient for that cell over
    its squared length. The noise of a weighted sum of cells then has as variance the sum of the
    squared weights of what was measured, times these variances.

    Parameters
    ----------
    layers
        The columns of the index along which there are contrasts, by position: the tables released
        together share the layers of the columns that they share. Of sums, the columns by which each
        measured table is.
    rounding
        Variance that rounding the noise to integers adds.
    """

    kind: Literal["margins"]
    layers: records.Some[tuple[records.AtLeastNone, ...]]
    rounding: records.NotNegative

    def __post_init__(self) -> None:
        super().__post_init__()
        records.require(len(set(self.layers)) == len(self.layers), "a layer is named once")
        places = [place for layer in self.layers for place in layer]
        exist = all(place < len(self.sizes) for place in places)
        records.require(exist, "layers are along axes that there are")

    @property
    def _layers(self) -> int:
        return len(self.layers)

    def names_of_layers(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """Name the layers as other tables do, by the columns of this table."""
        return [tuple(columns[at] for at in layer) for layer in self.layers]

    @property
    def by_block(self) -> Mapping[str, MarginStructure]:
        """What is known of the noise of each block."""
        return {
            block: MarginStructure("margins", self.sizes, self.layers, scales, self.rounding)
            for block, scales in self.tau.items()
        }


class SumsPart(MarginsPart):
    """Noise on sums of the cells that can hold rows, which several tables share.

    Every cell of each measured table has noise of variance tau^2. Cells are read off all of them by
    least squares, weighted by 1 / tau^2; those of this table are sums of these.

    Parameters
    ----------
    cells
        Positions of the cells that can hold rows in the product of all columns, the last of which
        varies fastest. The cells of a table are in this order, each where it comes first.
    table
        Which layer this table is.
    """

    kind: Literal["sums"]  # type: ignore[assignment]
    cells: records.Some[records.AtLeastNone]
    table: records.AtLeastNone

    def __post_init__(self) -> None:
        super().__post_init__()
        records.require(len(set(self.cells)) == len(self.cells), "cells differ")
        records.require(max(self.cells) < math.prod(self.sizes), "cells are in the product")
        records.require(self.table < len(self.layers), "the table is one that was measured")
        complete = sorted(self.layers[-1]) == [*range(len(self.sizes))]
        records.require(complete, "the last table that was measured has all cells")
        noisy = all(min(scales) > 0 for scales in self.tau.values())
        records.require(noisy, "every table has noise")

    def names_of_layers(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """Name the layers as other tables do: by the positions of their columns."""
        return [tuple(map(str, layer)) for layer in self.layers]

    @property
    def by_block(self) -> Mapping[str, MarginStructure]:
        """What is known of the noise of each block."""
        return {
            block: replace(structure, kind="sums", cells=self.cells, table=self.table)
            for block, structure in super().by_block.items()
        }


_Weight: TypeAlias = Annotated[float, records.Limits(ge=1e-9, lt=2)]
"""That of a child: the largest is 1, and of plans none is below 1 / 200."""


class TreePart(LayersPart):
    """Noise on the nodes of a tree whose leaves are bins, one tree for each group.

    The estimate of a child is its part of the estimate of its parent, 1 / b of b children, and what
    it differs from that by. Without `weights`, the total has noise of variance tau^2 of the first
    layer, and what b children differ by has the covariance tau^2 (I - 1 / b). With weights, the
    covariance is tau^2 M L D (D G D)^(-1/2) D L M, the root inverted where it can be: D^2 are the
    weights, and G says for every two children which part of the sums wanted holds both. For the
    children of the root, M is I, L^2 is the diagonal of D^-1 (D G D)^(1/2) D^-1, and a bin of G may
    be cut in eight where it has leaves. Below, M is I - 1 / b, L is the largest number there, and G
    is M E M for `expanding` and 2 M E M else, E being the G of b bins that is expanding.

    Parameters
    ----------
    weights
        By layer, a weight for each child; none where children are alike.
    window
        Sums wanted: over so many adjacent bins, in which case .001 is added to the diagonal of the
        first G; from the first bin on; or, with none, over all ranges.
    """

    kind: Literal["tree"]
    weights: tuple[tuple[_Weight, ...], ...]
    window: records.AtLeastOne | Literal["expanding"] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = tuple(map(len, self.weights))
        records.require(sizes in ((), self.sizes), "every child of a node has a weight")
        few = max(sizes, default=1) <= MOST_CHILDREN
        records.require(few, f"nodes have {MOST_CHILDREN} children with weights at most")

    @property
    def _layers(self) -> int:
        return len(self.sizes) + (not self.weights)

    @property
    def by_block(self) -> Mapping[str, TreeStructure]:
        """What is known of the noise of each block."""
        return {
            block: TreeStructure(self.sizes, scales, self.weights, self.window)
            for block, scales in self.tau.items()
        }


class SelectionPart(MechanismPart):
    """Quantiles were selected; no noise was added to them.

    The bin was taken with the largest sum of its utility and geometric noise (permute-and-flip).
    The utility is minus the number of rows between the bin and the quantile.

    Parameters
    ----------
    law
        Law of the noise on the utilities.
    quantiles
        The quantiles, in the order of their rows.
    bins
        How many bins lie between the bounds, of equal width.
    rounds
        How many selections came one after the other, each for the same part of epsilon: later
        quantiles were selected on one side of earlier ones.
    scales
        Scale of the noise by quantile, in rows.
    """

    kind: Literal["selection"]
    name: Annotated[str, records.OneOf([SELECT])]
    law: Annotated[str, records.OneOf([GEOMETRIC])]
    quantiles: records.Some[Annotated[float, records.Limits(gt=0, lt=1)]]
    bins: records.AtLeastOne
    rounds: records.AtLeastOne
    scales: tuple[records.NotNegative, ...]

    def __post_init__(self) -> None:
        records.require(len(self.scales) == len(self.quantiles), "each quantile has a scale")


class SetPart(MechanismPart):
    """Groups were found that were not known beforehand, and published without numbers.

    Every unit gave a weight to each of a few of its labels; noise was added to the sums of weights,
    and labels with a noisy sum at the threshold or above are published. This was done in rounds:
    labels that one had found were left out of the next. Others may be in the data as well.

    Parameters
    ----------
    law
        Law of the noise on the sums.
    scales
        Scale of the noise by round.
    thresholds
        The least noisy sum that is published, by round.
    parts
        Part of the cost by round, about: of the noise, and of the extra delta.
    weights
        What each label of a unit counted for, by how many of them counted. There are as many as
        labels of one unit counted at most.
    dtypes
        What the labels of each column are, in the order of the levels of the index. Values of other
        kinds are left out.
    max_length
        Texts with more characters are left out.
    """

    kind: Literal["set"]
    name: Annotated[str, records.OneOf(MECHANISMS)]
    law: Annotated[str, records.OneOf(LAWS)]
    scales: records.Some[records.NotNegative]
    thresholds: records.Some[records.AtLeastOne]
    parts: records.Some[Annotated[float, records.Limits(gt=0, lt=1)]]
    weights: records.Some[records.AtLeastOne]
    dtypes: tuple[LabelKind, ...]
    max_length: records.AtLeastOne

    def __post_init__(self) -> None:
        law = MECHANISMS[self.name].law.name
        records.require(self.law == law, "the law is that of the mechanism")
        alike = len(self.scales) == len(self.thresholds) == len(self.parts)
        records.require(alike, "each round has a scale, a threshold and a part")


NoiseRecord: TypeAlias = (
    BlockNoisePart | SignsPart | ThresholdPart | MarginsPart | SumsPart | TreePart
)


MechanismRecord: TypeAlias = NoiseRecord | SelectionPart | SetPart


def kinds_of_groups(mechanism: MechanismRecord) -> tuple[LabelKind, ...]:
    """Say what the labels of groups are, by column, where they were found; none: they were not."""
    match mechanism:
        case ThresholdPart() | SetPart():
            return mechanism.dtypes
        case BlockNoisePart() | SignsPart() | MarginsPart() | TreePart() | SelectionPart():
            return ()
        case _:
            assert_never(mechanism)
