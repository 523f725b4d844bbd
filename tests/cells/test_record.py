"""The record in `attrs`: what it keeps, what it refuses, and how keys are told apart."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from support.certifying import carry_text, record_of, recorded, text_of
from support.keys import KEYS

import dpframe as dpf
from dpframe.cells.keys import read_key, token, write_key
from dpframe.cells.record import ATTRIBUTE, RECORD, opened_of, record_on
from dpframe.errors import CertificateError, UnreadableCertificateError


def release(keys, **spend):
    trips = pd.DataFrame({"zone": pd.Series([0], dtype=object), "fare": [1.0]})
    query = dpf.aggregate("zone", keys=keys, n=dpf.count(), m=dpf.mean("fare", bounds=(0, 9)))
    return dpf.release(trips, query, epsilon=1, privacy_unit=dpf.EACH_ROW)


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_kind_are_kept(kind):
    made = release(pd.Index(KEYS[kind], tupleize_cols=False))
    opened = opened_of({RECORD: text_of(made)})
    assert [token(key) for key in opened.index] == [token(key) for key in made.index]
    kept = opened.index.astype(object).tolist()
    assert kept == made.index.astype(object).tolist() or kind == "floats"
    assert opened.index.dtype == made.index.dtype or kind == "categories"
    for table in (made[::-1], made.reset_index(), made.head(1), made[["m"]].T):
        assert dpf.certify(table, of=made).dp.interval(chosen="keys").shape[1] in (2, 4)


class Odd:
    def __str__(self):
        return "odd"

    __hash__ = object.__hash__


def test_keys_of_any_class_are_told_apart_by_class_and_text():
    assert write_key(Odd()) == ["other", "Odd", "odd"] and read_key(write_key(Odd())) == "odd"


def leaves(found, place=()):
    """List the places of all values of plain JSON."""
    items = found.items() if isinstance(found, dict) else enumerate(found)
    for name, value in items:
        yield (*place, name)
        if isinstance(value, dict | list):
            yield from leaves(value, (*place, name))


def altered(record, place):
    made = json.loads(json.dumps(record))
    inner = made
    for name in place[:-1]:
        inner = inner[name]
    old = inner[place[-1]]
    inner[place[-1]] = {bool: False, int: 2, float: 0.25, str: "x"}.get(type(old))
    return made


def test_each_field_of_the_certificate_counts():
    made = release(["A", "B"]).dp.denoise("nonnegative")
    record = record_of(made)
    places = [place for place in leaves(record) if place != ("digest",)]
    assert len(places) > 100
    for place in places:
        changed = altered(record, place)
        if changed == record:
            continue
        other = carry_text(made.copy(), changed)
        with pytest.raises(CertificateError):
            dpf.verify(other)


@pytest.mark.parametrize("text", [None, 7, "", "{}", "[]", '{"format": 7}', "{" * 10_000])
def test_what_is_no_record_is_refused(text):
    made = release(["A", "B"])
    made.attrs[ATTRIBUTE] = text if type(text) is int else {RECORD: text}
    with pytest.raises(UnreadableCertificateError):
        dpf.verify(made)


def test_two_seals_of_one_table_differ_and_copies_do_not():
    made = release(["A", "B"])
    digests = set()
    for _ in range(2):
        again = pd.DataFrame(made)
        again.attrs = {}
        recorded(again, made.dp.certificate.releases)
        digests.add(again.dp.certificate.digest)
    assert len(digests) == 2
    assert made.copy().attrs[ATTRIBUTE] is made.attrs[ATTRIBUTE]


def test_too_many_combinations_of_keys_to_count_are_found():
    rng = np.random.default_rng(3)
    names = [f"k{at}" for at in range(8)]
    keys = pd.DataFrame({name: rng.permutation(400) for name in names})
    table = pd.DataFrame({"n": rng.integers(0, 9_999, 400)}, pd.MultiIndex.from_frame(keys))
    releases = release(["A"])[["n"]].dp.certificate.with_columns([0]).releases
    recorded(table, releases)
    assert dpf.verify(table.sample(40, random_state=1).reset_index("k3")).state == "released"
    with pytest.raises(CertificateError):
        dpf.verify(table.set_axis(table.index[::-1]))


def spoil_cells(frame):
    frame.iloc[:, :] = 77


def spoil_memory(frame):
    for label in frame.columns:
        cells = frame[label].to_numpy()
        cells.flags.writeable = True
        cells[:] = 77


def spoil_keys(frame):
    keys = frame.index.values
    keys.flags.writeable = True
    keys[:] = keys[::-1].copy()


def spoil_index(frame):
    frame.index = frame.index[::-1]


@pytest.mark.parametrize("spoil", [spoil_cells, spoil_memory, spoil_keys, spoil_index])
def test_a_record_is_of_what_was_released_whatever_the_frame_holds_later(spoil):
    keys = pd.Index(range(5), dtype=np.int64)
    made = release(keys)
    before = made.copy().astype(float)
    before.index, before.attrs = made.index.astype(object), {}
    shown = made[:]  # what nobody has looked at yet
    spoil(made)
    opened = record_on(shown)
    assert opened.frame.astype(float).reset_index().equals(before.reset_index())
    again = record_on(pickle.loads(pickle.dumps(made)))  # noqa: S301
    assert again.frame.astype(float).reset_index().equals(before.reset_index())
    with pytest.raises(CertificateError):
        dpf.verify(made)


def test_what_is_carried_is_text_wherever_it_goes(tmp_path):
    made = release(["A", "B"])
    carried = made.attrs[ATTRIBUTE]
    text = carried[RECORD]
    made.to_parquet(tmp_path / "t.parquet")
    for other in (
        copy.deepcopy(carried),
        pickle.loads(pickle.dumps(carried)),  # noqa: S301
        json.loads(json.dumps(carried)),
        dict(carried.items()),
        pd.read_parquet(tmp_path / "t.parquet").attrs[ATTRIBUTE],
    ):
        assert other[RECORD] == text and other == carried and not other != carried
    assert carried.get(RECORD) == text and list(carried.values()) == [text]
    assert repr(carried) == repr({RECORD: text})
    with pytest.raises(TypeError, match="a record is not changed"):
        carried[RECORD] = "{}"
