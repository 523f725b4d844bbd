"""F(a, b): the most that it costs where a cell has a rows of one unit in place of b of another.

It is convex in what moves, so all rows of a unit in the cell are alike at worst, and each is a
corner of what a row can add. Costs are compared in floats; the worst one is computed exactly.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from dpframe.checker.measured import NEVER, BlockNoise
from dpframe.checker.rows import Component, Group, RowVectors
from dpframe.frozen import frozen

PlaceKernel: TypeAlias = tuple[tuple[int, int, float], ...]
"""Of (u, v, f): f times what it costs that `u x - v y` moves. In one cell it is ((1, 1, 1),)."""

ONE_CELL: PlaceKernel = ((1, 1, 1.0),)

Moves: TypeAlias = Mapping[int, tuple[int, int]]
"""By block, what one row of either unit adds to it."""

# one over a scale of 0: squares of what moves stay in the range of floats
_UNHIDDEN = 1e60
# products below it are exact in 64 bits
_SAFE = 2**62
_MOST_PAIRS = 1 << 20
"""Pairs of vectors that are compared; with more, only the farthest classes are."""


_Worst: TypeAlias = tuple[float, dict[int, tuple[int, int]]]
"""What it costs at most, and what a row of either unit adds to blocks then."""


class _Rows(NamedTuple):
    """How many rows of either unit there are, and what is measured of them."""

    a: int
    b: int
    kernel: PlaceKernel


@frozen
class Moved:
    """The worst that rows of two units do in a cell.

    Parameters
    ----------
    a, b
        OddRows of either unit.
    rows
        What each of them adds, by block.
    kernel
        What is measured of it.
    """

    a: int
    b: int
    rows: Moves
    kernel: PlaceKernel = ONE_CELL

    def cost(self, noise: BlockNoise) -> Fraction:
        """Return what it costs, exactly; of a box, `rows` has one block at most."""
        total = Fraction(0)
        for block, (x, y) in self.rows.items():
            scale = noise.scales[block]
            for u, v, factor in self.kernel:
                moved = abs(u * self.a * x - v * self.b * y)
                if moved:
                    total += Fraction(factor) * noise.law.loss(moved, scale) if scale else NEVER
        return total


class Cell:
    """Distances in one cell, or in places of rows that share measured integers.

    Parameters
    ----------
    vectors
        What one row can add.
    noise
        The noise.
    kernels
        What is measured of rows at two places, for the pairs of places that are tried.
    apart
        Whether boxes count the farthest movement of each block, whatever the others do.
    """

    def __init__(
        self,
        vectors: RowVectors,
        noise: BlockNoise,
        kernels: Sequence[PlaceKernel],
        *,
        apart: bool = False,
    ) -> None:
        self._vectors = vectors
        self._noise = noise
        self._kernels = kernels
        self._inverse = np.array([1 / scale if scale else _UNHIDDEN for scale in noise.scales])
        self._boxed = noise.law.inside == "max" and noise.profile is None
        self._box = {k: at for at, box in enumerate(noise.groups) for k in box}
        self._shared = self._shared_boxes(apart=apart) if self._boxed else frozenset()
        self._ends = self._block_ends()
        self._known: dict[tuple[int, int], tuple[float, Moved]] = {}

    @property
    def _groups(self) -> list[Group]:
        groups = [group for part in self._vectors.components for group in part.groups]
        return [*groups, *self._vectors.few]

    def _shared_boxes(self, *, apart: bool) -> frozenset[int]:
        """Return boxes with blocks of several groups."""
        if apart:
            return frozenset(self._box.values())
        # of a box the largest movement counts, and any of its groups may hold it
        touched: dict[int, int] = {}
        for group in self._groups:
            for box in {self._box[k] for k in group.blocks.tolist()}:
                touched[box] = touched.get(box, 0) + 1
        return frozenset(box for box, number in touched.items() if number > 1)

    def _block_ends(self) -> dict[int, tuple[int, int]]:
        """Return the least and the largest that a row adds to each block."""
        block_ends: dict[int, tuple[int, int]] = {}
        for group in self._groups:
            if len(group.vectors):
                ends = zip(
                    group.vectors.min(0).tolist(), group.vectors.max(0).tolist(), strict=True
                )
                block_ends |= dict(zip(group.blocks.tolist(), ends, strict=True))
        return block_ends

    @property
    def moving(self) -> list[int]:
        """Blocks that some row adds to."""
        return [block for block, ends in self._ends.items() if ends != (0, 0)]

    @property
    def replaced(self) -> list[int]:
        """Blocks that move where a row stays in the cell, and holds something else."""
        return [block for block, (low, high) in self._ends.items() if low != high]

    def farthest(self, block: int, a: int, b: int) -> tuple[int, int, int]:
        """Return how far a block moves at most, by itself, and what rows add to it then."""
        low, high = self._ends[block]
        if not b:
            low = high if a * abs(high) >= a * abs(low) else low
            return a * abs(low), low, 0
        return max(
            (abs(a * x - b * y), x, y)
            for x, y in ((low, high), (high, low), (low, low), (high, high))
        )

    def distance(self, a: int, b: int) -> float:
        """Return F(a, b), in floats."""
        return self._worst(a, b)[0]

    def moved(self, a: int, b: int) -> Moved:
        """Return the worst rows."""
        return self._worst(a, b)[1]

    def _worst(self, a: int, b: int) -> tuple[float, Moved]:
        if (a, b) not in self._known:
            worst = [self._with_kernel(_Rows(a, b, kernel)) for kernel in self._kernels]
            self._known[a, b] = max(worst, key=lambda pair: pair[0])
        return self._known[a, b]

    def _with_kernel(self, rows: _Rows) -> tuple[float, Moved]:
        worst = [self._of_component(part, rows) for part in self._vectors.components]
        if self._vectors.few:
            worst.append(self._of_few(rows))
        total, moves = 0.0, dict[int, tuple[int, int]]()
        for cost, of_part in worst:
            total += cost
            moves |= of_part
        for cost, block, x, y in self._of_shared_boxes(rows.a, rows.b):
            total += cost
            moves[block] = (x, y)
        return total, Moved(rows.a, rows.b, {k: moves[k] for k in sorted(moves)}, rows.kernel)

    def _of_shared_boxes(self, a: int, b: int) -> list[tuple[float, int, int, int]]:
        """Return for each shared box its farthest block, with what it costs."""
        worst: dict[int, tuple[float, int, int, int]] = {}
        for block in self._ends:
            box = self._box.get(block)
            if box not in self._shared:
                continue
            moved, x, y = self.farthest(block, a, b)
            cost = moved * float(self._inverse[block]) if moved else 0.0
            if moved and (box not in worst or cost > worst[box][0]):
                worst[box] = cost, block, x, y
        return list(worst.values())

    def _of_component(self, part: Component, rows: _Rows) -> _Worst:
        """Return the worst classes of rows, and what they add."""
        if not rows.b:
            return self._one_sided(part, rows)
        if max(len(group.vectors) for group in part.groups) ** 2 > _MOST_PAIRS:
            part = _of_classes(part, self._farthest_classes(part, rows))
        size = len(part.classes)
        costs, pairs = np.zeros((size, size)), []
        for places, group in zip(part.classes.T, part.groups, strict=True):
            pair_costs = self._costs(group, group.vectors, group.vectors, rows)
            pairs.append(pair_costs)
            worst = pair_costs
            if len(group.starts) < len(pair_costs):
                worst = np.maximum.reduceat(worst, group.starts, 0)
                worst = np.maximum.reduceat(worst, group.starts, 1)
            # groups are free of each other given the class: what they cost adds up
            costs += worst[places[:, None], places]
        mine, theirs = divmod(int(costs.argmax()), size)
        moves: dict[int, tuple[int, int]] = {}
        for places, group, pair_costs in zip(part.classes.T, part.groups, pairs, strict=True):
            first, second = (_members(group, int(places[k])) for k in (mine, theirs))
            between = pair_costs[first, second]
            x, y = divmod(int(between.argmax()), between.shape[1])
            moves |= self._named(group, group.vectors[first][x], group.vectors[second][y], rows)
        return float(costs[mine, theirs]), moves

    def _one_sided(self, part: Component, rows: _Rows) -> _Worst:
        costs, by_group = self._costs_of_classes(part, rows)
        worst = part.classes[int(costs.argmax())]
        moves: dict[int, tuple[int, int]] = {}
        for group, vector_costs, kind in zip(part.groups, by_group, worst.tolist(), strict=True):
            members = _members(group, kind)
            x = group.vectors[members][int(vector_costs[members].argmax())]
            moves |= self._named(group, x, np.zeros_like(x), rows)
        return float(costs.max()), moves

    def _costs_of_classes(
        self, part: Component, rows: _Rows
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return what it costs that the first unit alone has rows, by class and by vector."""
        rows = rows._replace(b=0)
        costs, by_group = np.zeros(len(part.classes)), []
        for at, group in enumerate(part.groups):
            nothing = np.zeros((1, len(group.blocks)), np.int64)
            vector_costs = self._costs(group, group.vectors, nothing, rows)[:, 0]
            by_group.append(vector_costs)
            costs += np.maximum.reduceat(vector_costs, group.starts)[part.classes[:, at]]
        return costs, by_group

    def _farthest_classes(self, part: Component, rows: _Rows) -> np.ndarray:
        costs, _ = self._costs_of_classes(part, rows)
        size = max(int(group.sizes.max()) for group in part.groups)
        most = max(math.isqrt(_MOST_PAIRS) // size, 2)
        return np.argsort(-costs, kind="stable")[:most]

    def _of_few(self, rows: _Rows) -> _Worst:
        """Return the worst choice of a few groups for either row.

        What it costs is linear in how many groups both have and one alone has. Groups that are not
        alike each count as the worst of all.
        """
        groups, most = self._vectors.few, min(self._vectors.most, len(self._vectors.few))
        number = len(groups)
        fours = [self._four(group, rows) for group in groups]
        both, mine, theirs, none = np.max([[cost for cost, _ in four] for four in fours], axis=0)
        best, chosen = -1.0, (0, 0, 0)
        # linear in these numbers: the worst is at one of their ends
        for shared in {0, max(0, 2 * most - number), most}:
            for left in {0, most - shared}:
                for right in {0, min(most - shared, number - shared - left)} if rows.b else {0}:
                    left_out = number - shared - left - right
                    cost = shared * both + left * mine + right * theirs + left_out * none
                    if left_out >= 0 and cost > best:
                        best, chosen = float(cost), (shared, left, right)
        shared, left, right = chosen
        kinds = [0] * shared + [1] * left + [2] * right
        kinds += [3] * (number - len(kinds))
        moves: dict[int, tuple[int, int]] = {}
        # where groups are not alike, those come first whose presence costs the most
        costly = sorted(fours, key=lambda four: four[3][0] - max(four[0][0], four[1][0]))
        for four, kind in zip(costly, kinds, strict=True):
            moves |= four[kind][1]
        return best, moves

    def _four(self, group: Group, rows: _Rows) -> list[_Worst]:
        """Return what it costs that both rows, one, the other or neither has a group."""
        absent, present = (group.vectors[_members(group, kind)] for kind in (0, 1))
        four = []
        for x, y in ((present, present), (present, absent), (absent, present), (absent, absent)):
            costs = self._costs(group, x, y, rows)
            i, j = divmod(int(costs.argmax()), costs.shape[1])
            four.append((float(costs[i, j]), self._named(group, x[i], y[j], rows)))
        return four

    def _named(
        self, group: Group, x: np.ndarray, y: np.ndarray, rows: _Rows
    ) -> dict[int, tuple[int, int]]:
        """Name the blocks that count with what is added to them: of a box, the farthest."""
        blocks = group.blocks.tolist()
        pairs = zip(x.tolist(), (y if rows.b else 0 * y).tolist(), strict=True)
        moves = {k: pair for k, pair in zip(blocks, pairs, strict=True) if pair != (0, 0)}
        if not self._boxed:
            return moves
        worst: dict[int, tuple[float, int]] = {}
        for k, (mine, theirs) in moves.items():
            moved = abs(rows.a * mine - rows.b * theirs)
            cost = moved * float(self._inverse[k]) if moved else 0.0
            box = self._box[k]
            if box not in self._shared and cost > worst.get(box, (0.0, 0))[0]:
                worst[box] = cost, k
        return {k: moves[k] for _, k in worst.values()}

    def _costs(
        self, group: Group, first: np.ndarray, second: np.ndarray, rows: _Rows
    ) -> np.ndarray:
        """Return what it costs that each vector of one unit stands in place of each of another."""
        inverse = self._inverse[group.blocks]
        total = np.zeros((len(first), len(second), len(inverse)))
        for u, v, factor in rows.kernel:
            mine, theirs = _times(first, u * rows.a), _times(second, v * rows.b)
            moved = np.abs(mine[:, None, :] - theirs[None, :, :]).astype(np.float64)
            # what does not move costs nothing, with or without noise
            lengths = np.multiply(moved, inverse, where=moved > 0, out=moved)
            total += factor * lengths**self._noise.law.norm
        if not self._boxed:
            return np.asarray(total.sum(axis=2))
        boxes: dict[int, list[int]] = {}
        for place, k in enumerate(group.blocks.tolist()):
            if self._box[k] not in self._shared:
                boxes.setdefault(self._box[k], []).append(place)
        sums = np.zeros(total.shape[:2])
        for places in boxes.values():
            sums += total[:, :, places].max(axis=2)
        return sums


def _times(vectors: np.ndarray, factor: int) -> np.ndarray:
    """Multiply exactly: integers beyond 64 bits are those of Python."""
    largest = max(abs(int(vectors.max(initial=0))), abs(int(vectors.min(initial=0))))
    if largest * abs(factor) >= _SAFE:
        return vectors.astype(object) * factor
    return vectors * np.int64(factor)


def _members(group: Group, kind: int) -> slice:
    """Return where a set is among vectors."""
    following = group.starts[kind + 1 : kind + 2]
    return slice(int(group.starts[kind]), int(following[0]) if len(following) else None)


def _of_classes(part: Component, chosen: np.ndarray) -> Component:
    """Keep some classes of a component, and the sets that they have."""
    groups, places = [], []
    for kinds, group in zip(part.classes[chosen].T, part.groups, strict=True):
        sets, at = np.unique(kinds, return_inverse=True)
        chosen_sets = [group.vectors[_members(group, kind)] for kind in sets.tolist()]
        starts = np.cumsum([0, *map(len, chosen_sets)])[:-1]
        groups.append(Group(group.blocks, np.concatenate(chosen_sets), starts))
        places.append(at)
    return Component(tuple(groups), np.array(places).T)
