"""A kind of frame without `attrs`: what is made of a declared one is not declared."""

import copy
import pickle

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.declaration.facts import kept_declaration
from dpframe.engines import ENGINES
from dpframe.engines.base import check_labels
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import DeclarationError


class Rows:
    """A frame of another library: columns in a dict."""

    def __init__(self, columns):
        self.columns = columns

    def first(self, number):
        """The first rows."""
        return Rows({label: cells[:number] for label, cells in self.columns.items()})


class RowsEngine:
    """Reads such frames by way of pandas; they carry no mark."""

    def __init__(self):
        self.engine = PandasEngine()

    def handles(self, frame):
        return isinstance(frame, Rows)

    def columns(self, frame):
        return list(frame.columns)

    def check(self, frame, columns):
        check_labels(self.columns(frame), columns)

    def mark(self, frame):
        pass

    def is_derived(self, frame):
        return False

    def attrs(self, frame):
        return {}

    def manifest(self, frame):
        return self.engine.manifest(pd.DataFrame(frame.columns))

    def totals(self, frame, tasks, context):
        return self.engine.totals(pd.DataFrame(frame.columns), tasks, context)


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr("dpframe.engines.ENGINES", [*ENGINES, RowsEngine()])
    frame = Rows({"zone": ["A", "B"] * 50, "driver": list(range(100))})
    dpf.declare(
        frame,
        privacy_unit="driver",
        max_rows=1,
        keys={"zone": ["A", "B"]},
        budget=dpf.Budget(epsilon=1000),
    )
    return frame


def count(frame):
    return dpf.release(frame, dpf.count(by="zone"), epsilon=100)


@pytest.mark.parametrize(
    "derive",
    [copy.copy, copy.deepcopy, lambda rows: pickle.loads(pickle.dumps(rows))],  # noqa: S301
    ids=["copy", "deep copy", "pickle"],
)
def test_a_copy_of_what_the_object_holds_is_refused(rows, derive):
    derived = derive(rows)
    assert derived.__dict__.keys() == rows.__dict__.keys()
    with raises(DeclarationError, "derived from a declared frame"):
        count(derived)
    assert kept_declaration(rows).ledger.entries == ()


def test_what_bears_no_trace_is_a_frame_without_declaration(rows):
    derived = rows.first(30)
    with raises(dpf.errors.DPFrameError, "keys"):
        count(derived)
    assert kept_declaration(rows).ledger.entries == ()
    # it can be declared anew, with the budget of the first
    dpf.declare(
        derived,
        privacy_unit="driver",
        max_rows=1,
        keys={"zone": ["A", "B"]},
        ledger=kept_declaration(rows).ledger,
    )
    count(derived)
    assert len(kept_declaration(rows).ledger.entries) == 1
