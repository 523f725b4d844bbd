"""Errors are compared by their fields and a telling word, never by whole sentences."""

from contextlib import contextmanager

import pytest

MOST_WORDS = 50


@contextmanager
def raises(kind, word="", **fields):
    """Expect an error of a kind, with some fields, whose text has a word and is not long."""
    with pytest.raises(kind) as caught:
        yield caught
    text = str(caught.value)
    assert word in text
    assert len(text.split()) <= MOST_WORDS, text
    assert {name: getattr(caught.value, name) for name in fields} == fields, text
