"""Intervals hold what they say where several numbers are read off noise that was drawn together.

Pairs, boxes of a cell and over all cells, columns read in halves, and linear combinations; 20,000
cells or more each. A coverage of 95 % is seen with a standard error of 0.15 %, one of 80 % with
0.28 %: it lies outside of the 1 % and 2 % allowed with chance below 1e-10. Two kinds of
columns hold more often than they say: whole numbers, since an interval of integers cannot be cut
finer, and those read off three noises or more of one box, whose bound is proved and not attained.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
from dpframe.privacy.law import Law
from dpframe.privacy.laws import LAWS

pytestmark = pytest.mark.audit

MANY, FEW, ROWS = 2_000, 4, 400
LEVELS = {0.95: 0.01, 0.8: 0.02}


def table(groups, *, missing=False, units=False):
    """Make a frame with so many groups, two columns of values and perhaps units in all groups."""
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(groups), ROWS)
    frame = pd.DataFrame({"g": group, "who": np.tile(np.arange(ROWS), groups)})
    frame["x"] = rng.choice([0.0, 3, 10], len(frame))
    frame["y"] = rng.choice([-5.0, 2], len(frame))
    if missing:
        frame.loc[rng.random(len(frame)) < 0.2, "x"] = np.nan
    caps = {"max_groups": groups, "max_rows_per_group": 1} if units else {}
    frame.dp.declare(
        keys={"g": range(groups)},
        bounds={"x": (0, 10), "y": (-5, 5)},
        privacy_unit="who" if units else dpf.EACH_ROW,
        **caps,
    )
    return frame


@dataclass(frozen=True)
class Case:
    """A release of a table."""

    query: object
    mechanism: str
    epsilon: float = 0.2
    table: dict = field(default_factory=dict)
    groups: int = MANY


ONE = dpf.aggregate("g", n=dpf.count(), total=dpf.sum("x"), mean=dpf.mean("x"))
TWO = dpf.aggregate("g", x=dpf.sum("x"), y=dpf.sum("y"), of_x=dpf.mean("x"), of_y=dpf.mean("y"))
HIGH = dpf.aggregate("g", a=dpf.count(where="x > 1"), b=dpf.count(where="y > 0"), n=dpf.count())
CASES = {
    "pair": Case(ONE, "laplace"),
    "pair, a column with missing values": Case(ONE, "laplace", table={"missing": True}),
    "box": Case(ONE, "box"),
    "box, a column with missing values": Case(ONE, "box", table={"missing": True}),
    "box of two columns": Case(TWO, "box"),
    "lifted Laplace of two columns": Case(TWO, "laplace"),
    "box of counts": Case(HIGH, "box"),
    "box over all cells": Case(dpf.count("g"), "box", table={"units": True}, groups=FEW),
    # with the noise of the others, the number of rows would be off by an eighth: intervals of means
    # are first-order, and held 96.2 % then; by a simulation of the box alone, as well
    "box of two columns over all cells": Case(TWO, "box", 1.0, table={"units": True}, groups=FEW),
    "halves, little noise": Case(HIGH, "box", 2.0),
    "pair, little noise": Case(ONE, "laplace", 2.0),
}


def exact(case, frame):
    """Release without noise."""
    with pytest.MonkeyPatch.context() as patch:
        for law in (Law, *map(type, LAWS.values())):
            patch.setattr(
                law,
                "draw",
                lambda _, scales, size, *rest: [np.zeros(size, np.int64) for _ in scales],
            )
        return released(case, frame)


def released(case, frame):
    return frame.dp.release(case.query, mechanism=case.mechanism, epsilon=case.epsilon)


@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_as_often_as_they_say(name):
    case = CASES[name]
    frame = table(case.groups, **case.table)
    truth = exact(case, frame)
    releases = 10_000 if case.groups == FEW else 20_000 // case.groups
    held = {level: np.zeros(len(truth.columns)) for level in LEVELS}
    narrow = np.zeros(len(truth.columns))
    at_once = 0
    for _ in range(releases):
        made = released(case, frame)
        for level in LEVELS:
            bars = made.dp.interval(level).to_numpy(np.float64)
            held[level] += within(bars, truth).mean(axis=0) / releases
        narrow += within(bars, truth, factor=0.85).mean(axis=0) / releases
        if case.groups == FEW:
            bars = made.dp.interval(0.95, simultaneous=True).to_numpy(np.float64)
            at_once += within(bars, truth).all()
    print(name, held, narrow, at_once / releases)
    for level, allowed in LEVELS.items():
        assert (held[level] > level - allowed).all()
        fine = [not wide(column) for column in truth.dp.certificate.columns]
        assert (held[level][fine] < level + allowed).all()
        assert (narrow[fine] < 0.8 - 0.02).all()  # a seventh too narrow is found
    if case.groups == FEW:
        assert at_once / releases > 0.95 - 4 * 0.0022


def wide(column):
    """Whether an interval of a column holds more often than it says."""
    noises = {block for part in column.features.values() for block in part.loadings}
    return column.integer or len([block for block in noises if int(block) >= 0]) > 2


def within(bars, truth, factor=1.0):
    """Whether each interval holds the truth, if its width is multiplied by a factor."""
    middle, half = (bars[:, 1::2] + bars[:, ::2]) / 2, (bars[:, 1::2] - bars[:, ::2]) / 2
    return np.abs(truth.to_numpy(np.float64) - middle) <= half * factor + 1e-9


COMBINED = {
    "a difference of columns": ("box", lambda made: difference(made, "a", "b"), HIGH),
    "a total of cells": ("box", lambda made: total(made, "n"), HIGH),
    "columns of a pair": ("laplace", lambda made: difference(made, "total", "n"), ONE),
}


def difference(frame, one, other):
    weights = pd.DataFrame(0.0, frame.index[:1], frame.columns)
    weights[one], weights[other] = 1.0, -1.0
    return weights


def total(frame, column):
    return pd.DataFrame({column: 1.0}, frame.index)


@pytest.mark.parametrize("name", COMBINED)
def test_combinations_cover_at_least_as_often_as_they_say(name):
    mechanism, weigh, query = COMBINED[name]
    case = Case(query, mechanism, groups=FEW)
    frame = table(FEW)
    truth = exact(case, frame)
    weights = weigh(truth)
    true = np.nansum((weights * truth).to_numpy(np.float64))
    held = dict.fromkeys(LEVELS, 0)
    for _ in range(10_000):
        made = released(case, frame)
        for level in LEVELS:
            found = dpf.combine(made, weights, level=level).iloc[0]
            held[level] += found["low"] <= true <= found["high"]
    print(name, held)
    # 4 standard errors
    assert held[0.95] / 10_000 > 0.95 - 4 * 0.0022
    assert held[0.8] / 10_000 > 0.8 - 4 * 0.004
