"""Releases in Parquet files: written only if they read back, with the extra named if it misses."""

from fractions import Fraction

import pandas as pd
import pytest
from support.raising import raises

import dpframe as dpf
from dpframe import columns
from dpframe.errors import CertificateError, DPFrameError, QueryError


@pytest.fixture
def released():
    trips = pd.DataFrame({"zone": ["A", "B"]})
    return dpf.release(trips, dpf.count("zone", keys=["A", "B", "C"]), epsilon=1)


def test_a_release_reads_back(released, tmp_path):
    for path in (tmp_path / "one.parquet", str(tmp_path / "two.parquet")):
        dpf.write_parquet(released, path)
        assert dpf.verify(pd.read_parquet(path)) == released.dp.certificate
    released.dp.write_parquet(tmp_path / "three.parquet")
    assert (tmp_path / "three.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()


def test_what_was_changed_is_not_written(released, tmp_path):
    released["count"] += 1000
    with pytest.raises(CertificateError):
        released.dp.write_parquet(tmp_path / "one.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("keys", [[Fraction(1, 3), "A"], ["A", 1], [(1, 2), (3, 4)]])
def test_keys_that_do_not_read_back_are_not_written(tmp_path, keys):
    trips = pd.DataFrame({"zone": ["A", "B"]}, dtype=object)
    released = dpf.release(trips, dpf.count("zone", keys=keys), epsilon=1)
    with pytest.raises(CertificateError, match="does not read back from Parquet"):
        released.dp.write_parquet(tmp_path / "one.parquet")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(released, tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "pa", None)
    with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[parquet\]'"):
        released.dp.write_parquet(tmp_path / "one.parquet")


@pytest.mark.parametrize("path", ["", None, 3])
def test_paths_are_paths(released, path):
    with raises(QueryError, parameter="path"):
        dpf.write_parquet(released, path)
