"""Blocks that record what a pipeline measures, hand out its noisy numbers again, or have a seed."""

import hashlib
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from dpframe.checker.measured import NEVER
from dpframe.context import cached_property
from dpframe.engines.labels import LabelCounts
from dpframe.errors import DPFrameError, PrivacyTestError
from dpframe.frozen import frozen
from dpframe.ledger.log import Entry
from dpframe.operations.discover import Labels, Rounds
from dpframe.operations.pipeline import Operation
from dpframe.operations.select import SelectedQuantiles
from dpframe.operations.tables import PlannedTables
from dpframe.plan.designs import NoisyDesign
from dpframe.privacy.amounts import PrivacyLoss
from dpframe.privacy.selection import Pick, deal_rows
from dpframe.privacy.threshold import LabelThreshold
from dpframe.testing.block import TestBlock

DrawKind: TypeAlias = Literal["noise", "labels", "selection"]


@frozen(eq=False)
class Draw:
    """The exact integers of one release, before noise, and all that is public about its noise.

    Parameters
    ----------
    kind
        "noise": integers to which noise was added. "labels": units by label, or their weights by
        round and label, to which noise was added, and a threshold. "selection": rows by group and
        bin, of which quantiles are selected.
    what
        The queries in words.
    release_id
        Identifier of the release.
    law
        Name of the law of the noise.
    scales
        Scales of the noise: of the blocks, of the labels, or of the steps of a selection.
    groups
        Blocks whose noise is drawn together, by position; empty where there are none.
    claimed
        What the plan says that the noise costs.
    charged
        What was charged to the ledger; without one, what the certificate says.
    facts
        Everything public that decides on noise and decoding, by name, as text.
    """

    kind: DrawKind
    what: str
    release_id: str
    law: str
    scales: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]
    claimed: PrivacyLoss
    charged: PrivacyLoss
    facts: Mapping[str, str]
    _exact: Any = field(repr=False)
    _operation: Operation = field(repr=False)
    _published: Any = field(default=None, repr=False)

    @cached_property
    def integers(self) -> Any:
        """The exact integers.

        Of noise, a tuple of int64 arrays, one for each block; of labels, a dict from tuples of
        labels to numbers of units, in the parts that noise has, or from tuples of a round and
        labels to weights, where the labels that were handed out were left out of later rounds; of a
        selection, an array of groups and bins.
        """
        if self.kind == "noise":
            return tuple(block for blocks in self._exact for block in blocks)
        if self.kind == "labels":
            if isinstance(self._exact, LabelCounts):
                return _by_label(self._exact)
            rounds = enumerate(self._exact, 1)
            return {(at, *key): n for at, counts in rounds for key, n in _by_label(counts).items()}
        return self._exact

    @property
    def allowed(self) -> Fraction:
        """What was charged, as `cost` counts it: mu squared of Gaussian noise, epsilon of other.

        Where both were, it is 1, and a cost is the larger part of what was charged for either.
        """
        if self.charged.is_of_two_laws:
            return Fraction(1)
        return self.charged.mu_squared or self.charged.epsilon

    def cost(self, other: "Draw") -> Fraction:
        """Return what it costs that another frame measures other integers.

        It is `sum over groups of (|moved| / scale)^p`, with p the norm of the law: mu squared of
        Gaussian noise, epsilon of other noise. Of a selection it is the sum of the ranges by which
        utilities change, divided by their scales. It is exact.

        Parameters
        ----------
        other
            The same draw of a replay.
        """
        if self.facts != other.facts:
            return NEVER
        if self.kind == "noise":
            plan = cast(PlannedTables, self._operation).plan
            triples = zip(plan.designs.values(), self._exact, other._exact, strict=True)
            lost = PrivacyLoss()
            for noisy, first, second in triples:
                lost += noisy.law.charge(noisy.noise.cost(first, second))
            if self.charged.is_of_two_laws:
                mu_squared = lost.mu_squared / self.charged.mu_squared
                return max(mu_squared, lost.epsilon / self.charged.epsilon)
            return lost.mu_squared + lost.epsilon
        if self.kind == "labels":
            return self._labels_cost(other)
        return self._selection_cost(other)

    def differs_from(self, other: "Draw") -> bool:
        """Whether another frame measures other integers."""
        return bool(self.excess([(1, self), (-1, other)]))

    def _labels_cost(self, other: "Draw") -> Fraction:
        operation = cast(Labels, self._operation)
        threshold = operation.threshold
        first, second = self.integers, other.integers
        if not operation.wanted.counts:
            return _rounds_cost(threshold, first, second)
        (unit,) = threshold.weights
        for units, beside in ((first, second), (second, first)):
            alone = units.keys() - beside.keys()
            if len(alone) > threshold.labels or any(units[label] != unit for label in alone):
                return NEVER
        steps = (abs(first.get(x, 0) - second.get(x, 0)) for x in first.keys() | second.keys())
        scale, norm = Fraction(threshold.scale), threshold.law.norm
        return sum(((step / scale) ** norm for step in steps), Fraction(0))

    def _selection_cost(self, other: "Draw") -> Fraction:
        plan = cast(SelectedQuantiles, self._operation)
        rows_moved = np.flatnonzero((self._exact != other._exact).any(axis=1))
        if not len(rows_moved):
            return Fraction(0)
        before = [deal_rows(draw._exact[rows_moved], plan.bins.parts) for draw in (self, other)]
        chosen = self._published[rows_moved]
        pairs = zip(plan.selection.steps, plan.selection.scales, strict=True)
        return sum(
            (
                Fraction(_range(step, picks, *rows)) / Fraction(scale)
                for step, scale in pairs
                for picks, *rows in zip(chosen, *before, strict=True)
            ),
            Fraction(0),
        )

    @staticmethod
    def excess(terms: Sequence[tuple[int, "Draw"]]) -> list[str]:
        """Say where integers of some draws, with signs, do not add up to 0; of noise or labels."""
        first = terms[0][1]
        if first.kind == "labels":
            total: dict[Hashable, int] = {}
            for sign, draw in terms:
                for label, units in draw.integers.items():
                    total[label] = total.get(label, 0) + sign * units
            return [f"label {label!r:.80}" for label, left in total.items() if left]
        blocks = [draw.integers for _, draw in terms]
        if first.kind == "selection":
            blocks = [(block,) for block in blocks]
        places = []
        for at, several in enumerate(zip(*blocks, strict=True)):
            signs = [sign for sign, _ in terms]
            left = sum(
                (sign * block.astype(np.int64) for sign, block in zip(signs, several, strict=True)),
                np.zeros((), np.int64),
            )
            off = np.flatnonzero(left)
            if len(off):
                places.append(f"block {at}, at {len(off)} of {left.size} places")
        return places


def _by_label(counts: LabelCounts) -> dict[tuple[Any, ...], int]:
    """Return numbers by labels."""
    columns = [column.tolist() for column in counts.labels]
    return dict(zip(zip(*columns, strict=True), counts.units.tolist(), strict=True))


def _rounds_cost(
    threshold: LabelThreshold, base: Mapping[Any, int], changed: Mapping[Any, int]
) -> Fraction:
    """Add up what moved in the rounds of a set; labels of one unit alone have its weight."""
    cost = Fraction(0)
    for at, part in enumerate(threshold.rounds, 1):
        pair = [{k: n for k, n in run.items() if k[0] == at} for run in (base, changed)]
        here, beyond = pair
        for first, second in (pair, reversed(pair)):
            alone = first.keys() - second.keys()
            usual = {part.weights[m] for m in range(max(len(alone), 1) - 1, part.labels)}
            weights = {first[label] for label in alone}
            if len(alone) > part.labels or len(weights) > 1 or not weights <= usual:
                return NEVER
        moved = (abs(here.get(x, 0) - beyond.get(x, 0)) for x in here.keys() | beyond.keys())
        cost += sum((part.law.loss(step, part.scale) for step in moved), Fraction(0))
    return cost


def _range(step: Pick, picks: np.ndarray, base: np.ndarray, other: np.ndarray) -> int:
    """By how much the utilities of a selection change, the largest minus the least change."""
    low = 0 if step.low < 0 else int(picks[step.low])
    high = len(base) - 1 if step.high == len(picks) else max(int(picks[step.high]), low + 1)
    changes = _utilities(step, base[low : high + 1]) - _utilities(step, other[low : high + 1])
    return int(changes.max() - changes.min())


def _utilities(step: Pick, before: np.ndarray) -> np.ndarray:
    """`u_k = -max(b c_(k-1) - a N, a N - b c_k, 0)`, of the parts of a range."""
    rows = before - before[0]
    sought = step.a * rows[-1]
    beyond, short = step.b * rows[:-1] - sought, sought - step.b * rows[1:]
    utilities: np.ndarray = -np.maximum(np.maximum(beyond, short), 0)
    return utilities


def draw_of(operation: Operation, exact: Any, entry: Entry) -> Draw:
    """Describe what is to be hidden, before noise is drawn."""
    facts = {
        "queries": entry.what,
        "mechanism": entry.mechanism,
        "cost": str(entry.loss),
        "columns read": str(entry.columns),
        "caps": " and ".join(dict.fromkeys(caps.words[2:] for caps in operation.caps)),
    }
    if isinstance(operation, Labels):
        threshold = operation.threshold
        kind, law = "labels", threshold.law.name
        scales: tuple[float, ...] = tuple(part.scale for part in threshold.rounds)
        groups: tuple[tuple[int, ...], ...] = ()
        facts |= {
            "threshold": ", ".join(str(part.least) for part in threshold.rounds),
            "weights": f"{threshold.labels}: {threshold.weights}",
        }
        first = exact.first if isinstance(exact, Rounds) else exact
        facts["types of labels"] = str([column.dtype.str for column in first.labels])
        exact = exact if isinstance(exact, Rounds) else copy_of(exact)
    elif isinstance(operation, SelectedQuantiles):
        selection = operation.selection
        kind, law, scales, groups = "selection", "geometric", selection.scales, ()
        facts |= {"steps": str(selection.steps), "bins": _text(operation.bins.values)}
        facts |= {"groups and bins": str(exact.shape)}
        exact = exact.copy()
    else:
        measured = list(cast(PlannedTables, operation).plan.designs.values())
        kind = "noise"
        law = ", ".join(dict.fromkeys(part.law.name for part in measured))
        scales = tuple(scale for part in measured for scale in part.scales)
        groups = tuple(group for part in measured for group in part.shared)
        facts |= {
            "blocks": str([[len(block) for block in blocks] for blocks in exact]),
            "types": str([[block.dtype.str for block in blocks] for blocks in exact]),
            "deviations": str([[float(d).hex() for d in part.deviations] for part in measured]),
            "profile": str([_profile(part) for part in measured]),
        }
        exact = [[block.copy() for block in blocks] for blocks in exact]
    facts |= {"law": law, "scales": str([float(s).hex() for s in scales]), "groups": str(groups)}
    return Draw(
        cast(DrawKind, kind), entry.what, entry.release_id, law, tuple(scales), groups,
        operation.loss, entry.loss, facts, exact, operation,
    )  # fmt: skip


def _profile(measured: NoisyDesign) -> str | None:
    layers = measured.design.layers
    return None if layers is None else _text(layers.profile)


def _text(numbers: Any) -> str:
    return np.asarray(numbers, float).tobytes().hex()


def with_published(draw: Draw, noisy: Any) -> Draw:
    """Keep what was handed out, as a copy; of a set, also what its rounds measure then."""
    exact = draw._exact
    if isinstance(exact, Rounds):
        exact = [copy_of(counts) for counts in exact.given(noisy, len(draw.scales))]
    return replace(draw, _published=copy_of(noisy), _exact=exact)


def hand_out(draw: Draw, number: int) -> Any:
    """Return what was handed out once more: labels in another order."""
    again = copy_of(draw._published)
    if draw.kind != "labels":
        return again
    order = np.random.default_rng(number).permutation(len(again.units))  # no noise: an order
    return LabelCounts(tuple(column[order] for column in again.labels), again.units[order])


def copy_of(noisy: Any) -> Any:
    """Copy noisy integers of any kind."""
    if isinstance(noisy, LabelCounts):
        return LabelCounts(tuple(label.copy() for label in noisy.labels), noisy.units.copy())
    if isinstance(noisy, list):
        return [copy_of(part) for part in noisy]
    return noisy.copy()


INVARIANCE, CHARGE = "invariance", "charge"
_SHOWN, _BEFORE = 100, 30  # characters of a long text: all, and before what differs


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
        charged = [draw._operation.declaration.ledger for draw in self._draws]
        ledgers = [ledger for ledger in (*charged, *self._ledgers.values()) if ledger is not None]
        seen = {id(ledger._in_use()): ledger._in_use() for ledger in ledgers}
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
        if any(entry.release_id == earlier.release_id for earlier in self._draws):
            raise self._broken("noise was drawn twice for one charge", number)
        if ledger is not None:
            charges = [kept for kept in ledger.entries if kept.release_id == entry.release_id]
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
        number, before = len(self._draws), len(self._run.measured)
        if number < before:
            wrong = f"{before} releases were recorded, and {number} were made"
            raise self._broken(wrong, number, INVARIANCE)
        self.check_charges()

    def check_charges(self) -> None:
        """Compare what the neighbor moves with what was charged."""
        for number, (base, other) in enumerate(zip(self._run.measured, self._draws, strict=False)):
            cost = base.cost(other)
            if cost > base.allowed:
                raise self._broken(excess_words(base, float(cost)), number)


def excess_words(draw: Draw, cost: float) -> str:
    """Say that a neighbor moves more than was charged."""
    unit = "mu squared" if draw.charged.mu_squared else "epsilon"
    if draw.charged.is_of_two_laws:
        unit = "part of its charge"
    shown = f"{cost:.6g}" if cost < 1e20 else "more than any noise hides"  # noqa: PLR2004
    return f"{draw.what!r} moves by {unit} = {shown}, and {float(draw.allowed):.6g} was charged"


def _fact_words(name: str, base: Draw, other: Draw) -> str:
    """Say that something public differs in two runs."""
    pair = base, other
    if name == "cost":
        words = [_loss_words(draw.charged) for draw in pair]
    elif name in ("scales", "deviations", "bins", "profile"):  # their texts are of bits
        words = [", ".join(f"{scale:.6g}" for scale in draw.scales[:3]) for draw in pair]
        name = "bounds or amounts, and with them scales"
    else:
        words = [draw.facts.get(name) or "none" for draw in pair]
    return f"{name} of {base.what!r:.120} differ: {beside(*words)}"


def _loss_words(loss: PrivacyLoss) -> str:
    parts = (("epsilon", float(loss.epsilon)), ("mu", loss.mu), ("delta", float(loss.delta)))
    return ", ".join(f"{name} {part:.6g}" for name, part in parts if part)


def beside(base: str, other: str) -> str:
    """Show two texts, from where they differ if they are long."""
    pairs = enumerate(zip_longest(base, other))
    start = max(next((at for at, (a, b) in pairs if a != b), 0) - _BEFORE, 0)
    if max(len(base), len(other)) <= _SHOWN:
        start = 0
    return " and ".join(_cut(text, start) for text in (base, other))


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
