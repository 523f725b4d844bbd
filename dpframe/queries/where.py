"""Row-wise conditions as frozen trees (`where="fare > 0 and zone in ['A', 'B']"`).

A condition can only say something about one row at a time: that is what lets rows be left out at no
privacy cost. It is Python syntax read with `ast` against a list of what is allowed; nothing is run.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from keyword import iskeyword
from typing import Literal, NoReturn, TypeAlias, cast

from dpframe.errors import QueryError, a_type
from dpframe.frozen import frozen

ALLOWED = (
    "Allowed are columns (`with spaces` in backticks), numbers, texts, comparisons, and/or/not, "
    "'in' with a list, and arithmetic."
)

_LONGEST, _SHOWN = 10_000, 60  # characters: of a condition, and of it in an error
_DEEPEST = 100  # levels that are nested

# Longest first, so that what looks like a label within a text is none.
_TOKENS = re.compile(
    r"""
    (?P<text> '{3}(?:\\.|[^\\])*?'{3} | "{3}(?:\\.|[^\\])*?"{3}
            | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" )
    | `(?P<label>[^`]+)`
    | (?P<space>(?:\s|\#[^\n]*)+)
    """,
    re.VERBOSE | re.DOTALL,
)
_HINTS = {
    "@": "'@' names a variable: write its value into the text",
    r"&&|\|\|": "&& and || are not Python: write and, or",
    "<>": "<> is not Python: to differ, write !=",
    r"(?<![=!<>:])=(?![=>])": "= assigns. To compare, write ==",
}
"""What is meant by what Python cannot read."""


def parse_expression(text: str) -> ast.expr:
    """Parse the text of a condition, whatever it may contain.

    Parameters
    ----------
    text
        A Python expression of at most 10,000 characters, nested at most 100 levels deep.

    Returns
    -------
    ast.expr
        Its tree. A name that needs its backticks has them; `ast.unparse` writes it as it was.

    Raises
    ------
    QueryError
        If the text is not such an expression.
    """
    _check(text)
    quoted: dict[str, str] = {}
    prefix = "label"
    while prefix in text:  # no label may look like a placeholder
        prefix += "_"

    def replace(token: re.Match[str]) -> str:
        if token["text"] is not None:
            return token[0]
        if token["space"] is not None:
            return " "
        placeholder = f"{prefix}{len(quoted)}"
        quoted[placeholder] = as_name(token["label"])
        return f" {placeholder} "

    tree = _python(_TOKENS.sub(replace, text).strip(), text)
    _check_depth(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = quoted.get(node.id, node.id)
    return tree


def unquote(name: str) -> str:
    """Return the label that a name in a tree stands for."""
    return name.strip("`")


def labels(tree: ast.expr) -> tuple[str, ...]:
    """Return the columns named, in order of appearance."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(unquote(node.id) for node in names))


Sign: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "**"]

OPERATIONS: dict[type[ast.operator], Sign] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
"""Operations of arithmetic, as they are written."""


def excerpt(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _check(text: object) -> None:
    """Refuse a condition that is not a text of a reasonable size."""
    if not isinstance(text, str):
        rule = f"where must be a text, such as 'fare > 0', got {a_type(text)}:"
        remedy = "masks and functions could look at other rows."
        raise QueryError(f"{rule} {remedy}")
    if not text.strip():
        raise QueryError("where must not be empty. Without where=, all rows count.", value=text)
    if len(text) > _LONGEST:
        rule = f"where must have at most {_LONGEST} characters, got {len(text)}:"
        remedy = "add a column that holds the outcome and name that one."
        raise QueryError(f"{rule} {remedy}")


def as_name(label: str) -> str:
    """Put a label in backticks if it would not be read as the same name without."""
    plain = label.isascii() and label.isidentifier() and not iskeyword(label)
    return label if plain else f"`{label}`"


def _python(source: str, text: str) -> ast.expr:
    """Parse Python syntax; an error says what is wrong, without a traceback of the parser."""
    try:
        return ast.parse(source, mode="eval").body
    except (RecursionError, MemoryError):
        reason = "too deeply nested"
    except (SyntaxError, ValueError) as error:
        reason = getattr(error, "msg", "not text that Python can read")
    bare, shown = _TOKENS.sub(" ", text), excerpt(text)
    hint_text = next(
        (hint for sign, hint in _HINTS.items() if re.search(sign, bare)), f"{reason:.60}"
    )
    hint_text = f"where={shown!r} is not a condition: {hint_text}. {ALLOWED}"
    raise QueryError(hint_text, value=shown) from None


def _check_depth(tree: ast.expr) -> None:
    """Refuse trees so deep that recursion over them could exhaust the stack."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    rule = f"where must be nested at most {_DEEPEST} levels deep:"
    remedy = "chain conditions with 'and' and 'or', and use 'in' for many values."
    raise QueryError(f"{rule} {remedy}")


_PRESENT = (
    "Missing values equal nothing, not even themselves: 'a == a' keeps rows where a is present"
)


@frozen(slots=True)
class Name:
    """The value of a column; as a condition: that it is a number other than 0."""

    label: str


@frozen(slots=True)
class Constant:
    """A text, or a number; True is 1.0 and False is 0.0."""

    value: float | str


@frozen(slots=True)
class Negative:
    """A number with its sign changed."""

    operand: "Value"


@frozen(slots=True)
class Arithmetic:
    """Two numbers combined into one."""

    operator: Sign
    left: "Value"
    right: "Value"


MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What a relation is called from its other side."""


@frozen(slots=True)
class Compare:
    """Whether two values are of one kind and in this relation."""

    operator: Literal["==", "<", "<=", ">", ">="]
    left: "Value"
    right: "Value"


@frozen(slots=True)
class Membership:
    """Whether a value equals one of some constants."""

    operand: "Value"
    items: tuple[float | str, ...]


@frozen(slots=True)
class InPart:
    """Whether a value is a text, or the number that the text is the form of; a time is neither.

    It depends on the identity of a value alone: one privacy unit is in no two parts.
    """

    label: str
    text: str
    number: float | None


@frozen(slots=True)
class Not:
    """That a condition does not hold."""

    operand: "Node"


@frozen(slots=True)
class All:
    """That some conditions all hold; true if there are none."""

    parts: tuple["Node", ...]


@frozen(slots=True)
class Any:
    """That one or more of some conditions hold; always false if there are none."""

    parts: tuple["Node", ...]


Value = Name | Constant | Negative | Arithmetic
Leaf = Name | Compare | Membership | InPart
Node = Leaf | Not | All | Any


@frozen(slots=True)
class Condition:
    """A condition on the values of a single row; compared and hashed by what it says.

    Parameters
    ----------
    text
        What was parsed, in normalized spelling; parsing it again gives an equal condition.
    columns
        Labels of the columns it looks at, unique, in order of appearance.
    root
        The condition as a tree.
    """

    text: str
    columns: tuple[str, ...]
    root: Node

    @classmethod
    def parse(cls, text: str, parameter: str = "where") -> "Condition":
        """Read a condition.

        Parameters
        ----------
        text
            Column names (any text label in `backticks`), numbers, texts, True, False, comparisons
            (chained too), `and`, `or`, `not` (or `&`, `|`, `~` between conditions in parentheses),
            `in` and `not in` a list of constants, arithmetic. At most 10,000 characters.
        parameter
            What it is called in the call.

        Raises
        ------
        QueryError
            If the text is anything else.

        Examples
        --------
        >>> Condition.parse("fare > 0 & fare < 10")
        Traceback (most recent call last):
        ...
        dpframe.errors.QueryError: where: '0 & fare' is no number or text: ... bind tighter ...
        >>> Condition.parse("(0 < fare<=10) & (`pick up`=='A')").text
        "(0 < fare <= 10) & (`pick up` == 'A')"
        """
        try:
            tree = parse_expression(text)
            root = _condition(tree)
        except QueryError as error:
            reason = f"{parameter}{str(error).removeprefix('where')}"
            raise QueryError(reason, parameter=parameter, value=error.value) from None
        return cls(ast.unparse(tree), labels(tree), root)

    @classmethod
    def of_part(cls, label: str, text: str, number: float | None) -> "Condition":
        """Keep the rows of a part of the data."""
        named = ast.unparse(parse_expression(f"`{label}` == 0")).removesuffix(" == 0")
        written = repr(text) if number is None else text
        return cls(f"{named} == {written}", (label,), InPart(label, text, number))

    def within(self, columns: Collection[str]) -> "Condition | None":
        """Return what it demands of some columns by themselves, whatever is in others.

        Examples
        --------
        >>> Condition.parse("year > 2000 and fare > year").within({"year"}).columns
        ('year',)
        """
        demands = self.root.parts if isinstance(self.root, All) else (self.root,)
        named = [(demand, {*names_in(demand)}) for demand in demands]
        kept = [(demand, names) for demand, names in named if names and names <= {*columns}]
        if not kept:
            return None
        labels = dict.fromkeys(name for _, names in kept for name in sorted(names))
        return Condition(self.text, tuple(labels), All(tuple(demand for demand, _ in kept)))

    def split_part(self) -> "tuple[Condition | None, Condition | None]":
        """Return what it demands of the part of a row, and the rest."""
        demands = self.root.parts if isinstance(self.root, All) else (self.root,)
        part = [demand for demand in demands if isinstance(demand, InPart)]
        if not part:
            return None, self
        others = tuple(demand for demand in demands if not isinstance(demand, InPart))
        named = tuple(dict.fromkeys(label for demand in others for label in names_in(demand)))
        condition = Condition.of_part(part[0].label, part[0].text, part[0].number)
        text = self.text.removeprefix(f"{condition.text} and ")
        return condition, Condition(text, named, All(others)) if others else None

    @staticmethod
    def all_of(*conditions: "Condition | None") -> "Condition | None":
        """Join conditions with `and`.

        Parameters
        ----------
        *conditions
            `None` stands for a condition that always holds.

        Returns
        -------
        Condition or None
            `None` if all of them are.

        Examples
        --------
        >>> Condition.all_of(Condition.parse("a or b"), None, Condition.parse("c > 0")).text
        '(a or b) and c > 0'
        """
        present = [condition for condition in conditions if condition is not None]
        if len(present) <= 1:
            return present[0] if present else None
        texts = (  # `or` binds weaker than `and`
            f"({condition.text})" if isinstance(condition.root, Any) else condition.text
            for condition in present
        )
        columns = dict.fromkeys(label for condition in present for label in condition.columns)
        root = _flat(All, (condition.root for condition in present))
        return Condition(" and ".join(texts), tuple(columns), root)


def _condition(tree: ast.expr) -> Node:
    """Convert what must be true or false."""
    match tree:
        case ast.BoolOp(op=operator, values=parts):
            return _flat(_JOINTS[type(operator)], map(_condition, parts))
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as operator, right=right):
            return _flat(_JOINTS[type(operator)], map(_condition, (left, right)))
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return Not(_condition(operand))
        case ast.Compare():
            return _convert_comparison(tree)
        case ast.Name(id=label):
            return Name(unquote(label))
        case ast.Constant(value=bool(always)):
            return All(()) if always else Any(())
    if isinstance(tree, ast.BinOp | ast.UnaryOp) or _is_constant(tree):
        _refuse(tree, "is neither true nor false: compare it with something")
    _refuse_kind(tree)


_JOINTS: dict[type[ast.AST], type[All] | type[Any]] = {
    ast.And: All,
    ast.BitAnd: All,
    ast.Or: Any,
    ast.BitOr: Any,
}


def _flat(joint: type[All] | type[Any], nodes: Iterable[Node]) -> Node:
    """Join conditions without nesting joints of the same kind."""
    parts: list[Node] = []
    for node in nodes:
        parts.extend(node.parts if isinstance(node, joint) else (node,))
    return parts[0] if len(parts) == 1 else joint(tuple(parts))


_RELATIONS: dict[type[ast.cmpop], Literal["==", "<", "<=", ">", ">="]] = {
    ast.Eq: "==",
    ast.NotEq: "==",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _convert_comparison(tree: ast.Compare) -> Node:
    """Convert a comparison; a chain holds if all of its comparisons hold."""
    sides = [tree.left, *tree.comparators]
    links = zip(tree.ops, sides, sides[1:], strict=False)
    return _flat(All, (_link(tree, operator, left, right) for operator, left, right in links))


def _link(tree: ast.Compare, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> Node:
    """Convert one comparison of a chain."""
    if isinstance(operator, ast.Is | ast.IsNot):
        _refuse(tree, "uses 'is': compare with == or !=. " + _PRESENT)
    node: Node
    if isinstance(operator, ast.In | ast.NotIn):
        node = Membership(_left_of_in(left), _items(right))
    else:
        node = Compare(_RELATIONS[type(operator)], _value(left), _value(right))
        _check_kinds(tree, node)
    # missing values equal nothing, so they meet != and `not in`
    return Not(node) if isinstance(operator, ast.NotEq | ast.NotIn) else node


def _check_kinds(tree: ast.Compare, node: Compare) -> None:
    """Refuse a text compared with anything but a column: no row could change the outcome."""
    for text, other in ((node.left, node.right), (node.right, node.left)):
        if _is_text(text) and not isinstance(other, Name):
            _refuse(tree, "compares a text with something that is not a column")


def _left_of_in(tree: ast.expr) -> Value:
    """Convert what is looked for in a list."""
    value = _value(tree)
    if isinstance(value, Constant):
        _refuse(tree, "is looked for with 'in': only columns and arithmetic with them can be")
    return value


def _items(tree: ast.expr) -> tuple[float | str, ...]:
    """Convert a list, tuple or set of constants."""
    if not isinstance(tree, ast.List | ast.Tuple | ast.Set):
        _refuse(tree, "stands right of 'in': write a list of constants there")
    items = []
    for element in tree.elts:
        value = _value(element)
        if not isinstance(value, Constant):
            _refuse(element, "stands in a list: write constants there")
        items.append(value.value)
    return tuple(items)


def _value(tree: ast.expr) -> Value:
    """Convert what must be a number or a text."""
    match tree:
        case ast.Name(id=label):
            return Name(unquote(label))
        case ast.Constant() if _is_constant(tree):
            return _constant(tree)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            number = _number(operand)
            return number if isinstance(sign, ast.UAdd) else _negative(number)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATIONS:
            sign_of = OPERATIONS[type(operator)]
            return Arithmetic(sign_of, _number(left), _number(right))
        case (
            ast.BoolOp() | ast.Compare() | ast.UnaryOp() | ast.BinOp(op=ast.BitAnd() | ast.BitOr())
        ):
            _refuse(
                tree,
                "is no number or text: &, | and ~ bind tighter than comparisons. Put these in "
                "parentheses: (a > 0) & (b > 0)",
            )
    _refuse_kind(tree)


def _number(tree: ast.expr) -> Value:
    """Convert an operand of arithmetic."""
    value = _value(tree)
    if _is_text(value):
        _refuse(tree, "is a text in arithmetic, which works on numbers only")
    return value


def _negative(number: Value) -> Value:
    """Change the sign of a number."""
    if isinstance(number, Constant) and isinstance(number.value, float):
        return Constant(-number.value)  # lists take constants alone, negative ones too
    return Negative(number)


def _is_text(value: Value) -> bool:
    """Whether a value is a constant text."""
    return isinstance(value, Constant) and isinstance(value.value, str)


def _is_constant(tree: ast.expr) -> bool:
    """Whether this is a number, a text, True or False."""
    return isinstance(tree, ast.Constant) and isinstance(tree.value, int | float | str)


def _constant(tree: ast.Constant) -> Constant:
    """Convert a constant; every number becomes a float, so no power can grow without end."""
    try:
        if isinstance(tree.value, str):
            tree.value.encode()
            return Constant(tree.value)
        return Constant(float(cast(float, tree.value)))
    except OverflowError:
        _refuse(tree, "is beyond the range of floats")
    except UnicodeEncodeError:
        _refuse(tree, "is not valid Unicode")


_FOREIGN: dict[type[ast.AST], str] = {
    ast.Call: "is a call",
    ast.Attribute: "is an attribute",
    ast.Subscript: "is a subscript",
    ast.Lambda: "is a function",
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp), "is a comprehension"),
    ast.GeneratorExp: "is a comprehension",
    ast.NamedExpr: "is an assignment",
    ast.JoinedStr: "is an f-string",
    ast.IfExp: "is a choice with if and else",
}


def _refuse_kind(tree: ast.expr) -> NoReturn:
    """Refuse a kind of expression that has no place in a condition."""
    if isinstance(tree, ast.Constant) and tree.value is None:
        _refuse(tree, "is not a value to compare with. " + _PRESENT)
    rule = _FOREIGN.get(type(tree), "is not part of this language")
    reason = f"{rule}: conditions look at one row at a time"
    _refuse(tree, f"{reason}. {ALLOWED.rstrip('.')}")


def _refuse(tree: ast.expr, reason: str) -> NoReturn:
    """Raise the error that quotes a part of the condition."""
    try:
        part = excerpt(ast.unparse(tree))
    except ValueError:  # Python writes no integer of more than 4300 digits
        part = "..."
    raise QueryError(f"where: {part!r} {reason}.", value=part) from None


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield what a condition is made of by and, or and not, in order.

    Examples
    --------
    >>> [leaf.label for leaf in leaves(Condition.parse("paid and not (night or late)").root)]
    ['paid', 'night', 'late']
    """
    match node:
        case Not(operand):
            yield from leaves(operand)
        case All(parts) | Any(parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield node


def names_in(value: Value | Node) -> Iterator[str]:
    """Yield the columns that a value or a condition is computed from, in order."""
    match value:
        case Name(label) | InPart(label):
            yield label
        case Negative(operand) | Not(operand) | Membership(operand):
            yield from names_in(operand)
        case Arithmetic(_, left, right) | Compare(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case All(parts) | Any(parts):
            for part in parts:
                yield from names_in(part)
        case Constant():
            pass
