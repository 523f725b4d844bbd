"""Tables and columns computed from released ones: totals, changes, percentages, rates."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag, is_label, is_one_of
from dpframe.cells.keys import check_margins_name, token
from dpframe.cells.verify import Shown, look
from dpframe.certificates import definitions
from dpframe.certificates.definitions import End, IntervalDefinition
from dpframe.certificates.json_records import Packed
from dpframe.derived.columns import no_total
from dpframe.derived.table import beside, check_people, middles, new_table, put_beside
from dpframe.errors import QueryError, quote
from dpframe.inference import intervals
from dpframe.inference.joint_errors import check_sampled
from dpframe.inference.selection import ChosenCells, choices_of
from dpframe.options import By
from dpframe.privacy.amounts import as_float
from dpframe.privacy.half_widths import check_level
from dpframe.public import public_call
from dpframe.queries.reading import check_number
from dpframe.steps.rename import join_tables
from dpframe.steps.suppress import round_ends

Public: TypeAlias = float | pd.Series | Mapping[Any, float]
"""A public number, or one by key."""
PER_100_000 = 100_000.0
"""The usual unit of rates of disease (Segi 1960)."""


@public_call
def total(
    released: pd.DataFrame,
    by: By | Mapping[Hashable, Mapping[Hashable, Hashable] | None] = None,
    level: float = 0.95,
    *,
    margins: bool = False,
    margins_name: Hashable = "All",
) -> pd.DataFrame:
    """Add up the rows of a release to fewer groups, with intervals.

    What was measured is added up, and columns are read off that as a release of these groups
    does: the mean of two groups is that of all their rows.

    Parameters
    ----------
    released
        A released frame, or a table computed from one.
    by
        The levels of the index to keep; `None`: none, so that all rows are one. A dict by level
        gives keys another one, `{"zone": {"C": "other", "D": "other"}}`; other keys and levels
        stay.
    level
        Confidence level of each interval, in (0, 1).
    margins
        Whether rows for all keys of each level are among them, as in `pandas.crosstab`.
    margins_name
        The key of these rows.

    Returns
    -------
    DataFrame
        For each column, `<column>`, `<column>_low` and `<column>_high`, with a certificate. Hidden
        rows are added up as well.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If a level or key is not in it; if columns are quotients computed before, or correlations;
        if a unit may count in several groups of `units`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"day": [0, 0, 1], "zone": ["A", "B", "B"]})
    >>> query = dpf.count(by=["day", "zone"], keys={"day": [0, 1], "zone": ["A", "B"]})
    >>> released = dpf.release(trips, query, epsilon=1e6)
    >>> released.dp.total("zone", margins=True)["count"].to_dict()
    {'A': 1, 'B': 2, 'All': 3}
    """
    check_flag("margins", margins)
    shown = look(released)
    check_people(shown, "total")
    mapping: dict[str, dict[str, str]] = {}
    if isinstance(by, Mapping):
        names = [str(level.name) for level in shown.opened.levels]
        for name, groups in by.items():
            at = _level(shown, name, "by")
            if groups is not None:
                mapping[names[at]] = _mapping(shown, at, groups)
        kept = names
    else:
        places = [] if by is None else _levels(shown, by, "by")
        kept = [str(shown.opened.levels[at].name) for at in places]
    if margins:
        check_margins_name(margins_name)
    link = definitions.TotalLink(
        f="total", by=tuple(kept), mapping=mapping, margins=token(margins_name) if margins else None
    )
    return new_table(shown, link, "total", level=check_level(level))


@public_call
def change(
    released: pd.DataFrame,
    along: Hashable | pd.DataFrame,
    level: float = 0.95,
    *,
    percent: bool = False,
    lag: int = 1,
    sampling: bool = False,
) -> pd.DataFrame:
    """Return by how much each row differs from an earlier one, with intervals.

    The change is `y - x`; in percent it is `100 (y / x - 1)`, and its interval holds every r for
    which `|Y - r X|` is at most the half-width for the noise of `y - r x` (Fieller 1954). For
    means, rates and variances, the distances from a value to the ends of its own interval are added
    as squares, times the half-width for the error of the difference to first order over the root
    of the sum of the squared half-widths (Zou and Donner 2008). Where an interval ends at what is
    possible, distances are added as they are.

    Parameters
    ----------
    released
        A released frame, or a table computed from one.
    along
        The level of the index along which rows are compared, in the order of its keys, such as
        "year". Or an earlier release with the same columns, levels, privacy unit, caps and bounds.
    level
        Confidence level of each interval, in (0, 1).
    percent
        Whether changes are in percent. In estimates, an earlier count is at least 1, and other
        cells are at least their standard error; one kept within bounds is at most their middle.
    lag
        How many keys earlier.
    sampling
        Whether rows are independent random samples, and changes are those of the populations, as
        for `interval`. Nobody may be in both.

    Returns
    -------
    DataFrame
        For each column, `<column>`, `<column>_low` and `<column>_high`, with a certificate. Rows
        without an earlier one are left out.

    Raises
    ------
    CertificateError
        If a frame is not what was released.
    QueryError
        If no row has an earlier one; if two releases differ in columns, levels, privacy unit, caps
        or bounds, or are one; if columns are quotients computed before; in percent, if cells are
        points in time; with `sampling`, if the sampling error is not known.

    References
    ----------
    E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
    B 16(2), 1954. G. Y. Zou and A. Donner, "Construction of confidence limits about effect
    measures: a general approach", Statistics in Medicine 27(10), 2008.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"year": [2025] * 4 + [2026] * 5})
    >>> released = dpf.release(trips, dpf.count("year", keys=[2025, 2026]), epsilon=1e6)
    >>> released.dp.change("year")
          count  count_low  count_high
    year
    2026      1          1           1
    """
    check_flag("percent", percent)
    check_flag("sampling", sampling)
    if isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 1:
        raise QueryError.about("lag", "must be a whole number of keys, 1 or more", lag)
    two = isinstance(along, pd.DataFrame)
    if two:
        before = cast(pd.DataFrame, along)
        pair = [_released_columns(frame) for frame in (before, released)]
        released = join_tables(pair, ["before", "now"], _BETWEEN)
        along = _BETWEEN
    shown = look(released)
    at = _level(shown, along, "along")
    level = check_level(level)
    name = str(shown.opened.levels[at].name)
    link = definitions.ChangeLink("change", name, bool(percent), int(lag), two)
    return new_table(shown, link, "change", level=level, sampling=bool(sampling))


_BETWEEN = "release"


def _released_columns(frame: pd.DataFrame) -> Shown:
    """Look at a released table, and leave out what was computed from it."""
    shown = look(frame)
    shown.certificate.require_numbers()
    return replace(shown, seen={label: shown.seen[label] for label in shown.labels})


@public_call
def percent(
    released: pd.DataFrame,
    column: Hashable | None = None,
    level: float = 0.95,
    *,
    by: By = None,
    of: float | pd.DataFrame | None = None,
    sampling: bool = False,
) -> pd.DataFrame:
    """Add the percentage of a total, or of something else, to each row, with its interval.

    The total is the sum over the rows of the table or of a group. For every share s, a test looks
    at the combination `(1 - s) X_i - s sum_(j != i) X_j`, as `ratio` does. The percentages of
    counts are of answers; those of people, who may give several, are of `units`.

    Parameters
    ----------
    released
        A released frame, or a table computed from one.
    column
        A count or a sum; `None`: all of them.
    level
        Confidence level of each interval, in (0, 1).
    by
        A level of the index, or a list of them: percentages of the total of the rows with the same
        keys there. `None`: of all rows.
    of
        What they are percentages of, in place of the total: a public number, or another release
        with one column, whose levels this table has.
    sampling
        Whether the rows are a random sample, and the percentages are those of the population: with
        n the total, `n s (1 - s)` is added to the variance. For counts only; a unit may have one
        row in all.

    Returns
    -------
    DataFrame
        The table, then `<column>_percent`, `<column>_percent_low` and `<column>_percent_high`. In
        estimates, a total is at least 1, or at least its standard error for sums.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If a column is no count or sum, or `by` names no levels, or all; if a unit may count in
        several groups of `units`, and `of` is not given. With `sampling`, if the column is no
        count, or a unit may have several rows.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"day": [0, 0, 0, 0, 1], "zone": ["A", "B", "A", "A", "B"]})
    >>> query = dpf.count(by=["day", "zone"], keys={"day": [0, 1], "zone": ["A", "B"]})
    >>> released = dpf.release(trips, query, epsilon=1e6)
    >>> percent(released)["count_percent"].to_list()
    [60.0, 20.0, 0.0, 20.0]
    >>> percent(released, by="day")["count_percent"].to_list()
    [75.0, 25.0, 0.0, 100.0]
    """
    level = check_level(level)
    check_flag("sampling", sampling)
    shown = look(released)
    others = []
    divisor: float | str | None = None
    of_column = None
    if isinstance(of, pd.DataFrame):
        below = look(of)
        columns = middles(below, None, "of=")
        if len(columns) != 1 or columns[0][2]:
            rule = "of= must be a release with a single column. Choose it, released[[...]]."
            raise QueryError(rule, parameter="of")
        other, of_column = below.opened.source, columns[0][1]
        divisor, others = other.certificate.table.origin, [other]
    elif of is not None:
        divisor = _positive("of", of)
    else:
        check_people(shown, "percent")
    places = [] if by is None else _levels(shown, by, "by")
    if by is not None and not 0 < len(places) < len(shown.opened.levels):
        names = list(shown.opened.index.names)
        rule = f"must name some of the levels of the index, {names!r}, and not all"
        raise QueryError.about("by", rule, by, "Name several as a list.")
    if by is not None and of is not None:
        raise QueryError.about("by", "is for percentages of a total, without of=", by)
    groups = tuple(str(shown.opened.levels[at].name) for at in places)
    if sampling:
        for _, name, _ in middles(shown, column, "percent"):
            _check_sample_of_shares(shown, name)
    link = definitions.PercentLink("percent", groups, divisor, of_column)
    return beside(
        shown, link, "_percent", column=column, level=level, sampling=bool(sampling), others=others
    )


def _check_sample_of_shares(shown: Shown, name: str) -> None:
    """Check that rows can be a sample, of which each unit has one row in all."""
    for release in shown.opened.source.releases:
        parts = [part for part in release.columns if part.name == name]
        check_sampled(release, parts, across=True)


@public_call
def per(
    released: pd.DataFrame,
    population: Public,
    unit: float = PER_100_000,
    level: float = 0.95,
    *,
    column: Hashable | None = None,
) -> pd.DataFrame:
    """Add the rate for so many members of a public population to each row, with its interval.

    Parameters
    ----------
    released
        A released frame, or a table computed from one.
    population
        The population: a number, or a series by keys, named as the levels of the index that it is
        by. It repeats for the keys of other levels.
    unit
        For how many members.
    level
        Confidence level of each interval, in (0, 1).
    column
        A count or a sum; `None`: all of them.

    Returns
    -------
    DataFrame
        The table, then `<column>_per_<unit>` with both ends.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If a population is missing or not above 0, or has keys that the table does not have.

    Examples
    --------
    >>> import dpframe as dpf
    >>> cases = pd.DataFrame({"zone": ["A", "A", "B"]})
    >>> released = dpf.release(cases, dpf.count(by="zone", keys=["A", "B"]), epsilon=1e6)
    >>> released.dp.per({"A": 100_000, "B": 50_000})["count_per_100000"].to_dict()
    {'A': 2.0, 'B': 2.0}
    """
    shown = look(released)
    unit = _positive("unit", unit)
    people = _by_row(shown, population, "population")
    link = definitions.PerLink("per", Packed.of(people), unit)
    return beside(shown, link, f"_per_{unit:.15g}", column=column, level=check_level(level))


@public_call
def standardize(
    released: pd.DataFrame,
    weights: Public,
    *,
    over: Hashable,
    population: Public | None = None,
    unit: float | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return directly standardized rates: what they were if all had one age structure.

    A rate is `unit sum_k w_k x_k / n_k` over the keys k of a level, with counts x, populations n
    and the weights w of a standard population, scaled to a sum of 1. Released means and rates need
    no population: `unit sum_k w_k r_k`, computed as `combine` does.

    Parameters
    ----------
    released
        A released frame, or a table computed from one: counts or sums. Or released means or rates.
    weights
        The standard population: a weight for each key of the level.
    over
        The level, such as "age".
    population
        The population of each row: a series by keys, named as the levels that it is by. `None`: the
        columns are means or rates.
    unit
        For how many members; by default 100,000 with a population, and 1 without.
    level
        Confidence level of each interval, in (0, 1).

    Returns
    -------
    DataFrame
        A row for each combination of keys of the other levels; for each column, `<column>`,
        `<column>_low` and `<column>_high`, with a certificate.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If a weight or a population is missing or not above 0, or has unknown keys; if columns are
        counts or sums without a population.

    Examples
    --------
    >>> import dpframe as dpf
    >>> cases = pd.DataFrame({"zone": ["A", "A", "B"], "age": ["old", "young", "old"]})
    >>> query = dpf.count(["zone", "age"], keys={"zone": ["A", "B"], "age": ["young", "old"]})
    >>> released = dpf.release(cases, query, epsilon=1e6)
    >>> standard = {"young": 3, "old": 1}
    >>> by_age = pd.Series({"young": 1_000, "old": 500}).rename_axis("age")
    >>> rates = released.dp.standardize(standard, over="age", population=by_age)
    >>> rates["count"].to_dict()
    {'A': 125.0, 'B': 50.0}
    """
    shown = look(released)
    at = _level(shown, over, "over")
    shares = _by_row(shown, weights, "weights", [at])
    people = None if population is None else _by_row(shown, population, "population")
    if unit is None:
        unit = 1.0 if people is None else PER_100_000
    codes = shown.opened.codes[at]
    first = np.unique(codes, return_index=True)[1]
    link = definitions.StandardizeLink(
        f="standardize",
        over=str(shown.opened.levels[at].name),
        weights=Packed.of(shares / shares[first].sum()),
        population=None if people is None else Packed.of(people),
        unit=_positive("unit", unit),
    )
    return new_table(shown, link, "standardize", level=check_level(level))


@public_call
def relative(
    released: pd.DataFrame,
    along: Hashable,
    to: Hashable,
    level: float = 0.95,
    *,
    column: Hashable | None = None,
) -> pd.DataFrame:
    """Add the quotient of each row and the one with another key, with its interval.

    Of rates, it is a risk ratio; of counts by year, an index.

    Parameters
    ----------
    released
        A released frame, or a table computed from one.
    along
        The level of that key.
    to
        The key that rows are divided by.
    level
        Confidence level of each interval, in (0, 1).
    column
        A count or a sum; `None`: all of them.

    Returns
    -------
    DataFrame
        The table, then `<column>_relative` with both ends.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If there is no such key for some rows, or a column is no count or sum.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"year": [2025] * 4 + [2026] * 5})
    >>> released = dpf.release(trips, dpf.count("year", keys=[2025, 2026]), epsilon=1e6)
    >>> released.dp.relative("year", to=2025)["count_relative"].to_dict()
    {2025: 1.0, 2026: 1.25}
    """
    shown = look(released)
    at = _level(shown, along, "along")
    keys = shown.opened.shown_keys(at)
    if not is_one_of(to, keys):
        rule = f"must be a key of level {along!r}, {quote(list(keys)[:5])}"
        raise QueryError.about("to", rule, to)
    place = list(keys).index(to)
    written = token(shown.opened.levels[at].keys[place])
    link = definitions.RelativeLink("relative", str(shown.opened.levels[at].name), written)
    return beside(shown, link, "_relative", column=column, level=check_level(level))


@public_call
def ratio(
    released: pd.DataFrame,
    numerator: Hashable,
    denominator: Hashable,
    level: float = 0.95,
    *,
    sampling: bool = False,
) -> pd.DataFrame:
    """Add the quotient of two columns to each row, with its interval.

    The interval holds every r for which `|X - r Y|` is at most the half-width for the noise of
    `x - r y`, with the covariance of the two columns; for two Laplace noises by the exact law of
    their sum. It stays within public limits: a count of some rows is at most the count of all, a
    sum at most so many times the upper bound. It covers at least as often as it says in groups of
    any size, and is never missing: where Y may be 0, it may be infinite.

    Parameters
    ----------
    released
        A released frame.
    numerator, denominator
        Labels of two of its columns, counts or sums.
    level
        Confidence level of each interval, in (0, 1).
    sampling
        Whether the rows are a random sample, and the quotient is that of the population: `y r (1 -
        r)` is added to the variance of `x - r y`. Both are then counts, and Y counts all rows that
        X does.

    Returns
    -------
    DataFrame
        The table, then `<numerator>_per_<denominator>` with both ends. In estimates, a denominator
        is at least 1, or at least its standard error for sums. Times count in seconds.

    Raises
    ------
    CertificateError
        If the frame is not what was released.
    QueryError
        If the labels are not those of two counts or sums, or the level is not in (0, 1). With
        `sampling`, if they are no such counts, or a unit may have several rows.

    References
    ----------
    E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
    B 16(2), 1954.

    Examples
    --------
    >>> import dpframe as dpf
    >>> flights = pd.DataFrame({"delay": [5, 40, 0, 90]})
    >>> query = dpf.aggregate(late=dpf.count(where="delay > 15"), flights=dpf.count())
    >>> released = dpf.release(flights, query, epsilon=1e6)
    >>> ratio(released, "late", "flights")["late_per_flights"].round(3).tolist()
    [0.5]
    """
    level = check_level(level)
    check_flag("sampling", sampling)
    shown = look(released)
    shown.certificate.require_numbers()
    for release in shown.certificate.releases:
        _ = release.noise  # quantiles that were selected have none
    parts = {}
    for called, label in (("numerator", numerator), ("denominator", denominator)):
        released_ones = [shown.opened.shown_label(shown_label) for shown_label in shown.labels]
        if not is_one_of(label, released_ones):
            rule = f"must be the label of one of the columns released, {released_ones!r}"
            raise QueryError.about(called, rule, label)
        place = [shown_label == label for shown_label in released_ones].index(True)
        part = shown.certificate.releases[0].columns[place]
        if not part.form.is_total:
            raise no_total(called, label)
        parts[called] = part
    x, y = parts["numerator"], parts["denominator"]
    if x.name == y.name:
        raise QueryError.about(
            "denominator", "must be another column than in numerator=", denominator
        )
    if sampling and (not y.counts_rows or y.where not in (None, x.where)):
        rule = f"is for shares, and {quote(y.name)} does not count all rows of {quote(x.name)}"
        way_out = "Release dpf.rate(...), or leave denominator without a condition of its own."
        raise QueryError.about("sampling", rule, True, way_out)
    link = definitions.RatioLink("ratio", y.name)
    suffix = f"_per_{denominator}"
    return beside(shown, link, suffix, column=numerator, level=level, sampling=bool(sampling))


def _listed(by: Any) -> list[Any]:
    return list(by) if isinstance(by, list) else [by]


def _levels(shown: Shown, labels: Any, called: str) -> list[int]:
    """Return the positions of levels of the index, of one name or of a list."""
    names = _listed(labels)
    level_names = list(shown.opened.index.names) if shown.opened.levels else []
    for name in names:
        if name is None or not is_one_of(name, level_names) or names.count(name) > 1:
            rule = f"must name levels of the index, {level_names!r}, each once"
            raise QueryError.about(called, rule, labels, "Name several as a list.")
    return [level_names.index(name) for name in names]


def _level(shown: Shown, label: object, called: str) -> int:
    """Return the position of one level."""
    level_names = list(shown.opened.index.names) if shown.opened.levels else []
    if label is None or not is_one_of(label, level_names):
        rule = f"must be one level of the index, of {level_names!r}"
        way_out = "To subtract one key from another, use .dp.combine({after: 1, before: -1})."
        raise QueryError.about(called, rule, label, way_out if called == "along" else "")
    return level_names.index(label)


def _mapping(shown: Shown, at: int, groups: object) -> dict[str, str]:
    """Return the new keys of a level by the old ones, as JSON."""
    name = shown.opened.index.names[at]
    keys = shown.opened.shown_keys(at)
    if not isinstance(groups, Mapping) or not groups:
        raise QueryError.about("by", f"must give keys of {name!r} another one, as a dict", groups)
    mapping = {}
    for old, new in groups.items():
        if not is_one_of(old, keys) or not is_label(new):
            rule = f"must give keys of {name!r} another one; its keys are {quote(list(keys)[:5])}"
            raise QueryError.about("by", rule, old)
        mapping[token(shown.opened.levels[at].keys[list(keys).index(old)])] = token(new)
    return mapping


def _positive(name: str, value: object) -> float:
    return check_number(name, value, "must be a number above 0")


def _by_row(
    shown: Shown, public: object, called: str, levels: list[int] | None = None
) -> np.ndarray:
    """Return the public number of each row.

    Parameters
    ----------
    shown
        The table.
    public
        A number, or numbers by key.
    called
        The argument.
    levels
        Positions of the levels that numbers are by; `None`: those that they name.
    """
    index, size = shown.opened.index, shown.opened.rows
    if not isinstance(public, pd.Series | Mapping):
        return np.full(size, _positive(called, public))
    numbers = public if isinstance(public, pd.Series) else pd.Series(dict(public))
    places = _levels_named(numbers.index, index, called) if levels is None else levels
    if levels is not None and numbers.index.nlevels != len(levels):
        raise QueryError.about(called, "must have one key for each key of the level", public)
    keys = [index.get_level_values(at) for at in places]
    levels_of_numbers = [numbers.index.get_level_values(at) for at in range(numbers.index.nlevels)]
    rows = list(zip(*(map(token, column) for column in keys), strict=True))
    keys_of_numbers = list(zip(*(map(token, column) for column in levels_of_numbers), strict=True))
    by_key = dict(zip(keys_of_numbers, map(as_float, numbers), strict=True))
    wrong = [key for key in dict.fromkeys(rows) if not 0 < by_key.get(key, 0.0) < np.inf]
    unknown = [key for key in keys_of_numbers if key not in set(rows)]
    if wrong or unknown or len(by_key) < len(keys_of_numbers):
        reason = "has no number above 0" if wrong else "is not in the table, or comes twice"
        first = ", ".join((wrong or unknown or keys_of_numbers)[0])
        rule = f"{called} must have a number above 0 for each key of the table; {first} {reason}"
        raise QueryError(f"{rule}.", parameter=called)
    return np.array([by_key[key] for key in rows])


def _levels_named(numbers: pd.Index, index: pd.Index, called: str) -> list[int]:
    """Return which levels of the table numbers are by: those of their names, or the only one."""
    names = list(index.names)
    if list(numbers.names) == [None] and len(names) == 1:
        return [0]
    if any(name is None or name not in names for name in numbers.names):
        rule = f"{called} must be by levels of the index, {quote(names)}, and name them"
        raise QueryError(f"{rule}: series.rename_axis([...]).", parameter=called)
    return [names.index(name) for name in numbers.names]


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
    ends_computed = intervals.all_intervals(shown, level, **flags, choices=choices)
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
    table = put_beside(shown, ends_computed, definitions, sources, "interval")
    return round_ends(table) if any(map(shown.unit, shown.labels)) else table
