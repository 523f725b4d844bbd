"""The text of a plan file: TOML, read section by section, with errors that name line and key."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dpframe.errors import PlanFileError
from dpframe.jobs.plan_lines import holds, line_of, too_much
from dpframe.jobs.pointing import key_of, why_no_toml

_MOST_BYTES = 1 << 20
_MOST_FILLED = 10_000  # characters of a text with the values of its placeholders
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_ELSEWHERE = ("/", "\\", "..", "\0")
_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")

_BINS = "{ from = 0, to = 100, bins = 20 }"
_SUCH = {
    **dict.fromkeys(("max_rows", "max_rows_per_group"), "15"),
    "max_groups": "3",
    "each_row": "true",
    "privacy_unit": '"driver"',
    "by": '"zone"',
    **dict.fromkeys(("column", "columns"), '"fare"'),
    "where": "\"zone == 'A'\"",
    "condition": '"fare > 10"',
    "bins": _BINS,
    "bounds": "[0, 100]",
    "keys": '["A", "B"]',
    "separator": '";"',
    "missing": '["NA"]',
    "files": '"published/{query}-{month}.csv"',
    "from": "0",
    "to": "100",
    **dict.fromkeys(("epsilon", "mu", "rho"), "0.5"),
    "delta": "1e-6",
    "share": '"1/12"',
}
_SUCH_COLUMNS = {"keys": '["A", "B"]', "bounds": "[0, 100]"}

_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    ((int, float), "a number"),
    ((date, time), "a time"),
    (list, "a list"),
    (dict, "a table"),
)


@dataclass(frozen=True, slots=True)
class PlanText:
    """A plan file as it was read, and the values of its placeholders.

    Parameters
    ----------
    path
        Where it is.
    text
        What it holds.
    values
        What placeholders stand for, by name.
    """

    path: Path
    text: str
    values: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """The folder that paths in the plan start from."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class Section:
    """A table of a plan file, and where it stands.

    Parameters
    ----------
    source
        The file.
    keys
        The names that lead to the table.
    table
        What it holds.
    """

    source: PlanText
    keys: tuple[str, ...]
    table: Mapping[str, Any]

    def error(self, why: object, *keys: str) -> PlanFileError:
        """Say what is wrong with a key of this table, or with the table itself."""
        named = (*self.keys, *keys)
        at = next(
            (at for n in range(len(named), 0, -1) if (at := line_of(self.source.text, named[:n]))),
            None,
        )
        dotted = ".".join(map(_shown_key, named))
        place = ", ".join(part for part in (f"line {at}" if at else "", dotted) if part)
        return PlanFileError(f"{place}: {why}" if place else str(why))

    def about(self, why: object) -> PlanFileError:
        """Say what is wrong with this table, at the key that the error names."""
        return self.error(why, *key_of(self.table, str(why)))

    def only(self, allowed: Iterable[str], what: str) -> None:
        """Refuse keys that mean nothing here, and name the nearest that does."""
        known = list(allowed)
        for key in self.table:
            if key not in known:
                close = get_close_matches(key, known, n=1)
                hint = f"Did you mean {close[0]!r}? " if close else ""
                raise self.error(f"no key of {what}. {hint}It has: {', '.join(known)}.", key)

    def get(self, key: str, *kinds: type) -> Any:
        """Return the value of a key, of one of some types; `None` where it is not given."""
        value = self.table.get(key)
        wanted = tuple(kinds)
        right = isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))
        if key not in self.table or right:
            return value
        words = dict.fromkeys(kind_words(kind) for kind in kinds)
        if int in wanted and float not in wanted:
            words = {word.replace("a number", "a whole number"): None for word in words}
        raise self.error(f"must be {' or '.join(words)}, got {value!r:.200}{self.such(key)}.", key)

    def such(self, key: str) -> str:
        """Give an example of a key, as the end of a sentence; empty where there is none."""
        value = _SUCH.get(key) or _SUCH_COLUMNS.get("".join(self.keys[-1:]))
        return f"; for instance {_shown_key(key)} = {value}" if value else ""

    def need(self, key: str, *kinds: type, such_as: str) -> Any:
        """Return the value of a key that must be given."""
        if key not in self.table:
            raise self.error(f"{key} is missing; for instance {such_as}")
        return self.get(key, *kinds)

    def section(self, key: str) -> "Section":
        """Return a table within this one, an empty one where it is not given."""
        return Section(self.source, (*self.keys, key), self.get(key, dict) or {})

    def given(self, *keys: str) -> tuple[str, ...]:
        """Return so many of some keys, one within the other, as there are in the plan."""
        return next(keys[:n] for n in range(len(keys), -1, -1) if holds(self.table, keys[:n]))

    def filled(self, key: str, text: str, **more: str) -> str:
        """Put the values of placeholders such as {month} into a text."""
        values = {**self.source.values, **more}
        names = _PLACEHOLDER.findall(text)
        if names and len(text) + sum(len(values.get(one, "")) for one in names) > _MOST_FILLED:
            raise self.error(
                f"must have at most {_MOST_FILLED:,} characters with the values of placeholders.",
                key,
            )

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in values:
                return values[name]
            raise self.error(
                f"{match[0]} has no value: give --set {name}=..., or {name} = ... under [values]."
                f"{did_you_mean(name, values)}",
                key,
            )

        return _PLACEHOLDER.sub(value, text)

    def text(self, key: str) -> str | None:
        """Return a text with its placeholders filled in; `None` where it is not given."""
        given = self.get(key, str)
        return None if given is None else self.filled(key, given)


def placeholders(given: object) -> list[str]:
    """List the names of placeholders in a text, or in texts of a list, in their order."""
    texts = given if isinstance(given, list) else [given]
    return [name for text in texts for name in _PLACEHOLDER.findall(str(text))]


def leads_elsewhere(value: str) -> bool:
    """Whether a value could lead a path that it is put into to another folder."""
    return any(part in value for part in _ELSEWHERE)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Name the nearest placeholder, if there is one, as what follows a sentence."""
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {{{close[0]}}}?" if close else ""


def _shown_key(key: str) -> str:
    """Show a key as TOML has it, if it is not too long."""
    return key if _BARE.fullmatch(key) else f"{key!r:.60}"


def kind_words(kind: type) -> str:
    """Name a type as it is called in a plan."""
    return next(words for kinds, words in _NAMES if issubclass(kind, kinds))


def read_text(path: Path, given: Mapping[str, str]) -> Section:
    """Read a plan file as its outermost table.

    Parameters
    ----------
    path
        The file.
    given
        Values of placeholders, which go before those of the table `values`.

    Raises
    ------
    PlanFileError
        If it is no TOML, or a value is given that leads out of its folders, or for a placeholder
        that it does not have.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise PlanFileError("a plan file has at most 1 MiB.")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise PlanFileError("a plan file is a text in UTF-8.") from None
    if why := too_much(text):
        raise PlanFileError(why)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(_reason(text, error)) from None
    unused = [name for name in given if f"{{{name}}}" not in text]
    if unused:
        raise PlanFileError(
            f"--set {unused[0]}=...: the plan has no {{{unused[0]}}}."
            f"{did_you_mean(unused[0], placeholders(text))}"
        )
    for name, value in given.items():
        if leads_elsewhere(value):
            raise PlanFileError(
                f"--set {name}={value!r}: a value must have no '/', '\\' or '..', which would "
                "lead a path elsewhere. Put folders in the plan."
            )
    values = Section(PlanText(path, text, {}), (), table).section("values")
    named = {name: values.get(name, str, int) for name in values.table}
    source = PlanText(path, text, {name: str(one) for name, one in named.items()} | dict(given))
    return Section(source, (), table)


def _reason(text: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is no TOML: too many brackets within each other."
    return why_no_toml(text, str(error))
