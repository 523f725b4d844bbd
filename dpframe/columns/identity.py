"""Keys of Python objects: two objects are one privacy unit if their keys are equal in a dict.

A key depends on its own object alone. It hashes and compares without raising, and no object has a
say in whether two others are one unit. Objects of built-in types, NumPy's numbers and pandas' times
are equal as in a dict: 1, 1.0 and True are one unit. The key of a number is its text, so that 7 and
"7" are one unit as well: readers of text files make either of a cell, by what is in others. Texts
that differ are never one. Objects of a class that defines its own `==`
or `hash` equal those of this class only, by that definition; where it raises, they differ.
"""

import datetime
import sys
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from decimal import Decimal
from fractions import Fraction
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import numpy as np
import pandas as pd

from dpframe.arguments import nests_deeply
from dpframe.columns.values import complex_parts, contain_errors, is_absent

_OWN_KEYS = frozenset(map(id, (str, bytes, type(None))))
"""Identities of the types whose objects are their own keys: some types cannot be hashed."""

KNOWN: tuple[type, ...] = (
    *(str, bytes, np.str_, np.bytes_, int, float, complex, Decimal, Fraction),
    *(np.dtype(code).type for code in "?bhilqBHILQefdgFDG"),
    *(pd.Timestamp, datetime.datetime, datetime.date, np.datetime64),
    *(pd.Timedelta, datetime.timedelta, np.timedelta64, tuple, UUID),
)
"""Classes whose equality is known: objects of several of them may be equal."""

_BY_IDENTITY = {id(base): base for base in KNOWN}
# integers that are their own keys
_LEAST, _MOST = -(2**63), 2**64 - 1
# bits of integers whose hashes are nearly all different
_WORD = 64
# bits of the numerator, or the denominator, of a number that is an id
_LONGEST = 1 << 16


def known_base(kind: Any) -> type | None:
    """Find the known class that objects of a class compare and hash like, if there is one."""
    return _BY_IDENTITY.get(id(kind)) or contain_errors(_inherited_base, kind, otherwise=None)


def _inherited_base(kind: Any) -> type | None:
    """Find the known class that a class takes `==` and `hash` from."""
    for base in KNOWN:
        if issubclass(kind, base):
            if kind.__eq__ is base.__eq__ and kind.__hash__ is base.__hash__:
                return base
    return None


def own_keys(values: list[Any]) -> bool:
    """Whether all of some objects are their own keys; quicker than one by one."""
    return set(map(id, map(type, values))) <= _OWN_KEYS


def key_of(value: Any) -> Hashable:
    """Return the key of an object; `None` if it is missing or cannot be hashed.

    Objects that are nested deeply, and numbers of more than 65,536 bits, count as missing.

    Examples
    --------
    >>> key_of(np.int64(7)) == key_of(7.0) == "7", key_of([7]) is None
    (True, True)
    """
    kind = type(value)
    if id(kind) in _OWN_KEYS:
        return value  # type: ignore[no-any-return]
    if kind is int and _LEAST <= value <= _MOST:
        return int.__str__(value)
    key = contain_errors(_key_of, value, otherwise=None)
    return text_of_number(key) if isinstance(key, int | float) else key


def text_of_number(number: int | float) -> str:
    """Write a number in its one form: of a float that is an integer, of up to 64 bits, as that.

    Examples
    --------
    >>> [text_of_number(number) for number in (7, 7.0, True, -0.0, 7.5, 1e300)]
    ['7', '7', '1', '0', '7.5', '1e+300']
    """
    if isinstance(number, float) and not (_LEAST <= number <= _MOST and number.is_integer()):
        return repr(number)
    return str(int(number))


def _key_of(value: Any) -> Hashable:
    """Return the key of an object; raise if it has none, so that no tuple that holds it has one."""
    kind = type(value)
    if id(kind) in _OWN_KEYS or kind is bool or (kind is int and _LEAST <= value <= _MOST):
        return value  # type: ignore[no-any-return]
    if is_absent(value):
        return None
    base = known_base(kind)
    plain = _PLAIN.get(id(base))
    if plain is not None:
        return plain(value)
    if base is None and nests_deeply(value):
        raise RecursionError
    return _Key(value, None if base is not None else kind)


# Hashes of Python's numbers are known: anyone can write numbers that share one, of which a dict
# takes a time that grows with the square of how many there are. Hashes of texts are secret.


def _key_of_ratio(numerator: int, denominator: int) -> Hashable:
    """Return the key of a number in lowest terms: the plain one that equals it, or its digits."""
    if denominator == 1 and _LEAST <= numerator <= _MOST:
        return numerator
    # a power of two: it may be a float
    if not denominator & (denominator - 1):
        with suppress(OverflowError):
            nearest = numerator / denominator
            if nearest.as_integer_ratio() == (numerator, denominator):
                return nearest
    longest = max(numerator.bit_length(), denominator.bit_length())
    if longest <= _WORD:
        return _DIGITS, numerator, denominator
    if longest > _LONGEST:
        raise OverflowError
    return _DIGITS, hex(numerator), hex(denominator)


def _key_of_decimal(value: Decimal) -> Hashable:
    if Decimal.is_zero(value):
        return 0
    # it may not even fit in memory as a ratio
    if abs(Decimal.adjusted(value)) > _LONGEST:
        raise OverflowError
    if not Decimal.is_finite(value):
        return Decimal.__float__(value)
    return _key_of_ratio(*Decimal.as_integer_ratio(value))


def _key_of_longdouble(value: Any) -> Hashable:
    if not np.isfinite(value):
        return float(value)
    return _key_of_ratio(*np.longdouble.as_integer_ratio(value))


def _key_of_complex(value: Any) -> Hashable:
    """Return the key of the real part where there is no other."""
    real, imaginary = complex_parts(value)
    if imaginary == 0:
        return _key_of(real)
    return _DIGITS, _key_of(real), _key_of(imaginary)


def _key_of_tuple(value: tuple[object, ...]) -> Hashable:
    """Return a tuple of keys; parts that are missing are alike, as they are elsewhere."""
    parts = list(tuple.__iter__(value))
    if not _OWN_KEYS.issuperset(map(id, map(type, parts))) and nests_deeply(value):
        raise RecursionError
    return (_PARTS, *[part if type(part) is str else _key_of(part) for part in parts])


_DIGITS, _PARTS = object(), object()  # no cell holds them
_PLAIN: dict[int, Callable[[Any], Hashable]] = {
    **{id(np.dtype(code).type): np.dtype(code).type.item for code in "?bhilqBHILQefd"},
    **{id(kind): str.__str__ for kind in (str, np.str_)},
    **{id(kind): lambda value: b"".join([value]) for kind in (bytes, np.bytes_)},
    **{id(np.dtype(code).type): _key_of_complex for code in "FDG"},
    id(np.longdouble): _key_of_longdouble,
    id(int): lambda value: _key_of_ratio(int.__index__(value), 1),
    id(float): float.__float__,
    id(complex): _key_of_complex,
    id(Decimal): _key_of_decimal,
    id(Fraction): lambda value: _key_of_ratio(*Fraction.as_integer_ratio(value)),
    id(tuple): _key_of_tuple,
    id(UUID): lambda value: (UUID, value.bytes),
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
        if type(other) is not _Key or self._kind is not other._kind:
            # no time is a number: NumPy warns of months that are compared with one
            return False
        return contain_errors(_equal, self._value, other._value, otherwise=False)


def _equal(value: Any, other: Any) -> bool:
    return bool(value is other or value == other)


_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

_SILENT = ContextVar("dpframe_silent", default=False)


class _OfSilentThreads:
    """Stands where a filter has a regular expression: matches what a silent thread warns of."""

    def match(self, _: str) -> bool:
        """Tell whether the thread that warns is silent."""
        return _SILENT.get()


# Filters as `warnings` keeps them. They are added directly: adding one by its functions would make
# Python forget which warnings were shown before.
_FILTER = ("ignore", _OfSilentThreads(), Warning, None, 0)
# where others came before ours
_CALL_FILTER = ("ignore", _OfSilentThreads(), Warning, None, 0)


def silent(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Make a function hide the warnings of its thread until it returns, and those of no other.

    `warnings.catch_warnings` swaps the filters of all threads. Here one filter asks whether the
    thread that warns is silent. The answer stands in a context that ends with the call, so that
    there is nothing to undo, even after Ctrl-C. Where other threads are alive, one filter stays:
    they may restore filters from before the call.

    Parameters
    ----------
    function
        Looks at private values. Threads that it starts must run in a copy of its context.

    Returns
    -------
    function
        The same, in silence.

    Examples
    --------
    >>> silent(warnings.warn)("the cell holds 42")
    """

    @wraps(function)
    def quiet(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if _SILENT.get():
            return function(*args, **kwargs)
        context = copy_context()
        context.run(_SILENT.set, True)
        if len(sys._current_frames()) > 1:
            _keep_filter()
        filters = _filters()
        if filters and filters[0] == _FILTER:
            return context.run(function, *args, **kwargs)
        # every call adds one of its own
        filters.insert(0, _CALL_FILTER)
        try:
            return context.run(function, *args, **kwargs)
        finally:
            # they were reset meanwhile
            with suppress(ValueError):
                filters.remove(_CALL_FILTER)

    return quiet


def silence_thread() -> None:
    """Hide the warnings of this thread as long as it lives, since it works for a silent one."""
    _SILENT.set(True)


def _filters() -> Any:
    """Return the list of filters that Python reads; from 3.14 on, a context may have its own."""
    of_context = getattr(warnings, "_get_filters", None)
    return warnings.filters if of_context is None else of_context()


@cache
def _keep_filter() -> None:
    """Add a filter that stays, once: copies of the filters have it, too."""
    _filters().insert(0, _FILTER)
