"""The worst unit in words."""

from dpframe.checker.units import FilledCells
from dpframe.privacy.neighbors import Neighboring


def words_of(filled: FilledCells, neighboring: Neighboring) -> str:
    """Say how rows of a unit, or of two units, lie in cells.

    Examples
    --------
    >>> words_of([(2, 3, 0), (1, 1, 0)], "add_remove")
    'a unit with 3 rows in each of 2 cells, and 1 row in 1 cell'
    >>> words_of([(1, 2, 2)], "replace")
    'a unit in place of another, with 2 rows, in place of 2 rows, in 1 cell'
    """
    if not filled:
        return "no unit moves anything"
    who = "a unit" if neighboring == "add_remove" else "a unit in place of another,"
    return f"{who} with {', and '.join(_in_cells(*one) for one in filled)}"


def _in_cells(times: int, a: int, b: int) -> str:
    rows = count(a, "row") if not b else f"{count(a, 'row')}, in place of {count(b, 'row')},"
    where = "1 cell" if times == 1 else f"each of {times:,} cells"
    return f"{rows} in {where}"


def count(number: int, noun: str) -> str:
    """Say how many there are.

    Examples
    --------
    >>> count(1, "row"), count(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
