"""How a public argument is checked, and shown in an error."""

import gc
import unicodedata
from collections.abc import Hashable, Iterable
from os import PathLike, fspath
from pathlib import Path
from types import GenericAlias, MappingProxyType, UnionType
from typing import TypeGuard

import numpy as np

from dpframe.errors import DeclarationError, QueryError, a_type, is_data

MOST_GROUPS = 10**8
"""More groups than this are refused."""

_MOST_NAME, _MOST_NOTE = 200, 2_000  # characters in a ledger
_HOLDERS = (tuple, frozenset, slice, MappingProxyType, GenericAlias, UnionType)
_MOST_LAYERS, _MOST_HELD = 16, 1 << 16  # of values that hold values


def is_label(value: object) -> TypeGuard[Hashable]:
    """Whether something can be the label of a column, that is, hashable and no data."""
    if is_data(value):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True


def nests_deeply(value: object) -> bool:
    """Whether a value holds values in more than 16 layers, or more than 65,536 in one of them.

    Python hashes what these built-in classes hold layer by layer, in C, and ends the process where
    there are too many layers. Nothing can contain that.

    Examples
    --------
    >>> nests_deeply((1, (2, frozenset([3])))), nests_deeply(tuple(range(100_000)))
    (False, True)
    """
    layer = [value] if issubclass(type(value), _HOLDERS) else []
    for _ in range(_MOST_LAYERS):
        if not layer or len(layer) > _MOST_HELD:
            break
        layer = gc.get_referents(
            *[value_held for value_held in layer if issubclass(type(value_held), _HOLDERS)]
        )
    return bool(layer)


def is_one_of(value: object, allowed: Iterable[Hashable]) -> bool:
    """Whether something is one of the values known; data and missing values are compared to none.

    Examples
    --------
    >>> [is_one_of(value, ["a", "b"]) for value in ("a", "c", None, np.array(["a"]))]
    [True, False, False, False]
    """
    return is_label(value) and value in set(allowed)


def check_flag(name: str, flag: object) -> None:
    """Refuse what is neither True nor False.

    Raises
    ------
    QueryError
        If it is not.
    """
    if not isinstance(flag, bool | np.bool_):
        raise QueryError.about(name, "must be True or False", flag)


def check_place(path: object, content: str, endings: tuple[str, ...] = ()) -> Path:
    """Check the path of a file that is to be written: its ending, and that its folder is there.

    Raises
    ------
    QueryError
        If it is no path, has another ending, or there is no such folder.
    """
    text = fspath(path) if isinstance(path, str | PathLike) else path
    if not isinstance(text, str) or not text:
        raise QueryError.about("path", f"must be the path of {content}", path)
    place = Path(text)
    if endings and place.suffix.lower() not in endings:
        raise QueryError.about("path", f"of {content} must end in {' or '.join(endings)}", text)
    if not place.parent.is_dir():
        way_out = f"Make {str(place.parent)!r} first. Nothing was written."
        raise QueryError.about("path", "must be in a folder that is there", text, way_out)
    return place


def no_ledger(value: object) -> DeclarationError:
    """Make the error about what is given in place of a ledger.

    Examples
    --------
    >>> no_ledger("trips.ledger")
    DeclarationError("ledger must be a dpf.Ledger, got a str. Open it: dpf.Ledger('trips.ledger').")
    """
    is_path = isinstance(value, str | PathLike) and ":/" not in str(value)  # a URL has a password
    path = str(value) if isinstance(value, PathLike) else value
    hint = f" Open it: dpf.Ledger({path!r})." if is_path else ""
    text = f"ledger must be a dpf.Ledger, got {a_type(value)}.{hint}"
    return DeclarationError(text, parameter="ledger", value=value if is_path else None)


def is_unicode(label: object) -> bool:
    r"""Whether a text, or each text of a tuple, is valid Unicode: no file keeps half a character.

    Examples
    --------
    >>> is_unicode("caf\u00e9"), is_unicode(("a", "\ud800")), is_unicode(7)
    (True, False, True)
    """
    if isinstance(label, tuple):
        return all(map(is_unicode, label))
    return not isinstance(label, str) or label.encode(errors="replace").decode() == label


def check_text(argument: str, text: object, most: int = _MOST_NAME) -> str | None:
    """Check a text that is kept in a ledger: a line that is not empty, nor too long.

    What is not printed (control characters, ends of lines, marks that no one sees) is refused.
    """
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip():
        raise DeclarationError.about(argument, "must be a text that is not empty", text)
    if len(text) > most:
        rule = f"{argument} must have at most {most:,} characters, got {len(text):,}."
        raise DeclarationError(rule, parameter=argument)
    if not text.isprintable():
        rule = f"{argument} must hold nothing that is not printed, got {text!a:.400};"
        remedy = f"for instance {_plain(text)!r:.400}."
        raise DeclarationError(f"{rule} {remedy}", parameter=argument)
    return text


def check_note(note: object) -> str | None:
    """Check what is noted with a release, which may be longer than a name."""
    return check_text("note", note, _MOST_NOTE)


def check_release_name(value: object) -> str | None:
    """Check the name of a release: names that look the same to a reader must not be two.

    Spaces at its ends are refused. Upper and lower case are told apart.
    """
    name = check_text("name", value)
    if name is not None and name != name.strip():
        raise DeclarationError(
            "name must begin and end with a character that is not a space, and hold nothing that "
            f"is not printed, got {name!a}; for instance {_plain(name)!r}.",
            parameter="name",
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


def check_size(subject: str, values: object) -> None:
    """Refuse more groups than any release could have, before they are read."""
    try:
        size = len(values)  # type: ignore[arg-type]
    except TypeError:
        return  # an iterator shows its length only when it is read
    if size > MOST_GROUPS:
        raise DeclarationError(f"{subject} must be at most {MOST_GROUPS:,}, got {size:,}.")
