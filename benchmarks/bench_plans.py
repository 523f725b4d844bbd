"""Measure what plans promise, and how fast they are made, beside goals and lower bounds.

    python benchmarks/bench_plans.py
    python benchmarks/bench_plans.py --only drawn thresholds
    python benchmarks/bench_plans.py --write

Run it with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1: waiting threads count as CPU time. Errors
are those of plans unless the row has draws. With `--write`, and all subjects, `plans.json` and the
table of `plans.md` in `benchmarks/results` are made anew.
"""

import argparse
import ast
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

import pandas as pd
from peers.machines import described
from plan_errors import ONE, Row, declared, drawn, errors_of, ranges, shared, tables, thresholds

import dpframe as dpf

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "plans.json"
PAGE = RESULTS.with_suffix(".md")
BEGIN, END = "<!-- made: table of plans -->", "<!-- end of the table of plans -->"
ADULT = (11, 9, 16, 7, 15, 6, 5, 2, 8, 42, 2)
LINES_BEFORE = 4821  # of plan/ and strategies/, when the planner was designed


def seconds() -> float:
    """CPU time of this process and of those that it waited for."""
    spent = os.times()
    return sum(spent[:4])


def forget() -> None:
    """Empty all caches of functions, as in a process that has planned nothing."""
    for held in gc.get_objects():
        if isinstance(held, _lru_cache_wrapper) and held.__module__.startswith("dpframe"):
            held.cache_clear()


def milliseconds(
    frame: Any, make: Callable[[], Any], amounts: list[dict[str, Any]], *, first: bool = False
) -> list[float]:
    """CPU time of plans of a query made anew; with `first`, each finds all caches empty."""
    took = []
    for amount in amounts:
        query = make()
        if first:
            forget()
        start = time.process_time()
        frame.dp.plan(query, useful="any", **amount)
        took.append(1e3 * (time.process_time() - start))
    return took


def timed(name: str, frame: Any, make: Callable[[], Any]) -> dict[str, Row]:
    """A plan with nothing planned before, of an amount that is new, and again."""
    amounts = [{**ONE, "epsilon": 1 + turn / 1000} for turn in range(1, 8)]
    turns = {
        "first": (milliseconds(frame, make, [ONE] * 7, first=True), 5),
        "of a new amount": (milliseconds(frame, make, amounts), None),
        "cached": (milliseconds(frame, make, [ONE] * 300), 1),
    }
    rows = {}
    for words, (took, goal) in turns.items():
        middle, least = statistics.median(took), f"least {min(took):.3g}"
        rows[words] = Row(f"plan, {words}, ms: {name}", middle, goal, least)
    return rows


def speed() -> Iterator[Row]:
    """CPU time of plans: with nothing planned before in this process, and repeated."""
    frame = pd.DataFrame({name: [0] for name in "pwghxzyl"})
    bounds = {"x": (0, 1), "z": (-1, 1), "l": (0, 40)}
    keys = {"w": list("abcdef"), "g": range(12), "h": range(20)}
    frame = frame.astype({"w": str, "y": bool})
    frame.dp.declare(privacy_unit="p", max_rows=3, keys=keys, bounds=bounds)
    moments = {"n": dpf.count(), "m": dpf.mean("x"), "v": dpf.var("x")}
    three = {"n": dpf.count("w"), "m": dpf.mean("x", "w"), "r": dpf.rate("y", "w")}
    makers: dict[str, Callable[[], Any]] = {
        "count": lambda: dpf.count("w"),
        "mean": lambda: dpf.mean("x", "w"),
        "count by two keys": lambda: dpf.count(["w", "g"]),
        "count, mean and variance": lambda: dpf.aggregate("w", **moments),
        "correlation": lambda: dpf.corr("x", "z"),
        "quartiles": lambda: dpf.quantile("x", [0.25, 0.5, 0.75]),
        "histogram": lambda: dpf.histogram("l", bins=range(31)),
        "margins of 3 keys": lambda: dpf.margins(["w", "g", "h"], 2),
        "dict of three": three.copy,
        "ranges of 64 bins": lambda: dpf.ranges("l", 64),
    }
    plans = []
    for name, make in makers.items():
        frame.dp.plan(make(), **ONE, useful="any")
        plans.append(timed(name, frame, make))
    for words in plans[0]:
        rows = [own[words] for own in plans]
        middle = statistics.median(row.value for row in rows)
        note = f"{min(row.value for row in rows):.3g} to {max(row.value for row in rows):.3g}"
        yield Row(f"plans, {words}, ms: median of these ten", middle, rows[0].goal, note)
        yield from rows
    names = [f"k{k}" for k in range(len(ADULT))]
    frame = declared(dict(zip(names, ADULT, strict=True)))
    for spent in ({"epsilon": 1}, {"mu": 1}):
        number = len(errors_of(frame, dpf.margins(names, 2), **spent))
        took = milliseconds(frame, lambda: dpf.margins(names, 2), [spent] * 3, first=True)
        words = f"plan, first, ms: {number} margins, {next(iter(spent))} 1"
        yield Row(words, statistics.median(took), 500, f"least {min(took):.3g}")


def code_lines(folder: str) -> int:
    """Lines of a package without blank ones, comments and docstrings."""
    number = 0
    for path in (ROOT / "dpframe" / folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        held: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
                node
            ):
                held.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        lines = enumerate(text.splitlines(), 1)
        number += sum(bool(re.match(r"\s*[^\s#]", line)) for at, line in lines if at not in held)
    return number


def checked() -> Iterator[Row]:
    """The independent check, by its test of all families, and the lines of code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/checker/test_families.py"],
        check=False, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    words = (
        "families that the check refuses, or accepts with one scale 1 % smaller: tests that fail"
    )
    yield Row(words, int(done.returncode != 0), 0, done.stdout.splitlines()[-1])
    number = code_lines("plan") + code_lines("strategies")
    yield Row("code lines of plan/ and strategies/", number, LINES_BEFORE - 1)


SUBJECTS = [shared, drawn, tables, thresholds, ranges, speed, checked]


def lines(rows: list[Row]) -> Iterator[str]:
    """The table of the page."""
    yield "| measured | now | goal: at most | met | more |"
    yield "|---|---|---|---|---|"
    for row in rows:
        goal, met = (
            ("", "") if row.goal is None else (f"{row.goal:g}", "yes" if is_met(row) else "no")
        )
        yield f"| {row.words} | {row.value:.4g} | {goal} | {met} | {row.note} |"


def is_met(row: Row) -> bool:
    """Whether a figure is no more than its goal, but for the last digits of floats."""
    return row.goal is None or row.value <= row.goal * (1 + 1e-9)


def earlier() -> list[Row]:
    """The figures that are kept."""
    return [Row(*row) for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]]


def write(rows: list[Row], machine: str) -> None:
    """Keep the figures, and make the table of the page anew."""
    kept = {"machine": machine, "rows": rows}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    first, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table = "\n".join(lines(rows))
    PAGE.write_text(f"{first}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    subjects = {subject.__name__: subject for subject in SUBJECTS}
    parser.add_argument("--only", nargs="+", choices=list(subjects), default=list(subjects))
    parser.add_argument("--write", action="store_true", help="keep the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore", dpf.errors.DPFrameWarning)
    sys.path.append(str(ROOT / "tests"))
    here, rows = described(), []
    for name in options.only:
        start = seconds()
        rows += subjects[name]()
        print(f"{name}: {seconds() - start:.1f} s", file=sys.stderr, flush=True)
    machine = (
        f"on {here['date']}, {here['cores']} cores ({here['processor']}), Python "
        f"{here['python']}, in {seconds():.0f} s of CPU time; other work kept {here['busy']} busy"
    )
    print(f"Measured {machine}\n", *lines(rows), sep="\n")
    if options.write and options.only == list(subjects):
        write(rows, machine)


if __name__ == "__main__":
    main()
