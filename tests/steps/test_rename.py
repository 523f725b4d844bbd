"""Releases under other names: what they say of themselves, and which names are refused."""

import pytest
from support.publishing import released

import dpframe as dpf
from dpframe.errors import CertificateError, QueryError


def test_names_change_wherever_they_are_said():
    frame = released("denoised")
    made = frame.dp.rename({"count": "flights"}, levels={"zone": "borough"})
    assert list(made.columns) == ["flights", "flights_denoised"]
    assert list(made.index.names) == ["borough"] and list(frame.index.names) == ["zone"]
    assert "renamed zone to borough, count to flights" in repr(made.dp.certificate)
    assert list(made.dp.interval().columns) == ["flights_low", "flights_high"]
    assert dpf.verify(made, against=frame).columns == frame.dp.certificate.columns


def test_keys_change_in_any_layout():
    frame = released("two keys")
    made = frame.dp.rename(keys={"zone": {"A": "Alpha"}, "day": {0: "Monday"}})
    assert made.index[0] == ("Alpha", "Monday")
    assert dpf.certify(made["count"].unstack("day"), of=made).loc["Alpha", "Monday"] > 0
    wide = frame.unstack("day").dp.rename(keys={"day": {0: "Monday"}})
    assert wide["count"].columns[0] == "Monday" and wide.dp.interval().index[0] == ("A", "Monday")
    again = made.dp.rename(keys={"zone": {"Alpha": "First"}})
    assert dpf.verify(again.reset_index(), against=frame) and again.index[0][0] == "First"


@pytest.mark.parametrize(
    ("names", "levels", "message"),
    [
        ({"fee": "x"}, None, "columns must be among"),
        ({"fare": "flights"}, None, "'flights' would be the name of two"),
        ({"fare": "zone"}, None, "'zone' would be the name of two"),
        ({"fare": 1}, None, "columns of 'fare' must be texts"),
        ({"fare": ""}, None, "columns of 'fare' must be texts"),
        ({"fare": "\ud800"}, None, "columns of 'fare' must be texts"),
        (None, {"day": "x"}, "levels must be among"),
        (str.upper, None, r"columns must be a dict .* such as \{'count': 'trips'\}"),
        (["x"], None, r"columns must be a dict .* got columns=\['x'\]"),
        (None, "x", "levels must be a dict"),
    ],
)
def test_names_are_checked(names, levels, message):
    with pytest.raises(QueryError, match=message):
        released("several").dp.rename(names, levels=levels)


@pytest.mark.parametrize(
    "keys", ["x", {"day": {}}, {"zone": "A"}, {"zone": {"Z": "x"}}, {"zone": {"A": "B"}}]
)
def test_keys_are_checked(keys):
    with pytest.raises(QueryError, match=r"keys.* must"):
        released("several").dp.rename(keys=keys)


def test_the_record_says_what_exchanged_names_are_of():
    frame = released("several")
    made = frame.dp.rename({"paid": "flights", "flights": "paid"})
    assert made["paid"].tolist() == frame["flights"].tolist()
    assert dpf.verify(made, against=frame)
    with pytest.raises(CertificateError, match="neither the released one nor a rounding"):
        dpf.verify(made.set_axis(frame.columns, axis=1))
