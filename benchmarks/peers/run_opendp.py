"""OpenDP over Polars, with explicit keys; caps by its truncations."""

from measuring import BOUNDS, DELTA, EPSILON, MAX_GROUPS, MAX_ROWS_PER_GROUP, main, measured


def release(data, case, keys):
    import opendp.prelude as dp
    import polars as pl

    by_unit = case["task"] == "unit"
    unit = {"identifier": pl.col("unit")} if by_unit else {}
    context = dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1, **unit),
        privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["key"], max_length=case["rows"], max_groups=case["keys"])],
    )
    query = context.query()
    if by_unit:
        # groups chosen at random end in an error of duplicate names with the Polars of 0.16
        query = query.truncate_per_group(MAX_ROWS_PER_GROUP, by=["key"])
        query = query.truncate_num_groups(MAX_GROUPS, by=["key"], keep="first")
    value = pl.col("value").fill_null(0.0).fill_nan(0.0)
    outputs = dp.len(signed=True).alias("n"), value.dp.sum(BOUNDS).alias("total")
    return query.group_by("key").agg(*outputs).with_keys(keys).release().collect()


def run(case):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    files = f"{case['folder']}/*.parquet"
    keys = pl.LazyFrame({"key": list(range(case["keys"]))})
    wanted = ["key", "unit", "value"]
    if case["part"] == "files":
        return measured(lambda: release(pl.scan_parquet(files).select(wanted), case, keys))
    frame = pl.read_parquet(files, columns=wanted)
    return measured(lambda: release(frame.lazy(), case, keys))


if __name__ == "__main__":
    main(run)
