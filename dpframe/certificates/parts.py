"""The parts of a certificate about a release: whose data, what was asked, what it cost.

The docstrings say which question about a guarantee a field answers; they are the descriptions of
the JSON Schema. The questions are those of NIST SP 800-226 (Near, Darais, Lefkovitz and Howarth
2025).
"""

from typing import Annotated, Literal, TypeAlias

from dpframe.certificates import json_records as records

Delta: TypeAlias = Annotated[float, records.Limits(ge=0, lt=1)]


class CapsPart(records.Record):
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

    max_rows: records.AtLeastOne | None
    max_groups: records.AtLeastOne | None
    max_rows_per_group: records.AtLeastOne | None

    @property
    def single_row(self) -> bool:
        """Whether one unit has no more than one row."""
        return self.max_rows == 1 or self.max_groups == self.max_rows_per_group == 1


class UnitPart(records.Record):
    """The unit of privacy: whose data the guarantee is about.

    A guarantee for rows protects a person with many rows less.

    Parameters
    ----------
    columns
        Columns that name the unit a row belongs to; all rows of one value, or of one combination of
        values, are protected together, and who is in k of them is protected as k units. Empty: each
        row is a unit, and all caps are 1.
    caps
        How much one unit could fill: a limit on its rows, in all or in each group.
    """

    columns: tuple[str, ...]
    caps: CapsPart

    def __post_init__(self) -> None:
        caps = self.caps
        limited = caps.max_rows is not None or caps.max_rows_per_group is not None
        records.require(limited, "one of max_rows and max_rows_per_group is a number")
        alike = bool(self.columns) or set(vars(caps).values()) == {1}
        records.require(alike, "where each row is a unit, all caps are 1")


class GroupingPart(records.Record):
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
        Discovered: they were not known, and found under this guarantee. Found: so they were, under
        the guarantee of an earlier release, which is counted by itself.
    rest
        The group that also holds all rows with none of the other keys, missing ones too; null: such
        rows were left out.
    """

    column: str
    groups: records.AtLeastNone
    source: Annotated[str, records.OneOf(["call", "declared", "schema", "discovered", "found"])]
    rest: str | None

    def __post_init__(self) -> None:
        known = self.source != "discovered"
        records.require(self.groups > 0 or not known, "known groups are one or more")


class KnownRowsPart(records.Record):
    """Numbers of rows that were given.

    Parameters
    ----------
    rows
        One number for each row of the release.
    variance
        Variance of their error; 0: exact.
    """

    rows: float | records.Packed
    variance: records.NotNegative


class OptionsPart(records.Record):
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

    max_true: records.AtLeastOne | None
    n_weight: records.NotNegative
    objective: Literal["total", "worst"]
    n: KnownRowsPart | None


class QueryPart(records.Record):
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
    left_out
        Where some of these are left out, beside those beyond the caps, in words.
    options
        Options that shape its noise.
    """

    name: str | None
    words: records.Text
    by: tuple[GroupingPart, ...]
    cells: records.AtLeastNone
    outputs: records.AtLeastOne
    where: str | None
    left_out: tuple[str, ...]
    options: OptionsPart

    def __post_init__(self) -> None:
        found = any(grouping.source == "discovered" for grouping in self.by)
        records.require(self.cells > 0 or found, "known groups have one row or more")


class LossPart(records.Record):
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
        Strength as zero-concentrated differential privacy.
    extra_delta
        Probability with which a group of one unit alone may be published, where groups were
        discovered; mu and rho hold beside it, and delta includes it. 0 in other releases.
    joint
        Whether several tables share this loss, which then counts once for all of them.
    """

    mu: records.NotNegative
    epsilon: records.NotNegative | None
    delta: Delta | None
    rho: records.NotNegative
    extra_delta: Delta
    joint: bool

    def __post_init__(self) -> None:
        together = (self.epsilon is None) == (self.delta is None)
        records.require(together, "epsilon and delta are given together")


class BudgetPart(records.Record):
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

    epsilon: records.NotNegative
    delta: Delta
    discovery: Delta


class LedgerPart(records.Record):
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
    of_part
        The part of the data that has this budget, week='47' for instance, where each has one;
        `None`: all of it.
    """

    id: records.Identifier
    budget: BudgetPart
    part: records.NotNegative
    used: records.NotNegative
    of_part: str | None
