"""The certificate of a released table, and that of a table of several releases, as records."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpframe.arguments import visible
from dpframe.certificates import parts, words
from dpframe.certificates.changes import ContentPart
from dpframe.certificates.json_records import Digest, Identifier, Limits, Record, plain, require
from dpframe.certificates.noise_parts import BlockName, ColumnPart, MechanismPart, Packed, places_of
from dpframe.certificates.steps import DenoiseStep, StepPart, UnstackedPart
from dpframe.html import grid, pairs, section, title_html
from dpframe.privacy.neighbors import Neighboring

FORMAT: Final = 4
MOST_STEPS: Final = 1_000
UNSEALED: Final = ""
"""In place of a digest, until there is one."""

Library: TypeAlias = Annotated[str, Limits(pattern="^dpframe( \\S+)?$")]


@dataclass(frozen=True, repr=False)
class Certificate(Record):
    """What was promised about a released table.

    It answers what NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees
    (2025), would have one ask about such a promise. Everything in it is public. Access to the data,
    their collection and their retention are outside of it.

    Parameters
    ----------
    format
        Version of this form. A change of the meaning of a field raises it.
    library
        What made the release, with its version. Whether the algorithms are right is a question
        about this code.
    release_id
        Identifier of the release, the same in the ledger and in all tables released together.
    released_at
        When it was released, in UTC.
    privacy_unit
        The unit of privacy: whose data the guarantee is about.
    neighboring
        The definition of neighbors: which two collections of data must look alike. add_remove: one
        has a unit more (unbounded); replace: a unit is exchanged for another (bounded), and the
        number of units is public.
    query
        What was asked.
    columns
        The released columns, in order.
    mechanism
        The mechanism: where the noise comes from.
    common_blocks
        Measured blocks whose noise all rows share: utility of whatever is computed from several
        rows.
    covariance
        How errors of several cells go together, in words.
    privacy_loss
        The privacy parameters: what the release costs, counted together with all tables released
        with it.
    ledger
        Composition: what was spent before and with this release. Null: no budget was declared, and
        nothing adds up several releases but the reader.
    discovery
        How groups were found that were not known beforehand; null: all were.
    selection
        How quantiles were selected, to which no noise was added; null: numbers have noise.
    steps
        What this library did with the release afterwards, in order, without the data.
    unstacked
        Where the cells are, if the keys of a level became columns; null: in rows, as released.
    content
        What the frame holds, so that one can say what was changed.
    digest
        Checksum over table and certificate, to find mistakes. It is not a signature.

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

    format: Literal[4]
    library: Library
    release_id: Identifier
    released_at: Annotated[
        str, Limits(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\+00:00$")
    ]
    privacy_unit: parts.UnitPart
    neighboring: Neighboring
    query: parts.QueryPart
    columns: Annotated[tuple[ColumnPart, ...], Limits(min_length=1)]
    mechanism: MechanismPart
    common_blocks: tuple[BlockName, ...]
    covariance: str
    privacy_loss: parts.LossPart
    ledger: parts.LedgerPart | None
    discovery: parts.DiscoveryPart | None
    selection: parts.SelectionPart | None
    steps: Annotated[tuple[StepPart, ...], Limits(max_length=MOST_STEPS)]
    unstacked: UnstackedPart | None
    content: ContentPart
    digest: Digest

    def __post_init__(self) -> None:
        found = [grouping.source == "discovered" for grouping in self.query.by]
        kinds = () if self.discovery is None else self.discovery.dtypes
        require(sum(found) == len(kinds), "discovered groups have a dtype each")
        require(all(found) or not any(found), "all groups are discovered, or none is")
        alone = self.unstacked is None or len(self.columns) == 1
        require(alone, "cells of one column are unstacked")
        require(self.mechanism.selects == (self.selection is not None), "selecting is described")
        read = self.mechanism.selects or any(step.step == "quantile" for step in self.steps)
        selected = {column.kind == "quantile" for column in self.columns}
        require(selected == {read} or not self.digest, "quantiles alone are selected or read off")

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        return dict(plain(self))

    @property
    def state(self) -> str:
        """What a verified frame is, "released" or "post-processed" by steps that are listed."""
        return "post-processed" if self.steps else "released"

    @property
    def denoising(self) -> pd.DataFrame:
        """What the denoised columns were made with: one row per column and method tried.

        `estimated_gain` is the part of the mean squared error of the noise that the method was
        expected to remove, missing where that is not estimated; of several methods `chosen`,
        "average" is what their average was expected to gain.
        """
        rows = [
            (step.into, name, gain, name in {*step.members, step.method})
            for step in self.steps
            if isinstance(step, DenoiseStep)
            for name, gain in step.tried.items()
        ]
        table = pd.DataFrame(rows, columns=["column", "method", "estimated_gain", "chosen"])
        return table.astype({"estimated_gain": float}).set_index(["column", "method"])

    def __repr__(self) -> str:
        """Show the promise in words."""
        unit = words.unit_in_lines(self.privacy_unit)
        found = [*words.discovery_rows(self.discovery), *words.selection_rows(self.selection)]
        lines = [
            f"Certificate {self.release_id} ({self.library}, {self.released_at})",
            f"  query         {self.query.words}",
            f"  privacy unit  {', '.join(unit)}",
            f"  neighbors     {self.neighboring}",
            f"  mechanism     {words.about_mechanism(self.mechanism)}",
            f"  privacy loss  {words.about_loss(self.privacy_loss)}",
            *(f"  column        {words.about_column(column)}" for column in self.columns),
            *(f"  {name:14}{said}" for name, said in found),
        ]
        if self.ledger is not None:
            lines.append(f"  ledger        {words.about_ledger(self.ledger)}")
        lines += [f"  afterwards    {words.about_step(step)}" for step in self.steps]
        lines.append(f"  digest        {self.digest}")
        return "\n".join(map(visible, lines))  # a label may come from a file

    def _repr_html_(self) -> str:
        """Show the promise as tables in a notebook."""
        rows = [
            ("query", self.query.words),
            ("privacy unit", words.unit_in_lines(self.privacy_unit)),
            ("neighbors", self.neighboring),
            ("mechanism", words.about_mechanism(self.mechanism)),
            ("privacy loss", words.loss_lines(self.privacy_loss)),
            ("ledger", words.ledger_lines(self.ledger)),
            *words.discovery_rows(self.discovery),
            *words.selection_rows(self.selection),
            ("released", [self.released_at, self.library, self.release_id]),
            ("digest", [self.digest, "a claim until dpframe.verify has checked it"]),
        ]
        tables = [words.columns_table(self.columns), *words.steps_tables(self.steps)]
        return section(title_html("Privacy certificate"), pairs(rows), *tables)


@dataclass(frozen=True)
class JoinedPart(Record):
    """One of several releases in a table.

    Parameters
    ----------
    certificate
        What was promised about it; its digest is that of the release, or of the table made from it.
    rows
        Positions of its rows.
    """

    certificate: Certificate
    rows: Packed

    @property
    def places(self) -> np.ndarray:
        """The positions of its rows, as numbers."""
        return places_of(self.rows)

    def __post_init__(self) -> None:
        places_of(self.rows)


@dataclass(frozen=True, repr=False)
class Concatenation(Record):
    """What was promised about a table of several releases: a certificate for each of them.

    What they cost together is for their ledgers to say: each guarantee holds for its own part.

    Parameters
    ----------
    format
        Version of this form. A change of the meaning of a field raises it.
    library
        What put the releases together, with its version.
    parts
        The releases, in order.
    steps
        What this library did with the table, the concatenation first, without the data.
    unstacked
        Where the cells are, if the keys of a level became columns; null: in rows.
    content
        What the frame holds, so that one can say what was changed.
    digest
        Checksum over table and certificates, to find mistakes. It is not a signature.
    """

    format: Literal[4]
    library: Library
    parts: Annotated[tuple[JoinedPart, ...], Limits(min_length=1)]
    steps: Annotated[tuple[StepPart, ...], Limits(min_length=1, max_length=MOST_STEPS)]
    unstacked: UnstackedPart | None
    content: ContentPart
    digest: Digest

    def __post_init__(self) -> None:
        widths = {len(part.certificate.columns) for part in self.parts}
        require(len(widths) == 1, "all parts have the same columns")
        rows = np.sort(np.concatenate([part.places for part in self.parts]))
        require(bool((rows == np.arange(len(rows))).all()), "each row is of one part")
        require(self.unstacked is None or widths == {1}, "cells of one column are unstacked")

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        return dict(plain(self))

    @property
    def state(self) -> str:
        """What a verified frame is, "post-processed"."""
        return "post-processed"

    def __repr__(self) -> str:
        """Show the promises in words."""
        lines = [
            f"Table of {len(self.parts)} releases ({self.library})",
            *(f"  afterwards    {words.about_step(step)}" for step in self.steps),
            f"  digest        {self.digest}",
        ]
        own = "\n".join(map(visible, lines))
        return "\n\n".join([own, *(repr(part.certificate) for part in self.parts)])

    def _repr_html_(self) -> str:
        """Show the promises as tables in a notebook."""
        rows = [
            ("releases", [part.certificate.release_id for part in self.parts]),
            ("put together by", self.library),
            ("digest", [self.digest, "a claim until dpframe.verify has checked it"]),
        ]
        steps = grid(["done"], [[words.about_step(step)] for step in self.steps])
        each = [part.certificate._repr_html_() for part in self.parts]
        return section(title_html("Table of several releases"), pairs(rows), steps, *each)


Certified: TypeAlias = Certificate | Concatenation
"""What a frame that was released, or made of releases, carries."""


def first_of(certificate: Certified) -> Certificate:
    """Return the certificate of a release, the first of several: all have the same columns."""
    return parts_of(certificate)[0]


def parts_of(certificate: Certified) -> list[Certificate]:
    """Return the certificates of the releases of a table, one or several."""
    if isinstance(certificate, Certificate):
        return [certificate]
    return [part.certificate for part in certificate.parts]
