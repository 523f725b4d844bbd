"""Measure how cost grows, and write `benchmarks/results/scaling.md` with its pictures.

Run with `python benchmarks/slopes.py` on an idle machine; `--quick` tries everything at small
sizes. Each size of each line has a process of its own. Results are kept in the scratch folder as
they come: `--continue` measures what is missing, and `--only` leaves the other axes as they were.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from compare import child
from peers import machines
from slopes_axes import AXES

ROOT = Path(__file__).resolve().parents[1]
WORK = Path(__file__).resolve().with_name("slopes_work.py")
WRITTEN = ("files", "entries")  # these are on the disk before they are measured
WRITING = 600  # seconds
Case = dict[str, object]


def cases(names: list[str], most: float, *, quick: bool) -> Iterator[Case]:
    """List what is to be measured; all lines of a size follow one another."""
    for name in names:
        axis = AXES[name]
        for size in axis.sizes:
            if size <= min(most, axis.quick if quick else most):
                for line in reversed(axis.lines):  # a file is read before it grows
                    if size <= axis.most.get(line, size):
                        yield {"axis": name, "line": line, "size": size}


def identity(case: Case) -> tuple[object, ...]:
    """Say which case it is; results have further fields."""
    return case["axis"], case.get("line"), case.get("size")


def earlier(path: Path, names: list[str], *, again: bool) -> list[Case]:
    """Read the results to be kept: of other axes, and of these if the run goes on."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [result for result in found if again or result["axis"] not in names]


def measure(case: Case, place: Path, limit: float, memory: float) -> Case:
    """Measure one case in a process of its own."""
    command = [sys.executable, str(WORK), json.dumps({**case, "place": str(place)})]
    return child(command, limit, memory)


def prepared(case: Case, folder: Path, options: argparse.Namespace) -> Path:
    """Return what a case reads, written on first use."""
    place = folder / f"{case['axis']}-{case['size']}"
    if case["axis"] in WRITTEN and not place.exists():
        measure({**case, "line": "write"}, place, WRITING, options.memory)
    return place


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dpframe-benchmarks"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--most", type=float, default=1e8, help="the largest size of any axis")
    parser.add_argument("--scratch", type=Path, default=cache / "slopes")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "benchmarks" / "results" / "scaling.md"
    )
    parser.add_argument("--timeout", type=float, default=90, help="seconds for one process")
    parser.add_argument("--memory", type=float, default=20, help="gigabytes for one process")
    parser.add_argument("--quick", action="store_true", help="small sizes, page in scratch folder")
    parser.add_argument("--continue", action="store_true", dest="again", help="keep results")
    parser.add_argument("--page-only", action="store_true", help="show what has been measured")
    options = parser.parse_args(arguments)
    if options.quick:
        options.scratch /= "quick"
        options.output = options.scratch / "scaling.md"
    return options


def main() -> None:
    """Measure what is not measured yet, and write the page."""
    from slopes_page import write

    options = parsed()
    options.scratch.mkdir(parents=True, exist_ok=True)
    kept = options.scratch / "results.jsonl"
    results = earlier(kept, options.only, again=options.again or options.page_only)
    if not options.page_only:
        kept.write_text("".join(json.dumps(r) + "\n" for r in results), encoding="utf-8")
        results += run(options, kept, {identity(result) for result in results})
    write(results, options.output)


def run(options: argparse.Namespace, kept: Path, done: set[tuple[object, ...]]) -> list[Case]:
    """Measure, and keep each result at once."""
    found: list[Case] = []
    start = time.monotonic()
    with (
        kept.open("a", encoding="utf-8") as lines,
        TemporaryDirectory(dir=options.scratch) as folder,
    ):
        for case in cases(options.only, options.most, quick=options.quick):
            if identity(case) not in done:
                place = prepared(case, Path(folder), options)
                result = measure(case, place, options.timeout, options.memory)
                found.append({**case, **result, "machine": described()})
                lines.write(json.dumps(found[-1]) + "\n")
                lines.flush()
                print(f"{time.monotonic() - start:6.1f} s", json.dumps(found[-1]), flush=True)
    return found


def described() -> str:
    """Say when and on what it was measured."""
    here = machines.described()
    return (
        f"on {here['date']} with {here['cores']} cores ({here['processor']}), "
        f"{here['memory_gb']} GB of memory, Python {here['python']}"
    )


if __name__ == "__main__":
    main()
