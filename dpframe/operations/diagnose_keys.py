"""What a diagnosis says about keys that are not declared, and values in no bin."""

import numpy as np
import pandas as pd

from dpframe.columns import values
from dpframe.columns.describing import in_short, kinds_of
from dpframe.engines.steps import Followed, Step
from dpframe.queries.tasks import Axis, BinAxis

_MOST_OFTEN = 3
_SAMPLE = 1000  # values of a column that say of what kind they are


def not_found(kind: str, axis: Axis) -> str:
    """Say what keys are that are not declared."""
    binned = isinstance(axis, BinAxis)
    match kind:
        case "missing key":
            return "missing"
        case "moved key":
            return "below or above all bins" if binned else "missing, or not a declared key"
    return "in no bin" if binned else "not a declared key"


def key_hint(found: Followed, step: Step) -> str:
    """Say which keys are not declared, and as what they count if they do."""
    if step.kind == "missing key" or step.axis is None:
        return ""
    seen = _seen_instead(found, step, step.axis) if step.rows.any() else ""
    if step.kind != "moved key":
        return seen
    counted = f"counted {_instead(step.axis)}"
    return f"{counted}; {seen}" if seen else counted


def _instead(axis: Axis) -> str:
    """Say where rows count that have none of the keys, or are in no bin."""
    if isinstance(axis, BinAxis):
        return "in the first bin or the last"
    (key,) = axis.keys[-1:].tolist()  # 1998, not np.int64(1998)
    return f"as {in_short(key)}"


def _seen_instead(found: Followed, step: Step, axis: Axis) -> str:
    """Say which keys are not declared, or why no row can have one that is."""
    if not found.matched(axis):
        kinds = kinds_of(_sample(found, step)), kinds_of(_keys(axis))
        (held, classes), (wanted, known) = kinds
        if not classes & known:
            what = "bins are of" if isinstance(axis, BinAxis) else "keys are"
            return f"{what} {wanted}, the column holds {held}: no row can match"
    often = found.most_often(axis.column, step.rows, _MOST_OFTEN)
    listed = ", ".join(f"{in_short(value)} ({rows:,})" for value, rows in often)
    return f"most often {listed}" if listed else ""


def _sample(found: Followed, step: Step) -> list[object]:
    """Take some values of the rows that a step leaves out, or moves."""
    rows = np.flatnonzero(step.rows)[:_SAMPLE]
    column = found.column(step.axis.column) if step.axis is not None else pd.Series()
    sample: list[object] = values.objects(values.dense(column).iloc[rows]).tolist()
    return sample


def _keys(axis: Axis) -> list[object]:
    keys = axis.keys.left if isinstance(axis, BinAxis) else axis.keys
    listed: list[object] = keys[:_SAMPLE].astype(object).tolist()
    return listed
