"""The privacy certificate of a released frame: plain JSON in `attrs`, with a digest of the values.

A certificate in `attrs` is a claim, since pandas carries `attrs` through nearly every operation.
The digest over index, columns, values and the claim itself is what binds the two.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import pandas as pd

from dpframe.arguments import a_type, visible
from dpframe.calls import with_keywords
from dpframe.errors import STOPS, CertificateError, UnreadableCertificateError
from dpframe.html import pairs, section, titled
from dpframe.ledger.ledger import Ledger
from dpframe.privacy.neighbors import Neighboring
from dpframe.results import certificate_words as words
from dpframe.results.digest import digest
from dpframe.results.packed import BlockName
from dpframe.results.private import is_private
from dpframe.results.reading import (
    Digest,
    Identifier,
    Limits,
    Part,
    plain,
    read,
    require,
    schema_of_record,
)
from dpframe.results.record import DiscoveryPart, LedgerPart, LossPart, QueryPart, UnitPart
from dpframe.results.record_noise import ColumnPart, MechanismPart, StepPart, SuggestionPart
from dpframe.results.recorded import check_recorded

__all__ = [
    "ATTRIBUTE",
    "FORMAT",
    "UNSEALED",
    "Certificate",
    "attach",
    "certificate_of",
    "certificate_schema",
    "read_certificate",
    "verify",
]

ATTRIBUTE = "dpframe"
FORMAT: Final = 2
_MOST_FORMATS = 1000
UNSEALED = ""
"""In place of a digest, until there is one."""


@dataclass(frozen=True, repr=False)
class Certificate(Part):
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
    steps
        What this library computed from the release afterwards, without the data.
    digest
        Checksum over table and certificate, to find mistakes. It is not a signature.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> certificate = released.dp.certificate
    >>> certificate.privacy_loss.epsilon, certificate.mechanism.title, certificate.state
    (0.5, 'Laplace', 'released')
    """

    format: Literal[2]
    library: Annotated[str, Limits(pattern="^dpframe( \\S+)?$")]
    release_id: Identifier
    released_at: Annotated[
        str, Limits(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\+00:00$")
    ]
    privacy_unit: UnitPart
    neighboring: Neighboring
    query: QueryPart
    columns: Annotated[tuple[ColumnPart, ...], Limits(min_length=1)]
    mechanism: MechanismPart
    common_blocks: tuple[BlockName, ...]
    covariance: str
    privacy_loss: LossPart
    ledger: LedgerPart | None
    discovery: DiscoveryPart | None
    steps: tuple[StepPart | SuggestionPart, ...]
    digest: Digest

    def __post_init__(self) -> None:
        found = [grouping.source == "discovered" for grouping in self.query.by]
        kinds = () if self.discovery is None else self.discovery.dtypes
        require(sum(found) == len(kinds), "discovered groups have a dtype each")
        require(all(found) or not any(found), "all groups are discovered, or none is")

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        record: dict[str, Any] = plain(self)
        return record

    @property
    def state(self) -> str:
        """What a verified frame is: "released", or "post-processed" by steps that are listed."""
        return "post-processed" if self.steps else "released"

    def __repr__(self) -> str:
        """Show the promise in words."""
        unit = words.unit_in_lines(self.privacy_unit)
        lines = [
            f"Certificate {self.release_id} ({self.library}, {self.released_at})",
            f"  query         {self.query.words}",
            f"  privacy unit  {', '.join(unit)}",
            f"  neighbors     {self.neighboring}",
            f"  mechanism     {self.mechanism.title} noise on exact integers",
            f"  privacy loss  {words.about_loss(self.privacy_loss)}",
            *(f"  column        {words.about_column(column)}" for column in self.columns),
        ]
        if self.discovery is not None:
            lines.append(f"  groups        {words.about_discovery(self.discovery)}")
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
            ("mechanism", f"{self.mechanism.title} noise on exact integers"),
            ("privacy loss", words.loss_lines(self.privacy_loss)),
            ("ledger", words.ledger_lines(self.ledger)),
            *words.discovery_rows(self.discovery),
            ("released", [self.released_at, self.library, self.release_id]),
            ("digest", [self.digest, "a claim until dpframe.verify has checked it"]),
        ]
        steps = [words.steps_table(self.steps)] if self.steps else []
        columns = words.columns_table(self.columns)
        return section(titled("Privacy certificate"), pairs(rows), columns, *steps)


@with_keywords
def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the certificates of this version.

    Each field says which question about a guarantee it answers; the questions are those of NIST SP
    800-226 (Near, Darais, Lefkovitz and Howarth 2025). What holds between fields, such as that
    means have bounds, is said in words; `verify` checks it.

    Returns
    -------
    dict
        A fresh copy, for any validator.

    Examples
    --------
    >>> schema = certificate_schema()
    >>> schema["properties"]["neighboring"]["enum"]
    ['add_remove', 'replace']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dpframe:certificate:{FORMAT}",
        "title": "dpframe certificate",
        **schema_of_record(Certificate),
    }


def attach(frame: pd.DataFrame, certificate: Certificate) -> Certificate:
    """Put a certificate on a released frame, with the digest of both, and return it so sealed."""
    sealed = replace(certificate, digest=_digest(frame, certificate))
    frame.attrs[ATTRIBUTE] = sealed.to_dict()
    return sealed


def certificate_of(frame: pd.DataFrame) -> Certificate:
    """Return the certificate that a frame carries, without checking its digest.

    Raises
    ------
    CertificateError
        If it carries none.
    UnreadableCertificateError
        If it carries one that this version cannot read.
    """
    if not isinstance(frame, pd.DataFrame):
        raise CertificateError(
            f"a certificate is for a whole released DataFrame, got {a_type(frame)}."
        )
    if is_private(frame.attrs):
        raise CertificateError(
            "this frame is a diagnosis, or was made of one: it holds exact numbers of a private "
            "frame and is not for publication. Release the query, and work on what that returns."
        )
    if ATTRIBUTE not in frame.attrs:
        raise CertificateError(
            "this frame carries no certificate: it was not released by dpframe, or its attrs were "
            "lost on the way (CSV and JSON files lose them; Parquet, Feather and pickle keep them, "
            "and so do dpf.write_csv and dpf.read_csv)."
        )
    return read_certificate(frame.attrs[ATTRIBUTE])


def read_certificate(found: object) -> Certificate:
    """Read a certificate from plain JSON, which anybody may have written.

    Raises
    ------
    UnreadableCertificateError
        If it is none, or has another format.
    """
    version = found.get("format") if isinstance(found, Mapping) else None
    known = type(version) is int and 0 < version < _MOST_FORMATS  # True is no version
    if known and version != FORMAT:
        raise UnreadableCertificateError(
            f"this certificate has format {version}, and this version reads {FORMAT}. Read it with "
            "the version of dpframe that made it."
        )
    return read(Certificate, found, "this certificate")


@with_keywords
def verify(frame: pd.DataFrame, *, ledger: Ledger | None = None) -> Certificate:
    """Check that a frame is what was released or made from it here, and return its certificate.

    The digest is a SHA-256 over index, columns, their names, kinds and values, and the certificate
    itself; beside the certificate, `attrs` must be empty. The reference says in full what counts,
    under "What the digest covers". It shows a mistake, such as a filter, a
    rounding or a sum with raw data. It is not a signature, and does not show that somebody rewrote
    the digest as well. Steps taken by this library after the release, such as denoising, name the
    digest of the release; it is computed again from the columns that were released.

    Parameters
    ----------
    frame
        A released frame, or one that was made from it here; read back from a file or not.
    ledger
        Check also that this ledger was charged for the release: under the same id, at the same
        time, for the same query, mechanism and cost.

    Returns
    -------
    Certificate
        Its `state` is "released" or "post-processed".

    Raises
    ------
    CertificateError
        If the frame carries no certificate, or was altered: frame or certificate differ from what
        was released or post-processed; or if it is not in the ledger.
    UnreadableCertificateError
        If it carries one that this version cannot read.

    Examples
    --------
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> released = dpf.release(trips, dpf.count(by="zone", keys=["A", "B"]), epsilon=0.5)
    >>> verify(released).state
    'released'
    >>> verify(released + 1)
    Traceback (most recent call last):
    dpframe.errors.CertificateError: this frame is not what its certificate was given for: ...
    """
    certificate = certificate_of(frame)
    try:
        sound = _is_sound(frame, certificate)
    except (*STOPS, MemoryError):
        raise
    except BaseException:  # cells that were not released can raise anything when they are looked at
        sound = False
    if not sound:
        raise CertificateError(
            "this frame is not what its certificate was given for: its rows, columns, values or "
            "attrs, or the certificate, were changed after the release. Go back to the released "
            "frame; the certificate says nothing about this one."
        )
    if ledger is not None:
        check_recorded(certificate, ledger)
    return certificate


def _is_sound(frame: pd.DataFrame, certificate: Certificate) -> bool:
    """Whether a frame has the digest of its certificate, and its steps that of the release."""
    if frame.attrs.keys() != {ATTRIBUTE} or _digest(frame, certificate) != certificate.digest:
        return False
    if not certificate.steps:
        return True
    released = frame.iloc[:, : len(certificate.columns)]
    origin = _digest(released, replace(certificate, steps=()))
    return {step.of for step in certificate.steps} == {origin}


def _digest(frame: pd.DataFrame, certificate: Certificate) -> str:
    """Return the digest of a frame and its certificate, whatever digest that names."""
    promise = replace(certificate, digest=UNSEALED).to_dict()
    return digest(frame, json.dumps(promise, sort_keys=True))
