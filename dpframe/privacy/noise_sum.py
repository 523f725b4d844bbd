"""Sums of noises of several blocks: what is known of them before a law is."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import reduce
from typing import Any, Self, TypeVar

import numpy as np

from dpframe.frozen import frozen

Groups = Collection[tuple[str, ...]]
"""Names of blocks whose noise is drawn together."""

Value = float | np.ndarray


class BlockGroups(tuple[tuple[str, ...], ...]):
    """Groups of blocks that are drawn together, to be looked up by block.

    Parameters
    ----------
    groups
        The blocks of each group; one that is there several times has these places in turn.
    scales
        Scales of blocks; those of scale 0 are in no group.
    """

    _sizes: list[int]
    # group, place there, coordinates
    _places: dict[str, tuple[int, int, int]]

    def __new__(cls, groups: Groups, scales: Mapping[str, float]) -> Self:
        """Look all blocks up once."""
        self = super().__new__(cls, groups)
        self._sizes, self._places = [], {}
        for at, group in enumerate(groups):
            times = Counter(group)
            moving = [block for block in times if scales.get(block, 0.0) > 0]
            self._sizes.append(sum(times[block] for block in moving))
            self._places |= {k: (at, place, times[k]) for place, k in enumerate(moving)}
        return self

    def kind_of(self, block: str) -> tuple[int, int]:
        """Return the group of a block, and how many coordinates it has there; of none, zeros."""
        at, _, times = self._places.get(block, (0, 0, 0))
        return at, times

    def among(self, blocks: Set[str]) -> dict[tuple[str, ...], int]:
        """Return which of the blocks are in each larger group, and how many that group has."""
        read: dict[int, list[str]] = {}
        for block in sorted(blocks & self._places.keys(), key=self._places.__getitem__):
            at, _, times = self._places[block]
            read.setdefault(at, []).extend([block] * times)
        sizes = self._sizes
        return {tuple(names): sizes[at] for at, names in read.items() if sizes[at] > 1}


Steps = tuple[Value, Value]
"""By how much a sum moves with one integer of each of two noises."""


def norm(parts: Iterable[Value]) -> np.ndarray:
    """Root of the sum of squares, which may leave the range of floats where the root does not."""
    return reduce(np.hypot, parts, np.zeros(()))


def covariance(noise: Mapping[Any, Value], other: Mapping[Any, Value]) -> np.ndarray:
    """Return the covariance of two sums, from what the noise of every block does to them."""
    products = (noise[block] * other[block] for block in noise if block in other)
    return np.asarray(sum(products, start=np.zeros(1)))


def _moves(part: Value) -> bool:
    """Whether a part is not 0 everywhere; of plain numbers, without numpy, which takes longer."""
    return part != 0 if isinstance(part, float) else bool(np.any(part))


@frozen(slots=True, eq=False)
class Shares:
    """Sums `a x_i - b sum_j x_j` of the noise of cells x_i over the cells j of a group.

    Parameters
    ----------
    a, b
        Both at least 0, one of each per row.
    cells
        Number of cells of the group of each row.
    loadings
        By block: what its noise adds to the standard deviation of a cell. Roundings are not among
        them.
    common
        Blocks whose noise all cells share.
    """

    a: np.ndarray
    b: np.ndarray
    cells: np.ndarray
    loadings: Mapping[str, float]
    common: Collection[str]


@frozen(slots=True, eq=False)
class NoiseSum:
    """A sum `sum_b c_b Y_b` of the noises of several blocks.

    Parameters
    ----------
    loadings
        By block: what its noise adds to the standard deviation of the sum, `|c_b| sd(Y_b)`, or the
        root of the sum of the squares of several such parts.
    scales
        Scales of the Y_b; a block without one has noise that is not of integers.
    groups
        Blocks whose noise is drawn together; one in no group is on its own.
    largest
        The largest parts of the blocks, where loadings are made of several; `None`: they are not.
    smooth
        Whether so many values are likely that none of them matters. Otherwise a half-width allows
        for a level that lies between two values of the sum.
    terms
        By block, the loadings of independent noises one by one, where they are known. They need not
        be given where each block has one noise.
    shares
        Which sum of cells it is, if all cells of a group have noise of the same scales.
    """

    loadings: Mapping[str, Value]
    scales: Mapping[str, float]
    groups: Groups = ()
    largest: Mapping[str, Value] | None = None
    smooth: bool = False
    terms: Mapping[str, np.ndarray] | None = None
    shares: Shares | None = None

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""
        return norm(self.loadings.values())

    @property
    def moves(self) -> bool:
        """Whether any of its noises moves it."""
        return any(map(_moves, self.loadings.values()))

    def steps(self, deviation_of: Callable[[str, float], float]) -> Mapping[str, Value]:
        """Return by how much one integer of each block moves the sum, at most.

        Parameters
        ----------
        deviation_of
            Standard deviation of the noise of a block, by its name and its scale.
        """
        parts = self.loadings if self.largest is None else self.largest
        deviations = {block: deviation_of(block, self.scales.get(block, 0.0)) for block in parts}
        return {block: np.abs(parts[block]) / of for block, of in deviations.items() if of}

    def single_terms(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the loadings of noises of integers one by one, by block, and those of roundings.

        No noises, where they are not known one by one, or differ from row to row.
        """
        alone = self.largest is None and all(np.ndim(part) == 0 for part in self.loadings.values())
        terms = self.terms or (self.loadings if alone else {})
        moving = {block: np.ravel(part) for block, part in terms.items() if _moves(part)}
        of_integers = {b: part for b, part in moving.items() if self.scales.get(b, 0.0) > 0}
        roundings = [part for b, part in moving.items() if b not in of_integers]
        return of_integers, np.concatenate([np.zeros(0), *roundings])

    def pair(
        self, deviation_of: Callable[[float], float]
    ) -> tuple[Steps, tuple[float, float]] | None:
        """Return by how much the sum of two noises moves with an integer of each, and their scales.

        `None` where the sum is not of two noises of integers.
        """
        if len(self.loadings) != 2 or self.largest is not None:  # noqa: PLR2004
            return None
        x, y = (self.scales.get(block, 0.0) for block in self.loadings)
        wide = deviation_of(x), deviation_of(y)
        first, second = self.loadings.values()
        return ((first / wide[0], second / wide[1]), (x, y)) if all(wide) else None

    def drawn_together(self) -> dict[tuple[str, ...], int]:
        """Return the blocks of each larger group that are in the sum, and how many the group has.

        Blocks of scale 0 are in no group.
        """
        groups = self.groups
        if not isinstance(groups, BlockGroups):
            groups = BlockGroups(groups, self.scales)
        return groups.among({block for block, part in self.loadings.items() if _moves(part)})


def join_sums(sums: Sequence[NoiseSum]) -> NoiseSum:
    """Return the sum of sums of independent noises of one law.

    Blocks of different sums are different ones, whatever their names.

    Examples
    --------
    >>> one = NoiseSum({"0": 1.0}, {"0": 2.0})
    >>> join_sums([one, one]).scales
    {'0:0': 2.0, '1:0': 2.0}
    """
    if len(sums) == 1:
        return sums[0]
    several = any(noise.largest is not None for noise in sums)
    one_by_one = all(noise.terms is not None for noise in sums)
    largest = (noise.loadings if noise.largest is None else noise.largest for noise in sums)
    return NoiseSum(
        _rename_blocks([noise.loadings for noise in sums]),
        _rename_blocks([noise.scales for noise in sums]),
        [
            tuple(f"{at}:{block}" for block in group)
            for at, noise in enumerate(sums)
            for group in noise.groups
        ],
        _rename_blocks([*largest]) if several else None,
        all(noise.smooth for noise in sums),
        _rename_blocks([noise.terms or {} for noise in sums]) if one_by_one else None,
    )


_Part = TypeVar("_Part")


def _rename_blocks(by_block: Sequence[Mapping[str, _Part]]) -> dict[str, _Part]:
    """Put what is said by block together, the blocks of each under names of their own."""
    pairs = [(at, *pair) for at, parts in enumerate(by_block) for pair in parts.items()]
    return {f"{at}:{block}": part for at, block, part in pairs}
