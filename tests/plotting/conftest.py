"""Every figure of a test is closed after it."""

import pytest


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
