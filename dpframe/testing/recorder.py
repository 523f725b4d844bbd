"""Blocks that record what a pipeline measures, hand out its noisy numbers again, or have a seed."""

import hashlib
import os
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from dpframe.errors import DPFrameError, PrivacyTestError
from dpframe.ledger.log import Entry
from dpframe.operations.pipeline import Operation
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.testing.block import TestBlock
from dpframe.testing.draws import Draw, draw_of, hand_out, with_published

INVARIANCE, CHARGE = "invariance", "charge"
_SHOWN, _BEFORE = 100, 30


class Run(TestBlock):
    """What a pipeline measured; `record` makes it."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, word: int = 0) -> None:
        super().__init__(folder, word)
        self._draws: list[Draw] = []

    @property
    def measured(self) -> tuple[Draw, ...]:
        """What was measured, release by release: see `Draw`."""
        return tuple(self._draws)

    def ledgers(self) -> list[Any]:
        """Return the entries of every ledger that was charged or opened."""
        charged = [one._operation.declaration.ledger for one in self._draws]
        every = {id(one): one for one in [*charged, *self._ledgers.values()] if one is not None}
        seen = {id(ledger._in_use()): ledger._in_use() for ledger in every.values()}
        return [(ledger.budget, ledger.entries) for ledger in seen.values()]

    def replay(self) -> "Replay":
        """Open a block in which the same noisy numbers are handed out again, for a neighbor.

        Whatever differs afterwards is a leak. Run the pipeline inside, on a frame with one unit
        more or fewer, or with another one in place of one, as the relation says.

        Returns
        -------
        Replay
            To be opened by `with`. Its `measured` are the integers of the neighbor.

        Raises
        ------
        PrivacyTestError
            Inside or at the end of the block: if another number of releases is made, or another
            one, or if the neighbor moves more than was charged.
        """
        return Replay(self, self._given, self.word)

    def draw(self, operation: Operation, exact: Any, entry: Entry) -> Any:
        """Draw noise, and keep what it hides."""
        draw = self._note(operation, exact, entry)
        noisy = operation.draw(exact, self.context)
        self._keep(with_published(draw, noisy))
        return noisy

    def _note(self, operation: Operation, exact: Any, entry: Entry) -> Draw:
        """Describe a draw, and compare it with what was charged for it."""
        draw = draw_of(operation, exact, entry)
        ledger, number = operation.declaration.ledger, len(self._draws)
        if any(entry.release_id == one.release_id for one in self._draws):
            raise self._broken("noise was drawn twice for one charge", number)
        if ledger is not None:
            charges = [one for one in ledger.entries if one.release_id == entry.release_id]
            if len(charges) != 1:
                raise self._broken(f"it was charged {len(charges)} times", number)
            draw = replace(draw, charged=charges[0].loss)
        lacks = [
            name
            for name in ("epsilon", "mu_squared", "delta")
            if getattr(draw.charged, name) < getattr(draw.claimed, name)
        ]
        if lacks:
            raise self._broken(f"less {' and '.join(lacks)} was charged than it costs", number)
        return draw

    def _broken(self, wrong: str, number: int, rule: str = CHARGE) -> PrivacyTestError:
        return self.fail(PrivacyTestError(f"draw {number}: {wrong}", rule=rule, draw=number))

    def _keep(self, draw: Draw) -> None:
        with self._lock:
            self._draws.append(draw)


class Replay(Run):
    """A run whose noisy numbers are those of another one."""

    def __init__(
        self, run: Run, folder: str | os.PathLike[str] | None = None, word: int = 0
    ) -> None:
        super().__init__(folder, word)
        self._run = run

    def draw(self, operation: Operation, exact: Any, entry: Entry) -> Any:
        """Hand out what was drawn before, if all that is public about it is the same."""
        number = len(self._draws)
        if number == len(self._run.measured):
            raise self._broken(f"{entry.what!r} is one more release", number, INVARIANCE)
        first = self._run.measured[number]
        draw = self._note(operation, exact, entry)
        for name, text in first.facts.items():
            if draw.facts.get(name) != text:
                wrong = _fact_words(name, first, draw)
                raise self._broken(wrong, number, INVARIANCE)
        self._keep(with_published(draw, first._published))
        return hand_out(first, number)

    def finish(self) -> None:
        """Refuse fewer releases, and a neighbor that moves more than was charged."""
        made, before = len(self._draws), len(self._run.measured)
        if made < before:
            wrong = f"{before} releases were recorded, and {made} were made"
            raise self._broken(wrong, made, INVARIANCE)
        self.check_charges()

    def check_charges(self) -> None:
        """Compare what the neighbor moves with what was charged."""
        for number, (one, other) in enumerate(zip(self._run.measured, self._draws, strict=False)):
            cost = one.cost(other)
            if cost > one.allowed:
                raise self._broken(excess_words(one, float(cost)), number)


def excess_words(draw: Draw, cost: float) -> str:
    """Say that a neighbor moves more than was charged."""
    unit = "mu squared" if draw.charged.mu_squared else "epsilon"
    shown = f"{cost:.6g}" if cost < 1e20 else "more than any noise hides"  # noqa: PLR2004
    return f"{draw.what!r} moves by {unit} = {shown}, and {float(draw.allowed):.6g} was charged"


def _fact_words(name: str, one: Draw, other: Draw) -> str:
    """Say that something public differs in two runs."""
    pair = one, other
    if name == "cost":
        words = [_loss_words(draw.charged) for draw in pair]
    elif name in ("scales", "deviations", "bins", "profile"):  # their texts are of bits
        words = [", ".join(f"{scale:.6g}" for scale in draw.scales[:3]) for draw in pair]
        name = "bounds or amounts, and with them scales"
    else:
        words = [draw.facts.get(name) or "none" for draw in pair]
    return f"{name} of {one.what!r:.120} differ: {beside(*words)}"


def _loss_words(loss: PrivacyLoss) -> str:
    parts = (("epsilon", float(loss.epsilon)), ("mu", loss.mu), ("delta", float(loss.delta)))
    return ", ".join(f"{name} {part:.6g}" for name, part in parts if part)


def beside(one: str, other: str) -> str:
    """Show two texts, from where they differ if they are long."""
    pairs = enumerate(zip_longest(one, other))
    start = max(next((at for at, (a, b) in pairs if a != b), 0) - _BEFORE, 0)
    if max(len(one), len(other)) <= _SHOWN:
        start = 0
    return " and ".join(_cut(text, start) for text in (one, other))


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN
    return f"{'...' * bool(start)}{text[start:end]}{'...' * (len(text) > end)}"


def record(*, folder: str | os.PathLike[str] | None = None) -> Run:
    """Open a block that records what a pipeline measures. Noise is real.

    Inside, ids, clock and the choice of rows are fixed, ledgers are in memory, and everything made
    is marked TEST: outside of testing blocks it is refused.

    Parameters
    ----------
    folder
        Where files are written, in place of their paths; paths inside of it stay as they are.
        `None`: a temporary folder, which ends with the block.

    Returns
    -------
    Run
        To be opened by `with`. `run.measured` are the exact integers of every release, and
        `run.replay()` opens a block for a neighbor.

    Raises
    ------
    PrivacyTestError
        If noise was drawn that no ledger was charged for, or not in full, or a block is open.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> ask = lambda frame: dpf.release(
    ...     frame, dpf.count("zone", keys=["A", "B"]), epsilon=1, privacy_unit=dpf.EACH_ROW
    ... )
    >>> with record() as run:
    ...     released = ask(trips)
    >>> with run.replay() as again:
    ...     neighbor = ask(trips[1:])
    >>> released.equals(neighbor), run.measured[0].integers, again.measured[0].integers
    (True, (array([2, 1]),), (array([1, 1]),))
    >>> run.measured[0].cost(again.measured[0]) == run.measured[0].allowed
    True
    """
    return Run(folder)


class _Seeded(TestBlock):
    """A block whose noise comes from a seed."""

    def __init__(self, seed: int, folder: str | os.PathLike[str] | None) -> None:
        self._key = hashlib.sha256(str(seed).encode()).digest()
        super().__init__(folder, int.from_bytes(self._key[:8], "little"))
        self._drawn = 0

    def bits(self, n: int) -> bytes:
        """Return bytes of a stream that the seed decides on."""
        with self._lock:
            self._drawn += 1
            number = self._drawn
        return hashlib.shake_128(self._key + number.to_bytes(8, "little")).digest(n)


def seeded_noise(seed: int, *, folder: str | os.PathLike[str] | None = None) -> TestBlock:
    """Open a block in which noise is drawn from a seed, for unit tests of what follows a release.

    The same calls in the same order give the same numbers, on one version of dpframe. The noise is
    no secret: everything made inside is marked TEST, and refused outside. Ids and clock are fixed,
    and ledgers are in memory.

    Parameters
    ----------
    seed
        Any whole number.
    folder
        As for `record`.

    Raises
    ------
    DPFrameError
        If the seed is no whole number.

    Examples
    --------
    >>> import pandas as pd
    >>> import dpframe as dpf
    >>> trips = pd.DataFrame({"zone": ["A", "B", "A"]})
    >>> query = dpf.count("zone", keys=["A", "B"])
    >>> def ask():
    ...     with seeded_noise(7):
    ...         return dpf.release(trips, query, epsilon=1, privacy_unit=dpf.EACH_ROW)
    >>> ask().equals(ask())
    True
    """
    if type(seed) is not int:
        raise DPFrameError(f"seed must be a whole number, got seed={seed!r:.80}.", parameter="seed")
    return _Seeded(seed, folder)


__all__ = ["Replay", "Run", "record", "seeded_noise"]
