"""Readings of measured blocks, and what they predict."""

from support.designing import EVERYONE, workload

from dpframe.strategies.base import Output
from dpframe.strategies.linear import Block, LinearDesign, Quotient, Reading


def test_the_worst_mean_may_lie_at_either_bound():
    # the noise of one block moves T by +1 and N by +1 or -1: dT - (m - c) dN is 2 at one bound
    for of_rows in (1.0, -1.0):
        mean = Quotient(Reading({0: 1.0}), Reading({0: of_rows}), (0, 2))
        work = workload((EVERYONE,), (Output("rows", 0),))
        made = LinearDesign(work, (Block(0, 0, 1),), (1.0,), (mean,))
        (predicted,) = made.predict([1.0])
        assert predicted.std_error == 2
        assert predicted.per_row


def test_what_is_read_with_weight_zero_is_not_read():
    assert Reading({0: 1.0, 2: 3.0}).times(0.0).weights == {}
    assert Reading({0: 1.0, 2: 3.0}).times(0.5).weights == {0: 0.5, 2: 1.5}
