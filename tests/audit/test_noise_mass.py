"""Exact accounting of all the mass the sampler hands out, through its own code.

Every cell, each of 64 places in its strip and each of 16 heights in tested cells is fed to
the sampler in turn: each stands for a box of known area. Where the code asks for exact arithmetic,
the box is divided by integration. What comes out as k must be the area under the curve over the
preimage of k.
"""

import dataclasses

import numpy as np
import pytest
from scipy import special
from support.randomness import SYSTEM

from dpframe.privacy import noise
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.noise import strip_table

PLACE_BITS, HEIGHT_BITS = 6, 4
SLOTS = 64 << PLACE_BITS  # boxes per unit of z
BOX_HEIGHT = 2.0**-HEIGHT_BITS
FLAG = 1 << 40  # outputs from here on: to be divided
LAWS = [GAUSSIAN, LAPLACE]
audit = pytest.mark.audit


def integral(law, z):
    """Integral of exp(-energy) from 0 to z >= 0."""
    if law is GAUSSIAN:
        return np.sqrt(np.pi / 2) * special.erf(z / np.sqrt(2))
    return -np.expm1(-z)


def place_of_height(law, height):
    """The z >= 0 where exp(-energy(z)) is this height; 0 above 1."""
    energy = -np.log(np.clip(height, 1e-300, 1))
    return np.sqrt(2 * energy) if law is GAUSSIAN else energy


def offset(law, scale):
    """What is added to scale * |Z| before its whole part is taken."""
    return 0.5 if law is GAUSSIAN else scale * np.log(2 / (1 + np.exp(-1 / scale)))


class Account:
    """Mass received by each integer, in cells."""

    def __init__(self, law, scale):
        self.law, self.scale, self.curve = law, scale, law.curve
        self.largest = int(scale * self.curve.reach) + 2
        self.mass = np.zeros(2 * self.largest + 1)
        self.heights = []  # boxes whose height floats did not decide

    def add(self, k, area):
        np.add.at(self.mass, k + self.largest, area)

    def pieces(self, slots):
        """Divide [slot, slot + 1) / SLOTS where the draw may change there."""
        start, end = slots / SLOTS, (slots + 1) / SLOTS
        k, sign = self.draw(np.where(slots < 0, end, start)), np.where(slots < 0, -1, 1)
        cut = np.clip(sign * self.border(np.abs(k) + 1), start, end)
        return [
            (k, np.where(slots < 0, cut, start), np.where(slots < 0, end, cut)),
            (k + sign, np.where(slots < 0, start, cut), np.where(slots < 0, cut, end)),
        ]

    def draw(self, z):
        """The draw that z gives."""
        size = np.floor(self.scale * np.abs(z) + offset(self.law, self.scale))
        return (np.sign(z) * size).astype(int)

    def border(self, k):
        """The z from which on draws are k or more."""
        d = offset(self.law, self.scale)
        return (k - np.where(k > 0, d, 1 - d)) / self.scale

    def book(self, outputs, area):
        """Add accepted boxes of one area, divided where the output is flagged."""
        outputs, counts = np.unique(outputs, return_counts=True)
        flagged = outputs >= FLAG // 2
        self.add(outputs[~flagged], counts[~flagged] * area)
        for k, start, end in self.pieces(outputs[flagged] - FLAG):
            self.add(k, counts[flagged] * area * SLOTS * (end - start))

    def book_heights(self):
        """Add the part under the curve of the boxes whose height floats did not decide."""
        slots, bottom = np.array(self.heights).T
        low, high = bottom / self.curve.peak, (bottom + BOX_HEIGHT) / self.curve.peak
        for k, start, end in self.pieces(slots):
            near = np.minimum(np.abs(start), np.abs(end))
            far = np.maximum(np.abs(start), np.abs(end))
            full = np.clip(place_of_height(self.law, high), near, far)
            none = np.clip(place_of_height(self.law, low), near, far)
            under = integral(self.law, none) - integral(self.law, full) - low * (none - full)
            area = (full - near) * BOX_HEIGHT + self.curve.peak * under
            self.add(k, 64 * area)


def boxes(table, strips):
    """The cells to feed: those of the strips, and the spare ones and the tail's."""
    chosen = np.isin(table.strip, strips)
    chosen[table.free :] |= ~np.isfinite(table.bottom)
    cells = np.flatnonzero(chosen).astype(np.uint16)
    return cells[cells < table.free], cells[cells >= table.free]


def account_of(law, scale, strips, monkeypatch, table):
    """Feed all boxes of the strips to the sampler."""
    account, tails, queue = Account(law, scale), [], []

    def scripted(n, context, dtype=np.uint64):
        return np.broadcast_to(np.asarray(queue.pop(0), dtype), n)

    def settle_rounding(curve, scale, drawn):
        return FLAG + (drawn.start >> 64 - PLACE_BITS)

    def settle_height(curve, drawn, height):
        account.heights.append((drawn.start >> 64 - PLACE_BITS, height.start / 2.0**64))

    monkeypatch.setattr(noise, "random_words", scripted)
    monkeypatch.setattr(noise, "_round_exactly", settle_rounding)
    monkeypatch.setattr(noise, "_accept", settle_height)
    monkeypatch.setattr(noise, "_try_tail", lambda curve, context: tails.append(curve))
    # more than a box may move scale * z or the distance to the curve: boxes floats decide are whole
    monkeypatch.setattr(noise, "MARGIN", BOX_HEIGHT + max(256, scale, table.curve.peak) / SLOTS)

    def feed(cells, place, height, area):
        queue[:] = [cells, place << 64 - PLACE_BITS, height << 64 - HEIGHT_BITS]
        out = np.empty(cells.size, np.int64)
        rejected = noise._try_block(table, np.asarray(scale), out, SYSTEM)
        account.book(np.delete(out, rejected), area)
        return rejected

    free, tested = boxes(table, strips)
    for place in range(1 << PLACE_BITS):
        assert feed(free, place, 0, 2.0**-PLACE_BITS).size == 0
        for height in range(1 << HEIGHT_BITS):
            feed(tested, place, height, 2.0**-PLACE_BITS * BOX_HEIGHT)
    assert len(tails) == 1 << PLACE_BITS + HEIGHT_BITS
    account.book_heights()
    return account


def expected_mass(account, strips):
    """Area, in cells, under the curve over each preimage within the strips."""
    k = np.arange(-account.largest, account.largest + 1)
    total = np.zeros(k.size)
    for strip in strips:
        start = np.clip(account.border(k), strip / 64, (strip + 1) / 64)
        end = np.clip(account.border(k + 1), strip / 64, (strip + 1) / 64)
        parts = (np.sign(z) * integral(account.law, np.abs(z)) for z in (end, start))
        total += 64 * account.curve.peak * (next(parts) - next(parts))
    return total


def worst_deviation(law, scale, strips, monkeypatch, table=None):
    """Largest error of the mass of an integer, in cells; a cell is 2**-16 of the probability."""
    with np.errstate(all="ignore"):
        account = account_of(law, scale, strips, monkeypatch, table or strip_table(law.curve))
    expected = expected_mass(account, strips)
    assert expected.sum() > len(strips) / 100
    worst = np.abs(account.mass - expected).max()
    print(
        f"{law} scale {scale}: {expected.sum():.1f} cells, {np.count_nonzero(expected)} integers, "
        f"{len(account.heights)} boxes divided by height; worst deviation {worst:.1e} cells"
    )
    return worst


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.3, 4.22, 100.1])
def test_mass_of_some_strips_is_exact(law, scale, monkeypatch):
    edge = 64 * law.curve.reach
    strips = [-edge, -edge // 2, -107, -7, -1, 0, 1, 53, edge // 3, edge - 1]
    # the smallest box has 1e-3 cells; floats of this test are good to 1e-9
    assert worst_deviation(law, scale, strips, monkeypatch) < 1e-8


@pytest.mark.full
def test_one_wrong_cell_is_noticed(monkeypatch):
    table = strip_table(GAUSSIAN.curve)
    bottom = table.bottom.copy()
    cell = np.flatnonzero(table.strip[table.free :] == 53)[0]
    bottom[cell] += 1
    wrong = dataclasses.replace(table, bottom=bottom)
    assert worst_deviation(GAUSSIAN, 4.22, [53], monkeypatch, wrong) > 0.01
    strip = table.strip.copy()
    strip[table.free + cell] = 54
    wrong = dataclasses.replace(table, strip=strip)
    assert worst_deviation(GAUSSIAN, 100.1, [53, 54], monkeypatch, wrong) > 0.01


@audit
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.22, 13.36, 100.1])
def test_mass_of_the_whole_table_is_exact(law, scale, monkeypatch):
    edge = 64 * law.curve.reach
    assert worst_deviation(law, scale, range(-edge, edge), monkeypatch) < 1e-7
