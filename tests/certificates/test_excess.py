"""Certificates with more in them than any has: refused soon, whatever it is and wherever."""

import json
import random
import time

import pandas as pd
import pytest
from support.certifying import read_certificate, record_of
from support.publishing import sidecar_of
from support.swelling import PAYLOADS, put, swollen, ways

import dpframe as dpf
from dpframe.certificates.json_records import ExcessError, check_excess, check_json, is_large
from dpframe.errors import CertificateError, UnreadableCertificateError

SECONDS = 2  # of the processor
SIZE = 50_000


def released(columns=1, groups=2):
    frame = pd.DataFrame({"zone": ["A", "B"], "fare": [1.0, 2.0]})
    outputs = {f"n{at}": dpf.count(where=f"fare > {at}") for at in range(columns)}
    query = dpf.aggregate("zone", keys=[f"g{at}" for at in range(groups)], **outputs)
    return dpf.release(frame, query, epsilon=1, privacy_unit=dpf.EACH_ROW)


RECORD = record_of(released().dp.rename({"n0": "n"}))
CASES = [(way, name) for way in ways(RECORD) for name in PAYLOADS]
ALLOWED = [
    (("releases", 0, "mechanism", "groups"), "lists"),
    (("table", "levels", 0, "name"), "a text"),
    (("table", "levels", 0, "keys", "zlib"), "a text"),  # read when a table is
    (("table", "columns", 0, "label"), "a text"),
    (("table", "alias", "columns", '"n"'), "a text"),
    (("table", "rows"), "a long number"),
]
FEW = random.Random(1).sample(CASES, 40)


def refused(record) -> str:
    begun = time.thread_time()
    with pytest.raises(UnreadableCertificateError) as error:
        read_certificate(record)
    assert time.thread_time() - begun < SECONDS
    assert len(str(error.value)) < 500
    return str(error.value)


@pytest.mark.parametrize("name", PAYLOADS)
def test_columns_of_anything_are_refused_soon(name):
    refused(put(RECORD, ("table", "columns"), PAYLOADS[name](SIZE), beside=True))


@pytest.mark.parametrize("case", FEW, ids=str)
def test_anything_anywhere_is_refused_soon(case):
    begun = time.thread_time()
    try:
        read_certificate(swollen(RECORD, case, SIZE))
    except UnreadableCertificateError as error:
        assert len(str(error)) < 500
    else:  # a digest of a certificate does not care how long a name is
        assert case in ALLOWED
    assert time.thread_time() - begun < SECONDS


def test_the_first_piece_that_is_wrong_is_named():
    record = record_of(released(columns=100))
    spoiled = put(record, ("releases", 0, "columns", 73, "name"), 1)
    assert "columns.73.name: " in refused(spoiled)
    del spoiled["releases"][0]["ledger"]
    assert "ledger: Field required" in refused(spoiled)
    assert "other: no field" in refused({**record, "other": 1})
    scales = record["releases"][0]["mechanism"]["scales"]
    spoiled = put(record, ("releases", 0, "mechanism", "scales", next(iter(scales))), "x")
    assert "mechanism.noise.scales" in refused(spoiled)


def test_values_are_counted_at_all_levels():
    assert not is_large([[1, {"a": 2}]])
    assert is_large({"a": [[1] * 100] * 4})
    assert not is_large({"float64": "AAAA" * 10**6})
    assert is_large({"float64": [1] * 500})
    shared = [1] * 10
    for _ in range(30):  # few lists, very many values
        shared = [shared] * 10
    with pytest.raises(ExcessError, match="values"):
        check_excess(shared)
    with pytest.raises(ExcessError, match="deep"):
        check_excess(json.loads("[" * 60 + "]" * 60))
    with pytest.raises(ExcessError, match="characters"):
        check_excess({"a": ["x" * 2**25]})
    with pytest.raises(ExcessError, match="values"):
        check_json("[" + "{}," * 2 * 10**6 + "{}]")


@pytest.mark.full
def test_a_release_of_very_many_columns_is_verified_and_published(tmp_path):
    frame = released(columns=400)
    begun = time.thread_time()
    assert len(dpf.verify(frame).columns) == 400
    dpf.write_csv(frame, tmp_path / "x.csv")
    assert dpf.read_csv(tmp_path / "x.csv").equals(frame)
    assert frame.dp.interval().shape == (2, 800)
    assert frame.dp.suppress(below=-(10**9)).dp.round(0).shape == (2, 400)
    assert frame.dp.denoise("nonnegative", columns="n7").shape == (2, 401)
    # one copy of the certificate for each column took two minutes
    assert time.thread_time() - begun < 30


def test_a_sidecar_of_very_many_values_is_not_parsed(tmp_path):
    path = tmp_path / "x.csv"
    dpf.write_csv(released(), path)
    sidecar_of(path).write_bytes(b'{"format": 3, "x": [' + b"{}," * 2 * 10**6 + b"{}]}")
    begun = time.thread_time()
    with pytest.raises(UnreadableCertificateError, match="values"):
        dpf.read_csv(path)
    assert time.thread_time() - begun < SECONDS


def test_lines_beyond_those_of_the_release_are_not_read(tmp_path):
    path = tmp_path / "x.csv"
    dpf.write_csv(released(), path)
    path.write_bytes(path.read_bytes() + b"\n" * 10**7 + b"x")
    begun = time.thread_time()
    with pytest.raises(CertificateError, match="not what was written"):
        dpf.read_csv(path)
    assert time.thread_time() - begun < SECONDS


def test_a_device_is_not_read(tmp_path):
    with pytest.raises(OSError, match="not a file"):
        dpf.read_csv("/dev/zero")
