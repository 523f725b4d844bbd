"""What it costs that measured integers move, from the formulas of the laws alone.

Nothing here asks a design how far it moves: integers, and the noise that is drawn, are all.
"""

import math

import numpy as np
from support.plans import noises_of


def costs_of(plan, units, pairs):
    """Return what pairs of frames cost, in the law's own count: one array for each measurement.

    Parameters
    ----------
    plan
        The plan, for the noise that is drawn.
    units
        What was measured of every frame: by measurement, its blocks.
    pairs
        Positions of frames, one array for each side.
    """
    return [
        _costs(noise.law.name, noise, _moved([unit[at] for unit in units], pairs))
        for at, noise in enumerate(noises_of(plan))
    ]


def _moved(units, pairs):
    """How far the integers of every block are apart, by pair."""
    one, other = pairs
    return [_apart(np.stack(block), one, other) for block in zip(*units, strict=True)]


def _apart(integers, one, other):
    """How far integers are apart, which wrap at 2**64."""
    with np.errstate(over="ignore"):
        return np.abs(integers[one] - integers[other]).astype(float)


def _costs(law, noise, moved):
    """Cost of each pair, of all blocks of one measurement."""
    profile = 1.0 if noise.profile is None else noise.profile
    lengths = [
        _lengths(law, block, scale * profile)
        for block, scale in zip(moved, noise.scales, strict=True)
    ]
    if law != "box" or noise.profile is not None:
        return sum(block.sum(axis=1) for block in lengths)
    total = 0.0
    for at, group in enumerate(noise.groups):
        own = [lengths[k] for k in group]
        if noise.over_cells and at == 0:
            total = total + np.concatenate(own, axis=1).max(axis=1)
        else:
            total = total + np.max(own, axis=0).sum(axis=1)
    return total


def _lengths(law, moved, scales):
    """Cost of each integer, were it alone; one that moves without noise costs all there is."""
    scales = np.broadcast_to(np.asarray(scales, float), moved.shape[1:])
    bare = scales == 0
    noise = np.where(bare, 1.0, scales)
    match law:
        case "gaussian":
            cost = (moved / noise) ** 2
        case "laplace" | "box":
            cost = moved / noise
        case "staircase":
            period = np.floor(noise)
            cost = np.ceil(moved / np.maximum(period, 1)) * -np.log(noise - period, where=~bare)
    return np.where(bare & (moved > 0), math.inf, np.where(bare, 0.0, cost))


def charged_of(loss):
    """What a loss charges, in the count of its law."""
    return float(loss.mu_squared or loss.epsilon)


def is_within(spend, loss, delta):
    """Whether what is charged is no more than was asked for, by the formulas of the definitions."""
    amount, mu = float(spend.amount), math.sqrt(loss.mu_squared)
    match spend.kind:
        case "epsilon" if mu:
            above = _normal(mu / 2 - amount / mu)
            return above - math.exp(amount) * _normal(-mu / 2 - amount / mu) <= delta * (1 + 1e-9)
        case "epsilon":
            return float(loss.epsilon) <= amount
        case "mu" if mu:
            return mu <= amount * (1 + 1e-12)
        case "mu":  # the odds of a normal test of that mu
            half = _normal(-amount / 2)
            return math.exp(float(loss.epsilon)) <= (1 - half) / half * (1 + 1e-9)
        case "rho" if mu:
            return mu**2 / 2 <= amount * (1 + 1e-12)
    return True


def _normal(x):
    return math.erfc(-x / math.sqrt(2)) / 2
