"""What a certificate claims, compared with a ledger, and with the cost of its worst units."""

from fractions import Fraction
from typing import Any

from dpframe.arguments import no_ledger
from dpframe.certificates.certificate import FORMAT, Certificate, Release
from dpframe.certificates.json_records import schema_of_record
from dpframe.certificates.parts import LossPart, recomputed_loss
from dpframe.checker.witness import cost_words
from dpframe.errors import CertificateError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.together import epsilon_of_loss, gaussian_price, mu_of_loss
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
    entry = next((kept for kept in ledger.entries if kept.release_id == release_id), None)
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
        "mu squared": (gaussian_price(lost), Fraction(promised.mu) ** 2),
        "an extra delta": (lost.delta, Fraction(promised.extra_delta)),
    }
    if promised.epsilon is not None:
        said["epsilon"] = (_least_epsilon(lost, promised), Fraction(promised.epsilon))
    for name, (cost, most) in said.items():
        if cost > most * _NEAR:
            units = f"the units that its certificate names cost {name} = {cost_words(cost)}"
            raise CertificateError(f"{units}, more than it promises: {cost_words(most)}.")


def _least_epsilon(lost: PrivacyLoss, promised: LossPart) -> Fraction:
    """Return the epsilon of what was lost, at the delta that is promised."""
    if not (lost.mu_squared and promised.delta) or lost.delta:
        return lost.epsilon
    return Fraction(epsilon_of_loss(promised.delta, lost))


def _claims(release: Release, entry: Entry) -> dict[str, tuple[object, object]]:
    """Pair what a certificate says with what was kept."""
    words, loss = release.query.words, release.privacy_loss
    gaussian = entry.loss.mu_squared > 0
    together = mu_of_loss(entry.loss)
    said, kept = (loss.mu, together) if gaussian else (loss.epsilon, entry.loss.epsilon)
    return {
        "time": (release.released_at, entry.released_at),
        "query": (f"; {words}; " in f"; {entry.what}; ", True),  # one of those released together
        "mechanism": (f", {release.mechanism.name}," in f", {entry.mechanism},", True),
        "cost": (
            (loss.rho, said, loss.extra_delta),
            (entry.spend.rho_of(entry.loss), float(kept), float(entry.loss.delta)),
        ),
    }


_NEAR = 1 + Fraction(1, 2**40)  # amounts of certificates are floats


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
