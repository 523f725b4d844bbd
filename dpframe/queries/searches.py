"""What is looked for so that queries can be asked: groups, caps and bounds, as frozen values."""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd

from dpframe.arguments import check_flag, is_one_of
from dpframe.errors import CalibrationError, QueryError, quote
from dpframe.frozen import frozen
from dpframe.options import By, Columns, Keys
from dpframe.privacy.amounts import AMOUNTS, Amount, Spend, as_number, below, exact, read_amount
from dpframe.privacy.neighbors import NO_CAPS, Caps
from dpframe.public import public_call
from dpframe.queries.groups import check_column
from dpframe.queries.of_columns import count, mean, sum, units
from dpframe.queries.query import OutputSpec, Query, Search
from dpframe.queries.reading import check_number, check_query, check_whole
from dpframe.queries.tasks import Cells, KeyAxis, LabelAxis, LabelKind, Sized, SizeKind, Sizes
from dpframe.queries.where import Condition

_MOST_EXPONENT = 100  # of two: squares of bounds stay floats
_MOST_BINS = 128  # bins that a search counts in

Ends = np.ndarray
"""Finite ends of bins, increasing; they are the candidates for bounds."""


def power_ends(smallest: object, largest: object) -> Ends:
    """Return zero, and powers of two from a smallest to a largest size, of both signs.

    Raises
    ------
    QueryError
        If the sizes are not usable.

    Examples
    --------
    >>> power_ends(1, 6).tolist()
    [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0]
    """
    least, most = _size("smallest", smallest), _size("largest", largest)
    first, last = math.floor(math.log2(least)), math.ceil(math.log2(most))
    if first > last:
        rule = f"must be no larger than largest={quote(largest)}"
        raise QueryError.about("smallest", rule, smallest)
    sizes = np.ldexp(1.0, np.arange(first, last + 1))
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def linear_ends(within: object, bins: object) -> Ends:
    """Return the ends of bins of equal widths.

    Raises
    ------
    QueryError
        If the ends or the number of bins are not usable.

    Examples
    --------
    >>> linear_ends((0, 8), 4).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    number = check_whole("bins", bins, _MOST_BINS)
    try:
        low, high = (float(as_number(end)) for end in within)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not (-math.inf < low < high < math.inf) or max(-low, high) > 2.0**_MOST_EXPONENT:
        rule = "must be two numbers of at most 2**100 in size, the first below the second"
        raise QueryError.about("within", rule, within)
    return np.linspace(low, high, number + 1)


def _size(name: str, value: object) -> float:
    least, most = 2.0**-_MOST_EXPONENT, 2.0**_MOST_EXPONENT
    rule = "must be a number from 2**-100 to 2**100"
    return check_number(name, value, rule, least=least, most=most)


LARGEST = 2**20
"""The largest cap that is looked at, unless a call names another."""

MOST_LARGEST = 2**40
"""The largest cap that may be named."""


@frozen(eq=False)
class UnitSizes(Query):
    """The number of units by how much of the groups of a query they fill.

    Parameters
    ----------
    kind
        What is counted of a unit.
    most
        The cells: the largest number in each, increasing. The last one also holds all above.
    others
        The caps beside the one looked for, of which rows that they drop do not count.
    """

    kind: Sized = field(kw_only=True)
    most: pd.Index = field(kw_only=True)
    others: Caps = field(default=NO_CAPS, kw_only=True)

    def sizes(self, groups: Cells) -> Sizes:
        """Return the cells that units fall in."""
        return Sizes(groups, self.kind, KeyAxis(self.most.name, self.most), self.others)

    @property
    def levels(self) -> set[Hashable]:
        """The levels of the index."""
        return {self.most.name}

    def caps(self, declared: Caps) -> Caps:
        """Return what of a unit counts: once, in one cell."""
        return Caps(groups=1, rows_per_group=1)


def sizes_of(query: Query, kind: Sized, most: pd.Index, others: Caps = NO_CAPS) -> UnitSizes:
    """Ask how much of the groups of a query each unit fills, of the rows that it would look at.

    Examples
    --------
    >>> import dpframe as dpf
    >>> sizes_of(dpf.count(by="zone", where="fare > 0"), "rows", candidate_caps("rows", 8)).words
    'units by the max_rows that they need by zone where fare > 0'
    """
    beside = others.words[2:]
    if kind == "dropped":
        subject = f"units by the rows that {beside} drop"
    else:
        subject = f"units by the {most.name} that they need{beside and f' beside {beside}'}"
    return UnitSizes(
        query.by,
        query.condition,
        query.keys,
        outputs=(OutputSpec("units", "count"),),
        subject="".join([subject, *(f", binned by {label}" for label in query.binned)]),
        bins=query.bins,
        cuts=query.cuts,
        other=query.other,
        kind=kind,
        most=most,
        others=others,
    )


def candidate_caps(kind: SizeKind, largest: object) -> pd.Index:
    """Return the caps to look at: 1, 2, 3, 4, 6, 8, 12, 16, and so on up to a largest one.

    Raises
    ------
    QueryError
        If the largest one is no whole number from 1 to 2**40.

    Examples
    --------
    >>> candidate_caps("rows", 20).tolist()
    [1, 2, 3, 4, 6, 8, 12, 16, 20]
    """
    end = check_whole("largest", largest, MOST_LARGEST, "It is the largest cap to look at.")
    return pd.Index([*_below(end), end], dtype="int64", name=f"max_{kind}")


def _below(end: int) -> Iterator[int]:
    """Yield powers of two, and numbers halfway to the next, up to an end."""
    power = 1
    while power < end:
        yield power
        if power > 1 and power + power // 2 < end:
            yield power + power // 2
        power *= 2


_PER_OCTAVE = 4  # numbers of dropped rows: one of a bin stands for all others within 1/11


def dropped_rows() -> pd.Index:
    """Return the numbers of dropped rows that units are counted by, up to the largest cap.

    Examples
    --------
    >>> dropped_rows()[:12].tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
    """
    powers = np.arange(_PER_OCTAVE * LARGEST.bit_length() - _PER_OCTAVE + 1)
    most = np.unique(np.ceil(2.0 ** (powers / _PER_OCTAVE)).astype(np.int64))
    return pd.Index(most, name="dropped")


OfValues = Literal["sum", "mean"]

_CAPS: dict[str, SizeKind] = {f"max_{kind}": kind for kind in get_args(SizeKind)}
_MAKERS: dict[str, Callable[..., Query]] = {"sum": sum, "mean": mean}
_SMALLEST, _LARGEST = 2.0**-10, 2.0**32  # sizes of bounds, unless the call says so
_BINS = 64  # between the two numbers of within=


@frozen(eq=False)
class CapSearch(Search):
    """Which cap a query is to have; see `suggest_caps`.

    Parameters
    ----------
    query
        The query that is to be released later.
    kind
        What the cap limits; `None`: what is limited already.
    largest
        The largest candidate, if the call says so.
    planned
        How much the later query is to spend, if the call says so.
    """

    query: Query
    kind: SizeKind | None
    largest: int | None
    planned: Spend | None

    @property
    def labels(self) -> Mapping[Hashable, str]:
        """Every column that is named."""
        return self.query.labels


@public_call
def suggest_caps(
    by: By = None, *, query: Query | None = None, cap: str | None = None,
    largest: int | None = None, planned: Mapping[str, Any] | None = None,
) -> CapSearch:  # fmt: skip
    """Describe a search for the cap with which a query errs least: how many rows units have.

    Every unit falls in exactly one bin, by the rows that other caps leave of it: adding or removing
    one moves one number by 1, replacing it two. So the histogram costs little, and needs no cap.
    For each candidate c, the mean absolute error of a group is predicted as ``E|L + Y| = L + s
    exp(-L / s)``: K L is what the cap cuts off; K is the number of groups; Y is the noise that the
    query needs with that cap, as Laplace noise with ``E|Y| = s``. L is uncertain: each of 300
    histograms that may be behind the noisy one gives an L.

    Release it on its own, by `release` or by the method of the same name. The release has one row
    per candidate. `units`, released with noise: how many units need this cap and not the one
    before; the last row also holds all that need more. Computed from it, as mean absolute errors of
    a group in the units of the output (in rows for several outputs): `lost`, the median of all L;
    `noise`; `error`; and `unseen`, how many units there are at most beyond the cap, each at 95 % by
    the exact law of the noise: no look sees how many rows they have. `error` is the geometric mean
    of the least errors of all histograms, times the average ratio of the cap's error to the least
    one. Where there are other caps, half of what is spent is for a second histogram, of units by
    the rows that these drop: `dropped` is what the mean group lacks by that, and part of `error`.
    `.dp.best` is the cap with the least `error`, or says that there are too few people to tell:
    fewer than 30 times the mean size of the noise in a row, and 1.64 standard errors of their
    number. `plan` shows `std_error` of the number of units, and `noise`.

    Parameters
    ----------
    by
        Groups of a count, short for `query=dpf.count(by=by)`.
    query
        The query to be released later: a count, sums, a histogram, units, or an aggregate of counts
        and sums. Rows that its condition or its groups leave out do not count.
    cap
        "max_rows", "max_groups" or "max_rows_per_group". By default the only one that is declared
        or in the query, and else "max_rows"; "max_groups" for units. Other caps stay as they are.
    largest
        The largest candidate: 2**20 by default, and no more than other caps and the number of
        groups leave.
    planned
        How much the later query is to spend: `{"epsilon": 0.9, "delta": 1e-6}`, say.
        By default nine times what is spent here (with the same delta), or what is left of shares.

    Raises
    ------
    CalibrationError, QueryError
        If an argument is not usable.

    Notes
    -----
    Tails are taken to go on as before, and to end some time; draws are the same for the same noisy
    numbers. In a bin, a size x is taken to be as frequent as 1 / x. All groups are taken to lose
    the same. A lost row of a sum counts with the mean of `|x|` over the bounds. For
    "max_groups", units are counted by their number of groups; a lost
    group is taken to be `sqrt(c)` rows, with c the cap on rows in it, or 1. For
    "max_rows_per_group", they are counted by the rows in their fullest group; L is then a lower
    bound, since other groups are not seen. Of a unit in more groups than another cap allows, the
    mean of what it may keep counts. For `units`, no other caps are looked at.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> rides = pd.DataFrame({"rider": [r for r in range(3000) for _ in range(1 + r % 4)]})
    >>> _ = rides.dp.declare(privacy_unit="rider", max_rows=20)
    >>> found = rides.dp.suggest_caps(largest=64, epsilon=0.1)
    >>> found.dp.best, list(found.columns)
    ({'max_rows': 4}, ['units', 'lost', 'noise', 'error', 'unseen'])
    >>> shown = rides.dp.plan(dpf.suggest_caps(largest=3), epsilon=0.1).table
    >>> shown["noise"].round(2).to_dict()
    {1: 1.07, 2: 2.2, 3: 3.32}
    """
    if query is not None and by is not None:
        reason = "by= is short for query=dpf.count(by=by):"
        remedy = "give one of the two, and the groups of a query in the query."
        raise QueryError(f"{reason} {remedy}", parameter="by")
    later = count(by) if query is None else check_query(query)
    kind = None if cap is None else _kind(cap, later)
    if largest is not None:
        candidate_caps("rows", largest)
    return CapSearch(later.to_measure, kind, largest, _planned(planned))


def _kind(cap: object, query: Query) -> SizeKind:
    """Read which cap is looked for."""
    if not isinstance(cap, str) or cap not in _CAPS:
        raise QueryError.about("cap", f"must be one of {', '.join(map(repr, _CAPS))}", cap)
    if query.counts_units and cap != "max_groups":
        remedy = "They count once in a group however many rows they have there."
        raise QueryError.about("cap", 'must be "max_groups" for units', cap, remedy)
    return _CAPS[cap]


def _planned(amounts: object) -> Spend | None:
    """Read how much the later query is to spend."""
    if amounts is None:
        return None
    if not isinstance(amounts, Mapping) or not amounts.keys() <= {*AMOUNTS}:
        rule = f"must be a dict of amounts, of {', '.join(AMOUNTS)}"
        raise QueryError.about("planned", rule, amounts)
    return Spend.of(**amounts)


@frozen(eq=False)
class BoundSearch(Search):
    """Which bounds a column is to have in a query; see `suggest_bounds`.

    Parameters
    ----------
    column
        The column.
    query
        The query that is to be released later, without bounds.
    smallest, largest, within, bins
        The candidates.
    planned
        How much the later query is to spend, if the call says so.
    """

    column: Hashable
    query: Query
    smallest: float | None
    largest: float | None
    within: tuple[float, float] | None
    bins: int
    planned: Spend | None

    @property
    def labels(self) -> Mapping[Hashable, str]:
        """Every column that is named."""
        return {**self.query.labels, self.column: "column"}

    def ends(self, *, integer: bool) -> Ends:
        """Return the candidates for both bounds of a column, perhaps of integers."""
        if self.within is not None:
            return linear_ends(self.within, self.bins)
        smallest = 1.0 if integer else _SMALLEST
        return power_ends(
            smallest if self.smallest is None else self.smallest,
            _LARGEST if self.largest is None else self.largest,
        )


@public_call
def suggest_bounds(
    column: Hashable, by: By = None, *, where: str | None = None, keys: Keys = None,
    query: OfValues = "sum", smallest: float | None = None, largest: float | None = None,
    within: tuple[float, float] | None = None, bins: int | None = None,
    planned: Mapping[str, Any] | None = None,
) -> BoundSearch:  # fmt: skip
    """Describe a search for the bounds with which a sum or a mean errs least: how large values are.

    The values of a column are counted in public bins, as `histogram` does, under the declared caps.
    For each pair of ends of bins as bounds, the mean absolute error of a group is predicted as ``L
    + s exp(-L / s)``: L is what the bounds clip, read off the histogram; s is the mean size of the
    noise that the query needs with these bounds.

    Release it on its own, by `release` or by the method of the same name. The release has one row
    per bin. `count`, released with noise: the number of values in it. Computed from it: `as_low`
    and `as_high`, the predicted errors with the left end of the bin as the lower bound, and with
    its right end as the upper one, each beside the best other one; infinite if that is no bound.
    `.dp.best` is the pair with the least error, or says that too few rows are seen to tell, as for
    caps. `plan` shows `std_error` of the number of values, and `as_low` and `as_high` for the noise
    alone; for a mean, in a group of one row.

    Parameters
    ----------
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
        Two numbers, and how many bins of equal widths lie between them, 64 by default, in place of
        powers of two: to refine an earlier result. It is a release of its own.
    planned
        How much the later query is to spend, as in `suggest_caps`.

    Raises
    ------
    CalibrationError, QueryError
        If an argument is not usable.

    Notes
    -----
    Values that are missing or no numbers are in no bin. On each side of zero, bins that noise alone
    can explain count as empty. Between powers of two, a size x is taken to be as frequent as 1 / x;
    beyond the largest, to be 1.44 times that. All that is clipped counts as an error, though parts
    clipped above and below cancel; groups are taken to be clipped alike.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"fare": [3.5 + n % 41 for n in range(9000)]})
    >>> spend = {"epsilon": 0.05, "privacy_unit": dpf.EACH_ROW}
    >>> found = trips.dp.suggest_bounds("fare", **spend)
    >>> list(found.columns), list(found.dp.best)  # most often {"bounds": (0.0, 64.0)}
    (['count', 'as_low', 'as_high'], ['bounds'])
    >>> search = dpf.suggest_bounds("fare", smallest=1, largest=2)
    >>> trips.dp.plan(search, **spend).table["std_error"].round(2).tolist()
    [28.28, 28.28, 28.28, 28.28, 28.28, 28.28]
    """
    if not isinstance(query, str) or query not in _MAKERS:
        raise QueryError.about("query", 'must be "sum" or "mean"', query)
    check_column("column", column)
    if within is not None and not (smallest is largest is None):
        reason = "within= has bins of equal widths: leave out smallest= and largest=."
        raise QueryError(reason, parameter="smallest" if largest is None else "largest")
    if within is None and bins is not None:
        rule = "needs within=, the two numbers that bins lie between"
        raise QueryError.about("bins", rule, bins)
    later = _MAKERS[query]([column], by, where=where, keys=keys)
    number = _BINS if bins is None else bins
    search = BoundSearch(column, later, smallest, largest, within, number, _planned(planned))
    search.ends(integer=False)
    return search


Dtypes: TypeAlias = LabelKind | Mapping[Hashable, LabelKind]
"""What labels are, of all columns or by column."""

DiscoveryMechanism: TypeAlias = Literal["auto", "laplace", "gaussian"]
"""The noise that hides numbers of units."""

_MOST_LENGTH = 10_000  # characters of a label


@frozen(eq=False)
class Discovery(Search):
    """Labels to find, with the number of units on each.

    Parameters
    ----------
    axes
        The columns of the labels.
    where
        Which rows are looked at.
    max_groups
        For how many labels a unit counts, where the declared cap is not wanted.
    extra_delta
        The largest extra delta, where the call says so.
    counts
        Whether numbers of units are published, too.
    """

    axes: tuple[LabelAxis, ...]
    where: Condition | None
    max_groups: int | None
    extra_delta: Fraction | None
    counts: bool

    @property
    def by(self) -> tuple[Hashable, ...]:
        """The columns of the labels."""
        return tuple(axis.column for axis in self.axes)

    @property
    def labels(self) -> Mapping[Hashable, str]:
        """Every column that is named."""
        looked_at = () if self.where is None else self.where.columns
        return dict.fromkeys(looked_at, "where") | dict.fromkeys(self.by, "by")

    @property
    def words(self) -> str:
        """What is asked, in words."""
        condition = "" if self.where is None else f" where {self.where.text}"
        alone = "" if self.counts else " without counts"
        return f"discover {', '.join(map(str, self.by))}{alone}{condition}"

    def most(self, declared: Caps) -> int | None:
        """For how many labels a unit counts at most; `None` if no cap says so.

        It has no more labels than it may have rows.
        """
        groups = declared.groups if self.max_groups is None else self.max_groups
        return groups if groups is None else min(groups, declared.rows or groups)


@public_call
def discover(
    by: Columns, *, dtype: Dtypes = "string", max_length: int = 256, where: str | None = None,
    max_groups: int | None = None, discovery: Amount | None = None, counts: bool = True,
) -> Discovery:  # fmt: skip
    """Describe a search for the groups that may be published, where they are not known beforehand.

    Units are counted by label, each for at most k of its labels, chosen at random. Noise Y is
    added: whole numbers, or of Gaussian noise, multiples of 1/125. A label with n units is
    published, with `n + Y` rounded, if `n + Y >= T`. T is the smallest such number with
    `P(1 + Y < T)^k >= 1 - d`, d the extra delta: with that probability, all labels that one unit
    alone has stay hidden. Labels that are not found may be in the data.

    With `counts=False` the labels alone are published, and more of them are found: a label that a
    unit keeps with `m - 1` others has the weight `1 / m^(1/p)`, with p = 2 for Gaussian and 1 for
    Laplace noise, in three rounds that have 1/20, 3/20 and 16/20 of `mu^2` or epsilon and of d.
    Labels found in a round are left out of the next one. T is then the smallest number for which
    every unit's own labels, whatever m is, stay hidden with the probability of the round.

    Release it on its own, by `release` or by the method of the same name. The release has one row
    per label found, sorted; `units` holds the noisy numbers of units. Give its index as `keys=`. A
    delta in the call is for noise and threshold together. The mechanism is "laplace", "gaussian",
    or "auto": the one with the least T, then the least noise, that the budget allows; without
    counts, the one that finds the smallest groups of units with k labels in the last round.

    `plan` has one row per mechanism, the one to be used first: `threshold`; `sigma`, the scale
    of the noise, and `std_error`; `found_5`, `found_50` and `found_95`, the smallest numbers of
    units with which a label is found with a probability of 5, 50 and 95 %; the cost as `mu`,
    `epsilon`, `delta` and `extra_delta`; `fits`. Without counts, noise and thresholds are those of
    the last round, for units with one label; `found_5_full` to `found_95_full` are for units that
    keep k labels.

    Parameters
    ----------
    by
        Column or list of columns with the labels; for several, a label is one of each.
    dtype
        Kind of the labels: "string", "int64", "bool", "date" or "datetime" (without a time zone),
        or a dict by column. Other values are left out.
    max_length
        Longer texts are left out, and so are texts with NUL or that UTF-8 cannot hold.
    where
        Which rows are looked at, as in `count`.
    max_groups
        For how many labels a unit counts, k, in place of the declared cap. One of them is needed
        with a declared privacy unit. A unit has no more labels than its `max_rows`, either.
    discovery
        Largest extra delta. By default all that is left of the budget's `discovery`; with delta in
        the call, the part of it that finds the smallest groups, or without a budget, all of it.
    counts
        Whether to publish the noisy numbers of units, too. Without them, the result is a frame of
        no columns, and k is at most 1,000.

    Raises
    ------
    CalibrationError, DeclarationError, QueryError
        If an argument is not usable.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilkins, Kifer, Zhang and Karrer 2024. Without
    counts: Swanberg, Desfontaines and Haney 2023.

    Examples
    --------
    >>> import dpframe as dpf
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"zone": ["A"] * 900 + ["B"] * 500 + ["C"]})
    >>> spend = {"epsilon": 1, "delta": 1e-6, "privacy_unit": dpf.EACH_ROW}
    >>> found = dpf.release(trips, dpf.discover("zone"), **spend)
    >>> list(found.index), list(found.columns)
    (['A', 'B'], ['units'])
    >>> shown = trips.dp.plan(dpf.discover("zone"), **spend).table
    >>> shown[["threshold", "found_5", "found_50", "found_95"]]
               threshold  found_5  found_50  found_95
    mechanism
    laplace           15       13        15        17
    gaussian      21.088       15        22        29
    """
    query = units(by, where=where)  # which has a column of that name, too
    labels = query.by
    if not labels:
        remedy = "Its labels are to be found."
        raise QueryError.about("by", "must name at least one column", by, remedy)
    length = check_whole("max_length", max_length, _MOST_LENGTH, "Longer texts are no labels.")
    kinds = dtype if isinstance(dtype, Mapping) else dict.fromkeys(labels, dtype)
    if set(kinds) != set(labels):
        rule = f"must be one of {_kinds()} for all columns, or a dict with each column of by"
        raise QueryError.about("dtype", rule, dtype)
    axes = tuple(LabelAxis(label, _label_kind(kinds[label]), length) for label in labels)
    groups = Caps(groups=max_groups).groups
    check_flag("counts", counts)
    return Discovery(axes, query.where, groups, _extra_delta(discovery), bool(counts))


def _extra_delta(delta: Amount | None) -> Fraction | None:
    """Read the largest extra delta."""
    if delta is None:
        return None
    number = read_amount("discovery", delta)
    if not 0 < number < 1:
        reason = "Labels that one unit alone has are published with a probability of at most that."
        remedy = f"{reason} Give a tenth of delta, for instance."
        raise CalibrationError.about("discovery", "must be > 0 and below 1", delta, remedy)
    return exact(below(exact(number)))


def _label_kind(kind: object) -> LabelKind:
    if is_one_of(kind, get_args(LabelKind)):
        return cast(LabelKind, kind)
    reason = "It is what labels are: values of other kinds are left out,"
    remedy = f"{reason} since the dtype of the frame may depend on private values."
    raise QueryError.about("dtype", f"must be one of {_kinds()}", kind, remedy)


def _kinds() -> str:
    return ", ".join(f'"{kind}"' for kind in get_args(LabelKind))
