"""Intervals and percentages beside the numbers of a release, in one table with its certificate.

As in `choosing`, each call writes down a step, which `actions` carries out.
"""

from collections.abc import Hashable, Sequence

import pandas as pd

from dpframe.accuracy.intervals import intervals_of
from dpframe.accuracy.quotients import column_of_shares, levels_of, percent_of
from dpframe.arguments import check_flag
from dpframe.calls import with_keywords
from dpframe.certificates import companion_columns as companions
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.steps import IntervalsStep, PercentStep
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError
from dpframe.privacy.accuracy import check_level
from dpframe.steps.apply import Outcome, after, label_place


@with_keywords
def with_intervals(
    released: pd.DataFrame,
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
) -> pd.DataFrame:
    """Add the intervals of a release as columns, and keep its certificate.

    They are those of `interval`, of the numbers as they are in the table: of rounded ones, if it
    was rounded before. In later steps they go with their numbers: they are rounded to the outside,
    missing where a cell is suppressed, and renamed.

    Parameters
    ----------
    released
        A released frame, in rows.
    level, simultaneous, sampling
        As for `interval`.

    Returns
    -------
    DataFrame
        The table, then `<column>_low` and `<column>_high` per released column.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the level is not in (0, 1), a flag is neither True nor False, sampling is True for a
        release without rates, a label is taken, or the table was unstacked.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "B"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> table = with_intervals(released)
    >>> list(table.columns), dpf.verify(table).state
    (['count', 'count_low', 'count_high'], 'post-processed')
    """
    level = check_level(level)
    check_flag("simultaneous", simultaneous)
    check_flag("sampling", sampling)
    certificate = verify(released)
    companions.check_no_intervals_beside(certificate, "with_intervals")
    if certificate.unstacked is not None:
        raise QueryError(
            "with_intervals takes the table as it was before unstack: call it on that one, or use "
            ".dp.interval() of this one, a frame of its own."
        )
    flags = bool(simultaneous), bool(sampling)
    step = IntervalsStep("with_intervals", level, *flags, certificate.digest)
    return after(released, certificate, step, apply_intervals)


@with_keywords
def with_percent(
    released: pd.DataFrame,
    column: Hashable | None = None,
    level: float = 0.95,
    *,
    by: Hashable | Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Add the percentages of the total of a column as columns, and keep the certificate.

    They are those of `percent`, with their intervals. In later steps they go with their column;
    `round` takes them by their own name, and rounds their intervals to the outside.

    Parameters
    ----------
    released
        A released frame with all its rows, neither rounded nor suppressed.
    column, level, by
        As for `percent`.

    Returns
    -------
    DataFrame
        The table, then `<column>_percent`, `<column>_percent_low` and `<column>_percent_high`.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such column, it is no count or sum, the level is not in (0, 1), `by` names no
        levels, a label is taken, or a step was taken that changes rows or numbers.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> table = with_percent(released)
    >>> list(table.columns)
    ['count', 'count_percent', 'count_percent_low', 'count_percent_high']
    >>> table.dp.round(1)["count_percent"].to_dict()
    {'A': 75.0, 'B': 25.0}
    """
    level = check_level(level)
    certificate = verify(released)
    _, place = column_of_shares(released, certificate, column, "with_percent")
    levels = levels_of(released.index, by)
    within = tuple(str(released.index.names[at]) for at in levels) or None
    name = str(released.columns[place])
    step = PercentStep("with_percent", name, within, level, certificate.digest)
    return after(released, certificate, step, apply_percent)


def apply_intervals(frame: pd.DataFrame, certificate: Certificate, step: IntervalsStep) -> Outcome:
    """Put intervals beside their columns."""
    flags = {"simultaneous": step.simultaneous, "sampling": step.sampling}
    ends = intervals_of(frame, certificate, step.level, **flags)
    return companions.put_beside(frame, ends, step.step), certificate


def apply_percent(frame: pd.DataFrame, certificate: Certificate, step: PercentStep) -> Outcome:
    """Add percentages and their intervals."""
    label = frame.columns[label_place(frame, step.column)]
    levels = [name for name in frame.index.names if str(name) in (step.by or ())]
    shares = percent_of(frame, certificate, label, step.level, by=levels or None)
    shares = shares[["estimate", "low", "high"]]
    shares.columns = pd.Index(
        [f"{label}{companions.PERCENT}{end}" for end in ("", *companions.ENDS)]
    )
    return companions.put_beside(frame, shares, step.step), certificate
