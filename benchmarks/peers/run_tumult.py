"""Tumult Analytics on Spark: a count and a sum by group, with half of epsilon each."""

import warnings

from measuring import BOUNDS, EPSILON, MAX_GROUPS, MAX_ROWS_PER_GROUP, main, measured
from sparked import processes, started


def release(frame, keys, by_unit):
    from tmlt.analytics import (
        AddOneRow,
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(EPSILON),
        source_id="rows",
        dataframe=frame,
        protected_change=AddRowsWithID("unit") if by_unit else AddOneRow(),
    )
    rows = QueryBuilder("rows")
    if by_unit:
        rows = rows.enforce(MaxGroupsPerID("key", MAX_GROUPS))
        rows = rows.enforce(MaxRowsPerGroupPerID("key", MAX_ROWS_PER_GROUP))
    groups = rows.groupby(keys_of(KeySet, frame, keys))
    asked = groups.count(), groups.sum("value", *BOUNDS)
    half = PureDPBudget(EPSILON / len(asked))
    counts, sums = (session.evaluate(one, half).toPandas() for one in asked)
    return counts.merge(sums, on="key")


def keys_of(kind, frame, keys):
    return kind.from_dataframe(frame.sparkSession.range(keys).withColumnRenamed("id", "key"))


def run(case):
    warnings.simplefilter("ignore")
    spark = started()
    by_unit = case["task"] == "unit"
    columns = ["unit", "key", "value"] if by_unit else ["key", "value"]
    frame = spark.read.parquet(case["folder"]).select(*columns).cache()
    frame.count()  # in memory from here on
    return measured(lambda: release(frame, case["keys"], by_unit), processes(spark))


if __name__ == "__main__":
    main(run)
