"""What labels to look for that are not known beforehand, as a frozen value."""

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

from dpframe.arguments import check_flag, is_one_of
from dpframe.errors import CalibrationError, QueryError
from dpframe.frozen import frozen
from dpframe.options import Columns
from dpframe.privacy.amounts import Amount, below, exact, read_amount
from dpframe.privacy.neighbors import Caps
from dpframe.public import public_call
from dpframe.queries.of_columns import units
from dpframe.queries.query import Search
from dpframe.queries.reading import check_whole
from dpframe.queries.tasks import LabelAxis, LabelKind
from dpframe.queries.where import Condition

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
    axes = tuple(LabelAxis(label, _kind(kinds[label]), length) for label in labels)
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


def _kind(kind: object) -> LabelKind:
    if is_one_of(kind, get_args(LabelKind)):
        return cast(LabelKind, kind)
    reason = "It is what labels are: values of other kinds are left out,"
    remedy = f"{reason} since the dtype of the frame may depend on private values."
    raise QueryError.about("dtype", f"must be one of {_kinds()}", kind, remedy)


def _kinds() -> str:
    return ", ".join(f'"{kind}"' for kind in get_args(LabelKind))
