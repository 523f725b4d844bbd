"""The threshold of labels: exact beside brute force over neighboring histograms, and the least."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.histograms import (
    beyond,
    charged,
    counted,
    excess_of,
    found_in_rounds,
    hockey_sticks,
    of_mu,
    published,
    worst_pair,
)
from support.raising import raises

from dpframe.checker.rounds import LabelRound, require_together
from dpframe.errors import CalibrationError, PlanCheckError
from dpframe.privacy import threshold
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.threshold import (
    ROUND_PARTS,
    UNIT_WEIGHT,
    LabelThreshold,
    best_split,
    counts_moved,
    delta_together,
    extra_delta,
    set_threshold_of,
    threshold_alone,
    threshold_of,
    weights_of,
)

BOTH = ["add_remove", "replace"]
EPSILONS = [0.0, 0.05, 0.2, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0]
ROUNDING = 1 + 1e-9  # of sums of products of floats
CASES = [
    (LAPLACE, 1.0, 6, 1, "add_remove"),
    (LAPLACE, 1.0, 3, 1, "add_remove"),
    (LAPLACE, 1.0, 2, 1, "add_remove"),
    (LAPLACE, 2.0, 9, 2, "add_remove"),
    (LAPLACE, 0.7, 5, 3, "add_remove"),
    (LAPLACE, 2.0, 6, 1, "replace"),
    (LAPLACE, 1.0, 5, 2, "replace"),
    (GAUSSIAN, 2.0, 6, 1, "add_remove"),
    (GAUSSIAN, 0.7, 3, 1, "add_remove"),
    (GAUSSIAN, 2.0, 9, 2, "add_remove"),
    (GAUSSIAN, 1.5, 4, 3, "add_remove"),
    (GAUSSIAN, 2.0, 6, 1, "replace"),
    (GAUSSIAN, 1.0, 4, 2, "replace"),
]


def loss(law, scale, labels, neighboring):
    return counts_moved(labels, neighboring) / Fraction(scale) ** law.norm


@pytest.mark.parametrize("case", CASES, ids=str)
def test_labels_and_counts_together_keep_what_is_charged_at_every_epsilon(case):
    law, scale, least, labels, neighboring = case
    extra = float(extra_delta(law, scale, least, labels))
    bound = charged(law, loss(law, scale, labels, neighboring), extra, EPSILONS)
    worst = worst_pair(case, EPSILONS)
    assert (worst <= bound * ROUNDING).all()
    assert (worst > 0.3 * np.minimum(bound, extra)).all()  # what is compared is of one size


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_lower_fails(case):
    law, scale, least, labels, neighboring = case
    extra = float(extra_delta(law, scale, least, labels))
    bound = charged(law, loss(law, scale, labels, neighboring), extra, EPSILONS)
    worst = worst_pair((law, scale, least - 1, labels, neighboring), EPSILONS)
    assert (worst > bound).any()


@pytest.mark.parametrize("case", [one for one in CASES if one[0] is LAPLACE], ids=str)
def test_laplace_noise_loses_exactly_its_epsilon_and_the_extra_delta(case):
    law, scale, least, labels, neighboring = case
    (worst,) = worst_pair(case, [float(loss(law, scale, labels, neighboring))])
    kept = 1 - beyond(law, scale, least - 1)
    if kept >= math.exp(-1 / scale):
        assert worst == pytest.approx(float(1 - kept**labels), rel=1e-9)


def composed_cases():
    scales = itertools.product(((1.0, 3), (2.0, 5)), ((0.7, 2), (3.0, 9)), (1.0, 2.5))
    return list(itertools.product(scales, itertools.product((1, 2, 4), repeat=2)))


@pytest.mark.parametrize("laws", [(GAUSSIAN, GAUSSIAN), (LAPLACE, GAUSSIAN)], ids=str)
def test_two_discoveries_and_a_count_compose_as_charged(laws):
    ratios = []
    for ((s1, t1), (s2, t2), s3), (n1, n2) in composed_cases():
        specs = [(laws[0], s1, t1, n1), (laws[1], s2, t2, n2)]
        now, then = (
            [
                *(
                    published(law, s, t, n - less, t + n + math.ceil(7 * s))
                    for law, s, t, n in specs
                ),
                counted(GAUSSIAN, s3, 30 - less, 30 - math.ceil(7 * s3), 30 + math.ceil(7 * s3)),
            ]
            for less in (0, 1)
        )
        extra = sum(float(extra_delta(law, s, t, 1)) for law, s, t, _ in specs)
        epsilons = [0.0, 0.3, 1.0, 2.0, 4.0]
        found = np.maximum(hockey_sticks(now, then, epsilons), hockey_sticks(then, now, epsilons))
        pure = sum(1 / s for law, s, *_ in specs if law is LAPLACE)
        mu = math.sqrt(sum(s**-2 for law, s, *_ in specs if law is GAUSSIAN) + s3**-2)
        # a pure loss moves all log-ratios by at most its epsilon
        bound = np.array([min(extra + of_mu(mu, epsilon - pure), 1.0) for epsilon in epsilons])
        assert (found <= bound * ROUNDING).all()
        ratios += list(found / bound)
    assert 0.5 < max(ratios) <= 1


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.2246, 42.4, 1e6])
def test_tails_are_right_to_the_margin(law, scale):
    far = math.ceil(scale * (600 if law is LAPLACE else 35))
    ms = sorted({-far, -3, -1, 0, 1, 2, 7, far // 9, far // 2, far})
    for m, tail in zip(ms, law.at_least(scale, np.array(ms)), strict=True):
        exact = beyond(law, scale, m)
        assert (
            abs(mpmath.mpf(float(tail)) / exact - 1) < 2.0**-39 if exact > 1e-300 else tail < 1e-299
        )


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_the_extra_delta_is_at_the_private_side_and_tight(law):
    for scale, least, labels in itertools.product([1.0, 9.5], [2, 5, 30], [1, 3, 1000]):
        with mpmath.workdps(250):
            exact = 1 - (1 - beyond(law, scale, least - 1)) ** labels
            found = extra_delta(law, scale, least, labels)
            found = mpmath.mpf(found.numerator) / found.denominator
            assert exact <= found <= exact * (1 + 1e-9) + mpmath.mpf("1e-300")


BEST = {1: 15, 2: 30, 3: 39.576, 5: 51.72, 10: 74.472, 100: 250.688}
TENTH = {1: 17, 2: 32.992, 3: 40.72, 5: 53.144, 10: 76.368, 100: 255.688}
REPLACED = {1: 28, 2: 44.872, 3: 55.552, 5: 72.728, 10: 104.896, 100: 354.112}


def least_of(labels, neighboring, most):
    delta = Fraction(1, 10**6)
    found = [
        best_split(
            law, Fraction(1), delta, labels=labels, neighboring=neighboring, most=delta * most
        )
        for law in (LAPLACE, GAUSSIAN)
    ]
    return min(one.least_units for one in found)


@pytest.mark.parametrize("labels", BEST)
def test_thresholds_at_the_best_part_of_delta(labels):
    assert least_of(labels, "add_remove", Fraction(1)) == BEST[labels]
    assert least_of(labels, "replace", Fraction(1)) == REPLACED[labels]


@pytest.mark.parametrize("labels", TENTH)
def test_thresholds_with_a_tenth_of_delta(labels):
    assert least_of(labels, "add_remove", Fraction(1, 10)) == TENTH[labels]


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
def test_scale_and_threshold_are_the_least_that_keep_the_amounts(law, neighboring):
    for allowed, delta, labels in itertools.product(
        [Fraction(1), Fraction(1, 17)], [Fraction(1, 10**6), Fraction(1, 3)], [1, 7]
    ):
        found = threshold_of(law, allowed, delta, labels, neighboring)
        (parts,) = found.weights
        assert parts % 2 == 1  # for no part to be half of a unit
        unit = parts**law.norm
        assert loss(law, found.scale, labels, neighboring) * unit <= allowed
        assert loss(law, found.scale * (1 - 1e-15), labels, neighboring) * unit > allowed
        assert found.extra_delta <= delta
        one_lower = extra_delta(law, found.scale, found.least - 1, labels, found.weights)
        assert found.least == parts + 1 or one_lower > delta


ALONE = {1: 21.088, 2: 30.232, 3: 37.384, 5: 48.896, 10: 70.472, 100: 238.096}
ALONE_REPLACED = {1: 29.408, 2: 42.336, 3: 52.448, 5: 68.728, 10: 99.24, 100: 336.304}
WIDE = [
    (1, 0.05, 1, "add_remove"),
    (1, 0.05, 2, "add_remove"),
    (2, 0.02, 3, "add_remove"),
    (1, 0.05, 1, "replace"),
]
"""Amounts that brute force can follow."""


@pytest.mark.parametrize("labels", ALONE)
def test_thresholds_of_gaussian_noise_alone(labels):
    amounts = Fraction(1), Fraction(1, 10**6), labels
    assert threshold_alone(GAUSSIAN, *amounts, "add_remove").least_units == ALONE[labels]
    assert threshold_alone(GAUSSIAN, *amounts, "replace").least_units == ALONE_REPLACED[labels]


@pytest.mark.parametrize("case", WIDE, ids=str)
def test_counts_and_labels_alone_keep_delta_and_with_one_lower_do_not(case, monkeypatch):
    epsilon, delta, labels, neighboring = case
    monkeypatch.setattr(threshold, "_PARTS_OF_UNIT", 3)  # of more, there are too many outcomes
    found = threshold_alone(GAUSSIAN, Fraction(epsilon), Fraction(delta), labels, neighboring)
    kept, lower = (
        worst_pair((GAUSSIAN, found.scale, least, labels, neighboring), [epsilon], 3)[0]
        for least in (found.least, found.least - 3)
    )
    assert 0.5 * delta < kept <= delta < lower


def integrated(found, neighboring, epsilon):
    """Integrate the excess of the laws of numbers and labels, over all units, on a grid."""
    kept = float(1 - beyond(GAUSSIAN, found.scale, found.least - found.weights[0]))
    most = range(found.labels + 1)
    replaced = neighboring == "replace"
    pairs = [(a, b) for a in most for b in most if replaced or not (a and b)]
    worst = 0.0
    for a, b in pairs:
        moved = counts_moved(found.labels, neighboring) - a - b
        mu = math.sqrt(moved) / found.sigma
        z = np.linspace(-9, 9 + mu, 100_001)
        density, other = (np.exp(-((z - at) ** 2) / 2) / math.sqrt(2 * math.pi) for at in (mu, 0))
        above = np.maximum(kept**a * density - math.exp(epsilon) * kept**b * other, 0)
        worst = max(worst, 1 - kept**a + float(np.trapezoid(above, z)))
    return worst


@pytest.mark.parametrize("neighboring", BOTH)
@pytest.mark.parametrize("labels", [1, 3, 7])
def test_the_bound_of_counts_and_labels_is_their_integral(labels, neighboring):
    found = threshold_alone(GAUSSIAN, Fraction(1), Fraction(1, 10**6), labels, neighboring)
    for least in (found.least, found.least - 1):
        exact = integrated(replace(found, least=least), neighboring, 1.0)
        # the scale alone keeps delta to 1 in 10^9
        bound = max(delta_together(replace(found, least=least), neighboring, 1.0), 1e-6)
        assert exact * (1 - 1e-6) <= bound <= exact * (1 + 1e-4)


@pytest.mark.parametrize("neighboring", BOTH)
@pytest.mark.parametrize("labels", [1, 4, 100])
def test_the_check_refuses_a_threshold_one_lower_and_a_scale_a_part_smaller(labels, neighboring):
    amounts = Fraction(1), Fraction(1, 10**6)
    found = threshold_alone(GAUSSIAN, *amounts, labels, neighboring)
    weights = {labels: found.weights[0]}
    require_together(LabelRound(GAUSSIAN, found.scale, found.least, weights), neighboring, *amounts)
    for scale, least in ((found.scale, found.least - 1), (found.scale * 0.99, found.least)):
        with raises(PlanCheckError, "numbers and labels keep delta"):
            require_together(LabelRound(GAUSSIAN, scale, least, weights), neighboring, *amounts)


def test_the_size_published_is_the_smallest():
    found = LabelThreshold(GAUSSIAN, 13.4, 75, 10, Fraction(1))
    for probability in (0.05, 0.5, 0.95):
        size = found.size_published(probability)
        chances = [float(beyond(GAUSSIAN, 13.4, 75 - n)) for n in (size - 1, size)]
        assert chances[0] < probability <= chances[1]


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_the_least_extra_deltas(law):
    delta = Fraction(6, 2**1000)
    found = threshold_of(law, Fraction(1), delta, 3, "add_remove")
    assert 0 < found.extra_delta <= delta
    with raises(CalibrationError, "extra delta"):
        threshold_of(law, Fraction(1), delta / 2, 3, "add_remove")


def test_noise_that_no_count_can_bear_is_refused():
    with raises(CalibrationError, "max_groups"):
        threshold_of(LAPLACE, Fraction(1, 2**51), Fraction(1, 100), 1, "add_remove")


# Sets: labels in rounds, by weights -------------------------------------------------------------

SETS = [(law, k, relation) for law in (LAPLACE, GAUSSIAN) for k in (1, 2) for relation in BOTH]
OWN = [set(some) for n in range(4) for some in itertools.combinations("abc", n)]
"""Labels of the unit that differs."""
AMOUNT = Fraction(3, 2)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_weights_of_a_unit_add_up_to_no_more_than_that_of_one_label_and_hardly_less(law):
    weights = weights_of(law, 1000)
    assert weights[0] == UNIT_WEIGHT and len(set(weights)) == 1000
    for m, weight in enumerate(weights, 1):
        assert m * weight**law.norm <= UNIT_WEIGHT**law.norm < m * (weight + 1) ** law.norm


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
@pytest.mark.parametrize("neighboring", BOTH)
def test_no_pair_of_units_moves_more_weight_than_the_scale_is_for(law, neighboring):
    weights, allowed = weights_of(law, 3), Fraction(2, 7)
    found = threshold_of(law, allowed, Fraction(1, 100), 3, neighboring, weights=weights)
    kept = [set(some) for n in range(4) for some in itertools.combinations("abcde", n)]
    moved = set()
    for one, other in itertools.product(kept, kept if neighboring == "replace" else [set()]):
        sums = [{x: weights[len(own) - 1] for x in own} for own in (one, other)]
        steps = [abs(sums[0].get(x, 0) - sums[1].get(x, 0)) for x in one | other]
        moved.add(sum(Fraction(step) ** law.norm for step in steps))
    spent = max(moved) / Fraction(found.scale) ** law.norm
    assert allowed * (1 - Fraction(1, 10**12)) < spent <= allowed


def small_set(law, labels, neighboring, **fault):
    """Find a set with a large delta, so that what goes wrong is seen."""
    found = set_threshold_of(law, AMOUNT, Fraction(1, 10), labels, neighboring)
    rounds = [replace(one, before=(), **fault) for one in found.rounds]
    return rounds, float(found.loss.delta)


def worst_of_sets(law, labels, neighboring, rounds):
    """Largest hockey sticks of neighbors with few others, up to the threshold of the last round."""
    many = [{"a"}] * (rounds[-1].least // UNIT_WEIGHT)
    others = [[], [{"a"}], many, [{"a", "b"}, *many[1:]]]
    pairs = [(own, set()) for own in OWN if own]
    if neighboring == "replace":
        pairs += [(one, two) for one, two in itertools.combinations(OWN[1:], 2) if one != two]
    worst = np.zeros(len(EPSILONS))
    for rest, (one, two) in itertools.product(others, pairs):
        laws = [found_in_rounds(rounds, [*rest, own]) for own in (one, two)]
        for first, second in (laws, laws[::-1]):
            worst = np.maximum(worst, excess_of(first, second, EPSILONS))
    return worst


@pytest.mark.parametrize("case", SETS, ids=str)
def test_rounds_together_keep_what_is_charged_at_every_epsilon(case):
    rounds, extra = small_set(*case)
    bound = charged(case[0], AMOUNT, extra, EPSILONS)
    worst = worst_of_sets(*case, rounds)
    assert (worst <= bound * ROUNDING).all()
    assert (worst > 0.5 * np.minimum(bound, extra)).all()


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_thresholds_that_ignore_how_many_labels_a_unit_has_fail(law):
    case = law, 3, "add_remove"
    rounds, extra = small_set(*case)
    alone = [
        threshold_of(
            law, one.allowed, Fraction(1, 10) * part, 1, "add_remove", weights=(UNIT_WEIGHT,)
        )
        for one, part in zip(rounds, ROUND_PARTS, strict=True)
    ]
    low = [replace(one, least=a.least) for one, a in zip(rounds, alone, strict=True)]
    worst = worst_of_sets(*case, low)
    assert worst[-1] > extra


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
def test_a_weight_of_1_for_every_label_fails(law):
    case = law, 3, "add_remove"
    rounds, extra = small_set(*case, weights=(UNIT_WEIGHT,) * 3)
    bound = charged(law, AMOUNT, extra, EPSILONS)
    assert (worst_of_sets(*case, rounds) > bound).any()


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
@pytest.mark.parametrize("neighboring", BOTH)
def test_thresholds_of_rounds_are_the_least_for_the_worst_number_of_labels(law, neighboring):
    total = Fraction(1, 10**6)
    found = set_threshold_of(law, Fraction(1, 20), total, 5, neighboring)
    assert found.loss.delta <= total and [one.before for one in found.before] == [(), ()]
    assert found.loss.epsilon + found.loss.mu_squared == Fraction(1, 20)
    for own, part in zip(found.rounds, ROUND_PARTS, strict=True):
        with mpmath.workdps(40):
            chances = [
                1 - (1 - beyond(law, own.scale, own.least - lower - w)) ** m
                for lower in (0, 1)
                for m, w in enumerate(own.weights, 1)
            ]
        assert max(chances[:5]) <= total * part * (1 + 1e-9)
        assert max(chances[5:]) > total * part * (1 - 1e-6)
        assert own.extra_delta <= total * part
