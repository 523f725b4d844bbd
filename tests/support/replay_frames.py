"""Rows, their neighbors, and frames of every engine that are made of them."""

import datetime
import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.dasking import dask, of_parts
from support.hostile import HostileInt, HostileText

import dpframe as dpf
from dpframe.columns.values import public_type

ZONES, DAYS = ["A", "B", "C"], [0, 1]
NOON = pd.Timestamp("2024-03-01 12:00")
YEAR = pd.Timedelta(days=365)
GUESSED = {"zone": "str", "when": "datetime64"} | dict.fromkeys(
    ("day", "fare", "size", "flag", "paid"), "none"
)
"""How types begin that pandas may guess for a column."""

BOUNDS = {"fare": (-5, 10), "size": (0, 4), "when": (NOON, NOON + pd.Timedelta(days=2))}
NAN, INF = float("nan"), float("inf")
RELATIONS = ["add_remove", "replace"]
CAPS = {
    "each row": None,
    "rows": {"max_rows": 4},
    "rows and groups": {"max_rows": 5, "max_groups": 2},
    "rows in groups": {"max_rows_per_group": 2, "max_groups": 2},
    "all caps": {"max_rows": 5, "max_groups": 3, "max_rows_per_group": 2},
}


class Row(NamedTuple):
    """A row of a private frame: anything may stand in a cell."""

    who: object
    zone: object
    day: object
    fare: object
    size: object
    flag: object
    paid: object
    when: object


ANY = {  # of frames in memory: whatever Python has
    "who": [-1, "new", 2.5, 2**63, -(2**62), ("a", 1), b"x", NOON, np.float64(0.1), "010"],
    "zone": [None, NAN, "Z", "", "\ud800", "A\0", b"A", 1, ("A",), "a" * 300, HostileText("A")],
    "day": [None, NAN, 7, 1.0, True, "1", 10**30, 0.5, INF, pd.NaT, HostileInt(1)],
    "fare": [NAN, INF, -INF, None, 1.7e308, 5e-324, "3.5", 10**400, 1j, pd.NA, [1], -0.0, True],
    "size": [None, NAN, 2**63 - 1, -(2**63), 2**64 - 1, INF, "x", 10**400, 0.5, pd.NA, False],
    "flag": [None, NAN, 1, "True", 0.0, [], pd.NA, 2],
    "paid": [None, NAN, 1, "x", 5, -1],
    "when": [None, pd.NaT, pd.Timestamp.max, "2024-03-01", 3, datetime.datetime(1, 1, 1)],
}
FILED = {  # of files: what their types hold
    "who": [-1, 2**62, 5, -(2**62)],
    "zone": [None, "Z", "", "a" * 300],
    "day": [None, 7, -1, 2**62],
    "fare": [None, NAN, INF, -INF, 1.7e308, 5e-324, -0.0],
    "size": [None, 2**62, -(2**62), 100],
    "flag": [None, True, False],
    "paid": [None, True, False],
    "when": [None, NOON + YEAR, NOON - YEAR],
}
NOBODY = {"any": [None, NAN, pd.NA, pd.NaT, [1]], "filed": [None]}


class Crowd:
    """Draws rows and units.

    Parameters
    ----------
    seed
        Of the numbers that are drawn.
    filed
        Whether cells must have the types of files.
    caps
        What the units of the frame are capped by; `None`: every row is a unit.
    """

    def __init__(self, seed, *, filed, caps):
        self.rng = np.random.default_rng(seed)
        self.pool, self.nobody = (FILED, NOBODY["filed"]) if filed else (ANY, NOBODY["any"])
        self.caps = caps

    def one_of(self, items):
        return items[int(self.rng.integers(len(items)))]

    def plain(self, who):
        """Make a row as there are many."""
        rng = self.rng
        return Row(
            who,
            str(rng.choice([*ZONES, "Z"], p=[0.4, 0.3, 0.2, 0.1])),
            int(rng.choice([0, 1, 2], p=[0.5, 0.4, 0.1])),
            float(np.round(rng.normal(4, 6), 2)),
            int(rng.integers(-2, 8)),
            bool(rng.random() < 0.4),
            bool(rng.random() < 0.6),
            NOON + pd.Timedelta(minutes=int(rng.integers(0, 3000))),
        )

    def odd(self, who, part=0.6):
        """Make a row of which a part of the cells is hostile."""
        row = self.plain(who)._asdict()
        for name in row.keys() - {"who"}:
            if self.rng.random() < part:
                row[name] = self.one_of(self.pool[name])
        return Row(**row)

    def full(self, who):
        """Fill every cell beyond all caps, with values that are as far out as they can be."""
        most = max(self.caps.values(), default=1) + 1
        high = bool(self.rng.integers(2))
        far = (1e9, 4, NOON + YEAR) if high else (-1e9, -10, NOON - YEAR)
        return [
            Row(who, zone, day, far[0], far[1], True, high, far[2])
            for zone, day in itertools.product(ZONES, DAYS)
            for _ in range(most if self.rng.random() < 0.5 else 1)
        ]

    def rows(self, units=9, most=6):
        """Make the rows of a frame, some of them odd."""
        made = [
            self.odd(who) if self.rng.random() < 0.15 else self.plain(who)
            for who in range(10, 10 + units)
            for _ in range(int(self.rng.integers(1, most + 1)))
        ]
        return [made[at] for at in self.rng.permutation(len(made))]


def among(new, rows):
    """Put rows among others; both stay in their order, so that a unit has its rows as if alone."""
    places = np.linspace(0, len(rows), len(new) + 2).astype(int)[1:-1].tolist()
    cuts = [0, *places, len(rows)]
    pieces = [rows[start:end] for start, end in itertools.pairwise(cuts)]
    mixed = [row for row, piece in zip(new, pieces, strict=False) for row in (*piece, row)]
    return [*mixed, *pieces[-1]]


class Pair(NamedTuple):
    """Neighbors: what all others have, and what is of one unit in either frame."""

    name: str
    others: list[Row]
    mine: list[Row]
    theirs: list[Row]

    @property
    def whole(self):
        """The rows of the frame."""
        return among(self.mine, self.others)

    @property
    def neighbor(self):
        """The rows of its neighbor."""
        return among(self.theirs, self.others)


def pairs_of(crowd, relation):
    """Make pairs of neighbors; `mine` is never smaller than it has to be to exceed the caps."""
    rows, count = crowd.rows(), int(crowd.rng.integers(1, 30))
    odd_id, nobody = crowd.one_of(crowd.pool["who"]), crowd.one_of(crowd.nobody)
    if crowd.caps is None:
        at = int(crowd.rng.integers(len(rows)))
        units = {
            "a row": [rows.pop(at)],
            "an odd row": [crowd.odd(odd_id)],
            "an extreme row": [crowd.odd(nobody, 1.0)],
            "a row of nothing": [Row(*[None] * len(Row._fields))],
            "a far row": [Row(9, "C", 1, -1e9, 9, True, True, NOON + YEAR)],
        }
    else:
        who = crowd.one_of(rows).who
        units = {
            "a unit": [row for row in rows if row.who == who],
            "a larger unit": [crowd.plain(99) for _ in range(count)],
            "an odd unit": [crowd.odd(odd_id) for _ in range(count)],
            "an extreme unit": [crowd.odd(odd_id, 1.0) for _ in range(count)],
            "a full unit": crowd.full(94),
            "a unit in one cell": [crowd.plain(97)] * 25,
            "rows of nobody": [crowd.odd(nobody) for _ in range(5)],
        }
        rows = [row for row in rows if row.who != who]
    yield from _paired(units, rows, relation, crowd)


def _paired(units, rows, relation, crowd):
    if relation == "add_remove":
        for name, mine in units.items():
            yield Pair(name, rows, mine, [])
        yield Pair("the only one", [], next(iter(units.values())), [])
        return
    first, *others = units.items()
    for name, theirs in others:
        yield Pair(f"{first[0]} replaced by {name}", rows, first[1], theirs)
    name, far = next((name, unit) for name, unit in others if "full" in name or "far" in name)
    near = crowd.full(93) if crowd.caps is not None else [crowd.plain(93)]
    yield Pair(f"{name} replaced by another", rows, far, near)
    yield Pair("the only one replaced", [], first[1], far)


# Frames of these rows ------------------------------------------------------------------------


def in_memory(rows, *, inferred):
    """Make a frame of pandas; where dtypes are inferred, one unit may change those of others."""
    columns = {}
    for name, cells in zip(Row._fields, zip(*rows, strict=True) if rows else [()] * 8, strict=True):
        held = np.empty(len(cells), object)
        for at, cell in enumerate(cells):  # a list is a cell, too
            held[at] = cell
        column = pd.Series(held, dtype=object)
        columns[name] = _infer(name, column) if inferred else column
    return pd.DataFrame(columns)


def _infer(name, column):
    """Let pandas find a dtype, but where it would change values before any library sees them.

    Texts and times are not guessed where others are asked for: that would be refused, and the
    refusal tells the dtype: a known limit of guessed dtypes, in `docs/known-limits.md`.
    """
    if any(type(cell) in (HostileInt, HostileText) for cell in column):
        return column
    try:
        found = column.infer_objects()
    except Exception:  # of a hostile value
        return column
    told = public_type(found.dtype)
    if told is not None and not told.startswith(GUESSED.get(name, "")):
        return column
    large = any(type(cell) is int and abs(cell) > 2**53 for cell in column)
    return column if found.dtype.kind == "c" or (found.dtype.kind == "f" and large) else found


SCHEMA = pa.schema(
    {
        "who": pa.int64(),
        "zone": pa.string(),
        "day": pa.int64(),
        "fare": pa.float64(),
        "size": pa.int64(),
        "flag": pa.bool_(),
        "paid": pa.bool_(),
        "when": pa.timestamp("us"),
    }
)


def as_table(rows):
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SCHEMA)]
    return pa.table(columns, schema=SCHEMA)


def in_a_file(rows, path):
    """Write a file of several row groups, and scan it in small batches."""
    pq.write_table(as_table(rows), path, row_group_size=11)
    return dpf.scan_parquet(path, batch_rows=13, progress=False)


def in_batches(rows, *, lazy):
    """Scan what makes readers of small batches, or a lazy frame of Polars."""
    table, pl = as_table(rows), pytest.importorskip("polars")
    source = pl.from_arrow(table).lazy() if lazy else lambda: table.to_reader(max_chunksize=11)
    return dpf.scan(source, batch_rows=13, progress=False)


def in_partitions(rows, *, inferred):
    """Make a Dask collection of three partitions, whose dtypes may differ."""
    size = len(rows) // 3 + 1
    parts = [in_memory(rows[at : at + size], inferred=inferred) for at in (0, size, 2 * size)]
    with dask.config.set({"dataframe.convert-string": False}):  # cells stay what they are
        return of_parts(parts, in_memory([], inferred=False))
