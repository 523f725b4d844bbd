"""Whether a release is in a ledger.

A ledger is charged before noise is drawn, so it knows what a release is, and what it costs, but
not its numbers: these are covered by the digest of the certificate.
"""

from collections.abc import Mapping
from typing import Any

from dpframe.errors import CertificateError, DeclarationError
from dpframe.ledger.ledger import Entry, Ledger

__all__ = ["check_recorded"]


def check_recorded(record: Mapping[str, Any], ledger: Ledger) -> None:
    """Check that a ledger was charged for the release of a certificate.

    Raises
    ------
    CertificateError
        If the certificate names another ledger, its release is not in this one, or the entry says
        something else: another time, query, mechanism or cost.
    DeclarationError
        If it is no ledger.
    """
    if not isinstance(ledger, Ledger):
        raise DeclarationError(f"ledger must be a dpf.Ledger, got {type(ledger).__name__}.")
    named = record["ledger"]
    if named is None or named["id"] != ledger.ledger_id:
        charged = "no ledger" if named is None else f"ledger {named['id']}"
        raise CertificateError(
            f"this release was charged to {charged}, not to ledger {ledger.ledger_id}."
        )
    release_id = record["release_id"]
    entry = next((each for each in ledger.entries if each.release_id == release_id), None)
    if entry is None:
        raise CertificateError(
            f"ledger {ledger.ledger_id} was never charged for release {release_id}: it is an older "
            "copy, or the certificate was not given for this release."
        )
    differing = [name for name, (said, kept) in _claims(record, entry).items() if said != kept]
    if differing:
        raise CertificateError(
            f"ledger {ledger.ledger_id} has release {release_id} with another "
            f"{', '.join(differing)} than the certificate says."
        )


def _claims(record: Mapping[str, Any], entry: Entry) -> dict[str, tuple[object, object]]:
    """Pair what a certificate says with what was kept."""
    words, loss = record["query"]["words"], record["privacy_loss"]
    cost = "mu" if entry.loss.mu_squared else "epsilon"
    return {
        "time": (record["released_at"], entry.released_at),
        "query": (f"; {words}; " in f"; {entry.what}; ", True),  # one of those released together
        "mechanism": (record["mechanism"]["name"], entry.mechanism),
        "cost": (
            (loss["rho"], loss[cost]),
            (entry.loss.rho, entry.loss.mu if cost == "mu" else float(entry.loss.epsilon)),
        ),
    }
