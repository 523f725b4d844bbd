"""Selected quantiles: their exact law, and how far neighbors move it, by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.raising import raises
from support.randomness import SYSTEM
from support.selecting import Ratios, added, flipped, law_of, tables, utilities

from dpframe.errors import CalibrationError
from dpframe.privacy import selection
from dpframe.privacy.neighbors import Caps
from dpframe.privacy.selection import bins_of, geometric, select_parts, selection_of, steps_of
from dpframe.privacy.sensitivity import Reach, reach_of

ROW = Reach(1, 1, 0, 1)
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
FALSE_ALARM = 1e-7
W = Fraction(4, 5)
SEVERAL = [Fraction(1, 10), Fraction(1, 4), HALF, Fraction(3, 5), Fraction(9, 10)]


def select(counts, selection, parts):
    """Select bins."""
    return bins_of(select_parts(counts, selection, parts, SYSTEM), parts)


def rejected(observed, law):
    """Whether so many draws of each outcome are too unlikely under a law."""
    expected = np.array([float(law[outcome]) for outcome in law]) * observed.sum()
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    expected = expected * (observed.sum() / expected.sum())  # to the last bit
    return stats.chisquare(observed, expected).pvalue < FALSE_ALARM


def drawn(table, made, parts, law, draws):
    """Count how often each outcome of a law is selected."""
    found = select(np.tile(table, (draws, 1)), made, np.array(parts))
    values, counts = np.unique(found, axis=0, return_counts=True)
    seen = {tuple(value): n for value, n in zip(values.tolist(), counts, strict=True)}
    assert seen.keys() <= law.keys()
    return np.array([seen.get(outcome, 0) for outcome in law])


def weight(steps, reach, neighboring):
    return selection._weight(tuple(steps), reach, neighboring)


# ---------------------------------------------------------------- the law


def test_a_geometric_number_has_its_law():
    for scale in (0.4, 3.7, 200.0):
        q = math.exp(-1 / scale)
        numbers = geometric(scale, 200_000, SYSTEM)
        law = {g: (1 - q) * q**g for g in range(math.ceil(12 * scale))}
        law[len(law)] = 1 - sum(law.values())
        seen = np.bincount(np.minimum(numbers, len(law) - 1), minlength=len(law))
        assert not rejected(seen, law)
        off = math.exp(-1 / (1.05 * scale))
        wrong = {g: (1 - off) * off**g for g in range(len(law) - 1)}
        wrong[len(wrong)] = 1 - sum(wrong.values())
        assert rejected(seen, wrong)


def test_permute_and_flip_is_what_its_definition_says():
    """The integral over places agrees with the sum over all orders."""
    q, u = Fraction(2, 3), [-1, 0, -4, 0]
    by_order = [Fraction(0)] * len(u)
    for order in itertools.permutations(range(len(u))):
        left = Fraction(1, math.factorial(len(u)))
        for k in order:
            by_order[k] += left * q ** -u[k]
            left *= 1 - q ** -u[k]
    assert flipped(u, q) == by_order


@pytest.mark.parametrize(
    ("quantiles", "table", "parts"),
    [
        ([HALF], (3, 0, 1, 2, 0, 4), (1, 1, 1, 1, 1, 1)),
        ([Fraction(1, 10)], (3, 0, 1, 2, 0, 4), (1, 1, 1, 1, 1, 1)),
        ([THIRD, HALF, Fraction(4, 5)], (6, 0, 2, 3), (2, 1, 1, 2)),
        ([Fraction(1, 4), HALF], (1, 7, 2), (1, 4, 1)),
    ],
)
def test_bins_are_selected_with_exactly_the_law_of_permute_and_flip(quantiles, table, parts):
    made = selection_of(quantiles, Fraction(1), ROW, "add_remove")
    scale = 2 * math.lcm(*(step.most_moved for step in made.steps))
    each = Fraction(1, made.levels)
    law = law_of(table, made.steps, scale, Fraction(math.exp(-each / scale)), parts)
    assert sum(law.values()) == 1
    seen = drawn(table, made, parts, law, 40_000)
    assert not rejected(seen, law)
    off = law_of(table, made.steps, scale, Fraction(math.exp(-each * 1.15 / scale)), parts)
    assert rejected(seen, off)


def test_bins_that_are_alike_are_selected_alike():
    made = selection_of([HALF], Fraction(1), ROW, "add_remove")
    found = select(np.zeros((60_000, 3), np.int64), made, np.ones(3, np.int64))[:, 0]
    assert not rejected(np.bincount(found, minlength=3), dict.fromkeys(range(3), THIRD))


def test_numbers_below_a_limit_are_even():
    drawn = selection._below(np.full(70_000, 7), SYSTEM)
    assert not rejected(np.bincount(drawn, minlength=7), dict.fromkeys(range(7), Fraction(1, 7)))
    assert set(selection._below(np.ones(5, np.int64), SYSTEM)) == {0}


def test_words_that_would_favor_small_numbers_are_drawn_again(monkeypatch):
    words = iter([[2**64 - 1, 5], [4]])  # 2**64 - 1 is a multiple of 3
    monkeypatch.setattr(
        selection, "random_words", lambda n, _: np.array(next(words), np.uint64)[:n]
    )
    assert selection._below(np.array([3, 3]), SYSTEM).tolist() == [1, 2]


# ---------------------------------------------------------------- what is selected


def test_with_much_epsilon_quantiles_are_those_of_the_rows():
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 40, (30, 999))
    counts = np.stack([np.bincount(row, minlength=40) for row in rows])
    made = selection_of(SEVERAL, Fraction(10**7), ROW, "add_remove")
    found = select(counts, made, np.full(40, 997))
    for k, quantile in enumerate(SEVERAL):
        wanted = np.quantile(rows, float(quantile), axis=1, method="inverted_cdf")
        assert (found[:, k] == wanted).all()


def test_rows_that_share_a_value_do_not_spoil_the_quantiles_beside_it():
    """Most rows are in one bin: without parts it would be cut at its ends alone."""
    counts = np.array([[1000, 6000, 500, 1000, 1500]])
    wanted = [0, 1, 1, 2, 4]
    levels = [Fraction(n, 20) for n in (1, 4, 12, 15, 18)]
    made = selection_of(levels, Fraction(10**6), ROW, "add_remove")
    assert select(counts, made, np.full(5, 1000)).tolist() == [wanted]
    assert select(counts, made, np.ones(5, np.int64)).tolist() != [wanted]


def test_quantiles_do_not_decrease_and_groups_do_not_mix(monkeypatch):
    monkeypatch.setattr(selection, "_MOST_ITEMS", 100)  # two groups at a time
    counts = np.zeros((5, 40), np.int64)
    counts[np.arange(5), [3, 30, 7, 22, 39]] = 400
    made = selection_of(SEVERAL, Fraction(1000), ROW, "add_remove")
    found = select(counts, made, np.ones(40, np.int64))
    assert (np.diff(found, axis=1) >= 0).all()
    assert found[:, 2].tolist() == [3, 30, 7, 22, 39]


def test_steps_halve_the_quantiles_that_are_left():
    for k in range(1, 10):
        quantiles = [Fraction(n, k + 1) for n in range(1, k + 1)]
        made = selection_of(quantiles, Fraction(1), ROW, "add_remove")
        assert made.levels == math.ceil(math.log2(k + 1))
        assert sorted(step.at for step in made.steps) == list(range(k))


def test_noise_that_would_hide_everything_is_refused():
    with raises(CalibrationError, "larger epsilon", parameter="epsilon"):
        selection_of([HALF], Fraction(1, 2**52), ROW, "add_remove")


# ---------------------------------------------------------------- how far neighbors move it


@pytest.mark.parametrize(
    ("reach", "neighboring", "first", "later"),
    [
        (ROW, "add_remove", 1, 1),
        (Reach(3, 2, 1, 9), "add_remove", 7, 7),
        (Reach(3, 2, 1, 9), "replace", 14, 14),
        (ROW, "replace", Fraction(10, 9), 2),  # of the ninth tenth, which is the middle one
    ],
)
def test_scales_of_every_level_are_the_least_floats_that_keep_epsilon(
    reach, neighboring, first, later
):
    quantiles = [Fraction(1, 4), THIRD, Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)]
    for epsilon in (Fraction(1), Fraction(1, 3), Fraction(7, 10**9)):
        made = selection_of(quantiles, epsilon, reach, neighboring)
        assert made.levels == 3
        for step, scale in zip(made.steps, made.scales, strict=True):
            least = 2 * max(step.a, step.b - step.a) * (first + 2 * later) / epsilon
            assert Fraction(math.nextafter(scale, 0)) < least <= Fraction(scale)


def losses(quantiles, parts, units, rests, neighboring):
    """Largest ratio over all neighbors: a unit beside some rest, in groups of bins."""
    steps = tuple(steps_of(quantiles))
    scale = 2 * math.lcm(*(step.most_moved for step in steps))
    ratios = Ratios(steps, scale, W, parts)
    nobody = (tuple([0] * len(parts)),) * len(units[0])
    others = [nobody] if neighboring == "add_remove" else [*units, nobody]
    worst = {
        (mine, theirs): max(
            max(
                ratios.between(added(rest, mine), added(rest, theirs)),
                ratios.between(added(rest, theirs), added(rest, mine)),
            )
            for rest in rests
        )
        for mine in {table for unit in units for table in unit}
        for theirs in {table for unit in others for table in unit}
    }
    far = max(
        math.prod(worst[pair] for pair in zip(unit, other, strict=True))
        for unit in units
        for other in others
    )
    return scale, far


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("parts", [(1, 1, 1, 1), (2, 1, 3)])
@pytest.mark.parametrize(
    "quantiles", [[HALF], [Fraction(1, 10)], [Fraction(1, 4), HALF, Fraction(2, 3)]]
)
def test_no_neighbors_of_one_group_are_further_apart_than_is_charged(quantiles, parts, neighboring):
    """In rational arithmetic: no ratio is above `W^-(L weight)`, L standing for a level's loss."""
    for most in (1, 2):
        units = [(table,) for table in tables(len(parts), most)]
        rests = list(tables(len(parts), 2))
        scale, far = losses(quantiles, parts, units, rests, neighboring)
        allowed = scale * weight(steps_of(quantiles), Reach(1, most, 0, 1), neighboring)
        assert allowed.denominator == 1
        assert 1 < far <= W**-allowed.numerator


@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "caps",
    [
        Caps(rows=2),
        Caps(rows=3, groups=2, rows_per_group=2),
        Caps(groups=1, rows_per_group=2),
        Caps(rows=2, groups=2, rows_per_group=1),
    ],
)
def test_no_neighbors_under_caps_are_further_apart_than_is_charged(caps, neighboring):
    groups, parts = 2, (1, 1, 1)
    units = [
        unit
        for unit in itertools.product(tables(3, 3), repeat=groups)
        if sum(map(sum, unit)) <= (caps.rows or 99)
        and max(map(sum, unit)) <= (caps.rows_per_group or 99)
        and sum(map(any, unit)) <= (caps.groups or 99)
    ]
    reach = reach_of(caps, groups)
    for quantiles in ([HALF], [THIRD, HALF]):
        scale, far = losses(quantiles, parts, units, list(tables(3, 2)), neighboring)
        allowed = scale * weight(steps_of(quantiles), reach, neighboring)
        assert allowed.denominator == 1
        assert 1 < far <= W**-allowed.numerator


@pytest.mark.parametrize(
    ("caps", "neighboring", "wanted"),
    [
        (Caps(rows=7, groups=5, rows_per_group=2), "add_remove", 7),
        (Caps(groups=3, rows_per_group=2), "add_remove", 6),
        (Caps(rows=7, groups=5, rows_per_group=2), "replace", 14),
    ],
)
def test_a_unit_costs_what_its_rows_cost(caps, neighboring, wanted):
    reach = reach_of(caps, 100)
    assert weight(steps_of([Fraction(1, 10)]), reach, neighboring) == wanted
    nine = [Fraction(k, 10) for k in range(1, 10)]
    assert weight(steps_of(nine), reach, neighboring) == 4 * wanted


def test_where_rows_never_leave_a_replaced_one_moves_less():
    always = Reach(1, 1, 0, 1, always=True)
    quantile = [Fraction(1, 10)]
    assert weight(steps_of(quantile), always, "replace") == Fraction(10, 9)
    assert weight(steps_of(quantile), ROW, "replace") == Fraction(10, 9)
    assert weight(steps_of(quantile), reach_of(Caps(1, 1, 1), 2), "replace") == 2
    assert weight(steps_of([HALF]), ROW, "replace") == 2


def log_law(u, scale):
    """The law of permute-and-flip in floats, for many bins."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x = ((nodes + 1) / 2) ** 4  # most of it is near 0
    w = weights / 2 * 4 * ((nodes + 1) / 2) ** 3
    p = np.exp(u / scale)
    kinds, size = np.unique(p, return_counts=True)
    rest = (size * np.log1p(-np.outer(x, kinds))).sum(axis=1)
    law = np.array([own * (w * np.exp(rest - np.log1p(-x * own))).sum() for own in kinds])
    return dict(zip(kinds, law, strict=True)), p


@pytest.mark.parametrize(
    ("a", "b", "rows", "replaced"), [(1, 2, 2, False), (1, 2, 2, True), (9, 10, 9, False)]
)
def test_with_many_bins_what_is_charged_is_nearly_reached(a, b, rows, replaced):
    """A row far above the quantile is added, or one far below it goes there: 16,384 bins."""
    bins, loss = 16_384, 1.0
    scale = (2 * b if replaced else 2 * max(a, b - a)) / loss
    before = np.zeros(bins, np.int64)
    before[bins - 5] = rows
    before[0] = int(replaced)
    after = before.copy()
    after[bins - 1] += 1
    after[0] = 0
    u, v = (utilities_of(counts, a, b) for counts in (before, after))
    one, p = log_law(u, scale)
    other, q = log_law(v, scale)
    ratios = [abs(math.log(one[own] / other[moved])) for own, moved in {*zip(p, q, strict=True)}]
    assert 0.97 * loss < max(ratios) < loss * (1 + 1e-9)


def utilities_of(rows, a, b):
    ends = np.concatenate([[0], np.cumsum(rows)])
    total = ends[-1]
    return -np.maximum(np.maximum(b * ends[:-1] - a * total, a * total - b * ends[1:]), 0)


def test_utilities_are_the_same_in_both_forms():
    for table in tables(4, 3):
        assert utilities_of(np.array(table), 2, 5).tolist() == utilities(table, 2, 5)
