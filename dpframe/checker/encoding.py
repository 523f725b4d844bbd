"""How totals become measured integers, found by encoding totals of a single 1.

The encoding must add up, and mix cells only where a measurement is said to.
"""

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpframe.checker.cell import ONE_CELL, PlaceKernel
from dpframe.checker.measured import Measured, RowPlaces
from dpframe.errors import PlanCheckError

# of random totals, where cells are measured one by one
_MOST_CELLS = 64
_MOST_PLACES = 12
"""Places of a row that are all compared with each other; of more, a sample is."""
# squared places along one axis, times cells; 20 ms
_MOST_ENCODED = 2**26
# with sets of axes along which a second row is elsewhere
_MOST_AXES = 6
# places beside the ends
_SAMPLED = 2
# of random totals
_LARGEST = 2**20
_WORD, _DIGIT = 62, 15
"""Bits of an integer whose digits are places, and of a digit; of many, as few as the last needs."""

RowPlace: TypeAlias = tuple[int, ...]
"""Where a row is within a group, axis by axis."""


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

    def weights_of_cells(self) -> np.ndarray:
        """Return how often each total is in each block of its cell: one row for each block.

        Raises
        ------
        PlanCheckError
            If cells are mixed, or totals do not add up.
        """
        size = min(self._measured.places.cells, _MOST_CELLS)
        totals, others = self._random(size), self._random(size)
        first = self._added_up(totals, others)
        # a cell by itself has to give what it gives beside others
        cell = int(self._dice.integers(size))
        alone = np.zeros_like(totals)
        alone[:, cell] = totals[:, cell]
        for encoded, part in zip(first, self._encode(alone), strict=True):
            elsewhere = np.count_nonzero(part) - bool(part[cell])
            if encoded[cell] != part[cell] or elsewhere:
                raise PlanCheckError.of("cells are mixed that have noise of their own")
        return np.array(self._encode(np.eye(self._number, dtype=np.int64)))

    def weights_of_layers(
        self, places: Sequence[RowPlace]
    ) -> tuple[np.ndarray, dict[RowPlace, np.ndarray]]:
        """Return the same where each block measures the same of its total, and what that is.

        Parameters
        ----------
        places
            Places of one row.

        Raises
        ------
        PlanCheckError
            If blocks measure different things, or do not add up.
        """
        first = places[0]
        arrays = [self.at_places(n, places if n == 0 else [first]) for n in range(self._number)]
        of_total, blocks = arrays[0], range(len(arrays[0][first]))
        weights = np.zeros((len(blocks), self._number), np.int64)
        moving = [(k, n) for k in blocks for n in range(self._number) if arrays[n][first][k].any()]
        if not moving:
            return weights, {}
        block, total = moving[0]
        if total:
            of_total = self.at_places(total, places)
        factor = int(np.gcd.reduce(of_total[first][block]))
        of_row = {place: blocks_there[block] // factor for place, blocks_there in of_total.items()}
        at = int(np.flatnonzero(of_row[first])[0])
        for k, n in moving:
            weights[k, n] = int(arrays[n][first][k][at]) // int(of_row[first][at])
            if not np.array_equal(arrays[n][first][k], of_row[first] * weights[k, n]):
                raise PlanCheckError.of("blocks are measured in different layers")
        return weights, of_row

    def at_places(self, total: int, places: Sequence[RowPlace]) -> dict[RowPlace, list[np.ndarray]]:
        """Return what one row adds by one total, at each place, block by block."""
        encoded, sizes = self.whole_at_places(total, places)
        ends = list(itertools.accumulate(sizes, initial=0))
        return {
            place: [integers[start:end] for start, end in itertools.pairwise(ends)]
            for place, integers in encoded.items()
        }

    def whole_at_places(
        self, total: int, places: Sequence[RowPlace]
    ) -> tuple[dict[RowPlace, np.ndarray], list[int]]:
        """Return what one row adds by one total, at each place, and the sizes of blocks.

        Several places are encoded at once, as digits of one integer. That the digits are wide
        enough is seen where they are added up another way.
        """
        encoded: dict[RowPlace, np.ndarray] = {}
        others, bits = [*places], _DIGIT
        if len(places) > _WORD // bits:
            last = max(places)  # whose integers are the largest
            others.remove(last)
            encoded[last] = self._encode_units(total, [last], [1])
            bits = min((2 * int(np.abs(encoded[last]).max(initial=0)) + 1).bit_length(), bits)
        # digits have a sign: half of a digit is added before they are taken apart
        half, at_once = 1 << bits - 1, _WORD // bits
        for start in range(0, len(others), at_once):
            some = others[start : start + at_once]
            shifts = bits * np.arange(len(some))
            sums_of_digits = self._encode_units(total, some, 1 << shifts) + (half << shifts).sum()
            digits = (sums_of_digits >> shifts[:, None] & 2 * half - 1) - half
            encoded.update(zip(some, digits, strict=True))
        times = self._dice.integers(-_LARGEST, _LARGEST, len(places))
        other = self._units(total, places, times)
        added = self._added_up(other, self._random(self._measured.places.cells))
        sums = times @ np.array([encoded[place] for place in places])
        if not np.array_equal(sums, np.concatenate(added)):
            encoded = {place: self._encode_units(total, [place], [1]) for place in places}
        return encoded, [len(block) for block in added]

    def _added_up(self, totals: np.ndarray, others: np.ndarray) -> list[np.ndarray]:
        """Encode totals, and refuse what does not add up with other totals."""
        first, second, both = map(self._encode, (totals, others, totals + others))
        added = np.concatenate(first) + np.concatenate(second)
        if not np.array_equal(added, np.concatenate(both)):
            raise PlanCheckError.of("what is measured of two frames does not add up")
        return first

    def _random(self, size: int) -> np.ndarray:
        return self._dice.integers(-_LARGEST, _LARGEST, (self._number, size))

    def _units(self, total: int, places: Sequence[RowPlace], times: ArrayLike) -> np.ndarray:
        """Return totals of so many rows at each place."""
        totals = np.zeros((self._number, self._measured.places.cells), np.int64)
        cells = self._measured.places.cells_at(np.array(places, np.int64))
        np.add.at(totals[total], cells, np.reshape(times, (-1, 1)))
        return totals

    def _encode_units(self, total: int, places: Sequence[RowPlace], times: ArrayLike) -> np.ndarray:
        return np.concatenate(self._encode(self._units(total, places, times)))

    def _encode(self, totals: np.ndarray) -> list[np.ndarray]:
        return self._measured.encode(list(totals))


def places_to_try(
    places: RowPlaces, dice: np.random.Generator, *, two: bool, most: int = _MOST_PLACES
) -> tuple[list[RowPlace], bool]:
    """Return places of a row to try, and whether they are a sample: the first, and others.

    Where two rows are compared, the second one is elsewhere along each set of axes.
    """
    shape = places.shape
    if math.prod(shape) <= most:
        return [tuple(map(int, place)) for place in np.ndindex(*shape)], False
    axes = [at for at, size in enumerate(shape) if size > 1]
    all_sets = two and len(axes) <= _MOST_AXES
    sets = (
        itertools.product((0, 1), repeat=len(axes))
        if all_sets
        else [(0,) * len(axes), (1,) * len(axes)]
    )
    chosen_places = []
    for chosen in sets:
        place = [0] * len(shape)
        for at, moved in zip(axes, chosen, strict=True):
            place[at] = (shape[at] - 1) * moved
        chosen_places.append(tuple(place))
    chosen_places += [tuple(map(int, dice.integers(0, shape))) for _ in range(_SAMPLED)]
    if two and len(shape) == 1:
        chosen_places += [(1,), (shape[0] // 2,), (shape[0] - 2,)]
    return list(dict.fromkeys(chosen_places)), True


def layers_of(
    measured: Measured, probe: EncodingProbe, dice: np.random.Generator
) -> tuple[np.ndarray, list[PlaceKernel], bool]:
    """Return the weights of totals, what is measured of rows at two places, and if it is a sample.

    Of Gaussian noise, three sums are enough: `(u x - v y)^2` is made of `x^2`, `y^2` and `(x -
    y)^2`.
    """
    profile = measured.noise.profile
    assert profile is not None  # noqa: S101  # there are layers
    two, pure = measured.neighboring == "replace", measured.noise.law.norm == 1
    most = _MOST_PLACES
    if two and not pure and len(measured.places.shape) == 1:
        most = max(most, math.isqrt(_MOST_ENCODED // measured.places.cells))
    places, sampled = places_to_try(measured.places, dice, two=two, most=most)
    weights, of_row = probe.weights_of_layers(places)
    if not of_row:
        return weights, [ONE_CELL], False
    _check_groups(measured, probe)
    if not pure:
        columns = np.array([of_row[place] for place in places], np.float64)
        return weights, _gaussian_kernels(columns, profile**-2.0, two=two), sampled
    pairs = [(place, place) for place in places]
    if two:
        firsts = places[:1] if sampled else places
        pairs = list(itertools.product(firsts, places))
    kernels = [_by_pairs(of_row[p], of_row[q], profile) for p, q in pairs]
    return weights, list({_rounded(kernel): kernel for kernel in kernels}.values()), sampled


def _gaussian_kernels(
    columns: np.ndarray, precision: np.ndarray, *, two: bool
) -> list[PlaceKernel]:
    """Return what is measured of the places that share the most, the least, and are farthest."""
    moved = columns.any(axis=0)
    columns, precision = columns[:, moved], precision[moved]
    shared = (columns * precision) @ columns.T
    alone = np.diag(shared)
    if not two:
        farthest = int(alone.argmax())
        return [_gaussian(columns[farthest], columns[farthest], precision)]
    judged = shared, -shared, alone[:, None] + alone - 2 * shared
    pairs = {divmod(int(table.argmax()), len(alone)) for table in judged}
    return [_gaussian(columns[x], columns[y], precision) for x, y in sorted(pairs)]


def _check_groups(measured: Measured, probe: EncodingProbe) -> None:
    """Refuse groups of cells that are not measured apart and alike: the first is all that is tried.

    The integers of a group are next to each other.
    """
    places, profile = measured.places, measured.noise.profile
    assert profile is not None  # noqa: S101  # there are layers
    if places.groups == 1:
        return
    last = (places.cells - places.inner,)
    first, second = probe.at_places(0, [(0,), last]).values()
    width, left = divmod(len(profile), places.groups)
    if left or any(a[width:].any() or b[:-width].any() for a, b in zip(first, second, strict=True)):
        raise PlanCheckError.of("groups share integers that are measured")
    if (profile.reshape(places.groups, width) != profile[:width]).any():
        raise PlanCheckError.of("groups have different noise")


def _gaussian(
    mine_there: np.ndarray, theirs_there: np.ndarray, precision: np.ndarray
) -> PlaceKernel:
    products = mine_there * mine_there, theirs_there * theirs_there, mine_there * theirs_there
    mine, theirs, shared = (math.fsum((part * precision).tolist()) for part in products)
    parts = (1, 0, mine - shared), (0, 1, theirs - shared), (1, 1, shared)
    return tuple(part for part in parts if part[2])


def _by_pairs(mine: np.ndarray, theirs: np.ndarray, profile: np.ndarray) -> PlaceKernel:
    by_pair: dict[tuple[int, int], list[float]] = {}
    moved = np.flatnonzero(mine.astype(bool) | theirs.astype(bool))
    rows = zip(mine[moved].tolist(), theirs[moved].tolist(), profile[moved].tolist(), strict=True)
    for u, v, scale in rows:
        by_pair.setdefault((u, v), []).append(1 / scale)
    return tuple((u, v, math.fsum(parts)) for (u, v), parts in sorted(by_pair.items()))


def _rounded(kernel: PlaceKernel) -> tuple[tuple[int, int, float], ...]:
    return tuple((u, v, float(f"{factor:.12g}")) for u, v, factor in kernel)
