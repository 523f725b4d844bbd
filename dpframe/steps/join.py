"""Intervals and percentages of a release: a frame of their own, or columns of its table."""

from collections.abc import Hashable, Sequence
from typing import Literal, get_args

import pandas as pd

from dpframe.arguments import check_flag
from dpframe.cells.verify import Shown, look
from dpframe.certificates.definitions import Definition, End, IntervalDefinition, PercentDefinition
from dpframe.errors import QueryError
from dpframe.inference import intervals, quotients
from dpframe.inference.selection import ChosenCells, choices_of
from dpframe.privacy.half_widths import check_level
from dpframe.public import public_call

PERCENT = "_percent"


@public_call
def interval(
    released: pd.DataFrame,
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    sampling: bool = False,
    chosen: Literal["keys"] | None = None,
    join: bool = False,
) -> pd.DataFrame:
    """Return confidence intervals for the noise in every released cell, or for sampled rows, too.

    Intervals cover the noise only, not what bounds and caps changed. Denoised columns have none.
    Intervals of rates hold in groups of any size: they are all rates that a test does not reject.
    Of groups that were found, and of cells chosen by `.dp.nlargest`, `.dp.nsmallest` or
    `.dp.suppress`, they are those of the law of a cell, given that it is shown: wider near the cut.
    Counts, and sums of values that are never negative, have ends of 0 or more. Intervals of
    quantiles are part of the release, and are returned unchanged.

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
    chosen
        How rows were chosen beside `.dp.nlargest`, `.dp.nsmallest` and `.dp.suppress`, which are
        known: "keys", in no way that depends on values. Otherwise, or where cells share noise, R of
        m cells have the level `1 - (1 - level) R / m`, so that a part `level` of those shown hold
        on average (Benjamini and Yekutieli 2005). A line below the result says which.
    join
        Whether to add them to the table as columns; it keeps its certificate. `.dp.round`,
        `.dp.suppress` and `.dp.rename` treat them with their numbers.

    Returns
    -------
    DataFrame
        Columns `<column>_low` and `<column>_high` per released column, and the rows of the table,
        or one for each cell where cells of a row stand side by side; with `join`, after the columns
        of the table. They are those of the released cells: of rounded ones, ends are rounded to
        the outside.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the level is not in (0, 1), or a flag is neither True nor False. With `sampling`, if the
        sampling error is not known: means, correlations and slopes released without
        `sampling=True`, sums, variances, covariances, quantiles, groups that were found, several
        rows of a unit in a group. With `join`, if a label is taken.

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
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"] * 50})
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
    if chosen not in (None, "keys"):
        way_out = 'Leave it out, or give "keys" if no value had a part in the choice.'
        raise QueryError.about("chosen", 'must be "keys" or None', chosen, way_out)
    shown = look(released)
    if not join:
        return intervals.intervals_of(shown, level, **flags, chosen=chosen)
    intervals.check_no_intervals_beside(shown, "interval with join=True")
    choices = dict.fromkeys(shown.labels, ChosenCells())
    if not simultaneous:
        choices = choices_of(shown, chosen, sampling=sampling)
    made = intervals.all_intervals(shown, level, **flags, choices=choices)
    ends = get_args(End)
    definitions = [
        IntervalDefinition(
            call="interval",
            column=column.name,
            end=end,
            level=level,
            simultaneous=bool(simultaneous),
            sampling=bool(sampling),
            cells=choices[label].cells,
            given=choices[label].cuts,
        )
        for label, column in zip(shown.labels, shown.certificate.releases[0].columns, strict=True)
        for end in ends
    ]
    sources = [label for label in shown.labels for _ in ends]
    return put_beside(shown, made, definitions, sources, "interval")


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
    shown = look(released)
    if not join:
        return quotients.percent_of(shown, column, level, by, sampling=sampling)
    release, place = quotients.column_of_shares(shown, column, "percent", sampling=sampling)
    whole = quotients.all_percentages(shown, column, level, by, sampling=sampling)
    levels = quotients.levels_of(shown, by)
    names = [None, *get_args(End)]
    label = shown.frame.columns[place]
    made = whole[["estimate", "low", "high"]]
    made.columns = pd.Index([f"{label}{PERCENT}{end}" for end in ("", *intervals.ENDS)])
    definitions = [
        PercentDefinition(
            call="percent",
            column=release.columns[place].name,
            end=end,
            by=tuple(str(shown.opened.levels[at].name) for at in levels) or None,
            level=level,
            sampling=bool(sampling),
        )
        for end in names
    ]
    return put_beside(shown, made, definitions, [shown.labels[place]] * len(names), "percent")


def put_beside(
    shown: Shown,
    added: pd.DataFrame,
    definitions: Sequence[Definition],
    sources: Sequence[str],
    what: str,
) -> pd.DataFrame:
    """Return a table with more columns, after those that it has.

    Raises
    ------
    QueryError
        If one of their labels is that of another column or level.
    """
    table = shown.in_rows()
    released = [shown.opened.shown_label(part.label) for part in shown.opened.table.released]
    names = [*table.columns, *released, *shown.opened.index.names]
    computed = [shown.opened.shown_label(label) for label in shown.computed]
    taken = {*map(str, names)} - {*map(str, computed)}
    again = [label for label in added.columns if label in taken]
    again += [label for label in added.columns if list(map(str, added.columns)).count(label) > 1]
    if again:
        rule = f"{what} would add {again[0]!r}, which is the name of a column or level already"
        raise QueryError(f"{rule}. Leave that out, or use .dp.rename before.", label=again[0])
    return shown.add(added, definitions, sources)
