"""Which rows a rate is about: those where all columns of its condition hold something."""

from dpframe.queries.syntax import as_name
from dpframe.queries.where import (
    All,
    Any,
    Arithmetic,
    Compare,
    Condition,
    Membership,
    Name,
    Negative,
    Node,
    Not,
    Value,
)


def present(condition: Condition) -> Condition | None:
    """Return the condition that no column of another one is missing in a row.

    Examples
    --------
    >>> present(Condition.parse("delay > 15 or `late at` == 'A'")).text
    'delay == delay and `late at` == `late at`'
    """
    equal = [
        Condition(
            f"{as_name(label)} == {as_name(label)}",
            (label,),
            Compare("==", Name(label), Name(label)),
        )
        for label in condition.columns
    ]
    return Condition.all_of(*equal)


def met(condition: Condition) -> Condition:
    """Return the condition that a condition holds, and no column of it is missing.

    It is the condition itself where it never holds with something missing.

    Examples
    --------
    >>> [met(Condition.parse(text)).text for text in ("delay > 15", "not delay > 15")]
    ['delay > 15', 'delay == delay and (not delay > 15)']
    """
    if _needed(condition.root) >= {*condition.columns}:
        return condition
    bracketed = Condition(f"({condition.text})", condition.columns, condition.root)
    both = Condition.all_of(present(condition), bracketed)
    return condition if both is None else both


def _needed(node: Node) -> frozenset[str]:
    """Columns without which a condition does not hold."""
    match node:
        case Name(label=label):
            return frozenset({label})
        case All(parts=parts):
            return frozenset().union(*map(_needed, parts))
        case Any(parts=(first, *others)):
            return _needed(first).intersection(*map(_needed, others))
        case Compare(left=left, right=right):
            return _behind(left) | _behind(right)
        case Membership(operand=operand):
            return _behind(operand)
        case Not() | Any():
            return frozenset()


def _behind(value: Value) -> frozenset[str]:
    """Columns without which a value is not a number; a power can be one without."""
    match value:
        case Name(label=label):
            return frozenset({label})
        case Negative(operand=operand):
            return _behind(operand)
        case Arithmetic(operator=sign, left=left, right=right) if sign != "**":
            return _behind(left) | _behind(right)
    return frozenset()
