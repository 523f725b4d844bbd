"""Mistakes in plan files: each is answered in one line, with its place and a way out."""

from dataclasses import dataclass

import pytest
from support.planning import planned
from support.raising import MOST_WORDS
from support.terminal import main


@dataclass(frozen=True, repr=False)
class PlanMistake:
    """A change of a plan file, and what the line on standard error must have."""

    old: str
    new: str
    words: tuple[str, ...]
    never: tuple[str, ...] = ()
    code: int = 2

    def __repr__(self):
        return f"{self.old} -> {self.new}".replace("\n", "; ")

    def complaints(self, code, text):
        """List what is wrong with an answer."""
        found = [f"nothing about {word!r}" for word in self.words if word not in text]
        found += [f"says {word!r}" for word in self.never if word in text]
        if code != self.code:
            found.append(f"code {code} in place of {self.code}")
        if len(text.split()) > MOST_WORDS or len(text.splitlines()) > 1:
            found.append(f"{len(text.split())} words in {len(text.splitlines())} lines")
        return found


def plan_mistake(old, new, *words, **others):
    return PlanMistake(old, new, words, **others)


_SHARE, _BINS = 'share = "1/12"', "bins = { from = 0, to = 100, bins = 10 }"
_KEYS, _LEDGER = 'keys.zone = ["A", "B", "C"]', 'path = "trips.ledger"'
_UNIT, _FILES = 'privacy_unit = "driver"', 'files = "{query}-{month}.csv"'
_COUNT = 'outputs.trips = { kind = "count" }'

PLANS = [
    plan_mistake("[release]", "[relase]", "line 21", "'release'"),
    plan_mistake(_SHARE, 'shares = "1/12"', "line 22, release.shares", "'share'"),
    plan_mistake(_SHARE, "share = 50", "line 22, release.share", "0.5"),
    plan_mistake(_SHARE, 'share = "a twelfth"', "line 22, release.share", "number"),
    plan_mistake(_SHARE, "", "line 21, release", "share="),
    plan_mistake(_SHARE, "epsilon = 1\nmu = 1", "release", "exactly one way"),
    plan_mistake(_SHARE, "epsilon = 5", "Left", never=("larger budget", "twice"), code=3),
    plan_mistake(_SHARE, f'{_SHARE}\nmechanism = "gausian"', "release.mechanism", "'gaussian'"),
    plan_mistake(_SHARE, f"{_SHARE}\nseed = 3", "line 23, release.seed", "no key"),
    plan_mistake(
        _LEDGER,
        f'{_LEDGER}\nbudget = {{ epsilon = 2, part = "w" }}',
        "budget.part",
        "Put it into [ledger]",
    ),
    plan_mistake('by = "zone"', 'by = "zonne"', "line 12, queries.by_zone.by", "'zone'"),
    plan_mistake('kind = "histogram"', 'kind = "hist"', "line 17, queries.fares.kind", "histogram"),
    plan_mistake('kind = "histogram"\n', "", "line 16, queries.fares", "kind"),
    plan_mistake('column = "fare"', 'colum = "fare"', "line 18, queries.fares.colum", "'column'"),
    plan_mistake('column = "fare"', 'column = "fares"', "line 18, queries.fares.column", "'fare'"),
    plan_mistake('column = "fare"', "column = fare", "line 18, column = fare", "quotes"),
    plan_mistake(
        'column = "fare"', 'column = "fare"\nwhere = "zone = 3"', "queries.fares.where", "=="
    ),
    plan_mistake(
        'column = "fare"', 'column = "fare"\nwhere = "far > 3"', "queries.fares.where", "'far'"
    ),
    plan_mistake(_BINS, 'bins = "10"', "line 19, queries.fares.bins", "from = 0"),
    plan_mistake(_BINS, "bins = [0, 5, 5]", "line 19, queries.fares.bins", "above the one before"),
    plan_mistake(_BINS, "", "line 16, queries.fares", "from = 0"),
    plan_mistake("max_rows = 3", 'max_rows = "3"', "line 6, declare.max_rows", "whole number"),
    plan_mistake("max_rows = 3\n", "", "line 5, declare.privacy_unit", "max_rows"),
    plan_mistake(_UNIT, 'privacy_unit = "drivr"', "line 5, declare.privacy_unit", "'driver'"),
    plan_mistake(f"{_UNIT}\nmax_rows = 3\n", "", "line 4, declare", "each_row = true"),
    plan_mistake(_KEYS, 'keys.zone = "A"', "line 7, declare.keys.zone", "list"),
    plan_mistake(_KEYS, 'keys.zone = ["A", "A"]', "line 7, declare.keys.zone", "unique"),
    plan_mistake(_KEYS, 'keys.zone = { file = "a.txt" }', "line 7, declare.keys.zone", "no file"),
    plan_mistake(
        "bounds.fare = [0, 100]", "bounds.fare = [100, 0]", "line 8, declare.bounds.fare", "Swap"
    ),
    plan_mistake("bounds.fare = [0, 100]\n", "", "line 13, queries.by_zone", "bounds"),
    plan_mistake(
        _COUNT, 'outputs.trips = "count"', "line 13, queries.by_zone.outputs.trips", "table"
    ),
    plan_mistake("[queries.fares]", "[queries.by_zone]", "line 16, [queries.by_zone]", "twice"),
    plan_mistake(_FILES, 'files = "{query}-{month}.xlsx"', "line 24, release.files", ".parquet"),
    plan_mistake(_FILES, 'files = "{month}.csv"', "line 24, release.files", "{query}"),
    plan_mistake(_FILES, 'files = "out/{query}.csv"', "line 24, release.files", "no folder"),
    plan_mistake(_FILES, 'files = "{quary}-{month}.csv"', "line 24, release.files", "{query}"),
    plan_mistake('name = "trips {month}"', 'name = "trips"', "line 23, release.name", "{month}"),
    plan_mistake('name = "trips {month}"', "name = 3", "line 23, release.name", "text"),
    plan_mistake(_LEDGER, 'path = "other.ledger"', "line 27, ledger.path", "--create"),
    plan_mistake(
        _LEDGER, f"{_LEDGER}\nbudget = {{ epsilon = 3 }}", "line 28, ledger.budget", "epsilon=2"
    ),
    plan_mistake('path = "trips-{month}.csv"', 'path = "trips.csv"', "line 2, data.path", "no "),
    plan_mistake(
        'path = "trips-{month}.csv"', 'path = "{month}.xlsx"', "line 2, data.path", ".csv"
    ),
]


@pytest.mark.parametrize("row", PLANS, ids=repr)
def test_a_mistake_in_a_plan_is_answered(row, tmp_path, capsys):
    plan = planned(tmp_path, (row.old, row.new))
    code = main(["release", str(plan), "--set", "month=2024-03", "--quiet"])
    text = capsys.readouterr().err.replace(str(tmp_path), "").strip()
    assert not row.complaints(code, text), text
