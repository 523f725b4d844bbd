"""Tables for notebooks, and budgets and declarations as such tables.

Every text is escaped: labels, conditions and names may come from a file. Colors are those of the
notebook, light or dark.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

FACTS = ("column", "bounds", "keys", "whole numbers", "missing values", "from")
"""What is shown of a declared column."""

_NOISE = {"epsilon": "Laplace noise", "mu": "Gaussian noise"}
_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = "text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0;"
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_LONG = re.compile(r"[0-9a-f]{32}")  # an identifier, or a digest
_BREAKS = " overflow-wrap: anywhere; min-width: 9em;"  # so that narrow pages can show it
_DIGITS = 4  # of what is left of a budget
_MOST_ROWS = 50  # of a table that are shown
_SEVERAL = "a person in k such units is protected as k units"
_PERCENT = ["share", "part"]
_SHOWN = ["what", "name", "mechanism", *_PERCENT, "epsilon", "mu", "delta"]


def budget_html(status: Any, whose: str) -> str:
    """Return what is spent and left of a budget as HTML.

    What is left is rounded down: as much as is shown can be spent.

    Parameters
    ----------
    status
        A `dpframe.ledger.status.BudgetStatus`.
    whose
        Of which parts of the data this is the budget; nothing where there are none.
    """
    budget = status.budget
    bar = f'<progress max="1" value="{status.used:.4f}" style="width: 16em;"></progress>'
    rows = [
        ("budget", f"{budget_text(budget)}{whose}"),
        ("used", status.used_words),
        ("left", f"{floor(100 * status.remaining_share)}%"),
    ]
    left = [*noise_left(status), share_left(status), discovery_left(status)]
    rows += [("", line) for line in left if line]
    return section(title_html("Privacy budget"), bar, pairs(rows), _releases(status.releases))


def _releases(frame: Any) -> str:
    """Show releases, the latest first, in the columns in which at least one has something."""
    latest = frame.iloc[::-1]
    percents = latest[_PERCENT].map(percent, na_action="ignore")
    latest = latest.astype(dict.fromkeys(_PERCENT, object)).assign(**percents)
    columns = {name: [_text(value) for value in latest[name]] for name in _SHOWN}
    shown = {name: values for name, values in columns.items() if set(values) - {""}}
    # an identifier is long: beside the time it would leave no room for the others
    shown["released"] = list(map(list, zip(latest["released_at"], latest.index, strict=True)))
    return grid(list(shown), zip(*shown.values(), strict=True)) if len(latest) else ""


def noise_left(status: Any, digits: int = _DIGITS) -> list[str]:
    """Say how much of each kind of noise still fits, for those of which something does."""
    largest = {"epsilon": status.remaining_epsilon, "mu": status.remaining_mu}
    amounts = {name: floor(amount, digits) for name, amount in largest.items() if amount}
    lines = [f"{name}={amount} of {_NOISE[name]}" for name, amount in amounts.items()]
    return [*lines[:1], *(f"or {line}" for line in lines[1:])]


def share_left(status: Any, digits: int = _DIGITS) -> str:
    """Say which share takes all that is left; nothing where there is none."""
    if not status.largest_share:
        return ""
    share = floor(status.largest_share, digits)
    nearly = "" if float(share) == status.largest_share else "nearly "
    return f"share={share} takes {nearly}all of it"


def discovery_left(status: Any) -> str:
    """Say how much delta is left to find groups with, where some was kept for it."""
    if not status.budget.discovery:
        return ""
    return f"delta={floor(status.remaining_delta)} to find groups with"


def budget_text(budget: Any) -> str:
    """Show a budget, with what is kept of it."""
    kept = f" ({budget.discovery:g} of it to find groups with)" if budget.discovery else ""
    return f"epsilon={budget.epsilon:g}, delta={budget.delta:g}{kept}"


def _text(value: object) -> object:
    """Leave out what there is none of."""
    return "" if value is None or value != value else value  # noqa: PLR0124


def declaration_html(declaration: Any) -> str:
    """Return what is declared about a frame as HTML; all of it is public.

    Parameters
    ----------
    declaration
        A `dpframe.declaration.facts.Declaration`.
    """
    tables = pairs(declared_facts(declaration)), grid(FACTS, declared_columns(declaration))
    return section(title_html("Declared as public"), *tables)


def declared_facts(declaration: Any) -> list[tuple[str, str | list[str]]]:
    """Return names and values of what is declared about a frame as a whole."""
    caps, ledger = declaration.caps, declaration.ledger
    named = dict(max_rows=caps.rows, max_groups=caps.groups, max_rows_per_group=caps.rows_per_group)
    budget = "none: releases are not added up"
    if ledger is not None:
        budget = budget_text(ledger.budget)
        budget = budget if ledger.part is None else f"{budget} for every {ledger.part}"
    return [
        ("privacy unit", unit_lines(declaration.unit_columns, named)),
        ("neighbors", declaration.neighboring),
        ("budget", budget),
        *([("not used", list(declaration.unused))] if declaration.unused else []),
    ]


def declared_columns(declaration: Any) -> list[list[object]]:
    """Return what is declared about every column, under the names of `FACTS`."""
    return [_facts(label, column) for label, column in declaration.columns.items()]


def _facts(label: object, column: Any) -> list[object]:
    """Return what is declared about a column."""
    return [
        label,
        bounds_text(column.bounds),
        "" if column.keys is None else f"{len(column.keys):,}",
        "yes" if column.integer else "",
        "left out" if column.missing is None else f"taken as {_short(column.missing)}",
        column.source,
    ]


def unit_lines(columns: Sequence[object], caps: Mapping[str, int | None]) -> list[str]:
    """Say what the unit of privacy is, and its caps."""
    if not columns:
        return ["one row"]
    limits = [f"{name}={value}" for name, value in caps.items() if value is not None]
    return [f"all rows of {_one_of(columns)}", *limits, *[_SEVERAL] * (len(columns) > 1)]


def unit_words(columns: Sequence[object]) -> str:
    """Say what a unit of privacy is whose rows have a value in common, or several.

    Examples
    --------
    >>> unit_words(["aircraft", "week"])
    "one 'aircraft' in one 'week'; a person in k such units is protected as k units"
    """
    return "; ".join([_one_of(columns), *[_SEVERAL] * (len(columns) > 1)])


def _one_of(columns: Sequence[object]) -> str:
    return f"one {' in one '.join(map(repr, columns))}"


def bounds_text(bounds: Sequence[object] | None) -> str:
    """Show bounds: two numbers, or two times."""
    return "" if bounds is None else " to ".join(map(_short, bounds))


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def floor(value: float, digits: int = _DIGITS) -> str:
    """Show what is left with a few digits, rounded down: as much as is shown can be spent."""
    # exact, so that 0.1 is not shown as 0.09999
    shown = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(value)))
    return f"{float(shown):g}"


def percent(part: float | Fraction) -> str:
    """Show a part of a budget as it was asked for.

    Examples
    --------
    >>> percent(0.3), percent(1 / 3)
    ('30%', '33.3%')
    """
    return f"{100 * float(part):.3g}%"


def section(*parts: str) -> str:
    """Put what was made side by side, as one piece of HTML."""
    # dollar signs in a label do not start a formula
    return f'<div class="dpframe tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def title_html(title: str) -> str:
    """Show a title."""
    return f'<div style="padding: 0.3em 0;"><b>{_escape(title)}</b></div>'


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Show names beside values."""
    return _table("".join(_row([_header(name), _cell(value)]) for name, value in rows))


def grid(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Show rows under a header."""
    listed = list(rows)
    lines = [_row(map(_header, header)), *(_row(map(_cell, row)) for row in listed[:_MOST_ROWS])]
    if len(listed) > _MOST_ROWS:
        lines.append(_row([_cell(f"and {len(listed) - _MOST_ROWS:,} more")]))
    return _table("".join(lines))


def scrolling(table: str) -> str:
    """Let a wide table scroll by itself, by keys too: the page around it stays as it is."""
    return f'<div style="overflow-x: auto;" tabindex="0">{table}</div>'


def _table(rows: str) -> str:
    table = f'<table style="border-collapse: collapse; margin: 0 0 0.6em 0;">{rows}</table>'
    return scrolling(table)


def _row(cells: Iterable[str]) -> str:
    return f'<tr style="border-bottom: {_LINE};">{"".join(cells)}</tr>'


def _header(name: str) -> str:
    return f'<th style="{_CELL} font-weight: 600;">{_escape(name)}</th>'


def _cell(value: object) -> str:
    lines = value if isinstance(value, list) else [value]
    text = "<br/>".join(map(_escape, lines))
    return f'<td style="{_CELL}{_BREAKS if _LONG.search(text) else ""}">{text}</td>'


def _escape(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return html.escape(_NO_TEXT.sub("\ufffd", text))
