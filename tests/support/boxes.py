"""The exact law of rounded noise in a box, by quadrature over the radius, and tests of draws."""

import math
from functools import cache

import numpy as np
from scipy import stats
from support.randomness import SYSTEM

from dpframe.privacy.box import box_noise
from dpframe.privacy.laws import BOX

FEWEST = 50  # expected draws in each cell that counts alone
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def deviations(scales):
    """Return the standard deviations of the coordinates of a group."""
    return [BOX.deviation_among(scale, len(scales)) for scale in scales]


@cache
def chances(scales, last):
    """P(round(z) = k) of all k with |k_j| <= last_j, an array with an axis per coordinate.

    Given the radius r, of density r^D e^-r / D!, each z_j is uniform on [-s_j r, s_j r]. Between
    radii where such an interval begins or ends to reach a half, the integrand is smooth.
    """
    top = max((k + 1.5) / s for k, s in zip(last, scales, strict=True)) + 60
    cuts = {top, *np.arange(top)}
    for s in scales:
        cuts |= {x for x in (np.arange(math.ceil(top * s) + 1) + 0.5) / s if x < top}
    edges = np.array(sorted(cuts))
    half = np.diff(edges)[:, None] / 2
    r = (edges[:-1, None] + half * (1 + NODES)).ravel()
    weights = (half * WEIGHTS).ravel() * np.exp(-r) / math.factorial(len(scales))
    shares = []
    for s, most in zip(scales, last, strict=True):
        size = np.abs(np.arange(-most, most + 1))[:, None]
        inside = np.minimum(size + 0.5, s * r) - np.maximum(size - 0.5, -s * r)
        # the chance of k_j given r is this over r: r^D is divided out
        shares.append(np.clip(inside, 0, None) / (2 * s))
    found = weights
    for share in shares[:-1]:
        found = found[..., None, :] * share
    return found @ shares[-1].T


def cells_of(draws, last):
    """The number of the cell that each vector lies in, one more for those beyond."""
    number, beyond = np.zeros(draws[0].size, np.int64), np.zeros(draws[0].size, bool)
    for drawn, most in zip(draws, last, strict=True):
        number = number * (2 * most + 1) + drawn + most
        beyond |= np.abs(drawn) > most
    number[beyond] = math.prod(2 * most + 1 for most in last)
    return number


def joint_test(scales, last, draws, draw=box_noise):
    """P-value of Pearson's test of the joint law, rare cells counted together."""
    expected = chances(tuple(scales), tuple(last)).ravel()
    counts = np.zeros(expected.size + 1)
    for _ in range(0, draws, 10**6):
        drawn = draw(scales, min(draws, 10**6), SYSTEM)
        counts += np.bincount(cells_of(drawn, last), minlength=counts.size)
    expected = np.r_[expected, max(0.0, 1 - expected.sum())] * draws
    often = expected >= FEWEST
    often[-1] = False
    seen = np.r_[counts[often], counts[~often].sum()]
    wanted = np.r_[expected[often], expected[~often].sum()]
    return stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue


def neighbors_test(scales, draws, draw=box_noise):
    """P-value of the independence of the sizes of cells that lie side by side."""
    drawn = draw(scales, draws // 2 * 2, SYSTEM)
    size = np.max([np.abs(x) / s for x, s in zip(drawn, scales, strict=True)], axis=0)
    part = np.searchsorted(np.quantile(size, [0.25, 0.5, 0.75]), size)
    table = np.zeros((4, 4))
    np.add.at(table, (part[::2], part[1::2]), 1)
    return stats.chi2_contingency(table).pvalue
