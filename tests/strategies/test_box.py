"""Noise in boxes: errors against closed forms, and the best boxes by trial."""

import itertools
import math

import numpy as np
import pytest
from support.designing import EVERYONE, columns, counting, errors, workload
from support.plans import deviations_of, noise_of
from support.randomness import SYSTEM

from dpframe.privacy.laws import BOX, GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import Caps
from dpframe.strategies import MECHANISMS, box, correlated, independent
from dpframe.strategies.base import Output, Source

COUNT = Output("count", 0)


def asked(d, kinds):
    """Some of c, s and m: the number of rows, and sums and means of d columns."""
    named = {"s": "sum", "m": "mean"}
    wanted = [Output(named[kind], k + 1) for kind in kinds if kind in named for k in range(d)]
    return (COUNT, *wanted) if "c" in kinds else tuple(wanted)


def best(work):
    """Errors of the best design with noise in boxes."""
    made = [design(work, BOX) for design in MECHANISMS["box"].designs]
    found = [errors(work, one, BOX) for one in made if one is not None]
    return min(found, key=lambda own: sum(error**2 for error in own[: len(work.outputs)]))


# errors at epsilon = 1: of the number of rows, and of every sum and mean in widths
@pytest.mark.parametrize(
    ("d", "kinds", "count", "other"),
    [
        (1, "cm", 2.00, 1.41),
        (1, "csm", 2.00, 1.41),
        (3, "csm", 3.16, 2.24),
        (2, "s", 2.58, 1.83),
        (3, "s", 3.16, 2.24),
        (5, "s", 4.32, 3.06),
        (8, "s", 6.06, 4.28),
        (10, "s", 7.21, 5.10),
        (16, "s", 6.66, 7.22),
        (32, "s", 9.50, 12.31),
        (48, "s", 11.91, 17.27),
        (64, "s", 14.06, 22.17),
        (2, "m", 2.58, 1.83),
        (3, "m", 3.16, 2.24),
        (10, "m", 7.21, 5.10),
        (8, "cm", 6.06, 4.28),
    ],
)
def test_the_errors_of_several_columns(d, kinds, count, other):
    work = workload(columns(*[(0, 1)] * d), asked(d, kinds))
    found = best(work)
    if "c" in kinds:
        assert found.pop(0) == pytest.approx(count, rel=2e-3)
    others = found[: d * len(kinds.strip("c"))]
    assert others == pytest.approx([other] * len(others), rel=4e-3)


# four sums off the center, in widths
@pytest.mark.parametrize(
    ("lower", "d", "error"),
    [(1, 4, 5.22), (5, 4, 12.14), (99, 4, 151.43), (1, 2, 4.00), (5, 2, 10.93), (99, 8, 156.26)],
)
def test_the_errors_of_sums_off_the_center(lower, d, error):
    work = workload(columns(*[(lower, lower + 1)] * d))
    assert best(work)[:d] == pytest.approx([error] * d, rel=2e-3)


@pytest.mark.parametrize(
    ("d", "count", "mean"), [(2, 3.74, 2.24), (3, 4.90, 3.00), (10, None, 7.80)]
)
def test_the_errors_of_columns_with_missing_values(d, count, mean):
    sources = (EVERYONE, *[Source(0, 1, optional=True)] * d)
    found = best(workload(sources, asked(d, "m")))
    assert found[0] == pytest.approx(mean, rel=3e-3)
    if count is not None:  # one box
        work = workload(sources, asked(d, "cm"))
        made = box.runs_lifted(work, BOX)
        assert errors(work, made, BOX)[0] == pytest.approx(count, rel=2e-3)


@pytest.mark.parametrize(("d", "error"), [(2, 2.00), (3, 2.58), (5, 3.74), (10, 6.63)])
def test_the_errors_of_sums_over_a_public_number_of_rows(d, error):
    work = counting(d, always=True, neighboring="replace")
    assert best(work) == pytest.approx([error] * d, rel=2e-3)


def test_the_errors_where_a_row_moves_between_groups():
    work = workload(columns((0, 1)), asked(1, "cm"), cells=10, neighboring="replace")
    assert best(work) == pytest.approx([4.00, 2.83], rel=2e-3)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("groups", [2, 5, 10])
def test_counts_over_the_bins_of_a_unit_do_not_depend_on_their_number(groups, rows):
    caps = Caps(None, groups, rows)
    work = workload((EVERYONE,), (COUNT,), cells=10, caps=caps, has_units=True)
    assert best(work)[0] == pytest.approx(5.10 * rows, rel=1e-3)


@pytest.mark.parametrize(("d", "k"), [(10, 3), (10, 4), (16, 5), (16, 6), (32, 8), (32, 9)])
def test_a_limit_on_true_values_counts_with_laplace_noise_and_not_in_a_box(d, k):
    work = counting(d, most=k)
    alone = errors(work, independent.design(work, LAPLACE), LAPLACE)[0]
    assert alone == pytest.approx(math.sqrt(2) * k)
    boxed = best(work)[0]
    assert boxed == pytest.approx({10: 5.10, 16: 7.22, 32: 12.31}[d], rel=2e-3)
    assert (boxed < alone) == (k > {10: 3.6, 16: 5.1, 32: 8.7}[d])


def test_the_correlated_gaussian_wins_for_very_many_columns():
    mu = 0.2367044  # epsilon = 1, delta = 1e-6
    for d, expected in ((40, True), (48, False)):
        work = counting(d)
        shared = errors(work, correlated.design(work, GAUSSIAN), GAUSSIAN, mu)[0]
        assert (best(work)[0] < shared) is expected


def partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [item for item in rest if item not in others]
            for more in partitions(left):
                yield [(first, *others), *more]


def total(squares, boxes):
    def part(own):
        size = len(own)
        return math.cbrt(sum(squares[k] for k in own) * (size + 1) * (size + 2) / 3)

    return sum(map(part, boxes)) ** 3


def test_no_other_boxes_are_better():
    rng = np.random.default_rng(1)
    sizes = []
    for _ in range(60):
        squares = list(np.exp(rng.uniform(0, rng.choice([1, 4, 12]), 6)))
        squares[1:3] = [squares[0]] * 2 if rng.random() < 0.5 else squares[1:3]
        found = box.best_boxes(squares)
        assert sorted(itertools.chain(*found)) == list(range(6))
        least = min(total(squares, boxes) for boxes in partitions(list(range(6))))
        assert total(squares, found) == pytest.approx(least, rel=1e-12)
        sizes.append(len(found))
    assert {1, 2, 3} <= set(sizes)


def test_a_box_over_very_many_cells_is_left_alone():
    caps = Caps(None, 2, 1)
    work = workload((EVERYONE,), (COUNT,), cells=box.MOST_JOINED + 1, caps=caps, has_units=True)
    assert all(design(work, BOX) is None for design in MECHANISMS["box"].designs)


@pytest.mark.full
def test_one_draw_over_all_cells_has_the_error_predicted():
    # 4,000 draws of ten bins, correlated in size: a variance is off by 1.6 %, 8 % is five of that
    caps = Caps(None, 10, 1)
    work = workload((EVERYONE,), (COUNT,), cells=10, caps=caps, has_units=True)
    (made,) = (one for design in MECHANISMS["box"].designs[2:3] if (one := design(work, BOX)))
    scales = [20.0 * scale for scale in made.scales]
    deviations = deviations_of(BOX, made, scales, 10)
    exact = made.encode({need: np.zeros(10, np.int64) for need in made.needs})
    found = []
    for _ in range(4000):
        noise = noise_of(BOX, made, scales).draw([len(block) for block in exact], SYSTEM)
        (estimate,) = made.decode([a + b for a, b in zip(exact, noise, strict=True)], deviations)
        found.append(estimate.values)
    errors_of = np.array(found, np.float64)
    (prediction,) = made.predict(deviations)
    assert errors_of.var() == pytest.approx(prediction.std_error**2, rel=0.08)
    # bins share the error of the number of units, and one radius: their sizes go together
    sizes = np.corrcoef(np.abs(errors_of - errors_of.mean(axis=1, keepdims=True)).T)
    assert sizes[np.triu_indices(10, 1)].mean() > 0.05
