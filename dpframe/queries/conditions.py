"""What follows from conditions: of missing values, and which of them exclude each other."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import and_, or_
from typing import TypeAlias

from dpframe.frozen import frozen
from dpframe.queries import where
from dpframe.queries.edges import moment_of
from dpframe.queries.where import All, Any, Compare, Condition, Name, Node, Not, as_name, names_in


def present(condition: Condition) -> Condition | None:
    """Return the condition that no column of another one is missing in a row.

    Examples
    --------
    >>> present(Condition.parse("delay > 15 or `late at` == 'A'")).text
    'delay == delay and `late at` == `late at`'
    """
    return Condition.all_of(*map(equals_itself, condition.columns))


def equals_itself(label: str) -> Condition:
    """Return the condition that a column is not missing in a row."""
    name, value = as_name(label), where.Name(label)
    return Condition(f"{name} == {name}", (label,), where.Compare("==", value, value))


def met(condition: Condition) -> Condition:
    """Return the condition that a condition holds, and no column of it is missing.

    It is the condition itself where it never holds with something missing.

    Examples
    --------
    >>> [met(Condition.parse(text)).text for text in ("delay > 15", "not delay > 15")]
    ['delay > 15', 'delay == delay and (not delay > 15)']
    """
    if _needed_columns(condition.root) >= {*condition.columns}:
        return condition
    bracketed = Condition(f"({condition.text})", condition.columns, condition.root)
    both = Condition.all_of(present(condition), bracketed)
    return condition if both is None else both


def _needed_columns(node: where.Node) -> frozenset[str]:
    """Columns without which a condition does not hold."""
    match node:
        case where.Name(label=label) | where.InPart(label=label):
            return frozenset({label})
        case where.All(parts=parts):
            return frozenset().union(*map(_needed_columns, parts))
        case where.Any(parts=(first, *others)):
            return _needed_columns(first).intersection(*map(_needed_columns, others))
        case where.Compare(left=left, right=right):
            return _behind(left) | _behind(right)
        case where.Membership(operand=operand):
            return _behind(operand)
        case where.Not() | where.Any():
            return frozenset()


def _behind(value: where.Value) -> frozenset[str]:
    """Columns without which a value is not a number; a power can be one without."""
    match value:
        case where.Name(label=label):
            return frozenset({label})
        case where.Negative(operand=operand):
            return _behind(operand)
        case where.Arithmetic(operator=sign, left=left, right=right) if sign != "**":
            return _behind(left) | _behind(right)
    return frozenset()


def surely(condition: Condition, *, holds: bool = True) -> Condition:
    """Return the condition that one holds, or fails, whatever the missing values of a row are.

    Examples
    --------
    >>> surely(Condition.parse("opt == 'A'")) == Condition.parse("opt == 'A'")
    True
    """
    return Condition(condition.text, condition.columns, _surely(condition.root, holds))


def _surely(node: Node, holds: bool) -> Node:  # it changes with each "not"
    match node:
        case Not(operand):
            return _surely(operand, not holds)
        case All(parts) | Any(parts):
            joint = All if isinstance(node, All) is holds else Any
            return joint(tuple(_surely(part, holds) for part in parts))
        case _ if holds and _needed_columns(node) >= {*names_in(node)}:
            return node
    present = (Compare("==", Name(label), Name(label)) for label in names_in(node))
    return All((*present, node if holds else Not(node)))


def compared_with_itself(condition: Condition) -> str | None:
    """Return a column of a condition that compares columns with nothing but themselves.

    Examples
    --------
    >>> compared_with_itself(Condition.parse("x == x and not y < y"))
    'x'
    >>> compared_with_itself(Condition.parse("x == x and x != 1"))
    """
    leaves = [*where.leaves(condition.root)]
    labels = [
        leaf.left.label
        for leaf in leaves
        if isinstance(leaf, Compare) and isinstance(leaf.left, Name) and leaf.left == leaf.right
    ]
    return labels[0] if labels and len(labels) == len(leaves) else None


# Exclusive conditions -------------------------------------------------------------------------
#
# The constants that conditions compare a column with cut its values into cells: each number, what
# lies between two of them, each text, and all else, missing values among it. A condition holds in
# some cells at most, whatever other columns hold. Conditions exclude each other if these sets of
# cells are disjoint. A row has one number in a column, if any: `filters.keep` compares with the
# nearest float, and an integer with one below 2**53 as if it were that float. Texts that may be
# points in time are left out: two of them can be the same one.

_MOST_OPEN = 16  # sets of conditions that another one is compared with

_Cells: TypeAlias = tuple[int, int]
"""Bits of the cells in which a condition may hold, and of those in which it must."""


def exclusive_sets(conditions: Sequence[Condition | None]) -> tuple[tuple[int, ...], ...]:
    """Find conditions that exclude each other, by their positions; each is in one set at most.

    Examples
    --------
    >>> texts = ["x > 0", "y in ['a', 'b']", "x <= 0 and y != 'a'", "x > 1", "y == 'c'"]
    >>> exclusive_sets([Condition.parse(text) for text in texts])
    ((0, 2), (1, 4))
    """
    if sum(condition is not None for condition in conditions) <= 1:
        return ()
    by_column: dict[str, list[int]] = {}
    for at, condition in enumerate(conditions):
        for column in () if condition is None else condition.columns:
            by_column.setdefault(column, []).append(at)
    sets: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for column, places in by_column.items():
        free = [at for at in places if at not in taken]
        if len(free) > 1:
            roots = {at: condition.root for at in free if (condition := conditions[at]) is not None}
            groups = [group for group in _disjoint(_may_hold(column, roots)) if len(group) > 1]
            sets += groups
            taken.update(at for group in groups for at in group)
    return tuple(sorted(sets))


def _disjoint(cells: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Put each set of cells to the first ones that it shares no cell with."""
    groups: list[list[int]] = []
    used: list[int] = []
    for at, places in cells.items():
        for k in range(max(0, len(groups) - _MOST_OPEN), len(groups)):
            if not places & used[k]:
                groups[k].append(at)
                used[k] |= places
                break
        else:
            groups.append([at])
            used.append(places)
    return list(map(tuple, groups))


def _may_hold(column: str, roots: Mapping[int, where.Node]) -> dict[int, int]:
    """Return the cells of a column in which each condition may hold."""
    numbers, texts = {0.0}, set()
    for root in roots.values():
        for constant in _constants(column, root):
            if isinstance(constant, str):
                texts.add(constant)
            else:
                numbers.add(constant)
    if any(moment_of(text) is not None for text in texts):
        texts = set()
    cut = _Cut(column, sorted(numbers), {text: k for k, text in enumerate(sorted(texts))})
    return {at: cut.cells(root)[0] for at, root in roots.items()}


def _constants(column: str, root: where.Node) -> Iterator[float | str]:
    """Yield what a column is compared with."""
    for leaf in where.leaves(root):
        match leaf:
            case where.Compare(_, where.Name(label), where.Constant(constant)) | where.Compare(
                _, where.Constant(constant), where.Name(label)
            ) if label == column:
                yield constant
            case where.Membership(where.Name(label), items) if label == column:
                yield from items


@frozen
class _Cut:
    """The cells of a column. Bit 0 is for all else; then come texts, then numbers.

    Parameters
    ----------
    column
        Its label.
    numbers
        The numbers that it is compared with, in increasing order: before and behind each of them is
        a cell of its own.
    texts
        The texts, with their positions.
    """

    column: str
    numbers: list[float]
    texts: Mapping[str, int]

    @property
    def _every(self) -> int:
        return (1 << 2 + len(self.texts) + 2 * len(self.numbers)) - 1

    def cells(self, node: where.Node) -> _Cells:
        """Return where a condition may hold and where it must."""
        match node:
            case where.Not(operand):
                may, must = self.cells(operand)
                return self._every & ~must, self._every & ~may
            case where.All(parts):
                return self._joined(parts, and_, self._every)
            case where.Any(parts):
                return self._joined(parts, or_, 0)
        return self._leaf(node)

    def _leaf(self, node: where.Node) -> _Cells:
        match node:
            case where.Name(self.column):
                return self._known(self._numbers("<", 0.0) | self._numbers(">", 0.0))
            case where.Membership(where.Name(self.column) as name, items):
                equal = tuple(where.Compare("==", name, where.Constant(item)) for item in items)
                return self._joined(equal, or_, 0)
            case where.Compare(sign, where.Name(self.column), where.Constant(value)):
                return self._compared(sign, value)
            case where.Compare(sign, where.Constant(value), where.Name(self.column)):
                return self._compared(where.MIRRORED[sign], value)
        return self._every, 0  # it depends on more than this column, or on more than its cells

    def _joined(
        self, parts: Sequence[where.Node], joint: Callable[[int, int], int], start: int
    ) -> _Cells:
        may = must = start
        for part in parts:
            left, other = self.cells(part)
            may, must = joint(may, left), joint(must, other)
        return may, must

    def _compared(self, sign: str, constant: float | str) -> _Cells:
        """Return the cells whose values are in a relation to a constant."""
        if not isinstance(constant, str):
            return self._known(self._numbers(sign, constant))
        if sign == "==" and constant in self.texts:
            return self._known(2 << self.texts[constant])
        return self._every, 0  # an order of texts, or a text that may be a time

    @staticmethod
    def _known(cells: int) -> _Cells:
        return cells, cells

    def _numbers(self, sign: str, constant: float) -> int:
        first = 1 + len(self.texts)
        equal = first + 2 * bisect_left(self.numbers, constant) + 1
        last = first + 2 * len(self.numbers)
        below, above = (1 << equal) - (1 << first), (2 << last) - (2 << equal)
        cells = {"<": below, ">": above}.get(sign[0], 0)
        return cells | (1 << equal if "=" in sign else 0)
