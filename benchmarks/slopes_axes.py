"""Along what cost is measured, for which kinds of work, and at which sizes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PANDAS = "plain pandas"


class Axis(NamedTuple):
    """What grows, what is measured on the way, and how far that goes."""

    title: str
    noun: str
    short: str
    sizes: tuple[int, ...]
    quick: int
    lines: dict[str, str]
    words: str
    most: Mapping[str, int] = MappingProxyType({})  # of lines that take long


def decades(first: int, last: int) -> tuple[int, ...]:
    """List powers of ten."""
    return tuple(10**power for power in range(first, last + 1))


AXES = {
    "rows": Axis(
        "Rows in memory",
        "rows",
        "rows",
        decades(3, 8),
        10**5,
        {"pandas": PANDAS, "row": "each row its own unit", "unit": "units, with caps"},
        "A count and a clipped sum by 100 integer keys. Units have ten rows on average; five "
        "groups of two rows each are kept.",
    ),
    "files": Axis(
        "Rows in files",
        "rows",
        "rows",
        decades(3, 8),
        10**5,
        {"pandas": "pandas, all in memory", "row": "each row its own unit", "unit": "units, caps"},
        "The same from ten Parquet files, with row groups of at most 131,072 rows, reading "
        "included. pandas reads its two columns at once.",
    ),
    "keys": Axis(
        "Keys",
        "keys",
        "keys",
        decades(3, 7),
        10**5,
        {
            "pandas": PANDAS,
            "first": "declare, first release",
            "later": "later release",
            "texts": "later release, texts",
        },
        "A count and a clipped sum of 1,000,000 rows, each its own unit. Every key gets noise, "
        "even without rows. Each declaration prepares its keys once.",
        {"texts": 10**6},
    ),
    "units": Axis(
        "Units",
        "units",
        "units",
        decades(3, 7),
        10**5,
        {"pandas": "pandas, no caps", "integers": "units are integers", "texts": "units are texts"},
        "A count and a clipped sum of 10,000,000 rows by 100 integer keys, with five groups of two "
        "rows per unit. Units have from 10,000 rows down to one.",
    ),
    "queries": Axis(
        "Queries in one release",
        "queries",
        "queries",
        decades(0, 4),
        100,
        {
            "pandas": "pandas, one by one",
            "outputs": "of one table",
            "tables": "tables of their own",
        },
        "Counts of 100,000 rows, each with its own condition: as outputs of one `aggregate` "
        "without groups, or as tables of 10 groups in one `release`. pandas counts without groups.",
    ),
    "entries": Axis(
        "Entries of the ledger",
        "entries",
        "entries",
        decades(0, 4),
        100,
        {"memory": "ledger in memory", "file": "ledger in a file", "open": "open a file, read it"},
        "One more count of 1,000 rows in 10 groups, charged to a ledger with so many entries; and "
        "opening such a file and asking what is left. Each entry is a release.",
    ),
}
"""The axes by name."""
