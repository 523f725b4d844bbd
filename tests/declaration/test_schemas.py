"""Schemas of every backend of pandera are read by their checks, and what is not read is listed."""

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.declaration import from_pandera
from dpframe.errors import DeclarationError, QueryError

pa = pytest.importorskip("pandera.pandas")

EACH = {"privacy_unit": dpf.EACH_ROW}
ROWS = pd.DataFrame(
    {
        "fare": [0.02, 3.0, 98765.43],
        "n": [1, 2, 3],
        "z": ["a", "b", "c"],
        "b": [True, False, True],
        "t": pd.date_range("2024", periods=3),
    }
)


def column(*checks, **options):
    return pa.DataFrameSchema({"fare": pa.Column(float, list(checks), **options)})


GE, LE = pa.Check.ge(0), pa.Check.le(100)


@pytest.mark.parametrize("labels", [[*ROWS], ["fare"], ["n", "z"], ["t"]], ids=str)
def test_a_schema_that_was_inferred_is_refused_unless_it_is_confirmed(labels):
    frame = ROWS[labels].copy()
    schema = pa.infer_schema(frame)
    with raises(DeclarationError, "infer_schema", parameter="schema"):
        frame.dp.declare(schema, **EACH)
    frame.dp.declare(schema, confirmed_public=True, **EACH)


CHANGES = {
    "coerce": pa.DataFrameSchema({"n": pa.Column(float)}, coerce=True),
    "coerce of a column": pa.DataFrameSchema({"n": pa.Column(float, coerce=True)}),
    "default": pa.DataFrameSchema({"fare": pa.Column(float, default=0.0)}),
    "parsers": column(parsers=pa.Parser(lambda cells: cells.clip(0, 1))),
    "drop_invalid_rows": pa.DataFrameSchema({"fare": pa.Column(float, LE)}, drop_invalid_rows=True),
    "strict": pa.DataFrameSchema({"fare": pa.Column(float)}, strict="filter"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_schema_that_returns_other_rows_is_not_run(name):
    frame = ROWS.copy()
    with raises(DeclarationError, "declare what comes out", parameter="validate"):
        frame.dp.declare(CHANGES[name], validate=True, **EACH)
    frame.dp.declare(CHANGES[name], **EACH)


def test_schemas_of_polars_say_what_those_of_pandas_do():
    polars = pytest.importorskip("polars")
    pp = pytest.importorskip("pandera.polars")

    class Trips(pp.DataFrameModel):
        fare: float = pp.Field(ge=0, le=100)
        zone: str = pp.Field(isin=["a", "b"])
        n: int = pp.Field(gt=0, lt=5)
        paid: bool
        day: polars.Date

    facts = from_pandera.facts(Trips)
    assert facts["fare"].bounds == (0, 100)
    assert [*facts["zone"].keys] == ["a", "b"]
    assert facts["zone"].type == "string"
    assert (facts["n"].bounds, facts["n"].integer) == ((1, 4), True)
    assert [*facts["paid"].keys] == [False, True]
    scan = dpf.scan(polars.DataFrame({"zone": ["a"], "fare": [1.0]}))
    scan.dp.declare(Trips, **EACH)
    assert list(scan.dp.count("zone", epsilon=1).index) == ["a", "b"]


def test_what_is_not_used_is_listed():
    own = pa.Check(lambda cells: cells.isin(["A"]), name="isin")  # merely named so
    schema = pa.DataFrameSchema(
        {
            "z": pa.Column(str, [own, pa.Check.notin(["x"])]),
            "day_.*": pa.Column(float, regex=True),
            "fare": pa.Column(float, [GE, LE]),
        },
        index=pa.Index(int, pa.Check.ge(0)),
    )
    frame = ROWS.copy()
    frame.dp.declare(schema, **EACH)
    shown = repr(frame.dp.declaration)
    assert frame.dp.declaration.columns["z"].keys is None
    for words in ("'z': isin", "'z': notin", "a regex names no column", "reset_index"):
        assert shown.count(words) == 1
    assert "'fare':" not in shown


def test_facts_of_an_index_hold_for_the_columns_that_it_becomes():
    schema = pa.DataFrameSchema({}, index=pa.Index(str, pa.Check.isin(["A", "B"]), name="zone"))
    frame = pd.DataFrame({"zone": ["A", "B"]}).set_index("zone").reset_index()
    frame.dp.declare(schema, **EACH)
    assert list(frame.dp.count("zone", epsilon=1).index) == ["A", "B"]


def test_a_unit_of_one_row_each_has_a_cap_of_one():
    for schema in (
        pa.DataFrameSchema({"n": pa.Column(int, unique=True)}),
        pa.DataFrameSchema({"n": pa.Column(int), "z": pa.Column(str)}, unique=["n"]),
    ):
        frame = ROWS.copy()
        frame.dp.declare(schema, privacy_unit="n")
        assert frame.dp.declaration.caps.rows == 1
        frame.dp.declare(schema, privacy_unit="n", max_rows=3)
        assert frame.dp.declaration.caps.rows == 3
    with pytest.raises(DeclarationError, match="cap"):
        ROWS.copy().dp.declare(schema, privacy_unit="z")


def test_declared_types_speak_where_dtypes_do_not():
    frame = pd.DataFrame({"zone": pd.Series(["A", 7], dtype=object)})
    frame.dp.declare(types={"zone": "string"}, budget=dpf.Budget(epsilon=9), **EACH)
    with raises(QueryError, "no row can match", parameter="keys"):
        frame.dp.count("zone", keys=[7], epsilon=1)
    with raises(DeclarationError, "must be one of", parameter="types", label="zone"):
        frame.dp.declare(types={"zone": "text"})
