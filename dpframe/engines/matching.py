"""Keys that no row can match, by the type of their column: refused before anything is charged.

The type of a column is public where no missing cell can change it (`columns/types.py`). Elsewhere
nothing is refused: whether a release is refused would tell what a private cell holds.
"""

from collections.abc import Hashable, Iterable
from typing import Protocol

from dpframe.declaration.kinds import DATE, TEXT, TIME, ZONED, kind_of_type, kind_of_value, kinds_of
from dpframe.engines.base import Engine, Frame
from dpframe.errors import QueryError
from dpframe.queries.tasks import Axis, KeyAxis

_EXAMPLES = {
    TEXT: "texts, such as '1'",
    DATE: "dates, such as datetime.date(2026, 1, 31)",
    TIME: "times, such as pd.Timestamp('2026-01-31')",
    ZONED: "times, such as pd.Timestamp('2026-01-31', tz='UTC')",
}
"""How keys are written that values of a kind can equal."""


class ReadingPlan(Protocol):
    """A plan: what it reads of a frame."""

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Private columns that are read."""
        ...

    @property
    def axes(self) -> Iterable[Axis]:
        """The groups in which rows are looked for."""
        ...


def check_readable(engine: Engine, frame: Frame, plan: ReadingPlan) -> None:
    """Check that a frame has the columns that a plan reads, and that some key of each can match.

    Raises
    ------
    UnknownColumnError, QueryError
        If a column is missing or there twice, or of a type of which no value equals any key.
    """
    engine.check(frame, plan.columns)
    check_keys_match(engine, frame, plan.axes)


def check_keys_match(engine: Engine, frame: Frame, axes: Iterable[Axis]) -> None:
    """Check that values of each column can equal some of its keys, as far as its type is public."""
    for axis in axes:
        name = engine.type_of(frame, axis.column) if isinstance(axis, KeyAxis) else None
        kind = None if name is None else kind_of_type(name)
        if kind is not None:
            _check_keys(axis, kind, f"{kind} ({name})")


def _check_keys(axis: Axis, kind: str, held: str) -> None:
    """Check that keys are not all of one kind, and the column of another.

    Keys of several kinds are made for columns that hold anything. The last one may stand for all
    others. Keys are not shown: they may have been taken from cells.
    """
    keys = axis.keys[:-1] if isinstance(axis, KeyAxis) and axis.rest else axis.keys
    first = keys[0] if len(keys) else None
    if kind_of_value(first) in (None, kind):  # of many keys, one is enough
        return
    kinds = kinds_of(keys)
    if len(kinds) == 1:
        raise QueryError(
            f"keys of {axis.column!r} are {min(kinds)}, but the column holds {held}: no row can "
            f"match. Give {_EXAMPLES.get(kind, kind)}, or convert the column before the frame is "
            "declared."
        )
