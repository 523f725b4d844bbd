"""What an engine must do: exact integer totals of a private frame, and never noise."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import is_unicode
from dpframe.context import Context
from dpframe.engines.labels import LabelCounts
from dpframe.errors import DPFrameError, QueryError, ReleaseError, UnknownColumnError, quote
from dpframe.queries.tasks import LabelTask, Task
from dpframe.sources.manifest import Manifest

MOST_GATHERED = 1 << 25
"""More rows than this are not put together in memory."""

_MOST_LISTED = 20
"""Labels that an error lists where none is near."""

Frame: TypeAlias = Any
"""A private frame of any kind that an engine can read."""


UNREAD = "dpframe.unread"
"""Where `attrs` of gathered rows say what of a source is no row or no value; private."""


class Engine(Protocol):
    """Adds up the rows of one kind of frame, such as tables of a database or a cluster.

    A subclass writes `handles`, `totals` and `labels`, and `columns` where `frame.columns` does not
    list them; the other methods have an answer
    that is safe for frames of which nothing else is known. `register` makes it known;
    `dpframe.testing.check_engine` compares it with pandas.

    What an engine is told is public: labels, keys, conditions, caps and integer maps. What it reads
    is private, and leaves it as integers alone. It never adds noise. Reading rows happens after the
    budget was charged: what can fail for a public reason belongs into `check`.
    """

    @abstractmethod
    def handles(self, frame: object) -> bool:
        """Tell whether this engine can read the frame.

        What is declared is kept on the frame object, as an attribute, and not on what is made of
        it: such objects need a `__dict__` and weak references.
        """

    def columns(self, frame: Frame) -> list[Hashable]:
        """List the column labels of the frame, in order; they are public."""
        return list(frame.columns)

    def check(self, frame: Frame, columns: Iterable[Hashable]) -> None:
        """Check that every label names exactly one column of the frame.

        A mapping says by which parameter each is named.

        Raises
        ------
        UnknownColumnError
            If a label is not in the frame.
        QueryError
            If several columns of the frame carry a label, or it is no valid Unicode.
        """
        check_labels(self.columns(frame), columns)

    def manifest(self, frame: Frame) -> Manifest:
        """Say what is known of the source of a frame before any row is read.

        The types are those that are public, `None` where one cell may decide on one. They are named
        as Arrow or NumPy does: "string", "int64", "float64", "bool", "date32[day]",
        "timestamp[us]". What no value of a type can match is refused.
        """
        door = f"{type(frame).__module__}.{type(frame).__qualname__}"
        return Manifest(door, dict.fromkeys(self.columns(frame)), opaque=True)

    def mark(self, frame: Frame) -> None:
        """Mark a frame as declared, if frames made of it can be recognized by that."""

    def is_derived(self, frame: Frame) -> bool:
        """Tell whether a frame that is not declared shows that it was made of a marked one."""
        return False

    def attrs(self, frame: Frame) -> Mapping[Any, Any]:
        """Return the `attrs` of the frame, as pandas keeps them; empty where it has none."""
        return {}

    def gather(self, frame: Frame, labels: Sequence[Hashable]) -> pd.DataFrame:
        """Put all rows of some columns together in memory, as a frame of pandas; no release does.

        Raises
        ------
        DPFrameError
            If there are more than `MOST_GATHERED` rows, or the engine puts none together.
        """
        way_out = "Diagnose a sample of units in a frame of pandas that is declared alike."
        raise DPFrameError(f"the engine of this frame puts no rows together. {way_out}")

    @abstractmethod
    def totals(self, frame: Frame, tasks: Sequence[Task], context: Context) -> list[np.ndarray]:
        """Add up every term of some tasks in every cell, in as few passes as it takes.

        `totals[t, c] = sum over kept rows i in cell c of term_t(i), modulo 2**64`: an int64 array
        of shape (terms, cells) per task. What a row adds depends on its own values; which rows
        are kept of a unit depends on the rows of that unit and on fresh randomness. Tasks of one
        call that ask the same of a unit keep the same of its rows. Nothing is raised or warned of
        because of private values, and the frame is not changed. The context is handed on to what
        chooses rows: `totals_of`, or `dpframe.privacy.noise.row_words`.

        Raises
        ------
        UnknownColumnError, QueryError
            If a column that a task names is missing from the frame, or there more than once.
        """

    @abstractmethod
    def labels(self, frame: Frame, task: LabelTask, context: Context) -> LabelCounts:
        """Find the labels that rows have, and count units on each, in as few passes as it takes.

        As for totals, what a row counts for depends on its own values, on the rows of its unit and
        on fresh randomness; nothing is raised or warned of because of private values.

        Raises
        ------
        UnknownColumnError, QueryError
            If a column that the task names is missing from the frame, or there more than once.
        """


def totals_by(
    engine: Engine, frame: Frame, tasks: Sequence[Task], context: Context
) -> list[np.ndarray]:
    """Add up terms by an engine, and refuse totals that are not of the form that is asked for.

    Raises
    ------
    ReleaseError
        If they are not int64 of shape (terms, cells) each: others would overflow, or be no sums.
    """
    totals = engine.totals(frame, tasks, context)
    shapes = [(len(task.terms), task.cells.size) for task in tasks]
    forms = [(getattr(table, "dtype", None), getattr(table, "shape", None)) for table in totals]
    if forms != [(np.dtype("int64"), shape) for shape in shapes]:
        raise ReleaseError("the totals of the engine are not int64 of the shape that was asked for")
    return totals


def check_gathered(rows: int) -> None:
    """Check that not too many rows are to be put together."""
    if rows > MOST_GATHERED:
        text = f"more than {MOST_GATHERED:,} rows would have to be in memory at once."
        way_out = "Diagnose some files, or a sample of units, in a frame that is declared alike."
        raise DPFrameError(f"{text} {way_out}")


def check_labels(
    labels: Sequence[Hashable], needed: Iterable[Hashable], levels: Sequence[Hashable] = ()
) -> None:
    """Check that every wanted label is among the labels exactly once, and is valid Unicode.

    Levels are the names of the index, which queries do not look at. Where it is a mapping, it says
    which parameter names each label.
    """
    times = Counter(labels)
    named_by = needed if isinstance(needed, Mapping) else {}
    for label in needed:
        kind: type[QueryError] = QueryError
        if not is_unicode(label):
            # neither Arrow nor a ledger can keep it
            text = f"the column label {label!a} must be a valid Unicode text. Rename the column."
        elif label not in times:
            kind = UnknownColumnError
            hint = _hint(label, labels, levels)
            if named_by.get(label) in ("where", "condition") and isinstance(label, str):
                hint = f"A text in a condition needs quotes: '{label}'. {hint}"
            text = f"the frame has no column {quote(label)}. {hint}"
        elif times[label] > 1:
            text = f"duplicate column: {times[label]} columns of the frame are labeled {label!r}. "
            text += "Rename them so that the label names one."
        else:
            continue
        raise kind(text, parameter=named_by.get(label), label=label)


def _hint(label: Hashable, labels: Sequence[Hashable], levels: Sequence[Hashable]) -> str:
    """Say what an unknown label may mean: a level, several labels, one that is near, or any."""
    if label is not None and label in levels:
        return "It is in the index: declare and query frame.reset_index(), which makes it a column."
    if isinstance(label, tuple) and label and all(part in labels for part in label):
        return f"Several columns are given as a list: {[*label]!r}."
    if not labels:
        return "It has no columns."
    named: dict[str, list[Hashable]] = {}
    for column in labels:
        named.setdefault(str(column).lower(), []).append(column)
    texts = get_close_matches(quote(label).strip("'").lower(), named)
    close = [repr(column) for text in texts for column in named[text]]
    if close:
        return f"Did you mean {' or '.join(close)}?"
    listed = ", ".join(map(repr, labels[:_MOST_LISTED]))
    more = len(labels) - _MOST_LISTED
    return f"It has {listed} and {more} more." if more > 0 else f"It has {listed}."
