"""Intervals of variances and standard deviations."""

import numpy as np

from dpframe.certificates.noise_parts import MechanismPart
from dpframe.certificates.ratio_parts import MomentsPart
from dpframe.privacy.law import Groups
from dpframe.strategies.dispersion import loadings_at, variances


def dispersion_interval(
    moments: MomentsPart, mechanism: MechanismPart, groups: Groups, level: float, *, root: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of variances, or the roots of these ends.

    They are those of the first-order error, kept between 0 and the largest variance there can be.

    Parameters
    ----------
    moments
        What the variances were read off.
    mechanism
        Where the noise comes from.
    groups
        Blocks that are drawn together.
    level
        Confidence level.
    root
        Whether standard deviations are asked for.
    """
    numbers = moments.numbers
    count, mean, value = variances(numbers)
    of = numbers.of_rows, numbers.of_first, numbers.of_rest
    loadings = {
        str(block): np.asarray(part) / count
        for block, part in loadings_at(mean, mean**2 - value, of).items()
    }
    width = mechanism.distribution.integer_sum_half_width(
        loadings, mechanism.scales, level, groups=groups
    )
    ends = np.clip(value - width, 0, 1), np.clip(value + width, 0, 1)
    low, high = (np.sqrt(end) if root else end * moments.half_width for end in ends)
    return low * moments.half_width, high * moments.half_width
