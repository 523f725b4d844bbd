"""Strategies: what is measured, how it is read back, and the errors they predict."""

from dataclasses import replace

import numpy as np
import pytest
from support.designing import row_of
from support.plans import deviations_of, noise_of
from support.randomness import SYSTEM

from dpframe.privacy import box, noise
from dpframe.privacy.laws import GAUSSIAN, LAPLACE
from dpframe.privacy.neighbors import ROW_CAPS, Caps
from dpframe.privacy.sensitivity import reach_of
from dpframe.strategies import MECHANISMS, independent, margins, tree
from dpframe.strategies.base import Output, Source, Workload
from dpframe.strategies.domain import Dimension, Domain

EVERYONE = Source(0, 0, optional=False)
WIDE = Source(-20, 30, optional=True)
POSITIVE = Source(5, 8, optional=False)
CELLS = 3
OUTPUTS = (Output("count", 0), Output("sum", 1), Output("mean", 1), Output("mean", 2))
TOTALS = {
    (0, "rows"): np.array([100, 0, 7]),
    (1, "value"): np.array([-150, 0, 60]),
    (1, "rows"): np.array([60, 0, 2]),
    (2, "value"): np.array([600, 0, 56]),
    (2, "rows"): np.array([100, 0, 7]),
}


def workload(outputs=OUTPUTS, neighboring="add_remove", caps=ROW_CAPS):
    sources = (EVERYONE, WIDE, POSITIVE)
    return Workload(sources, outputs, row_of(CELLS), reach_of(caps, CELLS), neighboring)


DESIGNS = [
    pytest.param(how.law, made, id=f"{name}-{number}-{neighboring}-{caps.rows}")
    for name, how in MECHANISMS.items()
    for neighboring in ("add_remove", "replace")
    for caps in (ROW_CAPS, Caps(7, 3, 3))
    for number, design in enumerate(how.designs)
    if (made := design(workload(neighboring=neighboring, caps=caps), how.law))
]


MARGINS = Domain((Dimension(2, ordered=False), Dimension(4, ordered=True)), margins=((0,), (0, 1)))
LAYERED = [
    pytest.param(law, made, id=f"{law}-{number}-{number_of}")
    for law in (GAUSSIAN, LAPLACE)
    for number, options in enumerate(({"domain": MARGINS}, {"ranges": True}))
    for number_of, planner in enumerate((margins.apart, tree.design))
    if (made := planner(replace(workload(), **options), law))
]


@pytest.mark.parametrize(("law", "made"), [*DESIGNS, *LAYERED])
def test_noise_is_drawn_at_the_very_scales_that_are_given(law, made, monkeypatch):
    drawn = []

    def recorded(draw):
        def call(*given):
            drawn.append(np.array(given[-3]).ravel().tolist())  # before it comes to any bits
            return draw(*given)

        return call

    for module in (noise, box):
        monkeypatch.setattr(module, "_draw", recorded(module._draw))
    scales = [scale * 7 / 3 for scale in made.scales]
    sizes = [1 if k in made.common else CELLS for k in range(len(scales))]
    noise_of(law, made, scales).draw(sizes, SYSTEM)
    if made.layers is not None:
        expected = {one for scale in scales for one in scale * made.layers.profile}
    else:
        expected = {*scales} - {0.0}
    # rejected draws are made again
    assert {scale for own in drawn for scale in own} - {0.0} == expected


def loads(estimate):
    """Standard errors, from what the noise of each block does."""
    return np.sqrt(sum(np.square(part) for part in estimate.loadings.values()) + np.zeros(CELLS))


@pytest.mark.parametrize(("law", "made"), DESIGNS)
def test_without_noise_the_estimates_are_the_answers(law, made):
    blocks = made.encode({need: TOTALS[need] for need in made.needs})
    assert all(block.dtype == np.int64 for block in blocks)
    count, total, mean, of_positives = made.decode(blocks, [0.0] * len(blocks))
    assert count.values.tolist() == [100, 0, 7]
    assert total.values.tolist() == [-150, 0, 60]
    # without any row, the middle of the bounds
    assert mean.values == pytest.approx([-2.5, 5, 30])
    assert of_positives.values == pytest.approx([6, 6.5, 8])
    assert all((loads(estimate) == 0).all() for estimate in (count, total, mean, of_positives))


@pytest.mark.parametrize(("law", "made"), [one for one in DESIGNS if not one.values[1].joined])
def test_predicted_errors_are_those_of_the_noise(law, made):
    # 40,000 draws tell a standard deviation to 0.6 %: 2.5 % is 4.5 times that, and one of these 16
    # comparisons fails by chance once in 10,000 runs
    draws = 40_000
    blocks = [
        np.repeat(block, draws) for block in made.encode({n: TOTALS[n][:1] for n in made.needs})
    ]
    least = min(scale for scale in made.scales if scale)
    scales = [20 * scale / least for scale in made.scales]
    noisy = [
        block + noise
        for block, noise in zip(
            blocks, noise_of(law, made, scales).draw([draws] * len(scales), SYSTEM), strict=True
        )
    ]
    deviations = deviations_of(law, made, scales, draws)
    estimates, predictions = made.decode(noisy, deviations), made.predict(deviations)
    for estimate, prediction, answer in zip(
        estimates[:2], predictions[:2], (100, -150), strict=True
    ):
        spread = np.sqrt(np.mean((estimate.values - float(answer)) ** 2))
        assert spread == pytest.approx(prediction.std_error, rel=0.025)
        assert spread != pytest.approx(1.06 * prediction.std_error, rel=0.025)
        assert not prediction.per_row


@pytest.mark.parametrize(("law", "made"), DESIGNS)
def test_a_prediction_for_means_bounds_the_error_of_every_mean(law, made):
    deviations = deviations_of(law, made, made.scales, CELLS)
    worst = made.predict(deviations)[2]
    assert worst.per_row
    assert worst.block is None
    blocks = []
    for mean in np.linspace(-20, 30, 11):
        totals = {need: np.full(CELLS, 10**6) for need in made.needs}
        totals[1, "value"] = np.full(CELLS, round(mean * 10**6))
        blocks.append(made.decode(made.encode(totals), deviations)[2])
    errors = [loads(estimate)[0] * 10**6 for estimate in blocks]
    assert max(errors) == pytest.approx(worst.std_error, rel=1e-9)
    assert min(errors) < worst.std_error * 0.95


def test_integers_wrap_instead_of_failing():
    made = independent.design(workload(), GAUSSIAN)
    totals = {need: np.full(CELLS, 2**63 - 1) for need in made.needs}
    assert all(len(block) == CELLS for block in made.encode(totals))
