"""Small files that ask for much: what takes thousands of times their size where it is read."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[str | int, ...]

PAYLOADS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: [1] * n,
    "objects": lambda n: [{}] * n,
    "lists": lambda n: [[]] * n,
    "pairs of lists": lambda n: [[[1], [1]]] * (n // 5),
    "unknown names": lambda n: {f"k{at}": 1 for at in range(n)},
    "names of blocks": lambda n: {str(at): "x" for at in range(n)},
    "wrong steps": lambda n: [{"step": "denoise", "of": 1}] * (n // 5),
    "nearly columns": lambda n: [{"name": 1, "kind": 2, "column": 3, "noise": {}}] * (n // 9),
    "a text": lambda n: "x" * (20 * n),
    "a deep list": lambda n: json.loads("[" * 500 + "]" * 500),
    "a long number": lambda n: 10**4000,
    "base64": lambda n: {"float64": "AAAA" * n},
}


def ways(record: Any, way: Path = ()) -> Iterator[Path]:
    """Give the way to each value of a record."""
    if way:
        yield way
    if isinstance(record, dict | list):
        for key, below in record.items() if isinstance(record, dict) else enumerate(record):
            yield from ways(below, (*way, key))


def put(record: Any, way: Path, value: Any, *, beside: bool = False) -> Any:
    """Return a record with another value somewhere; or with both, where there is a list."""
    made = copy.deepcopy(record)
    part = made
    for key in way[:-1]:
        part = part[key]
    old = part[way[-1]]
    part[way[-1]] = old + value if beside and type(old) is type(value) is list else value
    return made


def swollen(record: Any, case: tuple[Path, str], size: int) -> Any:
    """Make the record of a case."""
    way, name = case
    return put(record, way, PAYLOADS[name](size), beside=True)
