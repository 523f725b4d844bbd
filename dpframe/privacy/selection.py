"""Exact selection of quantiles: permute-and-flip over bins, and the recursion for several.

The a/b quantile of N rows lies in bin k where `c_(k-1) <= a N / b <= c_k`, c_k being the rows up to
the end of bin k. The utility of a bin is how far it is from that, in integers,

    u_k = -max(b c_(k-1) - a N, a N - b c_k, 0),

and the bin with the largest `u_k + G_k` is selected, ties at random. G_k is geometric, `P(G = g) =
(1 - q) q^g`, `q = exp(-1 / scale)`. A geometric number is the whole part of an exponential one, and
independent of its fraction. So the selected bin has exactly the law of the largest utility with
exponential noise: that of permute-and-flip (McKenna and Sheldon 2020; Ding, Kifer et al. 2021).

**Loss.** Let neighbors change the utilities by d_k. A shift of all utilities changes nothing, so
let all d_k be in [0, R], R being their range. The density of exponential noise grows by at most
`exp(d_k / scale)` where it is above 0, and the other utilities do not fall: no bin gets likelier
by more than `exp(R / scale)`, and the other way round by `R - d_k`. The loss is `R / scale`.

**Range.** Let a unit take x rows out of the group and its neighbor put y rows in. Then
`b c_k - a N` changes by a number from `-((b - a) x + a y)` to `a x + (b - a) y`. As u_k is the
least of `b c_k - a N`, `a N - b c_(k-1)` and 0, it changes by no more, up or down. So

    R = 2 max((b - a) x + a y, a x + (b - a) y) ,

which is `2 D` for one row more or fewer, `D = max(a, b - a)`, and `2 b` for one row in place of
another. Bins below the quantile can change by R / 2 one way, and bins above it the other way. `R /
2` is what `sensitivity.movement` finds for the corners b - a and -a. It is linear in the rows of a
unit. Groups have independent noise: their losses add up.

**Several quantiles** (Kaplan, Schnapp and Stemmer 2022). The middle one is selected first; those
below it are quantiles of the rows in bins below the one selected, those above it of the other rows.
On a level of this tree the ranges of bins are disjoint, so that a row counts in one selection at
most, where it moves the utilities by R = 2 D at most; each has the scale `2 D / e`, and costs e. (A
range that would be empty is given one bin, which another range may have, too; of one bin, that bin
is selected, whatever it holds.) Which ranges there are is known from what was selected before. A
row in place of another may leave one range and enter another one: from the second level on that
costs 2 e, and x rows for y rows `(x + y) e`, which is more than both in one range.

**Parts.** Bins that hold many rows would be cut at their ends alone. So a bin has several parts,
and its rows are dealt out to them in turn. One row more in a bin is one row more in one of its
parts, and in no other: neighbors stay neighbors. A part stands for the value of its bin.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

import numpy as np

from dpframe.context import Context
from dpframe.errors import CalibrationError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import float_above
from dpframe.privacy.laplace import LAPLACE_CURVE
from dpframe.privacy.neighbors import Neighboring
from dpframe.privacy.noise import integer_noise, random_words
from dpframe.privacy.sensitivity import Footprint, Reach, movement

SELECT = "select"
"""The name of the mechanism."""

GEOMETRIC = "geometric"
"""The name of the law of the noise on utilities."""

# noise and utilities stay far within 64 bits
_MOST_SCALE = 2.0**50
# of one draw: they stay near the processor
_MOST_ITEMS = 1 << 19
_LARGEST_WORD = np.uint64(2**64 - 1)


class Pick(NamedTuple):
    """The selection of one quantile, between two that were selected before.

    Parameters
    ----------
    at
        Position of the quantile.
    low, high
        Positions of its neighbors that were selected; -1 and the number of quantiles: the ends.
    a, b
        It is the a/b quantile of the rows between them.
    level
        How many selections come before it, one after the other.
    """

    at: int
    low: int
    high: int
    a: int
    b: int
    level: int

    @property
    def most_moved(self) -> int:
        """By how much one row more or fewer moves a utility at most, D."""
        return max(self.a, self.b - self.a)


def steps_of(quantiles: Sequence[Fraction]) -> list[Pick]:
    """Return the selections that find some quantiles, in their order.

    Parameters
    ----------
    quantiles
        Increasing, above 0 and below 1.

    Examples
    --------
    >>> steps = steps_of([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])
    >>> [(step.at, f"{step.a}/{step.b}", step.level) for step in steps]
    [(1, '1/2', 0), (0, '1/2', 1), (2, '1/2', 1)]
    """
    ends = [Fraction(0), *quantiles, Fraction(1)]

    def between(low: int, high: int, level: int) -> Iterator[Pick]:
        if high - low > 1:
            at = (low + high) // 2
            part = (ends[at] - ends[low]) / (ends[high] - ends[low])
            yield Pick(at - 1, low - 1, high - 1, part.numerator, part.denominator, level)
            yield from between(low, at, level + 1)
            yield from between(at, high, level + 1)

    return sorted(between(0, len(ends) - 1, 0), key=lambda step: step.level)


@frozen(slots=True)
class Selection:
    """Selections that find some quantiles in every group.

    Parameters
    ----------
    steps
        The selections, in their order.
    scales
        Scale of the geometric noise of each of them, on its utilities.
    """

    steps: tuple[Pick, ...]
    scales: tuple[float, ...]

    @property
    def levels(self) -> int:
        """How many selections come one after the other."""
        return self.steps[-1].level + 1


def selection_of(
    quantiles: Sequence[Fraction], epsilon: Fraction, reach: Reach, neighboring: Neighboring
) -> Selection:
    """Make the noise of selections that cost at most epsilon.

    Parameters
    ----------
    quantiles
        Increasing, above 0 and below 1.
    epsilon
        What they may cost together, above 0.
    reach
        How much of the groups one unit can fill.
    neighboring
        Whether a neighbor has one unit more or fewer, or one unit replaced.

    Raises
    ------
    CalibrationError
        If the noise would be too wide.

    Examples
    --------
    >>> from dpframe.privacy.sensitivity import Reach
    >>> median = [Fraction(1, 2)]
    >>> [
    ...     selection_of(median, Fraction(1), Reach(1, rows, 0, 1), neighboring).scales
    ...     for rows in (1, 3)
    ...     for neighboring in ("add_remove", "replace")
    ... ]
    [(2.0,), (4.0,), (6.0,), (12.0,)]
    """
    steps = tuple(steps_of(quantiles))
    e = epsilon / _weight(steps, reach, neighboring)
    scales = tuple(float_above(2 * step.most_moved / e) for step in steps)
    if max(scales) > _MOST_SCALE:
        reason = "is so small that a quantile would be selected at random, with noise beyond 2**50"
        text = f"epsilon {reason}. Give a larger epsilon, or tighter caps."
        raise CalibrationError(text, parameter="epsilon")
    return Selection(steps, scales)


def _weight(steps: Sequence[Pick], reach: Reach, neighboring: Neighboring) -> Fraction:
    """Return what all levels cost a unit, where each costs 1 for one row more or fewer."""
    first, *later = [level for level, _ in groupby(steps, key=lambda step: step.level)]
    top = steps[0]
    footprints = [
        Footprint((first,), ((top.b - top.a,), (-top.a,))),
        *(Footprint((level,), ((1,), (-1,))) for level in later),
    ]
    scales = [Fraction(top.most_moved), *(Fraction(1) for _ in later)]
    return movement(footprints, scales, 1, reach, neighboring)


def select_parts(
    counts: np.ndarray, selection: Selection, parts: np.ndarray, context: Context
) -> np.ndarray:
    """Select the parts of the bins of quantiles in every group.

    Parameters
    ----------
    counts
        Rows by group and bin: int64 of shape (groups, bins).
    selection
        What to select, with which noise.
    parts
        How many parts each bin has, 1 or more.
    context
        Where random bits come from.

    Returns
    -------
    numpy.ndarray
        Positions of parts, by group and quantile, rising in a group: shape (groups, k).

    Examples
    --------
    >>> from dpframe.context import SYSTEM
    >>> from dpframe.privacy.sensitivity import Reach
    >>> sure = selection_of([Fraction(1, 2)], Fraction(10**6), Reach(1, 1, 0, 1), "add_remove")
    >>> select_parts(np.array([[3, 1, 0], [0, 0, 1]]), sure, np.ones(3, np.int64), SYSTEM)
    array([[0],
           [2]])
    """
    most = max(_MOST_ITEMS // int(parts.sum()), 1)
    starts = range(0, len(counts), most)
    dealt = (deal_rows(counts[at : at + most], parts) for at in starts)
    return np.concatenate([_select_parts(before, selection, context) for before in dealt])


def bins_of(chosen: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the positions of the bins that parts are of."""
    return np.asarray(np.repeat(np.arange(len(parts)), parts)[chosen])


def deal_rows(counts: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the rows before each part, and all rows: shape (groups, 1 + sum of parts)."""
    before = np.zeros((len(counts), 1), np.int64)
    if (parts == 1).all():
        return np.concatenate([before, np.cumsum(counts, axis=1)], axis=1)
    # within its bin
    at = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    rows, dealers = np.repeat(counts, parts, axis=1), np.repeat(parts, parts)
    return np.concatenate([before, np.cumsum((rows + dealers - 1 - at) // dealers, axis=1)], axis=1)


def _select_parts(before: np.ndarray, selection: Selection, context: Context) -> np.ndarray:
    """Select the parts of quantiles in some groups."""
    groups, ends = before.shape
    chosen = np.empty((groups, len(selection.steps)), np.int64)
    for step, scale in zip(selection.steps, selection.scales, strict=True):
        low = np.zeros(groups, np.int64) if step.low < 0 else chosen[:, step.low]
        last = step.high == len(selection.steps)
        high = np.full(groups, ends - 1) if last else np.maximum(chosen[:, step.high], low + 1)
        utilities = _utilities(before, low, high - low, step)
        noisy = utilities + geometric(scale, len(utilities), context)
        chosen[:, step.at] = low + _argmax(noisy, high - low, context)
    return chosen


def _utilities(before: np.ndarray, low: np.ndarray, sizes: np.ndarray, step: Pick) -> np.ndarray:
    """Return the utilities of the parts of a range in each group, one group after the other."""
    starts = np.cumsum(sizes) - sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    part = np.arange(len(group)) + np.repeat(low - starts, sizes)
    groups = np.arange(len(sizes))
    first, last = before[groups, low], before[groups, low + sizes]
    target = np.repeat(step.a * (last - first) + step.b * first, sizes)
    beyond = step.b * before[group, part] - target
    short = target - step.b * before[group, part + 1]
    utilities: np.ndarray = -np.maximum(np.maximum(beyond, short), 0)
    return utilities


def geometric(scale: float, size: int, context: Context) -> np.ndarray:
    """Draw integers of the law `P(g) = (1 - q) q^g`, g >= 0, `q = exp(-1 / scale)`, exactly.

    Given its sign, a discrete Laplace Y is geometric: both Y, where it is 0 or more, and -Y - 1.

    Parameters
    ----------
    scale
        Scale of the law, > 0.
    size
        Number of draws.
    context
        Where random bits come from.

    Examples
    --------
    >>> from dpframe.context import SYSTEM
    >>> draws = geometric(20.0, 1000, SYSTEM)
    >>> draws.dtype, bool(draws.min() >= 0)
    (dtype('int64'), True)
    """
    noise = integer_noise(LAPLACE_CURVE, scale, size, context)
    noise ^= noise >> 63  # -Y - 1 where the sign bit is set
    return noise


def _argmax(scores: np.ndarray, sizes: np.ndarray, context: Context) -> np.ndarray:
    """Return the place of the largest of each run, of several any, with equal probability."""
    starts = np.cumsum(sizes) - sizes
    best = np.maximum.reduceat(scores, starts)
    tied = np.flatnonzero(scores == np.repeat(best, sizes))
    run = np.searchsorted(starts, tied, side="right") - 1
    first = np.searchsorted(run, np.arange(len(starts)))
    chosen = first + _below(np.bincount(run), context)
    return np.asarray(tied[chosen] - starts)


def _below(limits: np.ndarray, context: Context) -> np.ndarray:
    """Draw whole numbers from 0 on, below some limits, each with exactly the same probability."""
    below = np.empty(len(limits), np.int64)
    left = np.arange(len(limits))
    while left.size:
        words, limit = random_words(left.size, context), limits[left].astype(np.uint64)
        numbers = words % limit
        # the last words, too few for all numbers, are drawn again
        usable = words - numbers <= _LARGEST_WORD - (limit - np.uint64(1))
        below[left[usable]] = numbers[usable].astype(np.int64)
        left = left[~usable]
    return below
