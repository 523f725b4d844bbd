"""Every public call on a private frame, with all that it can be combined with."""

import itertools
import random
from contextlib import nullcontext
from typing import NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pda
from support.dasking import dask
from support.replay_frames import (
    BOUNDS,
    CAPS,
    DAYS,
    RELATIONS,
    ZONES,
    Crowd,
    in_a_file,
    in_batches,
    in_memory,
    in_partitions,
    pairs_of,
)
from support.replay_rules import faults_of_noise, replay

import dpframe as dpf
from dpframe.engines import scans
from dpframe.strategies import MECHANISMS
from dpframe.testing.recorder import Run

FLAGS = pda.DataFrameSchema({"flag": pda.Column(bool), "paid": pda.Column(bool)})
WHERE = "fare > 3 and (zone in ['A', 'B'] or size % 2 == 0) and not day == 1"
PAIRS = pd.DataFrame({"zone": ["B", "A", "C"], "day": [1, 0, 0]})


class Call(NamedTuple):
    """A call of a method, as `df.dp.<method>(*given, **options)`."""

    method: str
    given: tuple
    options: dict

    def query(self):
        """Describe what is asked."""
        if self.method == "release":
            return self.given[0]
        return getattr(dpf, self.method)(*self.given, **self.options)

    def release(self, frame, spend):
        """Release it."""
        if self.method != "release" and not {"mu", "rho"}.isdisjoint(spend):
            return frame.dp.release(self.query(), **spend)
        return getattr(frame.dp, self.method)(*self.given, **self.options, **spend)


def _call(method, *given, **options):
    return Call(method, given, options)


PAIR = {"zone": "string", "flag": "bool"}
CALLS = {
    "count": _call("count"),
    "count by": _call("count", "zone", where=WHERE),
    "count by pairs": _call("count", ["zone", "day"], keys=PAIRS),
    "rate": _call("rate", "fare > 3", "zone"),
    "sum": _call("sum", "fare", "zone"),
    "sum of positives": _call("sum", "size", bounds=(1, 4)),
    "sums": _call("sum", ["fare", "size"], "zone"),
    "sum of few flags": _call("sum", ["flag", "paid"], "zone", max_true=1),
    "sum of flags": _call(
        "release", dpf.sum(["flag", "paid"], "zone", n_weight=0.5, objective="worst")
    ),
    "mean": _call("mean", "fare", "day", where="size > 0 or fare + size * 2 <= 3"),
    "mean of times": _call("mean", "when", "zone"),
    "sampled mean": _call("mean", "fare", "zone", sampling=True),
    "var": _call("var", "fare", "zone"),
    "std": _call("std", "size", where=WHERE),
    "cov": _call("cov", "fare", "size", "zone"),
    "corr": _call("corr", "size", "fare", where=WHERE),
    "slope": _call("slope", "fare", "size", "day", bounds={"size": (1, 4)}),
    "regression": _call("regression", "fare", ["size", "day"], "zone", bounds={"day": (0, 3)}),
    "sampled corr": _call("corr", "fare", "size", "zone", sampling=True),
    "associations": _call(
        "aggregate",
        "zone",
        n=dpf.count(),
        c=dpf.cov("fare", "size"),
        r=dpf.corr("fare", "size", where="day == 1"),
        b=dpf.slope("fare", "size", sampling=True),
        m=dpf.mean("fare"),
    ),
    "histogram": _call("histogram", "fare", [-np.inf, 0, 5, np.inf], "zone"),
    "ranges": _call("ranges", "fare", 16, "day"),
    "quantile": _call("quantile", "fare", [0.25, 0.5, 0.9], "zone", bins=16),
    "median": _call("quantile", "size", 0.5),
    "quantile of values": _call("quantile", "fare", [0.25, 0.5], candidates=[0, 5, 9]),
    "units": _call("units", "zone", where=WHERE),
    "units of all": _call("units"),
    "aggregate": _call(
        "aggregate",
        "zone",
        n=dpf.count(where=WHERE),
        s=dpf.sum("size"),
        m=dpf.mean("fare", where="day == 1"),
        v=dpf.var("size"),
        r=dpf.rate("flag == True"),
    ),
    "aggregate of counts": _call(
        "aggregate",
        "day",
        a=dpf.count(),
        b=dpf.count(where="fare > 3"),
        c=dpf.count(where="size > 1"),
        d=dpf.sum("fare"),
    ),
    "margins": _call("margins", ["zone", "day"]),
    "margins of several": _call(
        "margins",
        ["zone", dpf.cut("fare", [-5, 0, 5, 10])],
        other={"zone": "other"},
        n=dpf.count(),
        m=dpf.mean("size"),
    ),
    "release": _call("release", dpf.std("fare", "day")),
    "release of a dict": _call(
        "release",
        {
            "n": dpf.count(),
            "s": dpf.sum("fare", "zone"),
            "h": dpf.histogram("size", [0, 2, 4]),
            "u": dpf.units("day"),
            "m": dpf.margins(["day"]),
        },
    ),
    "discover": _call("discover", "zone", dtype="string"),
    "discover two": _call("discover", ["zone", "day"], dtype={"zone": "string", "day": "int64"}),
    "discover where": _call("discover", "flag", dtype="bool", where="fare > 0"),
    "discover moments": _call("discover", "when", dtype="datetime"),
    "discover a set": _call("discover", ["zone", "flag"], dtype=PAIR, counts=False),
    "suggest_caps": _call("suggest_caps", "zone", largest=8),
    "suggest_caps of groups": _call("suggest_caps", "zone", cap="max_groups"),
    "suggest_caps in groups": _call(
        "suggest_caps",
        query=dpf.count(["zone", "day"], where="fare > 0"),
        cap="max_rows_per_group",
        largest=4,
    ),
    "suggest_bounds": _call("suggest_bounds", "fare", "zone", smallest=1, largest=8),
    "suggest_bounds within": _call("suggest_bounds", "size", query="mean", within=(0, 8), bins=8),
    "weighted histogram": _call("histogram", "fare", [-np.inf, 0, 5, np.inf], weights="size"),
    "weighted mean": _call("mean", "fare", "zone", weights="size"),
    "weighted aggregate": _call(
        "aggregate",
        "day",
        where=WHERE,
        n=dpf.count(weights="size"),
        s=dpf.sum("fare", weights="size"),
        r=dpf.rate("flag == True", weights="size"),
    ),
    "weighted margins": _call(
        "margins",
        ["zone", "day"],
        1,
        h=dpf.count(weights="size"),
        m=dpf.mean("fare", weights="size"),
    ),
}
"""All methods that release, in several forms."""

NO_RELEASES = {"declare", "declaration", "ledger", "budget", "plan", "diagnose"}
"""What looks at no row, and the one door that releases nothing and is marked private."""

ENGINES = ["pandas", "parquet", "spilled", "dask", "scan"]
MECHANISM_NAMES = ["auto", *MECHANISMS, "select"]
SPENDS = [{"epsilon": 0.9, "delta": 1e-3}, {"mu": 1}, {"rho": 0.25}, {"share": 0.2}, {"epsilon": 3}]


class Case(NamedTuple):
    """A call on a kind of frame, with a mechanism.

    Parameters
    ----------
    place
        The position among all cases, from which all that is drawn at random follows.
    """

    place: int
    call: str
    engine: str
    relation: str
    caps: str
    mechanism: str

    @property
    def filed(self):
        """Whether columns have types of Arrow, as in files."""
        return self.engine in ("parquet", "spilled", "scan")

    def crowd(self):
        """Draw what the rows are made from."""
        return Crowd(self.place, filed=self.filed, caps=CAPS[self.caps])

    def pairs(self):
        """Make pairs of neighbors."""
        return list(pairs_of(self.crowd(), self.relation))

    def frame(self, rows, path):
        """Make a frame of rows, not declared yet."""
        if self.engine == "scan":
            return in_batches(rows, lazy=self.place % 2 == 0)
        if self.filed:
            return in_a_file(rows, path)
        make = in_memory if self.engine == "pandas" else in_partitions
        return make(rows, inferred=self.place % 2 == 0)

    def declared(self, frame):
        """Declare what is public."""
        caps = CAPS[self.caps]
        unit = {"privacy_unit": dpf.EACH_ROW} if caps is None else {"privacy_unit": "who", **caps}
        frame.dp.declare(
            FLAGS,
            keys={"zone": ZONES, "day": DAYS},
            bounds=BOUNDS,
            missing=[{"size": 1}, {"size": "drop", "fare": "drop"}, None][self.place % 3],
            neighboring=self.relation,
            budget=dpf.Budget(epsilon=9, delta=0.2, discovery=0.1),
            name="trips",
            **unit,
        )
        return frame

    def spend(self):
        """Say how much is spent, on what; some release denoises, too."""
        method = CALLS[self.call].method
        spend = SPENDS[0 if self.mechanism == "classical" else self.place % len(SPENDS)]
        if method == "discover":
            few = {"epsilon": 1} if self.place % 2 else {"mu": 1}
            return {**few, "mechanism": self.mechanism}
        return {**spend, "mechanism": self.mechanism}

    def options(self):
        """Say what else is asked for: a name and a note, and to denoise."""
        method = CALLS[self.call].method
        denoised = method in ("count", "sum", "mean", "histogram", "margins")
        how = "consistent" if method == "margins" else "auto"
        weighted = self.call.startswith("weighted")
        denoise = {"denoise": how} if denoised and not weighted and self.place % 2 else {}
        return {"name": "job", "note": "a note", **denoise}

    def ask(self, rows, path):
        """Release, from the rows of a frame."""
        frame = self.declared(self.frame(rows, path))
        small = mock.patch.multiple(scans, _BUCKET_ROWS=8, _SLICE_ROWS=1)
        in_turn = dask.config.set({"scheduler": "sync"} if self.place % 3 else {})
        spilled = self.engine == "spilled" or (self.engine == "scan" and self.place % 4 > 1)
        with in_turn, small if spilled else nullcontext():
            return CALLS[self.call].release(frame, {**self.spend(), **self.options()})

    def is_refused(self, path):
        """Ask the library whether it refuses such a release."""
        frame = self.declared(self.frame([], path))
        try:
            frame.dp.plan(CALLS[self.call].query(), **self.spend())
        except dpf.errors.DPFrameError:
            return True
        return False


CASES = [
    Case(place, *parts)
    for place, parts in enumerate(
        itertools.product(CALLS, ENGINES, RELATIONS, CAPS, MECHANISM_NAMES)
    )
]
"""Every call with everything; the library refuses some."""


def cases_of(call, engine):
    """Return all cases of a call on an engine, shuffled, the same way every time."""
    own = [case for case in CASES if (case.call, case.engine) == (call, engine)]
    random.Random(f"{call} {engine}").shuffle(own)
    return own


def allowed(cases, path):
    """Yield the cases that the library does not refuse."""
    for case in cases:
        with Run():
            refused = case.is_refused(path)
        if not refused:
            yield case


class Tally(NamedTuple):
    """What came of replaying a case.

    Parameters
    ----------
    wrong
        The neighbors, the rule and how it is broken.
    pairs, runs
        How many pairs of neighbors there were, and how often the call was made.
    used
        The largest part of what was charged that a neighbor moves.
    """

    wrong: list[tuple]
    pairs: int
    runs: int
    used: float


def replay_case(case, pairs, path):
    """Replay a case on some pairs of neighbors, and look at its noise, on rows or on none."""

    def ask(rows):
        return case.ask(rows, path)

    rows = pairs[0].whole if case.place % 2 else []
    wrong = [(case, "noise", one) for one in faults_of_noise(ask, rows)]
    made = [replay(ask, pair, word=case.place) for pair in pairs]
    wrong += [
        (case, pair.name, *one) for pair, own in zip(pairs, made, strict=True) for one in own.found
    ]
    runs = 1 + sum(own.runs for own in made)
    return Tally(wrong, len(pairs), runs, max(own.used for own in made))
