"""Make columns of the keys of a level of a release."""

from collections.abc import Hashable

import pandas as pd

from dpframe.arguments import is_one_of
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.companion_columns import DENOISED, followers
from dpframe.certificates.steps import UnstackStep
from dpframe.certificates.unstacked import widen_table
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError, quote
from dpframe.public import public_call
from dpframe.steps.apply import Outcome, after, label_place, unstack_certificate


@public_call
def unstack(
    released: pd.DataFrame, level: Hashable = -1, *, column: Hashable | None = None
) -> pd.DataFrame:
    """Turn the keys of one level of a release into columns, and keep its certificate.

    Cells keep their errors and intervals, `<key>_low` and `<key>_high`. Keys that are neither texts
    nor numbers, such as bins, become texts, so that files keep them.

    Parameters
    ----------
    released
        A released frame with two levels of keys or more.
    level
        The level, by name or position.
    column
        The released column whose cells are shown; `None`: the only one.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is one level alone, no such level or column, or keys that read alike; or if
        intervals or percentages were put beside the column.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"], "day": [0, 1, 1]})
    >>> query = dpf.count(by=["zone", "day"], keys={"zone": ["A", "B"], "day": [0, 1]})
    >>> unstack(dpf.release(trips, query, epsilon=1e6))
    day   0  1
    zone
    A     1  0
    B     0  2
    """
    certificate = verify(released)
    certificate.require_numbers()
    if certificate.unstacked is not None:
        raise QueryError("unstack takes the table as it was before unstack: call it on that one.")
    names = list(released.index.names)
    if len(names) == 1:
        rule = f"unstack needs two levels of keys or more, and there is {names!r}."
        raise QueryError(rule, parameter="level")
    position = names.index(level) if is_one_of(level, names) else level
    if type(position) is not int or not -len(names) <= position < len(names):
        raise QueryError.about("level", f"must be among {names!r}, or a position", level)
    if list(map(str, names)).count(str(names[position])) > 1:
        rule = f"two levels read alike: {names!r}. Rename one with .dp.rename(levels=...)."
        raise QueryError(rule, parameter="level", value=level)
    own: list[Hashable] = list(released.columns[: certificate.width])
    if column is None and len(own) == 1:
        column = own[0]
    if not is_one_of(column, own):
        rule = f"must be one of the columns released, {quote(own)}"
        raise QueryError.about("column", rule, column)
    _check_alone(released, certificate, own.index(column))
    step = UnstackStep("unstack", str(names[position]), str(column), certificate.digest)
    return after(released, certificate, step, apply_unstack)


def _check_alone(released: pd.DataFrame, certificate: Certificate, place: int) -> None:
    """Check that no intervals or percentages stand beside a column that is to be unstacked."""
    added = followers(released, certificate, place).items()
    beside = [repr(released.columns[at]) for at, suffix in added if suffix != DENOISED]
    if beside:
        label = released.columns[place]
        rule = f"unstack takes {label!r} without {', '.join(beside)} beside it"
        way_out = f"use .dp.select(columns={label!r}) before, and .dp.interval() afterwards"
        raise QueryError(f"{rule}: {way_out}.", parameter="column", label=label)


def apply_unstack(frame: pd.DataFrame, certificate: Certificate, step: UnstackStep) -> Outcome:
    """Make columns of the keys of a level."""
    level = [str(name) for name in frame.index.names].index(step.level)
    place = label_place(frame, step.column)
    wide, order = widen_table(frame, level, place)
    described = certificate.with_columns([place])
    return wide, unstack_certificate(described, order, step.level, step.column)
