"""Frames with cells, keys or labels that nobody released: whatever they raise, they are altered."""

import asyncio

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import CertificateError


class Raising:
    """Raises what no `except Exception` sees, whatever it is asked."""

    def __eq__(self, other):
        raise asyncio.CancelledError("a private value")

    __str__ = __repr__ = __eq__

    def __hash__(self):
        return 1


def raising_cell(frame):
    frame["count"] = pd.Series([Raising(), 1], index=frame.index, dtype=object)


def raising_key(frame):
    frame.index = pd.Index([Raising(), "B"], dtype=object, name="zone")


def raising_label(frame):
    frame.columns = pd.Index([Raising()], dtype=object)


def raising_name(frame):
    frame.index.name = Raising()


def itself(frame):
    frame["self"] = pd.Series([None, None], index=frame.index, dtype=object)
    frame["self"] = pd.Series([frame, None], index=frame.index, dtype=object)
    frame["self"].array[0] = frame


ODD = [raising_cell, raising_key, raising_label, raising_name, itself]

HELPERS = {
    "verify": dpf.verify,
    "interval": lambda frame: frame.dp.interval(),
    "std_error": lambda frame: frame.dp.std_error,
    "combine": lambda frame: frame.dp.combine({"A": 1}),
    "denoise": lambda frame: frame.dp.denoise("nonnegative"),
    "schema": dpf.schema,
    "write_csv": lambda frame: frame.dp.write_csv("never.csv"),
}


@pytest.fixture
def released():
    trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    return dpf.release(trips, dpf.count("zone", keys=["A", "B"]), epsilon=1)


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("odd", ODD)
def test_frames_with_odd_cells_are_altered(released, odd, helper):
    assert dpf.verify(released).state == "released"
    odd(released)
    with pytest.raises(CertificateError, match="not what its certificate was given for"):
        HELPERS[helper](released)
