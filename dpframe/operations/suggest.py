"""Caps and bounds without looking: released histograms, and the errors that they predict.

A suggestion is a release like others: plans of the later query are made first, without data; then
the histogram is planned, charged, counted and released. Errors are computed from what came out.
"""

from collections.abc import Hashable, Mapping
from typing import Annotated, Any, Unpack

import pandas as pd

from dpframe.calls import with_keywords
from dpframe.engines import Frame, engine_for
from dpframe.engines.declared import SINGLE, check_keys_match, check_queries, declaration_of
from dpframe.errors import QueryError
from dpframe.operations.charging import RecordOptions, after_charge, options_of
from dpframe.operations.release import ReleaseOptions, SpendOptions, checked_plan, release
from dpframe.plan.cells import cells_of
from dpframe.plan.suggestion import BoundsWanted, OfValues, plan_bounds, plan_caps
from dpframe.privacy.amounts import AmountOptions, Spend
from dpframe.queries import counts
from dpframe.queries.binned import Histogram
from dpframe.queries.quantiles import query_to_measure
from dpframe.queries.query import By, Query
from dpframe.queries.reading import RowOptions
from dpframe.queries.sizes import UnitSizes
from dpframe.steps.suggest_caps import BoundErrors, CapErrors, add_bound_errors, add_cap_errors
from dpframe.strategies import MechanismName


class WantedOptions(RowOptions, total=False):
    """Which bounds to look for; see `dpframe.suggest_bounds`."""

    query: Annotated[OfValues, "sum"]
    smallest: float | None
    largest: float | None
    within: tuple[float, float] | None
    bins: Annotated[int, 64]
    planned: Mapping[str, Any] | None


class PreviewBoundsOptions(WantedOptions, SpendOptions, total=False):
    """Which bounds to look for, and how much to spend; see `dpframe.suggest_bounds`."""


class SuggestBoundsOptions(PreviewBoundsOptions, RecordOptions, total=False):
    """The same, and what to record; see `dpframe.suggest_bounds`."""


@with_keywords
def suggest_bounds(
    frame: Frame, column: Hashable, by: By = None, **options: Unpack[SuggestBoundsOptions]
) -> pd.DataFrame:
    """Release how large values are, and from it the bounds with which a sum or a mean errs least.

    The values of a column are counted in public bins, as `histogram` does: under the caps that are
    declared, with no bounds at all. For each pair of ends of bins as bounds, the mean absolute
    error of a group is predicted as ``L + s exp(-L / s)``: L is what the bounds clip, read off the
    histogram; s is the mean size of the noise that the query needs with these bounds.

    Parameters
    ----------
    frame
        The private frame.
    column
        The column of numbers whose bounds are looked for.
    by, where, keys
        Groups of the later query, as in `sum`. Values are counted in all groups together.
    query
        What is to be released later: "sum" or "mean".
    smallest, largest
        Sizes of the smallest and largest bounds beside 0, made to powers of two: 1/1024 (1 for a
        column that a schema declares to hold integers) and 2**32 by default.
    within, bins
        Two numbers, and how many bins of equal widths between them to use in place of powers of
        two: to refine what was found before. It is a release of its own.
    planned
        How much the later query is to spend, as in `suggest_caps`.
    epsilon, delta, mu, rho, share, mechanism, name, note, privacy_unit
        As in `release`, for the histogram.

    Returns
    -------
    DataFrame
        One row per bin. `count`: the number of values in it, with noise and certificate as in every
        release. Computed from it: `as_low` and `as_high`, the predicted errors with the left end of
        the bin as the lower bound, and with its right end as the upper one, each beside the best
        other one; infinite where that is no bound. `.dp.best` is the pair with the least error.

    Raises
    ------
    AlreadyReleasedError, BudgetExceededError, CalibrationError, DeclarationError, QueryError,
    ReleaseError, UnknownColumnError
        As `release`, and if an argument is not usable.

    Notes
    -----
    Values that are missing or no numbers are in no bin. On each side of zero, bins that noise alone
    can explain count as empty. Between powers of two, a size x is taken to be as frequent as 1 / x;
    beyond the largest, to be 1.44 times that. All that is clipped counts as an error, though what
    is clipped above and below cancels in part; groups are taken to be clipped alike.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"fare": [3.5 + n % 41 for n in range(9000)]})
    >>> found = dpf.suggest_bounds(trips, "fare", epsilon=0.05, privacy_unit=dpf.EACH_ROW)
    >>> list(found.columns), list(found.dp.best)  # most often {"bounds": (0.0, 64.0)}
    (['count', 'as_low', 'as_high'], ['bounds'])
    """
    asked, facts = _prepare_bounds(frame, column, by, options)
    released = release(frame, asked, **options_of(ReleaseOptions, options))
    return after_charge(lambda: add_bound_errors(released, facts))


@with_keywords
def preview_suggest_bounds(
    frame: Frame, column: Hashable, by: By = None, **options: Unpack[PreviewBoundsOptions]
) -> pd.DataFrame:
    """Show the noise that bounds need, and that of the histogram; reads no data.

    Parameters
    ----------
    frame, column, by, query, where, keys, smallest, largest, within, bins, planned
        As in `suggest_bounds`.
    epsilon, delta, mu, rho, share, mechanism, privacy_unit
        As in `suggest_bounds`.

    Returns
    -------
    DataFrame
        One row per bin: `std_error` of the number of values in it; `as_low` and `as_high`, the mean
        absolute error that noise makes in a group with that end of the bin as one bound, and the
        other that needs least; of a mean, in a group of one row.

    Raises
    ------
    BudgetExceededError, CalibrationError, DeclarationError, QueryError, UnknownColumnError
        As `suggest_bounds`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"fare": [3.5]})
    >>> sizes = {"smallest": 1, "largest": 2, "epsilon": 0.1, "privacy_unit": dpf.EACH_ROW}
    >>> dpf.preview_suggest_bounds(trips, "fare", **sizes)["std_error"].round(2).tolist()
    [14.14, 14.14, 14.14, 14.14, 14.14, 14.14]
    """
    asked, facts = _prepare_bounds(frame, column, by, options)
    declaration = declaration_of(frame).with_unit(options["privacy_unit"])
    _, plan = checked_plan(frame, declaration, asked, Spend.among(options), options["mechanism"])
    planned_table = plan.tables[SINGLE]
    (prediction,) = planned_table.predictions()
    return pd.DataFrame(
        {"std_error": prediction.std_error, **facts.profiles(facts.noise)},
        planned_table.table.cells.index,
    )


def _prepare_bounds(
    frame: Frame, column: Hashable, by: By, options: PreviewBoundsOptions
) -> tuple[Histogram, BoundErrors]:
    """Say what to release, and what each pair of bounds costs: without data."""
    spend = Spend.among(options)
    wanted = BoundsWanted(column, by, **options_of(WantedOptions, options))
    declaration = declaration_of(frame).with_unit(options["privacy_unit"])
    engine = engine_for(frame)
    engine.check(frame, wanted.labels)
    made = plan_bounds(declaration, wanted, spend)
    check_keys_match(engine, frame, cells_of(wanted.ask(), declaration).axes)
    return made


class PreviewCapsOptions(AmountOptions, total=False):
    """Which caps to look at, and how much to spend; see `dpframe.suggest_caps`."""

    query: Query | None
    cap: str | None
    largest: int | None
    planned: Mapping[str, Any] | None
    mechanism: Annotated[MechanismName, "auto"]


class SuggestCapsOptions(PreviewCapsOptions, RecordOptions, total=False):
    """The same, and what to record; see `dpframe.suggest_caps`."""


@with_keywords
def suggest_caps(
    frame: Frame, by: By = None, **options: Unpack[SuggestCapsOptions]
) -> pd.DataFrame:
    """Release how many rows units have, and from it the cap with which a query errs least.

    Every unit falls in exactly one bin, whatever it has: adding or removing one moves one number by
    1, replacing it two. So the histogram costs little, and no cap is needed for it. For each
    candidate c, the mean absolute error of a group is predicted as ``E|L + Y| = L + s exp(-L /
    s)``: K L, what the cap cuts off, is read off the histogram; K is the number of groups; Y is the
    noise that the query needs with that cap, as Laplace noise with ``E|Y| = s``.

    Parameters
    ----------
    frame
        The private frame, declared with a privacy unit.
    by
        Groups of a count, in place of `query=dpf.count(by=by)`.
    query
        The query that is to be released later: a count, sums, a histogram, units, or an aggregate
        of counts and sums. Rows that its condition or its groups leave out do not count.
    cap
        The cap that is looked for: "max_rows", "max_groups" or "max_rows_per_group". By default the
        one that is declared or in the query, if there is one, and else "max_rows"; "max_groups" for
        units. Caps of other names stay as they are.
    largest
        The largest candidate: 2**20 by default, or for "max_groups" the number of groups.
    planned
        How much the later query is to spend: `{"epsilon": 0.9, "delta": 1e-6}`, say.
        By default nine times what is spent here (with the same delta), or what is left of shares.
    epsilon, delta, mu, rho, share, mechanism, name, note
        As in `release`, for the histogram.

    Returns
    -------
    DataFrame
        One row per candidate. `units`: how many need this cap and not the one before, with noise
        and certificate as in every release; the last row also holds all that need more. Computed
        from it: `lost`, `noise` and `error`, mean absolute errors of a group with that cap, in the
        units of the output; of several outputs, in rows. `.dp.best` is the cap with the least.

    Raises
    ------
    DeclarationError
        If no privacy unit is declared.
    QueryError
        If the query is of means, rates or variances, or an argument is not usable.
    AlreadyReleasedError, BudgetExceededError, CalibrationError, ReleaseError, UnknownColumnError
        As `release`.

    Notes
    -----
    In the tail, bins that noise alone can explain count as empty, and none as negative: with too
    few units, the suggestion is too small. In a bin, a size x is taken to be as frequent as 1 / x.
    All groups are taken to lose the same. A row that is lost of a sum counts with the mean of `|x|`
    over the bounds. For "max_groups", units are counted by the groups that they have rows in;
    a group that is lost of a unit is taken to be `sqrt(c)` rows, with c the cap on rows in it, or
    1. For "max_rows_per_group", they are counted by the rows in their fullest group; what other
    groups lose is not seen, so that L is a lower bound.

    Examples
    --------
    >>> import dpframe as dpf
    >>> rides = pd.DataFrame({"rider": [r for r in range(3000) for _ in range(1 + r % 4)]})
    >>> _ = rides.dp.declare(privacy_unit="rider", max_rows=20)
    >>> found = dpf.suggest_caps(rides, largest=64, epsilon=0.1)
    >>> found.dp.best, list(found.columns)
    ({'max_rows': 4}, ['units', 'lost', 'noise', 'error'])
    """
    asked, facts = _prepare_caps(frame, by, options)
    released = release(frame, asked, **options_of(ReleaseOptions, options))
    return after_charge(lambda: add_cap_errors(released, facts))


@with_keywords
def preview_suggest_caps(
    frame: Frame, by: By = None, **options: Unpack[PreviewCapsOptions]
) -> pd.DataFrame:
    """Show the noise that each cap needs, and that of the histogram; reads no data.

    Parameters
    ----------
    frame, by, query, cap, largest, planned, epsilon, delta, mu, rho, share, mechanism
        As in `suggest_caps`.

    Returns
    -------
    DataFrame
        One row per candidate: `std_error` of the number of units in its bin, and `noise`, the mean
        absolute error that noise makes in a group of the later query with that cap.

    Raises
    ------
    BudgetExceededError, CalibrationError, DeclarationError, QueryError, UnknownColumnError
        As `suggest_caps`.

    Examples
    --------
    >>> import dpframe as dpf
    >>> rides = pd.DataFrame({"rider": [1, 1, 2]})
    >>> _ = rides.dp.declare(privacy_unit="rider", max_rows=20)
    >>> dpf.preview_suggest_caps(rides, largest=3, epsilon=0.1).round(2)
              std_error  noise
    max_rows
    1             14.14   1.07
    2             14.14   2.20
    3             14.14   3.32
    """
    asked, facts = _prepare_caps(frame, by, options)
    spend = Spend.among(options)
    _, plan = checked_plan(frame, declaration_of(frame), asked, spend, options["mechanism"])
    (prediction,) = plan.tables[SINGLE].predictions()
    return pd.DataFrame({"std_error": prediction.std_error, "noise": facts.noise}, asked.most)


def _prepare_caps(frame: Frame, by: By, options: PreviewCapsOptions) -> tuple[UnitSizes, CapErrors]:
    """Say what to release, and what each candidate costs: without data, before anything else."""
    spend = Spend.among(options)
    later = _query(by, options["query"])
    declaration = declaration_of(frame)
    check_queries(frame, later)
    cap, largest, planned = options["cap"], options["largest"], options["planned"]
    return plan_caps(declaration, later, spend, cap=cap, largest=largest, planned=planned)


def _query(by: By, query: Query | None) -> Query:
    """Return the query to be released later."""
    if query is None:
        return counts.count(by)
    if by is not None:
        raise QueryError(
            "by= is short for query=dpf.count(by=by): give one of the two, and the groups of a "
            "query in the query."
        )
    return query_to_measure(query)
