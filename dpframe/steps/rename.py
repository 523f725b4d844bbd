"""Columns, levels and keys of a release under other names, for those who read them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pandas as pd

from dpframe.arguments import is_label, is_unicode
from dpframe.cells.keys import token
from dpframe.cells.verify import Shown, look
from dpframe.errors import QueryError, quote
from dpframe.public import public_call

_Labels: TypeAlias = Mapping[Hashable, str]


@public_call
def rename(
    released: pd.DataFrame,
    columns: _Labels | None = None,
    *,
    levels: _Labels | None = None,
    keys: Mapping[Hashable, _Labels] | None = None,
) -> pd.DataFrame:
    """Rename columns, levels and keys of a release, and keep its certificate.

    The certificate says what was released under which name.

    Parameters
    ----------
    released
        A released frame, in any layout.
    columns
        New labels by old ones. Computed columns follow those that they were computed from.
    levels
        New names of levels by old ones.
    keys
        By level, new keys by old ones.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column, level or key, or a new name is no text, or taken.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1)
    >>> list(rename(released, {"count": "trips"}).dp.interval().columns)
    ['trips_low', 'trips_high']
    """
    shown = look(released)
    opened, alias = shown.opened, shown.opened.table.alias
    labels = [*opened.columns]
    names = [token(level.name) for level in opened.levels]
    of_columns = _alias(shown, "columns", columns, labels)
    of_columns |= _followers(shown, of_columns)
    of_levels = _alias(shown, "levels", levels, names)
    _check_free(shown, of_columns, of_levels)
    of_keys = _aliases_of_keys(shown, keys)
    changed = replace(
        alias,
        columns=_renamed(alias.columns, of_columns),
        levels=_renamed(alias.levels, of_levels),
        keys={**alias.keys, **of_keys},
    )
    made = _show(shown, of_columns, of_levels, keys or {})
    return shown.sealed(made, opened.changed(alias=changed))


def _alias(shown: Shown, called: str, given: object, known: Sequence[str]) -> dict[str, str]:
    """Return new names, as texts, by what was released, as JSON."""
    which = {shown.opened.shown_label(one, called): one for one in known}
    if given is not None and not isinstance(given, Mapping):
        rule = "must be a dict of new labels by old ones, such as {'count': 'trips'}"
        raise QueryError.about(called, rule, given)
    found = {}
    for old, new in (given or {}).items():
        _check_name(called, old, new)
        if not is_label(old) or old not in which:
            other = "levels" if called == "columns" else "columns"
            way_out = f"Give {other} by their own: {other}={{{quote(old)}: {quote(new)}}}."
            raise QueryError.about(called, f"must be among {quote(list(which))}", old, way_out)
        found[which[old]] = new
    return found


def _check_name(called: str, old: Any, new: object) -> None:
    if not isinstance(new, str) or not new or not is_unicode(new):
        raise QueryError.about(called, "must be texts that are not empty", new, label=old)


def _followers(shown: Shown, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the new names of what was computed from columns with new names."""
    opened = shown.opened
    found = {}
    for name, source in opened.labels_by_name.items():
        if source not in renamed:
            continue
        before = str(opened.shown_label(source))
        for label, column in opened.columns.items():
            text = str(opened.shown_label(label))
            own = column.part.definition
            if own is not None and own.column == name and text.startswith(f"{before}_"):
                found[label] = f"{renamed[source]}{text.removeprefix(before)}"
    return found


def _check_free(shown: Shown, columns: Mapping[str, str], levels: Mapping[str, str]) -> None:
    """Refuse names of two columns or levels."""
    opened = shown.opened
    new = {**columns, **levels}
    names = [*opened.columns, *(token(level.name) for level in opened.levels)]
    after = [new.get(name, str(opened.shown_label(name, _which(opened, name)))) for name in names]
    taken = [name for name in new.values() if after.count(name) > 1]
    if taken:
        rule = f"{taken[0]!r} would be the name of two columns or levels. Take another."
        parameter = "levels" if taken[0] in levels.values() else "columns"
        raise QueryError(rule, parameter=parameter, label=taken[0])


def _which(opened: Any, name: str) -> str:
    return "columns" if name in opened.columns else "levels"


def _renamed(alias: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return what is shown, by new names; older ones of the same go."""
    kept = {shown: old for shown, old in alias.items() if old not in new}
    return kept | {token(name): old for old, name in new.items() if token(name) != old}


def _aliases_of_keys(shown: Shown, keys: object) -> dict[str, dict[str, str]]:
    """Check new keys by level."""
    if keys is not None and not isinstance(keys, Mapping):
        raise QueryError.about("keys", "must be a dict of dicts by level", keys)
    opened, found = shown.opened, {}
    levels = {opened.shown_label(token(level.name), "levels"): level for level in opened.levels}
    for name, given in (keys or {}).items():
        if not is_label(name) or name not in levels or not isinstance(given, Mapping):
            rule = f"must be dicts of new keys by level, one of {quote(list(levels))}"
            raise QueryError.about("keys", rule, name)
        level = levels[name]
        before = opened.table.alias.keys.get(token(level.name), {})
        known = {before.get(token(old), token(old)): new for old, new in given.items()}
        for old, new in given.items():
            _check_name("keys", old, new)
        unknown = [old for old in known if old not in level.tokens]
        after = {**{key: key for key in level.tokens}, **{o: token(n) for o, n in known.items()}}
        again = len({*after.values()}) < len(after) or any(
            token(new) in level.tokens and token(new) != old for old, new in known.items()
        )
        if unknown or again:
            rule = f"must rename keys of {name!r}, each to a text that is no other key's"
            raise QueryError.about("keys", rule, dict(given), label=name)
        found[token(level.name)] = _renamed(before, known)
    return found


def _show(
    shown: Shown,
    columns: Mapping[str, str],
    levels: Mapping[str, str],
    keys: Mapping[Hashable, _Labels],
) -> pd.DataFrame:
    """Give columns, levels and keys of a table their new names, wherever it has them."""
    opened = shown.opened
    made = pd.DataFrame(shown.source)
    made.attrs = {}
    labels = {opened.shown_label(old): new for old, new in columns.items()}
    names = {opened.shown_label(old, "levels"): new for old, new in levels.items()}
    for name, given in keys.items():
        if name in made.columns:
            made = made.assign(**{str(name): made[name].replace(dict(given))})
        for axis in (0, 1):
            if name in made.axes[axis].names:
                made = made.rename(
                    dict(given), axis=axis, level=name if made.axes[axis].nlevels > 1 else None
                )
    both = {**labels, **{name: new for name, new in names.items() if name in made.columns}}
    made = made.rename(columns=both)
    for axis in (0, 1):
        index = made.axes[axis]
        if axis == 0 and labels and any(name is None or name == "variable" for name in index.names):
            made = made.rename(index=labels)
        index = made.axes[axis]
        renamed = index.set_names([names.get(n, n) for n in index.names])
        made = made.set_axis(renamed, axis="columns" if axis else "index")
    return made
