"""The privacy certificate of a released frame: plain JSON in `attrs`, with a digest of the values.

A certificate in `attrs` is a claim, since pandas carries `attrs` through nearly every operation.
The digest over index, columns, values and the claim itself is what binds the two.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import Any

import pandas as pd

from dpframe.arguments import no_ledger
from dpframe.certificates.certificate import FORMAT, UNSEALED, Certificate, Release
from dpframe.certificates.changes import Change, changes
from dpframe.certificates.diagnosis import about_computed, mark_test
from dpframe.certificates.digest import content_of, digest, pieces_of
from dpframe.certificates.json_records import read, schema_of_record
from dpframe.certificates.steps import COMPUTED
from dpframe.certificates.witness_parts import recomputed_loss
from dpframe.checker.witness import cost_words
from dpframe.context import at_the_door
from dpframe.declaration.facts import kept_declaration
from dpframe.errors import STOPS, CertificateError, UnreadableCertificateError, a_type
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.provenance import is_marked, is_private
from dpframe.public import public_call


def check_recorded(release: Release, ledger: Ledger) -> None:
    """Check that a ledger was charged for a release.

    Raises
    ------
    CertificateError
        If its certificate names another ledger, it is not in this one, or the entry says
        something else: another time, query, mechanism or cost.
    DeclarationError
        If it is not a ledger.
    """
    if not isinstance(ledger, Ledger):
        raise no_ledger(ledger)
    named, ours = release.ledger, f"ledger {ledger.ledger_id}"
    if named is None or named.id != ledger.ledger_id:
        charged = "no ledger" if named is None else f"ledger {named.id}"
        raise CertificateError(f"this release was charged to {charged}, not to {ours}.")
    release_id = release.release_id
    entry = next((one for one in ledger.entries if one.release_id == release_id), None)
    if entry is None:
        older = "it is an older copy, or the certificate was not given for this release"
        raise CertificateError(f"{ours} was never charged for release {release_id}: {older}.")
    differing = [name for name, (said, kept) in _claims(release, entry).items() if said != kept]
    if differing:
        another = f"another {', '.join(differing)} than the certificate says"
        raise CertificateError(f"{ours} has release {release_id} with {another}.")


def check_cost(release: Release) -> None:
    """Recompute what the worst units cost, and compare it with what was promised.

    Raises
    ------
    CertificateError
        If they cost more.
    """
    lost, promised = recomputed_loss(release.witness), release.privacy_loss
    said = {
        "mu squared": (lost.mu_squared, Fraction(promised.mu) ** 2),
        "epsilon": (lost.epsilon, Fraction(promised.epsilon or 0)),
        "an extra delta": (lost.delta, Fraction(promised.extra_delta)),
    }
    for name, (cost, most) in said.items():
        if cost > most * _NEAR:
            units = f"the units that its certificate names cost {name} = {cost_words(cost)}"
            raise CertificateError(f"{units}, more than it promises: {cost_words(most)}.")


def _claims(release: Release, entry: Entry) -> dict[str, tuple[object, object]]:
    """Pair what a certificate says with what was kept."""
    words, loss = release.query.words, release.privacy_loss
    gaussian = entry.loss.mu_squared > 0
    said, kept = (loss.mu, entry.loss.mu) if gaussian else (loss.epsilon, entry.loss.epsilon)
    return {
        "time": (release.released_at, entry.released_at),
        "query": (f"; {words}; " in f"; {entry.what}; ", True),  # one of those released together
        "mechanism": (release.mechanism.name, entry.mechanism),
        "cost": (
            (loss.rho, said, loss.extra_delta),
            (entry.spend.rho_of(entry.loss), float(kept), float(entry.loss.delta)),
        ),
    }


ATTRIBUTE = "dpframe"
_NEAR = 1 + Fraction(1, 2**40)  # amounts of certificates are floats
_MOST_FORMATS, _MOST_SHOWN = 1000, 2
_PRIVATE = (
    "this frame carries no certificate: it is private, declared or made of a declared one. Release "
    "first, for instance .dp.count(by=..., epsilon=...), and call this on what that returns."
)
_DIAGNOSIS = (
    "this frame is a diagnosis, or was made of one: it holds exact numbers of a private frame and "
    "is not for publication. Release the query, and work on what that returns."
)
_LOST = (
    "this frame carries no certificate: it was not released by dpframe, or its attrs were lost on "
    "the way (CSV and JSON files lose them; joins lose them, where .dp.interval(join=True) "
    "keeps them). What dpf.write_csv wrote is read with dpf.read_csv."
)


@public_call
def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the certificates of this version.

    Each field says which question about a guarantee it answers; the questions are those of NIST SP
    800-226 (Near, Darais, Lefkovitz and Howarth 2025). What holds between fields, such as that
    rows of releases make up the table, is said in words; `verify` checks it.

    Returns
    -------
    dict
        A fresh copy, for any validator.

    Examples
    --------
    >>> schema = certificate_schema()
    >>> schema["$defs"]["Release"]["properties"]["neighboring"]["enum"]
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
    # pandas 2 keeps columns that were looked at, with the attrs that the frame had then
    sealed, record = _seal(frame.copy(deep=False), certificate, frame.index)
    frame.attrs[ATTRIBUTE] = record
    mark_test(frame, sealed)
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
    if isinstance(frame, pd.DataFrame) and frame.attrs.keys() == {ATTRIBUTE}:
        return read_certificate(frame.attrs[ATTRIBUTE])
    if not isinstance(frame, pd.DataFrame):
        path = isinstance(frame, str | PathLike)
        hint = " Read it with dpf.read_csv or pandas.read_parquet." if path else ""
        rule = "a certificate is for a whole released DataFrame"
        raise CertificateError(f"{rule}, got {a_type(frame)}.{hint}")
    if is_private(frame.attrs):
        raise CertificateError(_DIAGNOSIS)
    if ATTRIBUTE not in frame.attrs:
        without = _PRIVATE if kept_declaration(frame) or is_marked(frame.attrs) else _LOST
        raise CertificateError(about_computed(frame.attrs) or without)
    return read_certificate(frame.attrs[ATTRIBUTE])


def read_certificate(found: object) -> Certificate:
    """Read a certificate from plain JSON, which anybody may have written.

    Raises
    ------
    CertificateError
        If it was made inside a test, and this is none.
    UnreadableCertificateError
        If it is none, or has another format.
    """
    version = found.get("format") if isinstance(found, Mapping) else None
    known = type(version) is int and 0 < version < _MOST_FORMATS  # True is no version
    if known and version != FORMAT:
        ours = f"this certificate has format {version}, and this version reads {FORMAT}"
        raise UnreadableCertificateError(f"{ours}. Read it with the version that made it.")
    certificate = read(Certificate, found, "this certificate")
    refuse_test(certificate)
    return certificate


def refuse_test(certificate: Certificate) -> None:
    """Refuse what was made inside a testing block, but in such a block.

    Raises
    ------
    CertificateError
        If it was.
    """
    tested = any(release.testing for release in certificate.releases)
    if tested and not at_the_door(looking=True).is_test:
        why = "this table was made inside a testing block: it is neither private nor a release."
        raise CertificateError(f"{why} Look at it inside of the block, or release outside.")


@public_call
def verify(frame: pd.DataFrame, *, ledger: Ledger | None = None) -> Certificate:
    """Check that a frame is a release, or was made from one here; return its certificate.

    The digest is a SHA-256 over index, columns, their names, kinds and values, and the certificate
    itself; beside the certificate, `attrs` must be empty. "What the digest covers" in the reference
    lists it all. It finds mistakes, such as a filter, a rounding or a sum with raw data. It is not
    a signature: it does not show that somebody rewrote the digest as well. Steps of this library
    name the digest of the table before. If denoising is the only step, it is computed again;
    `dpframe.replay` repeats other steps. What the worst unit costs is computed anew, and compared
    with the privacy loss.

    Parameters
    ----------
    frame
        A released frame, or one made from it here; read back from a file or not.
    ledger
        Check also that this ledger was charged for the release: under the same id, at the same
        time, for the same query, mechanism and cost.

    Returns
    -------
    Certificate
        Its `state` is "released" or "post-processed". A table of several releases says of each
        what was promised.

    Raises
    ------
    CertificateError
        If the frame carries no certificate, frame or certificate were altered, or the release is
        not in the ledger.
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
        what = _alteration(frame, certificate)
        raise CertificateError(f"this frame is not what its certificate was given for: {what}")
    for release in certificate.releases:
        check_cost(release)
        if ledger is not None:
            check_recorded(release, ledger)
    return certificate


def _is_sound(frame: pd.DataFrame, certificate: Certificate) -> bool:
    """Whether a frame has the digest of its certificate, and denoising started from the release."""
    if frame.attrs.keys() != {ATTRIBUTE}:
        return False
    unsealed = replace(certificate, digest=UNSEALED).to_dict()
    if digest(frame, json.dumps(unsealed, sort_keys=True)) != certificate.digest:
        return False
    steps = certificate.steps
    if not steps or not {*map(type, steps)} <= COMPUTED:
        return True
    released = frame.iloc[:, : certificate.width]
    origin = _seal(released, replace(certificate, steps=()))[0].digest
    return {step.of for step in steps} == {origin}


def _alteration(frame: pd.DataFrame, certificate: Certificate) -> str:
    """Say what was changed, and which calls would have kept the certificate."""
    try:
        found = changes(frame, certificate.content)
        found += [Change(f"attrs hold {name!r}, too") for name in frame.attrs if name != ATTRIBUTE]
        found = found or [Change("the certificate itself was changed")]
    except (*STOPS, MemoryError):
        raise
    except BaseException:  # as above
        found = [Change("it holds other values")]
    shown, more = found[:_MOST_SHOWN], len(found) - _MOST_SHOWN
    calls = dict.fromkeys(change.call for change in shown if change.call)
    instead = dict.fromkeys(change.instead for change in shown if change.instead)
    ways = " and ".join(calls) or ("" if instead else "steps of .dp")
    kept = f"; its certificate is kept by {ways}" if ways else ""
    what = "; ".join([*(change.what for change in shown), *[f"and {more} more"] * (more > 0)])
    return f"{what}. Go back to the released frame{kept}. {' '.join(instead)}".rstrip()


def _seal(
    frame: pd.DataFrame, certificate: Certificate, keys: pd.Index | None = None
) -> tuple[Certificate, dict[str, Any]]:
    """Return a certificate with content and digest of a frame, and as JSON; see `pieces_of`."""
    pieces = pieces_of(frame, keys)
    filled = replace(certificate, content=content_of(frame, pieces), digest=UNSEALED)
    record = filled.to_dict()
    record["digest"] = digest(frame, json.dumps(record, sort_keys=True), pieces)
    return replace(filled, digest=record["digest"]), record
