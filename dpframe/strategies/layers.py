"""What is measured of many cells at once, and what it is good for."""

from typing import Protocol

import numpy as np

from dpframe.privacy.kernel import Kernel
from dpframe.strategies.structure import Structure


class Layers(Protocol):
    """Integers that are measured of many cells at once, with noise scales in fixed proportions.

    A block measures the same integers of its totals as all others. Tables are what is released: one
    of all cells, or several margins.
    """

    @property
    def kernel(self) -> Kernel:
        """What rows of different cells share, exactly, at scale 1 of a block."""

    @property
    def profile(self) -> np.ndarray:
        """The noise scale of every measured integer at scale 1 of a block, rounded up."""

    def encode(self, totals: np.ndarray) -> np.ndarray:
        """Return the integers that are measured of totals, one per cell, mod 2**64."""

    def decode(self, measured: np.ndarray, scale: float) -> list[np.ndarray]:
        """Return estimates of the totals of every table, one float per cell of it."""

    def deviations(self, scale: float) -> list[float]:
        """Return the standard deviation of a cell of every table, or the largest there is."""

    def compared(self, scale: float) -> list[float]:
        """Return the error of every table by which plans are compared."""

    def described(self, table: int, scale: float) -> Structure:
        """Say what the covariance of the cells of a table is."""
