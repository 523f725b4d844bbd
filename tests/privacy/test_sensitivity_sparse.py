"""Sparse footprints against brute force over all rows with at most a few coordinates."""

import itertools
from fractions import Fraction

import pytest

from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Footprint, Sparse, movement, reach_of

VALUES = [(0, 1), (-1, 2), (-3, 1), (2, 5), (0, 0)]
SCALE = Fraction(3, 2)
CASES = [
    (cells, Caps(*caps))
    for cells in (1, 2, 3)
    for caps in ((1, 1, 1), (2, 2, 1), (2, 1, 2), (3, 2, 2))
]


def rows(part):
    """Everything that one row can add."""
    return [
        tuple(part.present if bit else part.absent for bit in bits)
        for bits in itertools.product((0, 1), repeat=part.size)
        if sum(bits) <= part.most
    ]


def length(moved, norm):
    return (abs(Fraction(moved)) / SCALE) ** norm


def farthest(part, norm, a, b):
    """F(a, b): every row of a unit being the same."""
    return max(
        sum(length(a * v - b * w, norm) for v, w in zip(one, other, strict=True))
        for one, other in itertools.product(rows(part), repeat=2)
    )


def fillings(cells, caps):
    return [
        filled
        for filled in itertools.product(range(caps.rows_per_group + 1), repeat=cells)
        if sum(filled) <= caps.rows and sum(n > 0 for n in filled) <= caps.groups
    ]


def brute_force(table, cells, caps, neighboring):
    units = fillings(cells, caps)
    others = [(0,) * cells] if neighboring == "add_remove" else units
    return max(
        sum(table[pair] for pair in zip(one, other, strict=True))
        for one in units
        for other in others
    )


@pytest.mark.sampled(every=3, full=2)
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("absent", "present"), VALUES)
def test_movement_is_the_brute_force_maximum(absent, present, norm):
    for size in (1, 2, 3, 4):
        for most in range(1, size + 2):
            part = Sparse(0, size, absent, present, most)
            table = {
                (a, b): farthest(part, norm, a, b) for a in range(4) for b in range(4) if a + b < 6
            }
            for cells, caps in CASES:
                reach = reach_of(caps, cells)
                for neighboring in ("add_remove", "replace"):
                    expected = brute_force(table, cells, caps, neighboring)
                    assert movement([part], [SCALE], norm, reach, neighboring) == expected, (
                        size,
                        most,
                        cells,
                        caps,
                        neighboring,
                    )


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("absent", "present"), VALUES)
def test_rows_of_a_unit_that_differ_move_no_farther(absent, present, norm):
    part = Sparse(0, 3, absent, present, 2)
    reach = reach_of(Caps(2, 1, 2), 1)
    two = [
        tuple(map(sum, zip(*pair, strict=True)))
        for pair in itertools.combinations_with_replacement(rows(part), 2)
    ]
    units = [(0, 0, 0), *rows(part), *two]
    for neighboring, others in (("add_remove", [(0, 0, 0)]), ("replace", units)):
        worst = max(
            sum(length(v - w, norm) for v, w in zip(one, other, strict=True))
            for one in units
            for other in others
        )
        assert movement([part], [SCALE], norm, reach, neighboring) == worst


@pytest.mark.parametrize("norm", [1, 2])
def test_all_coordinates_together_are_a_dense_footprint_each(norm):
    sparse = Sparse(0, 4, -1, 1, 4)
    dense = [Footprint((k,), ((-1,), (1,))) for k in range(4)]
    for cells, caps in CASES:
        for neighboring in ("add_remove", "replace"):
            reach = reach_of(caps, cells)
            assert movement([sparse], [SCALE], norm, reach, neighboring) == movement(
                dense, [SCALE] * 4, norm, reach, neighboring
            )


def test_sparse_and_dense_footprints_add_up():
    sparse, dense = Sparse(1, 10, -1, 2, 3), Footprint((0,), ((1,),))
    reach = reach_of(ROW_CAPS, 5)
    scales = [Fraction(1, 2), Fraction(3)]
    # sum of 3 of 2^2 and 7 of 1 over 9, and 1 over 1/4
    assert movement([dense, sparse], scales, 2, reach, "add_remove") == Fraction(19, 9) + 4
    # 3 alone for each: 6 coordinates differ by 3
    single = reach_of(ROW_CAPS, 1, always=True)
    assert movement([dense, sparse], scales, 2, single, "replace") == 6


def test_a_sparse_coordinate_that_does_not_move_needs_no_scale():
    part = Sparse(0, 3, 0, 0, 2)
    assert movement([part], [Fraction(0)], 2, reach_of(ROW_CAPS, 2), "replace") == 0
    with pytest.raises(ZeroDivisionError):
        movement([Sparse(0, 3, 0, 1, 2)], [Fraction(0)], 2, reach_of(ROW_CAPS, 2), "replace")
