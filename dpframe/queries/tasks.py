"""What an engine is asked to add up: public cells, integer terms, caps. Frozen and free of data.

A task is one pass over a frame: a row that passes the condition falls in at most one cell, and
adds one integer to every term of that cell; of margins, in one cell of each table, or in none. The
answer of an engine is an int64 array of shape (terms, cells), modulo 2**64.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.context import cached_property
from dpframe.frozen import frozen
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.queries.edges import Grid
from dpframe.queries.where import Condition
from dpframe.strategies.least_squares import PossibleCells

PART_OF_ONE = 1 << 16
"""What the parts of a value of one column add up to."""

LabelKind: TypeAlias = Literal["string", "int64", "bool", "date", "datetime"]
"""What labels are that are not known beforehand."""

SizeKind: TypeAlias = Literal["rows", "groups", "rows_per_group"]
"""How much a unit fills: its rows in all groups, its groups, or its rows in the fullest of them."""

Sized: TypeAlias = SizeKind | Literal["dropped"]
"""What a unit is counted by: how much it fills, or the rows that caps drop of it."""


@frozen(eq=False)
class KeyAxis:
    """A column whose rows are grouped by equality with declared keys.

    Parameters
    ----------
    column
        Label of the column.
    keys
        Unique, non-missing keys in declared order, named after the column.
    rest
        Whether the last key stands for all values that are none of the others, missing ones too.
    hidden
        Whether such rows have a cell of their own behind those of all keys.
    """

    ordered: ClassVar[bool] = False

    column: Hashable
    keys: pd.Index
    rest: bool = False
    hidden: bool = False

    @property
    def counts_all(self) -> bool:
        """Whether values that are none of the keys count, too."""
        return self.rest

    @property
    def shown(self) -> pd.Index:
        """The keys, as a release shows them."""
        return self.keys

    def __len__(self) -> int:
        return len(self.keys) + self.hidden


@frozen(eq=False)
class BinAxis:
    """A numeric column whose rows are grouped by the declared interval they lie in.

    Parameters
    ----------
    column
        Label of the column.
    keys
        Non-overlapping intervals in increasing order, named after the column.
    clipped
        Whether numbers below all intervals are in the first, and those above in the last.
    hidden
        Whether rows in no interval have a cell of their own behind those of all intervals.
    labels
        What a release shows in place of the intervals; `None`: these.
    """

    ordered: ClassVar[bool] = True
    rest: ClassVar[bool] = False

    column: Hashable
    keys: pd.IntervalIndex
    clipped: bool = False
    hidden: bool = False
    labels: pd.Index | None = None

    @property
    def counts_all(self) -> bool:
        """Whether values in no bin count, too."""
        return self.clipped

    @property
    def shown(self) -> pd.Index:
        """The keys, as a release shows them."""
        return self.keys if self.labels is None else self.labels

    def __len__(self) -> int:
        return len(self.keys) + self.hidden


Axis: TypeAlias = KeyAxis | BinAxis
"""A grouping column."""


@frozen(eq=False)
class Cells:
    """Disjoint public groups: a product of axes, or chosen combinations of it.

    Without axes there is one cell, that every row falls in.

    Parameters
    ----------
    axes
        The grouping columns, the last one varying fastest.
    chosen
        Positions in the product (row-major), in output order, unique; `None` for the whole product.
    margins
        Tables that rows are counted in, in place of the product, each by some of the axes: their
        positions, in increasing order. A row that has no place on an axis is in no table. The cells
        of a table come after those of the tables before.
    """

    axes: tuple[Axis, ...] = ()
    chosen: np.ndarray | None = None
    margins: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def product(self) -> int:
        """Number of cells in the product of the axes."""
        return math.prod(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells."""
        if self.margins:
            sizes = [len(axis) for axis in self.axes]
            return sum(math.prod(sizes[at] for at in margin) for margin in self.margins)
        return self.product if self.chosen is None else len(self.chosen)

    @property
    def places(self) -> int:
        """Number of cells of which a row is in one; all cells of margins are one here."""
        return 1 if self.margins else self.size

    def of_margin(self, margin: Sequence[int]) -> "Cells":
        """Return the cells of a table by some of the axes: of chosen ones, by when they come."""
        axes = tuple(self.axes[at] for at in margin)
        if self.chosen is None:
            return Cells(axes)
        sizes = [len(axis) for axis in self.axes]
        positions = PossibleCells(sizes, self.chosen).positions(margin)
        # `unique` sorts by position: the first places give the order in which they come
        chosen = positions[np.sort(np.unique(positions, return_index=True)[1])]
        table, first = Cells(axes), np.arange(len(chosen))
        if table.product == len(chosen) and np.array_equal(chosen, first):
            return table
        return Cells(axes, chosen)

    def by_columns(self, columns: Iterable[Hashable]) -> "Cells":
        """Return the cells of a table by some of the columns."""
        places = {axis.column: at for at, axis in enumerate(self.axes)}
        return self.of_margin([places[column] for column in columns])

    @cached_property
    def index(self) -> pd.Index:
        """Index of a frame with one row per cell, in declared order."""
        if not self.axes:
            return pd.RangeIndex(1)
        if len(self.axes) == 1:
            keys = self.axes[0].shown
            return keys if self.chosen is None else keys.take(self.chosen)
        levels: list[Any] = [axis.shown for axis in self.axes]
        positions = np.arange(self.product) if self.chosen is None else self.chosen
        codes: Any = np.unravel_index(positions, [len(axis) for axis in self.axes])
        return pd.MultiIndex(levels, codes, names=[axis.column for axis in self.axes])


@frozen(slots=True)
class RowWeights:
    """What a row counts for, in place of 1.

    Parameters
    ----------
    column, grid
        A column on its grid, without values below 0. A missing value counts as 0, or as the fill.
    bounds
        The bounds that were declared.
    """

    column: Hashable
    grid: Grid
    bounds: tuple[float, float]


@frozen(slots=True)
class Term:
    """An integer that the rows of a cell add to a total.

    Parameters
    ----------
    kind
        "rows": 1; "units": 1 for one of a unit's kept rows; "valid": 1 if the column holds
        a usable number, else 0; "sum": the column's grid integer x; "square": `ceil((2 x - l - u)^2
        / (u - l))`, with l and u the bounds of the grid; "part": the product of one of the parts
        of the column and one of the other's, see `dpframe.engines.blocks.bernstein_parts`;
        "moment": the product of some of the columns, or a square, see
        `dpframe.engines.blocks.powers`; "all valid": 1 if all columns hold a usable number.
    column, grid
        The column and its grid, for all but "rows" and "units". Where the grid has a fill, every
        row is valid.
    where
        Rows that do not satisfy this condition add 0.
    others
        All further columns and their grids, for "part", "moment" and "all valid".
    part
        Which part, or which power, of each column.
    degree
        The degree of the polynomials of parts: 2 or 4.
    weights
        With w the grid integer of the weight of a row, "rows" and "valid" are w in place of 1, and
        "sum" is the integer nearest to `w (x - origin) / span`, halves away from 0.
    origin, span
        Of a sum with weights: all x are at most `span` from `origin`.
    """

    kind: Literal["rows", "units", "valid", "sum", "square", "part", "moment", "all valid"]
    column: Hashable = None
    grid: Grid | None = None
    where: Condition | None = None
    others: tuple[tuple[Hashable, Grid], ...] = ()
    part: tuple[int, ...] = ()
    degree: int = 2
    weights: RowWeights | None = None
    origin: int = 0
    span: int = 0

    @property
    def valued(self) -> tuple[tuple[Hashable, Grid], ...]:
        """The columns of values, with their grids."""
        return () if self.grid is None else ((self.column, self.grid), *self.others)

    @property
    def multiplies(self) -> bool:
        """Whether values are multiplied."""
        return self.kind in ("square", "part", "moment")


@frozen(eq=False)
class Sizes:
    """How much of some groups a unit fills, without the cap looked for: that decides on its cell.

    Parameters
    ----------
    groups
        The groups in which the rows of a unit are looked for.
    kind
        What is counted of them.
    axis
        The cells, by the largest number in each, increasing; the last cell also holds all above.
    others
        The caps beside the one looked for: what they leave of all rows counts, or what they drop.
    """

    groups: Cells
    kind: Sized
    axis: KeyAxis
    others: Caps = NO_CAPS


@frozen(eq=False)
class Task:
    """One pass over a frame.

    Parameters
    ----------
    cells
        The groups. Rows in none of them are left out.
    terms
        What to add up per cell.
    where
        Rows that do not satisfy this condition are left out, before caps are applied.
    unit
        Columns that together say whose row it is; none: every row is a unit of its own and no cap
        is needed. Rows where one of them is missing are left out.
    caps
        What of a unit is kept: rows beyond a cap are dropped uniformly at random.
    most
        At most this many of the "sum" terms, whose grids then are 0 to 1, take a 1 from a row; of
        more, a uniformly random choice does.
    sizes
        Where units fall in cells by how much they fill of other groups: which, and of what. One row
        of a unit then falls in a cell, and all others in none.
    inner
        How many cells, next to each other, are one group for the caps. Of margins, all cells are.
    valued
        Columns, with their grids: rows without a usable value in one of them are left out, before
        caps are applied.
    """

    cells: Cells
    terms: tuple[Term, ...]
    where: Condition | None = None
    unit: tuple[Hashable, ...] = ()
    caps: Caps = NO_CAPS
    most: int | None = None
    sizes: Sizes | None = None
    inner: int = 1
    valued: tuple[tuple[Hashable, Grid], ...] = ()

    @property
    def groups(self) -> Cells:
        """Where rows are looked for."""
        return self.cells if self.sizes is None else self.sizes.groups

    @property
    def columns(self) -> Iterator[Hashable]:
        """Every column that is named, some more than once."""
        yield from (axis.column for axis in self.groups.axes)
        yield from (column for column, _ in self.valued)
        yield from (column for term in self.terms for column, _ in term.valued)
        yield from (term.weights.column for term in self.terms if term.weights is not None)
        for condition in (self.where, *(term.where for term in self.terms)):
            if condition is not None:
                yield from condition.columns
        yield from self.unit


@frozen(slots=True)
class LabelAxis:
    """A column whose labels are not known beforehand.

    Parameters
    ----------
    column
        Label of the column.
    kind
        What its labels are; values of other kinds are none.
    longest
        Texts with more characters are no labels.
    """

    column: Hashable
    kind: LabelKind
    longest: int = 256


@frozen(eq=False)
class LabelTask:
    """One pass over a frame, to find the labels that its rows have, and count units on each.

    Parameters
    ----------
    axes
        The columns of the labels; a label of several is one of each. Rows without are left out.
    most
        For how many labels a unit counts at most; of more, a uniformly random choice.
    where
        Rows that do not satisfy this condition are left out first.
    unit
        Columns that together say whose row it is; none: every row is a unit of its own. Rows where
        one of them is missing are left out.
    weights
        What each label of a unit counts for, by how many of them count; none: 1.
    without
        Labels that are left out first, an array for each column; none: no labels.
    """

    axes: tuple[LabelAxis, ...]
    most: int
    where: Condition | None = None
    unit: tuple[Hashable, ...] = ()
    weights: tuple[int, ...] = ()
    without: tuple[np.ndarray, ...] = ()

    @property
    def columns(self) -> Iterator[Hashable]:
        """Every column that is named, some more than once."""
        yield from (axis.column for axis in self.axes)
        yield from () if self.where is None else self.where.columns
        yield from self.unit
