"""What to change in a pipeline: usual mistakes of preparation, looked up in its source."""

import ast
import functools
import inspect
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_MOST_FUNCTIONS, _MOST_LINES = 20, 3


class Mistake(NamedTuple):
    """A usual mistake: how it is written, and what to write in its place."""

    pattern: re.Pattern[str]
    advice: str


def _of(pattern: str, advice: str) -> Mistake:
    return Mistake(re.compile(pattern), advice)


MISTAKES = {
    "result": (
        _of(
            r"\b(len|sum)\(|\.shape|\.empty|\.size\b|\.any\(|\bif\b|groupby\(|"
            r"\.(max|min|quantile|median|mean|std|sum|count|nunique|value_counts|describe)\(",
            "exact numbers of the frame decide on what is returned; use released ones",
        ),
    ),
    "printed": (_of(r"\bprint\(|\.info\(|display\(", "nothing of the frame may be printed"),),
    "files": (
        _of(
            r"\.to_(csv|excel|feather|html|json|latex|markdown|parquet|pickle|sql|stata|xml)\(|"
            r"\.write\w*\(|savefig|\bopen\(|\bdumps?\(",
            "nothing of the frame may be written; write what is released",
        ),
    ),
    "logged": (_of(r"\blog\w*\.|logging", "nothing of the frame may be logged"),),
    "warned": (_of(r"warn", "no warning may depend on the frame"),),
    "error": (
        _of(
            r"raise|assert|validate|exit|\.astype\(|\[0\]",
            "no error may depend on the frame; convert with errors='coerce'",
        ),
    ),
    "facts": (
        _of(
            r"\.(max|min|quantile|median|mean|std|mode|describe)\(",
            "a bound, a cap or a center is taken from the frame; write it down, or use "
            ".dp.suggest_bounds and .dp.suggest_caps",
        ),
        _of(
            r"unique\(|value_counts\(|\.categories|drop_duplicates\(|set\(|get_dummies|\.columns",
            "keys are taken from the frame; write them down, or use .dp.discover",
        ),
        _of(
            r"\b(len|sum)\(|\.shape|\.empty|\.size\b",
            "the size of the frame decides on what is asked; use a released count",
        ),
    ),
    "additivity": (
        _of(r"\.rank\(|percentile", "a rank depends on all rows; cut at fixed values"),
        _of(r"\bq?cut\(", "edges are taken from the frame; write the edges down"),
        _of(r"\.sample\(", "rows are sampled or shuffled among all; leave the choice to max_rows="),
        _of(
            r"\.(head|tail|nlargest|nsmallest)\(|(?<!mode\(\)\.)iloc\[",
            "some rows are kept at the cost of others; keep rows by a condition on the row alone",
        ),
        _of(
            r"drop_duplicates\(|duplicated\(",
            "which row stays depends on others; have the unit in subset=, and count people by "
            "dpf.units",
        ),
        _of(
            r"\.codes|factorize\(|ngroup\(|cumcount\(|LabelEncoder|get_dummies|unique\(",
            "numbers are given by what others hold; keep values as they are, or map them by a "
            "fixed table",
        ),
        _of(
            r"\.(ffill|bfill|interpolate|shift|diff|rolling|expanding|ewm|cum\w+|pct_change)\(|"
            r"fillna\(method",
            "values go from one row to the next, across people; group by the unit first",
        ),
        _of(
            r"\.transform\(|\.filter\(|\.agg\(|\.apply\(",
            "rows are changed or chosen by their group; by fixed values, or group by the unit",
        ),
        _of(
            r"\.(merge|join)\(|merge_asof|explode\(",
            "rows of one person are joined with those of others; join with public tables of "
            "unique keys, validate='many_to_one'",
        ),
        _of(
            r"\.sort_(values|index)\((?!.*kind=)",
            "the order of equal rows depends on others, and caps choose by it; use kind='stable'",
        ),
        _of(
            r"\.(mode|value_counts|idxmax|idxmin)\(",
            "labels are chosen by what all rows hold; write them down, or use .dp.discover",
        ),
        _of(
            r"\.(max|min|quantile|median|mean|std|sum|count|nunique)\(",
            "rows are changed by a number taken from all; use a fixed one",
        ),
        _of(
            r"\.([lr]?strip|upper|lower|casefold|title|capitalize|zfill|normalize)\(|\.str\.",
            "if these are ids, two may become one; clean ids before the check, and pass it the "
            "cleaned column",
        ),
    ),
    "units": (
        _of(
            r"reset_index|\.index|cumcount\(|ngroup\(|factorize\(|\.codes|arange|range\(|uuid|hash",
            "people are numbered anew, so that one has several numbers; keep the column as it is",
        ),
        _of(
            r"\.(merge|join)\(|explode\(|concat\(|repeat\(",
            "one row becomes several; declare the unit and its caps for what comes out",
        ),
        _of(r"EACH_ROW", "rows are declared to be people; name their column in privacy_unit="),
    ),
}
"""Usual mistakes by what they break."""

GENERAL = {
    "result": "Something exact reached what is returned: all of it must come from releases.",
    "printed": "What is printed must not depend on the frame.",
    "logged": "What is logged must not depend on the frame.",
    "warned": "No warning may depend on the frame: change what warns, so that it never does.",
    "error": "No error may depend on the frame: a pipeline runs on any cells, and on no rows.",
    "files": "Something exact reached a file: all of it must come from releases.",
    "ledgers": "What is charged must not depend on the frame.",
    "facts": "Bounds, keys, caps and queries must be written down, and not be read off the frame.",
    "additivity": (
        "What a unit adds depends on others. Usual causes: rank, qcut, head after sorting, sample, "
        "drop_duplicates, category codes, group means, ffill, merges, cleaned ids. Prepare rows "
        "one by one, or grouped by the unit."
    ),
    "charge": (
        "What a unit adds is the same beside others and alone. Unless the pipeline changes whom a "
        "row belongs to, the fault is in dpframe: publish nothing, and report this "
        "(docs/security.md)."
    ),
    "units": (
        "Declare whom a row belongs to, privacy_unit=, with the column as it came, and caps; do "
        "not number people anew, and do not multiply rows after the declaration."
    ),
}


_RELEASES = re.compile(
    r"(?:\.dp|\bdpf|\bdpframe)\.\w+\(|\.\w+\((?=[^()]*\b(?:epsilon|share|rho|mu)=)"
)
"""Calls of this library: `sum(` and the like are no mistakes there."""


def advice_for(pipeline: Callable[..., Any], broken: str) -> str:
    """Say what to change: the lines of a pipeline that usually break a rule, or the rule."""
    return suspect_lines(pipeline, broken) or GENERAL.get(
        broken, "It must not depend on the frame."
    )


def suspect_lines(pipeline: Callable[..., Any], broken: str) -> str:
    """Quote the lines of a pipeline that usually break a rule, if there are any."""
    found: list[str] = []
    for mistake in MISTAKES.get(broken, ()):
        for where, line in _lines(pipeline):
            if mistake.pattern.search(_RELEASES.sub("(", line)):
                found.append(f"  {where}: {line.strip():.100}\n    {mistake.advice}.")
    return "Look at\n" + "\n".join(found[:_MOST_LINES]) if found else ""


def _lines(pipeline: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Give the lines of a function, and of those of its module that it calls."""
    seen: set[Any] = set()
    waiting: list[Any] = [pipeline]
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop(0)
        while isinstance(function, functools.partial):
            function = function.func
        function = inspect.unwrap(getattr(function, "__func__", function))
        code = getattr(function, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError, SyntaxError, tokenize.TokenError):  # no source, or another
            continue
        for number, line in _without_head(lines):
            yield f"line {first + number} of {function.__name__}()", line
        known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        names = [known.get(name) for name in (*code.co_names, *code.co_freevars)]
        waiting += [
            one for one in names if getattr(one, "__module__", "") == function.__module__
            if inspect.isfunction(one)
        ]  # fmt: skip


def _without_head(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Give the lines of the body of a function with their numbers, from 0 on, and no comments."""
    start, column = 0, 0
    try:
        (whole,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (SyntaxError, ValueError):  # a lambda in the middle of a call
        pass
    else:
        if isinstance(whole, ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(whole) is not None and len(whole.body) > 1
            first = whole.body[1 if said else 0]
            start, column = first.lineno - 1, first.col_offset
    for number, line in enumerate(lines[start:], start=start):
        text = line.strip()
        if number == start and column:
            text = textwrap.dedent("".join(lines)).splitlines()[number][column:]
        if not text.startswith("#"):
            yield number, text
