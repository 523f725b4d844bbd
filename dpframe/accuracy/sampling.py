"""Errors of rows that are a random sample, beside those of noise.

Each row is taken for a draw of its own from a population, and each privacy unit for one row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from dpframe.certificates import column_parts
from dpframe.certificates.certificate import Release
from dpframe.certificates.json_records import unpack
from dpframe.certificates.mechanism_parts import (
    MarginsPart,
    SelectionPart,
    SignsPart,
    ThresholdPart,
)
from dpframe.errors import QueryError, quote
from dpframe.privacy.accuracy import Rows
from dpframe.privacy.independent_sum import IndependentSum
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import Value, norm
from dpframe.queries.sums_and_means import several_rows
from dpframe.strategies.association import Powers, Tested, center, fourth_moments, read, unit_of
from dpframe.strategies.base import JointMoments
from dpframe.strategies.dispersion import variances


class SampledError(NamedTuple):
    """The variance that sampling gives a sum, and the standard error that noise gives to it."""

    variance: np.ndarray
    error: Value = 0.0


ErrorAt: TypeAlias = Callable[[np.ndarray], SampledError]
"""From a rate r, one per row, to the error that sampling gives the sum of `x_i - r`."""


def check_sampled(
    release: Release, columns: list[column_parts.ReleasedColumn], *, across: bool = False
) -> None:
    """Check that rows can be a sample of independent ones, and that their error is known.

    Parameters
    ----------
    release
        What is said about the table.
    columns
        The columns whose errors are wanted.
    across
        Whether several cells are put together, in all of which a unit may then have one row.

    Raises
    ------
    QueryError
        If a unit may have several rows there, groups were published for their size, what a
        sampling error takes was not measured, or there are no error bars at all.
    """
    if isinstance(release.mechanism, SelectionPart):
        raise column_parts.no_errors()
    if isinstance(release.mechanism, ThresholdPart):
        why = "is for groups that were known, and these were published for their size"
        way_out = "Use released counts of the groups found, .dp.count(by=..., keys=found.index)."
        raise QueryError.about("sampling", why, True, way_out)
    for column in columns:
        if column.weights is not None:
            rule = f"is not known of {quote(column.name)}, whose rows count for their weights"
            way_out = "Leave sampling out: intervals are then about the weighted sample."
            raise QueryError.about("sampling", rule, True, way_out)
        way_out = _WAYS_OUT.get(column.kind, "")
        if not way_out or (isinstance(column, column_parts.MeanPart) and column.moments):
            continue
        if isinstance(column, column_parts.AssociationPart) and column.sampled:
            if column.kind != "cov":
                continue
        rule = f"takes what was not measured for {column.kind} {quote(column.name)}"
        choose = "Leave sampling out, or choose other columns, released[[...]]."
        raise QueryError.about("sampling", rule, True, f"{way_out} {choose}")
    _check_independent(release, across=across)


_KNOWN = "It is known of counts, rates, means, correlations and slopes."
_WAYS_OUT = {
    "mean": "Release it as dpf.mean(..., sampling=True).",
    "sum": "Release the mean, as dpf.mean(..., sampling=True), and the count.",
    "corr": "Release it as dpf.corr(..., sampling=True).",
    "slope": "Release it as dpf.slope(..., sampling=True).",
    **dict.fromkeys(("var", "std", "cov", "quantile"), _KNOWN),
}
"""What to do for a sampling error, by the kinds of columns that may have none."""


def _check_independent(release: Release, *, across: bool) -> None:
    """Refuse rows of which one unit may have several: these are not drawn independently."""
    caps = release.privacy_unit.caps
    whole = across or isinstance(release.mechanism, MarginsPart | SignsPart)
    if caps.single_row or (caps.max_rows_per_group == 1 and not whole):
        return
    raise several_rows(release.privacy_unit.columns, whole=whole)


_LEAST_FREEDOM = 20  # below that, the estimate is too unsure to tell how unsure it is


def widen(
    width: Value, deviation: Value, variance: Value, level: float, error: Value = 0.0
) -> np.ndarray:
    """Return the half-width for noise and an independent normal error together.

    With s the deviation of the noise, v the variance of the normal error, z the normal quantile and
    `h = w / s` the half-width of the noise in its deviations, it is `f sqrt(s^2 + v)` with `f = z +
    (h - z) (s^2 / (s^2 + v))^2`: to first order in the excess kurtosis, which sums have by these
    squares (Cornish and Fisher 1938). Of Laplace and normal errors it holds, at every ratio of
    them, within .005 of the levels .8, .9 and .95, and within .0015 of .99.

    Where noise gives v a standard error e, `T = s^2 + v` has that of a variance with `n = 2 T^2 /
    e^2` degrees of freedom, and counts as one with 20 at least: the half-width is multiplied by `1
    + (z^2 + 1) / (4 n)`, as a quantile of Student is to first order (Satterthwaite 1946).

    Parameters
    ----------
    width, deviation
        Half-width and standard deviation of the noise alone.
    variance
        Variance of the normal error; below 0 it counts as 0.
    level
        Confidence level.
    error
        Standard error of that variance.

    References
    ----------
    E. A. Cornish and R. A. Fisher, "Moments and cumulants in the specification of distributions",
    Revue de l'Institut International de Statistique 5(4), 1938.

    F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2(6), 1946.

    Examples
    --------
    >>> widen(3.0, 1.0, 0.0, 0.95).item(), widen(3.0, 1.0, 1e4, 0.95).round(1).item()
    (3.0, 196.0)
    """
    noise = np.square(np.asarray(deviation, np.float64))
    both = noise + np.maximum(variance, 0)
    z = GAUSSIAN.quantile(level)
    shape = np.broadcast_shapes(np.shape(width), np.shape(both))
    share = np.divide(noise, both, out=np.ones(np.shape(both)), where=both > 0)
    wide = np.broadcast_to(np.asarray(deviation, np.float64), shape)
    alone = np.divide(width, wide, out=np.full(shape, z), where=wide > 0)
    relative = np.divide(
        error, both, out=np.zeros(np.broadcast_shapes(np.shape(error), shape)), where=both > 0
    )
    unsure = 1 + (z**2 + 1) / 4 * np.minimum(np.square(relative) / 2, 1 / _LEAST_FREEDOM)
    widened: np.ndarray = (z + (alone - z) * share**2) * unsure * np.sqrt(both)
    return np.asarray(np.maximum(widened, width))


@dataclass(frozen=True, slots=True, eq=False)
class WithSampling:
    """The error of a sum of two released numbers, in every row: of noise, and of sampled rows.

    Parameters
    ----------
    noise
        The noise of the sum.
    variance
        The variance that sampling gives it.
    error
        The standard error of that variance.
    """

    noise: IndependentSum
    variance: np.ndarray
    error: Value = 0.0

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the sum."""
        return np.asarray(np.hypot(self.noise.deviation, np.sqrt(np.maximum(self.variance, 0))))

    def half_width(self, level: float) -> np.ndarray:
        """Return the half-width for the sum."""
        noise, sampled = self.noise, (self.variance, level, self.error)
        return widen(noise.half_width(level), noise.deviation, *sampled)

    def excess(self, distance: np.ndarray, level: float, rows: int = 0) -> np.ndarray:
        """Say by how much distances are larger than the half-width."""
        return np.asarray(distance - self.half_width(level))


def count_ends(
    values: tuple[np.ndarray, np.ndarray], width: Value, deviation: Value, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of intervals for expected counts, by which rows are drawn.

    With X the noisy count, they are those of the counts m, the mean and variance of a Poisson law,
    with `|X - m| <= f sqrt(s^2 + m)`, where f is as for `widen` and X; and of the noise alone.

    Parameters
    ----------
    values
        The noisy counts; smaller and larger ones where they were rounded.
    width, deviation
        Half-width and standard deviation of their noise.
    level
        Confidence level.
    """
    low, high = (value - width if at == 0 else value + width for at, value in enumerate(values))
    ends = []
    for value, sign in zip(values, (-1, 1), strict=True):
        rows = np.maximum(value, 1.0)
        both = np.square(deviation) + rows
        wide = widen(width, deviation, rows, level)
        factor = wide / np.sqrt(both)
        root = np.sqrt(np.maximum(np.square(deviation) + value + factor**2 / 4, 0))
        ends.append(value + factor**2 / 2 + sign * factor * root)
    return np.where(low > 0, np.clip(ends[0], 0, low), low), np.maximum(ends[1], high)


def error_of_rate(rows: np.ndarray) -> ErrorAt:
    """Return the variance of shares r of so many rows, `n r (1 - r)`."""
    some = np.maximum(rows, 0.0)
    return lambda rate: SampledError(some * rate * (1 - rate))


def error_of_mean(moments: column_parts.MomentsPart) -> ErrorAt:
    """Return the variance of sums of values less r, in widths of the bounds: `sum (x_i - r)^2`.

    It is that about r, which gives intervals nearly those of Student in small groups. It counts as
    half of its own standard error at least: what is less cannot be told from 0, and half of it is
    then mostly too much, so that it has no error of its own.
    """
    numbers = moments.numbers
    moved = numbers.of_rest, numbers.of_first, numbers.of_rows
    blocks = {block for of in moved for block in of}

    def at(rate: np.ndarray) -> SampledError:
        y = 2 * rate - 1
        weights = 1.0, -2 * y, y * y + 0.5
        found = numbers.rest - 2 * y * numbers.first + weights[2] * numbers.rows
        error = norm(
            sum(weight * of.get(block, 0.0) for weight, of in zip(weights, moved, strict=True))
            for block in blocks
        )
        hidden = found < error / 2
        return SampledError(np.where(hidden, error / 2, found) / 4, np.where(hidden, 0, error) / 4)

    return at


def error_of_association(
    kind: Tested, joint: JointMoments
) -> Callable[[np.ndarray, np.ndarray, Rows], SampledError]:
    """Return the variance that sampling gives `a N C - b N D` in some rows.

    N C and N D are the `parts_of_quotient`. With x and y less their means, it is the sum of squares
    of `a x y - b x^2` for slopes, of `a x y - b (k x^2 + y^2 / k) / 2` with `k^2 = V_y / V_x` for
    correlations. Noise gives it a standard error e. That of normal values of the same variances and
    covariance is `v_0`: the variance is taken for `2 v_0`, give or take as much, before it is
    measured, and so for `w v + (1 - w) 2 v_0` afterwards, where `w = 4 v_0^2 / (4 v_0^2 + e^2)`;
    for half of its standard error at least.

    Parameters
    ----------
    kind
        What is asked.
    joint
        What it was read off.

    References
    ----------
    L. Isserlis, "On a formula for the product-moment coefficient of any order of a normal frequency
    distribution in any number of variables", Biometrika 12(1/2), 1918, gives the fourth moments of
    normal values.
    """
    at, fourth = center(joint), fourth_moments(joint)
    (x, y), both = at.variances, at.covariance
    normal = {
        (4, 0): 3 * x**2,
        (3, 1): 3 * x * both,
        (2, 2): x * y + 2 * both**2,
        (1, 3): 3 * y * both,
        (0, 4): 3 * y**2,
    }

    def error(a: np.ndarray, b: np.ndarray, rows: Rows) -> SampledError:
        k = np.sqrt(y / x)[rows]
        weights = {(4, 0): b**2, (3, 1): -2 * a * b, (2, 2): a**2}
        if kind == "correlation":
            weights = {
                (4, 0): (b * k) ** 2 / 4,
                (3, 1): -a * b * k,
                (2, 2): a**2 + b**2 / 2,
                (1, 3): -a * b / k,
                (0, 4): (b / k) ** 2 / 4,
            }
        expected = 2 * at.rows[rows] * _total(weights, {p: normal[p][rows] for p in weights})
        found = _total(weights, {p: fourth[p][0][rows] for p in weights})
        own = norm(
            _total(weights, {p: fourth[p][1][block][rows] for p in weights})
            for block in joint.noise
        )
        share = 1 / (1 + np.square(own / np.maximum(expected, _LEAST)))
        variance = share * found + (1 - share) * np.maximum(expected, 0)
        return SampledError(np.maximum(variance, share * own / 2), share * own)

    return error


_LEAST = 1e-30  # what is divided by, where all values are the same


def _total(weights: Mapping[Powers, np.ndarray], values: Mapping[Powers, np.ndarray]) -> np.ndarray:
    return sum((weight * values[at] for at, weight in weights.items()), start=np.zeros(()))


def variance_of_cells(column: column_parts.ReleasedColumn, values: np.ndarray) -> np.ndarray:
    """Return the variance that sampling gives the values of a column, to first order.

    It is n for a count, `r (1 - r) / n` for a rate, `V / (n - 1)` for a mean of values with
    variance V, and that of the first-order errors of correlations and slopes.
    For counts it may be below 0, as their noise is, so that it is right on average.
    """
    if isinstance(column, column_parts.RatePart):
        rows = np.maximum(unpack(column.ratio.rows), 1.0)
        return np.asarray(values * (1 - values) / rows)
    if isinstance(column, column_parts.MeanPart) and column.moments:
        some, _, apart = variances(column.moments.numbers)
        squared = column.moments.half_width**2
        return np.asarray(squared * apart / np.maximum(some - 1, 1.0))
    if isinstance(column, column_parts.AssociationPart):
        joint = column.joint.numbers
        at = center(joint)
        measure: Tested = "correlation" if column.kind == "corr" else "slope"
        found, _ = read(measure, at)
        x, y = at.variances
        divisor = at.rows * (x if measure == "slope" else np.sqrt(x * y))
        own = error_of_association(measure, joint)(np.ones_like(found), found, slice(None))
        return np.asarray(own.variance * (unit_of(measure, joint.half_widths) / divisor) ** 2)
    return np.asarray(values, np.float64)
