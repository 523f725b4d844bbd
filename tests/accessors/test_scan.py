"""A scan is declared and released from like a frame, and shows no more than its columns."""

from unittest import mock

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpframe as dpf
from dpframe import columns
from dpframe.engines import scans
from dpframe.errors import DeclarationError, DPFrameError, ReleaseError, UnknownColumnError

EXACT = {"epsilon": 1e6}
SCHEMA = pandera.DataFrameSchema(
    {
        "zone": pandera.Column(str, pandera.Check.isin(["A", "B", "C"])),
        "fare": pandera.Column(float, pandera.Check.in_range(0, 10)),
        "late": pandera.Column(bool),
        "early": pandera.Column(bool),
    }
)


@pytest.fixture
def frame():
    rows = np.arange(907)
    return pd.DataFrame(
        {
            "zone": np.array(list("ABC"))[rows % 3],
            "fare": rows % 7 * 1.5,
            "rider": rows % 50,
            "late": rows % 5 == 0,
            "early": rows % 4 == 0,
        }
    )


@pytest.fixture
def scan(frame, tmp_path):
    for part in range(4):
        frame.iloc[part::4].to_parquet(tmp_path / f"{part}.parquet", index=False)
    return dpf.scan_parquet(tmp_path, batch_rows=100)


CALLS = {
    "count": lambda dp: dp.count("zone", where="fare > 1", **EXACT),
    "sum": lambda dp: dp.sum("fare", "zone", **EXACT),
    "wide sum": lambda dp: dp.sum(["late", "early"], max_true=1, epsilon=1e6),
    "mean": lambda dp: dp.mean(["fare"], by="zone", **EXACT),
    "histogram": lambda dp: dp.histogram("fare", [0, 5, 10], by="zone", **EXACT),
    "var": lambda dp: dp.var("fare", "zone", where="fare > 1", **EXACT),
    "std": lambda dp: dp.std("fare", "zone", **EXACT),
    "rate": lambda dp: dp.rate("fare > 4", "zone", where="fare > 1", **EXACT),
    "units": lambda dp: dp.units("zone", where="fare > 1", **EXACT),
    "aggregate": lambda dp: dp.aggregate("zone", n=dpf.count(), m=dpf.mean("fare"), **EXACT),
    "denoised": lambda dp: dp.count("zone", denoise="auto", **EXACT),
    "preview": lambda dp: dp.plan(dpf.sum("fare", "zone"), **EXACT).table,
    "several": lambda dp: pd.concat(
        dp.release({"n": dpf.count("zone"), "m": dpf.mean("fare")}, **EXACT)
    ),
}


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "rider", "max_rows": 30}])
@pytest.mark.parametrize("name", CALLS)
def test_everything_works_as_on_a_frame(name, unit, frame, scan, monkeypatch):
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 200)
    frame.dp.declare(SCHEMA, **unit)
    scan.dp.declare(SCHEMA, **unit)
    found, expected = CALLS[name](scan.dp), CALLS[name](frame.dp)
    tolerance = 30 if name == "wide sum" else 0.05  # of rows with two, any one counts
    pd.testing.assert_frame_equal(found, expected, atol=tolerance)


def test_the_ledger_is_charged_before_rows_are_read(scan):
    scan.dp.declare(keys={"zone": ["A"]}, budget=dpf.Budget(epsilon=1))
    spent = []

    def tables(*_):
        spent.append(scan.dp.budget.remaining_epsilon)
        raise MemoryError

    charged = mock.patch.object(scans.ScannedFrame, "tables", tables)
    with charged, pytest.raises(ReleaseError):
        scan.dp.count("zone", epsilon=0.25)
    assert spent == [pytest.approx(0.75)]


@pytest.mark.parametrize("column", ["zone", "nowhere"])
def test_nothing_is_charged_if_a_column_or_a_file_is_gone(column, scan, tmp_path):
    scan.dp.declare(keys={"zone": ["A"]}, budget=dpf.Budget(epsilon=1))
    if column == "zone":
        for path in tmp_path.glob("*.parquet"):
            pq.write_table(pa.table({"area": ["A"]}), path)
    with pytest.raises(UnknownColumnError, match=f"no column '{column}'"):
        scan.dp.count(column, epsilon=0.5)
    for path in tmp_path.glob("*.parquet"):
        path.unlink()
    with pytest.raises(DeclarationError, match="there are none"):
        scan.dp.count("zone", epsilon=0.5)
    assert scan.dp.budget.remaining_epsilon == 1


def test_declarations_name_columns_of_the_files(scan):
    with pytest.raises(UnknownColumnError, match="Did you mean 'fare'"):
        scan.dp.declare(bounds={"fares": (0, 1)})
    with pytest.raises(
        DeclarationError, match=r"validate=True runs a schema on a pandas\.DataFrame"
    ):
        scan.dp.declare(SCHEMA, validate=True)


def test_a_scan_shows_path_and_columns_alone(scan, tmp_path):
    columns = ["zone", "fare", "rider", "late", "early"]
    assert repr(scan) == f"Scan({str(tmp_path)!r}, columns={columns})"
    assert scan.columns == columns


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(columns, "pa", None)
    with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[parquet\]'"):
        dpf.scan_parquet("anything.parquet")


def test_other_file_systems(frame):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    with memory.open("/trips/all.parquet", "wb") as file:
        frame.to_parquet(file)
    scan = dpf.scan_parquet("/trips", filesystem=memory)
    assert scan.dp.count(epsilon=1e6).iat[0, 0] == pytest.approx(907, abs=1)


def test_files_of_a_declared_frame_are_refused_until_they_are_declared(tmp_path):
    frame = pd.DataFrame({"zone": ["A", "B"]})
    frame.dp.declare(keys={"zone": ["A"]}, budget=dpf.Budget(epsilon=1))
    frame.to_parquet(tmp_path / "a.parquet")
    scan = dpf.scan_parquet(tmp_path)
    with pytest.raises(DeclarationError, match="derived from a declared frame"):
        scan.dp.count(epsilon=1)
    scan.dp.declare(keys={"zone": ["A"]}, ledger=frame.dp.ledger)
    scan.dp.count(by="zone", share=1)
    assert frame.dp.budget.spent.epsilon == 1


def test_a_relative_path_stays_what_it_was(tmp_path, monkeypatch):
    for name, rows in (("a", 5), ("b", 50)):
        (tmp_path / name).mkdir()
        pd.DataFrame({"x": range(rows)}).to_parquet(tmp_path / name / "t.parquet")
    monkeypatch.chdir(tmp_path / "a")
    scan = dpf.scan_parquet("t.parquet")
    monkeypatch.chdir(tmp_path / "b")
    assert scan.dp.count(epsilon=1e6).iloc[0, 0] == 5


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [1]}).to_parquet(path)
    with pytest.raises(DeclarationError, match="must name each file once"):
        dpf.scan_parquet([path, path])
