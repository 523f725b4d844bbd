"""Time the check of a charge: of plans of new and of known content, and as a part of a release.

Run with `python benchmarks/bench_check.py`. Times are those of the processor, of one run; the
plans are those of `bench_release.py`, each with another epsilon, so that all is new. Before a plan
of the first column, everything that the check keeps is forgotten, too.
"""

import itertools
import statistics
import time
from collections.abc import Callable
from unittest import mock

import bench_release

import dpframe as dpf
from dpframe import Query
from dpframe.checker import check
from dpframe.checker.witness import Witness
from dpframe.context import SYSTEM
from dpframe.engines.declared import declaration_of
from dpframe.operations import pipeline
from dpframe.operations.pipeline import Operation
from dpframe.operations.planning import plan_operation
from dpframe.privacy.amounts import PrivacyLoss, Spend

ROUNDS, RELEASES = 15, 300


def forget() -> None:
    """Forget verdicts and probes."""
    check.forget_verdicts()


def milliseconds(operation: Operation) -> float:
    """Return the time of the processor of one check."""
    start = time.process_time()
    check.check_charge(operation, operation.loss)
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
                new.append(milliseconds(operation))
                other = plan()
                again.append(milliseconds(other))
                known.append(milliseconds(other))
            took = [statistics.median(times) for times in (new, again, known)]
            medians.append(took[0])
            names = ("first", "another epsilon", "known")
            words = ", ".join(f"{n} {t:.2f} ms" for n, t in zip(names, took, strict=True))
            print(f"  {name:10} {words}")
        print(f"  of all: median {statistics.median(medians):.2f}, worst {max(medians):.2f} ms")


def part_of_release() -> None:
    """Print the part that the check has of a whole release whose content it knows.

    What totals and draws read, too, is made before: who reads it first does not matter.
    """
    frame = bench_release.small_frame()
    queries = {
        "count": dpf.count(by="zone"),
        "aggregate": dpf.aggregate(
            by="zone", n=dpf.count(), total=dpf.sum("fare"), fare=dpf.mean("fare")
        ),
    }
    checked, whole = [], []
    charge = check.check_charge

    def timed(operation: Operation, loss: PrivacyLoss) -> Witness:
        _ = operation.tasks, [noisy.noise for noisy in operation.plan.designs.values()]
        start = time.perf_counter()
        witness = charge(operation, loss)
        checked.append(1000 * (time.perf_counter() - start))
        return witness

    print("part of a release of 1,000 rows, of known content (bar: 1 %)")
    with mock.patch.object(pipeline, "check_charge", timed):
        for name, query in queries.items():
            checked.clear()
            whole.clear()
            for _ in range(RELEASES):
                start = time.perf_counter()
                frame.dp.release(query, epsilon=0.5, mechanism="laplace")
                whole.append(1000 * (time.perf_counter() - start))
            took, of = statistics.median(checked), statistics.median(whole)
            print(f"  {name:10} {took:.3f} of {of:.2f} ms, {100 * took / of:.2f} %")


if __name__ == "__main__":
    checks()
    part_of_release()
