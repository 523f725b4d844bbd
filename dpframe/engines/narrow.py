"""Columns of integers in as few bytes as their values need, for a while."""

from typing import Any

try:
    import pyarrow as pa
    from pyarrow import compute
except ImportError:  # pyarrow is optional; without it there are no columns
    pa = None

_WIDTHS = (8, 16, 32)


def narrowed(column: Any) -> Any:
    """Hold the integers of a column of Arrow in the narrowest type with a sign that holds them.

    A cast to the type that it had gives the column back.

    Examples
    --------
    >>> narrowed(pa.chunked_array([[3, None, -200]])).type
    DataType(int16)
    """
    if not pa.types.is_integer(column.type):
        return column
    low, high = (end or 0 for end in compute.min_max(column).as_py().values())  # of none: None
    needed = max(~low if low < 0 else low, high).bit_length() + 1
    width = next((width for width in _WIDTHS if needed <= width), column.type.bit_width)
    return column.cast(f"int{width}") if width < column.type.bit_width else column
