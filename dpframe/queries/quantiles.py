"""Quantiles of one bounded column per group, as a frozen value."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import pandas as pd

from dpframe.arguments import check_flag, check_size
from dpframe.errors import QueryError
from dpframe.options import By, ChosenRows, GivenBounds
from dpframe.privacy.amounts import as_float, as_number, exact
from dpframe.privacy.half_widths import check_level
from dpframe.queries.binned import BINS, Ranges, check_range_bins
from dpframe.queries.query import OutputSpec, Query, ReadOff
from dpframe.queries.reading import binned_groups_of, bounds_of

Quantiles: TypeAlias = float | Fraction | Sequence[float | Fraction]
"""One quantile between 0 and 1, or several in increasing order."""

LEVEL = "quantile"
"""The level of the index that says which quantile a row is about."""

QUARTILES = (0.25, 0.5, 0.75)

MOST_BINS = 16_384
"""Bins between the bounds, where the call does not say how many."""

_LARGEST_BINS = 2**20  # bins to select among
_MOST_QUANTILES = 9  # quantiles to select, in four rounds
_MOST_PARTS = 10**6  # quantiles are whole multiples of 1 over this or less, so integers stay small


@dataclass(frozen=True, eq=False)
class Quantile(Query):
    """Quantiles of one column per group, over the rows where it is present."""

    column: Hashable = field(kw_only=True)
    quantiles: tuple[Fraction, ...] = field(kw_only=True)
    bounds: Mapping[Hashable, object] = field(default_factory=dict, kw_only=True)
    bins: pd.IntervalIndex | int | None = field(default=None, kw_only=True)
    candidates: tuple[float, ...] | None = field(default=None, kw_only=True)
    level: float = field(default=0.95, kw_only=True)
    simultaneous: bool = field(default=False, kw_only=True)
    scalar: bool = field(default=False, kw_only=True)

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """One column, of all quantiles."""
        return (OutputSpec(self.column, "quantile", self.column, bounds=self.bounds),)

    @property
    def subject(self) -> str:
        """What is computed."""
        several = "quantile" if len(self.quantiles) == 1 else "quantiles"
        number = self.bins if isinstance(self.bins, int | None) else len(self.bins)
        bins = "" if number is None else f" in {number:,} bins"
        if self.candidates is not None:
            bins = f" among {len(self.candidates):,} values"
        levels = ", ".join(f"{float(quantile):.6g}" for quantile in self.quantiles)
        return f"{several} {levels} of {self.column}{bins}"

    @property
    def levels(self) -> set[Hashable]:
        """The levels of the index: the last one says which quantile it is, if q is a list."""
        return super().levels if self.scalar else {*super().levels, LEVEL}

    @property
    def to_measure(self) -> Ranges:
        """Numbers of rows in ranges, which quantiles are read off.

        Examples
        --------
        >>> import dpframe as dpf
        >>> dpf.quantile("fare", [0.5]).to_measure.outputs[0].name
        'count'
        """
        bins = BINS if self.bins is None else self.bins
        quantiles = tuple(map(float, self.quantiles))
        read = ReadOff(self.subject, quantiles, self.level, self.simultaneous, self.scalar)
        return Ranges(
            self.by,
            self.where,
            self.keys,
            column=self.column,
            bins=bins,
            bounds=self.bounds,
            read=read,
            limits=self.limits,
            weight=self.weight,
            cuts=self.cuts,
            other=self.other,
        )


def check_selectable(query: Quantile) -> None:
    """Refuse what cannot be selected: many quantiles, others than of few whole parts, or one bin.

    Raises
    ------
    QueryError
        If it is so.
    """
    if len(query.quantiles) > _MOST_QUANTILES:
        rule = f"must be at most {_MOST_QUANTILES} quantiles to be selected"
        remedy = "leave mechanism out, or release dpf.ranges(...) and read them off that."
        raise QueryError(f"q {rule}, got {len(query.quantiles):,}: {remedy}", parameter="q")
    if math.lcm(*(number.denominator for number in query.quantiles)) > _MOST_PARTS:
        rule = "must have at most six decimals to be selected, or be fractions of few parts"
        raise QueryError.about("q", rule, list(map(float, query.quantiles)))
    bins = query.bins
    number = bins if isinstance(bins, int | None) else len(bins)
    if number is not None and not 2 <= number <= _LARGEST_BINS:  # noqa: PLR2004
        rule = f"must be from 2 to {_LARGEST_BINS:,} to select among"
        raise QueryError.about("bins", rule, number, "They lie between the bounds.")


def describe_quantiles(
    column: Hashable, q: Quantiles, by: By, rows: ChosenRows, bounds: GivenBounds,
    *, level: float, simultaneous: bool, bins: object, candidates: object,
) -> Quantile:  # fmt: skip
    """Describe quantiles of one bounded column per group."""
    groups = binned_groups_of(column, by, rows, "have quantiles and be")
    labels = groups["by"]
    if LEVEL in labels:
        raise _taken_label(LEVEL, "the level of the index that says which quantile a row is about")
    for label in labels:
        if str(label) in (f"{column}_low", f"{column}_high"):
            raise _taken_label(label, "the end of an interval")
    check_flag("simultaneous", simultaneous)
    if bins is not None and candidates is not None:
        reason = "candidates= are the values to select among, and bins= are ranges of values:"
        raise QueryError(f"{reason} give one of the two.", parameter="candidates")
    return Quantile(
        **groups,
        quantiles=read_quantiles(q),
        bounds=bounds_of((column,), bounds),
        bins=None if bins is None else check_range_bins(column, bins),
        candidates=None if candidates is None else _read_candidates(column, candidates),
        level=check_level(level),
        simultaneous=bool(simultaneous),
        scalar=is_scalar(q),
    )


def _read_candidates(column: Hashable, candidates: object) -> tuple[float, ...]:
    """Read the values that quantiles are selected among."""
    rule = "must be a list of two numbers or more, finite and increasing"
    remedy = (
        "Multiples of 1,000 are range(0, 500_001, 1000). Values taken from the data would leak."
    )
    wrong = QueryError.about("candidates", rule, candidates, remedy, label=column)
    # sets have no order
    if isinstance(candidates, set | frozenset | str | bytes | Mapping) or not isinstance(
        candidates, Iterable
    ):
        raise wrong
    check_size("candidates", candidates)
    values = tuple(map(as_float, candidates))
    if len(values) < 2 or not all(map(math.isfinite, values)):  # noqa: PLR2004
        raise wrong
    if any(low >= high for low, high in pairwise(values)):
        raise wrong
    if len(values) > _LARGEST_BINS:
        raise QueryError.about("candidates", f"must be at most {_LARGEST_BINS:,}", len(values))
    return values


def _taken_label(label: Hashable, use: str) -> QueryError:
    reason = f"by names a column {label!r}, which is what {use} is called. Rename it in the frame."
    return QueryError(reason, parameter="by", label=label)


def is_scalar(q: object) -> bool:
    """Whether q is one quantile: a list of one makes a level that says which it is."""
    return not isinstance(q, Iterable)


def read_quantiles(quantiles: object) -> tuple[Fraction, ...]:
    """Read one quantile or several.

    Raises
    ------
    QueryError
        If they are not between 0 and 1, or do not increase.
    """
    # sets have no order, and a column of the frame is private
    if isinstance(quantiles, pd.Series | pd.DataFrame | set | frozenset | str | bytes | Mapping):
        raise _wrong(quantiles)
    listed = list(quantiles) if isinstance(quantiles, Iterable) else [quantiles]
    try:
        numbers = tuple(exact(as_number(number)) for number in listed)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(quantiles) from None
    inside = bool(numbers) and all(0 < number < 1 for number in numbers)
    if not inside or any(low >= high for low, high in pairwise(numbers)):
        raise _wrong(quantiles)
    return numbers


def _wrong(quantiles: object) -> QueryError:
    rule = "must be a number above 0 and below 1, or a list of such in increasing order"
    return QueryError.about("q", rule, quantiles, "0.5 is the median, [0.25, 0.75] are quartiles.")
