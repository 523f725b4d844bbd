"""The mark of a declared frame of pandas, by which what was made of it can be told."""

from collections.abc import Mapping, MutableMapping
from typing import Any

__all__ = ["is_marked", "mark_attrs"]

_MARK = "dpframe_declared"


def mark_attrs(attrs: MutableMapping[Any, Any]) -> None:
    """Put a mark in the `attrs` of a frame of pandas.

    pandas carries it along, also to files, but not when frames with and without it are merged or
    concatenated: what comes out is as if nothing had ever been declared.
    """
    attrs[_MARK] = True


def is_marked(attrs: Mapping[Any, Any]) -> bool:
    """Tell whether there is a mark in the `attrs` of a frame."""
    return bool(attrs.get(_MARK))
