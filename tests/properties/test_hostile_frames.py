"""Frames that hold anything: releases of neighbors differ in numbers only, which stay near.

A frame with columns of any dtype is compared with a neighbor of the same dtypes. Both releases
raise the same or nothing, warn of nothing, and agree in all but their numbers; what is measured
moves by no more than the plan claims; each row adds what it adds alone, and in columns of objects.
"""

import itertools
import random
import warnings
from dataclasses import dataclass
from datetime import timedelta
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.boxing import boxed, boxed_column
from support.hostile import KINDS, MIDNIGHT, NEW_YORK, NOON, ZONED, objects
from support.neighbors import allowed, cost_of
from support.plans import parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Column, Declaration, keep_declaration
from dpframe.declaration.kinds import check_bounds, check_keys
from dpframe.engines import engine_for, pandas
from dpframe.engines import units as grouping
from dpframe.errors import DPFrameError, DPFrameWarning
from dpframe.operations.tables import plan_tables
from dpframe.privacy.amounts import Spend
from dpframe.privacy.neighbors import NO_CAPS, Caps

EXAMPLES = settings().max_examples  # of each kind of query
COLUMNS = ["k", "h", "x", "y", "b", "c", "d", "u"]
WHERES = [
    "x > 0",
    "not x <= 1 or y == y",
    "k in [1, 'A', '2020-02-01'] and u != 1",
    "x == y or k < h",
    "b or not c",
    "k >= '2020-02-01' or h == '2020-02-01T12:00+00:00'",
    "x + y * 2 > 1 or -x ** 2 // y % 3 <= 0",
    "k == 'A' or k != 'a\\0' and k >= ''",
    "not (k in ['A', 1.5, '']) and 0 <= u < 10",
]
HOUR = pd.Timedelta("1h")
FIRST, LAST = pd.Timestamp(1, 1, 1), pd.Timestamp(9999, 12, 31)
BOUNDS = [
    *[(-2, 3), (0, 1), (0, 2), (1, 3), (2, 2), (0, 0), (-3.5, -1.25), (0, 2**31), (-1e100, 1e100)],
    *[(0, 5e-324), (0.1, 0.3), (-(2**70), 2**64), (0, 1e-300), (9e99, 1e100)],
]
MOMENTS = {  # which a column has whose values are points in time or durations
    "naive": [(MIDNIGHT, NOON + HOUR), (pd.Timestamp(0), NOON), (FIRST, LAST), (NOON, NOON)],
    "zoned": [(ZONED - HOUR, ZONED + 50 * HOUR), (ZONED - 9**5 * HOUR, ZONED.tz_convert(NEW_YORK))],
    "durations": [
        (0 * HOUR, HOUR / 2),
        (-HOUR, timedelta(hours=10**7)),
        (HOUR / 10**6, HOUR / 10**6),
    ],
}
REPLACEMENTS = [None, None, 0, 1.5, -1e300, 7]
ALL_CAPS = [
    *[Caps(1), Caps(3), Caps(4, 1), Caps(3, 2, 1), Caps(None, 2, 2), Caps(None, None, 1)],
    *[Caps(5, None, 2), Caps(2000)],
]
EDGES = [
    [0, 1, 2],
    [-np.inf, 0.5, np.inf],
    [-1e300, 0, 5e-324, 2**63],
    pd.IntervalIndex.from_tuples([(0, 1), (2, 3)], closed="both"),
    pd.IntervalIndex.from_breaks([0.0, 1.0, 2.5], closed="left"),
    [FIRST, MIDNIGHT, NOON, LAST],
    pd.IntervalIndex.from_breaks([MIDNIGHT, NOON, NOON + HOUR], closed="left"),
    pd.IntervalIndex.from_tuples([(ZONED - HOUR, ZONED), (ZONED + HOUR, ZONED + 2 * HOUR)]),
    [-HOUR, 0 * HOUR, HOUR, 5 * HOUR],
]
ROW = st.binary(min_size=len(COLUMNS), max_size=len(COLUMNS))  # a place in the pool of each column
FEW = st.binary(min_size=3, max_size=3)
LABELS = {"plain": str, "deep": lambda name: (name, 1), "numbers": COLUMNS.index}


class Asking:
    """Draws what is asked of a frame whose columns are labeled in some way."""

    def __init__(self, draw, labeled):
        self.any = lambda *options: draw(st.sampled_from(options))
        self.at = LABELS[labeled]
        self._named = labeled == "plain"

    def where(self):
        return self.any(None, None, *WHERES) if self._named else None

    def by(self, *choices):
        """Grouping columns named by the letters of one of some words."""
        return self.all(self.any("", *choices))

    def all(self, letters):
        return [self.at(letter) for letter in letters]


QUERIES = {
    "count": lambda ask: dpf.count(where=ask.where()),
    "count by one": lambda ask: dpf.count(ask.at("k"), where=ask.where()),
    "count by several": lambda ask: dpf.count(ask.by("kh", "hk", "khx"), where=ask.where()),
    "count by pairs": lambda ask: dpf.count(ask.all("kh"), where=ask.where(), keys=ask.pairs),
    "sum": lambda ask: dpf.sum(ask.at("x"), where=ask.where()),
    "sum by": lambda ask: dpf.sum(ask.all("yb"), ask.by("k", "x"), where=ask.where()),
    "wide sum": lambda ask: dpf.sum(ask.all("xybchd"), ask.by("k"), where=ask.where()),
    "few true": lambda ask: dpf.sum(
        ask.all("bcd"), ask.by("k"), where=ask.where(), max_true=ask.any(1, 2)
    ),
    "mean": lambda ask: dpf.mean(ask.all(ask.any("x", "xb")), ask.by("k"), where=ask.where()),
    "histogram": lambda ask: dpf.histogram(
        ask.at("x"), ask.any(*EDGES), ask.by("k", "hk"), where=ask.where()
    ),
    "units": lambda ask: dpf.units(ask.by("k", "hk"), where=ask.where()),
    "variance": lambda ask: dpf.var(ask.any("x", "y"), ask.by("k"), where=ask.where()),
    "rate": lambda ask: dpf.rate(ask.where() or "y > 0", ask.by("k", "hk")),
    "weighted": lambda ask: dpf.aggregate(
        ask.by("k"),
        n=dpf.count(where=ask.where(), weights=ask.at("d")),
        s=dpf.sum(ask.at("b"), weights=ask.at("d")),
        m=dpf.mean(ask.at("c"), weights=ask.at("d")),
    ),
    "aggregate": lambda ask: dpf.aggregate(
        ask.by("k"),
        where=ask.where(),
        n=dpf.count(),
        s=dpf.sum(ask.at("x"), where=ask.where()),
        m=dpf.mean(ask.at("y")),
        t=dpf.sum(ask.at("b")),
    ),
    "several": lambda ask: {
        "n": dpf.count(ask.at("h"), where=ask.where()),
        "m": dpf.mean(ask.at("x"), where=ask.where()),
        "b": dpf.histogram(ask.at("y"), ask.any(*EDGES)),
    },
}


@dataclass(frozen=True)
class Case:
    """A frame and a neighbor, and what is public about both."""

    frames: tuple[pd.DataFrame, pd.DataFrame]
    added: pd.DataFrame  # what the second has more, where it has
    declaration: Declaration
    query: object
    mechanism: str
    note: str

    def __repr__(self):
        return self.note


@st.composite
def cases(draw, query):
    kinds = dict(zip(COLUMNS, (KINDS[n % len(KINDS)] for n in draw(ROW)), strict=True))
    if draw(st.booleans()):  # few values, that meet each other more often
        kinds = {name: kind.narrowed(draw(FEW)) for name, kind in kinds.items()}
    if draw(st.booleans()):
        kinds["h"], kinds["y"] = kinds["k"], kinds["x"]  # can be compared with each other
    has_units, relation = draw(st.booleans()), draw(st.sampled_from(["add_remove", "replace"]))
    rows = st.lists(ROW, min_size=1, max_size=5 if has_units else 1)
    crowd = draw(st.lists(ROW, max_size=7))
    news = [draw(rows) if relation == "replace" else [], draw(rows)]
    if has_units:
        parts = draw(st.sampled_from(["u", "uy"]))  # columns that a unit is named by
        crowd = _others({name: kinds[name] for name in parts}, crowd, news)
    labeled = draw(st.sampled_from(["plain", "plain", *LABELS]))
    make = draw(framers(kinds, labeled))
    rows = [_mixed(crowd, new, draw(ROW)) for new in news]
    ask = Asking(draw, labeled)
    keys = {name: draw(some_keys(kinds[name])) for name in "khx"}
    ask.pairs = pairs(draw, keys, ask.at)
    declaration = Declaration(
        {ask.at(name): facts(name, keys.get(name), draw(ROW)) for name in COLUMNS},
        privacy_unit=tuple(map(ask.at, parts)) if has_units else None,
        caps=draw(st.sampled_from(ALL_CAPS)) if has_units else NO_CAPS,
        neighboring=relation,
    )
    asked = query(ask)
    mechanism = draw(st.sampled_from(["auto", "laplace", "gaussian"]))
    note = f"{kinds}: {rows}, {declaration}, {asked}, {mechanism}"
    one, other, added = map(make, [*rows, news[1]])
    return Case((one, other), added, declaration, asked, mechanism, note)


def _others(kinds, crowd, news):
    """Give all rows of a new unit the same values, and leave out rows of others with these."""
    places = [COLUMNS.index(name) for name in kinds]
    for new in news:
        for at, row in enumerate(new):
            new[at] = bytes(new[0][n] if n in places else code for n, code in enumerate(row))
    mine = [new[0] for new in news if new]
    columns = [
        boxed_column(kind.column(kind.chosen(row[place] for row in [*mine, *crowd])))
        for kind, place in zip(kinds.values(), places, strict=True)
    ]
    units = list(zip(*columns, strict=True))
    return [
        row
        for row, unit in zip(crowd, units[len(mine) :], strict=True)
        if not any(all(map(_same, unit, own)) for own in units[: len(mine)])
    ]


def _same(value, other):
    try:
        return {value: 1}.get(other) == 1
    except Exception:
        return False


def _mixed(crowd, new, places):
    """Rows of one frame: those of the others stay in their order."""
    rows = list(crowd)
    for row, place in zip(new, places, strict=False):
        rows.insert(place % (len(rows) + 1), row)
    return rows


@st.composite
def framers(draw, kinds, labeled):
    """A function from rows to a frame, of one kind of index and of columns beside the used ones."""
    indexed = draw(st.sampled_from(["range", "constant", "missing", "deep", "times"]))
    spoiled = draw(st.sampled_from([None] * 40 + ["x", "k", "b", "u"]))  # twice, or not at all
    twice = draw(st.booleans())

    def make(rows):
        columns = {
            LABELS[labeled](name): kind.column(kind.chosen(row[place] for row in rows))
            for place, (name, kind) in enumerate(kinds.items())
        }
        frame = pd.DataFrame(columns)
        extra = pd.DataFrame(
            0, frame.index, [LABELS["deep"]("z") if labeled == "deep" else "z"] * 2
        )
        frame = pd.concat([frame, extra], axis=1)
        if spoiled is not None:
            label = LABELS[labeled](spoiled)
            more = frame[[label]] if twice else frame[[]]
            frame = pd.concat([frame if twice else frame.drop(columns=[label]), more], axis=1)
        return frame.set_axis(_index(indexed, len(rows)), axis=0)

    return make


def _index(kind, n):
    return {
        "range": lambda: pd.RangeIndex(n),
        "constant": lambda: pd.Index([7] * n, dtype=np.int64),
        "missing": lambda: pd.Index([np.nan] * n, dtype=float),
        "deep": lambda: pd.MultiIndex.from_arrays([[0] * n, [None] * n]),
        "times": lambda: pd.DatetimeIndex([pd.NaT] * n),
    }[kind]()


def some_keys(kind):
    """Keys that the column's values may equal, and any others, each once for a dict."""
    pool = [*kind.keys, *kind.keys, *kind.keys, *ANY_KEYS]
    some = st.binary(min_size=1, max_size=4)
    return some.map(
        lambda at: check_keys("k", list(dict.fromkeys(pool[n % len(pool)] for n in at)))
    )


ANY_KEYS = list(dict.fromkeys(key for kind in KINDS for key in kind.keys))


def pairs(draw, keys, at):
    """Some combinations of keys, each once, as a frame."""
    both = [(one, other) for one in range(len(keys["k"])) for other in range(len(keys["h"]))]
    some = draw(st.lists(st.sampled_from(both), min_size=1, max_size=5, unique=True))
    one, other = zip(*some, strict=True)
    made = {"k": keys["k"].take(list(one)), "h": keys["h"].take(list(other))}
    return pd.DataFrame({at(name): objects(list(made[name])) for name in made})


def facts(name, keys, drawn):
    """What is declared about a column."""
    if name in "bcd":
        return Column(bounds=(0, 1), integer=True)
    first, second, third, fourth = drawn[:4]
    if third % 3:
        bounds, missing = BOUNDS[first % len(BOUNDS)], REPLACEMENTS[second % len(REPLACEMENTS)]
    else:
        of_one_kind = MOMENTS[list(MOMENTS)[fourth % len(MOMENTS)]]
        bounds = of_one_kind[first % len(of_one_kind)]
        missing = [None, *itertools.chain(*of_one_kind)][second % (1 + 2 * len(of_one_kind))]
    return Column(check_bounds(name, bounds), keys, integer=third % 2 == 1, missing=missing)


def outcome(frame, case):
    """Everything about a release but its numbers: or what it raises."""
    keep_declaration(frame, case.declaration, SYSTEM)
    seeded = random.Random(5)
    with (
        warnings.catch_warnings(record=True) as heard,
        mock.patch("dpframe.context._system_bytes", seeded.randbytes),
    ):
        warnings.simplefilter("always")
        try:
            made = dpf.release(frame, case.query, epsilon=1, delta=1e-6, mechanism=case.mechanism)
        except DPFrameError as error:
            return type(error), str(error)
        tables = made if isinstance(made, dict) else {None: made}
        looks = [(name, *look(released)) for name, released in tables.items()]
    private = [one for one in heard if one.category is not DPFrameWarning]
    assert not private, [str(one.message) for one in private]
    return looks


def look(released):
    record = released.dp.certificate.to_dict()
    (release,) = record["releases"]
    del record["digest"], release["release_id"], release["released_at"]
    for column in release["columns"]:
        # the noise of a mean depends on the number of rows released
        column["features"] = public_part(column["features"])
    del record["table"]["origin"], record["table"]["salt"]
    for column in record["table"]["columns"]:
        del column["values"]
    bars = released.dp.interval()
    assert not released.isna().any(axis=None)
    if np.isfinite(released.to_numpy(float)).all():
        assert not bars.isna().any(axis=None)
    return shape(released), shape(bars), shape(released.dp.std_error), record


def public_part(read_off):
    """Everything about what a mean or a variance was read off but its noisy numbers."""
    noisy = {"centered", "rows", "first", "rest"}
    return read_off and {k: type(v) if k in noisy else v for k, v in read_off.items()}


def shape(frame):
    index = frame.index
    levels = [index.get_level_values(level).dtype for level in range(index.nlevels)]
    labels = [str(label) for label in [*frame.columns, *index.names, *index]]
    return frame.shape, list(map(str, [*frame.dtypes, *levels])), labels


def measured(plan, frame):
    """Every measured integer of a frame, one array for each block of each table."""
    blocks = []
    for part in parts_of(plan):
        needs = sorted(part.design.needs)
        totals = engine_for(frame).totals(frame, [part.table.task(needs)], SYSTEM)[0]
        blocks += part.design.encode(dict(zip(needs, totals, strict=True)))
    return blocks


def check_movement(plan, one, other):
    """Check that what is measured moves by no more than the plan claims, exactly."""
    steps = [
        [abs(int(step)) for step in after - before]  # modulo 2**64
        for before, after in zip(one, other, strict=True)
    ]
    assert cost_of(plan, steps) <= allowed(plan)


@pytest.mark.sampled(every=20, full=9)  # replays of every call have hostile cells, too
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_neighbors_differ_in_nothing_but_numbers_that_stay_near(name, data):
    case = data.draw(cases(QUERIES[name]))
    few = data.draw(st.sampled_from([3, 1 << 16]))  # rows in a block, and in a group of units
    word = data.draw(st.integers(0, 2**64 - 1)).to_bytes(8, "little")
    with mock.patch.object(pandas, "_BLOCK", few), mock.patch.object(grouping, "_GROUP", few):
        one, other = (outcome(frame, case) for frame in case.frames)
        assert one == other
        if not isinstance(one, list):
            return
        # each unit draws the same words whoever else is there
        with mock.patch("dpframe.context._system_bytes", lambda n: (word * n)[:n]):
            compare_totals(case)


def compare_totals(case):
    frame, neighbor = case.frames
    spend = Spend.of(epsilon=1, delta=1e-6)
    tables = plan_tables(frame, frame.dp.declaration, case.query, spend, case.mechanism)
    plan = tables.plan
    totals = measured(plan, frame), measured(plan, neighbor)
    check_movement(plan, *totals)
    if case.declaration.privacy_unit is None and case.declaration.neighboring == "add_remove":
        alone = measured(plan, case.added)
        for before, after, own in zip(*totals, alone, strict=True):
            np.testing.assert_array_equal(before + own, after)
    same = boxed(neighbor)
    if same is not None:
        for found, expected in zip(measured(plan, same), totals[1], strict=True):
            np.testing.assert_array_equal(found, expected)
