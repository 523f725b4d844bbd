"""The check of an engine: the integers of pandas, on odd values, under caps, on neighbors."""

import contextlib
import datetime
import io
import logging
import math
import os
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any
from weakref import ref

import numpy as np
import pandas as pd

from dpframe.context import SYSTEM
from dpframe.declaration.kinds import OTHER, kind_of_type, kind_of_value
from dpframe.engines import Engine, Frame, label_counts, totals_of
from dpframe.engines.labels import LabelCounts
from dpframe.errors import STOPS, PrivacyTestError, QueryError
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid, check_bins, ticks_of
from dpframe.queries.searches import candidate_caps
from dpframe.queries.tasks import (
    BinAxis,
    Cells,
    KeyAxis,
    LabelAxis,
    LabelKind,
    LabelTask,
    RowWeights,
    Sizes,
    Task,
    Term,
)
from dpframe.queries.where import Condition

_ROWS, _TIMES = 24, 3  # rows that differ, and how often each is there
_MANY, _GROUPS = 600, 6  # units with a row in each group
_CHANCE = 38.0  # chi-squared of five degrees is above in fewer than one of 2,500,000 draws
_KEYS = ["A", 1, 2.5, "1", 2**53 + 1, True, pd.Timestamp("2024-02-01"), pd.Timedelta("2h"), "é"]
_ALONE = 6  # units of whose rows the types are looked at
_SHOWN = 5  # faults
_ALWAYS = ("numbers", "texts")  # kinds of frames that every engine can read


def check_engine(
    engine: Engine,
    frames: Callable[[pd.DataFrame], Frame | None],
    derived: Callable[[Frame], Frame] | None = None,
) -> None:
    """Compare an engine with the one of pandas, on frames made for it.

    Totals are compared to the last bit: all kinds of cells and terms, conditions, replacements of
    both neighboring relations, caps that drop rows, units of several columns, neighbors, no rows.
    What is random is compared where every choice gives the same totals. In addition, choices must
    be uniform, fresh in every call, and the same for tasks that ask the same of a unit.

    A correct engine fails in fewer than one call in 1,000,000, by chance. Passing is no proof: an
    engine may still show values in messages, or spend before it fails.

    Parameters
    ----------
    engine
        The engine; it need not be registered.
    frames
        Makes a frame of the engine, of several partitions or files if there can be some, from one
        of pandas: rows in any order, all columns, values as they are. `None` where such frames
        cannot hold the dtypes, or texts that are empty; numbers and other texts must be held.
    derived
        Makes a frame of another one as users do, by a filter for instance: `is_derived` must tell,
        or rows are released outside of the budget. `None`: no frame is made of another.

    Raises
    ------
    PrivacyTestError
        If anything differs: the first faults, with `rule="engine"`.

    Examples
    --------
    >>> from dpframe.engines import engine_for
    >>> check_engine(engine_for(pd.DataFrame()), lambda frame: frame)
    """
    check = _Check(engine, frames, derived)
    for name, frame in _odd_frames().items():
        check.compare(name, frame)
    check.compare_choices()
    faults = check.faults
    if faults:
        more = f"\n... and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        text = "\n".join(faults[:_SHOWN])
        raise PrivacyTestError(f"the engine is not that of pandas.\n{text}{more}", rule="engine")


class _Failure(Exception):  # noqa: N818
    """The engine has failed: a fault is noted, and nothing is there to compare."""


class _Check:
    """Compares an engine with that of pandas, and notes what differs."""

    def __init__(
        self,
        engine: Engine,
        frames: Callable[[pd.DataFrame], Frame | None],
        derived: Callable[[Frame], Frame] | None,
    ) -> None:
        self.engine, self.frames, self.derived = engine, frames, derived
        self.faults: list[str] = []
        self._name = ""

    def compare(self, name: str, frame: pd.DataFrame) -> None:
        """Compare facts, totals and labels of a frame; for some kinds, of its neighbors, too."""
        self._name = name
        held = self.frames(frame)
        if held is None:
            if name in _ALWAYS:
                self._note("such a frame must be held, `frames` returned None")
            return
        with contextlib.suppress(_Failure):
            self._compare_facts(frame, held)
            self._compare_totals(frame, held, "")
            self._compare_labels(frame, held)
            if name in _ALWAYS:
                self._compare_neighbors(frame, held)

    def compare_choices(self) -> None:
        """Look at which rows of units are kept, where they have one in each of some groups."""
        self._name = "choices"
        rows = np.arange(_MANY * _GROUPS)
        held = self.frames(pd.DataFrame({"g": rows // _MANY, "unit": rows % _MANY}))
        cells = Cells((KeyAxis("g", pd.RangeIndex(_GROUPS)),))
        with contextlib.suppress(_Failure):
            for caps in (Caps(rows=1), Caps(groups=1)):
                task = Task(cells, (Term("rows"),), unit=("unit",), caps=caps)
                first, same = self._ask("totals", held, [task, task], SYSTEM)
                again, _ = self._ask("totals", held, [task, task], SYSTEM)
                self._judge(caps.words[2:], first, same, again)
            labels = LabelTask((LabelAxis("g", "int64"),), 2, None, ("unit",))
            counted = self._ask("labels", held, labels, SYSTEM).units.sum()
            if counted != 2 * _MANY:
                self._note(
                    f"labels: {_MANY} units have counted for {counted} labels, each may for 2"
                )

    def _note(self, fault: str) -> None:
        self.faults.append(f"{self._name}: {fault}")

    def _ask(self, method: str, *arguments: Any, refusals: tuple[type[Exception], ...] = ()) -> Any:
        """Call a method of the engine; note where it fails, but for refusals that are right."""
        try:
            with self._watched(method):
                return getattr(self.engine, method)(*arguments)
        except STOPS:
            raise
        except refusals:
            raise
        except BaseException as error:
            self._note(f"{method} raised {type(error).__name__}: {error}")
            raise _Failure from error

    @contextlib.contextmanager
    def _watched(self, method: str) -> Iterator[None]:
        """Note what is printed, logged, warned of or left in the working folder meanwhile."""
        printed, logged, before = io.StringIO(), io.StringIO(), {*os.listdir()}
        handler = logging.StreamHandler(logged)
        with warnings.catch_warnings(record=True) as warned, contextlib.ExitStack() as stack:
            warnings.simplefilter("always")
            stack.enter_context(contextlib.redirect_stdout(printed))
            stack.enter_context(contextlib.redirect_stderr(printed))
            logging.getLogger().addHandler(handler)
            stack.callback(logging.getLogger().removeHandler, handler)
            try:
                yield
            finally:  # what is refused may be shown before
                seen = {
                    "prints": printed.getvalue(),
                    "logs": logged.getvalue(),
                    "warns": warned,
                    "leaves files": {*os.listdir()} - before,
                }
                for verb in filter(seen.get, seen):
                    self._note(f"{method} {verb}: it may show private values")

    def _compare_origin(self, held: Frame) -> None:
        """Check that frames that are made of a declared one are told from others."""
        if self.derived is not None and not self._ask("is_derived", self.derived(held)):
            self._note("is_derived must be True of a frame that is made of a marked one")

    def _compare_facts(self, frame: pd.DataFrame, held: Frame) -> None:
        """Compare what is public."""
        if not self._ask("handles", held) or self._ask("handles", object()):
            self._note("handles must be True of its frames, and False of an object")
        if not hasattr(held, "__dict__") or ref(held)() is not held:
            self._note("frames must keep attributes and weak references: a declaration is one")
        columns = self._ask("columns", held)
        if columns != list(frame):
            self._note(f"columns are {columns}, not {list(frame)}")
        if not isinstance(self._ask("attrs", held), Mapping):
            self._note("attrs must be a mapping")
        self._ask("mark", held)
        self._compare_origin(held)
        self._ask("check", held, list(frame))
        types = self._types(held)
        for label in frame:
            kind = kind_of_type(types.get(label) or "")
            kinds = {kind_of_value(value) for value in frame[label].dropna().tolist()}
            if kind is not None and not kinds & {kind, OTHER}:
                wrong = "keys that cells equal would be refused"
                self._note(f"the manifest says that {label!r} holds {kind}: {wrong}")
        absent = Task(Cells((KeyAxis("absent", pd.RangeIndex(2)),)), (Term("rows"),))
        for method, *arguments in (("check", ["absent"]), ("totals", [absent], SYSTEM)):
            with contextlib.suppress(QueryError, _Failure):
                self._ask(str(method), held, *arguments, refusals=(QueryError,))
                self._note(f"{method} of an unknown column must raise UnknownColumnError")

    def _types(self, held: Frame | None) -> Mapping[Hashable, str | None]:
        """Return the types that are public."""
        types: Mapping[Hashable, str | None] = self._ask("manifest", held).types
        return types

    def _compare_neighbors(self, frame: pd.DataFrame, held: Frame) -> None:
        """Compare totals of neighbors in both relations, and of no rows."""
        types = self._types(held)
        for unit in range(_ALONE):
            others = self._types(self.frames(frame[frame["unit"] == unit].reset_index(drop=True)))
            for label, kind in types.items():
                if others.get(label) != kind:
                    self._note(f"the type of {label!r} depends on cells: few rows have another")
        for words, part in _neighbors(frame):
            self._compare_totals(part, self.frames(part), f" {words}")

    def _compare_totals(self, frame: pd.DataFrame, held: Frame, words: str) -> None:
        tasks = _tasks(frame)
        answers = self._ask("totals", held, list(tasks.values()), SYSTEM)
        expected = totals_of([frame], list(tasks.values()), SYSTEM, 1)
        if len(answers) != len(expected):
            self._note(f"{len(answers)} totals of {len(expected)} tasks{words}")
            return
        for name, answer, totals in zip(tasks, answers, expected, strict=True):
            counts = isinstance(answer, np.ndarray) and answer.dtype == np.int64
            if not counts or answer.shape != totals.shape:
                self._note(f"{name}: totals must be int64 of shape (terms, cells){words}")
            elif not np.array_equal(answer, totals):
                term, cell = np.argwhere(answer != totals)[0].tolist()
                pair = f"{answer[term, cell]}, not {totals[term, cell]}"
                self._note(f"{name}: term {term} of cell {cell} is {pair}{words}")

    def _compare_labels(self, frame: pd.DataFrame, held: Frame) -> None:
        for name, task in _label_tasks(len(frame)).items():
            expected = label_counts([frame], [task], SYSTEM, 1)[0]
            if _as_dict(self._ask("labels", held, task, SYSTEM)) != _as_dict(expected):
                self._note(f"labels, {name}: counts differ")

    def _judge(self, caps: str, first: np.ndarray, same: np.ndarray, again: np.ndarray) -> None:
        """Judge rows kept by group: by two tasks of one call, and by another call."""
        mean = _MANY / _GROUPS
        if first.sum() != _MANY or again.sum() != _MANY:
            self._note(f"{caps}: {first.sum()} rows of {_MANY} units are kept")
        elif ((first - mean) ** 2).sum() / mean > _CHANCE:
            self._note(f"{caps}: rows are not kept at random, by group {first.ravel().tolist()}")
        elif np.array_equal(first, again):
            self._note(f"{caps}: two calls keep the same rows")
        if not np.array_equal(first, same):
            self._note(f"{caps}: two tasks of one call that ask the same keep other rows")


def _neighbors(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Give neighbors in both relations, and no rows."""
    last, first = frame["unit"] == _ROWS - 1, frame["unit"] == 0
    yield "without one unit", frame[~last].reset_index(drop=True)
    other = frame.copy()
    other[last] = frame[first].assign(unit=_ROWS - 1).set_axis(other.index[last])
    yield "with one unit replaced", other
    yield "without rows", frame.iloc[:0]


def _as_dict(counts: LabelCounts) -> dict[tuple[Any, ...], int]:
    rows = zip(*(column.tolist() for column in counts.labels), strict=True)
    return dict(zip(rows, counts.units.tolist(), strict=True))


def _tasks(frame: pd.DataFrame) -> dict[str, Task]:
    """Ask for everything that tasks can ask for, where any choice of rows has the same totals."""
    keys = KeyAxis("k", pd.Index(_KEYS, dtype=object).drop_duplicates())
    units = KeyAxis("unit", pd.RangeIndex(4))
    zone = getattr(frame["x"].dtype, "kind", "f") == "m"
    edges = [pd.Timedelta(0), pd.Timedelta("1h"), pd.Timedelta("9h")] if zone else [-1, 0.5, 3]
    bins = BinAxis("x", check_bins("x", edges))
    grid = Grid.for_bounds(-2, 2.7)
    if zone:
        grid = Grid.for_bounds(0, 7200, ticks=ticks_of(pd.Timedelta(0), pd.Timedelta("2h")))
    filled = replace(grid, fill=grid.upper - 1)
    where, other = Condition.parse("n > 1 and k != 'A'"), Condition.parse("n < 3 or b == True")
    sums = (
        Term("rows"),
        Term("valid", "x", grid),
        Term("sum", "x", grid),
        Term("square", "x", grid),
    )
    few = tuple(Term("sum", label, Grid(0, 0, 1)) for label in ("b", "n"))
    tasks = {
        "rows": Task(Cells(), sums),
        "keys": Task(Cells((keys,)), sums),
        "bins": Task(Cells((bins, units)), (Term("rows"),)),
        "rest": Task(Cells((replace(keys, rest=True), replace(bins, clipped=True))), sums[:3]),
        "hidden": Task(Cells((replace(keys, hidden=True), replace(bins, hidden=True))), sums[:1]),
        "chosen": Task(Cells((keys, units), chosen=np.array([7, 2, 5])), sums[:1]),
        "margins": Task(Cells((keys, units, bins), margins=((0, 1), (2,), ())), sums[:1]),
        "where": Task(Cells((units,)), (*sums, Term("rows", where=other)), where),
        "filled": Task(Cells((keys,)), (Term("valid", "x", filled), Term("sum", "x", filled))),
        "dropped": Task(Cells((keys,)), sums[:1], valued=(("x", replace(grid, drop=True)),)),
        "truths": Task(Cells(), few, valued=(("n", Grid(0, 0, 4)),)),
        "part": Task(Cells((units,)), sums[:1], Condition.of_part("k", "1", 1.0)),
    }
    alike: dict[str, Caps] = {
        "max_rows=2": Caps(rows=2),
        "max_rows_per_group=1": Caps(rows_per_group=1),
        "max_groups=1, max_rows_per_group=2": Caps(groups=1, rows_per_group=2),
    }
    weights = RowWeights("n", Grid.for_bounds(0, 2.3, bits=30), (0, 2.3))
    weighted = (
        Term("rows", weights=weights),
        Term("valid", "x", grid, weights=weights),
        Term("sum", "x", grid, weights=weights, origin=grid.lower, span=grid.upper - grid.lower),
        Term("rows", where=other, weights=weights),
    )
    tasks["weighted"] = Task(Cells((keys,)), weighted)
    tasks["weighted margins"] = replace(tasks["margins"], terms=weighted[:3])
    of_unit = (*sums, Term("units"))
    for words, caps in alike.items():
        tasks[words] = Task(Cells((keys,)), of_unit, unit=("unit",), caps=caps)
        tasks[f"{words}, where"] = Task(Cells((units,)), of_unit, where, ("unit",), caps)
        tasks[f"{words}, filled"] = replace(tasks["filled"], unit=("unit",), caps=caps)
        tasks[f"{words}, margins"] = replace(tasks["margins"], unit=("unit",), caps=caps)
        tasks[f"{words}, weighted"] = replace(tasks["weighted"], unit=("unit",), caps=caps)
    most = Caps(rows=_ROWS * _TIMES)
    tasks["pairs"] = Task(Cells((units,)), of_unit, unit=("unit", "o"), caps=Caps(rows=2))
    # a unit is counted with one of its rows, and it is open in which cell
    tasks["odd units"] = Task(Cells(), of_unit, unit=("o",), caps=most)
    tasks["odd units by keys"] = replace(tasks["keys"], unit=("o",), caps=most)
    tasks["dropped, odd units"] = replace(tasks["dropped"], unit=("o",), caps=most)
    for kind in ("rows", "groups", "rows_per_group"):
        sizes = Sizes(Cells((keys,)), kind, KeyAxis(kind, candidate_caps(kind, 6)))
        tasks[f"sizes: {kind}"] = Task(
            Cells((sizes.axis,)), (Term("units"),), unit=("o",), sizes=sizes
        )
    return tasks


def _label_tasks(rows: int) -> dict[str, LabelTask]:
    """Ask for labels of every kind, all that a unit has."""
    kinds: tuple[LabelKind, ...] = ("string", "int64", "bool", "date", "datetime")
    tasks: dict[str, LabelTask] = {
        kind: LabelTask((LabelAxis("k", kind),), 9, None, ("unit",)) for kind in kinds
    }
    axes = (LabelAxis("k", "string"), LabelAxis("n", "int64"))
    tasks["of two"] = LabelTask(axes, rows, Condition.parse("n > 0"), ("o",))
    tasks["of rows"] = LabelTask((LabelAxis("n", "int64"),), 1)
    earlier = np.array(["A"], object), np.array([1])
    tasks["by weights"] = LabelTask(axes, rows, None, ("o",), tuple(range(rows, 0, -1)), earlier)
    return tasks


def _odd_frames() -> dict[str, pd.DataFrame]:
    """Make frames of every kind of dtype: each row is there several times, far from itself."""
    number = [0, 1, 2, -7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
    real = [0.0, -0.0, 1.0, 2.5, math.nan, math.inf, -math.inf, 5e-324, 1e300, 2.0**53, -1.5]
    text = ["A", "B", "1", "é", "2024-02-01", " A", "a\x00", "A" * 300]
    empty = ["", *text, None]  # which text files do not tell from missing ones
    times = [*pd.date_range("2024-02-01", periods=3, freq="12h"), None, pd.Timestamp(0)]
    lengths = [*pd.to_timedelta([0, 1, 2, -3], unit="h"), None, pd.Timedelta("90min")]
    zoned = [None if time is None else time.tz_localize("UTC") for time in times]
    odd: list[Any] = [
        *text[:4],
        1,
        1.0,
        True,
        None,
        math.nan,
        Decimal(1),
        2**53 + 1,
        10**400,
        (1, 2),
        2.5,
    ]
    odd += [*times, *lengths, datetime.date(2024, 2, 1), b"A", pd.NA, [1]]
    columns: dict[str, tuple[Any, ...]] = {
        "numbers": (number, "int64", real, "float64", real, "float64"),
        "texts": ([*text, None], "string", [*real[:8], 0.1], "float32", [*text, None], "string"),
        "empty texts": (empty, "string", real, "float64", empty, "string"),
        "nullable": ([*number, None], "Int64", [*real, None], "Float64", [1, None, 0], "boolean"),
        "times": (
            times,
            "datetime64[us]",
            lengths,
            "timedelta64[us]",
            zoned,
            "datetime64[us, UTC]",
        ),
        "dates": ([datetime.date(2024, 2, 1), None], object, real, "float64", text, "string"),
        "categories": (text[:4], "category", [1, 2, None], "category", [1, 2, "A"], "category"),
        "objects": (odd, object, odd[3:], object, odd[1:-1], object),
        # a mean that fills holes is a number, where no infinity is beside them
        "holes": (number[:3], "int64", [0.5, None, 2.5, 1.0], "float64", [1, None], "float64"),
    }
    frames = {}
    for name, (keys, of_keys, values, of_values, units, of_units) in columns.items():
        places = np.arange(_ROWS)
        frame = pd.DataFrame(
            {
                "k": _column(keys, places, of_keys),
                "x": _column(values, 7 * places + 2, of_values),
                "o": _column(units, 5 * places + places // 9, of_units),
                "n": places * places % 5,
                "b": places % 3 == 1,
                "unit": places,
            }
        )
        frames[name] = pd.concat([frame] * _TIMES, ignore_index=True)
    return frames


def _column(pool: list[Any], places: np.ndarray, dtype: Any) -> Any:
    cells = np.empty(len(places), object)
    cells[:] = [pool[place % len(pool)] for place in places.tolist()]
    return pd.Series(cells, dtype=object).astype(dtype)
