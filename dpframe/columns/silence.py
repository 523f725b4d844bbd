"""No warning about private values is shown while they are being looked at."""

import threading
import warnings

__all__ = ["SILENCE"]


class _Silence:
    """Shows no warnings while any thread is in here: private values may be what they are about.

    `warnings.catch_warnings` swaps what all threads share: of two threads that leave it in another
    order than they came, one puts back what the other had swapped in. Here the first to come swaps,
    and the last to leave swaps back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._swapped = warnings.catch_warnings()

    def __enter__(self) -> None:
        """Hide warnings."""
        with self._lock:
            if not self._inside:
                self._swapped = warnings.catch_warnings()
                self._swapped.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        """Show them again, if nobody else hides them."""
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._swapped.__exit__(None, None, None)


SILENCE = _Silence()
"""A context manager, to be entered by any number of threads."""
