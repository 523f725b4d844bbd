"""What rows in one cell cost at worst, against all rows that there are."""

import itertools

import numpy as np
import pytest

from dpframe.checker.cell import ONE_CELL, Cell
from dpframe.checker.check import find_worst
from dpframe.checker.measured import BlockNoise, Measured, OddColumn, ProbedTotal, RowPlaces
from dpframe.checker.rows import row_vectors
from dpframe.errors import PlanCheckError
from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE, STAIRCASE
from dpframe.privacy.neighbors import ROW_CAPS

X, Y = (-2.0, 0.0, 3.0), (1.0, 4.0)
COLUMNS = {"x": OddColumn(X), "y": OddColumn(Y), "z": OddColumn((), (0.0,))}
"""Rows add x, y, 1 if z > 0, and y if z > 0; a value that is missing adds 0."""


def added(x, y, z):
    met = z is not None and z > 0
    x, y = int(x or 0), int(y or 0)
    return x, y, int(met), y * met


def probe(rows, number):
    values = [[values[k] for k in at] for values, at in (rows[column] for column in "xyz")]
    return np.ones(number, bool), np.array([added(*row) for row in zip(*values, strict=True)]).T


TOTALS = (
    ProbedTotal(("x",)),
    ProbedTotal(("y",)),
    ProbedTotal((), ("z",)),
    ProbedTotal(("y",), ("z",)),
)


def measured(noise, weights):
    return Measured(
        noise,
        TOTALS,
        COLUMNS,
        probe,
        lambda totals: list(weights @ np.array(totals)),
        None,
        ROW_CAPS,
        has_unit=False,
        neighboring="replace",
        places=RowPlaces((3,), (), 3, 1, everywhere=False),
        mixed=False,
        filtered=False,
        content=weights.tobytes(),
    )


WEIGHTS = np.array([[1, 0, 0, 0], [0, 2, -3, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
SCALES = (1.5, 2.5, 3.0, 4.0)
LAWS = [
    (LAPLACE, tuple((k,) for k in range(4))),
    (GAUSSIAN, tuple((k,) for k in range(4))),
    (BOX, ((1, 2, 3), (0,))),
]


@pytest.mark.parametrize("rows", [(1, 0), (3, 0), (1, 1), (3, 2)])
@pytest.mark.parametrize(("law", "groups"), LAWS, ids=lambda value: getattr(value, "name", ""))
def test_no_rows_in_a_cell_cost_more(law, groups, rows):
    noise = BlockNoise(law, SCALES, groups)
    own = measured(noise, WEIGHTS)
    cell = Cell(row_vectors(own, WEIGHTS, np.random.default_rng(0)), noise, [ONE_CELL])
    every = {added(x, y, z) for x in (*X, None) for y in (*Y, None) for z in (-1, 0, 1, None)}
    vectors = [WEIGHTS @ np.array(one) for one in every]
    a, b = rows
    truth = max(
        noise.cost([np.array([a * k]) for k in v], [np.array([b * k]) for k in w])
        for v, w in itertools.product(vectors, vectors if b else [np.zeros(4, int)])
    )
    assert cell.moved(a, b).cost(noise) == truth
    assert np.isclose(cell.distance(a, b), float(truth))


def test_two_integers_with_staircase_noise_in_a_cell_are_refused():
    weights = np.array([[1, 0, 0, 0], [0, 1, 0, 0]])
    noise = BlockNoise(STAIRCASE, (3.25, 4.25), ((0,), (1,)))
    with pytest.raises(PlanCheckError, match="two integers with staircase noise"):
        find_worst(measured(noise, weights))


def test_an_integer_that_moves_has_noise():
    noise = BlockNoise(LAPLACE, (1.0, 0.0), ((0,), (1,)))
    found = find_worst(measured(noise, np.array([[1, 0, 0, 0], [0, 1, 0, 0]])))
    assert found.cost > 10**20
