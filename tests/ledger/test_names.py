"""Names of releases, refused a second time, and what else a ledger keeps of them."""

import getpass
import os
import unicodedata
from dataclasses import replace

import pandas as pd
import pytest
from support.charging import ONE, entry, gaussian, in_processes, pure
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import AlreadyReleasedError, BudgetExceededError, DeclarationError, ReleaseError
from dpframe.privacy.law import Law


def trips(**declared) -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0], "who": [1, 1, 2]})
    facts = {"keys": {"zone": ["A", "B"]}, "bounds": {"fare": (0, 9)}, **declared}
    frame.dp.declare(**facts)
    return frame


CALLS = {
    "release": lambda frame, **how: dpf.release(frame, dpf.count("zone"), **how),
    ".dp.release": lambda frame, **how: frame.dp.release(dpf.count("zone"), **how),
    "joint": lambda frame, **how: frame.dp.release({"a": dpf.count(), "b": dpf.count()}, **how),
    "count": lambda frame, **how: frame.dp.count("zone", **how),
    "sum": lambda frame, **how: frame.dp.sum("fare", **how),
    "mean": lambda frame, **how: frame.dp.mean("fare", **how),
    "histogram": lambda frame, **how: frame.dp.histogram("fare", [0, 5, 9], **how),
    "aggregate": lambda frame, **how: frame.dp.aggregate("zone", n=dpf.count(), **how),
}


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_name_is_released_once(call, kept, tmp_path, monkeypatch):
    path = tmp_path / "x.ledger"
    ledger = Ledger(budget=ONE) if kept == "in memory" else Ledger.create(path, budget=ONE)
    frame = trips(ledger=ledger)
    call(frame, share=1 / 12, name="2024-03", note="the first try")
    (first,) = ledger.entries
    assert (first.name, first.note) == ("2024-03", "the first try")
    head = ledger.head
    monkeypatch.setattr(Law, "draw", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(AlreadyReleasedError) as caught:
        call(frame, share=1 / 12, name="2024-03")
    for words in ("name='2024-03'", first.released_at, first.release_id, "nothing was charged"):
        assert words in str(caught.value)
    assert ledger.head == head


def test_other_names_and_none_are_no_repetition():
    frame = trips(budget=ONE)
    for name in ("2024-03", "2024-04", None, None, "2024-3"):
        frame.dp.count(epsilon=0.01, name=name)
    assert [each.name for each in frame.dp.ledger.entries].count(None) == 2


def test_a_rerun_is_told_apart_from_a_budget_that_is_spent():
    frame = trips(budget=ONE)
    for month in range(12):
        frame.dp.count(share=1 / 12, name=str(month))
    with pytest.raises(AlreadyReleasedError):
        frame.dp.count(share=1 / 12, name="11")
    with pytest.raises(BudgetExceededError):
        frame.dp.count(share=1 / 12, name="12")


def test_a_name_is_taken_in_the_whole_ledger_and_not_beyond():
    ledger = Ledger(budget=ONE)
    trips(ledger=ledger).dp.count(epsilon=0.1, name="march")
    with pytest.raises(AlreadyReleasedError):
        trips(ledger=ledger).dp.count(epsilon=0.1, name="march")
    trips(budget=ONE).dp.count(epsilon=0.1, name="march")


def test_a_name_of_a_release_that_failed_after_its_charge_is_taken(monkeypatch):
    def fails(*_):
        raise MemoryError

    frame = trips(budget=ONE)
    with monkeypatch.context() as patched:
        patched.setattr(Law, "draw", fails)
        with pytest.raises(ReleaseError):
            frame.dp.count(epsilon=0.1, name="march")
    with pytest.raises(AlreadyReleasedError):
        frame.dp.count(epsilon=0.1, name="march")


def test_a_refused_release_does_not_take_a_name():
    frame = trips(budget=ONE)
    with pytest.raises(BudgetExceededError):
        frame.dp.count(epsilon=2, name="march")
    frame.dp.count(epsilon=0.1, name="march")


def test_names_are_decided_at_the_charge():
    ledger = Ledger(budget=ONE)
    ledger.check_name("march")
    ledger.charge(entry(pure(0.1), name="march"))
    with pytest.raises(AlreadyReleasedError):
        ledger.charge(entry(pure(0.1), name="march"))
    with pytest.raises(AlreadyReleasedError):
        ledger.check_name("march")
    assert len(ledger.entries) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_of_processes_that_release_one_name_one_wins(tmp_path):
    path = Ledger.create(tmp_path / "x.ledger", budget=ONE).path

    def race():
        try:
            Ledger(path).charge(entry(gaussian(0.01), name="march"))
        except AlreadyReleasedError:
            return 1
        return 0

    assert sorted(in_processes([race] * 4)) == [0, 1, 1, 1]
    assert len(Ledger(path).entries) == 1


@pytest.mark.parametrize("kept", ["name", "note"])
@pytest.mark.parametrize("bad", ["", "  ", 3, b"march", pd.Series([123456])])
def test_names_and_notes_are_texts(kept, bad):
    frame = trips(budget=ONE)
    with raises(DeclarationError, f"{kept} must be a text") as caught:
        frame.dp.count(epsilon=0.1, **{kept: bad})
    assert "123456" not in str(caught.value)
    assert not frame.dp.ledger.entries
    with raises(DeclarationError, "text"):
        frame.dp.declare(name=bad)


@pytest.mark.parametrize("kept", ["name", "note"])
def test_without_a_ledger_nothing_is_kept_silently(kept):
    frame = pd.DataFrame({"zone": ["A"]})
    with raises(DeclarationError, "declared"):
        frame.dp.count(epsilon=0.1, **{kept: "march"})
    frame.dp.count(epsilon=0.1)


def test_an_entry_says_of_which_frame_unit_and_columns_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("LOGNAME", "ana")
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    frame = trips(ledger=ledger, privacy_unit="who", max_rows=2, name="visits")
    frame.dp.sum("fare", "zone", where="fare > 1", epsilon=0.1)
    (kept,) = Ledger(ledger.path).entries
    assert (kept.frame, kept.unit, kept.user) == ("visits", "who", "ana")
    assert set(kept.columns) == {"fare", "zone", "who"}
    table = ledger.to_frame()
    assert table[["frame", "unit", "user"]].iloc[0].tolist() == ["visits", "who", "ana"]
    assert frame.dp.declaration.name == "visits"


@pytest.mark.parametrize("error", [KeyError, OSError, ImportError])
def test_a_system_that_knows_no_user_is_no_reason_to_fail(error, monkeypatch):
    def unknown():
        raise error

    monkeypatch.setattr(getpass, "getuser", unknown)
    frame = trips(budget=ONE)
    frame.dp.count(epsilon=0.1)
    assert frame.dp.ledger.entries[0].user is None


def test_a_preview_names_nothing():
    frame = trips(budget=ONE)
    with pytest.raises(TypeError):
        frame.dp.plan(dpf.count(), epsilon=0.1, name="march")


BAD = [
    " one",
    "one ",
    "one\n",
    "one\ttwo",
    "\ufeffone",
    "one\u200b",
    "one\xa0",
    "o\x00e",
    "\u202eone",
]


@pytest.mark.parametrize("name", BAD)
def test_names_that_look_like_others_are_refused_before_anything_is_charged(name):
    frame = trips(budget=ONE)
    with raises(DeclarationError, "instance") as told:
        frame.dp.count(epsilon=0.1, name=name)
    assert str(told.value).isprintable()
    assert not frame.dp.ledger.entries
    frame.dp.count(epsilon=0.1, name="one")


@pytest.mark.parametrize("first", ["NFC", "NFD"])
@pytest.mark.parametrize("where", ["in memory", "in a file"])
def test_accents_are_the_same_however_they_are_encoded(tmp_path, where, first):
    second = {"NFC": "NFD", "NFD": "NFC"}[first]
    names = [unicodedata.normalize(form, "M\xe4rz 2024") for form in (first, second)]
    assert names[0] != names[1]
    in_file = where == "in a file"
    ledger = Ledger.create(tmp_path / "x", budget=ONE) if in_file else Ledger(budget=ONE)
    frame = trips(ledger=ledger)
    frame.dp.count(epsilon=0.1, name=names[0])
    if in_file:
        frame = trips(ledger=Ledger(tmp_path / "x"))
    with raises(AlreadyReleasedError, "was released already", parameter="name"):
        frame.dp.count(epsilon=0.1, name=names[1])
    assert [each.name for each in ledger.entries] == names[:1]


@pytest.mark.parametrize("where", ["in memory", "in a file", "in a file opened anew"])
def test_an_identifier_is_charged_once(tmp_path, where):
    path = tmp_path / "x"
    ledger = Ledger(budget=ONE) if where == "in memory" else Ledger.create(path, budget=ONE)
    made = entry(pure(0.1))
    ledger.charge(made)
    if where == "in a file opened anew":
        ledger = Ledger(path)
    before = ledger.head
    with raises(AlreadyReleasedError, "charged", parameter="release_id", value=made.release_id):
        ledger.charge(made)
    assert (ledger.head, ledger.status().spent) == (before, pure(0.1))
    ledger.charge(entry(pure(0.1)))


def test_an_identifier_that_was_refused_can_be_charged():
    ledger, made = Ledger(budget=ONE), entry(pure(2))
    with pytest.raises(BudgetExceededError):
        ledger.charge(made)
    ledger.charge(replace(made, loss=pure(0.1)))
    assert len(ledger.entries) == 1


LONG = [("name", 200), ("note", 2_000)]


@pytest.mark.parametrize(("argument", "most"), LONG)
def test_texts_of_a_release_have_a_largest_length(argument, most):
    frame = trips(budget=ONE)
    with raises(DeclarationError, f"{argument} must have at most {most:,} characters"):
        frame.dp.count(epsilon=0.1, **{argument: "x" * (most + 1)})
    assert not frame.dp.ledger.entries
    frame.dp.count(epsilon=0.1, **{argument: "x" * most})


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31m", "a\u202eb", "a\ud800"])
def test_notes_and_names_of_frames_are_printed_texts(text):
    frame = trips(budget=ONE)
    with raises(DeclarationError, "not printed"):
        frame.dp.count(epsilon=0.1, note=text)
    with raises(DeclarationError, "not printed"):
        trips(budget=ONE, name=text)
    assert not frame.dp.ledger.entries


def test_a_user_is_recorded_with_what_terminals_obey_escaped(monkeypatch):
    monkeypatch.setenv("LOGNAME", "eve\x1b[31m\udc80")
    frame = trips(budget=ONE)
    frame.dp.count(epsilon=0.1)
    assert frame.dp.ledger.entries[0].user == "eve\\x1b[31m\\udc80"
