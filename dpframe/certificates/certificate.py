"""The certificate of a released table: one release, or several, and what was done afterwards."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.certificates import json_records as records
from dpframe.certificates import mechanism_parts, parts, words
from dpframe.certificates.column_parts import ColumnPart, no_errors, no_numbers
from dpframe.certificates.definitions import denoised_of
from dpframe.certificates.json_records import Packed
from dpframe.certificates.parts import NO_ALIAS, TablePart, WitnessPart
from dpframe.errors import QueryError, quote
from dpframe.html import grid, pairs, section, title_html
from dpframe.privacy.neighbors import Neighboring

FORMAT: Final = 9  # of certificates: the only one that is read
TEST: Final = "TEST: made inside a testing block; not private, and not for publication"
UNSEALED: Final = ""
"""In place of a digest, until there is one."""

Library: TypeAlias = Annotated[str, records.Limits(pattern="^dpframe( \\S+)?$")]
_Rows: TypeAlias = np.ndarray | slice


class Release(records.Record):
    """What was promised about one release in a table.

    Parameters
    ----------
    library
        What made the release, with its version. Whether the algorithms are right is a question
        about this code.
    release_id
        Identifier of the release, the same in the ledger and in all tables released together.
    released_at
        When it was released, in UTC.
    testing
        Whether it was made inside a test, where noise is not secret. Outside of tests, such a table
        is refused.
    privacy_unit
        The unit of privacy: whose data the guarantee is about.
    neighboring
        The definition of neighbors: which two collections of data must look alike. add_remove: one
        has a unit more (unbounded); replace: a unit is exchanged for another (bounded), and the
        number of units is public.
    query
        What was asked.
    columns
        The released columns, in order; none where groups were found without numbers.
    mechanism
        The mechanism: where the noise comes from, or how values were selected.
    covariance
        How errors of several cells go together, in words.
    privacy_loss
        The privacy parameters: what the release costs, counted together with all tables released
        with it.
    manifest
        SHA-256 of what was public about the source of the rows: what read it, the types of its
        columns, who is protected, how text is read. Null: it is not known. The ledger has the same.
    witness
        The worst unit that was found for the charge, and what it costs: one for each measurement
        of the release, those of tables released with this one among them.
    ledger
        Composition: what was spent before and with this release. Null: no budget was declared, and
        nothing adds up several releases but the reader.
    rows
        Positions of its rows in the table; null: the table has no others.
    """

    library: Library
    release_id: records.Identifier
    released_at: Annotated[
        str,
        records.Limits(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\+00:00$"),
    ]
    testing: bool
    privacy_unit: parts.UnitPart
    neighboring: Neighboring
    query: parts.QueryPart
    columns: tuple[ColumnPart, ...]
    mechanism: Annotated[mechanism_parts.MechanismRecord, records.TaggedBy("kind")]
    covariance: str
    privacy_loss: parts.LossPart
    manifest: Annotated[str, records.Limits(pattern="^[0-9a-f]{64}$")] | None
    witness: records.Some[WitnessPart]
    ledger: parts.LedgerPart | None
    rows: Packed | None

    def __repr__(self) -> str:
        return object.__repr__(self)

    def __post_init__(self) -> None:
        mechanism = self.mechanism
        discovered = [grouping.source == "discovered" for grouping in self.query.by]
        kinds = mechanism_parts.kinds_of_groups(mechanism)
        records.require(sum(discovered) == len(kinds), "discovered groups have a dtype each")
        alike = all(discovered) or not any(discovered)
        records.require(alike, "all groups are discovered, or none is")
        quantiles = {not column.features for column in self.columns}
        selects = isinstance(mechanism, mechanism_parts.SelectionPart)
        records.require(not selects or quantiles <= {True}, "quantiles alone are selected")
        read = selects or isinstance(mechanism, mechanism_parts.TreePart)
        records.require(read or True not in quantiles, "quantiles are selected or read off")
        if self.rows is not None:
            records.places_of(self.rows)

    @property
    def noise(self) -> mechanism_parts.NoiseRecord:
        """Where the noise comes from.

        Raises
        ------
        QueryError
            If there is none: values were selected, or groups found without numbers.
        """
        match self.mechanism:
            case mechanism_parts.SelectionPart():
                raise no_errors()
            case mechanism_parts.SetPart():
                raise no_numbers()
            case noise:
                return noise

    @property
    def places(self) -> _Rows:
        """The positions of its rows."""
        return slice(None) if self.rows is None else records.places_of(self.rows)

    def with_rows(self, places: np.ndarray) -> "Release":
        """Return what is said about some of its rows."""

        def taken(packed: Packed) -> Packed:
            left_out = not packed.numbers.size  # by an earlier publication
            return packed if left_out else Packed.of(packed.numbers[places])

        return replace(self, columns=tuple(_change_rows(column, taken) for column in self.columns))

    def with_rows_of(self, table: np.ndarray) -> "Release":
        """Return what is said about its rows among some rows of the table."""
        if self.rows is None:
            return self.with_rows(table)
        places = records.places_of(self.rows)
        place_of_row = np.full(1 + max(places.max(initial=-1), table.max(initial=-1)), -1, np.intp)
        place_of_row[places] = np.arange(len(places))
        rows = np.flatnonzero(place_of_row[table] >= 0)
        return replace(self.with_rows(place_of_row[table[rows]]), rows=Packed.of(rows))

    @property
    def facts(self) -> list[tuple[str, list[str]]]:
        """The promise in words: lines by what they are about."""
        facts: list[tuple[str, list[str]]] = [
            ("TEST", [TEST] * self.testing),
            ("query", [self.query.words]),
            ("rows", words.rows_lines(self.query)),
            ("left out", [f"rows where {rule}" for rule in self.query.left_out]),
            ("privacy unit", words.unit_in_lines(self.privacy_unit)),
            ("neighbors", [self.neighboring]),
            ("mechanism", [words.about_mechanism(self.mechanism)]),
            ("found", words.mechanism_lines(self.mechanism)),
            ("privacy loss", words.loss_lines(self.privacy_loss, self.witness)),
            ("worst unit", words.witness_lines(self.witness)),
            ("ledger", words.ledger_lines(self.ledger)),
        ]
        return [(name, lines) for name, lines in facts if lines]

    def lines(self) -> list[str]:
        """Show the promise in words."""
        facts = [(name, ", ".join(lines)) for name, lines in self.facts]
        facts += [("column", words.about_column(column)) for column in self.columns]
        return [f"  {name:14}{line}" for name, line in facts]

    @property
    def title(self) -> str:
        """Which release it is."""
        return f"{self.release_id} ({self.library}, {self.released_at})"

    def html(self, *more: tuple[str, object]) -> list[str]:
        """Show the promise as tables, with more in the first."""
        released = ("released", [self.released_at, self.library, self.release_id])
        columns = grid(words.COLUMN_FACTS, map(words.column_facts, self.columns))
        rows: list[tuple[str, object]] = [*self.facts, released, *more]
        return [pairs(rows), columns]


class Certificate(records.Record):
    """What was promised about a released table, of one release or of several.

    It answers what NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees
    (2025), would have one ask about such a promise. Everything in it is public. Access to the data,
    their collection and their retention are outside of it. What several releases cost together is
    for their ledgers to say: each guarantee holds for its own rows.

    `query`, `columns`, `mechanism`, `privacy_loss`, `ledger`, `privacy_unit`, `neighboring`,
    `release_id` and `released_at` are those of `release`, the only one.

    Parameters
    ----------
    format
        Version of this form. A change of the meaning of a field raises it.
    releases
        The releases in the table, in order; most have one. All have the same kinds of columns.
    table
        The released cells by their keys, and what was computed from them, without the data.
    digest
        Checksum over the rest, to find mistakes. It is not a signature.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> certificate = released.dp.certificate
    >>> certificate.privacy_loss.epsilon, certificate.mechanism.title, certificate.state
    (0.5, 'Laplace', 'released')
    """

    format: Literal[9]
    releases: records.Some[Release]
    table: TablePart
    digest: records.Digest

    def __post_init__(self) -> None:
        widths = {len(release.columns) for release in self.releases}
        records.require(len(widths) == 1, "all releases have the same columns")
        for release in self.releases:
            alone = isinstance(release.mechanism, mechanism_parts.SetPart)
            records.require(alone != bool(release.columns), "all have columns but sets of groups")
        if len(self.releases) == 1:
            records.require(self.releases[0].rows is None, "one release has all rows")
            return
        packed = [release.rows for release in self.releases if release.rows is not None]
        records.require(len(packed) == len(self.releases), "each of several releases has its rows")
        rows = np.sort(np.concatenate([records.places_of(places) for places in packed]))
        records.require(bool((rows == np.arange(len(rows))).all()), "each row is of one release")

    @property
    def release(self) -> Release:
        """The only release in the table.

        Raises
        ------
        QueryError
            If there are several.
        """
        if len(self.releases) > 1:
            several = f"this table has {len(self.releases)} releases, each with its own promise"
            raise QueryError(f"{several}: look at those in certificate.releases.")
        return self.releases[0]

    @property
    def query(self) -> parts.QueryPart:
        """What was asked of the only release."""
        return self.release.query

    @property
    def columns(self) -> tuple[ColumnPart, ...]:
        """The columns of the only release."""
        return self.release.columns

    @property
    def mechanism(self) -> mechanism_parts.MechanismRecord:
        """The mechanism of the only release."""
        return self.release.mechanism

    @property
    def privacy_loss(self) -> parts.LossPart:
        """What the only release costs."""
        return self.release.privacy_loss

    @property
    def ledger(self) -> parts.LedgerPart | None:
        """What the only release took of a budget."""
        return self.release.ledger

    @property
    def privacy_unit(self) -> parts.UnitPart:
        """Whose data the only release protects."""
        return self.release.privacy_unit

    @property
    def neighboring(self) -> Neighboring:
        """The relation of neighbors of the only release."""
        return self.release.neighboring

    @property
    def release_id(self) -> str:
        """The identifier of the only release."""
        return self.release.release_id

    @property
    def released_at(self) -> str:
        """When the only release was made."""
        return self.release.released_at

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        return dict(records.plain(self))

    @property
    def state(self) -> str:
        """What a verified frame is: "released", or "post-processed" by calls that are listed."""
        table = self.table
        changed = table.definitions or table.cuts or table.joined or table.published
        return "post-processed" if changed or table.alias != NO_ALIAS else "released"

    @property
    def denoising(self) -> pd.DataFrame:
        """What the denoised columns were made with: one row per column and method tried.

        `estimated_gain` is the part of the mean squared error of the noise that the method was
        expected to remove, `absolute_gain` that of the mean absolute error, missing where that is
        not estimated; of several methods `chosen`, "average" is what their average was expected to
        gain.
        """
        rows = [
            (part.into, name, gain, part.tried_absolute[name], name in {*part.members, part.method})
            for part in denoised_of(self.table.definitions)
            for name, gain in part.tried.items()
        ]
        gains = ["estimated_gain", "absolute_gain"]
        table = pd.DataFrame(rows, columns=["column", "method", *gains, "chosen"])
        return table.astype(dict.fromkeys(gains, float)).set_index(["column", "method"])

    def with_rows(self, places: np.ndarray) -> "Certificate":
        """Return the certificate of some rows, in the order of their places."""
        releases = tuple(release.with_rows_of(places) for release in self.releases)
        return replace(self, releases=releases)

    @property
    def width(self) -> int:
        """How many columns were released."""
        return len(self.releases[0].columns)

    @property
    def is_derived(self) -> bool:
        """Whether all cells were computed from those of a release, and none is a released one."""
        return self.width > 0 and not self.table.released

    def require_numbers(self) -> None:
        """Refuse groups that were found without numbers, where released numbers are needed.

        Raises
        ------
        QueryError
            If there are none.
        """
        if not self.width:
            raise no_numbers()
        if self.is_derived:
            rule = "this table was computed from a release, and shows no released number"
            raise QueryError(f"{rule}: intervals are beside its numbers. Call it on the release.")

    def with_columns(self, places: Sequence[int]) -> "Certificate":
        """Return the certificate of some released columns."""
        releases = [
            replace(release, columns=tuple(release.columns[place] for place in places))
            for release in self.releases
        ]
        return replace(self, releases=tuple(releases))

    def by_release(
        self, table: pd.DataFrame, compute: Callable[[pd.DataFrame, Release], pd.DataFrame]
    ) -> pd.DataFrame:
        """Compute a table of the rows of each release, and put them together again."""
        if len(self.releases) == 1:
            return compute(table, self.releases[0])
        tables = [compute(table.iloc[release.places], release) for release in self.releases]
        rows = np.concatenate([np.arange(len(table))[release.places] for release in self.releases])
        return pd.concat(tables).iloc[np.argsort(rows)].set_axis(table.index, axis=0)

    def __repr__(self) -> str:
        """Show the promise in words."""
        after = [f"  afterwards    {line}" for line in words.lines_afterwards(self.table)]
        after.append(f"  digest        {self.digest}")
        if len(self.releases) == 1:
            lines = [f"Certificate {self.release.title}", *self.release.lines(), *after]
        else:
            lines = [f"Table of {len(self.releases)} releases", *after]
            for release in self.releases:
                lines += ["", f"Release {release.title}", *release.lines()]
        return "\n".join(map(visible, lines))  # a label may come from a file

    def _repr_html_(self) -> str:
        """Show the promise as tables in a notebook."""
        seal = ("digest", [self.digest, "a claim until dpframe.verify has checked it"])
        lines = [[line] for line in words.lines_afterwards(self.table)]
        done = [grid(["done afterwards"], lines)] if lines else []
        if len(self.releases) == 1:
            return section(title_html("Privacy certificate"), *self.release.html(seal), *done)
        promises = (
            part
            for release in self.releases
            for part in (title_html(f"Release {release.title}"), *release.html())
        )
        return section(title_html("Table of several releases"), *done, pairs([seal]), *promises)


def check_alike(
    frame: pd.DataFrame, release: Release, model: pd.DataFrame, first: Release, parameter: str
) -> None:
    """Check that two releases have columns and levels of the same names and kinds.

    Parameters
    ----------
    frame, release
        A table, and what is said about it.
    model, first
        The other table.
    parameter
        The argument that an error is about.

    Raises
    ------
    QueryError
        If they have not.
    """
    here = list(frame.columns), list(frame.index.names)
    first_labels = list(model.columns), list(model.index.names)
    if here != first_labels:
        (columns, levels), (others, other_levels) = first_labels, here
        listed = f"{quote(columns)} by {levels!r}, and {quote(others)} by {other_levels!r}"
        way_out = "Use .dp.rename, or choose columns, before."
        rule = f"releases must have the same columns and levels: {listed}. {way_out}"
        raise QueryError(rule, parameter=parameter)
    measured = [list(map(_measured_as, part.columns)) for part in (first, release)]
    if measured[0] != measured[1]:
        kinds = " and ".join(quote([kind for kind, *_ in part]) for part in measured)
        rule = f"releases must have columns of the same kinds, and these are {kinds}"
        reason = "or count times from different bounds, or rows by different weights"
        raise QueryError(f"{rule}, {reason}.", parameter=parameter)


def _measured_as(column: ColumnPart) -> tuple[object, ...]:
    """Say of what kind the numbers of a column are."""
    times, weights = column.times, column.weights
    return column.kind, times and (times.origin, times.zone), weights and weights.column


def without_rows(release: Release) -> Release:
    """Leave out what is said row by row of columns that are no totals, and so of their values."""
    return replace(release, columns=tuple(map(_without_rows, release.columns)))


def _without_rows(column: ColumnPart) -> ColumnPart:
    if column.form.is_total:
        return column
    nothing = Packed.of(np.zeros(0))
    features = {
        name: replace(_change_rows(part, lambda _: nothing), total=nothing)
        for name, part in column.features.items()
    }
    return replace(column, features=features)


def without_all_rows(release: Release) -> Release:
    """Leave out all that is said row by row: of a table with other rows than were released."""
    nothing = Packed.of(np.zeros(0))
    columns = tuple(_change_rows(column, lambda _: nothing) for column in release.columns)
    return replace(release, columns=columns)


def has_rows(column: ColumnPart) -> bool:
    """Whether all that is said of a column row by row is there, and was not left out."""
    return all(part.numbers.size for part in _packed_in(column))


def _packed_in(part: Any) -> Iterator[Packed]:
    """Find all that a record says row by row."""
    match part:
        case Packed():
            yield part
        case Mapping():
            for inner in part.values():
                yield from _packed_in(inner)
        case records.Record():
            yield from _packed_in(vars(part))
        case _:  # a number or a text
            return


def _change_rows(part: Any, change: Callable[[Packed], Packed]) -> Any:
    """Change all that a record says row by row."""
    if isinstance(part, Packed):
        return change(part)
    if isinstance(part, Mapping):
        return {name: _change_rows(inner, change) for name, inner in part.items()}
    if isinstance(part, records.Record):
        return type(part)(**_change_rows(vars(part), change))
    return part
