"""Weighted sums of released numbers, and what the noise of their releases does to them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from dpframe.certificates.certificate import Release
from dpframe.certificates.mechanism_parts import BlockNoisePart, LayersPart, SumsPart
from dpframe.errors import QueryError
from dpframe.frozen import frozen
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.half_widths import Rows
from dpframe.privacy.law import Law
from dpframe.privacy.noise_sum import NoiseSum, Shares, Value, norm

Matrix: TypeAlias = Any
"""A sparse matrix of scipy by rows: weights of released numbers."""

_ALL = slice(None)
_ALIKE = 1e-12  # of a weight: what rounding leaves
_FEW = 4  # noises: the law of so many is known row by row
_MOST_STRUCTURED = 20_000_000  # weights of cells measured together: 0.6 ms for 900 of them


def sparse() -> Any:
    """Return the module of sparse matrices, which is slow to import."""
    from scipy import sparse as module

    return module


def grouping(groups: np.ndarray, size: int) -> Matrix:
    """Return the matrix that adds numbers up by the group of each."""
    ones = np.ones(len(groups))
    return sparse().csr_array((ones, (groups, np.arange(len(groups)))), (size, len(groups)))


def scaled_rows(matrix: Matrix, weights: Value) -> Matrix:
    """Return a matrix with each row times a weight."""
    product = matrix.copy()
    if np.ndim(weights) == 0:
        product.data = product.data * weights
    else:
        product.data = product.data * np.repeat(weights, np.diff(matrix.indptr))
    return product


@frozen(eq=False)
class ReleasedNumbers:
    """Released numbers.

    Parameters
    ----------
    values
        The numbers.
    loadings
        By block, what its noise does to them.
    release
        Where they come from.
    """

    values: np.ndarray
    loadings: Mapping[str, Value]
    release: Release


@frozen(eq=False)
class LinearSums:
    """Weighted sums of released numbers, one for each row.

    Parameters
    ----------
    terms
        Weights, by row and number, and the numbers.
    """

    terms: Sequence[tuple[Matrix, ReleasedNumbers]]

    @property
    def values(self) -> np.ndarray:
        """The sums."""
        parts = [matrix @ numbers.values for matrix, numbers in self.terms]
        return np.asarray(sum(parts[1:], start=parts[0]))

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.terms[0][0].shape[0])

    def sizes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return how many weights each row has, and their size, if rows have weights of one size.

        `None` where they have not, or where noises of numbers differ or are shared.
        """
        if len(self.terms) > 1:
            return None
        ((matrix, numbers),) = self.terms
        source = numbers.release.noise
        alike = not any(map(np.ndim, numbers.loadings.values()))
        if not alike or source.shared_blocks or isinstance(source, LayersPart):
            return None
        weights = np.abs(matrix.data)
        least, size = (
            _extreme(weights, matrix.indptr, which) for which in (np.minimum, np.maximum)
        )
        if (size - least > _ALIKE * size).any():
            return None
        return np.diff(matrix.indptr), size

    def times(self, weights: Matrix) -> "LinearSums":
        """Return weighted sums of these."""
        return LinearSums([(weights @ matrix, numbers) for matrix, numbers in self.terms])

    def scaled(self, weights: Value) -> "LinearSums":
        """Return each of them times a weight."""
        return LinearSums(
            [(scaled_rows(matrix, weights), numbers) for matrix, numbers in self.terms]
        )

    def take(self, rows: np.ndarray) -> "LinearSums":
        """Return some of them."""
        return LinearSums([(matrix[rows], numbers) for matrix, numbers in self.terms])

    def plus(self, other: "LinearSums") -> "LinearSums":
        """Return the sum of two, row by row."""
        return LinearSums([*self.terms, *other.terms])


class Shared(NamedTuple):
    """Sums by whose groups others are divided: the sums, and which of them each row has."""

    sums: LinearSums
    groups: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """The sum of each row."""
        of_rows: np.ndarray = self.sums.values[self.groups]
        return of_rows


Bottom: TypeAlias = LinearSums | Shared | None


class _Common(NamedTuple):
    """One noise, which all numbers share."""

    above: np.ndarray
    below: np.ndarray

    def magnitudes(self, a: Value, b: Value, rows: Rows) -> list[np.ndarray]:
        """Return what it does."""
        return [np.abs(a * self.above[rows] - b * self.below[rows])]

    def sizes(self, a: Value, b: Value, rows: Rows) -> tuple[Value, Value]:
        """Return what it does, twice: it is one part."""
        (size,) = self.magnitudes(a, b, rows)
        return size, size

    def alike(self) -> np.ndarray | None:
        """Return it, if it is the same in all rows."""
        first = self.above[:1]
        return np.abs(first) if (self.above == first).all() else None


class _Few(NamedTuple):
    """A few noises in each row: rows by noises."""

    above: np.ndarray
    below: np.ndarray

    def magnitudes(self, a: Value, b: Value, rows: Rows) -> list[np.ndarray]:
        """Return what each of them does."""
        columns = zip(self.above.T, self.below.T, strict=True)
        return [np.abs(a * above[rows] - b * below[rows]) for above, below in columns]

    def sizes(self, a: Value, b: Value, rows: Rows) -> tuple[Value, Value]:
        """Return the root of the sum of their squares, and the largest one."""
        sizes = self.magnitudes(a, b, rows)
        if len(sizes) == 1:
            return sizes[0], sizes[0]
        return norm(sizes), reduce(np.maximum, sizes)

    def alike(self) -> np.ndarray | None:
        """Return them, if they are the same in all rows."""
        sizes = np.sort(np.abs(self.above), axis=1)
        return sizes[0] if len(sizes) and (sizes == sizes[0]).all() else None


class _Many(NamedTuple):
    """Many noises in each row: their variances, and the boxes that hold all of them."""

    squares: tuple[np.ndarray, np.ndarray, np.ndarray]
    corners: Sequence[tuple[np.ndarray, np.ndarray]]
    same: np.ndarray | None

    def sizes(self, a: Value, b: Value, rows: Rows) -> tuple[Value, Value]:
        """Return the root of their variance, and at least the largest of them."""
        above, both, below = (part[rows] for part in self.squares)
        variance = np.maximum(a * (a * above - 2 * b * both) + b * b * below, 0)
        corners = [np.abs(a * p[rows] - b * q[rows]) for p, q in self.corners]
        size = np.sqrt(variance)
        return size, np.minimum(reduce(np.maximum, corners), size) if corners else size

    def alike(self) -> np.ndarray | None:
        """Return them, if they are the same in all rows."""
        return self.same


def _pairs(
    above: Matrix | None,
    below: Matrix | None,
    groups: np.ndarray | None,
    size: int,
    *,
    shared: bool,
) -> "_Common | _Few | _Many":
    """Take what the noises of a block do to top and bottom together."""
    if shared:
        sums = [np.zeros(size) if part is None else part.sum(axis=1) for part in (above, below)]
        bottom = sums[1] if groups is None or below is None else sums[1][groups]
        return _Common(sums[0], bottom)
    width = next(part.shape[1] for part in (above, below) if part is not None)
    empty = sparse().csr_array((size, width))
    top = empty if above is None else above
    longest = 0 if below is None else int(np.diff(below.indptr).max(initial=0))
    if groups is not None and below is not None and longest <= _FEW:
        # so few are copied to their rows: then the law of each row is known
        below, groups = below[groups], None
    bottom = empty if below is None else below
    if groups is None and longest <= _FEW:
        union = (abs(top) + abs(bottom)).tocsr()
        if int(np.diff(union.indptr).max(initial=0)) <= _FEW:
            return _few(union, top, bottom)
    return _many(top, bottom, groups)


def _few(union: Matrix, top: Matrix, bottom: Matrix) -> _Few:
    """Put the weights of a few numbers in each row side by side."""
    lengths = np.diff(union.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    slots = np.arange(len(rows)) - np.repeat(union.indptr[:-1], lengths)
    parts = []
    for matrix in (top, bottom):
        padded = np.zeros((len(lengths), int(lengths.max(initial=1)) or 1), order="F")
        padded[rows, slots] = _at(matrix, rows, union.indices)
        parts.append(padded)
    return _Few(*parts)


def _at(matrix: Matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the weights of some numbers in some rows."""
    if not len(rows) or not matrix.nnz:
        return np.zeros(len(rows))
    weights = matrix.sorted_indices()[rows, columns]  # in rows without order, SciPy reads all
    return np.asarray(weights.toarray() if sparse().issparse(weights) else weights).ravel()


def _many(top: Matrix, bottom: Matrix, groups: np.ndarray | None) -> _Many:
    """Sum up squares and products, and find the corners of the boxes of a row."""
    lengths = np.diff(top.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    p = top.data
    alike = groups is None and _same_places(top, bottom)
    of_rows = rows if groups is None else groups[rows]
    q = bottom.data if alike else _at(bottom, of_rows, top.indices)
    squares = [np.bincount(rows, part, len(lengths)) for part in (p * p, p * q)]
    below = bottom.copy()
    below.data = np.square(below.data)
    total = below.sum(axis=1)
    largest = abs(bottom).max(axis=1).toarray().ravel() if bottom.nnz else np.zeros(len(total))
    if groups is not None:
        total, largest = total[groups], largest[groups]
    ends = [
        _extreme(part, top.indptr, which) for part in (p, q) for which in (np.minimum, np.maximum)
    ]
    corners = [(top_end, bottom_end) for top_end in ends[:2] for bottom_end in ends[2:]]
    if not alike:
        # a number of bottom alone has the weight 0 in top
        corners.append((np.zeros(len(lengths)), largest))
    return _Many((squares[0], squares[1], total), corners, _same_parts(top))


def _same_places(top: Matrix, bottom: Matrix) -> bool:
    same = np.array_equal(top.indptr, bottom.indptr)
    return same and np.array_equal(top.indices, bottom.indices)


def _extreme(part: np.ndarray, starts: np.ndarray, which: np.ufunc) -> np.ndarray:
    """Return the least or largest weight of each row; of none, 0."""
    extremes = np.zeros(len(starts) - 1)
    used = np.flatnonzero(np.diff(starts))
    if len(used):
        extremes[used] = which.reduceat(part, starts[used])
    return extremes


def _same_parts(top: Matrix) -> np.ndarray | None:
    """Return the weights of a row, if all rows have the same ones, in any order."""
    lengths = np.diff(top.indptr)
    if not len(lengths) or (lengths != lengths[0]).any():
        return None
    sizes = np.sort(np.abs(top.data).reshape(len(lengths), -1), axis=1)
    return sizes[0] if (sizes == sizes[0]).all() else None


def _structured(
    source: LayersPart,
    above: Mapping[str, Matrix],
    below: Mapping[str, Matrix],
    groups: np.ndarray | None,
    size: int,
    *,
    rows: int,
) -> dict[str, _Many]:
    """Take cells that were measured together, by what is known of their covariances."""
    pairs = {}
    for block, structure in source.by_block.items():
        parts = [matrices.get(block) for matrices in (above, below)]
        if all(part is None for part in parts):
            continue
        dense = [np.zeros((1, 1)) if part is None else part.toarray() for part in parts]
        if max(part.size for part in dense) > _MOST_STRUCTURED:
            rule = "cells that were measured together are too many for this"
            raise QueryError(f"{rule}. Take fewer rows, or release counts without margins.")
        top, bottom = (part / structure.deviations for part in dense)
        top = top[:size]  # where one row stands for all, these are alike
        of_rows = np.zeros(size, np.intp) if len(bottom) < size and groups is None else groups
        aligned = bottom if of_rows is None else bottom[of_rows[:size]]
        shape = (size, max(top.shape[1], aligned.shape[1]))
        top, aligned = np.broadcast_to(top, shape), np.broadcast_to(aligned, shape)
        variance = structure.variance
        of_top = np.array([variance(row) for row in top])
        of_bottom = np.array([variance(row) for row in aligned])
        of_both = np.array([variance(row) for row in top + aligned])
        # the structure gives variances alone: of a sum, they hold the covariance twice
        covariance = (of_both - of_top - of_bottom) / 2
        squares = [np.broadcast_to(part, rows) for part in (of_top, covariance, of_bottom)]
        pairs[block] = _Many((squares[0], squares[1], squares[2]), (), None)
    return pairs


class JointNoise:
    """The noise of `a top - b bottom`, row by row.

    For each block it is `sum_j (a w_j K_j - b v_j L_j) Z_j`, with the noises Z_j of numbers and
    what these do to top and bottom. Of few numbers in a row, each is a noise of its own. Of more,
    the variance is `a^2 A - 2 a b B + b^2 C`, with A, B and C summed up once, and the largest part
    is at most that at a corner of the box that holds all pairs `(w_j K_j, v_j L_j)` of a row.

    Parameters
    ----------
    top, bottom
        The sums.
    shares
        How many cells the total of each row has, where top is a cell of it.
    """

    def __init__(
        self, top: LinearSums, bottom: Bottom = None, *, shares: np.ndarray | None = None
    ) -> None:
        groups = bottom.groups if isinstance(bottom, Shared) else None
        below = bottom.sums if isinstance(bottom, Shared) else bottom
        drawn = [numbers.release for _, numbers in _terms(top, below)]
        releases = {release.release_id: release for release in drawn}
        self._parts = [
            _NoiseOfRelease(release, top, below, groups, shares) for release in releases.values()
        ]

    def __call__(self, a: Value, b: Value, rows: Rows = _ALL) -> IndependentSum:
        """Return the noise for some weights, one for each of the rows."""
        return IndependentSum.of([part.sum(a, b, rows) for part in self._parts])


def _terms(*sums: LinearSums | None) -> Iterable[tuple[Matrix, ReleasedNumbers]]:
    return [term for part in sums if part is not None for term in part.terms]


class _NoiseOfRelease:
    """The noise of one release in `a top - b bottom`."""

    def __init__(
        self,
        release: Release,
        top: LinearSums,
        bottom: LinearSums | None,
        groups: np.ndarray | None,
        shares: np.ndarray | None,
    ) -> None:
        self._source = release.noise
        self._release = release
        self._shares: tuple[np.ndarray, Mapping[str, float]] | None = None
        size = top.rows
        above, below = (_by_block(sums, release) for sums in (top, bottom))
        if isinstance(self._source, LayersPart):
            # cells of margins are alike, but for those of combinations
            one_for_all = shares is not None and not isinstance(self._source, SumsPart)
            rows = 1 if one_for_all else size
            self._blocks: Mapping[str, _Common | _Few | _Many] = _structured(
                self._source, above, below, groups, rows, rows=size
            )
            return
        common = set(self._source.shared_blocks)
        self._blocks = {
            block: _pairs(above.get(block), below.get(block), groups, size, shared=block in common)
            for block in {**above, **below}
        }
        if shares is not None:
            self._shares = shares, _loadings_of_cells(top, self._source.scale_by_block)

    def sum(self, a: Value, b: Value, rows: Rows) -> tuple[Law, NoiseSum]:
        """Return the sum of its noises, and their law."""
        source = self._source
        scales = source.scale_by_block
        groups = source.drawn_together(self._release.query.cells)
        # where weights differ by row, rows are not alike
        alike = None if np.ndim(a) else self._alike(b)
        if alike is None and self._shares is None:
            noise = self._sums_of_few(a, b, rows, groups)
            if noise is not None:
                return source.distribution, noise
        loadings, largest = {}, {}
        for block, pairs in self._blocks.items():
            loadings[block], largest[block] = pairs.sizes(a, b, rows)
        shares = None
        if self._shares is not None and np.ndim(a):
            cells, parts = self._shares
            shares = Shares(
                cast(np.ndarray, a), cast(np.ndarray, b), cells[rows], parts, source.shared_blocks
            )
        total = NoiseSum(loadings, scales, groups, largest, terms=alike, shares=shares)
        return source.distribution, total

    def _sums_of_few(self, a: Value, b: Value, rows: Rows, groups: Any) -> NoiseSum | None:
        """Return the sum where each row has few noises, each of them for itself."""
        source = self._source
        few = {
            block: pairs for block, pairs in self._blocks.items() if not isinstance(pairs, _Many)
        }
        over_rows = isinstance(source, BlockNoisePart) and source.joined
        if len(few) < len(self._blocks) or over_rows or isinstance(source, LayersPart):
            return None
        loadings: dict[str, Value] = {}
        slots = 0
        for block, pairs in few.items():
            for slot, part in enumerate(pairs.magnitudes(a, b, rows)):
                loadings[f"{slot}:{block}"] = part
                slots = max(slots, slot + 1)
        blocks = source.scale_by_block.items()
        scales = {f"{slot}:{block}": scale for slot in range(slots) for block, scale in blocks}
        together = [
            tuple(f"{slot}:{block}" for block in group) for slot in range(slots) for group in groups
        ]
        return NoiseSum(loadings, scales, together)

    def _alike(self, b: Value) -> dict[str, np.ndarray] | None:
        """Return the noises one by one, if all rows have the same ones."""
        if np.any(b):
            return None
        terms = {block: pairs.alike() for block, pairs in self._blocks.items()}
        if any(part is None for part in terms.values()):
            return None
        return cast(dict[str, np.ndarray], terms)


def _by_block(sums: LinearSums | None, release: Release) -> dict[str, Matrix]:
    """Return by block what its noises do to sums: a weight for each row and number."""
    matrices: dict[str, Matrix] = {}
    for matrix, numbers in () if sums is None else sums.terms:
        if numbers.release.release_id != release.release_id:
            continue
        for block, loading in numbers.loadings.items():
            part = matrix.copy()
            part.data = part.data * (
                loading if np.ndim(loading) == 0 else np.take(loading, matrix.indices)
            )
            matrices[block] = matrices[block] + part if block in matrices else part
    return matrices


def _loadings_of_cells(top: LinearSums, scales: Mapping[str, float]) -> Any:
    """Return what the noise of each block does to a cell."""
    ((_, numbers),) = top.terms
    return {
        block: abs(float(part)) for block, part in numbers.loadings.items() if scales.get(block, 0)
    }
