"""Large certificates are checked piece by piece, up to the first one that is wrong.

What checks them at once lists all faults of all pieces, in a thousand times their memory.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from dpframe.certificates.excess import ExcessError, is_large

FieldPath: TypeAlias = tuple[str | int, ...]
Check: TypeAlias = Callable[[Any, Any, FieldPath, int], object]
"""Takes the type of a piece, the piece, its place, and the number of its first item."""

_Item = TypeVar("_Item")

_AT_ONCE = 20  # items, each of which is small or was checked


def check_pieces(hint: Any, found: Any, check: Check, place: FieldPath = ()) -> None:
    """Check what is large within a value: long lists and objects, their items first.

    Parameters
    ----------
    hint
        The type of the value.
    found
        The value, as plain JSON.
    check
        Raises an error where a piece is not of a type.
    place
        Where the value is.

    Raises
    ------
    ExcessError
        If something large is of no type that is large.
    """
    if not is_large(found):
        return
    forms = _forms(hint)
    if not isinstance(found, dict):
        if len(found) > _most_items(hint):
            raise ExcessError(f"{'.'.join(map(str, place))}: it holds {len(found):,} items")
        (inner, *_) = _items_of(forms, tuple)
        for start, some in enumerate(_batches(found)):
            for at, item in enumerate(some, start * _AT_ONCE):
                check_pieces(inner, item, check, (*place, at))
            check(hint, some, place, start * _AT_ONCE)
        return
    record = next((form for form in forms if _hints(form).keys() == found.keys()), None)
    if record is not None:
        for name, inner in _hints(record).items():
            check_pieces(inner, found[name], check, (*place, name))
        return
    _check_names(forms, found, place)
    (_, inner) = _items_of(forms, Mapping)
    for some in _batches(found.items()):
        for name, item in some:
            check_pieces(inner, item, check, (*place, name))
        check(hint, dict(some), place, 0)


def _most_items(hint: Any) -> float:
    """Return how many items a list may have by what stands beside its type."""
    beside = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    limits: list[float] = [getattr(one, "limits", {}).get("max_length", math.inf) for one in beside]
    return min(limits, default=math.inf)


def _forms(hint: Any) -> list[Any]:
    """Return the types that a value may have, without what else is said of them."""
    if get_origin(hint) is Annotated:
        return _forms(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [form for one in get_args(hint) for form in _forms(one)]
    return [hint]


@lru_cache
def _hints(form: Any) -> Mapping[str, Any]:
    """Return the types of the fields of a record."""
    if not dataclasses.is_dataclass(form):
        return {}
    hints = get_type_hints(form, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(form)}


def _check_names(forms: Sequence[Any], found: Mapping[Any, Any], place: FieldPath) -> None:
    """Say which field is missing, or is none, where there is one type of record."""
    records = [hints for form in forms if (hints := _hints(form))]
    if len(records) == 1:
        (fields,) = records
        wrong = [name for name in fields if name not in found] or [
            name for name in found if name not in fields
        ]
        where = ".".join(map(str, (*place, wrong[0])))
        raise ExcessError(f"{where:.100}: {'Field required' if wrong[0] in fields else 'no field'}")


def _items_of(forms: Sequence[Any], kind: type[Any]) -> tuple[Any, ...]:
    """Return the types of items of a list, or of an object."""
    for form in forms:
        if get_origin(form) is kind:
            return get_args(form)
    raise ExcessError("something in it holds more than it may")


def _batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while some := list(islice(rest, _AT_ONCE)):
        yield some
