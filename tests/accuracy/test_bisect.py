"""The last place that a test rejects."""

import numpy as np

from dpframe.accuracy.quotients import border


def test_the_border_is_the_last_place_rejected_from_either_side():
    at = np.array([0.1, 0.25, 1 / 3, 0.999])
    low = border(lambda x: x >= at, np.zeros(4), np.ones(4))
    high = border(lambda x: x <= at, np.ones(4), np.zeros(4))
    assert (low <= at).all() and (low >= at - 2.0**-40).all()
    assert (high >= at).all() and (high <= at + 2.0**-40).all()


def test_each_way_has_a_border_of_its_own():
    found = border(lambda x: x <= 2, np.array([8.0, 4.0]), np.array([-8.0, 1.0]))
    assert (found > 2).all() and (found < 2 + 2.0**-35).all()


def test_a_way_without_length_ends_where_it_begins():
    for kept in (True, False):
        place = np.array([0.3, -7.0])
        answer = np.full(2, kept)
        assert (border(lambda _, answer=answer: answer, place, place) == place).all()
