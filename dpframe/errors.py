"""The exception tree.

Every error names a public parameter, its rule, the value given and the way out. No message ever
contains a value taken from a private frame.
"""

__all__ = [
    "AlreadyReleasedError",
    "BudgetExceededError",
    "CalibrationError",
    "CallError",
    "CertificateError",
    "DPFrameError",
    "DPFrameWarning",
    "DeclarationError",
    "LedgerAlteredError",
    "LedgerBusyError",
    "LedgerDiskError",
    "LedgerError",
    "NoSuchNameError",
    "PlanFileError",
    "QueryError",
    "ReleaseError",
    "TemporaryError",
    "UnknownColumnError",
    "UnreadableCertificateError",
]

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What stops a program and says nothing of a value; never contained."""


class DPFrameError(Exception):
    """Base of all errors raised by dpframe."""


class DPFrameWarning(UserWarning):
    """What is asked protects people less, or does less, than it seems to, by public facts."""


class CallError(DPFrameError, TypeError):
    """A call has an argument that the function or method does not have, or lacks one it needs."""


class NoSuchNameError(DPFrameError, AttributeError):
    """An accessor has nothing of this name."""


class DeclarationError(DPFrameError, ValueError):
    """What is declared about a frame is missing, contradictory or not usable."""


class QueryError(DPFrameError, ValueError):
    """A query, a condition or a set of keys or bins is not usable."""


class UnknownColumnError(QueryError, KeyError):
    """A column named in a query or a declaration is not in the frame."""

    def __str__(self) -> str:
        """Show the message as it is: `KeyError` would show its `repr`."""
        return str(self.args[0]) if self.args else ""


class CalibrationError(DPFrameError, ValueError):
    """A privacy parameter is out of range, or no noise of this mechanism can honor it."""


class BudgetExceededError(DPFrameError, ValueError):
    """A spend does not fit in what is left of the budget; nothing was drawn or charged."""


class ReleaseError(DPFrameError, RuntimeError):
    """A release failed after its amount was charged; nothing was released."""


class AlreadyReleasedError(DPFrameError, ValueError):
    """The ledger has a release of this name, or identifier, already; nothing was charged."""


class TemporaryError(DPFrameError):
    """What is needed cannot be used now; nothing was drawn or charged: it may be asked again."""


class LedgerError(DPFrameError, ValueError):
    """A ledger's file cannot be used, or is not as it was left; nothing was drawn."""


class LedgerAlteredError(LedgerError):
    """A ledger's file is damaged, or was changed by other means than a charge."""


class LedgerBusyError(LedgerError, TemporaryError):
    """Others have kept a ledger's file for long."""


class LedgerDiskError(LedgerError, TemporaryError):
    """The disk of a ledger has no room, or fails."""


class PlanFileError(DPFrameError, ValueError):
    """A plan file, or what it names, is not usable; nothing was drawn or charged."""


class CertificateError(DPFrameError, ValueError):
    """A frame carries no certificate, or its values no longer match the one it carries."""


class UnreadableCertificateError(CertificateError):
    """A certificate is malformed, or of a format that this version does not read."""
