"""What the check demands of an encoding."""

import numpy as np
import pytest

from dpframe.checker.encoding import EncodingProbe, places_to_try
from dpframe.checker.measured import BlockNoise, Measured, ProbedTotal, RowPlaces
from dpframe.errors import PlanCheckError
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.neighbors import ROW_CAPS

SIZES = (4, 3)


def measured(encode, *, mixed, cells=12):
    places = RowPlaces(SIZES, ((0, 1),) if mixed else (), cells, 1, everywhere=True)
    return Measured(
        BlockNoise(GAUSSIAN, (1.0,), ((0,),), profile=np.ones(3) if mixed else None),
        (ProbedTotal(), ProbedTotal()),
        {},
        lambda rows, number: (np.ones(number, bool), np.ones((2, number), np.int64)),
        encode,
        None,
        ROW_CAPS,
        has_unit=False,
        neighboring="replace",
        places=places,
        mixed=mixed,
        filtered=False,
        content=(),
    )


def probe(encode, *, mixed=False):
    return EncodingProbe(measured(encode, mixed=mixed), np.random.default_rng(1))


def test_weights_of_cells_are_found():
    found = probe(lambda totals: [3 * totals[0] - totals[1], totals[1]]).weights_of_cells()
    assert found.tolist() == [[3, -1], [0, 1]]


@pytest.mark.parametrize(
    ("encode", "why"),
    [
        (lambda totals: [np.abs(totals[0])], "does not add up"),
        (lambda totals: [totals[0] // 2], "does not add up"),
        (lambda totals: [totals[0] + 1], "does not add up"),
        (lambda totals: [np.cumsum(totals[0])], "cells are mixed"),
        (lambda totals: [totals[0] + totals[0][::-1]], "cells are mixed"),
    ],
)
def test_an_encoding_that_does_not_add_up_is_refused(encode, why):
    with pytest.raises(PlanCheckError, match=why):
        probe(encode).weights_of_cells()


MATRIX = np.random.default_rng(2).integers(-50, 50, (3, 12))
PLACES = [(0, 0), (3, 2), (1, 1), (2, 0), (0, 2)]


def test_layers_are_found_though_blocks_weigh_totals_differently():
    encode = lambda totals: [MATRIX @ (2 * totals[0] + totals[1]), MATRIX @ -totals[1]]  # noqa: E731
    weights, of_row = probe(encode, mixed=True).weights_of_layers(PLACES)
    for at, (i, j) in enumerate(PLACES):
        own = np.outer(weights[:, 0], of_row[PLACES[at]])
        assert own.tolist() == [(2 * MATRIX[:, 3 * i + j]).tolist(), [0] * 3]


def test_blocks_that_measure_different_things_are_refused():
    encode = lambda totals: [MATRIX @ totals[0], MATRIX[::-1] @ totals[1]]  # noqa: E731
    with pytest.raises(PlanCheckError, match="different layers"):
        probe(encode, mixed=True).weights_of_layers(PLACES)


@pytest.mark.parametrize("largest", [1, 2**13, 2**14, 2**20, 2**40])
def test_digits_that_are_too_large_are_seen(largest):
    matrix = MATRIX * largest
    found = probe(lambda totals: [matrix @ totals[0]], mixed=True).at_places(0, PLACES)
    for (i, j), (block,) in found.items():
        assert block.tolist() == matrix[:, 3 * i + j].tolist()


def test_a_second_row_is_elsewhere_along_each_set_of_axes():
    places = RowPlaces((2, 30, 1, 5), ((0, 1, 2, 3),), 300, 1, everywhere=True)
    found, sampled = places_to_try(places, np.random.default_rng(0), two=True)
    moved = {tuple(k > 0 for k in place) for place in found}
    assert sampled and len({one for one in moved if not one[2]}) == 8
    few, sampled = places_to_try(
        RowPlaces((3, 4), ((0,), (1,)), 7, 1, everywhere=True), np.random.default_rng(0), two=False
    )
    assert len(few) == 12 and not sampled
