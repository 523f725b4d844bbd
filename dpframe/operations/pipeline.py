"""The only way to a release: check, plan, charge, measure, draw, certify.

Everything that can be known beforehand is checked before the ledger is charged; the ledger is
charged before any private total is computed; noise is drawn last. What is recorded of a charge, and
what an error after it may say, is here, too.
"""

import getpass
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self, TypeAlias, TypeVar

import pandas as pd

from dpframe.arguments import check_note, check_release_name, visible
from dpframe.certificates.parts import (
    BudgetPart,
    CapsPart,
    LedgerPart,
    LossPart,
    UnitPart,
    witness_parts,
)
from dpframe.checker.check import check_charge
from dpframe.checker.witness import Witness
from dpframe.context import Context, cached_property
from dpframe.declaration.facts import Declaration, warn_of_release
from dpframe.engines import Engine, Frame
from dpframe.errors import (
    STOPS,
    CalibrationError,
    DeclarationError,
    LedgerError,
    QueryError,
    ReleaseError,
)
from dpframe.frozen import frozen
from dpframe.ledger.leases import RunPausedError
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.log import Entry, SourceFacts
from dpframe.ledger.status import describe
from dpframe.privacy.amounts import PrivacyLoss, Spend, below, float_above
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.pots import Pots
from dpframe.privacy.together import epsilon_of_loss, mu_of_loss
from dpframe.queries.tasks import Axis, LabelTask, Task
from dpframe.sources.manifest import FileId

VERSION = "0.1.0"


Certifier: TypeAlias = Callable[[Any, LedgerPart | None], Any]
"""Certifies what was drawn, with what a ledger says of its charge."""


@frozen(eq=False, kw_only=True)
class Operation(ABC):
    """A release that was checked and planned, of any kind.

    Parameters
    ----------
    declaration
        What is public about the frame.
    engine
        What can read the frame.
    mechanism
        Name of the mechanism chosen.
    spend
        How the amount was given.
    loss
        What the release costs.
    words
        What is asked, in words.
    caps
        What is kept of a unit, by table.
    axes
        The groups of each query, by its name.
    source
        What a ledger keeps of the source; `None`: it was not looked at yet.
    files
        The files that it reads; `None`: rows in memory, or nobody can tell.
    """

    declaration: Declaration
    engine: Engine
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    words: str
    caps: tuple[Caps, ...]
    axes: Mapping[Hashable, Sequence[Axis]]
    source: SourceFacts | None = None
    files: tuple[FileId, ...] | None = None

    @property
    @abstractmethod
    def tasks(self) -> Sequence[Task | LabelTask]:
        """What an engine may be asked: all that is read."""

    @abstractmethod
    def outlook_table(self) -> pd.DataFrame:
        """Say what to expect of it."""

    @abstractmethod
    def witness(self) -> Witness:
        """Find the worst units, by code that knows nothing of the plan."""

    @abstractmethod
    def measure(self, frame: Frame, context: Context) -> Any:
        """Total exact integers of the private frame."""

    @abstractmethod
    def draw(self, exact: Any, context: Context) -> Any:
        """Draw noise, or select: what comes out may be published."""

    @abstractmethod
    def certifier(self, entry: Entry, witness: Witness, context: Context) -> Certifier:
        """Write all of the certificate that is known before there are values."""

    def useless(self) -> CalibrationError | None:
        """Return the error about outputs that say nothing, if that is known and not wanted."""
        return None

    def denoised(self, method: str | None, graph: object) -> Self:
        """Denoise what is released, too; most kinds cannot."""
        rule = f"is for noise in tables of known groups, not for {self.words!r:.80}"
        raise QueryError.about("denoise", rule, method, "Leave denoise= and graph= out.")

    @property
    def spends_all(self) -> bool:
        """Whether it costs all that was given."""
        return True

    @cached_property
    def columns(self) -> tuple[Hashable, ...]:
        """Private columns that are read."""
        return tuple(dict.fromkeys(label for task in self.tasks for label in task.columns))

    @cached_property
    def cost(self) -> dict[str, Any]:
        """What the whole release costs: mu, epsilon and delta, the latter two `None` if unknown.

        Gaussian noise of mu is (epsilon, delta)-DP for every delta > 0; the one spent with, or the
        budget's, is shown. An extra delta is included; one that was given in the call is for noise
        and threshold together.
        """
        loss = self.loss
        if not loss.mu_squared:
            pure = {"mu": mu_of_loss(loss), "epsilon": float(loss.epsilon), "delta": 0.0}
            return pure | self._with_extra(0.0) if loss.delta else pure
        delta, ledger = self.spend.delta, self.declaration.ledger
        if delta is None and ledger is not None:
            delta = below(ledger.budget.noise_delta)
        if not delta:
            return {"mu": mu_of_loss(loss), "epsilon": None, "delta": None}
        # what was asked for as an epsilon is what was honored: the way back from mu may end an ulp
        # above it
        by_epsilon = self.spend.kind == "epsilon"
        most = float(self.spend.amount) if by_epsilon else math.inf
        exact_epsilon = by_epsilon and self.spends_all
        epsilon = most if exact_epsilon else min(most, epsilon_of_loss(delta, loss))
        noise = {"mu": mu_of_loss(loss), "epsilon": epsilon, "delta": delta}
        apart = loss.delta and self.spend.delta is None
        return noise | self._with_extra(delta) if apart else noise

    def _with_extra(self, delta: float) -> dict[str, float]:
        """Add the extra delta to that of noise."""
        total = float_above(Fraction(delta) + self.loss.delta)
        return {"delta": min(total, math.nextafter(1, 0))}

    def outlook(self) -> dict[str, Any]:
        """Return what the whole release costs, whether it fits, and what a budget has left."""
        fits = {"fits": self.declaration.allows(self.loss)}
        return {**self.cost, **fits, **self.left_after()}

    def left_after(self) -> dict[str, float]:
        """Return what a budget, if there is one, has left of both kinds of noise after it."""
        if self.declaration.ledger is None:
            return {}
        status = self.declaration.ledger.last_status()
        after = replace(status, pots=_pots_after(status.pots, self.loss))
        return {"remaining_epsilon": after.remaining_epsilon, "remaining_mu": after.remaining_mu}

    def promise(
        self, entry: Entry, witness: Witness, context: Context, *, joint: bool = False
    ) -> dict[str, Any]:
        """Say which release it is, whose data are protected and at what cost.

        These fields of a `Release` are those of every table. They answer what NIST SP 800-226 asks
        of a claim: the neighboring relation, the parameters of the guarantee, and what was spent
        before.
        """
        loss = self.loss
        return {
            "library": f"dpframe {VERSION}",
            "release_id": entry.release_id,
            "released_at": entry.released_at,
            "testing": context.is_test,
            "neighboring": self.declaration.neighboring,
            "privacy_loss": LossPart(
                **self.cost, rho=self.spend.rho_of(loss), extra_delta=float(loss.delta), joint=joint
            ),
            "manifest": None if entry.source is None else entry.source.manifest,
            "witness": witness_parts(witness),
            "ledger": None,
            "rows": None,
        }

    def unit_part(self, caps: Caps) -> UnitPart:
        """Say whose data are protected, and under which caps."""
        columns = tuple(map(str, self.declaration.unit_columns))
        return UnitPart(columns, CapsPart(caps.rows, caps.groups, caps.rows_per_group))


@lru_cache(maxsize=64)  # what is left takes as long to find as a plan
def _pots_after(pots: Pots, loss: PrivacyLoss) -> Pots:
    return pots.plus(loss)


def make_release(frame: Frame, operation: Operation, entry: Entry, context: Context) -> Any:
    """Warn, charge the ledger, and then make the release; both are logged."""
    declaration = operation.declaration
    ledger = declaration.ledger
    certify = operation.certifier(entry, check_charge(operation, entry.loss), context)
    warn_of_release(frame, declaration, operation.spend, context)
    if operation.files is not None:
        _check_files(frame, operation)
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
    released = after_charge(make)
    _log(entry, lambda loss: ("released", f"cost: {loss}"))
    return released


def _check_files(frame: Frame, operation: Operation) -> None:
    """Refuse files that are others than those that the release was planned for."""
    engine = operation.engine
    engine.check(frame, operation.columns)
    if engine.manifest(frame).files != operation.files:
        reason = "the files of this frame are others than when the release was planned:"
        raise DeclarationError(f"{reason} nothing was charged. Ask again.", parameter="frame")


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
    rule = "The amount stays charged. The cause is not shown, because it may quote private values:"
    remedy = "read the frame by itself to see it, fix it, and release again."
    raise ReleaseError(f"{wrong} {rule} {remedy}") from None


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
        reason = "name= and note= are kept in a ledger, and no budget is declared for this frame."
        remedy = "Declare one: .dp.declare(..., budget=dpf.Budget(epsilon=1, delta=1e-6))."
        raise DeclarationError(f"{reason} {remedy}", parameter="note" if name is None else "name")
    ledger.check_name(name)  # before a plan that the spent budget may not allow


def entry_of(
    operation: Operation, context: Context, name: str | None = None, note: str | None = None
) -> Entry:
    """Write what a ledger is charged with, under an identifier of its own."""
    declaration = operation.declaration
    ledger = declaration.ledger
    protected = None if ledger is None else ledger.protected
    entry = Entry(
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
        source=operation.source,
    )
    return entry if ledger is None else ledger.as_charged(entry)


def user_name() -> str | None:
    """Name who releases; a system that knows no name does not stop the release."""
    try:
        return visible(getpass.getuser())
    except Exception:  # which ones differs between systems and versions
        return None


def ledger_of(ledger: Ledger, entry: Entry) -> LedgerPart:
    """Say what a charge took of the budget, right after it."""
    # without a look at a file: nothing may fail between charge and release
    part, used = ledger.last_status().part_and_used(entry)
    total = ledger.budget
    budget = BudgetPart(total.epsilon, total.delta, total.discovery)
    of_part = None if entry.part is None else f"{ledger.part}={entry.part!r}"
    return LedgerPart(ledger.ledger_id, budget, part, used, entry.share is not None, of_part)
