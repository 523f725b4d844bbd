"""Where files of releases are written: a folder must be there, before anything is written."""

import pytest
from support.publishing import released

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
    path = tmp_path / "nowhere" / "zones.csv"
    with pytest.raises(QueryError, match=r"make .*nowhere' first. Nothing was written"):
        WRITERS[writer](released("one key"), str(path) if as_text else path)
    assert not list(tmp_path.iterdir())
    path.parent.mkdir()
    WRITERS[writer](released("one key"), path)
    assert path.is_file()


@pytest.mark.parametrize("given", [3, "", b"zones.csv", ["zones.csv"]], ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_paths_are_paths(writer, given):
    with pytest.raises(QueryError, match="path must be the path of a"):
        WRITERS[writer](released("one key"), given)


def test_a_page_has_a_place_or_is_returned():
    frame = released("one key")
    assert "<html" in dpf.report(frame) and "<html" in frame.dp.report()
    with pytest.raises(QueryError, match="released must be a released frame"):
        dpf.report(None)


@pytest.mark.parametrize("suffix", [".gz", ".GZ", ".zip", ".bz2", ".xz", ".zst"])
def test_csv_files_are_not_compressed(suffix, tmp_path):
    path = tmp_path / f"zones.csv{suffix}"
    with pytest.raises(QueryError, match=r"Use 'zones\.csv', or \.dp\.write_parquet"):
        dpf.write_csv(released("one key"), path)
    with pytest.raises(QueryError, match="nothing is compressed here"):
        dpf.read_csv(path)
    assert not list(tmp_path.iterdir())
