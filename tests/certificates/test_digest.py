"""Digests tell apart what differs, and take for the same what a file makes of it."""

import gc
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import dpframe as dpf
import dpframe.certificates.digest as digesting
from dpframe.certificates.digest import _words, content_of, digest, fingerprint, pieces_of
from dpframe.columns.lookup import Remembered
from dpframe.errors import CertificateError

DAY = datetime(2020, 1, 1)
PAIRS = {
    "an integer": (1, "1"),
    "a float": (1.5, "1.5"),
    "a large integer": (10**30, str(10**30)),
    "a truth and a text": (True, "True"),
    "a truth and a number": (True, 1),
    "bytes": (b"x", "b'x'"),
    "a date": (date(2020, 1, 1), "2020-01-01"),
    "a time": (pd.Timestamp(DAY), "2020-01-01 00:00:00"),
    "a time of day": (time(1), "01:00:00"),
    "a duration": (pd.Timedelta("1D"), "1 days 00:00:00"),
    "a month": (pd.Period("2020-01", "M"), "2020-01"),
    "a decimal": (Decimal("1.5"), "1.5"),
    "a decimal and a float": (Decimal("1.5"), 1.5),
    "a missing value": (None, "None"),
    "a float that is missing": (np.nan, "nan"),
    "a pair": (("a", 1), "('a', 1)"),
    "pairs": (("a", 1), ("a", "1")),
    "an interval": (pd.Interval(0, 1), "(0, 1]"),
    "ends of an interval": (pd.Interval(0, 1), pd.Interval(0, 1, closed="left")),
}
ALIKE = {
    "a whole float": (1, 1.0),
    "numbers of NumPy": (1, np.int64(1)),
    "floats of NumPy": (1.5, np.float64(1.5)),
    "a large whole float": (2**70, 2.0**70),
    "texts of NumPy": ("a", np.str_("a")),
    "truths of NumPy": (True, np.bool_(True)),
    "missing values": (None, np.nan),
    "times": (DAY, pd.Timestamp(DAY)),
    "whole ends": (pd.Interval(0, 1), pd.Interval(0.0, 1.0)),
}


def with_keys(*keys):
    return pd.DataFrame({"n": 1}, index=pd.Index(keys, dtype=object, tupleize_cols=False))


@pytest.mark.parametrize("name", PAIRS)
def test_keys_of_other_kinds_have_other_digests(name):
    one, other = PAIRS[name]
    assert digest(with_keys(one, "z"), "") != digest(with_keys(other, "z"), "")
    assert digest(with_keys(one, other), "") != digest(with_keys(other, one), "")


@pytest.mark.parametrize("name", ALIKE)
def test_keys_that_files_exchange_have_the_same_digest(name):
    one, other = ALIKE[name]
    assert digest(with_keys(one, "z"), "") == digest(with_keys(other, "z"), "")


@pytest.mark.parametrize("name", ["an integer", "a float", "a truth and a text", "bytes", "a date"])
def test_swapped_keys_are_not_certified(name):
    keys = list(PAIRS[name])
    private = pd.DataFrame({"key": [0]})
    released = dpf.release(private, dpf.count("key", keys={"key": keys}), epsilon=1)
    dpf.verify(released)
    swapped = released.set_axis(pd.Index(keys[::-1], dtype=object, name="key"))
    with pytest.raises(CertificateError, match="not what its certificate was given for"):
        dpf.verify(swapped)


@pytest.mark.parametrize("name", ["an integer", "a float", "a truth and a text"])
def test_swapped_columns_are_not_certified(name):
    labels = pd.Index(list(PAIRS[name]), dtype=object)
    private = pd.DataFrame([[1.0, 1.0]], columns=labels)
    released = dpf.release(private, dpf.sum(list(labels), bounds=(0, 1)), epsilon=1)
    dpf.verify(released)
    with pytest.raises(CertificateError):
        dpf.verify(released.set_axis(labels[::-1], axis=1))


def test_columns_of_numbers_are_not_renamed_to_texts():
    sums = dpf.release(
        pd.DataFrame({1: [1.0]}), dpf.sum([1], bounds=(0, 1)), epsilon=1, mechanism="laplace"
    )
    with pytest.raises(CertificateError):
        dpf.verify(sums.rename(columns={1: "1"}))


@pytest.mark.filterwarnings("ignore:The DataFrame has (non-str|column names):UserWarning")
@pytest.mark.parametrize("label", [3, 2.5, True, pd.Timestamp("2020"), date(2020, 1, 1)], ids=str)
@pytest.mark.parametrize("kind", ["parquet", "feather", "pickle"])
def test_labels_that_files_make_texts_of_are_certified(label, kind, tmp_path):
    private = pd.DataFrame([[1.0, 1.0]], columns=pd.Index([label, "y"], dtype=object))
    columns = dpf.sum([label, "y"], bounds=(0, 1))
    level = dpf.count([label], keys={label: [0.0, 1.0]})
    for query in (columns, level):
        released = dpf.release(private, query, epsilon=1)
        getattr(released, f"to_{kind}")(tmp_path / "file")
        dpf.verify(getattr(pd, f"read_{kind}")(tmp_path / "file"))


def with_intervals(lefts, rights, closed="right"):
    return pd.DataFrame({"n": 1}, index=pd.IntervalIndex.from_arrays(lefts, rights, closed=closed))


def test_intervals_of_whole_numbers_and_floats_have_the_same_digest():
    whole = with_intervals([0, 1], [1, 2])
    for other in (
        with_intervals([-0.0, 1.0], [1.0, 2.0]),
        with_intervals(np.array([0, 1], np.float32), np.array([1, 2], np.float32)),
        whole.set_axis(pd.CategoricalIndex(whole.index)),
    ):
        assert digest(other, "") == digest(whole, "")


def test_intervals_count():
    frames = [
        with_intervals([0, 1], [1, 2]),
        with_intervals([0, 1], [1, 2], closed="left"),
        with_intervals([1, 0], [2, 1]),
        with_intervals([0, 1], [2, 1]),
        with_intervals([0, 1], [1, 2.5]),
        with_intervals([0, 1], [1, np.inf]),
        with_intervals([0, 2**53], [1, 2**53 + 2]),
        with_intervals([0, 2**53], [1, 2**53 + 1]),  # no float is the last
        with_intervals([0, 1], [1, 2]).set_axis(pd.Index([0, 1])),
    ]
    assert len({digest(frame, "") for frame in frames}) == len(frames)
    kinds = [fingerprint(*pieces_of(frame)[0]) for frame in frames]
    assert len({short for _, short, _ in kinds}) == len(frames)


def test_large_whole_edges_are_one_whether_floats_or_integers():
    edges = [0, 2**60], [1, 2**61]
    floats = [np.array(part, float) for part in edges]
    assert digest(with_intervals(*edges), "") == digest(with_intervals(*floats), "")


def test_what_forgets_the_order_of_intervals_tells_their_edges_apart():
    def unordered(*pairs):
        return fingerprint(*pieces_of(with_intervals(*zip(*pairs, strict=True)))[0])[2]

    assert unordered((0, 1), (2, 3)) == unordered((2, 3), (0, 1))
    assert unordered((0, 1), (2, 3)) != unordered((0, 3), (1, 2))
    assert unordered((0.5, 1), (1, 2.5)) != unordered((0.5, 2.5), (1, 1))


def test_names_count():
    one = with_keys("a")
    for other in (
        one.rename_axis(columns="c"),
        one.rename_axis("k"),
        one.rename(columns={"n": "m"}),
        one.set_axis(pd.MultiIndex.from_tuples([("a", "b")])),
    ):
        assert digest(one, "") != digest(other, "")
    assert digest(one, "said") != digest(one, "")


def test_a_number_may_be_of_any_length():
    assert digest(with_keys(10**5000), "") != digest(with_keys(10**5000 + 1), "")


@pytest.mark.parametrize("odd", ["\ud800", "é\0b", ""])
def test_order_is_told_apart_from_other_keys_whatever_the_text(odd):
    frames = (with_keys("a", odd), with_keys(odd, "a"), with_keys("b", odd))
    (_, one, bare), (_, turned, bare_turned), (_, _, other) = (
        fingerprint(*pieces_of(frame)[0]) for frame in frames
    )
    assert one != turned
    assert bare == bare_turned != other
    assert _words(b'["a", "b"]')[0] == _words(b'["a", "\\ud800"]')[0]


KEYS = {
    "intervals": pd.IntervalIndex.from_breaks([0.0, 1.5, 2.0, 9.0]),
    "intervals beyond floats": pd.IntervalIndex.from_breaks([0, 1, 2, 2**60]),
    "texts": pd.Index(["a", 'quo"te', "\N{SNOWMAN}"]),
    "times": pd.date_range("2024-01-01", periods=3, tz="UTC"),
    "durations": pd.to_timedelta([1, 2, 3], unit="h"),
    "mixed": pd.Index([1, "1", None], dtype=object),
    "numbers": pd.Index([3, 1, 2]),
    "categories": pd.CategoricalIndex(["x", "y", "z"]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_that_many_rows_share_count_as_if_each_row_had_its_own(kind, monkeypatch):
    index = pd.MultiIndex.from_product([range(100), KEYS[kind]], names=["g", "key"])
    frame = pd.DataFrame({"n": np.arange(300)}, index=index)
    quick = digest(frame, "a"), content_of(frame)
    turned = frame.iloc[::-1]
    quick_turned = digest(turned, "a"), content_of(turned)
    monkeypatch.setattr("dpframe.certificates.digest._MANY", 10**9)
    assert (digest(frame, "a"), content_of(frame)) == quick
    assert (digest(turned, "a"), content_of(turned)) == quick_turned != quick


def test_what_keys_say_is_made_once_to_certify_and_anew_to_check(monkeypatch):
    made = []
    monkeypatch.setattr(digesting, "_LEVELS", Remembered(2))
    level = digesting._level
    monkeypatch.setattr(digesting, "_level", lambda *given: made.append(given) or level(*given))
    keys = pd.Index([f"key {place}" for place in range(1_000)], name="key")
    for _ in range(2):
        released = pd.DataFrame({"n": range(1_000)}, index=keys)
        fresh, kept = pieces_of(released), pieces_of(released, keys)
        assert fresh[0] == kept[0]
        assert [fingerprint(*piece) for piece in fresh] == [piece.fingerprint for piece in kept]
    assert len(made) == 3
    few = pd.Index(["A", "B"])
    pieces_of(pd.DataFrame({"n": [1, 2]}, index=few), few)
    assert len(digesting._LEVELS) == 1
    del released, keys
    made.clear()
    gc.collect()
    assert len(digesting._LEVELS) == 0


def test_a_check_looks_at_keys_anew():
    names = np.array([f"key {place}" for place in range(1_000)], object)
    released = pd.DataFrame({"n": range(1_000)}, index=pd.Index(names, dtype=object, copy=False))
    before = pieces_of(released, released.index)
    names[7] = "another key"
    assert pieces_of(released)[0] != before[0]
    assert pieces_of(released, released.index)[0] == before[0]
