"""What one row can add to the measured integers of its cell, found by probing with odd rows.

A row is of a class: what its conditions and weights are. Given the class, groups of blocks that
read the same columns of values are free of each other. Components share no column at all.
"""

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.checker.measured import Measured, OddColumn
from dpframe.frozen import frozen

_MOST_COMBINATIONS = 512
"""Rows of odd values of one component and its conditions; of more, a sample is tried."""

_MOST_ROWS = 4096
"""Rows of one probe; with more, classes are sampled."""

_ELSE = "\0"
"""A text that no condition names."""

_FIXED = object()
"""Stands for a column that blocks without values share."""


@frozen(eq=False)
class Group:
    """Blocks that read the same values.

    Parameters
    ----------
    blocks
        Their positions.
    vectors
        What a row adds to them: vectors of all sets, set by set.
    starts
        Where sets begin.
    """

    blocks: np.ndarray
    vectors: np.ndarray
    starts: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """How many vectors each set has."""
        return np.diff(self.starts, append=len(self.vectors))


@frozen(eq=False)
class Component:
    """Blocks that share columns.

    Parameters
    ----------
    groups
        Its groups.
    classes
        One row for each class of rows, one column for each group: which of its sets holds what a
        row adds.
    """

    groups: tuple[Group, ...]
    classes: np.ndarray


@frozen(eq=False)
class RowVectors:
    """What one row can add.

    Parameters
    ----------
    components
        Blocks in parts that are free of each other.
    few
        Groups of which a row has a few at most. Each has two sets: absent, and present.
    most
        How many.
    all_count
        Whether every odd row was counted.
    sampled
        Whether there are rows that no odd row stands for.
    """

    components: tuple[Component, ...]
    few: tuple[Group, ...]
    most: int
    all_count: bool
    sampled: bool


def odd_values(column: OddColumn) -> list[object]:
    r"""Return values of a column of which one does what any other value would do.

    They are the ends, the constants, the floats next to each on both sides, another text, and none.
    Nothing lies between other values that a comparison with constants could tell from these: texts
    that are next to a constant in order are handed over as constants. Values are added up at the
    ends and next to constants.

    Examples
    --------
    >>> odd_values(OddColumn((), (2.0,)))
    [1.9999999999999998, 2.0, 2.0000000000000004, None]
    >>> odd_values(OddColumn((0.0, 5.0), (2.0,)))
    [0.0, 5.0, 1.9999999999999998, 2.0, 2.0000000000000004, None]
    >>> odd_values(OddColumn((), ("m",)))
    ['m', '\x00', None]
    """
    texts = sorted({value for value in column.constants if isinstance(value, str)})
    numbers = sorted({value for value in column.constants if not isinstance(value, str)})
    odd = [*column.ends]
    if not (odd or texts or numbers):
        numbers = [0.0]
    sides = ((-math.inf, value, math.inf) for value in numbers)
    odd += [math.nextafter(side[1], to) for side in sides for to in side]
    if texts:
        odd += [*texts, _ELSE]
    # instants are equal whose clocks differ
    return [*{repr(value): value for value in odd}.values(), None]


def combinations(
    sizes: Sequence[int], dice: np.random.Generator, most: int
) -> tuple[np.ndarray, bool]:
    """Return all combinations of positions, one a row, or a sample; tell whether it is one."""
    number = math.prod(sizes)
    if number == 1:
        return np.zeros((1, len(sizes)), np.intp), False
    if number <= most:
        return np.indices(sizes).reshape(len(sizes), number).T, False
    ends = np.arange(max(sizes))[:, None]
    first = np.minimum(ends, np.array(sizes) - 1)
    return np.concatenate([first, dice.integers(0, sizes, (most, len(sizes)))]), True


def joined(sets: Sequence[Iterable[Hashable]]) -> list[list[int]]:
    """Put together the positions of sets that share anything.

    Examples
    --------
    >>> joined(["ab", "c", "bd", "", "e"])
    [[0, 2], [1], [3], [4]]
    """
    parts = [[position] for position in range(len(sets))]
    owners: dict[Hashable, int] = {}
    for position, things in enumerate(sets):
        for thing in things:
            owner = owners.setdefault(thing, position)
            small, large = sorted((parts[owner], parts[position]), key=len)
            if small is not large:
                large += small
                for place in small:
                    parts[place] = large
    listed: list[list[int]] = []
    is_listed = [False] * len(parts)
    for position, part in enumerate(parts):
        if not is_listed[position]:
            listed.append(sorted(part))
            for place in part:
                is_listed[place] = True
    return listed


def row_vectors(measured: Measured, weights: np.ndarray, dice: np.random.Generator) -> RowVectors:
    """Find what one row can add to every block.

    Parameters
    ----------
    measured
        The measurement.
    weights
        How often each total is in each block: one row for each block.
    dice
        For samples.
    """
    return _Probe(measured, weights, dice).vectors()


@dataclass
class _Plan:
    """Odd rows of one component.

    Parameters
    ----------
    groups, shapes
        Its groups, and by group the numbers of classes and of rows in one.
    columns, rows
        Positions of its columns, and which of their values its rows have.
    start
        Where its rows begin in the probe.
    """

    groups: list[list[int]]
    shapes: list[tuple[int, int]]
    columns: list[int]
    rows: np.ndarray
    start: int = 0


class _Probe:
    """One frame of odd rows for all components."""

    def __init__(self, measured: Measured, weights: np.ndarray, dice: np.random.Generator) -> None:
        self._measured = measured
        self._weights = weights
        self._dice = dice
        self._totals = measured.totals
        self._reads = [np.flatnonzero(row).tolist() for row in weights]
        self._hubs = {column for total in self._totals for column in total.conditions}
        self._values = {label: odd_values(column) for label, column in measured.columns.items()}
        self._places = {label: at for at, label in enumerate(self._values)}
        self._sampled = not all(total.is_exact for total in self._totals)

    def _near(self, block: int) -> set[Hashable]:
        """Return columns that decide on the class of a row, for a block."""
        totals = [self._totals[n] for n in self._reads[block]]
        conditions = {column for total in totals for column in total.conditions}
        return conditions | {c for total in totals for c in total.values if c in self._hubs}

    def _free(self, block: int) -> set[Hashable]:
        """Return columns of values that are free, for a block."""
        totals = [self._totals[n] for n in self._reads[block]]
        free = {c for total in totals for c in total.values if c not in self._hubs}
        return free or {_FIXED}

    def _is_few(self, block: int) -> bool:
        return any(self._totals[n].few for n in self._reads[block])

    def vectors(self) -> RowVectors:
        """Probe, and take the answer apart."""
        blocks = range(len(self._reads))
        few = [k for k in blocks if self._measured.most is not None and self._is_few(k)]
        others = [k for k in blocks if k not in few]
        near = {k: self._near(k) for k in blocks}
        free = {k: self._free(k) for k in blocks}
        # blocks that read one column move together: only apart can the worst of each be added up
        shared = [near[k] | (free[k] - {_FIXED}) for k in others]
        parts = [[others[at] for at in places] for places in joined(shared)]
        plans = [self._plan(part, near, free) for part in parts]
        few_parts = [[few[at] for at in places] for places in joined([free[k] for k in few])]
        of_few = [self._plan(part, near, free) for part in few_parts]
        counted, totals = self._ask([*plans, *of_few])
        components = [self._component(plan, counted, totals) for plan in plans]
        groups = [self._few(plan, counted, totals) for plan in of_few]
        return RowVectors(
            tuple(component for component in components if len(component.classes)),
            tuple(groups),
            self._measured.most or 0,
            bool(counted.all()),
            self._sampled,
        )

    def _plan(
        self, part: list[int], near: Mapping[int, set[Hashable]], free: Mapping[int, set[Hashable]]
    ) -> _Plan:
        """Lay out the rows of a component: for each class, those of each group."""
        hubs = self._in_order(near[k] for k in part)
        groups = [[part[at] for at in places] for places in joined([free[k] for k in part])]
        of_groups = []
        for group in groups:
            free_columns = self._in_order(free[k] for k in group)
            of_groups.append((free_columns, self._combinations(free_columns, _MOST_COMBINATIONS)))
        size = sum(len(free_rows) for _, free_rows in of_groups)
        # fewer classes where each has many rows: one probe is to stay quick
        classes = self._combinations(hubs, min(_MOST_COMBINATIONS, max(_MOST_ROWS // size, 1)))
        columns = self._in_order([hubs, *(free_columns for free_columns, _ in of_groups)])
        places = {column: at for at, column in enumerate(columns)}
        rows = []
        for free_columns, free_rows in of_groups:
            block = np.zeros((len(classes), len(free_rows), len(columns)), np.intp)
            block[:, :, [places[c] for c in hubs]] = classes[:, None, :]
            block[:, :, [places[c] for c in free_columns]] = free_rows
            rows.append(block.reshape(len(classes) * len(free_rows), len(columns)))
        shapes = [(len(classes), len(free_rows)) for _, free_rows in of_groups]
        at = [self._places[column] for column in columns]
        return _Plan(groups, shapes, at, np.concatenate(rows))

    def _in_order(self, sets: Iterable[Iterable[Hashable]]) -> list[Hashable]:
        """Return the columns of some sets that have odd values, each once."""
        columns = {column for columns_of in sets for column in columns_of if column in self._places}
        return sorted(columns, key=self._places.__getitem__)

    def _combinations(self, columns: Sequence[Hashable], most: int) -> np.ndarray:
        sizes = [len(self._values[column]) for column in columns]
        chosen, sampled = combinations(sizes, self._dice, most)
        self._sampled = self._sampled or sampled
        return chosen

    def _ask(self, plans: Sequence[_Plan]) -> tuple[np.ndarray, np.ndarray]:
        """Let all rows be totaled at once, each in a cell of its own.

        One row is odd for all components, where they share no column. If it is left out, that may
        be for what it is to another: then every component has rows of its own.
        """
        columns = [column for plan in plans for column in plan.columns]
        if len({*columns}) == len(columns):
            counted, totals = self._total(plans)
            if counted.all():
                return counted, totals
        ends = itertools.accumulate(len(plan.rows) for plan in plans)
        for plan, end in zip(plans, ends, strict=True):
            plan.start = end - len(plan.rows)
        return self._total(plans)

    def _total(self, plans: Sequence[_Plan]) -> tuple[np.ndarray, np.ndarray]:
        """Total the rows of components, where they begin."""
        number = max(plan.start + len(plan.rows) for plan in plans)
        places = np.zeros((len(self._values), number), np.intp)
        for plan in plans:
            places[plan.columns, plan.start : plan.start + len(plan.rows)] = plan.rows.T
        rows = dict(zip(self._values, zip(self._values.values(), places, strict=True), strict=True))
        return self._measured.probe(rows, number)

    def _added(self, blocks: Sequence[int], totals: np.ndarray) -> np.ndarray:
        """Return what rows add to some blocks, of what they add to totals: rows by blocks."""
        reads = sorted({n for k in blocks for n in self._reads[k]})
        return np.asarray((self._weights[np.ix_(blocks, reads)] @ totals[reads]).T)

    def _component(self, plan: _Plan, counted: np.ndarray, totals: np.ndarray) -> Component:
        start, kinds, groups = plan.start, [], []
        for blocks, (classes, size) in zip(plan.groups, plan.shapes, strict=True):
            part = slice(start, start + classes * size)
            start += classes * size
            keep = counted[part].reshape(classes, size)
            vectors = self._added(blocks, totals[:, part]).reshape(classes, size, len(blocks))
            sets = [
                frozenset(map(tuple, v[k].tolist())) for v, k in zip(vectors, keep, strict=True)
            ]
            # classes whose rows add the same share a set, so that few pairs are compared
            different = {kind: at for at, kind in enumerate(dict.fromkeys(filter(None, sets)))}
            kinds.append([different.get(kind, -1) for kind in sets])
            groups.append(_group(blocks, list(different)))
        chosen = sorted(kind for kind in {*zip(*kinds, strict=True)} if min(kind) >= 0)
        return Component(tuple(groups), np.array(chosen, np.intp).reshape(-1, len(groups)))

    def _few(self, plan: _Plan, counted: np.ndarray, totals: np.ndarray) -> Group:
        """Part rows that have one of the few from those that do not."""
        (blocks,), ((classes, size),) = plan.groups, plan.shapes
        rows = np.arange(plan.start, plan.start + classes * size)
        rows = rows[counted[rows]]
        these = sorted({n for k in blocks for n in self._reads[k] if self._totals[n].few})
        present = (totals[np.ix_(these, rows)] != 0).any(axis=0)
        added = self._added(blocks, totals[:, rows])
        sets = [added[here].tolist() for here in (~present, present)]
        return _group(blocks, [frozenset(map(tuple, vectors)) for vectors in sets])


def _group(blocks: Sequence[int], sets: Sequence[frozenset[tuple[int, ...]]]) -> Group:
    sizes = [len(members) for members in sets]
    vectors = [vector for members in sets for vector in sorted(members)]
    starts = np.cumsum([0, *sizes])[:-1]
    array = np.array(vectors, np.int64).reshape(len(vectors), len(blocks))
    return Group(np.array(blocks, np.intp), array, starts)
