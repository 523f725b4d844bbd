"""What all releases that were planned have in common: cost, outlook, and what must be written."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import pandas as pd

from dpframe.certificates.parts import CapsPart, LedgerPart, LossPart, UnitPart
from dpframe.certificates.witness_parts import witness_parts
from dpframe.checker.witness import Witness
from dpframe.context import Context
from dpframe.declaration.facts import Declaration
from dpframe.engines import Engine, Frame
from dpframe.errors import QueryError
from dpframe.forks import cached_property
from dpframe.ledger.log import Entry
from dpframe.privacy.amounts import PrivacyLoss, Spend, below, float_above
from dpframe.privacy.gaussian import gaussian_epsilon, mu_of_pure
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.pots import Pots
from dpframe.queries.tasks import Axis, LabelTask, Task
from dpframe.sources.manifest import Manifest

try:  # once, at import: nothing may fail between charge and release
    VERSION = version("dpframe")
    LIBRARY = f"dpframe {VERSION}"
except PackageNotFoundError:  # a source tree that is not installed
    VERSION, LIBRARY = "0+unknown", "dpframe"


@dataclass(frozen=True, eq=False, kw_only=True)
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
    manifest
        What is known of the source; `None`: it was not looked at yet.
    """

    declaration: Declaration
    engine: Engine
    mechanism: str
    spend: Spend
    loss: PrivacyLoss
    manifest: Manifest | None = None

    @property
    @abstractmethod
    def words(self) -> str:
        """What is asked, in words."""

    @property
    @abstractmethod
    def tasks(self) -> Sequence[Task | LabelTask]:
        """What an engine may be asked: all that is read."""

    @property
    @abstractmethod
    def caps(self) -> tuple[Caps, ...]:
        """What is kept of a unit, by table."""

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
    def measure(self, frame: Frame, context: Context) -> Any:
        """Total exact integers of the private frame."""

    @abstractmethod
    def draw(self, exact: Any, context: Context) -> Any:
        """Draw noise, or select: what comes out may be published."""

    @abstractmethod
    def certifier(
        self, entry: Entry, witness: Witness, context: Context
    ) -> Callable[[Any, LedgerPart | None], Any]:
        """Write all of the certificate that is known before there are values."""

    def denoised(self, method: str | None, graph: object) -> Self:
        """Denoise what is released, too; most kinds cannot."""
        rule = f"is for noise in tables of known groups, not for {self.words!r:.80}"
        raise QueryError.about("denoise", rule, method, "Leave denoise= and graph= out.")

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
            pure = {"mu": _mu_of(loss.epsilon), "epsilon": float(loss.epsilon), "delta": 0.0}
            return pure | self._with_extra(0.0) if loss.delta else pure
        delta, ledger = self.spend.delta, self.declaration.ledger
        if delta is None and ledger is not None:
            delta = below(ledger.budget.noise_delta)
        if not delta:
            return {"mu": loss.mu, "epsilon": None, "delta": None}
        # what was asked for as an epsilon is what was honored: the way back from mu may end an ulp
        # above it
        asked = self.spend.kind == "epsilon"
        epsilon = float(self.spend.amount) if asked else gaussian_epsilon(delta, loss.mu)
        noise = {"mu": loss.mu, "epsilon": epsilon, "delta": delta}
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
            "library": LIBRARY,
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


@lru_cache(maxsize=64)
def _mu_of(epsilon: Fraction) -> float:
    return mu_of_pure(epsilon)


@lru_cache(maxsize=64)  # what is left takes as long to find as a plan
def _pots_after(pots: Pots, loss: PrivacyLoss) -> Pots:
    return pots.plus(loss)
