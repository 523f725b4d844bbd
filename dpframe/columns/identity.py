"""Keys of Python objects: two objects are one privacy unit if their keys are equal in a dict.

A key depends on its own object alone. It hashes and compares without raising, and no object has a
say in whether two others are one unit. Objects of built-in types, NumPy's numbers and pandas' times
are equal as in a dict: 1, 1.0 and True are one unit. Objects of a class that defines its own `==`
or `hash` equal those of this class only, by that definition; where it raises, they differ.
"""

import datetime
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from dpframe.columns.contained import contained
from dpframe.columns.values import is_absent

__all__ = ["KNOWN", "OWN_KEYS", "key_of", "known_base"]

OWN_KEYS = frozenset(map(id, (str, bytes, int, bool, type(None))))
"""Identities of the types whose objects are their own keys: some types cannot be hashed."""

KNOWN: tuple[type, ...] = (
    *(str, bytes, np.str_, np.bytes_, int, float, complex, Decimal, Fraction),
    *(np.dtype(code).type for code in "?bhilqBHILQefdgFDG"),
    *(pd.Timestamp, datetime.datetime, datetime.date, np.datetime64),
    *(pd.Timedelta, datetime.timedelta, np.timedelta64, tuple, UUID),
)
"""Classes whose equality is known: objects of several of them may be equal."""

_BY_IDENTITY = {id(base): base for base in KNOWN}


def known_base(kind: Any) -> type | None:
    """Find the known class that objects of a class compare and hash like, if there is one."""
    found: type | None = _BY_IDENTITY.get(id(kind))
    return found or contained(_inherited_base, kind, otherwise=None)


def _inherited_base(kind: Any) -> type | None:
    """Find the known class that a class takes `==` and `hash` from."""
    for base in KNOWN:
        if issubclass(kind, base):
            if kind.__eq__ is base.__eq__ and kind.__hash__ is base.__hash__:
                return base
    return None


def key_of(value: object) -> Hashable:
    """Return the key of an object; `None` if it is missing or cannot be hashed.

    Examples
    --------
    >>> key_of(np.int64(7)) == key_of(7.0), key_of([7]) is None
    (True, True)
    """
    if id(type(value)) in OWN_KEYS:
        return value
    key: Hashable = contained(_key_of, value, otherwise=None)
    return key


def _key_of(value: Any) -> Hashable:
    """Return the key of an object; raise if it cannot be hashed."""
    kind = type(value)
    if id(kind) in OWN_KEYS:
        return value  # type: ignore[no-any-return]
    if is_absent(value):
        return None
    base = known_base(kind)
    plain = _PLAIN.get(id(base))
    if plain is not None:
        found: Hashable = plain(value)
        return found
    return _Key(value, None if base is not None else kind)


def _key_of_tuple(value: tuple[object, ...]) -> Hashable:
    """Return a tuple of keys; parts that are missing are alike, as they are elsewhere."""
    parts = tuple.__iter__(value)
    if type(value) is tuple and OWN_KEYS.issuperset(map(id, map(type, parts))):
        return value
    return tuple(map(_key_of, tuple.__iter__(value)))


# NumPy compares a number with a Decimal, but raises beside a Fraction: as Python's all are equal.
_PLAIN: dict[int, Callable[[Any], Hashable]] = {
    **{id(np.dtype(code).type): np.dtype(code).type.item for code in "?bhilqBHILQefdFD"},
    **{id(kind): str.__str__ for kind in (str, np.str_)},
    **{id(kind): lambda value: b"".join([value]) for kind in (bytes, np.bytes_)},
    id(int): int.__index__,
    id(float): float.__float__,
    id(tuple): _key_of_tuple,
}
"""How objects of some classes become plain ones of Python that are equal to them."""


class _Key:
    """An object that may raise when it is asked for its hash, or whether it equals another.

    Parameters
    ----------
    value
        The object.
    kind
        Its class, if it can only equal objects of that; `None` where its equality is known.
    """

    __slots__ = ("_hash", "_kind", "_value")

    def __init__(self, value: Any, kind: type | None) -> None:
        self._hash = hash(value)
        self._value = value
        self._kind = kind

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        kind, value = (other._kind, other._value) if type(other) is _Key else (None, other)
        return self._kind is kind and contained(_equal, self._value, value, otherwise=False)


def _equal(value: Any, other: Any) -> bool:
    return bool(value is other or value == other)
