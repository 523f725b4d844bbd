"""Say where a peer is better: read off the records, so that nothing is left out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

Record = dict[str, Any]
Lines = list[str]
TASKS = {"row": "each row its own unit", "unit": "units, with caps"}
ORDERS = {"rows": "N", "one-way": "one-way", "two-way": "two-way"}
FOUND = {
    "found_50": "groups published half of the time",
    "found_95": "groups published 95 % of the time",
    "error": "error of a count",
}
SURE = 2.0  # standard errors, where errors are known from draws alone


class Records(Protocol):
    """The records, to be found by their fields."""

    def of(self, **fields: object) -> list[Record]: ...


def better(results: Records, titles: Mapping[str, str]) -> Lines:
    """List all comparisons in which a peer has less time, memory or error."""
    lines = []
    for title, found in (
        ("Time in memory", list(less(results, "memory", ("rows", "keys", "task"), time_of))),
        ("Time from files", list(less(results, "files", ("rows", "keys", "task"), time_of))),
        ("Memory of the process", list(less(results, "memory", ("rows", "keys", "task"), peak_of))),
        ("Standard errors", list(errors(results))),
        ("Groups that are not known", list(groups(results))),
        ("Tables that agree", list(margins(results))),
        ("Quantiles", list(quantiles(results))),
    ):
        lines += said(title, found, titles)
    return lines


def said(title: str, found: Sequence[tuple[str, str, float]], titles: Mapping[str, str]) -> Lines:
    """Write one comparison after another, by library; the ratio is that to dpframe."""
    compared = [one for one in found if one[2] > 0]
    if not compared:
        return []
    ahead = [one for one in compared if one[2] < 1]
    lines = [f"- {title}: in {len(ahead)} of {len(compared)} comparisons."]
    for library in dict.fromkeys(one[0] for one in ahead):
        own = [f"{where} ({ratio(value)})" for name, where, value in ahead if name == library]
        lines.append(f"  - {titles[library]}: {'; '.join(own)}")
    return lines


def ratio(value: float) -> str:
    """Write a ratio below 1, so that it is seen to be."""
    return f"{value:.2f}x" if value < 0.995 else f"{value:.6f}x"


def time_of(record: Record) -> float:
    return float(record.get("seconds", 0))


def peak_of(record: Record) -> float:
    return float(record.get("peak_mb", 0))


def less(
    results: Records, part: str, names: Sequence[str], measure: Any
) -> Iterator[tuple[str, str, float]]:
    """Compare times or memory on integer keys, or of scans of files."""
    way = {"memory": "key", "files": "scan"}[part]
    for ours in results.of(part=part, library="dpframe", variant=way):
        same = {name: ours[name] for name in names}
        for record in results.of(part=part, variant=way, **same):
            if record["library"] not in {"dpframe", "pandas"} and measure(ours):
                where = f"{ours['rows']:,} rows, {ours['keys']:,} groups, {TASKS[ours['task']]}"
                yield record["library"], where, measure(record) / measure(ours)


def errors(results: Records) -> Iterator[tuple[str, str, float]]:
    """Compare standard errors, by the laws."""
    names = "delta", "statistic", "releases"
    for ours in results.of(part="accuracy", library="dpframe"):
        for record in results.of(part="accuracy", **{name: ours[name] for name in names}):
            if record is not ours and "error" in record and "error" in ours:
                asked = f"{ours['releases']} release{'s'[: ours['releases'] > 1]}"
                where = f"{ours['statistic']}, {asked}, delta {ours['delta']:g}"
                yield record["library"], where, record["error"] / ours["error"]


def groups(results: Records) -> Iterator[tuple[str, str, float]]:
    """Compare how large groups must be, and errors of their counts."""
    for ours in results.of(part="unknown", library="dpframe"):
        for record in results.of(part="unknown", labels=ours["labels"]):
            for field, title in FOUND.items():
                if record is not ours and record.get(field) and ours.get(field):
                    alone = f", {record['variant']}" if record["variant"] else ""
                    labels = "1 label" if ours["labels"] == 1 else f"{ours['labels']} labels"
                    where = f"{title}, {labels}{alone}"
                    yield record["library"], where, record[field] / ours[field]


def margins(results: Records) -> Iterator[tuple[str, str, float]]:
    """Compare errors of cells, by the laws."""
    for ours in results.of(part="margins", library="dpframe", variant="raw"):
        for record in results.of(part="margins", delta=ours["delta"]):
            if record["library"] == "dpframe" or not {"laws"} <= record.keys() & ours.keys():
                continue
            for order, error in record["laws"].items():
                where = f"{ORDERS[order]}, {record['variant']}, delta {record['delta']:g}"
                yield record["library"], where, error / ours["laws"][order]


def quantiles(results: Records) -> Iterator[tuple[str, str, float]]:
    """Compare rank errors with the lower of dpframe; what chance may explain is no difference."""
    names = "delta", "statistic", "table"
    for record in results.of(part="quantiles"):
        same = {name: record[name] for name in names}
        ours = [r for r in results.of(part="quantiles", library="dpframe", **same) if "error" in r]
        if record["library"] == "dpframe" or "error" not in record or not ours:
            continue
        best = min(ours, key=lambda r: r["error"])
        chance = SURE * (record["deviation"] ** 2 + best["deviation"] ** 2) ** 0.5
        where = f"{record['statistic']}, {record['table']}, {record['variant']}"
        where += f", delta {record['delta']:g}"
        sure = best["error"] - record["error"] > chance
        yield record["library"], where, record["error"] / best["error"] if sure else 1.0
