"""Plans that are wrong say so with line, key and the way out; nothing is charged."""

import random

import pytest
from support.planning import PLAN, Overrides, planned, read_plan
from support.raising import raises
from support.terminal import UNREADABLE, main

import dpframe as dpf
from dpframe.errors import PlanFileError

MARCH = Overrides({"month": "2024-03"})

WRONG = {
    "a table": (("[declare]", "[declared]"), "Did you mean 'declare'?", 4),
    "a key": (("max_rows", "max_row"), "Did you mean 'max_rows'?", 6),
    "a key of a query": (("bins = {", "bin = {"), "Did you mean 'bins'?", 19),
    "a key of an output": (("columns =", "column ="), "Did you mean 'columns'?", 14),
    "a kind": (('"histogram"', '"histogramm"'), "must be one of count, rate", 17),
    "no kind": (('kind = "histogram"\n', ""), "kind is missing", 16),
    "an argument": (
        ('column = "fare"\n', ""),
        'column is missing; for instance column = "fare"',
        16,
    ),
    "a type": (
        ("max_rows = 3", 'max_rows = "3"'),
        "must be a whole number, got '3'; for instance max_rows = 15",
        6,
    ),
    "a truth": (("max_rows = 3", "max_rows = true"), "must be a whole number, got True", 6),
    "a pair": (("[0, 100]", "[0]"), "must be [lower, upper]", 8),
    "keys": (
        ('keys.zone = ["A", "B", "C"]', 'keys.zone = "A"'),
        'a list or a table, got \'A\'; for instance zone = ["A", "B"]',
        7,
    ),
    "bins": (("to = 100,", "to = 0,"), "from < to, both finite", 19),
    "bins without end": (("to = 100,", "to = inf,"), "from < to, both finite", 19),
    "many bins": (("bins = 10 }", "bins = 10000000000 }"), "1 to 100,000,000 bins", 19),
    "an amount": (('"1/12"', '"1/0"'), "must be a number, or a text", 22),
    "two amounts": (('share = "1/12"', "share = 0.5\nepsilon = 1"), "in exactly one way", 23),
    "no amount": (('share = "1/12"\n', ""), "in exactly one way", 21),
    "a share": (('"1/12"', "2"), "must be in (0, 1]", 22),
    "no name": (('name = "trips {month}"\n', ""), "release: name is missing", 21),
    "one name": (("trips {month}", "trips"), 'Write name = "trips {month}"', 23),
    "no files": (('files = "{query}-{month}.csv"\n', ""), "release: files is missing", 21),
    "one file": (("{query}-{month}.csv", "{month}.csv"), "put {query} in its name", 24),
    "no unit": (('privacy_unit = "driver"\n', ""), "whom a row belongs to", 4),
    "two units": (("max_rows = 3", "each_row = true"), "whom a row belongs to", 4),
    "a unit of numbers": (('"driver"', '["driver", 7]'), "must be a text, got ['driver', 7]", 5),
    "a unit of no column": (('"driver"', '["driver", "drivr"]'), "Did you mean 'driver'?", 5),
    "a unit of one column twice": (('"driver"', '["driver", "driver"]'), "a column twice", 5),
    "no cap": (("max_rows = 3\n", ""), "needs a cap", 5),
    "a placeholder": (("trips {month}", "trips {month} {year}"), "{year} has no value", 23),
    "no ledger": (('path = "trips.ledger"\n', ""), "ledger: path is missing", 26),
    "no data": (('path = "trips-{month}.csv"\n', ""), "data: path is missing", 1),
    "another format": (('"trips-{month}.csv"', '"trips-{month}.xls"'), "must name Parquet", 2),
    "an output": (("{query}-{month}.csv", "{query}-{month}.xls"), "must end in .csv or", 24),
    "a folder": (("{query}-{month}.csv", "no/{query}.csv"), "there is no folder", 24),
    "the ledger": (("{query}-{month}.csv", "trips.ledger"), "put {query}", 24),
    "a column": (('by = "zone"', 'by = "zne"'), "Did you mean 'zone'?", 12),
    "no groups": (('keys.zone = ["A", "B", "C"]\n', ""), "no public keys for 'zone'", 11),
    "a condition": (('by = "zone"', 'by = "zone"\nwhere = "fare >"'), "is not a condition", 13),
    "a mechanism": (
        ('share = "1/12"', 'share = 0.5\nmechanism = "magic"'),
        "release.mechanism: ",
        23,
    ),
    "a method": (('share = "1/12"', 'share = 0.5\ndenoise = "magic"'), "release.denoise: ", 23),
    "a fraction": (('"1/12"', "1/12"), "share = 1/12: it is no TOML: Expected newline", 22),
    "a word": (('"driver"', "driver"), "Invalid value", 5),
    "a key twice": (("max_rows = 3", "max_rows = 3\nmax_rows = 4"), "Cannot overwrite", 7),
    "a table twice": (("[release]", "[declare]\n[release]"), "Cannot declare", 21),
    "no date": (('["A", "B", "C"]', "[2024-02-30]"), "Invalid date", 7),
    "no bins": (
        ("bins = { from = 0, to = 100, bins = 10 }\n", ""),
        "bins is missing; for inst",
        16,
    ),
    "a text of bins": (
        ("{ from = 0, to = 100, bins = 10 }", '"3"'),
        "got '3'; for instance bins =",
        19,
    ),
    "no such place": (
        ("trips {month}", "trips {mont}"),
        "{mont} has no value. Did you mean {mo",
        23,
    ),
    "another kind": (('"histogram"', '"units"'), 'no key of a query of kind "units"', 18),
    "groups twice": (('["A", "B", "C"]', '["A", "A"]'), "declare.keys.zone: keys of 'zone'", 7),
    "bounds": (("[0, 100]", "[100, 0]"), "declare.bounds.fare: bounds of 'fare'", 8),
    "bounds of an output": (
        ('columns = "fare"', 'columns = "fare", bounds = [3, 1]'),
        "queries.by_zone.outputs.fare.bounds: bounds of",
        14,
    ),
    "a column of an output": (('columns = "fare"', 'columns = "tip"'), "fare.columns: ", 14),
    "a rule for missing values": (
        ("bounds.fare = [0, 100]", 'bounds.fare = [0, 100]\nmissing.fare = "dorp"'),
        "declare.missing.fare: ",
        9,
    ),
    "a unit": (('"driver"', '"drver"'), "declare.privacy_unit: ", 5),
}


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_told_with_line_and_way_out(tmp_path, capsys, what):
    change, said, line = WRONG[what]
    plan = planned(tmp_path, change)
    assert main(["release", str(plan), "--set", "month=2024-03"]) == UNREADABLE
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"{plan}: ")
    assert said in told
    if line is not None:
        assert f"trips.toml: line {line}, " in told
    assert dpf.Ledger(tmp_path / "trips.ledger").entries == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[data", "it is no TOML: "),
        ("a = 1\na = 2", "it is no TOML: "),
        ("a = " + "[" * 100_000, "it is no TOML: "),
        ("x = 1" + "#" * (1 << 20), "at most 1 MiB"),
        ("queries = 3", "must be a table, got 3"),
        ("[queries]\nx = 3\n[release]\nepsilon=1\nname='x'", "must be a table, got 3"),
        ("", "there is no query"),
    ],
)
def test_files_that_are_no_plan(tmp_path, text, said):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(PlanFileError, match=said):
        read_plan(path, Overrides())


@pytest.mark.parametrize(
    ("given", "fill"), [("missing.fare = 50", 50), ('missing = { fare = "drop" }', "drop")]
)
def test_missing_values_are_replaced_or_their_rows_left_out(tmp_path, given, fill):
    spend = ('share = "1/12"', 'epsilon = 1000\nmechanism = "laplace"')
    bounds = "bounds.fare = [0, 100]"
    plan = planned(
        tmp_path, (bounds, f"{bounds}\n{given}"), spend, ("trips.ledger", "large.ledger")
    )
    dpf.Ledger.create(tmp_path / "large.ledger", budget=dpf.Budget(epsilon=1000))
    assert read_plan(plan, MARCH).declared["missing"] == {"fare": fill}
    assert main(["release", str(plan), "--set", "month=2024-03", "--quiet"]) == 0
    found = dpf.read_csv(tmp_path / "by_zone-2024-03.csv")
    # all three rows that are kept of the only driver in C lack their fare
    assert round(found.loc["C", "trips"]) == (0 if fill == "drop" else 3)
    assert round(found.loc["A", "trips"]) > 0


def test_a_plan_of_others_is_told_in_plain_words(tmp_path, capsys, monkeypatch):
    plan = planned(tmp_path)

    def denied(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(plan), "open", denied)
    assert main(["preview", str(plan), "--set", "month=2024-03"]) == UNREADABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"{plan}: permission denied; run it as a user who may read it.")


def test_a_placeholder_that_is_misspelled_on_the_command_line_is_told(tmp_path):
    with raises(PlanFileError, "Did you mean {month}"):
        read_plan(planned(tmp_path), Overrides({"mont": "3"}))


def test_a_plan_in_another_encoding_is_told(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_bytes(b"[data]\npath = '\xff'")
    with raises(PlanFileError, "UTF-8"):
        read_plan(path, Overrides())


def test_settings_go_before_values_of_the_plan(tmp_path):
    plan = planned(tmp_path, ("[ledger]", '[values]\nmonth = "2024-03"\n\n[ledger]'))
    assert read_plan(plan, Overrides()).options["name"] == "trips 2024-03"
    assert read_plan(plan, Overrides({"month": "4"})).options["name"] == "trips 4"
    with raises(PlanFileError, "the plan has no {year}"):
        read_plan(plan, Overrides({"year": "4"}))


def test_conditions_have_placeholders_and_groups_have_none(tmp_path):
    plan = planned(
        tmp_path,
        ('by = "zone"', 'by = "zone"\nwhere = "month == \'{month}\'"'),
        ('["A", "B", "C"]', '["{month}"]'),
    )
    job = read_plan(plan, MARCH)
    assert job.queries["by_zone"].where.text == "month == '2024-03'"
    assert job.declared["keys"]["zone"] == ["{month}"]


def test_every_kind_of_query_is_read_with_its_arguments(tmp_path):
    more = """
[queries.rates]
kind = "rate"
condition = "fare > 10"
by = ["zone"]
keys = ["A", "B"]

[queries.sums]
kind = "sum"
columns = ["fare", "tip"]
bounds = { fare = [0, 10], tip = [0.5, 2] }
n = [100, 2.5]
objective = "worst"
where = "fare > 0"
max_rows = 2

[queries.units]
kind = "units"
by = ["zone", "hour"]
keys = { zone = ["A"], hour = { range = [0, 24] } }
max_groups = 2

[queries.spread]
kind = "std"
columns = "fare"
bounds = [0, 10]

[queries.typical]
kind = "mean"
columns = "fare"
bounds = [0, 10]
sampling = true

[queries.hours]
kind = "histogram"
column = "at"
bins = [2024-03-01, 2024-03-02, 2024-04-01]
files = ["a.csv", "b.parquet"]
"""
    plan = planned(tmp_path, ("[release]", f"{more}\n[release]"))
    job = read_plan(plan, MARCH)
    words = {name: query.words for name, query in job.queries.items()}
    assert words["rates"] == "rate of fare > 10 by zone"
    assert words["sums"].startswith("sum of fare, tip, given an estimate of the rows, max_rows=2")
    assert list(job.queries["units"].keys["hour"]) == list(range(24))
    assert job.queries["units"].limits.groups == 2
    assert job.queries["spread"].outputs[0].bounds == {"fare": (0, 10)}
    assert job.queries["typical"].outputs[0].sampled is True
    assert len(job.queries["hours"].bins.edges) == 2
    assert [path.name for path in job.files["hours"]] == ["a.csv", "b.parquet"]


PIECES = [
    *['"', "{", "}", "[", "]", "=", ".", ",", "\n", "\\", "'", "#", "\x00", "\ud7ff", "\u202e"],
    *["nan", "inf", "-1", "true", "1e400", "2024-01-01", "[[x]]", "9" * 5000, '""', "{month}"],
]


@pytest.mark.sampled(every=10, full=2)
@pytest.mark.parametrize("seed", range(20))
def test_damaged_plans_are_told_in_one_line(tmp_path, capsys, seed):
    draw = random.Random(seed)
    plan = planned(tmp_path)
    for _ in range(15):
        text = PLAN
        for _ in range(draw.choice([1, 1, 2, 5])):
            at = draw.randrange(len(text))
            how = draw.randrange(3)
            more = draw.choice(PIECES) if how < 2 else ""
            text = text[:at] + more + text[at + (how > 0) * draw.choice([1, 5, 30]) :]
        plan.write_text(text, encoding="utf-8")
        code = main(["preview", str(plan), "--set", "month=2024-03"])
        out, err = capsys.readouterr()
        assert code in {0, UNREADABLE}
        assert len(err.splitlines()) == (code > 0)
        assert (out == "") == (code > 0)
        assert len(err) < 1500
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["trips.toml", "trips-2024-03.csv", "trips.ledger"]
    )


def test_every_placeholder_of_the_data_is_in_the_name(tmp_path):
    plan = planned(tmp_path, ('"trips-{month}.csv"', '["{year}.csv", "{month}-{year}.csv"]'))
    with raises(PlanFileError, '"trips', parameter="release.name"):
        read_plan(plan, Overrides({"month": "3", "year": "2024"}))


@pytest.mark.parametrize("value", ["../../x", "a/b", "..", "a\\b", "a\0b"])
def test_values_lead_to_no_other_folder(tmp_path, value):
    with raises(PlanFileError, "must have no "):
        read_plan(planned(tmp_path), Overrides({"month": value}))


def test_a_query_names_a_column_of_weights(tmp_path):
    plan = planned(tmp_path, ("bins = { from", 'weights = "weight"\nbins = { from'))
    assert "weight" in read_plan(plan, MARCH).queries["fares"].labels
