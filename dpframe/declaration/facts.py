"""What is public about a frame: bounds, keys, privacy unit, caps and neighboring relation."""

import sys
import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from weakref import ref

import pandas as pd

from dpframe.arguments import visible
from dpframe.context import SYSTEM, Context
from dpframe.declaration.kinds import (
    Bounds,
    check_bounds,
    check_combinations,
    check_keys,
    check_missing,
    check_type,
)
from dpframe.errors import DeclarationError, DPFrameWarning, quote
from dpframe.frozen import frozen
from dpframe.html import FACTS, declaration_html, declared_columns, declared_facts
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.parts import Part, check_part, number_of
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, exact
from dpframe.privacy.neighbors import EACH_ROW, NO_CAPS, Caps, EachRow, Neighboring
from dpframe.queries.edges import Moment
from dpframe.queries.where import Condition

_MOST_COLUMNS = 50  # of a declaration that are shown


def declaration_text(declaration: Any, most: int = _MOST_COLUMNS) -> str:
    """Return what is declared about a frame as lines of text.

    Parameters
    ----------
    declaration
        A `dpframe.declaration.facts.Declaration`.
    most
        How many columns are shown.
    """
    facts = [
        (name, ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in declared_facts(declaration)
    ]
    columns = [list(map(str, row)) for row in declared_columns(declaration)]
    rows = [list(FACTS), *columns[:most]] if columns else []
    left_out = [f"and {len(columns) - most:,} more"] if len(columns) > most else []
    lines = [*_align_cells(facts), *_align_cells(rows), *left_out]
    return "\n".join(f"  {visible(line)}" for line in lines)


def _align_cells(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Put the cells of a table under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


@frozen(slots=True, eq=False)
class Column:
    """Public facts about one column.

    Parameters
    ----------
    bounds
        `(lower, upper)`: values are clipped to it before they are summed. `None`: not declared.
    keys
        The groups there are, in order. `None`: not declared.
    integer
        Whether the column is declared to hold integers or booleans.
    missing
        Number, point in time or duration that replaces a missing one; "drop": queries of the column
        leave out rows without a value; `None`: missing values contribute nothing.
    source
        Where bounds and keys come from: "schema", "declared", "type" or "call".
    type
        What cells are known to be, as `dpframe.declaration.kinds` calls it; `None`: not known.
    """

    bounds: Bounds | None = None
    keys: pd.Index | None = None
    integer: bool = False
    missing: float | Moment | Literal["drop"] | None = None
    source: str = "declared"
    type: str | None = None


@frozen(slots=True, eq=False)
class Declaration:
    """Public facts about one frame.

    Parameters
    ----------
    columns
        Facts by column label.
    privacy_unit
        Columns that together say whom a row belongs to; `EACH_ROW`: every row is a unit, on
        purpose; `None`: every row is a unit, because none was declared.
    caps
        How much of the frame one unit may fill.
    neighboring
        The neighboring relation between units.
    ledger
        Where spends are recorded; `None`: no budget was declared.
    name
        What the ledger calls the frame; `None`: it has no name.
    unused
        What a schema says that no fact is made of.
    part
        The part of the data that alone is read, of whose budget the ledger is; `None`: all parts.
    combinations
        Combinations of groups that rows can have, by some columns, such as regions in countries.
    """

    columns: Mapping[Hashable, Column] = field(default_factory=lambda: MappingProxyType({}))
    privacy_unit: tuple[Hashable, ...] | EachRow | None = None
    caps: Caps = NO_CAPS
    neighboring: Neighboring = "add_remove"
    ledger: Ledger | None = None
    name: str | None = None
    part: Part | None = None
    unused: tuple[str, ...] = ()
    combinations: tuple[pd.DataFrame, ...] = ()

    @property
    def unit_columns(self) -> tuple[Hashable, ...]:
        """The columns that together say whom a row belongs to; none: every row is a unit."""
        return self.privacy_unit if isinstance(self.privacy_unit, tuple) else ()

    def allows(self, loss: PrivacyLoss) -> bool:
        """Whether a loss fits beside what is spent of the budget, if there is one."""
        return self.ledger is None or self.ledger.allows(loss)

    def column(self, label: Hashable) -> Column:
        """Return what is declared about a column, which may be nothing."""
        return self.columns.get(label, Column())

    def with_facts(
        self,
        *,
        bounds: Mapping[Hashable, object] | None = None,
        keys: Mapping[Hashable, object] | None = None,
        missing: Mapping[Hashable, object] | None = None,
        types: Mapping[Hashable, object] | None = None,
        source: str = "declared",
    ) -> "Declaration":
        """Return a declaration in which the given facts take the place of earlier ones.

        Raises
        ------
        DeclarationError
            If bounds, keys, replacements or types are not usable.
        """
        columns = defaultdict(Column, self.columns)
        for label, value in _items("bounds", bounds):
            column = columns[label]
            checked = check_bounds(label, value, integer=column.integer)
            columns[label] = replace(column, bounds=checked, source=source)
        combinations = list(self.combinations)
        for label, value in _items("keys", keys):
            listed = [check_combinations(label, value)] if isinstance(value, pd.DataFrame) else []
            distinct = {name: frame[name].drop_duplicates() for frame in listed for name in frame}
            keys_of: dict[Hashable, object] = {**distinct} or {label: value}
            # newer keys of a column replace every frame of combinations that names it
            combinations = [frame for frame in combinations if not {*frame.columns} & {*keys_of}]
            combinations += listed
            for name, values in keys_of.items():
                index = check_keys(name, values)
                columns[name] = replace(columns[name], keys=index, source=source)
        for label, value in _items("missing", missing):
            columns[label] = replace(columns[label], missing=check_missing(label, value))
        for label, value in _items("types", types):
            columns[label] = replace(columns[label], type=check_type(label, value))
        view = MappingProxyType(dict(columns))
        return replace(self, columns=view, combinations=tuple(combinations))

    def with_truths(self, types: Mapping[Hashable, str | None]) -> "Declaration":
        """Return a declaration in which columns that are of truths by their public type have keys.

        Parameters
        ----------
        types
            The types of a source, by column; `None` where one cell may have decided on it.
        """
        columns = {
            label: replace(column, keys=check_keys(label, [False, True]), source="type")
            for label, kind in types.items()
            if "bool" in (kind, (column := self.column(label)).type) and column.keys is None
        }
        if not columns:
            return self
        return replace(self, columns=MappingProxyType({**self.columns, **columns}))

    def within(self, context: Context) -> "Declaration":
        """Return a declaration for one call, whose ledger is that of its context."""
        if self.ledger is None:
            return self
        return replace(self, ledger=self.ledger.within(context))

    def with_unit(self, unit: object) -> "Declaration":
        """Return a declaration for one call, which may say that every row is a unit.

        Raises
        ------
        DeclarationError
            If a call says something else, or the frame is declared with a unit.
        """
        if unit is None:
            return self
        if unit is not EACH_ROW:
            rule = "must be dpf.EACH_ROW in a call"
            remedy = "A column of units needs caps: .dp.declare(privacy_unit=..., max_rows=...)."
            raise DeclarationError.about("privacy_unit", rule, unit, remedy)
        if self.unit_columns:
            declared = quote(given_unit(self.unit_columns))
            reason = f"this frame is declared with privacy_unit={declared}"
            remedy = "Leave it out: all rows of one unit are protected together."
            text = f"{reason}, got privacy_unit=dpf.EACH_ROW in a call. {remedy}"
            raise DeclarationError(text, parameter="privacy_unit", value=EACH_ROW)
        return replace(self, privacy_unit=EACH_ROW)

    def in_part(self, part: object) -> "Declaration":
        """Return a declaration for one call, which may read and spend of one part of the data.

        Raises
        ------
        DeclarationError
            If it is no part, or the budget is not by part.
        """
        if part is None:
            return self
        part = check_part(part)
        if self.ledger is None:
            rule = "needs a ledger by part, and no budget is declared for this frame"
            remedy = 'Declare one: ledger=dpf.Ledger.create(path, budget=..., part="week").'
            raise DeclarationError.about("part", rule, part, remedy)
        return replace(self, ledger=self.ledger.of_part(part), part=part)

    @property
    def part_condition(self) -> Condition | None:
        """Which rows alone are read."""
        if self.part is None or self.ledger is None or self.ledger.part is None:
            return None
        return Condition.of_part(self.ledger.part, self.part, number_of(self.part))

    def __repr__(self) -> str:
        """Show what is declared, line by line; all of it is public."""
        return f"Declared as public\n{declaration_text(self)}"

    def _repr_html_(self) -> str:
        """Show what is declared as tables in a notebook; all of it is public."""
        return declaration_html(self)


def _items(name: str, facts: Mapping[Hashable, object] | None) -> Iterable[tuple[Hashable, object]]:
    if facts is None:
        return ()
    if not isinstance(facts, Mapping):
        reason = f"{name} must be a dict from column to value, got {type(facts).__name__};"
        remedy = f"for instance {name}={{'column': ...}}."
        raise DeclarationError(f"{reason} {remedy}", parameter=name)
    return facts.items()


def given_unit(columns: Sequence[Hashable]) -> Hashable | list[Hashable]:
    """Return the columns of a privacy unit as they are declared: a label, or a list of several."""
    return columns[0] if len(columns) == 1 else [*columns]


_ATTRIBUTE = "_dpframe_declaration"


_WARNINGS = "_dpframe_warnings"


class _Kept(NamedTuple):
    """A declaration, and the frame that it is kept on: copies of other kinds of frames share it."""

    declaration: Declaration
    owner: ref[Any]
    context: Context  # in which it was declared
    outside: Ledger | None  # which was declared outside of tests

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Leave it out of pickles and deep copies."""
        return type(None), ()


def keep_declaration(frame: object, declaration: Declaration, context: Context) -> None:
    """Keep a declaration on the frame object itself.

    It survives edits in place, and is not carried to copies, filters and merges: a derived frame
    may mix rows, so it must be declared again. Engines mark frames to tell such ones apart.
    """
    before, outside = _kept(frame), declaration.ledger
    if context.is_test:
        outside = None if before is None else before.outside
    object.__setattr__(frame, _ATTRIBUTE, _Kept(declaration, ref(frame), context, outside))


def _kept(frame: object) -> _Kept | None:
    kept = getattr(frame, "__dict__", {}).get(_ATTRIBUTE)
    return kept if isinstance(kept, _Kept) and kept.owner() is frame else None


def kept_declaration(frame: object) -> Declaration | None:
    """Return the declaration kept on a frame object, if any."""
    kept = _kept(frame)
    return None if kept is None else kept.declaration


def kept_ledger(frame: object, context: Context) -> Ledger | None:
    """Return the ledger that a frame object has; what a test declared ends with its block."""
    kept = _kept(frame)
    if kept is None:
        return None
    return kept.declaration.ledger if kept.context in (SYSTEM, context) else kept.outside


def is_of_another_test(frame: object, context: Context) -> bool:
    """Tell whether a frame was declared inside a testing block that a call is not in."""
    kept = getattr(frame, "__dict__", {}).get(_ATTRIBUTE)
    return isinstance(kept, _Kept) and kept.context not in (SYSTEM, context)


def is_copied(frame: object) -> bool:
    """Tell whether a frame object has what another one kept, as a copy of its `__dict__`."""
    return _ATTRIBUTE in getattr(frame, "__dict__", {}) and kept_declaration(frame) is None


def kept_warnings(frame: object, context: Context) -> set[str]:
    """Return the set of what was warned of about a frame object, to be added to.

    A testing block has one of its own: what is warned of inside is warned of outside, too.
    """
    kept = getattr(frame, "__dict__", {}).get(_WARNINGS)
    warned: dict[Context, set[str]] = kept if isinstance(kept, dict) else {}
    if context not in warned:  # of blocks, the last one is kept
        warned = {
            context_of: names for context_of, names in warned.items() if not context_of.is_test
        }
        warned[context] = set()
        object.__setattr__(frame, _WARNINGS, warned)
    return warned[context]


MOST = {"epsilon": 10, "mu": 2, "rho": 2}
"""Amounts above these warn; mu=2 is rho=2, and (11, 1e-6)-DP."""

LEAST_DELTA = Fraction(1, 1000)
"""A delta from here on warns."""

_PACKAGE = str(Path(__file__).resolve().parents[1])
_NO_UNIT = (
    "no privacy unit is declared for this frame, so each row is taken for a person of its own: "
    "somebody with ten rows is protected ten times less. Declare privacy_unit=, the column that "
    "says whom a row belongs to, or say privacy_unit=dpf.EACH_ROW if that is what is meant."
)

_IN_MEMORY = (
    "budget= alone is kept in memory, and forgotten when Python ends: whoever runs this again "
    "spends it again. Give ledger='visits.ledger' beside it, a file that remembers; or, on "
    "purpose, ledger=dpf.Ledger(budget=...) in its place."
)


def warn_of_memory(frame: object, context: Context) -> None:
    """Warn that a budget is kept in memory, once per frame; a test keeps none anywhere.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    if not context.is_test:
        _warn(frame, {"ledger": _IN_MEMORY}, context)


def warn_of_budget(frame: object, budget: object, context: Context) -> None:
    """Warn of a budget that protects nobody, once per frame and amount.

    What is no budget is left to those who refuse it.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    if isinstance(budget, Budget):
        spend = Spend.of(epsilon=budget.epsilon, delta=budget.delta)
        _warn(frame, _of_amounts(spend, "budget: "), context)


def warn_of_release(
    frame: object, declaration: Declaration, spend: Spend, context: Context
) -> None:
    """Warn of an amount that protects nobody, and of a unit that was never declared.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    subjects = _of_amounts(spend, "")
    if declaration.privacy_unit is None:
        subjects["privacy_unit"] = _NO_UNIT
    if subjects:
        _warn(frame, subjects, context)


def _of_amounts(spend: Spend, where: str) -> dict[str, str]:
    """Say what is wrong with an amount, by the name of its parameter."""
    subjects: dict[str, str] = {}
    most = MOST.get(spend.kind)
    if most is not None and spend.amount > most:
        subjects[spend.kind] = (
            f"{where}{spend.kind}={float(spend.amount):g} is too large to protect anybody. Choose "
            f"{spend.kind} <= {most}; common choices of epsilon lie between 0.01 and 10."
        )
    if spend.delta is not None and exact(spend.delta) >= LEAST_DELTA:
        subjects["delta"] = (
            f"{where}delta={spend.delta:g} is too large: with it, one person in "
            f"{int(1 / exact(spend.delta)):,} may be published as they are. Choose delta far below "
            "one over the number of people, 1e-6 for instance."
        )
    return subjects


def _warn(frame: object, subjects: dict[str, str], context: Context) -> None:
    """Warn of what was not warned of yet; what a filter makes an error is to be warned of again."""
    warned = kept_warnings(frame, context)
    for name, message in subjects.items():
        if name not in warned:
            warn(message)
            warned.add(name)


def warn(message: str) -> None:
    """Warn at the line that called the package.

    Raises
    ------
    DPFrameWarning
        If Python's filters turn it into an error.
    """
    warnings.warn(message, DPFrameWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Count how far up the line is that called the package."""
    level, frame = 0, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
