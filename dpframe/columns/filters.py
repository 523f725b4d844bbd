"""Which rows of a private frame satisfy a condition.

Whether a row does depends on its own values alone, whatever the dtypes of the columns: a comparison
holds only between two numbers, two texts or two points in time, and a missing value equals nothing.
"""

from collections.abc import Callable
from datetime import UTC
from functools import reduce
from operator import eq, ge, gt, le, lt
from typing import Any

import numpy as np
import pandas as pd

from dpframe.columns.identity import known_base
from dpframe.columns.times import EPOCH, MICROSECOND, instants, wall_times
from dpframe.columns.values import numbers, objects, raw_numbers, split_categories, spread, texts
from dpframe.queries import where
from dpframe.queries.edges import moment_of
from dpframe.queries.where import Condition

_Relation = Callable[[Any, Any], np.ndarray]

_RELATIONS: dict[str, _Relation] = {"==": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_OPERATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}
# beyond, floats no longer tell all integers apart
_EXACT = 2.0**53


def keep(condition: Condition, frame: pd.DataFrame) -> np.ndarray:
    """Evaluate a condition on every row.

    Numbers are compared as floats, True is 1, and a number beyond the range of floats is infinite;
    arithmetic on anything but numbers gives NaN. A text constant that is an ISO date or timestamp
    is also compared with points in time, to the microsecond: without an offset with what the clock
    on the wall showed, with one with the instant. `!=` and `not in` hold where `==` and `in` fail.

    Parameters
    ----------
    condition
        The condition.
    frame
        A frame, or a slice of one, that has at least the columns of the condition.

    Returns
    -------
    numpy.ndarray
        Boolean, one per row.

    Examples
    --------
    >>> keep(Condition.parse("0 < fare <= 10"), pd.DataFrame({"fare": [4.5, None, 12]}))
    array([ True, False, False])
    """
    with np.errstate(all="ignore"):
        mask = _truth(condition.root, frame)
    return np.full(len(frame), mask) if mask.ndim == 0 else mask


def _truth(node: where.Node, frame: pd.DataFrame) -> np.ndarray:
    """Evaluate a condition; one that looks at no column gives a single truth for all rows."""
    match node:
        case where.All(parts=parts):
            return reduce(np.logical_and, (_truth(part, frame) for part in parts), np.asarray(True))
        case where.Any(parts=parts):
            return reduce(np.logical_or, (_truth(part, frame) for part in parts), np.asarray(False))
        case where.Not(operand=operand):
            return np.asarray(np.logical_not(_truth(operand, frame)))
        case where.Name(label=label):
            values = numbers(frame[label])
            return np.asarray((values != 0) & ~np.isnan(values))
        case where.Membership(operand=operand, items=items):
            return _membership(operand, items, frame)
    return _comparison(node, frame)


def _comparison(node: where.Compare | where.InPart, frame: pd.DataFrame) -> np.ndarray:
    """Compare two values in the ways that their kinds allow."""
    if isinstance(node, where.InPart):
        return _in_part(frame[node.label], node)
    match node.left, node.right:
        case where.Name(label=label), where.Constant(value=constant):
            return _against(frame[label], node.operator, constant)
        case where.Constant(value=constant), where.Name(label=label):
            return _against(frame[label], where.MIRRORED[node.operator], constant)
        case where.Name(label=left), where.Name(label=right):
            return _columns(frame[left], _RELATIONS[node.operator], frame[right])
    relation = _RELATIONS[node.operator]
    return np.asarray(relation(_numeric(node.left, frame), _numeric(node.right, frame)))


def _in_part(column: pd.Series, node: where.InPart) -> np.ndarray:
    """Tell which values are of a part: objects with an equality of their own are of none."""
    parts = split_categories(column)
    if parts is not None:
        return spread(_in_part(parts.values, node), parts.codes, absent=False)
    mask = _texts_against(column, eq, node.text)
    if node.number is not None:
        mask = mask | _against(column, "==", node.number)
    if column.dtype == object and mask.any():
        mask[mask] = [known_base(type(cell)) is not None for cell in objects(column[mask])]
    return np.asarray(mask)


def _membership(
    operand: where.Value, items: tuple[float | str, ...], frame: pd.DataFrame
) -> np.ndarray:
    """Tell which values equal one of some constants."""
    finite = np.array([item for item in items if not isinstance(item, str)], dtype=np.float64)
    if not isinstance(operand, where.Name):
        return np.isin(_numeric(operand, frame), finite)
    column = frame[operand.label]
    mask = np.zeros(len(column), dtype=bool)
    if len(finite):
        mask |= np.isin(numbers(column), finite)
    sought = [item for item in items if isinstance(item, str)]
    if sought:
        mask |= _among_texts(column, sought)
    return mask


def _against(column: pd.Series, relation: str, constant: float | str) -> np.ndarray:
    """Compare a column with a constant."""
    if isinstance(constant, str):
        return _against_text(column, relation, constant)
    values = raw_numbers(column)
    # Integers compare with an integer faster than with a float, and below 2**53 no differently.
    if values.dtype.kind in "iu" and constant.is_integer() and abs(constant) < _EXACT:
        return _RELATIONS[relation](values, int(constant))
    return _RELATIONS[relation](values, np.float64(constant))


def _numeric(node: where.Value, frame: pd.DataFrame) -> np.ndarray:
    """Evaluate a number per row, or one for all rows if it looks at no column."""
    match node:
        case where.Name(label=label):
            return numbers(frame[label])
        case where.Negative(operand=operand):
            return np.asarray(np.negative(_numeric(operand, frame)))
        case where.Arithmetic(operator=sign, left=left, right=right):
            return np.asarray(_OPERATORS[sign](_numeric(left, frame), _numeric(right, frame)))
    return np.asarray(node.value, dtype=np.float64)


def _against_text(column: pd.Series, relation: str, constant: str) -> np.ndarray:
    """Compare a column with a text, and with the point in time that the text may be."""
    parts = split_categories(column)
    if parts is not None:
        return spread(_against_text(parts.values, relation, constant), parts.codes, absent=False)
    compare = _RELATIONS[relation]
    mask = _texts_against(column, compare, constant)
    mask |= _times_against(column, compare, constant)
    return mask


def _texts_against(column: pd.Series, compare: _Relation, constant: str) -> np.ndarray:
    """Compare the texts of a column with one."""
    if _is_arrow_text(column):
        answer = compare(column.array, constant)
        if isinstance(answer, np.ndarray):
            return answer
        return np.asarray(answer.to_numpy(dtype=bool, na_value=False))
    # of text itself, NumPy would strip the NULs that it may end in
    return _related_texts(compare, texts(column), np.array([constant], object))


def _times_against(column: pd.Series, compare: _Relation, constant: str) -> np.ndarray:
    """Compare the points in time of a column with a text, if that is one."""
    moment = moment_of(constant)
    if moment is None:
        return np.zeros(len(column), dtype=bool)
    times, valid = wall_times(column) if moment.tzinfo is None else instants(column)
    since = moment - EPOCH.replace(tzinfo=moment.tzinfo and UTC)
    return np.asarray(valid & compare(times, since // MICROSECOND))


def _among_texts(column: pd.Series, sought: list[str]) -> np.ndarray:
    """Tell which values equal one of some texts, or the point in time that it may be."""
    parts = split_categories(column)
    if parts is not None:
        return spread(_among_texts(parts.values, sought), parts.codes, absent=False)
    if _is_arrow_text(column):
        return np.asarray(column.array.isin(sought), dtype=bool)
    mask = np.fromiter(map(frozenset(sought).__contains__, texts(column)), bool, len(column))
    for text in sought:
        mask |= _times_against(column, eq, text)
    return mask


def _is_arrow_text(column: pd.Series) -> bool:
    """Whether Arrow can compare a whole column with a text at once."""
    dtype = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return bool(dtype.storage == "pyarrow")
    return isinstance(dtype, pd.ArrowDtype) and dtype.kind == "U"


def _columns(left: pd.Series, compare: _Relation, right: pd.Series) -> np.ndarray:
    """Compare two columns: numbers with numbers, texts with texts, times with times."""
    mask = np.asarray(compare(numbers(left), numbers(right)))
    kinds = left.dtype.kind, right.dtype.kind
    if all(kind in "OU" for kind in kinds):
        mask |= _related_texts(compare, texts(left), texts(right))
    if all(kind in "OM" for kind in kinds):
        mask |= _related_times(compare, left, right)
    return mask


def _related_texts(compare: _Relation, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compare texts, or texts with a single one, where both are some."""
    both = (left != None) & (right != None)  # noqa: E711, per element
    mask = np.zeros(len(left), dtype=bool)
    mask[both] = compare(left[both], np.broadcast_to(right, left.shape)[both])
    return mask


def _related_times(compare: _Relation, left: pd.Series, right: pd.Series) -> np.ndarray:
    """Compare points in time where both have a zone, as instants, or neither has."""
    (utc, aware), (utc_right, aware_right) = instants(left), instants(right)
    (wall, valid), (wall_right, valid_right) = wall_times(left), wall_times(right)
    naive = valid & ~aware & valid_right & ~aware_right
    zoned = aware & aware_right
    return np.asarray(zoned & compare(utc, utc_right) | naive & compare(wall, wall_right))
