"""The laws of noise, by name.

A new law is a value here, with its sampler in `noise` or `box`. No other module asks for a law by
its name: ledgers and certificates write the name, and `law_named` reads it.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from dpframe.errors import CalibrationError, quote
from dpframe.privacy import box_accuracy, sums
from dpframe.privacy.accuracy import integer_pair_half_width, integer_pair_holds
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.box import box_noise
from dpframe.privacy.law import Allowance, Groups, Law
from dpframe.privacy.noise_floats import check_scale
from dpframe.privacy.noise_tables import GAUSSIAN_CURVE, LAPLACE_CURVE

_ROOT2, _ROOT3 = math.sqrt(2), math.sqrt(3)


class _Gaussian(Law):
    """The rounded Gaussian: `round(scale * Z)`, Z standard normal."""

    __slots__ = ()

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return `Phi(-(m - 1/2) / scale)`: the half is the rounding."""
        from scipy import special  # slow to import, and not always needed

        return np.asarray(special.erfc((np.asarray(m) - 0.5) / scale / _ROOT2) / 2)

    def quantile(self, level: float) -> float:
        """Return the quantile of a normal, `Phi^-1((1 + level) / 2)`."""
        return sums.normal_quantile(level)

    def sum_half_width(
        self,
        loadings: sums.Loadings,
        scales: Mapping[str, float],
        level: float,
        largest: sums.Loadings | None = None,
        groups: Groups = (),
    ) -> float | np.ndarray:
        """Return `q sd`, with q the quantile and sd the root of the sum of squared loadings."""
        return self.quantile(level) * sums.norm(loadings.values())

    def integer_sum_half_width(
        self,
        loadings: sums.Loadings,
        scales: Mapping[str, float],
        level: float,
        largest: sums.Loadings | None = None,
        groups: Groups = (),
    ) -> float | np.ndarray:
        """Return the half-width, and half of the largest `|c_b|`.

        By so much a sum of rounded noises moves with one integer. Its steps can lie so that the
        normal quantile alone misses a little more than it says.
        """
        step = sums.half_step(largest or loadings, scales, self.standard_deviation)
        return self.sum_half_width(loadings, scales, level, largest, groups) + step

    def movement_allowed(self, allowance: Allowance) -> Fraction:
        """Return mu^2."""
        return allowance.mu_squared

    def charge(self, moved: Fraction) -> PrivacyLoss:
        """Charge mu^2."""
        return PrivacyLoss(mu_squared=moved)

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return this law: a sum of normals is normal."""
        return self

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return `-z^2 / 2`."""
        return z**2 / -2

    def score(self, z: np.ndarray) -> np.ndarray:
        """Return -z."""
        return -z

    def distance(self, exponent: float) -> float:
        """Return `sqrt(2 exponent)`."""
        return math.sqrt(2 * exponent)

    def continuous_deviation(self, sigma: float) -> float:
        """Return sigma: rounding adds next to nothing."""
        return sigma

    def _deviation(self, scale: float) -> float:
        return sums.rounded_normal_deviation(scale)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        return math.erfc((a + 0.5) / scale / _ROOT2)

    def _missed_by_each(self, level: float, cells: int) -> float:
        """Return `1 - level^(1 / d)`, which is enough under any correlation (Sidak 1967)."""
        return -math.expm1(math.log(level) / cells)


class _Laplace(Law):
    """The discrete Laplace: `P(k) = (1 - q) / (1 + q) q^|k|`, `q = exp(-1 / scale)`."""

    __slots__ = ()

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return `q^m / (1 + q)` for m >= 1, and `1 - q^(1 - m) / (1 + q)` below."""
        above = np.greater_equal(m, 1)
        tail = np.exp(np.where(above, np.negative(m), np.subtract(m, 1)) / scale)
        tail /= 1 + math.exp(-1 / scale)
        return np.asarray(np.where(above, tail, 1 - tail))

    def quantile(self, level: float) -> float:
        """Return the larger quantile of a Laplace and of a normal, between which a sum lies."""
        return max(sums.normal_quantile(level), -math.log1p(-level) / _ROOT2)

    def sum_half_width(
        self,
        loadings: sums.Loadings,
        scales: Mapping[str, float],
        level: float,
        largest: sums.Loadings | None = None,
        groups: Groups = (),
    ) -> float | np.ndarray:
        """Return the half-width for a sum of discrete Laplace noises of scales s_b.

        A continuous Laplace noise of the same scale is Y_b plus independent noise of size below 1,
        so the half-width is that of `sum_b c_b s_b Z_b`, plus half of the largest `|c_b|`: by so
        much the sum moves with one integer. For two noises, `integer_pair_half_width` takes the
        integers of the coarser one as they are.

        Examples
        --------
        >>> LAPLACE.sum_half_width({"0": LAPLACE.standard_deviation(1)}, {"0": 1}, 0.95).round(4)
        np.float64(3.4957)
        """
        two = sums.pair_of(loadings, scales) if largest is None else None
        if two is not None:
            return integer_pair_half_width(*two, level)
        return sums.independent_half_width(loadings, scales, level, self.quantile(level), largest)

    def sum_holds(
        self,
        distance: np.ndarray,
        loadings: sums.Loadings,
        scales: Mapping[str, float],
        level: float,
        *,
        largest: sums.Loadings | None = None,
        groups: Groups = (),
    ) -> np.ndarray:
        """Tell where a distance is at most the half-width: of two noises, by their tails alone."""
        alone = largest is None and not box_accuracy.drawn_together(loadings, scales, groups)
        two = sums.pair_of(loadings, scales) if alone else None
        if two is not None:
            return integer_pair_holds(distance, *two, level)
        return super().sum_holds(distance, loadings, scales, level, largest=largest, groups=groups)

    def movement_allowed(self, allowance: Allowance) -> Fraction:
        """Return epsilon."""
        return allowance.epsilon

    def charge(self, moved: Fraction) -> PrivacyLoss:
        """Charge a pure epsilon."""
        return PrivacyLoss(epsilon=moved)

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return this law for one noise, and the normal law for more."""
        return self if terms == 1 else GAUSSIAN

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return `-sqrt(2) |z|`."""
        return np.asarray(-_ROOT2 * np.abs(z))

    def score(self, z: np.ndarray) -> np.ndarray:
        """Return `-sqrt(2) sign(z)`."""
        return np.asarray(-_ROOT2 * np.sign(z))

    def distance(self, exponent: float) -> float:
        """Return `exponent / sqrt(2)`."""
        return exponent / _ROOT2

    def continuous_deviation(self, sigma: float) -> float:
        """Return `sqrt(2)` scales, `1 / (sqrt(2) asinh(1 / (sqrt(2) sigma)))`.

        It is sigma where that is too small for a scale.
        """
        return max(sigma, 1 / (_ROOT2 * math.asinh(1 / (_ROOT2 * sigma))))

    def _deviation(self, scale: float) -> float:
        return sums.deviation(scale)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        return 2 * math.exp(-(a + 1) / scale) / (1 + math.exp(-1 / scale))

    def _missed_by_each(self, level: float, cells: int) -> float:
        """Return `(1 - level) / d` (Bonferroni)."""
        return (1 - level) / cells


class _Box(_Laplace):
    """Noise in a box: vectors of density `exp(-max_k |z_k| / s_k)`, up to a constant, rounded.

    A group of one is the discrete Laplace law, whose density and what follows from it are stated
    here, too. Coordinates of larger groups are uncorrelated, not independent.
    """

    __slots__ = ()

    def _draw(self, scales: Sequence[float], size: int) -> list[np.ndarray]:
        """Draw the noise of a group: all of its coordinates together."""
        return box_noise(scales, size)

    def deviations(self, scales: Sequence[float]) -> list[float]:
        """Return the roots of (D + 1) (D + 2) s^2 / 3 and rounding, with D scales s above 0.

        Examples
        --------
        >>> [round(deviation, 4) for deviation in BOX.deviations([1, 10, 0])]
        [2.0207, 20.0021, 0.0]
        """
        checked = [float(check_scale(scale)) for scale in scales]
        members = sum(scale > 0 for scale in checked)
        return [self.deviation_among(scale, members) for scale in checked]

    def quantile(self, level: float) -> float:
        """Return the largest of a Laplace, a normal and a uniform law, between which a sum lies."""
        return max(super().quantile(level), _ROOT3 * level)

    def sum_half_width(
        self,
        loadings: sums.Loadings,
        scales: Mapping[str, float],
        level: float,
        largest: sums.Loadings | None = None,
        groups: Groups = (),
    ) -> float | np.ndarray:
        """Return the half-width for a sum of noises, some of them drawn together.

        One coordinate: its own half-width, times the loading. Of one group: that of the continuous
        noises, as `box_accuracy.sum_half_width` says, plus half of every `|c_b|`, by so much
        rounding moves the sum. Of several groups, that is the larger quantile of a normal and of
        each group, times the standard deviation, a little raised; and the sum of all `|c_b| / 2`.

        Examples
        --------
        >>> two = {"0": 5.0, "1": 7.0}, 0.95, None, [("0", "1")]
        >>> BOX.sum_half_width({"0": 10.0, "1": 14.0}, *two).round(4)
        np.float64(37.2762)
        """
        together = box_accuracy.drawn_together(loadings, scales, groups)
        if not together:
            return super().sum_half_width(loadings, scales, level, largest)
        (group, members), *others = together.items()
        beside = any(np.any(loading) for block, loading in loadings.items() if block not in group)
        if others or beside or largest is not None:
            return self._of_groups(loadings, scales, level, largest, together)
        return self._of_group({b: loadings[b] for b in group}, scales, level, members)

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return the discrete Laplace law for one noise on its own, and the normal law for more.

        One of several that are drawn together is not normal: its kurtosis is 4.5 for D = 3 and 3
        for D = 10.
        """
        return LAPLACE if terms == members == 1 else GAUSSIAN

    def _of_group(
        self, loadings: sums.Loadings, scales: Mapping[str, float], level: float, members: int
    ) -> float | np.ndarray:
        """Half-width for a sum of noises of one group of two or more."""
        weights = {
            block: np.abs(loading) / self.deviation_among(scales[block], members)
            for block, loading in loadings.items()
        }
        if len(weights) == 1:
            ((block, weight),) = weights.items()
            return weight * self.half_width(scales[block], level, members)
        parts = [weight * scales[block] for block, weight in weights.items()]
        rounding = sum(weights.values(), start=np.zeros(()))
        return box_accuracy.sum_half_width(parts, members, level) + rounding / 2

    def _of_groups(
        self,
        loadings: sums.Loadings,
        scales: Mapping[str, float],
        level: float,
        largest: sums.Loadings | None,
        together: Mapping[tuple[str, ...], int],
    ) -> float | np.ndarray:
        """Half-width for a sum of noises of several groups, or of several cells."""
        own = {block: members for group, members in together.items() for block in group}
        lonely = any(scales.get(block, 0.0) > 0 for block in loadings.keys() - own.keys())
        ratios = [box_accuracy.largest_ratio(len(g), d, level) for g, d in together.items()]
        factor = max(super().quantile(level) if lonely else GAUSSIAN.quantile(level), *ratios)
        factor *= box_accuracy.raise_quantile(level, max(own.values()))
        rounding: np.ndarray = np.zeros(())
        for block, loading in (loadings if largest is None else largest).items():
            deviation = self.deviation_among(scales.get(block, 0.0), own.get(block, 1))
            if deviation:
                rounding = rounding + np.abs(loading) / deviation / 2
        width: np.ndarray = factor * sums.norm(loadings.values()) + rounding
        return width

    def deviation_among(self, scale: float, members: int) -> float:
        """Return the root of (D + 1) (D + 2) s^2 / 3 and rounding, for one of D coordinates."""
        if members <= 1 or not scale:
            return self.standard_deviation(scale)
        return box_accuracy.box_deviation(scale, members)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        if members <= 1:
            return super()._beyond(scale, a)
        return float(box_accuracy.beyond((a + 0.5) / scale, members))


GAUSSIAN = _Gaussian(
    name="gaussian", title="Gaussian", norm=2, needs_delta=True, curve=GAUSSIAN_CURVE
)
"""The rounded Gaussian, whose scale is that of the Gaussian."""

_EXPONENTIAL: dict[str, Any] = dict(
    norm=1, needs_delta=False, curve=LAPLACE_CURVE, memoryless=True, companion=1 / _ROOT2
)
LAPLACE = _Laplace(name="laplace", title="Laplace", **_EXPONENTIAL)
"""The discrete Laplace law."""

BOX = _Box(name="box", title="box", inside="max", **_EXPONENTIAL)
"""Noise in a box, of groups of coordinates."""

LAWS: Mapping[str, Law] = MappingProxyType({law.name: law for law in (GAUSSIAN, LAPLACE, BOX)})
"""Every law by its name."""


def law_named(name: object) -> Law:
    """Return a law by the name that ledgers and certificates write.

    Raises
    ------
    CalibrationError
        If there is no such law.

    Examples
    --------
    >>> law_named("laplace") is LAPLACE
    True
    """
    if isinstance(name, str) and name in LAWS:
        return LAWS[name]
    known = ", ".join(f'"{law}"' for law in LAWS)
    raise CalibrationError(
        f"law must be one of {known}, got law={quote(name)}. A newer version of dpframe may know "
        "it."
    )
