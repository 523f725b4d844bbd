"""Ledgers: exact shares, refusals before anything is recorded, and what they show."""

import copy
import pickle
import threading
import time
from fractions import Fraction

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, gaussian, pure, status

import dpframe as dpf
from dpframe.errors import BudgetExceededError, DeclarationError, LedgerError
from dpframe.ledger.ledger import BudgetStatus, Ledger
from dpframe.privacy.amounts import Budget, PrivacyLoss
from dpframe.privacy.calibration import gaussian_mu
from dpframe.privacy.composition import Composition


@pytest.fixture
def trips() -> pd.DataFrame:
    return pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "auto"])
@pytest.mark.parametrize("n", [1, 3, 7, 10])
def test_shares_add_up_to_exactly_the_whole(trips, n, mechanism):
    trips.dp.declare(budget=ONE)
    for _ in range(n):
        trips.dp.count(share=1 / n, mechanism=mechanism)
    assert trips.dp.budget.remaining_share == 0
    with pytest.raises(BudgetExceededError, match="does not fit in what is left of Budget"):
        trips.dp.count(share=1 / n, mechanism=mechanism)
    with pytest.raises(BudgetExceededError):
        trips.dp.count(share=1e-4, mechanism=mechanism)
    assert len(trips.dp.ledger.entries) == n


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_tenth_of_epsilon_fits_ten_times(trips, delta):
    trips.dp.declare(budget=Budget(1, delta))
    for _ in range(10):
        trips.dp.count(epsilon=0.1, mechanism="laplace")
    assert trips.dp.budget.spent == pure(1)
    assert trips.dp.budget.spent_epsilon == 1
    with pytest.raises(BudgetExceededError):
        trips.dp.count(epsilon=0.1, mechanism="laplace")


def test_epsilons_of_gaussian_releases_that_add_up_to_the_budget_leave_some_over(trips):
    trips.dp.declare(budget=ONE)
    for _ in range(10):
        trips.dp.count(epsilon=0.1, mechanism="gaussian")
    assert trips.dp.budget.spent_epsilon < 0.5
    assert trips.dp.budget.spent.mu < gaussian_mu(1, 1e-6)


def test_what_does_not_fit_is_refused_before_it_is_recorded():
    ledger = Ledger(budget=ONE)
    ledger.charge(entry(gaussian(0.2)))
    before = ledger.entries
    with pytest.raises(BudgetExceededError) as caught:
        ledger.charge(entry(pure(0.5)))
    assert ledger.entries is before
    assert "needs epsilon=0.5, which does not fit" in str(caught.value)
    assert "Budget(epsilon=1.0, delta=1e-06)" in str(caught.value)
    assert "mu=0.1266" in str(caught.value)
    assert not ledger.allows(pure(0.5))
    assert ledger.entries is before


def test_a_refused_release_draws_and_charges_nothing(trips):
    trips.dp.declare(budget=ONE)
    with pytest.raises(BudgetExceededError):
        trips.dp.count(epsilon=1.1)
    assert trips.dp.budget.remaining_share == 1
    assert not trips.dp.preview(dpf.count(), epsilon=1.1)["fits"].any()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_threads_race_for_the_last_share_and_one_wins(kind, kept, tmp_path, monkeypatch):
    decide = Composition.fits

    def hesitantly(*given):
        """Give other threads the time to decide on the same state."""
        answer = decide(*given)
        time.sleep(0.005)
        return answer

    monkeypatch.setattr(Composition, "fits", hesitantly)
    path = tmp_path / "race.ledger"
    ledger = Ledger(budget=ONE) if kept == "in memory" else Ledger.create(path, budget=ONE)
    whole = Fraction(gaussian_mu(1, 1e-6)) ** 2
    half = pure(0.5) if kind == "laplace" else PrivacyLoss(mu_squared=whole / 2)
    ledger.charge(entry(half))
    gate, outcomes = threading.Barrier(8), []

    def race():
        gate.wait()
        try:
            ledger.charge(entry(half))
        except BudgetExceededError:
            outcomes.append("refused")
        else:
            outcomes.append("won")

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 7 + ["won"]
    assert len(ledger.entries) == 2


def test_shares_that_remain_can_be_spent(trips):
    trips.dp.declare(budget=Budget(0.7, 1e-7))
    trips.dp.count(mu=0.0123456789, mechanism="gaussian")
    trips.dp.count(share=trips.dp.budget.remaining_share, mechanism="gaussian")
    assert trips.dp.budget.remaining_share < 1e-15
    with pytest.raises(BudgetExceededError):
        trips.dp.count(share=1e-9, mechanism="gaussian")


def test_releases_are_listed(trips):
    trips.dp.declare(keys={"zone": ["A", "B"]}, budget=ONE)
    empty = trips.dp.budget.releases
    columns = ["released_at", "what", "mechanism", "epsilon", "mu", "delta"]
    assert (list(empty.columns), len(empty), empty.index.name) == (columns, 0, "release_id")
    released = trips.dp.count(by="zone", epsilon=0.25, mechanism="laplace")
    trips.dp.count(mu=0.1, mechanism="gaussian")
    listed = trips.dp.budget.releases
    assert list(listed.columns) == columns
    assert listed.index[0] == released.attrs["dpframe"]["release_id"]
    assert listed["what"].tolist() == ["count by zone", "count"]
    assert listed["mechanism"].tolist() == ["laplace", "gaussian"]
    assert listed[["epsilon", "mu", "delta"]].to_numpy().tolist() == [[0.25, 0, 0], [0, 0.1, 0]]
    assert pd.to_datetime(listed["released_at"]).dt.tz is not None


def test_the_budget_is_shown_rounded_to_what_can_be_spent():
    left = status(ONE, pure(0.25), gaussian(0.1))
    text = repr(left)
    assert "Budget     epsilon=1, delta=1e-06" in text
    assert f"mu={left.spent_mu:.4g}, rho={left.spent_rho:.4g} (epsilon=0.25, mu=0.1)" in text
    assert text.count("count: name, ") == 2
    remaining = text.splitlines()[2].replace(",", "")
    shown = dict(part.split("=") for part in remaining.split() if "=" in part)
    assert 0.999 * left.remaining_mu < float(shown["mu"]) <= left.remaining_mu
    assert 0.999 * left.remaining_epsilon < float(shown["epsilon"]) <= left.remaining_epsilon
    assert 0.999 * left.remaining_rho < float(shown["rho"]) <= left.remaining_rho
    assert 0.999 * left.remaining_share < float(shown["share"]) <= left.remaining_share
    assert "Remaining  mu=0 (Gaussian) or epsilon=0.1 (Laplace)" in repr(status(PURE, pure(0.9)))


@pytest.mark.parametrize("budget", [None, 1.0, (1, 1e-6), {"epsilon": 1}])
def test_a_ledger_needs_a_budget(budget):
    with pytest.raises(DeclarationError, match=r"budget must be a dpf.Budget, got .* dpf.Budget\("):
        Ledger(budget=budget)


def test_ledgers_have_identities_of_their_own():
    assert Ledger(budget=ONE).ledger_id != Ledger(budget=ONE).ledger_id


def test_of_many_releases_the_last_are_shown():
    text = repr(status(ONE, *[gaussian(0.01)] * 50))
    assert "30 earlier releases" in text
    assert text.count("count: name") == 20


@pytest.mark.parametrize("currency", ["mu", "rho", "epsilon"])
def test_what_is_shown_to_remain_can_be_released(trips, currency):
    trips.dp.declare(budget=ONE)
    trips.dp.count(mu=0.1, mechanism="gaussian")
    trips.dp.count(epsilon=0.1, mechanism="laplace")
    left = {currency: getattr(trips.dp.budget, f"remaining_{currency}")}
    mechanism = "laplace" if currency == "epsilon" else "gaussian"
    trips.dp.count(**left, mechanism=mechanism)
    assert len(trips.dp.ledger.entries) == 3
    more = {currency: left[currency] / 1000}
    with pytest.raises(BudgetExceededError):
        trips.dp.count(**more, mechanism=mechanism)


def test_a_status_of_entries_alone_is_that_of_the_ledger():
    ledger = Ledger(budget=ONE)
    for loss in (pure(0.2), gaussian(0.05), pure(0.01)):
        ledger.charge(entry(loss))
    again = BudgetStatus(ONE, ledger.entries)
    assert again == ledger.status() == ledger.last_status()
    assert again.composition == ledger.status().composition
    assert again.spent_epsilon == ledger.status().spent_epsilon


def test_the_ledger_as_a_frame_shows_what_was_spent_by_then(trips):
    trips.dp.declare(keys={"zone": ["A", "B"]}, budget=ONE)
    assert trips.dp.ledger.to_frame().empty
    heads, spent = [], []
    for spend in ({"mu": 0.1, "mechanism": "gaussian"}, {"epsilon": 0.2, "mechanism": "laplace"}):
        trips.dp.count(by="zone", **spend)
        heads.append(trips.dp.ledger.head)
        spent.append(trips.dp.budget.spent_epsilon)
    frame = trips.dp.ledger.to_frame()
    assert frame.index.tolist() == [each.release_id for each in trips.dp.ledger.entries]
    columns = [
        "released_at",
        "what",
        "mechanism",
        "epsilon",
        "mu",
        "delta",
        "spent_epsilon",
        "hash",
    ]
    assert list(frame.columns) == columns
    assert frame["spent_epsilon"].tolist() == spent
    assert frame["hash"].tolist() == heads
    assert frame["mu"].tolist() == [0.1, 0]
    pd.testing.assert_frame_equal(frame[columns[:6]], trips.dp.budget.releases)


def test_the_ledger_as_an_event_of_dp_accounting(trips):
    events = pytest.importorskip("dp_accounting.dp_event")
    trips.dp.declare(budget=ONE)
    assert trips.dp.ledger.to_dp_event() == events.NoOpDpEvent()
    trips.dp.count(mu=0.125, mechanism="gaussian")
    trips.dp.count(epsilon=0.25, mechanism="laplace")
    assert trips.dp.ledger.to_dp_event() == events.ComposedDpEvent(
        [events.GaussianDpEvent(8.0), events.LaplaceDpEvent(4.0)]
    )


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_in_memory_is_not_doubled(way):
    with pytest.raises(LedgerError, match=r"would spend the budget again.*Ledger\.create\(path"):
        way(Ledger(budget=ONE))


def test_the_head_covers_budget_and_entries():
    ledgers = [Ledger(budget=ONE), Ledger(budget=ONE)]
    assert ledgers[0].head != ledgers[1].head
    before = ledgers[0].head
    ledgers[0].charge(entry(pure(0.1)))
    assert ledgers[0].head != before
    assert len(before) == 64
    assert ledgers[0].path is None
    assert repr(ledgers[0]) == f"<Ledger in memory: {ONE}, 1 releases>"
