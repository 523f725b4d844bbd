"""Memory is kept within calls alone, and only where it would be handed back at once."""

from unittest import mock

import pytest

from dpframe.engines import dask as heap
from dpframe.engines.dask import kept_memory

TRIM, MMAP = -1, -3


@pytest.fixture
def library(monkeypatch):
    """A system's library that notes what it is asked for."""
    found = mock.Mock()
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda _: found)
    return found


def calls(library):
    return [(call[0], *call[1]) for call in library.mock_calls]


def test_what_the_environment_asks_for_is_set_again(library, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    before = [("mallopt", TRIM, 1 << 30), ("mallopt", MMAP, 1 << 25)]
    after = [("mallopt", TRIM, 65536), ("mallopt", MMAP, 1 << 17), ("malloc_trim", 0)]
    with pytest.raises(KeyError), kept_memory():
        with kept_memory():
            assert calls(library) == before
        assert calls(library) == before
        raise KeyError
    assert calls(library) == before + after


@pytest.mark.parametrize("asked", [None, "1073741824", "many", "-1"])
def test_nothing_is_set_where_nothing_is_handed_back_at_once(asked, library, monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    if asked is not None:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", asked)
    with kept_memory():
        pass
    assert calls(library) == []


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_other_systems_are_left_alone(error, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setattr(heap.ctypes, "CDLL", mock.Mock(side_effect=error))
    with kept_memory():
        pass
