"""Write the page of results: every number in it comes from the records."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from peers import page_better, page_real, words
from peers.forms_dpframe import APART, LEAST, WIDTHS
from peers.picture import draw

Record = dict[str, Any]
Lines = list[str]
TITLES = {
    "pandas": "plain pandas",
    "dpframe": "dpframe",
    "opendp": "OpenDP",
    "pipeline_dp": "PipelineDP",
    "diffprivlib": "diffprivlib",
    "smartnoise": "SmartNoise SQL",
    "tumult": "Tumult Analytics",
}
WAYS = {
    ("pandas", "whole"): "pandas, all in memory",
    ("pandas", "dask"): "plain Dask, threads",
    ("dpframe", "scan"): "dpframe scan",
    ("dpframe", "dask-threads"): "dpframe Dask, threads",
    ("dpframe", "dask-one"): "dpframe Dask, one thread",
    ("dpframe", "dask-cluster"): "dpframe Dask, 2 workers",
    ("opendp", "scan"): "OpenDP scan",
}
SECTIONS = {
    "memory": "In memory",
    "files": "From files",
    "accuracy": "Accuracy at equal privacy",
    "forms": "The same question in another form",
    "looks": "After a first look",
    "unknown": "Groups that are not known",
    "margins": "Tables that agree",
    "quantiles": "Quantiles",
}
IDLE = 0.5  # cores: what is less is the system itself
TASKS = {"row": "each row its own unit", "unit": "units, with caps"}


class Results:
    """The records, to be found by their fields."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def of(self, **fields: object) -> list[Record]:
        return [r for r in self.records if all(r.get(k) == v for k, v in fields.items())]

    def one(self, **fields: object) -> Record:
        found = self.of(**fields)
        return found[0] if found else {}

    def settings(self, part: str, *names: str) -> list[tuple[Any, ...]]:
        return list(dict.fromkeys(tuple(r[n] for n in names) for r in self.of(part=part)))

    def libraries(self, part: str) -> list[str]:
        return [name for name in TITLES if self.of(part=part, library=name)]


def number(value: float) -> str:
    """Write three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def times(ratio: float) -> str:
    """Write a ratio."""
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Lines:
    """Write a table, and nothing if it has no rows."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *body, ""] if body else []


def seconds(record: Record, base: Record) -> str:
    """Write a time and its ratio to another, or why there is none."""
    if "seconds" not in record:
        failed = record.get("failed", "")
        return failed if failed.startswith("more than") else "failed" if failed else ""
    text = f"{number(record['seconds'])} s"
    if record is base or "seconds" not in base:
        return text
    return f"{text} ({times(record['seconds'] / base['seconds'])})"


def in_memory(results: Results, task: str) -> Lines:
    """Compare all libraries on integer keys."""
    libraries = results.libraries("memory")
    rows = []
    for size, keys, kind in results.settings("memory", "rows", "keys", "task"):
        if kind == task:
            setting = {"part": "memory", "rows": size, "keys": keys, "task": task, "variant": "key"}
            found = {name: results.one(**setting, library=name) for name in libraries}
            cells = [seconds(record, found.get("dpframe", {})) for record in found.values()]
            rows.append([f"{size:,}", f"{keys:,}", *cells])
    return table(["rows", "groups", *(TITLES[name] for name in libraries)], rows)


def pairs(results: Results) -> list[tuple[Record, Record]]:
    """List the times of dpframe with those of plain pandas in the same setting."""
    found = []
    for ours in results.of(part="memory", library="dpframe"):
        fields = ("part", "rows", "keys", "task", "variant")
        plain = results.one(**{name: ours[name] for name in fields}, library="pandas")
        if "seconds" in ours and "seconds" in plain:
            found.append((ours, plain))
    return found


def against_pandas(results: Results) -> Lines:
    """Compare dpframe with pandas for each kind of key."""
    both = pairs(results)
    if not both:
        return []
    lines = []
    for task, title in TASKS.items():
        ratios = [o["seconds"] / p["seconds"] for o, p in both if o["task"] == task]
        if ratios:
            lines.append(f"- {title}: {times(min(ratios))} to {times(max(ratios))} its time")
    kinds = {"key": "integers", "key_text": "texts", "key_category": "categories"}
    rows = [
        [
            f"{ours['rows']:,}",
            f"{ours['keys']:,}",
            TASKS[ours["task"]],
            kinds[ours["variant"]],
            f"{number(plain['seconds'])} s",
            f"{number(ours['seconds'])} s",
            times(ours["seconds"] / plain["seconds"]),
        ]
        for ours, plain in both
    ]
    head = ["rows", "groups", "task", "keys are", "pandas", "dpframe", "ratio"]
    return ["", *words.AGAINST_PANDAS, "", *lines, *table(head, rows)]


def peak(record: Record) -> str:
    """Write memory above the loaded data, and all of it."""
    if "peak_mb" not in record:
        return ""
    above = max(record["peak_mb"] - record["before_mb"], 0)
    return f"{above:,.0f} ({record['peak_mb']:,.0f})"


def memory(results: Results) -> Lines:
    """Compare the highest memory on integer keys."""
    libraries = results.libraries("memory")
    rows = []
    for size, keys, task in results.settings("memory", "rows", "keys", "task"):
        setting = {"part": "memory", "rows": size, "keys": keys, "task": task, "variant": "key"}
        cells = [peak(results.one(**setting, library=name)) for name in libraries]
        rows.append([f"{size:,}", f"{keys:,}", TASKS[task], *cells])
    return table(["rows", "groups", "task", *(TITLES[name] for name in libraries)], rows)


def from_files(results: Results) -> Lines:
    """Times, memory and growth of what reads files."""
    used = [way for way in WAYS if results.of(part="files", library=way[0], variant=way[1])]
    if not used:
        return ["", "Not measured in this run."]
    head = ["rows", "groups", "task", *(WAYS[way] for way in used)]
    lasted, peaks = [], []
    for size, keys, task in results.settings("files", "rows", "keys", "task"):
        setting = {"part": "files", "rows": size, "keys": keys, "task": task}
        found = [results.one(**setting, library=lib, variant=way) for lib, way in used]
        label = [f"{size:,}", f"{keys:,}", TASKS[task]]
        lasted.append(label + [seconds(record, record) for record in found])
        peaks.append(label + [peak(record) for record in found])
    lines = ["", "Seconds, reading included:", *table(head, lasted)]
    lines += ["", *words.FILE_MEMORY, *table(head, peaks)]
    return lines + growth(results, used)


def growth(results: Results, used: list[tuple[str, str]]) -> Lines:
    """Write the slope of log time against log rows, from the fewest rows to the most."""
    rows = []
    for keys, task in results.settings("files", "keys", "task"):
        cells = []
        for library, variant in used:
            where = {"keys": keys, "task": task, "library": library, "variant": variant}
            timed = [r for r in results.of(part="files", **where) if "seconds" in r]
            ends = sorted(timed, key=lambda r: r["rows"])
            cells.append(slope(ends[0], ends[-1]) if len({r["rows"] for r in ends}) > 1 else "")
        if any(cells):
            rows.append([f"{keys:,}", TASKS[task], *cells])
    if not rows:
        return []
    return ["", *words.GROWTH, *table(["groups", "task", *(WAYS[way] for way in used)], rows)]


def slope(few: Record, many: Record) -> str:
    """Write the exponent, and the time of one row among many."""
    exponent = math.log(many["seconds"] / few["seconds"]) / math.log(many["rows"] / few["rows"])
    return f"{exponent:.2f} ({number(1e9 * many['seconds'] / many['rows'])} ns)"


def accuracy(results: Results) -> Lines:
    """Compare standard errors at the same budget."""
    libraries = results.libraries("accuracy")
    names = "delta", "statistic", "releases"
    rows = []
    for setting in results.settings("accuracy", *names):
        cells = []
        case = {"part": "accuracy", **dict(zip(names, setting, strict=True))}
        ours = results.one(**case, library="dpframe")
        for library in libraries:
            record = results.one(**case, library=library)
            if "error" not in record:
                cells.append("failed" if record else "")
                continue
            text = f"{number(record['error'])} {record['mechanism'][0].upper()}"
            ratio = "error" in ours and record is not ours
            cells.append(text + (f" ({times(record['error'] / ours['error'])})" if ratio else ""))
        delta, statistic, releases = setting
        rows.append([f"{delta:g}", statistic, str(releases), *cells])
    if not rows:
        return ["", "Not measured in this run."]
    lines = table(["delta", *names[1:], *(TITLES[name] for name in libraries)], rows)
    return [*lines, "", *words.DRAWN, *drawn(results, libraries)]


def drawn(results: Results, libraries: Sequence[str]) -> Lines:
    """Say how far draws are off the laws."""
    lines = []
    for library in libraries:
        made = [r for r in results.of(part="accuracy", library=library) if "drawn" in r]
        if made:
            ratios = [r["drawn"] / r["error"] for r in made]
            off = max(abs(ratio - 1) / r["relative"] for ratio, r in zip(ratios, made, strict=True))
            draws = "/".join(f"{n:,}" for n in sorted({r["samples"] for r in made}))
            lines.append(
                f"- {TITLES[library]}: {draws} draws a row, {min(ratios):.2f} to "
                f"{max(ratios):.2f} times the law, at most {off:.1f} standard errors away"
            )
    return lines


def forms(results: Results) -> Lines:
    """Compare errors with closed forms and peers, and intervals with exact laws."""
    libraries = [name for name in results.libraries("forms") if name != "dpframe"]
    errors, bars = [], []
    for form, least in LEAST.items():
        ours = results.one(part="forms", statistic=form, library="dpframe")
        if "error" not in ours:
            continue
        cells = []
        for library in libraries:
            record = results.one(part="forms", statistic=form, library=library)
            error = record.get("error", 0.0) * APART[form][2] if form in APART else 0.0
            cells.append(f"{number(error)} ({times(error / ours['error'])})" if error else "")
        drawn = f"{number(ours['drawn'])} +- {number(ours['drawn'] * ours['relative'])}"
        errors.append([form, number(least), number(ours["error"]), drawn, *cells])
    for name, level in WIDTHS.items():
        ours = results.one(part="forms", statistic=name)
        if "width" in ours:
            held = f"{100 * ours['covered']:.1f} %"
            widths = number(ours["least"]), number(ours["width"])
            ratio = times(ours["width"] / ours["least"])
            bars.append([name, f"{100 * level:.0f} %", *widths, ratio, held])
    if not errors:
        return ["", "Not measured in this run."]
    head = ["standard error of", "closed form", "dpframe", "drawn", *(TITLES[n] for n in libraries)]
    lines = table(head, errors)
    head = ["interval of", "level", "least half-width", "dpframe", "ratio", "held"]
    return [*lines, "", *words.WIDTHS, *table(head, bars)]


def looks(results: Results) -> Lines:
    """Say how much larger errors are after a first look."""
    made = [record for record in results.of(part="looks") if "ratios" in record]
    if not made:
        return ["", "Not measured in this run."]
    head = [f"({record['epsilon']:g}, {record['delta']:g})" for record in made]
    settings = made[0]["ratios"]
    rows = [[name, *(f"{record['ratios'][name]:.2f}" for record in made)] for name in settings]
    return table(["a look, and what follows", *head], rows)


FOUND = {
    "found_50": "units of a group published half of the time",
    "found_95": "units of one published 95 % of the time",
    "error": "standard error of a count",
}


def unknown(results: Results) -> Lines:
    """Compare which groups are found, and how well they are counted."""
    columns = results.settings("unknown", "library", "variant")
    rows = []
    for (labels,) in results.settings("unknown", "labels"):
        found = [
            results.one(part="unknown", labels=labels, library=library, variant=variant)
            for library, variant in columns
        ]
        ours = results.one(part="unknown", labels=labels, library="dpframe")
        rows += [
            [str(labels), title, *(size(record, ours, field) for record in found)]
            for field, title in FOUND.items()
        ]
    if not rows:
        return ["", "Not measured in this run."]
    heads = [", ".join(filter(None, (TITLES[library], variant))) for library, variant in columns]
    lines = table(["labels of a unit", "what", *heads], rows)
    made = [r for r in results.of(part="unknown") if "drawn" in r]
    off = max((abs(r["drawn"] - r["law"]) / deviation_of_share(r) for r in made), default=0.0)
    checked = [*words.FOUND_DRAWN, f"{off:.1f} standard errors away from the law."]
    return [*lines, "", *checked, "", *words.FOUND_ALONE]


def deviation_of_share(record: Record) -> float:
    """Return the standard error of the share of groups that were published."""
    return math.sqrt(record["law"] * (1 - record["law"]) / record["trials"])


def size(record: Record, ours: Record, field: str) -> str:
    """Write how large a group is, or an error, and its ratio to that of dpframe."""
    if record.get(field) is None:
        return "failed" if "failed" in record else ""
    value = record[field]
    text = f"{value:,}" if isinstance(value, int) else number(value)
    if field == "error":
        text += f" {record['mechanism'][0].upper()}"
    return text if record is ours or field not in ours else f"{text} ({times(value / ours[field])})"


def failures(results: Results) -> Lines:
    """Say what ended in an error, and with which."""
    lines = []
    for record in results.records:
        failed = record.get("failed", "")
        if failed and not failed.startswith(("more than", "not installed")):
            where = record.get("task") or record.get("statistic") or record.get("table")
            where = where or f"{record['labels']} labels"
            what = record.get("variant") or f"{record.get('releases', 1)} releases"
            lines.append(
                f"- {TITLES[record['library']]}, {record['part']}, {where}, {what}: `{failed}`"
            )
    found = list(dict.fromkeys(lines))
    return ["", "## What did not run", "", *found] if found else []


def copying(results: Results) -> Lines:
    """Say how long SmartNoise takes to copy the frame."""
    made = [r for r in results.of(library="smartnoise") if "copying" in r]
    if not made:
        return []
    longest = max(made, key=lambda r: r["rows"])
    taken = number(longest["copying"])
    return [
        f"- SmartNoise SQL copied the frame of {longest['rows']:,} rows to SQLite in {taken} s,"
        " which is not in its times."
    ]


def setting_of(results: Results) -> Lines:
    """Describe machines and versions."""
    rows = []
    kinds = "part", "processor", "cores", "memory_gb", "python"
    for part, title in SECTIONS.items():
        for _, *kind in results.settings(part, *kinds):
            here = results.of(part=part, **dict(zip(kinds[1:], kind, strict=True)))
            dates = sorted({r["date"] for r in here})
            processor, cores, gigabytes, python = map(str, kind)
            span = " to ".join(dict.fromkeys((dates[0], dates[-1])))
            other = other_work([r["busy"] for r in here])
            rows.append([title, span, processor, cores, f"{gigabytes} GB", python, other])
    head = ["section", "measured", "processor", "cores", "memory", "Python", "other work"]
    versions = [
        [TITLES[r["library"]], r["versions"] or f"not installed: {r['reason']}"]
        for r in results.of(part="environment")
    ]
    return [*table(head, rows), *words.MACHINES, *table(["environment of", "versions"], versions)]


def other_work(busy: Sequence[float | str | None]) -> str:
    """Say how many cores other work kept busy before measurements, or what was noted of it."""
    said = [one for one in busy if isinstance(one, str)]
    watched = [one for one in busy if isinstance(one, float)]
    if said or not watched:
        return said[0] if said else "not noted"
    return f"up to {max(watched):.1f} cores" if max(watched) >= IDLE else "none"


def write(records: Sequence[Record], path: Path) -> None:
    """Write page and picture."""
    results = Results(records)
    image = path.parents[1] / "images" / "benchmarks.png"
    lines = [*words.OPENING, "", *setting_of(results)]
    lines += [
        "",
        "## Where a peer is better",
        "",
        *words.BETTER,
        *page_better.better(results, TITLES),
    ]
    lines += ["", "## What was measured", *words.METHOD]
    if results.of(part="memory"):
        draw(records, TITLES, image)
        lines += ["", f"![Time per row against groups](../../docs/images/{image.name})"]
        lines += ["", "## In memory", "", *words.IN_MEMORY]
        for task, title in TASKS.items():
            lines += ["", f"### {title[0].upper()}{title[1:]}", *in_memory(results, task)]
        lines += ["", *copying(results)]
        lines += ["", "### Against plain pandas", *against_pandas(results)]
        lines += ["", "### Memory", "", *words.MEMORY, *memory(results)]
    lines += ["", "## From files", "", *words.FILES, *from_files(results)]
    lines += ["", "## Accuracy at equal privacy", "", *words.ACCURACY, *accuracy(results)]
    lines += ["", f"## {SECTIONS['forms']}", "", *words.FORMS, *forms(results)]
    lines += ["", "## After a first look", "", *words.LOOKS, *looks(results)]
    lines += ["", "## Many small releases on one ledger", "", *words.LEDGER]
    lines += ["", "## Caps from a look, and denoised means", "", *words.PREDICTIONS]
    lines += ["", "## Groups that are not known", "", *words.UNKNOWN, *unknown(results)]
    lines += ["", "## Tables that agree", "", *page_real.margins(records)]
    lines += ["", "## Quantiles", "", *page_real.quantiles(records)]
    lines += [*failures(results), "", "## What differs", "", *words.DIFFERENCES]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")
