"""How a public argument is checked, and shown in an error."""

import unicodedata
from collections.abc import Hashable
from typing import TypeGuard

import numpy as np
import pandas as pd

from dpframe.errors import DeclarationError

__all__ = [
    "MOST_GROUPS",
    "check_release_name",
    "check_size",
    "check_text",
    "is_data",
    "is_label",
    "shown",
    "visible",
]

MOST_GROUPS = 10**8
"""More groups than this are refused."""


def is_label(value: object) -> TypeGuard[Hashable]:
    """Whether something can be the label of a column, that is, hashable."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_data(value: object) -> bool:
    """Whether something may hold a column of the frame: no message may show it."""
    return isinstance(value, pd.Series | pd.DataFrame | np.ndarray)


def shown(value: object) -> str:
    """Show an argument in an error; only its type where it may hold a column of the frame."""
    if is_data(value):
        return f"a {type(value).__name__}"
    return repr(value)


def check_text(argument: str, given: object) -> str | None:
    """Check a text that is kept in a ledger; an empty one would name nothing."""
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    raise DeclarationError(f"{argument} must be a text that is not empty, got {shown(given)}.")


def check_release_name(given: object) -> str | None:
    """Check the name of a release: names that look the same to a reader must not be two.

    Spaces at its ends, and what is not printed (control characters, ends of lines, marks that no
    one sees), are refused. Upper and lower case are told apart.
    """
    name = check_text("name", given)
    if name is not None and (name != name.strip() or not name.isprintable()):
        raise DeclarationError(
            "name must begin and end with a character that is not a space, and hold nothing that "
            f"is not printed, got {name!a}; for instance {_plain(name)!r}."
        )
    return name


def _plain(name: str) -> str:
    return "".join(c if c.isprintable() else " " for c in name).strip() or "2024-03"


def visible(text: str) -> str:
    r"""Escape what a terminal would obey instead of showing it.

    These are control characters and escape sequences, marks that change the direction of writing,
    ends of lines, and halves of characters.

    Examples
    --------
    >>> visible("red \x1b[31m, turned \u202e, caf\u00e9")
    'red \\x1b[31m, turned \\u202e, café'
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    unsafe = unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return character.encode("unicode_escape").decode("ascii") if unsafe else character


def check_size(what: str, given: object) -> None:
    """Refuse more groups than any release could have, before they are read."""
    try:
        size = len(given)  # type: ignore[arg-type]
    except TypeError:
        return  # an iterator shows its length only when it is read
    if size > MOST_GROUPS:
        raise DeclarationError(f"{what} must be at most {MOST_GROUPS:,}, got {size:,}.")
