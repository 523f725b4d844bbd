"""What a law of noise states: how it is drawn, what it costs, and how wide it is.

A law acts on a *group* of coordinates: measured integers of one cell whose noise is drawn together.
It states how movement counts inside a group, and the norm in which groups add up. Where the noise
of all coordinates is independent, a group is no more than its coordinates.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from dpframe.context import Context
from dpframe.errors import CalibrationError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import PrivacyLoss, least_integer
from dpframe.privacy.noise import Curve, check_scale, integer_noise
from dpframe.privacy.noise_sum import NoiseSum
from dpframe.privacy.sensitivity import Inside, Norm

_ROOT2 = math.sqrt(2)


@frozen(slots=True)
class Allowance:
    """The most a release may lose: `mu_squared` with Gaussian noise, `epsilon` with pure noise."""

    mu_squared: Fraction
    epsilon: Fraction
    delta: float | None = None


class Law(ABC):
    """A law of noise on groups of measured integers: how it is drawn and charged, how wide it is.

    Attributes
    ----------
    name
        What ledgers and certificates write.
    title
        The law in words.
    norm
        p, the norm in which groups add up: a release costs the largest
        `sum over groups of |moved|^p` between neighbors.
    inside
        How what moves counts inside a group, each coordinate divided by its scale: "sum" in the
        norm, as if each were a group, "max" as the largest. For groups of one it does not matter.
    shape
        Whether the cost of what moves is convex, a "norm", or crosses "stairs".
    needs_delta
        Whether an epsilon allows noise of this law only beside a delta.
    curve
        The density of a law whose coordinates are drawn one by one from it; others have none.
    """

    __slots__ = ()
    name: str
    title: str
    norm: Norm
    inside: Inside = "sum"
    shape: Literal["norm", "stairs"] = "norm"
    needs_delta: bool = False
    curve: Curve

    def __repr__(self) -> str:
        """Return the name."""
        return self.name

    def draw(self, scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
        """Draw the noise of a group in `size` cells, one int64 array per coordinate.

        Parameters
        ----------
        scales
            Scales of the coordinates, as for `integer_noise`. One of scale 0 is in no group.
        size
            Number of cells.
        context
            Where random bits come from.

        Raises
        ------
        CalibrationError
            If a scale is out of range or the size is negative.
        """
        return self._draw(scales, size, context)

    def _draw(self, scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
        """Draw the noise of a group, as `draw`: of a curve, each coordinate on its own."""
        return [integer_noise(self.curve, scale, size, context) for scale in scales]

    def loss(self, moved: int, scale: float) -> Fraction:
        """Return what it costs that a coordinate moves by so many integers, its scale above 0.

        It is exact, or rounded up: `(|moved| / scale)^norm`.
        """
        return (abs(moved) / Fraction(float(scale))) ** self.norm

    def settle(self, wide: float, reach: float) -> float:
        """Return the scale of noise that a calibration found.

        Parameters
        ----------
        wide
            By how much the movement of a coordinate was divided.
        reach
            Its scale in the design: for a law whose shape depends on it, how far it moves.
        """
        return wide

    def knows(self, scale: float) -> bool:
        """Tell whether there is noise of a scale, above 0."""
        return True

    @property
    def limit(self) -> "Law":
        """The law that very wide noise of this one is next to."""
        return self

    def draw_each(self, scales: np.ndarray, context: Context) -> np.ndarray:
        """Draw independent noise of so many scales, one int64 integer for each.

        Raises
        ------
        CalibrationError
            If a scale is out of range.
        """
        return integer_noise(self.curve, scales, len(scales), context)

    def movement_allowed(self, allowance: Allowance) -> Fraction:
        """Return the most that movement may add up to, 0 where the law has no noise for it."""
        match self.norm:
            case 1:
                return allowance.epsilon
            case 2:
                return allowance.mu_squared

    def charge(self, moved: Fraction) -> PrivacyLoss:
        """Return the cost of noise that is enough for movement up to `moved`."""
        match self.norm:
            case 1:
                return PrivacyLoss(epsilon=moved)
            case 2:
                return PrivacyLoss(mu_squared=moved)

    @abstractmethod
    def of_sum(self, terms: int, members: int = 1) -> "Law":
        """Return the law that a sum of so many noises is nearest to.

        Parameters
        ----------
        terms
            How many noises there are.
        members
            How many coordinates are drawn together with each, itself included.
        """

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
        return _least_half_width(self, sigma, level, members) if sigma else 0

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

    def sum_excess(
        self, distance: np.ndarray, noise: NoiseSum, level: float, rows: int = 0
    ) -> np.ndarray:
        """Say how far it is beyond the level that a sum of noises is that far off.

        At most 0 where it may be so, as a test of the level; in units that differ from law to law.
        Where distances are those of some rows of a table, `rows` is how many it has.
        """
        return np.asarray(distance - self.sum_half_width(noise, level))

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

    def _missed_by_each(self, level: float, cells: int) -> float:
        """Return how often one of several intervals may miss: `(1 - level) / d` (Bonferroni)."""
        return (1 - level) / cells


class PureLaw(Law):
    """What laws of pure noise have in common: very wide noise is next to a continuous Laplace.

    What is stated of a density is that of the continuous Laplace law.
    """

    __slots__ = ()
    norm = 1

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return `-sqrt(2) |z|`."""
        return np.asarray(-_ROOT2 * np.abs(z))

    def distance(self, exponent: float) -> float:
        """Return `exponent / sqrt(2)`."""
        return exponent / _ROOT2

    def continuous_deviation(self, sigma: float) -> float:
        """Return `sqrt(2)` scales, `1 / (sqrt(2) asinh(1 / (sqrt(2) sigma)))`.

        It is sigma where that is too small for a scale.
        """
        return max(sigma, 1 / (_ROOT2 * math.asinh(1 / (_ROOT2 * sigma))))


class IntegerLaw(PureLaw):
    """A law of integers Y, each drawn on its own, whose transforms are known in closed form."""

    __slots__ = ()

    @abstractmethod
    def characteristic(self, scale: float, t: np.ndarray) -> np.ndarray:
        """Return `E cos(t Y)` at some t."""

    @abstractmethod
    def log_moment(self, scale: float, tilt: np.ndarray) -> np.ndarray:
        """Return `log E exp(h Y)` at some h from 0 to below the largest tilt."""

    @abstractmethod
    def largest_tilt(self, scale: float) -> float:
        """Return where moments end."""


# outputs of a plan, and its tables, have noise of few scales
@lru_cache(1024)
def _least_half_width(law: Law, scale: float, level: float, members: int) -> int:
    return least_integer(lambda a: law._beyond(scale, a, members) <= 1 - level, 0)
