"""The parts of a certificate about the promise: whose data, what was asked, and what it cost.

The docstrings say which question about a guarantee a field answers; they are the descriptions of
the JSON Schema. The questions are those of NIST SP 800-226 (Near, Darais, Lefkovitz and Howarth
2025).
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from dpframe.certificates.json_records import (
    Identifier,
    Limits,
    NotNegative,
    OneOf,
    Record,
    require,
)
from dpframe.certificates.noise_parts import AtLeastNone, AtLeastOne, Packed, Text
from dpframe.queries.tasks import LabelKind

Delta: TypeAlias = Annotated[float, Limits(ge=0, lt=1)]


@dataclass(frozen=True)
class CapsPart(Record):
    """Bounded contribution: how much one unit could fill.

    Rows beyond were dropped at random, a bias that no error bar shows.

    Parameters
    ----------
    max_rows
        Most rows of one unit in all; null: no such limit.
    max_groups
        Most groups that one unit was in; null: no such limit.
    max_rows_per_group
        Most rows of one unit in one group; null: no such limit.
    """

    max_rows: AtLeastOne | None
    max_groups: AtLeastOne | None
    max_rows_per_group: AtLeastOne | None


@dataclass(frozen=True)
class UnitPart(Record):
    """The unit of privacy: whose data the guarantee is about.

    A guarantee for rows protects a person with many rows less.

    Parameters
    ----------
    column
        Column that names the unit a row belongs to; all rows of one value are protected together.
        Null: each row is a unit, and all caps are 1.
    caps
        How much one unit could fill: a limit on its rows, in all or in each group.
    """

    column: str | None
    caps: CapsPart

    def __post_init__(self) -> None:
        caps = self.caps
        limited = caps.max_rows is not None or caps.max_rows_per_group is not None
        require(limited, "one of max_rows and max_rows_per_group is a number")
        alike = self.column is not None or set(vars(caps).values()) == {1}
        require(alike, "where each row is a unit, all caps are 1")


@dataclass(frozen=True)
class GroupingPart(Record):
    """One grouping column.

    Parameters
    ----------
    column
        Label of the grouping column.
    groups
        How many groups of it are released.
    source
        Where the groups were written down: in the call, by keyword when the frame was declared, or
        in a schema. Unknown groups are a leak that SP 800-226 warns of: none of these is the data.
        Discovered: they were not known, and found under this guarantee.
    rest
        The group that also holds all rows with none of the other keys, missing ones too; null: such
        rows were left out.
    """

    column: str
    groups: AtLeastNone
    source: Annotated[str, OneOf(["call", "declared", "schema", "discovered"])]
    rest: str | None

    def __post_init__(self) -> None:
        require(self.groups > 0 or self.source == "discovered", "known groups are one or more")


@dataclass(frozen=True)
class KnownRowsPart(Record):
    """Numbers of rows that were given.

    Parameters
    ----------
    rows
        One number for each row of the release.
    variance
        Variance of their error; 0: exact.
    """

    rows: float | Packed
    variance: NotNegative


@dataclass(frozen=True)
class OptionsPart(Record):
    """Options of a query that shape its noise.

    Parameters
    ----------
    max_true
        Bounded contribution: at most so many true columns of a row count; null: no such limit.
    n_weight
        How much the error of the number of rows weighs in the choice of the noise.
    objective
        What the choice of the noise makes small: the total of all errors, or the worst of them.
    n
        Numbers of rows that were given as public, with the variance of their own error; null: none
        were. Whether they are public is for the data holder to know.
    """

    max_true: AtLeastOne | None
    n_weight: NotNegative
    objective: Literal["total", "worst"]
    n: KnownRowsPart | None


@dataclass(frozen=True)
class QueryPart(Record):
    """What was asked.

    SP 800-226 asks which question was answered, and which parts of it are public: everything here
    is.

    Parameters
    ----------
    name
        Name of the query among those released together; null if it was released alone.
    words
        The query in words.
    by
        The grouping columns, in the order of the levels of the index. Which groups there are:
        public, and never read from the data.
    cells
        Number of rows of the release. It does not depend on the data, but where groups were
        discovered: then it is a result as the counts are.
    outputs
        Number of columns of the release.
    where
        Which rows were looked at: a condition on each row alone.
    options
        Options that shape its noise.
    """

    name: str | None
    words: Text
    by: tuple[GroupingPart, ...]
    cells: AtLeastNone
    outputs: AtLeastOne
    where: str | None
    options: OptionsPart

    def __post_init__(self) -> None:
        found = any(grouping.source == "discovered" for grouping in self.by)
        require(self.cells > 0 or found, "known groups have one row or more")


@dataclass(frozen=True)
class DiscoveryPart(Record):
    """How groups were found that were not known beforehand.

    Units were counted by label, a unit for a few labels at most; labels with a noisy count at the
    threshold or above are published. Others may be in the data as well.

    Parameters
    ----------
    threshold
        The least noisy number of units that is published.
    max_labels
        For how many labels one unit counted at most.
    dtypes
        What the labels of each column are, in the order of the levels of the index. Values of other
        kinds are left out.
    max_length
        Texts with more characters are left out.
    """

    threshold: AtLeastOne
    max_labels: AtLeastOne
    dtypes: tuple[LabelKind, ...]
    max_length: AtLeastOne


@dataclass(frozen=True)
class SelectionPart(Record):
    """How quantiles were selected.

    The bin was taken with the largest sum of its utility and geometric noise (permute-and-flip).
    The utility is minus the number of rows between the bin and the quantile.

    Parameters
    ----------
    quantiles
        The quantiles, in the order of their rows.
    bins
        How many bins lie between the bounds, of equal width.
    rounds
        How many selections came one after the other, each for the same part of epsilon: later
        quantiles were selected on one side of earlier ones.
    scales
        Scale of the noise by quantile, in rows.
    """

    quantiles: Annotated[tuple[Annotated[float, Limits(gt=0, lt=1)], ...], Limits(min_length=1)]
    bins: AtLeastOne
    rounds: AtLeastOne
    scales: tuple[NotNegative, ...]

    def __post_init__(self) -> None:
        require(len(self.scales) == len(self.quantiles), "each quantile has a scale")


@dataclass(frozen=True)
class LossPart(Record):
    """The privacy parameters: what the release costs.

    It is counted together with all tables released with it.

    Parameters
    ----------
    mu
        Strength as Gaussian differential privacy: telling neighbors apart is no easier than telling
        a standard normal from one moved by mu.
    epsilon
        The epsilon of (epsilon, delta)-differential privacy at that delta; null where no delta was
        given.
    delta
        The delta at which epsilon holds; 0 is pure differential privacy; null where none was given:
        mu then gives an epsilon for every delta.
    rho
        Strength of Gaussian noise as zero-concentrated differential privacy.
    extra_delta
        Probability with which a group of one unit alone may be published, where groups were
        discovered; mu and rho hold beside it, and delta includes it. 0 in other releases.
    joint
        Whether several tables share this loss, which then counts once for all of them.
    """

    mu: NotNegative
    epsilon: NotNegative | None
    delta: Delta | None
    rho: NotNegative
    extra_delta: Delta
    joint: bool

    def __post_init__(self) -> None:
        together = (self.epsilon is None) == (self.delta is None)
        require(together, "epsilon and delta are given together")


@dataclass(frozen=True)
class BudgetPart(Record):
    """The total that was declared for everything charged to a ledger.

    Parameters
    ----------
    epsilon
        Epsilon of the total.
    delta
        Delta of the total.
    discovery
        The part of delta that is kept for extra deltas.
    """

    epsilon: NotNegative
    delta: Delta
    discovery: Delta


@dataclass(frozen=True)
class LedgerPart(Record):
    """A budget and what is spent of it.

    Parameters
    ----------
    id
        Identifier of the ledger; the guarantees of releases with the same one add up in it.
    budget
        The total that was declared.
    part
        Part of the budget that this release took.
    used
        Part of the budget that was used then, this release included.
    """

    id: Identifier
    budget: BudgetPart
    part: NotNegative
    used: NotNegative
