"""What a released histogram says of caps: the error that each would leave, and the best one.

Everything here is computed from what was released, and from public facts; it costs no privacy.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpframe.cells.record import ATTRIBUTE, certificate_of, record_on
from dpframe.cells.verify import look, whole_release
from dpframe.certificates.certificate import Release
from dpframe.certificates.definitions import SuggestDefinition, Suggested
from dpframe.certificates.diagnosis import ShownFrame, mark_test
from dpframe.denoising.tails import likely_counts, log_widths, mean_sizes, support_counts
from dpframe.errors import CertificateError, QueryError
from dpframe.frozen import frozen
from dpframe.inference.intervals import std_error
from dpframe.privacy.noise_sum import NoiseSum
from dpframe.public import public_call

_TINY = 2.0**-500  # so that no ratio overflows
_MEAN_SIZE = math.sqrt(0.5)  # of Laplace noise with a standard error of 1
_LEVEL = 0.95  # of what may be unseen
# Over 20 tables, caps told from 30 times the noise on err 1.25 times as much as the best on average
# and 2.6 times at worst; without a limit, 3.0 and 17 times
_LEAST_SEEN = 30.0
# Standard errors that a normal number exceeds in 2.5 % of cases: at 1.645, those of 30 times the
# noise are told to be too few in 94 or 95 of 100
_SURE = 1.96
_SHOWN = 12  # candidates


@frozen(eq=False)
class CapErrors:
    """What is public about the errors that caps leave, known before there are values.

    Parameters
    ----------
    query
        The query whose errors are predicted, in words.
    planned
        How much the later release of it spends.
    caps
        The candidates, increasing.
    noise
        By candidate, the mean absolute error that noise makes in a group.
    lost
        By how much one row beyond the cap, or one group, changes the mean group.
    lost_row
        By how much one row that other caps drop changes it.
    """

    query: str
    planned: Mapping[str, float]
    caps: np.ndarray
    noise: np.ndarray
    lost: float
    lost_row: float

    @property
    def columns_of_noise(self) -> dict[str, np.ndarray]:
        """What is known before there are values."""
        return {"noise": self.noise}

    def add_to(self, released: pd.DataFrame, dropped: pd.DataFrame | None = None) -> pd.DataFrame:
        """Put the errors of all candidates beside the released numbers of units.

        Parameters
        ----------
        released
            Units by the cap that they need.
        dropped
            Units by the rows that other caps drop, if there are others.
        """
        noisy, counts = _counts_behind(released, self.caps)
        lost = self.lost * counts @ self._beyond(mean_sizes(self.caps))
        errors = {
            "lost": np.median(lost, axis=0),
            "noise": self.noise,
            "error": _regretted(expected_error(lost, self.noise)),
            "unseen": unseen(noisy, whole_release(look(released), "suggest")),
        }
        if dropped is not None:
            sizes = dropped.index.to_numpy()
            _, counts = _counts_behind(dropped, sizes)
            rows = float(np.median(counts @ mean_sizes(sizes)))
            errors["dropped"] = np.full(len(self.caps), self.lost_row * rows)
            errors["error"] = errors["error"] + errors["dropped"]
        cap = int(self.caps[int(np.argmin(errors["error"]))])
        best_cap = {str(released.index.name): cap}
        return with_errors(released, errors, self.query, self.planned, best_cap)

    def _beyond(self, sizes: np.ndarray) -> np.ndarray:
        """Return what units of each bin have beyond each cap, shape (bins, caps)."""
        return np.asarray(np.maximum(sizes[:, None] - self.caps, 0.0))


def _counts_behind(released: pd.DataFrame, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of units by size, and histograms that these may come from."""
    noisy = released["units"].to_numpy(np.float64)
    deviation = float(std_error(released)["units"].iloc[0])
    return noisy, likely_counts(noisy, mean_error(deviation), log_widths(sizes))


class Candidates(ShownFrame):
    """Candidates with their predicted errors, of which those next to the best are shown."""

    digits_shown = 4

    def as_shown(self) -> pd.DataFrame:
        """Return a few candidates."""
        return super().as_shown().iloc[self._next_to_best()]

    def _next_to_best(self) -> np.ndarray:
        """Return the places of the rows that are shown."""
        few = np.arange(min(len(self), _SHOWN))
        if len(self) <= _SHOWN or ATTRIBUTE not in self.attrs:
            return few
        try:
            (suggested,) = best(self).values()
        except (CertificateError, ValueError):
            return few
        if isinstance(suggested, tuple) and isinstance(self.index, pd.IntervalIndex):
            ends = zip((self.index.left, self.index.right), suggested, strict=True)
            places = [np.flatnonzero(side == bound) for side, bound in ends]
        else:
            places = [np.flatnonzero(self.index == suggested)]
        if not all(map(len, places)):
            return few
        ways = np.abs(np.arange(len(self)) - np.concatenate(places)[:, None]).min(axis=0)
        return np.sort(np.argsort(ways, kind="stable")[:_SHOWN])

    @property
    def _below(self) -> str:
        if len(self) <= _SHOWN:
            return ""
        return f"\n{_SHOWN} of {len(self):,} candidates, those next to the best"


@public_call
def best(released: pd.DataFrame) -> dict[str, Suggested]:
    """Return what a suggestion found best, by keyword of the query that it is for."""
    parts = best_suggestion(released)
    if not parts:
        raise CertificateError("this frame suggests nothing: it is not what suggest_caps released.")
    suggestion = parts[-1]
    if suggestion.seen < suggestion.needed:
        (keyword,) = suggestion.best
        more = suggestion.needed / max(suggestion.seen, suggestion.needed / _LEAST_SEEN)
        rule = f"too few people to tell: about {max(suggestion.seen, 0):,.0f}"
        way_out = f"Look with {more:.2g} times as much, or give {keyword}= from elsewhere."
        raise QueryError(f"{rule}, where this noise needs {suggestion.needed:,.0f}. {way_out}")
    return dict(suggestion.best)


def best_suggestion(released: pd.DataFrame) -> list[SuggestDefinition]:
    """Return what a released frame suggests, by the column that it was written to."""
    definitions = certificate_of(released).table.definitions
    return [definition for definition in definitions if isinstance(definition, SuggestDefinition)]


def mean_error(std_error: float) -> float:
    """Return the mean absolute error that Laplace noise makes; that of normal noise is 1.13 times.

    Examples
    --------
    >>> round(mean_error(math.sqrt(2)), 12)
    1.0
    """
    return _MEAN_SIZE * std_error


def needed(std_error: float, bins: int) -> float:
    """Return how many units must be seen in all, with noise, so that a histogram tells a cap.

    They are 30 times the mean size of the noise in a bin, but for 2.5 % of cases.

    Examples
    --------
    >>> round(needed(math.sqrt(2) / 0.1, 38))
    471
    """
    return _LEAST_SEEN * mean_error(std_error) + _SURE * std_error * math.sqrt(bins)


def unseen(noisy: np.ndarray, release: Release) -> np.ndarray:
    """Return how many units there are at most beyond each cap, each at 95 %, by the exact law.

    Beyond the last one are some of the last bin.
    """
    noise, law = release.noise, release.noise.distribution
    loadings = {block: float(np.max(part)) for block, part in release.columns[0].deviations.items()}
    scales = noise.scale_by_block

    def half_width(bins: int) -> float:
        terms = {block: np.full(bins, part) for block, part in loadings.items()}
        sums = {block: part * math.sqrt(bins) for block, part in loadings.items()}
        of_bins = NoiseSum(sums, scales, largest=loadings, terms=terms)
        return float(law.sum_half_width(of_bins, 2 * _LEVEL - 1))

    beyond = np.append(np.cumsum(noisy[:0:-1])[::-1], noisy[-1])
    bins = [*range(len(noisy) - 1, 0, -1), 1]
    widths = np.array([half_width(number) for number in bins])
    return np.asarray(np.maximum(np.floor(beyond + widths), 0.0))


def expected_error(lost: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the mean size of a bias with Laplace noise of a mean size: ``L + s exp(-L / s)``.

    Examples
    --------
    >>> expected_error(np.array([0.0, 1.0, 9.0]), np.array([1.0, 1.0, 0.0])).round(3)
    array([1.   , 1.368, 9.   ])
    """
    together: np.ndarray = lost + noise * np.exp(-lost / np.maximum(noise, _TINY))
    return together


def _regretted(errors: np.ndarray) -> np.ndarray:
    """Average over draws by how many times the least error of each: enormous tails do not decide.

    Examples
    --------
    >>> _regretted(np.array([[1.0, 2.0], [8.0, 4.0]]))  # 2 on the average, times 1.5 for both
    array([3., 3.])
    """
    positive = np.maximum(errors, _TINY)
    least = positive.min(axis=1)
    typical = math.exp(float(np.log(least).mean()))
    return np.asarray(typical * (positive / least[:, None]).mean(axis=0))


def with_errors(
    released: pd.DataFrame,
    errors: Mapping[str, np.ndarray],
    query: str,
    planned: Mapping[str, float],
    suggested: Mapping[str, Suggested],
) -> pd.DataFrame:
    """Add columns of predicted errors, and say in the certificate what they are.

    Parameters
    ----------
    released
        A histogram.
    errors
        The columns.
    query, planned
        The query whose errors these are, and how much it spends.
    suggested
        What is best for it, by keyword.
    """
    shown = look(released)
    column = whole_release(shown, "suggest").columns[0].name
    deviation = float(std_error(released).to_numpy(np.float64)[0, 0])
    people = float(released.iloc[:, 0].sum()), needed(deviation, len(released))
    amounts = {key: float(planned[key]) for key in planned}
    table = shown.add(
        pd.DataFrame(dict(errors), index=released.index),
        [
            SuggestDefinition("suggest", column, name, query, amounts, suggested, *people)
            for name in errors
        ],
        [shown.labels[0]] * len(errors),
    )
    frame = Candidates(table)
    frame.attrs = dict(table.attrs)
    mark_test(frame, record_on(frame).releases)
    return frame


_ALIKE = 1e-3  # by so little, errors do not differ


@frozen(eq=False)
class BoundErrors:
    """What is public about the errors that bounds leave, known before there are values.

    Parameters
    ----------
    query
        The query whose errors are predicted, in words.
    planned
        How much the later release of it spends.
    ends
        The candidates, increasing: all finite ends of the bins.
    noise
        By candidates for the lower and the upper bound, the mean absolute error that noise makes in
        a group, of a mean in one of a single row; infinite where they are no bounds.
    groups
        The number of groups.
    is_mean
        Whether the query is of means.
    powers
        Whether bins are powers of two on both sides of zero; else they are of equal widths.
    """

    query: str
    planned: Mapping[str, float]
    ends: np.ndarray
    noise: np.ndarray
    groups: int
    is_mean: bool
    powers: bool

    @property
    def columns_of_noise(self) -> dict[str, np.ndarray]:
        """What is known before there are values."""
        return self.profiles(self.noise)

    def add_to(self, released: pd.DataFrame) -> pd.DataFrame:
        """Put the errors of bounds that end with a bin beside its released number of rows."""
        deviation = float(std_error(released)["count"].iloc[0])
        counts = _counts(released["count"].to_numpy(np.float64), mean_error(deviation), self)
        rows = max(float(counts.sum()), 1.0)
        per_group = max(rows / self.groups, 1.0)
        noise = self.noise / per_group if self.is_mean else self.noise
        lost = _clipped_amounts(counts, self) / (rows if self.is_mean else self.groups)
        errors = expected_error(lost, noise)
        best_bounds = {"bounds": _best(errors, self.ends)}
        return with_errors(released, self.profiles(errors), self.query, self.planned, best_bounds)

    def profiles(self, errors: np.ndarray) -> dict[str, np.ndarray]:
        """Return by bin the least errors with one of its ends as a bound, by pairs of bounds."""
        return {
            "as_low": np.concatenate([[np.inf], errors.min(axis=1)]),
            "as_high": np.concatenate([errors.min(axis=0), [np.inf]]),
        }


def _best(errors: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
    """Return the bounds with the least error: of several, those closest to zero."""
    sizes = np.abs(ends) + np.abs(ends[:, None])
    among = np.where(errors <= errors.min() * (1 + _ALIKE), sizes, np.inf)
    low, high = np.unravel_index(int(np.argmin(among)), among.shape)
    return float(ends[low]), float(ends[high])


def _counts(noisy: np.ndarray, noise: float, facts: BoundErrors) -> np.ndarray:
    """Return what the noise leaves, from the middle of all bins or from each side of zero."""
    widths = np.ones(len(noisy))
    middle = len(noisy) // 2 if facts.powers else max(int(np.argmax(noisy)), 1)
    below = support_counts(noisy[:middle][::-1], noise, widths[:middle])[::-1]
    return np.concatenate([below, support_counts(noisy[middle:], noise, widths[middle:])])


def _clipped_amounts(counts: np.ndarray, facts: BoundErrors) -> np.ndarray:
    """Return by how much values are clipped in all, for each lower and each upper bound."""
    values, ends = _typical(facts), facts.ends
    below = np.maximum(ends[:, None] - values, 0.0) @ counts
    above = np.maximum(values - ends[:, None], 0.0) @ counts
    clipped: np.ndarray = below[:, None] + above
    return clipped


def _typical(facts: BoundErrors) -> np.ndarray:
    """Return a value for each bin: where x is as frequent as 1 / x, or in the middle."""
    ends = facts.ends
    if not facts.powers:
        return np.concatenate([ends[:1], (ends[1:] + ends[:-1]) / 2, ends[-1:]])
    sizes = ends[len(ends) // 2 + 1 :]
    typical = sizes / np.log(2)  # from a power of two to the next; those beyond the last, too
    # zero is in the bin that ends with it
    return np.concatenate([-typical[::-1], [0.0, sizes[0] / 2], typical])
