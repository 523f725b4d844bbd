"""At a chosen place, before any one of the steps of what runs: an interrupt, or another act."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

Place = tuple[CodeType, int, int]
"""A piece of code, one of the steps in it, and how often it was passed before."""

_MOST = 8  # of a loop, as many turns are told apart


class Traced:
    """Follow the steps of code in some files while something runs.

    Parameters
    ----------
    files
        Names of files end with one of these, or have one as a folder.
    stop_at
        Raise `KeyboardInterrupt` there.
    meanwhile
        What to do there in place of that.
    """

    def __init__(
        self,
        files: tuple[str, ...],
        stop_at: Place | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        self.places: list[Place] = []
        self._passed: Counter[tuple[CodeType, int]] = Counter()
        self._files, self._stop_at, self._meanwhile = files, stop_at, meanwhile

    def run(self, act: Callable[[], Any]) -> Any:
        before = sys.gettrace()
        # from Python 3.12 on, steps are told only where a frame asked for them before
        frame = sys._getframe()
        frame.f_trace, frame.f_trace_opcodes = lambda *_: None, True
        sys.settrace(self._enter)
        try:
            return act()
        finally:
            sys.settrace(before)
            frame.f_trace = None

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename.replace(os.sep, "/")
        if not any(part in name for part in self._files):
            return None
        # in this order: 3.13 follows the steps of a frame if it is traced as it asks for them
        frame.f_trace = self._step
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            step = frame.f_code, frame.f_lasti
            place = (*step, self._passed[step])
            self._passed[step] += 1
            self.places.append(place)
            if place == self._stop_at:
                self.stop()
        return self._step

    def stop(self) -> None:
        if self._meanwhile is None:
            raise KeyboardInterrupt
        self._meanwhile()


def places(act: Callable[[], Any], files: tuple[str, ...]) -> list[Place]:
    """List the places that something passes, in order."""
    traced = Traced(files)
    traced.run(act)
    return [place for place in traced.places if place[2] < _MOST]


def interrupted(act: Callable[[], Any], place: Place) -> KeyboardInterrupt | None:
    """Interrupt something before a place; `None` where it did not come by."""
    try:
        Traced((place[0].co_filename.replace(os.sep, "/"),), place).run(act)
    except KeyboardInterrupt as interrupt:
        return interrupt
    return None
