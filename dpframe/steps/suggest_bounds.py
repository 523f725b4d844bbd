"""What a released histogram of values says of bounds: errors that they leave, and the best ones."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpframe.accuracy.intervals import std_error
from dpframe.denoise.tails import support_counts
from dpframe.steps.suggest_caps import expected_error, mean_error, with_errors

_ALIKE = 1e-3  # by so little, errors do not differ


@dataclass(frozen=True, eq=False)
class BoundErrors:
    """What is public about the errors that bounds leave, known before there are values.

    Parameters
    ----------
    query
        The query whose errors are predicted, in words.
    planned
        How much the later release of it spends.
    ends
        The candidates, increasing: all finite ends of the bins.
    noise
        By candidates for the lower and the upper bound, the mean absolute error that noise makes in
        a group, of a mean in one of a single row; infinite where they are no bounds.
    groups
        The number of groups.
    is_mean
        Whether the query is of means.
    powers
        Whether bins are powers of two on both sides of zero; else they are of equal widths.
    """

    query: str
    planned: Mapping[str, float]
    ends: np.ndarray
    noise: np.ndarray
    groups: int
    is_mean: bool
    powers: bool

    def profiles(self, errors: np.ndarray) -> dict[str, np.ndarray]:
        """Return by bin the least errors with one of its ends as a bound, by pairs of bounds."""
        return {
            "as_low": np.concatenate([[np.inf], errors.min(axis=1)]),
            "as_high": np.concatenate([errors.min(axis=0), [np.inf]]),
        }


def add_bound_errors(released: pd.DataFrame, facts: BoundErrors) -> pd.DataFrame:
    """Put the errors of bounds that end with a bin beside its released number of rows."""
    deviation = float(std_error(released)["count"].iloc[0])
    counts = _counts(released["count"].to_numpy(np.float64), mean_error(deviation), facts)
    rows = max(float(counts.sum()), 1.0)
    per_group = max(rows / facts.groups, 1.0)
    noise = facts.noise / per_group if facts.is_mean else facts.noise
    lost = _clipped_amounts(counts, facts) / (rows if facts.is_mean else facts.groups)
    errors = expected_error(lost, noise)
    found = _best(errors, facts.ends)
    return with_errors(
        released, facts.profiles(errors), facts.query, facts.planned, {"bounds": found}
    )


def _best(errors: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
    """Return the bounds with the least error: of several, those closest to zero."""
    sizes = np.abs(ends) + np.abs(ends[:, None])
    among = np.where(errors <= errors.min() * (1 + _ALIKE), sizes, np.inf)
    low, high = np.unravel_index(int(np.argmin(among)), among.shape)
    return float(ends[low]), float(ends[high])


def _counts(noisy: np.ndarray, noise: float, facts: BoundErrors) -> np.ndarray:
    """Return what the noise leaves, from the middle of all bins or from each side of zero."""
    widths = np.ones(len(noisy))
    middle = len(noisy) // 2 if facts.powers else max(int(np.argmax(noisy)), 1)
    below = support_counts(noisy[:middle][::-1], noise, widths[:middle])[::-1]
    return np.concatenate([below, support_counts(noisy[middle:], noise, widths[middle:])])


def _clipped_amounts(counts: np.ndarray, facts: BoundErrors) -> np.ndarray:
    """Return by how much values are clipped in all, for each lower and each upper bound."""
    values, ends = _typical(facts), facts.ends
    below = np.maximum(ends[:, None] - values, 0.0) @ counts
    above = np.maximum(values - ends[:, None], 0.0) @ counts
    clipped: np.ndarray = below[:, None] + above
    return clipped


def _typical(facts: BoundErrors) -> np.ndarray:
    """Return a value for each bin: where x is as frequent as 1 / x, or in the middle."""
    ends = facts.ends
    if not facts.powers:
        return np.concatenate([ends[:1], (ends[1:] + ends[:-1]) / 2, ends[-1:]])
    sizes = ends[len(ends) // 2 + 1 :]
    typical = sizes / np.log(2)  # from a power of two to the next; those beyond the last, too
    # zero is in the bin that ends with it
    return np.concatenate([-typical[::-1], [0.0, sizes[0] / 2], typical])
