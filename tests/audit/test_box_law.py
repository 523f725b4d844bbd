"""The joint law of noise in a box: chi-square tests that accept it, and reject planted faults.

Each assertion raises a false alarm with probability `FALSE_ALARM`. Fewer than 100 of them run in an
audit: fewer than one audit in 10,000 fails by chance.
"""

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from support.boxes import chances, deviations, joint_test, neighbors_test
from support.randomness import SYSTEM

from dpframe.privacy import box, noise
from dpframe.privacy.laws import BOX

FALSE_ALARM = 1e-6
audit = pytest.mark.audit

JOINT = {
    "D = 2": ((1.0, 3.0), (20, 60)),
    "D = 2, wider": ((4.0, 10.0), (60, 150)),
    "D = 3, below 1": ((0.3, 0.7, 0.2), (6, 14, 4)),
    "D = 4": ((1.0, 0.5, 2.0, 1.5), (6, 4, 12, 9)),
    "D = 9, sorted": ((0.1,) * 9, (1,) * 9),
}


@pytest.mark.parametrize("name", JOINT)
def test_a_million_draws_have_the_joint_law(name):
    scales, last = JOINT[name]
    assert joint_test(scales, last, 10**6) > FALSE_ALARM


@audit
@pytest.mark.parametrize("name", JOINT)
def test_ten_million_draws_have_the_joint_law(name):
    scales, last = JOINT[name]
    p_value = joint_test(scales, last, 10**7)
    print(f"{name}, scales {scales}: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM


def other_scale(factor):
    def draw(scales, size, context):
        return box.box_noise([factor * scale for scale in scales], size, context)

    return draw


def radius_of_each_coordinate(scales, size, context):
    """Every coordinate from a cell of its own: each has the right law."""
    return [box.box_noise(scales, size, context)[k] for k in range(len(scales))]


def one_exponential_too_few(patch):
    added_up = box._added_up
    patch.setattr(
        box, "_added_up", lambda parts: added_up(parts * (np.arange(len(parts)) > 0)[:, None])
    )


def sizes_in_order(patch):
    def in_order(members, cells, context):
        return np.arange(members * cells).reshape(members, cells)

    patch.setattr(box, "_places", in_order)


def sign_of_the_first(patch):
    drawn = box._exponentials

    def shared(size, context):
        found = drawn(size, context)
        return found._replace(sign=np.tile(found.sign[:1], size))

    patch.setattr(box, "_exponentials", shared)


FAULTS = {
    "one exponential too few": one_exponential_too_few,
    "sizes are handed out in order": sizes_in_order,
    "all signs are the same": sign_of_the_first,
}
DRAWN = {
    "a scale 2 % below": other_scale(0.98),
    "a scale 2 % above": other_scale(1.02),
    "a radius that is not shared": radius_of_each_coordinate,
}
FAULTY = ["D = 2", "D = 4"]


@pytest.mark.full
@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("fault", DRAWN)
def test_another_law_is_rejected(fault, name):
    scales, last = JOINT[name]
    p_value = joint_test(scales, last, 2 * 10**6, DRAWN[fault])
    print(f"{name}, {fault}: p = {p_value:.1e}")
    assert p_value < FALSE_ALARM


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_caught(fault, name, monkeypatch):
    FAULTS[fault](monkeypatch)
    scales, last = JOINT[name]
    p_value = joint_test(scales, last, 10**6)
    print(f"{name}, {fault}: p = {p_value:.1e}")
    assert p_value < FALSE_ALARM


def test_cells_are_independent():
    assert neighbors_test((3.0, 5.0), 10**6) > FALSE_ALARM


def test_a_radius_that_comes_again_is_caught(monkeypatch):
    drawn = box._exponentials

    def twice(size, context):
        found = drawn(size, context)
        again = [part.reshape(2, -1, 2)[:, :, :1].repeat(2, 2).ravel() for part in found[:2]]
        return found._replace(high=again[0], low=again[1])

    monkeypatch.setattr(box, "_exponentials", twice)

    def every_second(scales, draws, context):
        return [cells[::2] for cells in box.box_noise(scales, 2 * draws, context)]

    # every vector has the law, but two that lie side by side share their sizes
    assert joint_test((1.0, 3.0), (20, 60), 10**6, every_second) > FALSE_ALARM
    assert neighbors_test((3.0, 5.0), 10**6) < FALSE_ALARM


def forced_test(scales, last, draws, patch):
    """P-value with every coordinate settled exactly, from 8 bits of each exponential at first."""
    settle, asked = box._round_exactly, Counter()

    def coarse(wanted, parts):
        asked["coordinates"] += len(wanted)
        few = [
            part if part.bits > noise.KNOWN_BITS else noise.Interval(part.start >> 62, 8, SYSTEM)
            for part in parts
        ]
        return settle(wanted, few)

    patch.setattr(box, "_ERROR", 1e9)
    patch.setattr(box, "_round_exactly", coarse)
    p_value = joint_test(scales, last, draws)
    assert asked["coordinates"] > 0.99 * draws * len(scales)
    return p_value


@pytest.mark.full
def test_settling_everything_exactly_gives_the_same_law(monkeypatch):
    assert forced_test(*JOINT["D = 2"], 50_000, monkeypatch) > FALSE_ALARM


@audit
@pytest.mark.parametrize("name", ["D = 2", "D = 3, below 1", "D = 4"])
def test_settling_everything_exactly_gives_the_same_law_at_length(name, monkeypatch):
    p_value = forced_test(*JOINT[name], 10**6, monkeypatch)
    print(f"{name}, all exact: p = {p_value:.3f}")
    assert p_value > FALSE_ALARM


HULLS = {
    "D = 2, (1, 3)": ((1, 3), 1.0),
    "D = 2, (2, 5)": ((2, 5), 0.5),
    "D = 2, (1, 1)": ((1, 1), 2.0),
    "D = 3, (1, 2, 3)": ((1, 2, 3), 1.0),
    "D = 3, (1, 1, 2)": ((1, 1, 2), 0.25),
}


def log_ratios(name, factor):
    """Largest |log ratio| of the exact law over integer moves in a multiple of the hull."""
    half_sides, epsilon = HULLS[name]
    scales = tuple(h / epsilon for h in half_sides)
    most = 6 if len(scales) == 3 else 15
    last = tuple(most + 3 * h for h in half_sides)
    log = np.log(chances(scales, last))
    # most moves one step beyond a side, too: those of half-side h_k + 1
    found = Counter()
    for move in np.ndindex(*(factor * h + 2 for h in half_sides)):
        gauge = max(m / h for m, h in zip(move, half_sides, strict=True))
        ahead = tuple(slice(m, None) for m in move)
        behind = tuple(slice(None, size - m) for m, size in zip(move, log.shape, strict=True))
        far = np.abs(log[ahead] - log[behind]).max()
        kind = "inside" if gauge <= factor else "beyond"
        found[kind] = max(found[kind], far - factor * epsilon)
    return found


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("name", HULLS)
def test_no_move_in_the_hull_tells_more_than_epsilon(name, factor):
    found = log_ratios(name, factor)
    print(f"{name}, {factor} rows: {found['inside']:.1e} inside, {found['beyond']:.3f} beyond")
    assert found["inside"] <= 1e-12
    # moves one step outside do
    assert found["beyond"] > 1e-3


def residues_test(scales, modulus, base, draws):
    """P-values of the low bits of base + noise, coordinate by coordinate."""
    members, found = len(scales), []
    for drawn, s in zip(box.box_noise(scales, draws, SYSTEM), scales, strict=True):
        counts = np.bincount((base + drawn) & modulus - 1, minlength=modulus)
        k = np.arange(-60 * members * modulus, 60 * members * modulus)
        if s < 64 * modulus:
            near, far = (box.beyond((np.abs(k) + side) / s, members) / 2 for side in (-0.5, 0.5))
            share = np.where(k == 0, 1 - 2 * far, near - far)
            expected = np.roll(share.reshape(-1, modulus).sum(axis=0), base)
        else:
            expected = np.full(modulus, 1 / modulus)
        assert (counts > 0).all()
        found.append(stats.chisquare(counts, expected / expected.sum() * draws).pvalue)
    return found


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("scales", [(4.2, 3.1), (2.0**33, 2.0**40, 2.0**52)])
def test_low_bits_show_no_gap(scales, base):
    assert min(residues_test(scales, 16, base, 10**6)) > FALSE_ALARM


@audit
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("scales", [(4.2, 3.1), (1.37 * 2.0**33, 2.0**40, 2.0**50, 2.0**55)])
def test_low_bits_show_no_gap_at_length(scales, base):
    p_values = residues_test(scales, 64 if scales[0] > 64 else 8, base, 10**7)
    print(f"scales {scales} + {base}: p = {np.round(p_values, 3)}")
    assert min(p_values) > FALSE_ALARM


@pytest.mark.parametrize("members", [2, 4, 10])
def test_moments_are_those_of_the_law(members):
    draws, scales = 10**6, [1000.0 * (1 + k) for k in range(members)]
    z = np.array(BOX.draw(scales, draws, SYSTEM)) / np.array(deviations(scales))[:, None]
    kurtosis = 1.8 * (members + 3) * (members + 4) / ((members + 1) * (members + 2))
    # five of their own deviations: 3e-7 for one normal variable, of which there are few
    error = 5 / np.sqrt(draws)
    assert np.abs((z**2).mean(axis=1) - 1).max() < error * np.sqrt(kurtosis - 1)
    products = np.cov(z)[np.triu_indices(members, 1)]
    together = np.mean((z[0] * z[1]) ** 2)
    assert np.abs(products).max() < error * np.sqrt(together)
    # squares are not independent: E[R^4] (1 / 9) over the square of E[R^2] / 3
    expected = (members + 3) * (members + 4) / ((members + 1) * (members + 2))
    assert together == pytest.approx(expected, rel=0.05)
