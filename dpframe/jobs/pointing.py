"""Which key of a table in a plan an error is about, so that its line can be named."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

_Keys: TypeAlias = tuple[str, ...]

_PARAMETER = re.compile(r"[a-z_]+")
_LABEL = re.compile(r"(?:of |for |no column |no columns |\[)'([^']*)'")
_OTHERWISE = {"method": "denoise"}  # as the function calls it that is asked
_NAMING = ("by", "column", "columns", "privacy_unit")
_TEXTS = ("where", "condition")
_BY_COLUMN = ("keys", "bounds", "missing")

_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")
_GIVEN = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*=\s*(.*)")
_HEADER = re.compile(r"\s*\[\s*([\w.-]+)\s*\]")
_FRACTION = re.compile(r"\d+\s*/\s*\d+")
_WORD = re.compile(r"[A-Za-z_][\w.:/-]*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d[\w:.+-]*")


def key_of(table: Mapping[str, Any], why: str) -> _Keys:
    """Find what an error names, in a table of a plan: its parameter first, or else its column.

    Examples
    --------
    >>> key_of({"max_rows": 0, "bounds": {"fare": [3, 1]}}, "bounds of 'fare' must have ...")
    ('bounds', 'fare')
    """
    first, label = _PARAMETER.match(why), _LABEL.search(why)
    named = "" if first is None else _OTHERWISE.get(first[0], first[0])
    of = None if label is None else label[1]
    for keys, _ in _within(table):
        if keys[-1] == named:
            return (*keys, of) if of in _table(table, keys) else keys  # type: ignore[arg-type]
    if of is None:
        return ()
    for keys, value in _within(table):
        if keys[-1] in _NAMING and (value == of or (isinstance(value, list) and of in value)):
            return keys
        if keys[-1] in _TEXTS and re.search(rf"\b{re.escape(of)}\b", str(value)):
            return keys
        if len(keys) > 1 and keys[-2] in _BY_COLUMN and keys[-1] == of:
            return keys
    return ()


def _within(table: Mapping[str, Any], before: _Keys = ()) -> Iterator[tuple[_Keys, Any]]:
    """Yield all that a table holds, with what leads there; tables before what is in them."""
    for key, value in table.items():
        yield (*before, key), value
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _within(value, (*before, key))


def _table(table: Mapping[str, Any], keys: _Keys) -> Mapping[str, Any]:
    found: Any = table
    for key in keys:
        found = found[key]
    return found if isinstance(found, dict) else {}


def why_no_toml(text: str, why: str) -> str:
    """Say why a text is no TOML: with line, key and way out where these are plain.

    Examples
    --------
    >>> why_no_toml("share = 1/12", "Expected newline (at line 1, column 10)")
    'line 1, share: it is no TOML: write "1/12" in quotes.'
    """
    place = _PLACE.search(why)
    if place is None:
        return f"it is no TOML: {why.rstrip('.')[:300]}."
    lines, number = text.split("\n"), int(place[1])
    line = lines[number - 1] if number <= len(lines) else ""
    said = _said(line, why[: place.start()])
    return f"line {number}{_key_on(lines, number)}: it is no TOML: {said}."


def _key_on(lines: list[str], number: int) -> str:
    """Name the key that is given on a line."""
    line = lines[number - 1] if number <= len(lines) else ""
    given, header = _GIVEN.match(line), _HEADER.match(line)
    if given is None:
        return "" if header is None else f", {header[1]:.80}"
    headers = filter(None, map(_HEADER.match, reversed(lines[:number])))
    table = next((f"{one[1]}." for one in headers), "")
    return f", {table}{given[1]:.80}"


def _said(line: str, why: str) -> str:
    """Say what is wrong with a line."""
    given = _GIVEN.match(line)
    value = "" if given is None else given[2]
    if fraction := _FRACTION.match(value):
        return f'write "{fraction[0]}" in quotes'
    if "overwrite" in why and given is not None:
        return f"{given[1]:.80} is given twice"
    if "twice" in why and (header := _HEADER.match(line)):
        return f"the table [{header[1]:.80}] is there twice: put its keys together"
    if "Invalid date" in why and (date := _DATE.search(line)):
        return f"{date[0]:.40} is no date"
    if "Invalid value" in why and (word := _WORD.fullmatch(value.strip())):
        return f'write "{word[0]:.80}" in quotes'
    return why[:300]
