"""What is measured of many cells at once, and what is known of its errors."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from dpframe.privacy.kernel import Kernel

__all__ = ["Described", "Layers"]


@dataclass(frozen=True, slots=True)
class Described:
    """The covariance of all cells of a table, layer by layer.

    With the rows r of a layer as in `contrasts`, the cells are `sum_r C_r z_r / |r|^2`, where the
    z_r are uncorrelated, with variances `tau^2 |r|^2 + rounding`, tau being that of the layer.

    Parameters
    ----------
    kind
        "margins": a layer has contrasts along some axes, and sums along all others. "tree": along
        the last axis, a layer has contrasts of the children of each node.
    sizes
        How many cells there are along each axis; of a tree, how many children nodes have, from the
        root down.
    layers
        For margins: along which axes there are contrasts. For a tree: its level, 0 for the total.
    tau
        By layer, the scale of its noise for a row of length 1.
    rounding
        Variance that rounding adds to the noise of a row.
    """

    kind: Literal["margins", "tree"]
    sizes: tuple[int, ...]
    layers: tuple[tuple[int, ...], ...]
    tau: tuple[float, ...]
    rounding: float


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

    def described(self, table: int, scale: float) -> Described:
        """Say what the covariance of the cells of a table is."""
