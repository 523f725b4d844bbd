"""What conditions say of rows in which a value is missing."""

from dpframe.queries import where as conditions
from dpframe.queries.syntax import as_name
from dpframe.queries.where import All, Any, Compare, Condition, Name, Node, Not, names_in


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
    name, value = as_name(label), conditions.Name(label)
    return Condition(f"{name} == {name}", (label,), conditions.Compare("==", value, value))


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


def _needed_columns(node: conditions.Node) -> frozenset[str]:
    """Columns without which a condition does not hold."""
    match node:
        case conditions.Name(label=label) | conditions.InPart(label=label):
            return frozenset({label})
        case conditions.All(parts=parts):
            return frozenset().union(*map(_needed_columns, parts))
        case conditions.Any(parts=(first, *others)):
            return _needed_columns(first).intersection(*map(_needed_columns, others))
        case conditions.Compare(left=left, right=right):
            return _behind(left) | _behind(right)
        case conditions.Membership(operand=operand):
            return _behind(operand)
        case conditions.Not() | conditions.Any():
            return frozenset()


def _behind(value: conditions.Value) -> frozenset[str]:
    """Columns without which a value is not a number; a power can be one without."""
    match value:
        case conditions.Name(label=label):
            return frozenset({label})
        case conditions.Negative(operand=operand):
            return _behind(operand)
        case conditions.Arithmetic(operator=sign, left=left, right=right) if sign != "**":
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
    found = [*conditions.leaves(condition.root)]
    labels = [
        leaf.left.label
        for leaf in found
        if isinstance(leaf, Compare) and isinstance(leaf.left, Name) and leaf.left == leaf.right
    ]
    return labels[0] if labels and len(labels) == len(found) else None
