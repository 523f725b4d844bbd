"""What is known of noise: how wide it is, how far sums of it reach, and its density."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpframe.errors import CalibrationError
from dpframe.privacy.noise_floats import check_scale
from dpframe.privacy.noise_sum import NoiseSum


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class NoiseDistribution(ABC):
    """The distribution of noise on measured integers, by which intervals and estimates are made.

    Parameters
    ----------
    memoryless
        Whether likelihood ratios of truths are the same for all values below these truths.
    companion
        Scale of the Laplace variable V with `E[W h(W)] = Var(W) E[h'(W + V)]` for noise W, in
        standard deviations of W; 0 where V is 0 (Stein's identity).
    """

    memoryless: bool = False
    companion: float = 0.0

    def deviation_among(self, scale: float, members: int) -> float:
        """Return the standard deviation of a coordinate, so many being drawn together with it.

        Parameters
        ----------
        scale
            Scale of the coordinate.
        members
            How many coordinates of scales above 0 are drawn together, itself included.
        """
        return self.standard_deviation(scale)

    def standard_deviation(self, scale: float) -> float:
        """Return the standard deviation of a draw, before any wrapping.

        Returns
        -------
        float
            With a relative error below 1e-12.

        Raises
        ------
        CalibrationError
            If the scale is out of range.

        Examples
        --------
        >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
        >>> round(GAUSSIAN.standard_deviation(4.2), 4), round(LAPLACE.standard_deviation(1), 4)
        (4.2099, 1.357)
        """
        sigma = float(check_scale(scale))
        return self._deviation(sigma) if sigma else 0.0

    def half_width(self, scale: float, level: float, members: int = 1) -> int:
        """Return the smallest integer a with P(|Y| <= a) >= level, before any wrapping.

        Tails are in floats good to a relative 1e-14 of 1 - level.

        Parameters
        ----------
        scale
            Scale of the noise Y.
        level
            Coverage, strictly between 0 and 1.
        members
            How many coordinates are drawn together with this one, itself included.

        Raises
        ------
        CalibrationError
            If the scale or the level is out of range.

        Examples
        --------
        >>> from dpframe.privacy.laws import GAUSSIAN
        >>> GAUSSIAN.half_width(4.2247, 0.95), GAUSSIAN.half_width(0.05, 0.95)
        (8, 0)
        """
        sigma = float(check_scale(scale))
        if not 0 < level < 1:
            raise CalibrationError.about("level", "must be strictly between 0 and 1", level)
        if sigma == 0:
            return 0
        below, enough = -1, 1
        while self._beyond(sigma, enough, members) > 1 - level:
            below, enough = enough, 2 * enough
        while enough - below > 1:
            middle = (below + enough) // 2
            if self._beyond(sigma, middle, members) > 1 - level:
                below = middle
            else:
                enough = middle
        return enough

    @abstractmethod
    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return P(Y >= m) of one coordinate drawn on its own, before any wrapping.

        In floats, good to a relative 2e-12 of a tail that no float is too small for.

        Parameters
        ----------
        scale
            Scale of the noise Y, above 0.
        m
            Integers.

        Examples
        --------
        >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
        >>> GAUSSIAN.at_least(4.2, 22).round(9), LAPLACE.at_least(1, 14).round(9)
        (np.float64(1.54e-07), np.float64(6.08e-07))
        """

    @abstractmethod
    def quantile(self, level: float) -> float:
        """Return q such that q standard deviations hold an estimate with the level, or more.

        The estimate is decoded from several measurements.

        Examples
        --------
        >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
        >>> round(GAUSSIAN.quantile(0.95), 4), round(LAPLACE.quantile(0.95), 4)
        (1.96, 2.1183)
        """

    @abstractmethod
    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of noises, which its values make no narrower.

        A sum of integer noises is on a lattice, and the level may lie between two of its points;
        only where the noise is said to be smooth, that does not count.
        """

    def sum_holds(self, distance: np.ndarray, noise: NoiseSum, level: float) -> np.ndarray:
        """Tell where a sum of noises may be that far off: a test of the level."""
        return distance <= self.sum_half_width(noise, level)

    def level_of_each(self, level: float, cells: int) -> float:
        """Return the level of single intervals that hold together with the level given.

        Parameters
        ----------
        level
            Probability that all intervals hold at once, in (0, 1).
        cells
            Number of intervals, d.

        Examples
        --------
        >>> from dpframe.privacy.laws import GAUSSIAN, LAPLACE
        >>> round(GAUSSIAN.level_of_each(0.95, 10), 6), round(LAPLACE.level_of_each(0.95, 10), 6)
        (0.994884, 0.995)
        """
        if cells <= 1:
            return level
        return min(1 - self._missed_by_each(level, cells), math.nextafter(1, 0))

    @abstractmethod
    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return the log-density at z standard deviations, up to a constant."""

    @abstractmethod
    def score(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of the log-density."""

    def smoothed_step(self, z: np.ndarray) -> np.ndarray:
        """Return P(z + V > 0), with V the companion; a half at 0."""
        if self.companion == 0:
            step: np.ndarray = np.heaviside(z, 0.5)
            return step
        beyond = np.exp(-np.abs(z) / self.companion) / 2
        smoothed: np.ndarray = np.where(z > 0, 1 - beyond, beyond)
        return smoothed

    @abstractmethod
    def distance(self, exponent: float) -> float:
        """Return the z > 0 where the density is `exp(-exponent)` of its peak.

        The largest of d draws is about `distance(log(d))` standard deviations.
        """

    @abstractmethod
    def continuous_deviation(self, sigma: float) -> float:
        """Return the deviation of the continuous law whose scale integer noise of `sigma` has."""

    @abstractmethod
    def _deviation(self, scale: float) -> float:
        """Return the standard deviation of a draw of a scale above 0."""

    @abstractmethod
    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        """Return P(|Y| > a) of a draw, for a >= 0."""

    @abstractmethod
    def _missed_by_each(self, level: float, cells: int) -> float:
        """Return how often one of several intervals may miss."""
