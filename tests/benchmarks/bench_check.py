"""Time the check of a charge: of plans of new and of known content, and as a part of a release.

Run with `python tests/benchmarks/bench_check.py`. Times are those of the processor, of one run; the
plans are those of `bench_release.py`, each with another epsilon, so that all is new. Before a plan
of the first column, everything that the check keeps is forgotten, too.
"""

import itertools
import statistics
import time
from collections.abc import Callable

import bench_release

import dpframe as dpf
from dpframe.checker import check
from dpframe.context import SYSTEM
from dpframe.engines.declared import declaration_of
from dpframe.operations.pipeline import Operation
from dpframe.operations.release import plan_operation
from dpframe.privacy.amounts import Spend
from dpframe.queries.query import Query

ROUNDS = 15


def forget() -> None:
    """Forget verdicts and probes."""
    check._VERDICTS.cache_clear()
    check._ROWS.cache_clear()


def milliseconds(call: Callable[[], object]) -> float:
    """Return the time of the processor of one call."""
    start = time.process_time()
    call()
    return 1000 * (time.process_time() - start)


def operations(relation: str) -> dict[str, Callable[[], Operation]]:
    """Make what plans the queries of the other benchmark, each time with another epsilon."""
    frame, queries = bench_release.frame_and_queries(neighboring=relation)
    later = (k / 2**30 for k in itertools.count())

    def plan(query: Query | dict[str, Query], least: float) -> Operation:
        spend = Spend.of(epsilon=least + next(later), delta=1e-6)
        return plan_operation(frame, declaration_of(frame, SYSTEM), query, spend, "auto")

    return {
        name: lambda query=query, name=name: plan(query, 2.0 if name == "stairs" else 0.5)
        for name, query in queries.items()
    }


def checks() -> None:
    """Print how long checks take, and their part of planning."""
    for relation in ("add_remove", "replace"):
        medians = []
        print(f"check, {relation} (bars: median 3 ms, worst 40 ms)")
        for name, plan in operations(relation).items():
            new, again, known = [], [], []
            for _ in range(ROUNDS):
                operation = plan()
                forget()
                new.append(milliseconds(operation.witness))
                other = plan()
                again.append(milliseconds(other.witness))
                known.append(milliseconds(other.witness))
            took = [statistics.median(times) for times in (new, again, known)]
            medians.append(took[0])
            names = ("first", "another epsilon", "known")
            words = ", ".join(f"{n} {t:.2f} ms" for n, t in zip(names, took, strict=True))
            print(f"  {name:10} {words}")
        print(f"  of all: median {statistics.median(medians):.2f}, worst {max(medians):.2f} ms")


def part_of_release() -> None:
    """Print the part that the check has of a whole release whose content it knows."""
    frame = bench_release.small_frame()
    queries = {
        "count": dpf.count(by="zone"),
        "aggregate": dpf.aggregate(
            by="zone", n=dpf.count(), total=dpf.sum("fare"), fare=dpf.mean("fare")
        ),
    }
    print("part of a release of 1,000 rows, of known content (bar: 1 %)")
    for name, query in queries.items():
        spend = Spend.of(epsilon=0.5)
        operation = plan_operation(frame, declaration_of(frame, SYSTEM), query, spend, "laplace")
        operation.witness()
        checked = bench_release.milliseconds(operation.witness)
        whole = bench_release.milliseconds(
            lambda query=query: frame.dp.release(query, epsilon=0.5, mechanism="laplace")
        )
        print(f"  {name:10} {checked:.3f} of {whole:.2f} ms, {100 * checked / whole:.2f} %")


if __name__ == "__main__":
    checks()
    part_of_release()
