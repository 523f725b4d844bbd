"""Certificates with steps, as a file may bring them: schema and reader agree on what is one."""

import copy

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from support.publishing import STEPS, released

import dpframe as dpf
from dpframe.certificates.json_records import Packed
from dpframe.certificates.verify import attach, read_certificate
from dpframe.errors import UnreadableCertificateError

VALIDATOR = Draft202012Validator(dpf.certificate_schema())
ALL = STEPS | {
    "unstack": lambda frame: frame.dp.unstack(),
    "concat": lambda frame: dpf.concat(
        {"one": frame.dp.select("day > 0"), "other": frame.dp.select("day == 0")}, name="part"
    ),
}


def packed(*numbers):
    return {"float64": Packed.of(np.array(numbers, float)).float64}


def is_taken(record):
    try:
        read = read_certificate(record).to_dict() == record
    except UnreadableCertificateError:
        read = False
    assert VALIDATOR.is_valid(record) == read
    return read


@pytest.fixture(scope="module", params=ALL)
def record(request):
    made = ALL[request.param](released("two keys"))
    found = made.attrs["dpframe"]
    assert is_taken(found)
    return found


def test_every_field_of_a_step_is_required_and_no_other_allowed(record):
    step = record["steps"][-1]
    for field in step:
        spoiled = copy.deepcopy(record)
        del spoiled["steps"][-1][field]
        assert not is_taken(spoiled), field
    spoiled = copy.deepcopy(record)
    spoiled["steps"][-1]["more"] = 1
    assert not is_taken(spoiled)


def test_other_steps_are_not_read(record):
    spoiled = copy.deepcopy(record)
    spoiled["steps"][-1]["step"] = "pivot"
    assert not is_taken(spoiled)


PLACES = [(0.5,), (-1,), (np.nan,), (np.inf,), (0, 0), (1e300,)]


@pytest.mark.parametrize("places", PLACES, ids=str)
@pytest.mark.parametrize("name", ["select", "unstack", "concat"])
def test_positions_are_whole_numbers_each_once(name, places):
    record = ALL[name](released("two keys")).attrs["dpframe"]
    holder = {
        "select": lambda: record["steps"][0].update(rows=packed(*places)),
        "unstack": lambda: record["unstacked"].update(places=packed(*places)),
        "concat": lambda: record["releases"][0].update(rows=packed(*places)),
    }
    holder[name]()
    with pytest.raises(UnreadableCertificateError, match="positions are whole numbers"):
        read_certificate(record)


def test_rows_of_releases_are_all_rows():
    record = ALL["concat"](released("two keys")).attrs["dpframe"]
    record["releases"][0]["rows"] = packed(5, 6)
    with pytest.raises(UnreadableCertificateError, match="each row is of one release"):
        read_certificate(record)


def test_cells_that_are_not_in_the_table_are_refused():
    wide = released("two keys").dp.unstack()
    frame = pd.DataFrame(wide)
    certificate = wide.dp.certificate
    certificate.to_dict()
    far = copy.deepcopy(certificate.to_dict())
    far["unstacked"]["places"] = packed(*range(100, 112))
    attach(frame, read_certificate(far))
    with pytest.raises(UnreadableCertificateError, match="cells that the table does not have"):
        dpf.interval(frame)
