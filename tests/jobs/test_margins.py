"""Plan files that ask for tables that agree: a file for each table."""

import json

import pandas as pd
import pytest
from support.planning import Overrides, read_plan
from support.raising import raises
from support.terminal import main

import dpframe as dpf
from dpframe.errors import PlanFileError

PLAN = """
[data]
path = "people.csv"
types = { age = "float64" }

[declare]
each_row = true
keys.sex = ["f", "m"]
keys.region = ["n", "s"]
bounds.pay = [0, 10]

[queries.people]
kind = "margins"
columns = ["sex", "region", { cut = "age", edges = { from = 0, to = 90, bins = 3 } }]
ways = 2
other.region = "z"
weights = [{ table = ["age", "sex"], weight = 4 }, { table = [], weight = 2 }]
outputs.n = { kind = "count" }
outputs.pay = { kind = "mean", columns = "pay" }

[queries.total]
kind = "count"
files = "total.csv"

[release]
epsilon = 1
name = "people"
files = ["{query}-{table}.csv", "{query}-{table}.parquet"]

[ledger]
path = "people.ledger"
"""
TABLES = ["all", "sex", "region", "age", "sex-region", "sex-age", "region-age"]


@pytest.fixture
def plan(tmp_path):
    rows = range(300)
    pd.DataFrame(
        {
            "sex": ["fm"[k % 2] for k in rows],
            "region": ["nsx"[k % 7 % 3] for k in rows],
            "age": [k * 7 % 90 + 0.5 for k in rows],
            "pay": [k % 11 for k in rows],
        }
    ).to_csv(tmp_path / "people.csv", index=False)
    dpf.Ledger.create(tmp_path / "people.ledger", budget=dpf.Budget(epsilon=3, delta=1e-6))
    path = tmp_path / "people.toml"
    path.write_text(PLAN)
    return path


def test_a_plan_gives_the_query_of_the_function(plan):
    query = read_plan(plan, Overrides()).queries["people"]
    same = dpf.margins(
        ["sex", "region", dpf.cut("age", [0, 30, 60, 90])],
        other={"region": "z"},
        weights={("sex", "age"): 4, (): 2},
        n=dpf.count(),
        pay=dpf.mean("pay"),
    )
    assert (query.words, query.tables) == (same.words, same.tables)
    assert query.margin_weights == same.margin_weights
    assert query.cuts["age"].bins.equals(same.cuts["age"].bins)
    assert query.cuts["age"].labels.equals(same.cuts["age"].labels)
    assert dict(query.other) == {"region": "z"}


def test_every_table_has_files_of_its_own(plan, capsys):
    assert main(["preview", str(plan), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "people: sex, age" in json.dumps(shown)
    assert main(["release", str(plan)]) == 0
    names = {path.name for path in plan.parent.glob("*.csv")} - {"people.csv"}
    assert names == {*(f"people-{table}.csv" for table in TABLES), "total.csv"}
    both = dpf.read_csv(plan.parent / "people-sex-region.csv")
    assert dpf.verify(both)
    assert both.index.nlevels == 2
    assert both.index.get_level_values("region").tolist() == ["n", "s", "z"] * 2
    one = pd.read_parquet(plan.parent / "people-region.parquet")
    assert both["n"].groupby("region").sum().to_numpy() == pytest.approx(one["n"].to_numpy())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("{query}-{table}.csv", "{query}.csv"), r"put \{table\} in its name"),
        (("weight = 4", "wait = 4"), "no key of weights. Did you mean .weight."),
        (("table = []", 'table = ["sex", "age"]'), "weights: .*must not name a table twice"),
        (("table = []", 'table = ["age", "sex"]'), "weights: must not name a table twice"),
        (("ways = 2", "ways = 5"), "ways must be a whole number"),
        (('other.region = "z"', "max_groups = 2"), "max_groups= has no meaning"),
        (('"total.csv"', '"{table}.csv"'), r"\{table\} has no value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(plan, change, words):
    plan.write_text(PLAN.replace(*change))
    with pytest.raises(PlanFileError, match=words):
        read_plan(plan, Overrides())


@pytest.mark.parametrize(
    ("files", "total", "way"),
    [
        ('"{query}.csv"', "total.csv", r"put \{table\} in its name"),
        ('"{query}-{name}.csv"', "total.csv", r"put \{table\} in its name"),
        ('"{table}.csv"', "all.csv", r"put \{query\} in its name"),
        ('["a-{table}.csv", "a-{table}.csv"]', "total.csv", "name it once"),
    ],
)
@pytest.mark.parametrize("query", ["people", "sex", "by-age-at-all"])
def test_files_that_meet_are_told_apart_by_what_their_name_lacks(plan, query, files, total, way):
    given = '["{query}-{table}.csv", "{query}-{table}.parquet"]'
    text = PLAN.replace(given, files).replace('"total.csv"', f'"{total}"')
    plan.write_text(text.replace("queries.people", f"queries.{query}"))
    with pytest.raises(PlanFileError, match=way):
        read_plan(plan, Overrides())


def test_tables_of_two_queries_are_told_apart_by_these(plan):
    twice = PLAN.replace(
        "[queries.total]", '[queries.more]\nkind = "margins"\ncolumns = ["sex"]\n[queries.total]'
    )
    plan.write_text(twice.replace("{query}-{table}", "{table}"))
    with raises(PlanFileError, "in its name", parameter="release.files"):
        read_plan(plan, Overrides())


def test_tables_with_odd_columns_have_files_of_their_own(plan):
    odd = PLAN.replace("sex", "All").replace('"region"', '"in/out."').replace("region", '"in/out."')
    plan.write_text(odd)
    job = read_plan(plan, Overrides())
    assert {name: paths[0].name for name, paths in job.files.items()} == {
        "people: all_": "people-all_.csv",
        "people: All": "people-All.csv",
        "people: in/out.": "people-in_out_.csv",
        "people: age": "people-age.csv",
        "people: All, in/out.": "people-All-in_out_.csv",
        "people: All, age": "people-All-age.csv",
        "people: in/out., age": "people-in_out_-age.csv",
        "total": "total.csv",
    }
    assert {path.parent for paths in job.files.values() for path in paths} == {plan.parent}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("sex, age", "two tables would be called 'people: sex, age': give the query another name"),
        ("sex-age", "written twice, for 'people: sex-age' and 'people: sex, age': put {query}"),
    ],
)
def test_tables_of_one_name_are_refused(plan, column, words):
    plan.write_text(PLAN.replace('"region"', f'"{column}"').replace(".region", f'."{column}"'))
    with pytest.raises(PlanFileError, match=words):
        read_plan(plan, Overrides())


def test_a_query_called_as_a_table_of_another_is_refused(plan):
    plan.write_text(PLAN.replace("queries.total", 'queries."people: sex"'))
    with raises(PlanFileError, "'people", parameter="queries.'people: sex'"):
        read_plan(plan, Overrides())


PAIRS = "\ufeffregion,size,sex\nn,1,f\nn,2,m\ns,3,f\nn,4,f\n"
POSSIBLE = """keys = { columns = ["region", "sex"], file = "pairs.csv" }
columns = ["sex", "region"]"""
BY_ROWS = """keys = { columns = ["region", "sex"], rows = [["n", "f"], ["n", "m"], ["s", "f"]] }
columns = ["sex", "region"]"""


def possible(plan, written=POSSIBLE):
    """The plan, with the pairs that rows can have."""
    (plan.parent / "pairs.csv").write_text(PAIRS)
    head, _, tail = PLAN.partition("columns = [")
    *_, tail = tail.partition("outputs.n")
    plan.write_text(f"{head}{written}\noutputs.n{tail}".replace("keys.region", "# keys.region"))


@pytest.mark.parametrize("written", [POSSIBLE, BY_ROWS], ids=["file", "rows"])
def test_pairs_that_rows_can_have_are_given_by_rows_or_a_file(plan, written):
    possible(plan, written)
    assert main(["release", str(plan)]) == 0
    pairs = dpf.read_csv(plan.parent / "people-sex-region.csv")
    assert pairs.index.tolist() == [("f", "n"), ("m", "n"), ("f", "s")]
    assert main(["verify", str(plan.parent / "people-sex.csv")]) == 0
    assert main(["rehearse", str(plan), "--output", str(plan.parent / "tried")]) == 0
    made = (plan.parent / "tried" / "TEST-people-sex-region.csv").read_text()
    counts = [float(line.split(",")[2]) for line in made.splitlines()[1:4]]
    assert sum(counts) > 800  # of 1,000 rows, most have a pair that there can be
    assert '"m","n"' in made
    assert '"m","s"' not in made


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('file = "none.csv"', ("file", "there is no file")),
        ('file = "pairs.csv", rows = []', ("columns", "either rows or a file")),
        ('rows = [["n"]]', ("rows", "a key for each")),
        ('file = "pairs.csv", type = "int64"', ("file", "no int64")),
    ],
)
def test_pairs_that_cannot_be_read_are_refused(plan, wrong, said):
    possible(plan, POSSIBLE.replace('file = "pairs.csv"', wrong))
    key, words = said
    with raises(PlanFileError, words, parameter=f"queries.people.keys.{key}"):
        read_plan(plan, Overrides())
