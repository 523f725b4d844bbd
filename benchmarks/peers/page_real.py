"""Write the sections about margins and quantiles of real columns."""

import math
from collections.abc import Sequence
from typing import Any

from peers import words_real as words

Record = dict[str, Any]
Lines = list[str]
ORDERS = ("rows", "one-way", "two-way")
NAMES = {
    ("dpframe", "raw"): "dpframe",
    ("dpframe", "consistent"): 'dpframe, `denoise="consistent"`',
    ("opendp", "all pairs"): "OpenDP, all pairs, no model",
    ("opendp", "all pairs, fitted"): "OpenDP, all pairs, with its model",
    ("opendp", "MST"): "OpenDP, MST",
    ("opendp", "AIM, 1 MB"): "OpenDP, AIM, model up to 1 MB",
    ("opendp", "AIM"): "OpenDP, AIM, model up to 80 MB",
}
WAYS = {
    ("dpframe", "tree"): "dpframe",
    ("dpframe", "select"): "dpframe, `select`",
    ("opendp", "candidates"): "OpenDP, candidates",
    ("opendp", "tree"): "OpenDP, tree",
    ("pipeline_dp", "laplace"): "PipelineDP",
    ("pipeline_dp", "gaussian"): "PipelineDP",
    ("diffprivlib", "each"): "diffprivlib",
}
LIBRARIES = {
    "dpframe": "dpframe",
    "opendp": "OpenDP",
    "pipeline_dp": "PipelineDP",
    "diffprivlib": "diffprivlib",
}
COLUMNS = {
    "weight": "Adult, sampling weight",
    "amount": "CDNOW, amount",
    "distance": "taxis, kilometers",
}


def digits(value: float) -> str:
    """Write three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Write a table."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *body, ""]


def reason(record: Record) -> str:
    """Say why there is no number."""
    failed = str(record.get("failed", ""))
    return failed if failed.startswith("more than") or not failed else "failed"


def margins(records: Sequence[Record]) -> Lines:
    """Compare root mean square errors of a cell, and times."""
    rows = []
    for record in records:
        if record["part"] == "margins":
            errors = record.get("errors", {})
            laws = record.get("laws", {})
            cells = [cell(laws.get(order), errors.get(order)) for order in ORDERS]
            spent = f"{digits(record['seconds'])} s" if errors else reason(record)
            name = NAMES[record["library"], record["variant"]]
            rows.append([f"{record['delta']:g}", name, *cells, spent])
    if not rows:
        return ["", "Not measured in this run."]
    head = ["delta", "how", "N", "one-way", "two-way", "time"]
    return [*words.MARGINS, *releases(records, "margins"), *table(head, rows), *words.MARGINS_SAY]


def releases(records: Sequence[Record], part: str) -> Lines:
    """Say how many draws there are."""
    made: dict[str, set[int]] = {}
    for record in records:
        if record["part"] == part and "seconds" in record:
            made.setdefault(LIBRARIES[record["library"]], set()).add(record["samples"])
    spans = (f"{name} {'/'.join(map(str, sorted(n)))}" for name, n in made.items())
    return ["", f"Releases of each: {', '.join(spans)}."]


def cell(law: float | None, drawn: float | None) -> str:
    """Write an error by its law, and else that of draws."""
    if law is not None:
        return digits(law)
    return f"~{digits(drawn)}" if drawn is not None else ""


def quantiles(records: Sequence[Record]) -> Lines:
    """Compare mean absolute rank errors, and times."""
    made = [record for record in records if record["part"] == "quantiles"]
    if not made:
        return ["", "Not measured in this run."]
    lines = [*words.QUANTILES, *releases(records, "quantiles")]
    ways = list(dict.fromkeys(WAYS[r["library"], r["variant"]] for r in made))
    settings = dict.fromkeys((r["delta"], r["statistic"], r["table"]) for r in made)
    rows = []
    for delta, statistic, column in sorted(settings, key=lambda s: (s[0], s[1] != "median")):
        same = {"delta": delta, "statistic": statistic, "table": column}
        there = [r for r in made if all(r[name] == value for name, value in same.items())]
        there.sort(key=lambda r: r.get("error", math.inf), reverse=True)
        found = {WAYS[r["library"], r["variant"]]: r for r in there}  # the better of two
        cells = [rank(found[way]) if way in found else "" for way in ways]
        rows.append([f"{delta:g}", statistic, COLUMNS[column], *cells])
    return [
        *lines,
        *table(["delta", "what", "column", *ways], rows),
        *words.QUANTILES_SAY,
        "",
        *words.ROUND_VALUES,
    ]


def rank(record: Record) -> str:
    """Write an error, how well it is known, and the time of a release."""
    if "error" not in record:
        return reason(record)
    milliseconds = digits(1_000 * record["seconds"])
    return f"{digits(record['error'])} +- {digits(record['deviation'])} ({milliseconds} ms)"
