"""Sensitivities against brute force over all pairs of units."""

import itertools
from fractions import Fraction

import pytest

from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Footprint, Reach, movement, reach_of

COUNT = (Footprint((0,), ((1,),)),)
ONE = (Fraction(1),)

CASES = [
    (cells, Caps(rows, groups, per_group))
    for cells in (1, 2, 3)
    for rows in (1, 2, 3, 4, 5)
    for groups in (1, 2, 3)
    for per_group in (1, 2, 3)
]


def fillings(cells: int, caps: Caps) -> list[tuple[int, ...]]:
    """Every number of rows that one unit can have in every cell."""
    return [
        rows
        for rows in itertools.product(range(caps.rows_per_group + 1), repeat=cells)
        if sum(rows) <= caps.rows and sum(n > 0 for n in rows) <= caps.groups
    ]


def brute_force(footprints, scales, norm, limits, neighboring):
    """Worst pair of units, each row of a unit in a cell being the same corner."""

    def cell(a, b):
        return sum(
            max(
                sum(
                    (abs(Fraction(a * v - b * w)) / scales[k]) ** norm
                    for v, w, k in zip(one, other, part.coordinates, strict=True)
                )
                for one, other in itertools.product(part.corners, repeat=2)
            )
            for part in footprints
        )

    table = {pair: cell(*pair) for pair in itertools.product(range(6), repeat=2)}
    cells, caps = limits
    units = fillings(cells, caps)
    others = [(0,) * cells] if neighboring == "add_remove" else units
    return max(
        sum(table[a, b] for a, b in zip(one, other, strict=True))
        for one in units
        for other in others
    )


FOOTPRINTS = {
    "count": (COUNT, ONE),
    "positive sum": ((Footprint((0,), ((3,), (7,))),), ONE),
    "optional positive sum": ((Footprint((0,), ((3,), (7,), (0,))),), ONE),
    "mixed sum": ((Footprint((0,), ((-1,), (4,))),), ONE),
    "mean": ((Footprint((0, 1), ((-5, 1), (5, 1), (0, 0))),), (Fraction(5, 3), Fraction(1, 2))),
    "count and two sums": (
        (Footprint((0,), ((1,),)), Footprint((2,), ((-2,), (5,))), Footprint((1,), ((2,), (3,)))),
        (Fraction(1), Fraction(7, 2), Fraction(2)),
    ),
}


@pytest.mark.sampled(every=5, full=2)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace"])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", FOOTPRINTS)
def test_movement_is_the_brute_force_maximum(name, norm, neighboring):
    footprints, scales = FOOTPRINTS[name]
    for cells, caps in CASES:
        reach = reach_of(caps, cells)
        expected = brute_force(footprints, scales, norm, (cells, caps), neighboring)
        assert movement(footprints, scales, norm, reach, neighboring) == expected, (cells, caps)


@pytest.mark.parametrize(
    ("caps", "expected"),
    [
        (Caps(8, 4, 3), 2 * 9 + 2 * 2),
        (Caps(5, 5, 5), 25),
        (Caps(5, 5, 1), 5),
        (Caps(10, 4, 3), 3 * 9 + 1),
        (Caps(3, 2, 2), 5),
    ],
)
def test_counts_of_units_with_caps_follow_the_closed_form(caps, expected):
    reach = reach_of(caps, 100)
    assert movement(COUNT, ONE, 2, reach, "add_remove") == expected
    assert movement(COUNT, ONE, 2, reach, "replace") == 2 * expected


def test_sums_with_mixed_signs_under_replacement_beat_the_tempting_formula():
    # K max(u - l, sqrt(2) B)^2 = 40 would be too small for l = -1/2, u = 2
    footprint = (Footprint((0,), ((-1,), (4,))),)
    reach = reach_of(Caps(3, 2, 2), 10)
    assert movement(footprint, (Fraction(2),), 2, reach, "replace") == Fraction(81, 2)


def test_histograms_of_rows_move_by_root_two_under_replacement():
    reach = reach_of(ROW_CAPS, 12)
    assert movement(COUNT, ONE, 2, reach, "replace") == 2
    assert movement(COUNT, ONE, 1, reach, "replace") == 2
    assert movement(COUNT, ONE, 2, reach, "add_remove") == 1


def test_a_row_that_is_always_there_only_moves_within_its_bounds():
    reach = reach_of(ROW_CAPS, 1, always=True)
    positive = (Footprint((0,), ((3,), (7,))),)
    assert movement(COUNT, ONE, 2, reach, "replace") == 0
    assert movement(COUNT, (Fraction(0),), 2, reach, "replace") == 0
    assert movement(positive, ONE, 2, reach, "replace") == 16


def test_a_coordinate_without_noise_must_not_move():
    with pytest.raises(ZeroDivisionError):
        movement(COUNT, (Fraction(0),), 2, reach_of(ROW_CAPS, 3), "add_remove")


def test_unlimited_caps_have_no_reach_unless_groups_limit_them():
    assert reach_of(Caps(), 10) is None
    assert reach_of(Caps(groups=3), 10) is None
    assert reach_of(Caps(rows_per_group=2), 10) == Reach(10, 2, 0, 10)
    assert reach_of(Caps(rows=20), 3) == Reach(1, 20, 0, 3)
    assert reach_of(Caps(rows=4, rows_per_group=9), 3) == Reach(1, 4, 0, 3)
    assert reach_of(Caps(2**61, 2, 3), 5) == Reach(2, 3, 0, 5, groups=2)
    assert reach_of(Caps(2**61, 2), 5) is None


def test_many_groups_cost_no_more_time():
    reach = reach_of(Caps(10**6 + 1, 10**6, 2), 10**6)
    assert movement(COUNT, ONE, 2, reach, "replace") > 0
