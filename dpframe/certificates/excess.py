"""More than any certificate holds: refused before it is read, as that would take long."""

from collections.abc import Iterable, Iterator
from itertools import islice

_MOST_VALUES = 2_000_000
_DEEPEST = 50  # certificates have ten levels
_LONGEST = 1 << 22  # characters of a text, but for numbers of rows
_NUMBERS = "float64"  # field of `Packed`
_SCALARS = frozenset({str, int, float, bool, type(None)})
_MANY = f"it holds more than {_MOST_VALUES:,} values"
_LARGE = 400  # values; a certificate of one column has a third of it


class ExcessError(ValueError):
    """JSON holds more than it may."""


def check_excess(found: object) -> None:
    """Refuse plain JSON with more in it than certificates hold, however it is made.

    Raises
    ------
    ExcessError
        If it has too many values or levels, or too long a text.
    """
    count, level = 0, [found]
    for _ in range(_DEEPEST):
        count += len(level)
        if count > _MOST_VALUES:
            raise ExcessError(_MANY)
        if _is_long(level):
            raise ExcessError(f"a text in it has more than {_LONGEST:,} characters")
        level = list(islice(_below(level), _MOST_VALUES + 1))
    if level:
        raise ExcessError("it is nested too deeply")


def check_json(text: bytes) -> None:
    """Refuse JSON that would take much memory, before it is parsed.

    Raises
    ------
    ExcessError
        If it has too many values.
    """
    if sum(map(text.count, (b",", b"[", b"{"))) > _MOST_VALUES:  # in texts, too
        raise ExcessError(_MANY)


def is_large(found: object) -> bool:
    """Whether plain JSON holds so much that its faults would be very many."""
    count, level = 0, [found]
    while level:
        count += len(level)
        if count > _LARGE or _is_long(level):
            return True
        level = list(islice(_below(level), _LARGE + 1))
    return False


def _is_long(level: Iterable[object]) -> bool:
    return any(type(value) is str and len(value) > _LONGEST for value in level)


def _below(level: Iterable[object]) -> Iterator[object]:
    """Go through what values hold, but for numbers of rows: these are read at once."""
    for value in level:
        if type(value) in _SCALARS:
            continue
        if isinstance(value, list | tuple):
            yield from value
        elif isinstance(value, dict) and not (
            value.keys() == {_NUMBERS} and isinstance(value[_NUMBERS], str)
        ):
            yield from value
            yield from value.values()
