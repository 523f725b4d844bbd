"""Random plans: declarations, queries and amounts of all kinds, and units to measure them with."""

import itertools
import math
import random

import pandas as pd
import pandera.pandas as pa
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.operations.planning import plan_operation
from dpframe.privacy.amounts import Spend

MECHANISMS = ["auto", "laplace", "gaussian", "box", "staircase", "correlated", "classical"]
EPSILONS = [0.1, 0.5, 1, 2.7, 3, 4.1, 8]
FLAGS = [f"b{k}" for k in range(4)]
BOUNDS = [(-3, 6), (0, 10), (4, 5), (-5, -2), (0, 0.7)]
CAPS = [
    {"max_rows": 1},
    {"max_rows": 4},
    {"max_rows": 4, "max_groups": 2},
    {"max_groups": 2, "max_rows_per_group": 2},
    {"max_rows": 5, "max_groups": 3, "max_rows_per_group": 2},
    {"max_rows": 7, "max_rows_per_group": 3},
    {"max_rows_per_group": 1},
    {"max_rows": 30, "max_groups": 4},
]
MISSING = [{}, {}, {"x": 6.0}, {"x": "drop"}, {"x": "drop", "y": "drop"}]
CONDITIONS = [
    [None],
    ["x < 0", "x == 0", "x > 0"],
    ["x < 1", "x > -1", "y > 1"],
    ["x in [1, 2]", "x > 2"],
    ["y < x"],
    ["x + y > 3", "x + y <= 3"],
]
PAIRS = [*itertools.product("abcdefgh", [0, 1])]
WHERE = [None, None, "y > 1", "x > 0 or y < 2"]
SCHEMA = pa.DataFrameSchema({**{flag: pa.Column(bool) for flag in FLAGS}, "k": pa.Column(int)})
TYPES = {"x": float, "y": float, "wt": float, **dict.fromkeys(FLAGS, bool)}
TYPES |= dict.fromkeys(["u", "w", "k", "h"], "int64")
VALUES = {
    "x": [-3.0, 6.0, 0.0, 10.0, 4.0, 5.0, -5.0, -2.0, 0.7, 1.0, 2.0, 2.5, -1.0, 0.5, math.nan],
    "y": [0.0, 4.0, 1.0, 1.5, 2.0, 2.5, -1.0, math.nan],
    "wt": [3.0, 3.0, 0.0, 1.3, math.nan],
    "k": [2, 7],
    **{key: [True, False] for key in FLAGS},
}


def random_frame(dice):
    """Declare an empty frame in some way."""
    unit = dice.choice([dpf.EACH_ROW, "u", ["u", "w"]])
    frame = frame_of([])
    frame.dp.declare(
        SCHEMA,
        keys={"g": list("abcdefgh")[: dice.randint(1, 8)], "h": [0, 1]}
        | {key: [False, True] for key in FLAGS},
        bounds={"x": dice.choice(BOUNDS), "y": (0, 4), "wt": (0, 3), "k": (2, 7)},
        neighboring=dice.choice(["add_remove", "replace"]),
        privacy_unit=unit,
        missing=dice.choice(MISSING),
        **({} if unit is dpf.EACH_ROW else dice.choice(CAPS)),
    )
    return frame


def random_query(dice):
    """Ask for something."""
    by = dice.choice([None, "g", "h", ["g", "h"]])
    rows = {"where": dice.choice(WHERE)}
    weights = dice.choice([{}, {}, {"weights": "wt"}])
    conditions = dice.choice(CONDITIONS)
    some = dice.choice([None, "g"])
    quantiles = dice.choice([[0.5], [0.25, 0.5, 0.9]])
    columns = dice.choice([["g", "h"], ["h", "b0", "b1"], ["g", "h", "b2", "b3"]])
    asked = {
        "count": lambda: dpf.count(by, **rows, **weights),
        "sum": lambda: dpf.sum(dice.choice(["x", "k", ["x", "y", "k"]]), by, **rows, **weights),
        "mean": lambda: dpf.mean(dice.choice(["x", ["x", "k"]]), by, **rows, **weights),
        "var": lambda: dpf.aggregate(by, v=dpf.var("x"), m=dpf.mean("x"), **rows),
        "cov": lambda: dpf.aggregate(by, c=dpf.cov("x", "y"), **rows),
        "histogram": lambda: dpf.histogram("x", [-3, 0, 2, 6], some, **rows, **weights),
        "units": lambda: dpf.units(by, **rows),
        "ranges": lambda: dpf.ranges("x", [-3, -1, 0, 1, 2, 6], some, **rows),
        "few": lambda: dpf.sum(FLAGS, by, max_true=dice.randint(1, 3), **rows),
        "known": lambda: dpf.sum("x", by, n=5, **rows),
        "quantile": lambda: dpf.quantile("x", quantiles, some),
        "margins": lambda: dpf.margins(
            columns, dice.choice([1, 2]), **rows, **random_outputs(dice, conditions, weights)
        ),
        "possible": lambda: dpf.margins(
            ["g", "h"],
            keys=pd.DataFrame(dice.sample(PAIRS, dice.randint(2, 15)), columns=["g", "h"]),
            **rows,
            **random_outputs(dice, conditions, weights),
        ),
        "several": lambda: dpf.aggregate(by, **rows, **random_outputs(dice, conditions, weights)),
    }
    kinds = [*asked, "margins", "several", "several", "several"]
    return asked[dice.choice(kinds)]()


def random_outputs(dice, conditions, weights):
    """Ask for outputs under conditions, and perhaps for others beside them."""
    kinds = [
        lambda where: dpf.count(where=where, **weights),
        lambda where: dpf.sum("x", where=where, **weights),
        lambda where: dpf.mean("x", where=where, **weights),
        lambda where: dpf.rate("y > 2", where=where, **weights),
        lambda where: dpf.sum("y", where=where, **weights),
        lambda where: dpf.mean("k", where=where, **weights),
    ]
    beside = [None, "y > 1"][: dice.randint(0, 2)]
    return {f"o{k}": dice.choice(kinds)(one) for k, one in enumerate([*conditions, *beside])}


def random_plan(dice):
    """Return a declared frame and a planned operation; `None` where it cannot be asked."""
    frame = random_frame(dice)
    number = dice.choice([1, 1, 2, 3])
    queries = {f"q{k}": random_query(dice) for k in range(number)}
    mechanism = dice.choice(MECHANISMS)
    spend = {"epsilon": 0.5 if mechanism == "classical" else dice.choice(EPSILONS)}
    if mechanism in ("gaussian", "correlated", "classical") or dice.random() < 0.5:
        spend["delta"] = 1e-6
    if number > 2 and mechanism in ("gaussian", "correlated"):
        mechanism = dict(zip(queries, ("laplace", mechanism, "laplace"), strict=True))
    asked = queries if number > 1 else queries["q0"]
    if isinstance(asked, type(dpf.quantile("x", 0.5))) and dice.random() < 0.5:
        mechanism = "select"
    try:
        declaration = frame.dp.declaration
        return frame, plan_operation(frame, declaration, asked, Spend.of(**spend), mechanism)
    except (dpf.errors.CalibrationError, dpf.errors.QueryError, dpf.errors.DeclarationError):
        return None


def frame_of(rows):
    """Make a frame of rows of one unit."""
    columns = ["u", "w", "g", "h", *VALUES]
    given = [{**row, "u": 1, "w": 1} for row in rows]
    return pd.DataFrame(given, columns=columns).astype(TYPES)


def random_unit(dice, keys, most):
    """Return the rows of a unit: in one cell or in many, all alike, of two kinds, or of any."""

    def row():
        return {column: dice.choice(values) for column, values in VALUES.items()}

    way = dice.choice(["one cell", "alike", "two kinds", "any"])
    kinds = [row(), row()]
    rows = []
    for k in range(dice.choice([1, most, most])):
        own = row() if way == "any" else kinds[k % 2 if way == "two kinds" else 0]
        spread = 0 if way == "one cell" else k
        rows.append({**own, "g": keys[spread % len(keys)], "h": spread % 2})
    return rows


def neighbors_of(frame, operation, dice, units=8, most=12):
    """Yield what is measured of pairs of neighbors, each of one unit or of none."""
    declaration = frame.dp.declaration
    has_unit = bool(declaration.unit_columns)
    keys = list("abcdefgh")[: dice.randint(1, 8)]
    found = [
        operation.measure(frame_of(random_unit(dice, keys, most if has_unit else 1)), SYSTEM)
        for _ in range(units)
    ]
    if declaration.neighboring == "add_remove" or has_unit:
        nobody = operation.measure(frame_of([]), SYSTEM)
        yield from ((one, nobody) for one in found)
    if declaration.neighboring == "replace":
        yield from itertools.combinations(found, 2)


def seeded(seed):
    return random.Random(seed)
