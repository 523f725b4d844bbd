"""A plan with data and a ledger in a folder, to be changed by tests, and how it is read and run.

Tests of jobs take `read_plan`, `preview_job` and `release_job` from here, whose errors and tables
are objects; what a user sees of them goes through `main` of `support.terminal`.
"""

import pandas as pd

import dpframe as dpf
from dpframe.jobs.job import Overrides, read_plan
from dpframe.jobs.run_job import preview_job, release_job

__all__ = [
    "BUDGET",
    "PLAN",
    "QUERIES",
    "SMALL_PLAN",
    "TRIPS",
    "Overrides",
    "planned",
    "preview_job",
    "read_plan",
    "release_job",
]

_BEFORE = """\
[data]
path = "trips-{month}.csv"

[declare]
privacy_unit = "driver"
max_rows = 3
keys.zone = ["A", "B", "C"]
bounds.fare = [0, 100]

"""
QUERIES = """\
[queries.by_zone]
kind = "aggregate"
by = "zone"
outputs.trips = { kind = "count" }
outputs.fare = { kind = "mean", columns = "fare" }

[queries.fares]
kind = "histogram"
column = "fare"
bins = { from = 0, to = 100, bins = 10 }
"""
PLAN = f"""\
{_BEFORE}{QUERIES}
[release]
share = "1/12"
name = "trips {{month}}"
files = "{{query}}-{{month}}.csv"

[ledger]
path = "trips.ledger"
"""
SMALL_PLAN = """
[data]
path = "private.csv"
[declare]
each_row = true
keys.zone = ["A", "B"]
[queries.zones]
kind = "count"
by = "zone"
[release]
epsilon = 0.1
name = "one"
files = "out.csv"
[ledger]
path = "trips.ledger"
"""
TRIPS = pd.DataFrame(
    {
        "driver": [1, 1, 2, 3, 4] * 20,
        "zone": ["A", "B", "A", "C", "A"] * 20,
        "fare": [9.5, 20.0, 7.0, None, 130.0] * 20,
    }
)
BUDGET = dpf.Budget(epsilon=2, delta=1e-6)


def planned(folder, *changes):
    """Write plan, data of March and a new ledger; changes are pairs of texts of the plan."""
    text = PLAN
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "trips.toml").write_text(text)
    TRIPS.to_csv(folder / "trips-2024-03.csv", index=False)
    dpf.Ledger.create(folder / "trips.ledger", budget=BUDGET)
    return folder / "trips.toml"
