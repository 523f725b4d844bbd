"""Certificates that anybody may have written: read as they are meant, or refused as unreadable."""

import copy
import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from support.certifying import carry_text, read_certificate, record_of

import dpframe as dpf
from dpframe.cells.record import ATTRIBUTE, RECORD
from dpframe.errors import CertificateError, UnreadableCertificateError


def released(**spend):
    trips = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2, 3]})
    query = dpf.aggregate("zone", keys=["A", "B"], n=dpf.count(), m=dpf.mean("fare", bounds=(0, 9)))
    return dpf.release(trips, query, **(spend or {"epsilon": 1}))


def deep(levels):
    made = []
    for _ in range(levels):
        made = [made]
    return made


def looped():
    made = {}
    made["again"] = made
    return made


ODD = {
    "nothing": None,
    "a text": "released",
    "a number": 1.5,
    "a list": [],
    "an empty object": {},
    "an object of something else": {"epsilon": 1},
    "a deep list": deep(300),
    "a list too deep for Python": deep(100_000),
    "a loop": looped(),
    "a set": {1, 2},
    "bytes": b"x",
    "an array": np.zeros(2),
    "a format that is a text": {"format": "2"},
    "a format that is an array": {"format": np.zeros(2)},
    "a format too long to show": {"format": 10**5000},
    "keys of two types": {1: 1, "a": 2},
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_certificate_is_refused(name):
    with pytest.raises(UnreadableCertificateError, match="this certificate cannot be read: "):
        read_certificate(ODD[name])
    frame = released()
    frame.attrs[ATTRIBUTE] = {RECORD: ODD[name]}
    for use in (dpf.verify, dpf.interval, lambda frame: frame.dp.certificate):
        with pytest.raises(CertificateError):
            use(frame)


VALUES = [None, True, -1, "x", [], {}, 1e308, 10**400, float("nan"), float("inf"), deep(300), [[0]]]


def leaves(value, path=()):
    """Give the way to each value of a record."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(below, (*path, key))


@pytest.mark.full
def test_any_value_anywhere_is_read_or_refused():
    record = record_of(released(mu=1))
    refused = 0
    for path in leaves(record):
        for value in VALUES:
            spoiled = copy.deepcopy(record)
            part = spoiled
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
            try:
                certificate = read_certificate(spoiled)
            except CertificateError as error:  # of a test, or unreadable
                refused += 1
                assert len(str(error)) < 500
            else:
                assert certificate.to_dict() == spoiled
                assert repr(certificate)
                assert certificate._repr_html_()
    assert refused > 500


def test_the_first_fault_is_named():
    record = record_of(released())
    record["releases"][0]["columns"][0]["noise"] = {"scale": "one", "step": 1.0, "members": 1}
    with pytest.raises(
        UnreadableCertificateError, match=r"releases\.0\.columns\.0\.noise\.scale: "
    ):
        read_certificate(record)
    record["releases"][0]["columns"][0]["noise"] = None
    del record["releases"][0]["ledger"]
    with pytest.raises(UnreadableCertificateError, match="ledger: Field required"):
        read_certificate(record)


@pytest.mark.full
def test_releases_need_no_pydantic():
    code = (
        "import sys, pandas as pd, dpframe as dpf; "
        "frame = pd.DataFrame({'x': [1, 2]}); "
        "frame.dp.histogram('x', range(20), epsilon=1, denoise='auto'); "
        "sys.exit(any(name in sys.modules for name in ('pydantic', 'pandera')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_truth_is_no_number():
    frame = released(mu=1).dp.denoise("nonnegative", columns="n")
    record = record_of(frame)
    tried = 0
    for path in leaves(record):
        spoiled = copy.deepcopy(record)
        part = spoiled
        for key in path[:-1]:
            part = part[key]
        if type(part[path[-1]]) not in {int, float}:
            continue
        tried += 1
        part[path[-1]] = True
        with pytest.raises(UnreadableCertificateError):
            read_certificate(spoiled)
    assert tried > 15


def long(change):
    record = record_of(released())
    change(record)
    return record


LONG = {
    "a name": lambda: long(lambda record: record.update({"x" * 10**7: 1})),
    "a name of a block": lambda: long(
        lambda r: r["releases"][0]["mechanism"]["scales"].update({"x" * 10**7: 1})
    ),
    "a text": lambda: long(lambda record: record["releases"][0].update(covariance="x" * 10**7)),
    "a text with a pattern": lambda: long(
        lambda r: r["releases"][0].update(library="dpframe " + "x" * 10**7)
    ),
    "a number": lambda: long(lambda record: record["releases"][0]["query"].update(cells=10**4000)),
    "halves of characters": lambda: long(
        lambda r: r["releases"][0].update(covariance="\ud800" * 10**6)
    ),
    "numbers in base64": lambda: long(
        lambda r: r["releases"][0]["columns"][0]["features"]["rows"]["loadings"].update(
            {"0": {"float64": "AAAA" * 10**6 + "="}}
        )
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_long_certificates_are_answered_shortly_and_soon(name):
    frame = carry_text(released(), json.dumps(LONG[name]()))
    begun = time.perf_counter()
    with pytest.raises(CertificateError) as found:
        dpf.verify(frame)
    assert time.perf_counter() - begun < 1
    assert len(str(found.value)) < 500


def test_what_is_no_object_at_all_is_told_without_the_name_of_a_field():
    frame = pd.DataFrame({"n": [1]})
    frame.attrs["dpframe"] = "released"
    with pytest.raises(UnreadableCertificateError, match="this certificate cannot be read: "):
        dpf.verify(frame)
