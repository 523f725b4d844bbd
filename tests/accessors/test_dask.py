"""Releases of Dask collections: when they compute, what they show, and how they get `.dp`."""

import decimal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from support.dasking import (
    ALL,
    FACTS,
    SCHEMA,
    dask,
    dd,
    exactly,
    of_parts,
    series,
    split,
    survey,
    totals,
)

import dpframe as dpf
from dpframe.engines import dask as engine_module
from dpframe.engines import engine_for
from dpframe.errors import (
    BudgetExceededError,
    DeclarationError,
    QueryError,
    ReleaseError,
    UnknownColumnError,
)
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term


@pytest.fixture(autouse=True)
def one_thread():
    """Threads are asked for where they matter."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


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
    accessor.plan(dpf.count(by="k"), epsilon=1)
    with pytest.raises(BudgetExceededError):
        accessor.count(by="k", epsilon=2)
    with pytest.raises(UnknownColumnError):
        accessor.count(by="q", epsilon=1)
    assert watched.seen == []
    accessor.count(by="k", epsilon=1)
    assert watched.seen == [1, 1, 1]


def test_errors_of_the_graph_quote_nothing_and_stay_charged():
    watched = Watched(LookupError("the disk is gone"))
    watched.frame.dp.declare(budget=dpf.Budget(epsilon=1))
    with pytest.raises(ReleaseError, match=r"^(?!.*the disk is gone)"):
        watched.frame.dp.count(epsilon=1)
    assert watched.frame.dp.budget.spent.epsilon == 1


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_warnings_are_not_shown_and_filters_stay(scheduler):
    def loud(part):
        warnings.warn(f"private: {part.x.iloc[0]}", RuntimeWarning, stacklevel=1)
        return part

    frame = pd.DataFrame(
        {"u": range(400), "x": series([1e300, decimal.Decimal(7)] * 200, "object")}
    )
    collection = split(frame, 20).map_partitions(loud, meta=frame.iloc[:0])
    collection.dp.declare(bounds={"x": (0, 1e100)}, privacy_unit="u", max_rows=1)
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
    task = Task(Cells((KeyAxis(key, pd.Index([2, 1])),)), (Term("rows"),), unit=(unit,), caps=ALL)
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
        read = engine_module._project(collection, labels).optimize()
        assert all(list(one.columns) == ["zone"] for one in read.expr.walk())


def test_a_declaration_stays_with_its_collection():
    collection = split(survey(), 2)
    budget = dpf.Budget(epsilon=2)
    assert collection.dp.declare(**FACTS, budget=budget) is collection.dp
    collection.dp.count(by="zone", epsilon=1)
    collection["half"] = collection.fare / 2
    assert collection.dp.budget.spent.epsilon == 1
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


def run(script):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("first", ["dpframe", "dask.dataframe"])
def test_nothing_is_registered_without_being_asked_for(first):
    script = f"""
import importlib, sys
importlib.import_module({first!r})
import dpframe as dpf
assert ("dask" in sys.modules) == {first != "dpframe"}
import dask.dataframe as dd, pandas as pd
assert not hasattr(dd.DataFrame, "dp")
ddf = dd.from_pandas(pd.DataFrame({{"a": [1]}}), npartitions=1)
for ask in (dpf.declare, lambda frame: dpf.release(frame, dpf.count(), epsilon=1)):
    try:
        ask(ddf)
    except dpf.errors.DeclarationError as error:
        assert "`import dpframe.dask`" in str(error)
    else:
        raise AssertionError
import dpframe.dask
dpf.declare(ddf, ledger=dpf.Ledger(budget=dpf.Budget(epsilon=1)), privacy_unit=dpf.EACH_ROW)
ddf.dp.count(epsilon=1)
assert type(ddf.dp).__name__ == "PrivateAccessor"
assert not hasattr(dd.Series, "dp")
assert not any(type(one).__module__.startswith("dpframe") for one in sys.meta_path)
"""
    run(script)


@pytest.mark.full
def test_without_dask_the_import_says_what_to_install():
    script = """
import sys
sys.modules["dask"] = None
import dpframe
try:
    import dpframe.dask
except ImportError as error:
    assert "[dask]'" in str(error)
else:
    raise AssertionError
"""
    run(script)
