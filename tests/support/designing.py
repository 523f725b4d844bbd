"""Workloads made in one line, and the variances that designs predict for them at mu = 1."""

import math
from fractions import Fraction

from support.plans import deviations_of

from dpframe.plan import designs
from dpframe.privacy.laws import GAUSSIAN
from dpframe.privacy.neighbors import ROW_CAPS
from dpframe.privacy.sensitivity import reach_of
from dpframe.strategies.base import Output, Source, Workload
from dpframe.strategies.domain import Dimension, Domain
from dpframe.strategies.linear import ROUNDED

EVERYONE = Source(0, 0, optional=False)


def columns(*bounds):
    """All rows, and one column for each pair of bounds, never missing."""
    return (EVERYONE, *(Source(lower, upper, optional=False) for lower, upper in bounds))


def row_of(cells):
    """So many cells in a row."""
    return Domain((Dimension(cells, ordered=False),))


def workload(
    sources, outputs=None, *, cells=1, caps=ROW_CAPS, neighboring="add_remove", always=False, **more
):
    """Sums of all columns, unless outputs are given."""
    sums = tuple(Output("sum", position) for position in range(1, len(sources)))
    reach = reach_of(caps, cells, always=always)
    return Workload(sources, outputs or sums, row_of(cells), reach, neighboring, **more)


def counting(d, **options):
    """D counting queries."""
    return workload(columns(*[(0, 1)] * d), **options)


def deviations(design, scales=None, law=GAUSSIAN):
    """Noise of each block for mu = 1, or epsilon = 1 with Laplace noise; not rounded."""
    scales = design.scales if scales is None else scales
    moved = float(design.movement([Fraction(float(scale)) for scale in scales], law))
    return [moved ** (1 / law.norm) * scale for scale in scales]


def variances(design, scales=None, law=GAUSSIAN):
    """Predicted variance of every output, the number of rows last where it comes for free.

    Without what rounding to whole numbers adds: it is left out, or the noise is far wider.
    """
    wide = 1.0 if design.workload.known_rows else 2.0**40
    found = design.predict([wide * each for each in deviations(design, scales, law)])
    if design.workload.known_rows:
        return [_without_rounding(prediction) for prediction in found]
    return [(prediction.std_error / wide) ** 2 for prediction in found]


def _without_rounding(prediction):
    own = (part for block, part in prediction.loadings.items() if block > ROUNDED)
    return sum(part**2 for part in own)


def relative(work, design, scales=None, law=GAUSSIAN):
    """Predicted variances of the outputs wanted, in units of their squared widths."""
    own = variances(design, scales, law)
    return [v / work.width(out) ** 2 for v, out in zip(own, work.outputs, strict=False)]


def errors(work, design, law, unit=1.0):
    """Predicted standard errors in widths, at epsilon = 1 or mu = unit; but for rounding."""
    wide = 2.0**40 / max(design.scales)
    own = deviations_of(law, design, [wide * scale for scale in design.scales], work.cells)
    moved = float(design.movement([Fraction(scale) for scale in design.scales], law))
    factor = moved ** (1 / law.norm) / wide / unit
    found = design.predict(own)
    widths = [work.width(out) for out in (*work.outputs, *(work.everyone,) * design.extra)]
    return [factor * one.std_error / width for one, width in zip(found, widths, strict=True)]


def perturbed(scales, rng):
    """Scales near some others: a step of random size in a random direction."""
    step = math.exp(rng.uniform(math.log(1e-3), math.log(0.5)))
    return [scale * math.exp(step * rng.standard_normal()) for scale in scales]


def keep_no_plans(patch):
    """While planning is changed: use no plan made before, and leave none behind."""
    patch.setattr(designs, "_kept", lambda make, workload: make)


def square_of(value, source):
    """The square of a value, on the grid of squares, by rational arithmetic."""
    width = source.upper - source.lower
    return math.ceil(Fraction((2 * value - source.lower - source.upper) ** 2, width or 1))
