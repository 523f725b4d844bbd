"""Intervals and percentages of a release: a frame of their own, or columns of its table."""

from collections.abc import Hashable, Sequence

import pandas as pd

from dpframe.accuracy import intervals, quotients
from dpframe.arguments import check_flag
from dpframe.certificates import companion_columns as companions
from dpframe.certificates.certificate import Certificate
from dpframe.certificates.steps import IntervalsStep, PercentStep
from dpframe.certificates.verify import verify
from dpframe.errors import QueryError
from dpframe.privacy.half_widths import check_level
from dpframe.public import public_call
from dpframe.steps.apply import Outcome, after, label_place


@public_call
def interval(
    released: pd.DataFrame,
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
    join: bool = False,
) -> pd.DataFrame:
    """Return confidence intervals for the noise in every released cell, or for sampled rows, too.

    Intervals cover the noise only, not what bounds and caps changed. Denoised columns have none.
    Intervals of rates hold in groups of any size: they are all rates that a test does not reject.
    For groups that were found, intervals assume that the count was published: they are 1 or more,
    and wider near the threshold. Intervals of quantiles are part of the release, and are returned
    unchanged.

    Parameters
    ----------
    released
        A released frame.
    level
        Probability that the interval of a cell holds the value before noise, in (0, 1).
    simultaneous
        Whether all intervals of the frame hold at once with this probability: those of d cells are
        then given at `level^(1 / d)` (Sidak 1967), or `1 - (1 - level) / d` with Laplace noise.
    sampling
        Whether the rows are a random sample, and the intervals are for its population. Each row is
        an independent draw: by its caps, a unit may have at most one row in a group.
    join
        Whether to add them to the table as columns; it keeps its certificate. Later steps treat
        them with their numbers: rounded to the outside, suppressed and renamed together.

    Returns
    -------
    DataFrame
        Columns `<column>_low` and `<column>_high` per released column; with `join`, after those of
        the table.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the level is not in (0, 1), or a flag is neither True nor False. With `sampling`, if the
        sampling error is not known: means, correlations and slopes released without
        `sampling=True`, sums, variances, covariances, quantiles, groups that were found, several
        rows of a unit in a group. With `join`, if a label is taken, or the table was unstacked.

    Notes
    -----
    With `sampling`, an interval holds every m that a test does not reject. For a count X, the
    expected number of rows m: `|X - m| <= f sqrt(s^2 + m)`. For a rate or a mean of N rows with sum
    T: `|T - m N| <= f sqrt(s^2 + v)`, where v is `N m (1 - m)` for a rate and the noisy sum of `(x
    - m)^2` for a mean. s is the deviation of the noise; f lies between its half-width in deviations
    and the normal quantile, nearer to the larger error. Without noise, a rate has the interval of
    Wilson (1927), and a mean nearly that of Student. For a correlation and a slope, v is the noisy
    sum of each row's squared influence. The interval always holds the one for the noise.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B", "C"]), epsilon=0.5)
    >>> def width(bars):
    ...     return int(bars["count_high"].iloc[0] - bars["count_low"].iloc[0])
    >>> width(interval(released)), width(interval(released, simultaneous=True))
    (12, 16)
    >>> table = interval(released, join=True)
    >>> list(table.columns), dpf.verify(table).state
    (['count', 'count_low', 'count_high'], 'post-processed')
    """
    level = check_level(level)
    flags = {"simultaneous": simultaneous, "sampling": sampling}
    for name, flag in (("join", join), *flags.items()):
        check_flag(name, flag)
    certificate = verify(released)
    if not join:
        return intervals.intervals_of(released, certificate, level, **flags)
    companions.check_no_intervals_beside(certificate, "interval with join=True")
    if certificate.unstacked is not None:
        before = "join=True takes the table as it was before unstack"
        way_out = "call it on that one, or use .dp.interval() of this one"
        raise QueryError(f"{before}: {way_out}.", parameter="join", value=True)
    step = IntervalsStep("interval", level, bool(simultaneous), bool(sampling), certificate.digest)
    return after(released, certificate, step, apply_intervals)


@public_call
def percent(
    released: pd.DataFrame,
    column: Hashable | None = None,
    level: float = 0.95,
    *,
    by: Hashable | Sequence[Hashable] | None = None,
    sampling: bool = False,
    join: bool = False,
) -> pd.DataFrame:
    """Return every row's percentage of the total of a released column, with error and interval.

    The total is the sum over the rows of the table or of a group. For every share s, a test looks
    at the combination `(1 - s) X_i - s sum_(j != i) X_j`, as `ratio` does.

    Parameters
    ----------
    released
        A released frame.
    column
        A count or a sum; `None`: the only column.
    level
        Confidence level of each interval, in (0, 1).
    by
        A level of the index, or a list of them: percentages of the total of the rows with the same
        keys there. `None`: of all rows.
    sampling
        Whether the rows are a random sample, and the percentages are those of the population: with
        n the total, `n s (1 - s)` is added to the variance. For counts only; a unit may have one
        row in all.
    join
        Whether to add them to the table as columns; it keeps its certificate. Later steps treat
        them with their column; `round` takes them by their own name, and rounds their intervals to
        the outside.

    Returns
    -------
    DataFrame
        The released rows, with `estimate`, `std_error`, `low` and `high`, in percent. In estimates,
        a total is at least 1, or at least its standard error for sums. With `join`, the table, then
        `<column>_percent`, `<column>_percent_low` and `<column>_percent_high`.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the column is no count or sum, the level is not in (0, 1), or `by` names no levels, or
        all. With `sampling`, if the column is no count, or a unit may have several rows. With
        `join`, if a label is taken.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"day": [0, 0, 0, 0, 1], "zone": ["A", "B", "A", "A", "B"]})
    >>> query = dpf.count(by=["day", "zone"], keys={"day": [0, 1], "zone": ["A", "B"]})
    >>> released = dpf.release(trips, query, epsilon=1e6)
    >>> percent(released)["estimate"].to_list(), percent(released, by="day")["estimate"].to_list()
    ([60.0, 20.0, 0.0, 20.0], [75.0, 25.0, 0.0, 100.0])
    >>> list(percent(released, join=True).columns)
    ['count', 'count_percent', 'count_percent_low', 'count_percent_high']
    """
    for flag, given in (("join", join), ("sampling", sampling)):
        check_flag(flag, given)
    level = check_level(level)
    certificate = verify(released)
    if not join:
        return quotients.percent_of(released, certificate, column, level, by, sampling=sampling)
    _, place = quotients.column_of_shares(
        released, certificate, column, "percent", sampling=sampling
    )
    levels = quotients.levels_of(released.index, by)
    within = tuple(str(released.index.names[at]) for at in levels) or None
    name = str(released.columns[place])
    step = PercentStep("percent", name, within, level, bool(sampling), certificate.digest)
    return after(released, certificate, step, apply_percent)


def apply_intervals(frame: pd.DataFrame, certificate: Certificate, step: IntervalsStep) -> Outcome:
    """Put intervals beside their columns."""
    flags = {"simultaneous": step.simultaneous, "sampling": step.sampling}
    ends = intervals.intervals_of(frame, certificate, step.level, **flags)
    return companions.put_beside(frame, ends, step.step), certificate


def apply_percent(frame: pd.DataFrame, certificate: Certificate, step: PercentStep) -> Outcome:
    """Add percentages and their intervals."""
    label = frame.columns[label_place(frame, step.column)]
    levels = [name for name in frame.index.names if str(name) in (step.by or ())]
    about = frame, certificate, label, step.level, levels or None
    shares = quotients.percent_of(*about, sampling=step.sampling)
    labels = [f"{label}{companions.PERCENT}{end}" for end in ("", *companions.ENDS)]
    shares = shares[["estimate", "low", "high"]].set_axis(labels, axis=1)
    return companions.put_beside(frame, shares, step.step), certificate
