"""Plain pandas and plain Dask: no privacy, no caps."""

from measuring import BOUNDS, main, measured


def totals(frame, key):
    """Count and add up by group."""
    clipped = frame.assign(value=frame["value"].clip(*BOUNDS))
    return clipped.groupby(key, observed=False)["value"].agg(["size", "sum"])


def run(case):
    import pandas as pd

    folder, variant = case["folder"], case["variant"]
    if case["part"] == "files" and variant == "dask":
        import dask.dataframe as dd

        return measured(lambda: totals(dd.read_parquet(folder), "key").compute())
    if case["part"] == "files":
        wanted = ["key", "value"]
        return measured(lambda: totals(pd.read_parquet(folder, columns=wanted), "key"))
    frame = pd.read_parquet(folder, columns=[variant, "value"])
    return measured(lambda: totals(frame, variant))


if __name__ == "__main__":
    main(run)
