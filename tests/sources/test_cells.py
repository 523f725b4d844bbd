"""Each kind of cell has one rule; spellings of cells mean the same at every door."""

import json
import math
from datetime import UTC, date, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest
from support.planning import Overrides, planned, read_plan

import dpframe as dpf
from dpframe.sources.cells import Dialect, read_cell, read_cells

DAY = datetime(2024, 1, 2)
NOON = datetime(2024, 1, 2, 3, 4, 5, 123456)
SPELLINGS = {
    "int64": {
        **{"1": 1, "+7": 7, " 5": 5, "007": 7, "-0": 0, "2.0": 2, "3.": 3, "1e3": 1000},
        **{"1.0e2": 100, "9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63)},
        **dict.fromkeys(["9223372036854775808", "1_000", "2.5", "0x10", "٣", "1,5", "1 000"]),
        **dict.fromkeys(["1e400", "nan", "inf", "NA", "TRUE"]),
    },
    "float64": {
        **{"+7": 7.0, "5.": 5.0, ".5": 0.5, "-1e-3": -0.001, " 2 ": 2.0, "1e400": math.inf},
        **{"inf": math.inf, "-Infinity": -math.inf, "1e-400": 0.0, "0.1": 0.1},
        **dict.fromkeys(["0x1p3", "1_000", "nan", "1d3", "1,234.5", "None"]),
    },
    "bool": {
        **{"true": True, "True": True, "TRUE": True, "1": True, " true": True},
        **{"0": False, "false": False, **dict.fromkeys(["T", "yes", "1.0", "2"])},
    },
    "date": {
        **{"2024-01-02": DAY.date(), "2024-01-02 00:00:00": DAY.date()},
        **dict.fromkeys(["2024-01-02 10:00", "20240102", "02.01.2024", "2023-02-29"]),
    },
    "datetime": {
        **{"2024-01-02": DAY, "2024-01-02T03:04:05.123456789": NOON},
        **{"2024-01-02 03:04": datetime(2024, 1, 2, 3, 4)},
        **dict.fromkeys(["2024-W01-2", "2024-01-02T03:04:05Z", "2024-1-2"]),
        "2024-01-02T24:00:00": None,
    },
    "datetime-utc": {"2024-01-02T04:04+01:00": datetime(2024, 1, 2, 3, 4, tzinfo=UTC)},
    "string": {"NA": "NA", " a ": " a "},
}
"""66 spellings of cells, with what they are read as; `None` for missing ones."""

ARROW = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "datetime-utc": pa.timestamp("us", "UTC"),
    "string": pa.string(),
}


def test_there_are_66_spellings():
    assert sum(map(len, SPELLINGS.values())) == 66


def as_path(path, kind):
    return dpf.scan(path, types={"n": "int64", "x": kind})


def as_dataset(path, kind):
    schema = pa.schema({"n": pa.int64(), "x": ARROW[kind]})
    options = pyarrow.csv.ConvertOptions(column_types=schema)
    form = ds.CsvFileFormat(convert_options=options)
    return dpf.scan(ds.dataset(path, schema=schema, format=form))


def as_plan(path, kind):
    types = f'types = {{n = "int64", x = "{kind}"}}'
    plan = planned(path.parent, ('"trips-{month}.csv"', f'"{path.name}"\n{types}'))
    (path.parent / "trips.ledger").unlink()
    data = read_plan(plan, Overrides({"month": "2024-03"})).data
    return data.rows(data.scan({"n": "int64", "x": kind}, ()), ("n", "x"))


@pytest.mark.parametrize("door", [as_path, as_dataset, as_plan])
@pytest.mark.parametrize("kind", SPELLINGS)
def test_spellings_mean_the_same_at_every_door(tmp_path, door, kind):
    texts, values = list(SPELLINGS[kind]), list(SPELLINGS[kind].values())
    path = tmp_path / "cells.csv"
    for chosen in (texts, *([text] for text in texts)):
        lines = [f"{texts.index(text)},{json.dumps(text, ensure_ascii=False)}" for text in chosen]
        path.write_text("\n".join(["n,x", *lines]), encoding="utf-8")
        tables = door(path, kind).tables(["n", "x"])
        rows = [row for table in tables for row in table.to_pylist()]
        assert [row["x"] for row in rows] == [values[row["n"]] for row in rows]
        assert len(rows) == len(chosen)


def in_pandas(values, kind, _):
    return pd.DataFrame({"x": pd.Series(values, dtype=pd.ArrowDtype(ARROW[kind]))})


def in_parquet(values, kind, folder):
    in_pandas(values, kind, folder).to_parquet(folder / "cells.parquet")
    return dpf.scan_parquet(folder / "cells.parquet")


def in_text(door):
    def opened(values, kind, folder):
        lines = [json.dumps(text, ensure_ascii=False) for text in SPELLINGS[kind]]
        text = "\n".join(["n,x", *(f"1,{line}" for line in lines)])
        (folder / "cells.csv").write_text(text, encoding="utf-8")
        return door(folder / "cells.csv", kind)

    return opened


DOORS = {
    "pandas": in_pandas,
    "parquet": in_parquet,
    "table": lambda values, kind, _: dpf.scan(pa.table({"x": pa.array(values, ARROW[kind])})),
    "path": in_text(as_path),
    "dataset": in_text(as_dataset),
    "plan": in_text(as_plan),
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_totals_of_all_doors_agree(tmp_path, kind):
    values = list(SPELLINGS[kind].values())
    keys = list(dict.fromkeys(value for value in values if value is not None))
    if kind == "float64":
        keys = [key for key in keys if math.isfinite(key)]
    if kind == "int64":
        keys = [key for key in keys if abs(key) < 2**53]
    expected = [values.count(key) for key in keys]
    for door in DOORS.values():
        frame = door(values, kind, tmp_path)
        frame.dp.declare(privacy_unit=dpf.EACH_ROW)
        by = frame.dp.aggregate("x", keys={"x": keys}, n=dpf.count(), epsilon=1e12)
        assert by["n"].tolist() == expected
        if kind in ("int64", "float64"):
            total = frame.dp.sum("x", bounds=(-10, 2000), epsilon=1e12).iloc[0, 0]
            present = [value for value in values if value is not None]
            clipped = sum(min(max(value, -10), 2000) for value in present)
            assert total == pytest.approx(clipped, abs=1e-3)


MARKS = {
    ("float64", "1.234,5", "thousands=. decimal=,"): 1234.5,
    ("float64", "12.34,5", "thousands=. decimal=,"): None,
    ("float64", "1.5", "decimal=,"): None,
    ("float64", "1 234,5", "thousands=  decimal=,"): 1234.5,
    ("int64", "1,5", "thousands=,"): None,
    ("int64", "-1,234,567.00", "thousands=,"): -1234567,
    ("float64", "12.5%", "percent"): 0.125,
    ("float64", "12.5 %", "percent"): 0.125,
    ("float64", "12.5", "percent"): 12.5,
    ("int64", "200%", "percent"): 2,
    ("int64", "50%", "percent"): None,
    ("float64", "1e2%", "percent"): None,
    ("float64", "12.5%", ""): None,
    ("bool", "Oui", "true=oui false=non"): True,
    ("bool", "true", "true=oui false=non"): None,
    ("date", "31.12.2024", "dates=%d.%m.%Y"): date(2024, 12, 31),
    ("date", "2024-12-31", "dates=%d.%m.%Y"): None,
    ("datetime-utc", "31.12.2024 10:00 +0100", "dates=%d.%m.%Y_%H:%M_%z"): datetime(
        2024, 12, 31, 9, tzinfo=UTC
    ),
}


def options_of(words):
    """Read options of a dialect from a short form of them."""
    options = {}
    for word in words.replace("thousands= ", "thousands=~").split():
        name, _, value = word.partition("=")
        options[name] = True if name == "percent" else value.replace("~", " ").replace("_", " ")
    return options


@pytest.mark.parametrize(("kind", "text", "words"), MARKS)
def test_marks_and_words_of_a_dialect(kind, text, words):
    dialect = Dialect.of(**options_of(words))
    assert read_cell(kind, text, dialect) == MARKS[kind, text, words]
    (cell,) = read_cells(kind, pa.array([text.encode()]), dialect).to_pylist()
    assert cell == MARKS[kind, text, words]
