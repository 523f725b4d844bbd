"""Columns of integers are held in few bytes, and come back as they were."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.engines.batches import narrow_integers, split_tables

KINDS = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    limits = np.iinfo(kind)
    near = [limits.min, limits.max, 0, *(2**k + d for k in (7, 8, 15, 16, 31, 32) for d in (-1, 0))]
    near += [-one for one in near]
    items = st.none() | st.integers(limits.min, limits.max) | st.sampled_from(near)
    some = draw(st.lists(items.filter(lambda x: x is None or limits.min <= x <= limits.max)))
    return pa.chunked_array([pa.array(some, kind)])


@given(columns())
def test_a_narrow_column_holds_the_same_in_no_more_bytes_than_it_must(column):
    found = narrow_integers(column)
    assert found.cast(column.type).equals(column)
    there = [value for value in column.to_pylist() if value is not None]
    widths = [bits for bits in (8, 16, 32) if bits < column.type.bit_width]
    enough = [w for w in widths if all(-(2 ** (w - 1)) <= value < 2 ** (w - 1) for value in there)]
    assert found.type == (f"int{enough[0]}" if enough else column.type)


def test_what_lies_under_a_missing_value_does_not_matter():
    values = pa.array(np.array([2**40, 5]), mask=np.array([True, False]))
    found = narrow_integers(pa.chunked_array([values]))
    assert found.type == "int8"
    assert found.to_pylist() == [None, 5]


@pytest.mark.parametrize("kind", ["float64", "string", "bool", "timestamp[us]", "null", "date32"])
def test_other_columns_stay_as_they_are(kind):
    column = pa.chunked_array([pa.nulls(3, kind)])
    assert narrow_integers(column) is column


def test_rows_of_a_bucket_come_back_in_order_whatever_their_widths_were(tmp_path):
    pieces = [[1, 2, 3], [10**6, 2, None], [5, 6], [2**60], [-(2**63)], [7]]
    parts = [
        (
            pa.table({"u": pa.array(piece, "int64"), "x": pa.array([0.5] * len(piece))}),
            np.arange(len(piece)) % 2,
        )
        for piece in pieces
    ]
    with split_tables(parts, 3, str(tmp_path)) as tables:
        first, second = tables
    assert first.schema == second.schema == parts[0][0].schema
    assert first["u"].to_pylist() == [1, 3, 10**6, None, 5, 2**60, -(2**63), 7]
    assert second["u"].to_pylist() == [2, 2, 6]


def test_columns_of_any_type_come_back(tmp_path):
    kinds = {
        "codes": pa.array(["a", None, "b"]).dictionary_encode(),
        "lists": pa.array([[1, 2**40], None, []], pa.list_(pa.int64())),
        "pairs": pa.array([{"x": 1}, {"x": None}, None], pa.struct([("x", pa.int64())])),
        "maps": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "views": pa.array(["a", None, "b" * 20], pa.large_string()),
        "moments": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
        "exact": pa.array([1, None, 3], pa.decimal128(20, 2)),
    }
    table = pa.table(kinds)
    with split_tables([(table, np.zeros(3, np.int64))] * 2, 1, str(tmp_path)) as tables:
        (found,) = tables
    assert found.to_pylist() == table.to_pylist() * 2
    assert found.schema.field("codes").type == "large_string"
    assert [found.schema.field(name).type for name in list(kinds)[1:]] == [
        table.schema.field(name).type for name in list(kinds)[1:]
    ]
