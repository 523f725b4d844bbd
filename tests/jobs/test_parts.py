"""A plan that reads and spends of one part of the data."""

import json

import pandas as pd
import pandera.pandas as pa
import pytest
from support.planning import Overrides, preview_job, read_plan, release_job
from support.raising import raises
from support.terminal import SOUND, TOO_MUCH, main

import dpframe as dpf
from dpframe.errors import AlreadyReleasedError, PlanFileError

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


def test_a_run_speaks_of_the_budget_of_its_part(tmp_path, capsys):
    plan, ledger = str(tmp_path / "plan.toml"), tmp_path / "x.ledger"
    (tmp_path / "plan.toml").write_text(PLAN)
    rows = pd.DataFrame({"who": ["a", "b"], "month": ["1", "2"], "zone": ["A", "B"]})
    rows.to_parquet(tmp_path / "rows.parquet")
    dpf.Ledger.create(ledger, budget=dpf.Budget(epsilon=1), part="month")
    for month in ("1", "2"):  # that the first one is used up is no matter of the second
        assert main(["preview", plan, "--set", f"month={month}"]) == SOUND
        shown = capsys.readouterr().out
        assert f"for month='{month}'" in shown
        assert "Spent      0% of the budget: nothing" in shown
        assert main(["release", plan, "--set", f"month={month}"]) == SOUND
        assert f"for month='{month}'" in capsys.readouterr().out
    again = ["release", "--name", "again", plan, "--set"]
    assert main([*again, "month=2"]) == TOO_MUCH
    assert "the budget of part='2' is used up; its budget is fixed" in capsys.readouterr().err
    (tmp_path / "plan.toml").write_text(PLAN.replace("share = 1", "share = 0.5"))
    assert main(["release", plan, "--set", "month=3", "--json"]) == SOUND
    told = json.loads(capsys.readouterr().out)["ledger"]
    assert (told["of_part"], told["used"], len(told["releases"])) == ("3", 0.5, 1)
    (tmp_path / "plan.toml").write_text(PLAN)
    assert main([*again, "month=3"]) == TOO_MUCH
    assert "Left: 50.0% of the budget" in capsys.readouterr().err  # not: used up
    assert main(["ledger", str(ledger)]) == SOUND
    assert "Fullest    2 100.0%, 1 100.0%, 3 50.0%" in capsys.readouterr().out


def test_runs_of_two_parts_have_two_names(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("zones {month}", "zones"))
    with raises(PlanFileError, "release.name has no {month}, but release.part has: the run on the"):
        read_plan(plan, Overrides({"month": "2024-01"}))


CSV = (
    PLAN.replace("rows.parquet", "rows.csv")
    .replace('privacy_unit = ["who", "month"]\nmax_rows = 2', "each_row = true")
    .replace("share = 1", "share = 0.5")
)


@pytest.mark.parametrize("part", ["2024-01", "47"])
@pytest.mark.parametrize("unit", ["several columns", "every row"])
def test_a_rehearsal_has_rows_in_the_part(tmp_path, part, unit):
    plan = tmp_path / "plan.toml"
    text = CSV if unit == "every row" else PLAN
    if part == "47" and unit == "every row":
        text = text.replace("[ledger]", '[data.types]\nmonth = "int64"\n[ledger]')
    plan.write_text(text.replace("epsilon = 1", "epsilon = 1000"))
    given = [str(plan), "--set", f"month={part}", "--output", str(tmp_path / "tried"), "--quiet"]
    assert main(["rehearse", *given]) == SOUND
    lines = (tmp_path / "tried" / f"TEST-out-{part}.csv").read_text().splitlines()
    assert sum(int(line.split(",")[1]) for line in lines[1:3]) > 100


UNIT = 'privacy_unit = ["who", "month"]\nmax_rows = 2'
KEYS = 'keys = {zone = ["A", "B"]}'


@pytest.mark.parametrize(
    ("path", "facts"),
    [("rows.parquet", KEYS), ("rows.csv", KEYS), ("rows.csv", 'schema = "rows.yaml"')],
)
def test_a_plan_whose_unit_may_be_in_several_parts_is_refused(tmp_path, path, facts):
    plan, ledger = tmp_path / "plan.toml", tmp_path / "x.ledger"
    if facts != KEYS:
        pytest.importorskip("pandera.io.pandas_io", exc_type=ImportError)
        zone = pa.Column(str, pa.Check.isin(["A", "B"]))
        pa.DataFrameSchema({"zone": zone}).to_yaml(tmp_path / "rows.yaml")
    types = "" if path == "rows.parquet" else '\ntypes = {month = "string"}'
    text = PLAN.replace('"rows.parquet"', f'"{path}"{types}').replace(KEYS, facts)
    rows = pd.DataFrame({"who": ["a", "b"], "month": ["2024-01", "2024-02"], "zone": ["A", "B"]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    given = Overrides({"month": "2024-01"})
    dpf.Ledger.create(ledger, budget=dpf.Budget(epsilon=1), part="month")
    for unit in ('privacy_unit = "who"\nmax_rows = 2', 'privacy_unit = ["who"]\nmax_rows = 2'):
        plan.write_text(text.replace(UNIT, unit))
        for act in (preview_job, release_job):
            with raises(PlanFileError, "one unit may be in several"):
                act(read_plan(plan, given))
        assert main(["release", str(plan), "--set", "month=2024-01"]) != SOUND
    assert dpf.Ledger(ledger).protected is None
    assert not dpf.Ledger(ledger).entries
    plan.write_text(text.replace(UNIT, "each_row = true"))
    release_job(read_plan(plan, given))
    assert [one.part for one in dpf.Ledger(ledger).entries] == ["2024-01"]
