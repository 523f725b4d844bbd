"""One unit's odd cell beside those of others: what every public call totals, exactly."""

import datetime as dt
import decimal
import math
import warnings
from collections import Counter
from contextlib import ExitStack, suppress
from fractions import Fraction
from unittest import mock
from uuid import UUID

import numpy as np
import pandas as pd

import dpframe as dpf
from dpframe.columns.values import is_absent
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import DPFrameWarning
from dpframe.operations import planning

NOON = pd.Timestamp("2021-03-01 12:00")
ZONED = NOON.tz_localize("America/New_York")
NESTED = 1
for _ in range(100_000):
    NESTED = (NESTED,)

HONEST = {  # cells of others, ten each
    "integers": [3, 0, 7, 7, -2, 300, 5, 4, 3, 9],
    "floats": [3.5, 0.0, -0.0, 7.25, 1e300, math.nan, 0.1, 4.0, math.inf, 9.0],
    "booleans": [True, False, True, True, False, False, True, True, True, False],
    "texts": ["A", "B", "A", "7", "", "nan", "é", "2021-03-01", "A", "B"],
    "times": [NOON + pd.Timedelta(hours=n // 2) for n in range(9)] + [pd.NaT],
    "zoned times": [ZONED + pd.Timedelta(days=n // 2) for n in range(10)],
    "dates": [dt.date(2021, 3, 1 + n // 2) for n in range(10)],
    "durations": [pd.Timedelta(hours=n // 2) for n in range(9)] + [pd.NaT],
    "decimals": [decimal.Decimal(n) / 4 for n in range(10)],
    "fractions": [Fraction(n, 3) for n in range(10)],
    "complex numbers": [complex(n // 2, n == 3) for n in range(10)],
    "small floats": [np.float16(n / 4) for n in range(10)],
    "long floats": [np.longdouble(n) / 4 for n in range(10)],
    "periods": [pd.Period("2021-03", "M") + n // 2 for n in range(10)],
    "intervals": [pd.Interval(n // 2, n // 2 + 1) for n in range(10)],
    "bytes": [b"A", b"B"] * 5,
    "tuples": [(n // 2, "A") for n in range(10)],
    "mixed": [1, "A", None, 2.5, True, NOON, (1, 2), b"A", decimal.Decimal(4), ZONED],
}
ODD = {
    "none": None,
    "not a number": math.nan,
    "missing": pd.NA,
    "not a time": pd.NaT,
    "imaginary": 1j,
    "complex": complex(1, 0),
    "complex and none": complex(5, math.nan),
    "short complex": np.complex64(1j),
    "long complex": np.clongdouble(1j),
    "integer": 1,
    "odd integer": 2**53 + 1,
    "unsigned": 2**64 - 1,
    "beyond words": 10**30,
    "beyond floats": -(10**400),
    "float": 0.5,
    "infinity": math.inf,
    "truth": True,
    "numpy's": np.uint8(200),
    "text": "x",
    "number in text": "1",
    "half a character": "\ud800",
    "cut": "A\0",
    "bytes": b"\xff",
    "decimal": decimal.Decimal("0.1"),
    "signaling": decimal.Decimal("sNaN"),
    "huge decimal": decimal.Decimal("1e999999999"),
    "fraction": Fraction(1, 7),
    "long float": np.longdouble("1e-4000"),
    "short float": np.float16(1.5),
    "time": pd.Timestamp("2020-01-01"),
    "fine time": pd.Timestamp("2020-01-01 00:00:00.000000001"),
    "zoned time": pd.Timestamp("2020-01-01", tz="UTC"),
    "offset": dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    "year one": dt.datetime(1, 1, 1),
    "last year": dt.datetime(9999, 12, 31),
    "ancient": np.datetime64(-290_000_000, "Y"),
    "seconds": np.datetime64("2020-01-01", "s"),
    "date": dt.date(2020, 1, 1),
    "hour": dt.time(1),
    "duration": pd.Timedelta("1s"),
    "long duration": dt.timedelta(days=999_999_999),
    "years": np.timedelta64(5, "Y"),
    "period": pd.Period("2020-01", "D"),
    "interval": pd.Interval(0.5, 1, closed="left"),
    "list": [1],
    "dict": {},
    "array": np.ones(2),
    "set": frozenset([1]),
    "nested": NESTED,
    "identifier": UUID(int=2**61),
    "class": float,
}


def objects(cells):
    made = np.empty(len(cells), object)
    for row, cell in enumerate(cells):
        made[row] = cell
    return pd.Series(made, dtype=object)


def guessed(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas says what it guesses
        return pd.DataFrame({"x": list(cells)})["x"]


def sparse(cells):
    return pd.Series(pd.arrays.SparseArray(objects(cells).to_numpy()))


MAKERS = {  # of columns, as pandas chooses their dtype for what they hold
    "guessed": guessed,
    "objects": objects,
    "categories": lambda cells: pd.Series(pd.Categorical(guessed(cells))),
    "nullable": lambda cells: guessed(cells).convert_dtypes(),
    "Arrow": lambda cells: guessed(cells).convert_dtypes(dtype_backend="pyarrow"),
    "array": lambda cells: pd.Series(pd.array(list(cells))),
    "sparse": sparse,
}


def made(maker, cells):
    """Make a column, or nothing where pandas or Arrow cannot."""
    with suppress(Exception):
        column = MAKERS[maker](cells)
        if len(column) == len(cells):
            return column.reset_index(drop=True)
    return None


def frame_of(column, where):
    """A frame in which a column is the values, the keys or the units of rows."""
    rows = range(len(column))
    frame = pd.DataFrame({"k": ["AB"[row % 2] for row in rows], "x": rows, "h": 1})
    frame["u"] = [1000 + row for row in rows]
    frame[where] = column
    return frame


def bounds_of(name):
    if name == "times":
        return pd.Timestamp("2020-01-01"), NOON + pd.Timedelta(hours=3)
    if name == "zoned times":
        return ZONED, ZONED + pd.Timedelta(days=3)
    return (0 * NOON.resolution, pd.Timedelta("3h")) if name == "durations" else (-1, 6)


def declared(frame, name):
    cells = [*HONEST[name], "A", "B", 1, b"\xff", pd.Timestamp("2020-01-01")]
    keys = [*dict.fromkeys(cell for cell in cells if not is_absent(cell)), "Z"]
    frame.dp.declare(
        keys={"k": keys, "h": [1, 2]},
        bounds={"x": bounds_of(name)},
        budget=dpf.Budget(epsilon=1000, delta=1e-3, discovery=1e-4),
        privacy_unit="u",
        max_rows=9,
    )
    return frame


SPEND = {"epsilon": 1, "delta": 1e-7}
WHERE = "x > 1 or not x == x or k == 'A' or k in [7, 'B', '2021-03-01'] or u >= 1005 or x * 2 == 1"
EDGES = [-np.inf, 0, 2, 5, np.inf]
VALUED = {
    "sum": dpf.sum("x", "k", where=WHERE),
    "mean": dpf.mean("x", "h"),
    "rate": dpf.rate(WHERE, "h", missing=False),
    "histogram": dpf.histogram("x", EDGES, "h"),
}
KEYED = {
    "count": dpf.count("k"),
    "rate": dpf.rate(WHERE, "k", missing=False),
    "units": dpf.units(["k", "h"]),
}
CALLS = {
    "values": lambda dp: dp.release(VALUED, **SPEND),
    "keys": lambda dp: dp.release(KEYED, **SPEND),
    "variance": lambda dp: dp.var("x", **SPEND),
    "quantile": lambda dp: dp.quantile("x", [0.3, 0.5], **SPEND),
    "selected": lambda dp: dp.quantile("x", 0.5, mechanism="select", epsilon=1),
    "units": lambda dp: dp.units("h", **SPEND),
    "margins": lambda dp: dp.margins(["k", "h"], **SPEND),
    "caps": lambda dp: dp.suggest_caps("k", largest=4, **SPEND),
    "bounds": lambda dp: dp.suggest_bounds("x", smallest=1, largest=4, **SPEND),
    **{
        f"discover {kind}": lambda dp, kind=kind: dp.discover(
            "k", dtype=kind, max_groups=9, **SPEND
        )
        for kind in ("string", "int64", "bool", "date", "datetime")
    },
}
OF_KEYS = ["keys", "margins", "caps", *(call for call in CALLS if "discover" in call)]
ASKED = {
    "x": ["values", "variance", "quantile", "selected", "bounds"],
    "k": OF_KEYS,
    "u": ["values", "units", "caps", "discover string"],
}
TIMED = ("times", "zoned times", "durations")
NUMBERS_ONLY = ("variance", "bounds", "quantile", "selected")


def totaled(frame, name, where, engine=PandasEngine):
    """Return all exact totals that calls ask an engine for, by call.

    Every call ends without an error, and without a warning.
    """
    declared(frame, name)
    found = {}
    for call in ASKED[where]:
        if name in TIMED and call in NUMBERS_ONLY:
            continue
        seen = found[call] = []
        with ExitStack() as stack:
            for method in ("totals", "labels"):
                stack.enter_context(mock.patch.object(engine, method, noting(engine, method, seen)))
            # what is public about dtypes would refuse some
            stack.enter_context(mock.patch.object(planning, "check_matches", return_value=None))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DPFrameWarning)
            CALLS[call](frame.dp)
        assert seen
    return found


def noting(engine, method, seen):
    original = getattr(engine, method)

    def noted(*given):
        answer = original(*given)
        if method == "totals":
            seen.extend(total.copy() for total in answer)
        else:
            labels = zip(*(part.tolist() for part in answer.labels), strict=True)
            seen.append(Counter(dict(zip(labels, answer.units.tolist(), strict=True))))
        return answer

    return noted


def check_added(frame, others, name, where, *, engine=PandasEngine, into=lambda made: made):
    """Check that the last row of a frame adds to the totals of the others what it is alone.

    Parameters
    ----------
    frame, others
        A frame, and its neighbor without the last row, whose dtypes may be others.
    name, where
        What the cells of the others are, and in which column.
    engine, into
        The engine for what frames are made into.
    """
    own = frame.iloc[-1:].reset_index(drop=True)
    known = *others.dtypes.astype(str), name, where, engine.__name__, into.__qualname__
    if known not in _APART:
        _APART[known] = totaled(into(others), name, where, engine)
    together, added = (totaled(into(one), name, where, engine) for one in (frame, own))
    for call, totals in together.items():
        for all_of_them, before, more in zip(totals, _APART[known][call], added[call], strict=True):
            same = all_of_them == before + more
            assert same if isinstance(more, Counter) else same.all(), call


_APART = {}  # totals of others, which many frames share
