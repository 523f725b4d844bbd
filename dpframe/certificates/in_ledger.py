"""Whether a release is in a ledger.

A ledger is charged before noise is drawn, so it knows what a release is, and what it costs, but
not its numbers: these are covered by the digest of the certificate.
"""

from typing import Protocol

from dpframe.arguments import no_ledger
from dpframe.certificates.noise_parts import MechanismPart
from dpframe.certificates.parts import LedgerPart, LossPart, QueryPart
from dpframe.errors import CertificateError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry


class _Claim(Protocol):
    """What a certificate says that is also in the ledger."""

    @property
    def release_id(self) -> str: ...
    @property
    def released_at(self) -> str: ...
    @property
    def query(self) -> QueryPart: ...
    @property
    def mechanism(self) -> MechanismPart: ...
    @property
    def privacy_loss(self) -> LossPart: ...
    @property
    def ledger(self) -> LedgerPart | None: ...


def check_recorded(certificate: _Claim, ledger: Ledger) -> None:
    """Check that a ledger was charged for the release of a certificate.

    Raises
    ------
    CertificateError
        If the certificate names another ledger, its release is not in this one, or the entry says
        something else: another time, query, mechanism or cost.
    DeclarationError
        If it is not a ledger.
    """
    if not isinstance(ledger, Ledger):
        raise no_ledger(ledger)
    named = certificate.ledger
    if named is None or named.id != ledger.ledger_id:
        charged = "no ledger" if named is None else f"ledger {named.id}"
        raise CertificateError(
            f"this release was charged to {charged}, not to ledger {ledger.ledger_id}."
        )
    release_id = certificate.release_id
    entry = next((one for one in ledger.entries if one.release_id == release_id), None)
    if entry is None:
        raise CertificateError(
            f"ledger {ledger.ledger_id} was never charged for release {release_id}: it is an older "
            "copy, or the certificate was not given for this release."
        )
    differing = [name for name, (said, kept) in _claims(certificate, entry).items() if said != kept]
    if differing:
        raise CertificateError(
            f"ledger {ledger.ledger_id} has release {release_id} with another "
            f"{', '.join(differing)} than the certificate says."
        )


def _claims(certificate: _Claim, entry: Entry) -> dict[str, tuple[object, object]]:
    """Pair what a certificate says with what was kept."""
    words, loss = certificate.query.words, certificate.privacy_loss
    gaussian = entry.loss.mu_squared > 0
    said, kept = (loss.mu, entry.loss.mu) if gaussian else (loss.epsilon, entry.loss.epsilon)
    return {
        "time": (certificate.released_at, entry.released_at),
        "query": (f"; {words}; " in f"; {entry.what}; ", True),  # one of those released together
        "mechanism": (certificate.mechanism.name, entry.mechanism),
        "cost": (
            (loss.rho, said, loss.extra_delta),
            (entry.loss.rho, float(kept), float(entry.loss.delta)),
        ),
    }
