"""Releases from frames of Spark: a complete engine, and what it is checked with.

    pip install . 'pyspark[sql]>=4'
    python examples/spark_engine.py

Needs Java. Executors need dpframe installed. Rows are totaled where they are; with a privacy unit,
Spark shuffles them by buckets of units first. Counts and sums by a few plain keys without a unit
are added up by Spark itself. Nothing but integers comes back.
"""

import os
import pickle
import re
import sys
import warnings
from dataclasses import fields, replace
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.functions import col
from pyspark.sql.types import IntegerType, StructField, StructType

import dpframe as dpf
import dpframe.testing as dpt
from dpframe.engines import (
    Engine,
    Manifest,
    group_by_unit,
    label_counts,
    labels_of,
    register,
    totals_of,
    unit_buckets,
)

TYPES = {
    "string": "string",
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date32[day]",
    "timestamp_ntz": "timestamp[us]",
    "timestamp": "timestamp[us, tz=UTC]",
}
INTEGERS = {"tinyint", "smallint", "int", "bigint"}
NUMBERS = INTEGERS | {"float", "double"}
PLAIN_TEXT = re.compile(r"[\w .-]*")  # needs no escapes in an expression of Spark
MOST_KEYS = 10_000  # in one expression
MOST_EXPONENT = 1_000  # of a step whose inverse is a float, too
HALF = 16  # bits: sums of halves of an integer of a grid stay within a bigint
BUCKET, ROWS = "_dpframe_bucket", "_dpframe_rows"
DECLARED = set()  # numbers that Spark gives to the columns of declared frames


class SparkEngine(Engine):
    """Reads frames of Spark, of columns that are numbers, truths, texts, dates and times."""

    def handles(self, frame):
        """Tell whether a frame is one of Spark."""
        return isinstance(frame, DataFrame)

    def columns(self, frame):
        """List the columns."""
        return list(frame.columns)

    def manifest(self, frame):
        """Name the types that the schema says."""
        fields = frame.schema.fields
        types = {field.name: TYPES.get(field.dataType.simpleString()) for field in fields}
        return Manifest("spark", types, opaque=True)

    def mark(self, frame):
        """Remember the columns of a declared frame: frames made of it name them in their plans."""
        DECLARED.update(columns_of(frame))

    def is_derived(self, frame):
        """Tell whether the plan of a frame names a column of a declared one."""
        return not DECLARED.isdisjoint(columns_of(frame))

    def totals(self, frame, tasks, context):
        """Total all tasks; those of one unit in one pass."""
        self.check(frame, labels_of(tasks))
        if len(tasks) == 1 and is_plain(frame, tasks[0]):
            return [added_up_by_spark(frame, tasks[0])]
        grouped = group_by_unit(tasks).items()
        found = {unit: iter(added_up(frame, some, totals_of, context)) for unit, some in grouped}
        return [next(found[task.unit]) for task in tasks]

    def labels(self, frame, task, context):
        """Count units by label."""
        self.check(frame, labels_of([task]))
        return added_up(frame, [task], label_counts, context)[0]


def columns_of(frame):
    """List the numbers of the columns that the plan of a frame names, which no other plan has."""
    plan = frame._jdf.queryExecution().analyzed().treeString()
    return set(re.findall(r"#(\d+)", plan))


def is_plain(frame, task):
    """Tell whether a task is nothing but counts and sums of numbers by one column of plain keys."""
    cells = task.cells
    if len(cells.axes) != 1 or not is_like(cells, type(cells)(cells.axes)):
        return False
    (axis,) = cells.axes
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    return (
        is_like(task, type(task)(cells, task.terms, caps=task.caps))  # which rows alone are below
        and not axis.ordered
        and is_like(axis, type(axis)(axis.column, axis.keys))
        and has_plain_keys(axis.keys, types[axis.column])
        and all(is_plain_term(term, types) for term in task.terms)
    )


def is_like(one, other):
    """Tell whether all fields of two records are the same; arrays are where they are identical."""
    pairs = ((getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return all(own is two or (type(own) is type(two) and own == two) for own, two in pairs)


def has_plain_keys(keys, kind):
    """Tell whether an expression of Spark can list keys of a column of some type."""
    if not 0 < len(keys) <= MOST_KEYS:
        return False
    if kind in INTEGERS:
        return keys.dtype == "int64"
    texts = all(type(key) is str and PLAIN_TEXT.fullmatch(key) for key in keys)
    return kind == "string" and texts


def is_plain_term(term, types):
    """Tell whether a term counts rows or numbers, or adds up numbers on a grid without a fill."""
    if term != type(term)(term.kind, term.column, term.grid):
        return False
    if term.kind == "rows":
        return True
    return (
        term.kind in ("valid", "sum")
        and types[term.column] in NUMBERS
        and term.grid == replace(term.grid, fill=None, ticks=None, drop=False)
        and abs(term.grid.exponent) <= MOST_EXPONENT
    )


def added_up_by_spark(frame, task):
    """Total a plain task by expressions of Spark: halves of integers, so that no sum overflows."""
    (axis,) = task.cells.axes
    keys = axis.keys.tolist()
    listed = sf.expr(f"`{axis.column}` in ({', '.join(map(repr, keys))})")
    wanted = sf.when(col(ROWS) > 0, listed)  # of groups: Spark would look up each row before
    halves = [half for term in task.terms for half in halves_of(term)]
    groups = frame.groupBy(f"`{axis.column}`").agg(sf.count("*").alias(ROWS), *halves)
    parts = groups.where(wanted).drop(ROWS).collect()
    places = {key: place for place, key in enumerate(keys)}
    totals = np.zeros((len(task.terms), len(keys)), np.int64)
    for key, *sums in parts:
        pairs = zip(sums[::2], sums[1::2], strict=True)
        totals[:, places[key]] = [((high or 0) << HALF) + (low or 0) for high, low in pairs]
    return totals


def halves_of(term):
    """Give the sums of the upper and of the lower halves of what rows add to a plain term."""
    if term.kind == "rows":
        return sf.lit(0), sf.count("*")
    number, grid = col(f"`{term.column}`").cast("double"), term.grid
    usable = number.isNotNull() & ~sf.isnan(number)
    if term.kind == "valid":
        return sf.lit(0), sf.count_if(usable)
    step = sf.rint(number * 2.0**-grid.exponent)
    clipped = sf.least(sf.greatest(step, sf.lit(float(grid.lower))), sf.lit(float(grid.upper)))
    integer = sf.when(usable, clipped.cast("bigint"))  # NaN and null are clipped, too
    low = integer.bitwiseAND(sf.lit((1 << HALF) - 1))
    return sf.sum(sf.shiftright(integer, HALF)), sf.sum(low)


def added_up(frame, tasks, total, context):
    """Total some tasks of one privacy unit, or none, on the executors, and add up here."""
    labels, unit = labels_of(tasks) or frame.columns[:1], tasks[0].unit
    rows = frame.select([col(f"`{label}`") for label in labels])
    buckets = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))

    def total_batches(batches):
        parts = map(as_pandas, batches)
        yield packed(total(parts, tasks, context, 1))

    def with_buckets(batches):
        for batch in batches:
            part = as_pandas(batch)
            numbers = unit_buckets([part[label] for label in unit], buckets)
            yield batch.append_column(BUCKET, pa.array(numbers, pa.int32()))

    def total_bucket(table):
        return pa.Table.from_batches([packed(total([as_pandas(table)], tasks, context, 1))])

    with warnings.catch_warnings():  # PySpark warns of pandas 3, whatever the rows are
        warnings.simplefilter("ignore", FutureWarning)
        if unit:
            schema = StructType([*rows.schema.fields, StructField(BUCKET, IntegerType())])
            split = rows.mapInArrow(with_buckets, schema).groupBy(BUCKET)
            parts = split.applyInArrow(total_bucket, "found binary").collect()
        else:
            parts = rows.mapInArrow(total_batches, "found binary").collect()
    found = [pickle.loads(part["found"]) for part in parts]  # noqa: S301, made by ourselves
    if not found:
        return total([], tasks, context)
    return [reduce(add, of_task) for of_task in zip(*found, strict=True)]


def as_pandas(rows):
    """View rows of Arrow as a frame whose dtypes do not depend on cells."""
    columns = zip(rows.schema.names, rows.columns, strict=True)
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(column) for name, column in columns})


def packed(totals):
    """Put totals in a row of Arrow."""
    return pa.RecordBatch.from_pydict({"found": [pickle.dumps(totals)]})


register(SparkEngine(), accessor=DataFrame)


def main():
    """Release from a frame of Spark, then compare the engine with the one of pandas."""
    settings = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",  # times without a zone stay so
        "spark.ui.enabled": "false",
    }
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are any python3
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    rows = spark.range(10_000).selectExpr(
        "id % 700 as rider", "element_at(array('A', 'B', 'C'), int(id % 3) + 1) as zone"
    )
    rows.dp.declare(
        privacy_unit="rider",
        max_groups=2,
        max_rows_per_group=3,
        keys={"zone": ["A", "B", "C"]},
        budget=dpf.Budget(epsilon=1),
    )
    print(rows.dp.count("zone", epsilon=0.5))

    def frames(frame):
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            return spark.createDataFrame(table).repartition(3)
        except (pa.ArrowException, TypeError, OverflowError):
            return None  # Spark has no such type

    dpt.check_engine(SparkEngine(), frames, lambda frame: frame.filter("unit > 3"))
    print("The engine of Spark adds up what that of pandas does.")


if __name__ == "__main__":
    main()
