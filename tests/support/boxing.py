"""The same frame in columns of objects."""

import itertools

import pandas as pd
from support.hostile import objects

from dpframe.columns import lookup, values
from dpframe.columns.times import wall_times

FAR = 10**17  # microseconds


def boxed(frame):
    """The same values in columns of objects; `None` if Python has no such values."""
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    boxes = [boxed_column(column) for column in columns]
    for column, box in zip(columns, boxes, strict=True):
        if any(value is None for value in itertools.compress(box, ~values.missing(column))):
            return None
    made = pd.DataFrame(dict(enumerate(map(objects, boxes))), index=range(len(frame)))
    return made.set_axis(frame.columns, axis=1)


def boxed_column(column):
    """Values of one column as Python has them, `None` where it has none."""
    if getattr(column.dtype, "kind", "") == "M" and abs(wall_times(column)[0]).max(initial=0) > FAR:
        return [None] * len(column)  # pandas 2.3 crashes where times with a zone lie so far
    if not values.is_dictionary(column.dtype):
        return lookup.box_values(values.dense(column))
    parts = values.split_dictionary(column)
    box = lookup.box_values(parts.values)
    return [None if code < 0 else box[code] for code in parts.codes]
