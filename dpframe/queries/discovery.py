"""What labels to look for that are not known beforehand, as a frozen value."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from dpframe.errors import QueryError, quote
from dpframe.privacy.neighbors import Caps
from dpframe.queries.counts import units
from dpframe.queries.query import Columns
from dpframe.queries.reading import check_whole
from dpframe.queries.tasks import LabelAxis, LabelKind
from dpframe.queries.where import Condition

Dtypes: TypeAlias = LabelKind | Mapping[Hashable, LabelKind]
"""What labels are, of all columns or by column."""

_MOST_LENGTH = 10_000


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels to find, with the number of units on each.

    Parameters
    ----------
    axes
        The columns of the labels.
    where
        Which rows are looked at.
    max_groups
        For how many labels a unit counts, where the declared cap is not wanted.
    """

    axes: tuple[LabelAxis, ...]
    where: Condition | None = None
    max_groups: int | None = None

    @property
    def by(self) -> tuple[Hashable, ...]:
        """The columns of the labels."""
        return tuple(axis.column for axis in self.axes)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """Every column that is named."""
        return self.by + (() if self.where is None else self.where.columns)

    @property
    def words(self) -> str:
        """What is asked, in words."""
        condition = "" if self.where is None else f" where {self.where.text}"
        return f"discover {', '.join(map(str, self.by))}{condition}"

    def most(self, declared: Caps) -> int | None:
        """For how many labels a unit counts at most; `None` if no cap says so.

        It has no more labels than it may have rows.
        """
        groups = declared.groups if self.max_groups is None else self.max_groups
        return groups if groups is None else min(groups, declared.rows or groups)


def labels_wanted(
    by: Columns, *, dtype: Dtypes, max_length: int, where: str | None, max_groups: int | None
) -> Labels:
    """Read what labels to look for; see `dpframe.discover`.

    Raises
    ------
    QueryError, DeclarationError
        If an argument is not usable.

    Examples
    --------
    >>> facts = {"dtype": "string", "max_length": 256, "where": "fare > 0", "max_groups": None}
    >>> labels_wanted(["zone", "day"], **facts).words
    'discover zone, day where fare > 0'
    """
    asked = units(by, where=where)
    if not asked.by:
        raise QueryError.about("by", "must name at least one column, whose labels are found", by)
    length = check_whole("max_length", max_length, _MOST_LENGTH, "Longer texts are no labels.")
    kinds = dtype if isinstance(dtype, Mapping) else dict.fromkeys(asked.by, dtype)
    if set(kinds) != set(asked.by):
        rule = f"must be one of {_kinds()}, or a dict with each column of by={quote([*asked.by])}"
        raise QueryError.about("dtype", rule, dtype)
    axes = tuple(LabelAxis(label, _kind(kinds[label]), length) for label in asked.by)
    return Labels(axes, asked.where, Caps(groups=max_groups).groups)


def _kind(given: Any) -> LabelKind:
    for kind in get_args(LabelKind):
        if isinstance(given, str) and given == kind:
            return kind  # type: ignore[no-any-return]
    why = "Values of other kinds are no labels: the dtype of a frame may depend on private values."
    raise QueryError.about("dtype", f"must be one of {_kinds()}", given, why)


def _kinds() -> str:
    return ", ".join(f'"{kind}"' for kind in get_args(LabelKind))
