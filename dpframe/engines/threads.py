"""Work on parts of a frame in threads: NumPy and Arrow let several run at once, in kept memory."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from contextvars import copy_context
from functools import cache
from itertools import islice
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread
from typing import TypeVar

import numpy as np

# memory, not the processor, is the limit beyond
_MOST = 8
# of a thread: fewer are not worth its start
_LEAST_ROWS = 1 << 18
# items that wait for the caller
_HANDED_OVER = 2
# seconds after which a thread looks whether items are still wanted
_PATIENCE = 0.1
# the most that glibc counts, 32 MB with its own notes
_KEPT_BYTES = (1 << 25) - (1 << 13)
# seconds that a thread has to end in good order, once no more items are wanted
_FAREWELL = 1.0

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def thread_count(rows: int) -> int:
    """Return how many threads are worth starting for a number of rows, on this machine."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        available = os.cpu_count() or 1
    return max(1, min(available, _MOST, rows // _LEAST_ROWS))


@cache
def keep_memory() -> None:
    """Let the C library keep freed memory for the next block of rows.

    glibc gives freed pieces back to the system unless a larger piece was freed before, and asks for
    their pages anew: 40 % of a scan. This piece is never written to, so that it takes no memory.
    """
    np.empty(_KEPT_BYTES, np.uint8)


def in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int
) -> list[_Result]:
    """Apply a function to items, several at once, without warnings of floating-point numbers.

    Parameters
    ----------
    function
        Called once per item.
    items
        What to work on, in a copy of the caller's context: silent if it is.
    threads
        How many calls may run at once.

    Returns
    -------
    list
        The results in the order of the items.

    Examples
    --------
    >>> in_threads(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    quiet = _quiet(function)
    if threads == 1:
        return [quiet(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(quiet, items))


def _quiet(function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """Let a function run in a copy of the caller's context, without warnings of numbers."""
    context = copy_context()

    def quiet(item: _Item) -> _Result:
        # a thread has a state of its own
        with np.errstate(all="ignore"):
            return function(item)

    return lambda item: context.copy().run(quiet, item)


def dealt_to_threads(
    function: Callable[[Iterator[_Item]], _Result], items: Iterable[_Item], threads: int
) -> list[_Result]:
    """Apply a function once per thread to an iterator that all share: each item goes to one.

    Parameters
    ----------
    function
        Goes through the items that no other thread takes, as `in_threads` calls it.
    items
        Made one at a time, by the thread that asks for the next. After a failure no more are.
    threads
        How many calls run at once.

    Examples
    --------
    >>> sum(dealt_to_threads(sum, [1, 2, 3], 2))
    6
    """
    source, lock, stopped = iter(items), Lock(), Event()

    def following() -> list[_Item]:
        with lock:
            return [] if stopped.is_set() else list(islice(source, 1))

    def call(_: int) -> _Result:
        try:
            return function(item for taken in iter(following, []) for item in taken)
        finally:
            stopped.set()

    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(_quiet(call), range(threads)))
        finally:
            # the others end before the pool waits for them, after Ctrl-C, too
            stopped.set()


def one_ahead(items: Generator[_Item, None, None]) -> Generator[_Item, None, None]:
    """Go through items of which a thread makes the next while the caller works on the last.

    Examples
    --------
    >>> list(one_ahead(row * row for row in range(3)))
    [0, 1, 4]
    """
    context = copy_context()

    def following() -> list[_Item]:
        return list(islice(items, 1))

    with closing(items), ThreadPoolExecutor(1) as pool:
        coming = pool.submit(context.run, following)
        while item := coming.result():
            coming = pool.submit(context.run, following)
            # the last one need not outlive the caller's work
            yield item.pop()


def handed_over(run: Callable[[Callable[[_Item], bool]], object]) -> Generator[_Item, None, None]:
    """Go through items that a function hands over, in a thread of its own.

    Whoever stops here, by Ctrl-C for instance, does not wait for long for a function that works on
    its next item: it goes on until it hands that over, and then learns that none are wanted.

    Parameters
    ----------
    run
        Called with what takes an item, and answers whether no more are wanted. What it raises is
        raised here, once the items before are taken.

    Examples
    --------
    >>> list(handed_over(lambda take: [take(row * row) for row in range(3)]))
    [0, 1, 4]
    """
    context = copy_context()
    items: Queue[list[_Item]] = Queue(_HANDED_OVER)
    unwanted = Event()
    ended: Future[object] = Future()

    def put(item: list[_Item]) -> bool:
        while not unwanted.is_set():
            with suppress(Full):
                items.put(item, timeout=_PATIENCE)
                break
        return unwanted.is_set()

    def work() -> None:
        try:
            ended.set_result(context.run(run, lambda item: put([item])))
        except BaseException as error:  # also a panic of Rust
            ended.set_exception(error)
        put([])

    # a pool would wait for its thread, and so would Python where it ends
    thread = Thread(target=work, name="dpframe-source", daemon=True)
    thread.start()
    try:
        while item := _next_of(items):
            yield item.pop()
    finally:
        unwanted.set()
        thread.join(_FAREWELL)
    ended.result(timeout=_FAREWELL)


def _next_of(items: Queue[list[_Item]]) -> list[_Item]:
    """Wait for an item in steps, between which a signal is heard on every system."""
    while True:
        with suppress(Empty):
            return items.get(timeout=_PATIENCE)


def begun_ahead(
    parts: Iterable[tuple[Generator[_Item, None, None], int]],
    enough: Callable[[list[_Item]], bool],
    limits: tuple[int, int, int],
) -> Generator[_Item, None, None]:
    """Go through the items of parts in their order, while threads begin with the parts that follow.

    Parameters
    ----------
    parts
        What makes items, with its size.
    enough
        Whether no more items of a part are made before its turn comes.
    limits
        How many parts are begun at once: at least and at most so many, and more than at least only
        while their sizes add up to no more than so much.

    Examples
    --------
    >>> parts = ((iter_part for iter_part in range(n)) for n in (2, 3))
    >>> list(begun_ahead(((part, 1) for part in parts), lambda items: True, (1, 2, 9)))
    [0, 1, 0, 1, 2]
    """
    context = copy_context()
    least, most, most_size = limits
    begun: deque[tuple[Generator[_Item, None, None], int, Future[list[_Item]]]] = deque()

    def begin(part: Generator[_Item, None, None]) -> list[_Item]:
        items: list[_Item] = []
        for item in part:
            items.append(item)
            if enough(items):
                break
        return items

    def more() -> bool:
        few = len(begun) < least
        return few or (len(begun) < most and sum(size for _, size, _ in begun) < most_size)

    coming = iter(parts)
    with ThreadPoolExecutor(most) as pool:
        try:
            while True:
                while more() and (following := next(coming, None)):
                    part, size = following
                    begun.append((part, size, pool.submit(context.copy().run, begin, part)))
                if not begun:
                    return
                part, _, items = begun[0]
                yield from items.result()
                yield from part
                begun.popleft()
        finally:
            for part, _, items in begun:
                if not items.cancel():
                    wait([items])
                part.close()
