"""Movement where the largest coordinate of a group counts, against brute force over neighbors.

Every unit has any rows within its caps, all different if they like, in any cells.
"""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import Exclusive, Footprint, Reach, Sparse, movement, reach_of

LIMITS = [
    (cells, Caps(*caps))
    for cells in (1, 2, 3)
    for caps in ((1, 1, 1), (2, 2, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3))
]
RELATIONS = ("add_remove", "replace")


def rows_of(footprints, size):
    """Every vector that one row can add at a corner."""
    found = set()
    for choice in itertools.product(*(options(part, size) for part in footprints)):
        row = [0] * size
        for moved in choice:
            for k, value in moved:
                row[k] += value
        found.add(tuple(row))
    return sorted(found)


def options(part, size):
    if isinstance(part, Footprint):
        return [tuple(zip(part.coordinates, corner, strict=True)) for corner in part.corners]
    if isinstance(part, Exclusive):
        pairs = zip(part.members, part.absent, strict=True)
        gone = [tuple(zip(one.coordinates, absent, strict=True)) for one, absent in pairs]
        return [
            sum((*gone[:at], own, *gone[at + 1 :]), start=())
            for at, one in enumerate(part.members)
            for own in [*options(one, size), gone[at]]
        ]
    places = range(part.coordinate, part.coordinate + part.size)
    return [
        tuple(
            (k, part.present if bit else part.absent) for k, bit in zip(places, bits, strict=True)
        )
        for bits in itertools.product((0, 1), repeat=part.size)
        if sum(bits) <= part.most
    ]


def sums(rows, most):
    """What so many rows of a unit, or fewer, can add to a cell, and how many they are."""
    found = {0: {(0,) * len(rows[0])}}
    for n in range(1, most + 1):
        found[n] = {
            tuple(map(sum, zip(total, row, strict=True))) for total in found[n - 1] for row in rows
        }
    return found


def gauge(moved, scales, norm, groups):
    lengths = [
        (abs(x) / s) ** norm if x else Fraction(0) for x, s in zip(moved, scales, strict=True)
    ]
    return sum((max(lengths[k] for k in group) for group in groups), start=Fraction(0))


def brute_force(footprints, scales, groups, limits, neighboring, *, norm=1, total=sum):
    """The worst pair of units, each with any rows at all.

    What counts in a cell depends on the numbers of rows there alone; the worst rows are found for
    each pair of them.
    """
    cells, caps = limits
    can = sums(rows_of(footprints, len(scales)), caps.rows_per_group)
    worst = {}
    for a, b in itertools.product(can, repeat=2):
        steps = {tuple(x - y for x, y in zip(v, w, strict=True)) for v in can[a] for w in can[b]}
        worst[a, b] = max(gauge(step, scales, norm, groups) for step in steps)
    units = [
        filled
        for filled in itertools.product(range(caps.rows_per_group + 1), repeat=cells)
        if sum(filled) <= caps.rows and sum(n > 0 for n in filled) <= caps.groups
    ]
    others = [(0,) * cells] if neighboring == "add_remove" else units
    return max(
        total(worst[pair] for pair in zip(one, other, strict=True))
        for one in units
        for other in others
    )


N = Footprint((0,), ((1,),))
PLUS = [Footprint((k,), ((-3,), (5,))) for k in range(3)]
F = Fraction
ONE_BOX, TWO, ALONE = ((0, 1, 2),), ((0,), (1, 2)), ((0,), (1,), (2,))
DESIGNS = {
    "lifted, one box": (
        (N, Footprint((1,), ((-4,), (4,))), Footprint((2,), ((-7,), (7,)))),
        ONE_BOX,
    ),
    "lifted, two boxes": ((N, Footprint((1,), ((-4,), (4,))), Footprint((2,), ((-7,), (7,)))), TWO),
    "lifted, alone": ((N, Footprint((1,), ((-4,), (4,))), Footprint((2,), ((-7,), (7,)))), ALONE),
    "sums that are not lifted": (tuple(PLUS), ONE_BOX),
    "a nullable column, one box": ((N, Footprint((1, 2), ((1, -4), (1, 4), (-1, 0)))), ONE_BOX),
    "a nullable column beside the rows": (
        (N, Footprint((1, 2), ((1, -4), (1, 4), (0, 0)))),
        ((0,), (1, 2)),
    ),
    "a nullable column, alone": ((N, Footprint((1, 2), ((1, -4), (1, 4), (0, 0)))), ALONE),
    "a triple": ((Footprint((0, 1, 2), ((0, 3, 0), (3, 0, 0), (0, 0, 1))),), ALONE),
    "few are true, one box": ((N, Sparse(1, 2, -1, 2, 1)), ONE_BOX),
    "few are true, beside the rows": ((N, Sparse(1, 2, -1, 2, 1)), TWO),
    "few are true, alone": ((N, Sparse(1, 2, -1, 2, 1)), ALONE),
}
EITHER = Exclusive((Footprint((1,), ((2,), (-1,))), Footprint((2,), ((3,),))), ((0,), (0,)))
LIFTED = Exclusive((Footprint((1,), ((2,),)), Footprint((2,), ((3,), (-2,)))), ((-1,), (1,)))
TRIPLE = Exclusive(
    (Footprint((0, 2), ((1, -3), (1, 2))), Footprint((1,), ((4,),))), ((0, 0), (-1,))
)
DESIGNS |= {
    "one or the other, one box": ((N, EITHER), ONE_BOX),
    "one or the other, alone": ((N, EITHER), ALONE),
    "one or the other, two boxes": ((N, EITHER), TWO),
    "one or the other, lifted, one box": ((N, LIFTED), ONE_BOX),
    "one or the other, lifted, alone": ((N, LIFTED), ALONE),
    "two coordinates or one, alone": ((TRIPLE,), ALONE),
    "two coordinates in a box, or one": ((TRIPLE,), ((0, 2), (1,))),
}
SCALES = (F(1, 2), F(5, 3), F(5, 3))


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", DESIGNS)
def test_movement_is_that_of_the_worst_neighbors(name, neighboring):
    footprints, groups = DESIGNS[name]
    for cells, caps in LIMITS:
        reach = reach_of(caps, cells)
        far = movement(footprints, SCALES, 1, reach, neighboring, groups=groups)
        expected = brute_force(footprints, SCALES, groups, (cells, caps), neighboring)
        assert far == expected, (cells, caps)


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", [name for name in DESIGNS if name.endswith("one box")])
def test_one_box_over_all_cells_counts_the_largest_of_them(name, neighboring):
    footprints, groups = DESIGNS[name]
    for cells, caps in LIMITS:
        far = movement(
            footprints, SCALES, 1, reach_of(caps, cells), neighboring, groups=groups, joined=True
        )
        assert far == brute_force(footprints, SCALES, groups, (cells, caps), neighboring, total=max)


def test_what_is_not_in_the_box_over_all_cells_counts_in_each():
    parts, reach = DESIGNS["lifted, two boxes"][0], reach_of(Caps(2, 2, 1), 3)
    scales = [F(1), F(4), F(7)]
    for neighboring, cells in (("add_remove", 2), ("replace", 3)):
        # the box moves by 1 or 2 at most in any cell, and the number of rows by 1 in each
        for groups in (((1, 2), (0,)), TWO):
            far = movement(parts, scales, 1, reach, neighboring, groups=groups, joined=True)
            assert far >= 1 + cells


def footprints_of(draw, size):
    """Divide the coordinates among footprints, with corners of small integers."""
    cuts = sorted(draw(st.sets(st.integers(1, size - 1), max_size=2)))
    parts = []
    for start, end in itertools.pairwise([0, *cuts, size]):
        values = st.tuples(*[st.integers(-2, 3)] * (end - start))
        corners = draw(st.lists(values, min_size=1, max_size=3, unique=True))
        parts.append(Footprint(tuple(range(start, end)), tuple(corners)))
    return tuple(parts)


@st.composite
def problems(draw):
    """Footprints, scales, groups, limits and a relation."""
    size = draw(st.integers(2, 4))
    marks = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
    groups = [tuple(k for k in range(size) if marks[k] == mark) for mark in sorted({*marks})]
    scales = draw(st.lists(st.sampled_from([F(1), F(2, 3), F(7, 2)]), min_size=size, max_size=size))
    limits = draw(st.sampled_from([limit for limit in LIMITS if limit[1].rows <= 3]))
    return footprints_of(draw, size), scales, groups, limits, draw(st.sampled_from(RELATIONS))


def exact(footprints, groups):
    """Whether no footprint has coordinates both in a shared group and in another one."""
    for part in footprints:
        mine = [group for group in groups if {*group} & {*part.coordinates}]
        if len(mine) > 1 and any({*group} - {*part.coordinates} for group in mine):
            return False
    return True


@given(problems(), st.sampled_from([1, 2]))
def test_movement_is_never_below_the_worst_neighbors(problem, norm):
    footprints, scales, groups, limits, neighboring = problem
    cells, caps = limits
    far = movement(footprints, scales, norm, reach_of(caps, cells), neighboring, groups=groups)
    expected = brute_force(footprints, scales, groups, limits, neighboring, norm=norm)
    assert far >= expected
    if exact(footprints, groups):
        assert far == expected


def test_a_footprint_in_several_shared_groups_is_bounded_from_above():
    # a value of 1 moves one coordinate or the other; each shares its group with a count
    parts = (Footprint((0, 1), ((1, 0), (0, 1))), Footprint((2,), ((1,),)))
    reach, scales = reach_of(ROW_CAPS, 1), [F(1), F(1), F(2)]
    groups = ((0, 2), (1,))
    assert brute_force(parts, scales, groups, (1, Caps(1, 1, 1)), "add_remove") == F(3, 2)
    assert movement(parts, scales, 1, reach, "add_remove", groups=groups) == 2


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_groups_of_one_are_no_groups(neighboring):
    for footprints, _ in DESIGNS.values():
        for cells, caps in LIMITS:
            reach = reach_of(caps, cells)
            plain = movement(footprints, SCALES, 1, reach, neighboring)
            assert plain == movement(footprints, SCALES, 1, reach, neighboring, groups=ALONE)
            assert plain == movement(footprints, SCALES, 1, reach, neighboring, groups=())
            # a box never moves farther than its coordinates one by one
            assert plain >= movement(footprints, SCALES, 1, reach, neighboring, groups=ONE_BOX)


def test_few_true_values_in_two_boxes_count_once_in_each():
    part, scales, reach = Sparse(0, 4, 0, 1, 4), [F(1)] * 4, Reach(1, 1, 0, 1)
    assert movement([part], scales, 1, reach, "add_remove") == 4
    assert movement([part], scales, 1, reach, "add_remove", groups=((0, 1), (2, 3))) == 2
    assert movement([part], scales, 1, reach, "add_remove", groups=((0, 1, 2, 3),)) == 1


def test_a_row_that_is_always_there_moves_within_its_bounds_in_a_box():
    reach = reach_of(ROW_CAPS, 1, always=True)
    far = movement(PLUS, [F(1), F(2), F(4)], 1, reach, "replace", groups=ONE_BOX)
    assert far == 8
    assert far == movement(
        PLUS, [F(1), F(2), F(4)], 1, reach, "replace", groups=ONE_BOX, joined=True
    )


def test_a_coordinate_of_a_box_without_noise_must_not_move():
    with pytest.raises(ZeroDivisionError):
        movement((N, PLUS[1]), [F(1), F(0)], 1, reach_of(ROW_CAPS, 3), "replace", groups=((0, 1),))
