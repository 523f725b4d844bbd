"""One ledger protects one unit under one relation, whichever frame, thread or process asks."""

import contextlib
import hashlib
import itertools
import os
import sqlite3
import sys
import threading

import pandas as pd
import pytest
from support.charging import ONE, PURE, entry, in_processes, pure
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import DeclarationError, LedgerError
from dpframe.ledger.log import Protected


def visits() -> pd.DataFrame:
    return pd.DataFrame({"patient": [1, 1, 2], "pid": [1, 2, 3], "day": 1, 7: [1, 2, 3]})


PATIENTS = {"privacy_unit": "patient", "max_rows": 2}
PIDS = {"privacy_unit": "pid", "max_rows": 2}
DIFFERENT = {
    "rows": {},
    "people": PATIENTS,
    "rows, replaced": {"neighboring": "replace"},
    "people, replaced": {**PATIENTS, "neighboring": "replace"},
    "other people": PIDS,
    "people of a column without a text": {"privacy_unit": 7, "max_rows": 2},
    "people in a day": {"privacy_unit": ["patient", "day"], "max_rows": 2},
}
PAIRS = list(itertools.permutations(DIFFERENT, 2))
SAME = [
    (PATIENTS, {"privacy_unit": "patient", "max_rows": 9, "max_groups": 1}),
    (PATIENTS, {**PIDS, "unit": "patient"}),
    (PATIENTS, {"privacy_unit": ["patient"], "max_rows": 1}),
    (
        {"privacy_unit": ["patient", "day"], "max_rows": 1},
        {"privacy_unit": ["pid", "day"], "max_rows": 1, "unit": "patient in one day"},
    ),
    ({**PATIENTS, "unit": "person"}, {**PIDS, "unit": "person"}),
    ({}, {"bounds": {"pid": (0, 9)}}),
    ({"neighboring": "replace"}, {"neighboring": "replace"}),
]


@pytest.fixture(params=["in memory", "in a file"])
def ledger(request, tmp_path) -> Ledger:
    if request.param == "in memory":
        return Ledger(budget=ONE)
    return Ledger.create(tmp_path / "x.ledger", budget=ONE)


@pytest.mark.sampled(every=5, full=3)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_units_and_relations_are_not_mixed(first, second, ledger):
    visits().dp.declare(**DIFFERENT[first], ledger=ledger)
    other = visits()
    with raises(DeclarationError, "do not add up", parameter="privacy_unit"):
        other.dp.declare(**DIFFERENT[second], ledger=ledger)
    assert other.dp.declaration.ledger is None
    assert len(ledger.entries) == 0


@pytest.mark.parametrize(("first", "second"), SAME)
def test_frames_about_the_same_unit_share_a_ledger(first, second, ledger):
    frames = visits(), visits()
    for frame, facts in zip(frames, (first, second), strict=True):
        frame.dp.declare(**facts, ledger=ledger)
        frame.dp.count(epsilon=0.1)
    assert len(ledger.entries) == len(ledger.to_frame()) == 2


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_frame_declared_again_keeps_its_unit_and_relation(first, second):
    frame = visits()
    frame.dp.declare(**DIFFERENT[first], budget=ONE)
    kept = frame.dp.declaration
    for budget in ({}, {"budget": ONE}):
        with raises(DeclarationError, "repeat", parameter="privacy_unit"):
            frame.dp.declare(**DIFFERENT[second], **budget)
    assert frame.dp.declaration is kept
    fresh = Ledger(budget=ONE)
    frame.dp.declare(**DIFFERENT[second], ledger=fresh)
    assert frame.dp.ledger is fresh


def test_the_number_of_rows_is_never_free():
    frame = visits()
    frame.dp.declare(budget=PURE)
    with raises(DeclarationError, "neighboring='add_remove', got each row", value=None):
        frame.dp.declare(neighboring="replace")
    frame.dp.count(epsilon=0.25)
    assert frame.dp.ledger.entries[0].loss == pure(0.25)


def test_a_ledger_says_whom_it_protects(ledger):
    assert ledger.protected is None
    visits().dp.declare(**PATIENTS, ledger=ledger)
    assert ledger.protected == Protected("patient", "add_remove")
    head = ledger.head
    visits().dp.declare(**PATIENTS, ledger=ledger)
    assert ledger.head == head  # said once


def test_a_ledger_opened_again_protects_the_same(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    earlier = Ledger(ledger.path)
    visits().dp.declare(**PATIENTS, ledger=ledger)
    for again in (Ledger(ledger.path), earlier):
        with raises(DeclarationError, "'patient'", parameter="privacy_unit"):
            visits().dp.declare(ledger=again)
        assert again.protected == Protected("patient", "add_remove")
    ledger.charge(entry(pure(0.1)))
    ledger.charge(entry(pure(0.2)))
    frame = Ledger(ledger.path).to_frame()
    assert frame["hash"].tolist() == ledger.to_frame()["hash"].tolist()
    assert frame["hash"].iloc[-1] == ledger.head


def test_what_was_charged_before_is_kept_apart(ledger):
    ledger.charge(entry(pure(0.1)))
    first = ledger.head
    visits().dp.declare(ledger=ledger)
    between = ledger.head
    ledger.charge(entry(pure(0.1)))
    assert ledger.to_frame()["hash"].tolist() == [first, ledger.head]
    assert between not in ledger.to_frame()["hash"].tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_of_two_processes_that_declare_at_once_one_wins(tmp_path):
    for number in range(10):
        ledger = Ledger.create(tmp_path / f"{number}.ledger", budget=ONE)

        def declare(neighboring, ledger=ledger):
            try:
                visits().dp.declare(neighboring=neighboring, ledger=ledger)
            except DeclarationError:
                return 1
            return 0

        acts = [lambda way=way: declare(way) for way in ("add_remove", "replace")]
        assert sorted(in_processes(acts)) == [0, 1]
        assert Ledger(ledger.path).protected is not None


def test_a_second_settlement_in_a_file_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    visits().dp.declare(ledger=ledger)
    body = '{"protected":{"neighboring":"replace","unit":null}}'
    digest = hashlib.sha256(f"{ledger.head}\n{body}".encode()).hexdigest()
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO chain VALUES (2, ?, ?)", [body, digest])
    for use in (ledger.status, lambda: Ledger(ledger.path)):
        with raises(LedgerError, "written"):
            use()


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"unit": "patient"}, "privacy_unit="),
        ({**PATIENTS, "unit": ""}, "a text"),
        ({**PATIENTS, "unit": "\ud800"}, r"unit='\ud800'"),
        ({**PATIENTS, "unit": 3}, "a text"),
    ],
)
def test_names_of_units(facts, word):
    frame = visits()
    for declare in (frame.dp.declare, lambda **given: dpf.declare(frame, **given)):
        with raises(DeclarationError, word, parameter="unit", value=facts["unit"]):
            declare(**facts, budget=ONE)
    assert frame.dp.declaration.ledger is None


def test_threads_that_declare_one_frame_at_once_share_its_budget():
    kept = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            frame, gate, found = visits(), threading.Barrier(3), []

            def declare(frame=frame, gate=gate, found=found):
                gate.wait()
                frame.dp.declare(budget=ONE)
                found.append(frame.dp.ledger)

            threads = [threading.Thread(target=declare) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(map(id, found))) == 1
    finally:
        sys.setswitchinterval(kept)
