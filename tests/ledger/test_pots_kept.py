"""Pots of a ledger: settled once, read from its first row, and never alive again."""

import json
import os
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import pytest
from support.charging import ONE, entry, gaussian, in_processes, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import BudgetExceededError
from dpframe.ledger import chain
from dpframe.ledger.chain import Chain, Row
from dpframe.ledger.file import LedgerFile
from dpframe.privacy.amounts import Budget, PrivacyLoss
from dpframe.privacy.gaussian import gaussian_mu
from dpframe.privacy.pots import KINDS, settle_pots

BUDGETS = [ONE, Budget(1), Budget(0, 1e-3), Budget(100, 1e-9), Budget(1, 1e-6, discovery=4e-7)]
LOSSES = [pure(0.02), gaussian(0.001), pure(Fraction(1, 70)), gaussian(0.0005)]


def charged(ledger: Ledger, losses: list[PrivacyLoss]) -> Ledger:
    """Charge what fits."""
    for loss in losses:
        if ledger.allows(loss):
            ledger.charge(entry(loss))
    return ledger


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_what_is_read_from_a_file_is_what_was_in_memory(tmp_path, budget):
    ledger = charged(Ledger.create(tmp_path / "x.ledger", budget=budget), LOSSES)
    again = Ledger(ledger.path)
    assert again.status() == ledger.status()
    settled = settle_pots(budget)
    assert again.status().pots.pots == (settled.many or settled.pots)  # the first loss is small
    assert again.budget == budget


def test_the_first_row_says_what_was_settled(tmp_path):
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path
    header = json.loads(LedgerFile(path).all_rows()[0].body)
    pure_pot, gaussian_pot, *renyi = header["pots"]
    assert pure_pot == {"kind": "pure", "limit": "1"}
    assert gaussian_pot["part"] == "4/5"
    assert [pot["order"] for pot in renyi][:2] == ["142/5", "222/5"]
    assert {pot["kind"] for pot in header["pots"]} == set(KINDS)
    assert Fraction(header["whole"]) == Fraction(gaussian_mu(1, 1e-6)) ** 2
    assert header["many"][0] == pure_pot
    assert (header["many"][2]["order"], header["small"]) == ("26", "1/14")


def test_the_first_charge_settles_the_pots_whatever_was_charged_later(tmp_path):
    for number, first in enumerate((pure(0.02), gaussian(0.001))):
        made = Ledger.create(tmp_path / f"{number}.ledger", budget=ONE)
        undecided = made.status().pots
        charged(made, [first, *LOSSES[::-1]])
        expected = undecided.begun_with(first)
        assert Ledger(made.path).status().pots.pots == expected.pots
        before = made._seen.before(made.entries[0].release_id)
        assert before.pots == undecided
        before = made._seen.before(made.entries[1].release_id)
        assert before.pots == undecided.plus(first)


def test_a_ledger_of_one_set_of_pots_keeps_them(tmp_path, monkeypatch):
    """As those that were made before there were two."""
    with monkeypatch.context() as patched:
        one = replace(settle_pots(ONE), many=(), small=Fraction(0))
        patched.setattr(chain, "settle_pots", lambda _: one)
        ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    row = LedgerFile(ledger.path).all_rows()[0]
    header = json.loads(row.body)
    del header["many"], header["small"]
    body = json.dumps(header, sort_keys=True, separators=(",", ":"))
    old = Row(0, body, sha256(f"{'0' * 64}\n{body}".encode()).hexdigest())
    read = Chain.of_rows([old], "x")
    assert (read.pots, read.with_entry(entry(pure(0.01)))[0].pots.pots) == (one, one.pots)


def test_pots_are_read_and_not_settled_anew(tmp_path, monkeypatch):
    ledger = charged(Ledger.create(tmp_path / "x.ledger", budget=ONE), LOSSES)
    with monkeypatch.context() as patched:
        patched.setattr(chain, "settle_pots", lambda budget: pytest.fail("settled anew"))
        assert Ledger(ledger.path).status() == ledger.status()
    with monkeypatch.context() as patched:  # a version that would settle other ones
        patched.setattr(chain, "settle_pots", lambda _: settle_pots(Budget(3, 1e-3)))
        other = Ledger.create(tmp_path / "y.ledger", budget=ONE)
    assert Ledger(other.path).status().pots == settle_pots(Budget(3, 1e-3))


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_a_refused_release_leaves_head_and_sums_as_they_were(tmp_path, kept):
    path = tmp_path / "x.ledger"
    ledger = Ledger(budget=ONE) if kept == "in memory" else Ledger.create(path, budget=ONE)
    charged(ledger, LOSSES)
    before = ledger.head, ledger.status()
    for loss in (
        pure(1),
        gaussian(0.3),
        pure(0.1) + gaussian(0.24),
        PrivacyLoss(delta=Fraction(1)),
    ):
        with pytest.raises(BudgetExceededError):
            ledger.charge(entry(loss))
        assert (ledger.head, ledger.status()) == before


def test_dead_pots_stay_dead_when_a_ledger_is_opened_again(tmp_path):
    """The pure pot dies of one Gaussian loss, the Gaussian one of a large pure loss."""
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path
    Ledger(path).charge(entry(pure(0.9)))
    assert Ledger(path).status().pots.sums[1] is None
    Ledger(path).charge(entry(pure(1e-6)))
    assert Ledger(path).status().pots.sums[1] is None
    assert not Ledger(path).allows(gaussian(0.1))
    Ledger(path).charge(entry(gaussian(0.01)))
    for _ in range(2):
        assert Ledger(path).status().pots.sums[:2] == (None, None)
        assert not Ledger(path).allows(pure(0.1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_order_of_charges_decides_between_processes(tmp_path):
    """Each would leave the other no room; dead is dead on both sides of a fork."""
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    whole = gaussian(gaussian_mu(1, 1e-6))

    def charge(loss):
        def act():
            try:
                ledger.charge(entry(loss))
            except BudgetExceededError:
                return 1
            return 0

        return act

    assert sorted(in_processes([charge(whole), charge(pure(1))])) == [0, 1]
    assert ledger.status().used == 1
    assert in_processes([charge(pure(1e-9)), charge(gaussian(1e-9))]) == [1, 1]
    assert len(ledger.entries) == 1


def test_an_extra_delta_is_refused_with_the_way_out():
    ledger = Ledger(budget=Budget(1, 1e-6, discovery=1e-7))
    loss = PrivacyLoss(delta=Fraction(6, 10**8))
    ledger.charge(entry(loss))
    with raises(BudgetExceededError, "delta=4e-08 is left", parameter="discovery"):
        ledger.charge(entry(loss))
    assert ledger.status().remaining_delta == 4e-8
    with raises(BudgetExceededError, "discovery", parameter="discovery"):
        Ledger(budget=ONE).charge(entry(loss))


@pytest.mark.parametrize(("bad", "delta"), [(-1e-9, 1e-6), (2e-6, 1e-6), ("x", 0.1), (1e-9, 0)])
def test_what_is_kept_for_discovery_is_a_part_of_delta(bad, delta):
    with raises(ValueError, "discovery must be"):
        Budget(1, delta, discovery=bad)
