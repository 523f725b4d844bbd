"""Totals at no noise agree over all doors, for 25 types of Arrow."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest
from pyarrow import feather
from support.raising import raises

import dpframe as dpf
import dpframe.dask
from dpframe.errors import QueryError
from dpframe.sources.text import type_from_arrow

CONNECTION = duckdb.connect()
TIMES = [datetime(2024, 1, 2), datetime(2024, 1, 3, 4), datetime(2025, 1, 1)]
VALUES = {
    "bool": [True, False, True],
    "int": [3, 1, 2],
    "float": [3.5, 1.25, 2.0],
    "decimal": [Decimal("3.50"), Decimal("1.25"), Decimal("2.00")],
    "date": [date(2024, 1, 2), date(2024, 1, 3), date(2025, 1, 1)],
    "time": TIMES,
    "zoned": [time.replace(tzinfo=UTC) for time in TIMES],
    "text": ["a", "NA", "b"],
    "duration": [timedelta(seconds=3), timedelta(hours=1), timedelta(days=2)],
}
TYPES = {
    pa.bool_(): "bool",
    **{pa.type_for_alias(f"{sign}int{n}"): "int" for sign in ("", "u") for n in (8, 16, 32, 64)},
    pa.float32(): "float",
    pa.float64(): "float",
    pa.decimal128(9, 2): "decimal",
    pa.date32(): "date",
    pa.date64(): "date",
    **{pa.timestamp(unit): "time" for unit in ("s", "ms", "us", "ns")},
    pa.timestamp("us", "UTC"): "zoned",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.string_view(): "text",
    pa.dictionary(pa.int32(), pa.string()): "text",
    pa.duration("s"): "duration",
    pa.duration("us"): "duration",
}


def in_pandas(table, _):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def in_feather(table, folder):
    feather.write_feather(table, folder / "x.feather")
    return dpf.scan(ds.dataset(folder / "x.feather", format="feather"))


def in_parquet(table, folder):
    pa.parquet.write_table(table, folder / "x.parquet")
    return dpf.scan_parquet(folder / "x.parquet")


def in_text(table, folder):
    kind = type_from_arrow(table.schema.field("x").type)
    if kind is None:
        return None
    pyarrow.csv.write_csv(table, folder / "x.csv")
    return dpf.scan(folder / "x.csv", types={"x": kind})


DOORS = {
    "pandas": in_pandas,
    "table": lambda table, _: dpf.scan(table),
    "function": lambda table, _: dpf.scan(lambda: table.to_reader(max_chunksize=2)),
    "dataset": in_feather,
    "parquet": in_parquet,
    "text": in_text,
    "polars": lambda table, _: dpf.scan(pl.from_arrow(table)),
    "duckdb": lambda table, _: dpf.scan(CONNECTION.from_arrow(table)),
    "dask": lambda table, _: dd.from_pandas(in_pandas(table, None), npartitions=2),
}

OTHERWISE = {  # what a library makes another type of, or cannot write or split
    ("date64[ms]", "polars"),
    ("duration[s]", "duckdb"),
    ("duration[us]", "duckdb"),
    ("string_view", "dask"),
    ("string_view", "text"),
}


def totals(frame, values):
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    keys = list(dict.fromkeys(values))
    counted = frame.dp.count("x", keys=keys, epsilon=1e12)["count"].tolist()
    if not isinstance(values[0], int | float | Decimal):
        return counted
    return [*counted, frame.dp.sum("x", bounds=(0, 3), epsilon=1e12).round(4).iloc[0, 0]]


def test_there_are_25_types():
    assert len(TYPES) == 25


def test_intervals_of_duckdb_are_no_durations():
    relation = CONNECTION.sql("SELECT INTERVAL 3 SECONDS AS x")
    scan = dpf.scan(relation)
    scan.dp.declare(privacy_unit=dpf.EACH_ROW)
    with raises(QueryError, "cast such intervals", parameter="keys"):
        scan.dp.count("x", keys=[timedelta(seconds=3)], epsilon=1)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_totals_agree(tmp_path, kind):
    values = VALUES[TYPES[kind]]
    rows = [*values, None, values[0], values[1], values[0]]
    if isinstance(kind, pa.DictionaryType):
        column = pa.array(rows, kind.value_type).cast(kind)
    else:
        column = pa.array(rows, kind)
    expected = [rows.count(value) for value in dict.fromkeys(values)]
    if isinstance(values[0], int | float | Decimal):
        expected.append(float(sum(min(value, 3) for value in rows if value is not None)))
    found = {}
    for name, door in DOORS.items():
        if (str(kind), name) in OTHERWISE:
            continue
        frame = door(pa.table({"x": column}), tmp_path)
        if frame is not None:
            found[name] = totals(frame, values)
    assert found == dict.fromkeys(found, expected)
    assert len(found) >= len(DOORS) - 2
