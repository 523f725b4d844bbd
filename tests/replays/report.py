"""Replay every public call on neighbors, and write `benchmarks/results/replays.md`.

Run as `python tests/replays/report.py`; `--cases-per-call 4` takes four cases of each call, drawn
at random, and `--output` names another file. The exit code is 1 if a rule is broken or a planted
fault is not caught by its rule.
"""

import argparse
import platform
import random
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from replays.test_planted_faults import FAULTS  # noqa: E402
from replays.test_published_bugs import BUGS  # noqa: E402
from support.replay_calls import CALLS, CASES, ENGINES, Tally, allowed, replay_case  # noqa: E402
from support.replay_rules import RULES  # noqa: E402

import dpframe as dpf  # noqa: E402

PAGE = ROOT / "benchmarks" / "results" / "replays.md"

INTRODUCTION = """\
# Replays: every public call, made again on a neighbor

The library makes a release and records the exact integers, the noise, the charge, and all that
comes out. It makes the release again on a neighbor, a frame in which one privacy unit is missing or
replaced, with *the same noisy numbers*. Whatever still differs is a leak.

`dpframe.testing` does this for any pipeline. Here it is done for every public call. This command
wrote the page:

```
python tests/replays/report.py{option}
```

## What is replayed

A case combines:

- one of {calls} calls, with a mechanism;
- a frame of pandas or Dask, a Parquet file that fits in memory or is split, a scan of a reader or
  of Polars;
- units added or replaced; every row a unit, or units with one of four sets of caps.

{scope} The library refused {refused:,} more in `preview`, such as selection of a count.

Each case has six to eight pairs of neighbors. The unit that differs is a plain one, one that fills
all cells beyond its caps, one with hostile cells (NaN, infinities, missing or undeclared keys,
numbers beyond 64 bits, odd identifiers), rows of nobody, or all rows.

## Rules

| rule | says |
|---|---|
| **invariance** | only the integers that noise hides differ; all else is equal to the last bit |
| **charge** | each release is charged once, and at least what the neighbor moves |
| **additivity** | what is measured of a frame is the sum of what is measured of its parts |
| **noise** | each integer that comes out has a fresh draw of the law and scale claimed |
| **chance** | a label of one unit alone is published no more often than the charged delta says |

*All else* is results, certificates, entries of the ledger, warnings, logs, output and errors. Parts
of a frame keep units apart. A charge that is larger than the move of a neighbor can hide a
fault from *charge*, but not from *additivity*, which compares sums exactly. *Noise* is traced with
names in place of numbers, and *chance* is computed to 50 digits.

Replays see neither time nor memory, nor the law of the sampler: see [the proof of the
sampler](../../docs/proofs/sampler.md) and [the statistical audit](../../docs/audit.md).
"""

WATCHED = """\
`tests/replays/test_noise_arrives.py` watches real noise: its width, on an empty frame, too, labels
near the threshold, and selected bins. It sees noise .9 times as wide, none on an empty frame, and
a threshold one too low.
"""


def main():
    """Replay, write the page, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases-per-call", type=int)
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    caught = [(fault, fault.rule in _rules_of(fault)) for fault in (*FAULTS, *BUGS)]
    tallies, asked = replay_all(options.cases_per_call)
    lines = [_introduction(tallies, asked, options.cases_per_call)]
    lines += list(_found(tallies, asked))
    lines += list(_faults(caught))
    options.output.write_text("\n".join(lines), "utf-8")
    wrong = [one for tally in tallies.values() for own in tally for one in own.wrong]
    for one in wrong:
        sys.stderr.write(f"{one}\n")
    return int(bool(wrong) or not all(seen for _, seen in caught))


def _rules_of(fault):
    return {one.rule for one in fault.found(planted=True)}


def replay_all(most=None):
    """Replay cases of each call, all or some that the library does not refuse.

    Returns
    -------
    tallies, asked
        What was found by call and engine, and how many cases of each call were asked for.
    """
    tallies: defaultdict[tuple[str, str], list[Tally]] = defaultdict(list)
    asked: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "private.parquet"
        for call in CALLS:
            cases = [case for case in CASES if case.call == call]
            random.Random(call).shuffle(cases)
            replayed = 0
            for case in cases:
                if replayed == most:
                    break
                asked[call] += 1
                for one in allowed([case], path):
                    tallies[call, one.engine].append(replay_case(one, one.pairs(), path))
                    replayed += 1
    return tallies, asked


def _introduction(tallies, asked, most):
    """Say what was replayed, and nothing else."""
    replayed = sum(map(len, tallies.values()))
    scope = f"There are {len(CASES):,} combinations. This page reports on {replayed:,} cases"
    scope += (
        ":\nall that are allowed." if most is None else f",\ndrawn at random: {most} of each call."
    )
    return INTRODUCTION.format(
        option="" if most is None else f" --cases-per-call {most}",
        calls=len(CALLS),
        scope=scope,
        refused=asked.total() - replayed,
    )


def _found(tallies, asked):
    """Write a table with a row for each call."""
    yield "## What was found\n"
    yield (
        f"dpframe {dpf.__version__}, Python {platform.python_version()}, pandas "
        f"{version('pandas')}, Dask {version('dask')}, pyarrow {version('pyarrow')}.\n"
    )
    yield "*Moved* is the largest part of a charge that a neighbor moves; at 1, it is tight.\n"
    yield "| call | refused | " + " | ".join(ENGINES) + " | pairs | runs | moved | rules broken |"
    yield "|---" + "|---:" * (len(ENGINES) + 5) + "|"
    whole = []
    for call in CALLS:
        own = {engine: tallies[call, engine] for engine in ENGINES}
        made = [one for some in own.values() for one in some]
        whole += made
        counts = " | ".join(f"{len(own[engine]):,}" for engine in ENGINES)
        yield f"| {call} | {asked[call] - len(made):,} | {counts} | {_totals(made)} |"
    counts = " | ".join(f"{sum(len(tallies[c, engine]) for c in CALLS):,}" for engine in ENGINES)
    yield f"| **all** | {asked.total() - len(whole):,} | {counts} | {_totals(whole)} |"
    yield ""
    broken = Counter(one[-2] for tally in whole for one in tally.wrong)
    yield "Rules broken: " + ", ".join(f"{rule} {broken[rule]}" for rule in RULES) + ".\n"


def _totals(made):
    pairs, runs = sum(one.pairs for one in made), sum(one.runs for one in made)
    used = max((one.used for one in made), default=0)
    return f"{pairs:,} | {runs:,} | {used:.3f} | {sum(len(one.wrong) for one in made):,}"


def _faults(caught):
    """List what was planted in the code to see whether its rule catches it."""
    yield "## Planted faults\n"
    yield "Each is planted in the code on purpose, to see whether the rule beside it catches it.\n"
    yield "| fault | rule | caught |"
    yield "|---|---|---|"
    yield from (f"| {one.name} | {one.rule} | {'yes' if seen else 'NO'} |" for one, seen in caught)
    yield ""
    yield WATCHED


if __name__ == "__main__":
    sys.exit(main())
