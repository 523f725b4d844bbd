"""Mistakes as lines of code, and what their answers must have.

That is the class of the error, the parameter, the column or value that it is about, and a telling
word of the way out. Whatever is wrong, the message has at most 50 words, and the traceback of plain
Python at most 15 lines.
"""

import builtins
import linecache
import tomllib
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from support.raising import MOST_WORDS

import dpframe as dpf
from dpframe import errors
from dpframe.errors import DPFrameError

MOST_LINES = 15
_ANY = object()


@dataclass(frozen=True, repr=False)
class Mistake:
    """Code that is wrong, and what the answer must have."""

    code: str
    kind: type[BaseException]
    words: tuple[str, ...]
    never: tuple[str, ...] = ()  # what would be a wrong advice
    parameter: object = _ANY
    label: object = _ANY  # the column, output or level, alone or as the value of the parameter

    def __repr__(self):
        return self.code

    def complaints(self, error):
        """List what is wrong with an answer."""
        if error is None:
            return ["there is no error"]
        text, found = str(error), []
        if not isinstance(error, self.kind):
            found.append(f"{type(error).__name__} in place of {self.kind.__name__}")
        found += [f"nothing about {word!r}" for word in self.words if word not in text]
        found += [f"says {word!r}" for word in self.never if word in text]
        if len(text.split()) > MOST_WORDS:
            found.append(f"{len(text.split())} words")
        names = self.parameter if isinstance(self.parameter, tuple) else (self.parameter,)
        if self.parameter is not _ANY and (given := _field(error, "parameter")) not in names:
            found.append(f"parameter={given!r} in place of {self.parameter!r}")
        labels = [_field(error, name) for name in ("label", "value")]
        if self.label is not _ANY and not any(_equal(one, self.label) for one in labels):
            found.append(f"label={labels[0]!r}, value={labels[1]!r} in place of {self.label!r}")
        lines = "".join(traceback.format_exception(error)).splitlines()
        if isinstance(error, DPFrameError | FileNotFoundError) and len(lines) > MOST_LINES:
            found.append(f"a traceback of {len(lines)} lines")
        return found


def _field(error, name):
    return getattr(error, name, None)


def _equal(one, other):
    return type(one) is type(other) and one == other


def answered(path):
    """Read a table of mistakes; lists in it are tuples."""
    groups = tomllib.loads(path.read_text(encoding="utf-8")).values()
    return [_mistake(**row) for group in groups for row in group]


def _mistake(code, error, words=(), parameter=_ANY, label=_ANY, **others):
    kind = getattr(errors, error, None) or getattr(builtins, error)
    fields = {"parameter": _as_tuple(parameter), "label": _as_tuple(label)}
    return Mistake(code, kind, tuple(words), tuple(others.get("not", ())), **fields)


def _as_tuple(value):
    return tuple(value) if isinstance(value, list) else value


VISITS = pd.DataFrame(
    {
        "ward": [*"AABBC"] * 4,
        "sex": [*"fmfmf"] * 4,
        "year": [2020, 2021] * 10,
        "stay": [1.0, 2.5, 4.0, 0.5, 8.0] * 4,
        "day": pd.to_datetime(["2024-03-01", "2024-03-02"] * 10),
        "person": [*range(10)] * 2,
    }
)
FACTS = {
    "privacy_unit": "person",
    "max_rows": 2,
    "keys": {"ward": ["A", "B", "C"], "sex": ["f", "m"], "year": [2020, 2021]},
    "bounds": {"stay": (0, 10)},
}
QUERIES = {
    "table": dpf.aggregate("ward", n=dpf.count(), total=dpf.sum("stay"), stay=dpf.mean("stay")),
    "grid": dpf.count(["ward", "sex"]),
    "spread": dpf.ranges("stay", 5, "ward"),
}


def declared(**facts):
    """Declare the visits anew."""
    frame = VISITS.copy()
    frame.dp.declare(**FACTS, **facts)
    return frame


@cache
def released():
    return declared().dp.release(QUERIES, epsilon=3)


def names_in_a_cell(folder):
    """Make what the code of a mistake has at hand, anew for each."""
    return {
        **{name: table.copy() for name, table in released().items()},
        "df": declared(budget=dpf.Budget(epsilon=10, delta=1e-6, discovery=1e-7)),
        "raw": VISITS.copy(),
        "facts": FACTS,
        "tmp": Path(folder),
        **{"dpf": dpf, "pd": pd, "np": np},
    }


def answer_to(code, names):
    """Run code as a cell of a notebook, and return what it raises."""
    linecache.cache["<cell>"] = (len(code), None, [code], "<cell>")  # tracebacks show the line
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, "<cell>", "exec"), names)  # noqa: S102  # it is a notebook's cell
    except Exception as error:  # whatever it is, it is compared
        return error.with_traceback(error.__traceback__.tb_next)  # without this function
    return None


def complaints_of(row, folder):
    """Make a mistake, and list what is wrong with the answer."""
    error = answer_to(row.code, names_in_a_cell(folder))
    found = row.complaints(error)
    return [*found, repr(error)] if found else []
