"""Limit how many of several boolean columns are true in a row, by a random choice."""

from collections.abc import Sequence

import numpy as np

from dpframe.privacy import noise


def keep_few(columns: Sequence[np.ndarray], most: int) -> None:
    """Set ones to zero, in place, until every row has at most so many over all columns.

    Which ones stay is a uniformly random choice in every row.

    Parameters
    ----------
    columns
        Integers 0 and 1, one array per column.
    most
        How many ones a row may have.
    """
    total = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        total += column
    over = np.flatnonzero(total > most)
    if not len(over):
        return
    ones = np.stack([column[over] for column in columns], axis=1)
    # zeros come last; 63 random bits order the ones, and a tie only makes the choice less random
    order = noise.random_words(ones.size).reshape(ones.shape) >> np.uint64(1)
    order = order | (ones == 0).astype(np.uint64) << np.uint64(63)
    dropped = np.argpartition(order, most, axis=1)[:, most:]
    np.put_along_axis(ones, dropped, 0, axis=1)
    for place, column in enumerate(columns):
        column[over] = ones[:, place]
