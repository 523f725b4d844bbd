"""Engines of others are registered: by a call, or by an entry point of what is installed."""

from importlib.metadata import EntryPoint

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe import engines
from dpframe.engines import Engine, label_counts, register, totals_of
from dpframe.errors import DeclarationError, DPFrameError, UnknownColumnError


class Table:
    """A frame of another library."""

    def __init__(self, columns):
        self.columns = columns


class TableEngine(Engine):
    """The least that an engine must write."""

    def handles(self, frame):
        return isinstance(frame, Table)

    def columns(self, frame):
        return list(frame.columns)

    def totals(self, frame, tasks, context):
        return totals_of([pd.DataFrame(frame.columns)], tasks, context)

    def labels(self, frame, task, context):
        return label_counts([pd.DataFrame(frame.columns)], [task], context)[0]


class Half:
    """An engine without most of its methods."""

    def handles(self, frame):
        return False


TABLE_ENGINE = TableEngine()


@pytest.fixture(autouse=True)
def _own_engines(monkeypatch):
    monkeypatch.setattr(engines, "ENGINES", list(engines.ENGINES))
    monkeypatch.setattr(engines, "_REGISTERED", set())


def table():
    return Table({"zone": ["A", "B"] * 50, "rider": list(range(100))})


def install(monkeypatch, *names):
    points = [EntryPoint(name.rpartition(":")[2], name, "dpframe.engines") for name in names]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)


def test_what_is_registered_is_released():
    with raises(DeclarationError, "got a", parameter="frame"):
        dpf.release(table(), dpf.count(), epsilon=1)
    register(TABLE_ENGINE)
    private = table()
    dpf.declare(
        private,
        privacy_unit="rider",
        max_rows=1,
        keys={"zone": ["A", "B"]},
        budget=dpf.Budget(epsilon=99),
    )
    released = dpf.release(private, dpf.count("zone"), epsilon=60)
    assert released["count"].tolist() == pytest.approx([50, 50], abs=2)  # else: below 1e-20
    assert not hasattr(private, "dp")
    with raises(UnknownColumnError, "zone", label="zonne"):
        dpf.release(private, dpf.count("zonne"), epsilon=1)
    with raises(DPFrameError, "puts no rows together"):
        dpf.diagnose(private, dpf.count("zone"))


def test_a_class_of_frames_gets_the_accessor(monkeypatch):
    class Own(Table):
        pass

    class Taken(Table):
        dp = 3

    register(TABLE_ENGINE, accessor=Own)
    register(TABLE_ENGINE, accessor=Own)
    frame = Own(table().columns)
    frame.dp.declare(privacy_unit="rider", max_rows=1, keys={"zone": ["A", "B"]})
    assert frame.dp.count("zone", epsilon=1).index.tolist() == ["A", "B"]
    assert Own.dp is type(frame.dp)
    with raises(DeclarationError, "no other attribute", parameter="accessor"):
        register(TABLE_ENGINE, accessor=Taken)
    with raises(DeclarationError, "class of frames", parameter="accessor"):
        register(TABLE_ENGINE, accessor="Own")


def test_an_engine_is_registered_once_and_after_those_that_are_there():
    before = list(engines.ENGINES)
    again = TableEngine()
    for engine in (TABLE_ENGINE, again):
        register(engine)
    assert engines.ENGINES == [*before, again]


@pytest.mark.parametrize("engine", [Half(), TableEngine, None, "spark"])
def test_what_is_no_engine_is_refused(engine):
    with raises(DeclarationError, "must", parameter="engine"):
        register(engine)


def test_installed_engines_are_found_when_they_are_needed(monkeypatch):
    install(monkeypatch, "not_there:ENGINE", f"{__name__}:Half", f"{__name__}:TABLE_ENGINE")
    before = list(engines.ENGINES)
    assert engines.engine_for(pd.DataFrame()) is before[0]
    assert engines.ENGINES == before
    assert engines.engine_for(table()) is TABLE_ENGINE
    with raises(DeclarationError, "ENGINE (ModuleNotFoundError), Half (DeclarationError)"):
        engines.engine_for([1])
    assert engines.ENGINES == [*before, TABLE_ENGINE]
