"""Many conditions in one task, more than the masks that a block keeps."""

import numpy as np
import pandas as pd
import pytest
from support.randomness import SYSTEM

from dpframe.engines import engine_for
from dpframe.engines.blocks import _MOST_KEPT
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
