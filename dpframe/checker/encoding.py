"""How totals become measured integers, found by encoding totals of a single 1.

The encoding must add up, and mix cells only where a measurement is said to.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from dpframe.checker.cell import ONE_CELL, PlaceKernel
from dpframe.checker.measured import Measured, RowPlaces
from dpframe.errors import PlanCheckError

_MOST_CELLS = 64  # of random totals, where cells are measured one by one
_MOST_PLACES = 12
"""Places of a row that are all compared with each other; of more, a sample is."""
_MOST_AXES = 6  # with sets of axes along which a second row is elsewhere
_SAMPLED = 4  # places beside the ends
_LARGEST = 2**20  # of random totals


class EncodingProbe:
    """The encoding of one measurement.

    Parameters
    ----------
    measured
        The measurement.
    dice
        For samples.
    """

    def __init__(self, measured: Measured, dice: np.random.Generator) -> None:
        self._measured = measured
        self._dice = dice
        self._number = len(measured.totals)

    def check(self) -> None:
        """Refuse an encoding that does not add up, or mixes cells.

        Raises
        ------
        PlanCheckError
            If it does.
        """
        size = self._measured.places.cells
        if not self._measured.mixed:
            size = min(size, _MOST_CELLS)
        one, other = self._dice.integers(-_LARGEST, _LARGEST, (2, self._number, size))
        first, second, both = (self._encode(totals) for totals in (one, other, one + other))
        if not all(map(np.array_equal, map(np.add, first, second), both)):
            raise PlanCheckError.of("what is measured of two frames does not add up")
        if self._measured.mixed:
            return
        cell = int(self._dice.integers(size))
        alone = np.zeros_like(one)
        alone[:, cell] = one[:, cell]
        for whole, part in zip(first, self._encode(alone), strict=True):
            rest = np.delete(part, cell)
            if whole[cell] != part[cell] or rest.any():
                raise PlanCheckError.of("cells are mixed that have noise of their own")

    def weights(self) -> np.ndarray:
        """Return how often each total is in each block: one row for each block."""
        if not self._measured.mixed:
            return np.array(self._encode(np.eye(self._number, dtype=np.int64)))
        place = self._measured.places.cells_at([0] * len(self._measured.places.shape))
        arrays = [self._unit(n, place) for n in range(self._number)]
        blocks = len(arrays[0])
        weights = np.zeros((blocks, self._number), np.int64)
        moving = (array[k] for k in range(blocks) for array in arrays if array[k].any())
        of_row = next(moving, None)
        if of_row is None:
            return weights
        of_row = of_row // int(np.gcd.reduce(of_row))
        first = int(np.flatnonzero(of_row)[0])
        for k, n in itertools.product(range(blocks), range(self._number)):
            weights[k, n] = int(arrays[n][k][first]) // int(of_row[first])
            if not np.array_equal(arrays[n][k], of_row * weights[k, n]):
                raise PlanCheckError.of("blocks are measured in different layers")
        return weights

    def at_place(self, total: int, place: Sequence[int]) -> list[np.ndarray]:
        """Return what one row at a place adds by one total."""
        return self._unit(total, self._measured.places.cells_at(place))

    def _unit(self, total: int, cells: Sequence[int]) -> list[np.ndarray]:
        totals = np.zeros((self._number, self._measured.places.cells), np.int64)
        np.add.at(totals[total], list(cells), 1)
        return self._encode(totals)

    def _encode(self, totals: np.ndarray) -> list[np.ndarray]:
        return self._measured.encode(list(totals))


def pairs_of_places(
    places: RowPlaces, dice: np.random.Generator, *, two: bool
) -> tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], bool]:
    """Return where two rows are, to be tried, and whether these are a sample.

    The second row is elsewhere along each set of axes, where there are more places than can all be
    compared.
    """
    shape = places.shape
    whole = math.prod(shape)
    if whole <= _MOST_PLACES:
        every = [tuple(map(int, place)) for place in np.ndindex(*shape)]
        return list(itertools.product(every, every)) if two else [(p, p) for p in every], False
    first = (0,) * len(shape)
    axes = [at for at, size in enumerate(shape) if size > 1]
    few = len(axes) <= _MOST_AXES and two
    sets = itertools.product((0, 1), repeat=len(axes)) if few else [(1,) * len(axes)]
    others = [first]
    for chosen in sets:
        place = list(first)
        for at, moved in zip(axes, chosen, strict=True):
            place[at] = (shape[at] - 1) * moved
        others.append(tuple(place))
    sampled = [tuple(map(int, dice.integers(0, shape))) for _ in range(_SAMPLED)]
    if len(shape) == 1:
        sampled += [(shape[0] // 2,), (1,), (shape[0] - 2,)]
    others = list(dict.fromkeys([*others, *sampled]))
    return [(first, place) if two else (place, place) for place in others], True


def kernels_of(
    measured: Measured, encoding: EncodingProbe, weights: np.ndarray, dice: np.random.Generator
) -> tuple[list[PlaceKernel], bool]:
    """Return what is measured of rows at two places, for pairs of places; tell if it is a sample.

    Of Gaussian noise, three sums are enough: `(u x - v y)^2` is made of `x^2`, `y^2` and `(x -
    y)^2`.
    """
    profile = measured.noise.profile
    if profile is None:
        return [ONE_CELL], False
    blocks, totals = np.nonzero(weights)
    if not len(blocks):
        return [ONE_CELL], False
    block, total = int(blocks[0]), int(totals[0])
    factor = int(weights[block, total])
    two = measured.neighboring == "replace"
    pairs, sampled = pairs_of_places(measured.places, dice, two=two)
    known = {
        place: encoding.at_place(total, place)[block] // factor
        for place in dict.fromkeys(place for pair in pairs for place in pair)
    }
    _check_groups(measured, encoding, total)
    make = _gaussian if measured.noise.law.norm == 2 else _by_pairs  # noqa: PLR2004
    kernels = (make(known[p], known[q], profile) for p, q in pairs)
    return list({_rounded(kernel): kernel for kernel in kernels}.values()), sampled


def _check_groups(measured: Measured, encoding: EncodingProbe, total: int) -> None:
    """Refuse groups of cells that share measured integers, but for the caps are apart."""
    places = measured.places
    if places.groups == 1:
        return
    first, last = [0], [places.cells - places.inner]
    one, other = (encoding.at_place(total, place) for place in (first, last))
    if any((a.astype(bool) & b.astype(bool)).any() for a, b in zip(one, other, strict=True)):
        raise PlanCheckError.of("groups share integers that are measured")


def _gaussian(one: np.ndarray, other: np.ndarray, profile: np.ndarray) -> PlaceKernel:
    precision = profile**-2.0
    u, v = one.astype(np.float64), other.astype(np.float64)
    mine, theirs, shared = (
        math.fsum((x * y * precision).tolist()) for x, y in ((u, u), (v, v), (u, v))
    )
    parts = (1, 0, mine - shared), (0, 1, theirs - shared), (1, 1, shared)
    return tuple(part for part in parts if part[2])


def _by_pairs(one: np.ndarray, other: np.ndarray, profile: np.ndarray) -> PlaceKernel:
    found: dict[tuple[int, int], list[float]] = {}
    moved = np.flatnonzero(one.astype(bool) | other.astype(bool))
    rows = zip(one[moved].tolist(), other[moved].tolist(), profile[moved].tolist(), strict=True)
    for u, v, scale in rows:
        found.setdefault((u, v), []).append(1 / scale)
    return tuple((u, v, math.fsum(parts)) for (u, v), parts in sorted(found.items()))


def _rounded(kernel: PlaceKernel) -> tuple[tuple[int, int, float], ...]:
    return tuple((u, v, float(f"{factor:.12g}")) for u, v, factor in kernel)
