"""Parts of pages that are made from the package while the site is built.

A page has a comment where a part stands: `<!-- made: commands -->`, or with arguments,
`<!-- made: pages start install -->`.
"""

import contextlib
import inspect
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest import mock

import dpframe as dpf
from dpframe.jobs.commands import COMMANDS, main
from dpframe.options import FRONT, RARE, ChosenRows, Spending

Schema = Mapping[str, Any]

DOCS = Path(__file__).parents[1]

_WIDTH = "88"
_PLACE = re.compile(r"^<!-- made: (\w+)(?: ([^>]*))? -->$", re.MULTILINE)


def commands() -> str:
    """Show the help of `dpframe`, and of each of its commands."""
    asked = [[], *([name] for name in COMMANDS)]
    titles = (" ".join(["dpframe", *words]) for words in asked)
    return "\n\n".join(
        f"## `{title}`\n\n```text\n{_help_of(words)}\n```"
        for title, words in zip(titles, asked, strict=True)
    )


def _help_of(words: list[str]) -> str:
    shown = io.StringIO()
    plain = {"COLUMNS": _WIDTH, "NO_COLOR": "1", "PYTHON_COLORS": "0"}
    with (
        mock.patch.dict(os.environ, plain),
        contextlib.redirect_stdout(shown),
        contextlib.suppress(SystemExit),
    ):
        main([*words, "--help"])
    return shown.getvalue().strip()


def certificate_schema() -> str:
    """Show the JSON Schema of certificates as a table for each of its parts, and as it is."""
    schema = dpf.certificate_schema()
    parts = {"Certificate": schema, **dict(sorted(schema["$defs"].items()))}
    parts = {name: one for name, one in parts.items() if "properties" in one}
    tables = [_part(name, one) for name, one in parts.items()]
    code = f"```json\n{json.dumps(schema, indent=1)}\n```"
    return "\n\n".join([*tables, "## All of it", f"`````{{dropdown}} The schema\n{code}\n`````"])


def _part(name: str, part: Schema) -> str:
    rows = (
        f"| `{field}` | {_kind(one)} | {_cell(one.get('description', ''))} |"
        for field, one in part["properties"].items()
    )
    words = part.get("description", "")
    table = "\n".join(["| field | kind | meaning |", "|---|---|---|", *rows])
    return f"## {name}\n\n{words}\n\n{table}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _kind(one: Schema) -> str:
    """Say in words what a field holds."""
    kinds = [*dict.fromkeys(_kinds(one))]
    return " or ".join(kind for kind in kinds if kind != "whole number" or "number" not in kinds)


def _kinds(one: Schema) -> Iterator[str]:
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "anyOf" in one or "oneOf" in one:
        for choice in one.get("anyOf") or one["oneOf"]:
            yield from _kinds(choice)
    elif "const" in one:
        yield f"`{json.dumps(one['const'])}`"
    elif "enum" in one:
        yield from (f"`{json.dumps(value)}`" for value in one["enum"])
    elif one.get("type") == "array":
        inner = one.get("items") or {"anyOf": one.get("prefixItems", [])}
        yield f"list ({_kind(inner)})" if inner else "list"
    elif one.get("type") == "object":
        yield "object"
    else:
        yield {"number": "number", "integer": "whole number", "string": "text", "null": "null"}.get(
            one.get("type", ""), str(one.get("type", "any"))
        )


SECTIONS = {
    "start": ("Start", "Install it, release a first table, choose unit, caps, bounds and epsilon."),
    "gallery": ("Gallery", "Tables of real data, from the question to the publication."),
    "how-to": ("How-to", "A question a page: margins, quantiles, jobs, data larger than memory."),
    "understanding": ("Understanding", "What is promised, what is not, and why it holds."),
    "reference": ("Reference", "Every call with every keyword, the command line, errors."),
    "reviewers": ("For reviewers", "NIST SP 800-226, audit, certificates, security, benchmarks."),
}


def cards() -> str:
    """Show a card for each section that there is."""
    made = [
        f":::{{grid-item-card}} {title}\n:link: {name}/index\n:link-type: doc\n\n{about}\n:::"
        for name, (title, about) in SECTIONS.items()
        if _is_there(name)
    ]
    return "\n\n".join(["::::{grid} 1 2 2 3\n:gutter: 3\n:padding: 0", *made, "::::"])


def sections() -> str:
    """List the sections that there are, for the bar above all pages."""
    found = [f"{name}/index" for name in SECTIONS if _is_there(name)]
    return _toctree([*found, "glossary", "changelog", "contributing"], ":hidden:")


def _is_there(section: str) -> bool:
    return (DOCS / section / "index.md").exists()


def pages(folder: str, *first: str) -> str:
    """List the pages of a folder but its index: some first, and the others by name."""
    there = sorted(page.stem for page in (DOCS / folder).glob("*.md") if page.stem != "index")
    names = [*(name for name in first if name in there), *(n for n in there if n not in first)]
    return listed(*(f"/{folder}/{name}" for name in names))


def listed(*names: str) -> str:
    """List those of some pages that there are."""
    found = [name for name in names if (DOCS / f"{name.lstrip('/')}.md").exists()]
    return _toctree(found, ":maxdepth: 1") if found else ""


def _toctree(entries: Iterable[str], option: str) -> str:
    return "\n".join(["```{toctree}", option, "", *entries, "```"])


SHARED = {  # keywords that many methods share, by what stands for them in signatures
    "**selection": tuple(field.name for field in fields(ChosenRows) if field.name not in RARE),
    "**release": FRONT,
    "**spend": tuple(field.name for field in fields(Spending) if field.name not in RARE),
}


def short_signature(method: Callable[..., object]) -> str:
    """Write the signature of a method with shared keywords put together, without types."""
    taken = list(inspect.signature(method).parameters.values())[1:]
    named, stands_for = {one.name for one in taken}, []
    for name, group in SHARED.items():
        if named.issuperset(group):
            stands_for.append(name)
            named.difference_update(group)
    own = [one.replace(annotation=one.empty) for one in taken if one.name in named]
    text = str(inspect.Signature(own))[1:-1]
    rest, star, catch_all = text.rpartition("**")
    shown = (
        [rest.removesuffix(", "), *stands_for, star + catch_all] if star else [text, *stands_for]
    )
    return f"({', '.join(one for one in shown if one)})"


def shared() -> str:
    """List the keywords behind every name that stands for several."""
    where = {"**selection": "ChosenRows", "**release": "Spending", "**spend": "Spending"}
    rows = (
        f"| `{name}` | {', '.join(f'`{one}`' for one in group)} | "
        f"{{py:class}}`~dpframe.options.{where[name]}` |"
        for name, group in SHARED.items()
    )
    return "\n".join(["| in a signature | stands for | described in |", "|---|---|---|", *rows])


_LISTED = re.compile(r"^\.\. auto(?:function|class):: (\w+)", re.MULTILINE)


def calls(*names: str) -> str:
    """List what pages of the reference describe: one table, a line for each call."""
    lines = ["| call | what it does |", "|---|---|"]
    for name in names:
        text = (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")
        lines.append(f"| **[{text.partition(chr(10))[0][2:]}]({name}.md)** | |")
        lines += [
            f"| {{py:obj}}`{one} <dpframe.{one}>` | {_first_line(getattr(dpf, one))} |"
            for one in _LISTED.findall(text)
        ]
    return "\n".join(lines)


def _first_line(value: object) -> str:
    return _cell((inspect.getdoc(value) or "").partition("\n\n")[0])


PARTS: dict[str, Callable[..., str]] = {
    "calls": calls,
    "shared": shared,
    "cards": cards,
    "sections": sections,
    "listed": listed,
    "pages": pages,
    "commands": commands,
    "certificate_schema": certificate_schema,
}


def filled(text: str) -> str:
    """Put all parts of a page in their places."""
    return _PLACE.sub(lambda found: PARTS[found[1]](*(found[2] or "").split()), text)
