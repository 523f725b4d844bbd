"""A plan that reads and spends of one part of the data."""

import pandas as pd
from support.raising import raises

import dpframe as dpf
from dpframe.errors import AlreadyReleasedError, PlanFileError
from dpframe.jobs.answers import SOUND
from dpframe.jobs.commands import main
from dpframe.jobs.job import Overrides, read_plan
from dpframe.jobs.run_job import release_job

PLAN = """
[data]
path = "rows.parquet"
[ledger]
path = "x.ledger"
budget = {epsilon = 1}
part = "month"
[declare]
privacy_unit = ["who", "month"]
max_rows = 2
keys = {zone = ["A", "B"]}
[release]
share = 1
part = "{month}"
name = "zones {month}"
[queries.zones]
kind = "count"
by = "zone"
files = "out-{month}.csv"
"""


def test_every_month_has_the_whole_budget(tmp_path):
    plan, ledger = tmp_path / "plan.toml", str(tmp_path / "x.ledger")
    plan.write_text(PLAN)
    months = ["2024-01", "2024-02"]
    rows = {"who": ["a", "b"] * 20, "month": months * 20, "zone": ["A", "B"] * 20}
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    with raises(PlanFileError, "--create --epsilon 1.0 --delta 0.0 --part month"):
        release_job(read_plan(plan, Overrides({"month": months[0]})))
    assert main(["ledger", ledger, "--create", "--epsilon", "1", "--part", "month"]) == SOUND
    for month in months:
        release_job(read_plan(plan, Overrides({"month": month})))
        assert dpf.Ledger(ledger).status(part=month).remaining_share == 0
    assert [one.part for one in dpf.Ledger(ledger).entries] == months
    with raises(AlreadyReleasedError):
        release_job(read_plan(plan, Overrides({"month": months[0]})))
    plan.write_text(PLAN.replace('part = "month"', 'part = "year"'))
    with raises(PlanFileError, "'month', got"):
        release_job(read_plan(plan, Overrides({"month": "2024-03"})))
