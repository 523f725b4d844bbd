"""What a diagnosis says about conditions that no row satisfies."""

from collections.abc import Callable, Hashable

import numpy as np
import pandas as pd

from dpframe.columns import values
from dpframe.columns.describing import in_short, kinds_of
from dpframe.queries.where import Condition
from dpframe.steps.matching import compared, may_match

_SAMPLE = 1000  # values of a column that say of what kind they are


def where_hint(
    condition: Condition | None,
    before: np.ndarray,
    after: np.ndarray,
    column: Callable[[Hashable], pd.Series],
) -> str:
    """Say why no row is left by a condition, where some were.

    Parameters
    ----------
    condition
        The condition.
    before, after
        Masks of the rows that were left before it, and after it.
    column
        Returns the values of a column.
    """
    if condition is None or after.any() or not before.any():
        return ""
    rows = np.flatnonzero(before)[:_SAMPLE]
    for label, constant in compared(condition):
        sample = values.dense(column(label)).iloc[rows]
        held = sample[~values.missing(sample)]
        if len(held) and not may_match(held, constant):
            kind = "a text" if isinstance(constant, str) else "a number"
            written = f"{constant:.6g}" if kind == "a number" else in_short(constant)
            return (
                f"no row satisfies it: {written} is {kind}, the column {label} holds "
                f"{kinds_of(values.objects(held).tolist())[0]}, and these are not compared"
            )
    return "no row satisfies it"
