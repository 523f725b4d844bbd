"""What `check` finds in pipelines: usual mistakes, each by a named rule, and no false alarm."""

import pytest
from support import pipelines
from support.pipelines import RIGHT, WRONG, rides

import dpframe.testing as dpt


@pytest.mark.parametrize("pipeline", RIGHT, ids=lambda one: one.__name__)
def test_right_pipelines_pass(pipeline):
    run = dpt.check(pipeline, rides(), unit="rider", units=12)
    assert run.measured


def test_a_right_pipeline_with_the_relation_of_replacement_passes():
    assert dpt.check(pipelines.each_row_replaced, rides(120), units=8).measured


@pytest.mark.parametrize("pipeline", WRONG, ids=lambda one: one.__name__)
def test_mistakes_are_found_by_a_rule(pipeline):
    with pytest.raises(dpt.PrivacyTestError) as caught:
        dpt.check(pipeline, rides(), unit="rider", units=12)
    assert caught.value.rule == WRONG[pipeline], str(caught.value)
