"""Columns of integers are held in few bytes, and come back as they were."""

import numpy as np
import pyarrow as pa

from dpframe.engines.batches import split_tables


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
