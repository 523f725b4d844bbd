"""Time a ledger with a budget for every part beside one with a single budget.

    python tests/benchmarks/bench_ledger_parts.py --parts 10000 --releases 20

Both sides run in turn in one process, and the least times of some rounds are printed. The bars: a
file of 200,000 entries in 10,000 parts is opened in 2.5 s, and a charge takes at most 1.1 times as
long. Times are those of the processor, for the machine may have other work.
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
from uuid import uuid4

from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry, Log
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend

BUDGET = Budget(1, 1e-6)
LOSSES = [PrivacyLoss(mu_squared=Fraction(k, 10**6)) for k in range(1, 4)]
LOSSES += [PrivacyLoss(epsilon=Fraction(k, 10**5)) for k in range(1, 3)]
CHARGES = 2_000
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


def charged(made: list[Entry], part: str | None) -> float:
    """Return the microseconds of a charge in memory, half of them made before."""
    ledger = Ledger(budget=BUDGET, part=part)
    for entry in made[:CHARGES]:
        ledger.charge(entry)
    return seconds(lambda: [ledger.charge(entry) for entry in made[CHARGES:]]) / CHARGES * 1e6


def main() -> None:
    """Print the times of both."""
    options = argparse.ArgumentParser()
    options.add_argument("--parts", type=int, default=10_000)
    options.add_argument("--releases", type=int, default=20)
    given = options.parse_args()
    assert Chain.start("x", BUDGET)  # pots are settled once, before anything is timed
    number = given.parts * given.releases
    with tempfile.TemporaryDirectory() as folder:
        for parts in (0, given.parts):
            path = Path(folder) / f"{parts}.ledger"
            write(path, entries(number, parts), "week" if parts else None)
            spent = min(seconds(lambda path=path: Ledger(path)) for _ in range(ROUNDS))
            print(f"opened, {number:,} entries, {parts:,} parts: {spent:.2f} s")
    single, several = entries(2 * CHARGES, 0), entries(2 * CHARGES, min(given.parts, CHARGES // 20))
    times = [(charged(single, None), charged(several, "week")) for _ in range(ROUNDS)]
    one, by_part = (min(side) for side in zip(*times, strict=True))
    print(f"charged: {one:.0f} us, by part {by_part:.0f} us, ratio {by_part / one:.2f}")


if __name__ == "__main__":
    main()
