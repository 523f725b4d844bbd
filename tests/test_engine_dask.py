"""Collections of Dask add up to what one frame of pandas adds up to, however they are split."""

import decimal
import itertools
import math
import subprocess
import sys
import warnings
from datetime import timedelta
from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import dpframe as dpf
from dpframe.conditions import Condition
from dpframe.dask_accessor import register_dask_accessor
from dpframe.engines import dask as engine_module
from dpframe.engines import engine_for
from dpframe.errors import BudgetExceededError, DeclarationError, QueryError, UnknownColumnError
from dpframe.grid import Grid
from dpframe.privacy import Caps
from dpframe.totals import Cells, KeyAxis, Task, Term

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

ROWS = 60


@pytest.fixture(autouse=True)
def one_thread():
    """Threads are asked for where they matter."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def split(frame, partitions, *, empty=False):
    """Make a collection of slices of a frame, some of them without rows."""
    cuts = np.linspace(0, len(frame), partitions + 1).astype(int).tolist()
    if empty:
        cuts = sorted([0, *cuts, cuts[len(cuts) // 2], len(frame)])
    return of_parts([frame.iloc[start:end] for start, end in itertools.pairwise(cuts)])


def of_parts(parts, meta=None):
    """Make a collection of frames, whatever their dtypes are."""
    delayed = [dask.delayed(part) for part in parts]
    meta = parts[0].iloc[:0] if meta is None else meta
    return dd.from_delayed(delayed, meta=meta, verify_meta=False)


def totals(frame, *tasks):
    return engine_for(frame).totals(frame, tasks)


def exactly(ask, frame):
    """Release without noise."""
    silent = mock.patch.object(
        sys.modules["dpframe.release"], "integer_noise", lambda law, scale, n: np.zeros(n, np.int64)
    )
    with silent:
        return ask(frame)


def assert_same(released, expected):
    assert list(released) == list(expected)
    pd.testing.assert_frame_equal(released, expected, check_exact=True)


def series(values, dtype):
    objects = np.empty(len(values), object)
    objects[:] = values
    made = pd.Series(objects, dtype=object)
    return made if dtype == "object" else made.astype(dtype)


CYCLES = {
    "int64": [1, 2, 3, -7, 2**53 + 1, 2**53],
    "uint64": [1, 2, 2**64 - 1, 2**63, 3],
    "int8": [1, 2, 3, -128],
    "bool": [True, False, True],
    "boolean": [True, None, False, True],
    "Int64": [1, None, 2, 2**53 + 1, 3],
    "float64": [1.0, math.nan, 2.5, -0.0, math.inf, -math.inf, 3.0],
    "float32": [1.0, math.nan, 2.5, 3.0],
    "Float64": [1.0, None, 2.5, 3.0],
    "int64[pyarrow]": [1, None, 2, 2**53 + 1, 3],
    "double[pyarrow]": [1.0, None, 2.5, 3.0],
    "str": ["a", "b", None, "1"],
    "string[pyarrow]": ["a", "b", None, "1"],
    "category": ["a", 1, None, 2.5, "1"],
    "object": ["a", 1, 1.0, True, None, math.nan, (1, 2), [1], decimal.Decimal(2), 10**400, 1j],
    "datetime64[ns]": [*pd.date_range("2024-01-01", periods=5), pd.NaT],
    "datetime64[s]": [*pd.date_range("2024-01-01", periods=5, unit="s"), pd.NaT],
    "datetime64[us, Europe/Rome]": [
        *pd.date_range("2024-10-27", periods=5, freq="h", tz="Europe/Rome", unit="us"),
        pd.NaT,
    ],
    "timedelta64[ns]": [pd.Timedelta(hours=h) for h in (1, 2, 3)] + [pd.NaT],
}
KEYS = ["a", 1, 2.5, "1", 2**53 + 1, pd.Timestamp("2024-01-02"), pd.Timedelta(hours=2)]


def odd_frame(dtype):
    """Keys and units of one dtype, and numbers."""
    values = list(itertools.islice(itertools.cycle(CYCLES[dtype]), ROWS))
    column = series(values, dtype)
    places = np.arange(ROWS)
    return pd.DataFrame({"k": column, "u": column, "x": places % 9 / 4 - 1, "n": places % 5})


def by_key(*terms, **more):
    return Task(Cells((KeyAxis("k", pd.Index(KEYS, dtype=object)),)), terms, **more)


GRID = Grid.for_bounds(-1, 1)
ALL = Caps(rows=ROWS)
TASKS = [
    by_key(Term("rows"), Term("sum", "x", GRID)),
    by_key(Term("rows"), Term("valid", "k", GRID), where=Condition.parse("n > 1")),
    by_key(Term("rows"), Term("sum", "k", GRID), unit="u", caps=ALL),
    Task(Cells(), (Term("rows"), Term("units")), Condition.parse("x > 0"), unit="u", caps=ALL),
]


@pytest.mark.parametrize(
    ("dtype", "partitions"),
    [*((dtype, 3) for dtype in CYCLES), *itertools.product(["object", "int64"], [1, 20])],
)
def test_totals_are_those_of_one_frame(dtype, partitions):
    frame = odd_frame(dtype)
    collection = split(frame, partitions, empty=partitions > 1)
    for found, expected in zip(totals(collection, *TASKS), totals(frame, *TASKS), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
    assert totals(frame, TASKS[3])[0].sum() > 0


@pytest.mark.parametrize("dtype", ["str", "object", "int64"])
def test_categories_need_not_be_known(dtype):
    frame = odd_frame(dtype)
    split_frame = split(frame, 4)
    collection = split_frame.assign(
        k=split_frame.k.astype("category"), u=split_frame.u.astype("category")
    )
    if dtype == "object":  # a list is no category
        frame = frame.drop(frame.index[[isinstance(one, list) for one in frame.k]])
        parts = [frame.iloc[i::4].astype({"k": "category", "u": "category"}) for i in range(4)]
        collection = of_parts(parts)
    for found, expected in zip(totals(collection, *TASKS), totals(frame, *TASKS), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_partitions_may_differ_in_dtype():
    """What a row adds does not depend on rows elsewhere, though metadata promise another dtype."""
    parts = [
        pd.DataFrame({"k": [2**53 + 1, 1], "u": [2**53 + 1, 1], "x": [1, 2]}),
        pd.DataFrame({"k": [2.0**53, 1.0], "u": [2.0**53, 1.0], "x": [0.5, math.nan]}),
        pd.DataFrame({"k": ["a", True], "u": ["a", True], "x": [None, "x"]}),
        pd.DataFrame({"k": [], "u": [], "x": []}),
        pd.DataFrame({"k": ["a"], "u": ["a"], "x": [1]}, dtype="category"),
    ]
    objects = pd.concat([part.astype(object) for part in parts], ignore_index=True)
    tasks = [
        by_key(Term("rows"), Term("valid", "x", GRID), Term("sum", "x", GRID)),
        by_key(Term("rows"), Term("sum", "x", GRID), unit="u", caps=ALL),
        Task(Cells(), (Term("units"),), unit="u", caps=ALL),
    ]
    found = totals(of_parts(parts), *tasks)
    for total, expected in zip(found, totals(objects, *tasks), strict=True):
        np.testing.assert_array_equal(total, expected)
    assert found[2].item() == 4  # 2**53 + 1, 2**53, 1 and "a"


@pytest.mark.parametrize("other", [1.5, None, "a", pd.Timestamp("2024-01-02"), 2.5])
def test_values_stay_as_they_are_beside_those_of_another_dtype(other):
    parts = [pd.DataFrame({"k": [key], "u": [7]}) for key in (2**53 + 1, other)]
    task = by_key(Term("rows"), Term("sum", "k", Grid(0, 0, 2**60)), unit="u", caps=ALL)
    rows, sums = totals(of_parts(parts), task)[0]
    assert rows[KEYS.index(2**53 + 1)] == 1
    assert sums[KEYS.index(2**53 + 1)] == 2**53  # numbers are added as floats
    assert rows.sum() == 1 + (other in KEYS)


def test_zeros_of_either_sign_stay_as_they_are():
    parts = [pd.DataFrame({"u": [1, 1], "x": series([zero] * 2, "category")}) for zero in (0, -0.0)]
    task = Task(Cells(), (Term("rows"),), Condition.parse("1 / x < 0"), unit="u", caps=ALL)
    assert totals(of_parts(parts), task)[0].item() == 2


def survey():
    places = np.arange(400)
    answers = {f"q{j}": places * (j + 3) % 11 < 4 for j in range(12)}
    return pd.DataFrame(
        {
            "zone": np.array(["A", "B", "C", "D"])[places * places % 4],
            "hour": places % 5,
            "person": places % 37,
            "fare": np.where(places % 13, places % 97 / 3, math.nan),
            "took": pd.to_timedelta(places % 50, unit="m"),
            "at": pd.Timestamp("2024-03-01") + pd.to_timedelta(places, unit="h"),
            **answers,
        }
    )


FACTS = {
    "keys": {"zone": ["A", "B", "Z"], "hour": range(5)},
    "bounds": {
        "fare": (0, 30),
        "took": (timedelta(0), timedelta(hours=1)),
        "at": (pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-10")),
        **{f"q{j}": (0, 1) for j in range(12)},
    },
}
ANSWERS = [f"q{j}" for j in range(12)]
SCHEMA = pa.DataFrameSchema({name: pa.Column(bool) for name in ANSWERS})
ASKED = {
    "count": lambda f: f.dp.count(epsilon=1),
    "by one": lambda f: f.dp.count(by="zone", epsilon=1),
    "by several": lambda f: f.dp.count(by=["zone", "hour"], epsilon=1),
    "chosen": lambda f: f.dp.count(
        by=["zone", "hour"],
        keys=pd.DataFrame({"zone": ["B", "Z", "A"], "hour": [1, 2, 0]}),
        epsilon=1,
    ),
    "where": lambda f: f.dp.count(by="zone", where="fare > 7 and hour != 2", epsilon=1),
    "sum": lambda f: f.dp.sum(["fare", "took"], by="zone", epsilon=1, delta=1e-6),
    "mean": lambda f: f.dp.mean(["fare", "at"], by="hour", epsilon=1, delta=1e-6),
    "histogram": lambda f: f.dp.histogram("fare", [0, 5, 10, 30], by="zone", epsilon=1),
    "few": lambda f: f.dp.sum(ANSWERS, by="zone", epsilon=1, delta=1e-6),
    "aggregate": lambda f: f.dp.aggregate(
        by="zone",
        n=dpf.count(),
        early=dpf.count(where="hour < 2"),
        fares=dpf.sum("fare"),
        mean=dpf.mean("fare"),
        epsilon=1,
        delta=1e-6,
    ),
    "several": lambda f: f.dp.release(
        {"n": dpf.count(by="zone"), "fares": dpf.sum("fare", where="hour > 1")}, epsilon=1
    ),
}


@pytest.mark.parametrize("facts", [{}, {"missing": {"fare": 3}}], ids=["", "missing"])
@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "person", "max_rows": 11}], ids=["", "unit"])
@pytest.mark.parametrize("asked", ASKED)
def test_releases_are_those_of_one_frame(asked, unit, facts):
    frame = survey()
    collection = split(frame, 3)
    for one in (frame, collection):
        one.dp.declare(**FACTS, **unit, **facts)
    released, expected = (exactly(ASKED[asked], one) for one in (collection, frame))
    if asked != "several":
        released, expected = {"": released}, {"": expected}
    assert list(released) == list(expected)
    for name, table in released.items():
        assert_same(table, expected[name])
        assert dpf.verify(table)
    assert any(np.any(table.to_numpy()) for table in released.values())


def test_at_most_some_are_true():
    frame = survey().assign(**dict.fromkeys(ANSWERS, False))
    frame.loc[::2, ["q1", "q7", "q9"]] = True
    collection = split(frame, 3)
    for one in (frame, collection):
        one.dp.declare(SCHEMA, keys=FACTS["keys"])
    ask = lambda f: f.dp.sum(ANSWERS, by="zone", max_true=3, epsilon=1, delta=1e-6)  # noqa: E731
    assert_same(exactly(ask, collection), exactly(ask, frame))
    ask = lambda f: f.dp.sum(ANSWERS, max_true=1, epsilon=1, delta=1e-6)  # noqa: E731
    assert exactly(ask, collection)[ANSWERS].to_numpy().sum() == 200


WEIGHTS = 32 ** np.arange(12)  # digits of a sum tell what each unit adds
DIGITS = Grid(0, 0, 2**60)


def digits(total):
    return total[..., None] // WEIGHTS % 32


def crowd(units=range(12)):
    """Unit i has 3 + i rows, spread over all of a frame, whose weight is 32**i."""
    units = list(units)
    of = np.concatenate([np.arange(12)[3 + np.arange(12) > turn] for turn in range(14)])
    return pd.DataFrame(
        {"u": series([units[i] for i in of], "object"), "i": of, "x": WEIGHTS[of]}
    ).assign(k=lambda frame: frame.index // 5 % 3)


@pytest.mark.parametrize("partitions", [1, 3, 20, 90])
def test_no_unit_adds_more_than_its_rows(partitions):
    frame = crowd().infer_objects()
    collection = split(frame, min(partitions, len(frame)), empty=True)
    task = Task(Cells(), (Term("sum", "x", DIGITS), Term("units")), unit="u", caps=Caps(rows=5))
    for _ in range(2):
        found, units = totals(collection, task)[0][:, 0]
        assert digits(found).tolist() == [3, 4] + [5] * 10
        assert units == 12


@pytest.mark.parametrize("partitions", [3, 20])
def test_no_unit_adds_more_than_its_groups(partitions):
    collection = split(crowd(), partitions)
    cells = Cells((KeyAxis("k", pd.RangeIndex(3)),))
    task = Task(cells, (Term("sum", "x", DIGITS),), unit="u", caps=Caps(groups=2, rows_per_group=2))
    kept = digits(totals(collection, task)[0][0])
    assert kept.shape == (3, 12)
    assert kept.max() == 2
    assert (np.count_nonzero(kept, axis=0) == 2).all()
    other = [digits(totals(collection, task)[0][0]) for _ in range(8)]
    assert any((one != kept).any() for one in other)  # drawn anew: equal by chance below 1e-20


def test_what_is_drawn_has_keys_of_its_own():
    """A cluster computes a key once: two releases must not share what a cap kept."""
    task = Task(Cells(), (Term("rows"),), unit="u", caps=Caps(rows=2))
    collection = split(crowd(), 3)
    keys = [set(dict(engine_module._delayed(collection, [task]).dask)) for _ in range(2)]
    drawn = [{key for key in some if "_totaled_together" in str(key)} for some in keys]
    assert [len(some) for some in drawn] == [3, 3]
    assert not drawn[0] & drawn[1]


def test_rows_that_fail_the_condition_take_no_room():
    collection = split(crowd(), 4)
    asked = Task(Cells(), (Term("sum", "x", DIGITS),), unit="u", caps=Caps(rows=2))
    tasks = [
        Task(asked.cells, asked.terms, Condition.parse(where), asked.unit, asked.caps)
        for where in ("k == 0", "k == 1 or k == 2")
    ]
    for task in (*tasks, asked):
        (found,) = totals(collection, task)
        (together,) = totals(collection, *tasks, task)[2:]
        np.testing.assert_array_equal(digits(found), digits(together))
        rows = crowd().query(task.where.text if task.where else "k >= 0").groupby("i").size()
        expected = rows.clip(upper=2).reindex(range(12), fill_value=0)
        assert digits(found)[0, 0].tolist() == expected.tolist()


def test_equal_units_are_one_in_partitions_of_any_dtype():
    """Dask alone would hash 1, 1.0, True and Decimal(1) to partitions of their own."""
    ones = [1, 1.0, True, decimal.Decimal(1), 1 + 0j, np.float32(1)]
    moments = [pd.Timestamp("2024-01-01"), np.datetime64("2024-01-01", "s")]
    alike = [
        *(pd.Series([one] * 3) for one in ones[:3]),
        *(series([one] * 3, "object") for one in ones),
        *(series([1] * 3, dtype) for dtype in ("Int64", "category", "double[pyarrow]", "uint8")),
    ]
    times = [pd.Series([moments[1]] * 3), *(series([one] * 3, "object") for one in moments[:1])]
    for columns in (alike, times):
        parts = [pd.DataFrame({"u": column}) for column in columns]
        task = Task(Cells(), (Term("rows"), Term("units")), unit="u", caps=Caps(rows=4))
        assert totals(of_parts(parts), task)[0].ravel().tolist() == [4, 1]


def test_units_of_several_tasks_may_differ():
    frame = survey()
    tasks = [
        Task(Cells(), (Term("rows"), Term("units")), unit=unit, caps=Caps(rows=3))
        for unit in ("person", "zone", None, "person")
    ]
    tasks[2] = Task(Cells(), (Term("rows"),))
    found = [total.ravel().tolist() for total in totals(split(frame, 3), *tasks)]
    assert found == [[111, 37], [6, 2], [400], [111, 37]]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers_agree(scheduler):
    frame = survey()
    facts = {**FACTS, "privacy_unit": "person", "max_rows": 11}
    collection = split(frame, 3)
    for one in (frame, collection):
        one.dp.declare(**facts)
    with dask.config.set({"scheduler": scheduler, "num_workers": 2}):
        released = exactly(ASKED["aggregate"], collection)
    assert_same(released, exactly(ASKED["aggregate"], frame))


def test_progress_is_shown(capsys):
    progress = pytest.importorskip("dask.diagnostics")
    collection = split(survey(), 3)
    with progress.ProgressBar(dt=0.01):
        collection.dp.count(epsilon=1)
    assert "100%" in capsys.readouterr().out


def test_everything_is_computed_at_once():
    collection = split(survey(), 5)
    collection.dp.declare(**FACTS, privacy_unit="person", max_rows=3)
    with mock.patch.object(dask, "compute", wraps=dask.compute) as compute:
        collection.dp.release({"n": dpf.count(), "fares": dpf.sum("fare", by="zone")}, epsilon=1)
    assert compute.call_count == 1


class Watched:
    """A collection that says when it is computed, and what is on its ledger then."""

    def __init__(self, fail=None):
        self.seen = []
        self.fail = fail
        meta = pd.DataFrame({"k": [1], "u": [1]}).iloc[:0]
        self.frame = dd.from_map(self.part, range(3), meta=meta)

    def part(self, _):
        self.seen.append(len(self.frame.dp.ledger.entries))
        if self.fail is not None:
            raise self.fail
        return pd.DataFrame({"k": [1, 2], "u": [1, 2]})


def test_nothing_is_computed_before_the_ledger_is_charged():
    watched = Watched()
    accessor = watched.frame.dp.declare(
        keys={"k": [1, 2]}, privacy_unit="u", max_rows=1, budget=dpf.Budget(epsilon=1)
    )
    accessor.preview(dpf.count(by="k"), epsilon=1, compare=True)
    with pytest.raises(BudgetExceededError):
        accessor.count(by="k", epsilon=2)
    with pytest.raises(UnknownColumnError):
        accessor.count(by="q", epsilon=1)
    assert watched.seen == []
    accessor.count(by="k", epsilon=1)
    assert watched.seen == [1, 1, 1]


def test_errors_of_the_graph_pass_through_and_stay_charged():
    watched = Watched(LookupError("the disk is gone"))
    watched.frame.dp.declare(budget=dpf.Budget(epsilon=1))
    with pytest.raises(LookupError, match="the disk is gone"):
        watched.frame.dp.count(epsilon=1)
    assert watched.frame.dp.budget.spent_epsilon == 1


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_warnings_are_not_shown_and_filters_stay(scheduler):
    def loud(part):
        warnings.warn(f"private: {part.x.iloc[0]}", RuntimeWarning, stacklevel=1)
        return part

    frame = pd.DataFrame(
        {"u": range(400), "x": series([1e300, decimal.Decimal(7)] * 200, "object")}
    )
    collection = split(frame, 20).map_partitions(loud, meta=frame.iloc[:0])
    collection.dp.declare(bounds={"x": (0, 1e300)}, privacy_unit="u", max_rows=1)
    before = list(warnings.filters)
    with dask.config.set({"scheduler": scheduler, "num_workers": 4}):
        for _ in range(3):
            collection.dp.sum("x", where="x * 1e300 > 0", epsilon=1)
    assert warnings.filters == before


@pytest.mark.parametrize("labels", [("a", "b"), (0, 1), (True, "b"), (("a", 1), None)])
def test_columns_may_have_any_labels(labels):
    frame = pd.DataFrame({"k": [1, 2, 2, 1], "u": [1, 1, 2, 2], "more": 0.5})
    frame.columns = pd.Index([*labels, "more"], tupleize_cols=False)
    key, unit = labels
    task = Task(Cells((KeyAxis(key, pd.Index([2, 1])),)), (Term("rows"),), unit=unit, caps=ALL)
    parts = [frame.iloc[:1], frame.iloc[1:]]
    assert totals(of_parts(parts), task)[0].tolist() == [[2, 2]]
    assert engine_for(of_parts(parts)).columns(of_parts(parts)) == [key, unit, "more"]


def test_columns_are_checked_by_metadata():
    twice = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    collection = split(twice, 1)
    with pytest.raises(QueryError, match="2 columns of the frame are labeled 'a'"):
        collection.dp.count(by="a", keys=[1], epsilon=1)
    collection.dp.count(by="b", keys=[3], epsilon=1)
    with pytest.raises(UnknownColumnError, match="no column 'c'"):
        collection.dp.count(by="c", keys=[1], epsilon=1)
    with pytest.raises(DeclarationError, match="got a dask"):
        dpf.release(collection.b, dpf.count(), epsilon=1)


@pytest.mark.parametrize("count", [dpf.count(), dpf.count(by="zone", keys=["A"])])
def test_only_needed_columns_are_read(count, tmp_path):
    pytest.importorskip("pyarrow")
    for place, part in enumerate(np.array_split(np.arange(400), 3)):
        survey().iloc[part].to_parquet(tmp_path / f"{place}.parquet")
    collection = dd.read_parquet(tmp_path)
    assert len(exactly(lambda f: f.dp.release(count, epsilon=1), collection)) == 1
    found = exactly(lambda f: f.dp.count(epsilon=1), collection)
    assert found["count"].item() == 400
    for labels in (["zone"], []):
        read = engine_module._projected(collection, labels).optimize()
        assert all(list(one.columns) == ["zone"] for one in read.expr.walk())


def test_a_declaration_stays_with_its_collection():
    collection = split(survey(), 2)
    budget = dpf.Budget(epsilon=2)
    assert collection.dp.declare(**FACTS, budget=budget) is collection.dp
    collection.dp.count(by="zone", epsilon=1)
    collection["half"] = collection.fare / 2
    assert collection.dp.budget.spent_epsilon == 1
    other = split(survey().assign(own=1), 2)
    for derived in (collection[collection.hour > 1], collection.copy(), collection.merge(other)):
        with pytest.raises(DeclarationError, match="derived from a declared frame"):
            derived.dp.count(by="zone", keys=["A"], epsilon=0.1)
        derived.dp.declare(**FACTS, ledger=collection.dp.ledger)
    assert other.dp.declaration.ledger is None
    for derived in (collection.persist(), collection[collection.hour > 2]):
        derived.dp.declare(**FACTS, ledger=collection.dp.ledger)
        with pytest.raises(BudgetExceededError):
            derived.dp.count(by="zone", epsilon=1.5)
    with pytest.raises(DeclarationError, match=r"pandas.DataFrame in memory, got a DataFrame"):
        collection.dp.declare(SCHEMA, validate=True)


def test_the_accessor_is_registered_once():
    kind = dd.DataFrame.dp
    register_dask_accessor()  # a second time would warn
    assert dd.DataFrame.dp is kind
    assert not hasattr(dd.Series, "dp")


def run(script):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("first", ["dpframe", "dask", "dask.dataframe"])
def test_imports_may_come_in_any_order(first):
    script = f"""
import importlib, importlib.util, sys
importlib.import_module({first!r})
import dpframe
def hooks():
    return [one for one in sys.meta_path if type(one).__module__ == "dpframe.dask_accessor"]
if {first != "dask.dataframe"}:
    assert "dask.dataframe" not in sys.modules
    importlib.reload(dpframe)
    assert importlib.util.find_spec("dask.dataframe") is not None
    import dask.array
    assert len(hooks()) == 1
import dask.dataframe as dd
assert not hooks()
importlib.reload(dpframe)
importlib.reload(dd)
assert dd.DataFrame.dp.__name__ == "PrivateAccessor"
assert not hasattr(dd.Series, "dp")
"""
    run(script)


def test_importing_the_package_imports_no_dask():
    assert run("import sys, dpframe; print('dask' in sys.modules)").strip() == "False"


def test_a_broken_dask_fails_as_it_would_alone(tmp_path):
    broken = tmp_path / "dask" / "dataframe"
    broken.mkdir(parents=True)
    (tmp_path / "dask" / "__init__.py").write_text("")
    (broken / "__init__.py").write_text("raise OSError('no such thing')")
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import dpframe, pandas as pd, pathlib, importlib
for _ in range(2):
    try:
        import dask.dataframe
    except OSError as error:
        assert str(error) == "no such thing"
    else:
        raise AssertionError
pd.DataFrame({{"a": [1]}}).dp.count(epsilon=1)
pathlib.Path({str(broken)!r}, "__init__.py").write_text("DataFrame = None  # nothing to register")
importlib.invalidate_caches()
import dask.dataframe
assert dask.dataframe.DataFrame is None
"""
    run(script)
    run("import sys; sys.modules['dask'] = None; import dpframe")
