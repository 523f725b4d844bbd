"""Odd columns that once raised, or let the rows of one unit change what others add up to."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe.declaration.facts import Declaration
from dpframe.engines import engine_for
from dpframe.engines.units import unit_codes
from dpframe.plan.cells import cells_of
from dpframe.privacy.neighbors import Caps
from dpframe.queries.edges import Grid
from dpframe.queries.tasks import Cells, KeyAxis, Task, Term
from dpframe.queries.where import Condition


def refuse(*_):
    raise RuntimeError


class Hostile:
    """Does not even say what its class is."""

    __class__ = property(refuse)
    __hash__ = __eq__ = refuse


class HostileText(str):
    __slots__ = ()
    __hash__ = __eq__ = refuse


def objects(*values):
    cells = np.empty(len(values), object)
    cells[:] = values
    return pd.Series(cells, dtype=object)


def arrow(*chunks, kind=None):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks, kind)))


def totals(column, *, keys=None, where=None, unit=()):
    """Rows, and sums within (0, 9), of a column `x`."""
    axes = () if keys is None else (KeyAxis("x", pd.Index(keys, tupleize_cols=False)),)
    terms = (Term("rows"), Term("sum", "x", Grid(0, 0, 9)))
    where = None if where is None else Condition.parse(where)
    task = Task(Cells(axes), terms, where, unit, Caps(rows=1) if unit else Caps())
    return (
        engine_for(pd.DataFrame()).totals(pd.DataFrame({"x": column}), [task], SYSTEM)[0].tolist()
    )


def short_dictionaries(values):
    """Chunks whose dictionaries have more values together than 8 bits can number."""
    kind = pa.dictionary(pa.int8(), values.type)
    parts = (values[start : start + 100] for start in range(0, len(values), 100))
    return arrow(*(part.dictionary_encode().cast(kind) for part in parts))


def test_dictionaries_of_chunks_need_not_fit_in_a_common_one():
    words = short_dictionaries(pa.array([f"v{n}" for n in range(300)] + ["v7", None]))
    assert totals(words, keys=["v7", "v250"])[0] == [2, 1]
    assert totals(words, where="x == 'v250' or x in ['v7']")[0] == [3]
    assert totals(words, unit=("x",))[0] == [300]
    numbers = short_dictionaries(pa.array([*range(300), None]))
    assert totals(numbers)[1] == [sum(range(9)) + 9 * 291]
    assert totals(numbers, where="x >= 298")[0] == [2]


def test_dictionaries_hold_times_and_repeat_themselves():
    noon = pd.Timestamp("2020-02-01 12:00")
    times = pa.array([noon, pd.Timestamp("2021-01-01"), None, noon], pa.timestamp("ns"))
    column = arrow(times.dictionary_encode())
    assert totals(column, keys=[noon, noon.value])[0] == [2, 0]
    again = pa.DictionaryArray.from_arrays([0, 1, 2, None, 0], pa.array(["a", None, "a"]))
    assert totals(arrow(again), keys=["a"])[0] == [3]
    assert totals(arrow(again), unit=("x",))[0] == [1]


@pytest.mark.parametrize("rows", [0, 3])
def test_dictionaries_may_be_empty(rows):
    kind = pa.dictionary(pa.int8(), pa.string())
    column = arrow(pa.array([None] * rows, pa.string()).dictionary_encode().cast(kind), kind=kind)
    assert totals(column, keys=["a"]) == [[0], [0]]
    assert totals(column.iloc[:0], where="x == 'a'", unit=("x",)) == [[0], [0]]
    nothing = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([], kind)))
    assert totals(nothing, keys=["a"], unit=("x",)) == [[0], [0]]


def test_units_may_refuse_to_say_what_they_are():
    assert unit_codes([objects(None, Hostile(), "A")])[0].tolist() == [1, 1, 0]
    assert unit_codes([objects("A", None, Hostile())])[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("beside", ["B", 1, None, np.nan, pd.NA])
def test_texts_of_other_types_are_units_by_their_own_hash_whatever_is_beside_them(beside):
    codes, missing = unit_codes([objects("A", HostileText("A"), "A", np.str_("A"), beside)])
    assert codes[1] == missing
    assert codes[0] == codes[2] == codes[3] != codes[1]


def test_units_that_python_cannot_hold_are_left_out_and_not_made_one():
    days = arrow(pa.array([0, 2**31 - 1, -(2**31), None, 1], pa.date32()))
    codes, missing = unit_codes([days])
    assert (codes == missing).tolist() == [False, True, True, True, False]
    assert codes[0] != codes[4]
    assert totals(days, unit=("x",))[0] == [2]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "+07:00"])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_arrow_times_out_of_all_calendars_are_read_as_integers(unit, zone):
    # as Timestamps, those with a zone can crash the interpreter
    far = [2**62, -(2**63) + 1, 0, None, 0]
    times = arrow(pa.array(far, pa.timestamp(unit, zone)))
    first, other = pd.Timestamp(0), pd.Timestamp(0, tz="UTC")
    expected = [2, 0] if zone is None else [0, 2]
    assert totals(times, keys=[first, other])[0] == expected
    assert totals(times, unit=("x",))[0] == [3]
    lengths = arrow(pa.array([*far, 1], pa.duration(unit)))
    assert totals(lengths, keys=[pd.Timedelta(0), pd.Timedelta(1, unit)])[0] == [2, 1]
    assert totals(lengths, unit=("x",))[0] == [4]


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]"])
def test_sparse_times_have_gaps_or_none(kind):
    ticks = np.array([0, 5, 0, -(2**63)]).view(kind)
    wanted = [pd.Timestamp(0), pd.Timedelta(0), 0]
    expected = {"d": [2, 0, 0], "t": [0, 2, 0]}[kind[0]]
    for fill in ("NaT", ticks[1]):
        column = pd.Series(pd.arrays.SparseArray(ticks, fill_value=np.array(fill, kind)[()]))
        assert totals(column, keys=wanted)[0] == expected
        assert totals(column, unit=("x",))[0] == [2]


@pytest.mark.filterwarnings("ignore")  # pandas makes such columns, and would rather not
def test_sparse_integers_whose_gaps_are_missing():
    index = pd.arrays.SparseArray([0, 1, 0, 1]).sp_index
    for values in ([2**63 - 1, 3], [0, 3]):
        found = pd.arrays.SparseArray(
            np.array(values), sparse_index=index, fill_value=np.nan, dtype="int64"
        )
        column = pd.Series(found)
        assert totals(column, keys=[values[0], 3])[0] == [1, 1]
        assert totals(column, unit=("x",))[0] == [2]
        assert totals(column, where="x == 3")[0] == [1]


@pytest.mark.parametrize("kind", [object, "category", "string", "int64"])
def test_keys_in_a_series_keep_their_dtype_without_a_warning(kind):
    keys = pd.Series([1, 2] if kind == "int64" else ["A", "B"], dtype=kind)
    for query in (dpf.count("x", keys=keys), dpf.count("x", keys=keys.to_frame("x"))):
        assert cells_of(query, Declaration()).index.dtype == keys.dtype


def test_booleans_are_no_times():
    bounds = {"x": (pd.Timestamp("2020"), pd.Timestamp("2021"))}
    frame = pd.DataFrame({"x": [True, False, True]})
    frame.dp.declare(bounds=bounds)
    assert abs(frame.dp.sum("x", epsilon=1e15).loc[0, "x"]) <= pd.Timedelta("1s")
