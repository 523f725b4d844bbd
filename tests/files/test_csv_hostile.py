"""CSV files from anywhere: what changes no cell is read, and the rest is refused in clear words."""

import os
import sys

import pandas as pd
import pytest
from support.publishing import sidecar_of
from support.raising import raises

import dpframe as dpf
from dpframe import read_csv, write_csv
from dpframe.errors import CertificateError, QueryError, UnreadableCertificateError


def released():
    private = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    query = dpf.aggregate(
        "zone", keys=["A", "B"], n=dpf.count(), total=dpf.sum("fare", bounds=(0, 3))
    )
    return dpf.release(private, query, epsilon=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data + b"\n\n",
        lambda data: data + b"\r\n",
        lambda data: data.rstrip(b"\n"),
        lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n") + b"\r\n",
    ],
    ids=["a mark", "empty lines", "an end of Windows", "no end", "Windows"],
)
def test_what_editors_add_around_a_table_changes_nothing(change, tmp_path):
    place = tmp_path / "zones.csv"
    frame = released()
    write_csv(frame, place)
    place.write_bytes(change(place.read_bytes()))
    assert read_csv(place).equals(frame)


@pytest.mark.parametrize("path", ["", None, 3, b"zones.csv"], ids=str)
def test_what_is_no_path_is_refused(path):
    with raises(QueryError, "the path of a CSV file", parameter="path"):
        read_csv(path)
    with raises(QueryError, "the path of a CSV file", parameter="path"):
        write_csv(released(), path)


def test_of_two_files_the_missing_one_is_named(tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(released(), place)
    place.unlink()
    with pytest.raises(FileNotFoundError, match=r"but for its certificate 'zones\.csv") as found:
        read_csv(place)
    assert found.value.filename == str(place)
    write_csv(released(), place)
    sidecar_of(place).unlink()
    with pytest.raises(CertificateError, match=r"there is no 'zones\.csv\.certificate\.json'"):
        read_csv(place)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"\x00",
        bytes(range(256)),
        b"[" * 10_000,
        b'{"format": ' + b"9" * 5000 + b"}",
        b'{"format": 1, "format": 1}',
    ],
    ids=["nothing", "half", "a NUL", "bytes", "depth", "digits", "a name twice"],
)
def test_sidecars_that_are_no_json_are_called_damaged(garbage, tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(released(), place)
    sidecar_of(place).write_bytes(garbage)
    with pytest.raises(UnreadableCertificateError, match=r"certificate\.json' is damaged, or no"):
        read_csv(place)


def test_a_field_that_comes_twice_is_refused(tmp_path):
    place = tmp_path / "zones.csv"
    write_csv(released(), place)
    text = sidecar_of(place).read_text()
    twice = text.replace('"joint": false', '"joint": true, "joint": false')
    assert twice != text
    sidecar_of(place).write_text(twice)
    with pytest.raises(UnreadableCertificateError, match="each name comes once"):
        read_csv(place)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need rights there")
def test_the_certificate_is_beside_the_file_that_a_link_leads_to(tmp_path):
    frame, store = released(), tmp_path / "store"
    store.mkdir()
    link = tmp_path / "latest.csv"
    link.symlink_to(store / "zones.csv")
    write_csv(frame, link)
    assert sorted(path.name for path in store.iterdir()) == [
        "zones.csv",
        "zones.csv.certificate.json",
    ]
    for place in (link, store / "zones.csv"):
        assert read_csv(place).equals(frame)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need rights there")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_certificate_that_is_no_file_cannot_be_read(tmp_path, make):
    place = tmp_path / "zones.csv"
    write_csv(released(), place)
    sidecar_of(place).unlink()
    make(sidecar_of(place))
    with pytest.raises(UnreadableCertificateError, match="a folder, a device or a pipe"):
        read_csv(place)
