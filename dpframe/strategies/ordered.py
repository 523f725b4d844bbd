"""Integer matrices that measure ordered bins, for sums over adjacent ones under Gaussian noise.

Let A measure the children of a node, and G hold for every two of them how often they are in one of
the sums wanted. A row moves what is measured by the diagonal of `X = A'A`, and with noise of scale
1 sums err by `tr(X^-1 G)`. For a diagonal of 1, the least error has, for some weights D^2,

    X = D^-1 (D G D)^(1/2) D^-1 ,

and the weights are those that make the diagonal of X equal 1: a fixed point (Denisov, McMahan,
Rush, Smith and Thakurta 2022). Near it, columns of A are made equal in length. A is then rounded to
integers; the movement of these is what is charged, so that rounding costs accuracy alone.
"""

import math
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

import numpy as np

from dpframe.frozen import frozen

Window: TypeAlias = int | Literal["expanding"] | None
"""Sums that matter: over so many adjacent bins, from the first bin on, or all there are."""

MOST_CHILDREN = 384  # that are children of the root, such as days of a year: planned in .2 s
_FEW_CHILDREN = 256  # of a node, where there are more bins; with 128, 1,024 bins err 2 % more
_ALIKE = 0.95  # of the largest square of a column; with .99, errors fall by .1 %
_ALIKE_BELOW = 0.999  # the same of children below the root, which are not made equal then
_MOST_ROUNDS = 20  # most take 2 to 5
_OVERSHOOT = 1.75  # of a step of the logarithms of weights; with 1, prefixes need 30 rounds
_FINEST = 8  # parts of a child in which sums may end
_OF_BINS = 1e-3  # weight of single bins beside windows, without which those tell no bin apart
_NOTHING = 1e-11  # of the largest eigenvalue; others are at least 1e-6 of it
_UNIT = 2.0**13  # length of a column; rounded to integers, errors grow by .01 %


@frozen(eq=False)
class TreeLevel:
    """How the children of each node of a level are measured.

    Parameters
    ----------
    weights
        The weights D^2, one per child.
    tau
        The inverse of A and of the matrix of integers: this many times the one is the other.
    matrix
        The integers that a row in each child adds. Of children of the root they tell all; of
        others, what they differ by, so that rows of the matrix add up to 0.
    reading
        The inverse.
    """

    weights: tuple[float, ...]
    tau: float
    matrix: np.ndarray
    reading: np.ndarray

    @property
    def size(self) -> int:
        """How many children there are."""
        return len(self.weights)


def sizes_of(bins: int) -> tuple[int, ...]:
    """Return how many children nodes have, from the root down: as few levels as can be.

    Examples
    --------
    >>> sizes_of(365), sizes_of(1024), sizes_of(10**6)
    ((365,), (256, 4), (252, 63, 63))
    """
    if bins <= MOST_CHILDREN:
        return (bins,)
    leaves = -(-bins // _FEW_CHILDREN)  # of a child of the root, at least
    levels = 0
    while _FEW_CHILDREN**levels < leaves:
        levels += 1
    below: list[int] = []
    for left in range(levels, 0, -1):
        needed = -(-leaves // math.prod(below))
        size = round(needed ** (1 / left))
        below.append(size if size**left >= needed else size + 1)
    return (-(-bins // math.prod(below)), *below)


@lru_cache(16)  # a few megabytes each
def plan_levels(sizes: tuple[int, ...], window: Window) -> tuple[TreeLevel, ...]:
    """Return the levels of the least mean square error of the sums wanted, by their sizes.

    Examples
    --------
    >>> (level,) = plan_levels((3,), "expanding")
    >>> level.matrix.shape, np.abs(level.matrix.T @ level.matrix / 2**26).round(2).max()
    ((3, 3), np.float64(1.0))
    """
    levels = range(len(sizes))
    weights = [_balance(sizes, level, window) for level in levels]
    parts = [factors(sizes, level, window, weights[level]) for level in levels]
    grams = [gram_of(sizes, level, window) for level in levels]
    errors = [
        math.sqrt(np.sum(inverse * (gram @ inverse)))
        for gram, (_, inverse) in zip(grams, parts, strict=True)
    ]
    planned = []
    for level, (matrix, _) in enumerate(parts):
        factor = _UNIT * math.sqrt(errors[level] / sum(errors))
        integers = _whole(factor * matrix, below=level > 0)
        reading = (np.linalg.pinv if level else np.linalg.inv)(integers.astype(np.float64))
        planned.append(TreeLevel(weights[level], 1 / factor, integers, reading))
    return tuple(planned)


def _whole(matrix: np.ndarray, *, below: bool) -> np.ndarray:
    """Round to integers; of children below the root, rows add up to 0 exactly."""
    integers: np.ndarray = np.rint(matrix).astype(np.int64)
    if below:
        excess = integers.sum(axis=1, keepdims=True)
        integers -= np.sign(excess) * (np.arange(integers.shape[1]) < np.abs(excess))
    return integers


@lru_cache(32)
def gram_of(sizes: tuple[int, ...], level: int, window: Window) -> np.ndarray:
    """Return the matrix G of the children of a node of a level, the mean of all sums.

    Of children of the root, sums may end in some parts of them. Below, ends are as often after one
    child as after another, and what children have in common is left out.
    """
    size = sizes[level]
    if level:
        ends = count_sums(size, "expanding")
        apart = np.eye(size) - 1 / size
        return np.asarray((1 if window == "expanding" else 2) * apart @ ends @ apart)
    leaves = math.prod(sizes[1:])
    parts = min(leaves, _FINEST)
    if isinstance(window, int):
        window = min(max(round(window * parts / leaves), 1), size * parts)
    fine = count_sums(size * parts, window)
    gram = np.asarray(fine.reshape(size, parts, size, parts).mean((1, 3)))
    return gram + _OF_BINS * np.eye(size) if isinstance(window, int) else gram


def count_sums(bins: int, window: Window) -> np.ndarray:
    """Return for every two bins which part of the sums wanted holds both.

    Examples
    --------
    >>> count_sums(3, 2).tolist()
    [[0.5, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 0.5]]
    """
    bin_ = np.arange(bins)
    low, high = np.minimum.outer(bin_, bin_), np.maximum.outer(bin_, bin_)
    match window:
        case None:
            return np.asarray((low + 1) * (bins - high) / (bins * (bins + 1) / 2))
        case "expanding":
            return np.asarray((bins - high) / bins)
        case int():
            last = np.minimum(low, bins - window)
            first = np.maximum(high - window + 1, 0)
            return np.asarray(np.maximum(last - first + 1, 0) / (bins - window + 1))
        case _:
            assert_never(window)


def _balance(sizes: tuple[int, ...], level: int, window: Window) -> tuple[float, ...]:
    """Return weights, of a few digits, for which all children move nearly alike."""
    least = _ALIKE_BELOW if level else _ALIKE
    weights = np.ones(sizes[level])
    for _ in range(_MOST_ROUNDS):
        rounded = tuple(float(f"{weight:.4g}") for weight in weights.tolist())
        matrix, _ = _unscaled(sizes, level, window, rounded)
        moved = np.square(matrix).sum(axis=0)
        moved /= moved.max()
        if moved.min() > least:
            break
        weights = weights * moved**_OVERSHOOT
        weights /= weights.max()
    return rounded


def factors(
    sizes: tuple[int, ...], level: int, window: Window, weights: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return A and its inverse, with columns of A of length 1; at most 1 where rows add up to 0.

    Parameters
    ----------
    sizes, level, window
        Those of the matrix G. Where children add up to nothing, what they have in common is left
        out.
    weights
        The weights D^2.
    """
    matrix, inverse = _unscaled(sizes, level, window, weights)
    lengths = np.sqrt(np.square(matrix).sum(axis=0))
    if len(matrix) < len(inverse):
        lengths = np.full(len(inverse), lengths.max(initial=1e-300))
    return matrix / lengths, inverse * lengths[:, None]


@lru_cache(32)  # those of the last round are the factors
def _unscaled(
    sizes: tuple[int, ...], level: int, window: Window, weights: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    stretch = np.sqrt(weights)
    values, vectors = np.linalg.eigh(stretch[:, None] * gram_of(sizes, level, window) * stretch)
    kept = values > _NOTHING * values[-1]
    roots, vectors = values[kept] ** 0.25, vectors[:, kept]
    return roots[:, None] * vectors.T / stretch, stretch[:, None] * vectors / roots
