"""What is kept of a privacy unit is capped, uniform, and independent of the other units."""

import itertools
from collections import Counter, defaultdict
from itertools import combinations
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.randomness import SYSTEM

from dpframe.engines import capping
from dpframe.engines.units import Units
from dpframe.privacy import noise
from dpframe.privacy.neighbors import Caps

FALSE_ALARM = 1e-6  # of each chi-square test
UNITS = 20_000

WORDS = {
    "random": noise.random_words,
    "zeros": lambda n, _: np.zeros(n, np.uint64),
    "ones": lambda n, _: np.full(n, 2**64 - 1, np.uint64),
    "some": lambda n, _: np.full(n, 0x9E3779B97F4A7C15, np.uint64),
}

limits = st.none() | st.integers(1, 6)
caps_drawn = st.builds(Caps, limits, limits, limits)
rows_drawn = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=60)


def kept_rows(column, cells, cell_count, caps):
    return Units([column]).choose(cells, cell_count, caps, SYSTEM)


def keep(units, cells, cell_count, caps):
    column = pd.Series(units, dtype="float64").replace(4, np.nan)  # a missing unit
    return kept_rows(column, np.array(cells, np.uint16), cell_count, caps)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("rounds", [0, 1024])
@pytest.mark.parametrize("words", list(WORDS))
@given(rows=rows_drawn, caps=caps_drawn)
@settings(max_examples=60)
def test_caps_hold_whatever_the_random_words_and_no_more_is_dropped(rounds, words, rows, caps):
    units, cells = [u for u, _ in rows], [c for _, c in rows]
    with (
        mock.patch.object(noise, "random_words", WORDS[words]),
        mock.patch.object(capping, "_MOST_ROUNDS", rounds),
    ):
        mask = keep(units, cells, 4, caps)
    most_rows, most_groups, most_each = (
        limit or len(rows) + 1 for limit in (caps.rows, caps.groups, caps.rows_per_group)
    )
    had, has = defaultdict(Counter), defaultdict(Counter)
    for (unit, cell), kept in zip(rows, mask, strict=True):
        if unit != 4 and cell != 4:
            had[unit][cell] += 1
            has[unit][cell] += int(kept)
        else:
            assert not kept
    for unit, before in had.items():
        after = +has[unit]
        assert after.total() <= most_rows
        assert len(after) <= most_groups
        assert max(after.values()) <= most_each
        if after.total() < most_rows:
            assert len(after) == min(len(before), most_groups)
            assert all(after[cell] == min(before[cell], most_each) for cell in after)


@pytest.mark.parametrize("rounds", [0, 1024])
@given(rows=rows_drawn, others=rows_drawn, caps=caps_drawn, data=st.data())
@settings(max_examples=60)
def test_what_a_unit_keeps_depends_on_its_own_rows_and_words(rounds, rows, others, caps, data):
    """With the same word for everyone, other units' rows in between change nothing."""
    mixed = [(u, c, True) for u, c in rows] + [(u + 10, c, False) for u, c in others]
    order = data.draw(st.permutations(range(len(mixed))))
    own = sorted(i for i in order if i < len(rows))
    places = iter(own)  # rows keep their order among themselves
    mixed = [mixed[next(places)] if i < len(rows) else mixed[i] for i in order]
    with (
        mock.patch.object(noise, "random_words", WORDS["some"]),
        mock.patch.object(capping, "_MOST_ROUNDS", rounds),
    ):
        alone = keep([u for u, _ in rows], [c for _, c in rows], 4, caps)
        together = keep([u for u, _, _ in mixed], [c for _, c, _ in mixed], 4, caps)
    assert together[[mine for _, _, mine in mixed]].tolist() == alone.tolist()


def statistic(choices, outcomes):
    """Chi-square statistic of equally likely outcomes, and the limit it passes by chance alone."""
    counts = Counter(map(frozenset, choices))
    observed = [counts.pop(frozenset(outcome), 0) for outcome in outcomes]
    assert not counts
    limit = stats.chi2.isf(FALSE_ALARM, len(observed) - 1)
    return stats.chisquare(observed).statistic, limit


def choices(mask, what):
    """Kept entries of each unit; every unit has the same rows, of all units in turn."""
    return [set(what[row]) for row in mask.reshape(-1, UNITS).T]


@pytest.mark.parametrize("rounds", [0, 1024])
@pytest.mark.parametrize("caps", [Caps(rows=2), Caps(rows_per_group=2)])
def test_rows_are_kept_uniformly(rounds, caps, monkeypatch):
    monkeypatch.setattr(capping, "_MOST_ROUNDS", rounds)
    units, cells = np.tile(np.arange(UNITS), 5), np.zeros(5 * UNITS, np.uint16)
    mask = kept_rows(pd.Series(units), cells, 2, caps)
    pairs = list(combinations(range(5), 2))
    found, limit = statistic(choices(mask, np.arange(5)), pairs)
    assert found < limit
    # the test has the power to see one unit in ten keep its first rows
    mask.reshape(5, UNITS)[:, : UNITS // 10] = np.arange(5)[:, None] < 2
    found, limit = statistic(choices(mask, np.arange(5)), pairs)
    assert found > limit


def test_groups_are_kept_uniformly_however_many_rows_they_have():
    rows = np.array([0, 1, 1, 2, 2, 2, 2, 2, 3, 3])  # cells of a unit
    units, cells = np.tile(np.arange(UNITS), len(rows)), np.repeat(rows, UNITS)
    pairs = list(combinations(range(4), 2))
    mask = kept_rows(pd.Series(units), cells, 4, Caps(groups=2))
    found, limit = statistic(choices(mask, rows), pairs)
    assert found < limit
    # cells of random rows are not random cells
    mask = kept_rows(pd.Series(units), cells, 4, Caps(rows=2))
    two = [choice for choice in choices(mask, rows) if len(choice) == 2]
    found, limit = statistic(two, pairs)
    assert found > limit


def test_without_the_stages_that_are_skipped_units_keep_no_more():
    def allowed(caps, cells):
        return {
            filled
            for filled in itertools.product(range(5), repeat=cells)
            if sum(filled) <= (caps.rows or 99)
            and sum(map(bool, filled)) <= (caps.groups or 99)
            and max(filled) <= (caps.rows_per_group or 99)
        }

    for cells, *limits in itertools.product(
        (1, 2, 3), (None, *range(1, 7)), (None, *range(1, 5)), (None, *range(1, 5))
    ):
        caps = Caps(*limits)
        assert allowed(capping.binding(caps, cells), cells) == allowed(caps, cells), (caps, cells)


@given(rows=rows_drawn, caps=caps_drawn)
def test_units_under_every_cap_are_left_alone_and_the_others_keep_the_same(rows, caps):
    """With the same word for everyone, it does not matter which units are put in order."""
    units, cells = [u for u, _ in rows], [c for _, c in rows]
    masks = []
    for part in (0, 1):
        with (
            mock.patch.object(noise, "random_words", WORDS["some"]),
            mock.patch.object(capping, "_MOST_LARGE", part),
        ):
            masks.append(keep(units, cells, 4, caps).tolist())
    assert masks[0] == masks[1]


def test_many_rows_of_one_unit():
    n = 50_000
    cells = np.arange(n) % 10
    for caps, total in [(Caps(rows=1025), 1025), (Caps(rows_per_group=2000), 20_000)]:
        mask = kept_rows(pd.Series(np.zeros(n)), cells, 10, caps)
        assert mask.sum() == total
        assert np.bincount(cells[mask]).max() <= (caps.rows_per_group or n)
