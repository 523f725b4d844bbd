"""Readings of measured blocks, and what they predict."""

import numpy as np
from support.designing import EVERYONE, workload

from dpframe.statistics.table import statistic_of
from dpframe.strategies.base import Output
from dpframe.strategies.linear import Block, LinearDesign, QuotientReading, Reading


def test_the_worst_mean_may_lie_at_either_bound():
    # the noise of one block moves T by +1 and N by +1 or -1: dT - (m - c) dN is 2 at one bound
    for of_rows in (1.0, -1.0):
        totals = {"rows": Reading({0: of_rows}), "y": Reading({0: 1.0})}
        mean = QuotientReading(statistic_of("mean", [(0, 2)]), totals)
        work = workload((EVERYONE,), (Output("count", 0),))
        made = LinearDesign(work, (Block(0, 0, 1),), (1.0,), (mean,))
        (predicted,) = made.predict([1.0])
        assert predicted.std_error == 2
        assert predicted.per_row


def test_blocks_wrap_as_totals_do():
    block = Block(1, 4, -7, everyone=3, square=-2)
    needs = [need for need, _ in block.parts]
    numbers = [2**62 + 1, 2**61 + 3, -(2**62) + 5, 2**63 - 1]
    found = block.of({n: np.array([one, one - 1]) for n, one in zip(needs, numbers, strict=True)})
    for got, less in zip(found.tolist(), (0, 1), strict=True):
        value, rows, everyone, squares = (one - less for one in numbers)
        exact = 4 * value - 7 * rows + 3 * everyone - 2 * squares
        assert got == (exact + 2**63) % 2**64 - 2**63
