"""How outputs are read off measured blocks: linear combinations, and ratios of these."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpframe.strategies.base import Moments

KNOWN = -1
"""Stands for the block that a public number of rows is: nothing is measured for it."""

ROUNDED = -2
"""Stands for the rounding of the first output, -3 for that of the second, and so on."""

_LARGEST = 2.0**62


@dataclass(frozen=True, slots=True)
class Reading:
    """A linear combination of measured blocks.

    Parameters
    ----------
    weights
        Weight by position of the block.
    step
        The combination is a multiple of 1 / step, to be rounded to a whole number; 0: it is left
        as it is.
    """

    weights: Mapping[int, float]
    step: int = 0

    @property
    def block(self) -> int | None:
        """The block that this reading is, if it is one."""
        return next(iter(self.weights)) if list(self.weights.values()) == [1.0] else None

    def times(self, factor: float) -> "Reading":
        """Scale the reading."""
        return Reading({k: factor * weight for k, weight in self.weights.items() if factor})

    def plus(self, block: int, weight: float) -> "Reading":
        """Add a multiple of one more block."""
        return Reading({**self.weights, block: weight})

    def whole(self, step: int) -> "Reading":
        """Round to whole numbers what is a multiple of 1 / step."""
        return Reading(self.weights, step)

    def loadings(self, deviations: Mapping[int, float]) -> dict[int, float]:
        """Return what the noise of the blocks does to the reading."""
        return {k: weight * deviations[k] for k, weight in self.weights.items()}

    def noise(self, deviations: Mapping[int, float], rounded: int) -> dict[int, float]:
        """Return the loadings, and under a name of its own what rounding does."""
        rounding = self._rounding(deviations)
        return self.loadings(deviations) | ({rounded: rounding} if rounding else {})

    def _rounding(self, deviations: Mapping[int, float]) -> float:
        """Deviation that rounding adds to noise, which leaves any multiple of the step as likely.

        The variance is `(1 - 1 / s^2) / 12` for steps of 1 / s if s is odd, `(1 + 2 / s^2) / 12` if
        it is even.
        """
        noisy = any(deviations[k] for k in self.weights)
        if self.step <= 1 or not noisy:
            return 0.0
        return math.sqrt((1 + (-1 if self.step % 2 else 2) / self.step**2) / 12)

    def of(self, measured: Mapping[int, np.ndarray]) -> np.ndarray:
        """Read the measured blocks."""
        if self.block is not None:
            return measured[self.block]
        read: np.ndarray = np.zeros(1)
        for k, weight in self.weights.items():
            read = read + weight * measured[k]
        return _whole(read) if self.step else read


def _whole(read: np.ndarray) -> np.ndarray:
    """Round to integers; what is beyond them, after a sum that wrapped, to the largest."""
    found: np.ndarray = np.rint(np.clip(read, -_LARGEST, _LARGEST)).astype(np.int64)
    return found


@dataclass(frozen=True, slots=True)
class Quotient:
    """A mean: the center of the bounds plus the ratio of a centered sum and a number of rows."""

    centered: Reading
    rows: Reading
    bounds: tuple[int, int]

    def loadings(
        self, deviations: Mapping[int, float]
    ) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Return what the noise of the blocks does to the sum and to the number of rows."""
        return self.centered.loadings(deviations), self.rows.loadings(deviations)


@dataclass(frozen=True, slots=True)
class Dispersion:
    """A variance, or its root: rows, the sum of y and that of `y^2 - 1 / 2`.

    Parameters
    ----------
    rows, first, rest
        The three, where y is how far a value is off the center of its bounds, in half widths.
    width
        Width of the bounds.
    root
        Whether the standard deviation is read.
    """

    rows: Reading
    first: Reading
    rest: Reading
    width: int
    root: bool

    def moments(
        self, measured: Mapping[int, np.ndarray], deviations: Mapping[int, float]
    ) -> Moments:
        """Read the three off the measured blocks."""
        of_rows, of_first, of_rest = self.loadings(deviations)
        rows, first, rest = (part.of(measured) for part in (self.rows, self.first, self.rest))
        return Moments(rows, first, rest, of_rows, of_first, of_rest, self.width / 2)

    def loadings(
        self, deviations: Mapping[int, float]
    ) -> tuple[Mapping[int, float], Mapping[int, float], Mapping[int, float]]:
        """Return what the noise of the blocks does to the three."""
        rows, first, rest = (
            reading.loadings(deviations) for reading in (self.rows, self.first, self.rest)
        )
        return rows, first, rest


AnyReading: TypeAlias = Reading | Quotient | Dispersion
"""What an output can be read off."""
