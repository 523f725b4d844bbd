"""The table of a ledger in PostgreSQL, and the triggers that refuse all but rows that continue it.

Who may insert can add what a release adds, in a form that every reader understands. What else is
said of a ledger, such as where it was moved, is for whoever owns the table.
"""

import re
from collections.abc import Iterable
from dataclasses import fields
from importlib import resources
from typing import get_args

from dpframe.ledger.chain import ENTRY_KEYS, KEYS_OF_RUN, LOSS_KEYS, MOST_CHARACTERS
from dpframe.ledger.log import RUN_ROWS, SourceFacts
from dpframe.privacy.amounts import SpendKind
from dpframe.privacy.neighbors import Neighboring

MARK = "A ledger of dpframe. Rows are only added."  # tells it from other tables
_AMOUNTS = [f"read #>> '{{loss,{key}}}'" for key in LOSS_KEYS]


def _texts(words: Iterable[str]) -> str:
    """Write an array of texts, none of which has a quote."""
    listed = ", ".join(f"'{word}'" for word in sorted(words))
    return f"ARRAY[{listed}]"


_WORDS = {
    "mark": MARK,
    # of a row that a release adds; those of very many columns have a tenth
    "most_bytes": "1000000",
    "marks": _texts(RUN_ROWS),
    "run_keys": _texts(KEYS_OF_RUN),
    "relations": _texts(get_args(Neighboring)),
    "entry_keys": _texts(ENTRY_KEYS),
    "loss_keys": _texts(LOSS_KEYS),
    "source_keys": _texts(field.name for field in fields(SourceFacts)),
    "spend_keys": _texts(("amount", "delta", "kind")),
    "kinds": _texts(get_args(SpendKind)),
    "texts": _texts(("mechanism", "release_id", "released_at", "what")),
    "texts_or_none": _texts(("frame", "name", "note", "part", "plan", "unit", "user")),
    "amounts": ", ".join([*_AMOUNTS, "read #>> '{spend,amount}'"]),
    # how a chain writes a fraction: decimal, or hexadecimal where it is long
    "amount": "^(0|[1-9][0-9]*|0x[0-9a-f]+)(/([1-9][0-9]*|0x0*[1-9a-f][0-9a-f]*))?$",
    "most_digits": "4000",  # of an amount in decimals: Python reads 4,300
    "most_characters": str(MOST_CHARACTERS),
    # characters that a numerator has more than its denominator: floats end at 308
    "beyond": "250",
}
"""What stands for the words between @ in `table.sql`."""


def statements_to_make(table: str, function: str = "", leases: str = "") -> list[str]:
    """List the statements that make a table with its triggers, and a table of leases."""
    words = {"table": table, "function": function, "leases": leases, **_WORDS}
    form = resources.files("dpframe.ledger").joinpath("table.sql").read_text(encoding="utf-8")
    _, *statements = form.strip().split("\n\n")
    return [
        re.sub("@([a-z_]+)@", lambda word: words[word[1]], statement) for statement in statements
    ]


def source_of(table: str) -> str:
    """Give what the triggers of a table do, as PostgreSQL keeps it."""
    _, source, _ = "".join(statements_to_make(table)).split("$$")
    return source
