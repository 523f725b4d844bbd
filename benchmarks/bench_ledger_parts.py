"""Time a ledger with a budget for every part beside one with a single budget.

    python benchmarks/bench_ledger_parts.py --parts 10000 --releases 20

Both sides run in turn in one process. Printed are the least times of some rounds, of charges in
files, which go one by one, the median, and all ratios. The bars are about files of 200,000 entries:
one in 10,000 parts is opened in 2.5 s, and a charge to it takes at most 1.1 times as long as one to
a file with a single budget. Charges in memory, of 100 parts, have no bar. Their ratio is larger:
parts add some microseconds to a charge that waits for no file. The budget is so large that nothing
is refused. Times are those of the processor, for the machine may have other work.
"""

import argparse
import contextlib
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from uuid import uuid4

from dpframe import Ledger
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.log import Entry, Log
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend

BUDGET = Budget(10, 1e-6)
LOSSES = [PrivacyLoss(mu_squared=Fraction(k, 10**6)) for k in range(1, 4)]
LOSSES += [PrivacyLoss(epsilon=Fraction(k, 10**5)) for k in range(1, 3)]
CHARGES = 2_000
IN_FILES = 1_000
ROUNDS = 5


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def entries(number: int, parts: int) -> list[Entry]:
    """Make entries of a few amounts, of some parts in any order; of no part where there are 0."""
    draw, spend = random.Random(1), Spend.of(epsilon=1e-5)
    of_parts = [str(at % parts) if parts else None for at in range(number)]
    draw.shuffle(of_parts)
    return [
        Entry(
            uuid4().hex,
            "2026-01-01T00:00:00+00:00",
            "count by zone",
            "gaussian",
            spend,
            draw.choice(LOSSES),
            name=f"release {at}",
            part=part,
        )
        for at, part in enumerate(of_parts)
    ]


def write(path: Path, made: list[Entry], part: str | None) -> None:
    """Append entries in one transaction."""
    ledger = Ledger.create(path, budget=BUDGET, part=part)
    rows, head, empty = [], ledger.head, ledger._seen
    for number, entry in enumerate(made, start=1):
        _, row = replace(empty, log=Log().plus([head], [])).with_entry(entry)
        rows.append(Row(number, row.body, row.hash))
        head = row.hash
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO chain VALUES (?, ?, ?)", rows)


def charged(ledger: Ledger, made: list[Entry]) -> float:
    """Return the microseconds of a charge."""
    return seconds(lambda: [ledger.charge(entry) for entry in made]) / len(made) * 1e6


def charged_in_memory(made: list[Entry], part: str | None) -> float:
    """Return the microseconds of a charge in memory, half of them made before."""
    ledger = Ledger(budget=BUDGET, part=part)
    charged(ledger, made[:CHARGES])
    return charged(ledger, made[CHARGES:])


def report(what: str, unit: str, one: float, by_part: float) -> None:
    """Print the times of both sides, and their ratio."""
    print(f"{what}: {one:.4g} {unit}, by part {by_part:.4g} {unit}, ratio {by_part / one:.2f}")


def main() -> None:
    """Print the times of both."""
    options = argparse.ArgumentParser()
    options.add_argument("--parts", type=int, default=10_000)
    options.add_argument("--releases", type=int, default=20)
    given = options.parse_args()
    assert Chain.start("x", BUDGET)  # pots are settled once, before anything is timed
    number = given.parts * given.releases
    with tempfile.TemporaryDirectory() as folder:
        one, several = Path(folder) / "one.ledger", Path(folder) / "several.ledger"
        of_all, of_parts = (entries(number + IN_FILES, parts) for parts in (0, given.parts))
        write(one, of_all[:number], None)
        write(several, of_parts[:number], "week")
        times = [
            (seconds(lambda: Ledger(one)), seconds(lambda: Ledger(several))) for _ in range(ROUNDS)
        ]
        report(f"opened, {number:,} entries", "s", *map(min, zip(*times, strict=True)))
        single, by_part = Ledger(one), Ledger(several)
        pairs = zip(of_all[number:], of_parts[number:], strict=True)
        times = [(charged(single, [own]), charged(by_part, [other])) for own, other in pairs]
        report("charged in files", "us", *map(median, zip(*times, strict=True)))
    of_all, of_parts = (entries(2 * CHARGES, n) for n in (0, min(given.parts, CHARGES // 20)))
    times = [
        (charged_in_memory(of_all, None), charged_in_memory(of_parts, "week"))
        for _ in range(ROUNDS)
    ]
    report("charged in memory", "us", *map(min, zip(*times, strict=True)))


if __name__ == "__main__":
    main()
