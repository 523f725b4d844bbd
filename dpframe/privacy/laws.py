"""The laws of noise, by name: the Gaussian, the discrete Laplace, noise in a box and staircases.

A new law is a value here, with its sampler in `noise`, `box` or `staircase`. No other module asks
for a law by its name: ledgers and certificates write the name, and `law_named` reads it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from dpframe.context import Context
from dpframe.errors import CalibrationError
from dpframe.privacy import box, staircase
from dpframe.privacy.accuracy import (
    integer_pair_excess,
    integer_pair_half_width,
    laplace_sum_excess,
    laplace_sum_half_width,
    pair_half_width,
)
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.inversion import (
    LAPLACE_TRANSFORMS,
    SHARES_AT,
    Noises,
    Transforms,
    box_half_width,
    box_shares,
    integer_half_width,
    share_holds,
)
from dpframe.privacy.law import Allowance, Law
from dpframe.privacy.noise_floats import check_scale
from dpframe.privacy.noise_sum import NoiseSum, Value, norm
from dpframe.privacy.noise_tables import GAUSSIAN_CURVE, LAPLACE_CURVE

_ROOT2, _ROOT3 = math.sqrt(2), math.sqrt(3)
_FEW = 4  # noises whose law is summed up in every row
_WIDEST_ADDED = 12.0  # a scale, up to which integers of two noises are added up one by one
_MOST_ADDED = 1000.0  # rows times the scale, up to which they are
_NODES = 32  # ratios of two noises whose half-widths are found
_NO_MORE = 1e-12  # what rounding adds to a ratio
_FEW_ROWS = 100  # in which they are found by tails
_LEAST_MISSED = 1e-6  # less is lost in differences of floats
_WIDE = 2.0  # from this scale on, rounding a normal adds 1/12 to its variance, to the last bit


def _half_step(noise: NoiseSum, deviation_of: Callable[[float], float]) -> np.ndarray:
    """Return half of the most that one integer of noise moves a sum."""
    steps = noise.steps(lambda _, scale: deviation_of(scale)).values()
    step: np.ndarray = reduce(np.maximum, steps, np.zeros(()))
    return step / 2


def _rounded(roundings: np.ndarray, level: float) -> float:
    """Return how far roundings of estimates lead: all at once, or those of a normal law.

    Each is at most twice its deviation.
    """
    normal = GAUSSIAN.quantile(level) * norm(roundings.tolist())
    return float(min(2 * np.abs(roundings).sum(), normal))


class _Gaussian(Law):
    """The rounded Gaussian: `round(scale * Z)`, Z standard normal."""

    __slots__ = ()

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return `Phi(-(m - 1/2) / scale)`: the half is the rounding."""
        from scipy import special  # slow to import, and not always needed

        return np.asarray(special.erfc((np.asarray(m) - 0.5) / scale / _ROOT2) / 2)

    def quantile(self, level: float) -> float:
        """Return the quantile of a normal, `Phi^-1((1 + level) / 2)`."""
        from scipy import special  # slow to import, and not always needed

        return float(special.ndtri((1 + level) / 2))

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return `q sd`, with q the quantile, and half of the largest `|c_b|` where it may matter.

        By so much a sum of rounded noises moves with one integer. Its steps can lie so that the
        normal quantile alone misses a little more than it says.
        """
        width = self.quantile(level) * noise.deviation
        return width if noise.smooth else width + _half_step(noise, self.standard_deviation)

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
        """Return the root of `sum_k (2 k - 1) P(|Z| > (k - 1/2) / scale)`, k = 1, 2, ...

        From scale 2 on, that sum is `scale**2 + 1/12` to more digits than a float has: by Poisson
        summation, the difference is of the order of `4 scale**2 exp(-2 pi**2 scale**2)`.
        """
        if scale >= _WIDE:
            return math.sqrt(scale**2 + 1 / 12)
        tails = (math.erfc((k - 0.5) / scale / _ROOT2) for k in range(1, 40))
        return math.sqrt(sum((2 * k - 1) * tail for k, tail in enumerate(tails, 1)))

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        return math.erfc((a + 0.5) / scale / _ROOT2)

    def _missed_by_each(self, level: float, cells: int) -> float:
        """Return `1 - level^(1 / d)`, which is enough under any correlation (Sidak 1967)."""
        return -math.expm1(math.log(level) / cells)


class _Laplace(Law):
    """The discrete Laplace: `P(k) = (1 - q) / (1 + q) q^|k|`, `q = exp(-1 / scale)`."""

    __slots__ = ()
    transforms: ClassVar[Transforms] = LAPLACE_TRANSFORMS
    bounded: ClassVar[int] = _FEW  # noises for which bounds are near, and much faster

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return `q^m / (1 + q)` for m >= 1, and `1 - q^(1 - m) / (1 + q)` below."""
        above = np.greater_equal(m, 1)
        tail = np.exp(np.where(above, np.negative(m), np.subtract(m, 1)) / scale)
        tail /= 1 + math.exp(-1 / scale)
        return np.asarray(np.where(above, tail, 1 - tail))

    def quantile(self, level: float) -> float:
        """Return the larger quantile of a Laplace and of a normal, between which a sum lies."""
        return max(GAUSSIAN.quantile(level), -math.log1p(-level) / _ROOT2)

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of discrete Laplace noises of scales s_b.

        It is that of the exact law where the noises are known one by one, see `inversion`. Else, a
        continuous Laplace noise of the same scale is Y_b plus independent noise of size below 1,
        so the half-width is that of `sum_b c_b s_b Z_b`, plus half of the largest `|c_b|`: by so
        much the sum moves with one integer. For two noises, `integer_pair_half_width` takes the
        integers of the coarser one as they are.

        Examples
        --------
        >>> noise = NoiseSum({"0": LAPLACE.standard_deviation(1)}, {"0": 1})
        >>> LAPLACE.sum_half_width(noise, 0.95)
        3.0
        """
        exact = self._exact_half_width(noise, level)
        if exact is not None:
            return exact
        two = noise.pair(self.standard_deviation)
        if two is not None:
            return integer_pair_half_width(*two, level)
        width: np.ndarray = _half_step(noise, self.standard_deviation)
        width = width + self._continuous_half_width(noise, level)
        return width

    def _exact_half_width(self, noise: NoiseSum, level: float) -> float | None:
        """Half-width by the law of the sum, of one noise or of single terms.

        For two, three and four discrete Laplace noises of different blocks, bounds are near.
        """
        terms, roundings = noise.single_terms()
        if not terms:
            return None
        own = {block: self.standard_deviation(noise.scales[block]) for block in terms}
        if not all(own.values()):  # of so large an epsilon that floats know no noise
            return None
        if noise.terms is None and len(terms) == 1:
            ((block, part),) = terms.items()
            width = float(np.abs(part[0]) / own[block])
            width *= self.half_width(noise.scales[block], level)
            return width + _rounded(roundings, level)
        if noise.terms is None and len(terms) <= self.bounded:
            return None
        steps = [part / own[block] for block, part in terms.items()]
        scales = [np.full(part.size, noise.scales[block]) for block, part in terms.items()]
        parts = np.concatenate(steps), np.concatenate(scales)
        exact = integer_half_width(*parts, level, self.transforms)
        return None if exact is None else exact + _rounded(roundings, level)

    def sum_excess(
        self, distance: np.ndarray, noise: NoiseSum, level: float, rows: int = 0
    ) -> np.ndarray:
        """Compare a distance with the half-width: of a few noises, by their tails alone.

        In few rows, all integers of two noises of one scale are added up.
        """
        held = self._shares_hold(distance, noise, level)
        if held is not None:
            return np.where(held, -1.0, 1.0)
        two = None if noise.drawn_together() else noise.pair(self.standard_deviation)
        if two is not None:
            (one, other), (scale, its) = two
            if scale == its <= _WIDEST_ADDED and (rows or np.size(distance)) * scale <= _MOST_ADDED:
                steps = np.maximum(one, other), np.minimum(one, other)
                held = self._holds(distance, steps, scale, Noises(its), level)
            if held is None:
                return integer_pair_excess(distance, *two, level)
            return np.where(held, -1.0, 1.0)
        by_row = any(np.ndim(part) for part in noise.loadings.values())
        if by_row and not noise.drawn_together() and self._is_summed(noise, level):
            off = distance - _half_step(noise, self.standard_deviation)
            return laplace_sum_excess(off, self._continuous(noise), level)
        return super().sum_excess(distance, noise, level)

    def _shares_hold(
        self, distance: np.ndarray, noise: NoiseSum, level: float
    ) -> np.ndarray | None:
        """Tell where shares of a total may be that far off, if cells have one noise each."""
        shares = noise.shares
        if shares is None or noise.drawn_together() or set(shares.loadings) & set(shares.common):
            return None
        if len(shares.loadings) != 1 or len(noise.loadings) != 1:
            return None
        ((block, loading),) = shares.loadings.items()
        scale, own = noise.scales[block], self.standard_deviation(noise.scales[block])
        if own == 0:  # of so large an epsilon that floats know no noise
            return None
        step = loading / own
        steps = step * np.abs(shares.a - shares.b), step * shares.b
        held = np.zeros(np.shape(distance), bool)
        for cells in np.unique(shares.cells).tolist():
            these = shares.cells == cells
            both = (steps[0][these], steps[1][these])
            others = Noises(scale, cells - 1)
            found = self._holds(distance[these], both, scale, others, level)
            if found is None:
                return None
            held[these] = found
        return held

    def _holds(
        self,
        distance: np.ndarray,
        steps: tuple[np.ndarray, np.ndarray],
        scale: float,
        others: Noises,
        level: float,
    ) -> np.ndarray | None:
        """Tell where noise of a scale and others, each times a step, may lead that far."""
        tail = partial(self.at_least, scale)
        return share_holds(distance, steps, others, tail, level, known=self.transforms)

    def _continuous_half_width(self, noise: NoiseSum, level: float) -> np.ndarray:
        """Half-width for continuous noises of the same scales; some may not be of integers."""
        wide = self._continuous(noise)
        alone = len(wide) == 1 and not self._is_public(noise)
        if noise.largest is None and (alone or len(wide) == 2):  # noqa: PLR2004
            return pair_half_width(wide[0], 0.0 if alone else wide[1], level)
        if self._is_summed(noise, level):
            return laplace_sum_half_width(wide, level)
        width: np.ndarray = self.quantile(level) * norm(wide)
        return width

    def _continuous(self, noise: NoiseSum) -> list[np.ndarray]:
        """Deviations of continuous noises of the same scales."""
        own = {b: self.standard_deviation(noise.scales.get(b, 0.0)) for b in noise.loadings}
        return [
            np.abs(loading) / own[b] * (_ROOT2 * noise.scales[b]) if own[b] else np.abs(loading)
            for b, loading in noise.loadings.items()
        ]

    def _is_public(self, noise: NoiseSum) -> bool:
        """Whether no noise has a scale above 0."""
        return not any(noise.scales.get(b, 0.0) > 0 for b in noise.loadings)

    def _is_summed(self, noise: NoiseSum, level: float) -> bool:
        """Whether the law of three or four noises is summed up, row by row."""
        several = 2 < len(noise.loadings) <= _FEW and noise.largest is None  # noqa: PLR2004
        return several and 1 - level > _LEAST_MISSED

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
        """Return `1 / (sqrt(2) sinh(h))`, with `h = 1 / (2 scale)`."""
        return _ROOT2 * math.exp(-0.5 / scale) / -math.expm1(-1 / scale)  # no overflow

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

    def _draw(self, scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
        """Draw the noise of a group: all of its coordinates together."""
        return box.box_noise(scales, size, context)

    def quantile(self, level: float) -> float:
        """Return the largest of a Laplace, a normal and a uniform law, between which a sum lies."""
        return max(super().quantile(level), _ROOT3 * level)

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of noises, some of them drawn together.

        One coordinate: its own half-width, times the loading. Of one group: that of the continuous
        noises, as `box.sum_half_width` says or, for three and more that are the same for all rows,
        `inversion`; plus half of every `|c_b|`, by so much rounding moves the sum. Of several
        groups, that is the larger quantile of a normal and of each group, times the standard
        deviation, a little raised; and the sum of all `|c_b| / 2`.

        Examples
        --------
        >>> scales, together = {"0": 5.0, "1": 7.0}, [("0", "1")]
        >>> BOX.sum_half_width(NoiseSum({"0": 10.0, "1": 14.0}, scales, together), 0.95).round(4)
        np.float64(37.2762)
        """
        together = noise.drawn_together()
        if not together:
            return super().sum_half_width(noise, level)
        (group, members), *others = together.items()
        exact = None if others else self._of_terms(noise, level, group, members)
        if exact is not None:
            return exact
        beside = any(np.any(part) for block, part in noise.loadings.items() if block not in group)
        if others or beside or noise.largest is not None:
            return self._of_groups(noise, level, together)
        return self._of_group(noise, level, group, members)

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return the discrete Laplace law for one noise on its own, and the normal law for more.

        One of several that are drawn together is not normal: its kurtosis is 4.5 for D = 3 and 3
        for D = 10.
        """
        return LAPLACE if terms == members == 1 else GAUSSIAN

    def _of_group(
        self, noise: NoiseSum, level: float, group: Sequence[str], members: int
    ) -> float | np.ndarray:
        """Half-width for a sum of noises of one group of two or more, one of each block."""
        group = list(dict.fromkeys(group))
        steps = noise.steps(lambda _, scale: self.deviation_among(scale, members))
        if len(group) == 1:
            return steps[group[0]] * self.half_width(noise.scales[group[0]], level, members)
        parts = [steps[block] * noise.scales[block] for block in group]
        rounding = sum((steps[block] for block in group), start=np.zeros(()))
        return box.sum_half_width(parts, members, level) + rounding / 2

    def _of_terms(
        self, noise: NoiseSum, level: float, group: Sequence[str], members: int
    ) -> float | None:
        """Half-width for three noises of one group, or more, of the law of their sum."""
        terms, roundings = noise.single_terms()
        if not all(block in group for block in terms):
            return None
        over_rows = len(set(group)) < len(group)
        if not over_rows and len({at for part in terms.values() for at in part.nonzero()[0]}) > 1:
            return None  # each row has noise of its own
        steps = {
            block: np.abs(part) / self.deviation_among(noise.scales[block], members)
            for block, part in terms.items()
        }
        own = [step * noise.scales[block] for block, step in steps.items()]
        parts = np.concatenate([np.zeros(0), *own])
        parts = np.sort(parts[parts > 0])
        if len(parts) < 3 or not np.isfinite(parts).all():  # noqa: PLR2004 - tables have two
            return None
        width = box_half_width(tuple((parts / parts[-1]).tolist()), members, level)
        rounding = sum(float(step.sum()) for step in steps.values()) / 2
        if width is None:
            return None
        return width * float(parts[-1]) + rounding + _rounded(roundings, level)

    def _shares_hold(
        self, distance: np.ndarray, noise: NoiseSum, level: float
    ) -> np.ndarray | None:
        """Tell where shares of a total may be that far off, if one box is over all cells."""
        shares, together = noise.shares, noise.drawn_together()
        if shares is None or not together:
            return super()._shares_hold(distance, noise, level)
        (group, members), *others = together.items()
        cells = np.unique(shares.cells).tolist()
        over_rows = len(group) > len(set(group)) and set(shares.loadings) <= set(group)
        if others or len(cells) > 1 or not over_rows:
            return None
        steps = {
            block: loading / self.deviation_among(noise.scales[block], members)
            for block, loading in shares.loadings.items()
        }
        sizes = {block: step * noise.scales[block] for block, step in steps.items()}
        own = tuple(size for block, size in sizes.items() if block not in shares.common)
        common = tuple(size for block, size in sizes.items() if block in shares.common)
        table = box_shares(cells[0], own, common, members, level)
        if table is None:
            return None
        a, b = shares.a, shares.b
        width = (a + b) * np.interp(b / (a + b), SHARES_AT, table)
        for block, step in steps.items():
            alone = np.abs(a - cells[0] * b)
            parts = np.abs(a - b) + (cells[0] - 1) * b
            width = width + step / 2 * (alone if block in shares.common else parts)
        rounded = [part for block, part in noise.loadings.items() if block not in steps]
        held: np.ndarray = distance <= width + GAUSSIAN.quantile(level) * norm(rounded)
        return held

    def _of_groups(
        self, noise: NoiseSum, level: float, together: Mapping[tuple[str, ...], int]
    ) -> float | np.ndarray:
        """Half-width for a sum of noises of several groups, or of several cells."""
        own = {block: members for group, members in together.items() for block in group}
        lonely = any(
            noise.scales.get(block, 0.0) > 0 for block in noise.loadings.keys() - own.keys()
        )
        ratios = [box.largest_ratio(len(g), d, level) for g, d in together.items()]
        factor = max(super().quantile(level) if lonely else GAUSSIAN.quantile(level), *ratios)
        factor *= box.raise_quantile(level, max(own.values()))
        steps = noise.steps(lambda block, scale: self.deviation_among(scale, own.get(block, 1)))
        width: np.ndarray = factor * noise.deviation + sum(steps.values()) / 2
        return width

    def deviation_among(self, scale: float, members: int) -> float:
        """Return the root of (D + 1) (D + 2) s^2 / 3 and rounding, for one of D coordinates."""
        if members <= 1 or not scale:
            return self.standard_deviation(scale)
        return box.box_deviation(scale, members)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        if members <= 1:
            return super()._beyond(scale, a)
        return float(box.beyond((a + 0.5) / scale, members))


class _Staircase(_Laplace):
    """Staircase noise, see `staircase`: its scale is `D + b`.

    What is stated of a density is that of the Laplace law, which very wide noise is next to.
    """

    __slots__ = ()
    transforms: ClassVar[Transforms] = Transforms(
        staircase.characteristic, staircase.log_moment, staircase.largest_tilt
    )
    bounded: ClassVar[int] = 0

    def _draw(self, scales: Sequence[float], size: int, context: Context) -> list[np.ndarray]:
        """Draw the noise of a group: each coordinate on its own."""
        checked = (float(check_scale(scale)) for scale in scales)
        return [staircase.staircase_noise(scale, size, context) for scale in checked]

    def draw_each(self, scales: np.ndarray, context: Context) -> np.ndarray:
        """Draw independent noise of so many scales, one int64 integer for each."""
        out = np.zeros(len(scales), np.int64)
        for scale in np.unique(check_scale(scales)).tolist():
            these = np.flatnonzero(scales == scale)
            out[these] = staircase.staircase_noise(scale, these.size, context)
        return out

    def loss(self, moved: int, scale: float) -> Fraction:
        """Return `ceil(|moved| / D) log(1 / b)`, rounded up."""
        return staircase.cost(scale, moved)

    def settle(self, wide: float, reach: float) -> float:
        """Return `D + b` of D, the reach, and the least b >= exp(-D / wide)."""
        return staircase.scale_for(int(reach), wide) if wide else 0.0

    def knows(self, scale: float) -> bool:
        """Tell whether a scale is `D + b`."""
        try:
            return bool(staircase.stairs_of(scale))
        except CalibrationError:
            return False

    @property
    def limit(self) -> Law:
        """The Laplace law."""
        return LAPLACE

    def at_least(self, scale: float, m: np.ndarray | int) -> np.ndarray:
        """Return the tail at m, a sum of stairs."""
        return staircase.at_least(scale, m)

    def quantile(self, level: float) -> float:
        """Return what is enough for every sum of symmetric noises with one peak.

        Of deviation 1, one is beyond t at most `4 / (9 t^2)` of the time, and where that is above a
        third, `1 - t / sqrt(3)` (Gauss 1823).
        """
        missed = 1 - level
        return 2 / (3 * math.sqrt(missed)) if missed <= 1 / 3 else _ROOT3 * level

    def sum_half_width(self, noise: NoiseSum, level: float) -> float | np.ndarray:
        """Return the half-width for a sum of staircase noises.

        It is that of the exact law where the noises are known one by one, see `inversion`, or where
        it is of a single one. Of two that differ from row to row, and of a share of a total, it is
        that of the next larger ratio of 32, plus all steps: wider noise is never less spread if it
        has one peak, as noises have after half a step of rounding. For others it is `quantile`
        deviations, and half of all steps.

        Examples
        --------
        >>> scale = STAIRCASE.settle(20 / 3, 20)
        >>> noise = NoiseSum({"0": STAIRCASE.standard_deviation(scale)}, {"0": scale})
        >>> STAIRCASE.half_width(scale, 0.95), STAIRCASE.sum_half_width(noise, 0.95)
        (20, 20.0)
        """
        exact = self._exact_half_width(noise, level)
        if exact is not None:
            return exact
        steps = noise.steps(lambda _, scale: self.standard_deviation(scale))
        apart = noise.largest is None and len(steps) == len(noise.loadings)
        if apart and len(steps) == 1:
            ((block, step),) = steps.items()
            return step * self.half_width(noise.scales[block], level)
        if apart and len(steps) == 2:  # noqa: PLR2004
            (one, other), scales = steps.values(), [noise.scales[block] for block in steps]
            wide = self._of_two_kinds((one, other), [*map(Noises, scales)], level)
            if wide is not None:
                return wide
        width: np.ndarray = self.quantile(level) * noise.deviation + sum(steps.values()) / 2
        return width

    def sum_excess(
        self, distance: np.ndarray, noise: NoiseSum, level: float, rows: int = 0
    ) -> np.ndarray:
        """Compare a distance with the half-width: in few rows, of two noises by their tails."""
        held = self._shares_hold(distance, noise, level)
        two = noise.pair(self.standard_deviation) if held is None else None
        if two is not None and (rows or np.size(distance)) <= _FEW_ROWS:
            (one, other), (scale, its) = two
            both = np.abs(one), np.abs(other)
            held = self._holds(distance, both, scale, Noises(its), level)
        if held is not None:
            return np.where(held, -1.0, 1.0)
        return np.asarray(distance - self.sum_half_width(noise, level))

    def _holds(
        self,
        distance: np.ndarray,
        steps: tuple[np.ndarray, np.ndarray],
        scale: float,
        others: Noises,
        level: float,
    ) -> np.ndarray | None:
        """Tell where noise of a scale and others may lead that far, by tails or a half-width."""
        held = super()._holds(distance, steps, scale, others, level)
        if held is not None:
            return held
        wide = self._of_two_kinds(steps, [Noises(scale), others], level)
        return None if wide is None else np.asarray(distance <= wide)

    def _of_two_kinds(
        self, steps: tuple[Value, Value], noises: Sequence[Noises], level: float
    ) -> np.ndarray | None:
        """Half-width for noises of two kinds, of steps that differ from row to row."""
        one, other = np.broadcast_arrays(*steps)
        units = [self.standard_deviation(s) * math.sqrt(number) for s, number in noises]
        first = one * units[0] >= other * units[1]
        large, small = np.where(first, one, other), np.where(first, other, one)
        ratio = np.divide(small, large, out=np.zeros(large.shape), where=large > 0)
        ratio *= np.where(first, units[1], units[0]) / np.where(first, units[0], units[1])
        node = np.ceil(ratio * _NODES * (1 - _NO_MORE)).clip(0, _NODES).astype(np.int64)
        width = np.zeros(large.shape)
        for mine, a, b in ((first, 0, 1), (~first, 1, 0)):
            numbers = [noises[a].number, noises[b].number]
            scales = np.repeat([noises[a].scale, noises[b].scale], numbers)
            for at in np.unique(node[mine]).tolist():
                parts = np.repeat([1.0, at / _NODES * units[a] / (units[b] or 1.0)], numbers)
                wide = integer_half_width(parts, scales, level, self.transforms)
                if wide is None:
                    return None
                these = mine & (node == at)
                width[these] = (wide + parts.sum()) * large[these]
        return width

    def of_sum(self, terms: int, members: int = 1) -> Law:
        """Return the Laplace law for one noise, and the normal law for more."""
        return LAPLACE if terms == 1 else GAUSSIAN

    def _deviation(self, scale: float) -> float:
        return staircase.deviation(scale)

    def _beyond(self, scale: float, a: int, members: int = 1) -> float:
        return staircase.beyond(scale, a)


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

STAIRCASE = _Staircase(name="staircase", title="staircase", shape="stairs", **_EXPONENTIAL)
"""Staircase noise."""

LAWS: Mapping[str, Law] = MappingProxyType(
    {law.name: law for law in (GAUSSIAN, LAPLACE, BOX, STAIRCASE)}
)
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
    way_out = "A newer version of dpframe may know it."
    raise CalibrationError.about("law", f"must be one of {known}", name, way_out)
