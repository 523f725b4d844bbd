"""Frames and questions for the tests of Dask collections."""

import itertools
import math
from datetime import timedelta
from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from support.randomness import SYSTEM

from dpframe.engines import engine_for
from dpframe.privacy.law import Law
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dpframe.dask")

ROWS = 60


def split(frame, partitions, *, empty=False):
    """Make a collection of slices of a frame, some of them without rows."""
    cuts = np.linspace(0, len(frame), partitions + 1).astype(int).tolist()
    if empty:
        cuts = sorted([0, *cuts, cuts[len(cuts) // 2], len(frame)])
    return of_parts([frame.iloc[start:end] for start, end in itertools.pairwise(cuts)])


def of_parts(parts, meta=None):
    """Make a collection of frames, whatever their dtypes are."""
    delayed = [dask.delayed(part) for part in parts]
    meta = parts[0].iloc[:0] if meta is None else meta
    return dd.from_delayed(delayed, meta=meta, verify_meta=False)


def totals(frame, *tasks):
    return engine_for(frame).totals(frame, tasks, SYSTEM)


def exactly(ask, frame):
    """Release without noise."""
    silent = mock.patch.object(
        Law, "draw", lambda law, scales, n, *_: [np.zeros(n, np.int64) for _ in scales]
    )
    with silent:
        return ask(frame)


def assert_same(released, expected):
    assert list(released) == list(expected)
    pd.testing.assert_frame_equal(released, expected, check_exact=True)


def series(values, dtype):
    objects = np.empty(len(values), object)
    objects[:] = values
    made = pd.Series(objects, dtype=object)
    return made if dtype == "object" else made.astype(dtype)


KEYS = ["a", 1, 2.5, "1", 2**53 + 1, pd.Timestamp("2024-01-02"), pd.Timedelta(hours=2)]


def by_key(*terms, **more):
    return Task(Cells((KeyAxis("k", pd.Index(KEYS, dtype=object)),)), terms, **more)


GRID = Grid.for_bounds(-1, 1)
ALL = Caps(rows=ROWS)


def survey():
    places = np.arange(400)
    answers = {f"q{j}": places * (j + 3) % 11 < 4 for j in range(12)}
    return pd.DataFrame(
        {
            "zone": np.array(["A", "B", "C", "D"])[places * places % 4],
            "hour": places % 5,
            "person": places % 37,
            "fare": np.where(places % 13, places % 97 / 3, math.nan),
            "took": pd.to_timedelta(places % 50, unit="m"),
            "at": pd.Timestamp("2024-03-01") + pd.to_timedelta(places, unit="h"),
            **answers,
        }
    )


FACTS = {
    "keys": {"zone": ["A", "B", "Z"], "hour": range(5)},
    "bounds": {
        "fare": (0, 30),
        "took": (timedelta(0), timedelta(hours=1)),
        "at": (pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-10")),
        **{f"q{j}": (0, 1) for j in range(12)},
    },
}
ANSWERS = [f"q{j}" for j in range(12)]
SCHEMA = pa.DataFrameSchema({name: pa.Column(bool) for name in ANSWERS})
