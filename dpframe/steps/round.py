"""Round released numbers, and the ends of their intervals outward."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from dpframe.accuracy.outward import known_numbers, outward
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.column_parts import MOST_DECIMALS, ColumnPart, RoundedPart
from dpframe.certificates.companion_columns import ENDS, ends_of
from dpframe.certificates.steps import RoundStep
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError
from dpframe.public import public_call
from dpframe.steps import apply


@public_call
def round(released: pd.DataFrame, decimals: int | Mapping[Hashable, int] = 0) -> pd.DataFrame:
    """Round the numbers of a release, halves to even, and keep its certificate.

    Intervals are those of the rounded numbers: wider by as much as rounding may have moved these,
    and rounded outwards. Intervals of rates and variances, and those that `interval` and `percent`
    add, are only rounded outwards.

    Parameters
    ----------
    released
        A released frame.
    decimals
        Number of decimals, -2 for hundreds; or a dict by column. Whole numbers stay whole, and
        times are not rounded. Ends of intervals are rounded with their numbers.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If decimals are not whole numbers from -15 to 15, or name no column of numbers; or groups
        were found without numbers.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A"] * 147})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A"]), epsilon=1e6)
    >>> tens = round(released, -1)
    >>> tens.join(tens.dp.interval()).loc["A"].tolist()
    [150, 140, 160]
    """
    certificate = verify(released)
    certificate.require_numbers()
    cells = apply.in_rows(released, certificate)
    kinds = [getattr(dtype, "kind", "O") for dtype in cells.dtypes]
    numbers = [at for at, kind in enumerate(kinds) if kind in "iuf"]
    ends = {end: at for at in numbers for end in _ends(cells, certificate, at)}
    if isinstance(decimals, Mapping):
        given = {
            apply.place_of(cells, label, "decimals"): count for label, count in decimals.items()
        }
    else:
        given = {at: decimals for at in numbers if at not in ends}
    for at, count in given.items():
        if type(count) is not int or abs(count) > MOST_DECIMALS:
            rule = f"must be whole numbers from -{MOST_DECIMALS} to {MOST_DECIMALS}"
            raise QueryError.about("decimals", rule, count)
        if at in ends:
            why = f"which is rounded to the outside with {cells.columns[ends[at]]!r}"
        elif at not in numbers:
            why = "no column of numbers"
        else:
            continue
        rule = f"decimals name {cells.columns[at]!r}, {why}. Leave it out."
        raise QueryError(rule, parameter="decimals", label=cells.columns[at])
    if not given:
        why = "there are no numbers to round in this release, or decimals name none"
        way_out = "Times are not rounded: leave the step out, or name columns of numbers."
        raise QueryError(f"{why}. {way_out}", parameter="decimals")
    by_name = {str(cells.columns[at]): count for at, count in given.items()}
    step = RoundStep("round", by_name, certificate.digest)
    return apply.after(released, certificate, step, apply_round)


@apply.cell_by_cell
def apply_round(frame: pd.DataFrame, certificate: Certificate, step: RoundStep) -> apply.Outcome:
    """Round columns, and the ends of their intervals outward."""
    decimals = {apply.label_place(frame, name): count for name, count in step.decimals.items()}
    columns = {at: frame.iloc[:, at].round(count) for at, count in decimals.items()}
    for at, count in decimals.items():
        for end, suffix in _ends(frame, certificate, at).items():
            columns[end] = _round_outward(frame.iloc[:, end], count, up=suffix == ENDS[1])
    return apply.put_columns(frame, columns), certificate.with_each(
        lambda at, column, _: _describe_rounded(column, frame.dtypes.iloc[at], decimals.get(at))
    )


def _ends(frame: pd.DataFrame, certificate: Certificate, place: int) -> dict[int, str]:
    """Return the ends of the intervals of a column, where anything stands beside the release."""
    return ends_of(frame, certificate, place) if frame.shape[1] > certificate.width else {}


def _round_outward(column: pd.Series, decimals: int, *, up: bool) -> pd.Series:
    """Round ends of intervals; whole numbers stay whole, and missing ones missing."""
    rounded = pd.Series(outward(known_numbers(column), decimals, up=up), index=column.index)
    return rounded.astype(column.dtype).mask(column.isna())


def _describe_rounded(column: ColumnPart, dtype: Any, decimals: int | None) -> ColumnPart:
    """Say how a column was rounded, this time and before."""
    before = column.rounded
    if decimals is None or (dtype.kind == "i" and decimals >= 0):
        return column
    if before is not None and before.decimals <= decimals:
        return column
    most = 0.5 * 10.0**-decimals + (0.0 if before is None else before.most)
    return replace(column, rounded=RoundedPart(decimals, most))
