"""Memory that draws share: no draw depends on what others left in it, or sees what others do."""

import itertools
import os
import signal
import threading
from unittest import mock

import numpy as np
import pytest
from support.randomness import SYSTEM
from support.streams import Stream

from dpframe.context import _system_bytes
from dpframe.privacy import noise
from dpframe.privacy import noise as noise_room
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

LAWS = [GAUSSIAN, LAPLACE]
SCALES = [30.0, 2.0**45]  # one product of floats, and two
SIZE = 2 * noise.BLOCK + 17


@pytest.fixture(autouse=True)
def shelf():
    """An empty shelf, and a full one of cleared rooms at the end."""
    noise_room._shelf.clear()
    yield noise_room._shelf
    assert len(noise_room._shelf) <= noise_room._MOST
    assert len({id(room) for room in noise_room._shelf}) == len(noise_room._shelf)
    assert not any(room.any() for room in noise_room._shelf)


def draw(law, scale, size=SIZE):
    return noise.integer_noise(law.curve, scale, size, SYSTEM)


def drawn(monkeypatch, seed, law, scale, size=SIZE):
    """The draws from a stream of words, in memory that nothing was drawn in."""
    monkeypatch.setattr("dpframe.context._system_bytes", Stream(seed))
    noise_room._shelf.clear()
    return draw(law, scale, size)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [1_000, noise._FEW, 20_000, SIZE])
def test_draws_do_not_depend_on_what_lies_in_a_room(law, scale, size, shelf, monkeypatch):
    expected = drawn(monkeypatch, 1, law, scale, size)
    for left in (np.nan, np.inf, -1e300, 0.3):
        shelf.clear()
        shelf.append(np.full((noise_room.ROWS, noise_room.BLOCK), left))
        monkeypatch.setattr("dpframe.context._system_bytes", Stream(1))
        assert (draw(law, scale, size) == expected).all()
        shelf.clear()  # only what was worked in is cleared


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_nothing_of_a_draw_stays_in_a_room(law, scale, shelf, monkeypatch):
    draws = [draw(law, scale), draw(law, scale, 20_000)]
    assert len(shelf) == 1
    assert not shelf[0].any()
    assert not any(np.shares_memory(shelf[0], part) for part in draws)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_threads_draw_what_they_draw_alone(law, scale, monkeypatch):
    seeds = range(6)
    alone = [drawn(monkeypatch, seed, law, scale) for seed in seeds]
    own, start, found = threading.local(), threading.Barrier(len(seeds)), {}

    def words(n):
        return own.stream(n)

    monkeypatch.setattr("dpframe.context._system_bytes", words)

    def work(seed):
        start.wait()
        for _ in range(5):
            own.stream = Stream(seed)
            found.setdefault(seed, []).append(draw(law, scale))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        assert len(found[seed]) == 5
        assert all((draws == alone[seed]).all() for draws in found[seed])


class Interrupted:
    """Words of a stream; before so many of its calls something else happens."""

    def __init__(self, seed, when, what):
        self.stream, self.left, self.what = Stream(seed), when, what

    def __call__(self, n):
        self.left -= 1
        if self.left == 0:
            self.what()
        return self.stream(n)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_a_draw_in_the_middle_of_a_draw_does_not_touch_it(law, scale, shelf, monkeypatch):
    """As a handler of signals may do, between any two steps."""
    expected = drawn(monkeypatch, 1, law, scale)
    inner = drawn(monkeypatch, 2, law, scale)
    for when in range(1, 10):
        found = []

        def within(found=found):
            with mock.patch("dpframe.context._system_bytes", Stream(2)):
                found.append(draw(law, scale))

        monkeypatch.setattr("dpframe.context._system_bytes", Interrupted(1, when, within))
        assert (draw(law, scale) == expected).all()
        assert (found[0] == inner).all()
    assert len(shelf) == 2


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", SCALES)
def test_a_draw_after_an_interrupted_one_is_as_any_other(law, scale, shelf, monkeypatch):
    expected = drawn(monkeypatch, 1, law, scale)

    def stop():
        raise KeyboardInterrupt

    for when in range(1, 10):
        monkeypatch.setattr("dpframe.context._system_bytes", Interrupted(2, when, stop))
        with pytest.raises(KeyboardInterrupt):
            draw(law, scale)
        assert not any(room.any() for room in shelf)
        monkeypatch.setattr("dpframe.context._system_bytes", Stream(1))
        assert (draw(law, scale) == expected).all()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")
def test_signals_at_any_moment_leave_no_words_behind(shelf, monkeypatch):
    expected = drawn(monkeypatch, 1, LAPLACE, 30.0)

    def stop(*_):
        raise KeyboardInterrupt

    before, interrupted = signal.signal(signal.SIGALRM, stop), 0
    try:
        for microseconds in itertools.chain(range(20, 400, 7), range(400, 4000, 90)):
            monkeypatch.setattr("dpframe.context._system_bytes", Stream(2))
            try:
                signal.setitimer(signal.ITIMER_REAL, microseconds * 1e-6)
                draw(LAPLACE, 30.0)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            assert not any(room.any() for room in shelf)
            monkeypatch.setattr("dpframe.context._system_bytes", Stream(1))
            assert (draw(LAPLACE, 30.0) == expected).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def test_a_bounded_number_of_rooms_is_kept(shelf):
    with noise_room.lend(1), noise_room.lend(1), noise_room.lend(1):
        with noise_room.lend(1), noise_room.lend(1), noise_room.lend(1) as last:
            last[:] = 1
            assert not shelf
    assert len(shelf) == noise_room._MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_draw_draws_on_its_own():
    """The child goes on with the draw of its parent; both must ask for words of their own."""
    real, ends, asked = _system_bytes, os.pipe(), []

    def forking(n):
        asked.append(n)
        if len(asked) == 4:  # the first block is drawn
            asked.append(os.fork())
        return real(n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpframe.context._system_bytes", forking)
        draws = draw(GAUSSIAN, 2.0**50)[noise.BLOCK :]
    if asked[4] == 0:
        os.write(ends[1], draws[:1000].tobytes())
        os._exit(0)
    os.waitpid(asked[4], 0)
    child = np.frombuffer(os.read(ends[0], 8000), np.int64)
    for end in ends:
        os.close(end)
    assert child.size == 1000
    # two draws are equal with a probability of 2**-51
    assert not np.isin(child, draws).any()
