"""Which part of an amount each of several tables has, for the least weighted sum of variances."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

Improve: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From logarithms of shares, one start a row, to the sums of variances and better shares."""

_MOST_ROUNDS = 200  # most take 10
_CONVERGED = 1e-8  # part of the sum of variances that a round gains
_NO_TURN = 1e-300  # in place of a division by 0
_LEAST_LOG = -40.0  # beside the largest share; less than the least share that is used
_SAME_LOSS = 1e-3  # of the sum of variances
_RANDOM_STARTS = 8  # a plan must not be dominated, which tests try on six shapes
_SPREAD = 1.5  # of the logarithms of their shares


def as_shares(logs: np.ndarray) -> np.ndarray:
    """Return logarithms of shares that add up to 1 in each row."""
    below = np.maximum(logs - logs.max(1, keepdims=True), _LEAST_LOG)
    return np.asarray(below - np.log(np.exp(below).sum(1, keepdims=True)))


def best_shares(improve: Improve, starts: np.ndarray) -> np.ndarray:
    """Minimize a sum of variances, for shares that add up to 1.

    Two steps of `improve`, and one as far as they point where that is better (Varadhan and Roland
    2008).
    """
    logs = as_shares(starts)
    for _ in range(_MOST_ROUNDS):
        value, once = improve(logs)
        near, twice = improve(once)
        step, turn = once - logs, twice - 2 * once + logs
        lengths = [(part * part).sum(1, keepdims=True) for part in (step, turn)]
        stretch = np.sqrt(np.maximum(lengths[0] / np.maximum(lengths[1], _NO_TURN), 1))
        start = as_shares(logs + 2 * stretch * step + stretch**2 * turn)
        far, farther = improve(start)
        logs = np.where((far <= near)[:, None], farther, twice)
        if (value - np.minimum(near, far) <= _CONVERGED * value).all():
            break
    value, _ = improve(logs)
    # where the first start does as well, plans stay as they were
    best = 0 if value[0] <= value.min() * (1 + _SAME_LOSS) else value.argmin()
    return np.asarray(np.exp(logs[best]))


def starts_of(sizes: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Return logarithms of shares to start from: shares are not convex, and have local optima.

    They are the best ones of tables on their own, more for the largest table, for large or for
    small ones, and some at random, the same every time.
    """
    usual = np.log(weights) / 3
    largest = 3.0 * (np.arange(len(sizes)) == sizes.argmax())
    tilted = np.log(sizes) / 3
    dice = np.random.default_rng(0)  # no noise: where an optimizer starts
    random = dice.normal(0, _SPREAD, (_RANDOM_STARTS, len(sizes)))
    return [usual, usual + largest, usual + tilted, usual - tilted, *(usual + random)]
