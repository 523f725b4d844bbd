"""The noise of one measurement: what is checked, and what is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.context import Context
from dpframe.privacy.law import Law

NEVER = Fraction(10**30)
"""The cost of what no noise hides."""


@dataclass(frozen=True, eq=False)
class BlockNoise:
    """Noise on blocks of integers.

    Parameters
    ----------
    law
        Law of the noise.
    scales
        Scale by block; 0 for a block without noise.
    groups
        Blocks whose noise is drawn together in a cell. Each block is in one group.
    over_cells
        Whether the first group is drawn together over all cells, and once.
    profile
        By what the scales of a block are multiplied, integer by integer; `None`: by 1.
    """

    law: Law
    scales: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]
    over_cells: bool = False
    profile: np.ndarray | None = None

    def draw(self, sizes: Sequence[int], context: Context) -> list[np.ndarray]:
        """Draw the noise of every block, a block of so many integers each."""
        if self.profile is not None:
            return [self.law.draw_each(scale * self.profile, context) for scale in self.scales]
        noise: dict[int, np.ndarray] = {}
        for position, group in enumerate(self.groups):
            if self.over_cells and position == 0:
                noise |= self._draw_over_cells(group, sizes, context)
                continue
            drawn = self.law.draw([self.scales[k] for k in group], sizes[group[0]], context)
            noise |= dict(zip(group, drawn, strict=True))
        return [noise[k] for k in range(len(self.scales))]

    def _draw_over_cells(
        self, group: Sequence[int], sizes: Sequence[int], context: Context
    ) -> dict[int, np.ndarray]:
        """Draw the noise of a group that reaches over all cells: all coordinates together."""
        scales = [self.scales[k] for k in group for _ in range(sizes[k])]
        drawn = self.law.draw(scales, 1, context)
        ends = np.cumsum([sizes[k] for k in group])[:-1]
        return dict(zip(group, np.split(np.concatenate(drawn), ends), strict=True))

    def cost(self, one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> Fraction:
        """Return what it costs that blocks hold some integers in place of others, mod 2**64.

        It is exact: the sum over groups and cells of `(|moved| / scale)^p`, with p the norm of the
        law; of a group of a box, the largest counts.
        """
        blocks = [
            self._lengths(k, a.astype(np.int64) - b.astype(np.int64))
            for k, (a, b) in enumerate(zip(one, other, strict=True))
        ]
        if self.law.inside == "sum" or self.profile is not None:
            return sum((length for block in blocks for length in block.values()), Fraction(0))
        total = Fraction(0)
        for position, group in enumerate(self.groups):
            own = [blocks[k] for k in group]
            if self.over_cells and position == 0:
                lengths = [length for block in own for length in block.values()]
                total += max(lengths, default=Fraction(0))
                continue
            for place in {place for block in own for place in block}:
                total += max(block.get(place, Fraction(0)) for block in own)
        return total

    def _lengths(self, block: int, moved: np.ndarray) -> dict[int, Fraction]:
        """Return by place what it costs that integers of a block move."""
        scale = self.scales[block]
        found = {}
        for place in np.flatnonzero(moved).tolist():
            step = abs(int(moved[place]))
            own = scale if self.profile is None else scale * float(self.profile[place])
            found[place] = self.law.loss(step, own) if own else NEVER
        return found
