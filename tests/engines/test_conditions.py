"""Many conditions in one task, more than the masks that a block keeps."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from support.randomness import SYSTEM

from dpframe.engines import engine_for, sums
from dpframe.engines.blocks import _MOST_KEPT
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition


@pytest.mark.parametrize("keys", [None, [0, 1, 2]])
def test_more_conditions_than_are_kept_are_counted(keys):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.normal(size=500), "g": rng.integers(0, 3, 500)})
    conditions = [Condition.parse(f"x > {edge}") for edge in np.linspace(-2, 2, 200).tolist()]
    cells = Cells(() if keys is None else (KeyAxis("g", pd.Index(keys)),))
    assert len(conditions) > _MOST_KEPT
    terms = [Term("rows", where=one) for one in (*conditions, *conditions[:3])]
    whole = Condition.parse("g > 0")
    task = Task(cells, (Term("rows"), *terms), whole)
    found = engine_for(frame).totals(frame, [task], SYSTEM)[0]
    kept = frame[frame["g"] > 0]
    columns = [kept, *(kept[kept["x"] > edge] for edge in np.linspace(-2, 2, 200))]
    groups = [[one] if keys is None else [one[one["g"] == key] for key in keys] for one in columns]
    expected = [[len(group) for group in row] for row in groups]
    assert found.tolist() == [*expected, *expected[1:4]]


@pytest.mark.parametrize("rows_a_set", [1, 10**6])
@pytest.mark.parametrize("keys", [None, [0, 1, 2]])
def test_terms_of_many_conditions_are_those_of_the_rows_that_meet_each(keys, rows_a_set):
    """However they are added up: by the sets of conditions that rows meet, or one by one."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {"x": rng.normal(size=900), "y": rng.normal(size=900), "g": rng.integers(0, 4, 900)}
    )
    frame.loc[::7, "x"] = np.nan
    grid = Grid.for_bounds(-1, 2)
    plain = [Term("rows"), *(Term(kind, "x", grid) for kind in ("sum", "valid", "square"))]
    edges = [f"y > {edge}" for edge in (-1, 0, 0.5, 2)]
    conditions = [*map(Condition.parse, [*edges, "x < 0 or g == 1", "g >= 2 and y < 1"])]
    terms = [replace(term, where=where) for where in (*conditions, None) for term in plain]
    cells = Cells(() if keys is None else (KeyAxis("g", pd.Index(keys)),))
    with mock.patch.object(sums, "_ROWS_A_SET", rows_a_set):
        found = engine_for(frame).totals(frame, [Task(cells, tuple(terms))], SYSTEM)[0]
    alone = [Task(cells, (replace(term, where=None),), term.where) for term in terms]
    expected = engine_for(frame).totals(frame, alone, SYSTEM)
    assert found.tolist() == [one[0].tolist() for one in expected]
