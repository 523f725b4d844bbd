"""Ledgers: exact shares, refusals before anything is recorded, and what they show."""

import threading
import time
from fractions import Fraction

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, gaussian, pure, status
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import BudgetExceededError, CalibrationError, DeclarationError, LedgerError
from dpframe.privacy.amounts import Budget, PrivacyLoss
from dpframe.privacy.gaussian import gaussian_mu
from dpframe.privacy.pots import Pots, settle_pots

COLUMNS = ["released_at", "what", "mechanism", "share", "part", "epsilon", "mu", "delta"]
COLUMNS += ["name", "frame", "unit", "columns", "user", "note"]


@pytest.fixture
def trips() -> pd.DataFrame:
    return pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})


def test_epsilons_of_gaussian_releases_that_add_up_to_the_budget_leave_some_over(trips):
    trips.dp.declare(budget=ONE)
    for _ in range(10):
        trips.dp.count(epsilon=0.1, mechanism="gaussian")
    assert trips.dp.budget.used < 0.5
    assert trips.dp.budget.spent.mu < gaussian_mu(1, 1e-6)


def test_what_does_not_fit_is_refused_before_it_is_recorded():
    ledger = Ledger(budget=ONE)
    ledger.charge(entry(gaussian(0.2)))
    before = ledger.entries
    with pytest.raises(BudgetExceededError) as caught:
        ledger.charge(entry(pure(0.5)))
    assert ledger.entries == before
    assert str(caught.value).startswith("epsilon=0.5 does not fit")
    assert "Budget(epsilon=1.0, delta=1e-06)" in str(caught.value)
    assert "mu=0.1218" in str(caught.value)
    assert not ledger.allows(pure(0.5))
    assert ledger.entries == before


def test_a_refused_release_draws_and_charges_nothing(trips):
    trips.dp.declare(budget=ONE)
    with pytest.raises(BudgetExceededError):
        trips.dp.count(epsilon=1.1)
    assert trips.dp.budget.remaining_share == 1
    assert not trips.dp.plan(dpf.count(), epsilon=1.1).table["fits"].any()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_threads_race_for_the_last_share_and_one_wins(kind, kept, tmp_path, monkeypatch):
    decide = Pots.fits

    def hesitantly(*given):
        """Give other threads the time to decide on the same state."""
        answer = decide(*given)
        time.sleep(0.005)
        return answer

    monkeypatch.setattr(Pots, "fits", hesitantly)
    path = tmp_path / "race.ledger"
    ledger = Ledger(budget=ONE) if kept == "in memory" else Ledger.create(path, budget=ONE)
    most = settle_pots(ONE).pots[1].limit
    half = pure(0.5) if kind == "laplace" else PrivacyLoss(mu_squared=most / 2)
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


def test_releases_are_listed(trips):
    trips.dp.declare(keys={"zone": ["A", "B"]}, budget=ONE)
    empty = trips.dp.budget.releases
    assert (list(empty.columns), len(empty), empty.index.name) == (COLUMNS, 0, "release_id")
    released = trips.dp.count(by="zone", epsilon=0.25, mechanism="laplace")
    trips.dp.release(dpf.count(), mu=0.1, mechanism="gaussian")
    listed = trips.dp.budget.releases
    assert list(listed.columns) == COLUMNS
    assert listed.index[0] == released.dp.certificate.release_id
    assert listed["what"].tolist() == ["count by zone", "count"]
    assert listed["mechanism"].tolist() == ["laplace", "gaussian"]
    amounts = listed[["epsilon", "mu", "delta"]]
    assert amounts.fillna(-1).to_numpy().tolist() == [[0.25, -1, -1], [-1, 0.1, -1]]
    assert listed["columns"].tolist() == [("zone",), ()]
    assert listed.dtypes[["share", "part", "epsilon", "mu", "delta"]].eq("float64").all()
    assert empty.dtypes.equals(listed.dtypes)
    assert pd.to_datetime(listed["released_at"]).dt.tz is not None


def test_the_budget_is_shown_rounded_to_what_can_be_spent():
    left = status(ONE, pure(0.25), gaussian(0.1))
    text = repr(left)
    assert "Budget     epsilon=1, delta=1e-06" in text
    assert f"Spent      {100 * left.used:.3g}% of the budget: epsilon=0.25, mu=0.1\n" in text
    assert text.count("count: mechanism, ") == 2
    remaining = text.splitlines()[2].replace(",", "").replace(";", "")
    shown = dict(part.split("=") for part in remaining.split() if "=" in part)
    assert 0.999 * left.remaining_mu < float(shown["mu"]) <= left.remaining_mu
    assert 0.999 * left.remaining_epsilon < float(shown["epsilon"]) <= left.remaining_epsilon
    line = "Remaining  10.0% of the budget: epsilon=0.1 of Laplace noise; share=1 takes all of it"
    assert line in repr(status(PURE, pure(0.9)))
    kept = repr(status(Budget(1, 1e-6, discovery=2e-7)))
    assert "delta=1e-06 (2e-07 of it to find groups with)" in kept
    assert "Spent      0% of the budget: nothing\n" in kept
    assert kept.endswith("share=1 takes all of it; delta=2e-07 to find groups with")
    less = status(
        Budget(1, 1e-6, discovery=2e-7), PrivacyLoss(Fraction(1, 4), delta=Fraction(3, 10**8))
    )
    assert "takes all of it; delta=1.7e-07 to find groups with\n" in repr(less)
    assert "to find groups with" not in repr(status(Budget(1, 1e-6)))


def test_every_release_shows_one_number_that_adds_up_to_what_is_used():
    left = status(ONE, pure(0.25), gaussian(0.1), gaussian(0.02), pure(0.01))
    parts = [left.part(loss) for loss in left.losses]
    assert sum(parts) == pytest.approx(left.used, rel=1e-12)
    assert min(parts) > 0
    assert left.releases["part"].tolist() == parts
    for line, part in zip(repr(left).splitlines()[3:], parts, strict=True):
        assert f": mechanism, {100 * part:.3g}% of the budget, " in line
    whole = status(ONE, gaussian(gaussian_mu(1, 1e-6)))
    assert (whole.used, whole.part(whole.losses[0]), whole.part(PrivacyLoss())) == (1, 1, 0)


def test_twelve_certificates_of_a_quarter_stay_under_a_budget_of_one(trips):
    trips.dp.declare(budget=ONE)
    released = [trips.dp.count(share=1 / 12, mechanism="gaussian") for _ in range(12)]
    epsilons = [each.dp.certificate.privacy_loss.epsilon for each in released]
    assert epsilons == pytest.approx([0.26116] * 12, rel=1e-4)
    assert sum(epsilons) > 3
    parts = [each.dp.certificate.ledger.part for each in released]
    assert parts == pytest.approx([1 / 12] * 12)
    assert trips.dp.budget.releases["share"].sum() == pytest.approx(1)
    assert released[2].dp.certificate.ledger.used == pytest.approx(3 / 12)


@pytest.mark.parametrize("budget", [None, 1.0, (1, 1e-6), {"epsilon": 1}])
def test_a_ledger_needs_a_budget(budget):
    with raises(DeclarationError, "dpf.Budget", parameter="budget"):
        Ledger(budget=budget)


@pytest.mark.parametrize("currency", ["mu", "rho", "epsilon"])
def test_what_is_shown_to_remain_can_be_released(trips, currency):
    trips.dp.declare(budget=ONE)
    trips.dp.release(dpf.count(), mu=0.1, mechanism="gaussian")
    trips.dp.count(epsilon=0.1, mechanism="laplace")
    left = {currency: getattr(trips.dp.budget, f"remaining_{currency}")}
    mechanism = "laplace" if currency == "epsilon" else "gaussian"
    trips.dp.release(dpf.count(), **left, mechanism=mechanism)
    assert len(trips.dp.ledger.entries) == 3
    more = {currency: left[currency] / 1000}
    with pytest.raises(BudgetExceededError):
        trips.dp.release(dpf.count(), **more, mechanism=mechanism)


def test_the_ledger_as_a_frame_has_what_is_known_of_each_release(trips):
    trips.dp.declare(keys={"zone": ["A", "B"]}, budget=ONE)
    assert trips.dp.ledger.to_frame().empty
    heads = []
    for spend in ({"mu": 0.1, "mechanism": "gaussian"}, {"epsilon": 0.2, "mechanism": "laplace"}):
        trips.dp.release(dpf.count(by="zone"), **spend)
        heads.append(trips.dp.ledger.head)
    frame = trips.dp.ledger.to_frame()
    assert frame.index.tolist() == [each.release_id for each in trips.dp.ledger.entries]
    assert list(frame.columns) == [*COLUMNS, "hash"]
    assert frame["hash"].tolist() == heads
    pd.testing.assert_frame_equal(frame[COLUMNS], trips.dp.budget.releases)


def test_the_head_covers_budget_and_entries():
    ledgers = [Ledger(budget=ONE), Ledger(budget=ONE)]
    assert ledgers[0].head != ledgers[1].head
    before = ledgers[0].head
    ledgers[0].charge(entry(pure(0.1)))
    assert ledgers[0].head != before
    assert len(before) == 64
    assert ledgers[0].path is None
    assert repr(ledgers[0]) == f"<Ledger in memory: {ONE}, 1 releases>"


@pytest.mark.parametrize(
    "loss",
    [
        PrivacyLoss(epsilon=Fraction(-9, 10)),
        PrivacyLoss(mu_squared=Fraction(-1)),
        PrivacyLoss(delta=Fraction(-1, 10**9)),
        PrivacyLoss(epsilon=0.5),
        PrivacyLoss(epsilon=float("nan")),
    ],
)
def test_nothing_is_given_back(loss):
    ledger = Ledger(budget=ONE)
    ledger.charge(entry(pure(0.75)))
    with raises(CalibrationError, "never given back"):
        ledger.charge(entry(loss))
    assert ledger.status().spent.epsilon == Fraction(3, 4)


@pytest.mark.parametrize("given", ["x", None, 1])
def test_what_is_no_entry_or_loss_is_refused(given):
    ledger = Ledger(budget=ONE)
    with raises(DeclarationError, "entry must be", parameter="entry"):
        ledger.charge(given)
    for ask in (ledger.allows, ledger.status().part):
        with raises(CalibrationError, "loss must be"):
            ask(given)
    assert not ledger.entries


def test_a_path_that_no_system_can_write_is_refused():
    for make in (Ledger, lambda path: Ledger.create(path, budget=ONE)):
        with raises(LedgerError, "d800'", parameter="path"):
            make("b\ud800")
