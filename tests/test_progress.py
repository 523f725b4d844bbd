"""Progress bars: in a terminal, for what takes long, without numbers, and never in the way."""

import sys
import types
import warnings

import pandas as pd
import pytest

import dpframe as dpf
from dpframe import progress
from dpframe.engines import scans
from dpframe.errors import DPFrameError
from dpframe.progress import show_progress

pytest.importorskip("tqdm")


def in_a_terminal(monkeypatch):
    """Make standard error a terminal, as it is now: another one captures each phase of a test."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("pyarrow")
    for part in range(3):
        pd.DataFrame({"who": range(617), "zone": "A"}).to_parquet(tmp_path / f"{part}.parquet")
    return tmp_path


def test_short_work_shows_no_bar(monkeypatch, capsys):
    in_a_terminal(monkeypatch)
    assert list(show_progress([5, 7], "doing", 2)) == [5, 7]
    assert capsys.readouterr().err == ""


def test_long_work_shows_a_bar_in_a_terminal(monkeypatch, capsys):
    in_a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert list(show_progress([5, 7], "doing", 2)) == [5, 7]
    assert "doing:" in capsys.readouterr().err


def test_elsewhere_a_bar_is_shown_if_it_is_asked_for(capsys, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert list(show_progress([5, 7], "doing", 2)) == [5, 7]
    assert list(show_progress([5, 7], "doing", 2, shown=False)) == [5, 7]
    assert capsys.readouterr().err == ""
    assert list(show_progress([5, 7], "doing", 12, shown=True, size=lambda one: one)) == [5, 7]
    assert "doing:" in capsys.readouterr().err


def test_without_tqdm_there_is_no_bar(monkeypatch, capsys, files):
    in_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    progress._bars.cache_clear()
    assert list(show_progress("ab", "letters", 2)) == ["a", "b"]
    assert capsys.readouterr().err == ""
    with pytest.raises(DPFrameError, match=r"pip install '(dpframe|\.)\[progress\]'"):
        dpf.scan_parquet(files, progress=True)


class Broken:
    def update(self, *_):
        raise OSError("the terminal is gone")

    close = update


def test_a_bar_that_breaks_stops_nothing(monkeypatch):
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **_: Broken())
    assert list(show_progress([5, 7], "doing", 2, shown=True)) == [5, 7]
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **_: Broken().update())
    assert list(show_progress([5, 7], "doing", 2, shown=True)) == [5, 7]


def test_a_notebook_that_draws_no_widgets_is_not_warned_about(monkeypatch):
    class Complaining(types.ModuleType):
        def __getattr__(self, name):
            warnings.warn(f"IProgress not found, {name}", stacklevel=2)
            return lambda **_: None

    monkeypatch.setitem(sys.modules, "tqdm.auto", Complaining("tqdm.auto"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert list(show_progress([5, 7], "doing", 2)) == [5, 7]
    assert not warned


@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "who", "max_rows": 3}])
def test_scans_show_how_far_they_are_and_no_number_of_rows(unit, files, capsys, monkeypatch):
    monkeypatch.setattr(scans, "_BUCKET_ROWS", 400)
    for shown in (None, False, True):
        scan = dpf.scan_parquet(files, batch_rows=100, progress=shown)
        scan.dp.declare(keys={"zone": ["A"]}, **unit)
        scan.dp.count("zone", epsilon=1)
        err = capsys.readouterr().err
        assert ("reading:" in err) == (shown is True)
        assert ("adding up:" in err) == (shown is True and bool(unit))
        assert "617" not in err and "1851" not in err and "it/s" not in err
