"""What the best adversary makes of budgets by part, who looks at answers about other parts, too.

Every game is played to its end by backward induction: at each history the adversary stops, or
chooses the release that serves best, among those that a real ledger accepts. Its history is the
privacy loss L so far: the log of the ratio of the laws of all answers, for two neighbors. What it
reaches is the largest mean of `(1 - exp(epsilon - L))+`, which may not be above delta. Losses are
on a grid, rounded up, so that nothing is missed; where delta is 0, the comparison is exact.
"""

import itertools
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from support.charging import entry, pure
from support.plans import parts_of
from support.randomness import SYSTEM

import dpframe as dpf
from dpframe import Ledger
from dpframe.errors import BudgetExceededError
from dpframe.ledger.chain import Chain
from dpframe.ledger.ledger import copy_in_memory
from dpframe.operations.planning import in_part, plan_operation
from dpframe.plan.plan import Plan
from dpframe.privacy.amounts import Budget, PrivacyLoss, Spend, exact
from dpframe.privacy.pots import settle_pots

Part = int | None
Move = tuple[Part, PrivacyLoss]
Charged = tuple[Move, ...]
Law = tuple[tuple[int, float], ...]
"""Log-ratios of the answers of a release, in cells of the grid, with their probabilities."""

PARTS = (1, 2, None)
PURE, WITH_DELTA, USUAL = Budget(1), Budget(1, 0.05), Budget(1, 1e-6)
EVALUATION = 1e-9  # of delta: floats add up terms near 1e-16


def in_any_order(charged: Charged) -> Charged:
    """Sort what was charged after the first charge, which settles the pots."""
    first, *others = charged
    return (first, *sorted(others, key=repr))


class Ledgers:
    """Ledgers by part after all that was charged; what is left depends on the first one."""

    def __init__(self, budget: Budget) -> None:
        self.known = {(): Ledger(budget=budget, part="week")}

    def after(self, charged: Charged, move: Move) -> Charged | None:
        """Charge what comes next; `None` if the ledger refuses."""
        part, loss = move
        tried = copy_in_memory(self.known[charged])
        try:
            tried.charge(replace(entry(loss), part=None if part is None else str(part)))
        except BudgetExceededError:
            return None
        grown = in_any_order((*charged, move))
        self.known.setdefault(grown, tried)
        return grown


class LedgersOnServer(Ledgers):
    """The same in PostgreSQL: a table for every state, each decision made there once."""

    def __init__(self, budget: Budget, new_url: Callable[[], str]) -> None:
        self.budget, self.new_url = budget, new_url
        self.decided: dict[tuple[Charged, Move], Charged | None] = {}

    def after(self, charged: Charged, move: Move) -> Charged | None:
        if (charged, move) not in self.decided:
            ledger = Ledger.create(self.new_url(), budget=self.budget, part="week")
            grown: Charged | None = in_any_order((*charged, move))
            try:
                for part, loss in (*charged, move):
                    own = None if part is None else str(part)
                    ledger.charge(replace(entry(loss), part=own))
            except BudgetExceededError:
                grown = None
            self.decided[charged, move] = grown
        return self.decided[charged, move]


def best_delta(
    epsilon: Fraction, ledgers: Ledgers, laws: Mapping[Move, Iterable[Law]], cells: int
) -> float:
    """Return what the best adversary reaches.

    Parameters
    ----------
    epsilon
        Of the promise.
    ledgers
        What is allowed.
    laws
        What the adversary may ask for, and the laws of its answers.
    cells
        Cells of the grid in a privacy loss of 1.
    """
    farthest = math.ceil(epsilon) + 3  # beyond, all is won
    places = np.arange(-farthest * cells, farthest * cells + 1)
    above = [Fraction(int(place), cells) - epsilon for place in places]
    stopped = np.array([-math.expm1(-one) if one > 0 else 0.0 for one in above])
    known: dict[Charged, np.ndarray] = {}

    def value(charged: Charged) -> np.ndarray:
        if charged not in known:
            best = stopped
            for move, own in laws.items():
                after = ledgers.after(charged, move)
                if after is not None:
                    ahead = np.append(value(after), 1.0)
                    best = np.maximum.reduce([best, *(mean(ahead, law) for law in own)])
            known[charged] = best
        return known[charged]

    def mean(ahead: np.ndarray, law: Law) -> np.ndarray:
        at = np.arange(len(places))
        return sum(p * ahead[np.clip(at + moved, 0, len(places))] for moved, p in law)

    return float(value(())[farthest * cells])


def charge_no_empty_parts(monkeypatch) -> None:
    """Plant a fault: a release over all parts is not charged to those without charges."""
    whole = Chain.filled_by

    def filled_by(chain: Chain, part):
        if part is None or chain.parts.get(part) is not None:
            return whole(chain, part)
        return whole(Ledger(budget=chain.budget, part=chain.part)._seen, part)

    monkeypatch.setattr(Chain, "filled_by", filled_by)


# Small frames: all neighbors, the integers that real releases total

UNIT = ("plane", "week")
UNITS = [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
QUERIES = {"zones": dpf.count("zone"), "weeks": dpf.count("week"), "units": dpf.units()}
CELLS = 16
Filling = tuple[tuple[str, ...], ...]
"""The zones of the rows of each unit."""


def fillings_of(*rows: tuple[str, ...]) -> list[Filling]:
    return list(itertools.product([(), *rows], repeat=len(UNITS)))


@cache
def made(filling: Filling, unit: object, neighboring: str) -> pd.DataFrame:
    rows = [(*who, zone) for who, own in zip(UNITS, filling, strict=True) for zone in own]
    frame = pd.DataFrame(rows, columns=["plane", "week", "zone"])
    each_row = unit is dpf.EACH_ROW
    frame.dp.declare(
        ledger=Ledger(budget=PURE, part="week"),
        privacy_unit=list(unit) if unit == UNIT else unit,
        max_rows=None if each_row else 2,
        keys={"zone": ["A", "B"], "week": [1, 2]},
        neighboring=neighboring,
    )
    return frame


@cache
def answered(
    filling: Filling, name: str, part: Part, unit: object, neighboring: str
) -> tuple[list[int], list[Fraction]]:
    """Return the integers that a release of epsilon 1 hides, and the scales of their noise."""
    frame = made(filling, unit, neighboring)
    declaration = frame.dp.declaration.in_part(part)
    asked = in_part(declaration, QUERIES[name])
    operation = plan_operation(frame, declaration, asked, Spend.of(epsilon=1), "laplace")
    assert isinstance(operation.plan, Plan)
    (measured,), (totals,) = parts_of(operation.plan), operation.measure(frame, SYSTEM)
    blocks = list(zip(measured.scales, totals, strict=True))
    scales = [Fraction(scale) for scale, block in blocks for _ in block]
    return [int(one) for _, block in blocks for one in block], scales


def neighbors(
    fillings: list[Filling], neighboring: str, unit: object
) -> Iterable[tuple[Filling, Filling]]:
    """Yield all pairs that differ in one unit, or exchange one for another of the same part."""
    names = [plane for plane, _ in UNITS] if unit == "plane" else UNITS
    for one, other in itertools.product(fillings, repeat=2):
        changes = list(zip(names, one, other, strict=True))
        left = {name for name, own, new in changes if own and own != new}
        came = {name for name, own, new in changes if new and own != new}
        if neighboring == "add_remove":
            if sorted(map(len, (left, came))) == [0, 1]:
                yield one, other
        elif len(left) == len(came) == 1 and len({week for _, week in left | came}) == 1:
            yield one, other


def law_of(steps: Iterable[tuple[int, Fraction]], cells: int) -> Law:
    """Return the law of the log-ratio of integers with Laplace noise: by steps, and their scales.

    Between both truths the ratio changes by a factor at each integer, beyond them it does not.
    """
    law = {Fraction(0): 1.0}
    for step, scale in steps:
        q = math.exp(-1 / scale)
        between = [(1 - q) / (1 + q) * q**k for k in range(1, step)]
        chances = [1 / (1 + q), *between, q**step / (1 + q)]
        grown: dict[Fraction, float] = {}
        for (ratio, p), (k, own) in itertools.product(law.items(), enumerate(chances)):
            moved = ratio + (step - 2 * k) / scale
            grown[moved] = grown.get(moved, 0.0) + p * own
        law = grown
    return tuple((math.ceil(ratio * cells), p) for ratio, p in law.items())


def worst_excess(
    budget: Budget,
    fillings: list[Filling],
    *,
    amounts: Iterable[Fraction] = (Fraction(1, 2), Fraction(1, 4)),
    parts: tuple[Part, ...] = PARTS,
    unit: object = UNIT,
    neighboring: str = "add_remove",
    promised: Fraction | None = None,
    ledgers: Ledgers | None = None,
) -> float:
    """Return what the best adversary reaches beyond delta, on the worst neighbors of all."""
    answers = {
        asked: answered(*asked, unit, neighboring)
        for asked in itertools.product(fillings, QUERIES, parts)
    }
    games: dict[Hashable, None] = {}
    for one, other in neighbors(fillings, neighboring, unit):
        steps = []
        for part, name in itertools.product(parts, QUERIES):
            (before, scales), (after, _) = (answers[each, name, part] for each in (one, other))
            moved = [abs(b - a) for a, b in zip(before, after, strict=True)]
            steps.append((part, tuple((s, w) for s, w in zip(moved, scales, strict=True) if s)))
        games[tuple(dict.fromkeys(steps))] = None
    ledgers, reached = ledgers or Ledgers(budget), []
    for game in games:
        laws: dict[Move, set[Law]] = {}
        for (part, steps), amount in itertools.product(game, amounts):
            law = law_of([(step, scale / amount) for step, scale in steps], CELLS)
            laws.setdefault((part, pure(amount)), set()).add(law)
        reached.append(best_delta(promised or exact(budget.epsilon), ledgers, laws, CELLS))
    return max(reached) - budget.delta


SMALL = [filling for filling in fillings_of(("A", "A"), ("B", "B")) if not filling[3]]


@pytest.mark.full
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_no_transcript_of_small_frames_is_above_the_budget(neighboring):
    given = {"neighboring": neighboring, "amounts": [Fraction(1, 2)]}
    assert worst_excess(PURE, SMALL, **given) == 0
    # a promise that is a percent smaller is seen to be broken
    assert worst_excess(PURE, SMALL, promised=Fraction(99, 100), **given) > 0


@pytest.mark.server
@pytest.mark.audit
def test_no_transcript_is_above_the_budget_where_a_server_keeps_it(server, monkeypatch):
    kept, amounts = LedgersOnServer(PURE, server.url), [Fraction(1, 2)]
    assert worst_excess(PURE, SMALL, amounts=amounts, ledgers=kept) <= 0
    refused = list(kept.decided.values()).count(None)
    assert 0 < refused < len(kept.decided)
    charge_no_empty_parts(monkeypatch)
    faulty = LedgersOnServer(PURE, server.url)
    assert worst_excess(PURE, SMALL, amounts=[Fraction(1)], ledgers=faulty) > 0.01


@pytest.mark.audit
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [PURE, WITH_DELTA], ids=str)
def test_no_transcript_of_frames_is_above_the_budget(budget, neighboring):
    fillings = fillings_of(("A", "A"), ("B", "B"), ("A",))
    assert worst_excess(budget, fillings, neighboring=neighboring) <= 0
    each_row = {"unit": dpf.EACH_ROW, "neighboring": neighboring}
    assert worst_excess(budget, fillings_of(("A",), ("B",)), **each_row) <= 0


def check_that_units_in_several_parts_are_seen(monkeypatch, budget):
    monkeypatch.setattr(sys.modules["dpframe.operations.declare"], "_check_part", lambda *_: None)
    amounts = [Fraction(1, 2)]
    assert worst_excess(budget, SMALL, amounts=amounts, parts=(1, 2), unit="plane") > 0.01


def check_that_parts_without_charges_are_seen(monkeypatch, budget):
    charge_no_empty_parts(monkeypatch)
    assert worst_excess(budget, SMALL, amounts=[Fraction(1)]) > 0.01


@pytest.mark.full
def test_faults_of_parts_are_seen_in_small_frames(monkeypatch):
    with monkeypatch.context() as patched:
        check_that_units_in_several_parts_are_seen(patched, PURE)
    check_that_parts_without_charges_are_seen(monkeypatch, PURE)


@pytest.mark.audit
def test_faults_of_parts_are_seen_in_small_frames_beside_a_delta(monkeypatch):
    with monkeypatch.context() as patched:
        check_that_units_in_several_parts_are_seen(patched, WITH_DELTA)
    check_that_parts_without_charges_are_seen(monkeypatch, WITH_DELTA)


# Gaussian noise of integers, beside pure losses: laws on the grid itself


def gaussian_law(mu_squared: Fraction, cells: int) -> Law:
    """Return the law of a log-ratio of integers that differ by 1, with noise N(0, 1 / mu^2).

    At the integer k it is `(2 k + 1) mu^2 / 2`: whole numbers of cells.
    """
    half = mu_squared * cells / 2
    assert half.denominator == 1, mu_squared
    reach = math.ceil(12 / math.sqrt(mu_squared))
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) * float(mu_squared) / 2)
    return tuple(zip((2 * k + 1) * int(half), weights / weights.sum(), strict=True))


def reached_with_both(budget: Budget, times: int, reads: Iterable[Part]) -> float:
    """Return what the best adversary reaches, in parts of delta.

    Parameters
    ----------
    budget
        Of every part.
    times
        How often a loss of one kind fits, Gaussian ones in their pot.
    reads
        What `part=` may be in releases that read rows of the unit.
    """
    cells = math.ceil(2 * times / settle_pots(budget).pots[1].limit)
    mu_squared = Fraction(2, cells)
    amount = Fraction(int(exact(budget.epsilon) / times * cells), cells)
    laws = {
        PrivacyLoss(mu_squared=mu_squared): gaussian_law(mu_squared, cells),
        pure(amount): law_of([(1, 1 / amount)], cells),
    }
    asked = {
        (part, loss): [law if part in reads else ((0, 1.0),)]
        for part, (loss, law) in itertools.product(PARTS, laws.items())
    }
    found = best_delta(exact(budget.epsilon), Ledgers(budget), asked, cells)
    return found / budget.delta


def check_both_kinds(monkeypatch, budget: Budget, times: int) -> None:
    reached = reached_with_both(budget, times, (1, None))
    assert 0.1 < reached <= 1 + EVALUATION
    assert reached_with_both(budget, times, PARTS) > 1.1  # a unit in several parts
    charge_no_empty_parts(monkeypatch)
    assert reached_with_both(budget, times, (1, None)) > 1.1


@pytest.mark.full
def test_adversaries_with_gaussian_noise_in_short(monkeypatch):
    check_both_kinds(monkeypatch, USUAL, 2)


@pytest.mark.audit
@pytest.mark.parametrize("budget", [USUAL, Budget(3, 1e-6), Budget(0.5, 1e-5), WITH_DELTA], ids=str)
def test_adversaries_with_gaussian_noise(monkeypatch, budget):
    check_both_kinds(monkeypatch, budget, 4)
