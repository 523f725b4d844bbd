"""Published histograms of units of neighbors, by brute force: labels and counts together."""

import math
from functools import lru_cache
from itertools import chain, combinations, combinations_with_replacement
from itertools import product as choices

import mpmath
import numpy as np


def beyond(law, scale, m):
    """P(Y >= m), from the continuous Gaussian, or from the sum of the geometric series."""
    with mpmath.workdps(max(mpmath.mp.dps, 40)):
        if law.name == "gaussian":
            return mpmath.ncdf(-(mpmath.mpf(m) - 0.5) / mpmath.mpf(scale))
        q = mpmath.exp(-1 / mpmath.mpf(scale))
        if m >= 1:
            return (1 - q) / (1 + q) * q**m / (1 - q)
        return 1 - (1 - q) / (1 + q) * q ** (1 - m) / (1 - q)


def tails(law, scale, first, last):
    return np.array([float(beyond(law, scale, m)) for m in range(first, last + 1)])


def published(law, scale, least, units, top):
    """What is published of a label: hidden, T, T + 1, ..., and from top on; of none, nothing."""
    if units == 0:
        return np.concatenate([[1.0], np.zeros(top - least + 1)])
    at = tails(law, scale, least - units, top - units)
    return np.concatenate([[1 - at[0]], at[:-1] - at[1:], [at[-1]]])


def counted(law, scale, units, low, top):
    """A count with noise that is published whatever it is."""
    at = tails(law, scale, low - units, top - units)
    return np.concatenate([[1 - at[0]], at[:-1] - at[1:], [at[-1]]])


def product(parts):
    joint = np.ones(1)
    for part in parts:
        joint = np.multiply.outer(joint, part).ravel()
    return joint


def hockey_sticks(one, other, epsilons):
    """Sum of the excess of one law over exp(epsilon) times another, at several epsilons."""
    ps, qs = product(one), product(other)
    seen = (ps > 0) | (qs > 0)
    ps, qs = ps[seen], qs[seen]
    return np.array([np.maximum(ps - math.exp(epsilon) * qs, 0).sum() for epsilon in epsilons])


def worst_pair(case, epsilons, parts=1):
    """Largest hockey sticks over neighbors: what a unit adds to, and what its other takes from."""
    law, scale, least, labels, neighboring = case
    top = least + math.ceil((11 if law.norm == 1 else 5) * scale)
    near = least // parts
    sizes = [1, 2, near - 1, near, near + 1]
    pair = {
        n: tuple(published(law, scale, least, units * parts, top) for units in (n, n - 1))
        for n in sizes
    }
    ups = combinations_with_replacement(sizes, labels)
    replaced = neighboring == "replace"
    lower = chain(*(combinations_with_replacement(sizes, n) for n in range(labels + 1)))
    downs = list(lower) if replaced else [()]
    worst = np.zeros(len(epsilons))
    for up, down in ((up, down) for up in ups for down in downs):
        one = [pair[n][0] for n in up] + [pair[n][1] for n in down]
        other = [pair[n][1] for n in up] + [pair[n][0] for n in down]
        for first, second in ((one, other), (other, one)):
            worst = np.maximum(worst, hockey_sticks(first, second, epsilons))
    return worst


@lru_cache(100_000)
def _found(law, scale, least, weight):
    return float(beyond(law, scale, least - weight)) if weight else 0.0


def found_in_rounds(thresholds, units, before=frozenset()):
    """By what each round finds, how likely it is; `units` are sets of labels, most of one label."""
    if not thresholds:
        return {(): 1.0}
    own, *later = thresholds
    left = [sorted(set(labels) - before) for labels in units]
    kept = [list(combinations(labels, min(len(labels), own.labels))) for labels in left]
    labels = sorted(set(chain(*left)))
    law = {}
    for chosen in choices(*kept):
        chance = 1 / math.prod(map(len, kept))
        weights = dict.fromkeys(labels, 0)
        for some in chosen:
            for label in some:
                weights[label] += own.weights[len(some) - 1]
        odds = [_found(own.law, own.scale, own.least, weights[label]) for label in labels]
        for which in choices((False, True), repeat=len(labels)):
            found = frozenset(label for label, one in zip(labels, which, strict=True) if one)
            part = math.prod(p if one else 1 - p for p, one in zip(odds, which, strict=True))
            law[found] = law.get(found, 0.0) + chance * part
    return {
        (found, *rest): chance * more
        for found, chance in law.items()
        if chance
        for rest, more in found_in_rounds(later, units, before | found).items()
    }


def excess_of(one, other, epsilons):
    """Sum of the excess of one law over exp(epsilon) times another, of laws by outcome."""
    return np.array(
        [
            sum(
                max(chance - math.exp(epsilon) * other.get(seen, 0.0), 0)
                for seen, chance in one.items()
            )
            for epsilon in epsilons
        ]
    )


def charged(law, allowed, extra, epsilons):
    """Bound on the hockey sticks of what was charged, at several epsilons."""
    return np.array([min(extra + of_noise(law, allowed, epsilon), 1.0) for epsilon in epsilons])


def of_noise(law, allowed, epsilon):
    """Delta of noise that loses so much: a pure loss is at most that of randomized response."""
    with mpmath.workdps(30):
        if law.name == "gaussian":
            return of_mu(mpmath.sqrt(float(allowed)), epsilon)
        most = mpmath.exp(float(allowed))
        return float(max(most - mpmath.exp(epsilon), 0) / (1 + most))


def of_mu(mu, epsilon):
    """Balle and Wang (2018), Theorem 8, in high precision."""
    with mpmath.workdps(30):
        left = mpmath.ncdf(mu / 2 - epsilon / mu)
        return float(left - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))
