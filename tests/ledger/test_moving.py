"""Ledgers that are moved: once, with all that was charged, and to no two places."""

import os
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from support.charging import ONE, entry, in_processes, pure
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import LedgerError, ReleaseError
from dpframe.ledger.file import LedgerFile
from dpframe.ledger.store import store_at
from dpframe.testing import record

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture
def places(tmp_path):
    return [tmp_path / "old.ledger", tmp_path / "new.ledger"]


@pytest.fixture(
    params=["files", pytest.param("server", marks=[pytest.mark.server, pytest.mark.full])]
)
def any_places(request, tmp_path):
    """Give two places, of which one may be a table."""
    there = tmp_path / "new.ledger"
    if request.param == "server":
        there = request.getfixturevalue("server").url()
    return [tmp_path / "old.ledger", there]


def used_ledger(place) -> Ledger:
    ledger = Ledger.create(place, budget=ONE, part="week")
    for part in ("1", None):
        ledger.charge(replace(entry(pure(0.25), name=f"of {part}"), part=part))
    return ledger


def test_all_that_was_charged_moves(any_places):
    here, there = any_places
    old = used_ledger(here)
    entries, head = old.entries, old.head
    new = old.copy_to(there)
    assert new.entries == old.entries == entries == Ledger(there).entries
    assert new.ledger_id == old.ledger_id
    assert new.status(part=1) == old.status(part=1)
    assert head in new.to_frame()["hash"].to_list()
    new.charge(entry(pure(0.5)))
    assert (len(new.entries), len(old.entries)) == (3, 2)
    with pytest.raises(LedgerError, match="moved"):
        Ledger(here).charge(entry(pure(0.01)))


def test_nothing_is_charged_where_it_was(places):
    here, there = places
    old, at_work = used_ledger(here), Ledger(here)
    old.copy_to(there)
    for ledger in (old, at_work, Ledger(here)):
        for use in (
            lambda one=ledger: one.charge(entry(pure(0.01))),
            lambda one=ledger: one.copy_to(here.with_name("third.ledger")),
            lambda one=ledger: one.note_noise(replace(entry(pure(0.01)), plan="x")),
        ):
            with pytest.raises((LedgerError, ReleaseError), match=r"moved|noise"):
                use()
    assert len(Ledger(here).entries) == 2
    assert not here.with_name("third.ledger").exists()


def test_releases_are_found_at_both_places(places):
    here, there = places
    ledger = Ledger.create(here, budget=ONE)
    frame = pd.DataFrame({"zone": ["A", "B", "A"]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit=dpf.EACH_ROW, ledger=ledger)
    released = frame.dp.count(by="zone", epsilon=0.25)
    ledger.copy_to(there)
    for place in places:
        dpf.verify(released, ledger=Ledger(place))
    with raises(LedgerError, "was moved to"):
        frame.dp.count(by="zone", epsilon=0.25)
    frame.dp.declare(keys={"zone": ["A", "B"]}, privacy_unit=dpf.EACH_ROW, ledger=Ledger(there))
    frame.dp.count(by="zone", epsilon=0.25)
    assert len(Ledger(there).entries) == 2


def test_it_may_be_moved_on(tmp_path):
    ledger = used_ledger(tmp_path / "0")
    for number in (1, 2):
        ledger = ledger.copy_to(tmp_path / str(number))
    ledger.charge(entry(pure(0.1)))
    assert [len(Ledger(tmp_path / str(number)).entries) for number in range(3)] == [2, 2, 3]
    with raises(LedgerError, "already"):
        ledger.copy_to(tmp_path / "0")
    ledger.charge(entry(pure(0.1)))  # nothing was closed


def test_where_nothing_can_be_made_it_stays_open(places, tmp_path):
    ledger = used_ledger(places[0])
    with raises(LedgerError, "folder"):
        ledger.copy_to(tmp_path / "no" / "new.ledger")
    ledger.charge(entry(pure(0.1)))
    with raises(LedgerError, "memory"):
        Ledger(budget=ONE).copy_to(places[1])
    with record(), raises(LedgerError, "test"):
        Ledger(places[0]).copy_to(places[1])
    assert not places[1].exists()


class CutShort(Exception):  # noqa: N818
    """Stands for a process that is killed."""


@pytest.mark.parametrize(
    "any_places",
    ["files", pytest.param("server", marks=[pytest.mark.server, pytest.mark.audit])],
    indirect=True,
)
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("step", range(4))  # it is closed, left, made there, and arrives
def test_a_move_that_is_cut_short_goes_on(any_places, monkeypatch, step, done):
    here, there = any_places
    old, steps = used_ledger(here), []

    def cut(act):
        def acted(self, *given):
            number = len(steps)
            steps.append(act.__name__)
            if number == step and not done:
                raise CutShort
            made = act(self, *given)
            if number == step:
                raise CutShort
            return made

        return acted

    with monkeypatch.context() as patch:
        for kind in {type(store_at(place)) for place in any_places}:
            patch.setattr(kind, "append", cut(kind.append))
            patch.setattr(kind, "create", cut(kind.create))
        with pytest.raises(CutShort):
            old.copy_to(there)
    assert len(Ledger(here).entries) == 2
    new = Ledger(here).copy_to(there)
    new.charge(entry(pure(0.25)))
    with pytest.raises(LedgerError):
        Ledger(here).charge(entry(pure(0.25)))
    assert len(Ledger(there).entries) == 3
    assert Ledger(here).copy_to(there).entries == new.entries


def test_what_has_left_is_never_copied_again(places):
    here, there = places
    used_ledger(here).copy_to(there).charge(entry(pure(0.5)))
    there.unlink()
    with raises(LedgerError, "there is no ledger at"):
        Ledger(here).copy_to(there)
    assert not there.exists()


def test_another_ledger_at_the_new_place_is_not_taken_for_it(places):
    here, there = places
    used_ledger(here).copy_to(there)
    there.unlink()
    other = Ledger.create(there, budget=ONE)
    with raises(LedgerError, "another ledger"):
        Ledger(here).copy_to(there)
    assert other.entries == ()


def test_a_copy_that_was_made_but_not_opened_charges_nothing(places, monkeypatch):
    here, there = places
    old, create = used_ledger(here), LedgerFile.create

    def created(self, rows):
        create(self, rows)
        shutil.copyfile(there, there.with_name("kept"))

    monkeypatch.setattr(LedgerFile, "create", created)
    old.copy_to(there)
    for _ in range(2):
        with raises(LedgerError, "was moved to"):
            Ledger(there.with_name("kept")).charge(entry(pure(0.25)))


@forking
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_that_move_it_at_once_and_others_that_charge(any_places):
    here, there = any_places
    used_ledger(here)

    def move():
        Ledger(here).copy_to(there).charge(entry(pure(1 / 64)))
        return 0

    def charge():
        ledger, charged = Ledger(here), 0
        try:
            for _ in range(16):
                ledger.charge(entry(pure(1 / 64)))
                charged += 1
        except LedgerError:
            pass
        return charged

    *moves, charged, also = in_processes([move, move, charge, charge])
    assert moves == [0, 0]
    assert len(Ledger(here).entries) == 2 + charged + also
    assert len(Ledger(there).entries) == 4 + charged + also
