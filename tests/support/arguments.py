"""Every public argument of every public call, beside others that are right."""

import functools
import inspect
import itertools
import logging
import re
import warnings
from inspect import Parameter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpframe as dpf
from dpframe.errors import DPFrameError

dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")

SECRETS = re.compile(r"S3CRET|987.?654.?321|9\.87654")
NUMBER, TEXT = 987654321, "S3CRET"
MARKED = {
    "declared frame",
    "column of texts",
    "column of numbers",
    "filtered column",
    "index of the frame",
    "diagnosis",
    "column of a diagnosis",
    "row of a diagnosis",
    "diagnosis from Parquet",
    "diagnosis from Feather",
    "diagnosis from a pickle",
    "collection",
    "column of a collection",
}
ARRAYS = {"index", "array", "array of texts", "Arrow array", "extension array", "categorical"}
FRAMES = {"self", "frame", "source"}
"""Arguments that take a private frame."""


def cells():
    """A frame whose cells are all secrets: only its columns may be named."""
    texts = [f"{TEXT}-{letter}" for letter in "abcd"]
    numbers = [float(NUMBER + at) for at in range(4)]
    index = pd.Index([f"{TEXT}-{at}" for at in range(4)], name="key")
    return pd.DataFrame({"zone": texts, "day": [0, 1, 0, 1], "fare": numbers, "who": texts}, index)


def declared(frame):
    """Declare a frame of any kind; its ledger is never used up."""
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1e9, delta=1e-3, discovery=1e-4))
    frame.dp.declare(
        keys={"zone": ["A", "B"], "day": [0, 1]},
        bounds={"fare": (0, 9)},
        privacy_unit="who",
        max_rows=2,
        ledger=ledger,
    )
    return frame


def diagnosed(**options):
    """Exact numbers of a private frame."""
    frame = pd.concat([cells().assign(zone="A", who=range(4))] * 3)
    return declared(frame).dp.diagnose(dpf.count("zone"), **options)


def marked(folder):
    """Private things that say so, by name: functions that make them."""
    frame = declared(cells())
    kept = diagnosed(groups=True)
    kept.to_parquet(folder / "kept.parquet")
    kept.reset_index().to_feather(folder / "kept.feather")
    kept.to_pickle(folder / "kept.pickle")
    collection = declared(dd.from_pandas(cells(), npartitions=2))
    return {
        "collection": collection,
        "column of a collection": collection["zone"],
        "declared frame": frame,
        "column of texts": frame["zone"],
        "column of numbers": frame["fare"],
        "filtered column": frame.loc[frame["day"] == 1, "fare"],
        "index of the frame": frame.index,
        "diagnosis": diagnosed(),
        "column of a diagnosis": kept["rows"],
        "row of a diagnosis": kept.loc["A"],
        "diagnosis from Parquet": pd.read_parquet(folder / "kept.parquet"),
        "diagnosis from Feather": pd.read_feather(folder / "kept.feather")["rows"],
        "diagnosis from a pickle": pd.read_pickle(folder / "kept.pickle")["rows"],  # noqa: S301
    }


class Tensor:
    """As an array of another library: it can be hashed, and shows its cells."""

    def __array__(self, dtype=None, copy=None):
        return np.array([NUMBER, NUMBER + 1], dtype)

    def __repr__(self):
        return f"Tensor({NUMBER}, {TEXT})"

    __str__ = __repr__


def unmarked():
    """Data that do not say what they were made of."""
    frame = cells()
    return {
        "frame": frame,
        "texts": frame["zone"],
        "numbers": frame["fare"],
        "one number": frame["fare"].iloc[:1],
        "index": frame.index,
        "array": frame["fare"].to_numpy(),
        "array of texts": frame["zone"].to_numpy(object),
        "extension array": frame["fare"].astype("Float64").array,
        "Arrow array": pa.array(frame["zone"].tolist()),
        "Arrow table": pa.table({"fare": frame["fare"].tolist()}),
        "array of another library": Tensor(),
        "categorical": pd.Categorical(frame["zone"]),
        "groups": frame.groupby("zone"),
    }


NESTS = {
    "alone": lambda one: one,
    "in a list": lambda one: [one],
    "in a pair": lambda one: (one, one),
    "in a dict": lambda one: {"fare": one},
    "a pair in a dict": lambda one: {"fare": (one, one), "zone": [one]},
    "deep": lambda one: [[{"zone": (one,)}]],
}

SPEND = {"epsilon": 1e-3}
ONE = {"columns": "fare", "by": "zone"}
PAIR = {"x": "fare", "y": "day", "by": "zone"}
QUERIES = {
    "count": {"by": "zone"},
    "rate": {"condition": "fare > 1"},
    "sum": ONE,
    "mean": ONE,
    "var": ONE,
    "std": ONE,
    "cov": PAIR,
    "corr": PAIR,
    "slope": PAIR,
    "regression": PAIR | {"x": ["fare"]},
    "histogram": {"column": "fare", "bins": [0, 1, 2]},
    "ranges": {"column": "fare", "bins": [0, 1, 9]},
    "quantile": {"column": "fare", "bins": [0, 1, 9]},
    "median": {"column": "fare", "bins": [0, 1, 9]},
    "units": {"by": "zone"},
    "aggregate": {"by": "zone", "n": dpf.count()},
    "margins": {"columns": ["zone", "day"], "ways": 1},
}
SEARCHES = {
    "discover": {"by": "zone", "max_groups": 1, "discovery": 1e-9},
    "suggest_caps": {"by": "zone", "largest": 4},
    "suggest_bounds": {"column": "fare", "smallest": 1, "largest": 8},
}
AFTER = {
    "between": {"low": 1, "high": 9},
    "combine": {"weights": {"A": 1}},
    "ratio": {"numerator": "total", "denominator": "n"},
    "percent": {"column": "n"},
    "sort_values": {"by": "n"},
    "rename": {"columns": {"n": "rows"}},
    "plot": {"column": "n"},
    "plot_map": {"coords": {"A": (0, 1), "B": (1, 1)}, "column": "n"},
    "denoise": {"columns": "n"},
    "suppress": {"below": 3},
    "scan": {"source": pa.table({"zone": ["A"]})},
}
EXTRA = {"aggregate": "output", "margins": "output", "denoise": "seed"}
"""A keyword for those that take any."""


def names_of(call):
    """List the public arguments of a call."""
    found = [one for one in inspect.signature(call).parameters.values() if one.name not in FRAMES]
    return [
        EXTRA[call.__name__] if one.kind is Parameter.VAR_KEYWORD else one.name for one in found
    ]


def private_frames(folder):
    """A declared frame of every kind."""
    cells().reset_index(drop=True).to_parquet(folder / "cells.parquet")
    return {
        "pandas": declared(cells()),
        "Parquet": declared(dpf.scan_parquet(folder / "cells.parquet")),
        "Dask": declared(dd.from_pandas(cells(), npartitions=2)),
    }


def methods(frame):
    """All methods of a private frame with what they need, by name."""
    release = {name: {**good, **SPEND} for name, good in {**QUERIES, **SEARCHES}.items()}
    asked = {"queries": dpf.count("zone"), "query": dpf.count("zone"), **SPEND}
    own = {name: {key: asked[key] for key in ("query", *SPEND)} for name in ("release", "plan")}
    needed = {**release, **own, "diagnose": {}, "declare": {"privacy_unit": "who"}}
    return {
        name: (getattr(frame.dp, name), good)
        for name, good in needed.items()
        if hasattr(type(frame.dp), name)
    }


def functions(frame, made):
    """All functions with what they need, by name; those of a frame are given it."""
    found = {}
    for name in dir(dpf):
        call = getattr(dpf, name)
        if not inspect.isfunction(call):
            continue
        names = [*inspect.signature(call).parameters]
        good = {**QUERIES, **SEARCHES, **AFTER}.get(name, {})
        if name in ("release", "plan"):
            good = {"queries": dpf.count("zone"), **SPEND}
        if "frame" in names and name != "verify":
            good = {"frame": frame, **good}
        else:
            first = names[0] if names else ""
            good = {first: made.of(name), **good} if first in made.holders else good
            good |= {"before": made.before} if "before" in names else {}
        found[name] = (call, good)
    return found


class Made:
    """Released frames for what is done with them."""

    holders = ("released", "releases", "tables", "published", "frame")

    def __init__(self):
        frame = declared(pd.DataFrame({"zone": list("AB"), "day": 0, "fare": 1.0, "who": [1, 2]}))
        self.table = frame.dp.release(
            dpf.aggregate("zone", n=dpf.count(), total=dpf.sum("fare")), mu=1
        )
        self.before = frame.dp.release(
            dpf.aggregate("zone", n=dpf.count(), total=dpf.sum("fare")), mu=1
        )
        self.deep = frame.dp.release(dpf.count(["zone", "day"]), mu=1)
        self.distribution = frame.dp.release(dpf.ranges("fare", [0, 1, 9]), mu=1)
        self.margins = frame.dp.release(dpf.margins(["zone", "day"], 1), mu=1)
        self.suggested = frame.dp.suggest_caps("zone", largest=4, **SPEND)

    def of(self, name):
        """Return what a function or method takes."""
        if name in ("concat", "consistent"):
            return {"concat": [self.table, self.table], "consistent": self.margins}[name]
        if name in ("between", "quantile"):
            return self.distribution
        return self.deep if name == "unstack" else self.table

    def methods(self, folder):
        """All methods of released frames with what they need, by name."""
        names = {name for name in dir(type(self.table.dp)) if not name.startswith("_")}
        private = {name for name in vars(dpf.DPAccessor)}
        found = {}
        for name in sorted(names & private | {"quantile"}):
            call = getattr(dpf.DPAccessor, name)
            if not inspect.isfunction(call):
                continue
            good = dict(AFTER.get(name, {}))
            good |= {"before": self.before} if name == "change" else {}
            path = {"path": folder / f"{name}.csv"} if name in ("report", "write_csv") else {}
            path |= {"path": folder / "a.parquet"} if name == "write_parquet" else {}
            path |= {"path": folder / "a.xlsx"} if name == "write_excel" else {}
            found[name] = (getattr(self.of(name).dp, name), {**good, **path})
        return found


def others(folder):
    """Calls that are no functions of frames."""
    ledger = dpf.Ledger(budget=dpf.Budget(epsilon=1))
    return {
        "Budget": (dpf.Budget, {"epsilon": 1}),
        "Ledger": (dpf.Ledger, {"budget": dpf.Budget(epsilon=1)}),
        "Ledger.create": (
            dpf.Ledger.create,
            {"path": folder / "made.ledger", "budget": dpf.Budget(epsilon=1)},
        ),
        "Ledger.check_name": (ledger.check_name, {}),
        "Ledger.charge": (ledger.charge, {}),
        "Ledger.allows": (ledger.allows, {}),
        "Ledger.protect": (ledger.protect, {}),
    }


def given(call, good, name, value):
    """Call with one argument that is not right, and without others that exclude it."""
    if name in ("mu", "rho", "share"):
        good = {key: one for key, one in good.items() if key != "epsilon"}
    return call(**{**good, name: value})


class _Listener(logging.Handler):
    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def outcome(call):
    """Return the error that a call ends with, if any, and all that it has said."""
    listener, logger = _Listener(), logging.getLogger("dpframe")
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    error = None
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                call()
            except Exception as raised:  # whatever is raised is looked at
                error = raised
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
    said = [*listener.said, *(str(one.message) for one in warned)]
    return error, [*said, *(text for one in linked(error) for text in (str(one), repr(one)))]


def linked(error):
    """All errors that can be reached from one."""
    found, ahead = [], [error]
    while ahead:
        one = ahead.pop()
        if one is not None and one not in found:
            found.append(one)
            ahead += [one.__cause__, one.__context__]
    return found


def quotes(said):
    """What of all that was said quotes a secret."""
    return [text for text in said if SECRETS.search(text)]


NAMES_OF_COLUMNS = {"by", "columns"}
"""An array given for them is read as a list of names, which are public."""


def walked(calls, things, frame, *, every=1):
    """Give every argument every thing in every nest; return what went wrong, by call and argument.

    Parameters
    ----------
    calls
        Calls and what they need, by name.
    things
        What is given in place of one argument, by name.
    frame
        The private frame, whose ledger must not be charged for what is refused.
    every
        Leave one case in so many.
    """
    wrong, cases = [], 0
    for called, (call, good) in calls.items():
        for name in names_of(call):
            for kind, nest in itertools.product(things, NESTS):
                cases += 1
                if cases % every:
                    continue
                value, before = NESTS[nest](things[kind]), len(frame.dp.ledger.entries)
                error, said = outcome(functools.partial(given, call, good, name, value))
                spent = len(frame.dp.ledger.entries) - before
                wrong += [
                    (called, name, kind, nest, problem)
                    for problem in problems(error, said, spent, name, kind)
                ]
    assert cases > every
    return wrong


def problems(error, said, spent, name, kind):
    """List what is wrong with how a call ended."""
    if kind in MARKED and error is None:
        yield "accepted"
    if error is not None and not isinstance(error, DPFrameError):
        yield repr(error)
    if error is not None and spent:
        yield "charged"
    if not (name in NAMES_OF_COLUMNS and kind in ARRAYS):
        yield from quotes(said)


GROUPS = ("functions", "pandas", "Parquet", "Dask", "released", "others")


def all_calls(folder):
    """All public calls in groups, each with the private frame that they may be charged to."""
    frames, made = private_frames(folder), Made()
    frame = frames["pandas"]
    return {
        "functions": (frame, functions(frame, made)),
        **{kind: (one, methods(one)) for kind, one in frames.items()},
        "released": (frame, made.methods(folder)),
        "others": (frame, others(folder)),
    }
