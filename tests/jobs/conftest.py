"""Every plan that is read in the tests of jobs is what the schema of plans says, too."""

from functools import cache

import pytest
from jsonschema import Draft202012Validator
from support.planning import planned

from dpframe.jobs import job
from dpframe.jobs.plan_models import plan_schema

LATER = (["release", "mechanism"], ["release", "denoise"])


@cache
def validator():
    Draft202012Validator.check_schema(plan_schema())
    return Draft202012Validator(plan_schema())


@pytest.fixture(autouse=True)
def plans_that_are_read_follow_the_schema(monkeypatch):
    made = job.Job

    def checked(**fields):
        faults = list(validator().iter_errors(fields["plan"].table))
        # names of mechanisms are looked at later than the plan is read
        assert [one.message for one in faults if list(one.path) not in LATER] == []
        return made(**fields)

    monkeypatch.setattr(job, "Job", checked)


@pytest.fixture
def plan(tmp_path):
    """A plan with data and a ledger, unless a file makes one of its own."""
    return planned(tmp_path)
