"""Half-widths of noise: roots of tails, and sums of integer noises with all errors taken off.

Let `S = sum_j c_j Y_j`, and V independent of it, a sum of K uniform variables on
`[-d / (2 K), d / (2 K)]`. The characteristic function f of S + V is a product in closed form that
falls as `|u|^-K`. With a period P, the trapezoid rule of inversion

    F(t) = 2 t / P + sum_(m <= M) 2 / (pi m) sin(2 pi m t / P) f(2 pi m / P)

is the chance that S + V is within t of a multiple of P, but for the terms beyond M. So it exceeds
`P(|S + V| <= t)` by at most `P(|S + V| > P - t)`, which Chernoff's inequality bounds, and what is
cut off is at most `2 / (pi K) (2 K / d)^K (2 pi M / P)^-K`. Both are taken off: a half-width is
never short of its level. Where `|S| > t + d / 2`, also `|S + V| > t`, so it is t + d / 2. Where all
steps are multiples of one, the half-width is lowered to a multiple of it, which S cannot pass.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np

from dpframe.errors import QueryError
from dpframe.privacy.law import IntegerLaw, Law
from dpframe.privacy.noise_sum import NoiseSum, Steps, norm
from dpframe.privacy.normal import normal_end

LEAST_MISSED = 1e-9
"""Half-widths of sums that miss less are not told from the rounding of floats."""

SPARED = 5e-4
"""Each of the two errors of an inversion may take such a part of what may miss."""

ROUNDING = 1e-12
"""Of sums of sines, and of what is compared with them."""

# in place of 0
_LEAST_TAIL = 1e-300
# of the farthest end: what an end is rounded up to
_PARTS = 2.0**32
# of sums, whose tails take long
_SUM_PARTS = 2.0**24
# so that an end is off by no more than 1 part in 10^12
_TRIES = 40
# K, of uniform variables in V
_SMOOTHED = 10
# d is so small a part of the period
_SUM_PART = 1000
# different ones; more of them take too long
_MOST_TERMS = 2000
_TILTS = np.arange(1, 64) / 64
_DIVISORS = range(1, 13)
# of a finer lattice, the next point is no nearer than rounding
_FINEST = 1e6
# of a total of integers, to either side of 0
_PLACES = 101
# places of a total, times rows
_LARGEST_WORK = 400_000
# in place of a division by 0
_NO_STEP = 1e-200

Rows: TypeAlias = slice | np.ndarray
"""Some rows of a table, or all of them."""

Tails: TypeAlias = Callable[..., np.ndarray]
"""Tails of a law, by row, at one place of each; some can be of some rows alone."""


def check_level(level: object) -> float:
    """Validate a confidence level: a number in (0, 1).

    Raises
    ------
    QueryError
        If it is not.
    """
    if isinstance(level, int | float | np.floating) and 0 < level < 1:
        return float(level)
    way_out = "Name several levels of the index as a list." if isinstance(level, str) else ""
    rule = "must be a number in (0, 1)"
    raise QueryError.about("level", rule, level, f"0.95 is usual. {way_out}".rstrip())


def normal_quantile(level: float) -> float:
    """Return `Phi^-1((1 + level) / 2)`."""
    return normal_end((1 + level) / 2)


def half_step(noise: NoiseSum, law: Law) -> np.ndarray:
    """Return half of the most that one integer of noise moves a sum."""
    steps = noise.steps(lambda _, scale: law.standard_deviation(scale)).values()
    step: np.ndarray = reduce(np.maximum, steps, np.zeros(()))
    return step / 2


def rounded_width(roundings: np.ndarray, level: float) -> float:
    """Return how far roundings of estimates lead: all at once, or those of a normal law.

    Each is at most twice its deviation.
    """
    normal = normal_quantile(level) * norm(roundings.tolist())
    return float(min(2 * np.abs(roundings).sum(), normal))


def solve_tails(
    tails: Tails, most: np.ndarray, level: float, *, by_row: bool = False
) -> np.ndarray:
    """Return where falling tails are `1 - level`, in parts of 2**-32 of `most`, rounded up.

    Where tails can be of some rows alone, they take those as well: a few rows take longest.
    """
    ends, missed = np.atleast_1d(most), math.log(1 - level)

    # logarithms of tails are nearly lines
    def excess(t: np.ndarray, rows: Rows) -> np.ndarray:
        beyond = tails(t, rows) if by_row else tails(t)
        logs = np.log(np.maximum(beyond, _LEAST_TAIL))
        return np.asarray(missed - np.where(t > 0, logs, 0.0))

    roots = narrow(excess, ends, np.zeros_like(ends), by_row=by_row).reshape(np.shape(most))
    return np.asarray(np.ceil(roots / most * _PARTS) / _PARTS * most)


def solve_sum(excess: Callable[[float], float], most: float, at_0: float) -> float:
    """Return where what falls from `at_0` is 0, in parts of 2**-24 of `most`, rounded up."""
    # slow to import, and not always needed
    from scipy import optimize

    part = most / _SUM_PARTS
    root = optimize.brentq(lambda t: excess(t) if t else at_0, 0.0, most, xtol=part / 8)
    number = math.ceil(float(root) / part)
    # the root is found to an eighth of a part
    while excess(part * number) > 0:
        number += 1
    return part * number


def narrow(
    excess: Callable[[np.ndarray, Rows], np.ndarray],
    rejected: np.ndarray,
    kept: np.ndarray,
    *,
    by_row: bool = False,
) -> np.ndarray:
    """Return the last place that is rejected on the way to one that is kept, by tries in between.

    Where a line through both ends is 0, moved a little to the middle, is tried in place of the
    middle, so that both ends come closer (Oliveira and Takahashi 2020). The way is as short as if
    it were halved 40 times, after 41 tries at most; for most it takes ten.

    Parameters
    ----------
    excess
        How far places are from being kept, in some rows: those up to 0 are kept.
    rejected, kept
        Where the ways begin and end, one of each for every interval.
    by_row
        Whether rows can be tried without others.

    References
    ----------
    I. F. D. Oliveira and R. H. C. Takahashi, "An enhancement of the bisection method average
    performance preserving minmax optimality", ACM Transactions on Mathematical Software 47(1),
    2020.

    Examples
    --------
    >>> round(float(narrow(lambda x, _: 0.0625 - x**2, np.zeros(1), np.ones(1))[0]), 11)
    0.25
    """
    last, rows = rejected.copy(), np.arange(len(rejected))
    some: Rows = slice(None)
    ulps = 4 * np.spacing(np.maximum(np.abs(rejected), np.abs(kept)))
    length = np.abs(kept - rejected)
    enough = np.maximum(length * 2.0**-_TRIES, ulps)
    ends = np.stack([rejected, kept, excess(rejected, some), excess(kept, some), length, enough])
    for tried in range(_TRIES + 1):
        rejected, kept, far, near, length, enough = ends
        apart = (far > 0) & (near <= 0) & (np.abs(kept - rejected) > enough)
        if not apart.any():
            break
        if by_row and 2 * np.count_nonzero(apart) < len(rows):
            last[rows] = rejected
            some = rows = rows[apart]
            rejected, kept, far, near, length, enough = ends = ends[:, apart]
            apart = apart[apart]
        middle = np.where(apart, _between(ends, tried), rejected)
        value = excess(middle, some)
        within = value <= 0
        rejected, far = np.where(within, rejected, middle), np.where(within, far, value)
        kept, near = np.where(within, middle, kept), np.where(within, value, near)
        ends = np.stack([rejected, kept, far, near, length, enough])
    last[rows] = ends[0]
    return last


def _between(ends: np.ndarray, tried: int) -> np.ndarray:
    """Return the next place to try: near where a line is 0, but further inwards."""
    rejected, kept, far, near, length, enough = ends
    step, part = kept - rejected, far / (far - near)
    left = np.abs(step)
    # from the middle
    at = np.where(np.isfinite(part), part, 0.5) - 0.5
    inwards = np.maximum(0.2 * left / length, 0.7 * enough / left)
    at -= np.copysign(np.minimum(np.abs(at), inwards), at)
    # so that no try is lost
    most = np.maximum(length * 2.0**-tried / left - 0.5, 0)
    middle: np.ndarray = rejected + (np.clip(at, -most, most) + 0.5) * step
    return middle


class Terms(NamedTuple):
    """A sum `sum_j c_j Y_j` of integer noises: the different terms, in units of the largest step.

    Parameters
    ----------
    unit
        The largest step.
    steps, scales
        `|c_j|` in that unit, and scales of the noises Y_j, above 0.
    times
        How many terms are alike.
    """

    unit: float
    steps: tuple[float, ...]
    scales: tuple[float, ...]
    times: tuple[int, ...]

    @classmethod
    def of(cls, steps: np.ndarray, scales: np.ndarray) -> "Terms":
        """Put equal terms together."""
        moving = np.stack([np.abs(steps), scales])[:, np.abs(steps) > 0]
        if not moving.size:
            return cls(0.0, (), (), ())
        unit = float(moving[0].max())
        different, times = np.unique(moving[0] + 1j * moving[1], return_counts=True)
        return cls(unit, *map(tuple, (different.real / unit, different.imag, times.tolist())))

    def is_quick(self, level: float) -> bool:
        """Whether it is inverted in no long time, and the level is not next to 1."""
        few = len(self.times) <= _MOST_TERMS and math.isfinite(self.unit)
        return few and 1 - level >= LEAST_MISSED

    def half_width(self, level: float, law: IntegerLaw) -> float:
        """Return a half-width that the sum keeps with the level, or hardly more.

        References
        ----------
        J. Abate and W. Whitt, "The Fourier-series method for inverting transforms of probability
        distributions", Queueing Systems 10, 1992.

        Examples
        --------
        >>> from dpframe.privacy.laws import LAPLACE
        >>> Terms.of(np.ones(24), np.ones(24)).half_width(0.95, LAPLACE)
        13.0
        """
        if not self.times:
            return 0.0
        # of noise that is nearly always 0
        with np.errstate(all="ignore"):
            return _half_width(self, level, law) * self.unit


class KnownNoises(NamedTuple):
    """Noises that are known one by one, the same for all rows: their half-width."""

    half_width: float


class TwoNoises(NamedTuple):
    """Two noises, that may differ from row to row: what an integer of each moves, and scales."""

    steps: Steps
    scales: tuple[float, float]


class Others(NamedTuple):
    """Noises of which no more is known than deviations and largest steps."""


Form: TypeAlias = KnownNoises | TwoNoises | Others
"""How the noises of a sum are known."""


def form_of(noise: NoiseSum, level: float, law: IntegerLaw, bounded: int) -> Form:
    """Tell how the noises of a sum are known.

    Parameters
    ----------
    noise
        The sum.
    level
        Confidence level: next to 1, and for many terms, the law of a sum takes too long.
    law
        That of the noises.
    bounded
        So many noises of different blocks have bounds that are near, and much faster.
    """
    terms, roundings = noise.single_terms()
    deviations = {block: law.standard_deviation(noise.scales[block]) for block in terms}
    # of so large an epsilon that floats know no noise
    if terms and all(deviations.values()):
        if noise.terms is None and len(terms) == 1:
            ((block, part),) = terms.items()
            step = float(np.abs(part[0]) / deviations[block])
            width = step * law.half_width(noise.scales[block], level)
            return KnownNoises(width + rounded_width(roundings, level))
        if noise.terms is not None or len(terms) > bounded:
            steps = np.concatenate([part / deviations[block] for block, part in terms.items()])
            scales = [np.full(part.size, noise.scales[block]) for block, part in terms.items()]
            summed = Terms.of(steps, np.concatenate(scales))
            if summed.is_quick(level):
                width = summed.half_width(level, law)
                return KnownNoises(width + rounded_width(roundings, level))
    pair = noise.pair(law.standard_deviation)
    return Others() if pair is None else TwoNoises(*pair)


@lru_cache(1024)
def _half_width(sum_: Terms, level: float, law: IntegerLaw) -> float:
    terms = list(zip(sum_.steps, sum_.scales, sum_.times, strict=True))
    missed = 1 - level
    spared = SPARED * missed
    most = _farthest(terms, missed / 2, law)
    smooth = most / _SUM_PART
    period = (most + _farthest(terms, spared, law)) * (1 + 2 / _SUM_PART)
    last = math.ceil(
        period / smooth * _SMOOTHED / math.pi * (2 / (math.pi * _SMOOTHED * spared)) ** 0.1
    )
    at = 2 * math.pi / period * np.arange(1, last + 1)
    weights = np.sinc(at * smooth / (2 * math.pi * _SMOOTHED)) ** _SMOOTHED
    weights *= 2 / (math.pi * np.arange(1, last + 1))
    for step, scale, n in terms:
        weights *= law.characteristic(scale, at * step) ** n
    # the others together are less than a tenth
    heard = np.abs(weights) > ROUNDING / last / 10
    at, weights = at[heard], weights[heard]
    needed = level + 2 * spared + ROUNDING

    def excess(t: float) -> float:
        return needed - 2 * t / period - float((weights * np.sin(at * t)).sum())

    return _on_lattice(solve_sum(excess, most + smooth, needed) + smooth / 2, np.array(sum_.steps))


def _farthest(terms: Sequence[tuple[float, float, int]], missed: float, law: IntegerLaw) -> float:
    """Return a t with `P(|S| > t) <= missed`, by Chernoff's inequality.

    Terms of S are a step, a scale, and how many there are.
    """
    tilt = _TILTS * min(law.largest_tilt(scale) / step for step, scale, _ in terms)
    exponents = sum(n * law.log_moment(scale, step * tilt) for step, scale, n in terms)
    ends: np.ndarray = (math.log(2 / missed) + exponents) / tilt
    return float(ends.min())


def _on_lattice(width: float, steps: np.ndarray) -> float:
    """Lower a half-width to a multiple of what all steps are multiples of, if there is that."""
    least = float(steps.min())
    for divisor in _DIVISORS:
        parts = steps / least * divisor
        if (np.abs(parts - np.rint(parts)) <= ROUNDING * parts).all() and parts.max() < _FINEST:
            # an end that a rounding lowers is none of the lattice
            return math.floor(width / least * divisor * (1 + ROUNDING)) * least / divisor
    return width


class Noises(NamedTuple):
    """Independent integer noises of one scale.

    Parameters
    ----------
    scale
        The scale, above 0.
    number
        How many there are.
    """

    scale: float
    number: int = 1


def is_share_quick(others: Noises, rows: int, level: float, law: IntegerLaw) -> bool:
    """Whether `share_holds` is told in no long time, and the level is not next to 1."""
    spared = SPARED * (1 - level)
    if 1 - level < LEAST_MISSED or _reach_of(others, spared, law) > _FINEST:
        return False
    return bool(_total(others, spared, law)[0].size * rows <= _LARGEST_WORK)


def share_holds(
    distance: np.ndarray,
    steps: Steps,
    scale: float,
    others: Noises,
    level: float,
    *,
    law: IntegerLaw,
) -> np.ndarray:
    """Tell where `|g Y - h T|` reaches a distance with a chance above `1 - level`.

    T is the sum of other noises than Y. The chance is `2 sum_k P(T = k) P(g Y >= d + h k)`. Of many
    integers k, some next to each other are taken for the one in their middle, and what that may
    move is taken off the distance.

    Parameters
    ----------
    distance
        The distances d.
    steps
        g and h, both at least 0.
    scale
        Scale of Y.
    others
        The noises in T.
    level
        Confidence level.
    law
        That of Y and of the noises in T.
    """
    missed = 1 - level
    places, chances, moved = _total(others, SPARED * missed, law)
    g, h = (np.asarray(step)[..., None] for step in steps)
    near = (np.asarray(distance)[..., None] - h * moved) * (1 - ROUNDING)
    with np.errstate(all="ignore"):
        least = np.ceil((near + h * places) / np.maximum(g, _NO_STEP) - 1e-9)
        tails = 2 * law.at_least(scale, least) @ chances
    holds: np.ndarray = (near[..., 0] <= 0) | (tails + 2 * SPARED * missed > missed)
    return holds


def _reach_of(noises: Noises, spared: float, law: IntegerLaw) -> int:
    """Return how far the sum of integer noises is looked at."""
    if not noises.number:
        return 0
    return math.ceil(_farthest([(1.0, *noises)], spared, law))


@lru_cache(256)
def _total(noises: Noises, spared: float, law: IntegerLaw) -> tuple[np.ndarray, np.ndarray, float]:
    """Return places and chances of the sum of integer noises, and how far it is off."""
    if not noises.number:
        return np.zeros(1), np.ones(1), 0.0
    most = _reach_of(noises, spared, law)
    size = 1 << (2 * most + 1).bit_length()
    angles = 2 * math.pi / size * np.arange(size // 2 + 1)
    chance = np.fft.irfft(law.characteristic(noises.scale, angles) ** noises.number, size)
    # odd: as many on both sides of the middle
    joined = 2 * (most // (2 * _PLACES)) + 1
    ends = np.arange(-(most // joined) - 1, most // joined + 2)
    offsets = np.arange(joined) - joined // 2
    chances = np.maximum(chance[(ends[:, None] * joined + offsets) % size], 0).sum(axis=1)
    return ends * float(joined), chances, float(joined // 2)


class ShareSteps(NamedTuple):
    """Shares `a x_i - b sum_j x_j` of totals, whose cells have one noise each.

    Parameters
    ----------
    scale
        Scale of the noise.
    steps
        What an integer of x_i moves, and one of another cell; one of each per row.
    cells
        How many cells the total of each row has.
    """

    scale: float
    steps: Steps
    cells: np.ndarray

    @classmethod
    def of(cls, noise: NoiseSum, law: Law) -> "ShareSteps | None":
        """Tell which shares a sum is of; `None`: of none, or of cells with several noises."""
        shares = noise.shares
        if shares is None or noise.drawn_together() or set(shares.loadings) & set(shares.common):
            return None
        if len(shares.loadings) != 1 or len(noise.loadings) != 1:
            return None
        ((block, loading),) = shares.loadings.items()
        deviation = law.standard_deviation(noise.scales[block])
        # of so large an epsilon that floats know no noise
        if deviation == 0:
            return None
        step = loading / deviation
        steps = step * np.abs(shares.a - shares.b), step * shares.b
        return cls(noise.scales[block], steps, shares.cells)

    def hold(self, distance: np.ndarray, holds: "ShareTest") -> np.ndarray:
        """Tell where shares may be that far off, by the number of cells."""
        held = np.zeros(np.shape(distance), bool)
        mine, theirs = self.steps
        for cells in np.unique(self.cells).tolist():
            these = self.cells == cells
            both = np.asarray(mine)[these], np.asarray(theirs)[these]
            held[these] = holds(distance[these], both, self.scale, Noises(self.scale, cells - 1))
        return held

    def are_quick(self, level: float, law: IntegerLaw) -> bool:
        """Whether all of them are told in no long time."""
        numbers, rows = np.unique(self.cells, return_counts=True)
        others = [Noises(self.scale, int(number) - 1) for number in numbers]
        return all(map(is_share_quick, others, rows, repeat(level), repeat(law)))


ShareTest: TypeAlias = Callable[[np.ndarray, Steps, float, Noises], np.ndarray]
"""Tells where `|g Y - h T|` may be that far off; see `share_holds`."""
