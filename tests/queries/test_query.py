"""Kinds of queries say what they ask for, and no other module asks for their kind."""

import pandas as pd
import pytest

import dpframe as dpf
from dpframe import Query
from dpframe.frozen import frozen
from dpframe.queries import aggregate, of_columns, regression
from dpframe.queries.binned import Histogram
from dpframe.queries.query import OutputSpec

ALL = [
    dpf.count("zone", where="fare > 0"),
    dpf.sum(["fare", "tip"], "zone", where="fare > 0"),
    dpf.mean("fare"),
    dpf.histogram("fare", [0, 1, 2], "zone", where="tip > 0"),
    dpf.aggregate(
        "zone",
        where="fare > 0",
        n=dpf.count(where="toll > 0"),
        s=dpf.sum("tip", where="fare < 9", bounds=(0, 5)),
    ),
    dpf.aggregate(n=dpf.count(where="toll > 0"), m=dpf.mean("tip", where="toll > 0")),
    dpf.units("zone", where="fare > 0"),
    dpf.rate("tip > fare", "zone", where="fare > 0"),
    dpf.var(["fare", "tip"], "zone", bounds=(0, 9)),
    dpf.std("fare", where="tip > 0"),
    dpf.cov("fare", "tip", "zone"),
    dpf.corr("fare", "tip", bounds=(0, 9)),
    dpf.slope("fare", "tip", where="toll > 0"),
    dpf.regression("fare", ["tip", "toll"], "zone", where="toll > 0"),
]


def test_every_kind_is_tried_here():
    modules = (of_columns, of_columns, regression, aggregate)
    named = [(module, value) for module in modules for value in vars(module).values()]
    known = {
        kind for at, kind in named if isinstance(kind, type) and kind.__module__ == at.__name__
    }
    known |= {Histogram}
    known = {kind for kind in known if issubclass(kind, Query) and kind.__name__[0] != "_"}
    assert {type(query) for query in ALL} == known - {aggregate.Joint}  # made by plans alone


def test_a_kind_that_does_not_say_what_it_asks_for_cannot_be_made():
    class Silent(Query):
        """Says what it is, and not what it asks for."""

        subject = "silence"

    with pytest.raises(TypeError, match=r"abstract method.* .?outputs"):
        Silent()


@frozen(eq=False)
class Both(Query):
    """A kind that no module knows."""

    subject = "rows and their mean fare"

    @property
    def outputs(self):
        return OutputSpec("rows", "count"), OutputSpec(
            "fare", "mean", "fare", bounds={"fare": (0, 9)}
        )


def test_a_new_kind_is_released_without_being_known_anywhere():
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]})
    query = Both(by=("zone",))
    spend = {"epsilon": 1e9, "mechanism": "laplace"}
    released = frame.dp.release(query, **spend)
    assert released["rows"].tolist() == [2, 1]
    assert released["fare"].tolist() == pytest.approx([2, 2])
    kinds_of = [column.kind for column in released.dp.certificate.columns]
    assert kinds_of == ["count", "mean"]
    assert released.dp.certificate.query.words == "rows and their mean fare by zone"
    assert list(frame.dp.plan(query, **spend).table["per"]) == ["cell", "1 / rows"]
