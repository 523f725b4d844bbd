"""Bounds without looking: a released histogram of values, and the errors that it predicts.

It goes the way of suggested caps: plans of the later query first, then a release like others.
"""

from collections.abc import Hashable, Mapping
from typing import Annotated, Any, Unpack

import pandas as pd

from dpframe.calls import with_keywords
from dpframe.engines import Frame, engine_for
from dpframe.engines.declared import SINGLE, check_keys_match, declaration_of
from dpframe.operations.charging import RecordOptions, after_charge, options_of
from dpframe.operations.release import ReleaseOptions, SpendOptions, checked_plan, release
from dpframe.plan.cells import cells_of
from dpframe.plan.suggestion import BoundsWanted, OfValues, plan_bounds
from dpframe.privacy.amounts import Spend
from dpframe.queries.binned import Histogram
from dpframe.queries.kinds import By
from dpframe.queries.reading import RowOptions
from dpframe.steps.suggest_bounds import BoundErrors, add_bound_errors


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
