"""What is logged of a release: its name, its cost and what is left; never a value."""

import logging
import re

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.engines.pandas import PandasEngine
from dpframe.errors import BudgetExceededError, ReleaseError

SECRET = 987654321


@pytest.fixture
def frame():
    made = pd.DataFrame({"zone": ["A", "B", "secret"], "fare": [1.0, 2.0, float(SECRET)]})
    made.dp.declare(
        keys={"zone": ["A", "B"]},
        bounds={"fare": (0, 1e9)},
        privacy_unit=dpf.EACH_ROW,
        budget=dpf.Budget(epsilon=1, delta=1e-6, discovery=1e-7),
    )
    return made


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, logger="dpframe")
    return lambda: [record.getMessage() for record in caplog.records]


ASKED = {
    "count": lambda dp: dp.count("zone", epsilon=0.25, name="2024-03"),
    "release": lambda dp: dp.release(dpf.count("zone"), epsilon=0.25, name="2024-03"),
    "discover": lambda dp: dp.discover("zone", epsilon=0.25, name="2024-03", mechanism="laplace"),
}


@pytest.mark.parametrize("name", ASKED)
def test_name_cost_and_what_is_left_are_logged(name, frame, said, caplog):
    released = ASKED[name](frame.dp)
    charged, done = said()
    what = re.escape(released.dp.certificate.query.words)
    assert re.match(
        rf"charged epsilon=0\.25.*: '2024-03', {what}; laplace; left: 75\.0% of the budget: epsil",
        charged,
    )
    assert re.match(rf"released: '2024-03', {what}; laplace; cost: epsilon=0\.25", done)
    ids = {record.release_id for record in caplog.records}
    assert ids == {released.dp.certificate.release_id}
    assert {record.name for record in caplog.records} == {"dpframe"}


def test_functions_log_the_same_without_a_ledger(said):
    frame = pd.DataFrame({"zone": ["A"]})
    dpf.release(frame, dpf.count(), epsilon=0.5, privacy_unit=dpf.EACH_ROW)
    assert said() == ["released: count; laplace; cost: epsilon=0.5"]


def test_no_value_is_logged(frame, said):
    released = frame.dp.aggregate("zone", n=dpf.count(), fare=dpf.sum("fare"), epsilon=0.9)
    values = {str(one) for one in released.to_numpy().ravel()}
    for line in said():
        assert "secret" not in line and str(SECRET) not in line
        assert not any(value in line for value in values if len(value) > 3)


def test_what_is_refused_or_fails_is_not_released(frame, said, monkeypatch):
    with pytest.raises(BudgetExceededError):
        frame.dp.count(epsilon=2)
    assert said() == []

    def failing(*_, **__):
        raise ValueError(SECRET)

    monkeypatch.setattr(PandasEngine, "totals", failing)
    with pytest.raises(ReleaseError):
        frame.dp.count(epsilon=0.25)
    (only,) = said()
    assert only.startswith("charged epsilon=0.25: count; laplace; left: ")


def test_a_listener_that_fails_costs_no_release(frame):
    def failing(_):
        raise ValueError

    logger = logging.getLogger("dpframe")
    logger.addFilter(failing)
    logger.setLevel(logging.INFO)
    try:
        assert len(frame.dp.count("zone", epsilon=0.25)) == 2
    finally:
        logger.removeFilter(failing)
        logger.setLevel(logging.NOTSET)


def test_names_cannot_write_to_the_log(frame, said):
    frame.dp.aggregate(epsilon=0.25, **{"n\n\x1b[31m": dpf.count()})
    assert all(r"n\n\x1b[31m" in line for line in said())
