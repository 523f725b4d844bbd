"""Temporary folders are removed when they are left, or by the next where a process was killed."""

import os
import signal

import pytest

from dpframe.engines.batches import remove_leftovers, temporary_folder
from dpframe.ledger import platform

PREFIXES = ["dpframe-rows-", ".dpframe-trial-", "dpframe-ledger-"]


def forked(act):
    """Run something in another process, and return its number."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(99)
    return child


def killed(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def is_empty(place):
    return not os.listdir(place)


def leftover(place, name="dpframe-rows-abcdefgh"):
    folder = place / name
    folder.mkdir()
    (folder / "in-use").touch()
    (folder / "0.arrow").write_text("private")
    return folder


def test_what_looks_like_a_leftover_is_removed(tmp_path):
    leftover(tmp_path)
    remove_leftovers(tmp_path)
    assert is_empty(tmp_path)


def test_a_folder_that_no_process_has_locked_is_left_alone(tmp_path):
    folder = leftover(tmp_path)
    (folder / "in-use").unlink()
    remove_leftovers(tmp_path)
    assert (folder / "0.arrow").exists()


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_not_followed(tmp_path):
    mine = leftover(tmp_path, "mine")
    (tmp_path / "dpframe-rows-abcdefgh").symlink_to(mine)
    inside = leftover(tmp_path, "dpframe-rows-12345678")
    (inside / "link").symlink_to(mine)
    by_link = leftover(tmp_path, "dpframe-rows-link4567")
    (by_link / "in-use").unlink()
    (by_link / "in-use").symlink_to(mine / "in-use")
    remove_leftovers(tmp_path)
    assert (mine / "0.arrow").exists()
    assert (by_link / "0.arrow").exists()
    assert not inside.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_files_and_pipes_are_left_alone(tmp_path):
    (tmp_path / "dpframe-rows-abcdefgh").write_text("mine")
    folder = leftover(tmp_path, "dpframe-rows-12345678")
    (folder / "in-use").unlink()
    os.mkfifo(folder / "in-use")
    remove_leftovers(tmp_path)
    assert (tmp_path / "dpframe-rows-abcdefgh").exists()


def test_where_there_are_no_locks_nothing_is_taken_for_a_leftover(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        without = platform.Platform(posix_locks=None, windows_locks=None)
        patch.setattr(platform, "HERE", without)
        left = leftover(tmp_path)
        remove_leftovers(tmp_path)
        assert (left / "0.arrow").exists()
        with temporary_folder("dpframe-rows-", tmp_path) as made:
            (made / "0.arrow").write_text("private")
            patch.undo()
            remove_leftovers(tmp_path)
            assert (made / "0.arrow").exists()
            assert not left.exists()
    assert is_empty(tmp_path)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGXCPU"])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # NumPy's threads are idle
def test_a_signal_that_ends_the_process_removes_the_folder_first(tmp_path, name, again):
    number = getattr(signal, name)

    def act():
        signal.signal(number, signal.SIG_DFL)
        with temporary_folder(PREFIXES[0], tmp_path) as made:
            (made / "rows.arrow").touch()
            try:
                signal.raise_signal(number)
            finally:
                if again:
                    signal.raise_signal(number)

    _, status = os.waitpid(forked(act), 0)
    assert os.waitstatus_to_exitcode(status) == -number
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(signal, "SIGTERM"), reason="signals are others there")
def test_signals_that_somebody_handles_are_left_to_them(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with temporary_folder(PREFIXES[0], tmp_path) as made:
            signal.raise_signal(signal.SIGTERM)
            assert made.is_dir()
        assert heard == [1]
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with temporary_folder(PREFIXES[0], tmp_path):
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
