"""Readers of text files type ids by what is in other cells: a number and its text are one unit."""

import io

import pandas as pd
import pytest
from support.dasking import of_parts

import dpframe as dpf
from dpframe.columns.buckets import unit_buckets
from dpframe.errors import DPFrameWarning

EXACT = {"epsilon": 1e9, "mechanism": "laplace"}


def test_ids_that_pandas_types_by_chunks_are_one_unit_each():
    people = 60_000
    ids = [str(person) for person in range(people)] * 2
    ids[3] = "n/k"
    rows = "\n".join(f"{person},{'x' * 40}" for person in ids)
    frame = pd.read_csv(io.StringIO(f"person,note\n{rows}\n"))
    kinds = {type(person) for person in frame["person"]}
    assert kinds == {int, str}  # several chunks
    with pytest.warns(DPFrameWarning, match="read ids as text"):
        frame.dp.declare(privacy_unit="person", max_rows=1, budget=dpf.Budget(epsilon=2e9))
    assert frame.dp.count(**EXACT)["count"].item() == people + 1


@pytest.mark.parametrize(
    "make", [lambda whole: whole, lambda whole: of_parts([whole[:3], whole[3:]])]
)
def test_an_id_is_one_unit_in_any_form(make):
    ids = pd.Series([7, "7", 7.0, "07", "seven", 7.5, "7.5", True, "1"], dtype=object)
    frame = make(pd.DataFrame({"u": ids}))
    with pytest.warns(DPFrameWarning):
        frame.dp.declare(privacy_unit="u", max_rows=1, budget=dpf.Budget(epsilon=2e9))
    assert frame.dp.count(**EXACT)["count"].item() == 5


@pytest.mark.parametrize("numbers", [[7, -5, 0, 2**62], [0.5, 1e300, -2.5, 7.0]])
def test_numbers_and_their_texts_share_a_bucket(numbers):
    texts = [str(int(n)) if n == int(n) and abs(n) < 2**63 else repr(n) for n in numbers]
    of_numbers = unit_buckets([pd.Series(numbers)], 10_007)
    for dtype in (object, "str", "string"):
        assert unit_buckets([pd.Series(texts, dtype=dtype)], 10_007).tolist() == of_numbers.tolist()


def test_texts_are_told_apart_as_they_are():
    frame = pd.DataFrame({"u": ["7", "07", "7.0", " 7", "+7", "7e0"]})
    frame.dp.declare(privacy_unit="u", max_rows=1, budget=dpf.Budget(epsilon=2e9))
    assert frame.dp.count(**EXACT)["count"].item() == len(frame)
