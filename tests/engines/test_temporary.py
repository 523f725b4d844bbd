"""Temporary folders are removed when they are left, or by the next where a process was killed."""

import os
import signal
import sys
import tempfile
import time

import pytest

from dpframe.engines.batches import remove_leftovers, temporary_folder
from dpframe.ledger import platform

PREFIXES = ["dpframe-rows-", ".dpframe-trial-", "dpframe-ledger-"]
forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # NumPy's threads are idle
]


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


def kept_for_ever(place, prefix):
    """Start a process that keeps a folder with a file in it, and wait for the file."""

    def keep():
        with temporary_folder(prefix, place) as made:
            (made / "0.arrow").write_text("private")
            time.sleep(600)

    child = forked(keep)
    while not list(place.glob("*/0.arrow")):
        time.sleep(0.001)
    return child


def is_empty(place):
    return not os.listdir(place)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_folder_is_there_as_long_as_it_is_used(tmp_path, prefix):
    with temporary_folder(prefix, tmp_path) as made:
        (made / "0.arrow").write_text("private")
        assert made.parent == tmp_path
        assert made.name.startswith(prefix)
        assert made.stat().st_mode & 0o777 == (0o700 if os.name == "posix" else 0o777)
        remove_leftovers(tmp_path)
        assert (made / "0.arrow").exists()
    assert is_empty(tmp_path)


def test_the_folder_of_the_system_is_meant_if_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder("dpframe-rows-") as made:
        assert made.parent == tmp_path
    (tmp_path / "dpframe-rows-abcdefgh").mkdir()
    remove_leftovers()
    assert is_empty(tmp_path)


class TestAcrossProcesses:
    pytestmark = forks

    @pytest.mark.parametrize("prefix", PREFIXES)
    def test_what_a_killed_process_left_is_removed(self, tmp_path, prefix):
        child = kept_for_ever(tmp_path, prefix)
        remove_leftovers(tmp_path)
        assert not is_empty(tmp_path)
        killed(child)
        assert not is_empty(tmp_path)
        remove_leftovers(tmp_path)
        assert is_empty(tmp_path)

    def test_a_child_that_lives_on_keeps_the_folder(self, tmp_path):
        place = tmp_path / "place"
        place.mkdir()

        def keep():
            with temporary_folder("dpframe-rows-", place):
                number = forked(lambda: time.sleep(600))
                (tmp_path / "number.new").write_text(str(number))
                os.rename(tmp_path / "number.new", tmp_path / "number")
                time.sleep(600)

        parent = forked(keep)
        while not (tmp_path / "number").exists():
            time.sleep(0.001)
        killed(parent)
        remove_leftovers(place)
        assert not is_empty(place)
        os.kill(int((tmp_path / "number").read_text()), signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not is_empty(place) and time.monotonic() < deadline:
            remove_leftovers(place)
        assert is_empty(place)

    @pytest.mark.parametrize("seconds", [0.5, pytest.param(60, marks=pytest.mark.audit)])
    def test_nobody_removes_what_others_have_just_made(self, tmp_path, seconds):
        def make():
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                with temporary_folder("dpframe-rows-", tmp_path) as made:
                    (made / "0.arrow").write_text("private")
                    (made / "0.arrow").read_text()
            os._exit(0)

        def clean():
            while True:
                remove_leftovers(tmp_path)

        makers, cleaners = [forked(make) for _ in range(2)], [forked(clean) for _ in range(2)]
        ended = [os.waitstatus_to_exitcode(os.waitpid(maker, 0)[1]) for maker in makers]
        for cleaner in cleaners:
            killed(cleaner)
        assert ended == [0, 0]
        remove_leftovers(tmp_path)
        assert is_empty(tmp_path)


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


@pytest.mark.parametrize(
    "name",
    [
        "dpframe-released-abcdefgh",
        ".dpframe-abcdefgh",
        "dpframe-rows-abcdefghi",
        "dpframe-rows-ABCDEFGH",
        "my-dpframe-rows-abcdefgh",
        "dpframe-rows-abcdefgh\n",
    ],
)
def test_other_names_are_left_alone(tmp_path, name):
    folder = leftover(tmp_path, name)
    remove_leftovers(tmp_path)
    assert (folder / "0.arrow").exists()


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


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="others' folders need another user"
)
def test_folders_of_others_are_left_alone(tmp_path):
    folder = leftover(tmp_path)
    os.chown(folder, 12345, 12345)
    remove_leftovers(tmp_path)
    assert (folder / "0.arrow").exists()


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


def test_a_folder_that_is_gone_has_no_leftovers(tmp_path):
    remove_leftovers(tmp_path / "none")


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
