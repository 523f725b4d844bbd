"""Who is protected: the neighboring relation, and how much of a frame one privacy unit may fill."""

import math
from enum import Enum
from typing import Final, Literal, get_args

from dpframe.errors import DeclarationError
from dpframe.frozen import frozen
from dpframe.privacy.amounts import WRITTEN, as_number

Neighboring = Literal["add_remove", "replace"]


class EachRow(Enum):
    """A privacy unit that is named by no column; an enum, so that copies are the same object."""

    EACH_ROW = "each row"

    def __repr__(self) -> str:
        """Show it as it is written."""
        return "dpf.EACH_ROW"


EACH_ROW: Final = EachRow.EACH_ROW
"""Says on purpose that every row is a person of its own."""


_LIMITS = ("rows", "groups", "rows_per_group")


@frozen(slots=True)
class Caps:
    """How much of a frame one privacy unit may fill; `None`: no limit.

    Parameters
    ----------
    rows
        At most this many rows in all.
    groups
        At most this many groups.
    rows_per_group
        At most this many rows per group.
    """

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None

    def __post_init__(self) -> None:
        for name in _LIMITS:
            value = getattr(self, name)
            if value is None:
                continue
            try:
                number = as_number(value)
            except (TypeError, ValueError):
                number = math.nan
            if not isinstance(number, int) or not 1 <= number < WRITTEN:
                rule, way_out = "must be a whole number >= 1", "Give one such as 10."
                raise DeclarationError.about(f"max_{name}", rule, value, way_out)
            object.__setattr__(self, name, number)

    @property
    def words(self) -> str:
        """The caps there are, as they are written in a call."""
        limits = [(name, getattr(self, name)) for name in _LIMITS]
        return "".join(f", max_{name}={limit}" for name, limit in limits if limit is not None)


NO_CAPS = Caps()
"""No caps at all."""


ROW_CAPS = Caps(rows=1, groups=1, rows_per_group=1)
"""Caps of a frame whose privacy unit is the row."""


def check_neighboring(value: object) -> Neighboring:
    """Validate a neighboring relation."""
    for name in get_args(Neighboring):
        if isinstance(value, str) and value == name:
            return name  # type: ignore[no-any-return]
    raise DeclarationError.about("neighboring", 'must be "add_remove" or "replace"', value)
