"""The only way to a release: check, plan, charge, measure, draw, certify.

Everything that can be known beforehand is checked before the ledger is charged; the ledger is
charged before any private total is computed; noise is drawn last. What is recorded of a charge, and
what an error after it may say, is here, too.
"""

import getpass
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from dpframe.arguments import check_note, check_release_name, visible
from dpframe.certificates.parts import BudgetPart, LedgerPart
from dpframe.checker.check import check_charge
from dpframe.context import Context
from dpframe.declaration.warnings import warn_of_release
from dpframe.engines import Frame
from dpframe.errors import STOPS, DeclarationError, LedgerError, ReleaseError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.ledger.runs import RunPausedError
from dpframe.ledger.status import describe
from dpframe.operations.operation import Operation
from dpframe.sources.manifest import Manifest


def make_release(frame: Frame, operation: Operation, entry: Entry, context: Context) -> Any:
    """Warn, charge the ledger, and then make the release; both are logged."""
    declaration = operation.declaration
    ledger = declaration.ledger
    certify = operation.certifier(entry, check_charge(operation, entry.loss), context)
    warn_of_release(frame, declaration, operation.spend, context)
    if operation.manifest is not None and operation.manifest.files is not None:
        _check_files(frame, operation, operation.manifest)
    if ledger is not None:
        ledger.charge(entry)

    def make() -> Any:
        # the only place where private integers meet noise
        exact = operation.measure(frame, context)
        if ledger is not None:
            ledger.note_noise(entry)  # until then, a run that ends can begin again
        if context.block is None:
            noisy = operation.draw(exact, context)
        else:
            noisy = context.block.draw(operation, exact, entry)
        return certify(noisy, None if ledger is None else ledger_of(ledger, entry))

    if ledger is not None:
        done = "begun again, charged before" if ledger.begins_again else "charged"
        _log(entry, lambda loss: (f"{done} {loss}", f"left: {ledger.last_status().left}"))
    made = after_charge(make)
    _log(entry, lambda loss: ("released", f"cost: {loss}"))
    return made


def _check_files(frame: Frame, operation: Operation, planned: Manifest) -> None:
    """Refuse files that are others than those that the release was planned for."""
    engine = operation.engine
    engine.check(frame, operation.columns)
    if engine.manifest(frame).files != planned.files:
        why = "the files of this frame are others than when the release was planned:"
        raise DeclarationError(f"{why} nothing was charged. Ask again.", parameter="frame")


_LOGGER = logging.getLogger("dpframe")


def _log(entry: Entry, words: Callable[[str], tuple[str, str]]) -> None:
    """Log a sentence; whatever listens and fails, the release was charged and goes on."""
    try:
        if _LOGGER.isEnabledFor(logging.INFO):
            done, more = words(describe(entry.loss))
            name = "" if entry.name is None else f"{entry.name!r}, "
            sentence = visible(f"{done}: {name}{entry.what}; {entry.mechanism}; {more}")
            _LOGGER.info("%s", sentence, extra={"release_id": entry.release_id})
    except Exception:  # noqa: S110  # of a filter or a handler that is not ours
        pass


Made = TypeVar("Made")
"""What is made after a charge."""


def after_charge(measure: Callable[[], Made]) -> Made:
    """Do what follows the charge; an error shows nothing that could quote private values."""
    paused = ""
    try:
        return measure()
    except STOPS as stop:
        stop.__context__ = None  # the error that was being handled, if any
        raise stop from None
    except RunPausedError as pause:  # nothing was drawn: the run goes on, here or elsewhere
        paused = str(pause)
    except BaseException as error:
        reason = _reason(error)
    # outside of the handler, the new error has no context
    if paused:
        raise RunPausedError(paused) from None
    wrong = f"the release failed after its amount was charged, and nothing was released: {reason}."
    why = "The amount stays charged. The cause is not shown, because it may quote private values:"
    way = "read the frame by itself to see it, fix it, and release again."
    raise ReleaseError(f"{wrong} {why} {way}") from None


def _reason(error: BaseException) -> str:
    """Say in public words why a release failed."""
    kind = type(error)  # an error may lie about its class
    if kind is ReleaseError:
        return str(error)
    if issubclass(kind, MemoryError):
        return "there was too little memory"
    if issubclass(kind, LedgerError):
        return "the ledger could not be reached, to note that noise is drawn"
    if issubclass(kind, OSError):
        return "a file could not be read or written, or a disk is full"
    return "the frame could not be read"


def check_recorded(ledger: Ledger | None, name: str | None, note: str | None) -> None:
    """Check what is to be recorded with a release, and refuse a name that is taken."""
    if (check_release_name(name), check_note(note)) == (None, None):
        return
    if ledger is None:
        why = "name= and note= are kept in a ledger, and no budget is declared for this frame."
        way = "Declare one: .dp.declare(..., budget=dpf.Budget(epsilon=1, delta=1e-6))."
        raise DeclarationError(f"{why} {way}", parameter="note" if name is None else "name")
    ledger.check_name(name)  # before a plan that the spent budget may not allow


def entry_of(
    operation: Operation, context: Context, name: str | None = None, note: str | None = None
) -> Entry:
    """Write what a ledger is charged with, under an identifier of its own."""
    declaration, manifest = operation.declaration, operation.manifest
    ledger = declaration.ledger
    protected = None if ledger is None else ledger.protected
    made = Entry(
        context.new_id(),
        context.now().isoformat(timespec="seconds"),
        operation.words,
        operation.mechanism,
        operation.spend,
        operation.loss,
        name=name,
        note=note,
        user=user_name(),
        frame=declaration.name,
        unit=None if protected is None else protected.unit,
        columns=tuple(map(str, operation.columns)),
        part=declaration.part,
        plan=None if ledger is None else ledger.plan,
        source=None if manifest is None else manifest.source(declaration),
    )
    return made if ledger is None else ledger.as_charged(made)


def user_name() -> str | None:
    """Name who releases; a system that knows no name does not stop the release."""
    try:
        return visible(getpass.getuser())
    except Exception:  # which ones differs between systems and versions
        return None


def ledger_of(ledger: Ledger, entry: Entry) -> LedgerPart:
    """Say what a charge took of the budget, right after it."""
    # without a look at a file: nothing may fail between charge and release
    part, used = ledger.last_status().part_and_used(entry.loss)
    own = ledger.budget
    budget = BudgetPart(own.epsilon, own.delta, own.discovery)
    of_part = None if entry.part is None else f"{ledger.part}={entry.part!r}"
    return LedgerPart(ledger.ledger_id, budget, part, used, of_part)
