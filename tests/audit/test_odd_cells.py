"""Odd cells of every class in columns of every kind, under every call and every engine.

Each case compares a frame with its neighbor that lacks the odd row, as pandas would make either:
all that others add to any exact total must stay, and no call may raise or warn, for any dtypes.
Nothing here is random but what the noise of a call leads to, so there are no false alarms.
"""

from contextlib import suppress

import dask
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.dasking import of_parts
from support.odd_cells import HONEST, MAKERS, ODD, check_added, frame_of, made

import dpframe as dpf
from dpframe.columns.values import is_absent, objects
from dpframe.engines.dask import DaskEngine
from dpframe.engines.scans import ScanEngine
from dpframe.engines.units import unit_codes

pytestmark = pytest.mark.audit


FEW = ["guessed", "categories"]  # kinds of columns that see every cell; the others see some
KINDS = list(HONEST)


def in_turn(name, where):
    """A fourth of the odd cells: another for each kind of cells and place, so that all are seen."""
    start = KINDS.index(name) + "xku".index(where)
    return list(ODD)[start % 4 :: 4]


def neighbors(name, odd, where, makers=MAKERS):
    """Frames and their neighbors, of each pair of dtypes once."""
    cells, seen = [*HONEST[name], ODD[odd]], set()
    for maker in makers:
        together, others = made(maker, cells), made(maker, cells[:-1])
        if together is None or others is None or not alike(together, others):
            continue
        dtypes = str(together.dtype), str(others.dtype)
        codes, none = unit_codes([together])
        known = where == "u" and codes[-1] != none and codes[-1] in codes[:-1]  # no unit of its own
        if dtypes not in seen and not known:
            seen.add(dtypes)
            yield frame_of(together, where), frame_of(others, where)


def alike(together, others):
    """Whether pandas has left the cells of others what they are: it rounds some to make floats."""
    pairs = zip(objects(together), objects(others), strict=False)
    return all(
        is_absent(other) if is_absent(one) else not is_absent(other) and one == other
        for one, other in pairs
    )


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("where", ["x", "k", "u"])
def test_pandas(where, name):
    checked = 0
    for place, odd in enumerate(ODD):
        makers = FEW if place % 5 else MAKERS
        for frame, others in neighbors(name, odd, where, makers):
            check_added(frame, others, name, where)
            checked += 1
    assert checked > len(ODD) / 2


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("where", ["x", "k", "u"])
def test_dask(where, name):
    def cut(frame):
        return of_parts([frame.iloc[:4], frame.iloc[4:].infer_objects()])

    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        for odd in in_turn(name, where):
            for frame, others in neighbors(name, odd, where, ["guessed"]):
                check_added(frame, others, name, where, engine=DaskEngine, into=cut)


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("where", ["x", "k", "u"])
def test_parquet(where, name, tmp_path):
    files = iter(range(10**6))

    def written(frame):
        path = tmp_path / f"{next(files)}.parquet"
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
        return dpf.scan_parquet(path, progress=False)

    checked = 0
    for odd in in_turn(name, where):
        if odd == "nested":  # so deep that Arrow itself, which writes the file, runs out of stack
            continue
        for frame, others in neighbors(name, odd, where, ["guessed", "Arrow"]):
            if written_alike(frame, others):
                check_added(frame, others, name, where, engine=ScanEngine, into=written)
                checked += 1
    assert checked or name in UNKNOWN


def written_alike(frame, others):
    """Whether Arrow writes the last cells alone as it does beside others: it converts some."""
    alone = types_of(frame.iloc[-1:])
    if alone is None:  # Arrow may not end where it cannot hold a cell
        return False
    together = types_of(frame)
    if together is None or together != types_of(others):
        return False
    return all(one in (pa.null(), both) for one, both in zip(alone, together, strict=True))


def types_of(frame):
    """Types of columns in Arrow, nothing where it cannot hold their cells."""
    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError):
        return pa.Table.from_pandas(frame).schema.types
    return None


UNKNOWN = ["fractions", "complex numbers", "long floats", "tuples", "mixed", "intervals"]
"""What Arrow has no type for."""
