"""The law of selected quantiles by enumeration, in rational arithmetic: not the package's way."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from dpframe.privacy.selection import Pick

Table = tuple[int, ...]
Law = dict[tuple[int, ...], Fraction]


def flipped(utilities: Sequence[int], q: Fraction) -> list[Fraction]:
    """Permute-and-flip by its definition: in random order, each is taken with q^(largest - u).

    The place of each in the order is a number x, uniform in [0, 1], and another one comes before it
    and is taken with the probability x p: a polynomial in x is integrated.
    """
    p = [q ** (max(utilities) - u) for u in utilities]
    law = []
    for k, own in enumerate(p):
        polynomial = [Fraction(1)]
        for other in p[:k] + p[k + 1 :]:
            shifted = [Fraction(0), *(-other * c for c in polynomial)]
            polynomial = [a + b for a, b in zip([*polynomial, Fraction(0)], shifted, strict=True)]
        law.append(own * sum(c / (power + 1) for power, c in enumerate(polynomial)))
    return law


def utilities(rows: Sequence[int], a: int, b: int) -> list[int]:
    """Minus how far the a/b quantile is from being in each bin, in b-th parts of a row."""
    total = sum(rows)
    return [
        -max(b * sum(rows[:k]) - a * total, a * total - b * sum(rows[: k + 1]), 0)
        for k in range(len(rows))
    ]


def dealt(table: Table, parts: Sequence[int]) -> list[int]:
    """Deal the rows of each bin out to its parts, one by one."""
    out = []
    for rows, size in zip(table, parts, strict=True):
        own = [0] * size
        for row in range(rows):
            own[row % size] += 1
        out += own
    return out


def law_of(table: Table, steps: tuple[Pick, ...], scale: int, w: Fraction, parts: Table) -> Law:
    """Return the law of the bins selected, where a utility of D weighs `w^(scale / 2)`."""
    items = dealt(table, parts)
    bins = [k for k, size in enumerate(parts) for _ in range(size)]
    laws: dict[tuple[tuple[int, int], ...], Fraction] = {(): Fraction(1)}
    for step in steps:
        q = w ** (scale // (2 * step.most_moved))
        grown: dict[tuple[tuple[int, int], ...], Fraction] = {}
        for taken, probability in laws.items():
            known = dict(taken)
            low = known.get(step.low, 0)
            high = max(known.get(step.high, len(items)), low + 1)
            chosen = flipped(utilities(items[low:high], step.a, step.b), q)
            for k, each in enumerate(chosen):
                grown[*taken, (step.at, low + k)] = probability * each
        laws = grown
    seen: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for taken, probability in laws.items():
        seen[tuple(bins[item] for _, item in sorted(taken))] += probability
    return dict(seen)


def tables(bins: int, most: int) -> Iterator[Table]:
    """All tables with at most so many rows."""
    return (t for t in itertools.product(range(most + 1), repeat=bins) if sum(t) <= most)


class Ratios:
    """Largest ratios of probabilities between tables of one group, both ways.

    Parameters
    ----------
    steps, scale, w, parts
        As in `law_of`.
    """

    def __init__(self, steps: tuple[Pick, ...], scale: int, w: Fraction, parts: Table) -> None:
        self.law = cache(lambda table: law_of(table, steps, scale, w, parts))
        self.between = cache(self._between)

    def _between(self, one: Table, other: Table) -> Fraction:
        p, q = self.law(one), self.law(other)
        return max(p[outcome] / q[outcome] for outcome in p)


def added(one: Table, other: Table) -> Table:
    """Add up two tables."""
    return tuple(np.add(one, other).tolist())
