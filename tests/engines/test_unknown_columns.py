"""What is said of a label that no column of the frame has; labels are public."""

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe.errors import UnknownColumnError

LOTS = {"epsilon": 1, "privacy_unit": dpf.EACH_ROW}


@pytest.fixture
def census():
    return pd.DataFrame({"YEAR": [2020, 2021], "Sex": ["f", "m"], "age": [7001, 7002]})


@pytest.mark.parametrize("levels", [["YEAR"], ["YEAR", "Sex"]], ids=str)
def test_levels_of_the_index_are_no_columns(census, levels):
    indexed = census.set_index(levels)
    with raises(UnknownColumnError, "in the index:", label="YEAR") as said:
        indexed.dp.count("YEAR", keys=[2020], **LOTS)
    assert "700" not in str(said.value)
    with raises(UnknownColumnError, "in the index", label="YEAR"):
        indexed.dp.declare(keys={"YEAR": [2020]})
    made = indexed.reset_index().dp.count("YEAR", keys=[2020], **LOTS)
    assert dpf.verify(made).state == "released"


def test_several_columns_are_a_list(census):
    with pytest.raises(UnknownColumnError, match=r"given as a list: \['YEAR', 'Sex'\]"):
        census.dp.count(("YEAR", "Sex"), keys=[(2020, "f")], **LOTS)
    with raises(UnknownColumnError, "It has") as said:
        census.dp.count(("YEAR", "x"), keys=[2020], **LOTS)
    assert "as a list" not in str(said.value)


@pytest.mark.parametrize(
    ("label", "meant"), [("year", "YEAR"), ("SEX", "Sex"), ("Age", "age"), ("yaer", "YEAR")]
)
def test_case_does_not_hide_what_is_meant(census, label, meant):
    with pytest.raises(UnknownColumnError, match=f"Did you mean '{meant}'"):
        census.dp.count(label, keys=[1], **LOTS)
    with pytest.raises(UnknownColumnError, match=f"Did you mean '{meant}'"):
        census.dp.count(where=f"{label} == 1", **LOTS)


def test_all_that_differ_in_case_are_named():
    frame = pd.DataFrame({"Fare": [1], "fare": [2]})
    with raises(UnknownColumnError, "mean", label="fares"):
        frame.dp.count("fares", keys=[1], **LOTS)
