"""Measure dpframe beside its peers, and write `docs/benchmarks.md` with its picture.

Run with `python tests/benchmarks/compare.py`; `--quick` does everything on small data. Each library
has its own environment, made on first use. Libraries take turns in each setting. Results are kept
in the scratch folder as they come; `--continue` goes on after an interruption. Margins and
quantiles are compared on real columns, read from the folder of `--data`, and left out without it.
"""

import argparse
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from peers import environments, page

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).resolve().parent / "peers"
LIBRARIES = ("pandas", "dpframe", "opendp", "pipeline_dp", "diffprivlib", "smartnoise")
MEMORY = {library: ("key",) for library in LIBRARIES} | {
    "pandas": ("key", "key_text", "key_category"),
    "dpframe": ("key", "key_text", "key_category"),
}
FILES = {
    "pandas": ("whole", "dask"),
    "dpframe": ("scan", "dask-threads", "dask-one", "dask-cluster"),
    "opendp": ("scan",),
}
STATISTICS = ("count", "sum", "mean", "histogram", "rate", "variance", "variance, replaced")
ABSENT = {  # what a library cannot be asked for, or not in this comparison
    "pipeline_dp": {"variance, replaced"},
    "smartnoise": {"variance", "variance, replaced"},
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
SLOW = {"pipeline_dp": 10, "smartnoise": 4}  # fewer draws, by this factor
Case = dict[str, object]


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """List everything to be measured; the libraries of a setting follow one another."""
    for part, table, sizes in (
        ("memory", MEMORY, [] if options.skip_memory else options.sizes),
        ("files", FILES, [] if options.skip_files else options.file_sizes),
    ):
        for rows in sizes:
            for keys in options.keys:
                for task in ("row", "unit"):
                    shared = {"part": part, "rows": rows, "keys": keys, "task": task}
                    for library, variants in table.items():
                        for variant in variants if library in options.libraries else ():
                            yield {**shared, "library": library, "variant": variant}
    if not options.skip_accuracy:
        yield from accuracies(options)
    if options.data:
        yield from on_real_columns(options)


def accuracies(options: argparse.Namespace) -> Iterator[Case]:
    """List the standard errors, and the groups found, that are to be compared."""
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
    for labels, (library, variant) in itertools.product(LABELS, FINDERS):
        if library in options.libraries:
            yield {
                "part": "unknown",
                "labels": labels,
                "library": library,
                "variant": variant,
                "samples": options.samples,
            }


def on_real_columns(options: argparse.Namespace) -> Iterator[Case]:
    """List the margins and the quantiles that are to be compared."""
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
            command,
            stdout=printed,
            stderr=subprocess.DEVNULL,
            env=settings,
            start_new_session=True,
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
    if case["part"] in {"accuracy", "unknown"}:
        script, arguments = f"{case['part']}_{library}.py", case
    elif case["part"] in {"margins", "quantiles"}:
        folder = real_columns(options, str(made["dpframe"]["python"]))
        script, arguments = f"{case['part']}_{library}.py", {**case, "folder": str(folder)}
    else:
        folder = folder_of(case, options, str(made["dpframe"]["python"]))
        script, arguments = f"run_{case['library']}.py", {**case, "folder": str(folder)}
    command = [str(environment["python"]), str(PEERS / script), json.dumps(arguments)]
    return child(command, options.timeout, options.memory)


def machine() -> Case:
    """Describe the machine."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return {
        "part": "machine",
        "cores": os.cpu_count(),
        "processor": models[0] if models else platform.machine(),
        "memory_gb": round(gigabytes),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def identity(case: Case) -> str:
    """Say which case it is; results have further fields."""
    fields = "part library variant task rows keys table statistic releases delta labels samples"
    names = fields.split()
    return json.dumps([case.get(name) for name in names])


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
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md")
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
    parser.add_argument("--skip-memory", action="store_true")
    parser.add_argument("--skip-files", action="store_true")
    parser.add_argument("--skip-accuracy", action="store_true")
    parser.add_argument("--quick", action="store_true", help="100,000 rows and few draws")
    parser.add_argument("--continue", action="store_true", dest="again", help="keep results")
    parser.add_argument("--page-only", action="store_true", help="show what has been measured")
    options = parser.parse_args()
    if options.quick:
        options.sizes = options.file_sizes = [10**5]
        options.samples = min(options.samples, 400)
    return options


def main() -> None:
    """Measure what is not measured yet, and write the page."""
    options = parsed()
    options.scratch.mkdir(parents=True, exist_ok=True)
    kept = options.scratch / "results.jsonl"
    if not (options.again or options.page_only):
        kept.unlink(missing_ok=True)
    results = earlier(kept)
    libraries = {"dpframe", *options.libraries} - {"pandas"}
    made = {
        library: environments.prepare(library, options.environments).record()
        for library in LIBRARIES
        if library in libraries
    }
    if not options.data:
        print("margins and quantiles are left out: --data names the folder of the real columns")
    if made["dpframe"]["reason"]:
        sys.exit(f"no environment for dpframe: {made['dpframe']['reason']}")
    done = {identity(result) for result in results}
    with kept.open("a", encoding="utf-8") as lines:
        for case in cases(options):
            if identity(case) not in done and not options.page_only:
                result = {**case, **measure(case, options, made)}
                results.append(result)
                lines.write(json.dumps(result) + "\n")
                lines.flush()
                print(json.dumps(result), flush=True)
    wanted = {identity(case): place for place, case in enumerate(cases(options))}
    shown = [result for result in results if identity(result) in wanted]
    shown.sort(key=lambda result: wanted[identity(result)])
    page.write([machine(), *made.values(), *shown], options.output)


if __name__ == "__main__":
    main()
