"""A ledger named by its path: made where it is missing, continued where it is there."""

import logging
import multiprocessing
import warnings

import pandas as pd
import pytest

import dpframe as dpf
from dpframe.errors import AlreadyReleasedError, DeclarationError, DPFrameWarning, LedgerError

BUDGET = dpf.Budget(epsilon=1, delta=1e-6)


def visits(path, **facts):
    frame = pd.DataFrame({"who": [1, 1, 2], "ward": ["A", "B", "A"]})
    known = {"privacy_unit": "who", "max_rows": 2, "keys": {"ward": ["A", "B"]}, "budget": BUDGET}
    frame.dp.declare(**known | facts, ledger=path)
    return frame


def declare_in_process(path):
    return visits(path).dp.ledger.ledger_id


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, logger="dpframe")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["text", "path"])
def test_a_second_run_goes_on_with_what_is_left_and_says_so(tmp_path, said, kind):
    path = tmp_path / "visits.ledger"
    visits(kind(path)).dp.count("ward", share=0.25)
    assert path.exists() and said() == []
    again = visits(kind(path))
    assert again.dp.budget.remaining_share == 0.75
    (line,) = said()
    assert "visits.ledger goes on; spent before: 25% of the budget in shares" in line
    assert "releases: 1; left: 75.0% of the budget" in line
    again.dp.count("ward", share=0.75)
    with pytest.raises(dpf.errors.BudgetExceededError, match="Run twice"):
        visits(path, budget=None).dp.count("ward", share=0.25)


def test_a_named_release_is_made_once(tmp_path):
    path = tmp_path / "visits.ledger"
    visits(path).dp.count("ward", share=0.25, name="march")
    with pytest.raises(AlreadyReleasedError):
        visits(path).dp.count("ward", share=0.25, name="march")


def test_another_budget_than_that_of_the_file_is_refused(tmp_path):
    path = tmp_path / "visits.ledger"
    visits(path)
    with pytest.raises(DeclarationError, match="Leave budget= out, or choose another path"):
        visits(path, budget=dpf.Budget(epsilon=2))


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"budget": None}, LedgerError),
        ({"budget": 1.0}, DeclarationError),
        ({"keys": {"war": ["A"]}}, dpf.errors.UnknownColumnError),
        ({"max_rows": 0}, DeclarationError),
    ],
)
def test_what_is_refused_makes_no_file(tmp_path, facts, error):
    path = tmp_path / "visits.ledger"
    with pytest.raises(error):
        visits(path, **facts)
    assert not path.exists()


def test_processes_that_declare_at_once_share_one_file(tmp_path):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        made = pool.map(declare_in_process, [tmp_path / "visits.ledger"] * 8, chunksize=1)
    assert len(set(made)) == 1


def test_a_decorated_function_takes_the_path(tmp_path):
    path = tmp_path / "visits.ledger"

    @dpf.declares(privacy_unit=dpf.EACH_ROW, keys={"ward": ["A"]}, budget=BUDGET, ledger=path)
    def load():
        return pd.DataFrame({"ward": ["A", "A"]})

    load().dp.count("ward", share=0.5)
    assert load().dp.budget.remaining_share == 0.5


def test_a_budget_in_memory_is_warned_of_once(tmp_path):
    def warned(frame, **facts):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame.dp.declare(privacy_unit=dpf.EACH_ROW, **facts)
        assert all(one.category is DPFrameWarning for one in caught)
        return ["forgotten when Python ends" in str(one.message) for one in caught]

    frame = pd.DataFrame({"x": [1]})
    assert warned(frame, budget=BUDGET) == [True]
    assert warned(frame, budget=BUDGET) == []
    kept = {"ledger": tmp_path / "x.ledger", "budget": BUDGET}
    for facts in ({}, kept, {"ledger": dpf.Ledger(budget=BUDGET)}):
        assert warned(pd.DataFrame({"x": [1]}), **facts) == []


def test_a_warning_made_an_error_leaves_the_frame_undeclared():
    frame = pd.DataFrame({"x": [1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DPFrameWarning):
            frame.dp.declare(privacy_unit=dpf.EACH_ROW, budget=BUDGET)
    with pytest.raises(DeclarationError):
        _ = frame.dp.ledger
