"""Budgets by part: which values are parts, and what each part of the data has spent.

A part is a number or a text. What is spent of a part is what was charged to it alone, beside what
was charged to all parts. What is charged to all parts must fit beside each: it does if it fits
beside the fullest ones, of which there are few.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from dpframe.arguments import check_text, is_unicode
from dpframe.errors import DeclarationError
from dpframe.privacy.pots import Pots

Part: TypeAlias = str
"""A part as a ledger keeps it: a text, or the shortest text of a number."""

_BUCKETS = 256  # a new part copies one of them: 1 / 256 of all
_MOST_FULLEST = 16  # states none of which is fuller than another; of more, two count as one
_LONGEST = 200  # characters
_EXACT = 2**53  # from here on, floats no longer tell all integers apart


def check_part(value: object) -> Part:
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
    if isinstance(value, str):
        text = str.__str__(value)  # a class of texts may have words of its own
        check_text("part", text, _LONGEST)
        return text
    if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        number = _as_float(value)
        if math.isfinite(number) and abs(number) < _EXACT:
            return repr(int(number) if number.is_integer() else number)
    rule = 'must be a text, or a finite number below 2**53, such as part="2024-03" or part=47'
    remedy = "Dates are parts as texts, in a column of texts."
    raise DeclarationError.about("part", rule, value, remedy)


def _as_float(value: Any) -> float:
    """Read a number by itself, whatever its class makes of it; beyond floats, as infinite."""
    if isinstance(value, float):
        return float.__float__(value)
    try:
        return float(int.__index__(value) if isinstance(value, int) else value)
    except OverflowError:
        return math.inf


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


def is_text(value: object) -> bool:
    """Tell whether a value is a part that is no number."""
    return isinstance(value, str) and number_of(value) is None


@lru_cache(maxsize=2**16)  # a ledger that is read has each part many times
def may_be_part(text: str) -> bool:
    """Tell whether a ledger may have a text as a part; what is printed differs among Pythons."""
    return 0 < len(text) <= _LONGEST and is_unicode(text) and min(text) >= " "


class Filled(NamedTuple):
    """What counts against one part.

    Parameters
    ----------
    pots
        The pots, filled by what was charged to it alone, and to all parts.
    shares
        Sum of the shares of what was charged to it alone.
    common
        What was charged to all parts, as far as it is in the pots.
    """

    pots: Pots
    shares: Fraction
    common: Pots

    def with_common(self, common: Pots) -> "Filled":
        """Add what was charged to all parts since."""
        if common is self.common:
            return self
        return Filled(self.pots.shifted(self.common, common), self.shares, common)

    def is_fuller(self, other: "Filled") -> bool:
        """Whether what does not fit beside another one does not fit beside this one, either."""
        return self.shares >= other.shares and self.pots.is_fuller(other.pots)

    def fullest(self, other: "Filled") -> "Filled":
        """Return the larger of what is in each pot."""
        return Filled(self.pots.fullest(other.pots), max(self.shares, other.shares), self.common)


class PartStates:
    """What was charged to each part alone; to change one of many parts takes no copy of all.

    Parameters
    ----------
    buckets
        States by part, in a fixed number of dicts.
    """

    __slots__ = ("_buckets",)

    def __init__(self, buckets: tuple[dict[Part, Filled], ...] = ({},) * _BUCKETS) -> None:
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
        return self._buckets[_bucket_of(part)].get(part)

    def plus(self, changed: dict[Part, Filled]) -> "PartStates":
        """Replace what was charged to some parts."""
        buckets = list(self._buckets)
        by_bucket: dict[int, dict[Part, Filled]] = {}
        for part, filled in changed.items():
            by_bucket.setdefault(_bucket_of(part), {})[part] = filled
        for number, states in by_bucket.items():
            buckets[number] = buckets[number] | states
        return PartStates(tuple(buckets))


def _bucket_of(part: Part) -> int:
    """Place a part, in every process alike."""
    return crc32(part.encode(errors="surrogatepass")) % _BUCKETS


class Fullest:
    """The states of parts beside which least fits, looked for when they are asked for.

    Of other parts no pot is fuller than that of one of these.

    Parameters
    ----------
    before
        What is known of parts.
    changed
        Parts to which something was charged since.
    states
        The states, where they were looked for.
    """

    __slots__ = ("_before", "_changed", "_states")

    def __init__(
        self,
        before: "Fullest | None" = None,
        changed: Iterable[Part] = (),
        states: Sequence[Filled] = (),
    ) -> None:
        self._before, self._changed, self._states = before, tuple(changed), states

    def states(self, parts: PartStates, common: Pots) -> Sequence[Filled]:
        """Return the states, with what was charged to all parts."""
        before, changed = self._looked_for()
        states: Sequence[Filled] = [state.with_common(common) for state in before]
        charged = filter(None, map(parts.get, changed))
        for filled in {id(filled): filled for filled in charged}.values():
            states = _add_fullest(states, filled.with_common(common))
        # in this order, as others may read meanwhile: what is counted twice does no harm
        self._states, self._before, self._changed = states, None, ()
        return states

    def _looked_for(self) -> tuple[Sequence[Filled], set[Part]]:
        """Return the states that were found last, and the parts that changed since."""
        seen, changed = self, set(self._changed)
        while (before := seen._before) is not None:
            seen = before
            changed.update(seen._changed)
        return seen._states, changed

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy it however long ago the states were looked for."""
        states, changed = self._looked_for()
        return Fullest, (None, changed, states)


def _add_fullest(states: Sequence[Filled], filled: Filled) -> Sequence[Filled]:
    """Add a state unless one is fuller, and drop others; of very many, some count as one."""
    if any(state.is_fuller(filled) for state in states):
        return states
    kept = [state for state in states if not filled.is_fuller(state)]
    if len(kept) == _MOST_FULLEST:
        filled = filled.fullest(kept.pop())
    return (*kept, filled)
