"""Releases of counts with noise that is known: truths are added to releases of nothing."""

import numpy as np
import pandas as pd
from support.certifying import recertified

import dpframe as dpf

LATE_AND_ALL = dpf.aggregate(by="g", late=dpf.count(where="late"), flights=dpf.count())
DISJOINT = dpf.aggregate(by="g", late=dpf.count(where="late"), rest=dpf.count(where="not late"))


def nothing(rows, query=LATE_AND_ALL, **spend):
    """Release groups without rows: nothing but noise."""
    frame = pd.DataFrame({"g": pd.Series([], dtype=int), "late": pd.Series([], dtype=bool)})
    frame.dp.declare(keys={"g": np.arange(rows)}, privacy_unit=dpf.EACH_ROW)
    return frame.dp.release(query, **spend)


def shifted(released, *truths):
    """Return the release that the same noise gives where these are the numbers before it."""
    values = [released.iloc[:, at] + truth for at, truth in enumerate(truths)]
    frame = pd.concat(values, axis=1)
    frame.columns = released.columns[: len(truths)]
    return recertified(frame, released)


def replaced(released, *columns):
    """Return a release of these very numbers, under the certificate of another."""
    frame = pd.DataFrame(dict(zip(released.columns, columns, strict=True)), index=released.index)
    return recertified(frame, released)


def quotients_of(table):
    """Return the last number of a table with both ends of its interval, by the same names."""
    return pd.DataFrame(table.iloc[:, -3:]).set_axis(PARTS, axis=1)


PARTS = ["estimate", "low", "high"]


def changes(table):
    """Return changes with both ends, one row for each key and column; times in seconds."""
    frame = pd.DataFrame(table)
    frame.attrs = {}
    times = [name for name in frame if frame[name].dtype.kind == "m"]
    frame = frame.assign(**{name: frame[name].dt.total_seconds() for name in times})
    if frame.shape[1] == len(PARTS):
        return frame.set_axis(PARTS, axis=1)
    places = range(0, frame.shape[1], len(PARTS))
    columns = {
        table.columns[at]: frame.iloc[:, at : at + 3].set_axis(PARTS, axis=1) for at in places
    }
    long = pd.concat(columns, names=["column"]).astype(float)
    order = [*long.index.names[1:], "column"]
    return long.reorder_levels(order).loc[
        [(*np.atleast_1d(key), name) for key in frame.index for name in columns]
    ]
