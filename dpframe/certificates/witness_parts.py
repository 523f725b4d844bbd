"""The parts of a certificate about the worst unit, from which the cost can be recomputed.

As in `parts`, docstrings are the descriptions of the JSON Schema.
"""

from collections.abc import Iterable
from typing import Annotated

from dpframe.certificates import json_records as records
from dpframe.checker.rounds import chance_shown
from dpframe.checker.witness import Found, LoneLabels, Witness, WitnessCells
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.laws import LAWS
from dpframe.privacy.selection import GEOMETRIC


class WitnessCellsPart(records.Record):
    """Cells in which the worst unit moves integers alike.

    A row of the unit adds x to the measured integer of a block, and a row of the unit in its place
    adds y. With a and b rows of them, the integer moves by |a x - b y|. That costs (moved /
    scale)^2 of mu squared with Gaussian noise, and moved / scale of epsilon with other noise; with
    staircase noise of scale D + b, log(1 / b) for each started D. Where integers are measured over
    many cells, it is the sum of f times what |u a x - v b y| costs.

    Parameters
    ----------
    times
        How many such cells there are; of groups that are found, how many of them.
    rows
        a and b.
    moves
        x and y by block. Of blocks whose noise is drawn together, in a box, the farthest counts and
        stands alone.
    shared
        u, v and f, for all that is measured. Of a single cell: 1, 1, 1.
    """

    times: records.AtLeastOne
    rows: tuple[records.AtLeastNone, records.AtLeastNone]
    moves: records.ByBlock[tuple[int, int]]
    shared: tuple[tuple[int, int, float], ...]


class LoneLabelsPart(records.Record):
    """Groups that one unit alone has: the extra delta is the chance that noise shows one of them.

    With noise Y it is 1 - (1 - P(Y >= threshold - weight))^labels.

    Parameters
    ----------
    labels
        How many groups.
    weight
        What the unit counts for in each.
    threshold
        The least noisy number that is published.
    """

    labels: records.AtLeastOne
    weight: records.AtLeastOne
    threshold: records.AtLeastOne


class WitnessPart(records.Record):
    """The worst unit that a check of the charge found, for what was measured together.

    The costs of all measurements add up to at most what was charged. The check is made by code that
    made no plan. This unit proves what it costs itself, not that no other one costs more: that is
    the proof of the code.

    Parameters
    ----------
    law
        Law of the noise.
    alike
        How many measurements of the release are as this one.
    scales
        Scale of the noise on the integers that move, by block; of selections, by quantile.
    cells
        What the unit moves.
    lone
        Groups that one unit alone has, where groups were found; null: none were looked for.
    unit
        The unit in words.
    sampled
        Whether there are units that no tried one stands for: then the check is a test, and only the
        proof of the plan holds for all.
    """

    law: Annotated[str, records.OneOf([*LAWS, GEOMETRIC])]
    alike: records.AtLeastOne
    scales: records.ByBlock[records.NotNegative]
    cells: tuple[WitnessCellsPart, ...]
    lone: LoneLabelsPart | None
    unit: records.Text
    sampled: bool

    def __post_init__(self) -> None:
        named = {block for cells in self.cells for block in cells.moves}
        records.require(named <= self.scales.keys(), "blocks that move have a scale")
        law = LAWS.get(self.law)
        known = law is None or all(map(law.knows, filter(None, self.scales.values())))
        records.require(known, "scales are of the law")

    @property
    def loss(self) -> PrivacyLoss:
        """What the unit costs in one such measurement, computed anew."""
        scales = {int(block): scale for block, scale in self.scales.items()}
        cells = tuple(
            WitnessCells(
                one.times,
                one.rows,
                {int(block): pair for block, pair in one.moves.items()},
                one.shared,
            )
            for one in self.cells
        )
        lone = None
        if self.lone is not None and self.law in LAWS:
            labels = LoneLabels(self.lone.labels, self.lone.weight, self.lone.threshold)
            lone = labels, chance_shown(LAWS[self.law], scales[0], labels)
        return Found(self.law, scales, cells, self.unit, lone=lone).loss


def witness_parts(witness: Witness) -> tuple[WitnessPart, ...]:
    """Write the worst units of a release; those that are the same, once."""
    alike: list[tuple[Found, int]] = []
    for found in witness.found:
        known = next((at for at, (one, _) in enumerate(alike) if one == found), None)
        if known is None:
            alike.append((found, 1))
        else:
            alike[known] = found, alike[known][1] + 1
    return tuple(_part(found, times) for found, times in alike)


def recomputed_loss(parts: Iterable[WitnessPart]) -> PrivacyLoss:
    """Return what the worst units of all measurements cost together."""
    loss = PrivacyLoss()
    for part in parts:
        own = part.loss
        loss += PrivacyLoss(*(part.alike * amount for amount in own.parts))
    return loss


def _part(found: Found, alike: int) -> WitnessPart:
    lone = None
    if found.lone is not None:
        labels, _ = found.lone
        lone = LoneLabelsPart(labels.labels, labels.weight, labels.least)
    return WitnessPart(
        found.law,
        alike,
        {str(block): scale for block, scale in sorted(found.scales.items())},
        tuple(
            WitnessCellsPart(
                one.times,
                one.rows,
                {str(block): pair for block, pair in one.moves.items()},
                one.kernel,
            )
            for one in found.cells
        ),
        lone,
        found.words,
        found.sampled,
    )
