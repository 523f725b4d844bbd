"""Sums of independent noises of several laws, and how wide they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe.privacy import box
from dpframe.privacy.law import Law
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import NoiseSum, join_sums, norm


@dataclass(frozen=True, slots=True, eq=False)
class IndependentSum:
    """A sum of independent noises, of one law or of several."""

    parts: Sequence[tuple[Law, NoiseSum]]

    @classmethod
    def of(cls, sums: Sequence[tuple[Law, NoiseSum]]) -> "IndependentSum":
        """Put sums of the same law together: they are independent.

        Those that no noise moves are left out: with fewer noises, more is known of the law.
        """
        by_law: dict[Law, list[NoiseSum]] = {}
        moving = [(law, noise) for law, noise in sums if noise.moves]
        for law, noise in moving or sums[:1]:
            by_law.setdefault(law, []).append(noise)
        return cls([(law, join_sums(own)) for law, own in by_law.items()])

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""
        return norm(noise.deviation for _, noise in self.parts)

    def half_width(self, level: float) -> float | np.ndarray:
        """Return the half-width for the sum.

        Of several laws, it is the largest of their half-widths and of that of a normal law, each in
        its standard deviations, times the standard deviation of the sum. By convolution, that is
        enough for a normal and a Laplace noise at every ratio of their scales; where noises of a
        box are among them, it is raised as for several boxes.

        Examples
        --------
        >>> from dpframe.privacy.laws import LAPLACE
        >>> count = {"0": 1.0}
        >>> sums = [(law, NoiseSum(count, {"0": 3.0}, smooth=True)) for law in (GAUSSIAN, LAPLACE)]
        >>> round(float(IndependentSum(sums).half_width(0.8)), 3)
        1.812
        """
        if len(self.parts) == 1:
            ((law, noise),) = self.parts
            return law.sum_half_width(noise, level)
        factor: Any = GAUSSIAN.quantile(level)
        for law, noise in self.parts:
            if law.limit is not law:  # its shape is not known from a quantile
                factor = np.maximum(factor, law.quantile(level))
            own, wide = noise.deviation, law.sum_half_width(noise, level)
            shape = np.broadcast_shapes(np.shape(own), np.shape(wide))
            times = np.divide(wide, own, out=np.zeros(shape), where=np.broadcast_to(own > 0, shape))
            factor = np.maximum(factor, times)
        boxes = [n for _, noise in self.parts for n in noise.drawn_together().values()]
        raised = box.raise_quantile(level, max(boxes)) if boxes else 1.0
        width: np.ndarray = factor * raised * self.deviation
        return width

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say how far it is beyond the level that the sum is that far off, as a law does."""
        if len(self.parts) == 1:
            ((law, noise),) = self.parts
            return law.sum_excess(distance, noise, level, rows)
        return np.asarray(distance - self.half_width(level))
