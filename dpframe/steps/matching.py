"""What constants of a condition can match: a kind that matches nothing is a mistake."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dpframe.columns.times import instants, wall_times
from dpframe.columns.values import numbers, texts
from dpframe.queries.timescale import moment_of
from dpframe.queries.where import Compare, Condition, Constant, Membership, Name, leaves


def constants_compared(condition: Condition) -> Iterator[tuple[str, float | str]]:
    """Find the constants that a condition compares with a name."""
    for found in leaves(condition.root):
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
