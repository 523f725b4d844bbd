"""An odd cell of one unit, of whatever class, changes nothing of what others add to any total.

It may change the dtype of a whole column: each row adds what it adds in a frame without it. All
classes of cells and kinds of columns are tried in `tests/audit/test_odd_cells.py`.
"""

import pytest
from support.odd_cells import HONEST, ODD, check_added, frame_of, made

import dpframe as dpf

FEW = ["imaginary", "odd integer", "nested", "year one", "decimal", "number in text"]


@pytest.mark.sampled(every=14, full=18)
@pytest.mark.parametrize("odd", FEW)
@pytest.mark.parametrize("name", ["integers", "floats", "times", "texts", "mixed"])
@pytest.mark.parametrize("where", ["x", "k", "u"])
def test_others_add_what_they_add_alone(where, name, odd):
    cells = [*HONEST[name], ODD[odd]]
    frame = frame_of(made("guessed", cells), where)
    others = frame_of(made("guessed", cells[:-1]), where)
    check_added(frame, others, name, where)


def test_the_numbers_of_a_column_outlive_a_complex_one():
    frame = frame_of(made("guessed", [5] * 100 + [1j]), "x")
    assert frame["x"].dtype == complex
    frame.dp.declare(bounds={"x": (0, 10)})
    exact = {"epsilon": 1e12, "privacy_unit": dpf.EACH_ROW}
    assert frame.dp.sum("x", **exact).iloc[0, 0] == pytest.approx(500)
    assert frame.dp.count(where="x > 1", **exact).iloc[0, 0] == 100
    assert frame.dp.histogram("x", [0, 4, 8], **exact)["count"].tolist() == [0, 100]
    assert frame.dp.quantile("x", 0.5, **exact).iloc[0, 0] == pytest.approx(5, abs=0.1)
