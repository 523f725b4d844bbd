"""Certificates, budgets and declarations as tables for notebooks.

Every text is escaped: labels, conditions and names may come from a file. Colors are those of the
notebook, light or dark.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Context
from typing import Any

__all__ = ["budget_html", "certificate_html", "declaration_html", "table_html"]

_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = "text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0;"
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_DIGITS = 4
_MOST_ROWS = 50
_SHOWN = ["released_at", "name", "what", "mechanism", "part", "epsilon", "mu", "delta"]


def table_html(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values as HTML.

    Parameters
    ----------
    title
        What stands above it.
    rows
        Pairs of a name and a value. Values are shown as texts, lists of texts line by line.

    Examples
    --------
    >>> "<b>Fruit &amp; more</b>" in table_html("Fruit & more", [("apples", 3)])
    True
    """
    return _section(_titled(title), _pairs(rows))


def certificate_html(record: Mapping[str, Any]) -> str:
    """Return a certificate as HTML.

    Parameters
    ----------
    record
        A certificate as plain JSON.
    """
    loss, unit, ledger = record["privacy_loss"], record["privacy_unit"], record["ledger"]
    rows = [
        ("query", record["query"]["words"]),
        ("privacy unit", _unit(unit["column"], unit["caps"])),
        ("neighbors", record["neighboring"]),
        ("mechanism", f"{record['mechanism']['title']} noise on exact integers"),
        ("privacy loss", _loss(loss)),
        ("ledger", "none: no budget was declared" if ledger is None else _ledger(ledger)),
        ("released", [record["released_at"], record["library"], record["release_id"]]),
        ("digest", [record["digest"], "a claim until dpframe.verify has checked it"]),
    ]
    parts = [_titled("Privacy certificate"), _pairs(rows), _columns(record["columns"])]
    if record["steps"]:
        parts.append(_steps(record["steps"]))
    return _section(*parts)


def budget_html(status: Any) -> str:
    """Return what is spent and left of a budget as HTML.

    What is left is rounded down: as much as is shown can be spent.

    Parameters
    ----------
    status
        The status of a ledger: `budget`, `spent`, `used`, `remaining_mu`, `remaining_epsilon`,
        `remaining_share`, and `releases`, a frame with a row for each release.
    """
    budget = status.budget
    bar = f'<progress max="1" value="{status.used:.4f}" style="width: 16em;"></progress>'
    rows = [
        ("budget", _budget(budget)),
        ("used", f"{status.used:.1%}"),
        ("left", f"mu={_down(status.remaining_mu)} of Gaussian noise"),
        ("", f"or epsilon={_down(status.remaining_epsilon)} of Laplace noise"),
        ("", f"share={_down(status.remaining_share)}"),
    ]
    releases = status.releases.iloc[::-1][_SHOWN]  # the latest first
    return _section(
        _titled("Privacy budget"),
        bar,
        _pairs(rows),
        _grid(["release_id", *_SHOWN], map(_release, releases.itertuples())),
    )


def _budget(budget: Any) -> str:
    kept = f", {budget.discovery:g} of it for extra deltas" if budget.discovery else ""
    return f"epsilon={budget.epsilon:g}, delta={budget.delta:g}{kept}"


def _release(row: Iterable[object]) -> list[object]:
    """Leave out of a row what there is none of."""
    return ["" if value is None or value != value else value for value in row]  # noqa: PLR0124


def declaration_html(declaration: Any) -> str:
    """Return what is declared about a frame as HTML; all of it is public.

    Parameters
    ----------
    declaration
        A `dpframe.declaration.facts.Declaration`.
    """
    caps, ledger = declaration.caps, declaration.ledger
    named = {
        "max_rows": caps.rows,
        "max_groups": caps.groups,
        "max_rows_per_group": caps.rows_per_group,
    }
    budget = None if ledger is None else ledger.budget
    rows = [
        ("privacy unit", _unit(declaration.privacy_unit, named)),
        ("neighbors", declaration.neighboring),
        ("budget", "none: releases are not added up" if budget is None else _budget(budget)),
    ]
    header = ["column", "bounds", "keys", "whole numbers", "missing values", "from"]
    facts = [_facts(label, column) for label, column in declaration.columns.items()]
    return _section(_titled("Declared as public"), _pairs(rows), _grid(header, facts))


def _facts(label: object, column: Any) -> list[object]:
    """Return what is declared about a column."""
    return [
        label,
        _bounds(column.bounds),
        "" if column.keys is None else f"{len(column.keys):,}",
        "yes" if column.integer else "",
        "left out" if column.missing is None else f"taken as {column.missing:g}",
        column.source,
    ]


def _unit(column: object, caps: Mapping[str, int | None]) -> list[str]:
    if column is None:
        return ["one row"]
    limits = [f"{name}={value}" for name, value in caps.items() if value is not None]
    return [f"all rows of one {column!r}", *limits]


def _loss(loss: Mapping[str, Any]) -> list[str]:
    lines = [f"mu={loss['mu']:.6g}"]
    if loss["epsilon"] is not None:
        lines.insert(0, f"({loss['epsilon']:.6g}, {loss['delta']:g})-differentially private")
    if loss["joint"]:
        lines.append("shared by all queries released together")
    return lines


def _ledger(ledger: Mapping[str, Any]) -> list[str]:
    budget = ledger["budget"]
    return [
        f"{ledger['part']:.1%} of epsilon={budget['epsilon']:g}, delta={budget['delta']:g}",
        f"{ledger['used']:.1%} used by then",
        ledger["id"],
    ]


def _columns(columns: Iterable[Mapping[str, Any]]) -> str:
    """Show the released columns."""
    header = ["column", "what", "where", "bounds", "standard error"]
    rows = [
        [
            column["name"],
            column["kind"] + (f" of {column['column']}" if column["column"] is not None else ""),
            column["where"] or "",
            _bounds(column["bounds"]),
            "one for each row" if column["std_error"] is None else f"{column['std_error']:.6g}",
        ]
        for column in columns
    ]
    return _grid(header, rows)


def _steps(steps: Iterable[Mapping[str, Any]]) -> str:
    """Show what was computed after the release."""
    header = ["added afterwards", "from", "denoised by", "expected to remove"]
    rows = []
    for step in steps:
        gain = step["tried"].get(step["method"])
        asked = " (chosen automatically)" if step["asked"] == "auto" else ""
        by = step["members"] if len(step["members"]) > 1 else [f"{step['method']}{asked}"]
        removed = "not estimated" if gain is None else f"{gain:.0%} of the squared error"
        rows.append([step["into"], step["column"], by, removed])
    return _grid(header, rows)


def _bounds(bounds: Sequence[float] | None) -> str:
    return "" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}"


def _down(value: float) -> str:
    # exact, so that 0.1 is not shown as 0.09999
    shown = Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(repr(float(value)))
    return f"{float(shown):g}"


def _section(*parts: str) -> str:
    # dollar signs in a label are no formula
    return f'<div class="dpframe tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _titled(title: str) -> str:
    return f'<div style="padding: 0.3em 0;"><b>{_escaped(title)}</b></div>'


def _pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Show names beside values."""
    return _table("".join(_row([_header(name), _cell(value)]) for name, value in rows))


def _grid(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Show rows under a header."""
    every = list(rows)
    lines = [_row(map(_header, header)), *(_row(map(_cell, row)) for row in every[:_MOST_ROWS])]
    if len(every) > _MOST_ROWS:
        lines.append(_row([_cell(f"and {len(every) - _MOST_ROWS:,} more")]))
    return _table("".join(lines))


def _table(rows: str) -> str:
    return f'<table style="border-collapse: collapse; margin: 0 0 0.6em 0;">{rows}</table>'


def _row(cells: Iterable[str]) -> str:
    return f'<tr style="border-bottom: {_LINE};">{"".join(cells)}</tr>'


def _header(name: str) -> str:
    return f'<th style="{_CELL} font-weight: 600;">{_escaped(name)}</th>'


def _cell(value: object) -> str:
    lines = value if isinstance(value, list) else [value]
    return f'<td style="{_CELL}">{"<br/>".join(map(_escaped, lines))}</td>'


def _escaped(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return html.escape(_NO_TEXT.sub("\ufffd", text))
