"""Ids of any kind are told apart by a rule that looks at one row alone, in columns of any dtype."""

import asyncio
import itertools
import random
import unicodedata
import uuid
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hostile import objects
from support.randomness import SYSTEM

from dpframe.columns.buckets import unit_buckets
from dpframe.columns.filters import keep
from dpframe.columns.identity import key_of
from dpframe.columns.lookup import finder
from dpframe.engines import engine_for
from dpframe.engines import units as grouping
from dpframe.engines.units import unit_codes
from dpframe.errors import STOPS
from dpframe.privacy.neighbors import Caps
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition

EXACT = 1e15  # an epsilon whose noise is 0


class Text(str):
    """A text of another class, equal to others as usual."""

    __slots__ = ()


class Color(StrEnum):
    RED = "red"


class Level(IntEnum):
    ONE = 1


class Crowded:
    """Hashes like 1, as 1 does, and equals itself."""

    def __hash__(self):
        return 1


class Grudging:
    """Hashes like 1, and raises when it is compared."""

    def __init__(self, error=RuntimeError):
        self.error = error

    def __hash__(self):
        return 1

    def __eq__(self, _):
        raise self.error("private")


class Greedy:
    """Hashes like 1, and claims to equal everything."""

    def __hash__(self):
        return 1

    def __eq__(self, _):
        return True


class Unhashable:
    def __init__(self, error=RuntimeError):
        self.error = error

    def __hash__(self):
        raise self.error("private")


NFC, NFD = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
TEXTS = [
    *["a", "A", "", "1", "1.0", "True", "nan", "None", "<NA>", NFC, NFD, "red", "z" * 300],
    *["a\0", "a\0b", "a\0c", "\0", "\0\0", "a ", "\ufeffa", "\U0001f600"],
]
SURROGATES = ["\ud800", "\udfff", "'\\ud800'", "\\ud800", "a\ud800", "a\udfff", "?", "\ufffd"]
NUMBERS = [
    *[0, -0.0, 0.0, 1, 1.0, True, False, np.int8(1), np.float64(1), np.True_, Level.ONE, 1 + 0j],
    *[2**53, 2.0**53, 2**53 + 1, 2**61, -(2**61), 2**64, 2.0**64, 10**400, -(10**400)],
    *[
        Decimal(1),
        Decimal("1.0"),
        Decimal("0.1"),
        0.1,
        Fraction(1, 10),
        Fraction(1),
        np.float32(0.1),
    ],
    *[float("inf"), float("-inf"), 5e-324],
]
NEW_YORK = "America/New_York"
OTHERS = [
    *[b"a", b"1", b"", b"a\0", Text("a"), Text("a\0b"), np.str_("a"), np.bytes_(b"a"), Color.RED],
    *[(1, "a"), (1.0, "a"), (True, Text("a")), ("1", "a"), (), ((1,), 2), ((1.0,), 2)],
    *[pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC")],
    *[pd.Timestamp("2020-01-01", tz="UTC").tz_convert(NEW_YORK), pd.Timestamp(1), pd.Timestamp(2)],
    *[pd.Timedelta(1), pd.Timedelta("1D"), pd.Period("2020-01"), pd.Interval(0, 1)],
    *[uuid.UUID(int=1), uuid.UUID(int=1 << 80), frozenset({1}), frozenset({1.0}), int, str, len],
    *[Crowded(), Crowded(), Unhashable(), [1], {}, bytearray(b"a")],
]
MISSING = [None, float("nan"), np.nan, pd.NaT, pd.NA, Decimal("NaN"), np.float64("nan")]
POOL = [*TEXTS, *SURROGATES, *NUMBERS, *OTHERS, *MISSING]


def arrow(items, kind):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(items, kind)])))


def as_a_dict_tells(items):
    """Number of the unit of each item, by a plain dict; -1 for none."""
    known = {}
    numbers_of_texts = {str(n): n for n in range(-9, 1000)} | {"0.5": 0.5, "2.5": 2.5}

    def number(item):
        try:
            if any(item is gone for gone in MISSING) or item is pd.NaT:
                return -1
            item = item.item() if isinstance(item, np.number | np.bool_) else item
            item = numbers_of_texts.get(item, item) if isinstance(item, str) else item
            return known.setdefault(item, len(known))
        except Exception:
            return -1

    return [number(item) for item in items]


def numbered(*columns):
    """Number of the unit of each row, in order of appearance; -1 for none."""
    codes, none = unit_codes(columns)
    known = {none: -1}
    return [known.setdefault(code, len(known) - 1) for code in codes]


def categories(items):
    distinct = list(dict.fromkeys(items))
    codes = [distinct.index(item) for item in items]
    index = pd.Index(objects(distinct).array, dtype=object, tupleize_cols=False)
    return pd.Series(pd.Categorical.from_codes(codes, index))


def text_categories(items):
    """Categories that pandas does not choose: 2.3 takes some texts with NUL for others."""
    distinct = [item for item in dict.fromkeys(items) if item is not None]
    codes = [-1 if item is None else distinct.index(item) for item in items]
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(distinct, dtype="str")))


def words(items, dtype):
    return pd.Series(items, dtype=dtype)


COLUMNS = {
    "object": (objects, POOL),
    "object, texts": (objects, [*TEXTS, *SURROGATES]),
    "object, texts and None": (objects, [*TEXTS, *SURROGATES, None, np.nan]),
    "object, numbers": (objects, NUMBERS),
    "str": (lambda items: words(items, "str"), [*TEXTS, None]),
    "string[python]": (
        lambda items: words(items, pd.StringDtype("python")),
        [*TEXTS, *SURROGATES, None],
    ),
    "string[pyarrow]": (lambda items: words(items, pd.StringDtype("pyarrow")), [*TEXTS, None]),
    **{
        str(kind): (lambda items, kind=kind: arrow(items, kind), [*TEXTS, None])
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    },
    "arrow binary": (lambda items: arrow(items, pa.binary()), [b"a", b"a\0", b"", b"\0", None]),
    "dictionary": (
        lambda items: pd.Series(
            pd.arrays.ArrowExtensionArray(
                pa.chunked_array([pa.array(items, pa.string()).dictionary_encode()])
            )
        ),
        [*TEXTS, None],
    ),
    "category of texts": (categories, [*TEXTS]),
    "category of str": (text_categories, [*TEXTS, None]),
    "category of numbers": (categories, [0, 1, 2**53, 2**53 + 1, 10**30]),
    "Int64": (lambda items: words(items, "Int64"), [0, 1, 2**53, 2**53 + 1, 2**63 - 1, None]),
    "int64[pyarrow]": (lambda items: arrow(items, pa.int64()), [0, 2**53, 2**53 + 1, None]),
    "decimal": (
        lambda items: arrow(items, pa.decimal128(38, 1)),
        [Decimal("1.0"), Decimal("0.5"), Decimal(10**30), None],
    ),
    "float64": (lambda items: words(items, "float64"), [0.0, -0.0, 1e300, 5e-324, np.nan, np.inf]),
    "times": (
        lambda items: words(items, "datetime64[ns, UTC]"),
        [pd.Timestamp(n, tz="UTC") for n in range(3)] + [pd.NaT],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("seed", range(3))
def test_ids_are_told_apart_as_in_a_dict(name, seed):
    make, pool = COLUMNS[name]
    items = random.Random(seed).sample(pool * 3, 3 * len(pool))
    assert numbered(make(items)) == as_a_dict_tells(items)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_an_added_id_never_moves_others(name, data):
    """Whichever rows are beside them, two rows are of one unit or not."""
    make, pool = COLUMNS[name]
    places = data.draw(st.lists(st.integers(0, len(pool) - 1), max_size=12))
    rows = [pool[place] for place in places]
    added = pool[data.draw(st.integers(0, len(pool) - 1))]
    place = data.draw(st.integers(0, len(rows)))
    without = unit_codes([make(rows)])
    within, none = unit_codes([make([*rows[:place], added, *rows[place:]])])
    within = np.delete(within, place)
    assert (within == none).tolist() == (without[0] == without[1]).tolist()
    np.testing.assert_array_equal(within[:, None] == within, without[0][:, None] == without[0])


PARTS = {
    **COLUMNS,
    "far integers": (lambda items: words(items, "int64"), [-(2**62), 0, 2**53 + 1, 2**62]),
}


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("name", PARTS)
@given(data=st.data())
@settings(max_examples=40)
def test_combinations_are_told_apart_as_pairs_in_a_dict(name, data):
    """A unit is missing where one of its parts is; no two combinations are one."""
    names = [name, data.draw(st.sampled_from(sorted(PARTS)))]
    rows = data.draw(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=30))
    columns, parts = [], []
    for named, places in zip(names, zip(*rows, strict=True) if rows else ([], []), strict=True):
        make, pool = PARTS[named]
        columns.append(make([pool[place % len(pool)] for place in places]))
        parts.append(as_a_dict_tells([pool[place % len(pool)] for place in places]))
    known = {None: -1}
    expected = [
        known.setdefault(None if -1 in pair else pair, len(known) - 1)
        for pair in zip(*parts, strict=True)
    ]
    most = data.draw(st.sampled_from([1 << 62, 50, 1]))  # combinations that are numbered at once
    with mock.patch.object(grouping, "_MOST", most):
        assert numbered(*columns) == expected
        assert numbered(*columns[::-1]) == expected


def test_combinations_do_not_wrap_around():
    """Three columns of 2**40 values each, by their codes: combinations do not fit in 64 bits."""
    codes = np.array(list(itertools.product((0, 1 << 24), repeat=3))).T
    with mock.patch.object(grouping, "_column_codes", lambda column: (column, (1 << 40) - 1)):
        numbers, missing = grouping._combinations(list(codes))
    assert len(set(numbers.tolist())) == codes.shape[1]
    assert not missing.any()


GLUED = [("a b", "c"), ("a", "b c"), ("a", "b"), ("a b c", ""), (1, 1), ("01", "1"), (1, "01")]


def glue(columns, threads=1):
    """Glue texts: the fault that is planted."""
    texts = [" ".join(map(str, parts)) for parts in zip(*columns, strict=True)]
    codes, _ = pd.factorize(np.array(texts, object))
    return codes.astype(np.int64), np.zeros(len(codes), bool)


def one_more(ids):
    """How a count of units changes with the last of some combinations."""
    first, second = map(objects, zip(*ids, strict=True))
    whole = pd.DataFrame({"a": first, "b": second})
    found = []
    for frame in (whole.iloc[:-1].copy(), whole):
        frame.dp.declare(privacy_unit=["a", "b"], max_rows=1)
        found.append(int(frame.dp.count(epsilon=EXACT).iloc[0, 0]))
    return found[1] - found[0]


def test_a_rule_that_glues_is_found():
    with mock.patch.object(grouping, "_combinations", glue):
        assert one_more(GLUED[:2]) == 0


def count(ids):
    frame = pd.DataFrame({"who": objects(ids)})
    frame.dp.declare(privacy_unit="who", max_rows=1)
    return int(frame.dp.count(epsilon=EXACT).iloc[0, 0])


SURROGATE_IDS = [f"{chr(0xD800 + n)}" for n in range(1000)]
NUL_IDS = [f"user\0{n}" for n in range(1000)]


@pytest.mark.parametrize("ids", [SURROGATE_IDS, NUL_IDS, ["\ud800", "'\\ud800'"] * 2])
@pytest.mark.parametrize("added", [7, None, "x", b"x", (1,), np.nan, Unhashable()])
def test_one_unit_changes_a_count_by_one(ids, added):
    before, after = count(ids), count([*ids, added])
    assert before == len(set(ids))
    assert 0 <= after - before <= 1


@pytest.mark.parametrize("odd", [Grudging(), Grudging(asyncio.CancelledError), Greedy()])
def test_what_an_id_does_when_it_is_compared_moves_no_other(odd):
    ids = [1, 2**61, "a", 1.0, (1,), b"a"]
    for place in range(len(ids) + 1):
        found = numbered(objects([*ids[:place], odd, *ids[place:], odd]))
        own = {found.pop(place), found.pop()}
        assert len(own) == 1
        assert not own & set(found)
        assert len(set(found)) == len(set(ids))


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, BaseException])
def test_an_id_that_cannot_be_hashed_is_left_out(error):
    assert numbered(objects([1, Unhashable(error), "a", (Unhashable(error),)])) == [0, -1, 1, -1]


@pytest.mark.parametrize("stop", STOPS)
def test_what_stops_a_program_is_not_contained(stop):
    with pytest.raises(stop):
        unit_codes([objects([Unhashable(stop)])])


def test_classes_with_an_equality_of_their_own_equal_none_of_others():
    class Caseless(str):
        __slots__ = ()

        def __eq__(self, other):
            return self.lower() == other.lower()

        def __hash__(self):
            return hash(self.lower())

    assert numbered(objects(["a", Caseless("A"), Caseless("a"), "A"])) == [0, 1, 1, 2]


VIEWS = {
    "buckets": lambda column: unit_buckets([column], 1 << 40),
    "keys": lambda column: finder(KeyAxis("x", pd.Index(KEYS, dtype=object)), column)(column),
    "where": lambda column: keep(WHERE, pd.DataFrame({"x": column})),
}
KEYS = ["a", "a\0b", NFC, 1, 2**53 + 1, b"a", 0.1, (1, "a"), pd.Timestamp("2020-01-01")]
WHERE = Condition.parse(f"x in ['a', 'a\\0', 1] or x > '{NFC}' or x < 0")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", COLUMNS)
def test_buckets_keys_and_conditions_look_at_one_row(name, view):
    make, pool = COLUMNS[name]
    column = make(pool)
    alone = [VIEWS[view](column.iloc[row : row + 1])[0] for row in range(len(pool))]
    assert VIEWS[view](column).tolist() == alone
    assert VIEWS[view](make(pool[::-1])).tolist() == alone[::-1]


def test_ids_with_equal_keys_share_a_bucket():
    buckets = unit_buckets([objects(POOL)], 1 << 40)
    keys = [key_of(value) for value in POOL]
    pairs = [(a, b) for a in range(len(POOL)) for b in range(a) if keys[a] == keys[b] is not None]
    assert len(pairs) > 50
    assert [(POOL[a], POOL[b]) for a, b in pairs if buckets[a] != buckets[b]] == []


def test_collections_of_dask_tell_the_same_ids_apart():
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("dpframe.dask")
    dask = pytest.importorskip("dask")
    items = [one for one in POOL * 2 if not isinstance(one, Unhashable)]
    frame = pd.DataFrame({"who": objects(items)})
    task = Task(Cells(), (Term("rows"), Term("units")), unit=("who",), caps=Caps(rows=1))
    parts = [dask.delayed(frame.iloc[start::3]) for start in range(3)]
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        collection = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
        found = engine_for(collection).totals(collection, [task], SYSTEM)[0]
    expected = engine_for(frame).totals(frame, [task], SYSTEM)[0]
    np.testing.assert_array_equal(found, expected)
    assert found[0] == len({key_of(item) for item in items} - {None})
