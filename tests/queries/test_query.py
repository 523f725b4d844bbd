"""Kinds of queries say what they ask for, and no other module asks for their kind."""

import pandas as pd
import pytest

from dpframe import Query
from dpframe.queries.query import OutputSpec


def test_a_query_that_does_not_say_what_it_asks_for_cannot_be_made():
    with pytest.raises(TypeError, match="outputs"):
        Query(("zone",), subject="silence")


def test_a_new_kind_is_released_without_being_known_anywhere():
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]})
    mean = OutputSpec("fare", "mean", "fare", bounds={"fare": (0, 9)})
    outputs = OutputSpec("rows", "count"), mean
    query = Query(("zone",), outputs=outputs, subject="rows and their mean fare")
    spend = {"epsilon": 1e9, "mechanism": "laplace"}
    released = frame.dp.release(query, **spend)
    assert released["rows"].tolist() == [2, 1]
    assert released["fare"].tolist() == pytest.approx([2, 2])
    kinds_of = [column.kind for column in released.dp.certificate.columns]
    assert kinds_of == ["count", "mean"]
    assert released.dp.certificate.query.words == "rows and their mean fare by zone"
    assert list(frame.dp.plan(query, **spend).table["per"]) == ["cell", "1 / rows"]
