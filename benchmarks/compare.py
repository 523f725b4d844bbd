"""Measure dpframe beside its peers, and write `comparison.md` in `benchmarks/results`.

Run with `python benchmarks/compare.py`; `--quick` does everything on small data. Each library
has its own environment, made on first use. Libraries take turns in each setting. Results are kept
in the scratch folder as they come, with the machine that they were measured on. All of it takes
about three hours, and can be done in parts: `--only` chooses sections, `--minutes` ends a sitting,
and `--continue` keeps what earlier sittings measured. Margins and quantiles are compared on real
columns, read from the folder of `--data`, and left out without it.
"""

import argparse
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from first_looks import BUDGETS
from peers import environments, machines, page
from peers.forms_dpframe import APART, LEAST, WIDTHS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "comparison.md"
PEERS = Path(__file__).resolve().parent / "peers"
LIBRARIES = ("pandas", "dpframe", "opendp", "pipeline_dp", "diffprivlib", "smartnoise", "tumult")
MEMORY = {library: ("key",) for library in LIBRARIES} | {
    "pandas": ("key", "key_text", "key_category"),
    "dpframe": ("key", "key_text", "key_category"),
}
FILES = {
    "pandas": ("whole", "dask"),
    "dpframe": ("scan", "dask-threads", "dask-one", "dask-cluster"),
    "opendp": ("scan",),
}
SECTIONS = ("memory", "files", "accuracy", "forms", "looks", "unknown", "margins", "quantiles")
STATISTICS = (
    "count",
    "sum",
    "mean",
    "histogram",
    "ranges",
    "rate",
    "variance",
    "variance, replaced",
)
ABSENT = {  # what a library cannot be asked for, or not in this comparison
    "pipeline_dp": {"variance, replaced"},
    "smartnoise": {"ranges", "variance", "variance, replaced"},  # it shows groups in the data
    "tumult": {"variance, replaced"},
}
LABELS = (1, 2, 3, 10)  # of one unit
FINDERS = (("dpframe", ""), ("opendp", ""), ("pipeline_dp", ""), ("pipeline_dp", "keys alone"))
RELEASES = (1, 20, 100)
DELTAS = (1e-6, 0.0)
MARGINS = {  # variants, and how many releases each has
    ("dpframe", "raw"): 20,
    ("dpframe", "consistent"): 20,
    ("opendp", "all pairs"): 5,
    ("opendp", "all pairs, fitted"): 1,
    ("opendp", "MST"): 3,
    ("opendp", "AIM, 1 MB"): 1,
    ("opendp", "AIM"): 1,
}
COLUMNS = ("weight", "amount", "distance")
QUANTILES = (
    ("dpframe", "tree"),
    ("dpframe", "select"),
    ("opendp", "candidates"),
    ("opendp", "tree"),
    ("pipeline_dp", "laplace"),
    ("pipeline_dp", "gaussian"),
    ("diffprivlib", "each"),
)
SLOW = {"pipeline_dp": 10, "smartnoise": 4, "tumult": 50}  # fewer draws, by this factor
Case = dict[str, object]


def cases(options: argparse.Namespace, sections: Sequence[str] = SECTIONS) -> Iterator[Case]:
    """List everything to be measured; the libraries of a setting follow one another."""
    made = {
        "memory": lambda: timings("memory", MEMORY, options.sizes, options),
        "files": lambda: timings("files", FILES, options.file_sizes, options),
        "accuracy": lambda: accuracies(options),
        "forms": lambda: forms(options),
        "looks": first_looks,
        "unknown": lambda: groups_found(options),
        "margins": lambda: all_margins(options),
        "quantiles": lambda: all_quantiles(options),
    }
    for section in SECTIONS:
        if section in sections:
            yield from made[section]()


def timings(
    part: str, ways: Mapping[str, Sequence[str]], sizes: Sequence[int], options: argparse.Namespace
) -> Iterator[Case]:
    """List the times that are to be compared, the fewest rows first."""
    for rows, keys, task in itertools.product(sizes, options.keys, ("row", "unit")):
        shared = {"part": part, "rows": rows, "keys": keys, "task": task}
        for library, variants in ways.items():
            for variant in variants if library in options.libraries else ():
                yield {**shared, "library": library, "variant": variant}


def accuracies(options: argparse.Namespace) -> Iterator[Case]:
    """List the standard errors that are to be compared."""
    settings = itertools.product(DELTAS, STATISTICS, RELEASES, LIBRARIES[1:])
    for delta, statistic, releases, library in settings:
        if library in options.libraries and statistic not in ABSENT.get(library, ()):
            yield {
                "part": "accuracy",
                "statistic": statistic,
                "releases": releases,
                "delta": delta,
                "library": library,
                "samples": options.samples // SLOW.get(library, 1),
            }


def forms(options: argparse.Namespace) -> Iterator[Case]:
    """List questions that may be asked in several forms, and intervals of dpframe."""
    for form, library in itertools.product([*LEAST, *WIDTHS], LIBRARIES[1:]):
        if library in options.libraries and (form in APART or library == "dpframe"):
            samples = options.samples // SLOW.get(library, 4)
            yield {"part": "forms", "statistic": form, "library": library, "samples": samples}


def first_looks() -> Iterator[Case]:
    """List the budgets of which a part is spent on a look; peers have no such ledger."""
    for epsilon, delta in BUDGETS:
        yield {"part": "looks", "library": "dpframe", "epsilon": epsilon, "delta": delta}


def groups_found(options: argparse.Namespace) -> Iterator[Case]:
    """List what finds groups."""
    for labels, (library, variant) in itertools.product(LABELS, FINDERS):
        if library in options.libraries:
            yield {
                "part": "unknown",
                "labels": labels,
                "library": library,
                "variant": variant,
                "samples": options.samples,
            }


def all_margins(options: argparse.Namespace) -> Iterator[Case]:
    """List the margins that are to be compared."""
    for delta, (way, samples) in itertools.product(DELTAS, MARGINS.items()):
        if way[0] in options.libraries:
            yield {
                "part": "margins",
                "table": "adult",
                "delta": delta,
                "library": way[0],
                "variant": way[1],
                "samples": 1 if options.quick else samples,
            }


def all_quantiles(options: argparse.Namespace) -> Iterator[Case]:
    """List the quantiles that are to be compared."""
    asked = itertools.product(COLUMNS, ("median", "deciles"), DELTAS, QUANTILES)
    for column, statistic, delta, (library, variant) in asked:
        if library in options.libraries and (delta or variant != "gaussian"):
            yield {
                "part": "quantiles",
                "table": column,
                "statistic": statistic,
                "delta": delta,
                "library": library,
                "variant": variant,
                "samples": 5 if options.quick else 100,
            }


def gigabytes(process: int) -> float:
    """Return the memory that a process uses now."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024**2


def child(command: list[str], limit: float, memory: float) -> Case:
    """Run a script and return the JSON of its last line, or why there is none."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    end = time.monotonic() + limit
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as printed,
        subprocess.Popen(
            command, stdout=printed, stderr=subprocess.DEVNULL, env=settings, start_new_session=True
        ) as process,
    ):
        failed = ""
        while process.poll() is None and not failed:
            time.sleep(0.05)
            if time.monotonic() > end:
                failed = f"more than {limit:,.0f} s"
            elif gigabytes(process.pid) > memory:
                failed = f"more than {memory:g} GB"
        if failed:
            os.killpg(process.pid, signal.SIGKILL)
            return {"failed": failed}
        printed.seek(0)
        last = (printed.read().strip().splitlines() or [""])[-1]
    return json.loads(last) if last.startswith("{") else {"failed": "ended without a result"}


def folder_of(case: Case, options: argparse.Namespace, python: str) -> Path:
    """Return the files of a setting, made if they are not there."""
    folder = options.scratch / f"rows-{case['rows']}-keys-{case['keys']}"
    command = [python, str(PEERS / "peer_data.py"), str(folder), str(case["rows"])]
    subprocess.run([*command, str(case["keys"])], check=True)
    return folder


def real_columns(options: argparse.Namespace, python: str) -> Path:
    """Return the folder of the real columns, written if it is not there."""
    folder: Path = options.scratch / "real"
    if not folder.exists():
        command = [python, str(PEERS / "peer_tables.py"), str(options.data), str(folder)]
        subprocess.run(command, check=True)
    return folder


def measure(case: Case, options: argparse.Namespace, made: dict[str, Case]) -> Case:
    """Run one case in its environment."""
    library = "dpframe" if case["library"] == "pandas" else str(case["library"])
    environment = made[library]
    if environment["reason"]:
        return {"failed": f"not installed: {environment['reason']}"}
    if case["part"] == "forms" and library != "dpframe":
        statistic, releases, _ = APART[str(case["statistic"])]
        asked = {"statistic": statistic, "releases": releases, "delta": 0.0}
        script, arguments = f"accuracy_{library}.py", {**case, **asked}
    elif case["part"] in {"accuracy", "forms", "looks", "unknown"}:
        script, arguments = f"{case['part']}_{library}.py", case
    elif case["part"] in {"margins", "quantiles"}:
        folder = real_columns(options, str(made["dpframe"]["python"]))
        script, arguments = f"{case['part']}_{library}.py", {**case, "folder": str(folder)}
    else:
        folder = folder_of(case, options, str(made["dpframe"]["python"]))
        script, arguments = f"run_{case['library']}.py", {**case, "folder": str(folder)}
    command = [str(environment["python"]), str(PEERS / script), json.dumps(arguments)]
    return child(command, options.timeout, options.memory)


def identity(case: Case) -> str:
    """Say which case it is; results have further fields."""
    names = "part library variant task rows keys table statistic releases epsilon delta labels"
    return json.dumps([case.get(name) for name in names.split()])


def earlier(path: Path) -> list[Case]:
    """Read the results kept; what failed, but not by taking too much, is measured again."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [r for r in found if str(r.get("failed", "more than")).startswith("more than")]


def whole(text: str) -> int:
    return int(float(text))


def parsed() -> argparse.Namespace:
    """Read the command line."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dpframe-benchmarks"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=Path, default=cache / "environments")
    parser.add_argument("--scratch", type=Path, default=cache / "scratch")
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--sizes", type=whole, nargs="*", default=[10**6, 10**7])
    parser.add_argument("--file-sizes", type=whole, nargs="+", default=[10**7, 10**8])
    parser.add_argument("--keys", type=whole, nargs="+", default=[10, 1_000, 100_000])
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument(
        "--samples", type=int, default=4_000, help="draws that check a standard error"
    )
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one process")
    parser.add_argument("--memory", type=float, default=14, help="gigabytes for one process")
    parser.add_argument("--data", type=Path, help="folder of the real columns")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin nothing more after so long"
    )
    parser.add_argument("--since", default="", help="measure again what is older than this date")
    parser.add_argument("--quick", action="store_true", help="100,000 rows and few draws")
    parser.add_argument("--continue", action="store_true", dest="again", help="keep results")
    parser.add_argument("--page-only", action="store_true", help="show what has been measured")
    options = parser.parse_args()
    if options.quick:
        options.sizes = options.file_sizes = [10**5]
        options.samples = min(options.samples, 400)
    if not options.data:
        print("margins and quantiles are left out: --data names the folder of the real columns")
        options.only = [name for name in options.only if name not in {"margins", "quantiles"}]
    return options


def main() -> None:
    """Measure what is not measured yet, and write the page."""
    options = parsed()
    options.scratch.mkdir(parents=True, exist_ok=True)
    kept = options.scratch / ("quick.jsonl" if options.quick else "results.jsonl")
    if not (options.again or options.page_only):
        kept.unlink(missing_ok=True)
    results = earlier(kept)
    libraries = {"dpframe", *options.libraries, *(str(result["library"]) for result in results)}
    made = {
        library: environments.prepare(library, options.environments).record()
        for library in LIBRARIES[1:]
        if library in libraries
    }
    if made["dpframe"]["reason"]:
        sys.exit(f"no environment for dpframe: {made['dpframe']['reason']}")
    if not options.page_only:
        done = {identity(r) for r in results if str(r["date"]) >= options.since}
        results += sitting(options, made, done, kept)
    page.write([*made.values(), *in_order(results, options)], options.output)


def in_order(results: list[Case], options: argparse.Namespace) -> list[Case]:
    """Put the latest results in the order of the page; what was chosen now does not matter."""
    every = argparse.Namespace(**{**vars(options), "libraries": LIBRARIES})
    places = {identity(case): place for place, case in enumerate(cases(every))}
    latest = {identity(result): result for result in results}

    def place(name: str) -> tuple[object, ...]:
        case = latest[name]
        setting = (case.get("rows", 0), case.get("keys", 0), case.get("task", ""))
        return SECTIONS.index(str(case["part"])), *setting, places.get(name, len(places))

    return [latest[name] for name in sorted(latest, key=place)]


def sitting(
    options: argparse.Namespace, made: dict[str, Case], done: set[str], kept: Path
) -> list[Case]:
    """Measure what is left of the chosen sections, as long as there is time."""
    results = []
    end = time.monotonic() + 60 * options.minutes
    left = [case for case in cases(options, options.only) if identity(case) not in done]
    with kept.open("a", encoding="utf-8") as lines:
        for number, case in enumerate(left):
            if time.monotonic() > end:
                print(f"{len(left) - number} measurements are left for another sitting")
                break
            where = machines.described()
            start = time.monotonic()
            result = {**case, **where, **measure(case, options, made)}
            result["taken"] = round(time.monotonic() - start, 1)
            results.append(result)
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            print(json.dumps(result), flush=True)
    return results


if __name__ == "__main__":
    main()
