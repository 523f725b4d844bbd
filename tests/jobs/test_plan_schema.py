"""The schema of plans knows every key, takes every plan that is read, and refuses slips."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.planning import PLAN
from support.terminal import SOUND, main

from dpframe.jobs import job
from dpframe.jobs.plan_models import plan_schema
from dpframe.privacy.amounts import AMOUNTS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = plan_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def plans_of_docs():
    """Find the plans in pages and examples."""
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.toml")]):
        text = path.read_text(encoding="utf-8")
        found = re.findall(r'(?:```toml|""")\n(\[data\]\n.*?)(?:```|""")', text, re.DOTALL)
        for plan in [text] * (path.suffix == ".toml" and "\n[data]" in text) or found:
            yield pytest.param(plan, id=path.stem)


PLANS = list(plans_of_docs())


def test_pages_have_plans():
    assert len(PLANS) >= 2


@pytest.mark.parametrize("text", PLANS)
def test_plans_of_pages_follow_the_schema(text):
    VALIDATOR.validate(tomllib.loads(text))


def test_the_schema_has_every_key():
    assert {*SCHEMA["properties"]} == {"data", "declare", "queries", "release", "ledger", "values"}
    queries = SCHEMA["properties"]["queries"]["additionalProperties"]["anyOf"]
    named = [one["$ref"].rpartition("/")[2] for one in queries]
    assert named == [*job.QUERIES, *job.SEARCHES]
    assert {*AMOUNTS} < {*SCHEMA["$defs"]["release"]["properties"]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[declare]", "[declared]"),
        ("max_rows = 3", 'max_rows = "3"'),
        ("max_rows = 3", "max_row = 3"),
        ('kind = "histogram"', 'kind = "histogramm"'),
        ('column = "fare"', 'columns = "fare"'),
        ('column = "fare"', ""),
        ("bins = 10", "bin = 10"),
        ("bounds.fare = [0, 100]", "bounds.fare = [0]"),
        ('share = "1/12"', "share = true"),
        ('share = "1/12"', 'share = "1/12"\nmechanism = "gauss"'),
        ('outputs.trips = { kind = "count" }', 'outputs.trips = { kind = "count", colour = 1 }'),
        ('path = "trips.ledger"', 'pfad = "trips.ledger"'),
    ],
)
def test_slips_are_no_plans(old, new):
    assert PLAN.count(old) == 1
    assert VALIDATOR.is_valid(tomllib.loads(PLAN))
    assert not VALIDATOR.is_valid(tomllib.loads(PLAN.replace(old, new)))


def test_the_command_prints_it(capsys):
    assert main(["schema"]) == SOUND
    assert json.loads(capsys.readouterr().out) == SCHEMA
