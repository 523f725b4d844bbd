"""SmartNoise SQL: a query with GROUP BY over a frame that it copied to SQLite before."""

import time
import warnings

from measuring import BOUNDS, DELTA, EPSILON, MAX_GROUPS, MAX_ROWS_PER_GROUP, main, measured

QUERY = "SELECT key, COUNT(*) AS n, SUM(value) AS total FROM S.T GROUP BY key"


def metadata(by_unit, rows):
    """Say what is public; `max_ids` is its cap on the rows of a unit."""
    table = {
        "row_privacy": not by_unit,
        "max_ids": MAX_GROUPS * MAX_ROWS_PER_GROUP if by_unit else 1,
        "sample_max_ids": True,
        "censor_dims": False,
        "clamp_counts": False,
        "clamp_columns": True,
        "rows": rows,
        "key": {"type": "int"},
        "unit": {"type": "int", "private_id": by_unit},
        "value": {"type": "float", "lower": BOUNDS[0], "upper": BOUNDS[1]},
    }
    return {"": {"S": {"T": table}}}


def run(case):
    import pandas as pd
    from snsql import Privacy, from_df

    warnings.simplefilter("ignore")
    frame = pd.read_parquet(case["folder"], columns=["key", "unit", "value"])
    start = time.perf_counter()
    reader = from_df(
        frame,
        privacy=Privacy(epsilon=EPSILON / 2, delta=DELTA),  # for each column of the query
        metadata=metadata(case["task"] == "unit", case["rows"]),
    )
    copying = time.perf_counter() - start
    found = measured(lambda: reader.execute(QUERY)[1:])
    return {**found, "copying": copying}


if __name__ == "__main__":
    main(run)
