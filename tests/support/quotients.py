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
