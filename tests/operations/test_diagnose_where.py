"""A diagnosis says why no row satisfies a condition, where kinds alone decide it."""

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf

ALONE = "no row satisfies it"


@pytest.fixture
def trips():
    rows = np.arange(60)
    frame = pd.DataFrame(
        {
            "zone": pd.Series(np.array(["A", "B", None])[rows % 3], dtype=object),
            "hour": rows % 24,
            "month": pd.period_range("2024-01", periods=60, freq="M"),
            "start": pd.date_range("2024-01-01", periods=60),
            "on": pd.date_range("2024-01-01", periods=60).astype(object),
        }
    )
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    return frame


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("hour == '1'", "'1' is a text, the column hour holds numbers"),
        ("month == '2024-01'", "'2024-01' is a text, the column month holds other values"),
        ("on > 5", "5 is a number, the column on holds times"),
        ("on == 'noon'", "'noon' is a text, the column on holds times"),
        ("1 == zone", "1 is a number, the column zone holds texts"),
        ("hour >= 0 and zone in [1, 2]", "1 is a number, the column zone holds texts"),
        ("start >= '2030-01-01'", ""),
        ("hour > 24", ""),
        ("zone == 'C' or zone == 'D'", ""),
    ],
)
def test_it_says_why_no_row_is_left(trips, where, said):
    whole = f"{ALONE}: {said}, and these are not compared" if said else ALONE
    line = trips.dp.diagnose(dpf.count(where=where)).loc[("rows", f"where {where}: not met")]
    assert (line["left"], line["hint"]) == (0, whole)
    query = dpf.aggregate(n=dpf.count(), some=dpf.sum("hour", bounds=(0, 23), where=where))
    found = dpf.diagnose(trips, query)["hint"]
    assert found[f"values of hour where {where}", f"where {where}: not met"] == whole


@pytest.mark.parametrize("where", ["zone == 'A'", "zone != 1", "hour < 24 or hour == '1'"])
def test_it_says_nothing_where_rows_are_left(trips, where):
    assert not trips.dp.diagnose(dpf.count(where=where))["hint"].any()


def test_it_says_nothing_of_no_rows():
    frame = pd.DataFrame({"hour": pd.Series([], dtype=int)})
    frame.dp.declare(privacy_unit=dpf.EACH_ROW)
    assert not frame.dp.diagnose(dpf.count(where="hour == '1'"))["hint"].any()
