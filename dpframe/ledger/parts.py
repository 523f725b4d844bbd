"""Budgets by part: which values are parts, and what each part of the data has spent.

A part is a number or a text. What is spent of a part is what was charged to it alone, beside what
was charged to all parts. All parts together count as filled as the fullest is, pot by pot: what
fits beside the fullest fits beside every part.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np

from dpframe.arguments import check_text
from dpframe.errors import DeclarationError
from dpframe.privacy.pots import Pots

Part: TypeAlias = str
"""A part as a ledger keeps it: a text, or the shortest text of a number."""

_BUCKETS = 256
_EXACT = 2**53  # from here on, floats no longer tell all integers apart


def check_part(given: object) -> Part:
    """Return the one form of a part: that of 47, 47.0 and "47" is the same.

    So frames of which one has numbers and another one texts spend one budget.

    Raises
    ------
    DeclarationError
        If it is neither a number nor a text.

    Examples
    --------
    >>> check_part(47.0), check_part("2024-03")
    ('47', '2024-03')
    """
    if isinstance(given, str):
        check_text("part", given)
        return str(given)
    if isinstance(given, bool | int | float | np.bool_ | np.integer | np.floating):
        number = float(given)
        if math.isfinite(number) and abs(number) < _EXACT:
            return repr(int(number) if number.is_integer() else number)
    rule = 'must be a text, or a finite number below 2**53, such as part="2024-03" or part=47'
    way = "Dates are parts as texts, in a column of texts."
    raise DeclarationError.about("part", rule, given, way)


def number_of(part: Part) -> float | None:
    """Return the number that a part is the form of, if it is one.

    Examples
    --------
    >>> number_of("47"), number_of("47.0"), number_of("2024-03")
    (47.0, None, None)
    """
    try:
        number = float(part)
        return number if check_part(number) == part else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Filled:
    """What was charged, to one part alone or to all.

    Parameters
    ----------
    pots
        The pots, filled by it.
    shares
        Sum of the shares among it.
    """

    pots: Pots
    shares: Fraction = Fraction(0)

    def beside(self, other: "Filled") -> "Filled":
        """Add what was charged elsewhere."""
        if other.pots.is_untouched and not other.shares:
            return self  # which may know what it has left
        return _beside(self, other)

    def fullest(self, other: "Filled") -> "Filled":
        """Return the larger of what is in each pot."""
        pots = self.pots.fullest(other.pots)
        return Filled(pots, max(self.shares, other.shares))


@lru_cache(maxsize=64)  # what is left is asked for several times while a release is planned
def _beside(filled: Filled, other: Filled) -> Filled:
    return Filled(filled.pots.beside(other.pots), filled.shares + other.shares)


class PartStates:
    """What was charged to each part alone; to change one of many parts takes no copy of all.

    Parameters
    ----------
    buckets
        States by part, in a fixed number of dicts.
    """

    __slots__ = ("_buckets",)

    def __init__(self, buckets: tuple[Mapping[Part, Filled], ...] = ({},) * _BUCKETS) -> None:
        self._buckets = buckets

    def __eq__(self, other: object) -> bool:
        """Compare what was charged."""
        return isinstance(other, PartStates) and self._buckets == other._buckets

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __iter__(self) -> Iterator[tuple[Part, Filled]]:
        """Give every part to which something was charged, and what."""
        for bucket in self._buckets:
            yield from bucket.items()

    def get(self, part: Part) -> Filled | None:
        """Return what was charged to a part alone."""
        return self._buckets[hash(part) % _BUCKETS].get(part)

    def plus(self, changed: Mapping[Part, Filled]) -> "PartStates":
        """Replace what was charged to some parts."""
        buckets = list(self._buckets)
        by_bucket: dict[int, dict[Part, Filled]] = {}
        for part, filled in changed.items():
            by_bucket.setdefault(hash(part) % _BUCKETS, {})[part] = filled
        for number, own in by_bucket.items():
            buckets[number] = {**buckets[number], **own}
        return PartStates(tuple(buckets))


def fullest(start: Filled, states: Iterable[Filled]) -> Filled:
    """Return the larger of what is in each pot, of several states."""
    return reduce(Filled.fullest, states, start)
