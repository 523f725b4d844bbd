"""What constants and keys can match in a released table: a kind that matches nothing is refused.

Keys and values of a release are public, so that errors may show them.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from dpframe.arguments import is_label
from dpframe.columns.times import instants, wall_times
from dpframe.columns.values import missing, numbers, texts
from dpframe.errors import QueryError, quote
from dpframe.queries.timescale import moment_of
from dpframe.queries.where import Compare, Condition, Constant, Membership, Name, comparisons

_ONE_AND_MANY = {
    "boolean": ("a boolean", "booleans"),
    "date": ("a date", "dates"),
    "datetime": ("a Timestamp", "Timestamps"),
    "floating": ("a number", "numbers"),
    "integer": ("an integer", "integers"),
    "interval": ("an Interval", "Intervals"),
    "mixed-integer-float": ("a number", "numbers"),
    "period": ("a Period", "Periods"),
    "string": ("a text", "texts"),
    "timedelta": ("a Timedelta", "Timedeltas"),
}
_FREQUENCIES = dict(
    A="yearly", D="daily", H="hourly", M="monthly", Q="quarterly", W="weekly", Y="yearly"
)
_NUMBERS = {"boolean", "floating", "integer", "mixed-integer-float"}


def check_condition(
    condition: Condition, named: Mapping[Hashable, pd.Series], levels: Sequence[Hashable]
) -> None:
    """Refuse a constant of a kind that no key of its level, or value of its column, is of.

    Parameters
    ----------
    condition
        A condition on levels and columns.
    named
        Their values by name.
    levels
        The names of levels.

    Raises
    ------
    QueryError
        If a constant is compared with values that are all of other kinds.
    """
    for label, constant in constants_compared(condition):
        values = named[label]
        present = values[~missing(values)]
        if len(present) and not may_match(present, constant):
            whole = isinstance(constant, float) and constant.is_integer()
            written = int(constant) if whole else constant
            what = f"the {'keys' if label in levels else 'values'} of {label!r}"
            rule = f"{quote(written)} is {_one(constant)}, and {what} are {_many(present)}"
            way_out = _way_out(label, written, present, label in levels)
            text = f"where: {rule}: no row can match. {way_out}"
            raise QueryError(text, parameter="where", label=label)


def constants_compared(condition: Condition) -> Iterator[tuple[str, float | str]]:
    """Find the constants that a condition compares with a name."""
    for found in comparisons(condition):
        match found:
            case Membership(Name(label), items):
                yield from ((label, item) for item in items)
            case Compare(_, Name(label), Constant(constant)) | Compare(
                _, Constant(constant), Name(label)
            ):
                yield label, constant


def may_match(values: pd.Series, constant: float | str) -> bool:
    """Tell whether a value is of a kind that conditions compare with a constant."""
    if not isinstance(constant, str):
        return not np.isnan(numbers(values)).all()
    return any(text is not None for text in texts(values)) or _may_be_time(values, constant)


def _may_be_time(values: pd.Series, constant: str) -> bool:
    moment = moment_of(constant)
    if moment is None:
        return False
    _, valid = wall_times(values) if moment.tzinfo is None else instants(values)
    return bool(valid.any())


def _way_out(label: Hashable, constant: float | str, values: pd.Series, level: bool) -> str:
    """Say what to write in place of a constant."""
    kind, first = _kind(values), next(iter(values))
    if kind in _NUMBERS:
        return "Write numbers without quotes."
    if kind == "string":
        return f"Write texts in quotes, '{constant}'."
    if kind == "datetime":
        return f"Write times as '{first.isoformat()}'."
    if level:
        return f"Choose by keys: keys={{{label!r}: [{first!r}]}}."
    return "Choose by a level or another column."


def check_keys(
    known: pd.Index, wanted: Sequence[object], of: object, called: str | None = None
) -> None:
    """Check that keys are among those of a level, or of all levels; they may be called something.

    Raises
    ------
    QueryError
        If one is not. The message says of what kind it is, where keys are of another.
    """
    found, rule = set(known), "keys must be among those of this table, and"
    for key in wanted:
        if is_label(key) and key in found:
            continue
        if called is not None:
            raise QueryError(f"{rule} {called} is not.", parameter="keys")
        if isinstance(known, pd.MultiIndex):
            why = f"{quote(key)} is no key of {list(known.names)!r}. {_by_level(known, wanted)}"
            raise QueryError(f"{rule} {why}", parameter="keys", value=key)
        why = f"{quote(key)} is no key of {of!r}{_other_kind(key, known.to_series())}"
        raise QueryError(f"{rule} {why}.", parameter="keys", label=of, value=key)


def _by_level(known: pd.MultiIndex, wanted: Sequence[object]) -> str:
    """Say how to choose by the keys of one level, where keys are of one."""
    for at, name in enumerate(known.names):
        keys = set(known.get_level_values(at))
        if name is not None and all(is_label(key) and key in keys for key in wanted):
            return f"Use keys={{{name!r}: {quote([*wanted])}}}."
    return "Give tuples, one key for each level, or a dict of lists by level."


def _other_kind(key: object, values: pd.Series) -> str:
    """Say of which kinds a key and those of a level are, where these differ."""
    kind, one = _kind(values), _kind_of(key)
    if kind not in _ONE_AND_MANY or one == kind or _NUMBERS >= {one, kind}:
        return ""
    return f": it is {_one(key)}, and those are {_many(values)}, such as {next(iter(values))!r}"


def _kind(values: pd.Series) -> str:
    return str(pd.api.types.infer_dtype(list(values), skipna=True))


def _kind_of(value: object) -> str:
    return str(pd.api.types.infer_dtype([value], skipna=False)) if is_label(value) else ""


def _one(value: object) -> str:
    """Name the kind of a value, with its article."""
    return _ONE_AND_MANY.get(_kind_of(value), (f"of type {type(value).__name__}", ""))[0]


def _many(values: pd.Series) -> str:
    """Name the kind of values."""
    kind = _kind(values)
    if kind == "period":
        often = _FREQUENCIES.get(values.iloc[0].freqstr.split("-")[0].upper())
        return "Periods" if often is None else f"{often} Periods"
    return _ONE_AND_MANY.get(kind, ("", "of several kinds"))[1]
