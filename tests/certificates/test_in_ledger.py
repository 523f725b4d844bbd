"""Whether a release is in a ledger."""

import pandas as pd
import pytest
from support.charging import ONE, entry, gaussian
from support.raising import raises

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import CertificateError, DeclarationError


@pytest.fixture
def trips() -> pd.DataFrame:
    frame = pd.DataFrame({"zone": ["A", "B", "A"], "fare": [1.0, 2.0, 3.0]})
    frame.dp.declare(keys={"zone": ["A", "B"]}, bounds={"fare": (0, 9)}, budget=ONE)
    return frame


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_release_is_in_its_ledger(trips, mechanism):
    released = trips.dp.count("zone", epsilon=0.1, mechanism=mechanism)
    trips.dp.sum("fare", epsilon=0.1)
    assert dpf.verify(released, ledger=trips.dp.ledger).state == "released"
    changed = dpf.denoise(trips.dp.count("zone", epsilon=0.1), "nonnegative")
    assert dpf.verify(changed, ledger=trips.dp.ledger).state == "post-processed"


def test_all_tables_of_a_joint_release_are(trips):
    query = {"a": dpf.count("zone"), "b": dpf.sum("fare", where="zone == 'A; B'")}
    for released in trips.dp.release(query, epsilon=0.1).values():
        dpf.verify(released, ledger=trips.dp.ledger)


def test_a_release_is_in_no_other_ledger(trips):
    released = trips.dp.count("zone", epsilon=0.1)
    with pytest.raises(CertificateError, match=r"was charged to ledger .*, not to ledger"):
        dpf.verify(released, ledger=Ledger(budget=ONE))
    alone = pd.DataFrame({"zone": ["A"]}).dp.count(epsilon=0.1)
    with pytest.raises(CertificateError, match="was charged to no ledger, not to"):
        dpf.verify(alone, ledger=trips.dp.ledger)


def test_an_older_copy_of_a_ledger_does_not_know_a_release(tmp_path, trips):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE)
    trips.dp.declare(keys={"zone": ["A", "B"]}, ledger=ledger)
    (tmp_path / "old.ledger").write_bytes(ledger.path.read_bytes())
    released = trips.dp.count("zone", epsilon=0.1)
    dpf.verify(released, ledger=Ledger(ledger.path))
    with pytest.raises(CertificateError, match="was never charged for release"):
        dpf.verify(released, ledger=Ledger(tmp_path / "old.ledger"))


def test_an_entry_that_says_something_else_is_told(trips, monkeypatch):
    released = trips.dp.count("zone", epsilon=0.1, mechanism="gaussian")
    (kept,) = trips.dp.ledger.entries
    other = entry(gaussian(0.5))
    for field, said in (
        ("released_at", "time"),
        ("what", "query"),
        ("mechanism", "mechanism"),
        ("loss", "cost"),
    ):
        changed = {name: getattr(kept, name) for name in kept.__slots__}
        changed[field] = getattr(other, field)
        fake = (type(kept)(**changed),)
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "entries", fake)
            with pytest.raises(CertificateError, match=f"with another {said} than"):
                dpf.verify(released, ledger=trips.dp.ledger)


def test_anything_but_a_ledger_is_refused(trips):
    with raises(DeclarationError, "Open it: dpf.Ledger(", parameter="ledger"):
        dpf.verify(trips.dp.count("zone", epsilon=0.1), ledger="x.ledger")
