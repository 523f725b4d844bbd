"""Readers of text files type ids by what is in other cells: a number and its text are one unit."""

import warnings

import dask
import pandas as pd
import pytest
from support.dasking import of_parts

import dpframe as dpf
from dpframe.columns.buckets import unit_buckets
from dpframe.errors import DPFrameWarning

EXACT = {"epsilon": 1e9, "mechanism": "laplace"}
BUDGET = {"budget": dpf.Budget(epsilon=2e9)}


def counted(frame):
    """Count units of one row each."""
    frame.dp.declare(privacy_unit="u", max_rows=1, **BUDGET)
    return frame.dp.count(**EXACT)["count"].item()


def test_no_warning_tells_whether_one_id_made_the_column_objects():
    for ids in ([1, 2], [1, "2"]):
        with warnings.catch_warnings():
            warnings.simplefilter("error", DPFrameWarning)
            pd.DataFrame({"u": ids}).dp.declare(privacy_unit="u", max_rows=1)


@pytest.mark.parametrize("parts", [1, 2])
def test_an_id_is_one_unit_in_any_form(parts):
    ids = pd.Series([7, "7", 7.0, "07", "seven", 7.5, "7.5", True, "1"], dtype=object)
    frame = pd.DataFrame({"u": ids})
    with dask.config.set({"dataframe.convert-string": False}):
        frame = frame if parts == 1 else of_parts([frame.iloc[:1], frame.iloc[1:]])
        assert counted(frame) == 5


@pytest.mark.parametrize("numbers", [[7, -5, 0, 2**62], [0.5, 1e300, -2.5, 7.0, float("inf")]])
def test_numbers_and_their_texts_share_a_bucket(numbers):
    texts = [repr(n) if n != 7 else "7" for n in numbers]
    of_numbers = unit_buckets([pd.Series(numbers)], 10_007)
    for dtype in (object, "str", "string"):
        assert unit_buckets([pd.Series(texts, dtype=dtype)], 10_007).tolist() == of_numbers.tolist()
