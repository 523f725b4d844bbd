"""What was changed in a frame since its certificate was made, in words."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpframe.certificates.digest import ContentPart, SeriesPart, content_of

_RENAME, _SELECT = ".dp.rename", ".dp.select(columns=...)"
_EDIT = ".dp.round and .dp.suppress"
_ADD = ".dp.interval(join=True) and .dp.percent(join=True)"
_COMPUTED = ("_low", "_high", "estimate", "percent")
_MOVED = "Labels stay with what they name: .dp.rename would put a wrong one there."
_LEVELS = "Levels stay in the order of by=."
_KEYS = "Keys stay as they were released: relabel the column before declaring."
_MOST = 5
_NAMES = {"objects": "object", "booleans": "bool"}


class Change(NamedTuple):
    """What was changed, as a part of a sentence, and the call that does so; empty for none.

    Where no call can do so, a sentence may say what else to do.
    """

    what: str
    call: str = ""
    instead: str = ""


def changes(frame: pd.DataFrame, kept: ContentPart) -> list[Change]:
    """Say what was changed in a frame, in its labels, rows and kinds, and show no values.

    Parameters
    ----------
    frame
        The frame as it is now.
    kept
        What it held when its certificate was made.

    Returns
    -------
    list of Change
        None if nothing that is kept was changed.

    Examples
    --------
    >>> counts = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["A", "B"], name="zone"))
    >>> [change.what for change in changes(counts[::-1].assign(rate=0.5), content_of(counts))]
    ["column 'rate' was added", 'the rows are in another order']
    """
    found = content_of(frame)
    relabeled = [*_say_relabeled("level", found, kept), *_say_relabeled("column", found, kept)]
    if relabeled:  # values are elsewhere by their labels alone
        return relabeled
    renamed = _pair_renamed(found, kept)
    labels = _of_labels(found, kept, renamed)
    contents = _of_rows(found, kept) or _of_values(found, kept, renamed)
    return [*_of_levels(found, kept), *labels, *contents]


def _say_relabeled(what: str, found: ContentPart, kept: ContentPart) -> Iterator[Change]:
    """Say whether labels changed places, and nothing under them did."""
    here, there = ((one.levels if what == "level" else one.columns) for one in (found, kept))
    labels, before = ([part.label for part in parts] for parts in (here, there))
    same = [part.unordered for part in here] == [part.unordered for part in there]
    apart = len({part.unordered for part in there}) == len(there)
    if same and apart and labels != before and sorted(labels) == sorted(before):
        moved = [new for new, old in zip(labels, before, strict=True) if new != old]
        yield Change(f"{_list_few(what, moved)} have each other's labels", instead=_MOVED)


def _pair_renamed(found: ContentPart, kept: ContentPart) -> dict[str, str]:
    """Pair columns that went with columns that came, where they hold the same values."""
    here, there = ({part.label: part for part in one.columns} for one in (found, kept))
    came = {part.unordered: label for label, part in here.items() if label not in there}
    return {
        label: came[part.unordered]
        for label, part in there.items()
        if label not in here and part.unordered in came
    }


def _of_levels(found: ContentPart, kept: ContentPart) -> Iterator[Change]:
    """Say what became of the names of the index."""
    names, before = ([part.label for part in one.levels] for one in (found, kept))
    reset = [name for name in before if name in {part.label for part in found.columns}]
    if names == before:
        return
    if reset:
        became = "a column" if len(reset) == 1 else "columns"
        yield Change(f"{_list_few('level', reset)} of the index became {became}")
    elif len(names) != len(before):
        yield Change(f"the index has {len(names)} levels in place of {len(before)}", ".dp.unstack")
    elif sorted(names) == sorted(before):
        yield Change("the levels of the index are in another order", instead=_LEVELS)
    else:
        what = f"the levels of the index are called {names!r} in place of {before!r}"
        yield Change(what, _RENAME)


def _of_labels(found: ContentPart, kept: ContentPart, renamed: dict[str, str]) -> Iterator[Change]:
    """Say which columns came, went, or have another label or place."""
    levels = {part.label for part in kept.levels}
    before = [part.label for part in kept.columns]
    labels = [part.label for part in found.columns if part.label not in levels]
    came = [name for name in labels if name not in {*before, *renamed.values()}]
    went = [name for name in before if name not in {*labels, *renamed}]
    if went:
        yield Change(f"{_list_few('column', went)} {_was(went)} dropped", _SELECT)
    for old, new in renamed.items():
        yield Change(f"column {old!r} is called {new!r}", _RENAME)
    if came:
        call = _ADD if any(name.endswith(_COMPUTED) for name in came) else ""
        yield Change(f"{_list_few('column', came)} {_was(came)} added", call)
    if not went and not came and len(labels) != len(before):
        yield Change(f"there are {len(labels)} columns in place of {len(before)}")
    stayed = [name for name in labels if name in before]
    if stayed != [name for name in before if name in stayed]:
        yield Change("the columns are in another order", _SELECT)


def _of_rows(found: ContentPart, kept: ContentPart) -> list[Change]:
    """Say whether there are other rows; how many they are may be private."""
    if found.rows == kept.rows:
        return []
    if found.rows < kept.rows:
        return [Change("rows are missing", ".dp.select, .dp.head and .dp.tail")]
    return [Change("rows were added", "dpf.concat")]


def _of_values(found: ContentPart, kept: ContentPart, renamed: dict[str, str]) -> Iterator[Change]:
    """Say whether rows changed places, and which keys, kinds and values are others."""
    here = {part.label: part for part in (*found.levels, *found.columns)}
    pairs = [
        (part, here[renamed.get(part.label, part.label)], part in kept.levels)
        for part in (*kept.levels, *kept.columns)
        if renamed.get(part.label, part.label) in here
    ]
    other = [(old, new, key) for old, new, key in pairs if old.values != new.values]
    moved = all(old.unordered == new.unordered for old, new, _ in other)
    keyed = any(key for *_, key in other)
    if moved and other and (keyed or len(other) == len(kept.columns) == len(pairs)):
        yield Change("the rows are in another order", ".dp.sort_values")
        return
    for old, new, key in other:
        values, of = ("keys", "level") if key else ("values", "column")
        what = f"{of} {new.label!r}"
        if old.kind != new.kind:
            yield Change(f"the dtype of {what} is {_dtype(new)} in place of {_dtype(old)}")
        elif old.unordered == new.unordered:
            yield Change(f"the {values} of {what} changed places")
        else:
            call, instead = ("", _KEYS) if key else (_EDIT, "")
            yield Change(f"the {values} of {what} were changed", call, instead)


def _dtype(part: SeriesPart) -> str:
    """Name the dtype of values."""
    try:
        return np.dtype(part.kind).name
    except TypeError:
        return _NAMES.get(part.kind, part.kind)


def _list_few(what: str, labels: list[str]) -> str:
    """Name one thing, or the first few of several."""
    shown = ", ".join(map(repr, labels[:_MOST]))
    more = f" and {len(labels) - _MOST} more" if len(labels) > _MOST else ""
    return f"{what if len(labels) == 1 else what + 's'} {shown}{more}"


def _was(labels: list[str]) -> str:
    return "was" if len(labels) == 1 else "were"
