"""Mistakes in questions and names: each is answered briefly, with a way out, or shown."""

import re
from pathlib import Path

import pandas as pd
import pytest
from support.mistakes import complaints_of, mistake, names_in_a_cell

from dpframe.errors import (
    CalibrationError,
    CallError,
    DeclarationError,
    DPFrameError,
    DPFrameWarning,
    NoSuchNameError,
    QueryError,
    UnknownColumnError,
)

_QUERIES = ("queries", "query")  # as functions and as methods call it

HABITS = [  # what pandas has
    mistake('df.groupby("ward").dp.count(epsilon=1)', AttributeError, "by="),
    mistake('df["stay"].dp.mean(epsilon=1)', NoSuchNameError, "df.dp.mean("),
    mistake('df.loc[df.ward == "A", "stay"].dp', NoSuchNameError, "where="),
    mistake('df.groupby("ward").size().dp', NoSuchNameError, "frame"),
    mistake('df.dp["ward"]', TypeError, ".dp."),
    mistake('df.dp.groupby("ward")', NoSuchNameError, "by="),
    mistake('df.dp.value_counts("ward")', NoSuchNameError, ".dp.count(by="),
    mistake("df.dp.size()", NoSuchNameError, ".dp.count("),
    mistake('df.dp.nunique("person")', NoSuchNameError, ".dp.units("),
    mistake('df.dp.agg({"stay": "mean"})', NoSuchNameError, ".dp.aggregate("),
    mistake("df.dp.describe()", NoSuchNameError, ".dp.aggregate("),
    mistake('df.dp.query("stay > 3")', NoSuchNameError, "where="),
    mistake('df.dp.loc[df.ward == "A"]', NoSuchNameError, "where="),
    mistake('df.dp.max("stay")', NoSuchNameError, "not released", ".dp.quantile("),
    mistake('df.dp.percentile("stay", 50)', NoSuchNameError, ".dp.quantile("),
    mistake('df.dp.pivot_table("stay", "ward")', NoSuchNameError, "by="),
    mistake('df.dp.proportion("stay > 3")', NoSuchNameError, ".dp.rate("),
    mistake("df.dp.cuont(epsilon=1)", NoSuchNameError, ".dp.count"),
    mistake("df.dp.remaining", NoSuchNameError, ".dp.budget"),
    mistake('df[df.ward == "A"].dp.count(epsilon=1)', DeclarationError, "where="),
    mistake('df.query("stay > 3").dp.count(epsilon=1)', DeclarationError, "where="),
    mistake("df.head(3).dp.count(epsilon=1)", DeclarationError, "ledger="),
    mistake("df.copy().dp.count(epsilon=1)", DeclarationError, ".dp.declare("),
    mistake("df.dropna().dp.count(epsilon=1)", DeclarationError, "ledger="),
    mistake('df.assign(long=1).dp.count("long", epsilon=1)', DeclarationError, ".dp.declare("),
    mistake('df.rename(columns={"stay": "nights"}).dp.mean("nights", epsilon=1)', DeclarationError),
    mistake('df.set_index("ward").dp.count("ward", epsilon=1)', DeclarationError, "derived"),
    mistake("df.sample(5).dp.count(epsilon=1)", DeclarationError, "derived"),
    mistake("pd.concat([df, df]).dp.count(epsilon=1)", DeclarationError, "derived"),
    mistake("raw.merge(raw).dp.count(epsilon=1)", DPFrameWarning, "privacy_unit="),
    mistake(
        'del df["sex"]; df.dp.count("sex", epsilon=1)',
        UnknownColumnError,
        "no column",
        parameter="by",
        label="sex",
    ),
    mistake('dpf.groupby("ward")', NoSuchNameError, "dpframe has no"),
    mistake("dpf.read_parquet('visits.parquet')", NoSuchNameError, "pandas.read_parquet"),
]

CALLS = [  # which function takes what
    mistake('dpf.count(df, "ward")', CallError, "frame.dp.count("),
    mistake('dpf.mean(df, "stay")', CallError, "frame.dp.mean("),
    mistake('dpf.histogram(df, "stay", [0, 5])', CallError, "frame.dp.histogram("),
    mistake('dpf.rate(df, "stay > 3")', CallError, "frame.dp.rate("),
    mistake('dpf.aggregate(df, "ward", n=dpf.count())', CallError, "frame.dp.aggregate("),
    mistake('dpf.count(by="ward", frame=df)', CallError, "frame.dp.count("),
    mistake('dpf.discover(df, "ward", max_groups=1)', CallError, "frame.dp.discover("),
    mistake('dpf.suggest_caps(df, "ward")', CallError, "frame.dp.suggest_caps("),
    mistake('dpf.suggest_bounds(df, "stay")', CallError, "frame.dp.suggest_bounds("),
    mistake(
        "dpf.release(dpf.count(), df, epsilon=1)",
        DeclarationError,
        "frame must be",
        parameter="frame",
    ),
    mistake(
        "dpf.release('visits.csv', dpf.count(), epsilon=1)", DeclarationError, parameter="frame"
    ),
    mistake("dpf.declare(raw.ward, keys={})", DeclarationError, "DataFrame", parameter="frame"),
    mistake('dpf.release(df, "count", epsilon=1)', QueryError, "dpf.count(", parameter=_QUERIES),
    mistake("dpf.release(df, dpf.count, epsilon=1)", QueryError, "dpf.count(", parameter=_QUERIES),
    mistake("dpf.release(df, [dpf.count()], epsilon=1)", QueryError, "dict", parameter=_QUERIES),
    mistake("df.dp.release({}, epsilon=1)", QueryError, "one query or more", parameter=_QUERIES),
    mistake('df.dp.release({"n": 1}, epsilon=1)', QueryError, "'n'", parameter=_QUERIES),
    mistake(
        'df.dp.release({"n": dpf.count(), "w": dpf.discover("ward", max_groups=1)}, epsilon=1)',
        QueryError,
        "'w'",
        parameter=_QUERIES,
    ),
    mistake('df.dp.release(dpf.count(), epsilon=1, by="ward")', CallError, "query", parameter="by"),
    mistake(
        'df.dp.release(dpf.count(), epsilon=1, where="stay > 3")',
        CallError,
        "query",
        never=("'share'",),
        parameter="where",
    ),
    mistake('df.dp.preview("ward", epsilon=1)', QueryError, "dpf.count(", parameter=_QUERIES),
    mistake('df.dp.preview(dpf.count("ward"))', CalibrationError, "epsilon=, mu=, rho= or share="),
    mistake(
        "df.dp.preview(dpf.count(), epsilon=1, std_error=3)",
        CalibrationError,
        "one of them",
        parameter="std_error",
    ),
    mistake(
        'df.dp.preview(dpf.mean("stay", "ward"), std_error=1)',
        QueryError,
        "rows=100",
        parameter="rows",
    ),
    mistake(
        "df.dp.preview(dpf.count(), half_width=-1)", QueryError, "above 0", parameter="half_width"
    ),
    mistake(
        'df.dp.preview(dpf.count(), std_error={"cuont": 3})',
        QueryError,
        "'count'",
        parameter="std_error",
    ),
    mistake("df.dp.preview(dpf.count(), epsilon=1, rows=-5)", QueryError, "rows", parameter="rows"),
    mistake('df.dp.count("ward", "year", epsilon=1)', CallError, "by=['ward', 'year']"),
    mistake('df.dp.mean("stay", "ward", "sex", epsilon=1)', CallError, "by=['ward', 'sex']"),
    mistake('df.dp.count("ward", epsilom=1)', CallError, "'epsilon'", parameter="epsilom"),
    mistake('df.dp.count("ward", eps=1)', CallError, "'epsilon'", parameter="eps"),
    mistake('df.dp.count(groupby="ward", epsilon=1)', CallError, "'by'", parameter="groupby"),
    mistake('df.dp.count(filter="stay > 3", epsilon=1)', CallError, "'where'", parameter="filter"),
    mistake('df.dp.count("ward", epsilon=1, seed=7)', CallError, "no keyword", parameter="seed"),
    mistake('df.dp.count("ward", by="sex", epsilon=1)', CallError, "once", parameter="by"),
    mistake("df.dp.mean(epsilon=1)", CallError, "mean(columns)", parameter="columns"),
    mistake("df.dp.rate(epsilon=1)", CallError, "rate(condition)", parameter="condition"),
    mistake(
        'df.dp.histogram("stay", epsilon=1)',
        CallError,
        "histogram(column, bins)",
        never=("histogram(bins)",),
        parameter="bins",
    ),
    mistake('df.dp.aggregate({"stay": "mean"}, epsilon=1)', QueryError, "dpf.mean("),
    mistake(
        'df.dp.aggregate("ward", stay="mean", epsilon=1)', QueryError, "dpf.mean", parameter="stay"
    ),
    mistake(
        'df.dp.aggregate("ward", m=("stay", "mean"), epsilon=1)',
        QueryError,
        "dpf.mean(",
        parameter="m",
    ),
    mistake('df.dp.aggregate("ward", m="mean")', QueryError, "dpf.mean(", parameter="m"),
    mistake('df.dp.aggregate("ward", m=np.mean)', QueryError, "dpf.mean(", parameter="m"),
    mistake('df.dp.aggregate("ward", epsilon=1)', QueryError, "dpf.count()"),
    mistake('dpf.aggregate("ward", n=dpf.count)', QueryError, "dpf.count()", parameter="n"),
    mistake('dpf.aggregate("ward", n=dpf.count(keys=["A"]))', QueryError, "once", parameter="n"),
    mistake('dpf.aggregate("ward", epsilon=1)', QueryError, "release", parameter="epsilon"),
    mistake('dpf.aggregate("ward", ward=dpf.count())', QueryError, "level", label="ward"),
    mistake(
        'dpf.aggregate("ward", m=dpf.mean(["stay", "year"]))',
        QueryError,
        "single column",
        parameter="m",
    ),
    mistake(
        'dpf.aggregate("ward", h=dpf.histogram("stay", [0, 9]))',
        QueryError,
        "release({...})",
        parameter="h",
    ),
    mistake('dpf.margins("ward", ways=2)', QueryError, "list", parameter="columns"),
    mistake('dpf.margins(["ward", "sex"], ways=3)', QueryError, "2", parameter="ways"),
    mistake(
        'dpf.margins(["ward", "sex"], weights={("day",): 2})',
        QueryError,
        "none of",
        parameter="weights",
        label=("day",),
    ),
    mistake('dpf.margins(["ward", "ward"])', QueryError, "twice", parameter="columns"),
    mistake(
        'dpf.margins(["ward", "sex"], keys=["A"])', QueryError, "dict by column", parameter="keys"
    ),
]

OLD_NAMES = [  # what other versions and libraries call it
    mistake("spread.dp.quantiles([0.5])", NoSuchNameError, ".dp.quantile("),
    mistake('df.dp.median("stay", epsilon=1)', NoSuchNameError, ".dp.quantile(", "0.5"),
    mistake('table.dp.write_excel("wards.xlsx")', NoSuchNameError, "join=True).to_excel(path)"),
    mistake('dpf.to_excel(table, "wards.xlsx")', NoSuchNameError, "join=True).to_excel(path)"),
    mistake(
        'dpf.aggregate(by="ward", med=dpf.quantile("stay", 0.5))',
        QueryError,
        "release({'med': dpf.quantile('column', 0.5, by=...)",
        parameter="med",
    ),
    mistake(
        "df.dp.preview(dpf.count(), max_rows=1, seed=7)",
        CallError,
        "'max_rows'",
        "Nor has it 'seed'.",
        parameter="max_rows",
    ),
    mistake(
        'df.dp.count("ward", keys=["A", None], epsilon=1)',
        DeclarationError,
        "do not take them from the data",
        parameter="keys",
    ),
    mistake("table.dp.denoised()", NoSuchNameError, ".dp.denoise"),
    mistake("dpf.quantiles(spread)", NoSuchNameError, ".dp.quantile"),
    mistake('dpf.median("stay")', NoSuchNameError, ".dp.quantile(column, 0.5", never=(".median",)),
    mistake("dpf.denoised(table)", NoSuchNameError, "dpf.denoise"),
    mistake("dpf.schema_of(table)", NoSuchNameError, "dpf.schema"),
    mistake("dpf.std_error(table)", NoSuchNameError, ".dp.std_error"),
    mistake("dpf.best(table)", NoSuchNameError, ".dp.best"),
    mistake("dpf.Concatenation", NoSuchNameError, "dpf.concat"),
    mistake("table.dp.intervall()", NoSuchNameError, ".dp.interval"),
    mistake("table.dp.ci(0.95)", NoSuchNameError, ".dp.interval("),
    mistake("table.dp.nope", NoSuchNameError, "It has", "interval"),
    mistake('table.dp.drop(columns="n")', NoSuchNameError, "released.loc"),
    mistake("table.dp.head(3)", NoSuchNameError, "released.head("),
    mistake("table.dp.merge(grid)", NoSuchNameError, "dpf.concat("),
    mistake('table.dp.to_csv("a.csv")', NoSuchNameError, ".dp.write_csv("),
]

COLUMNS = [
    *(
        mistake(f"df.dp.{call}", UnknownColumnError, word, parameter=parameter, label=label)
        for call, parameter, label, word in [
            ('count("wrad", epsilon=1)', "by", "wrad", "'ward'"),
            ('count("Ward", epsilon=1)', "by", "Ward", "'ward'"),
            ("count(3, epsilon=1)", "by", 3, "It has"),
            ('units("wrad", epsilon=1)', "by", "wrad", "'ward'"),
            ('mean("saty", epsilon=1)', "columns", "saty", "'stay'"),
            ('sum(["stay", "saty"], epsilon=1)', "columns", "saty", "'stay'"),
            ('histogram("saty", [0, 1], epsilon=1)', "column", "saty", "'stay'"),
            ('quantile("saty", 0.5, epsilon=1)', "column", "saty", "'stay'"),
            ('ranges("saty", 4, epsilon=1)', "column", "saty", "'stay'"),
            ('count(where="saty > 3", epsilon=1)', "where", "saty", "'stay'"),
            ('rate("saty > 3", epsilon=1)', "condition", "saty", "'stay'"),
            ('discover("wrad", max_groups=1, epsilon=1)', "by", "wrad", "'ward'"),
            ('margins(["ward", "sxe"], ways=1, epsilon=1)', "columns", "sxe", "'sex'"),
            ('suggest_caps("wrad", epsilon=1)', "by", "wrad", "'ward'"),
            ('suggest_bounds("saty", epsilon=1)', "column", "saty", "'stay'"),
            ('preview(dpf.count("wrad"), epsilon=1)', "by", "wrad", "'ward'"),
            ('diagnose(dpf.count("wrad"))', "by", "wrad", "'ward'"),
            ('release({"a": dpf.count("wrad")}, epsilon=1)', "by", "wrad", "'ward'"),
        ]
    ),
    mistake("df.dp.quantile(0.5, epsilon=1)", UnknownColumnError, parameter="column", label=0.5),
    mistake('df.dp.count(by={"ward": ["A"]}, epsilon=1)', QueryError, "keys=", parameter="by"),
    mistake('df.dp.count(by={"ward", "sex"}, epsilon=1)', QueryError, "list", parameter="by"),
    mistake('df.dp.count(by=["ward", "ward"], epsilon=1)', QueryError, "twice", parameter="by"),
    mistake("df.dp.count(by=df.ward, epsilon=1)", DeclarationError, "public", parameter="by"),
    mistake("df.dp.count(by=lambda row: row, epsilon=1)", QueryError, "label", parameter="by"),
    mistake('df.dp.count(pd.Grouper(key="day"), epsilon=1)', QueryError, "column", parameter="by"),
    mistake('df.dp.mean({"stay": "mean"}, epsilon=1)', QueryError, "label", parameter="columns"),
    mistake("df.dp.mean([], epsilon=1)", QueryError, "at least one", parameter="columns"),
    *(
        mistake(
            f"df.dp.{call}",
            DeclarationError,
            "bounds={'day': (lower, upper)}",
            parameter="bounds",
            label="day",
        )
        for call in (
            'quantile("day", 0.5, epsilon=1)',
            'quantile("day", 0.5, mechanism="select", epsilon=1)',
            'release({"middle": dpf.quantile("day", 0.5), "n": dpf.count()}, epsilon=1)',
            'preview(dpf.quantile("day", 0.5), epsilon=1)',
        )
    ),
    mistake(
        'df.dp.count("day", epsilon=1)', DeclarationError, "keys=", parameter="keys", label="day"
    ),
    mistake(
        'df.dp.mean("person", epsilon=1)',
        DeclarationError,
        "bounds=",
        parameter="bounds",
        label="person",
    ),
    mistake(
        'df.dp.count("ward", keys="A", epsilon=1)',
        DeclarationError,
        "list",
        parameter="keys",
        label="ward",
    ),
    mistake(
        'df.dp.count("ward", keys=["A", "A"], epsilon=1)',
        DeclarationError,
        "unique",
        parameter="keys",
        label="ward",
    ),
    mistake(
        'df.dp.count("day", keys=["2024-03-01"], epsilon=1)',
        QueryError,
        "pd.Timestamp",
        parameter="keys",
        label="day",
    ),
    mistake(
        'df.dp.count("year", keys={"ward": ["A"]}, epsilon=1)',
        QueryError,
        "group by",
        parameter="keys",
        label="ward",
    ),
    mistake('df.dp.count(keys=["A"], epsilon=1)', QueryError, "by=", parameter="keys"),
    mistake(
        'df.dp.count(["ward", "sex"], keys=["A"], epsilon=1)', QueryError, "dict", parameter="keys"
    ),
    mistake('df.dp.count("ward", keys=df.ward, epsilon=1)', DeclarationError, ".dp.discover"),
    mistake(
        'df.dp.mean("stay", bounds=(10, 0), epsilon=1)',
        DeclarationError,
        "Swap",
        parameter="bounds",
        label="stay",
    ),
    mistake(
        'df.dp.mean("stay", bounds={"year": (0, 1)}, epsilon=1)',
        QueryError,
        "columns=",
        parameter="bounds",
        label="year",
    ),
    mistake('df.dp.sum("stay", max_true=1.5, epsilon=1)', QueryError, parameter="max_true"),
    mistake('dpf.sum("stay", objective="best")', QueryError, parameter="objective"),
    mistake('df.dp.mean("stay", max_rows=-1, epsilon=1)', QueryError, ">= 1", parameter="max_rows"),
    mistake(
        'df.dp.units("ward", max_rows_per_group=1, epsilon=1)',
        QueryError,
        "Leave it out",
        parameter="max_rows_per_group",
    ),
    mistake(
        'df.dp.discover("ward", keys=["A"], max_groups=1, epsilon=1)',
        CallError,
        "no keyword",
        parameter="keys",
    ),
    mistake(
        'df.dp.discover("ward", dtype=str, max_groups=1, epsilon=1)',
        QueryError,
        '"string"',
        parameter="dtype",
    ),
    mistake('df.dp.suggest_caps(epsilon=1, cap="rows")', QueryError, "'max_rows'", parameter="cap"),
    mistake("df.dp.suggest_caps(epsilon=1, largest=0)", QueryError, "from 1", parameter="largest"),
    mistake(
        'df.dp.suggest_bounds("stay", epsilon=1, within=(5, 1))',
        QueryError,
        "below",
        parameter="within",
    ),
    mistake(
        'df.dp.suggest_bounds("stay", epsilon=1, query="median")',
        QueryError,
        '"mean"',
        parameter="query",
    ),
    mistake('df.dp.suggest_bounds("stay", epsilon=1, bins=0)', QueryError, parameter="bins"),
    mistake('df.dp.suggest_bounds("stay", epsilon=1, bins=9)', QueryError, "within="),
]

BINS = [
    *(
        mistake(
            f'df.dp.histogram("stay", bins={given}, epsilon=1)',
            QueryError,
            word,
            parameter="bins",
            label="stay",
        )
        for given, word in {
            "10": "linspace(",
            '"auto"': "edges",
            "[0, 5, 5, 10]": "above the one before",
            "[10, 0]": "above the one before",
            "[5]": "at least two",
            '["a", "b"]': "numbers",
            "pd.IntervalIndex.from_tuples([(0, 5), (3, 9)])": "overlap",
            '[0, float("nan")]': "edges",
            "{0, 5, 10}": "order",
        }.items()
    ),
    mistake("df.dp.histogram('stay', df.stay, epsilon=1)", DeclarationError, parameter="bins"),
    mistake(
        'df.dp.histogram("stay", [0, 1], by="stay", epsilon=1)', QueryError, "by=", label="stay"
    ),
    mistake('df.dp.ranges("stay", 0, epsilon=1)', QueryError, "from 1", parameter="bins", label=0),
    mistake('df.dp.ranges("person", 5, epsilon=1)', DeclarationError, "bins=[", label="person"),
    *(
        mistake(f'df.dp.quantile("stay", {q}, epsilon=1)', QueryError, "median", parameter="q")
        for q in ("1.5", "50", '"median"', "[]", "[0.5, 0.5]", "[0.9, 0.1]")
    ),
    mistake('df.dp.quantile("stay", 0.5, epsilon=1, level=95)', QueryError, "0.95"),
]

CONDITIONS = [
    *(
        mistake(f"df.dp.count(where={text!r}, epsilon=1)", QueryError, word, parameter="where")
        for text, word in {
            "ward = 'A'": "==",
            "stay > 3 & stay < 5": "parentheses",
            "stay > 3 && stay < 5": "and",
            "stay > 3 AND stay < 5": "and",
            "ward == 'A": "not a condition",
            "stay > @limit": "write its value",
            "ward.str.startswith('A')": "call",
            "stay > mean(stay)": "call",
            "ward like 'A%'": "'in'",
            "stay is None": "==",
            "stay <> 3": "!=",
            "ward in 'A'": "list",
            "stay + 1": "compare",
            "[a for a in stay if a > 3 and ward == 'A' and sex == 'f']": "comprehension",
            "stay > 3 or": "not a condition",
            "": "Without where=",
        }.items()
    ),
    *(
        mistake(f"df.dp.{call}", QueryError, "Nothing was charged", word, parameter=parameter)
        for call, word, parameter in [
            ("""diagnose(dpf.count(where="year == '2020'"))""", "without quotes", "where"),
            ('count(where="day == 2024", epsilon=1)', "in full", "where"),
            ("""count(where="day == '01.03.2024'", epsilon=1)""", "in full", "where"),
            ('count(where="ward == 1", epsilon=1)', "in quotes", "where"),
            ('rate("ward", epsilon=1)', "ward == 'Yes'", "condition"),
            ('count("year", keys=["2020"], epsilon=1)', "Give numbers", "keys"),
            ('histogram("day", [0, 10], epsilon=1)', "pd.Timestamp", "bins"),
            ('mean("day", bounds=(0, 10), epsilon=1)', "pd.Timestamp", "bounds"),
            ('mean("ward", bounds=(0, 10), epsilon=1)', 'thousands=","', "columns"),
        ]
    ),
    mistake('df.dp.count(where="ward == A", epsilon=1)', UnknownColumnError, "'A'", label="A"),
    mistake("df.dp.count(where=df.stay > 3, epsilon=1)", DeclarationError, parameter="where"),
    mistake("df.dp.count(where=raw.stay > 3, epsilon=1)", QueryError, parameter="where"),
    mistake("df.dp.count(where=lambda row: True, epsilon=1)", QueryError, "'fare > 0'"),
    mistake('df.dp.count(where={"ward": "A"}, epsilon=1)', QueryError, "text", parameter="where"),
    mistake("df.dp.rate(\"ward = 'A'\", epsilon=1)", QueryError, "==", parameter="condition"),
    mistake("df.dp.rate(0.5, epsilon=1)", QueryError, "text", parameter="condition"),
]

ROWS = [*HABITS, *CALLS, *OLD_NAMES, *COLUMNS, *BINS, *CONDITIONS]


SILENT = {  # an error would depend on private cells, which dtypes are guessed from
    """df.dp.diagnose(dpf.count(where="person == '1'"))""": "no row satisfies it",
    """df.dp.diagnose(dpf.count(where="day == '2034-01-01'"))""": "no row satisfies it",
    'df.dp.diagnose(dpf.count("person", keys=["1"]))': "no row can match",
    'df.dp.diagnose(dpf.count("ward", keys=["a", "b", "c"]))': "most often 'A'",
    "(df.dp.count(epsilon=1), df.dp.count(epsilon=1), df.dp.budget)[-1]": "Spent      epsilon=2",
}


@pytest.mark.parametrize("code", SILENT)
def test_a_mistake_without_an_error_is_shown_where_one_may_look(code, tmp_path):
    answer = eval(code, names_in_a_cell(tmp_path))  # noqa: S307  # it is one of ours
    text = answer.to_string() if isinstance(answer, pd.DataFrame) else str(answer)
    assert SILENT[code] in text


def test_errors_that_the_page_of_troubleshooting_shows_are_raised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[1] / "docs" / "how-to" / "troubleshooting.md"
    text = page.read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1], names)  # noqa: S102
    shown = re.findall(r"^```\n((?:(?!```).*\n)+)```\n\n> `(.*)`$", text, re.MULTILINE)
    assert len(shown) == 12
    for code, answer in shown:
        with pytest.raises(DPFrameError) as raised:
            exec(code, names)  # noqa: S102
        assert f"{raised.type.__name__}: {raised.value}".startswith(answer)
    assert len(names["df"].dp.ledger.entries) == 1  # errors cost nothing


def test_mistakes_are_each_there_once():
    assert len({row.code for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_mistake_is_answered(row, tmp_path):
    assert complaints_of(row, tmp_path) == []
