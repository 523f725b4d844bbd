"""What belongs to the whole process is as it was, after the import and after a release."""

import subprocess
import sys

import pytest

SCRIPT = """
import csv, locale, logging, os, signal, sys, warnings
import numpy as np, pandas as pd
import pyarrow.parquet, scipy.sparse, scipy.special, scipy.optimize  # they add filters of their own

def state():
    return {
        "filters": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "cells": csv.field_size_limit(),
        "dialects": csv.list_dialects(),
        "floats": np.geterr(),
        "printing": repr(np.get_printoptions()),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": [signal.getsignal(one) for one in signal.valid_signals()],
        "handlers": list(logging.getLogger().handlers),
        "own handlers": list(logging.getLogger("dpframe").handlers),
        "level": logging.getLogger().level,
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook),
        "recursion": sys.getrecursionlimit(),
        "environment": dict(os.environ),
        "options": {name: pd.get_option(name) for name in ("mode.copy_on_write", "display.width")},
    }

def compare(when):
    for name, value in state().items():
        assert value == before[name], (when, name, value, before[name])

before = state()
import dpframe as dpf
compare("import")
frame = pd.DataFrame({"zone": ["A", "B"] * 50, "fare": range(100)})
released = dpf.release(
    frame,
    dpf.mean("fare", by="zone", keys=["A", "B"], bounds=(0, 100)),
    epsilon=1,
    privacy_unit=dpf.EACH_ROW,
)
released.dp.interval(0.9)
compare("release")
"""


@pytest.mark.full
def test_an_import_and_a_release_change_nothing_of_the_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
