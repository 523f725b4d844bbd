"""Write the inventories that pages link by where there is no network: names that dpframe refers to.

Run it with `python docs/inventories/make.py`; it writes `pandas.inv` and `pandera.inv` beside it.
"""

import zlib
from pathlib import Path

HERE = Path(__file__).parent
NAMES = {
    "pandas": {
        "pandas.DataFrame": "py:class",
        "pandas.DataFrame.attrs": "py:attribute",
        "pandas.IntervalIndex": "py:class",
        "pandas.MultiIndex": "py:class",
        "pandas.Series": "py:class",
        "pandas.cut": "py:function",
        "pandas.date_range": "py:function",
        "pandas.read_parquet": "py:function",
    },
    "pandera": {
        "pandera.api.pandas.model.DataFrameModel": "py:class",
        "pandera.api.pandas.container.DataFrameSchema": "py:class",
    },
}
PLACES = {"pandas": "reference/api/$.html#$", "pandera": "reference/generated/$.html#$"}
HEAD = """# Sphinx inventory version 2
# Project: {project}
# Version: stable
# The remainder of this file is compressed using zlib.
"""


def inventory(project: str) -> bytes:
    """Make the inventory of a project, in version 2 of the format of Sphinx."""
    place = PLACES[project]
    lines = (
        f"{name} {kind} 1 {place.replace('$', name)} -\n" for name, kind in NAMES[project].items()
    )
    return HEAD.format(project=project).encode() + zlib.compress("".join(lines).encode())


def names_in(kept: bytes) -> list[str]:
    """List the names in an inventory."""
    *_, packed = kept.split(b"\n", HEAD.count("\n"))
    return [line.split()[0] for line in zlib.decompress(packed).decode().splitlines()]


def main() -> None:
    """Write all inventories."""
    for project in NAMES:
        (HERE / f"{project}.inv").write_bytes(inventory(project))


if __name__ == "__main__":
    main()
