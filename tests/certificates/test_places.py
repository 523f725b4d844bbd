"""Where files of releases are written: a folder must be there, before anything is written."""

import pytest
from support.publishing import released
from support.raising import raises

import dpframe as dpf
from dpframe.errors import QueryError

WRITERS = {
    "write_csv": lambda frame, path: frame.dp.write_csv(path),
    "write_parquet": lambda frame, path: frame.dp.write_parquet(path),
    "report": lambda frame, path: frame.dp.report(path),
    "dpf.report": lambda frame, path: dpf.report(frame, path=path),
}


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("writer", WRITERS)
def test_folders_that_are_not_there_are_named(writer, as_text, tmp_path):
    path = tmp_path / "nowhere" / f"zones.{'parquet' if 'parquet' in writer else 'csv'}"
    with raises(QueryError, "Nothing was written", parameter="path", value=str(path)):
        WRITERS[writer](released("one key"), str(path) if as_text else path)
    assert not list(tmp_path.iterdir())
    path.parent.mkdir()
    WRITERS[writer](released("one key"), path)
    assert path.is_file()


@pytest.mark.parametrize("name", ["zones.csv", "zones", "zones.parquet.txt"])
def test_parquet_files_are_called_so(name, tmp_path):
    with raises(QueryError, ".parquet", parameter="path", value=str(tmp_path / name)):
        released("one key").dp.write_parquet(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", [3, "", b"zones.csv", ["zones.csv"]], ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_paths_are_paths(writer, given):
    with raises(QueryError, "the path of a", parameter="path"):
        WRITERS[writer](released("one key"), given)


def test_a_page_has_a_place_or_is_returned():
    frame = released("one key")
    assert "<html" in dpf.report(frame) and "<html" in frame.dp.report()
    with raises(QueryError, parameter="released", value=None):
        dpf.report(None)


@pytest.mark.parametrize("suffix", [".gz", ".GZ", ".zip", ".bz2", ".xz", ".zst"])
def test_csv_files_are_not_compressed(suffix, tmp_path):
    path = tmp_path / f"zones.csv{suffix}"
    with raises(QueryError, "'zones.csv'", parameter="path", value=str(path)):
        dpf.write_csv(released("one key"), path)
    with raises(QueryError, "compression", parameter="path", value=str(path)):
        dpf.read_csv(path)
    assert not list(tmp_path.iterdir())
