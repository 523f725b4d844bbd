"""What conditions compare, wherever it stands in them."""

from collections.abc import Iterator

from dpframe.queries.where import (
    All,
    Any,
    Arithmetic,
    Compare,
    Condition,
    Constant,
    Membership,
    Name,
    Negative,
    Node,
    Not,
    Value,
)


def comparisons(condition: Condition) -> Iterator[Compare | Membership]:
    """Yield the comparisons of a condition, in order.

    Examples
    --------
    >>> found = comparisons(Condition.parse("not (fare > 3 or zone in ['A']) and paid"))
    >>> [type(one).__name__ for one in found]
    ['Compare', 'Membership']
    """
    return _in_node(condition.root)


def _in_node(node: Node) -> Iterator[Compare | Membership]:
    match node:
        case Not(operand):
            yield from _in_node(operand)
        case All(parts) | Any(parts):
            for part in parts:
                yield from _in_node(part)
        case Compare() | Membership():
            yield node
        case Name():
            pass  # a number other than 0


def names_in(value: Value) -> Iterator[str]:
    """Yield the columns that a value is computed from, in order."""
    match value:
        case Name(label):
            yield label
        case Negative(operand):
            yield from names_in(operand)
        case Arithmetic(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Constant():
            pass
