"""Histograms of sizes: what noise leaves of a long tail.

Sizes in the tail are large, so that whatever noise leaves there outweighs everything else.
"""

import math

import numpy as np

_DOUBT = 4.0  # mean sizes of noise that a bin must hold for the counts to reach as far as to it
_SLOPES = np.linspace(-0.5, 4.0, 46)  # of logarithms of densities, a bin
_BEGIN = 3.0  # mean sizes of noise that the first bins must hold besides
_BACK = 4  # bins that a tail is fitted to before its begin
_REACH = 0.5  # by which the logarithm of the weight of a tail falls for each bin that it reaches


def tail_counts(noisy: np.ndarray, noise: float, widths: np.ndarray) -> np.ndarray:
    """Return numbers that are not negative, with as much of a tail as the noise leaves.

    With Laplace noise of scale b, a bin with a noisy number h tells by `h / b` in logarithms that
    it is not empty. The counts end where the sum of all `max(h, 0) / b - 4` up to there is largest:
    bins next to others need little to be believed, and those far away much. Behind the end, they
    are the mean of tails `a w_k exp(-g k)` that stop after some bins. w is the width of a bin in
    logarithms; a is fitted, by least squares, to four bins before the end and all behind. A tail
    has the weight of its likelihood, times `exp(-1/2)` for each bin behind the end that it reaches.

    Parameters
    ----------
    noisy
        Numbers of units by bin.
    noise
        Mean absolute error of each, b.
    widths
        Widths of the bins, of logarithms of sizes.

    Examples
    --------
    >>> noisy = np.array([900.0, 800, 400, 190, 120, 31, 35, -40, 8, -12, 24, 5])
    >>> tail_counts(noisy, 20.0, np.ones(12)).round()
    array([900., 800., 400., 190., 120.,  35.,  12.,   2.,   1.,   0.,   0.,
             0.])
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

    Parameters
    ----------
    most
        The largest size of each bin, increasing.

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
