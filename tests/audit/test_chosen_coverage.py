"""Intervals of cells chosen for their values hold for 95 % of those shown, in tables drawn anew.

2,500 cells at epsilon .2, whose noise is drawn until 4,000 cells were shown, or 2,500 tables: a
coverage of 95 % is seen with a standard error of .43 % at most. It is 95 % at least, and about 98 %
where most cells are next to 0, so that it is seen below 94 %, or above 99 %, with chance .01 at
most; by the seeds here, it is not.
"""

import numpy as np
import pytest

from dpframe.certificates.definitions import CutPart
from dpframe.inference.selection import OwnNoise, chosen_ends, level_of_chosen
from dpframe.privacy.laws import GAUSSIAN, LAPLACE

pytestmark = pytest.mark.audit
CELLS, LEVEL, TABLES, ENOUGH = 2_500, 0.95, 2_500, 4_000


def laplace(rng):
    return rng.geometric(1 - np.exp(-0.2), CELLS) - rng.geometric(1 - np.exp(-0.2), CELLS)


def gaussian(rng):
    return np.rint(rng.normal(0, 20, CELLS)).astype(int)


LAWS = {
    "laplace": (OwnNoise(LAPLACE, 5.0), laplace),
    "gaussian": (OwnNoise(GAUSSIAN, 20), gaussian),
}
COUNTS = {
    "poisson 2": lambda rng: rng.poisson(2, CELLS),
    "poisson 20": lambda rng: rng.poisson(20, CELLS),
    "zipf": lambda rng: (20_000 / np.arange(1, CELLS + 1) ** 1.1).astype(int),
}


def largest(y, n):
    order = np.argsort(-y, kind="stable")
    return order[:n], CutPart("nlargest", None, float(y[order[n]]), None)


def beyond(y, least):
    return np.flatnonzero(y >= least), CutPart("suppress", None, float(least), None)


def told(y, error):
    return np.flatnonzero(error <= 0.3 * np.abs(y)), CutPart("suppress", None, None, 0.3)


RULES = {
    "suppress(below=20)": lambda y, error: beyond(y, 20),
    "suppress(relative_error=.3)": told,
    "nlargest(10)": lambda y, error: largest(y, 10),
    "nlargest(1)": lambda y, error: largest(y, 1),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("rule", RULES)
def test_intervals_of_chosen_cells_hold_as_often_as_they_say(law, counts, rule):
    rng = np.random.default_rng([len(law), len(counts), len(rule)])
    (noise, draw), error = LAWS[law], LAWS[law][0].law.standard_deviation(LAWS[law][0].scale)
    held = np.zeros(3)  # of the law given the cut, of any choice, of none
    width, shown = np.zeros(2), 0
    for _ in range(TABLES):
        n = COUNTS[counts](rng)
        y = n + draw(rng)
        rows, cut = RULES[rule](y, error)
        n, y = n[rows], y[rows]
        if shown >= ENOUGH or not len(y):
            continue
        part = len(rows) / CELLS
        levels = level_of_chosen(LEVEL, len(rows), CELLS), LEVEL
        ends = [chosen_ends(y, noise, LEVEL, [cut], part)]
        ends += [chosen_ends(y, noise, level) for level in levels]
        ends = [(np.maximum(low, 0), np.maximum(high, 0)) for low, high in ends]
        held += [np.count_nonzero((low <= n) & (n <= high)) for low, high in ends]
        width += [(high - low).sum() for low, high in ends[:2]]
        shown += len(rows)
    held, narrower = held / shown, width[0] / width[1]
    print(f"{law}, {counts}, {rule}: {shown} shown; held {held.round(4)}, width {narrower:.2f}")
    assert shown >= 2_000
    assert 0.94 <= held[0] <= 0.99
    if rule.startswith("nlargest"):  # of other numbers shown, the level is kept on average by table
        assert held[1] >= 0.94
    if counts == "poisson 2":
        assert held[2] < 0.9  # ordinary intervals are caught
    if rule == "nlargest(10)":
        assert narrower <= 0.75
