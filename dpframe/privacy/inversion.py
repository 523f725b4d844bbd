"""Half-widths for sums of noises from their characteristic functions, with all errors taken off.

Discrete Laplace noises, and staircase noises
---------------------------------------------
Let `S = sum_j c_j Y_j`, and V independent of it, a sum of K uniform variables on
`[-d / (2 K), d / (2 K)]`. The characteristic function f of S + V is a product in closed form that
falls as `|u|^-K`. With a period P, the trapezoid rule of inversion

    F(t) = 2 t / P + sum_(m <= M) 2 / (pi m) sin(2 pi m t / P) f(2 pi m / P)

is the chance that S + V is within t of a multiple of P, but for the terms beyond M. So it exceeds
`P(|S + V| <= t)` by at most `P(|S + V| > P - t)`, which Chernoff's inequality bounds, and what is
cut off is at most `2 / (pi K) (2 K / d)^K (2 pi M / P)^-K`. Both are taken off: a half-width is
never short of its level. Where `|S| > t + d / 2`, also `|S + V| > t`, so it is t + d / 2. Where all
steps are multiples of one, the half-width is lowered to a multiple of it, which S cannot pass.

Noise in a box
--------------
Given R of density `r^D e^-r / D!`, a sum of coordinates is `R sum_j a_j U_j`, the U_j uniform on
[-1, 1]. The tail `g(x) = P(|sum_j a_j U_j| > x)` is taken by the same formula, without a V, at some
nodes. It is convex, as the density falls on both sides: a chord is never below. `E g(t / R)` of a
chord is a sum of two tails of Gamma laws.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

_SMOOTHED = 10  # K, of uniform variables in V
_PARTS = 1000  # d is so small a part of the period
_SPARED = 5e-4  # each of the two errors may take such a part of what may miss
_LEAST_MISSED = 1e-9  # less is not told from the rounding of floats
_ROUNDING = 1e-12
_MOST_TERMS = 2000  # different ones; more of them take too long
_TILTS = np.arange(1, 64) / 64
_DIVISORS = range(1, 13)
_FINEST = 1e6  # of a finer lattice, the next point is no nearer than rounding
_HALVINGS = 24
_LEAST_TAIL = 1e-300  # in place of 0
_VAST = 1e100
_LONGEST = 20_000


class Transforms(NamedTuple):
    """What is known of integer noise Y of a scale, in closed form.

    Parameters
    ----------
    characteristic
        `E cos(t Y)` of a scale at some t.
    log_moment
        `log E exp(h Y)` of a scale at some h from 0 to below the largest tilt.
    largest_tilt
        Where that ends, by scale.
    """

    characteristic: Callable[[float, np.ndarray], np.ndarray]
    log_moment: Callable[[float, np.ndarray], np.ndarray]
    largest_tilt: Callable[[float], float]


def _over_sinh(half: float) -> float:
    """Return `1 / sinh(h)`, without overflow."""
    return 2 * math.exp(-half) / -math.expm1(-2 * half)


def _laplace_characteristic(scale: float, t: np.ndarray) -> np.ndarray:
    """Return `1 / (1 + (sin(t / 2) / sinh(h))^2)`, with `h = 1 / (2 scale)`."""
    return np.asarray(1 / (1 + np.square(np.sin(t / 2) * _over_sinh(1 / (2 * scale)))))


def _laplace_log_moment(scale: float, tilt: np.ndarray) -> np.ndarray:
    """Return `-log(1 - (sinh(t / 2) / sinh(h))^2)`, without overflow."""
    half, tilts = 1 / (2 * scale), tilt / 2
    ratio = np.exp(tilts - half) * np.expm1(-2 * tilts) / math.expm1(-2 * half)
    return np.asarray(-np.log1p(-(ratio**2)))


LAPLACE_TRANSFORMS = Transforms(
    _laplace_characteristic, _laplace_log_moment, lambda scale: 1 / scale
)
"""Of discrete Laplace noise."""


def integer_half_width(
    steps: np.ndarray, scales: np.ndarray, level: float, known: Transforms = LAPLACE_TRANSFORMS
) -> float | None:
    """Return a half-width that `sum_j c_j Y_j` keeps with the level, or hardly more.

    Parameters
    ----------
    steps
        The c_j.
    scales
        Scales of the noises Y_j, above 0.
    level
        Confidence level.
    known
        What is known of these.

    Returns
    -------
    float or None
        `None` where it takes too long, for more than 2,000 different terms; where the level is next
        to 1, or a step infinite.

    References
    ----------
    J. Abate and W. Whitt, "The Fourier-series method for inverting transforms of probability
    distributions", Queueing Systems 10, 1992.

    Examples
    --------
    >>> integer_half_width(np.ones(24), np.ones(24), 0.95)
    13.0
    """
    moving = np.stack([np.abs(steps), scales])[:, np.abs(steps) > 0]
    if not moving.size:
        return 0.0
    unit = float(moving[0].max())
    different, times = np.unique(moving[0] + 1j * moving[1], return_counts=True)
    if len(times) > _MOST_TERMS or 1 - level < _LEAST_MISSED or not math.isfinite(unit):
        return None
    terms = different.real / unit, different.imag, times
    with np.errstate(all="ignore"):  # of noise that is nearly always 0
        return _half_width(*(tuple(part.tolist()) for part in terms), level, known) * unit


@lru_cache(1024)
def _half_width(
    steps: tuple[float, ...],
    scales: tuple[float, ...],
    times: tuple[int, ...],
    level: float,
    known: Transforms,
) -> float:
    terms = list(zip(steps, scales, times, strict=True))
    missed = 1 - level
    spared = _SPARED * missed
    most = _farthest(terms, missed / 2, known)
    smooth = most / _PARTS
    period = (most + _farthest(terms, spared, known)) * (1 + 2 / _PARTS)
    last = math.ceil(
        period / smooth * _SMOOTHED / math.pi * (2 / (math.pi * _SMOOTHED * spared)) ** 0.1
    )
    at = 2 * math.pi / period * np.arange(1, last + 1)
    found = np.sinc(at * smooth / (2 * math.pi * _SMOOTHED)) ** _SMOOTHED
    found *= 2 / (math.pi * np.arange(1, last + 1))
    for step, scale, n in terms:
        found *= known.characteristic(scale, at * step) ** n
    heard = np.abs(found) > _ROUNDING / last / 10  # the others together are less than a tenth
    at, found = at[heard], found[heard]
    needed = level + 2 * spared + _ROUNDING

    def excess(t: float) -> float:
        return needed - 2 * t / period - float((found * np.sin(at * t)).sum())

    return _on_lattice(_narrow(excess, most + smooth, needed) + smooth / 2, np.array(steps))


def _farthest(terms: Sequence[tuple[float, float, int]], missed: float, known: Transforms) -> float:
    """Return a t with `P(|S| > t) <= missed`, by Chernoff's inequality.

    Terms of S are a step, a scale, and how many there are.
    """
    tilt = _TILTS * min(known.largest_tilt(scale) / step for step, scale, _ in terms)
    exponents = sum(n * known.log_moment(scale, step * tilt) for step, scale, n in terms)
    ends: np.ndarray = (math.log(2 / missed) + exponents) / tilt
    return float(ends.min())


def _on_lattice(width: float, steps: np.ndarray) -> float:
    """Lower a half-width to a multiple of what all steps are multiples of, if there is that."""
    least = float(steps.min())
    for divisor in _DIVISORS:
        parts = steps / least * divisor
        if (np.abs(parts - np.rint(parts)) <= _ROUNDING * parts).all() and parts.max() < _FINEST:
            # an end that a rounding lowers is none of the lattice
            return math.floor(width / least * divisor * (1 + _ROUNDING)) * least / divisor
    return width


_NODES = 193


@lru_cache(1024)
def box_half_width(parts: tuple[float, ...], members: int, level: float) -> float | None:
    """Return a half-width for `sum_j a_j z_j` over some of D >= 2 coordinates of a box, scale 1.

    Parameters
    ----------
    parts
        The a_j, above 0.
    members
        How many coordinates are drawn together, D.
    level
        Confidence level.

    Returns
    -------
    float or None
        `None` where it takes too long: parts are very unlike, or the level is next to 1.

    Examples
    --------
    >>> round(box_half_width((1.0, 1.0, 1.0), 4, 0.95), 2)
    11.34
    """
    from scipy import special  # slow to import, and not always needed

    missed = 1 - level
    if missed < _LEAST_MISSED:
        return None
    largest = max(parts)
    a = np.sort(parts)[::-1] / largest
    spared = _SPARED * missed
    # E e^(b U) = sinh(b) / b is at most e^(b^2 / 6), as of a normal variable of the same variance
    far = min(float(a.sum()), math.sqrt(2 / 3 * (a @ a) * math.log(2 / spared)))
    period = 2 * far
    last = _cut(period / (2 * math.pi * a), spared)
    if last is None:
        return None
    x = far * np.linspace(0, 1, _NODES)
    tails = np.minimum(1 - _within(x, a, period, last) + 2 * spared + _ROUNDING, 1)
    tails[0] = 1.0
    slopes = np.diff(tails) / np.diff(x)
    starts = tails[:-1] - slopes * x[:-1]

    logs = special.gammaln(members + 1)

    def excess(t: float) -> float:  # the logarithm of a tail is nearly a line
        with np.errstate(all="ignore"):
            ends = t / x
            term = np.exp(members * np.log(ends) - ends - logs)
        below = special.gammainc(members, ends)
        below_next = below - np.where(ends < _VAST, term, 0.0)  # of members + 1
        whole, once = -np.diff(below_next), -np.diff(below) * t / members
        tail = float(starts @ whole + slopes @ once + tails[-1] * below_next[-1])
        return math.log(max(tail, _LEAST_TAIL) / missed)

    most = far * (members + 60 + 12 * math.sqrt(members))
    return _narrow(excess, most, -math.log(missed)) * largest


def _narrow(excess: Callable[[float], float], most: float, at_0: float) -> float:
    """Return the end of the first of 2**24 parts of `most` where what falls is at most 0.

    Where a line through both ends is 0 is tried next; an end that stays twice counts half.
    """
    low, high, above, below, side = 0, 1 << _HALVINGS, at_0, excess(most), 0
    while high - low > 1:
        part = above / (above - below)
        k = min(max(low + round(part * (high - low)), low + 1), high - 1)
        found = excess(most * k / (1 << _HALVINGS))
        last, side = side, 1 if found > 0 else -1
        if side > 0:
            low, above, below = k, found, below / (2 if last == side else 1)
        else:
            high, below, above = k, found, above / (2 if last == side else 1)
    return most * high / (1 << _HALVINGS)


def _cut(ratios: np.ndarray, spared: float) -> int | None:
    """Return M such that `sum_(m > M) 2 / (pi m) prod_j min(1, r_j / m)` is spared, rising r_j."""
    k = np.arange(1, len(ratios) + 1)
    logs = (np.cumsum(np.log(ratios)) + np.log(2 / (math.pi * k * spared))) / k
    last = math.ceil(math.exp(min(float(logs.min()), 50.0)))
    return last if last <= _LONGEST else None


def _within(x: np.ndarray, a: np.ndarray, period: float, last: int) -> np.ndarray:
    """Return the sum over m <= M for `P(|sum_j a_j U_j| <= x)`."""
    m = np.arange(1, last + 1)
    found = 2 / (math.pi * m)
    for part in a:
        found = found * np.sinc(2 * m * part / period)
    heard = np.abs(found) > _ROUNDING / last
    at = 2 * math.pi * m[heard] / period
    sums: np.ndarray = 2 * x / period + np.sin(np.outer(x, at)) @ found[heard]
    return sums


_PLACES = 101  # of a total of integers, to either side of 0
_LARGEST_WORK = 400_000


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


def share_holds(
    distance: np.ndarray,
    steps: tuple[np.ndarray, np.ndarray],
    others: Noises,
    tail: Callable[[np.ndarray], np.ndarray],
    level: float,
    *,
    known: Transforms = LAPLACE_TRANSFORMS,
) -> np.ndarray | None:
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
    others
        The noises in T.
    tail
        `P(Y >= m)` at whole m, in floats.
    level
        Confidence level.
    known
        What is known of the noises in T.

    Returns
    -------
    numpy.ndarray or None
        `None` where it takes too long, or the level is next to 1.
    """
    missed = 1 - level
    law = _total(others, _SPARED * missed, known) if missed >= _LEAST_MISSED else None
    if law is None or law[0].size * distance.size > _LARGEST_WORK:
        return None
    places, chances, moved = law
    g, h = (np.asarray(step)[..., None] for step in steps)
    near = (np.asarray(distance)[..., None] - h * moved) * (1 - _ROUNDING)
    with np.errstate(all="ignore"):
        least = np.ceil((near + h * places) / np.maximum(g, _NO_STEP) - 1e-9)
        tails = 2 * tail(least) @ chances
    holds: np.ndarray = (near[..., 0] <= 0) | (tails + 2 * _SPARED * missed > missed)
    return holds


_NO_STEP = 1e-200


@lru_cache(256)
def _total(
    noises: Noises, spared: float, known: Transforms
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return places and chances of the sum of integer noises, and how far it is off."""
    if not noises.number:
        return np.zeros(1), np.ones(1), 0.0
    most = math.ceil(_farthest([(1.0, *noises)], spared, known))
    if most > _FINEST:
        return None
    size = 1 << (2 * most + 1).bit_length()
    angles = 2 * math.pi / size * np.arange(size // 2 + 1)
    law = np.fft.irfft(known.characteristic(noises.scale, angles) ** noises.number, size)
    each = 2 * (most // (2 * _PLACES)) + 1  # odd: as many on both sides of the middle
    ends = np.arange(-(most // each) - 1, most // each + 2)
    offsets = np.arange(each) - each // 2
    chances = np.maximum(law[(ends[:, None] * each + offsets) % size], 0).sum(axis=1)
    return ends * float(each), chances, float(each // 2)


SHARES_AT = np.linspace(0, 1, 41) ** 2
"""Weights u of a total where half-widths are tabled; they are convex in u, as a norm."""


@lru_cache(64)
def box_shares(
    cells: int, own: tuple[float, ...], common: tuple[float, ...], members: int, level: float
) -> np.ndarray | None:
    """Return half-widths for `(1 - u) x_i - u sum_j x_j` of cells of one box, at some u.

    Parameters
    ----------
    cells
        Number of cells of the total.
    own, common
        What the coordinates of each cell add to it, and those that all cells share, at scale 1.
    members
        How many coordinates are drawn together.
    level
        Confidence level.
    """
    widths = []
    for u in SHARES_AT.tolist():
        alone = [abs(1 - 2 * u) * part for part in own]
        alone += [abs(1 - u - cells * u) * part for part in common]
        beside = [u * part for part in own for _ in range(cells - 1)]
        parts = sorted(part for part in (*alone, *beside) if part > 0)
        scale = parts[-1]
        width = box_half_width(tuple(part / scale for part in parts), members, level)
        if width is None:
            return None
        widths.append(width * scale)
    return np.array(widths)
