"""Groups that are functions of a column: bins, periods, truths, and a key for all other rows."""

import importlib

import pandas as pd
import pytest
from support.planning import Overrides, read_plan
from support.raising import raises

import dpframe as dpf
from dpframe.errors import DeclarationError, QueryError

EDGES = [0, 18, 45, 65]
NIGHT = pd.Timestamp("2023-10-29", tz="Europe/Paris")  # an hour comes twice
MUCH = {"epsilon": 1e6, "privacy_unit": dpf.EACH_ROW}  # hardly any noise


def counts(frame, query):
    """Release a count with hardly any noise, and round it."""
    released = dpf.release(frame, query, **MUCH)
    return [round(number) for number in released["count"]]


@pytest.mark.parametrize("kind", ["int64", "float64", "times", "durations"])
def test_all_that_bins_agrees_on_every_edge(kind):
    made = {
        "times": lambda edge: pd.Timestamp("2024-01-01") + pd.Timedelta(edge, "D"),
        "durations": lambda edge: pd.Timedelta(edge, "h"),
    }.get(kind, lambda edge: edge)
    edges = [made(edge) for edge in EDGES]
    for number, edge in enumerate(edges):
        frame = pd.DataFrame({"x": [edge] * 7})
        frame = frame if kind in ("times", "durations") else frame.astype(kind)
        wanted = [7 if at == max(number - 1, 0) else 0 for at in range(3)]
        assert counts(frame, dpf.histogram("x", edges)) == wanted
        assert counts(frame, dpf.ranges("x", edges)) == wanted
        assert counts(frame, dpf.count(dpf.cut("x", edges))) == wanted
        left = [7 if at == min(number, 2) else 0 for at in range(3)]
        assert counts(frame, dpf.count(dpf.cut("x", edges, right=False))) == left


def test_bins_are_written_with_their_edges():
    assert list(dpf.cut("x", EDGES).labels) == ["[0, 18]", "(18, 45]", "(45, 65]"]
    assert list(dpf.cut("x", [0.5, 1.0], right=False).labels) == ["[0.5, 1]"]
    days = [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-01 12:00")]
    assert list(dpf.cut("x", days).labels) == ["[2024-01-01, 2024-02-01 12:00:00]"]
    assert list(dpf.cut("x", [0, 1, 2], labels=["low", "high"]).labels) == ["low", "high"]
    frame = pd.DataFrame({"x": [0.5, -1, 1e9, None, 2.0]})
    assert counts(frame, dpf.count(dpf.cut("x", [-float("inf"), 0, 1]))) == [1, 1]


def test_rows_are_in_the_period_that_pandas_gives_them():
    days = pd.date_range("2022-11-20", "2024-03-03", freq="17h")
    frame = pd.DataFrame({"day": days})
    for freq, first, last in (
        ("Y", "2023", "2023"),
        ("Q", "2023Q1", "2024Q1"),
        ("W", days[30], days[90]),
    ):
        query = dpf.count(dpf.period("day", freq, first, last))
        of_pandas = frame["day"].dt.to_period(query.cuts["day"].labels.freq)
        wanted = [int((of_pandas == key).sum()) for key in query.cuts["day"].labels]
        assert counts(frame, query) == wanted
    zoned = pd.DataFrame({"day": days.tz_localize("UTC").tz_convert("Europe/Paris")})
    first = pd.Timestamp("2023-10-01", tz="Europe/Paris")
    found = counts(zoned, dpf.count(dpf.period("day", "M", first, "2023-11")))
    months = zoned["day"].dt.tz_localize(None).dt.to_period("M")
    assert found == [int((months == month).sum()) for month in ("2023-10", "2023-11")]


@pytest.mark.parametrize("door", ["pandas", "parquet", "csv", "dask", "arrow", "polars", "duckdb"])
def test_every_door_counts_the_same(door, tmp_path):
    pytest.importorskip("dask" if door == "dask" else "pyarrow")
    rows = range(500)
    frame = pd.DataFrame(
        {
            "g": ["AB?"[k % 3] for k in rows],
            "x": [float(k % 70) if k % 11 else None for k in rows],
            "day": pd.Timestamp("2023-01-01") + pd.to_timedelta([k * 3 for k in rows], "D"),
            "b": pd.array([[True, False, None][k % 7 % 3] for k in rows], "boolean"),
        }
    ).astype({"day": "datetime64[us]"})
    by = ["g", dpf.cut("x", EDGES), dpf.period("day", "Y", "2023", "2025"), "b"]
    query = dpf.count(by, keys={"g": ["A", "B"]}, other={"g": "rest"})
    wanted = frame.assign(g=frame["g"].replace("?", "rest"), day=frame["day"].dt.to_period("Y"))
    wanted["x"] = pd.cut(wanted["x"], EDGES, include_lowest=True)
    every = wanted.groupby(["g", "x", "day", "b"], observed=False).size()
    every = every[every.index.get_level_values("day").year <= 2025]
    assert counts(_through(door, frame, tmp_path), query) == every.tolist()


def _through(door, frame, folder):
    file = folder / f"x.{door}"
    match door:
        case "pandas":
            return frame
        case "dask":
            importlib.import_module("dpframe.dask")
            return importlib.import_module("dask.dataframe").from_pandas(frame, npartitions=3)
        case "parquet":
            frame.to_parquet(file, index=False)
            return dpf.scan_parquet(file)
        case "csv":
            frame.to_csv(file, index=False)
            types = {"g": "string", "x": "float64", "day": "datetime", "b": "bool"}
            return dpf.scan(file, types=types)
    table = pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    made = {
        "arrow": lambda: table,
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        "duckdb": lambda: pytest.importorskip("duckdb").from_arrow(table),
    }
    return dpf.scan(made[door]())


def test_named_aggregation_is_that_of_pandas():
    frame = pd.DataFrame({"g": list("AABB"), "x": [1.0, None, 3.0, 5.0]})
    frame.dp.declare(keys={"g": ["A", "B"]}, bounds={"x": (0, 10)}, privacy_unit=dpf.EACH_ROW)
    query = dpf.aggregate("g", n=("x", "size"), k=("x", "count"), x=pd.NamedAgg("x", "mean"))
    found = dpf.release(frame, query, epsilon=1e6)
    own = frame.groupby("g").agg(n=("x", "size"), k=("x", "count"), x=("x", "mean"))
    pd.testing.assert_frame_equal(found.round(3), own, check_dtype=False)
    for called, way in (("nunique", "dpf.units"), ("median", "dpf.quantile"), (sum, "must name")):
        with raises(QueryError, way, parameter="n"):
            dpf.aggregate("g", n=("x", called))


def test_bins_of_a_number_lie_between_declared_bounds():
    frame = pd.DataFrame({"x": [0.0, 5.0, 10.0, 11.0]})
    with raises(DeclarationError, "bounds", parameter="bounds", label="x"):
        dpf.release(frame, dpf.histogram("x", 2), epsilon=1, privacy_unit=dpf.EACH_ROW)
    frame.dp.declare(bounds={"x": (0, 10)}, privacy_unit=dpf.EACH_ROW)
    assert counts(frame, dpf.histogram("x", 2)) == [2, 1]  # what lies beyond is left out
    assert counts(frame, dpf.ranges("x", 2)) == [2, 2]
    assert frame.dp.suggest_caps is not None
    both = {"a": dpf.histogram("x", 2), "b": dpf.histogram("x", 2)}  # measured as one
    assert len(frame.dp.plan(both, epsilon=1).release()["b"]) == 2


def test_the_key_for_all_other_rows_keeps_queries_apart():
    frame = pd.DataFrame({"g": list("AAAB?")})
    keys = {"g": ["A", "B"]}
    both = {
        "with": dpf.count("g", keys=keys, other="?"),
        "without": dpf.count("g", keys={"g": ["A", "B", "?"]}),
    }
    found = dpf.release(frame.assign(g=list("AAABZ")), both, **MUCH)
    assert found["with"]["count"].round().tolist() == [3, 1, 1]
    assert found["without"]["count"].round().tolist() == [3, 1, 0]
    with raises(QueryError, "keys by column", parameter="other"):
        dpf.release(frame, dpf.count("g", keys=pd.DataFrame(keys), other="?"), **MUCH)


@pytest.mark.parametrize(
    ("make", "words", "parameter"),
    [
        (lambda: dpf.cut(["x"], EDGES), "label of one column", "column"),
        (lambda: dpf.cut("x", [1]), "two edges", "bins"),
        (lambda: dpf.cut("x", EDGES, labels=["a", "b"]), "3 different texts", "labels"),
        (lambda: dpf.cut("x", EDGES, labels=["a", "b", "b"]), "3 different texts", "labels"),
        (lambda: dpf.cut("x", EDGES, right="no"), "True or False", "right"),
        (lambda: dpf.period("x", "B", "2024", "2025"), "must be one of 'Y'", "freq"),
        (lambda: dpf.period("x", "Y", 2024, "2025"), "a period of 'Y'", "first"),
        (lambda: dpf.period("x", "M", "2024-01", "2023-01"), "from first='2024-01' on", "last"),
        (lambda: dpf.period("x", "h", NIGHT, "2023-10-30"), "has once", "first"),
        (lambda: dpf.count(["x", dpf.cut("x", EDGES)]), "column twice", "by"),
        (lambda: dpf.count(dpf.cut("x", EDGES), other="x"), "columns with keys", "other"),
    ],
)
def test_what_is_no_group_is_refused(make, words, parameter):
    with raises(QueryError, words, parameter=parameter):
        make()


def test_a_cut_column_takes_no_keys_but_combinations_of_its_own():
    frame = pd.DataFrame({"x": [1, 20], "g": ["A", "B"]})
    cut = dpf.cut("x", EDGES)
    with raises(QueryError, "Leave it out of keys", parameter="keys", label="x"):
        dpf.release(frame, dpf.count(cut, keys={"x": [1]}), **MUCH)
    keys = pd.DataFrame({"g": ["B", "A"], "x": ["(18, 45]", "(18, 45]"]})
    assert counts(frame, dpf.count(["g", cut], keys=keys)) == [1, 0]
    with raises(QueryError, "none of its bins", parameter="keys", label="x"):
        dpf.release(frame, dpf.count(["g", cut], keys=keys.assign(x="?")), **MUCH)


def test_truths_bring_their_keys_where_the_type_is_public():
    values = [True, False, True]
    for dtype in ("boolean", "bool[pyarrow]"):
        frame = pd.DataFrame({"b": pd.array(values, dtype)})
        assert counts(frame, dpf.count("b")) == [1, 2]
        assert frame.dp.plan(dpf.count("b"), **MUCH).fits
    with raises(DeclarationError, "no public keys", parameter="keys", label="b"):
        dpf.release(pd.DataFrame({"b": values}), dpf.count("b"), **MUCH)


def test_a_plan_file_gives_the_groups_of_the_functions(tmp_path):
    plan = tmp_path / "plan.toml"
    asked = """
    [declare]
    each_row = true
    [queries.n]
    kind = "count"
    by = ["g", { cut = "x", edges = [0, 18, 45], right = false },
          { period = "day", freq = "M", first = "2024-01", last = "2024-03" }]
    keys.g = ["A"]
    other.g = "rest"
    [queries.h]
    kind = "histogram"
    column = "x"
    bins = 4
    [ledger]
    path = "x.ledger"
    [release]
    files = "{query}.csv"
    epsilon = 1
    name = "n"
    [data]
    path = "x.csv"
    """
    plan.write_text(asked)
    query = read_plan(plan, Overrides()).queries["n"]
    assert query.by == ("g", "x", "day") and query.other == {"g": "rest"}
    assert list(query.cuts["x"].labels) == ["[0, 18)", "[18, 45]"]
    assert list(map(str, query.cuts["day"].labels)) == ["2024-01", "2024-02", "2024-03"]
    plan.write_text(asked.replace("edges = [0, 18, 45]", "edges = [0]"))
    with pytest.raises(dpf.errors.PlanFileError, match=r"queries\.n.*two edges"):
        read_plan(plan, Overrides())
    plan.write_text(asked.replace('freq = "M"', 'frek = "M"'))
    with pytest.raises(dpf.errors.PlanFileError, match="Did you mean 'freq'"):
        read_plan(plan, Overrides())
