"""Warnings stay hidden until the last thread has left, and are shown again then."""

import contextlib
import warnings

import pytest

from dpframe.columns.silence import SILENCE


def test_silence_lasts_until_the_last_has_left():
    before = list(warnings.filters)
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    first.enter_context(SILENCE)
    second.enter_context(SILENCE)
    first.close()  # in another order than a stack's
    warnings.warn("nobody hears this", UserWarning, stacklevel=1)
    second.close()
    assert warnings.filters == before
    with pytest.raises(UserWarning, match="all hear this"):
        warnings.warn("all hear this", UserWarning, stacklevel=1)
