"""The text of a plan file: TOML, read section by section, with errors that name line and key."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from dpframe.errors import PlanFileError
from dpframe.frozen import frozen
from dpframe.jobs.answers import hide

_Keys: TypeAlias = tuple[str, ...]

_OTHERWISE = {"method": "denoise"}  # as the function calls it that is asked
_NAMING = ("by", "column", "columns", "privacy_unit")
_TEXTS = ("where", "condition")
_BY_COLUMN = ("keys", "bounds", "missing")

_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")


def keys_of(table: Mapping[str, Any], error: BaseException) -> _Keys:
    """Find what an error is about, in a table of a plan: its parameter first, or else its column.

    Examples
    --------
    >>> bounds = {"max_rows": 0, "bounds": {"fare": [3, 1]}}
    >>> keys_of(bounds, PlanFileError("...", parameter="bounds", label="fare"))
    ('bounds', 'fare')
    """
    label: Any = getattr(error, "label", None)
    parameter = getattr(error, "parameter", None)
    parameter = _OTHERWISE.get(str(parameter), parameter)
    for keys, value in values_within(table):
        if keys[-1] == parameter:
            return (*keys, label) if isinstance(value, dict) and label in value else keys
    for keys, value in () if label is None else values_within(table):
        by_column = len(keys) > 1 and keys[-2] in _BY_COLUMN and keys[-1] == label
        named = keys[-1] in _NAMING and label in (value if isinstance(value, list) else [value])
        text = str(value) if keys[-1] in _TEXTS else ""
        if by_column or named or re.search(rf"\b{re.escape(str(label))}\b", text):
            return keys
    return ()


def values_within(table: Mapping[str, Any], before: _Keys = ()) -> Iterator[tuple[_Keys, Any]]:
    """Yield all that a table holds, with what leads there; tables before what is in them."""
    for key, value in table.items():
        yield (*before, key), value
    for key, value in table.items():
        if isinstance(value, dict):
            yield from values_within(value, (*before, key))


def why_no_toml(text: str, reason: str) -> str:
    """Say why a text is no TOML, with the line and the usual way out.

    Examples
    --------
    >>> why_no_toml("share = 1/12", "Expected newline (at line 1, column 10)")
    'line 1, share = 1/12: it is no TOML: Expected newline. Texts, as "1/12", stand in quotes.'
    """
    place = _PLACE.search(reason)
    if place is None:
        return f"it is no TOML: {reason.rstrip('.')[:300]}."
    line = text.split("\n")[int(place[1]) - 1].strip()
    problem = f"line {place[1]}, {line:.80}: it is no TOML: {reason[: place.start()]:.300}."
    return f'{problem} Texts, as "1/12", stand in quotes.'


_MOST_KEYS = 10_000  # of a plan; the time to read it grows with them
_MOST_PARTS = 20  # of a key such as a.b.c: the time to read it grows with their square
_LONGEST_WORD = 500  # a number, or a key without quotes
_TEXT = re.compile(
    r'"""(?:[^"\\]|\\(?:.|\Z)|"{1,2}(?!"))*+(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
"""A text or a comment. A text that is never closed ends with its line, or all."""

_WORD_OF_TOML = r"[^\s\[\]{}=.,\"]"
_TOO_MUCH = (
    (
        rf"(?<!{_WORD_OF_TOML}){_WORD_OF_TOML}{{{_LONGEST_WORD + 1}}}",
        f"a number, or a key without quotes, has at most {_LONGEST_WORD} characters",
    ),
    (
        rf"(?<![^\n\[\]{{}}=,])(?:[^\n\[\]{{}}=,.]*+\.){{{_MOST_PARTS}}}",
        f"a key has at most {_MOST_PARTS} parts with dots between them",
    ),
    (rf"\A(?:[^=]*+=){{{_MOST_KEYS + 1}}}", f"a plan has at most {_MOST_KEYS:,} keys"),
)
"""What of a text without its texts and comments would be read for long, and the rule."""

_HEAD = re.compile(r"\s*\[+(?P<table>[^\]]*)\]|(?P<key>[^=]+)=")


def _without_texts(text: str) -> str:
    """Put quotes in place of all characters of texts and comments, which then hide no marks."""
    return _TEXT.sub(lambda match: re.sub(r"[^\n]", '"', match[0]), text)


def too_much(text: str) -> str | None:
    """Say what in a text would take a reader of TOML minutes, whether it is TOML or not.

    Examples
    --------
    >>> too_much("a.b = [1.5, 'x.y']") is None, too_much("x = " + "9" * 501)
    (True, 'line 1: a number, or a key without quotes, has at most 500 characters.')
    """
    marks = _without_texts(text)
    for pattern, rule in _TOO_MUCH:
        if match := re.search(pattern, marks):
            return f"line {1 + marks.count(chr(10), 0, match.end())}: {rule}."
    return None


def line_of(text: str, keys: _Keys) -> int | None:
    """Find the first line of a TOML text on which a key is given, or else a table around it."""
    lines = _lines_of_keys(text)
    around = (lines.get(keys[:n]) for n in range(len(keys), 0, -1))
    return next(filter(None, around), None)


@lru_cache(maxsize=1)  # errors are few, and mostly about one plan
def _lines_of_keys(text: str) -> dict[_Keys, int]:
    """Go through a TOML text once; keys of a table in braces are on the line of its own key."""
    lines: dict[_Keys, int] = {}
    under: _Keys = ()
    depth = 0
    pairs = zip(text.split("\n"), _without_texts(text).split("\n"), strict=True)
    for number, (line, marks) in enumerate(pairs, start=1):
        if depth == 0 and (head := _HEAD.match(marks)):
            keys = _keys_within(line[slice(*head.span(head.lastgroup or 0))])
            under, keys = (keys, keys) if head["table"] else (under, (*under, *keys))
            for n in range(1, len(keys) + 1):
                lines.setdefault(keys[:n], number)
        depth += sum((mark in "[{") - (mark in "]}") for mark in marks)
    return lines


def _keys_within(dotted: str) -> _Keys:
    """Read a key such as a."b c".d."""
    table: Any = tomllib.loads(f"{dotted} = 0")
    keys: _Keys = ()
    while table:
        ((key, table),) = table.items()
        keys = (*keys, key)
    return keys


_MOST_BYTES = 1 << 20  # of a plan: no file by mistake
_MOST_FILLED = 10_000  # characters of a text with the values of its placeholders
_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")
_FILLED = re.compile(r"(\$?)\{([A-Za-z_]\w*)\}")
_ELSEWHERE = ("/", "\\", "..", "\0")
_LEAST_HIDDEN = 4  # characters: shorter secrets would blot out words
_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")

_BINS = "{ from = 0, to = 100, bins = 20 }"
_SUCH = {
    **dict.fromkeys(("max_rows", "max_rows_per_group"), "15"),
    "max_groups": "3",
    "each_row": "true",
    "privacy_unit": '"driver"',
    "by": '"zone"',
    **dict.fromkeys(("column", "columns"), '"fare"'),
    "kind": '"count"',
    "filesystem.type": '"s3"',
    "data.path": '"trips.parquet"',
    "ledger.path": '"trips.ledger"',
    "where": "\"zone == 'A'\"",
    "condition": '"fare > 10"',
    "bins": _BINS,
    "bounds": "[0, 100]",
    "keys": '["A", "B"]',
    "separator": '";"',
    "na_values": '["NA"]',
    "files": '"published/{query}-{month}.csv"',
    "from": "0",
    "to": "100",
    **dict.fromkeys(("epsilon", "mu", "rho"), "0.5"),
    "delta": "1e-6",
    "share": '"1/12"',
}
_SUCH_COLUMNS = {"keys": '["A", "B"]', "bounds": "[0, 100]"}


@frozen(slots=True)
class PlanText:
    """A plan file as it was read, and the values of its placeholders."""

    path: Path  # where it is
    text: str  # what it holds
    values: Mapping[str, str]  # what placeholders stand for, by name
    read: dict[str, str] = field(default_factory=dict)  # hashes of public files that it names


@frozen(slots=True)
class Section:
    """A table of a plan file, and where it stands."""

    source: PlanText  # the file
    keys: tuple[str, ...]  # the names that lead to the table
    table: Mapping[str, Any]  # what it holds

    def error(self, reason: object, *keys: str) -> PlanFileError:
        """Say what is wrong with a key of this table, or with the table itself."""
        path = (*self.keys, *keys)
        number = line_of(self.source.text, path)
        dotted = ".".join(map(_shown_key, path))
        line = f"line {number}" if number else ""
        place = ", ".join(filter(None, (line, dotted)))
        text = f"{place}: {reason}" if place else str(reason)
        return PlanFileError(text, parameter=dotted or None)

    def about(self, error: BaseException) -> PlanFileError:
        """Say what is wrong with this table, at the key that the error is about."""
        return self.error(error, *keys_of(self.table, error))

    def such(self, key: str) -> str:
        """Give an example of a key, as the end of a sentence; empty where there is none."""
        above = "".join(self.keys[-1:])
        value = _SUCH.get(f"{above}.{key}") or _SUCH.get(key) or _SUCH_COLUMNS.get(above)
        return f"; for instance {_shown_key(key)} = {value}" if value else ""

    def section(self, key: str) -> "Section":
        """Return a table within this one, an empty one where it is not given."""
        return Section(self.source, (*self.keys, key), self.table.get(key, {}))

    def paths(self, key: str) -> list[str]:
        """Return the paths that a key names, one or several."""
        if key not in self.table:
            raise self.error(f"{key} is missing{self.such(key)}.")
        paths = self.table[key]
        return [paths] if isinstance(paths, str) else list(paths)

    def fill_text(self, key: str, text: str, *, environment: bool = False, **more: str) -> str:
        """Put the values of placeholders such as {month} into a text, and those of ${NAME}."""
        values = {**self.source.values, **more}
        names = _PLACEHOLDER.findall(text)
        size = len(text) + sum(len(values.get(name, "")) for name in names)
        if names and size > _MOST_FILLED:
            rule = f"must have at most {_MOST_FILLED:,} characters with the values of placeholders."
            raise self.error(rule, key)

        def value(match: re.Match[str]) -> str:
            dollar, name = match.groups()
            if dollar:
                return self._variable(key, name, allowed=environment)
            if name in values:
                return values[name]
            remedy = f"give --set {name}=..., or {name} = ... under [values]."
            raise self.error(f"{match[0]} has no value: {remedy}{did_you_mean(name, values)}", key)

        return _FILLED.sub(value, text)

    def _variable(self, key: str, name: str, *, allowed: bool) -> str:
        """Return the value of a variable of the environment, which is never shown."""
        if not allowed:
            rule = "stands for a variable of the environment, in paths and in filesystem alone"
            raise self.error(f"${{{name}}} {rule}.", key)
        value = os.environ.get(name, "")
        if len(value) < _LEAST_HIDDEN:
            least = f"at least {_LEAST_HIDDEN} characters, so that it can be kept out of messages"
            raise self.error(f"${{{name}}} must be set in the environment, to {least}.", key)
        hide(value, f"${{{name}}}")
        return value

    def path(self, key: str, text: str, **more: str) -> Path:
        """Return a path of the plan, which starts from its folder or ~, filled in."""
        filled = Path(self.fill_text(key, text, environment=True, **more))
        if not text.startswith("~/"):  # no value of a placeholder leads to a home
            return self.source.path.parent / filled
        try:
            return filled.expanduser()
        except RuntimeError:
            raise self.error(f"{text!r:.200} has a ~ that stands for no folder.", key) from None

    def path_or_none(self, key: str) -> Path | None:
        """Return a path of the plan; `None` where there is none."""
        text = self.table.get(key)
        return None if text is None else self.path(key, text)

    def text(self, key: str) -> str | None:
        """Return a text with its placeholders filled in; `None` where there is none."""
        text = self.table.get(key)
        return None if text is None else self.fill_text(key, text)


def placeholders(value: object) -> list[str]:
    """List the names of placeholders in a text, or in texts of a list, in their order."""
    texts = value if isinstance(value, list) else [value]
    return [name for text in texts for name in _PLACEHOLDER.findall(str(text))]


def leads_elsewhere(value: str) -> bool:
    """Whether a value could lead a path that it is put into to another folder."""
    return any(part in value for part in _ELSEWHERE)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Name the nearest placeholder, if there is one, as what follows a sentence."""
    close = get_close_matches(name, list(names), n=1)
    return f" Did you mean {{{close[0]}}}?" if close else ""


def _shown_key(key: str) -> str:
    """Show a key as TOML has it, if it is not too long."""
    return key if _BARE.fullmatch(key) else f"{key!r:.60}"


def read_text(path: Path, in_call: Mapping[str, str]) -> Section:
    """Read a plan file as its outermost table."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise PlanFileError("a plan file has at most 1 MiB.")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise PlanFileError("a plan file is a text in UTF-8.") from None
    if reason := too_much(text):
        raise PlanFileError(reason)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise PlanFileError("it is no TOML: too many brackets within each other.") from None
    except ValueError as error:
        raise PlanFileError(why_no_toml(text, str(error))) from None
    for name, value in in_call.items():
        if f"{{{name}}}" not in text:
            hint = did_you_mean(name, placeholders(text))
            raise PlanFileError(f"--set {name}=...: the plan has no {{{name}}}.{hint}")
        if leads_elsewhere(value):
            rule = "a value must have no '/', '\\' or '..', which would lead a path elsewhere"
            raise PlanFileError(f"--set {name}={value!r}: {rule}. Put folders in the plan.")
    values = table.get("values")
    if not isinstance(values, dict):  # which is refused later, with its line
        values = {}
    texts = {name: str(value) for name, value in values.items()}
    return Section(PlanText(path, text, {**texts, **in_call}), (), table)
