"""What was made of an object, to be used again as long as that object lives."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_Source = TypeVar("_Source")
_Made = TypeVar("_Made")


class Remembered(Generic[_Source, _Made]):
    """Values made of objects, by their identity: of the last few that are still there.

    A value must not refer to its object, which could not go otherwise. Threads may share it: at
    worst, a value is made twice.

    Parameters
    ----------
    most
        How many values are kept.

    Examples
    --------
    >>> lengths = Remembered(2)
    >>> some = {1, 2, 3}
    >>> lengths.of(some, lambda: len(some)), lengths.of(some, lambda: -1), len(lengths)
    (3, 3, 1)
    >>> del some
    >>> len(lengths)
    0
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, tuple[weakref.ref[_Source], _Made]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, source: _Source, make: Callable[[], _Made]) -> _Made:
        """Return what was made of an object before, or make it."""
        name = id(source)
        known = self._known.get(name)
        if known is not None and known[0]() is source:
            return known[1]
        made = make()
        self._known.pop(name, None)  # of an object that has gone: the new one is the last
        self._known[name] = weakref.ref(source, lambda gone: self._forget(name, gone)), made
        for old in list(self._known)[: -self._most]:
            self._known.pop(old, None)
        return made

    def _forget(self, name: int, gone: "weakref.ref[_Source]") -> None:
        """Drop what was made of an object, unless another one has its place by now."""
        known = self._known.get(name)
        if known is not None and known[0] is gone:
            self._known.pop(name, None)  # another thread may have dropped it just now
