"""Lines of keys, found in one pass; and texts that would be read for minutes, refused at once."""

import subprocess
import sys
import tomllib

import pytest
from support.planning import PLAN

from dpframe.jobs.plan_toml import line_of, too_much

TOML = '''\
# a comment = "not a key"
title = "= [x" # another
"quoted.key" = 1
'lite.ral' = 'C:\\'

dotted . "a b".c = { d = [1, 2,], e.f = "}" }
many = [
  1, # ]
  "]",
  [2,
   3]
]
text = """
[not.a.table]
key = 1 \\""" still
"a""""
raw = \'\'\'
[nor.this]
\'\'\'\'
empty = ""
none = """"""
moment = 2024-03-01T00:00:00Z

[one]
x = 1
[one.two]
y = { z = 1 }
  [ "thr ee" . four ]
  x = 2
[[list]]
x = 1
[[list]]
x = 2
[one.three]
x.y.z = 1
x.y.w = 2
last = 3'''


def all_keys(table, before=()):
    for key, value in table.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from all_keys(value, (*before, key))


def holds(table, keys):
    """Whether a table has a key within its tables."""
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            return False
        table = table[key]
    return True


def by_growing(text, keys):
    """Find the line by another route: the first lines that are TOML and hold the key."""
    lines, before = text.splitlines(keepends=True), 0
    for end in range(1, len(lines) + 1):
        try:
            found = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if holds(found, keys):
            said = (at for at in range(before, end) if lines[at].strip() and lines[at][0] != "#")
            return 1 + next(said)
        before = end
    return None


@pytest.mark.parametrize("text", [TOML, PLAN, "", "a = 1", "a = 1\n\n\n[b]"])
def test_lines_are_those_on_which_keys_are_given(text):
    table = tomllib.loads(text)
    for keys in all_keys(table):
        assert line_of(text, keys) == by_growing(text, keys) is not None
    assert line_of(text, ("nowhere",)) is None
    assert line_of(text, ("one", "nowhere")) == line_of(text, ("one",))
    assert too_much(text) is None


LONG = "a = [" + "1.5, " * 190_000 + "]"
QUERIES = "".join(f'[queries.q{n}]\nkind = "count"\nby = "zone"\n' for n in range(2_000))
SLOW = {
    "parts of a key": (".".join(["a"] * 60_000) + " = 1", "20 parts"),
    "parts of a header": ("[" + ".".join(['"a"'] * 60_000) + "]", "20 parts"),
    "parts within": ("a = { " + ".".join(["a"] * 60_000) + " = 1 }", "20 parts"),
    "keys": ("\n".join(f"a.b{n} = 1" for n in range(60_000)), "10,000 keys"),
    "keys within": ("a = {" + ",".join(f"b{n}=1" for n in range(60_000)) + "}", "10,000 keys"),
    "a whole number": ("a = 0x" + "f" * 10**6, "500 characters"),
    "a real number": ("a = 1." + "1" * 10**6, "500 characters"),
    "digits": ("a = " + "1_" * 400_000, "500 characters"),
    "a word": ("a" * 10**6, "500 characters"),
    "tables within": ("a = " + "{ a = " * 90_000, "10,000 keys"),
    "lists within": ("a = " + "[" * 10**6, "no TOML"),
    "a text without end": ("a = " + '"""' + '\\"""' * 200_000, "no TOML"),
    "quotes": ("a = " + '"' * 10**6, "no TOML"),
    "single quotes": ("a = " + "'" * 10**6, "no TOML"),
    "escapes": ("a = " + "\\" * 10**6, "500 characters"),
    "dots": ("." * 10**6, "20 parts"),
    "many numbers": (LONG, "no key of a plan"),
    "a typo below many keys": (
        PLAN.replace("max_rows", "max_row")
        + "".join(f'[queries.q{n}]\nkind = "count"\nby = "zone"\n' for n in range(160)),
        "Did you mean 'max_rows'",
    ),
    "a typo above many keys": (QUERIES + '[queries.last]\nkind = "coun"', "line 6002, "),
    "an amount": (PLAN.replace('"1/12"', '"1e999999999"'), "or a text such as"),
    "a fraction": (PLAN.replace('"1/12"', f'"1/{"9" * 900_000}"'), "or a text such as"),
    "an exponent": (PLAN.replace('"1/12"', "1e999999999"), "must be in (0, 1]"),
    "a budget": (PLAN + 'budget = { epsilon = "1e999999999" }', "or a text such as"),
    "placeholders": (
        PLAN.replace('"trips {month}"', f'"{"{month}" * 100_000}"'),
        "10,000 characters",
    ),
}
RUN = """
import sys, time
from pathlib import Path
from dpframe.errors import PlanFileError
from dpframe.jobs.job import Overrides, read_plan
for path in sorted(Path(sys.argv[1]).glob("*.toml")):
    given = Overrides({"month": "3"} if "{month}" in path.read_text() else {})
    began = time.process_time()
    try:
        read_plan(path, given)
    except PlanFileError as error:
        print(path.stem, time.process_time() - began, error, sep="\\t", flush=True)
"""


@pytest.mark.full
def test_no_plan_takes_long_to_be_refused(tmp_path):
    for name, (text, _) in SLOW.items():
        (tmp_path / f"{name}.toml").write_text(text)
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert {name for name, _, _ in answers} == set(SLOW)
    for name, seconds, told in answers:
        assert SLOW[name][1] in told
        assert float(seconds) < 5, name  # about one second at most where nothing else runs
        assert len(told) < 1000
