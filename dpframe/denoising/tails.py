"""Histograms of sizes: what noise leaves of a long tail.

Sizes in the tail are large, so that whatever noise leaves there outweighs everything else.
"""

import math
from typing import NamedTuple

import numpy as np

_DOUBT = 4.0  # mean sizes of noise that a bin must hold for the counts to reach as far as to it
_SLOPES = np.linspace(-0.5, 4.0, 46)  # of logarithms of densities, a bin
_BEGIN = 3.0  # mean sizes of noise that the first bins must hold besides
_BACK = 4  # bins that a tail is fitted to before its begin
_REACH = 0.5  # by which the logarithm of the weight of a tail falls for each bin that it reaches

_STEP = 0.4  # of logarithms of numbers, from one level to the next
_LEAST = 0.5  # units on the lowest level
_TURNS = np.array([1.0, 0.5, 0.2, 0.0, -0.2, -0.4, -0.7, -1.1, -1.6])  # of log densities, a bin
_SPREAD = 0.25  # mean distance of a log density from the line
_TURN, _NEW = 0.15, 0.1  # to the next slope up or down, to any
_END, _GAP, _JUMP = 0.1, 0.03, 0.03  # nothing follows; an empty bin; any number
_TINY = 2.0**-1000  # has a logarithm, and 0 has none
_LIVE = 1 - _END - _GAP - _JUMP  # the next bin follows the slope
_END_OF_GAP, _JUMP_OF_GAP = 0.5, 0.1  # the same after an empty bin
_EMPTY = 0.1  # the first bin
_NONE = 1  # the last state of a bin without units: state 0 is ended, 1 is empty


def tail_counts(noisy: np.ndarray, noise: float, widths: np.ndarray) -> np.ndarray:
    """Return numbers that are not negative, with as much of a tail as the noise leaves.

    With Laplace noise of scale b, a bin with a noisy number h tells by `h / b` in logarithms that
    it is not empty. The counts end where the sum of all `max(h, 0) / b - 4` up to there is largest.
    Behind the end, they are the mean of tails `a w_k exp(-g k)` that stop after some bins. w is the
    width of a bin in logarithms; a is fitted, by least squares, to four bins before the end and all
    behind. A tail has the weight of its likelihood, times `exp(-1/2)` for each bin that it reaches.

    Examples
    --------
    >>> noisy = np.array([900.0, 800, 400, 190, 120, 31, 35, -40, 8, -12, 24, 5])
    >>> tail_counts(noisy, 20.0, np.ones(12)).round()[:8]
    array([900., 800., 400., 190., 120.,  35.,  12.,   2.])
    """
    counts: np.ndarray = np.maximum(noisy, 0.0)
    if noise == 0:
        return counts
    end = int(np.argmax(np.cumsum(counts - _DOUBT * noise))) + 1
    begin = max(end - _BACK, 0)
    tail = _mean_tail(noisy[begin:], widths[begin:], noise, end - begin)
    counts[end:] = tail[end - begin :]
    return counts


def mean_sizes(most: np.ndarray) -> np.ndarray:
    """Return a typical size in each bin: the mean where a size x is as frequent as 1 / x.

    Examples
    --------
    >>> mean_sizes(np.array([1, 2, 4, 8])).round(2)
    array([1.  , 2.  , 3.4 , 6.29])
    """
    apart = np.diff(most, prepend=0)
    return np.where(apart == 1, most, apart / log_widths(most))


def log_widths(most: np.ndarray) -> np.ndarray:
    """Return the sum of 1 / x over the sizes x of every bin, by the midpoint rule."""
    below = np.concatenate([[0], most[:-1]])
    return np.asarray(np.log((most + 0.5) / (below + 0.5)))


def support_counts(noisy: np.ndarray, noise: float, widths: np.ndarray) -> np.ndarray:
    """Return numbers as `tail_counts`, where the first bins may be empty, too.

    The counts begin with the bins of which the sum of `max(h, 0) / b - 4` is largest. Of n bins, it
    must be above `3 + log n`, since noise may look like a begin in any: else there are none.

    Examples
    --------
    >>> support_counts(np.array([7.0, -9, 800, 500, 12, -3]), 20.0, np.ones(6)).round()
    array([  0.,   0., 800., 500.,   0.,   0.])
    """
    gains = np.maximum(noisy, 0.0) - _DOUBT * noise
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    before = np.minimum.accumulate(sums[:-1])  # the best begin for each end
    end = int(np.argmax(sums[1:] - before))
    counts = np.zeros(len(noisy))
    if sums[end + 1] - before[end] > noise * (_BEGIN + math.log(len(noisy))):
        begin = int(np.argmin(sums[: end + 1]))
        counts[begin:] = tail_counts(noisy[begin:], noise, widths[begin:])
    return counts


def _mean_tail(noisy: np.ndarray, widths: np.ndarray, noise: float, before: int) -> np.ndarray:
    """Average all tails; the first bins, so many, are before the end."""
    at = np.arange(len(noisy))
    stops = at + 1
    shapes = (widths * np.exp(-_SLOPES[:, None] * at))[:, None, :] * (at < stops[:, None])
    squares, product = (shapes**2).sum(axis=-1), shapes @ noisy
    heights = np.maximum(product / squares, 0.0)
    misfit = heights * (heights * squares - 2 * product)  # but for what all have in common
    weights = -misfit / (4 * noise**2) - _REACH * np.maximum(stops - before, 0)
    weights = np.exp(weights - weights.max())
    return np.asarray(np.einsum("gs,gsk->k", weights * heights / weights.sum(), shapes))


class _Levels(NamedTuple):
    """What the number in a bin can be: from one of these to the next, and on which slope."""

    low: np.ndarray
    high: np.ndarray
    turns: np.ndarray  # probabilities of the next slope by slope
    moves: np.ndarray  # by bin, slope, level and next level: probability of the next level
    lost: np.ndarray  # by bin, slope and level: what falls below all levels, or above


def likely_counts(
    noisy: np.ndarray, noise: float, widths: np.ndarray, draws: int = 300
) -> np.ndarray:
    """Return histograms that the noisy one may come from, one a row, each as likely as the others.

    They are drawn from a posterior, by filtering forward and sampling backward (Fruhwirth-Schnatter
    1994), with one seed, as if noise were Laplace noise. The prior goes from bin to bin: the
    logarithm of the density, the number by the width of the bin, goes on along a line with Laplace
    errors; the line turns a little in 3 bins of 10, and in 1 of 10 to any slope. After a bin that
    is not empty, with probability 1/10 nothing follows, with 3/100 each an empty bin or any number.

    Examples
    --------
    >>> noisy = np.array([900.0, 800, 400, 190, 120, 31, 35, -40, 8, -12, 24, 5])
    >>> counts = likely_counts(noisy, 20.0, np.ones(12))
    >>> counts.shape, np.median(counts[:, :4], axis=0).round(-2)
    ((300, 12), array([900., 800., 400., 200.]))
    """
    if noise == 0:
        return np.asarray(np.maximum(noisy, 0.0)[None])
    levels = _levels(float(noisy.max()) + 5 * noise, widths)
    likelihood = _likelihood(noisy, noise, levels)
    drawn = _draw_back(_filter(likelihood, levels), levels, draws)
    at = np.maximum(drawn - 2, 0) % len(levels.low)
    low, high = levels.low[at], levels.high[at]
    inside = np.where(high - low < noise, (low + high) / 2, np.clip(noisy, low, high))
    return np.asarray(np.where(drawn <= _NONE, 0.0, inside))


def _levels(top: float, widths: np.ndarray) -> _Levels:
    count = max(math.ceil(math.log(max(top, 2.0) / _LEAST) / _STEP), 1)
    ends = _LEAST * np.exp(_STEP * np.arange(count + 1))
    steps = _STEP * (np.arange(count) - np.arange(count)[:, None])
    rises = steps - np.diff(np.log(widths))[:, None, None]
    away = np.abs(rises[:, None] - _TURNS[:, None, None])
    moves = np.exp(-away / _SPREAD) * (_STEP / (2 * _SPREAD))
    moves /= np.maximum(moves.sum(-1, keepdims=True), 1.0)
    slopes = len(_TURNS)
    turns = _TURN * (np.eye(slopes, k=1) + np.eye(slopes, k=-1)) + _NEW / slopes
    turns += np.diag(1 - turns.sum(1))
    return _Levels(ends[:-1], ends[1:], turns, moves, 1 - moves.sum(-1))


def _likelihood(noisy: np.ndarray, noise: float, levels: _Levels) -> np.ndarray:
    """Return by bin how likely noisy numbers are of none, and of each level, up to a factor."""
    # in units of the noise; the mean density over all numbers of a level
    begin, end = (levels.low - noisy[:, None]) / noise, (levels.high - noisy[:, None]) / noise
    around = (begin < 0) & (end > 0)
    near = np.where(begin >= 0, begin, -end)
    beside = np.log(np.maximum(-np.expm1(begin - end) / 2, _TINY)) - near
    within = 1 - (np.exp(-np.maximum(-begin, 0)) + np.exp(-np.maximum(end, 0))) / 2
    logs = np.where(around, np.log(np.where(around, within, 1.0)), beside)
    logs -= np.log((levels.high - levels.low) / noise)
    empty = -np.abs(noisy[:, None]) / noise - math.log(2)
    both = np.concatenate([empty, logs], axis=1)
    return np.asarray(np.exp(both - both.max(axis=1, keepdims=True)))


def _filter(likelihood: np.ndarray, levels: _Levels) -> np.ndarray:
    """Return by bin the probability of each state, given all bins up to there.

    States are: ended, empty, and all levels on the first slope, on the second, and so on.
    """
    slopes, count = len(_TURNS), len(levels.low)
    of_states = np.concatenate(
        [likelihood[:, :1], likelihood[:, :1], np.tile(likelihood[:, 1:], slopes)], axis=1
    )
    share = np.full(slopes * count, 1 / (slopes * count))
    prior = np.concatenate([[0.0, _EMPTY], (1 - _EMPTY) * share])
    filtered: np.ndarray = np.empty_like(of_states)
    for n, seen in enumerate(of_states):
        if n:
            ended, empty, full = filtered[n - 1, 0], filtered[n - 1, 1], filtered[n - 1, 2:]
            by_slope = full.reshape(slopes, count)
            moved = (by_slope[:, None] @ levels.moves[n - 1])[:, 0]
            gone = _LIVE * float((by_slope * levels.lost[n - 1]).sum()) / 2
            filled = float(full.sum())
            prior[0] = ended + _END_OF_GAP * empty + _END * filled + gone
            prior[1] = (1 - _END_OF_GAP - _JUMP_OF_GAP) * empty + _GAP * filled + gone
            prior[2:] = _LIVE * (levels.turns.T @ moved).ravel()
            prior[2:] += (_JUMP_OF_GAP * empty + _JUMP * filled) * share
        filtered[n] = prior * seen
        filtered[n] /= filtered[n].sum()
    return filtered


def _draw_back(filtered: np.ndarray, levels: _Levels, draws: int) -> np.ndarray:
    """Draw states from the last bin to the first, each given the one behind it."""
    bins, states = filtered.shape
    even = np.random.default_rng(0).random((bins, draws))  # no noise: the same in every run
    drawn = np.empty((draws, bins), np.int64)
    for n in reversed(range(bins)):
        weights = np.broadcast_to(filtered[n], (draws, states))
        if n < bins - 1:
            weights = weights * _into(drawn[:, n + 1], n, levels)
        sums = np.cumsum(weights, axis=1)
        drawn[:, n] = (sums < (even[n] * sums[:, -1])[:, None]).sum(axis=1)
    return np.asarray(np.minimum(drawn, states - 1))


def _into(states: np.ndarray, n: int, levels: _Levels) -> np.ndarray:
    """Return by draw how likely each state in bin n is to lead to a given state behind it."""
    slopes, count = len(_TURNS), len(levels.low)
    slope, level = np.divmod(np.maximum(states - 2, 0), count)
    share = 1 / (slopes * count)
    ended, empty = states == 0, states == 1
    moves = levels.moves[n][:, :, level].transpose(2, 0, 1)  # by draw, slope and level
    turned = levels.turns[:, slope].T[:, :, None] * moves
    gone = _LIVE * levels.lost[n] / 2
    cases = [ended[:, None, None], empty[:, None, None]]
    full = np.select(cases, [_END + gone, _GAP + gone], _LIVE * turned + _JUMP * share)
    to_empty = 1 - _END_OF_GAP - _JUMP_OF_GAP
    from_empty = np.select([ended, empty], [_END_OF_GAP, to_empty], _JUMP_OF_GAP * share)
    first = np.stack([np.where(ended, 1.0, 0.0), from_empty], axis=1)
    return np.asarray(np.concatenate([first, full.reshape(len(states), -1)], axis=1))
