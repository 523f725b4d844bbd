"""Intervals of rates, by inverting a test: they hold in groups of any size."""

from typing import Any

import numpy as np

from dpframe.accuracy.bisect import border
from dpframe.certificates.noise_parts import MechanismPart
from dpframe.certificates.packed import unpack
from dpframe.certificates.ratio_parts import RatioPart
from dpframe.privacy.law import Groups
from dpframe.privacy.laws import GAUSSIAN
from dpframe.strategies.ratio import ratio as mean_of

_NODES = np.linspace(0, 1, 1025)  # between them, the half-width is as good as linear


def rate_interval(
    ratio: RatioPart,
    rows: int,
    mechanism: MechanismPart,
    groups: Groups,
    level: float,
    *,
    sampling: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of rates: all rates r that a test does not reject.

    With A the noisy number of rows that count and N that of all, a rate is rejected where `|A - r
    N| > q_r`, with q_r the half-width of the noise of `A - r N` (Fieller 1954). Where every rate
    from 0 to 1 is rejected, the interval is all of them. It always
    holds the rate released.

    Parameters
    ----------
    ratio
        What the rates were read off: `A - N / 2` and N, with their noise.
    rows
        Number of rates.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    sampling
        Whether the rows are a sample, for whose error `z^2 N r (1 - r)` is added to `q_r^2`, with z
        the normal quantile.
    """
    centered = np.broadcast_to(unpack(ratio.centered), rows).astype(np.float64)
    total = np.broadcast_to(unpack(ratio.rows), rows).astype(np.float64)
    widths = _half_widths(ratio, mechanism, groups, level)
    sampled = GAUSSIAN.quantile(level) ** 2 * np.maximum(total, 0) if sampling else 0.0

    def holds(rate: np.ndarray) -> np.ndarray:
        noise = np.interp(rate, _NODES, widths)
        width = np.sqrt(noise**2 + sampled * rate * (1 - rate))
        near: np.ndarray = np.abs(centered - (rate - 0.5) * total) <= width
        return near

    ends = np.zeros(rows), np.ones(rows)
    low_kept, high_kept = (holds(end) for end in ends)
    met = np.divide(centered, total, out=np.full(rows, -1.0), where=total != 0) + 0.5
    # the quotient itself is never rejected; elsewhere an end may not be, or every rate is
    inside = (met >= 0) & (met <= 1)
    kept = np.where(inside, met, np.where(low_kept, 0.0, 1.0))
    all_rejected = ~(inside | low_kept | high_kept)
    low = np.where(low_kept | all_rejected, 0.0, border(holds, ends[0], kept))
    high = np.where(high_kept | all_rejected, 1.0, border(holds, ends[1], kept))
    released = mean_of(centered, total, _loadings(ratio), (0, 1)).values
    return np.minimum(low, released), np.maximum(high, released)


def _loadings(ratio: RatioPart) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return what the noise of the blocks does to A - N / 2 and to N."""
    return (
        {block: unpack(part) for block, part in ratio.of_centered.items()},
        {block: unpack(part) for block, part in ratio.of_rows.items()},
    )


def _half_widths(
    ratio: RatioPart, mechanism: MechanismPart, groups: Groups, level: float
) -> np.ndarray:
    """Half-widths of the noise of A - r N, at the nodes r."""
    of_centered, of_rows = _loadings(ratio)
    loadings = {
        block: of_centered.get(block, 0.0) - (_NODES - 0.5) * of_rows.get(block, 0.0)
        for block in {**of_centered, **of_rows}
    }
    width = mechanism.distribution.integer_sum_half_width(
        loadings, mechanism.scales, level, groups=groups
    )
    return np.broadcast_to(width, _NODES.shape)
