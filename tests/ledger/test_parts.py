"""A budget for every part of the data: what counts against which part, and what is refused."""

import json
import os
import pickle
import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from support.charging import ONE, PURE, entry, gaussian, in_processes, pure
from support.raising import raises

from dpframe import Ledger
from dpframe.errors import BudgetExceededError, DeclarationError, LedgerError
from dpframe.ledger.chain import _START, Chain, Row, _canonical, _hash
from dpframe.ledger.ledger import copy_in_memory
from dpframe.ledger.parts import check_part
from dpframe.privacy.amounts import Budget, PrivacyLoss
from dpframe.privacy.pots import Pots, settle_pots

DISCOVERING = Budget(1, 1e-6, discovery=4e-7)
LOSSES = [
    pure(Fraction(1, 7)),
    gaussian(0.08),
    pure(Fraction(1, 20)),
    pure(Fraction(1, 2)),
    gaussian(0.2),
    gaussian(0.27),
    PrivacyLoss(epsilon=Fraction(1, 9), delta=Fraction(1, 10**7)),
]


def of(part, loss, **given):
    return replace(entry(loss, **given), part=None if part is None else check_part(part))


@pytest.fixture(params=["in memory", "in a file"])
def ledger(request, tmp_path) -> Ledger:
    if request.param == "in memory":
        return Ledger(budget=PURE, part="week")
    return Ledger.create(tmp_path / "x.ledger", budget=PURE, part="week")


def test_each_part_has_the_whole_budget(ledger):
    ledger.charge(of(47, pure(1)))
    ledger.charge(of(48, pure(0.75)))
    with raises(BudgetExceededError, "for part='48'. Left: 25.0%", parameter="mu"):
        ledger.charge(of(48, pure(0.5)))
    assert [ledger.status(part=one).used for one in (47, "47", 48.0, "47.0")] == [1, 1, 0.75, 0]


def test_a_release_over_all_parts_counts_against_each(ledger):
    ledger.charge(of(47, pure(0.5)))
    ledger.charge(of(None, pure(0.25)))
    assert [ledger.status(part=one).used for one in (47, 48, None)] == [0.75, 0.25, 0.75]
    with raises(BudgetExceededError, "Left: 25.0%"):
        ledger.charge(of(None, pure(0.5)))
    ledger.charge(of(48, pure(0.75)))
    with raises(BudgetExceededError, "Nothing is left"):
        ledger.charge(of(None, pure(0.01)))
    ledger.charge(of(49, pure(0.75)))


def test_what_is_read_from_a_file_is_what_was_charged(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=DISCOVERING, part="week")
    draw = random.Random(3)
    for _ in range(40):
        made = of(draw.choice([None, 1, 2.5, "a"]), draw.choice(LOSSES[:2]))
        if ledger.status(part=made.part).pots.fits(made.loss):
            try:
                ledger.charge(made)
            except BudgetExceededError:
                assert made.part is None
    again = Ledger(tmp_path / "x.ledger")
    assert again.part == "week"
    assert again.entries == ledger.entries
    assert again.status() == ledger.status()
    for part in (1, 2.5, "a", "nothing yet"):
        assert again.status(part=part) == ledger.status(part=part)
    assert again.status().parts.equals(ledger.status().parts)
    assert set(again.to_frame()["of_part"]) == {None, "1", "2.5", "a"}


def state(charged: list, part, budget: Budget) -> Pots | None:
    """Charge a ledger of its own with what a part was charged; `None` where something is refused.

    This is the promise: each part is as if its releases alone had been made, with the pots that
    the first release of all has settled.
    """
    pots = settle_pots(budget)
    if charged:
        pots = pots.begun_with(charged[0].loss)
    for made in charged:
        if made.part in (None, str(part)):
            if not pots.fits(made.loss):
                return None
            pots = pots.plus(made.loss)
    return pots


PARTS = (1, 2, 3, "untouched")


@pytest.mark.parametrize("budget", [ONE, DISCOVERING], ids=str)
def test_every_part_keeps_its_promise_whatever_was_charged_elsewhere(budget):
    for seed in range(25):
        draw, ledger = random.Random(seed), Ledger(budget=budget, part="week")
        for _ in range(14):
            made = of(draw.choice([None, 1, 2, 3]), draw.choice(LOSSES))
            charged = [*ledger.entries, made]
            read = PARTS if made.part is None else [made.part]
            alone = [state(charged, part, budget) for part in read]
            try:
                ledger.charge(made)
            except BudgetExceededError:
                assert None in alone
            else:
                assert None not in alone
        for part in PARTS:
            pots = state(list(ledger.entries), part, budget)
            assert pots is not None
            assert pots.sums == ledger.status(part=part).pots.sums
            assert pots.spent == ledger.status(part=part).pots.spent


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(12))
def test_objects_on_one_file_keep_the_promises_of_many_parts(tmp_path, seed):
    draw, budget = random.Random(seed), (ONE, DISCOVERING, PURE)[seed % 3]
    opened = [Ledger.create(tmp_path / "x.ledger", budget=budget, part="week")]
    opened += [Ledger(tmp_path / "x.ledger") for _ in range(2)]
    parts = dict.fromkeys(range(25), settle_pots(budget))  # more than are looked at one by one
    for _ in range(60):
        ledger, part = draw.choice(opened), draw.choice([None] * 9 + list(parts))
        made, read = of(part, draw.choice(LOSSES)), parts if part is None else [part]
        tried = draw.choice([ledger, copy_in_memory(ledger)])  # which must leave no trace
        try:
            tried.charge(made)
        except BudgetExceededError:
            assert part is None or not parts[part].fits(made.loss)
            continue
        assert all(parts[one].fits(made.loss) for one in read)
        if tried is ledger:
            parts = {one: pots.begun_with(made.loss) for one, pots in parts.items()}
            parts |= {one: parts[one].plus(made.loss) for one in read}
        tried.status()
    for ledger in (*opened, Ledger(tmp_path / "x.ledger")):
        assert [ledger.status(part=part).pots.sums for part in parts] == [
            pots.sums for pots in parts.values()
        ]


def test_the_first_charge_to_any_part_settles_the_pots_of_all(tmp_path):
    ledger = Ledger.create(tmp_path / "x.ledger", budget=ONE, part="week")
    for part, loss in ((1, pure(0.01)), (2, gaussian(0.01)), (None, pure(0.5)), (2, pure(0.01))):
        ledger.charge(of(part, loss))
        for opened in (ledger, Ledger(ledger.path)):
            for read in (None, 1, 2, "untouched"):
                assert opened.status(part=read).pots.pots == settle_pots(ONE).many


def test_the_fullest_part_decides_for_all(monkeypatch):
    # a ledger that looks at an untouched part lets another one go beyond its budget
    monkeypatch.setattr(
        Chain, "filled_by", lambda self, part, old=Chain.filled_by: old(self, part or "untouched")
    )
    ledger = Ledger(budget=PURE, part="week")
    ledger.charge(of(1, pure(1)))
    ledger.charge(of(None, pure(0.5)))
    assert state(list(ledger.entries), 1, PURE) is None


def test_where_parts_spent_noise_of_different_kinds_what_fits_in_each_fits():
    ledger = Ledger(budget=ONE, part="week")
    ledger.charge(of(1, gaussian(0.1)))
    ledger.charge(of(2, pure(0.8)))
    left = ledger.status()
    assert left.largest_share == 1
    for loss in (PrivacyLoss(epsilon=left.pots.largest.epsilon), pure(0.15)):
        assert [ledger.status(part=part).pots.fits(loss) for part in (1, 2)] == [True, True]
        assert left.pots.fits(loss)
    joined = ledger.status(part=1).pots.fullest(ledger.status(part=2).pots)
    assert not joined.fits(pure(0.15))  # as if one part had spent both
    after = left.pots.plus(pure(0.15))
    ledger.charge(of(None, pure(0.15)))
    assert after == ledger.status().pots
    assert after.largest == ledger.status().pots.largest
    assert ledger.status().used == ledger.status(part=2).used > ledger.status(part=1).used
    shares = PrivacyLoss(epsilon=ledger.status().share(1).epsilon)
    assert all(ledger.status(part=part).pots.fits(shares) for part in (1, 2))


def test_states_of_very_many_kinds_count_as_the_fullest_in_each_pot(monkeypatch):
    monkeypatch.setattr("dpframe.ledger.parts._MOST_FULLEST", 2)
    ledger = Ledger(budget=ONE, part="week")
    for part in range(6):
        ledger.charge(of(part, gaussian(0.02 * part + 0.02)))
        ledger.charge(of(part, pure(Fraction(6 - part, 60))))
    assert len(ledger._seen.fullest.states(ledger._seen.parts, ledger._seen.pots)) <= 2
    loss = ledger.status().pots.largest
    assert loss.epsilon > 0
    for part in range(6):
        assert ledger.status(part=part).pots.fits(PrivacyLoss(epsilon=loss.epsilon))


def test_shares_are_of_the_budget_of_a_part():
    ledger = Ledger(budget=PURE, part="week")
    for part in (1, 2):
        for _ in range(4):
            cost = ledger.status(part=part).share(Fraction(1, 4))
            loss = PrivacyLoss(epsilon=cost.epsilon)
            ledger.charge(of(part, loss, share=Fraction(1, 4)))
        assert ledger.status(part=part).largest_share == 0
    assert ledger.status().largest_share == 0
    assert ledger.status(part=3).largest_share == 1
    table = ledger.status().parts
    assert table.index.name == "week"
    assert table.to_dict("list")["shares"] == [1, 1]


def test_deltas_of_discovery_are_kept_by_part():
    loss = PrivacyLoss(epsilon=Fraction(1, 100), delta=Fraction(4e-7))
    ledger = Ledger(budget=DISCOVERING, part="week")
    ledger.charge(of(1, loss))
    ledger.charge(of(2, loss))
    for part in (1, 2, None):
        with raises(BudgetExceededError, "extra delta", parameter="discovery"):
            ledger.charge(of(part, loss))


def test_an_error_names_the_releases_of_its_part(ledger):
    for name, part in (("a", 1), ("b", 2), ("c", None), ("d", 2)):
        ledger.charge(of(part, pure(0.3), name=name))
    with raises(BudgetExceededError, "Run twice? Released last: d, 2026") as caught:
        ledger.charge(of(2, pure(0.3)))
    assert str(caught.value).endswith(", after b, c.")


@pytest.mark.parametrize("given", [None, "", float("nan"), 2**53, 10**400, 1j, b"1", "a\n", (1,)])
def test_what_is_no_part_is_refused(given):
    with raises(DeclarationError, parameter="part"):
        check_part(given)


@pytest.mark.full
def test_a_status_is_read_in_another_process_however_many_parts_were_charged():
    ledger = Ledger(budget=PURE, part="week")
    for part in range(1500):
        ledger.charge(of(part, pure(Fraction(part % 7, 10))))
    read = pickle.dumps(ledger.status(part=6))
    show = "import pickle, sys; print(*pickle.load(sys.stdin.buffer).parts.iloc[0])"
    done = subprocess.run([sys.executable, "-c", show], input=read, capture_output=True, check=True)
    assert done.stdout.split()[:2] == [b"0.6", b"0.6"]
    assert ledger.status().used == 0.6
    again = pickle.loads(pickle.dumps(ledger.status()))  # noqa: S301
    assert again.used == 0.6
    assert again.parts.equals(ledger.status().parts)


def test_parts_that_are_equal_have_one_form():
    assert {check_part(one) for one in (1, 1.0, True, "1", np.int8(1), np.float32(1))} == {"1"}
    assert check_part(-0.0) == "0"
    different = [1, 1.5, "1.0", "01", "a", "A"]
    assert len({check_part(one) for one in different}) == len(different)


def test_a_part_needs_a_ledger_by_part(ledger, tmp_path):
    other = Ledger(budget=PURE)
    with raises(DeclarationError, "needs a ledger by part", parameter="part"):
        other.charge(of(1, pure(0.1)))
    with raises(DeclarationError, "needs a ledger by part", parameter="part"):
        other.status(part=1)
    with raises(DeclarationError, "label of a column", parameter="part"):
        Ledger(budget=PURE, part=7)
    if ledger.path:
        with raises(DeclarationError, "must be that of", parameter="part"):
            Ledger(ledger.path, part="month")


def written(part: object, column: object = "week") -> list[Row]:
    """Write a ledger with one entry, whatever part it is of."""
    _, header = Chain.start("x", PURE)
    _, row = Chain.start("x", PURE, "week")[0].with_entry(of(3, pure(0.1)))
    first, second = (
        json.loads(header.body) | {"part": column},
        json.loads(row.body) | {"part": part},
    )
    rows, head = [], _START
    for number, content in enumerate((first, second)):
        body = _canonical(content)
        head = _hash(head, body)
        rows.append(Row(number, body, head))
    return rows


@pytest.mark.parametrize("part", [47, True, ["47"], {}, "", "a\n", "\ud800", "7" * 1000])
def test_rows_of_parts_that_no_ledger_writes_are_refused(part):
    for known in ("47", "\U0003fffd"):  # which another Python may print
        assert Chain.of_rows(written(known), "x").parts.get(known) is not None
    with raises(LedgerError, "entry 1"):
        Chain.of_rows(written(part), "x")


def test_parts_of_a_ledger_without_and_columns_that_are_none_are_refused():
    with raises(LedgerError, "entry 1"):
        Chain.of_rows(written("3", None), "x")
    for column in (7, True, ["week"], {}):
        with raises(LedgerError, "entry 0"):
            Chain.of_rows(written("3", column), "x")


def test_status_shows_a_part_and_all():
    ledger = Ledger(budget=PURE, part="week")
    ledger.charge(of(1, pure(0.5), name="first"))
    ledger.charge(of(2, pure(0.75), name="second"))
    assert "for week='1'" in repr(ledger.status(part=1))
    assert "'second'" not in repr(ledger.status(part=1))
    assert "for every week; what follows fits every one of them" in repr(ledger.status())
    kept = Ledger(budget=Budget(epsilon=1, delta=1e-6, discovery=1e-7), part="week")
    assert "(1e-07 of it to find groups with) for every week;" in repr(kept.status())
    assert "for every week; what follows" in ledger.status()._repr_html_()
    assert "for week=" in ledger.status(part=1)._repr_html_()
    assert list(ledger.status().parts.index) == ["2", "1"]
    assert len(Ledger(budget=PURE).status().parts) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    ("parts", "over_all", "seed"),
    [
        pytest.param(4, 2, 0, marks=pytest.mark.full),
        *(pytest.param(50, 0, seed, marks=pytest.mark.audit) for seed in range(3)),
        *(pytest.param(50, 3, seed, marks=pytest.mark.audit) for seed in range(3)),
    ],
)
def test_processes_never_charge_one_share_too_many(tmp_path, parts, over_all, seed):
    path, share = tmp_path / "x.ledger", Fraction(1, 4)
    Ledger.create(path, budget=PURE, part="week")

    def race(number: int) -> int:
        ledger, draw = Ledger(path), random.Random(f"{seed}-{number}")
        asked = [*range(parts), *[None] * over_all] * 2
        draw.shuffle(asked)
        with (tmp_path / f"told-{number}").open("w") as told:
            for part in asked:
                with suppress(BudgetExceededError):  # also of a share that others made smaller
                    cost = ledger.status(part=part).share(share)
                    made = of(part, PrivacyLoss(epsilon=cost.epsilon), share=share)
                    ledger.charge(made)
                    told.write(f"{made.release_id}\n")
        return 0

    assert in_processes(partial(race, number) for number in range(8)) == [0] * 8
    told = [name for one in tmp_path.glob("told-*") for name in one.read_text().split()]
    ledger = Ledger(path)
    assert sorted(told) == sorted(one.release_id for one in ledger.entries)
    everywhere = sum(one.part is None for one in ledger.entries)
    for part in range(parts):
        own = [one for one in ledger.entries if one.part == str(part)]
        assert len(own) == 4 - everywhere  # all asked for more
        assert state(list(ledger.entries), part, PURE) is not None
        assert ledger.status(part=part).largest_share == 0
