"""The only way to a release: check, plan, charge, measure, draw, certify.

Everything that can be known beforehand is checked before the ledger is charged; the ledger is
charged before any private total is computed; noise is drawn last. What is recorded of a charge, and
what an error after it may say, is here, too.
"""

import getpass
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import pandas as pd

from dpframe.arguments import check_note, check_release_name, visible
from dpframe.certificates.parts import LedgerPart
from dpframe.checker.check import check_charge
from dpframe.checker.witness import Witness
from dpframe.declaration.facts import Declaration
from dpframe.declaration.warnings import warn_of_release
from dpframe.engines import Engine, Frame
from dpframe.errors import STOPS, DeclarationError, LedgerError, QueryError, ReleaseError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry
from dpframe.ledger.runs import RunPausedError
from dpframe.ledger.status import describe
from dpframe.plan.record import AnyPlan, ledger_of
from dpframe.privacy import seam
from dpframe.queries.tasks import Axis
from dpframe.sources.manifest import Manifest

KindOfPlan = TypeVar("KindOfPlan", bound=AnyPlan)
Exact = TypeVar("Exact")
"""What an engine answers."""
Noisy = TypeVar("Noisy")
"""What is published of it."""


@dataclass(frozen=True, eq=False)
class Operation(ABC, Generic[KindOfPlan, Exact, Noisy]):
    """A release that was checked and planned, of any kind.

    Parameters
    ----------
    declaration
        What is public about the frame.
    engine
        What can read the frame.
    plan
        What is asked, how it is hidden, and what it costs.
    manifest
        What is known of the source; `None`: it was not looked at yet.
    """

    declaration: Declaration
    engine: Engine
    plan: KindOfPlan
    manifest: Manifest | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def axes(self) -> Mapping[Hashable, Sequence[Axis]]:
        """The groups of each query, by its name."""

    @abstractmethod
    def preview(self) -> pd.DataFrame:
        """Say what to expect of it."""

    @abstractmethod
    def witness(self) -> Witness:
        """Find the worst units, by code that knows nothing of the plan."""

    @abstractmethod
    def measure(self, frame: Frame) -> Exact:
        """Total exact integers of the private frame."""

    @abstractmethod
    def draw(self, exact: Exact) -> Noisy:
        """Draw noise, or select: what comes out may be published."""

    @abstractmethod
    def certifier(
        self, entry: Entry, witness: Witness
    ) -> Callable[[Noisy, LedgerPart | None], Any]:
        """Write all of the certificate that is known before there are values."""

    def denoised(self, method: str | None, graph: object) -> Self:
        """Denoise what is released, too; most kinds cannot."""
        if method is None and graph is None:
            return self
        rule = f"is for noise in tables of known groups, not for {self.plan.words!r:.80}"
        raise QueryError.about("denoise", rule, method, "Leave denoise= and graph= out.")


def make_release(frame: Frame, operation: Operation[Any, Any, Any], entry: Entry) -> Any:
    """Warn, charge the ledger, and then make the release; both are logged."""
    test = seam.current()
    declaration = operation.declaration
    ledger = declaration.ledger
    with seam.Hold(test):
        certify = operation.certifier(entry, check_charge(operation, entry.loss))
        warn_of_release(frame, declaration, operation.plan.spend)
        _check_files(frame, operation)
        if ledger is not None:
            ledger.charge(entry)

    def make() -> Any:
        # the only place where private integers meet noise
        with seam.Hold(test):  # whoever listens to the log may have opened a block
            exact = operation.measure(frame)
            if ledger is not None:
                ledger.note_noise(entry)  # until then, a run that ends can begin again
            noisy = operation.draw(exact) if test is None else test.draw(operation, exact, entry)
            return certify(noisy, ledger_of(ledger, entry))

    if ledger is not None:
        done = "begun again, charged before" if ledger.begins_again else "charged"
        _log(entry, lambda loss: (f"{done} {loss}", f"left: {ledger.last_status().left}"))
    made = after_charge(make)
    _log(entry, lambda loss: ("released", f"cost: {loss}"))
    return made


def _check_files(frame: Frame, operation: Operation[Any, Any, Any]) -> None:
    """Refuse files that are others than those that the release was planned for."""
    engine, planned = operation.engine, operation.manifest
    if planned is None or planned.files is None:
        return
    engine.check(frame, operation.plan.columns)
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
    operation: Operation[Any, Any, Any], name: str | None = None, note: str | None = None
) -> Entry:
    """Write what a ledger is charged with, under an identifier of its own."""
    plan, declaration, manifest = operation.plan, operation.declaration, operation.manifest
    ledger = declaration.ledger
    protected = None if ledger is None else ledger.protected
    made = Entry(
        seam.new_id(),
        seam.now().isoformat(timespec="seconds"),
        plan.words,
        plan.mechanism,
        plan.spend,
        plan.loss,
        name=name,
        note=note,
        user=user_name(),
        frame=declaration.name,
        unit=None if protected is None else protected.unit,
        columns=tuple(map(str, plan.columns)),
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
