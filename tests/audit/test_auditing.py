"""The auditor itself: intervals, bounds on samples whose privacy is known, and frames of a game."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support import auditing
from support.auditing import Game, audit, lower_bounds
from support.games import ADD, GAMES
from support.variants import half_the_noise

from dpframe.privacy.gaussian import gaussian_delta

DRAWS = 40_000
GRID = 2.0**20  # what the low bits of floats tell must not be found here


def on_grid(published):
    return np.rint(published * GRID) / GRID


@pytest.fixture
def rng():
    return np.random.default_rng(29)


@pytest.mark.parametrize(("successes", "trials"), [(1, 9), (40, 1000), (999, 1000), (7, 7)])
def test_intervals_leave_the_stated_probability_outside(successes, trials):
    alpha = 1e-4
    least = float(auditing.least_probability(successes, trials, alpha))
    assert stats.binom.sf(successes - 1, trials, least) == pytest.approx(alpha)
    largest = float(auditing.largest_probability(trials - successes, trials, alpha))
    assert stats.binom.cdf(trials - successes, trials, largest) == pytest.approx(alpha)


def test_intervals_end_at_zero_and_one():
    assert auditing.least_probability(0, 5, 0.1) == 0
    assert auditing.largest_probability(5, 5, 0.1) == 1
    assert auditing.largest_probability(0, 5, 0.1) == pytest.approx(1 - 0.1**0.2)


def test_epsilon_is_the_least_that_explains_an_event():
    assert auditing.epsilon_of(0.5, 0.1, 0) == pytest.approx(np.log(5))
    assert auditing.epsilon_of(0.5, 0.1, 0.2) == pytest.approx(np.log(3))
    assert auditing.epsilon_of(0.1, 0.5, 0) == 0
    assert auditing.epsilon_of(0.1, 0.5, 0.2) == 0


def test_mu_is_that_of_the_event_between_two_gaussians():
    p, q = stats.norm.sf(0.3 - 0.8), stats.norm.sf(0.3)
    assert auditing.mu_of(p, q) == pytest.approx(0.8)
    assert auditing.mu_of(q, p) == 0
    assert auditing.mu_of(0, 1) == 0


def test_bounds_on_laplace_noise_are_close_to_its_epsilon(rng):
    noise = on_grid(rng.laplace(0, 2, (2, DRAWS, 1)))
    bounds = lower_bounds(3 + noise[0], 1 + noise[1], 0)
    assert 0.87 < bounds.epsilon <= 1


def test_bounds_on_laplace_noise_of_two_outputs_add_up(rng):
    noise = rng.laplace(0, 1, (2, DRAWS, 2))
    bounds = lower_bounds(on_grid(noise[0] + [0.7, 0]), on_grid(noise[1] + [0, 1.3]), 0)
    assert 1.6 < bounds.epsilon <= 2


def test_bounds_on_gaussian_noise_are_close_to_its_mu(rng):
    mixed = np.array([[1.0, 0.5], [0.0, 2.0]])
    shift = np.array([0.9, -0.4])
    first = on_grid(rng.normal(size=(DRAWS, 2)) @ mixed + shift)
    second = on_grid(rng.normal(size=(DRAWS, 2)) @ mixed)
    mu = np.linalg.norm(np.linalg.solve(mixed.T, shift))
    bounds = lower_bounds(first, second, 1e-3)
    assert 0.88 * mu < bounds.mu <= mu
    # the curve of the noise at the bound on epsilon allows more than delta
    assert gaussian_delta(bounds.epsilon, mu) > 1e-3
    assert bounds.epsilon > 0.5


def test_nothing_is_found_between_samples_of_one_law(rng):
    first, second = rng.normal(size=(2, DRAWS, 3))
    assert lower_bounds(first, second, 0) == (0, 0)


def test_an_output_without_noise_is_noticed(rng):
    noise = on_grid(rng.normal(0, 50, (2, DRAWS, 1)))
    first, second = np.hstack([noise[0], noise[0] + 1]), np.hstack([noise[1], noise[1]])
    assert lower_bounds(first, second, 0).epsilon > 7


def test_low_bits_are_noticed(rng):
    noise = rng.normal(0, 100, (2, DRAWS, 1))
    first, second = np.rint(noise[0]), np.rint(noise[1]) + 0.25
    assert lower_bounds(first, second, 0).epsilon > 7
    exponents = auditing.lowest_bit(first, second)(np.array([[0.0], [12.0], [0.375], [-1.0]]))
    assert exponents.tolist() == [2000, 2, -3, 0]


def false_alarms(rng):
    """How many of 200 audits find more than there is, in answers that are true 3 times of 4."""
    answers = rng.random((200, 2, 800, 1)) < [[[0.75]], [[0.25]]]
    found = [lower_bounds(*one.astype(float), 0).epsilon for one in answers]
    return int(np.sum(np.array(found) > np.log(3)))


def test_false_alarms_are_as_rare_as_stated(rng, monkeypatch):
    # each bound is false at most one time in 8: more than 55 of 200 come once in 10^8 such tests
    monkeypatch.setattr(auditing, "FALSE_ALARM", 0.25)
    monkeypatch.setattr(auditing, "LEVELS", np.linspace(0, 1, 5))
    assert stats.binom.sf(55, 200, 1 / 8) < 1e-8
    assert false_alarms(rng) <= 55
    # intervals of another confidence than the one asked for
    least = auditing.least_probability
    monkeypatch.setattr(auditing, "least_probability", lambda k, n, alpha: least(k, n, 0.5))
    assert false_alarms(rng) > 55


def test_frames_of_a_game_differ_by_one_unit_in_each_copy():
    others = pd.DataFrame({"zone": [0, 1], "who": [1, 2], "x": [0.5, 2.0]})
    unit = pd.DataFrame({"zone": [1, 1], "who": 0, "x": [7.0, 8.0]})
    game = Game(others, unit, (), zones=2, copies=3)
    without, with_unit = game.frame(None), game.frame(unit)
    assert without["zone"].tolist() == [0, 1, 2, 3, 4, 5]
    assert without["who"].tolist() == [1, 2, 1001, 1002, 2001, 2002]
    added = with_unit[with_unit["who"] % 1000 == 0]
    assert added["zone"].tolist() == [1, 1, 3, 3, 5, 5]
    assert added["who"].nunique() == 3
    kept = with_unit.drop(added.index).reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, without)


@pytest.mark.parametrize("key", GAMES, ids="-".join)
def test_games_are_between_neighbors_that_differ(key):
    game = GAMES[key]
    assert (game.instead is None) == (key[1] == ADD == game.declared["neighboring"])
    if "privacy_unit" not in game.declared:
        assert len(game.unit) == 1
        assert game.instead is None or len(game.instead) == 1
    else:
        own = set(game.unit["who"]) | set(() if game.instead is None else game.instead["who"])
        assert own == {0}
        assert 0 not in set(game.others["who"])
    assert not game.unit.equals(game.instead)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_an_audit_in_brief_passes_as_it_is_and_catches_half_the_noise(mechanism, monkeypatch):
    game = GAMES["sum", ADD, mechanism]
    brief = replace(game, copies=20_000, draws=60_000)
    finding = audit(brief)
    assert 0.5 < finding.ratio <= 1
    half_the_noise(monkeypatch)
    assert audit(brief).ratio > 1.5
