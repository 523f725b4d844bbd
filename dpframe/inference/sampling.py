"""Errors of rows that are a random sample, beside those of noise.

Each row is taken for a draw of its own from a population, and each privacy unit for one row.
"""

from dataclasses import dataclass

import numpy as np

from dpframe.certificates.certificate import Release
from dpframe.certificates.column_parts import ColumnPart, no_errors
from dpframe.certificates.mechanism_parts import (
    MarginsPart,
    SelectionPart,
    SignsPart,
    ThresholdPart,
)
from dpframe.errors import QueryError, quote
from dpframe.inference.sums import IndependentSum
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.noise_sum import Value
from dpframe.queries.of_columns import several_rows


def check_sampled(release: Release, columns: list[ColumnPart], *, across: bool = False) -> None:
    """Check that rows can be a sample of independent ones, and that their error is known."""
    if isinstance(release.mechanism, SelectionPart):
        raise no_errors()
    if isinstance(release.mechanism, ThresholdPart):
        why = "is for groups that were known, and these were published for their size"
        way_out = "Use released counts of the groups found, .dp.count(by=..., keys=found.index)."
        raise QueryError.about("sampling", why, True, way_out)
    for column in columns:
        if column.weights is not None:
            rule = f"is not known of {quote(column.name)}, whose rows count for their weights"
            way_out = "Leave sampling out: intervals are then about the weighted sample."
            raise QueryError.about("sampling", rule, True, way_out)
        if column.statistic.knows_sampling:
            continue
        rule = f"takes what was not measured for {column.kind} {quote(column.name)}"
        choose = "Leave sampling out, or choose other columns, released[[...]]."
        raise QueryError.about("sampling", rule, True, f"{column.form.to_sample} {choose}")
    _check_independent(release, across=across)


def _check_independent(release: Release, *, across: bool) -> None:
    """Refuse rows of which one unit may have several: these are not drawn independently."""
    caps = release.privacy_unit.caps
    whole = across or isinstance(release.mechanism, MarginsPart | SignsPart)
    if caps.single_row or (caps.max_rows_per_group == 1 and not whole):
        return
    raise several_rows(release.privacy_unit.columns, of_all_groups=whole)


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
    """The error of a sum of two released numbers, in every row: of noise, and of sampled rows."""

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
    with `|X - m| <= f sqrt(s^2 + m)`, where f is as for `widen` and X; and of the noise alone. X is
    the smallest and the largest that counts may have been before they were rounded.
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


def sampling_variance(column: ColumnPart, values: np.ndarray) -> np.ndarray:
    """Return the variance that sampling gives the values of a column, to first order."""
    return column.statistic.sampling_variance(column.totals, values)
