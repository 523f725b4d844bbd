"""The last place that a test rejects."""

import numpy as np
import pytest

from dpframe.inference.quotients import StraightTest, narrow


def border(holds, rejected, kept):
    """The same by plain halving."""
    for _ in range(40):
        middle = (rejected + kept) / 2
        within = holds(middle)
        rejected, kept = np.where(within, rejected, middle), np.where(within, middle, kept)
    return rejected


@pytest.mark.parametrize("by_row", [False, True])
def test_places_are_found_as_by_halving_whatever_the_excess_is(by_row):
    at = np.array([0.3, 0.5, 1e-9, 0.7, 0.2, 0.9])
    sharp = np.array([1.0, 50.0, 1e-3, 0.0, 3.0, 1.0])  # at 0.7 it only jumps
    tries = []

    def excess(x, rows):
        tries.append(len(x))
        off = at[rows] - x
        return np.where(sharp[rows] == 0, np.sign(off), np.expm1(off * sharp[rows]) + off**3)

    found = narrow(excess, np.zeros(6), np.ones(6), by_row=by_row)
    halved = border(lambda x: excess(x, slice(None)) <= 0, np.zeros(6), np.ones(6))
    assert found == pytest.approx(at, abs=2.0**-39) and found == pytest.approx(halved, abs=2.0**-39)
    assert (excess(found, slice(None)) > 0).all()
    assert len(tries) < 2 + 41 + 42 and (tries[20] < 6) == by_row


def test_places_that_are_not_apart_stay_where_they_are():
    place = np.array([1.0, -2.0])
    for value in (1.0, -1.0):
        found = narrow(lambda x, _, value=value: np.full(2, value), place, place + 1)
        assert (found == place).all()


@pytest.mark.parametrize("by_row", [False, True])
def test_places_that_are_not_apart_stay_where_they_are_beside_others(by_row):
    rejected, kept = np.array([0.0, 0.3, 0.0, 0.0]), np.array([1.0, 0.3, 1.0, 0.0])
    at = np.array([0.4, 0.3, -1.0, 0.5])
    with np.errstate(all="ignore"):  # as where quotients are estimated
        found = narrow(lambda x, rows: at[rows] - x, rejected, kept, by_row=by_row)
    assert found == pytest.approx([0.4, 0.3, 0.0, 0.0], abs=1e-11)


@pytest.mark.parametrize("side", [-1, 1])
def test_borders_between_nodes_are_those_of_halving_and_never_nearer(side):
    rng = np.random.default_rng(2)
    nodes = np.linspace(-0.5, 0.5, 33)
    widths = np.hypot(3.0, 20 * nodes)  # convex, as half-widths are
    bottom = rng.normal(30, 20, 999)
    top = bottom * rng.uniform(-0.6, 0.6, 999) + rng.normal(0, 9, 999)
    bottom[:9], top[:9] = 0, rng.normal(0, 9, 9)
    best = np.divide(top, bottom, out=np.zeros(999), where=bottom != 0)

    def holds(at):
        return np.abs(top - at * bottom) <= np.interp(at, nodes, widths)

    end = np.full(999, 0.5 * side)
    kept = np.clip(best, -0.5, 0.5)
    asked = holds(kept) & ~holds(end)
    halved = border(holds, end, kept)
    with np.errstate(all="ignore"):  # as where quotients are estimated
        found = StraightTest(top, bottom, nodes, widths).border(kept, side)
    off = side * (found - halved)[asked]
    assert np.count_nonzero(asked) > 300
    assert (off >= -(2.0**-42)).all() and (off <= 2.0**-39).all()
    assert not holds(found)[asked].any()
