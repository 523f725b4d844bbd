"""Cells that nest many layers deep, which Python cannot hash, neither end nor change anything.

They are looked at in a process of their own: what would end it cannot be contained.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, types
import dask.dataframe, numpy as np, pandas as pd
import dpframe as dpf, dpframe.dask

class Tuple(tuple):
    pass

KINDS = {
    "tuple": lambda inner: (inner,),
    "subclass": lambda inner: Tuple((inner,)),
    "alias": lambda inner: types.GenericAlias(list, (inner,)),
}

def deep(layers):
    value = 1
    for _ in range(layers):
        value = KINDS["@"](value)
    return value

def part(at):
    return sys.parts[at]  # Dask pickles what a function refers to

dask.config.set({"scheduler": "sync", "dataframe.convert-string": False})
cells = np.empty(8, object)
cells[:] = ["a", "b", "a", "b", 1, (1, 2), deep(200_000), deep(200_000)]
options = dict(keys={"k": ["a", "b", (1, 2)]}, bounds={"x": (0, 9)}, privacy_unit="u")
query = dpf.aggregate("k", n=dpf.count(), s=dpf.sum("x"))
where = "x == x or k in [1, 'a'] or not u > 3"
for column in ("k", "u", "x"):
    frame = pd.DataFrame({"k": list("abababab"), "u": range(8), "x": range(8)}).astype(object)
    frame[column] = pd.Series(cells, dtype=object)
    sys.parts = [frame.iloc[:5], frame.iloc[5:]]
    whole = dask.dataframe.from_map(part, [0, 1], meta=frame.iloc[:0])
    for made in (frame, whole):
        made.dp.declare(max_rows=2, max_groups=2, **options)
        n = made.dp.release(query, epsilon=1e12)["n"].tolist()
        kept = made.dp.count(where=where, epsilon=1e12).iloc[0, 0]
        made.dp.discover("k", epsilon=1, delta=1e-6)
        made.dp.suggest_caps("k", epsilon=1)
        made.dp.suggest_bounds("x", epsilon=1)
        repr(made.dp.diagnose(query))
        print(column, n, kept)
for keys in ([deep(200_000)], [deep(17), 1]):
    try:
        frame.dp.count("k", keys=keys, epsilon=1)
    except dpf.errors.DeclarationError as error:
        print("nested" in str(error))
print(flush=True)
os._exit(0)  # Python cannot free all of them either
"""
EXPECTED = ["k [2, 2, 1] 8", "u [3, 3, 0] 6", "x [4, 4, 0] 6"]


FULL = pytest.mark.full


@pytest.mark.full
@pytest.mark.parametrize(
    "kind", ["tuple", pytest.param("subclass", marks=FULL), pytest.param("alias", marks=FULL)]
)
def test_deep_cells_end_no_process(kind):
    script = SCRIPT.replace("@", kind)
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    found = done.stdout.split("\n")
    assert found[:6] == [line for line in EXPECTED for _ in range(2)]
    assert found[6:8] == ["True"] * 2
