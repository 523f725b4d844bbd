"""Units to try a pipeline with: some of the frame's, and some that are made up."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np
import pandas as pd

from dpframe.declaration.facts import Column, Declaration
from dpframe.frozen import frozen

_MOST_CELLS, _MOST_ROWS, _MOST_ODD = 200, 2_000, 20  # cells and rows that are tried, and odd values


@frozen(eq=False)
class TriedUnit:
    """A unit to try, with frames that hold it and do not.

    Parameters
    ----------
    name
        How messages call it.
    unit
        Its identifier; of a frame without a unit, the label of its row.
    whole, without, alone
        Frames with all units, all but this one, and this one alone. `None`: the frame as it is.
    capped
        Whether it has more rows than caps allow. Which rows stay may then depend on their order,
        and so on other units, without any harm.
    """

    name: str
    unit: Any
    whole: pd.DataFrame | None
    without: pd.DataFrame | None
    alone: pd.DataFrame
    capped: bool = False


class Splitter:
    """A frame that is split by privacy unit.

    Parameters
    ----------
    frame
        The frame.
    unit
        The column of its units, or a list of several; `None`: every row is one.
    declarations
        What pipelines declare: which columns have keys.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        unit: Hashable | list[Hashable] | None,
        declarations: Sequence[Declaration] = (),
    ) -> None:
        self.frame = frame
        self.unit = unit_columns(unit)
        facts = [declaration.columns.items() for declaration in declarations]
        self.keyed = {label for columns in facts for label, c in columns if c.keys is not None}
        if len(self.unit) > 1:
            self.codes, self.ids = _combinations(frame[self.unit])
        elif self.unit:
            self.codes, self.ids = pd.factorize(frame[self.unit[0]])
        else:
            self.codes, self.ids = np.arange(len(frame)), frame.index

    def of_frame(self, most: int, seed: int) -> Iterator[TriedUnit]:
        """Give some units of the frame: those that stand out first, then random ones."""
        for code in self._choose(most, seed):
            inside = self.codes == code
            unit = self._id(code)
            name = f"{self._word} {unit!r:.60}"
            yield TriedUnit(name, unit, None, self.frame[~inside], self.frame[inside])

    @property
    def _word(self) -> str:
        return ", ".join(map(str, self.unit)) or "row"

    def _id(self, code: int) -> Any:
        """Return the identifier of a unit, a number of NumPy as one of Python."""
        return self.ids[code : code + 1].tolist()[0]

    def _choose(self, most: int, seed: int) -> list[int]:
        codes = self.codes[self.codes >= 0]
        if not len(codes):
            return []
        sizes = np.bincount(codes)
        ends = [codes[0], codes[-1], int(sizes.argmax()), int(sizes.argmin())]
        columns = range(self.frame.shape[1])
        odd = [self.codes[row] for at in columns for row in _outliers(self.frame.iloc[:, at])]
        others = np.random.default_rng(seed).permutation(len(sizes))  # no noise: a choice of units
        first = list(dict.fromkeys(int(code) for code in [*ends, *odd] if code >= 0))
        first = first[: max(most * 2 // 3, 1)]
        return list(dict.fromkeys([*first, *others.tolist()]))[:most]

    def made_up(self, declarations: Sequence[Declaration], seed: int) -> Iterator[TriedUnit]:
        """Make units with rows in all groups: more rows than caps allow, and no more."""
        if len(self.frame):
            rng = np.random.default_rng(seed)  # no noise: made-up rows
            for end, words in enumerate(("small", "large")):
                rows = self._full(declarations, rng, end)
                yield from self._add_rows(rows, f"{words} values in all groups", end, capped=True)
            rows = self._full(declarations, rng, 1).iloc[: _least_cap(declarations)]
            yield from self._add_rows(rows.copy(), "as many rows as caps allow", 1)

    def odd(self, declarations: Sequence[Declaration], seed: int) -> Iterator[TriedUnit]:
        """Make units of odd cells, in one column at a time: other cells are ordinary."""
        complete = self.frame.dropna()
        templates = complete if len(complete) else self.frame
        if not len(templates):
            return
        rng = np.random.default_rng(seed)  # no noise: made-up rows
        declared, keys, cells = self._groups(declarations)
        for label in [*dict.fromkeys([*declared, *self.frame.columns])][:_MOST_ODD]:
            column = self.frame[label]
            if label in self.unit or column.ndim != 1:
                continue
            odd = _odd_cells(column)
            rows = templates.iloc[rng.integers(len(templates), size=len(odd))].copy()
            for at, key in enumerate(keys):
                values = [cells[row % len(cells)][at] for row in range(len(odd))]
                _write_cells(rows, key, values)
            _write_cells(rows, label, odd)
            yield from self._add_rows(rows, f"odd cells in {label!r:.60}", 1)

    def _add_rows(
        self, rows: pd.DataFrame, words: str, end: int, *, capped: bool = False
    ) -> Iterator[TriedUnit]:
        """Add rows under an identifier before or behind all others, if there is one."""
        word, unit = "row", None
        if not self.unit:
            rows = rows.iloc[:1].copy()
        else:
            word, unit = "unit", self._new_unit(end)
            if unit is None:
                return
            self._write_unit(rows, unit)
        rows.index = _new_index(self.frame.index, len(rows))
        extended = pd.concat([self.frame, rows])
        yield TriedUnit(f"a made-up {word} of {words}", unit, extended, None, rows, capped)

    def _new_unit(self, end: int) -> Any:
        """Return a unit that no row has: new in one column, that of no groups if there is one."""
        if len(self.unit) == 1:
            return _new_ids(self.frame[self.unit[0]])[end]
        for label in sorted(self.unit, key=self.keyed.__contains__) if len(self.ids) else ():
            new = _new_ids(self.frame[label])[end]
            if new is not None:
                pairs = zip(self.unit, self._id(0 if end == 0 else len(self.ids) - 1), strict=True)
                return tuple(new if column == label else cell for column, cell in pairs)
        return None

    def _write_unit(self, rows: pd.DataFrame, unit: Any) -> None:
        for label, cell in zip(self.unit, unit if len(self.unit) > 1 else (unit,), strict=True):
            _write_cells(rows, label, [cell] * len(rows))

    def _templates(self, rng: np.random.Generator, count: int) -> pd.DataFrame:
        rows: pd.DataFrame = self.frame.iloc[rng.integers(len(self.frame), size=count)]
        return rows.copy()

    def _full(
        self, declarations: Sequence[Declaration], rng: np.random.Generator, end: int
    ) -> pd.DataFrame:
        """Make rows in all groups, more than caps allow, with values at the ends of bounds."""
        declared, keys, cells = self._groups(declarations)
        most = max((facts_of.caps.rows or 0 for facts_of in declarations), default=0) // len(cells)
        in_group = max((facts_of.caps.rows_per_group or 0 for facts_of in declarations), default=0)
        times = min(max(most, in_group, 1) + 1, max(_MOST_ROWS // len(cells), 1))
        rows = self._templates(rng, len(cells) * times)
        for at, label in enumerate(keys):
            _write_cells(rows, label, [cell[at] for cell in cells] * times)
        for label, facts in declared.items():
            bounds = facts.bounds
            if bounds is not None:
                _write_cells(rows, label, [bounds[end]] * len(rows))
        return rows

    def _groups(
        self, declarations: Sequence[Declaration]
    ) -> tuple[dict[Hashable, Column], list[Hashable], list[tuple[Any, ...]]]:
        """Return columns of which something is declared, those with keys, and their groups."""
        facts: dict[Hashable, Column] = {}
        for declaration in declarations:
            facts |= declaration.columns
        labels = set(self.frame.columns).difference(self.unit)
        declared: dict[Hashable, Column] = {k: c for k, c in facts.items() if k in labels}
        listed = {label: list(c.keys) for label, c in declared.items() if c.keys is not None}
        return declared, [*listed], list(islice(product(*listed.values()), _MOST_CELLS))

    def replacing(self, most: int, seed: int) -> Iterator[tuple[TriedUnit, pd.DataFrame]]:
        """Give units and frames for neighbors in which one is replaced, see `of_frame`.

        `without` has the rows of a common model in place of the unit's; `alone` has them in place
        of all others', and the frame beside it in place of everybody's.
        """
        codes = self._choose(most + 1, seed)
        if not codes:
            return
        model, *others = [codes[-1], *codes[:-1]]
        counts = np.bincount(self.codes[self.codes >= 0])
        all_replaced = self._as_model(model, range(len(counts)))
        for code in others:
            replaced = self._replace_unit(code, model)
            alone = self._as_model(model, range(len(counts)), keep=code)
            name = f"{self._word} {self._id(code)!r:.60}"
            yield TriedUnit(name, self._id(code), None, replaced, alone), all_replaced

    def _rows_as(self, model: int, code: int) -> pd.DataFrame:
        rows: pd.DataFrame = self.frame[self.codes == model].copy()
        if self.unit:
            self._write_unit(rows, self.ids[code])
        return rows

    def _replace_unit(self, code: int, model: int) -> pd.DataFrame:
        first = int(np.flatnonzero(self.codes == code)[0])
        before, after = np.arange(len(self.frame)) < first, self.codes != code
        parts = [self.frame[before], self._rows_as(model, code), self.frame[~before & after]]
        return _renumber(pd.concat(parts), self.frame)

    def _as_model(self, model: int, codes: Sequence[int], keep: int = -1) -> pd.DataFrame:
        parts = [
            self.frame[self.codes == code] if code == keep else self._rows_as(model, code)
            for code in codes
        ]
        return _renumber(pd.concat(parts), self.frame)


def unit_columns(unit: Hashable | list[Hashable] | None) -> list[Hashable]:
    """Return the columns that say whom a row belongs to: none, one or several."""
    if isinstance(unit, list):
        return unit
    return [] if unit is None else [unit]


def _combinations(columns: pd.DataFrame) -> tuple[np.ndarray, pd.Index]:
    """Factorize the combinations of some columns; -1 stands where a cell is missing."""
    parts = np.array([pd.factorize(columns.iloc[:, at])[0] for at in range(columns.shape[1])])
    complete = np.flatnonzero((parts >= 0).all(axis=0))
    codes = np.full(len(columns), -1)
    codes[complete], _ = pd.factorize(pd.MultiIndex.from_arrays([*parts[:, complete]]))
    _, first = np.unique(codes[complete], return_index=True)
    rows = columns.iloc[complete[first]].itertuples(index=False, name=None)
    return codes, pd.Index([*rows], dtype=object, tupleize_cols=False)


def _least_cap(declarations: Sequence[Declaration]) -> int | None:
    """Return how many rows exceed no cap, whatever is asked."""
    caps = (declaration.caps for declaration in declarations)
    numbers = (most for cap in caps for most in (cap.rows, cap.groups, cap.rows_per_group))
    return min((most for most in numbers if most is not None), default=None)


def _renumber(rows: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    if isinstance(frame.index, pd.RangeIndex):
        rows.index = pd.RangeIndex(len(rows))
    return rows


def _outliers(column: pd.Series) -> list[int]:
    """Find rows whose values stand out: the ends of numbers and times, the rarest of others."""
    try:
        if column.dtype.kind in "iufmM":
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            present = np.flatnonzero(~np.isnan(numbers))
            if not len(present):
                return []
            values = numbers[present]
            return [int(present[values.argmin()]), int(present[values.argmax()])]
        codes, uniques = pd.factorize(column)
        counts = np.bincount(codes[codes >= 0], minlength=1)
        return [int(np.flatnonzero(codes == counts.argmin())[0])] if len(uniques) else []
    except Exception:  # cells that cannot be hashed or ordered
        return []


def _write_cells(rows: pd.DataFrame, label: Hashable, values: Sequence[Any]) -> None:
    """Write cells where the dtype of the column holds them, and leave it as it is elsewhere."""
    try:
        rows[label] = pd.Series(list(values), index=rows.index).astype(rows[label].dtype)
    except Exception:  # noqa: S110  # another type than is declared: the pipeline converts it
        pass


def _odd_cells(column: pd.Series) -> list[Any]:
    """Return odd values, a missing one first: under a cap of one row, the first one stays."""
    kind, first = column.dtype.kind, column.iloc[0]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [None, first, first, first]
    if kind == "f":
        return [np.nan, np.inf, -np.inf, 1e300]
    if kind in "iu":
        ends = np.iinfo(getattr(column.dtype, "numpy_dtype", column.dtype))
        return [*_missing_if_held(column), ends.min, ends.max, 0, 1]
    if kind in "mM":
        far = (pd.Timestamp("1700-01-01"), pd.Timestamp("2250-01-01"))
        return [pd.NaT, *(far if kind == "M" else map(pd.Timedelta, (-9e18, 9e18))), first]
    if kind == "b":
        return [*_missing_if_held(column), True, False, True, False]
    return [None, "", "?", first]


def _missing_if_held(column: pd.Series) -> list[Any]:
    return [] if isinstance(column.dtype, np.dtype) else [pd.NA]


def _new_ids(column: pd.Series) -> tuple[Any, Any]:
    """Return identifiers that no row has, before and behind all others; `None` where none fits."""
    kind, present = column.dtype.kind, column.dropna()
    if not len(present) or isinstance(column.dtype, pd.CategoricalDtype):
        return None, None
    try:
        low, high = present.min(), present.max()
    except TypeError:
        return None, None
    if kind in "iu":
        ends = np.iinfo(getattr(column.dtype, "numpy_dtype", column.dtype))
        below = int(low) - 1 if int(low) > ends.min else None
        return below, int(high) + 1 if int(high) < ends.max else None
    if kind in "fM":
        step: Any = 1.0 if kind == "f" else pd.Timedelta(days=1)
        return low - step, high + step
    if isinstance(low, str) and isinstance(high, str):
        return ("" if low else None), f"{high}~"
    return None, None


def _new_index(index: pd.Index, count: int) -> pd.Index:
    """Continue an index: by numbers, or by labels that are there."""
    if isinstance(index, pd.RangeIndex):
        return pd.RangeIndex(index.stop, index.stop + count * index.step, index.step)
    if index.dtype.kind == "i":
        places = np.arange(count) + (int(index.max()) + 1)
        return pd.Index(places).astype(index.dtype).rename(index.name)
    labels: pd.Index = index[:1].repeat(count)
    return labels
